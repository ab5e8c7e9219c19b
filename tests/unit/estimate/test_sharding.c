/* Tensor parallelism: the work of each device, the traffic between them, and a KV cache that is
 * sharded by at most the number of KV heads. */
#include "estimate/pass_estimate.h"

#include "graph/build.h"
#include "graph/reader.h"
#include "support/devices.h"
#include "support/unit.h"

enum { TOKENS = 32, FEATURES = 256, WIDE = 1024, HEADS = 8, HEADS_KV = 2, BEFORE = 100, SIZE = 32 };

static tensor_id with_component(struct build *b, enum decoder_component component, tensor_id x)
{
    b->component = component;
    return x;
}

/* One layer of a decoder with a KV cache, and an LM head. */
static void build_layer(struct graph *graph)
{
    struct error why = {0};
    struct build b = build_begin(graph, "layer", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){1, TOKENS, FEATURES});
    int64_t cache[] = {1, BEFORE, HEADS_KV * SIZE};
    tensor_id keys = build_tensor(&b, GRAPH_CACHE, "keys", 3, cache);
    tensor_id values = build_tensor(&b, GRAPH_CACHE, "values", 3, cache);
    b.layer = 0;
    tensor_id n = build_norm(&b, GRAPH_RMS_NORM, "norm", with_component(&b, DECODER_NORM, x));
    with_component(&b, DECODER_ATTN_QKV, x);
    tensor_id q = build_linear(&b, "q", n, HEADS * SIZE, false);
    tensor_id k = build_linear(&b, "k", n, HEADS_KV * SIZE, false);
    tensor_id v = build_linear(&b, "v", n, HEADS_KV * SIZE, false);
    struct graph_attention attention = {.heads = HEADS,
                                        .heads_kv = HEADS_KV,
                                        .key_size = SIZE,
                                        .value_size = SIZE,
                                        .tokens = TOKENS,
                                        .cached = BEFORE,
                                        .sequences = 1,
                                        .is_causal = true};
    with_component(&b, DECODER_ATTN_SCORES, x);
    tensor_id a = build_attention(&b, "scores", q, k, v, keys, values, attention);
    a = build_linear(&b, "o", with_component(&b, DECODER_ATTN_OUT, a), FEATURES, false);
    x = build_binary(&b, GRAPH_ADD, "add", x, a);
    n = build_norm(&b, GRAPH_RMS_NORM, "norm2", with_component(&b, DECODER_NORM, x));
    with_component(&b, DECODER_FFN_GATE_UP, x);
    tensor_id g = build_op(&b, GRAPH_SILU, "silu", build_linear(&b, "gate", n, WIDE, false));
    g = build_binary(&b, GRAPH_MUL, "mul", g, build_linear(&b, "up", n, WIDE, false));
    g = build_linear(&b, "down", with_component(&b, DECODER_FFN_DOWN, g), FEATURES, false);
    x = build_binary(&b, GRAPH_ADD, "add2", x, g);
    build_output(&b, build_linear(&b, "head", with_component(&b, DECODER_HEAD, x), 1000, false));
    assert_int_equal(build_end(&b), ERR_OK);
}

struct shared {
    struct device device;
    struct graph graph;
    struct partition partition;
};

static int set_up(void **state)
{
    static struct shared shared;
    build_layer(&shared.graph);
    partition_make(&shared.graph, PARTITION_FUSED, &shared.partition);
    device_round(&shared.device);
    *state = &shared;
    return 0;
}

static int tear_down(void **state)
{
    struct shared *shared = *state;
    partition_release(&shared->partition);
    graph_release(&shared->graph);
    return 0;
}

static struct pass_estimate estimate_on(const struct shared *shared, int devices)
{
    struct pass_estimate estimate;
    struct error why = {0};
    struct estimate_config setting = {.precision = PRECISION_FP16, .devices = devices};
    assert_int_equal(pass_estimate_make(&shared->partition, &shared->device.hardware, &setting,
                                        NULL, true, &estimate, &why),
                     ERR_OK);
    return estimate;
}

