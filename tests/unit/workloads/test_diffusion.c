/* The diffusion workload on tiny pipelines: images against those of onnxruntime and diffusers, recorded by
 * tests/fixtures/workloads/diffusion/make, its parameters, and what it says about files and inputs that do not fit. */
#include "support/unit.h"

#include <math.h>

#include "core/json.h"
#include "core/jv.h"
#include "engine/onnx.h"
#include "media/image.h"
#include "port/json_read.h"
#include "port/npy.h"
#include "support/tree.h"
#include "wire/completion.h"
#include "workloads/workload.h"

#define FOLDER IPW_FIXTURES "/workloads/diffusion/"

extern const struct workload_driver workload_diffusion;

static enum err available(struct error *why)
{
    const char *version;
    return onnx_available(&version, why);
}

/* ---- answers ---- */

static void open_pipeline(const char *folder, struct workload *workload)
{
    struct error why = {0};
    struct params params = {0};
    assert_int_equal(params_add(&params, "threads=1"), ERR_OK);
    const struct workload_config config = {folder, &params};
    if (workload_open(&workload_diffusion, &config, workload, &why) != ERR_OK)
        fail_msg("%s: %s", folder, why.text);
    params_release(&params);
}

static enum err ask(struct workload *workload, const char *input, const char *words,
                    struct completion *out, struct error *why)
{
    struct params params = {0};
    assert_int_equal(params_add(&params, words), ERR_OK);
    struct workload_query query = {.input = input, .params = &params};
    completion_init(out);
    enum err err = workload_answer(workload, &query, out, why);
    params_release(&params);
    return err;
}

/* The numbers of an image. */
static struct npy ask_numbers(struct workload *workload, const char *input, const char *words)
{
    struct completion answer;
    struct error why = {0};
    struct npy npy;
    char all[512];
    snprintf(all, sizeof all, "%s,format=npy", words);
    if (ask(workload, input, all, &answer, &why) != ERR_OK)
        fail_msg("%s: %s", words, why.text);
    assert_string_equal(answer.artifact_extension, "npy");
    assert_int_equal(npy_parse(answer.artifact.bytes, answer.artifact.length, &npy, &why), ERR_OK);
    completion_release(&answer);
    return npy;
}

static bool same_numbers(const struct npy *a, const struct npy *b)
{
    return a->count == b->count && !memcmp(a->values, b->values, a->count * sizeof *a->values);
}

/* ---- the recorded images ---- */

/* The largest difference relative to the range of the values. */
static double difference(const struct npy *seen, const struct npy *expected)
{
    double low = INFINITY;
    double high = -INFINITY;
    double worst = 0;
    assert_int_equal(seen->rank, expected->rank);
    assert_memory_equal(seen->shape, expected->shape, seen->rank * sizeof *seen->shape);
    for (size_t i = 0; i < expected->count; i++) {
        low = fmin(low, expected->values[i]);
        high = fmax(high, expected->values[i]);
        worst = fmax(worst, fabs((double)seen->values[i] - expected->values[i]));
    }
    return worst / (high - low);
}

static double run_case(const struct jv *row, size_t index)
{
    struct workload workload;
    struct npy expected;
    struct error why = {0};
    char path[512], words[512];
    snprintf(path, sizeof path, FOLDER "%s", jv_get_text(row, "pipeline"));
    snprintf(words, sizeof words, "noise=" FOLDER "noise-%s.npy", jv_get_text(row, "noise"));
    JV_EACH (param, jv_first_member(jv_get(row, "params"))) {
        size_t length = strlen(words);
        if (jv_text(param))
            snprintf(words + length, sizeof words - length, ",%s=%s", jv_key(param),
                     jv_text(param));
        else
            snprintf(words + length, sizeof words - length, ",%s=%g", jv_key(param),
                     jv_number(param));
    }
    open_pipeline(path, &workload);
    struct npy seen = ask_numbers(&workload, jv_get_text(row, "prompt"), words);
    workload_close(&workload);
    snprintf(path, sizeof path, FOLDER "image-%zu.npy", index);
    assert_int_equal(npy_read(path, 1 << 20, &expected, &why), ERR_OK);
    double worst = difference(&seen, &expected);
    if (!(worst <= 1e-3))
        fail_msg("%s: differs by %.3g of the range", words, worst);
    npy_release(&seen);
    npy_release(&expected);
    return worst;
}

static void images_are_those_of_diffusers(void **state)
{
    (void)state;
    struct jv *rows = NULL;
    struct error why = {0};
    size_t index = 0;
    double worst = 0;
    assert_int_equal(jv_read(FOLDER "cases.json", 1 << 20, &rows, &why), ERR_OK);
    JV_EACH (row, jv_first(rows))
        worst = fmax(worst, run_case(row, index++));
    printf("worst difference: %.2g of the range, %zu images\n", worst, index);
    assert_int_equal(index, 10);
    jv_free(rows);
}

