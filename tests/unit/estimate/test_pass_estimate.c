/* Invariants of every estimate, on random graphs and every device of the catalog, and some
 * estimates computed by hand on a device with round figures. */
#include "estimate/pass_estimate.h"

#include <math.h>

#include "graph/build.h"
#include "port/json_read.h"
#include "support/devices.h"
#include "support/graphs.h"
#include "support/unit.h"
#include "support/hardware_paths.h"

static struct partition make_partition(const struct graph *graph)
{
    struct partition partition;
    partition_make(graph, PARTITION_FUSED, &partition);
    return partition;
}

static struct pass_estimate make_estimate(const struct partition *partition,
                                          const struct hardware *hardware,
                                          struct estimate_config setting)
{
    struct pass_estimate estimate;
    struct error why = {0};
    assert_int_equal(pass_estimate_make(partition, hardware, &setting, NULL, true, &estimate, &why),
                     ERR_OK);
    return estimate;
}

/* ---- computed by hand ---- */

/* A matmul of 1024 x 1024 by 1024 x 1024, and nothing else. */
static void build_one_matmul(struct graph *graph)
{
    struct error why = {0};
    struct build b = build_begin(graph, "product", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){1024, 1024});
    build_output(&b, build_linear(&b, "w", x, 1024, false));
    assert_int_equal(build_end(&b), ERR_OK);
}

static void test_matmul_by_hand(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    build_one_matmul(&graph);
    struct partition partition = make_partition(&graph);
    struct pass_estimate e = make_estimate(&partition, device_round(&device),
                                           (struct estimate_config){.precision = PRECISION_FP16});
    double flops = 2.0 * 1024 * 1024 * 1024, bytes = 3 * 2 * 1024.0 * 1024;
    double waves = 26 * 10 / 256.0; /* 16 x 16 tiles over 10 units: the last wave has 6 tiles */
    assert_near(e.total.flops, flops, 0);
    assert_near(e.total.bytes, bytes, 0);
    assert_near(e.rows[0].wave_share, 1 / waves, 1e-12);
    assert_near(e.rows[0].compute_s, flops / 100e12 * waves, 1e-12);
    assert_near(e.rows[0].memory_s, bytes / 1e12, 1e-12);
    assert_int_equal(e.rows[0].bound, BOUND_COMPUTE);
    assert_near(e.total.latency_s, flops / 100e12 * waves, 1e-12);
    assert_near(e.total.joules.compute, flops * 0.5e-12, 1e-12);
    assert_near(e.total.joules.memory, bytes * 10e-12, 1e-12);
    assert_near(e.total.joules.idle, 20 * e.total.latency_s, 1e-12);
    assert_near(e.total.utilization, 1 / waves, 1e-9);
    assert_near(e.total.mfu, 1 / waves, 1e-9);
    assert_near(e.total.mbu, bytes / 1e12 / e.total.latency_s, 1e-9);
    assert_near(e.total.wasted_j, e.total.joules.idle * (1 - 1 / waves), 1e-12);
    assert_near(e.total.efficiency,
                (e.total.joules.compute + e.total.joules.memory) / e.total.joules.total, 1e-12);
    assert_near(e.params, 1024 * 1024, 0);
    assert_near(e.memory.weights, 2 * 1024 * 1024, 0);
    assert_near(e.memory.activations_peak, 2 * 2 * 1024 * 1024, 0);
    assert_int_equal(e.total.bound_counts[BOUND_COMPUTE], 1);
    pass_estimate_release(&e);
    partition_release(&partition);
    graph_release(&graph);
}

