/* Transformer blocks: weights, MACs, and KV cache traffic, computed by hand. */
#include "graph/blocks.h"
#include "graph/count.h"
#include "support/unit.h"

enum { BATCH = 2, TOKENS = 10, HIDDEN = 12, HEADS = 4, WIDE = 20 };

static const struct block_names NAMES = {
    .attention = {"norm1", "q", "k", "v", "scores", "o", "add1"},
    .feed_forward = {"norm2", "up", "act", "down", "add2"},
};

static struct block default_block(void)
{
    return (struct block){.hidden = HIDDEN,
                          .heads = HEADS,
                          .intermediate = WIDE,
                          .activation = GRAPH_SILU,
                          .is_causal = true,
                          .has_no_qkv_bias = true};
}

static struct graph graph;
static struct error why;

static struct build begin(int64_t tokens, tensor_id *x)
{
    graph_release(&graph);
    struct build b = build_begin(&graph, "model", &why);
    *x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){BATCH, tokens, HIDDEN});
    return b;
}

static struct graph_cost end(struct build *b, tensor_id x, int64_t tokens)
{
    if (b->err)
        print_error("%s\n", why.text);
    assert_int_equal(build_dim(b, x, 0), BATCH);
    assert_int_equal(build_dim(b, x, 1), tokens);
    assert_int_equal(build_dim(b, x, 2), HIDDEN);
    build_output(b, x);
    assert_int_equal(build_end(b), ERR_OK);
    return graph_cost_total(&graph);
}

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    return 0;
}

static const struct graph_node *find_node(const char *name)
{
    for (size_t i = 0; i < graph.node_count; i++)
        if (!strcmp(graph.nodes[i].name, name))
            return &graph.nodes[i];
    print_error("no node %s\n", name);
    fail();
    return NULL;
}

/* ---- attention ---- */

/* Every norm has a weight and a bias, every output projection a bias. */
static const double QKV = 3.0 * HIDDEN * HIDDEN, OUT = 1.0 * HIDDEN * HIDDEN, VECTORS = 3 * HIDDEN;
static const double ROWS = 1.0 * BATCH * TOKENS, PER_PAIR = 2.0 * HIDDEN * BATCH;

static void test_self_attention_costs(void **state)
{
    (void)state;
    struct block block = default_block();
    tensor_id x;
    struct build b = begin(TOKENS, &x);
    x = block_attention(&b, &block, &NAMES.attention, &(struct block_pass){0}, x);
    struct graph_cost cost = end(&b, x, TOKENS);
    assert_near(graph_parameters(&graph), QKV + OUT + VECTORS, 0);
    assert_near(cost.macs, ROWS * (QKV + OUT) + TOKENS * (TOKENS + 1) / 2.0 * PER_PAIR, 0);
    assert_near(cost.out.cached + cost.in.cached, 0, 0);
    assert_int_equal(find_node("norm1")->component, DECODER_NORM);
    assert_int_equal(find_node("k")->component, DECODER_ATTN_QKV);
    assert_int_equal(find_node("scores")->component, DECODER_ATTN_SCORES);
    assert_int_equal(find_node("add1")->component, DECODER_ATTN_OUT);
}

static void test_attention_biases(void **state)
{
    (void)state;
    struct block block = default_block();
    tensor_id x;
    block.has_no_qkv_bias = false;
    block.has_no_key_bias = true;
    struct build b = begin(TOKENS, &x);
    x = block_attention(&b, &block, &NAMES.attention, &(struct block_pass){0}, x);
    (void)end(&b, x, TOKENS);
    assert_near(graph_parameters(&graph), QKV + OUT + VECTORS + 2 * HIDDEN, 0);
}

/* A fused QKV: the same weights and MACs, and the same KV cache. */
static void test_fused_qkv_costs_the_same(void **state)
{
    (void)state;
    struct graph_cost costs[2];
    double parameters[2];
    for (int i = 0; i < 2; i++) {
        struct block block = default_block();
        tensor_id x;
        block.has_fused_qkv = i;
        block.has_no_qkv_bias = false;
        struct build b = begin(TOKENS, &x);
        struct block_pass pass = {.has_cache = true, .cached = 7};
        x = block_attention(&b, &block, &NAMES.attention, &pass, x);
        costs[i] = end(&b, x, TOKENS);
        parameters[i] = graph_parameters(&graph);
    }
    for (int i = 0; i < 2; i++) {
        assert_near(parameters[i], parameters[0], 0);
        assert_near(costs[i].macs, costs[0].macs, 0);
        assert_near(costs[i].in.cached, BATCH * 7.0 * 2 * HIDDEN, 0);
        assert_near(costs[i].out.cached, ROWS * 2 * HIDDEN, 0);
    }
    assert_near(costs[1].in.activations, costs[0].in.activations - 2 * ROWS * HIDDEN, 0);
    assert_near(costs[1].elementwise, costs[0].elementwise, 0);
}

