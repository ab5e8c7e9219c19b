/* A decoder as a graph: every component of every layer costs what the formulas say, which know nothing of graphs;
 * the cache has the tokens that are read. */
#include <math.h>
#include <stdlib.h>

#include "graph/count.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/gguf.h"
#include "graph/reader.h"
#include "support/decoders.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static const struct precision_widths WIDTHS = {
    .weight = 2, .activation = 4, .cache = 2, .keeps_stored = true};

/* ---- the sum over some nodes ---- */

static struct graph_cost sum_costs(const struct graph *graph, int layer,
                                   enum decoder_component component)
{
    struct graph_cost sum_costs = {0};
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        assert_true(node->component < DECODER_COMPONENT_COUNT);
        if (node->layer != layer || node->component != component)
            continue;
        struct graph_cost one = graph_node_cost(graph, node);
        graph_cost_add(&sum_costs, &one);
    }
    return sum_costs;
}

static void assert_same(double a, double b, const char *what, int layer,
                        enum decoder_component component)
{
    if (fabs(a - b) > 1e-9 * (fabs(a) + fabs(b)))
        fail_msg("%s of %s in layer %d: %.17g in the graph, %.17g by the formula", what,
                 decoder_component_name(component), layer, a, b);
}

static void compare(const struct decoder *decoder, struct graph_options options)
{
    struct graph graph = {0};
    struct error why = {0};
    if (decoder_graph(decoder, &options, &graph, &why))
        fail_msg("%s", why.text);
    for (int layer = DECODER_OUTSIDE; layer < (int)decoder->layer_count; layer++)
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
            enum decoder_component component = (enum decoder_component)i;
            struct decoder_figures by_formula = decoders_cost(decoder, &options, layer, component);
            struct graph_cost made = sum_costs(&graph, layer, component);
            assert_same(made.macs, by_formula.macs, "MACs", layer, component);
            assert_same(made.elementwise, by_formula.elementwise, "elementwise", layer, component);
            assert_same(graph_bytes(&made.weights, &WIDTHS), by_formula.weight_bytes, "weights",
                        layer, component);
            assert_same(made.in.cached, by_formula.cache_read, "cache read", layer, component);
            assert_same(made.out.cached, by_formula.cache_written, "cache written", layer,
                        component);
        }
    int64_t tokens = options.phase == GRAPH_DECODE ? 1 : options.tokens;
    assert_true(graph.tokens == (double)(tokens * options.batch));
    assert_true(graph.batch == (double)options.batch);
    graph_release(&graph);
}

static void test_costs_match_the_formulas(void **state)
{
    (void)state;
    struct rng rng = {1};
    for (int round = test_rounds(1200); round > 0; round--) {
        struct decoder decoder = decoders_random(&rng);
        compare(&decoder, decoders_random_pass(&rng));
        decoder_release(&decoder);
    }
}

/* ---- one pass against several ---- */

static struct decoder small_decoder(uint64_t context, uint64_t window);

static struct graph_cost cost_of(const struct decoder *decoder, struct graph_options options)
{
    struct graph graph = {0};
    struct error why = {0};
    if (decoder_graph(decoder, &options, &graph, &why))
        fail_msg("%s", why.text);
    struct graph_cost cost = graph_cost_total(&graph);
    graph_release(&graph);
    return cost;
}

/* In one pass or token by token: the same operations, but weights are read each time. */
static void test_prefill_costs_the_sum_of_its_tokens(void **state)
{
    (void)state;
    enum { TOKENS = 33 };
    struct decoder decoder = small_decoder(0, 16);
    decoder.has_head_per_token = true;
    struct graph_cost at_once = cost_of(&decoder, (struct graph_options){.tokens = TOKENS});
    struct graph_cost all = {0};
    for (int64_t i = 1; i <= TOKENS; i++) {
        struct graph_cost one =
            cost_of(&decoder, (struct graph_options){.phase = GRAPH_DECODE, .context = i});
        graph_cost_add(&all, &one);
    }
    assert_true(all.macs == at_once.macs && all.elementwise == at_once.elementwise);
    assert_true(all.out.cached == at_once.out.cached);
    assert_true(all.out.activations == at_once.out.activations);
    assert_true(all.in.cached > at_once.in.cached);
    assert_true(graph_bytes(&all.weights, &WIDTHS) > 30 * graph_bytes(&at_once.weights, &WIDTHS));
    decoder_release(&decoder);
}