/* Other operations than matmuls run on the vector units, with their joules. */
static void test_softmax_by_hand(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "softmax", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){1000, 1024});
    build_output(&b, build_op(&b, GRAPH_SOFTMAX, "softmax", x));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph);
    struct pass_estimate e = make_estimate(&partition, device_round(&device),
                                           (struct estimate_config){.precision = PRECISION_FP32});
    double flops = 5 * 1000 * 1024.0, bytes = 2 * 4 * 1000 * 1024.0;
    assert_near(e.rows[0].wave_share, 1, 0); /* 1000 pieces over 10 units */
    assert_near(e.rows[0].compute_s, flops / 10e12, 1e-15);
    assert_near(e.total.latency_s, bytes / 1e12, 1e-15);
    assert_near(e.total.joules.compute, flops * 2e-12, 1e-15);
    assert_near(e.total.utilization, flops / 10e12 / e.total.latency_s, 1e-9);
    assert_near(e.total.mfu, 0, 0);
    assert_near(e.total.mbu, 1, 1e-9);
    assert_int_equal(e.rows[0].bound, BOUND_MEMORY);
    pass_estimate_release(&e);
    partition_release(&partition);
    graph_release(&graph);
}

/* A step of a recurrent layer depends on the previous one: each is launched, and distributed over
 * the units, separately. */
static void test_recurrent_steps_by_hand(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "lstm", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 3, (int64_t[]){16, 100, 128});
    build_output(&b, build_recurrent(&b, GRAPH_LSTM, "lstm", x, 256, false));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph);
    device_round(&device);
    device.hardware.launch_s = device_figure(1e-6);
    struct pass_estimate e = make_estimate(&partition, &device.hardware,
                                           (struct estimate_config){.precision = PRECISION_FP16});
    double macs = 16.0 * 100 * 4 * 256 * (128 + 256), other = 16.0 * 100 * 256 * 14;
    assert_near(e.rows[0].launch_s, 100e-6, 1e-12);
    assert_near(e.rows[0].wave_share, 0.4, 1e-12); /* 16 x 256 states: 4 pieces on 10 units */
    assert_near(e.rows[0].compute_s, (2 * macs / 100e12 + other / 10e12) / 0.4, 1e-12);
    pass_estimate_release(&e);
    partition_release(&partition);
    graph_release(&graph);
}

/* Launch overhead, and a power limit that is too low for the work. */
static void test_launch_overhead_and_power_limit(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    build_one_matmul(&graph);
    struct partition partition = make_partition(&graph);
    device_round(&device);
    device.hardware.launch_s = device_figure(1e-3);
    struct pass_estimate slow = make_estimate(
        &partition, &device.hardware, (struct estimate_config){.precision = PRECISION_FP16});
    assert_int_equal(slow.rows[0].bound, BOUND_LAUNCH);
    assert_near(slow.total.latency_s, 1e-3 + slow.rows[0].compute_s, 1e-12);
    device_round(&device);
    device.hardware.limit_w = device_figure(40);
    struct pass_estimate hot = make_estimate(&partition, &device.hardware,
                                             (struct estimate_config){.precision = PRECISION_FP16});
    double moving = hot.total.joules.compute + hot.total.joules.memory;
    assert_near(hot.total.average_w, 40, 1e-9);
    assert_near(hot.total.peak_w, 40, 1e-9);
    assert_near(hot.total.latency_s, moving / (40 - 20), 1e-12);
    assert_near(hot.rows[0].stretch, hot.total.latency_s / hot.rows[0].compute_s, 1e-9);
    assert_true(hot.rows[0].stretch > 1);
    assert_near(hot.total.power_plus_minus, 0.05 * 40,
                1e-9); /* the uncertainty is that of the limit */
    assert_true(slow.total.power_plus_minus > 0);
    pass_estimate_release(&slow);
    pass_estimate_release(&hot);
    partition_release(&partition);
    graph_release(&graph);
}

static void test_figures_missing_from_a_device_are_unknown(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    build_one_matmul(&graph);
    struct partition partition = make_partition(&graph);
    device_round(&device);
    device.hardware.memories[0].joules_per_byte.value = UNKNOWN;
    struct pass_estimate e = make_estimate(&partition, &device.hardware,
                                           (struct estimate_config){.precision = PRECISION_FP16});
    assert_true(is_known(e.total.latency_s));
    assert_true(is_known(e.total.joules.compute));
    assert_false(is_known(e.total.joules.memory));
    assert_false(is_known(e.total.joules.total));
    assert_false(is_known(e.total.average_w));
    assert_false(is_known(e.total.peak_w));
    assert_int_equal(e.confidence, CONFIDENCE_THEORETICAL);
    pass_estimate_release(&e);
    device_round(&device);
    device.hardware.idle_w.value = UNKNOWN;
    e = make_estimate(&partition, &device.hardware,
                      (struct estimate_config){.precision = PRECISION_FP16});
    assert_false(is_known(e.total.joules.idle));
    assert_false(is_known(e.total.joules.total));
    assert_true(is_known(e.total.joules.memory));
    pass_estimate_release(&e);
    partition_release(&partition);
    graph_release(&graph);
}