/* ---- files and figures of an answer ---- */

static void check_pixels(const struct image *image, const struct npy *numbers)
{
    size_t plane = (size_t)image->width * image->height;
    size_t channels = (size_t)numbers->shape[1];
    for (size_t i = 0; i < plane * 3; i++) {
        size_t from = channels == 3 ? i % 3 * plane + i / 3 : i / 3;
        double value = fmin(fmax(numbers->values[from], -1), 1) * 127.5 + 127.5;
        if (!(fabs(image->pixels[i] - value) <= 0.501))
            fail_msg("byte %zu is %d, not %g", i, image->pixels[i], value);
    }
}

static void an_answer_is_a_png(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *input;
        uint32_t width, height;
        int64_t tokens; /* with start and end */
    } CASES[] = {
        {FOLDER "text", "cat", 16, 24, 4},
        {FOLDER "class", "square", 8, 8, -1},
        {FOLDER "embedding", "square", 8, 8, -1}, /* gray */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct workload workload;
        struct completion answer;
        struct error why = {0};
        struct image image = {0};
        open_pipeline(CASES[i].folder, &workload);
        assert_int_equal(ask(&workload, CASES[i].input, "steps=3", &answer, &why), ERR_OK);
        assert_string_equal(answer.artifact_extension, "png");
        assert_int_equal(image_decode(answer.artifact.bytes, answer.artifact.length, &image, &why),
                         ERR_OK);
        assert_int_equal(image.width, CASES[i].width);
        assert_int_equal(image.height, CASES[i].height);
        assert_true(answer.images == 1 && answer.denoise_steps == 3 && isnan(answer.audio_s));
        assert_int_equal(answer.prompt_tokens, CASES[i].tokens);
        struct npy numbers = ask_numbers(&workload, CASES[i].input, "steps=3");
        check_pixels(&image, &numbers);
        npy_release(&numbers);
        image_release(&image);
        completion_release(&answer);
        workload_close(&workload);
    }
}

static void the_seed_decides_the_noise(void **state)
{
    (void)state;
    struct workload workload;
    open_pipeline(FOLDER "class", &workload);
    struct npy seeds[] = {
        ask_numbers(&workload, "circle", "seed=5"),
        ask_numbers(&workload, "circle seed=5", "seed=0"),
        ask_numbers(&workload, "circle", "seed=6"),
        ask_numbers(&workload, "circle", "seed=5,eta=0.5"),
        ask_numbers(&workload, "circle", "seed=5,eta=0.5"),
        ask_numbers(&workload, "0 seed=5", ""), /* by its index */
        ask_numbers(&workload, " Circle ", "seed=5"),
    };
    assert_true(same_numbers(&seeds[0], &seeds[1]));
    assert_false(same_numbers(&seeds[0], &seeds[2]));
    assert_false(same_numbers(&seeds[0], &seeds[3]));
    assert_true(same_numbers(&seeds[3], &seeds[4]));
    assert_true(same_numbers(&seeds[0], &seeds[5]));
    assert_true(same_numbers(&seeds[0], &seeds[6]));
    for (size_t i = 0; i < COUNT_OF(seeds); i++)
        npy_release(&seeds[i]);
    workload_close(&workload);
}

static void a_free_size_can_be_chosen(void **state)
{
    (void)state;
    struct workload workload;
    open_pipeline(FOLDER "text", &workload);
    struct npy wide = ask_numbers(&workload, "cat", "steps=1,size=40x8");
    assert_int_equal(wide.shape[2], 8);
    assert_int_equal(wide.shape[3], 40);
    struct npy square = ask_numbers(&workload, "cat", "steps=1,size=16");
    assert_int_equal(square.shape[2], 16);
    assert_int_equal(square.shape[3], 16);
    npy_release(&wide);
    npy_release(&square);
    workload_close(&workload);
}

static void a_model_is_described(void **state)
{
    (void)state;
    struct workload workload;
    struct text text = {0};
    struct json json;
    struct jv *described = NULL;
    open_pipeline(FOLDER "text", &workload);
    json_init(&json, &text, false);
    json_object(&json, NULL);
    workload.driver->describe(&workload, &json);
    json_object_end(&json);
    workload_close(&workload);
    assert_int_equal(jv_parse(text.bytes, text.length, &described, NULL), ERR_OK);
    assert_string_equal(jv_get_text(described, "pipeline"), "OnnxStableDiffusionPipeline");
    assert_string_equal(jv_get_text(described, "scheduler_class"), "DDIMScheduler");
    assert_string_equal(jv_get_text(described, "condition"), "text");
    static const char *const PARTS[] = {"unet", "text_encoder", "vae_decoder"};
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        assert_true(jv_get_number(jv_get(described, PARTS[i]), "bytes") > 0);
    jv_free(described);
    text_release(&text);
}