/* A prompt in parts, of which the last gives logits: the same attention and cache. */
static void test_parts_of_a_prompt_cost_the_whole(void **state)
{
    (void)state;
    struct rng rng = {2};
    for (int round = test_rounds(200); round > 0; round--) {
        struct decoder decoder = decoders_random(&rng);
        struct graph_options whole = {.tokens = 60, .batch = 2, .pruning = GRAPH_PRUNE_TO_LAST};
        struct graph_cost at_once = cost_of(&decoder, whole), all = {0};
        for (int64_t done = 0, part; done < 60; done += part) {
            part = 1 + rng_below(&rng, (uint32_t)(60 - done));
            struct graph_options options = whole;
            options.tokens = part;
            options.cached = done;
            options.pruning = done + part < 60 ? GRAPH_PRUNE_ALL : GRAPH_PRUNE_TO_LAST;
            struct graph_cost one = cost_of(&decoder, options);
            graph_cost_add(&all, &one);
        }
        assert_near(all.macs, at_once.macs, 1e-9 * at_once.macs);
        assert_near(all.elementwise, at_once.elementwise, 1e-9 * at_once.elementwise);
        assert_true(all.out.cached == at_once.out.cached);
        decoder_release(&decoder);
    }
}

/* ---- attention, counted by doing it ---- */

struct seen {
    double pairs;  /* of a token and one that it attends to */
    double tokens; /* that at least one token of the pass attends to */
};

static struct seen look(int64_t tokens, int64_t before, int64_t window)
{
    struct seen seen = {0};
    bool touched[256] = {false};
    assert_true(before + tokens <= 256);
    for (int64_t query = before; query < before + tokens; query++)
        for (int64_t key = 0; key < before + tokens; key++)
            if (key <= query && (window == 0 || query - key < window)) {
                seen.pairs++;
                touched[key] = true;
            }
    for (size_t i = 0; i < 256; i++)
        seen.tokens += touched[i];
    return seen;
}

static void test_scores_match_a_count_of_pairs(void **state)
{
    (void)state;
    static const int64_t WINDOWS[] = {0, 1, 2, 7, 40};
    for (size_t w = 0; w < sizeof WINDOWS / sizeof *WINDOWS; w++)
        for (int64_t tokens = 1; tokens < 60; tokens += 3)
            for (int64_t before = 0; before < 60; before += 1 + before / 4) {
                struct decoder decoder = small_decoder(0, (uint64_t)WINDOWS[w]);
                struct graph graph = {0};
                struct error why = {0};
                struct graph_options options = {.tokens = tokens, .cached = before, .batch = 3};
                assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
                struct seen seen = look(tokens, before, WINDOWS[w]);
                struct graph_cost cost = sum_costs(&graph, 0, DECODER_ATTN_SCORES);
                /* 2 heads of 4: a product with a key and one with a value; 5 for the softmax; 1 KV head. */
                assert_true(cost.macs == 3 * seen.pairs * 2 * (4 + 4));
                assert_true(cost.elementwise == 3 * seen.pairs * 2 * 5);
                assert_true(cost.in.cached == 3 * seen.tokens * (4 + 4));
                assert_true(cost.in.activations == (double)(3 * tokens * 2 * 4));
                graph_release(&graph);
                decoder_release(&decoder);
            }
}

/* ---- a file ---- */