static void test_missing_required_figures_are_an_error(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    struct pass_estimate e;
    struct error why = {0};
    build_one_matmul(&graph);
    struct partition partition = make_partition(&graph);
    struct estimate_config setting = {.precision = PRECISION_FP64};
    assert_int_equal(
        pass_estimate_make(&partition, device_round(&device), &setting, NULL, true, &e, &why),
        ERR_BAD_VALUE);
    assert_contains(why.text, "round: no FLOP/s stated in fp64");
    setting = (struct estimate_config){.precision = PRECISION_FP16, .devices = 2};
    device.hardware.link_bytes_per_s.value = UNKNOWN;
    assert_int_equal(
        pass_estimate_make(&partition, &device.hardware, &setting, NULL, true, &e, &why),
        ERR_BAD_VALUE);
    assert_contains(why.text, "no link between devices stated");
    setting.devices = -1;
    assert_int_equal(
        pass_estimate_make(&partition, &device.hardware, &setting, NULL, true, &e, &why),
        ERR_BAD_VALUE);
    device_round(&device);
    device.hardware.idle_w.value = 300;
    setting.devices = 1;
    assert_int_equal(
        pass_estimate_make(&partition, &device.hardware, &setting, NULL, true, &e, &why),
        ERR_BAD_VALUE);
    assert_contains(why.text, "not below the power limit");
    partition_release(&partition);
    graph_release(&graph);
}

/* ---- uncertainty and confidence ---- */

static void test_confidence_follows_the_evidence(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    build_one_matmul(&graph);
    struct partition partition = make_partition(&graph);
    struct estimate_config setting = {.precision = PRECISION_FP16};
    device_round(&device);
    device.hardware.is_calibrated = true;
    struct pass_estimate best = make_estimate(&partition, &device.hardware, setting);
    assert_int_equal(best.confidence, CONFIDENCE_CALIBRATED);
    assert_true(best.total.latency_plus_minus > 0.05 * best.total.latency_s);
    assert_true(best.total.latency_plus_minus < 0.2 * best.total.latency_s);
    device.hardware.is_calibrated = false;
    struct pass_estimate measured = make_estimate(&partition, &device.hardware, setting);
    assert_int_equal(measured.confidence, CONFIDENCE_INTERPOLATED);
    assert_true(measured.total.joules_plus_minus > best.total.joules_plus_minus);
    device.hardware.matrix_joules[PRECISION_FP16].evidence = EVIDENCE_DERIVED;
    device.hardware.matrix_joules[PRECISION_FP16].plus_minus = UNKNOWN;
    struct pass_estimate derived = make_estimate(&partition, &device.hardware, setting);
    assert_int_equal(derived.confidence, CONFIDENCE_THEORETICAL);
    assert_contains(derived.confidence_reason, "derived");
    assert_true(derived.total.joules_plus_minus > measured.total.joules_plus_minus);
    assert_near(derived.total.latency_plus_minus, measured.total.latency_plus_minus, 0);
    graph.is_guessed = true;
    device_round(&device);
    device.hardware.is_calibrated = true;
    struct pass_estimate guessed = make_estimate(&partition, &device.hardware, setting);
    assert_int_equal(guessed.confidence, CONFIDENCE_INTERPOLATED);
    assert_contains(guessed.confidence_reason, "assumed");
    assert_true(guessed.total.latency_plus_minus > best.total.latency_plus_minus);
    pass_estimate_release(&best);
    pass_estimate_release(&measured);
    pass_estimate_release(&derived);
    pass_estimate_release(&guessed);
    partition_release(&partition);
    graph_release(&graph);
}

