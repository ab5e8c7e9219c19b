/* Prefill and decode of a decoder: what bounds each, energy per token by batch and context, and the
 * traffic of the KV cache, which is counted by hand. */
#include "estimate/pass_estimate.h"

#include "graph/zoo/zoo.h"
#include "port/json_read.h"
#include "support/unit.h"

enum { LAYERS = 12, FEATURES = 768, WIDTH = 2 /* bytes, fp16 */ };

struct phase {
    struct graph graph;
    struct partition partition;
    struct pass_estimate estimate;
};

static struct hardware hardware;

static int set_up(void **state)
{
    (void)state;
    struct error why = {0};
    return hardware_find("h100-sxm", &hardware, &why);
}

static int tear_down(void **state)
{
    (void)state;
    hardware_release(&hardware);
    return 0;
}

static void run_phase(enum graph_phase phase, int64_t batch, int64_t tokens, int64_t context,
                      struct phase *out)
{
    struct error why = {0};
    struct graph_options setting = {
        .phase = phase, .batch = batch, .tokens = tokens, .context = context};
    struct estimate_config how = {.precision = PRECISION_FP16};
    assert_int_equal(zoo_build(zoo_find("gpt2"), &setting, &out->graph, &why), ERR_OK);
    partition_make(&out->graph, PARTITION_FUSED, &out->partition);
    assert_int_equal(
        pass_estimate_make(&out->partition, &hardware, &how, NULL, true, &out->estimate, &why),
        ERR_OK);
}

static void release(struct phase *phase)
{
    pass_estimate_release(&phase->estimate);
    partition_release(&phase->partition);
    graph_release(&phase->graph);
}

static double joules_per_token(int64_t batch, int64_t context)
{
    struct phase decode;
    run_phase(GRAPH_DECODE, batch, 1, context, &decode);
    double joules = decode.estimate.total.joules.total / (double)batch;
    release(&decode);
    return joules;
}

static void test_energy_per_token_falls_with_batch_and_rises_with_context(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch < 256; batch *= 2)
        assert_true(joules_per_token(2 * batch, 256) < joules_per_token(batch, 256));
    for (int64_t context = 64; context < 512; context *= 2)
        assert_true(joules_per_token(8, 2 * context) > joules_per_token(8, context));
}

static void test_prefill_is_compute_bound_and_decode_memory_bound(void **state)
{
    (void)state;
    struct phase prefill, decode;
    run_phase(GRAPH_PREFILL, 16, 512, 0, &prefill);
    run_phase(GRAPH_DECODE, 16, 1, 512, &decode);
    const struct pass_estimate *p = &prefill.estimate, *d = &decode.estimate;
    assert_true(p->total.mfu > 10 * d->total.mfu);
    assert_int_equal(d->total.bound_counts[BOUND_COMPUTE], 0);
    assert_true(p->total.bound_counts[BOUND_COMPUTE] > 0);
    /* Prompt tokens are computed in parallel, and so cost less than one token alone. */
    assert_true(p->total.joules.total / (16 * 512) < d->total.joules.total / 16);
    release(&prefill);
    release(&decode);
}

static void test_kv_cache_traffic_matches_a_count_by_hand(void **state)
{
    (void)state;
    struct phase decode;
    double batch = 4, context = 300, token = 2.0 * LAYERS * FEATURES * WIDTH;
    run_phase(GRAPH_DECODE, 4, 1, 300, &decode);
    const struct estimate_traffic *traffic = &decode.estimate.total.traffic;
    assert_near(traffic->cache_written, batch * token, 0);
    /* The context includes the token itself, whose K and V are not read from the cache. */
    assert_near(traffic->cache_read, batch * (context - 1) * token, 0);
    assert_near(decode.estimate.memory.kv_cache, batch * context * token, 0);
    /* Every matrix is read once for all sequences; of the two input tables, rows only. */
    assert_true(traffic->weights < decode.estimate.params * WIDTH);
    assert_true(traffic->weights > 0.99 * decode.estimate.params * WIDTH);
    release(&decode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_energy_per_token_falls_with_batch_and_rises_with_context),
        cmocka_unit_test(test_prefill_is_compute_bound_and_decode_memory_bound),
        cmocka_unit_test(test_kv_cache_traffic_matches_a_count_by_hand),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
