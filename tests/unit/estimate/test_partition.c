/* Subgraphs: expected fusion patterns, and on random graphs the invariants of any partition,
 * against brute force. */
#include "estimate/partition.h"

#include <stdlib.h>

#include "graph/build.h"
#include "graph/zoo/zoo.h"
#include "support/graphs.h"
#include "support/unit.h"

enum { GRAPHS = 300, MOST_NODES = 60, MOST_TENSORS = 4 * MOST_NODES };

static struct partition make_partition(const struct graph *graph, enum partition_fusion fusion)
{
    struct partition partition;
    partition_make(graph, fusion, &partition);
    return partition;
}

/* ---- named patterns ---- */

static void assert_patterns(struct build *build, const char *const *expected, size_t count)
{
    struct graph *graph = build->graph;
    assert_int_equal(build_end(build), ERR_OK);
    struct partition partition = make_partition(graph, PARTITION_FUSED);
    for (size_t i = 0; i < partition.count; i++)
        if (i >= count || strcmp(partition.subgraphs[i].pattern, expected[i]) != 0)
            print_message("%zu: %s\n", i, partition.subgraphs[i].pattern);
    assert_int_equal(partition.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(partition.subgraphs[i].pattern, expected[i]);
    partition_release(&partition);
    graph_release(graph);
}
#define ASSERT_PATTERNS(build, ...)                                                                \
    assert_patterns(build, (const char *const[]){__VA_ARGS__},                                     \
                    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static tensor_id conv_bn(struct build *b, const char *name, tensor_id x, int32_t kernel)
{
    x = build_conv(b, name, x,
                   (struct build_conv){.channels = 8, .kernel = kernel, .pad = kernel / 2});
    return build_batch_norm(b, "bn", x);
}

static void test_residual_block(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "block", &why);
    tensor_id image = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 3, 8, 8});
    tensor_id x = build_op(&b, GRAPH_RELU, "relu", conv_bn(&b, "stem", image, 3));
    tensor_id y = build_op(&b, GRAPH_RELU, "relu1", conv_bn(&b, "conv1", x, 3));
    y = conv_bn(&b, "conv2", y, 3);
    tensor_id z = build_binary(&b, GRAPH_ADD, "add", y, conv_bn(&b, "down", x, 1));
    z = build_op(&b, GRAPH_RELU, "relu2", z);
    z = build_flatten(&b, "flatten", build_global_pool(&b, "pool", z));
    z = build_op(&b, GRAPH_VIEW, "dropout", z);
    build_output(&b, build_linear(&b, "fc", z, 10, true));
    ASSERT_PATTERNS(&b, "conv+batch_norm+relu", "conv+batch_norm+relu", "conv+batch_norm",
                    "conv+batch_norm+add+relu", "reduce", "linear");
}

static void test_decoder_layer(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "layer", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){1, 4, 16});
    tensor_id n = build_norm(&b, GRAPH_RMS_NORM, "norm", x);
    tensor_id q = build_op(&b, GRAPH_ROTATION, "q_rope", build_linear(&b, "q", n, 16, false));
    tensor_id k = build_op(&b, GRAPH_ROTATION, "k_rope", build_linear(&b, "k", n, 8, false));
    tensor_id v = build_linear(&b, "v", n, 8, false);
    tensor_id a = build_attention(&b, "attn", q, k, v, GRAPH_NONE, GRAPH_NONE,
                                  (struct graph_attention){.heads = 4,
                                                           .heads_kv = 2,
                                                           .key_size = 4,
                                                           .value_size = 4,
                                                           .tokens = 4,
                                                           .sequences = 1,
                                                           .is_causal = true});
    x = build_binary(&b, GRAPH_ADD, "add1", x, build_linear(&b, "o", a, 16, false));
    n = build_norm(&b, GRAPH_RMS_NORM, "norm2", x);
    tensor_id up = build_linear(&b, "up", n, 32, false);
    tensor_id gate = build_op(&b, GRAPH_SILU, "silu", build_linear(&b, "gate", n, 32, false));
    tensor_id h = build_binary(&b, GRAPH_MUL, "mul", gate, up);
    x = build_binary(&b, GRAPH_ADD, "add2", x, build_linear(&b, "down", h, 16, false));
    build_output(&b, x);
    ASSERT_PATTERNS(&b, "rms_norm", "linear x3", "rotation", "rotation", "attention", "linear+add",
                    "rms_norm", "linear x2+silu+mul", "linear+add");
}

