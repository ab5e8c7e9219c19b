/* Liveness of tensors: against a run over the graph that allocates, and frees after the last use. */
#include "estimate/pass_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/reader.h"
#include "support/devices.h"
#include "support/graphs.h"
#include "support/unit.h"

enum { GRAPHS = 300, MOST_NODES = 50 };

static struct partition make_partition(const struct graph *graph, enum partition_fusion fusion)
{
    struct partition partition;
    partition_make(graph, fusion, &partition);
    return partition;
}

/* On that many devices with round figures, with another capacity if given. */
static struct pass_estimate estimate(const struct partition *partition,
                                     struct estimate_config config, const double *capacity)
{
    struct device device;
    struct pass_estimate out;
    struct error why = {0};
    device_round(&device);
    if (capacity)
        device.hardware.memories[0].capacity_bytes.value = *capacity;
    assert_int_equal(
        pass_estimate_make(partition, &device.hardware, &config, NULL, true, &out, &why), ERR_OK);
    return out;
}

/* ---- reference simulation ---- */

struct needs {
    bool is_stored; /* it is an input or output of a subgraph */
    int first, last;
};

static bool reads(const struct graph *graph, bool in_place, const struct graph_node *node,
                  tensor_id root)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (graphs_view_base(graph, in_place, graph_inputs(graph, node)[i]) == root)
            return true;
    return false;
}

static bool is_graph_output(const struct graph *graph, bool in_place, tensor_id root)
{
    for (size_t t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].is_output && graphs_view_base(graph, in_place, (tensor_id)t) == root)
            return true;
    return false;
}

/* The steps during which a tensor must be in memory, by checking each node of each subgraph. */
static struct needs needs_of(const struct partition *partition, bool in_place, tensor_id root)
{
    const struct graph *graph = partition->graph;
    node_id producer = graph->tensors[root].producer;
    int made = 0, last_read = -1;
    bool is_read_elsewhere = false;
    for (size_t s = 0; s < partition->count; s++)
        for (uint32_t k = 0; k < partition->subgraphs[s].node_count; k++)
            if (partition->nodes[partition->subgraphs[s].first_node + k] == producer)
                made = (int)s;
    for (size_t s = 0; s < partition->count; s++)
        for (uint32_t k = 0; k < partition->subgraphs[s].node_count; k++) {
            node_id id = partition->nodes[partition->subgraphs[s].first_node + k];
            if (!reads(graph, in_place, &graph->nodes[id], root))
                continue;
            last_read = (int)s;
            is_read_elsewhere |= producer < 0 || (int)s != made;
        }
    bool leaves = is_graph_output(graph, in_place, root);
    bool is_unread = last_read < 0 && producer >= 0; /* it is written nevertheless */
    int last = last_read > made ? last_read : made;
    return (struct needs){.is_stored = leaves || is_read_elsewhere || is_unread,
                          .first = made,
                          .last = leaves ? (int)partition->count - 1 : last};
}

static bool is_activation(const struct graph_tensor *tensor)
{
    return tensor->role == GRAPH_ACTIVATION || tensor->role == GRAPH_INPUT;
}

static double live_bytes_at(const struct partition *partition, bool in_place,
                            const struct precision_widths *widths, int step)
{
    const struct graph *graph = partition->graph;
    double bytes = 0;
    for (size_t t = 0; t < graph->tensor_count; t++) {
        if (!is_activation(&graph->tensors[t]) ||
            graphs_view_base(graph, in_place, (tensor_id)t) != (tensor_id)t)
            continue;
        struct needs needs = needs_of(partition, in_place, (tensor_id)t);
        struct graph_amount amount = graph_tensor_amount(&graph->tensors[t]);
        if (needs.is_stored && needs.first <= step && step <= needs.last)
            bytes += graph_bytes(&amount, widths);
    }
    return bytes;
}

