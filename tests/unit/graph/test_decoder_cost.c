/* The cost of a pass, against loops over every token, head and pair, and by invariants of sums. */
#include "graph/decoder_cost.h"
#include "graph/gguf.h"
#include "support/decoder_total.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static struct decoder decoder;

static int set_up(void **state)
{
    (void)state;
    struct gguf_file file = {0};
    struct gguf gguf;
    struct error why = {0};
    gguf_file_model(&file);
    assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, &why), ERR_OK);
    assert_int_equal(decoder_read(&gguf, &decoder, &why), ERR_OK);
    gguf_close(&gguf);
    gguf_file_release(&file);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    decoder_release(&decoder);
    return 0;
}

/* ---- attention, counted by brute force ---- */

struct seen {
    double pairs;  /* pairs of a token and one that it attends to */
    double tokens; /* tokens that at least one token of the pass attends to */
};

static struct seen count_attended(uint64_t tokens, uint64_t before, uint64_t window)
{
    struct seen seen = {0};
    bool touched[256] = {false};
    assert_true(before + tokens <= 256);
    for (uint64_t query = before; query < before + tokens; query++)
        for (uint64_t key = 0; key < before + tokens; key++)
            if (key <= query && (window == 0 || query - key < window)) {
                seen.pairs++;
                touched[key] = true;
            }
    for (size_t i = 0; i < 256; i++)
        seen.tokens += touched[i];
    return seen;
}

static void test_scores_against_every_pair(void **state)
{
    (void)state;
    static const uint64_t WINDOWS[] = {0, 1, 2, 7, 40};
    struct decoder_layer *layer = &decoder.layers[0];
    for (size_t w = 0; w < sizeof WINDOWS / sizeof *WINDOWS; w++)
        for (uint64_t tokens = 1; tokens < 60; tokens += 3)
            for (uint64_t before = 0; before < 60; before += 1 + before / 4) {
                struct decoder_step step = {.tokens = tokens, .cached = before, .sequences = 3};
                layer->window = WINDOWS[w];
                struct seen seen = count_attended(tokens, before, WINDOWS[w]);
                struct decoder_cost cost = decoder_cost(&decoder, &step, 0, DECODER_ATTN_SCORES);
                /* 4 heads of 16: a product with a key and one with a value, each 16 pairs of
                 * operations; 5 for the softmax; 2 KV heads, 2 bytes per element. */
                assert_true(cost.matrix_flops == 3 * seen.pairs * 4 * (2 * 16 + 2 * 16));
                assert_true(cost.elementwise_flops == 3 * seen.pairs * 4 * 5);
                assert_true(cost.cache_read_bytes == 3 * seen.tokens * 2 * (16 + 16) * 2);
                assert_true(cost.activation_read_bytes == 3 * tokens * 4 * 16 * 4);
                assert_true(cost.weight_bytes == 0 && cost.cache_write_bytes == 0);
            }
}

/* Prefill in one pass or token by token: the same operations, but weights are read each time. */
static void test_prefill_is_the_sum_of_its_tokens(void **state)
{
    (void)state;
    enum { TOKENS = 33 };
    struct decoder_step whole = {.tokens = TOKENS, .logits = TOKENS};
    struct decoder_cost at_once = decoder_cost_total(&decoder, &whole);
    struct decoder_cost sum = {0};
    for (uint64_t i = 0; i < TOKENS; i++) {
        struct decoder_step step = {.tokens = 1, .cached = i, .logits = 1};
        struct decoder_cost one = decoder_cost_total(&decoder, &step);
        sum.matrix_flops += one.matrix_flops;
        sum.elementwise_flops += one.elementwise_flops;
        sum.weight_bytes += one.weight_bytes;
        sum.activation_write_bytes += one.activation_write_bytes;
        sum.cache_read_bytes += one.cache_read_bytes;
        sum.cache_write_bytes += one.cache_write_bytes;
    }
    assert_true(sum.matrix_flops == at_once.matrix_flops);
    assert_true(sum.elementwise_flops == at_once.elementwise_flops);
    assert_true(sum.cache_write_bytes == at_once.cache_write_bytes);
    assert_true(sum.activation_write_bytes == at_once.activation_write_bytes);
    assert_true(sum.weight_bytes > 30 * at_once.weight_bytes);
    assert_true(sum.cache_read_bytes > at_once.cache_read_bytes);
}

/* ---- weights ---- */

