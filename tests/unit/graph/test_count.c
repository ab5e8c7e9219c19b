/* The cost of nodes, against loops that do the work one multiplication at a time, on many small shapes. */
#include <math.h>

#include "graph/build.h"
#include "graph/count.h"
#include "support/unit.h"

/* A fixed seed, so that failures are reproducible. */
static uint32_t seed = 1;

static int draw(int min, int max)
{
    seed = seed * 1664525u + 1013904223u;
    return min + (int)((seed >> 8) % (uint32_t)(max - min + 1));
}

static struct graph graph;
static struct error why;

static struct build begin(void)
{
    graph_release(&graph);
    return build_begin(&graph, "model", &why);
}

static struct graph_cost last_cost(struct build *b)
{
    if (build_end(b) != ERR_OK) {
        print_error("%s\n", why.text);
        fail();
    }
    return graph_node_cost(&graph, &graph.nodes[graph.node_count - 1]);
}

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    return 0;
}

/* ---- convolutions ---- */

struct conv_shape {
    int batch, in, out, groups, size[2], kernel[2], stride, pad[2], dilation;
    bool has_bias;
};

static struct conv_shape draw_shape(void)
{
    struct conv_shape s = {
        .batch = draw(1, 2), .groups = draw(1, 3), .stride = draw(1, 3), .dilation = draw(1, 2)};
    s.in = s.groups * draw(1, 3);
    s.out = s.groups * draw(1, 3);
    if (draw(0, 3) == 0) { /* depthwise */
        s.groups = s.in;
        s.out = s.in * draw(1, 2);
    }
    for (int i = 0; i < 2; i++) {
        s.kernel[i] = draw(1, 3);
        s.pad[i] = draw(0, 2);
        s.size[i] = draw(6, 11);
    }
    s.has_bias = draw(0, 1);
    return s;
}

static tensor_id convolve(struct build *b, const struct conv_shape *s)
{
    int64_t dims[] = {s->batch, s->in, s->size[0], s->size[1]};
    tensor_id x = build_input(b, "x", GRAPH_FLOAT, 4, dims);
    return build_conv(b, "conv", x,
                      (struct build_conv){.channels = s->out,
                                          .kernel = s->kernel[0],
                                          .kernel_w = s->kernel[1],
                                          .stride = s->stride,
                                          .pad = s->pad[0],
                                          .pad_w = s->pad[1],
                                          .dilation = s->dilation,
                                          .groups = s->groups,
                                          .has_bias = s->has_bias});
}

/* As the ONNX reader adds it, with an output that covers `reach`. */
static tensor_id convolve_transposed(struct build *b, const struct conv_shape *s,
                                     const int reach[2])
{
    tensor_id inputs[] = {
        build_input(b, "x", GRAPH_FLOAT, DIMS(s->batch, s->in, s->size[0], s->size[1])),
        build_tensor(b, GRAPH_PARAMETER, "weight",
                     DIMS(s->in, s->out / s->groups, s->kernel[0], s->kernel[1])),
        build_tensor(b, GRAPH_PARAMETER, "bias", DIMS(s->out))};
    struct graph_node node = {.op = GRAPH_CONV_TRANSPOSE, .name = "conv"};
    struct graph_window window = {.rank = 2, .groups = s->groups};
    for (int i = 0; i < 2; i++) {
        window.kernel[i] = s->kernel[i];
        window.stride[i] = s->stride;
        window.dilation[i] = s->dilation;
    }
    node.as.window = window;
    return build_node(b, &node, inputs, s->has_bias ? 3 : 2,
                      DIMS(s->batch, s->out, reach[0], reach[1]));
}

/* Positions of a filter along one dimension: shifted by the stride, entirely inside the padded input. */
static int count_positions(const struct conv_shape *s, int side)
{
    int count = 0, padded = s->size[side] + 2 * s->pad[side];
    for (int first = 0; first + s->dilation * (s->kernel[side] - 1) < padded; first += s->stride)
        count++;
    return count;
}

static double multiply(const struct conv_shape *s)
{
    double done = 0;
    for (int sample = 0; sample < s->batch; sample++)
        for (int out = 0; out < s->out; out++)
            for (int in = 0; in < s->in; in++) {
                if (in / (s->in / s->groups) != out / (s->out / s->groups))
                    continue; /* of another group */
                for (int y = 0; y < count_positions(s, 0); y++)
                    for (int x = 0; x < count_positions(s, 1); x++)
                        for (int tap = 0; tap < s->kernel[0] * s->kernel[1]; tap++)
                            done++;
            }
    return done;
}

