/* Every workload in the registry against the contract of workloads/workload.h: what a model or input that does not exist or
 * fit is answered with, and, where the shipped model and the runtime are there, each step of a query. */
#include "support/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "engine/onnx.h"
#include "engine/shipped.h"
#include "graders/grader.h"
#include "media/image.h"
#include "support/tree.h"
#include "wire/completion.h"
#include "workloads/workload.h"

#define FOR_EACH_DRIVER(d) for (const struct workload_driver *const *d = WORKLOAD_DRIVERS; *d; d++)

static bool is_line(const char *text)
{
    return text && *text && !strchr(text, '\n');
}

static bool has_param(const struct param_spec *params, const char *name)
{
    for (const struct param_spec *p = params; p->name; p++)
        if (str_equal(p->name, name))
            return true;
    return false;
}

/* An error that was not expected is printed. */
static void check_ok(enum err err, const struct error *why, const char *driver)
{
    if (err)
        print_error("%s: %s\n", driver, why->text);
    CHECK(err == ERR_OK, driver);
}

static void check_params(const struct param_spec *params, const char *driver)
{
    CHECK(params, driver);
    for (const struct param_spec *p = params; p->name; p++) {
        CHECK(is_line(p->name) && is_line(p->value) && is_line(p->help), driver);
        CHECK(p - params < 64, driver);
    }
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    assert_non_null(WORKLOAD_DRIVERS[0]);
    FOR_EACH_DRIVER(d)
    {
        const struct workload_driver *driver = *d;
        check_driver_name(driver->name);
        CHECK(is_line(driver->summary) && strlen(driver->summary) <= 90, driver->name);
        CHECK(is_line(driver->inputs) && is_line(driver->model_layout), driver->name);
        CHECK(driver->graders && driver->graders[0], driver->name);
        for (const char *const *grader = driver->graders; *grader; grader++)
            CHECK(grader_driver_find(*grader, NULL), *grader);
        CHECK(driver->open && driver->close && driver->describe, driver->name);
        CHECK(driver->prepare && driver->run && driver->finish && driver->discard, driver->name);
        CHECK(workload_driver_find(driver->name, NULL) == driver, driver->name);
        check_params(driver->params, driver->name);
        check_params(driver->query_params, driver->name);
        for (const struct workload_driver *const *other = WORKLOAD_DRIVERS; other != d; other++)
            CHECK(!str_equal((*other)->name, driver->name), driver->name);
    }
}

static void unknown_name_suggests_the_nearest(void **state)
{
    (void)state;
    struct error why = {0};
    char name[64];
    chars_format(name, "%sx", WORKLOAD_DRIVERS[0]->name);
    assert_null(workload_driver_find(name, &why));
    assert_int_equal(why.code, ERR_USAGE);
    assert_contains(why.text, WORKLOAD_DRIVERS[0]->name);
}

/* ---- models that do not fit ---- */

static enum err open_model(const struct workload_driver *driver, const char *model,
                           const char *params, struct workload *out, struct error *why)
{
    struct params given = {0};
    if (params)
        assert_int_equal(params_add(&given, params), ERR_OK);
    const struct workload_config config = {model, &given};
    enum err err = workload_open(driver, &config, out, why);
    params_release(&given);
    return err;
}

/* It is refused with one line that has the word, and nothing is left open. */
static void check_refused(const struct workload_driver *driver, const char *model,
                          const char *params, const char *word)
{
    struct workload workload;
    struct error why = {0};
    (void)open_model(driver, model, params, &workload,
                     &why); /* a library that it opens stays open */
    int before = open_descriptors();
    why = (struct error){0};
    enum err err = open_model(driver, model, params, &workload, &why);
    CHECK(err != ERR_OK && why.code == err, driver->name);
    if (!strstr(why.text, word))
        print_error("%s: %s\n", driver->name, why.text);
    CHECK(is_line(why.text) && strstr(why.text, word), driver->name);
    CHECK(!workload.driver && !workload.state, driver->name);
    CHECK(open_descriptors() == before, driver->name);
    workload_close(&workload); /* harmless */
}