static void check_timeline(const struct graph *graph, enum partition_fusion fusion,
                           enum precision precision)
{
    struct precision_widths widths = precision_widths(precision);
    struct partition partition = make_partition(graph, fusion);
    struct pass_estimate pass =
        estimate(&partition, (struct estimate_config){.precision = precision}, NULL);
    struct estimate_memory memory = pass.memory;
    double peak = 0, weights = 0, cache = 0;
    for (size_t i = 0; i < partition.count; i++) {
        double alive = live_bytes_at(&partition, fusion == PARTITION_FUSED, &widths, (int)i);
        assert_near(memory.timeline[i], alive, 1e-6);
        peak = alive > peak ? alive : peak;
    }
    for (size_t t = 0; t < graph->tensor_count; t++) {
        struct graph_amount amount = graph_tensor_amount(&graph->tensors[t]);
        if (graph->tensors[t].role == GRAPH_PARAMETER)
            weights += graph_bytes(&amount, &widths);
        if (graph->tensors[t].role == GRAPH_CACHE)
            cache += graph_bytes(&amount, &widths);
    }
    assert_near(memory.activations_peak, peak, 1e-6);
    assert_near(memory.weights, weights, 1e-6);
    assert_near(memory.kv_cache, cache, 1e-6);
    assert_near(memory.total_peak, peak + weights + cache, 1e-6);
    if (partition.count > 0)
        assert_near(memory.timeline[memory.peak_subgraph], peak, 1e-6);
    pass_estimate_release(&pass);
    partition_release(&partition);
}

static void memory_timeline_matches_an_allocator_simulation(void **state)
{
    (void)state;
    struct rng rng = {5};
    for (int i = test_rounds(GRAPHS); i > 0; i--) {
        struct graph graph;
        graphs_random(&rng, 1 + rng_below(&rng, MOST_NODES - 1), &graph);
        check_timeline(&graph, PARTITION_PLAIN, PRECISION_FP32);
        check_timeline(&graph, PARTITION_FUSED, PRECISION_FP16);
        graph_release(&graph);
    }
}

/* ---- by hand ---- */

/* A residual keeps its input alive over the branch; a chain of the same nodes does not. */
static void a_residual_stays_allocated_over_the_branch(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "residual", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){1, 1000});
    tensor_id y = build_op(&b, GRAPH_SOFTMAX, "a", x);
    y = build_view(&b, "view", y, 3, (int64_t[]){1, 10, 100});
    y = build_view(&b, "back", y, 2, (int64_t[]){1, 1000});
    tensor_id kept = y;
    y = build_op(&b, GRAPH_SOFTMAX, "b", y);
    y = build_op(&b, GRAPH_SOFTMAX, "c", y);
    build_output(&b, build_binary(&b, GRAPH_ADD, "sum", y, kept));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_PLAIN);
    struct estimate_config config = {.precision = PRECISION_FP32};
    struct pass_estimate pass = estimate(&partition, config, NULL);
    struct estimate_memory memory = pass.memory;
    const double expected[] = {8000, 8000, 12000, 12000}; /* x+a, a+b, a+b+c, a+c+sum */
    assert_int_equal(partition.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_near(memory.timeline[i], expected[i], 0);
    assert_int_equal(memory.peak_subgraph, 2);
    assert_true(memory.fits);
    assert_near(memory.largest_batch, 1333333, 0); /* 16 GB over 12 000 bytes */
    pass_estimate_release(&pass);
    pass = estimate(&partition, config, &(double){11999});
    assert_false(pass.memory.fits);
    assert_near(pass.memory.largest_batch, 0, 0);
    pass_estimate_release(&pass);
    pass = estimate(&partition, config, &(double){UNKNOWN});
    assert_true(pass.memory.fits);
    assert_false(is_known(pass.memory.largest_batch));
    pass_estimate_release(&pass);
    partition_release(&partition);
    graph_release(&graph);
}

/* Weights that two nodes read count once, in their stored precision where that is kept. */
static void shared_weights_count_once_in_their_stored_precision(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "tied", &why);
    tensor_id ids = build_input(&b, "ids", GRAPH_INT64, 2, (int64_t[]){1, 4});
    tensor_id table = build_tensor(&b, GRAPH_PARAMETER, "table", 2, (int64_t[]){100, 8});
    tensor_id x = build_embedding_with(&b, "embed", ids, table);
    build_output(&b, build_linear_with(&b, "head", x, table, GRAPH_NONE, 100));
    assert_int_equal(build_end(&b), ERR_OK);
    graph.tensors[table].stored_bytes = 450; /* 4.5 bits per element */
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    struct estimate_config config = {.precision = PRECISION_FP16};
    struct pass_estimate pass = estimate(&partition, config, NULL);
    assert_near(pass.memory.weights, 1600, 0);
    pass_estimate_release(&pass);
    config.keeps_stored = true;
    pass = estimate(&partition, config, NULL);
    assert_near(pass.memory.weights, 450, 0);
    pass_estimate_release(&pass);
    partition_release(&partition);
    graph_release(&graph);
}

/* ---- tensor parallelism ---- */