static void test_unknown_operators_lower_confidence(void **state)
{
    (void)state;
    struct device device;
    struct graph graph;
    struct error why = {0};
    struct build b = build_begin(&graph, "unknown", &why);
    tensor_id x = build_input(&b, "x", GRAPH_FLOAT, 2, (int64_t[]){1000, 1024});
    build_output(&b, build_op(&b, GRAPH_UNKNOWN, "frobnicate", x));
    assert_int_equal(build_end(&b), ERR_OK);
    struct partition partition = make_partition(&graph);
    device_round(&device);
    device.hardware.is_calibrated = true;
    struct pass_estimate e = make_estimate(&partition, &device.hardware,
                                           (struct estimate_config){.precision = PRECISION_FP16});
    assert_int_equal(e.confidence, CONFIDENCE_INTERPOLATED);
    assert_contains(e.confidence_reason, "1 node has an unknown operator");
    assert_near(e.total.bytes, 2 * 2 * 1000 * 1024, 0); /* as if it only moved them */
    assert_true(e.total.latency_plus_minus >
                e.total.latency_s); /* it may also take twice as long */
    assert_true(e.total.joules_plus_minus > e.total.joules.total);
    pass_estimate_release(&e);
    partition_release(&partition);
    graph_release(&graph);
}

/* ---- random graphs on every device ---- */

static double relative(double a, double b)
{
    return fabs(a - b) / fmax(fabs(a), 1e-300);
}

static void check_sums(const struct pass_estimate *e)
{
    double latency = 0, total = 0, peak = 0, flops = 0, bytes = 0;
    size_t bounds = 0;
    for (size_t i = 0; i < e->partition->count; i++) {
        const struct subgraph_estimate *row = &e->rows[i];
        const struct estimate_joules *joules = &row->joules;
        latency += row->latency_s;
        total += joules->total;
        flops += row->flops;
        bytes += row->bytes;
        peak = fmax(peak, joules->total / row->latency_s);
        assert_true(relative(joules->total, joules->compute + joules->memory + joules->idle +
                                                joules->link) < 1e-12);
        assert_true(row->utilization >= 0 && row->utilization <= 1 + 1e-12);
        assert_true(row->latency_s >= fmax(row->compute_s, row->memory_s));
    }
    for (int i = 0; i < BOUND_COUNT; i++)
        bounds += e->total.bound_counts[i];
    assert_int_equal(bounds, e->partition->count);
    assert_true(relative(e->total.joules.total, total) < 1e-9);
    assert_true(relative(e->total.joules.total, e->total.joules.compute + e->total.joules.memory +
                                                    e->total.joules.idle + e->total.joules.link) <
                1e-9);
    assert_true(relative(e->total.latency_s, latency) < 1e-9);
    assert_true(relative(e->total.flops, flops) < 1e-9 && relative(e->total.bytes, bytes) < 1e-9);
    assert_true(relative(e->total.peak_w, peak) < 1e-9);
}

static void check_power(const struct pass_estimate *e)
{
    double idle = e->config.devices * e->hardware->idle_w.value;
    double limit = e->config.devices * e->hardware->limit_w.value;
    assert_true(e->total.average_w >= idle * (1 - 1e-9));
    assert_true(e->total.average_w <= limit * (1 + 1e-9));
    assert_true(e->total.peak_w <= limit * (1 + 1e-9));
    assert_true(e->total.peak_w >= e->total.average_w * (1 - 1e-9));
    assert_true(e->total.efficiency > 0 && e->total.efficiency < 1);
    assert_true(e->total.wasted_j >= 0 && e->total.wasted_j <= e->total.joules.idle);
    assert_true(e->total.latency_plus_minus > 0 && e->total.joules_plus_minus > 0 &&
                e->total.power_plus_minus > 0);
}

