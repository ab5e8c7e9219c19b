#include "support/unit.h"

#include <stdlib.h>

#include "graph/decoder.h"
#include "runner/layers/segment_timer.h"

/* The nodes of a two-layer Llama graph, in llama.cpp's order with flash attention. */
static const char *const FUSED[] = {
    "embd",
    "norm-0",
    "attn_norm-0",
    "Qcur-0",
    "Qcur-0",
    "Vcur-0",
    "Kcur-0",
    "Kcur-0 (view)",
    "cache_k_l0 (view)",
    "Qcur-0 (view)",
    "Qcur-0 (view) (permuted)",
    "cache_k_l0 (view) (permuted)",
    "node_21",
    "kqv_out-0",
    "attn_out-0",
    "ffn_inp-0",
    "norm-0",
    "ffn_norm-0",
    "ffn_gate-0",
    "ffn_up-0",
    "ffn_swiglu-0",
    "ffn_out-0",
    "l_out-0",
    "norm-1",
    "attn_norm-1",
    "Qcur-1",
    "Vcur-1",
    "Kcur-1",
    "Qcur-1 (view) (permuted)",
    "node_52",
    "kqv_out-1",
    "attn_out-1",
    "node_55",
    "ffn_inp-1",
    "norm-1",
    "ffn_norm-1",
    "ffn_gate-1",
    "ffn_up-1",
    "ffn_swiglu-1",
    "ffn_out-1",
    "l_out-1",
    "norm",
    "result_norm",
    "result_output",
};
enum { FUSED_COUNT = sizeof FUSED / sizeof *FUSED };

/* The plan that the timer makes from a graph's nodes. */
static const struct segment_plan *record_plan(struct segment_timer *timer, const char *const *nodes,
                                              size_t count, int layers,
                                              enum layers_granularity granularity)
{
    segment_timer_init(timer, layers, granularity);
    segment_timer_record(timer);
    for (size_t i = 0; i < count; i++)
        assert_false(timer->watch.wants(timer->watch.context, nodes[i]));
    segment_timer_record_end(timer);
    return &timer->plans[0];
}

/* Each follows a node of layer 2, to which nodes of unknown names belong. */
static void names_identify_component_and_layer(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        int layer;
        unsigned component;
    } CASES[] = {
        {"Qcur-0", 0, DECODER_ATTN_QKV},
        {"Qcur-12 (reshaped)", 12, DECODER_ATTN_QKV},
        {"Kcur_normed-3", 3, DECODER_ATTN_QKV},
        {"Qcur-7 (view) (permuted)", 7, DECODER_ATTN_SCORES},
        {"cache_v_l7 (view) (permuted)", 2, DECODER_ATTN_SCORES},
        {"kq-4", 4, DECODER_ATTN_SCORES},
        {"kq_soft_max-4", 4, DECODER_ATTN_SCORES},
        {"kqv_out-29", 29, DECODER_ATTN_SCORES},
        {"__fattn__-1", 1, DECODER_ATTN_SCORES},
        {"attn_out-1", 1, DECODER_ATTN_OUT},
        {"attn_norm-1", 1, DECODER_NORM},
        {"ffn_inp-1", 1, DECODER_ATTN_OUT},
        {"ffn_norm-1", 1, DECODER_NORM},
        {"ffn_gate-0", 0, DECODER_FFN_GATE_UP},
        {"ffn_moe_logits-0", 0, DECODER_FFN_GATE_UP},
        {"ffn_moe_down-0", 0, DECODER_FFN_DOWN},
        {"ffn_down-0", 0, DECODER_FFN_DOWN},
        {"l_out-0", 0, DECODER_FFN_DOWN},
        {"embd", DECODER_OUTSIDE, DECODER_EMBEDDING},
        {"norm", DECODER_OUTSIDE, DECODER_NORM},
        {"result_output", DECODER_OUTSIDE, DECODER_HEAD},
        {"something-2", 2, DECODER_FFN_DOWN},
        {"something-5", 5, DECODER_NORM}, /* a layer begins with one */
        {"node_21", 2, DECODER_FFN_DOWN},
        {"", 2, DECODER_FFN_DOWN},
        {"-3", 2, DECODER_FFN_DOWN},
        {"l_out-99", 2, DECODER_FFN_DOWN}, /* no such layer */
        {"cache_k_l0 (view)", 2, DECODER_FFN_DOWN},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const nodes[] = {"ffn_out-2", CASES[i].node};
        struct segment_timer timer;
        print_message("%s\n", CASES[i].node);
        const struct segment_plan *plan = record_plan(&timer, nodes, 2, 32, LAYERS_BY_COMPONENT);
        assert_int_equal(plan->segments[plan->count - 1].slot,
                         layer_slot(CASES[i].layer, CASES[i].component));
        segment_timer_release(&timer);
    }
}