static void test_matmuls_are_sharded_and_partial_sums_are_sent(void **state)
{
    const struct shared *shared = *state;
    struct pass_estimate one = estimate_on(shared, 1), two = estimate_on(shared, 2);
    double sum = TOKENS * FEATURES * 2.0, logits = TOKENS * 1000 * 2.0;
    /* Each of two devices sends half of a partial sum to the other and gets the result back, twice
     * per layer; and half of the logits. */
    assert_near(two.total.traffic.link, 2 * (2 * 2 * sum / 2 + logits / 2), 1e-6);
    assert_near(one.total.traffic.link, 0, 0);
    assert_near(two.total.macs, one.total.macs, 0);
    double seconds = 0;
    for (size_t i = 0; i < shared->partition.count; i++) {
        const struct subgraph *subgraph = &shared->partition.subgraphs[i];
        seconds += two.rows[i].link_s;
        double times = subgraph->op == GRAPH_RMS_NORM ? 2 : 1; /* replicated on each device */
        assert_near(two.rows[i].flops, times * one.rows[i].flops, 1e-6);
        if (subgraph->is_sharded) /* half the work, which may leave units without a tile */
            assert_near(two.rows[i].compute_s * two.rows[i].wave_share,
                        one.rows[i].compute_s * one.rows[i].wave_share / 2, 1e-15);
        if (subgraph->is_row_parallel) /* each device computes a part of every tile */
            assert_near(two.rows[i].wave_share, one.rows[i].wave_share, 0);
    }
    assert_near(seconds, (2 * sum + logits / 2) / (0.8 * 100e9),
                1e-15); /* at the effective bandwidth */
    /* A link reads one memory and writes another. */
    assert_near(two.total.joules.link, two.total.traffic.link * 2 * 10e-12, 1e-15);
    assert_true(two.total.joules.total > one.total.joules.total - one.total.joules.idle);
    assert_near(two.total.joules.idle, 2 * 20 * two.total.latency_s, 1e-12);
    pass_estimate_release(&one);
    pass_estimate_release(&two);
}

static void test_latency_of_a_ring(void **state)
{
    struct shared *shared = *state;
    struct pass_estimate quick = estimate_on(shared, 4);
    shared->device.hardware.link_latency_s = device_figure(1e-6);
    struct pass_estimate slow = estimate_on(shared, 4);
    /* Two ring traversals minus a step for each sum, one for the logits. */
    assert_near(slow.total.latency_s - quick.total.latency_s, (2 * 2 * 3 + 3) * 1e-6, 1e-12);
    assert_true(slow.total.bound_counts[BOUND_LINK] >= 2);
    device_round(&shared->device);
    pass_estimate_release(&quick);
    pass_estimate_release(&slow);
}

/* Heads are not split. */
static void test_kv_heads_that_devices_do_not_divide_are_replicated(void **state)
{
    const struct shared *shared = *state;
    for (int devices = 1; devices <= 17; devices++) {
        struct pass_estimate estimate;
        struct error why = {0};
        struct estimate_config setting = {.precision = PRECISION_FP16, .devices = devices};
        enum err err = pass_estimate_make(&shared->partition, &shared->device.hardware, &setting,
                                          NULL, false, &estimate, &why);
        assert_int_equal(err, HEADS % devices ? ERR_BAD_VALUE : ERR_OK);
        if (err)
            assert_contains(why.text, "devices do not divide its 8 attention heads");
        else
            pass_estimate_release(&estimate);
    }
}

static void test_memory_of_each_device(void **state)
{
    const struct shared *shared = *state;
    double norms = 2 * FEATURES * 2.0;
    struct pass_estimate one = estimate_on(shared, 1), two = estimate_on(shared, 2),
                         eight = estimate_on(shared, 8);
    assert_near(two.memory.weights, (one.memory.weights - norms) / 2 + norms, 1e-6);
    assert_near(eight.memory.weights, (one.memory.weights - norms) / 8 + norms, 1e-6);
    assert_near(one.memory.kv_cache, 2.0 * BEFORE * HEADS_KV * SIZE * 2, 0);
    assert_near(two.memory.kv_cache, one.memory.kv_cache / 2, 0);
    assert_near(eight.memory.kv_cache, one.memory.kv_cache / HEADS_KV, 0);
    assert_near(two.total.traffic.cache_read, one.total.traffic.cache_read, 0);
    assert_near(eight.total.traffic.cache_read, one.total.traffic.cache_read * 8 / HEADS_KV, 0);
    assert_near(two.total.traffic.weights, one.total.traffic.weights + norms, 1e-6);
    pass_estimate_release(&one);
    pass_estimate_release(&two);
    pass_estimate_release(&eight);
}

