/* Decoders in GGUF files: keys and tensors that agree are read, others are rejected. */
#include "graph/decoder.h"
#include "graph/gguf.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static struct gguf_file file;

static int set_up(void **state)
{
    (void)state;
    file = (struct gguf_file){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gguf_file_release(&file);
    return 0;
}

static enum err read_decoder(struct decoder *out, struct error *why)
{
    struct gguf gguf;
    gguf_file_end(&file);
    assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, why), ERR_OK);
    enum err err = decoder_read(&gguf, out, why);
    gguf_close(&gguf);
    return err;
}

static void assert_rejected(enum err code, const char *words)
{
    struct decoder decoder;
    struct error why = {0};
    enum err err = read_decoder(&decoder, &why);
    if (err != code || !strstr(why.text, words))
        print_error("%d, expected %d with '%s': %s\n", err, code, words, why.text);
    assert_int_equal(err, code);
    assert_non_null(strstr(why.text, words));
}

static void add_keys(const char *architecture, uint32_t layers, uint32_t embedding, uint32_t heads)
{
    char key[64];
    gguf_file_string(&file, "general.architecture", architecture);
    const struct {
        const char *name;
        uint32_t value;
    } NUMBERS[] = {
        {"block_count", layers}, {"embedding_length", embedding}, {"attention.head_count", heads}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, NUMBERS[i].name);
        gguf_file_u32(&file, key, NUMBERS[i].value);
    }
}

static void add_matrix(const char *name, uint64_t columns, uint64_t rows)
{
    gguf_file_tensor(&file, name, 0, columns, rows, 0);
}

/* One layer without its feed-forward: 8 features, 2 heads of 4. */
static void add_attention_layer(void)
{
    add_matrix("token_embd.weight", 8, 16);
    add_matrix("blk.0.attn_norm.weight", 8, 0);
    add_matrix("blk.0.attn_output.weight", 8, 8);
    add_matrix("blk.0.ffn_norm.weight", 8, 0);
}

static void add_separate_qkv(void)
{
    add_matrix("blk.0.attn_q.weight", 8, 8);
    add_matrix("blk.0.attn_k.weight", 8, 8);
    add_matrix("blk.0.attn_v.weight", 8, 8);
}

static void add_dense_ffn(void)
{
    add_matrix("blk.0.ffn_gate.weight", 8, 12);
    add_matrix("blk.0.ffn_up.weight", 8, 12);
    add_matrix("blk.0.ffn_down.weight", 12, 8);
}

/* ---- valid files ---- */

static void test_small_llama_is_read(void **state)
{
    (void)state;
    struct decoder decoder;
    struct error why = {0};
    gguf_file_model(&file);
    assert_int_equal(read_decoder(&decoder, &why), ERR_OK);
    assert_string_equal(decoder.architecture, "llama");
    assert_string_equal(decoder.name, "small");
    assert_int_equal(decoder.layer_count, 2);
    assert_int_equal(decoder.embedding, 64);
    assert_int_equal(decoder.layers[0].heads, 4);
    assert_int_equal(decoder.layers[0].heads_kv, 2);
    assert_int_equal(decoder.layers[0].key_size, 16);
    assert_int_equal(decoder.layers[0].feed_forward, 96);
    assert_int_equal(decoder.vocabulary, 32);
    assert_int_equal(decoder.context, 512);
    assert_int_equal(decoder.experts, 0);
    assert_true(decoder.has_tied_embeddings);
    const struct decoder_weight *weights = decoder.layers[1].weights;
    assert_int_equal(weights[DECODER_TENSOR_ATTN_K].rows, 32);
    assert_int_equal(weights[DECODER_TENSOR_ATTN_K].bytes, 64 * 32 / 32 * 18);
    assert_string_equal(weights[DECODER_TENSOR_ATTN_K].type->name, "Q4_0");
    assert_int_equal(weights[DECODER_TENSOR_ATTN_V].bytes, 64 * 32 / 32 * 34);
    assert_string_equal(weights[DECODER_TENSOR_ATTN_V].type->name, "Q8_0");
    assert_int_equal(weights[DECODER_TENSOR_FFN_NORM].columns, 64);
    assert_int_equal(decoder.parameters, 32 * 64 + 64 + 2 * (128 + 64 * (128 + 64 + 3 * 96)));
    decoder_release(&decoder);
}