/* ---- what does not fit ---- */

static void write_nan(const char *path)
{
    float values[3 * 8 * 8] = {0};
    struct text file = {0};
    values[7] = NAN;
    npy_write(values, (const int64_t[]){1, 3, 8, 8}, 4, &file);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file.bytes, 1, file.length, out), file.length);
    assert_int_equal(fclose(out), 0);
    text_release(&file);
}

static void queries_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct tree tree;
    char nan_noise[256];
    tree_new(&tree);
    snprintf(nan_noise, sizeof nan_noise, "noise=%s/nan.npy", tree.root);
    write_nan(nan_noise + strlen("noise="));
    const struct {
        const char *pipeline, *input, *params, *error;
    } CASES[] = {
        {"class", "circle", "steps=0", "steps=0: expected 1 to"},
        {"class", "circle", "steps=1001", "1 to 1000"},
        {"class", "circle", "scheduler=eular", "did you mean 'euler'"},
        {"class", "cirle", "", "unknown class 'cirle': did you mean 'circle'?"},
        {"class", "3", "", "unknown class '3'"},
        {"class", "", "", "unknown class"},
        {"class", "circle", "negative=a dog", "takes no text"},
        {"class", "circle", "scheduler=euler,eta=0.5", "eta"},
        {"class", "circle", "size=12", "multiples of 8"},
        {"class", "circle", "size=8x", "multiples of 8"},
        {"class", "circle", "size=8x8x8", "multiples of 8"},
        {"class", "circle", "size=0", "multiples of 8"},
        {"class", "circle", "guidance=-1", "guidance=-1"},
        {"class", "circle", "stepz=3", "did you mean 'steps'"},
        {"class", "circle", "format=jpg", "format=jpg"},
        {"class", "circle", "noise=/nonexistent.npy", "/nonexistent.npy"},
        {"class", "circle", "noise=" FOLDER "noise-gray.npy",
         "(1, 1, 8, 8): expected (1, 3, 8, 8)"},
        {"class", "circle", "noise=" FOLDER "cases.json", "not a .npy file"},
        {"class", "circle", nan_noise, "unet/model.onnx: output out_sample (1x3x8x8) has NaN"},
        {"half", "cat", "", "'PNDMScheduler' is not supported: choose another with scheduler="},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct workload workload;
        struct completion answer;
        struct error why = {0};
        char path[512], params[512];
        snprintf(path, sizeof path, FOLDER "%s", CASES[i].pipeline);
        snprintf(params, sizeof params, "guidance=1,%s", CASES[i].params);
        open_pipeline(path, &workload);
        if (!ask(&workload, CASES[i].input, params, &answer, &why) ||
            !strstr(why.text, CASES[i].error))
            fail_msg("%s '%s': %s", CASES[i].params, CASES[i].input, why.text);
        completion_release(&answer);
        workload_close(&workload);
    }
    tree_free(&tree);
}

/* A pipeline with links to the files of a recorded one, but for one file. */
static void link_pipeline(struct tree *tree, const char *name, const char *file, const char *target)
{
    static const char *const FILES[] = {
        "model_index.json",        "scheduler/scheduler_config.json",
        "unet/config.json",        "unet/model.onnx",
        "text_encoder/model.onnx", "vae_decoder/model.onnx",
        "vae_decoder/config.json", "tokenizer/vocab.json",
        "tokenizer/merges.txt",    "class_embeddings.npy",
    };
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        char path[256], from[512];
        snprintf(path, sizeof path, "/%s", FILES[i]);
        snprintf(from, sizeof from, FOLDER "%s/%s", name, FILES[i]);
        if (!strcmp(FILES[i], file))
            snprintf(from, sizeof from, FOLDER "%s", target);
        FILE *exists = fopen(from, "rb");
        if (!exists)
            continue;
        fclose(exists);
        tree_link(tree, path, from);
    }
}