static void expect_segment(const struct segment_plan *plan, size_t at, const char *last, int layer,
                           unsigned component, int group)
{
    print_message("segment %zu: %s\n", at, last);
    assert_true(at < plan->count);
    assert_string_equal(FUSED[plan->segments[at].last], last);
    assert_int_equal(plan->segments[at].slot, layer_slot(layer, component));
    assert_int_equal(plan->segments[at].group, group);
}

static void components_end_where_the_next_begins(void **state)
{
    (void)state;
    struct segment_timer timer;
    const struct segment_plan *plan =
        record_plan(&timer, FUSED, FUSED_COUNT, 2, LAYERS_BY_COMPONENT);
    assert_int_equal(plan->count, 1 + 2 * 7 + 2);
    assert_int_equal(plan->groups, 4);
    expect_segment(plan, 0, "embd", DECODER_OUTSIDE, DECODER_EMBEDDING, 0);
    expect_segment(plan, 1, "attn_norm-0", 0, DECODER_NORM, 1);
    expect_segment(plan, 2, "Qcur-0 (view)", 0, DECODER_ATTN_QKV, 1);
    expect_segment(plan, 3, "kqv_out-0", 0, DECODER_ATTN_SCORES, 1);
    expect_segment(plan, 4, "ffn_inp-0", 0, DECODER_ATTN_OUT, 1);
    expect_segment(plan, 5, "ffn_norm-0", 0, DECODER_NORM, 1);
    expect_segment(plan, 6, "ffn_swiglu-0", 0, DECODER_FFN_GATE_UP, 1);
    expect_segment(plan, 7, "l_out-0", 0, DECODER_FFN_DOWN, 1);
    expect_segment(plan, 10, "kqv_out-1", 1, DECODER_ATTN_SCORES, 2);
    expect_segment(plan, 15, "result_norm", DECODER_OUTSIDE, DECODER_NORM, 3);
    expect_segment(plan, 16, "result_output", DECODER_OUTSIDE, DECODER_HEAD, 3);
    segment_timer_release(&timer);
}

static void layer_and_phase_granularity_have_fewer_segments(void **state)
{
    (void)state;
    struct segment_timer timer;
    const struct segment_plan *plan = record_plan(&timer, FUSED, FUSED_COUNT, 2, LAYERS_BY_LAYER);
    assert_int_equal(plan->count, 4);
    expect_segment(plan, 0, "embd", DECODER_OUTSIDE, LAYERS_WHOLE, 0);
    expect_segment(plan, 1, "l_out-0", 0, LAYERS_WHOLE, 1);
    expect_segment(plan, 2, "l_out-1", 1, LAYERS_WHOLE, 2);
    expect_segment(plan, 3, "result_output", DECODER_OUTSIDE, LAYERS_WHOLE, 3);
    segment_timer_release(&timer);
    plan = record_plan(&timer, FUSED, FUSED_COUNT, 2, LAYERS_BY_PHASE);
    assert_int_equal(plan->count, 1);
    expect_segment(plan, 0, "result_output", DECODER_OUTSIDE, LAYERS_WHOLE, 0);
    segment_timer_release(&timer);
}

/* An unlisted model family has at least its layers. */
static void an_unknown_family_still_has_layers(void **state)
{
    (void)state;
    static const char *const STRANGE[] = {"node_0", "mix-0",  "node_2", "ssm-0",
                                          "mix-1",  "node_5", "ssm-1",  "node_7"};
    struct segment_timer timer;
    const struct segment_plan *plan = record_plan(&timer, STRANGE, 8, 2, LAYERS_BY_LAYER);
    assert_int_equal(plan->count, 3);
    assert_int_equal(plan->segments[1].slot, layer_slot(0, LAYERS_WHOLE));
    assert_int_equal(plan->segments[1].last, 3);
    assert_int_equal(plan->segments[2].slot, layer_slot(1, LAYERS_WHOLE));
    assert_int_equal(plan->segments[2].last, 7);
    segment_timer_release(&timer);
    record_plan(&timer, STRANGE, 0, 2, LAYERS_BY_LAYER);
    assert_int_equal(timer.plan_count, 0); /* an empty graph has no plan */
    segment_timer_release(&timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_identify_component_and_layer),
        cmocka_unit_test(components_end_where_the_next_begins),
        cmocka_unit_test(layer_and_phase_granularity_have_fewer_segments),
        cmocka_unit_test(an_unknown_family_still_has_layers),
    };
    return RUN_TESTS(tests);
}
