/* test: tsan */
/* Models that run in this process: what comes out, what is shared, and what is refused with which words. */
#include "engine/onnx.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "support/onnx_made.h"
#include "support/unit.h"

static enum err available(struct error *why)
{
    const char *version;
    return onnx_available(&version, why);
}

static struct onnx_session *open_made(struct onnx_made *made, const struct onnx_options *options)
{
    struct onnx_session *session;
    struct error why = {0};
    char *path = onnx_made_file(made);
    enum err err = onnx_session_open(path, options, &session, &why);
    unlink(path);
    free(path);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    return session;
}

static const int64_t ROWS_OF_3[] = {-1, 3};

static void a_model_is_described_and_run(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    onnx_made_metadata(&made, "names", "{0: 'cat'}");
    struct onnx_session *session = open_made(&made, &(struct onnx_options){.threads = 1});
    const struct onnx_facts *facts = onnx_session_facts(session);
    assert_int_equal(facts->input_count, 1);
    assert_int_equal(facts->output_count, 1);
    assert_string_equal(facts->inputs[0].name, "x");
    assert_int_equal(facts->inputs[0].type, ONNX_FLOAT);
    assert_int_equal(facts->inputs[0].rank, 2);
    assert_int_equal(facts->inputs[0].shape[0], -1);
    assert_int_equal(facts->inputs[0].shape[1], 3);
    assert_string_equal(facts->inputs[0].symbols[0], "batch");
    assert_string_equal(facts->inputs[0].symbols[1], "");
    assert_string_equal(facts->provider, "cpu");
    assert_int_equal(facts->threads, 1);
    assert_int_equal(onnx_input(session, "x"), 0);
    assert_int_equal(onnx_output(session, "y"), 0);
    assert_int_equal(onnx_output(session, "z"), -1);
    char *names = onnx_session_metadata(session, "names");
    assert_string_equal(names, "{0: 'cat'}");
    free(names);
    assert_null(onnx_session_metadata(session, "stride"));
    assert_null(onnx_session_profile(session));

    float numbers[] = {1, -2, 3, -4, 5, -6};
    struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){2, 3}), out;
    assert_int_equal(in.count, 6);
    struct error why = {0};
    assert_int_equal(onnx_run(session, &in, &out, NULL, NULL, &why), ERR_OK);
    assert_int_equal(out.rank, 2);
    assert_int_equal(out.shape[0], 2);
    assert_int_equal(out.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_near(onnx_tensor_at(&out, i), numbers[i] > 0 ? 2 * numbers[i] : numbers[i], 0);

    /* An output is the input of the next run, without a copy. */
    struct onnx_tensor again;
    assert_int_equal(onnx_run(session, &out, &again, NULL, NULL, &why), ERR_OK);
    assert_near(onnx_tensor_at(&again, 0), 4, 0);
    assert_near(onnx_tensor_at(&out, 0), 2, 0);
    onnx_tensor_release(&again);
    onnx_tensor_release(&out);
    assert_null(out.data);
    onnx_session_close(session);
    onnx_session_close(NULL);
}

static void only_the_wanted_outputs_are_computed(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct error why = {0};
    onnx_made_output(&made, "r", ONNX_FLOAT, ROWS_OF_3, 2, "batch");
    struct onnx_session *session = open_made(&made, NULL);
    float numbers[] = {1, -2, 3};
    const bool wanted[] = {false, true};
    struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){1, 3}), out[2];
    assert_int_equal(onnx_run(session, &in, out, wanted, NULL, &why), ERR_OK);
    assert_null(out[0].data);
    assert_null(out[0].owner);
    assert_near(onnx_tensor_at(&out[1], 1), 0, 0);
    assert_near(onnx_tensor_at(&out[1], 2), 3, 0);
    onnx_tensor_release(&out[1]);
    onnx_session_close(session);
}