static void pipelines_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *pipeline, *file, *target; /* which file is missing or replaced by another */
        const char *error;
    } CASES[] = {
        {"text", "model_index.json", "none", "no model_index.json"},
        {"text", "model_index.json", "make", "model_index.json"},
        {"text", "scheduler/scheduler_config.json", "none", "no scheduler/scheduler_config.json"},
        {"text", "scheduler/scheduler_config.json", "cases.json", "expected a JSON object"},
        {"text", "unet/model.onnx", "none", "expected unet/model.onnx"},
        {"text", "unet/model.onnx", "make", "unet/model.onnx"},
        {"text", "unet/model.onnx", "text/vae_decoder/model.onnx", "no input sample"},
        {"text", "vae_decoder/model.onnx", "none", "expected vae_decoder/model.onnx"},
        {"text", "vae_decoder/model.onnx", "text/unet/model.onnx", "expected one input"},
        {"text", "text_encoder/model.onnx", "none", "expected text_encoder/model.onnx"},
        {"text", "text_encoder/model.onnx", "text/vae_decoder/model.onnx", "token ids"},
        {"text", "tokenizer/vocab.json", "none", "tokenizer/vocab.json"},
        {"text", "tokenizer/merges.txt", "none", "tokenizer/merges.txt"},
        {"class", "model_index.json", "text/model_index.json", "vae_decoder"},
        {"embedding", "class_embeddings.npy", "none", "text_encoder/model.onnx"},
        {"embedding", "class_embeddings.npy", "noise-gray.npy",
         "(1, 1, 8, 8): expected (4, tokens"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct tree tree;
        struct workload workload;
        struct error why = {0};
        tree_new(&tree);
        link_pipeline(&tree, CASES[i].pipeline, CASES[i].file, CASES[i].target);
        const struct workload_config config = {tree.root, NULL};
        if (!workload_open(&workload_diffusion, &config, &workload, &why) ||
            !strstr(why.text, CASES[i].error))
            fail_msg("%s, %s: %s", CASES[i].pipeline, CASES[i].file, why.text);
        tree_free(&tree);
    }
    struct workload workload;
    struct error why = {0};
    const struct workload_config file = {FOLDER "text/unet/model.onnx", NULL};
    assert_int_equal(workload_open(&workload_diffusion, &file, &workload, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "expected the directory"));
}

static void a_prediction_of_another_shape_is_refused(void **state)
{
    (void)state;
    struct tree tree;
    struct workload workload;
    struct completion answer;
    struct error why = {0};
    tree_new(&tree);
    link_pipeline(&tree, "class", "unet/model.onnx", "variance.onnx");
    open_pipeline(tree.root, &workload);
    assert_int_equal(ask(&workload, "circle", "", &answer, &why), ERR_BAD_VALUE);
    assert_non_null(strstr(why.text, "shape 2x6x8x8: expected that of the sample, 2x3x8x8"));
    completion_release(&answer);
    workload_close(&workload);
    tree_free(&tree);
}

/* Guidance is one run for both predictions or two runs, as the file's batch allows. */
static void a_fixed_batch_changes_nothing(void **state)
{
    (void)state;
    static const char *const FILES[] = {"class/unet/model.onnx", "batch-1.onnx", "batch-2.onnx"};
    static const char *const PARAMS[] = {"guidance=3", "guidance=1"};
    for (size_t k = 0; k < COUNT_OF(PARAMS); k++) {
        struct npy images[COUNT_OF(FILES)];
        for (size_t i = 0; i < COUNT_OF(FILES); i++) {
            struct tree tree;
            struct workload workload;
            tree_new(&tree);
            link_pipeline(&tree, "class", "unet/model.onnx", FILES[i]);
            open_pipeline(tree.root, &workload);
            images[i] = ask_numbers(&workload, "circle", PARAMS[k]);
            workload_close(&workload);
            tree_free(&tree);
        }
        for (size_t i = 1; i < COUNT_OF(FILES); i++)
            assert_true(difference(&images[i], &images[0]) <= 1e-5);
        for (size_t i = 0; i < COUNT_OF(FILES); i++)
            npy_release(&images[i]);
    }
}

static void a_query_can_be_canceled(void **state)
{
    (void)state;
    struct workload workload;
    struct completion answer;
    struct error why = {0};
    atomic_bool cancel = true;
    open_pipeline(FOLDER "class", &workload);
    struct workload_query query = {.input = "circle", .cancel = &cancel};
    completion_init(&answer);
    assert_int_equal(workload_answer(&workload, &query, &answer, &why), ERR_INTERRUPTED);
    assert_string_equal(why.text, "interrupted after 0 of 6 steps");
    assert_int_equal(answer.artifact.length, 0);
    completion_release(&answer);
    workload_close(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_those_of_diffusers),
        cmocka_unit_test(an_answer_is_a_png),
        cmocka_unit_test(the_seed_decides_the_noise),
        cmocka_unit_test(a_free_size_can_be_chosen),
        cmocka_unit_test(a_model_is_described),
        cmocka_unit_test(queries_that_do_not_fit_are_refused),
        cmocka_unit_test(pipelines_that_do_not_fit_are_refused),
        cmocka_unit_test(a_prediction_of_another_shape_is_refused),
        cmocka_unit_test(a_fixed_batch_changes_nothing),
        cmocka_unit_test(a_query_can_be_canceled),
    };
    return RUN_TESTS_WITH(available, tests);
}