/* Decomposed as in ONNX files. */
static void test_decomposed_attention_and_gelu_are_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "steps", &why);
    tensor_id q = build_input(&b, "q", GRAPH_FLOAT, 3, (int64_t[]){2, 4, 8});
    tensor_id k = build_input(&b, "k", GRAPH_FLOAT, 3, (int64_t[]){2, 8, 4});
    tensor_id v = build_input(&b, "v", GRAPH_FLOAT, 3, (int64_t[]){2, 4, 8});
    tensor_id mask = build_input(&b, "mask", GRAPH_FLOAT, 3, (int64_t[]){1, 4, 4});
    tensor_id scale = build_tensor(&b, GRAPH_CONSTANT, "scale", 1, (int64_t[]){1});
    tensor_id s = build_binary(&b, GRAPH_DIV, "div", build_matmul(&b, "qk", q, k), scale);
    s = build_op(&b, GRAPH_SOFTMAX, "softmax", build_binary(&b, GRAPH_ADD, "masked", s, mask));
    tensor_id x = build_linear(&b, "fc", build_matmul(&b, "pv", s, v), 16, true);
    tensor_id e = build_op(&b, GRAPH_UNARY, "erf", build_binary(&b, GRAPH_DIV, "div2", x, scale));
    e = build_binary(&b, GRAPH_MUL, "mul", x, build_binary(&b, GRAPH_ADD, "add", e, scale));
    e = build_binary(&b, GRAPH_MUL, "half", e, scale);
    build_output(&b, build_linear(&b, "fc2", e, 8, true));
    ASSERT_PATTERNS(&b, "matmul+div+add+softmax+matmul", "linear+div+unary+add+mul x2", "linear");
}

static void test_decomposed_swish_and_norm_are_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "steps", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 3, 8, 8});
    tensor_id one = build_tensor(&b, GRAPH_CONSTANT, "one", 1, (int64_t[]){1});
    tensor_id y = build_conv(&b, "conv", x, (struct build_conv){.channels = 4, .kernel = 1});
    y = build_binary(&b, GRAPH_MUL, "mul", y, build_op(&b, GRAPH_SIGMOID, "sigmoid", y));
    tensor_id r = build_conv(&b, "conv2", y, (struct build_conv){.channels = 4, .kernel = 1});
    struct graph_node mean = {.op = GRAPH_REDUCE, .name = "mean"};
    tensor_id m = build_node(&b, &mean, &r, 1, 4, (int64_t[]){1, 4, 8, 1});
    tensor_id d = build_binary(&b, GRAPH_SUB, "centre", r, m);
    tensor_id s = build_binary(&b, GRAPH_POW, "square", d, one);
    s = build_node(&b, &mean, &s, 1, 4, (int64_t[]){1, 4, 8, 1});
    s = build_op(&b, GRAPH_UNARY, "root", build_binary(&b, GRAPH_ADD, "eps", s, one));
    tensor_id n = build_binary(&b, GRAPH_DIV, "divide", d, s);
    n = build_conv(&b, "conv3", n, (struct build_conv){.channels = 4, .kernel = 1});
    build_output(&b, build_binary(&b, GRAPH_ADD, "residual", n, r));
    ASSERT_PATTERNS(&b, "conv+sigmoid+mul", "conv", "reduce+sub+pow+reduce+add+unary+div",
                    "conv+add");
}

/* Queries, keys and values are transposed slices of one matmul; two of them are scaled. As
 * exporters write it, and one kernel reads them in place: all of the product, once. */
static void test_rearranged_tensors_are_read_in_place(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "turned", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 8});
    tensor_id scale = build_tensor(&b, GRAPH_CONSTANT, "scale", 1, (int64_t[]){1});
    tensor_id all = build_linear(&b, "qkv", x, 24, true);
    tensor_id q = build_rearrange(&b, "q", all, 3, (int64_t[]){2, 4, 4});
    tensor_id k = build_rearrange(&b, "k", all, 3, (int64_t[]){2, 4, 4});
    tensor_id v = build_rearrange(&b, "v", all, 3, (int64_t[]){2, 4, 4});
    q = build_binary(&b, GRAPH_MUL, "q_scaled", q, scale);
    k = build_binary(&b, GRAPH_MUL, "k_scaled",
                     build_rearrange(&b, "k_turned", k, 3, (int64_t[]){2, 4, 4}), scale);
    tensor_id s = build_op(&b, GRAPH_SOFTMAX, "softmax", build_matmul(&b, "qk", q, k));
    tensor_id y = build_rearrange(&b, "heads", build_matmul(&b, "pv", s, v), 2, (int64_t[]){4, 8});
    build_output(&b, build_linear(&b, "out", y, 8, true));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    assert_int_equal(partition.count, 3);
    assert_string_equal(partition.subgraphs[1].pattern, "mul x2+matmul+softmax+matmul");
    assert_near(partition.subgraphs[1].cost.in.activations, 4 * 24, 0);
    assert_near(partition.subgraphs[1].cost.out.activations, 4 * 8, 0);
    partition_release(&partition);
    partition = make_partition(
        &graph, PARTITION_PLAIN); /* a framework that runs operators one by one copies them */
    assert_int_equal(partition.count, 12);
    partition_release(&partition);
    graph_release(&graph);
}