/* Every type that the library can convert to: the numbers come back as they were. */
static void elements_of_every_type_are_read(void **state)
{
    (void)state;
    static const enum onnx_type TYPES[] = {ONNX_UINT8,  ONNX_INT8,   ONNX_UINT16, ONNX_INT16,
                                           ONNX_INT32,  ONNX_INT64,  ONNX_BOOL,   ONNX_FLOAT16,
                                           ONNX_DOUBLE, ONNX_UINT32, ONNX_UINT64, ONNX_BFLOAT16};
    float numbers[] = {0, 1, 1};
    for (size_t t = 0; t < COUNT_OF(TYPES); t++) {
        struct onnx_made made = {0};
        struct error why = {0};
        struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){1, 3}), out;
        onnx_made_input(&made, "x", ONNX_FLOAT, ROWS_OF_3, 2, "");
        onnx_made_output(&made, "y", TYPES[t], ROWS_OF_3, 2, "");
        onnx_made_node_with(&made, "Cast", "x", "y", "to", TYPES[t]);
        struct onnx_session *session = open_made(&made, NULL);
        assert_int_equal(onnx_session_facts(session)->outputs[0].type, TYPES[t]);
        assert_string_equal(onnx_session_facts(session)->outputs[0].symbols[0], "");
        assert_int_equal(onnx_run(session, &in, &out, NULL, NULL, &why), ERR_OK);
        for (size_t i = 0; i < 3; i++)
            assert_near(onnx_tensor_at(&out, i), numbers[i], 0);
        onnx_tensor_release(&out);
        onnx_session_close(session);
    }
}

static void float16_has_subnormals_and_no_numbers(void **state)
{
    (void)state;
    uint16_t bits[] = {0x0001, 0x03ff, 0x0400, 0x3555, 0x7bff, 0x7c00, 0xfc00, 0xc000, 0x7e00};
    const double expected[] = {0x1p-24, 0x1.ff8p-15,      0x1p-14,           0x1.554p-2,
                               65504,   (double)INFINITY, -(double)INFINITY, -2};
    const struct onnx_tensor tensor = onnx_tensor_of(ONNX_FLOAT16, bits, 1, (int64_t[]){9});
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_true(onnx_tensor_at(&tensor, i) == expected[i]);
    assert_true(isnan(onnx_tensor_at(&tensor, 8)));
}

/* ---- sharing ---- */

static void a_file_is_in_memory_once(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct onnx_session *first, *second, *other, *third;
    struct error why = {0};
    char *path = onnx_made_file(&made);
    const struct onnx_options one = {.threads = 1}, two = {.threads = 2};
    assert_int_equal(onnx_session_open(path, &one, &first, &why), ERR_OK);
    assert_int_equal(onnx_session_open(path, &one, &second, &why), ERR_OK);
    assert_int_equal(onnx_session_open(path, &two, &other, &why), ERR_OK);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    onnx_session_close(first);
    assert_int_equal(onnx_session_open(path, &one, &third, &why), ERR_OK);
    assert_ptr_equal(third, second); /* still open by the second */
    onnx_session_close(second);
    onnx_session_close(third);
    onnx_session_close(other);
    unlink(path);
    free(path);
}

struct user {
    struct onnx_session *session;
    float factor;
    bool is_right;
};

static void *use(void *argument)
{
    struct user *user = argument;
    user->is_right = true;
    for (int round = 0; round < 50; round++) {
        float numbers[] = {user->factor, -user->factor, (float)round};
        struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){1, 3}), out;
        atomic_bool cancel = false;
        if (onnx_run(user->session, &in, &out, NULL, &cancel, NULL))
            return NULL;
        user->is_right &=
            onnx_tensor_at(&out, 0) == 2 * user->factor && onnx_tensor_at(&out, 2) == 2 * round;
        onnx_tensor_release(&out);
    }
    return NULL;
}