static void test_weights_are_read_once_per_pass(void **state)
{
    (void)state;
    struct decoder_step one = {.tokens = 1, .logits = 1};
    struct decoder_step many = {.tokens = 9, .sequences = 5, .logits = 1};
    double row = 64.0 / 32 * 34; /* of the embedding, for each token; the head is the whole table */
    assert_true(decoder_cost_total(&decoder, &one).weight_bytes == (double)decoder.bytes + row);
    assert_true(decoder_cost_total(&decoder, &many).weight_bytes ==
                (double)decoder.bytes + 45 * row);
}

static void test_each_parameter_multiplies_once_per_token(void **state)
{
    (void)state;
    struct decoder_step step = {.tokens = 7, .sequences = 2, .logits = 7};
    double matrices = (double)(decoder.parameters - 64 - 2 * 128); /* without the norms */
    struct decoder_cost scores = decoder_cost_component(&decoder, &step, DECODER_ATTN_SCORES);
    struct decoder_cost total = decoder_cost_total(&decoder, &step);
    assert_true(total.matrix_flops - scores.matrix_flops == 2 * matrices * 14);
}

static void test_head_cost_follows_the_number_of_logits(void **state)
{
    (void)state;
    struct decoder_step step = {.tokens = 10, .logits = 0};
    struct decoder_cost none = decoder_cost_component(&decoder, &step, DECODER_HEAD);
    assert_true(decoder_cost_flops(&none) == 0 && decoder_cost_bytes(&none) == 0);
    step.logits = 1;
    struct decoder_cost one = decoder_cost_component(&decoder, &step, DECODER_HEAD);
    assert_true(one.matrix_flops == 2 * 64 * 32);
    assert_true(one.activation_write_bytes == 32 * 4);
    step.logits = 99; /* there are only 10 */
    assert_true(decoder_cost_component(&decoder, &step, DECODER_HEAD).matrix_flops ==
                10 * one.matrix_flops);
}

static void test_pruned_last_layer(void **state)
{
    (void)state;
    struct decoder_step all = {.tokens = 10, .logits = 2};
    struct decoder_step pruned = {.tokens = 10, .logits = 2, .prunes_last = true};
    for (int layer = 0; layer < 2; layer++)
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
            enum decoder_component component = (enum decoder_component)i;
            struct decoder_cost a = decoder_cost(&decoder, &all, layer, component);
            struct decoder_cost b = decoder_cost(&decoder, &pruned, layer, component);
            bool is_after = component == DECODER_FFN_GATE_UP || component == DECODER_FFN_DOWN;
            double share = layer == 1 && is_after ? 0.2 : 1;
            if (layer == 1 && component == DECODER_NORM)
                share = (10 + 2) / 20.0; /* one of its two norms */
            assert_near(decoder_cost_flops(&b), share * decoder_cost_flops(&a), 1e-6);
            assert_true(a.weight_bytes == b.weight_bytes);
        }
}

/* ---- the rest ---- */

