/* test: valgrind */
/* Truncated or damaged model files: read, or rejected with a one-line error, never read past their
 * end. The same seed gives the same damage everywhere. */
#include <stdlib.h>

#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/hf.h"
#include "graph/model_files.h"
#include "graph/reader.h"
#include "port/json_read.h"
#include "support/rng.h"
#include "support/model_bytes.h"
#include "support/unit.h"

enum { ROUNDS = 6000 };

typedef const char *(*exercise)(const void *bytes, size_t length);

static void assert_no_failure(const char *wrong, const char *what, size_t at)
{
    if (wrong)
        fail_msg("%s %zu: %s", what, at, wrong);
}

/* Of exact size, so that a sanitizer detects a read past the end. */
static const char *exercise_copy(exercise with, const char *bytes, size_t length)
{
    char *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    const char *wrong = with(copy, length);
    free(copy);
    return wrong;
}

static void cut_everywhere(exercise with, const char *bytes, size_t length, size_t max)
{
    for (size_t at = 0; at < length && at < max; at++)
        assert_no_failure(exercise_copy(with, bytes, at), "cut to", at);
}

/* Replaces one to three bytes, mostly by characters that JSON uses. */
static void damage_at_random(exercise with, const char *bytes, size_t length, size_t header)
{
    static const char LIKELY[] = "0123456789-.e{}[]\",: ntf";
    uint64_t seed = 7;
    /* The fuzz targets have many more rounds for the address sanitizer. */
    int rounds = test_is_instrumented() ? ROUNDS / 20 : ROUNDS;
    char *copy = malloc(length);
    for (int round = 0; round < rounds; round++) {
        memcpy(copy, bytes, length);
        for (uint64_t count = 1 + rng_bits(&seed) % 3; count; count--) {
            size_t at = rng_bits(&seed) % header;
            uint64_t random = rng_bits(&seed);
            copy[at] = random % 4 ? LIKELY[random / 4 % (sizeof LIKELY - 1)] : (char)(random >> 8);
        }
        assert_no_failure(with(copy, length), "round", (size_t)round);
    }
    free(copy);
}

static void test_damaged_configs_are_handled(void **state)
{
    (void)state;
    const char *text = model_config_text();
    assert_null(model_config_exercise(text, strlen(text)));
    cut_everywhere(model_config_exercise, text, strlen(text), SIZE_MAX);
    damage_at_random(model_config_exercise, text, strlen(text), strlen(text));
}

static void test_damaged_safetensors_are_handled(void **state)
{
    (void)state;
    struct text file = {0};
    model_safetensors_add(&file);
    size_t header =
        8 + (size_t)(unsigned char)file.bytes[0] + ((size_t)(unsigned char)file.bytes[1] << 8);
    assert_null(model_safetensors_exercise(file.bytes, file.length));
    cut_everywhere(model_safetensors_exercise, file.bytes, file.length, header + 20);
    damage_at_random(model_safetensors_exercise, file.bytes, file.length, header);
    text_release(&file);
}

/* ---- intact files ---- */

static void test_config_is_read(void **state)
{
    (void)state;
    const char *text = model_config_text();
    struct jv *json;
    struct hf_config config;
    struct error why = {0};
    assert_int_equal(model_json_parse("c", text, strlen(text), &json, &why), ERR_OK);
    assert_int_equal(hf_config_parse("c", "small", json, &config, &why), ERR_OK);
    jv_free(json);
    const struct decoder *decoder = &config.as.decoder;
    assert_true(config.kind == HF_DECODER && config.is_quantized);
    assert_string_equal(decoder->name, "small");
    assert_string_equal(decoder->architecture, "qwen2_moe");
    assert_int_equal(decoder->layer_count, 2);
    assert_int_equal(decoder->experts, 4);
    /* The second layer has experts, and a window from there on. */
    assert_int_equal(decoder->layers[0].expert_feed_forward, 0);
    assert_int_equal(decoder->layers[0].feed_forward, 96);
    assert_int_equal(decoder->layers[1].expert_feed_forward, 24);
    assert_int_equal(decoder->layers[1].feed_forward, 40);
    assert_int_equal(decoder->layers[0].window, 0);
    assert_int_equal(decoder->layers[1].window, 16);
    /* 4 bits, and 20 more per 32 elements; the router is not quantized. */
    const struct decoder_weight *up = &decoder->layers[0].weights[DECODER_TENSOR_FFN_UP];
    assert_true(up->is_stored && up->bytes == 64 * 96 * (4 + 20.0 / 32) / 8);
    assert_false(decoder->layers[1].weights[DECODER_TENSOR_FFN_GATE_INP].is_stored);
    hf_config_release(&config);
}