/* Fully masked rows: NaNs after the softmax become 0. */
static void test_attention_that_replaces_nan(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "masked", &why);
    tensor_id q = build_input(&b, "q", GRAPH_FLOAT, 3, (int64_t[]){2, 4, 8});
    tensor_id k = build_input(&b, "k", GRAPH_FLOAT, 3, (int64_t[]){2, 8, 4});
    tensor_id v = build_input(&b, "v", GRAPH_FLOAT, 3, (int64_t[]){2, 4, 8});
    tensor_id s = build_op(&b, GRAPH_SOFTMAX, "softmax", build_matmul(&b, "qk", q, k));
    tensor_id n = build_op(&b, GRAPH_UNARY, "is_nan", s);
    s = build_binary(&b, GRAPH_WHERE, "replaced", n, s);
    build_output(&b, build_matmul(&b, "pv", s, v));
    ASSERT_PATTERNS(&b, "matmul+softmax+unary+where+matmul");
}

/* x cos + (halves of x swapped, one negated) sin: one kernel, which is not fused into a matmul. */
static void test_decomposed_rotary_embedding_is_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "rotated", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 8});
    tensor_id cosines = build_tensor(&b, GRAPH_BUFFER, "cos", 2, (int64_t[]){4, 8});
    tensor_id sines = build_tensor(&b, GRAPH_BUFFER, "sin", 2, (int64_t[]){4, 8});
    x = build_linear(&b, "q", x, 8, false);
    tensor_id y = build_binary(&b, GRAPH_MUL, "by_cos", x, cosines);
    tensor_id second = build_rearrange(&b, "second", x, 2, (int64_t[]){4, 4});
    tensor_id halves[] = {build_op(&b, GRAPH_UNARY, "negated", second),
                          build_rearrange(&b, "first", x, 2, (int64_t[]){4, 4})};
    tensor_id z = build_concat(&b, "swapped", 1, halves, 2);
    y = build_binary(&b, GRAPH_ADD, "add", y, build_binary(&b, GRAPH_MUL, "by_sin", z, sines));
    build_output(&b, build_linear(&b, "fc", y, 3, false));
    ASSERT_PATTERNS(&b, "linear", "mul+unary+move+mul+add", "linear");
}

/* A quantized matmul, dequantized. */
static void test_casts_are_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "integers", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 8});
    tensor_id scale = build_tensor(&b, GRAPH_CONSTANT, "scale", 1, (int64_t[]){1});
    x = build_op(&b, GRAPH_CAST, "cast", build_linear(&b, "fc", x, 8, false));
    build_output(&b, build_binary(&b, GRAPH_MUL, "scaled", x, scale));
    ASSERT_PATTERNS(&b, "linear+cast+mul");
}

/* A rolled tensor is a permutation of itself; with something else concatenated it is not. */
static void test_a_rolled_tensor_is_read_in_place(void **state)
{
    (void)state;
    for (int is_other = 0; is_other < 2; is_other++) {
        struct graph graph;
        struct error why = {0};
        struct build b = build_begin(&graph, "roll", &why);
        tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 6});
        tensor_id y = build_norm(&b, GRAPH_LAYER_NORM, "norm", x);
        tensor_id parts[] = {build_rearrange(&b, "end", y, 2, (int64_t[]){3, 6}),
                             build_rearrange(&b, "begin", is_other ? x : y, 2, (int64_t[]){1, 6})};
        y = build_concat(&b, "rolled", 0, parts, 2);
        build_output(&b, build_linear(&b, "fc", y, 5, false));
        if (is_other)
            ASSERT_PATTERNS(&b, "layer_norm", "move", "linear");
        else
            ASSERT_PATTERNS(&b, "layer_norm", "linear");
    }
}

/* Outputs of the model are written in their own order. */
static void test_rearranged_outputs_are_written(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "out", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 6});
    build_output(&b, build_rearrange(&b, "turned", x, 2, (int64_t[]){6, 4}));
    ASSERT_PATTERNS(&b, "rearrange");
}

static void test_tensors_read_twice_or_output_are_not_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "m", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){2, 8});
    tensor_id a = build_linear(&b, "a", x, 8, false);
    build_output(&b, a);
    tensor_id c = build_op(&b, GRAPH_RELU, "relu", a);
    tensor_id d = build_op(&b, GRAPH_RELU, "relu2", build_linear(&b, "c", c, 8, false));
    build_output(&b, build_linear(&b, "d", d, 8, false));
    build_output(&b, build_op(&b, GRAPH_SOFTMAX, "soft", d));
    ASSERT_PATTERNS(&b, "linear", "relu", "linear+relu", "linear", "softmax");
}