static void test_elementwise_operation_counts(void **state)
{
    (void)state;
    struct decoder_step step = {.tokens = 1, .logits = 1};
    static const struct {
        enum decoder_component component;
        double flops;
    } CASES[] = {
        {DECODER_NORM, 2 * 64 * 4}, {DECODER_ATTN_QKV, (64 + 32) * 3},
        {DECODER_ATTN_OUT, 64},     {DECODER_FFN_GATE_UP, 96 * (4 + 1)},
        {DECODER_FFN_DOWN, 64},     {DECODER_HEAD, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_true(decoder_cost(&decoder, &step, 1, CASES[i].component).elementwise_flops ==
                    CASES[i].flops);
}

/* Activations of one layer; then outside the layers, where the vocabulary is 32. */
static void test_activation_bytes(void **state)
{
    (void)state;
    struct decoder_step step = {.tokens = 3, .cached = 4, .sequences = 2, .logits = 1};
    static const struct {
        int layer;
        enum decoder_component component;
        double in, out; /* elements of 4 bytes */
    } CASES[] = {
        {0, DECODER_EMBEDDING, 0, 0},
        {0, DECODER_NORM, 6 * 128, 6 * 128},
        {0, DECODER_ATTN_QKV, 6 * 64, 6 * 64},  /* K and V go to the cache */
        {0, DECODER_ATTN_OUT, 6 * 128, 6 * 64}, /* with the residual */
        {0, DECODER_FFN_GATE_UP, 6 * 64, 6 * 96},
        {0, DECODER_FFN_DOWN, 6 * (96 + 64), 6 * 64},
        {0, DECODER_HEAD, 0, 0},
        {DECODER_OUTSIDE, DECODER_EMBEDDING, 0, 6 * 64},
        {DECODER_OUTSIDE, DECODER_NORM, 2 * 64, 2 * 64},
        {DECODER_OUTSIDE, DECODER_ATTN_SCORES, 0, 0},
        {DECODER_OUTSIDE, DECODER_FFN_DOWN, 0, 0},
        {DECODER_OUTSIDE, DECODER_HEAD, 2 * 64, 2 * 32},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct decoder_cost cost =
            decoder_cost(&decoder, &step, CASES[i].layer, CASES[i].component);
        assert_true(cost.activation_read_bytes == 4 * CASES[i].in);
        assert_true(cost.activation_write_bytes == 4 * CASES[i].out);
    }
}

static void test_bytes_follow_element_widths(void **state)
{
    (void)state;
    struct decoder_step wide = {.tokens = 4, .cached = 3, .logits = 1};
    struct decoder_step narrow = wide;
    narrow.activation_bytes = 2;
    narrow.cache_bytes = 34.0 / 32;
    struct decoder_cost a = decoder_cost_total(&decoder, &wide);
    struct decoder_cost b = decoder_cost_total(&decoder, &narrow);
    assert_true(a.activation_read_bytes == 2 * b.activation_read_bytes);
    assert_near(b.cache_read_bytes / a.cache_read_bytes, 34.0 / 64, 1e-12);
    assert_true(a.cache_write_bytes == 4 * (2 * 2 * 32 * 2)); /* tokens, bytes per token */
}

static void test_scores_written_to_memory(void **state)
{
    (void)state;
    struct decoder_step kept = {.tokens = 4, .cached = 3, .sequences = 2};
    struct decoder_step written = kept;
    written.writes_scores = true;
    struct decoder_cost a = decoder_cost(&decoder, &kept, 0, DECODER_ATTN_SCORES);
    struct decoder_cost b = decoder_cost(&decoder, &written, 0, DECODER_ATTN_SCORES);
    double table = 2.0 * 4 * 4 * 7 * 4; /* sequences, heads, tokens, attended tokens, bytes */
    assert_true(b.activation_read_bytes - a.activation_read_bytes == 2 * table);
    assert_true(b.activation_write_bytes - a.activation_write_bytes == 2 * table);
    assert_true(a.matrix_flops == b.matrix_flops);
}

static void test_no_tokens_cost_nothing(void **state)
{
    (void)state;
    struct decoder_step step = {.tokens = 0, .cached = 100, .logits = 1};
    struct decoder_cost cost = decoder_cost_total(&decoder, &step);
    assert_true(decoder_cost_flops(&cost) == 0 && decoder_cost_bytes(&cost) == 0);
}

/* One token activates its experts, many activate nearly all; operations are per token. */
static void test_expert_weights_and_operations(void **state)
{
    (void)state;
    struct decoder_layer *layer = &decoder.layers[0];
    struct decoder_part *down = &layer->parts[DECODER_FFN_DOWN];
    decoder.experts = 8;
    decoder.experts_used = 2;
    layer->expert_feed_forward = 96;
    layer->feed_forward = 0;
    *down = (struct decoder_part){.parameters = 8 * 96 * 64,
                                  .bytes = 8 * 1000,
                                  .expert_parameters = 8 * 96 * 64,
                                  .expert_bytes = 8 * 1000};
    struct decoder_step one = {.tokens = 1}, many = {.tokens = 100};
    struct decoder_cost a = decoder_cost(&decoder, &one, 0, DECODER_FFN_DOWN);
    struct decoder_cost b = decoder_cost(&decoder, &many, 0, DECODER_FFN_DOWN);
    assert_true(a.matrix_flops == 2 * 2 * 96 * 64);
    assert_near(a.weight_bytes, 2000, 1e-9);
    assert_true(a.elementwise_flops == 64 + 2 * 2 * 64);
    assert_true(b.matrix_flops == 100 * a.matrix_flops);
    assert_near(b.weight_bytes, 8000, 1e-6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_scores_against_every_pair),
        TEST(test_prefill_is_the_sum_of_its_tokens),
        TEST(test_weights_are_read_once_per_pass),
        TEST(test_each_parameter_multiplies_once_per_token),
        TEST(test_head_cost_follows_the_number_of_logits),
        TEST(test_pruned_last_layer),
        TEST(test_elementwise_operation_counts),
        TEST(test_activation_bytes),
        TEST(test_bytes_follow_element_widths),
        TEST(test_scores_written_to_memory),
        TEST(test_no_tokens_cost_nothing),
        TEST(test_expert_weights_and_operations),
    };
    return RUN_TESTS(tests);
}