static void test_convolutions_against_loops(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct conv_shape s = draw_shape();
        struct build b = begin();
        (void)convolve(&b, &s);
        struct graph_cost cost = last_cost(&b);
        double out = (double)s.batch * s.out * count_positions(&s, 0) * count_positions(&s, 1);
        double weights = (double)s.out * (s.in / s.groups) * s.kernel[0] * s.kernel[1];
        assert_near(cost.macs, multiply(&s), 0);
        assert_near(cost.out.activations, out, 0);
        assert_near(cost.in.activations, (double)s.batch * s.in * s.size[0] * s.size[1], 0);
        assert_near(cost.elementwise, s.has_bias ? out : 0, 0);
        assert_near(cost.weights.weights, weights + (s.has_bias ? s.out : 0), 0);
        assert_near(graph_parameters(&graph), weights + (s.has_bias ? s.out : 0), 0);
    }
}

/* A transposed convolution adds each input element, times each weight, to the output. */
static void extend_output(const struct conv_shape *s, int y, int x, int reach[2])
{
    for (int ky = 0; ky < s->kernel[0]; ky++)
        for (int kx = 0; kx < s->kernel[1]; kx++) {
            int at_y = y * s->stride + ky * s->dilation + 1;
            int at_x = x * s->stride + kx * s->dilation + 1;
            reach[0] = at_y > reach[0] ? at_y : reach[0];
            reach[1] = at_x > reach[1] ? at_x : reach[1];
        }
}

static double scatter(const struct conv_shape *s, int reach[2])
{
    double done = 0;
    reach[0] = reach[1] = 0;
    for (int sample = 0; sample < s->batch; sample++)
        for (int in = 0; in < s->in; in++)
            for (int out = 0; out < s->out; out++) {
                if (in / (s->in / s->groups) != out / (s->out / s->groups))
                    continue;
                for (int y = 0; y < s->size[0]; y++)
                    for (int x = 0; x < s->size[1]; x++) {
                        extend_output(s, y, x, reach);
                        for (int k = 0; k < s->kernel[0] * s->kernel[1]; k++)
                            done++;
                    }
            }
    return done;
}

static void test_transposed_convolutions_against_loops(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct conv_shape s = draw_shape();
        int reach[2];
        double done = scatter(&s, reach);
        struct build b = begin();
        (void)convolve_transposed(&b, &s, reach);
        assert_near(last_cost(&b).macs, done, 0);
    }
}

static void test_convolutions_of_one_and_three_dimensions(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){2, 8, 100});
    (void)build_conv(&b, "c", x, (struct build_conv){.channels = 6, .kernel = 5, .stride = 2});
    assert_near(last_cost(&b).macs, 2.0 * 6 * 48 * 8 * 5, 0);
    b = begin();
    x = build_input(&b, "x", GRAPH_FLOAT, 5, (int64_t[]){1, 3, 8, 9, 10});
    (void)build_conv(&b, "c", x, (struct build_conv){.channels = 4, .kernel = 3, .pad = 1});
    assert_near(last_cost(&b).macs, 4.0 * 8 * 9 * 10 * 3 * 27, 0);
}

/* ---- matrices ---- */

static void test_linear_and_matmul(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){2, 5, 7});
    (void)build_linear(&b, "fc", x, 11, true);
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.macs, 2 * 5 * 7 * 11, 0);
    assert_near(cost.elementwise, 2 * 5 * 11, 0);
    assert_near(cost.weights.weights, 7 * 11 + 11, 0);
    b = begin();
    x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 5, 7});
    tensor_id y = build_input(&b, "y", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 7, 13});
    (void)build_matmul(&b, "mm", x, y);
    cost = last_cost(&b);
    assert_near(cost.macs, 2 * 3 * 5 * 7 * 13, 0);
    assert_near(cost.elementwise, 0, 0);
    assert_near(cost.in.activations, 2 * 3 * (5 * 7 + 7 * 13), 0);
    assert_near(cost.out.activations, 2 * 3 * 5 * 13, 0);
}

/* Grouped queries share K and V: fewer bytes, the same MACs. */
static double count_pairs(const struct graph_attention *a)
{
    double seen = 0;
    int64_t all = a->cross_tokens > 0 ? a->cross_tokens : a->cached + a->tokens;
    for (int64_t query = 0; query < a->tokens; query++) {
        int64_t sees = 0;
        for (int64_t key = 0; key < all; key++) {
            int64_t ahead = key - (a->cached + query);
            bool is_hidden = a->cross_tokens == 0 && a->is_causal && ahead > 0;
            bool is_far =
                a->cross_tokens == 0 && a->is_causal && a->window > 0 && -ahead >= a->window;
            sees += !is_hidden && !is_far;
        }
        /* A bidirectional window has that many tokens at any position. */
        if (!a->is_causal && a->cross_tokens == 0 && a->window > 0 && sees > a->window)
            sees = a->window;
        seen += (double)sees;
    }
    return seen;
}