/* A small gate that is broadcast over an image is not fused with the multiplication. */
static void test_an_elementwise_op_of_another_size_is_not_fused(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "squeeze", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 4, 8, 8});
    tensor_id s = build_global_pool(&b, "pool", x);
    s = build_conv(&b, "fc", s, (struct build_conv){.channels = 4, .kernel = 1, .has_bias = true});
    s = build_op(&b, GRAPH_SIGMOID, "sigmoid", s);
    build_output(&b, build_binary(&b, GRAPH_MUL, "scale", x, s));
    ASSERT_PATTERNS(&b, "reduce", "conv+sigmoid", "mul");
}

/* A reader of one sibling may come before another sibling: siblings run at the position of the first. */
static void test_siblings_run_before_their_readers(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "m", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){2, 8});
    tensor_id q = build_linear(&b, "q", x, 8, false);
    tensor_id k = build_linear(&b, "k", x, 8, false);
    build_output(&b, build_op(&b, GRAPH_SOFTMAX, "soft", k));
    build_output(&b, build_op(&b, GRAPH_RELU, "relu", q));
    ASSERT_PATTERNS(&b, "linear x2+relu", "softmax");
}

/* A router feeds all experts, experts read its output: they are not siblings, whatever they read. */
static void test_experts_are_not_siblings_of_their_router(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "experts", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){2, 8});
    build_output(&b, build_linear(&b, "router", x, 4, false));
    struct graph_node expert = {.op = GRAPH_LINEAR, .name = "experts", .weight_fraction = 0.5};
    tensor_id weight = build_tensor(&b, GRAPH_PARAMETER, "w", 2, (int64_t[]){8, 8});
    tensor_id in[] = {x, weight};
    build_output(&b, build_node(&b, &expert, in, 2, 2, (int64_t[]){2, 8}));
    ASSERT_PATTERNS(&b, "linear", "linear");
}

/* ---- random graphs, against brute force ---- */

static bool reads(const struct graph *graph, bool in_place, const struct graph_node *node,
                  tensor_id root)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (graphs_view_base(graph, in_place, graph_inputs(graph, node)[i]) == root)
            return !graphs_is_view(graph, node, in_place);
    return false;
}

static int owner_of(const struct partition *partition, node_id node)
{
    int owner = -1;
    for (size_t i = 0; i < partition->count; i++)
        for (uint32_t k = 0; k < partition->subgraphs[i].node_count; k++)
            if (partition->nodes[partition->subgraphs[i].first_node + k] == node) {
                assert_int_equal(owner, -1); /* in exactly one */
                owner = (int)i;
            }
    return owner;
}

static bool has_edge(const struct partition *partition, size_t from, size_t to)
{
    const struct subgraph *subgraph = &partition->subgraphs[to];
    for (uint32_t i = 0; i < subgraph->before_count; i++)
        if (partition->before[subgraph->first_before + i] == from)
            return true;
    return false;
}

/* Kinds have different weights, so that they cannot be mistaken for each other. */
static double weighted_bytes(const struct graph_amount *amount)
{
    static const struct precision_widths WIDTHS = {.weight = 1, .activation = 1000, .cache = 1e6};
    return graph_bytes(amount, &WIDTHS);
}

static const struct precision_widths ONE = {.weight = 1, .activation = 1, .cache = 1};

static double tensor_bytes(const struct graph *graph, tensor_id id)
{
    struct graph_amount amount = graph_tensor_amount(&graph->tensors[id]);
    return weighted_bytes(&amount);
}

/* The share of its view that a node reads: rows of a table, a part where it only moves data. */
static double share_read_of_view(const struct graph *graph, const struct graph_node *node,
                                 tensor_id id)
{
    double out = graph_elements(graph_output(graph, node, 0));
    double all = graph_elements(&graph->tensors[id]);
    bool is_table = node->op == GRAPH_EMBEDDING && graph->tensors[id].role == GRAPH_PARAMETER;
    bool moves = node->op == GRAPH_MOVE || node->op == GRAPH_REARRANGE;
    return is_table || (moves && all > out) ? out / all : 1;
}

/* The share of the tensor in its view: some experts, a slice. */
static double share_in_view(const struct graph *graph, const struct graph_node *node, tensor_id id,
                            tensor_id root)
{
    double shown = graph_elements(&graph->tensors[id]);
    double all = graph_elements(&graph->tensors[root]);
    if (graph->tensors[root].role == GRAPH_PARAMETER)
        return node->weight_fraction;
    return shown < all ? shown / all : 1;
}

struct uses {
    bool goes_out, inside, outside;
    double share; /* read inside the subgraph: slices add up to at most the whole */
};

