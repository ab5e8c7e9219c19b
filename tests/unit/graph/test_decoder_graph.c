/* A decoder as a graph: each component of each layer costs what decoder_cost counts, which is
 * independent of graphs; parameters are the published ones; the KV cache has the tokens that are
 * read. */
#include <math.h>
#include <stdlib.h>

#include "graph/count.h"
#include "graph/decoder.h"
#include "graph/decoder_cost.h"
#include "graph/decoder_shape.h"
#include "graph/gguf.h"
#include "graph/reader.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static const struct precision_widths WIDTHS = {
    .weight = 2, .activation = 4, .cache = 2, .keeps_stored = true};

/* ---- random decoders ---- */

static uint32_t random_state = 1;

static uint64_t random_between(uint64_t least, uint64_t most)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return least + random_state % (most - least + 1);
}

static bool random_bool(void)
{
    return random_between(0, 1);
}

static struct decoder_shape random_shape(void)
{
    struct decoder_shape shape = {
        .architecture = "any",
        .name = "any",
        .activation = random_bool() ? DECODER_SILU : DECODER_GELU,
        .layers = random_between(1, 5),
        .heads_kv = random_between(1, 4),
        .vocabulary = random_between(1, 300),
        .head_size = 2 * random_between(1, 8),
        .embedding = random_between(1, 80),
        .feed_forward = random_between(1, 90),
        .window = random_bool() ? random_between(1, 40) : 0,
        .window_period = random_between(0, 3),
        .norms = (enum decoder_norm_placement)random_between(0, 3),
        .qk_norm = (enum decoder_qk_norm)random_between(0, 2),
        .has_layer_norm = random_bool(),
        .has_tied_embeddings = random_bool(),
        .has_qkv_bias = random_bool(),
        .has_output_bias = random_bool(),
        .has_mlp_bias = random_bool(),
        .has_fused_qkv = random_bool(),
        .has_no_gate = random_between(0, 3) == 0,
        .matrix_bits = random_bool() ? 0 : 4.5,
    };
    shape.has_head_bias = !shape.has_tied_embeddings && random_bool();
    shape.heads = shape.heads_kv * random_between(1, 4);
    shape.has_fused_gate = !shape.has_no_gate && random_bool();
    if (!shape.has_no_gate && random_between(0, 2) == 0) {
        shape.experts = random_between(1, 9);
        shape.experts_used = random_between(1, shape.experts);
        shape.expert_feed_forward = random_between(1, 30);
        shape.expert_period = random_between(0, 2);
        shape.shared_feed_forward = random_bool() ? random_between(1, 30) : 0;
    }
    return shape;
}

static struct graph_options random_options(void)
{
    return (struct graph_options){.phase = random_bool() ? GRAPH_DECODE : GRAPH_PREFILL,
                                  .batch = (int64_t)random_between(1, 5),
                                  .tokens = (int64_t)random_between(1, 70),
                                  .context = (int64_t)random_between(1, 200)};
}

static struct decoder_step step_of(const struct graph_options *options)
{
    bool is_decode = options->phase == GRAPH_DECODE;
    return (struct decoder_step){
        .tokens = is_decode ? 1 : (uint64_t)options->tokens,
        .cached = is_decode ? (uint64_t)options->context - 1 : 0,
        .sequences = (uint64_t)options->batch,
        .logits = 1,
    };
}

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

/* What decoder.h says is counted in the graph only: the output of shared experts is gated and added. */
static double shared_extra(const struct decoder *decoder, int layer,
                           enum decoder_component component, double tokens)
{
    if (layer < 0 || component != DECODER_FFN_DOWN)
        return 0;
    const struct decoder_layer *of = &decoder->layers[layer];
    bool is_shared = of->expert_feed_forward && of->feed_forward;
    return is_shared ? (4 + 2 * (double)decoder->embedding) * tokens : 0;
}

/* In addition: more tokens than the vocabulary read at most the whole table. */
static double limit_to_table(const struct decoder *decoder, enum decoder_component component,
                             double bytes)
{
    double table = (double)decoder->outside[DECODER_EMBEDDING].bytes;
    return component == DECODER_EMBEDDING && bytes > table ? table : bytes;
}

static void assert_same(double a, double b, const char *what, int layer,
                        enum decoder_component component)
{
    if (fabs(a - b) > 1e-9 * (fabs(a) + fabs(b)))
        fail_msg("%s of %s in layer %d: %.17g in the graph, %.17g counted", what,
                 decoder_component_name(component), layer, a, b);
}

static void compare(const struct decoder *decoder, struct graph_options options)
{
    struct graph graph = {0};
    struct error why = {0};
    if (decoder_graph(decoder, &options, &graph, &why))
        fail_msg("%s", why.text);
    struct decoder_step step = step_of(&options);
    double tokens = (double)step.tokens * (double)step.sequences;
    for (int layer = -1; layer < (int)decoder->layer_count; layer++)
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
            enum decoder_component component = (enum decoder_component)i;
            struct decoder_cost counted = decoder_cost(decoder, &step, layer, component);
            struct graph_cost made = sum_costs(&graph, layer, component);
            double extra = shared_extra(decoder, layer, component, tokens);
            assert_same(2 * made.macs, counted.matrix_flops, "MACs", layer, component);
            assert_same(made.elementwise - extra, counted.elementwise_flops, "elementwise", layer,
                        component);
            assert_same(graph_bytes(&made.weights, &WIDTHS),
                        limit_to_table(decoder, component, counted.weight_bytes), "weights", layer,
                        component);
            assert_same(2 * made.in.cached, counted.cache_read_bytes, "cache read", layer,
                        component);
            assert_same(2 * made.out.cached, counted.cache_write_bytes, "cache written", layer,
                        component);
        }
    assert_true(graph.tokens == tokens && graph.batch == (double)step.sequences);
    graph_release(&graph);
}

static void test_graph_costs_match_decoder_cost(void **state)
{
    (void)state;
    for (int round = 0; round < 600; round++) {
        struct decoder_shape shape = random_shape();
        struct decoder decoder;
        struct error why = {0};
        assert_int_equal(decoder_from_shape(&shape, &decoder, &why), ERR_OK);
        compare(&decoder, random_options());
        decoder_release(&decoder);
    }
}

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
    struct graph graph = {0};
    struct graph_options options = {0};
    assert_int_equal(decoder_graph(&decoder, &options, &graph, &why), ERR_OK);
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
        /* Those of a layer are counted with its QKV in both. */
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
    for (int round = 0; round < 60; round++) {
        struct decoder_shape shape = random_shape();
        struct graph_options options = random_options();
        struct decoder decoder;
        struct graph graph = {0};
        struct error why = {0};
        assert_int_equal(decoder_from_shape(&shape, &decoder, &why), ERR_OK);
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
        cmocka_unit_test(test_graph_costs_match_decoder_cost),
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