static void check_attention(struct graph_attention a)
{
    struct build b = begin();
    int64_t keys = a.cross_tokens > 0 ? a.cross_tokens : a.tokens;
    int64_t dims_q[] = {a.sequences, a.tokens, a.heads * a.key_size};
    int64_t dims_k[] = {a.sequences, keys, a.heads_kv * a.key_size};
    int64_t dims_v[] = {a.sequences, keys, a.heads_kv * a.value_size};
    tensor_id q = build_input(&b, "q", GRAPH_FLOAT, 3, dims_q);
    tensor_id k = build_input(&b, "k", GRAPH_FLOAT, 3, dims_k);
    tensor_id v = build_input(&b, "v", GRAPH_FLOAT, 3, dims_v);
    tensor_id old_k = GRAPH_NONE, old_v = GRAPH_NONE;
    if (a.cached > 0) {
        dims_k[1] = dims_v[1] = a.cached;
        old_k = build_tensor(&b, GRAPH_CACHE, "old_k", 3, dims_k);
        old_v = build_tensor(&b, GRAPH_CACHE, "old_v", 3, dims_v);
    }
    (void)build_attention(&b, "attention", q, k, v, old_k, old_v, a);
    struct graph_cost cost = last_cost(&b);
    double seen = count_pairs(&a) * (double)(a.heads * a.sequences);
    double of_a_key = (double)(a.sequences * a.heads_kv * (a.key_size + a.value_size));
    assert_near(cost.macs, seen * (double)(a.key_size + a.value_size), 0);
    assert_near(cost.elementwise, 5 * seen, 0);
    assert_near(cost.in.cached, of_a_key * (double)a.cached, 0);
    assert_near(cost.in.activations,
                (double)(a.sequences * a.tokens * a.heads * a.key_size) + of_a_key * (double)keys,
                0);
    assert_near(cost.out.activations, (double)(a.sequences * a.tokens * a.heads * a.value_size), 0);
}

static void test_attention_against_every_pair(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct graph_attention a = {.heads_kv = draw(1, 3),
                                    .key_size = draw(1, 5),
                                    .value_size = draw(1, 5),
                                    .tokens = draw(1, 20),
                                    .sequences = draw(1, 3),
                                    .is_causal = draw(0, 2) > 0};
        a.heads = a.heads_kv * draw(1, 3);
        if (draw(0, 3) == 0)
            a.cross_tokens = draw(1, 30);
        else if (draw(0, 1))
            a.cached = draw(1, 20);
        if (draw(0, 1))
            a.window = draw(1, 25);
        check_attention(a);
    }
}

/* ---- recurrent layers ---- */

static double recurrent_macs(int steps, int batch, int gates, int features, int hidden)
{
    double done = 0;
    for (int step = 0; step < steps; step++)
        for (int sample = 0; sample < batch; sample++)
            for (int gate = 0; gate < gates * hidden; gate++)
                for (int number = 0; number < features + hidden; number++)
                    done++;
    return done;
}

static void test_recurrent_layers_against_loops(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        int steps = draw(1, 9), batch = draw(1, 4), features = draw(1, 7), hidden = draw(1, 6);
        static const struct {
            enum graph_op op;
            int gates, elementwise;
        } CELLS[] = {{GRAPH_LSTM, 4, 14}, {GRAPH_GRU, 3, 12}, {GRAPH_RNN, 1, 4}};
        int cell = draw(0, 2), gates = CELLS[cell].gates;
        bool both_ways = draw(0, 1);
        int ways = both_ways ? 2 : 1;
        struct build b = begin();
        tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){batch, steps, features});
        (void)build_recurrent(&b, CELLS[cell].op, "rnn", x, hidden, both_ways);
        struct graph_cost cost = last_cost(&b);
        assert_near(cost.macs, ways * recurrent_macs(steps, batch, gates, features, hidden), 0);
        assert_near(cost.elementwise,
                    (double)steps * batch * ways * hidden * CELLS[cell].elementwise, 0);
        assert_near(graph_parameters(&graph),
                    (double)ways * gates * hidden * (features + hidden + 2), 0);
        assert_near(cost.out.activations, (double)steps * batch * ways * hidden, 0);
    }
}

/* ---- the rest ---- */