static void add_inner_uses(const struct graph *graph, bool in_place, const struct graph_node *node,
                           tensor_id root, bool *seen, struct uses *uses, double *left)
{
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id id = graph_inputs(graph, node)[i];
        if (graphs_view_base(graph, in_place, id) != root || (id != root && seen[id]))
            continue;
        seen[id] = true;
        double shown = share_in_view(graph, node, id, root), taken = shown < *left ? shown : *left;
        *left -= taken;
        uses->share += taken * share_read_of_view(graph, node, id);
    }
}

static struct uses uses_of(const struct partition *partition, bool in_place, tensor_id root,
                           int index, const int *owner)
{
    const struct graph *graph = partition->graph;
    struct uses uses = {0};
    bool seen[MOST_TENSORS] = {false};
    double left = 1;
    for (size_t v = 0; v < graph->tensor_count; v++)
        uses.goes_out |=
            graph->tensors[v].is_output && graphs_view_base(graph, in_place, (tensor_id)v) == root;
    for (size_t n = 0; n < graph->node_count; n++) {
        if (!reads(graph, in_place, &graph->nodes[n], root))
            continue;
        *(owner[n] == index ? &uses.inside : &uses.outside) = true;
        if (owner[n] == index)
            add_inner_uses(graph, in_place, &graph->nodes[n], root, seen, &uses, &left);
    }
    return uses;
}

/* The inputs and outputs of one subgraph: checks each tensor of the graph. */
static void check_border(const struct partition *partition, bool in_place, size_t index,
                         const int *owner)
{
    const struct graph *graph = partition->graph;
    const struct subgraph *subgraph = &partition->subgraphs[index];
    double in = 0, out = 0, weights = 0;
    assert_true(graph->tensor_count <= MOST_TENSORS);
    for (size_t t = 0; t < graph->tensor_count; t++) {
        if (graphs_view_base(graph, in_place, (tensor_id)t) != (tensor_id)t)
            continue;
        struct uses uses = uses_of(partition, in_place, (tensor_id)t, (int)index, owner);
        node_id producer = graph->tensors[t].producer;
        bool is_mine = producer >= 0 && owner[producer] == (int)index;
        bool is_unread = !uses.inside && !uses.outside;
        if (is_mine && (uses.goes_out || uses.outside || is_unread))
            out += tensor_bytes(graph, (tensor_id)t);
        if (!is_mine && uses.inside)
            *(graph->tensors[t].role == GRAPH_PARAMETER ? &weights : &in) +=
                uses.share * tensor_bytes(graph, (tensor_id)t);
    }
    assert_near(weighted_bytes(&subgraph->cost.in), in, 1e-6 * in);
    assert_near(weighted_bytes(&subgraph->cost.out), out, 1e-6 * out);
    assert_near(weighted_bytes(&subgraph->cost.weights), weights, 1e-6 * weights);
}

static void check_edges(const struct partition *partition, bool in_place, const int *owner)
{
    const struct graph *graph = partition->graph;
    bool expected[MOST_NODES][MOST_NODES] = {{false}};
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t m = 0; m < graph->node_count; m++)
            for (size_t k = 0; k < graph->nodes[m].output_count; k++)
                if (owner[n] >= 0 && owner[m] >= 0 && owner[n] != owner[m] &&
                    reads(graph, in_place, &graph->nodes[n],
                          graph_outputs(graph, &graph->nodes[m])[k]))
                    expected[owner[m]][owner[n]] = true;
    for (size_t i = 0; i < partition->count; i++) {
        uint32_t level = 0;
        for (size_t k = 0; k < partition->count; k++) {
            assert_int_equal(has_edge(partition, k, i), expected[k][i]);
            if (!expected[k][i])
                continue;
            assert_true(k < i); /* in topological order */
            if (partition->subgraphs[k].level + 1 > level)
                level = partition->subgraphs[k].level + 1;
        }
        assert_int_equal(partition->subgraphs[i].level, level);
    }
}

/* A tensor inside a fused subgraph has one reader, unless all of them are in the subgraph. */
static void check_inner(const struct partition *partition, bool in_place, const int *owner)
{
    const struct graph *graph = partition->graph;
    for (size_t t = 0; t < graph->tensor_count; t++) {
        tensor_id root = graphs_view_base(graph, in_place, (tensor_id)t);
        node_id producer = graph->tensors[root].producer;
        if (!graph->tensors[t].is_output || producer < 0)
            continue;
        for (size_t n = 0; n < graph->node_count; n++) /* an output ends its chain */
            if (reads(graph, in_place, &graph->nodes[n], root))
                assert_true(owner[n] != owner[producer]);
    }
}