static void test_fused_qkv_and_fused_gate_are_read(void **state)
{
    (void)state;
    struct decoder decoder;
    struct error why = {0};
    add_keys("phi3", 1, 8, 2);
    add_attention_layer();
    add_matrix("blk.0.attn_qkv.weight", 8, 24);
    add_matrix("blk.0.ffn_up.weight", 8, 24);
    add_matrix("blk.0.ffn_down.weight", 12, 8);
    add_matrix("output.weight", 8, 16);
    add_matrix("rope_factors_long.weight", 2, 0);
    assert_int_equal(read_decoder(&decoder, &why), ERR_OK);
    assert_int_equal(decoder.layers[0].feed_forward, 12);
    assert_true(decoder.layers[0].is_gated);
    assert_false(decoder.has_tied_embeddings);
    assert_int_equal(decoder.outside_weights[DECODER_TENSOR_OUTPUT].rows, 16);
    assert_int_equal(decoder.outside_weights[DECODER_TENSOR_ROPE_FACTORS_LONG].columns, 2);
    decoder_release(&decoder);
}

static void test_biases_and_qk_norms_are_read(void **state)
{
    (void)state;
    struct decoder decoder;
    struct error why = {0};
    add_keys("qwen3", 1, 8, 2);
    add_attention_layer();
    add_separate_qkv();
    add_matrix("blk.0.attn_q_norm.weight", 4, 0);
    add_matrix("blk.0.attn_k_norm.weight", 4, 0);
    add_matrix("blk.0.attn_q.bias", 8, 0);
    add_dense_ffn();
    assert_int_equal(read_decoder(&decoder, &why), ERR_OK);
    assert_int_equal(decoder.layers[0].weights[DECODER_TENSOR_ATTN_Q].bias_elements, 8);
    assert_int_equal(decoder.layers[0].weights[DECODER_TENSOR_ATTN_Q_NORM].columns, 4);
    assert_int_equal(decoder.layers[0].weights[DECODER_TENSOR_FFN_NORM].columns, 8);
    assert_false(decoder.layers[0].has_layer_norm);
    decoder_release(&decoder);
}

static void test_experts_are_read(void **state)
{
    (void)state;
    struct decoder decoder;
    struct error why = {0};
    add_keys("qwen2moe", 1, 8, 2);
    gguf_file_u32(&file, "qwen2moe.expert_count", 4);
    gguf_file_u32(&file, "qwen2moe.expert_used_count", 2);
    add_attention_layer();
    add_separate_qkv();
    add_matrix("blk.0.ffn_gate_inp.weight", 8, 4);
    gguf_file_tensor(&file, "blk.0.ffn_gate_exps.weight", 0, 8, 6, 4);
    gguf_file_tensor(&file, "blk.0.ffn_up_exps.weight", 0, 8, 6, 4);
    gguf_file_tensor(&file, "blk.0.ffn_down_exps.weight", 0, 6, 8, 4);
    add_matrix("blk.0.ffn_gate_inp_shexp.weight", 8, 0);
    add_matrix("blk.0.ffn_gate_shexp.weight", 8, 10);
    add_matrix("blk.0.ffn_up_shexp.weight", 8, 10);
    add_matrix("blk.0.ffn_down_shexp.weight", 10, 8);
    assert_int_equal(read_decoder(&decoder, &why), ERR_OK);
    assert_int_equal(decoder.experts, 4);
    assert_int_equal(decoder.experts_used, 2);
    assert_int_equal(decoder.layers[0].feed_forward, 10);
    assert_int_equal(decoder.layers[0].expert_feed_forward, 6);
    assert_int_equal(decoder.layers[0].weights[DECODER_TENSOR_FFN_GATE_INP].rows, 4);
    assert_int_equal(decoder.layers[0].weights[DECODER_TENSOR_FFN_UP_EXPS].matrices, 4);
    decoder_release(&decoder);
}

/* Every sixth layer of gemma3 has full attention, the others a sliding window. */
static void test_sliding_windows_are_read(void **state)
{
    (void)state;
    struct decoder decoder;
    struct error why = {0};
    char name[64];
    static const struct {
        const char *name;
        uint64_t columns, rows;
    } TENSORS[] = {
        {"attn_norm", 8, 0}, {"attn_qkv", 8, 24}, {"attn_output", 8, 8},
        {"ffn_gate", 8, 12}, {"ffn_up", 8, 12},   {"ffn_down", 12, 8},
    };
    add_keys("gemma3", 7, 8, 2);
    gguf_file_u32(&file, "gemma3.attention.sliding_window", 512);
    add_matrix("token_embd.weight", 8, 16);
    for (int layer = 0; layer < 7; layer++)
        for (size_t i = 0; i < sizeof TENSORS / sizeof *TENSORS; i++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, TENSORS[i].name);
            add_matrix(name, TENSORS[i].columns, TENSORS[i].rows);
        }
    assert_int_equal(read_decoder(&decoder, &why), ERR_OK);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(decoder.layers[i].window, i == 5 ? 0 : 512);
    assert_int_equal(decoder.activation, DECODER_GELU);
    decoder_release(&decoder);
}