/* As documented in docs/metrics.md. */
static void test_elementwise_operations_per_element(void **state)
{
    (void)state;
    static const struct {
        enum graph_op op;
        double operations;
    } TABLE[] = {
        {GRAPH_RELU, 1},    {GRAPH_CLIP, 2},         {GRAPH_LEAKY_RELU, 2},
        {GRAPH_SIGMOID, 4}, {GRAPH_TANH, 4},         {GRAPH_SILU, 4},
        {GRAPH_GELU, 8},    {GRAPH_HARD_SIGMOID, 4}, {GRAPH_HARD_SWISH, 5},
        {GRAPH_SOFTMAX, 5}, {GRAPH_UNARY, 1},        {GRAPH_ROTATION, 3},
        {GRAPH_MOVE, 0},    {GRAPH_CACHE_WRITE, 0},  {GRAPH_VIEW, 0},
        {GRAPH_UNKNOWN, 0},
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        struct build b = begin();
        tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){6, 7});
        (void)build_op(&b, TABLE[i].op, "op", x);
        struct graph_cost cost = last_cost(&b);
        assert_near(cost.elementwise, 42 * TABLE[i].operations, 0);
        assert_near(cost.macs, 0, 0);
        bool moves = TABLE[i].op != GRAPH_VIEW;
        assert_near(cost.in.activations, moves ? 42 : 0, 0);
        assert_near(cost.out.activations, moves ? 42 : 0, 0);
        assert_int_equal(graph.unknown_count, TABLE[i].op == GRAPH_UNKNOWN);
    }
}

static void test_norm_costs(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 4, 5});
    (void)build_batch_norm(&b, "bn", x);
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.elementwise, 2 * 120, 0);
    assert_near(cost.weights.weights, 4 * 3, 0); /* with the running means, which are not trained */
    assert_near(graph_parameters(&graph), 2 * 3, 0);
    static const struct {
        enum graph_op op;
        double operations, parameters;
    } NORMS[] = {{GRAPH_LAYER_NORM, 7, 10}, {GRAPH_RMS_NORM, 4, 5}, {GRAPH_GROUP_NORM, 7, 6}};
    for (size_t i = 0; i < 3; i++) {
        b = begin();
        x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 4, 5});
        (void)build_norm(&b, NORMS[i].op, "norm", x);
        assert_near(last_cost(&b).elementwise, NORMS[i].operations * 120, 0);
        assert_near(graph_parameters(&graph), NORMS[i].parameters, 0);
    }
}

static void test_pooling_costs(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 8, 8});
    (void)build_pool(&b, "pool", x,
                     (struct build_pool){.op = GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.elementwise, 2.0 * 3 * 4 * 4 * 9, 0);
    assert_near(cost.out.activations, 2.0 * 3 * 4 * 4, 0);
    b = begin();
    x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){2, 3, 8, 8});
    (void)build_global_pool(&b, "mean", x);
    cost = last_cost(&b);
    assert_near(cost.elementwise, 2.0 * 3 * 8 * 8, 0);
    assert_near(cost.out.activations, 6, 0);
}

/* Only the looked-up rows are read; token ids are 8-byte integers. */
static void test_embeddings_read_rows(void **state)
{
    (void)state;
    static const struct precision_widths HALF = {.weight = 2, .activation = 2, .cache = 2};
    struct build b = begin();
    tensor_id ids = build_input(&b, "ids", GRAPH_INT64, 2, (int64_t[]){3, 10});
    (void)build_embedding(&b, "table", ids, 50000, 64);
    struct graph_cost cost = last_cost(&b);
    assert_near(graph_parameters(&graph), 50000.0 * 64, 0);
    assert_near(cost.macs + cost.elementwise, 0, 0);
    assert_near(graph_bytes(&cost.weights, &HALF), 30.0 * 64 * 2, 0);
    assert_near(graph_bytes(&cost.in, &HALF), 30.0 * 8, 0);
    assert_near(graph_bytes(&cost.out, &HALF), 30.0 * 64 * 2, 0);
    b = begin();
    ids = build_input(&b, "ids", GRAPH_INT64, 2, (int64_t[]){3, 10});
    (void)build_embedding(&b, "types", ids, 2, 64); /* more tokens than rows */
    cost = last_cost(&b);
    assert_near(graph_bytes(&cost.weights, &HALF), 2.0 * 64 * 2, 0);
    assert_near(graph_bytes(&cost.out, &HALF), 30.0 * 64 * 2, 0);
}