/* Bytes are the sum of the traffic. */
static void test_traffic_adds_up_to_bytes(void **state)
{
    const struct shared *shared = *state;
    for (int devices = 1; devices <= 4; devices *= 2) {
        struct pass_estimate e = estimate_on(shared, devices);
        assert_near(e.total.bytes,
                    e.total.traffic.weights + e.total.traffic.activations +
                        e.total.traffic.cache_read + e.total.traffic.cache_written,
                    1e-9 * e.total.bytes);
        pass_estimate_release(&e);
    }
    struct pass_estimate e = estimate_on(shared, 1);
    assert_near(e.total.traffic.weights, e.params * 2, 1e-6);
    assert_near(e.total.traffic.cache_read, 2.0 * BEFORE * HEADS_KV * SIZE * 2, 1e-6);
    pass_estimate_release(&e);
}

/* ---- experts ---- */

/* Bytes that all devices send in one pass, with 16-bit elements. */
static double link_bytes(const char *name, struct graph_options setting, int devices)
{
    struct device device;
    struct model model;
    struct graph graph;
    struct partition partition;
    struct pass_estimate estimate;
    struct error why = {0};
    struct estimate_config how = {.precision = PRECISION_FP16, .devices = devices};
    assert_int_equal(model_open(name, &model, &why), ERR_OK);
    assert_int_equal(model_graph(&model, &setting, &graph, &why), ERR_OK);
    partition_make(&graph, PARTITION_FUSED, &partition);
    assert_int_equal(
        pass_estimate_make(&partition, device_round(&device), &how, NULL, true, &estimate, &why),
        ERR_OK);
    double bytes = estimate.total.traffic.link;
    pass_estimate_release(&estimate);
    partition_release(&partition);
    graph_release(&graph);
    model_close(&model);
    return bytes;
}

/* Expert outputs are weighted and summed on each device; only their sum is all-reduced: twice per
 * layer, and once the logits of the last token of each sequence. */
static void test_experts_are_summed_before_they_are_sent(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double layers, width, vocabulary;
    } MODELS[] = {
        {"mixtral-8x7b", 32, 4096, 32000},
        {"qwen3-30b-a3b", 48, 2048, 151936},
        {"llama-3.1-8b", 32, 4096, 128256}, /* like a dense layer */
    };
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++)
        for (int devices = 2; devices <= 8; devices *= 2) {
            double sums = 2 * MODELS[m].layers * MODELS[m].width, logits = MODELS[m].vocabulary;
            double ring = 2.0 * (devices - 1); /* bytes per element, sent by all but one */
            struct graph_options decode = {.phase = GRAPH_DECODE, .batch = 4, .context = 128};
            struct graph_options prefill = {.phase = GRAPH_PREFILL, .batch = 1, .tokens = 4096};
            assert_near(link_bytes(MODELS[m].name, decode, devices), 4 * ring * (2 * sums + logits),
                        1e-3);
            assert_near(link_bytes(MODELS[m].name, prefill, devices),
                        ring * (4096 * 2 * sums + logits), 1e-3);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmuls_are_sharded_and_partial_sums_are_sent),
        cmocka_unit_test(test_latency_of_a_ring),
        cmocka_unit_test(test_kv_heads_that_devices_do_not_divide_are_replicated),
        cmocka_unit_test(test_memory_of_each_device),
        cmocka_unit_test(test_traffic_adds_up_to_bytes),
        cmocka_unit_test(test_experts_are_summed_before_they_are_sent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