/* Each weight of the file keeps its own dtype, even where a component mixes them. */
static void test_graph_of_a_file_keeps_dtypes(void **state)
{
    (void)state;
    struct gguf_file file = {0};
    struct gguf gguf;
    struct decoder decoder;
    struct error why = {0};
    gguf_file_model(&file);
    assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, &why), ERR_OK);
    assert_int_equal(decoder_read(&gguf, &decoder, &why), ERR_OK);
    compare(&decoder, (struct graph_options){.phase = GRAPH_PREFILL, .batch = 2, .tokens = 9});
    compare(&decoder, (struct graph_options){.phase = GRAPH_DECODE, .batch = 3, .context = 9});
    /* Every weight once per pass; a row of the embedding for each token, as the head is tied to it. */
    struct graph_cost pass = cost_of(&decoder, (struct graph_options){.tokens = 9, .batch = 3});
    assert_true(graph_bytes(&pass.weights, &WIDTHS) == (double)decoder.bytes + 27 * 64.0 / 32 * 34);
    struct graph graph = {0};
    struct graph_options options = {.tokens = 1};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    static const struct {
        enum decoder_component component;
        double elementwise;
    } CASES[] = {
        {DECODER_NORM, 2 * 64 * 4}, {DECODER_ATTN_QKV, (64 + 32) * 3},
        {DECODER_ATTN_OUT, 64},     {DECODER_FFN_GATE_UP, 96 * (4 + 1)},
        {DECODER_FFN_DOWN, 64},     {DECODER_HEAD, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_true(sum_costs(&graph, 1, CASES[i].component).elementwise == CASES[i].elementwise);
    double stored = 0;
    size_t found = 0;
    for (size_t i = 0; i < graph.tensor_count; i++) {
        const struct graph_tensor *tensor = &graph.tensors[i];
        stored += tensor->stored_bytes;
        const struct gguf_tensor *same = gguf_tensor_named(&gguf, tensor->name);
        if (!same)
            continue;
        found++;
        assert_true(tensor->stored_bytes == (double)same->bytes);
        assert_true(graph_elements(tensor) == (double)same->elements);
    }
    assert_int_equal(found, gguf.tensor_count);
    assert_true(stored == (double)decoder.bytes);
    assert_true(graph_parameters(&graph) == (double)decoder.parameters);
    graph_release(&graph);
    gguf_close(&gguf);
    gguf_file_release(&file);
    decoder_release(&decoder);
}

/* Rotary factors are read once and are not trained. */
static void test_rotary_factors_are_read_once(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"rope_freqs.weight", "blk.1.rope_freqs.weight"};
    for (size_t i = 0; i < 2; i++) {
        struct gguf_file file = {0};
        struct gguf gguf;
        struct decoder decoder;
        struct graph graph = {0};
        struct graph_options options = {0};
        struct error why = {0};
        gguf_file_model(&file);
        gguf_file_tensor(&file, NAMES[i], 0, 8, 0, 0);
        gguf_file_end(&file);
        assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, &why), ERR_OK);
        assert_int_equal(decoder_read(&gguf, &decoder, &why), ERR_OK);
        /* Those of a layer are counted with its QKV. */
        compare(&decoder, (struct graph_options){.tokens = 9});
        assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
        assert_true(graph_parameters(&graph) == (double)decoder.parameters - 8);
        graph_release(&graph);
        decoder_release(&decoder);
        gguf_close(&gguf);
        gguf_file_release(&file);
    }
}

/* ---- options ---- */

static struct decoder small_decoder(uint64_t context, uint64_t window)
{
    struct decoder_shape shape = {.architecture = "llama",
                                  .name = "small",
                                  .layers = 2,
                                  .embedding = 8,
                                  .heads = 2,
                                  .heads_kv = 1,
                                  .vocabulary = 10,
                                  .feed_forward = 12,
                                  .context = context,
                                  .window = window,
                                  .window_period = 2,
                                  .has_tied_embeddings = true};
    struct decoder decoder;
    struct error why = {0};
    assert_int_equal(decoder_from_shape(&shape, &decoder, &why), ERR_OK);
    return decoder;
}

static void test_defaults_are_written_back(void **state)
{
    (void)state;
    struct decoder decoder = small_decoder(100, 0);
    struct graph_options options = {0};
    struct graph graph = {0};
    struct error why = {0};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    assert_int_equal(options.phase, GRAPH_PREFILL);
    assert_int_equal(options.batch, 1);
    assert_int_equal(options.tokens, 100);
    assert_int_equal(options.context, 100);
    assert_string_equal(graph.name, "small");
    graph_release(&graph);
    decoder.context = 0;
    options = (struct graph_options){.phase = GRAPH_DECODE};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    assert_int_equal(options.context, DECODER_DEFAULT_TOKENS);
    graph_release(&graph);
    decoder_release(&decoder);
}

static void test_options_out_of_range_are_rejected(void **state)
{
    (void)state;
    static const struct {
        struct graph_options options;
        const char *words;
    } CASES[] = {
        {{.batch = -1}, "batch of -1"},
        {{.batch = INT64_MAX}, "batch of 9223372036854775807"},
        {{.tokens = -5}, "token count of -5"},
        {{.tokens = INT64_MAX}, "token count of 9223372036854775807"},
        {{.phase = GRAPH_DECODE, .context = -5}, "context of -5"},
    };
    struct decoder decoder = small_decoder(0, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct graph_options options = CASES[i].options;
        struct graph graph = {0};
        struct error why = {0};
        assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_USAGE);
        assert_contains(why.text, CASES[i].words);
        assert_null(graph.tensors);
    }
    decoder_release(&decoder);
}