/* ---- invalid files ---- */

static void test_unsupported_files_are_rejected(void **state)
{
    (void)state;
    add_keys("mamba", 1, 8, 2);
    assert_rejected(ERR_UNSUPPORTED, "m: unknown architecture 'mamba'");
    gguf_file_release(&file);
    add_keys("llama", 1, 8, 2);
    add_attention_layer();
    add_separate_qkv();
    add_dense_ffn();
    add_matrix("blk.0.strange.weight", 8, 8);
    assert_rejected(ERR_UNSUPPORTED,
                    "m: tensor 'blk.0.strange.weight' is not one of a known decoder");
    gguf_file_release(&file);
    gguf_file_model(&file);
    gguf_file_raw(&file, "split.count", GGUF_U16, "\3\0", 2);
    assert_rejected(ERR_UNSUPPORTED, "split into 3 files");
    gguf_file_release(&file);
    gguf_file_u32(&file, "n", 1);
    assert_rejected(ERR_BAD_VALUE, "'general.architecture' is missing");
}

static void test_contradictory_files_are_rejected(void **state)
{
    (void)state;
    static const struct {
        uint32_t layers, embedding, heads;
        const char *extra; /* a tensor, 8 x 8 */
        const char *words;
    } CASES[] = {
        {1, 8, 0, NULL, "'llama.attention.head_count' is out of range"},
        {0, 8, 2, NULL, "'llama.block_count' is out of range"},
        {50000, 8, 2, NULL, "'llama.block_count' is larger than the number of tensors"},
        {1, 16, 2, NULL, "has a shape that contradicts the keys"},
        {2, 8, 2, NULL, "layer 1 has 0 parameters in attention: qkv, expected 192"},
        {1, 8, 2, "blk.1.attn_output.weight", "has a layer beyond block_count"},
        {1, 8, 2, "blk.0.attn_qkv.weight", "'blk.0.attn_qkv.weight' has a shape that contradicts"},
        {1, 8, 2, "attn_q.weight", "'attn_q.weight' is not one of a known decoder"},
        {1, 8, 2, "blk.0.output.weight", "'blk.0.output.weight' is not one of a known decoder"},
        {1, 8, 2, "blk.0.attn_q.bias", "'blk.0.attn_q.bias' has a shape that contradicts"},
        {1, 8, 2, "blk.x.attn_q.weight", "'blk.x.attn_q.weight' is not one of a known decoder"},
        {1, 8, 2, "output.weight", "'output.weight' has a shape that contradicts"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        gguf_file_release(&file);
        add_keys("llama", CASES[i].layers, CASES[i].embedding, CASES[i].heads);
        add_attention_layer();
        add_separate_qkv();
        add_dense_ffn();
        if (CASES[i].extra)
            add_matrix(CASES[i].extra, 8, 8);
        struct decoder decoder;
        struct error why = {0};
        enum err err = read_decoder(&decoder, &why);
        if (!strstr(why.text, CASES[i].words))
            print_error("'%s', expected '%s'\n", why.text, CASES[i].words);
        assert_true(err == ERR_BAD_VALUE || err == ERR_UNSUPPORTED);
        assert_non_null(strstr(why.text, CASES[i].words));
    }
}

/* A fused and a separate QKV together would be counted twice. */
static void test_fused_and_separate_qkv_are_rejected(void **state)
{
    (void)state;
    add_keys("llama", 1, 8, 2);
    add_attention_layer();
    add_separate_qkv();
    add_matrix("blk.0.attn_qkv.weight", 8, 24);
    add_dense_ffn();
    assert_rejected(ERR_BAD_VALUE, "layer 0 has 384 parameters in attention: qkv");
}

static void test_component_names(void **state)
{
    (void)state;
    assert_string_equal(decoder_component_name(DECODER_ATTN_QKV), "attn_qkv");
    assert_string_equal(decoder_component_label(DECODER_FFN_GATE_UP), "feed-forward: gate-up");
    assert_string_equal(decoder_component_name(DECODER_COMPONENT_COUNT), "unknown");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_small_llama_is_read),
        TEST(test_fused_qkv_and_fused_gate_are_read),
        TEST(test_biases_and_qk_norms_are_read),
        TEST(test_experts_are_read),
        TEST(test_sliding_windows_are_read),
        TEST(test_unsupported_files_are_rejected),
        TEST(test_contradictory_files_are_rejected),
        TEST(test_fused_and_separate_qkv_are_rejected),
        TEST(test_component_names),
    };
    return RUN_TESTS(tests);
}