static void check_partition(const struct graph *graph, enum partition_fusion fusion)
{
    struct partition partition = make_partition(graph, fusion);
    bool in_place = fusion != PARTITION_PLAIN;
    int owner[MOST_NODES];
    struct graph_cost all = graph_cost_total(graph);
    for (size_t n = 0; n < graph->node_count; n++) {
        owner[n] = owner_of(&partition, (node_id)n);
        assert_int_equal(owner[n] < 0, graphs_is_view(graph, &graph->nodes[n], in_place));
    }
    if (fusion == PARTITION_PLAIN)
        for (size_t i = 0; i < partition.count; i++)
            assert_int_equal(partition.subgraphs[i].node_count, 1);
    for (size_t i = 0; i < partition.count; i++)
        check_border(&partition, in_place, i, owner);
    check_edges(&partition, in_place, owner);
    if (fusion != PARTITION_BY_COMPONENT) /* where an output may be read inside too */
        check_inner(&partition, in_place, owner);
    assert_near(partition.total.macs, all.macs, 1e-9 * all.macs);
    assert_near(partition.total.elementwise, all.elementwise, 1e-9 * all.elementwise);
    partition_release(&partition);
}

static void test_partition_invariants_on_random_graphs(void **state)
{
    (void)state;
    struct rng rng = {1};
    for (int i = test_rounds(GRAPHS); i > 0; i--) {
        struct graph graph;
        graphs_random(&rng, 1 + rng_below(&rng, MOST_NODES - 1), &graph);
        check_partition(&graph, PARTITION_PLAIN);
        check_partition(&graph, PARTITION_FUSED);
        for (size_t n = 0; n < graph.node_count; n++) {
            graph.nodes[n].component = (enum decoder_component)rng_below(&rng, 4);
            graph.nodes[n].layer = (int32_t)n / 20;
        }
        check_partition(&graph, PARTITION_BY_COMPONENT);
        graph_release(&graph);
    }
}

static void test_fusion_reduces_kernels_and_bytes(void **state)
{
    (void)state;
    struct rng rng = {2};
    int fewer = 0;
    for (int i = test_rounds(GRAPHS); i > 0; i--) {
        struct graph graph;
        graphs_random(&rng, 40, &graph);
        struct partition plain = make_partition(&graph, PARTITION_PLAIN),
                         fused = make_partition(&graph, PARTITION_FUSED);
        assert_true(fused.count <= plain.count);
        fewer += fused.count < plain.count;
        /* A slice of the KV cache that is not copied counts as the KV cache for every reader. */
        assert_true(graph_bytes(&fused.total.in, &ONE) <= graph_bytes(&plain.total.in, &ONE));
        assert_true(weighted_bytes(&fused.total.out) <= weighted_bytes(&plain.total.out));
        double inside = 0; /* tensors that are read in place are in no subgraph */
        for (size_t k = 0; k < plain.count; k++)
            assert_near(weighted_bytes(&plain.subgraphs[k].inside), 0, 0);
        for (size_t n = 0; n < graph.node_count; n++)
            for (size_t k = 0; k < graph.nodes[n].output_count; k++)
                if (graph.nodes[n].op == GRAPH_REARRANGE)
                    inside += tensor_bytes(&graph, graph_outputs(&graph, &graph.nodes[n])[k]);
        for (size_t k = 0; k < fused.count; k++)
            inside += weighted_bytes(&fused.subgraphs[k].inside);
        assert_true(inside >= weighted_bytes(&plain.total.out) - weighted_bytes(&fused.total.out));
        partition_release(&plain);
        partition_release(&fused);
        graph_release(&graph);
    }
    assert_true(fewer > test_rounds(GRAPHS) * 9 / 10);
}

static void test_partition_of_100000_nodes(void **state)
{
    (void)state;
    struct rng rng = {3};
    struct graph graph;
    graphs_random(&rng, (uint32_t)test_rounds(100000), &graph);
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    struct graph_cost all = graph_cost_total(&graph);
    assert_near(partition.total.macs, all.macs, 1e-9 * all.macs);
    for (size_t i = 0; i < partition.before_count; i++)
        assert_true(partition.before[i] < partition.count);
    partition_release(&partition);
    graph_release(&graph);
}

/* ---- identical subgraphs ---- */

static bool same_amount(const struct graph_amount *a, const struct graph_amount *b)
{
    return a->weights == b->weights && a->activations == b->activations && a->cached == b->cached &&
           a->stored_weights == b->stored_weights && a->stored_bytes == b->stored_bytes &&
           a->fixed_bytes == b->fixed_bytes;
}

static bool same_cost(const struct subgraph *a, const struct subgraph *b)
{
    return a->cost.macs == b->cost.macs && a->cost.elementwise == b->cost.elementwise &&
           same_amount(&a->cost.in, &b->cost.in) && same_amount(&a->cost.out, &b->cost.out) &&
           same_amount(&a->cost.weights, &b->cost.weights) && a->outputs == b->outputs &&
           a->rows == b->rows && a->steps == b->steps && a->all_reduced == b->all_reduced &&
           a->all_gathered == b->all_gathered && a->op == b->op && a->is_sharded == b->is_sharded &&
           a->is_row_parallel == b->is_row_parallel;
}