/* With every size at its limit, counts stay finite. */
static void test_counts_of_the_largest_decoder_are_finite(void **state)
{
    (void)state;
    struct decoder_shape shape = {.architecture = "llama",
                                  .name = "huge",
                                  .layers = 2,
                                  .embedding = 1 << 20,
                                  .heads = DECODER_MAX_HEADS,
                                  .heads_kv = DECODER_MAX_HEADS,
                                  .head_size = 128,
                                  .vocabulary = 1 << 26,
                                  .experts = DECODER_MAX_EXPERTS,
                                  .experts_used = 1,
                                  .expert_feed_forward = 1 << 12,
                                  .feed_forward = DECODER_MAX_SIZE};
    struct decoder decoder;
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options options = {.batch = 1 << 20, .tokens = 1 << 28};
    assert_int_equal(decoder_from_shape(&shape, &decoder, &why), ERR_OK);
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    assert_true(graph_parameters(&graph) == (double)decoder.parameters);
    struct graph_cost cost = graph_cost_total(&graph);
    assert_true(isfinite(graph_flops(&cost)) && graph_flops(&cost) > 0);
    for (size_t i = 0; i < graph.tensor_count; i++)
        assert_true(graph_elements(&graph.tensors[i]) > 0);
    graph_release(&graph);
    decoder_release(&decoder);
}

/* ---- edges ---- */

static const struct graph_tensor *tensor_named(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (strcmp(graph->tensors[i].name, name) == 0)
            return &graph->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void test_kv_cache_tensors(void **state)
{
    (void)state;
    struct decoder decoder = small_decoder(0, 16);
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options options = {.phase = GRAPH_DECODE, .batch = 3, .context = 51};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    /* A window of 16 has 15 tokens before the new one. */
    const struct graph_tensor *windowed = tensor_named(&graph, "blk.0.key_cache");
    const struct graph_tensor *whole = tensor_named(&graph, "blk.1.value_cache");
    const struct graph_tensor *new = tensor_named(&graph, "blk.1.value_cache.new");
    assert_true(windowed->role == GRAPH_CACHE && windowed->dims[0] == 3);
    assert_true(windowed->dims[1] == 15 && windowed->dims[2] == 4);
    assert_true(whole->role == GRAPH_CACHE && whole->dims[1] == 50);
    assert_true(new->role == GRAPH_CACHE &&new->dims[1] == 1);
    graph_release(&graph);
    options = (struct graph_options){.tokens = 50};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
    for (size_t i = 0; i < graph.tensor_count; i++)
        assert_true(graph.tensors[i].role != GRAPH_CACHE || graph.tensors[i].producer >= 0);
    graph_release(&graph);
    decoder_release(&decoder);
}

/* Every activation is produced by a node and read by another; only the logits are output. */
static void test_every_tensor_is_used(void **state)
{
    (void)state;
    struct rng rng = {3};
    for (int round = 0; round < 60; round++) {
        struct decoder decoder = decoders_random(&rng);
        struct graph_options options = decoders_random_pass(&rng);
        struct graph graph = {0};
        struct error why = {0};
        assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
        size_t outputs = 0;
        bool *is_used = calloc(graph.tensor_count, sizeof *is_used);
        for (size_t i = 0; i < graph.node_count; i++)
            for (size_t k = 0; k < graph.nodes[i].input_count; k++)
                is_used[graph_inputs(&graph, &graph.nodes[i])[k]] = true;
        for (size_t i = 0; i < graph.tensor_count; i++) {
            const struct graph_tensor *tensor = &graph.tensors[i];
            assert_true(tensor->role != GRAPH_ACTIVATION || tensor->producer >= 0);
            assert_true(is_used[i] || tensor->is_output);
            outputs += tensor->is_output;
        }
        assert_int_equal(outputs, 1);
        free(is_used);
        graph_release(&graph);
        decoder_release(&decoder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs_match_the_formulas),
        cmocka_unit_test(test_prefill_costs_the_sum_of_its_tokens),
        cmocka_unit_test(test_parts_of_a_prompt_cost_the_whole),
        cmocka_unit_test(test_scores_match_a_count_of_pairs),
        cmocka_unit_test(test_graph_of_a_file_keeps_dtypes),
        cmocka_unit_test(test_rotary_factors_are_read_once),
        cmocka_unit_test(test_defaults_are_written_back),
        cmocka_unit_test(test_options_out_of_range_are_rejected),
        cmocka_unit_test(test_counts_of_the_largest_decoder_are_finite),
        cmocka_unit_test(test_kv_cache_tensors),
        cmocka_unit_test(test_every_tensor_is_used),
    };
    return RUN_TESTS(tests);
}