/* More work of either kind is never cheaper or faster. */
static void check_monotone(struct partition *partition, const struct hardware *hardware,
                           const struct pass_estimate *before, uint32_t index)
{
    /* The first of identical subgraphs represents the others. */
    struct subgraph *subgraph =
        &partition->subgraphs[partition->unique[partition->unique_of[index]]];
    struct graph_cost kept = subgraph->cost;
    struct graph_cost more[3] = {kept, kept, kept};
    more[0].macs += 1e9;
    more[1].elementwise += 1e9;
    more[2].in.activations += 1e9;
    for (int i = 0; i < 3; i++) {
        subgraph->cost = more[i];
        struct pass_estimate after = make_estimate(partition, hardware, before->config);
        assert_true(after.total.joules.total > before->total.joules.total);
        assert_true(after.total.latency_s >= before->total.latency_s);
        check_power(&after);
        pass_estimate_release(&after);
    }
    subgraph->cost = kept;
}

static bool supports(const struct hardware *hardware, enum precision precision)
{
    enum precision used;
    return is_known(hardware_matmul_flops(hardware, precision, &used)) &&
           is_known(matmul_joules(hardware, precision)) &&
           is_known(elementwise_joules(hardware, precision)) && is_known(hardware->idle_w.value) &&
           is_known(hardware->limit_w.value) &&
           is_known(hardware_main_memory(hardware)->joules_per_byte.value);
}

/* At equal time idle energy is equal, which leaves dynamic energy to compare. Each part separately:
 * saved bytes must not hide more expensive matmuls. */
static void check_precision(const struct pass_estimate *wide, const struct pass_estimate *narrow)
{
    assert_true(narrow->total.joules.compute <= wide->total.joules.compute * (1 + 1e-9));
    assert_true(narrow->total.joules.memory <= wide->total.joules.memory * (1 + 1e-9));
    assert_true(narrow->total.latency_s <= wide->total.latency_s * (1 + 1e-9));
}

static bool is_narrower(enum precision a, enum precision b)
{
    struct precision_widths x = precision_widths(a), y = precision_widths(b);
    return x.weight < y.weight && x.activation <= y.activation;
}

static void check_device(struct partition *partition, const struct hardware *hardware,
                         struct rng *rng)
{
    struct pass_estimate all[PRECISION_COUNT];
    bool known[PRECISION_COUNT];
    for (int i = 0; i < PRECISION_COUNT; i++) {
        known[i] = supports(hardware, (enum precision)i);
        if (!known[i])
            continue;
        all[i] = make_estimate(partition, hardware,
                               (struct estimate_config){.precision = (enum precision)i});
        check_sums(&all[i]);
        check_power(&all[i]);
    }
    for (int wide = 0; wide < PRECISION_COUNT; wide++)
        for (int narrow = 0; narrow < PRECISION_COUNT; narrow++)
            if (known[wide] && known[narrow] &&
                is_narrower((enum precision)narrow, (enum precision)wide))
                check_precision(&all[wide], &all[narrow]);
    if (known[PRECISION_FP16])
        check_monotone(partition, hardware, &all[PRECISION_FP16],
                       rng_below(rng, (uint32_t)partition->count));
    for (int i = 0; i < PRECISION_COUNT; i++)
        if (known[i])
            pass_estimate_release(&all[i]);
}

/* ---- rows ---- */

/* Whether both are unknown, or bitwise equal. */
static void assert_same(double a, double b)
{
    assert_true(a == b || (!is_known(a) && !is_known(b)));
}