static void test_safetensors_are_read(void **state)
{
    (void)state;
    struct text file = {0};
    struct safetensors tensors = {0};
    struct decoder_shape shape;
    struct error why = {0};
    model_safetensors_add(&file);
    assert_int_equal(safetensors_read("s", file.bytes, file.length, file.length, &tensors, &why),
                     ERR_OK);
    assert_int_equal(safetensors_sort("s", &tensors, &why), ERR_OK);
    assert_int_equal(tensors.count, 2 + 2 * 9);
    const struct safetensors_tensor *down =
        safetensors_find(&tensors, "model.layers.1.mlp.down_proj.weight");
    assert_non_null(down);
    assert_true(down->rank == 2 && down->dims[0] == 16 && down->dims[1] == 24);
    assert_true(down->elements == 384 && down->bytes == 768 && down->is_float);
    assert_null(safetensors_find(&tensors, "model.layers.2.mlp.down_proj.weight"));
    assert_true(safetensors_guess(&tensors, &shape));
    assert_int_equal(shape.layers, 2);
    assert_int_equal(shape.embedding, 16);
    assert_int_equal(shape.heads * shape.head_size, 16);
    assert_int_equal(shape.heads_kv * shape.head_size, 8);
    assert_int_equal(shape.feed_forward, 24);
    assert_int_equal(shape.vocabulary, 20);
    assert_true(shape.has_tied_embeddings);
    /* Reading the same file again defines every name twice. */
    assert_int_equal(safetensors_read("s", file.bytes, file.length, file.length, &tensors, &why),
                     ERR_OK);
    assert_int_equal(safetensors_sort("s", &tensors, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "is defined more than once");
    safetensors_release(&tensors);
    text_release(&file);
}

/* ---- rejected files ---- */

static void assert_header_rejected(const char *header, uint64_t data, const char *words)
{
    struct safetensors tensors = {0};
    struct error why = {0};
    struct text file = {0};
    size_t length = strlen(header);
    for (unsigned i = 0; i < 8; i++)
        text_add_bytes(&file, (const char[]){(char)(length >> (8 * i))}, 1);
    text_add(&file, header);
    enum err err =
        safetensors_read("s", file.bytes, file.length, file.length + data, &tensors, &why);
    assert_int_equal(err, ERR_BAD_VALUE);
    assert_contains(why.text, words);
    assert_int_equal(tensors.count, 0);
    safetensors_release(&tensors);
    text_release(&file);
}

static void test_invalid_headers_are_rejected(void **state)
{
    (void)state;
#define ONE(type, shape, from, to)                                                                 \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}}"
    static const struct {
        const char *header;
        uint64_t data;
        const char *words;
    } CASES[] = {
        {"{}", 0, "no tensors found"},
        {"{\"__metadata__\":{}}", 0, "no tensors found"},
        {"[]", 0, "not a JSON object"},
        {"{\"a\":3}", 0, "'a' is not an object"},
        {ONE("F17", "[2]", "0", "4"), 4, "'a' has an unknown dtype"},
        {ONE("F16", "[2]", "0", "4"), 3, "'a' is not inside"},
        {ONE("F16", "[2]", "0", "4"), 5, "take 4 bytes, the file has 5"},
        {ONE("F16", "[3]", "0", "4"), 4, "'a' has a size that contradicts"},
        {ONE("F16", "[-2]", "0", "4"), 4, "'a' has an invalid shape"},
        {ONE("F16", "[1.5]", "0", "4"), 4, "'a' has an invalid shape"},
        {ONE("F16", "[1e9,1e9,1e9]", "0", "4"), 4, "'a' has an invalid shape"},
        {ONE("F16", "[1,1,1,1,1,1,1,1,2]", "0", "4"), 4, "'a' has an invalid shape"},
        {ONE("F16", "2", "0", "4"), 4, "'a' has an invalid shape"},
        {ONE("F16", "[2]", "4", "0"), 4, "'a' is not inside"},
        {ONE("F16", "[2]", "-4", "0"), 4, "'a' is not inside"},
        {ONE("F16", "[2]", "0", "1e30"), 4, "'a' is not inside"},
    };
#undef ONE
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_header_rejected(CASES[i].header, CASES[i].data, CASES[i].words);
}

/* A message is one line, whatever names a file has. */
static void test_names_with_line_breaks_are_escaped(void **state)
{
    (void)state;
    static const char CONFIG[] = "{\"model_type\": \"a\\nb\"}";
    struct jv *json;
    struct hf_config config;
    struct error why = {0};
    assert_int_equal(model_json_parse("c", CONFIG, sizeof CONFIG - 1, &json, &why), ERR_OK);
    assert_int_equal(hf_config_parse("c", "c", json, &config, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "'a\\nb'");
    jv_free(json);
    assert_header_rejected("{\"a\\nb\":3}", 0, "'a\\nb' is not an object");
}

/* A JSON value takes many times its bytes: too many are rejected before parsing. */
static void test_too_many_values_are_rejected(void **state)
{
    (void)state;
    struct text many = {0};
    struct jv *json;
    struct error why = {0};
    text_add(&many, "{\"a\":[1");
    for (int i = 0; i < (1 << 18); i++)
        text_add(&many, ",1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    text_add(&many, "]}");
    assert_int_equal(model_json_parse("m", many.bytes, many.length, &json, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "longer than the JSON of any model");
    assert_null(json);
    text_release(&many);
}

static void test_model_name_of_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name;
    } CASES[] = {
        {"/models/llama/config.json", "llama"},
        {"llama/model.safetensors", "llama"},
        {"/a/b/model.safetensors.index.json", "b"},
        {"config.json", "config.json"},
        {"/config.json", "config.json"},
        {"/models/other.safetensors", "other.safetensors"},
        {"/models/llama//", "llama"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char name[64];
        model_path_name(CASES[i].path, name, sizeof name);
        assert_string_equal(name, CASES[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_configs_are_handled),
        cmocka_unit_test(test_damaged_safetensors_are_handled),
        cmocka_unit_test(test_config_is_read),
        cmocka_unit_test(test_safetensors_are_read),
        cmocka_unit_test(test_invalid_headers_are_rejected),
        cmocka_unit_test(test_names_with_line_breaks_are_escaped),
        cmocka_unit_test(test_too_many_values_are_rejected),
        cmocka_unit_test(test_model_name_of_a_path),
    };
    return RUN_TESTS(tests);
}
