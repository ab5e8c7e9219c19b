/* The client onnx: random inputs of the shapes that a model and its user ask for. */
#include <math.h>
#include <unistd.h>

#include "clients/client.h"
#include "core/json.h"
#include "engine/onnx_inputs.h"
#include "support/ask.h"
#include "support/onnx_made.h"
#include "support/unit.h"

static enum err available(struct error *why)
{
    const char *version;
    return onnx_available(&version, why);
}

/* ---- a request ---- */

struct asked {
    enum err err;
    struct error why;
    char answer[200], info[600];
};

/* Runs a model once with these parameters; the file is removed. */
static struct asked ask(struct onnx_made made, const char *words)
{
    struct asked asked = {0};
    struct client client;
    struct params params = {0};
    struct completion reply;
    struct text text = {0};
    struct json json;
    char *path = onnx_made_file(&made);
    assert_int_equal(params_add(&params, "threads=1"), ERR_OK);
    assert_int_equal(params_add(&params, words), ERR_OK);
    const struct client_config config = {.params = &params};
    asked.err = client_open(client_driver_find("onnx", NULL), &config, &client, &asked.why);
    params_release(&params);
    if (!asked.err) {
        const struct client_request request = {.model = path, .prompt = "Q"};
        asked.err = client.driver->prepare(&client, path, 0, &asked.why);
        if (!asked.err)
            asked.err = client.driver->ask(&client, &request, &reply, &asked.why);
        else
            completion_init(&reply);
        chars_copy(asked.answer, text_get(&reply.content));
        completion_release(&reply);
        json_init(&json, &text, false);
        json_object(&json, NULL);
        client.driver->describe(&client, path, &json);
        json_object_end(&json);
        chars_copy(asked.info, text_get(&text));
        text_release(&text);
        client_close(&client);
    }
    unlink(path);
    free(path);
    return asked;
}

#define ASSERT_ANSWER(asked, expected)                                                             \
    do {                                                                                           \
        if ((asked).err)                                                                           \
            fail_msg("%s", (asked).why.text);                                                      \
        assert_string_equal((asked).answer, expected);                                             \
    } while (0)

static void the_answer_is_the_shapes_of_the_outputs(void **state)
{
    (void)state;
    struct asked asked = ask(onnx_made_sum(), "");
    ASSERT_ANSWER(asked, "y float[1,3]");
    assert_contains(asked.info, "\"provider\":\"cpu\"");
    assert_contains(asked.info, "\"inputs\":[\"x float[1,3]\"]");
    assert_contains(asked.info, "\"threads\":1");
    ASSERT_ANSWER(ask(onnx_made_sum(), "batch=5"), "y float[5,3]");
    ASSERT_ANSWER(ask(onnx_made_sum(), "dim.batch=6"), "y float[6,3]");
    ASSERT_ANSWER(ask(onnx_made_sum(), "dim.x.0=7"), "y float[7,3]");
    ASSERT_ANSWER(ask(onnx_made_sum(), "dim.x=8x3"), "y float[8,3]");
}

/* An image without names for its sides, a decoder's mask, and a size that another input gave. */
static struct onnx_made make_sized(void)
{
    struct onnx_made made = {0};
    onnx_made_input(&made, "image", ONNX_FLOAT, (int64_t[]){-1, 3, -1, -1}, 4, "");
    onnx_made_input(&made, "ids", ONNX_INT64, (int64_t[]){2, -1}, 2, "sequence_length");
    onnx_made_input(&made, "mask", ONNX_BOOL, (int64_t[]){2, -1}, 2,
                    "past_sequence_length + sequence_length");
    onnx_made_output(&made, "a", ONNX_FLOAT, (int64_t[]){-1, -1, -1, -1}, 4, "");
    onnx_made_output(&made, "b", ONNX_INT64, (int64_t[]){-1, -1}, 2, "");
    onnx_made_output(&made, "c", ONNX_BOOL, (int64_t[]){-1, -1}, 2, "");
    onnx_made_node(&made, "Relu", "image", "a");
    onnx_made_node(&made, "Identity", "ids", "b");
    onnx_made_node(&made, "Identity", "mask", "c");
    return made;
}

static void free_dimensions_have_sizes_by_their_meaning(void **state)
{
    (void)state;
    ASSERT_ANSWER(ask(make_sized(), ""), "a float[1,3,224,224], b int64[2,128], c bool[2,128]");
    ASSERT_ANSWER(
        ask(make_sized(), "dim.sequence_length=4,dim.past_sequence_length=16,dim.image.3=320"),
        "a float[1,3,224,320], b int64[2,4], c bool[2,20]");
    ASSERT_ANSWER(ask(make_sized(), "dim.ids=2x9,dim.image=4x3x8x8"),
                  "a float[4,3,8,8], b int64[2,9], c bool[2,9]");
}

static struct onnx_made make_unnamed(void)
{
    struct onnx_made made = {0};
    onnx_made_input(&made, "x", ONNX_FLOAT, (int64_t[]){1, -1}, 2, "frames");
    onnx_made_output(&made, "y", ONNX_FLOAT, (int64_t[]){1, -1}, 2, "frames");
    onnx_made_node(&made, "Relu", "x", "y");
    return made;
}