/* K and V of another sequence: computed in this pass and cached, or read from the cache. */
static void test_cross_attention_costs(void **state)
{
    (void)state;
    enum { OTHERS = 30, FEATURES = 8 };
    struct block block = default_block();
    tensor_id x;
    struct build b = begin(TOKENS, &x);
    tensor_id states = build_input(&b, "y", GRAPH_FLOAT, 3, (int64_t[]){BATCH, OTHERS, FEATURES});
    struct block_pass pass = {.has_cache = true, .cross_tokens = OTHERS, .cross_states = states};
    x = block_attention(&b, &block, &NAMES.attention, &pass, x);
    struct graph_cost cost = end(&b, x, TOKENS);
    double query = 1.0 * HIDDEN * HIDDEN, others = FEATURES * 2.0 * HIDDEN;
    assert_near(graph_parameters(&graph), query + others + OUT + VECTORS, 0);
    assert_near(cost.macs,
                ROWS * (query + OUT) + BATCH * OTHERS * others + TOKENS * OTHERS * PER_PAIR, 0);
    assert_near(cost.out.cached, BATCH * OTHERS * 2.0 * HIDDEN, 0);

    b = begin(1, &x);
    pass.cross_states = GRAPH_NONE;
    x = block_attention(&b, &block, &NAMES.attention, &pass, x);
    cost = end(&b, x, 1);
    assert_near(cost.macs, BATCH * (query + OUT) + OTHERS * PER_PAIR, 0);
    assert_near(cost.in.cached, BATCH * OTHERS * 2.0 * HIDDEN, 0);
    assert_near(cost.out.cached, 0, 0);
}

/* ---- feed-forward, norms, layers ---- */

static void test_gated_and_plain_feed_forward_costs(void **state)
{
    (void)state;
    for (int gate = 0; gate < 2; gate++) {
        struct block block = default_block();
        tensor_id x;
        block.is_gated = gate;
        struct build b = begin(TOKENS, &x);
        x = block_feed_forward(&b, &block, &NAMES.feed_forward, x);
        struct graph_cost cost = end(&b, x, TOKENS);
        double matrices = (2.0 + gate) * HIDDEN * WIDE, biases = (1.0 + gate) * WIDE;
        assert_near(graph_parameters(&graph), matrices + biases + VECTORS, 0);
        assert_near(cost.macs, ROWS * matrices, 0);
        assert_near(cost.elementwise, ROWS * (biases + (4 + gate) * WIDE + (1 + 7 + 1) * HIDDEN),
                    0);
        assert_int_equal(find_node("act")->component, DECODER_FFN_GATE_UP);
        assert_int_equal(find_node("down")->component, DECODER_FFN_DOWN);
    }
}

static void test_pre_and_post_norm_costs(void **state)
{
    (void)state;
    for (int after = 0; after < 2; after++) {
        struct block block = default_block();
        tensor_id x;
        block.is_post_norm = after;
        struct build b = begin(TOKENS, &x);
        x = block_stack(&b, &block, &NAMES, &(struct block_pass){0}, 3, "layers.", x);
        (void)end(&b, x, TOKENS);
        const struct graph_node *first = &graph.nodes[0];
        const struct graph_node *last = &graph.nodes[graph.node_count - 1];
        assert_string_equal(first->name, after ? "layers.0.q" : "layers.0.norm1");
        assert_string_equal(last->name, after ? "layers.2.norm2" : "layers.2.add2");
        assert_int_equal(first->layer, 0);
        assert_int_equal(last->layer, 2);
        assert_int_equal(b.layer, GRAPH_NONE);
        assert_string_equal(b.prefix, "");
    }
}

static void test_logits_of_the_last_token(void **state)
{
    (void)state;
    tensor_id x;
    struct build b = begin(TOKENS, &x);
    tensor_id table = build_tensor(&b, GRAPH_PARAMETER, "table", 2, (int64_t[]){99, HIDDEN});
    x = block_last_logits(&b, "head", x, table);
    assert_int_equal(build_dim(&b, x, 1), 1);
    assert_int_equal(build_dim(&b, x, 2), 99);
    build_output(&b, x);
    assert_int_equal(build_end(&b), ERR_OK);
    assert_near(graph_cost_total(&graph).macs, BATCH * 99.0 * HIDDEN, 0);
    assert_int_equal(find_node("head")->component, DECODER_HEAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_attention_costs),
        cmocka_unit_test(test_attention_biases),
        cmocka_unit_test(test_fused_qkv_costs_the_same),
        cmocka_unit_test(test_cross_attention_costs),
        cmocka_unit_test(test_gated_and_plain_feed_forward_costs),
        cmocka_unit_test(test_pre_and_post_norm_costs),
        cmocka_unit_test(test_logits_of_the_last_token),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
