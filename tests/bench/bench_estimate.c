/* The cost of an estimate: a known network from its name to its joules, ten thousand points of
 * devices, precisions and batches, and growth with the size of a graph. */
#define _GNU_SOURCE
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/onnx_file.h"
#include "estimate/pass_estimate.h"
#include "estimate/estimate_grid.h"
#include "estimate/serving.h"
#include "graph/reader.h"
#include "graph/zoo/zoo.h"
#include "support/graphs.h"

enum { ROUNDS = 9, POINTS = 10000, BATCHES = 24, FEW = 10000, MANY = 100000, SERVED = 100000 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(enum err err, const struct error *why)
{
    if (err) {
        fprintf(stderr, "%s\n", why->text);
        exit(1);
    }
}

static volatile double sink;

static void estimate_once(const struct partition *partition, const struct hardware *hardware,
                          enum precision precision)
{
    struct pass_estimate estimate;
    struct error why = {0};
    struct estimate_config setting = {.precision = precision};
    must(pass_estimate_make(partition, hardware, &setting, NULL, true, &estimate, &why), &why);
    sink += estimate.total.joules.total;
    pass_estimate_release(&estimate);
}

static void build(const char *name, int64_t batch, struct graph *graph, struct partition *partition)
{
    struct error why = {0};
    struct graph_options setting = {.batch = batch};
    must(zoo_build(zoo_find(name), &setting, graph, &why), &why);
    partition_make(graph, PARTITION_FUSED, partition);
}

/* From the name of a network to its joules, in milliseconds. */
static double network_ms(const struct hardware *hardware)
{
    struct graph graph;
    struct partition partition;
    double began = cpu_seconds();
    build("resnet50", 1, &graph, &partition);
    estimate_once(&partition, hardware, PRECISION_FP16);
    partition_release(&partition);
    graph_release(&graph);
    return 1e3 * (cpu_seconds() - began);
}

/* The same network from a file with all its weights, as an export has them. */
static double file_ms(const struct hardware *hardware, const char *path, double macs)
{
    struct model model;
    struct graph graph;
    struct partition partition;
    struct graph_options setting = {0};
    struct error why = {0};
    double began = cpu_seconds();
    must(model_open(path, &model, &why), &why);
    must(model_graph(&model, &setting, &graph, &why), &why);
    partition_make(&graph, PARTITION_FUSED, &partition);
    estimate_once(&partition, hardware, PRECISION_FP16);
    double took = cpu_seconds() - began;
    if (partition.total.macs != macs) {
        fprintf(stderr, "the file has %g MACs, the network %g\n", partition.total.macs, macs);
        exit(1);
    }
    partition_release(&partition);
    graph_release(&graph);
    model_close(&model);
    return 1e3 * took;
}

static double onnx_ms(const struct hardware *hardware)
{
    char path[] = "/tmp/bench_estimate.XXXXXX.onnx";
    struct graph graph;
    struct partition partition;
    double took[ROUNDS];
    int file = mkstemps(path, (int)(sizeof ".onnx" - 1));
    if (file < 0)
        abort();
    close(file);
    build("resnet50", 1, &graph, &partition);
    onnx_file_write(&graph, path);
    for (int i = 0; i < ROUNDS; i++)
        took[i] = file_ms(hardware, path, partition.total.macs);
    unlink(path);
    partition_release(&partition);
    graph_release(&graph);
    return bench_median(took, ROUNDS);
}

/* Every device in each of its precisions, at every batch, repeated until there are enough. */
static double points_s(const struct hardware *hardware, size_t devices)
{
    double began = cpu_seconds();
    for (size_t points = 0, batch = 1; points < POINTS; batch = batch % BATCHES + 1) {
        struct graph graph;
        struct partition partition;
        build("resnet50", (int64_t)batch, &graph, &partition);
        for (size_t d = 0; d < devices && points < POINTS; d++)
            for (int p = PRECISION_FP32; p < PRECISION_COUNT && points < POINTS; p++) {
                enum precision used;
                if (!is_known(hardware_matmul_flops(&hardware[d], (enum precision)p, &used)))
                    continue;
                estimate_once(&partition, &hardware[d], (enum precision)p);
                points++;
            }
        partition_release(&partition);
        graph_release(&graph);
    }
    return cpu_seconds() - began;
}

/* The same for requests to a decoder: six passes each, as in `ipw estimate --sweep --compare`. */
static double requests_s(struct hardware *hardware, size_t devices)
{
    struct workload_spec works[BATCHES];
    struct workload_list list = {.items = works};
    struct candidates candidates = {
        .hardware = hardware, .items = calloc(devices * PRECISION_COUNT, sizeof *candidates.items)};
    struct estimate_grid points;
    struct model model;
    struct error why = {0};
    if (!candidates.items)
        abort();
    for (size_t d = 0; d < devices; d++)
        for (int p = PRECISION_FP32; p < PRECISION_COUNT; p++)
            if (is_known(hardware[d].matrix_flops[p].value) ||
                is_known(hardware[d].vector_flops[p].value))
                candidates.items[candidates.count++] = (struct grid_candidate){
                    .device = d, .config = {.precision = (enum precision)p, .devices = 1}};
    must(model_open("llama-3.2-1b", &model, &why), &why);
    for (size_t b = 0; b < BATCHES; b++)
        works[b] = (struct workload_spec){.model = &model,
                                          .setting = {.batch = (int64_t)b + 1, .tokens = 512},
                                          .is_request = true,
                                          .output_tokens = 128};
    double began = cpu_seconds();
    size_t count = 0;
    for (size_t left = POINTS; left > 0; left -= count) {
        size_t batches = left / candidates.count + 1;
        list.count = batches < BATCHES ? batches : BATCHES;
        must(estimate_grid_make(&list, &candidates, &points, &why), &why);
        count = points.count < left ? points.count : left;
        sink += workload_estimate_joules_per_unit(&points.items[0].estimate);
        estimate_grid_release(&points);
    }
    double took = cpu_seconds() - began;
    model_close(&model);
    free(candidates.items);
    return took;
}

/* One load of `ipw estimate --serve`: step tables from estimates, and requests at three
 * quarters of the device's capacity. */
static double serving_s(const struct hardware *hardware, size_t requests)
{
    struct model model;
    struct serving_load load;
    struct serving_steps *steps;
    struct serving_result result;
    struct error why = {0};
    must(model_open("llama-3.1-8b", &model, &why), &why);
    struct grid_candidate candidate = {.config = {.precision = PRECISION_FP16, .devices = 1}};
    struct workload_spec spec = {.model = &model};
    struct serving_policy policy = {0};
    struct serving_question question = {.candidate = &candidate,
                                        .hardware = hardware,
                                        .spec = &spec,
                                        .load = &load,
                                        .kv_cache_bytes = UNKNOWN};
    double began = cpu_seconds();
    serving_load_draw(requests, (struct serving_lengths){100, 900},
                      (struct serving_lengths){50, 200}, 1, &load);
    must(serving_steps_make(&question, &policy, &steps, &why), &why);
    struct serving_model costs = serving_steps_model(steps);
    struct serving_run run = {
        .model = &costs, .policy = &policy, .load = &load, .rate = 40, .time_scale = 1};
    must(serving_simulate(&run, &result, &why), &why);
    double took = cpu_seconds() - began;
    sink += result.joules;
    serving_steps_release(steps);
    serving_load_release(&load);
    model_close(&model);
    return took;
}

/* Nanoseconds per node of partition and estimate. */
static double ns_per_node(const struct hardware *hardware, const struct graph *graph)
{
    struct partition partition;
    double began = cpu_seconds();
    partition_make(graph, PARTITION_FUSED, &partition);
    estimate_once(&partition, hardware, PRECISION_FP16);
    partition_release(&partition);
    return 1e9 * (cpu_seconds() - began) / (double)graph->node_count;
}

/* The cost per node of a large graph relative to a small one: both in turn, the small one repeated
 * to the same number of nodes. */
static double growth(const struct hardware *hardware, uint32_t few_nodes, uint32_t many_nodes)
{
    struct rng rng = {7};
    struct graph few, many;
    double ratio[ROUNDS];
    graphs_random(&rng, few_nodes, &few);
    graphs_random(&rng, many_nodes, &many);
    for (int round = 0; round < ROUNDS; round++) {
        int times = (int)(many_nodes / few_nodes);
        double small = 0;
        for (int i = 0; i < times; i++)
            small += ns_per_node(hardware, &few) / times;
        ratio[round] = ns_per_node(hardware, &many) / small;
    }
    graph_release(&few);
    graph_release(&many);
    return bench_median(ratio, ROUNDS);
}

/* Two sizes beyond every cache, so that the ratio shows how the work grows (quadratic: 2); and a
 * size that fits in caches, where the bound allows for those only (quadratic: 10). */
static void bench_growth(const struct hardware *hardware)
{
    /* Memory is not returned to the kernel: its zeroing of fresh pages, which only large arrays get
     * each time, is not what is measured. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    bench_at_most("a node of 100 000 over one of 50 000", growth(hardware, MANY / 2, MANY), "ratio",
                  1.3);
    bench_at_most("a node of 100 000 over one of 10 000", growth(hardware, FEW, MANY), "ratio",
                  1.6);
}

int main(void)
{
    size_t devices = hardware_count();
    struct hardware *hardware = calloc(devices + 1, sizeof *hardware), h100;
    struct error why = {0};
    double network[ROUNDS], points[3], requests[3], served[3], growth_s[3];
    if (!hardware)
        abort();
    for (size_t i = 0; i < devices; i++)
        must(hardware_find(hardware_at(i)->id, &hardware[i], &why), &why);
    must(hardware_find("h100-sxm", &h100, &why), &why);
    for (int i = 0; i < ROUNDS; i++)
        network[i] = network_ms(&h100);
    for (int i = 0; i < 3; i++)
        points[i] = points_s(hardware, devices);
    for (int i = 0; i < 3; i++)
        requests[i] = requests_s(hardware, devices);
    double one_ms = bench_median(network, ROUNDS);
    double point_ms = 1e3 * bench_median(points, 3) / POINTS;
    double request_ms = 1e3 * bench_median(requests, 3) / POINTS;
    bench_report("ResNet-50 from its name to joules", one_ms, "ms");
    bench_at_most("ResNet-50 from an ONNX file of 102 MB, against its name",
                  onnx_ms(&h100) / one_ms, "ratio", 10);
    bench_at_most("each of 10 000 points, against one from the name", point_ms / one_ms, "ratio",
                  0.2);
    bench_at_most("each of 10 000 requests, against a point", request_ms / point_ms, "ratio", 30);
    for (int i = 0; i < 3; i++) {
        served[i] = serving_s(&h100, SERVED);
        growth_s[i] = served[i] / serving_s(&h100, SERVED / 10);
    }
    bench_report("100 000 requests to a server, simulated", bench_median(served, 3), "s");
    bench_at_most("100 000 requests to a server, against 10 000", bench_median(growth_s, 3),
                  "ratio", 13);
    bench_growth(&h100);
    for (size_t i = 0; i < devices; i++)
        hardware_release(&hardware[i]);
    hardware_release(&h100);
    free(hardware);
    return 0;
}