static void a_size_that_is_unknown_or_wrong_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *words, *says;
    } WRONG[] = {
        {"", "dimension frames of input x is free: give it with --client-param dim.frames=SIZE"},
        {"dim.frames=many", "--client-param dim.frames=many: expected a size"},
        {"dim.frames=3,dim.hops=2", "dim.hops=2: the model's inputs have no free dimension"},
        {"dim.x=1x2x3", "dim.x=1x2x3: another number of dimensions"},
        {"dim.x=1xtwo", "dim.x=1xtwo: expected a shape like"},
        {"dim.x=2x2", "dim.x=2x2: differs from a size that the model fixes"},
        {"dim.frames=3,batch=2", "fixes the sizes of its inputs"},
        {"dim.frames=2000000000", "too large (limit 4 GiB)"},
        {"dim.frames=3,value.y=1", "value.y: the model has no input of this name"},
        {"dim.frames=3,value.x=2:1", "value.x=2:1: expected a number or LOW:HIGH"},
    };
    for (size_t i = 0; i < COUNT_OF(WRONG); i++) {
        struct asked asked = ask(make_unnamed(), WRONG[i].words);
        assert_int_equal(asked.err, ERR_USAGE);
        assert_contains(asked.why.text, WRONG[i].says);
    }
    ASSERT_ANSWER(ask(make_unnamed(), "dim.frames=3"), "y float[1,3]");
}

static void outputs_that_are_no_numbers_are_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct onnx_made made = {0};
        onnx_made_input(&made, "x", ONNX_FLOAT, (int64_t[]){4}, 1, "");
        onnx_made_output(&made, "y", ONNX_FLOAT, (int64_t[]){4}, 1, "");
        onnx_made_node(&made, "Log", "x", "y"); /* of a negative number */
        struct asked asked = ask(made, i ? "value.x=1:2" : "value.x=-2:-1");
        assert_int_equal(asked.err, i ? ERR_OK : ERR_BAD_VALUE);
        if (i == 0)
            assert_contains(asked.why.text, "output y has NaN at element 0");
    }
}

/* ---- the values ---- */

static struct onnx_inputs make_inputs(const struct onnx_input_options *options,
                                      struct onnx_session **session)
{
    struct onnx_made made = {0};
    struct onnx_inputs inputs;
    struct error why;
    const int64_t shape[] = {-1};
    const enum onnx_type types[] = {ONNX_FLOAT, ONNX_FLOAT16, ONNX_BFLOAT16, ONNX_DOUBLE,
                                    ONNX_INT8,  ONNX_INT64,   ONNX_BOOL};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        char in[8], out[8];
        snprintf(in, sizeof in, "i%zu", i);
        snprintf(out, sizeof out, "o%zu", i);
        onnx_made_input(&made, in, types[i], shape, 1, "width");
        onnx_made_output(&made, out, types[i], shape, 1, "width");
        onnx_made_node(&made, "Identity", in, out);
    }
    char *path = onnx_made_file(&made);
    assert_int_equal(onnx_session_open(path, NULL, session, &why), ERR_OK);
    if (onnx_inputs_make(*session, options, &inputs, &why))
        fail_msg("%s", why.text);
    unlink(path);
    free(path);
    return inputs;
}

static void values_are_random_in_their_range_and_repeat_with_the_seed(void **state)
{
    (void)state;
    struct params values = {0}, dims = {0};
    assert_int_equal(params_add(&values, "i0=2:3,i5=-7:900,i4=-5"), ERR_OK);
    assert_int_equal(params_add(&dims, "width=1000"), ERR_OK);
    const struct onnx_input_options options = {.seed = 1, .dims = &dims, .values = &values};
    struct onnx_input_options other = options;
    other.seed = 2;
    struct onnx_session *sessions[3];
    struct onnx_inputs a = make_inputs(&options, &sessions[0]),
                       b = make_inputs(&options, &sessions[1]),
                       c = make_inputs(&other, &sessions[2]);
    const double low[] = {2, -1, -1, -1, -5, -7, 0}, high[] = {3, 1, 1, 1, -5, 900, 1};
    for (size_t i = 0; i < a.count; i++) {
        double least = INFINITY, most = -INFINITY;
        bool is_equal = true, is_other = false;
        assert_int_equal(a.tensors[i].count, 1000);
        for (size_t k = 0; k < 1000; k++) {
            double value = onnx_tensor_at(&a.tensors[i], k);
            least = fmin(least, value);
            most = fmax(most, value);
            is_equal &= value == onnx_tensor_at(&b.tensors[i], k);
            is_other |= value != onnx_tensor_at(&c.tensors[i], k);
        }
        double width = high[i] - low[i];
        assert_true(least >= low[i] && least <= low[i] + 0.05 * width);
        assert_true(most <= high[i] && most >= high[i] - 0.05 * width);
        assert_true(is_equal);
        assert_true(is_other == (width > 0));
    }
    onnx_inputs_release(&a);
    onnx_inputs_release(&b);
    onnx_inputs_release(&c);
    for (size_t i = 0; i < 3; i++)
        onnx_session_close(sessions[i]);
    params_release(&values);
    params_release(&dims);
}

static void a_request_has_no_parameters_and_no_tools(void **state)
{
    (void)state;
    struct client client;
    const struct client_config config = {0};
    assert_int_equal(client_open(client_driver_find("onnx", NULL), &config, &client, NULL), ERR_OK);
    struct ask_result asked = ask_client(&client, "temperature=1");
    assert_int_equal(asked.err, ERR_USAGE);
    assert_contains(asked.why.text, "temperature");
    ask_result_release(&asked);
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_the_shapes_of_the_outputs),
        cmocka_unit_test(free_dimensions_have_sizes_by_their_meaning),
        cmocka_unit_test(a_size_that_is_unknown_or_wrong_is_refused),
        cmocka_unit_test(outputs_that_are_no_numbers_are_an_error),
        cmocka_unit_test(values_are_random_in_their_range_and_repeat_with_the_seed),
        cmocka_unit_test(a_request_has_no_parameters_and_no_tools),
    };
    return RUN_TESTS_WITH(available, tests);
}
