/* Levels and the critical path, against brute force over all pairs of nodes. */
#include "estimate/pass_estimate.h"

#include <stdlib.h>

#include "graph/build.h"
#include "support/devices.h"
#include "support/graphs.h"
#include "support/unit.h"

enum { GRAPHS = 200, MOST_NODES = 40 };

static struct partition make_partition(const struct graph *graph, enum partition_fusion fusion)
{
    struct partition partition;
    partition_make(graph, fusion, &partition);
    return partition;
}

static bool reads(const struct graph *graph, const struct graph_node *node, node_id producer)
{
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *tensor = graph_input(graph, node, i);
        if (tensor && tensor->producer == producer)
            return true;
    }
    return false;
}

typedef double ways[MOST_NODES][MOST_NODES];

/* Floyd-Warshall for longest paths: way[i][k] is the longest distance from the start of i to the
 * start of k, -1 where there is no path. */
static void lengthen(ways way, size_t count, size_t via)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (way[i][via] >= 0 && way[via][k] >= 0 && way[i][via] + way[via][k] > way[i][k])
                way[i][k] = way[i][via] + way[via][k];
}

static void find_paths(const struct graph *graph, const double *cost, ways way)
{
    size_t count = graph->node_count;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            way[i][k] = reads(graph, &graph->nodes[k], (node_id)i) ? cost[i] : -1;
    for (size_t via = 0; via < count; via++)
        lengthen(way, count, via);
}

/* Views are nodes that cost nothing. */
static double longest_path(const struct graph *graph, const double *cost)
{
    static ways way;
    size_t count = graph->node_count;
    double longest = 0;
    find_paths(graph, cost, way);
    for (size_t i = 0; i < count; i++) {
        longest = cost[i] > longest ? cost[i] : longest;
        for (size_t k = 0; k < count; k++)
            if (way[i][k] >= 0 && way[i][k] + cost[k] > longest)
                longest = way[i][k] + cost[k];
    }
    return longest;
}

/* The sum over levels of the largest cost of a node; a level is the number of steps before it. */
static double sum_of_level_maxima(const struct graph *graph, const double *steps,
                                  const double *cost)
{
    static ways way;
    double largest[MOST_NODES + 1] = {0}, sum = 0;
    find_paths(graph, steps, way);
    for (size_t k = 0; k < graph->node_count; k++) {
        size_t level = 0;
        for (size_t i = 0; i < graph->node_count; i++)
            if (way[i][k] > (double)level)
                level = (size_t)way[i][k];
        largest[level] = cost[k] > largest[level] ? cost[k] : largest[level];
    }
    for (size_t i = 0; i <= MOST_NODES; i++)
        sum += largest[i];
    return sum;
}

static struct partition_concurrency concurrency_of(const struct partition *partition)
{
    struct device device;
    struct pass_estimate pass;
    struct error why = {0};
    struct estimate_config config = {.precision = PRECISION_FP32};
    assert_int_equal(
        pass_estimate_make(partition, device_round(&device), &config, NULL, true, &pass, &why),
        ERR_OK);
    struct partition_concurrency concurrency = pass.concurrency;
    pass_estimate_release(&pass);
    return concurrency;
}

static void check(const struct graph *graph)
{
    struct partition partition = make_partition(graph, PARTITION_PLAIN);
    double flops[MOST_NODES], steps[MOST_NODES], all = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        struct graph_cost cost = graph_node_cost(graph, &graph->nodes[i]);
        flops[i] = graph_flops(&cost);
        steps[i] = graph->nodes[i].op != GRAPH_VIEW;
        all += flops[i];
    }
    struct partition_concurrency concurrency = concurrency_of(&partition);
    double path = longest_path(graph, flops);
    assert_near(concurrency.critical_path_flops, path, 1e-9 * path);
    assert_int_equal(concurrency.levels, (size_t)longest_path(graph, steps));
    assert_near(concurrency.parallelism, path > 0 ? all / path : 1, 1e-9);
    double stages = sum_of_level_maxima(graph, steps, flops);
    assert_near(concurrency.stage_parallelism, stages > 0 ? all / stages : 1, 1e-9);
    assert_true(concurrency.stage_parallelism <= concurrency.parallelism * (1 + 1e-12));
    assert_near(concurrency.batch_parallelism, 7 * concurrency.parallelism, 1e-9);
    assert_true(concurrency.wide_levels <= concurrency.levels);
    assert_true(concurrency.max_width >= 1 || partition.count == 0);
    assert_true(concurrency.max_width * concurrency.levels >= partition.count);
    partition_release(&partition);
}

static void levels_and_critical_path_match_brute_force(void **state)
{
    (void)state;
    struct rng rng = {6};
    for (int i = test_rounds(GRAPHS); i > 0; i--) {
        struct graph graph;
        graphs_random(&rng, 1 + rng_below(&rng, MOST_NODES - 1), &graph);
        graph.batch = 7;
        check(&graph);
        graph_release(&graph);
    }
}

/* Three branches of one tensor, one of them longer, that join at the end. */
static void levels_and_critical_path_of_three_branches(void **state)
{
    (void)state;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "branches", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){1, 100});
    tensor_id a = build_op(&b, GRAPH_SOFTMAX, "a", x);
    tensor_id c = build_op(&b, GRAPH_SOFTMAX, "c", build_op(&b, GRAPH_SOFTMAX, "b", x));
    tensor_id d = build_op(&b, GRAPH_SOFTMAX, "d", x);
    build_output(&b, build_concat(&b, "join", 1, (tensor_id[]){a, c, d}, 3));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph, PARTITION_FUSED);
    struct partition_concurrency concurrency = concurrency_of(&partition);
    assert_int_equal(concurrency.levels, 3);
    assert_int_equal(concurrency.wide_levels, 1);
    assert_int_equal(concurrency.max_width, 3);
    assert_near(concurrency.critical_path_flops, 1000, 0);
    assert_near(concurrency.parallelism, 2, 0);
    assert_near(concurrency.stage_parallelism, 2, 0);
    partition_release(&partition);
    graph_release(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_and_critical_path_match_brute_force),
        cmocka_unit_test(levels_and_critical_path_of_three_branches),
    };
    return RUN_TESTS(tests);
}