/* Rows summed in order equal the total bitwise, with and without detail. */
static void check_every_row(const struct partition *partition, const struct hardware *hardware,
                            struct estimate_config setting)
{
    struct pass_estimate full = make_estimate(partition, hardware, setting);
    struct pass_estimate sums;
    struct error why = {0};
    assert_int_equal(pass_estimate_make(partition, hardware, &setting, NULL, false, &sums, &why),
                     ERR_OK);
    double latency = 0, joules = 0, idle = 0, bytes = 0, wasted = 0, peak = 0;
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph_estimate *row = &full.rows[i];
        double watts = row->joules.total / row->latency_s;
        latency += row->latency_s;
        joules += row->joules.total;
        idle += row->joules.idle;
        bytes += row->bytes;
        wasted += row->joules.idle * (1 - row->utilization);
        peak = row->latency_s > 0 && watts > peak ? watts : peak;
    }
    assert_same(full.total.latency_s, latency);
    assert_same(full.total.joules.total, joules);
    assert_same(full.total.joules.idle, idle);
    assert_same(full.total.bytes, bytes);
    assert_same(full.total.wasted_j, wasted);
    if (is_known(full.total.peak_w))
        assert_same(full.total.peak_w, peak);
    assert_null(sums.rows);
    assert_null(sums.memory.timeline);
    assert_same(sums.total.latency_s, full.total.latency_s);
    assert_same(sums.total.latency_plus_minus, full.total.latency_plus_minus);
    assert_same(sums.total.joules.total, full.total.joules.total);
    assert_same(sums.total.joules_plus_minus, full.total.joules_plus_minus);
    assert_same(sums.total.power_plus_minus, full.total.power_plus_minus);
    assert_same(sums.total.peak_w, full.total.peak_w);
    assert_same(sums.total.utilization, full.total.utilization);
    assert_same(sums.memory.total_peak, full.memory.total_peak);
    assert_memory_equal(sums.total.bound_counts, full.total.bound_counts,
                        sizeof full.total.bound_counts);
    pass_estimate_release(&full);
    pass_estimate_release(&sums);
}

static void test_totals_equal_the_sum_of_rows(void **state)
{
    (void)state;
    static const char *const IDS[] = {"h200", "l4", "xeon-8490h", "jetson-orin-nano-8gb"};
    struct rng rng = {8};
    for (size_t d = 0; d < sizeof IDS / sizeof *IDS; d++) {
        struct hardware hardware;
        struct error why = {0};
        assert_int_equal(hardware_find(IDS[d], &hardware, &why), ERR_OK);
        for (int i = 0; i < 40; i++) {
            struct graph graph;
            graphs_random(&rng, 5 + rng_below(&rng, 60), &graph);
            struct partition partition = make_partition(&graph);
            check_every_row(
                &partition, &hardware,
                (struct estimate_config){.precision = i % 2 ? PRECISION_FP16 : PRECISION_FP32});
            partition_release(&partition);
            graph_release(&graph);
        }
        hardware_release(&hardware);
    }
}

/* Random graphs are small and dominated by bytes: scales the MACs as if they were of large matrices. */
static void make_matmuls_large(struct partition *partition)
{
    for (size_t i = 0; i < partition->count; i++) {
        partition->total.macs += 9999 * partition->subgraphs[i].cost.macs;
        partition->subgraphs[i].cost.macs *= 10000;
    }
}

static void test_invariants_on_random_graphs_and_every_device(void **state)
{
    (void)state;
    struct rng rng = {4};
    size_t checked = 0;
    for (size_t d = 0; d < hardware_count(); d++) {
        struct hardware hardware;
        struct error why = {0};
        assert_int_equal(hardware_find(hardware_at(d)->id, &hardware, &why), ERR_OK);
        for (int i = 0; i < 8; i++) {
            struct graph graph;
            graphs_random(&rng, 5 + rng_below(&rng, 60), &graph);
            struct partition partition = make_partition(&graph);
            if (i % 2)
                make_matmuls_large(&partition);
            if (partition.count > 0)
                check_device(&partition, &hardware, &rng);
            checked += supports(&hardware, PRECISION_FP16);
            partition_release(&partition);
            graph_release(&graph);
        }
        hardware_release(&hardware);
    }
    assert_true(checked > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_by_hand),
        cmocka_unit_test(test_softmax_by_hand),
        cmocka_unit_test(test_recurrent_steps_by_hand),
        cmocka_unit_test(test_launch_overhead_and_power_limit),
        cmocka_unit_test(test_figures_missing_from_a_device_are_unknown),
        cmocka_unit_test(test_missing_required_figures_are_an_error),
        cmocka_unit_test(test_confidence_follows_the_evidence),
        cmocka_unit_test(test_unknown_operators_lower_confidence),
        cmocka_unit_test(test_totals_equal_the_sum_of_rows),
        cmocka_unit_test(test_invariants_on_random_graphs_and_every_device),
    };
    return RUN_TESTS(tests);
}
