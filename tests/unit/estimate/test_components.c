/* What crosses the boundaries of a decoder's components, against the formulas for each. */
#include <math.h>

#include "estimate/partition.h"
#include "graph/gguf.h"
#include "support/decoders.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static struct partition cut(const struct graph *graph)
{
    struct partition partition;
    partition_make(graph, PARTITION_BY_COMPONENT, &partition);
    return partition;
}

/* What crosses the boundaries of a component in a layer, or outside of them. */
static struct graph_cost component_cost(const struct partition *partition, int layer,
                                        enum decoder_component component)
{
    struct graph_cost sum = {0};
    for (size_t i = 0; i < partition->count; i++)
        if (partition->subgraphs[i].layer == layer &&
            partition->subgraphs[i].component == component)
            graph_cost_add(&sum, &partition->subgraphs[i].cost);
    return sum;
}

static void compare_components(const struct decoder *decoder, struct graph_options options)
{
    struct graph graph = {0};
    struct error why = {0};
    assert_int_equal(decoder_graph(decoder, &options, &graph, &why), ERR_OK);
    struct partition partition = cut(&graph);
    for (int layer = DECODER_OUTSIDE; layer < (int)decoder->layer_count; layer++)
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
            enum decoder_component component = (enum decoder_component)i;
            struct decoder_figures expected = decoders_cost(decoder, &options, layer, component);
            struct graph_cost cost = component_cost(&partition, layer, component);
            if (fabs(cost.in.activations - expected.in) > 1e-9 * expected.in ||
                cost.out.activations != expected.out)
                fail_msg("%s in layer %d: reads %g, writes %g; expected %g and %g",
                         decoder_component_name(component), layer, cost.in.activations,
                         cost.out.activations, expected.in, expected.out);
            assert_near(cost.macs, expected.macs, 1e-9 * expected.macs);
            assert_near(cost.elementwise, expected.elementwise, 1e-9 * expected.elementwise);
            assert_true(cost.in.cached == expected.cache_read);
            assert_true(cost.out.cached == expected.cache_written);
        }
    partition_release(&partition);
    graph_release(&graph);
}

static void test_component_boundaries_match_the_formulas(void **state)
{
    (void)state;
    struct rng rng = {4};
    for (int i = test_rounds(300); i > 0; i--) {
        struct decoder decoder = decoders_random(&rng);
        compare_components(&decoder, decoders_random_pass(&rng));
        decoder_release(&decoder);
    }
}

/* A small model, whose figures can be seen: 64 features, 2 KV heads of 4, 96 wide, 32 tokens. */
static void test_component_boundaries_of_a_small_decoder(void **state)
{
    (void)state;
    static const struct {
        int layer;
        enum decoder_component component;
        double in, out; /* elements of activations */
    } CASES[] = {
        {0, DECODER_EMBEDDING, 0, 0},
        {0, DECODER_NORM, 6 * 128, 6 * 128},
        {0, DECODER_ATTN_QKV, 6 * 64, 6 * 64}, /* K and V go to the cache */
        {0, DECODER_ATTN_SCORES, 6 * 64, 6 * 64},
        {0, DECODER_ATTN_OUT, 6 * 128, 6 * 64}, /* with the residual */
        {0, DECODER_FFN_GATE_UP, 6 * 64, 6 * 96},
        {0, DECODER_FFN_DOWN, 6 * (96 + 64), 6 * 64},
        {0, DECODER_HEAD, 0, 0},
        {1, DECODER_ATTN_OUT, 6 * 64 + 2 * 64, 2 * 64}, /* pruned */
        {1, DECODER_FFN_GATE_UP, 2 * 64, 2 * 96},
        {DECODER_OUTSIDE, DECODER_EMBEDDING, 0, 6 * 64},
        {DECODER_OUTSIDE, DECODER_NORM, 2 * 64, 2 * 64},
        {DECODER_OUTSIDE, DECODER_ATTN_SCORES, 0, 0},
        {DECODER_OUTSIDE, DECODER_FFN_DOWN, 0, 0},
        {DECODER_OUTSIDE, DECODER_HEAD, 2 * 64, 2 * 32},
    };
    struct gguf_file file = {0};
    struct gguf gguf;
    struct decoder decoder;
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options options = {
        .tokens = 3, .cached = 4, .batch = 2, .pruning = GRAPH_PRUNE_TO_LAST};
    gguf_file_model(&file);
    assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, &why), ERR_OK);
    assert_int_equal(decoder_read(&gguf, &decoder, &why), ERR_OK);
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    struct partition partition = cut(&graph);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct graph_cost cost = component_cost(&partition, CASES[i].layer, CASES[i].component);
        assert_true(cost.in.activations == CASES[i].in);
        assert_true(cost.out.activations == CASES[i].out);
    }
    partition_release(&partition);
    graph_release(&graph);
    decoder_release(&decoder);
    gguf_close(&gguf);
    gguf_file_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_component_boundaries_match_the_formulas),
        cmocka_unit_test(test_component_boundaries_of_a_small_decoder),
    };
    return RUN_TESTS(tests);
}