struct shared_case {
    const char *model;
    double queries, keys; /* elements per token: of queries, and of keys and values together */
    double heads_kv;
};

/* The share of a tensor on one device, by its name alone: some heads of queries, keys and values,
 * some columns between the feed-forward matrices; all of anything else, including routers. */
static double share_of_device(const struct shared_case *which, const char *name, double devices)
{
    const char *behind = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    double max = fmin(devices, which->heads_kv), all = which->queries + which->keys;
    static const char *const COLUMNS[] = {
        ".attn_q",   ".rotary_query", ".scores",        ".attn_q_norm", ".ffn_up",
        ".ffn_gate", ".ffn_up_exps",  ".ffn_gate_exps", ".activation",  ".gated"};
    static const char *const HEADS_KV[] = {".attn_k", ".attn_v", ".rotary_key", ".attn_k_norm"};
    for (size_t i = 0; behind && i < sizeof COLUMNS / sizeof *COLUMNS; i++)
        if (strcmp(behind, COLUMNS[i]) == 0)
            return 1 / devices;
    for (size_t i = 0; behind && i < sizeof HEADS_KV / sizeof *HEADS_KV; i++)
        if (strcmp(behind, HEADS_KV[i]) == 0)
            return 1 / max;
    if (behind && strcmp(behind, ".attn_qkv") == 0)
        return which->queries / all / devices + which->keys / all / max;
    return 1;
}

static void check_sharded(const struct shared_case *which, const struct partition *partition,
                          int devices)
{
    struct precision_widths widths = precision_widths(PRECISION_FP16);
    const struct graph *graph = partition->graph;
    double peak = 0, *alive = calloc(partition->count, sizeof *alive);
    assert_non_null(alive);
    for (size_t t = 0; t < graph->tensor_count; t++) {
        if (!is_activation(&graph->tensors[t]) ||
            graphs_view_base(graph, true, (tensor_id)t) != (tensor_id)t)
            continue;
        struct needs needs = needs_of(partition, true, (tensor_id)t);
        struct graph_amount amount = graph_tensor_amount(&graph->tensors[t]);
        double bytes =
            graph_bytes(&amount, &widths) * share_of_device(which, graph->tensors[t].name, devices);
        for (int i = needs.first; needs.is_stored && i <= needs.last; i++)
            alive[i] += bytes;
    }
    struct estimate_config config = {.precision = PRECISION_FP16, .devices = devices};
    struct pass_estimate pass = estimate(partition, config, NULL);
    struct estimate_memory memory = pass.memory;
    for (size_t i = 0; i < partition->count; i++) {
        assert_near(memory.timeline[i], alive[i], 1e-9 * alive[i]);
        peak = alive[i] > peak ? alive[i] : peak;
    }
    assert_near(memory.activations_peak, peak, 1e-9 * peak);
    double rest = memory.weights + memory.kv_cache;
    assert_near(memory.total_peak, rest + peak, 1e-9 * rest);
    pass_estimate_release(&pass);
    free(alive);
}

static void memory_is_divided_by_tensor_parallelism(void **state)
{
    (void)state;
    static const struct shared_case CASES[] = {
        {"llama-3.2-1b", 2048, 2 * 512, 8},
        {"phi-4", 5120, 2 * 1280, 10},
        {"qwen3-30b-a3b", 4096, 2 * 512, 4},
        {"mixtral-8x7b", 4096, 2 * 1024, 8},
    };
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        struct model model;
        struct graph graph;
        struct error why = {0};
        struct graph_options setting = {.phase = GRAPH_PREFILL, .batch = 1, .tokens = 64};
        assert_int_equal(model_open(CASES[c].model, &model, &why), ERR_OK);
        assert_int_equal(model_graph(&model, &setting, &graph, &why), ERR_OK);
        struct partition partition = make_partition(&graph, PARTITION_FUSED);
        const int step =
            test_is_instrumented() ? 8 : 2; /* the reference simulation takes most of the time */
        for (int devices = 1; devices <= 16 && partition.heads % devices == 0; devices *= step)
            check_sharded(&CASES[c], &partition, devices);
        partition_release(&partition);
        graph_release(&graph);
        model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_timeline_matches_an_allocator_simulation),
        cmocka_unit_test(a_residual_stays_allocated_over_the_branch),
        cmocka_unit_test(shared_weights_count_once_in_their_stored_precision),
        cmocka_unit_test(memory_is_divided_by_tensor_parallelism),
    };
    return RUN_TESTS(tests);
}