static void threads_run_one_session_at_the_same_time(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct onnx_session *session = open_made(&made, &(struct onnx_options){.threads = 1});
    struct user users[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        users[i] = (struct user){.session = session, .factor = (float)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_true(users[i].is_right);
    }
    onnx_session_close(session);
}

/* ---- cancelling ---- */

static void *set_soon(void *flag)
{
    thread_sleep(50 * NS_PER_MS);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

/* A chain of products that takes seconds. */
static void a_run_can_be_cancelled(void **state)
{
    (void)state;
    enum { WIDTH = 512, CHAIN = 3000 };
    const int64_t shape[] = {WIDTH, WIDTH};
    struct onnx_made made = {0};
    char input[16] = "x", output[16];
    onnx_made_input(&made, "x", ONNX_FLOAT, shape, 2, "");
    onnx_made_output(&made, "y0", ONNX_FLOAT, shape, 2, "");
    for (int i = CHAIN - 1; i >= 0; i--) {
        chars_format(output, "y%d", i);
        char inputs[40];
        chars_format(inputs, "%s,x", input);
        onnx_made_node(&made, "MatMul", inputs, output);
        chars_copy(input, output);
    }
    struct onnx_session *session = open_made(&made, &(struct onnx_options){.threads = 1});
    float *numbers = xcalloc((size_t)WIDTH * WIDTH, sizeof *numbers);
    struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, shape), out;
    struct error why = {0};
    atomic_bool cancel = true;
    assert_int_equal(onnx_run(session, &in, &out, NULL, &cancel, &why), ERR_INTERRUPTED);
    atomic_store(&cancel, false);
    pthread_t thread;
    pthread_create(&thread, NULL, set_soon, &cancel);
    nanos from = thread_cpu();
    assert_int_equal(onnx_run(session, &in, &out, NULL, &cancel, &why), ERR_INTERRUPTED);
    assert_true(thread_cpu() - from < 2 * NS_PER_S); /* all of it takes ten times as long */
    assert_null(out.owner);
    pthread_join(thread, NULL);
    free(numbers);
    onnx_session_close(session);
}

/* ---- profiling ---- */

static void a_profile_has_the_time_of_every_node(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    float numbers[] = {1, -2, 3};
    struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){1, 3}), out;
    struct error why = {0};
    const struct onnx_options options = {
        .threads = 1, .profile = "/tmp/ipw-onnx-profile", .is_optimized_basic = true};
    struct onnx_session *session = open_made(&made, &options);
    assert_int_equal(onnx_run(session, &in, &out, NULL, NULL, &why), ERR_OK);
    onnx_tensor_release(&out);
    char *path = onnx_session_profile(session);
    assert_true(str_starts(path, "/tmp/ipw-onnx-profile"));
    FILE *file = fopen(path, "r");
    char line[4096];
    bool has_node = false;
    while (fgets(line, sizeof line, file))
        has_node |= strstr(line, "y_kernel_time") != NULL;
    assert_true(has_node);
    fclose(file);
    unlink(path);
    free(path);
    onnx_session_close(session);
}

/* ---- errors ---- */

static void assert_refused(struct onnx_made *made, enum err expected, const char *const *says)
{
    struct onnx_session *session;
    struct error why = {0};
    char *path = onnx_made_file(made);
    assert_int_equal(onnx_session_open(path, NULL, &session, &why), expected);
    assert_null(session);
    assert_contains(why.text, path);
    assert_null(strchr(why.text, '\n'));
    assert_null(strstr(why.text, "/onnxruntime_src/"));
    for (; *says; says++)
        assert_contains(why.text, *says);
    unlink(path);
    free(path);
}

static void what_the_library_lacks_is_said(void **state)
{
    (void)state;
    struct onnx_made newer = onnx_made_sum(), odd = {0}, broken = {0};
    newer.opset = 99;
    assert_refused(&newer, ERR_UNSUPPORTED,
                   (const char *[]){"Opset 99", "export the model with", NULL});
    onnx_made_input(&odd, "x", ONNX_FLOAT, ROWS_OF_3, 2, "");
    onnx_made_output(&odd, "y", ONNX_FLOAT, ROWS_OF_3, 2, "");
    onnx_made_node(&odd, "Nonsense", "x", "y");
    assert_refused(&odd, ERR_UNSUPPORTED,
                   (const char *[]){"Nonsense", "IPW_ONNXRUNTIME_LIB", NULL});
    onnx_made_output(&broken, "y", ONNX_FLOAT, ROWS_OF_3, 2, "");
    onnx_made_node(&broken, "Relu", "nowhere", "y");
    assert_refused(&broken, ERR_BAD_VALUE, (const char *[]){"nowhere", "not a valid", NULL});
}