static void check_unique(const struct partition *partition)
{
    for (size_t i = 0; i < partition->count; i++) {
        uint32_t kind = partition->unique_of[i];
        assert_true(kind < partition->unique_count);
        assert_true(partition->unique[kind] <= i);
        assert_int_equal(partition->unique_of[partition->unique[kind]], kind);
        assert_true(
            same_cost(&partition->subgraphs[i], &partition->subgraphs[partition->unique[kind]]));
    }
}

static void test_identical_subgraphs_have_the_same_cost(void **state)
{
    (void)state;
    struct rng rng = {11};
    for (int i = test_rounds(GRAPHS); i > 0; i--) {
        struct graph graph;
        graphs_random(&rng, 1 + rng_below(&rng, MOST_NODES), &graph);
        struct partition partition =
            make_partition(&graph, i % 2 ? PARTITION_FUSED : PARTITION_PLAIN);
        check_unique(&partition);
        partition_release(&partition);
        graph_release(&graph);
    }
}

/* Sixteen identical layers, and the nodes before and after them. */
static void test_layers_of_a_decoder_are_identical(void **state)
{
    (void)state;
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options setting = {.phase = GRAPH_DECODE, .context = 1000};
    assert_int_equal(zoo_build(zoo_find("llama-3.2-1b"), &setting, &graph, &why), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    check_unique(&partition);
    assert_true(partition.count > 16 * 6);
    assert_true(partition.unique_count < 16);
    assert_near(partition.parameters, graph_parameters(&graph), 0);
    partition_release(&partition);
    graph_release(&graph);
}

/* ONNX Runtime on a CPU: the same two ReorderOutput and one ReorderInput as in the model that
 * version 1.31 optimizes and writes. The per-channel constant is folded into its convolution. */
static void test_convolution_layout_changes_match_onnx_runtime(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double reordered;
        bool is_folded;
    } EXPECTED[] = {{"stem", 0, false},    {"bias", 0, true},     {"relu", 0, true},
                    {"half", 8192, false}, {"conv", 8192, false}, {"add", 0, false},
                    {"deep", 0, false},    {"pool", 0, false},    {"fc", 32, false}};
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "layouts", &why);
    struct build_conv wide = {.channels = 32, .kernel = 3, .pad = 1}, deep = wide;
    deep.groups = -1;
    tensor_id image = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 3, 16, 16});
    tensor_id bias = build_tensor(&b, GRAPH_CONSTANT, "b", 4, (int64_t[]){1, 32, 1, 1});
    tensor_id half = build_tensor(&b, GRAPH_CONSTANT, "h", 1, (int64_t[]){1});
    tensor_id x = build_binary(&b, GRAPH_ADD, "bias", build_conv(&b, "stem", image, wide), bias);
    x = build_op(&b, GRAPH_RELU, "relu", x);
    tensor_id y = build_conv(&b, "conv", build_binary(&b, GRAPH_MUL, "half", x, half), wide);
    x = build_conv(&b, "deep", build_binary(&b, GRAPH_ADD, "add", x, y), deep);
    x = build_flatten(&b, "flatten", build_global_pool(&b, "pool", x));
    build_output(&b, build_linear(&b, "fc", x, 10, false));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_PLAIN);
    assert_int_equal(partition.count, sizeof EXPECTED / sizeof *EXPECTED);
    for (size_t i = 0; i < partition.count; i++) {
        const struct subgraph *one = &partition.subgraphs[i];
        assert_string_equal(one->name, EXPECTED[i].name);
        assert_near(one->shape.reordered, EXPECTED[i].reordered, 0);
        assert_int_equal(one->shape.is_folded, EXPECTED[i].is_folded);
    }
    partition_release(&partition);
    graph_release(&graph);
}

static void assert_folded(const struct partition *partition, const char *name, bool expected)
{
    for (size_t i = 0; i < partition->count; i++)
        if (!strcmp(partition->subgraphs[i].name, name)) {
            assert_int_equal(partition->subgraphs[i].shape.is_folded, expected);
            return;
        }
    fail_msg("no subgraph %s", name);
}