static void a_model_that_does_not_fit_is_named(void **state)
{
    (void)state;
    struct tree tree;
    tree_new(&tree);
    tree_write(&tree, "/text.onnx", "no model\n");
    tree_write(&tree, "/empty/readme.txt", "nothing\n");
    char absent[512], text[512], empty[512];
    chars_format(absent, "%s/absent.onnx", tree.root);
    chars_format(text, "%s/text.onnx", tree.root);
    chars_format(empty, "%s/empty", tree.root);
    FOR_EACH_DRIVER(d)
    {
        if (!has_param((*d)->params, "provider")) /* of another engine */
            continue;
        check_refused(*d, absent, NULL, absent);
        check_refused(*d, text, NULL, "text.onnx");
        check_refused(*d, empty, NULL, empty);
        check_refused(*d, "no-such-model", NULL, "no-such-model");
        check_refused(*d, "", NULL, "model");
        check_refused(*d, absent, "no_such_parameter=1", "no_such_parameter");
        check_refused(*d, absent, "provider=abacus", "provider");
        check_refused(*d, absent, "threads=-1", "threads");
    }
    tree_free(&tree);
}

/* ---- queries to the shipped models ---- */

static void write_image(struct tree *tree, const char *name)
{
    static uint8_t pixels[40 * 30 * 3];
    struct image image = {40, 30, pixels};
    struct text png = {0};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 7 + i / 120);
    assert_int_equal(image_encode(&image, &png, NULL), ERR_OK);
    tree_write_bytes(tree, name, 0, png.bytes, png.length);
    text_release(&png);
}

/* A quarter of a second of a tone. */
static void write_sound(struct tree *tree, const char *name)
{
    enum { RATE = 16000, SAMPLES = RATE / 4 };
    struct {
        char riff[4];
        uint32_t rest;
        char wave[4], format[4];
        uint32_t format_size;
        uint16_t kind, channels;
        uint32_t rate, bytes_per_s;
        uint16_t frame, bits;
        char data[4];
        uint32_t data_size;
        int16_t samples[SAMPLES];
    } wav = {"RIFF", 0, "WAVE", "fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, "data", 2 * SAMPLES, {0}};
    wav.rest = sizeof wav - 8;
    for (size_t i = 0; i < SAMPLES; i++)
        wav.samples[i] = (int16_t)(8000 * sin((double)i * 0.17));
    tree_write_bytes(tree, name, 0, &wav, sizeof wav);
}

/* Writes an input of the kind that the driver takes; its path, or a text. */
static void make_input(const struct workload_driver *driver, struct tree *tree, char *input,
                       size_t size)
{
    str_copy(input, size, "2"); /* a class, or a text of one word */
    if (strstr(driver->inputs, "image file")) {
        write_image(tree, "/image.png");
        str_format(input, size, "%s/image.png", tree->root);
    } else if (strstr(driver->inputs, "WAV")) {
        write_sound(tree, "/sound.wav");
        str_format(input, size, "%s/sound.wav", tree->root);
    }
}

static bool takes_files(const struct workload_driver *driver)
{
    return strstr(driver->inputs, "image file") || strstr(driver->inputs, "WAV");
}

static void check_description(const struct workload *workload)
{
    const char *name = workload->driver->name;
    struct text text = {0};
    struct json json;
    struct jv *value = NULL;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    workload->driver->describe(workload, &json);
    json_object_end(&json);
    CHECK(jv_parse(text.bytes, text.length, &value, NULL) == ERR_OK, name);
    CHECK(jv_count(value) > 0, name);
    jv_free(value);
    text_release(&text);
}

/* How far a query goes before it is discarded. */
enum step { BEGUN, PREPARED, RUN, FINISHED };

static void discard_after(struct workload *workload, const char *input, enum step step)
{
    const struct workload_driver *driver = workload->driver;
    struct workload_query query = {.input = input};
    struct completion answer;
    struct error why = {0};
    completion_init(&answer);
    workload_query_begin(&query);
    if (step >= PREPARED)
        check_ok(driver->prepare(workload, &query, &why), &why, driver->name);
    if (step >= RUN)
        check_ok(driver->run(workload, &query, &why), &why, driver->name);
    if (step >= FINISHED)
        check_ok(workload_query_end(workload, &query, &answer, &why), &why, driver->name);
    driver->discard(workload, &query);
    CHECK(!query.state, driver->name);
    driver->discard(workload, &query); /* again: harmless */
    completion_release(&answer);
}

static void check_answers(struct workload *workload, const char *input)
{
    const char *name = workload->driver->name;
    struct completion answers[2];
    struct error why = {0};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct workload_query query = {.input = input};
        completion_init(&answers[i]);
        enum err err = workload_answer(workload, &query, &answers[i], &why);
        check_ok(err, &why, name);
    }
    const struct completion *answer = &answers[0];
    CHECK(str_equal(text_get(&answer->content), text_get(&answers[1].content)), name);
    CHECK(answer->artifact.length == answers[1].artifact.length, name);
    CHECK(answer->artifact.length == 0 || answer->artifact_extension[0], name);
    CHECK(isfinite(answer->images) || isfinite(answer->audio_s) || answer->prompt_tokens >= 0,
          name);
    completion_release(&answers[0]);
    completion_release(&answers[1]);
}