static void files_that_are_no_models_are_refused(void **state)
{
    (void)state;
    struct onnx_session *session;
    struct error why = {0};
    assert_int_equal(onnx_session_open("/no/such.onnx", NULL, &session, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such.onnx");
    assert_int_equal(onnx_session_open("/tmp", NULL, &session, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "/tmp is not a file");
    assert_int_equal(onnx_session_open("/etc/passwd", NULL, &session, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "/etc/passwd");
    assert_contains(why.text, "not a valid ONNX model");
}

static void options_are_checked(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct onnx_session *session;
    struct error why = {0};
    char *path = onnx_made_file(&made);
    struct onnx_options options = {.provider = "cudda"};
    assert_int_equal(onnx_session_open(path, &options, &session, &why), ERR_USAGE);
    assert_contains(why.text, "did you mean 'cuda'");
    options = (struct onnx_options){.provider = "cuda"};
    assert_int_equal(onnx_session_open(path, &options, &session, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "has no CUDA provider (it has ");
    options = (struct onnx_options){.library = "/nowhere"};
    assert_int_equal(onnx_session_open(path, &options, &session, &why), ERR_USAGE);
    assert_contains(why.text, "this process already uses");
    unlink(path);
    free(path);
}

static void inputs_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct onnx_session *session = open_made(&made, NULL);
    float numbers[8] = {0};
    int64_t integers[3] = {0};
    const struct onnx_tensor wrong[] = {
        onnx_tensor_of(ONNX_FLOAT, numbers, 2, (int64_t[]){2, 4}),
        onnx_tensor_of(ONNX_FLOAT, numbers, 1, (int64_t[]){3}),
        onnx_tensor_of(ONNX_INT64, integers, 2, (int64_t[]){1, 3}),
        onnx_tensor_of(ONNX_FLOAT, NULL, 2, (int64_t[]){1, 3}),
    };
    const char *const says[] = {"Got: 4 Expected: 3", "Got: 1 Expected: 2", "tensor(int64)",
                                "input x is missing"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct onnx_tensor out;
        struct error why = {0};
        assert_int_equal(onnx_run(session, &wrong[i], &out, NULL, NULL, &why), ERR_BAD_VALUE);
        assert_contains(why.text, says[i]);
        assert_null(strchr(why.text, '\n'));
        assert_null(out.owner);
    }
    const struct onnx_tensor text = {.type = ONNX_STRING, .rank = 1, .shape = {1}, .count = 1};
    struct onnx_tensor out;
    struct error why = {0};
    assert_int_equal(onnx_run(session, &text, &out, NULL, NULL, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "type string");
    onnx_session_close(session);
}

/* A dimension of length 0, as in an empty cache. */
static void an_empty_tensor_needs_no_memory(void **state)
{
    (void)state;
    struct onnx_made made = onnx_made_sum();
    struct onnx_session *session = open_made(&made, NULL);
    struct onnx_tensor in = onnx_tensor_of(ONNX_FLOAT, NULL, 2, (int64_t[]){0, 3}), out;
    struct error why = {0};
    assert_int_equal(onnx_run(session, &in, &out, NULL, NULL, &why), ERR_OK);
    assert_int_equal(out.count, 0);
    assert_int_equal(out.shape[1], 3);
    onnx_tensor_release(&out);
    onnx_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_described_and_run),
        cmocka_unit_test(only_the_wanted_outputs_are_computed),
        cmocka_unit_test(elements_of_every_type_are_read),
        cmocka_unit_test(float16_has_subnormals_and_no_numbers),
        cmocka_unit_test(a_file_is_in_memory_once),
        cmocka_unit_test(threads_run_one_session_at_the_same_time),
        cmocka_unit_test(a_run_can_be_cancelled),
        cmocka_unit_test(a_profile_has_the_time_of_every_node),
        cmocka_unit_test(what_the_library_lacks_is_said),
        cmocka_unit_test(files_that_are_no_models_are_refused),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(inputs_that_do_not_fit_are_refused),
        cmocka_unit_test(an_empty_tensor_needs_no_memory),
    };
    return RUN_TESTS_WITH(available, tests);
}