/* Into the convolution before it, unless another operator reads that result or there is none, as in DenseNet. */
static void test_elementwise_ops_are_folded_into_the_convolution_before_them(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "folded", &why);
    struct build_conv wide = {.channels = 32, .kernel = 1};
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 32, 8, 8});
    tensor_id scale = build_tensor(&b, GRAPH_CONSTANT, "s", 3, (int64_t[]){32, 1, 1});
    tensor_id y = build_op(&b, GRAPH_RELU, "first_relu", build_batch_norm(&b, "first_bn", x));
    y = build_batch_norm(&b, "bn", build_conv(&b, "conv", y, wide));
    y = build_op(&b, GRAPH_RELU, "relu", build_binary(&b, GRAPH_MUL, "scale", y, scale));
    tensor_id twice = build_conv(&b, "twice", y, wide);
    y = build_op(&b, GRAPH_RELU, "read_twice", twice);
    y = build_op(&b, GRAPH_RELU, "of_sum", build_binary(&b, GRAPH_ADD, "sum", twice, y));
    y = build_op(&b, GRAPH_RELU, "of_residual",
                 build_binary(&b, GRAPH_ADD, "residual", y, build_conv(&b, "last", y, wide)));
    build_output(&b, y);
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_PLAIN);
    static const struct {
        const char *name;
        bool is_folded;
    } EXPECTED[] = {{"first_bn", false}, {"first_relu", false}, {"bn", true},
                    {"scale", true},     {"relu", true},        {"read_twice", false},
                    {"of_sum", false},   {"residual", false},   {"of_residual", true}};
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++)
        assert_folded(&partition, EXPECTED[i].name, EXPECTED[i].is_folded);
    partition_release(&partition);
    graph_release(&graph);
}

/* Two decode steps differ only in the keys that attention reads. */
static void test_decode_steps_differ_only_in_attention(void **state)
{
    (void)state;
    struct graph graphs[2] = {0};
    struct partition steps[2];
    struct error why = {0};
    for (int i = 0; i < 2; i++) {
        struct graph_options setting = {.phase = GRAPH_DECODE, .context = 1000 + i};
        assert_int_equal(zoo_build(zoo_find("llama-3.2-1b"), &setting, &graphs[i], &why), ERR_OK);
        steps[i] = make_partition(&graphs[i], PARTITION_FUSED);
    }
    assert_null(steps[1].repeats);
    partition_continue(&steps[1], &steps[0]);
    for (size_t k = 0; k < steps[1].unique_count; k++)
        assert_int_equal(steps[1].repeats[k],
                         steps[1].subgraphs[steps[1].unique[k]].op != GRAPH_ATTENTION);
    for (int i = 0; i < 2; i++) {
        partition_release(&steps[i]);
        graph_release(&graphs[i]);
    }
}

/* Each is folded into its predecessor, found without following the chain back. */
static void test_long_chain_of_folded_nodes(void **state)
{
    (void)state;
    enum { NODES = 100000 };
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "chain", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 32, 2, 2});
    tensor_id scale = build_tensor(&b, GRAPH_CONSTANT, "s", 3, (int64_t[]){32, 1, 1});
    x = build_conv(&b, "conv", x, (struct build_conv){.channels = 32, .kernel = 1});
    for (int i = 0; i < NODES; i++)
        x = build_binary(&b, GRAPH_MUL, "scale", x, scale);
    build_output(&b, x);
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_PLAIN);
    assert_int_equal(partition.count, NODES + 1);
    assert_true(partition.subgraphs[NODES].shape.is_folded);
    partition_release(&partition);
    graph_release(&graph);
}

static void test_empty_graph(void **state)
{
    (void)state;
    struct graph graph = {0};
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    assert_int_equal(partition.count, 0);
    partition_release(&partition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual_block),
        cmocka_unit_test(test_decoder_layer),
        cmocka_unit_test(test_decomposed_attention_and_gelu_are_fused),
        cmocka_unit_test(test_decomposed_swish_and_norm_are_fused),
        cmocka_unit_test(test_rearranged_tensors_are_read_in_place),
        cmocka_unit_test(test_attention_that_replaces_nan),
        cmocka_unit_test(test_decomposed_rotary_embedding_is_fused),
        cmocka_unit_test(test_casts_are_fused),
        cmocka_unit_test(test_a_rolled_tensor_is_read_in_place),
        cmocka_unit_test(test_rearranged_outputs_are_written),
        cmocka_unit_test(test_tensors_read_twice_or_output_are_not_fused),
        cmocka_unit_test(test_an_elementwise_op_of_another_size_is_not_fused),
        cmocka_unit_test(test_siblings_run_before_their_readers),
        cmocka_unit_test(test_experts_are_not_siblings_of_their_router),
        cmocka_unit_test(test_partition_invariants_on_random_graphs),
        cmocka_unit_test(test_fusion_reduces_kernels_and_bytes),
        cmocka_unit_test(test_partition_of_100000_nodes),
        cmocka_unit_test(test_identical_subgraphs_have_the_same_cost),
        cmocka_unit_test(test_layers_of_a_decoder_are_identical),
        cmocka_unit_test(test_convolution_layout_changes_match_onnx_runtime),
        cmocka_unit_test(test_elementwise_ops_are_folded_into_the_convolution_before_them),
        cmocka_unit_test(test_decode_steps_differ_only_in_attention),
        cmocka_unit_test(test_long_chain_of_folded_nodes),
        cmocka_unit_test(test_empty_graph),
    };
    return RUN_TESTS(tests);
}