static void check_bad_queries(struct workload *workload, const char *input)
{
    const struct workload_driver *driver = workload->driver;
    struct params unknown = {0};
    struct completion answer;
    struct error why = {0};
    assert_int_equal(params_add(&unknown, "no_such_parameter=1"), ERR_OK);
    struct workload_query query = {.input = input, .params = &unknown};
    completion_init(&answer);
    CHECK(workload_answer(workload, &query, &answer, &why) == ERR_USAGE, driver->name);
    CHECK(strstr(why.text, "no_such_parameter") && strstr(why.text, driver->name), driver->name);
    if (takes_files(driver)) {
        query = (struct workload_query){.input = "/nonexistent/input"};
        why = (struct error){0};
        CHECK(workload_answer(workload, &query, &answer, &why) != ERR_OK, driver->name);
        CHECK(is_line(why.text) && strstr(why.text, "/nonexistent/input"), driver->name);
        query = (struct workload_query){.input = "/dev/null"};
        CHECK(workload_answer(workload, &query, &answer, &why) != ERR_OK, driver->name);
        CHECK(is_line(why.text) && strstr(why.text, "/dev/null"), driver->name);
    }
    CHECK(answer.content.length == 0 && answer.artifact.length == 0, driver->name);
    completion_release(&answer);
    params_release(&unknown);
}

static void check_cancel(struct workload *workload, const char *input)
{
    const struct workload_driver *driver = workload->driver;
    const atomic_bool cancel = true;
    struct workload_query query = {.input = input, .cancel = &cancel};
    struct error why = {0};
    workload_query_begin(&query);
    check_ok(driver->prepare(workload, &query, &why), &why, driver->name);
    CHECK(driver->run(workload, &query, &why) == ERR_INTERRUPTED, driver->name);
    driver->discard(workload, &query);
}

/* Three queries as a batch, of which the second one is discarded first, are answered as one by itself. */
static void check_batch(struct workload *workload, const char *input)
{
    const struct workload_driver *driver = workload->driver;
    struct workload_query queries[3] = {{.input = input}, {.input = input}, {.input = input}};
    struct workload_query *list[] = {&queries[0], &queries[1], &queries[2]};
    struct completion answers[3];
    struct error why = {0};
    if (!driver->run_batch)
        return;
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        completion_init(&answers[i]);
        workload_query_begin(&queries[i]);
        check_ok(driver->prepare(workload, &queries[i], &why), &why, driver->name);
    }
    check_ok(driver->run_batch(workload, list, COUNT_OF(list), &why), &why, driver->name);
    driver->discard(workload, &queries[1]);
    for (size_t i = 0; i < COUNT_OF(queries); i += 2) {
        check_ok(workload_query_end(workload, &queries[i], &answers[i], &why), &why, driver->name);
        driver->discard(workload, &queries[i]);
    }
    CHECK(str_equal(text_get(&answers[0].content), text_get(&answers[2].content)), driver->name);
    for (size_t i = 0; i < COUNT_OF(queries); i++)
        completion_release(&answers[i]);
}

static bool is_shipped(const struct workload_driver *driver)
{
    char *path = NULL;
    bool is = driver->default_model && has_param(driver->params, "provider") &&
              shipped_find_onnx(driver->default_model, &path, NULL) == ERR_OK;
    free(path);
    if (!is)
        print_message("%s: no shipped model\n", driver->name);
    return is;
}

static void shipped_models_answer(void **state)
{
    (void)state;
    struct tree tree;
    struct error why = {0};
    const char *version;
    if (onnx_available(&version, &why) != ERR_OK || image_available(&why) != ERR_OK) {
        print_message("%s\n", why.text);
        skip();
    }
    tree_new(&tree);
    FOR_EACH_DRIVER(d)
    {
        struct workload workload;
        char input[512];
        if (!is_shipped(*d))
            continue;
        enum err err = open_model(*d, (*d)->default_model, "threads=1", &workload, &why);
        check_ok(err, &why, (*d)->name);
        make_input(*d, &tree, input, sizeof input);
        check_description(&workload);
        for (enum step step = BEGUN; step <= FINISHED; step++)
            discard_after(&workload, input, step);
        check_answers(&workload, input);
        check_bad_queries(&workload, input);
        check_cancel(&workload, input);
        check_batch(&workload, input);
        workload_close(&workload);
    }
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_well_formed),
        cmocka_unit_test(unknown_name_suggests_the_nearest),
        cmocka_unit_test(a_model_that_does_not_fit_is_named),
        cmocka_unit_test(shipped_models_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