static void test_slices_read_a_part(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){2, 10, 6});
    (void)build_move(&b, "slice", x, 3, (int64_t[]){2, 1, 6});
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.in.activations, 12, 0);
    assert_near(cost.out.activations, 12, 0);
    b = begin();
    x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){2, 10, 6});
    (void)build_move(&b, "enlarged", x, 3, (int64_t[]){2, 20, 6});
    cost = last_cost(&b);
    assert_near(cost.in.activations, 120, 0);
    assert_near(cost.out.activations, 240, 0);
    b = begin();
    x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){2, 10, 6});
    (void)build_concat(&b, "cat", 1, (tensor_id[]){x, x, x}, 3);
    cost = last_cost(&b);
    assert_near(cost.out.activations, 360, 0);
}

static void test_a_repeated_input_is_read_once(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 5});
    (void)build_binary(&b, GRAPH_MUL, "square", x, x);
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.in.activations, 20, 0);
    assert_near(cost.elementwise, 20, 0);
}

/* Of a mixture of experts, only the active ones are read. */
static void test_only_active_experts_are_read(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){4, 5});
    tensor_id experts = build_tensor(&b, GRAPH_PARAMETER, "experts", 2, (int64_t[]){8 * 3, 5});
    struct graph_node node = {.op = GRAPH_LINEAR, .name = "expert", .weight_fraction = 0.25};
    (void)build_node(&b, &node, (tensor_id[]){x, experts}, 2, 2, (int64_t[]){4, 3});
    struct graph_cost cost = last_cost(&b);
    assert_near(cost.weights.weights, 8 * 3 * 5 * 0.25, 0);
    assert_near(cost.macs, 4 * 3 * 5, 0);
}

/* ---- bytes and sums ---- */

static void test_bytes_follow_the_precision(void **state)
{
    (void)state;
    struct graph_amount amount = {.weights = 100,
                                  .activations = 10,
                                  .cached = 1000,
                                  .stored_weights = 64,
                                  .stored_bytes = 36,
                                  .fixed_bytes = 8};
    struct precision_widths widths = {.weight = 0.5, .activation = 2, .cache = 1};
    assert_near(graph_bytes(&amount, &widths), 50 + 20 + 1000 + 32 + 8, 0);
    widths.keeps_stored = true;
    assert_near(graph_bytes(&amount, &widths), 50 + 20 + 1000 + 36 + 8, 0);
}

static void test_the_total_is_the_sum_of_nodes(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 4, (int64_t[]){1, 3, 16, 16});
    x = build_conv(&b, "conv", x, (struct build_conv){.channels = 8, .kernel = 3, .pad = 1});
    x = build_op(&b, GRAPH_RELU, "relu", build_batch_norm(&b, "bn", x));
    x = build_flatten(&b, "flatten", build_global_pool(&b, "pool", x));
    build_output(&b, build_linear(&b, "fc", x, 10, true));
    (void)last_cost(&b);
    struct graph_cost sum = {0}, total = graph_cost_total(&graph);
    for (size_t i = 0; i < graph.node_count; i++) {
        struct graph_cost one = graph_node_cost(&graph, &graph.nodes[i]);
        sum.macs += one.macs;
        sum.elementwise += one.elementwise;
        sum.weights.weights += one.weights.weights;
        sum.in.activations += one.in.activations;
        sum.out.activations += one.out.activations;
    }
    assert_near(total.macs, sum.macs, 0);
    assert_near(total.macs, 8.0 * 256 * 27 + 80, 0);
    assert_near(total.elementwise, sum.elementwise, 0);
    assert_near(total.elementwise, 2048 * 2 + 2048 + 2048 + 10, 0);
    assert_near(total.weights.weights, sum.weights.weights, 0);
    assert_near(total.in.activations, sum.in.activations, 0);
    assert_near(total.out.activations, sum.out.activations, 0);
    assert_near(graph_flops(&total), 2 * total.macs + total.elementwise, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions_against_loops),
        cmocka_unit_test(test_transposed_convolutions_against_loops),
        cmocka_unit_test(test_convolutions_of_one_and_three_dimensions),
        cmocka_unit_test(test_linear_and_matmul),
        cmocka_unit_test(test_attention_against_every_pair),
        cmocka_unit_test(test_recurrent_layers_against_loops),
        cmocka_unit_test(test_elementwise_operations_per_element),
        cmocka_unit_test(test_norm_costs),
        cmocka_unit_test(test_pooling_costs),
        cmocka_unit_test(test_embeddings_read_rows),
        cmocka_unit_test(test_slices_read_a_part),
        cmocka_unit_test(test_a_repeated_input_is_read_once),
        cmocka_unit_test(test_only_active_experts_are_read),
        cmocka_unit_test(test_bytes_follow_the_precision),
        cmocka_unit_test(test_the_total_is_the_sum_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
