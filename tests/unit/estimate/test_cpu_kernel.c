/* Times on a CPU: timed operations are reproduced, others interpolated; ONNX Runtime operators are
 * bound by compute or by the memory level of their operands. Expected values are computed by hand. */
#include "catalog/hardware_json.h"
#include "core/json.h"
#include "core/text.h"
#include "estimate/roofline.h"
#include "graph/gguf.h"
#include "support/unit.h"
#include "port/json_read.h"

#include <string.h>

#define HOST_S 0.6e-6

/* Two formats; Q4_0 by tokens, matrix sizes and bytes in use. */
static const struct hardware_timing OPERATIONS[] = {
    {.op = TIMING_PASS, .seconds = 50e-6},
    {.op = TIMING_STEP, .seconds = 1e-6},
    {TIMING_PRODUCT, "Q4_0", 1, 100, 100, 0, 1e6, 10e-6},
    {TIMING_PRODUCT, "Q4_0", 1, 100, 100, 0, 1e8, 40e-6},
    {TIMING_PRODUCT, "Q4_0", 1, 1000, 1000, 0, 1e8, 4000e-6},
    {TIMING_PRODUCT, "Q4_0", 16, 100, 100, 0, 1e6, 40e-6},
    {TIMING_PRODUCT, "F16", 1, 100, 100, 0, 1e6, 30e-6},
    {.op = TIMING_ATTENTION,
     .rows = 1,
     .depth = 64,
     .columns = 4,
     .context = 100,
     .seconds = 20e-6},
    {.op = TIMING_ADD, .rows = 1, .depth = 1000, .seconds = 2e-6},
    {.op = TIMING_NORM, .rows = 1, .depth = 1000, .seconds = 8e-6},
};
static const struct hardware_timings TIMINGS = {"llama.cpp", "a test", 2, OPERATIONS,
                                                sizeof OPERATIONS / sizeof *OPERATIONS};

static double matmul_s(double rows, double depth, double columns, double held, double stored_type)
{
    struct subgraph subgraph = {.op = GRAPH_LINEAR, .shape = {.stored_type = stored_type}};
    struct rates rates = {.timings = &TIMINGS,
                          .held = held,
                          .bytes_per_s = {1e10, 0},
                          .widths = {.keeps_stored = true}};
    struct roofline_work work = {.macs = rows * depth * columns,
                                 .outputs = rows * columns,
                                 .rows = rows,
                                 .traffic = {.weights = depth * columns * 0.5625}};
    return timed_kernel_estimate(&subgraph, &work, &rates).latency_s - HOST_S;
}

static double format_number(const char *format)
{
    for (uint32_t i = 0; i < 64; i++)
        if (tensor_type_numbered(i) && !strcmp(tensor_type_numbered(i)->name, format))
            return i + 1;
    fail_msg("no format %s", format);
    return 0;
}

static void timed_operations_are_reproduced(void **state)
{
    (void)state;
    double q4 = format_number("Q4_0");
    assert_near(matmul_s(1, 100, 100, 1e6, q4), 10e-6, 1e-9);
    assert_near(matmul_s(1, 100, 100, 1e8, q4), 40e-6, 1e-9);
    assert_near(matmul_s(16, 100, 100, 1e6, q4), 40e-6, 1e-9);
    assert_near(matmul_s(1, 100, 100, 1e6, format_number("F16")), 30e-6, 1e-9);
    assert_near(timed_pass_s(&TIMINGS), 50e-6, 1e-12);
}

static void other_sizes_are_interpolated(void **state)
{
    (void)state;
    double q4 = format_number("Q4_0");
    /* 10 MB are halfway between 1 and 100 MB: the geometric mean of 10 and 40 us. */
    assert_near(matmul_s(1, 100, 100, 1e7, q4), 20e-6, 1e-9);
    /* Four tokens are halfway between 1 and 16: of 10 us each and 2.5 us each. */
    assert_near(matmul_s(4, 100, 100, 1e6, q4), 4 * 5e-6, 1e-9);
    /* Beyond the timed range the cost per unit is constant. */
    assert_near(matmul_s(64, 100, 100, 1e6, q4), 4 * 40e-6, 1e-9);
    assert_near(matmul_s(1, 100, 100, 1e12, q4), 40e-6, 1e-9);
    /* Shape does not matter, only size. */
    assert_near(matmul_s(1, 50, 200, 1e6, q4), 10e-6, 1e-9);
    /* A format that was not timed: 5 bits are closer to 4.5 than to 16. */
    assert_near(matmul_s(1, 100, 100, 1e6, format_number("Q5_0")), 10e-6, 1e-9);
}

static void elementwise_time_follows_the_number_of_elements(void **state)
{
    (void)state;
    struct rates rates = {.timings = &TIMINGS, .bytes_per_s = {1e10, 0}};
    struct subgraph add = {.op = GRAPH_ADD}, norm = {.op = GRAPH_RMS_NORM};
    struct roofline_work work = {.outputs = 2000, .rows = 1};
    assert_near(timed_kernel_estimate(&add, &work, &rates).latency_s, 4e-6 + HOST_S, 1e-9);
    assert_near(timed_kernel_estimate(&norm, &work, &rates).latency_s, 16e-6 + HOST_S, 1e-9);
    work.outputs = 10; /* at least the time of an empty operation */
    assert_near(timed_kernel_estimate(&add, &work, &rates).latency_s, 1e-6 + HOST_S, 1e-9);
    struct subgraph attention = {.op = GRAPH_ATTENTION,
                                 .shape = {.heads = 8, .tokens = 1, .sequences = 1}};
    struct roofline_work pairs = {.macs = 2 * 64 * 8 * 100, .outputs = 64 * 8, .rows = 1};
    assert_near(timed_kernel_estimate(&attention, &pairs, &rates).latency_s, 40e-6 + HOST_S, 1e-9);
}

/* ---- ONNX Runtime ---- */

static struct rates onnx_rates(struct hardware *cpu)
{
    *cpu = (struct hardware){
        .class = HARDWARE_CPU,
        .memory_count = 2,
        .launch_s = {.value = UNKNOWN},
        .memories = {
            {.name = "L2", .bytes_per_s = {.value = 100e9}, .capacity_bytes = {.value = 1e6}},
            {.name = "memory", .bytes_per_s = {.value = 10e9}}}};
    return (struct rates){.hardware = cpu,
                          .runtime = RUNTIME_ONNXRUNTIME,
                          .product_flops = {100e9, 0},
                          .other_flops = {100e9, 0},
                          .compute_share = {1, 0},
                          .memory_share = {1, 0},
                          .bytes_per_s = {10e9, 0}};
}

static void onnx_runtime_operators_are_bound_by_compute_or_memory(void **state)
{
    (void)state;
    struct hardware cpu;
    struct rates rates = onnx_rates(&cpu);
    struct subgraph add = {.op = GRAPH_ADD, .steps = 1};
    struct subgraph conv = {
        .op = GRAPH_CONV, .steps = 1, .shape = {.groups = 1, .channels = 64, .taps = 9}};
    struct roofline_work near = {.elementwise = 1, .bytes = 0.47e6}, far = {.bytes = 10e6};
    struct roofline_work work = {.macs = 36e6, .bytes = 1e3, .rows = 100};
    /* 0.47 MB fit into the cache, with 0.47 of its bandwidth attained; 10 MB come from memory. */
    assert_near(cpu_kernel_estimate(&add, &near, &rates).latency_s, 10e-6 + 1.8e-6, 1e-10);
    assert_near(cpu_kernel_estimate(&add, &far, &rates).latency_s, 1e-3 + 1.8e-6, 1e-10);
    assert_near(cpu_kernel_estimate(&conv, &work, &rates).latency_s, 1e-3 + 1.8e-6, 1e-10);
    cpu.launch_s.value = 8e-6; /* thread synchronization */
    assert_near(cpu_kernel_estimate(&conv, &work, &rates).latency_s, 1e-3 + 5.8e-6, 1e-10);
    /* Part of a working set slightly above the cache size still comes from the cache. */
    struct roofline_work some = {.bytes = 2e6};
    double took = cpu_kernel_estimate(&add, &some, &rates).latency_s;
    assert_true(took > 2e6 / 47e9 + 5.8e-6 && took < 2e6 / 10e9);
    static const enum graph_op FOLDED[] = {GRAPH_BATCH_NORM, GRAPH_RELU, GRAPH_LEAKY_RELU};
    for (size_t i = 0; i < sizeof FOLDED / sizeof *FOLDED; i++) {
        struct subgraph one = {.op = FOLDED[i], .steps = 1};
        assert_near(cpu_kernel_estimate(&one, &far, &rates).latency_s, 1e-3 + 5.8e-6, 1e-10);
        one.shape.is_folded = true;
        assert_near(cpu_kernel_estimate(&one, &far, &rates).latency_s, 0, 0);
    }
}

/* Weights are reused only after all others of the model, so that the cache would have to hold all of them. */
static void weights_of_a_large_model_come_from_memory(void **state)
{
    (void)state;
    struct hardware cpu;
    struct rates rates = onnx_rates(&cpu);
    struct subgraph linear = {.op = GRAPH_LINEAR, .steps = 1};
    struct roofline_work work = {.rows = 1, .bytes = 0.57e6, .traffic = {.weights = 0.1e6}};
    struct kernel_estimate all_near = cpu_kernel_estimate(&linear, &work, &rates);
    assert_near(all_near.latency_s, 0.57e6 / 47e9 + 1.8e-6, 1e-10);
    assert_near(all_near.cached_bytes, 0.57e6, 1e-3);
    rates.held = 16e9;
    struct kernel_estimate large = cpu_kernel_estimate(&linear, &work, &rates);
    assert_near(large.latency_s, 0.47e6 / 47e9 + 0.1e6 / 10e9 + 1.8e-6, 1e-10);
    assert_near(large.cached_bytes, 0.47e6, 1e-3);
}

/* Rates are for two threads: a short operator uses one of them, a long one both, minus their overhead. */
static void short_onnx_runtime_operators_use_one_thread(void **state)
{
    (void)state;
    struct hardware cpu;
    struct rates rates = onnx_rates(&cpu);
    const struct hardware_timing any = {.op = TIMING_PASS, .seconds = 1e-6};
    cpu.timings[0] = (struct hardware_timings){"llama.cpp", "measured", 2, &any, 1};
    cpu.timing_count = 1;
    struct subgraph add = {.op = GRAPH_ADD, .steps = 1};
    struct roofline_work near = {.bytes = 0.47e6}, far = {.bytes = 10e6};
    assert_near(cpu_kernel_estimate(&add, &near, &rates).latency_s, 20e-6 + 1.8e-6, 1e-10);
    assert_near(cpu_kernel_estimate(&add, &far, &rates).latency_s, 2e-3 / 1.8 + 1.8e-6, 1e-10);
}

/* ---- ONNX Runtime: operators that were timed ---- */

/* Timed at 10 ps per MAC for convolutions of 16 channels and 20 for 64, at 30 for 1x1 kernels, at
 * 50 for image inputs, at 100 depthwise, at 40 for 1D; elements take 1 ns each, 3 ns with a layout
 * change; a step 0.25 us. */
static struct rates timed_rates(struct hardware *cpu, struct hardware_timings *table)
{
    static const struct hardware_timing ROWS[] = {
        {TIMING_STEP, NULL, 1, 1, 0, 0, 0, 0.25e-6},
        {TIMING_CONV, NULL, 100, 16, 16, 9, 0, 10e-12 * 100 * 16 * 16 * 9},
        {TIMING_CONV, NULL, 100, 64, 64, 9, 0, 20e-12 * 100 * 64 * 64 * 9},
        {TIMING_POINT_CONV, NULL, 100, 64, 64, 1, 0, 30e-12 * 100 * 64 * 64},
        {TIMING_IMAGE_CONV, NULL, 100, 3, 32, 9, 0, 50e-12 * 100 * 3 * 32 * 9},
        {TIMING_DEPTHWISE_CONV, NULL, 100, 1, 64, 9, 0, 100e-12 * 100 * 64 * 9},
        {TIMING_LINE_CONV, NULL, 100, 64, 64, 3, 0, 40e-12 * 100 * 64 * 64 * 3},
        {TIMING_ADD, NULL, 1000, 1, 0, 0, 0, 1e-6},
        {TIMING_SCALE, NULL, 1000, 1, 0, 0, 0, 1e-6},
        {TIMING_REORDER, NULL, 1000, 1, 0, 0, 0, 3e-6},
    };
    struct rates rates = onnx_rates(cpu);
    *table =
        (struct hardware_timings){"onnxruntime", "measured", 1, ROWS, sizeof ROWS / sizeof *ROWS};
    rates.timings = table;
    return rates;
}

static double conv_s(const struct rates *rates, double channels, double outputs, double groups,
                     double taps)
{
    struct subgraph conv = {.op = GRAPH_CONV,
                            .steps = 1,
                            .shape = {.groups = groups, .channels = channels, .taps = taps}};
    struct roofline_work work = {.macs = 100 * outputs * channels / groups * taps,
                                 .rows = 100,
                                 .outputs = 100 * outputs,
                                 .bytes = 1};
    return cpu_kernel_estimate(&conv, &work, rates).latency_s - 4 * 0.25e-6;
}

static void timed_onnx_runtime_operators_are_interpolated(void **state)
{
    (void)state;
    struct hardware cpu;
    struct hardware_timings table;
    struct rates rates = timed_rates(&cpu, &table);
    assert_near(conv_s(&rates, 16, 16, 1, 9), 100 * 16 * 16 * 9 * 10e-12, 1e-15);
    /* Interpolated in the logarithm, and extrapolated beyond the largest. */
    assert_near(conv_s(&rates, 32, 32, 1, 9), 100 * 32 * 32 * 9 * sqrt(200) * 1e-12, 1e-14);
    assert_near(conv_s(&rates, 256, 256, 1, 9), 100 * 256 * 256 * 9 * 20e-12, 1e-13);
    assert_near(conv_s(&rates, 64, 64, 1, 1), 100 * 64 * 64 * 30e-12, 1e-14);
    assert_near(conv_s(&rates, 64, 64, 64, 9), 100 * 64 * 9 * 100e-12, 1e-14);
    /* Blocks of 16 channels: 24 channels take as long as 32, and so do outputs of an image. */
    assert_near(conv_s(&rates, 24, 24, 1, 9) / conv_s(&rates, 32, 32, 1, 9), 1, 1e-9);
    assert_near(conv_s(&rates, 3, 20, 1, 9) / conv_s(&rates, 3, 32, 1, 9), 1, 1e-9);
    /* 1D convolutions are not blocked. */
    struct subgraph line = {
        .op = GRAPH_CONV,
        .shape = {.groups = 1, .channels = 3, .taps = 3, .window_rank = 1, .positions = 100},
    };
    struct roofline_work sound = {.macs = 100 * 3 * 20 * 3, .rows = 100, .outputs = 2000};
    assert_near(cpu_kernel_estimate(&line, &sound, &rates).latency_s, 18000 * 40e-12 + 1e-6, 1e-15);
    /* Two operands of 1000 elements; one and a constant; one that is converted first. */
    struct subgraph add = {.op = GRAPH_ADD, .steps = 1};
    struct roofline_work two = {.bytes = 12000, .outputs = 1000},
                         one = {.bytes = 8000, .outputs = 1000};
    assert_near(cpu_kernel_estimate(&add, &two, &rates).latency_s, 1e-6 + 1e-6, 1e-12);
    /* 0.1 MB of the weights of a large model take 10 us at 10 GB/s, however fast they are multiplied. */
    struct subgraph conv = {.op = GRAPH_CONV, .shape = {.groups = 1, .channels = 16, .taps = 9}};
    struct roofline_work few = {
        .macs = 1, .rows = 1, .outputs = 16, .bytes = 0.1e6, .traffic = {.weights = 0.1e6}};
    rates.held = 16e9;
    assert_near(cpu_kernel_estimate(&conv, &few, &rates).latency_s, 10e-6 + 1e-6, 1e-10);
    rates.held = 0;
    assert_near(cpu_kernel_estimate(&add, &one, &rates).latency_s, 1e-6 + 1e-6, 1e-12);
    add.shape.reordered = 1000;
    assert_near(cpu_kernel_estimate(&add, &one, &rates).latency_s, 1e-6 + 3e-6 + 1e-6, 1e-12);
    table.count--; /* a file of an older version */
    assert_near(cpu_kernel_estimate(&add, &one, &rates).latency_s, 1e-6 + 1e-6, 1e-12);
    add.shape.is_folded = true;
    assert_near(cpu_kernel_estimate(&add, &one, &rates).latency_s, 0, 0);
}

/* ---- the file ---- */

#define FILE_WITH(operation)                                                                       \
    "{\"id\": \"a\", \"name\": \"A\", \"vendor\": \"V\", \"class\": \"cpu\", "                     \
    "\"vector\": {\"fp32\": {\"peak\": {\"value\": 1, \"unit\": \"tflops\", \"evidence\": "        \
    "\"measured\", \"source\": \"s\"}}}, \"memories\": [{\"name\": \"m\", \"bandwidth\": "         \
    "{\"value\": 10, \"unit\": \"gb_per_s\", \"evidence\": \"measured\", \"source\": \"s\"}}], "   \
    "\"timings\": {\"runtime\": \"llama.cpp\", \"threads\": 2, \"source\": \"s\", "                \
    "\"operations\": [" operation "]}}"

static void errors_of_a_timings_file_name_the_cause(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: no error */
    } FILES[] = {
        {FILE_WITH("{\"op\": \"step\", \"us\": 1.5}"), NULL},
        {FILE_WITH("{\"op\": \"step\"}"), "timings.operations.0.us: is missing"},
        {FILE_WITH("{\"op\": \"step\", \"us\": -1}"), "us: must be a number above 0"},
        {FILE_WITH("{\"op\": \"product\", \"us\": 1}"), "format: is missing"},
        {FILE_WITH("{\"op\": \"walk\", \"us\": 1}"), "op: "},
        {FILE_WITH(""), "operations: must be an array"},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        struct hardware made;
        struct error why = {0};
        enum err err = hardware_parse("f", FILES[i].text, strlen(FILES[i].text), &made, &why);
        if (FILES[i].says) {
            assert_int_equal(err, ERR_BAD_VALUE);
            assert_non_null(strstr(why.text, FILES[i].says));
            continue;
        }
        assert_int_equal(err, ERR_OK);
        assert_int_equal(made.timings[0].count, 1);
        assert_near(made.timings[0].items[0].seconds, 1.5e-6, 1e-15);
        assert_int_equal(made.timings[0].threads, 2);
        hardware_release(&made);
    }
}

/* Files of one runtime have a table, those of two a list of tables; both forms are written as they were read. */
static void timings_are_one_table_or_a_list(void **state)
{
    (void)state;
#define TABLE(runtime)                                                                             \
    "{\"runtime\":\"" runtime                                                                      \
    "\",\"threads\":2,\"source\":\"s\",\"operations\":[{\"op\": \"step\", \"us\": 1.5}]}"
    static const char *const FORMS[] = {TABLE("llama.cpp"),
                                        "[" TABLE("llama.cpp") "," TABLE("onnxruntime") "]"};
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        static const char ONE[] = FILE_WITH("{\"op\": \"step\", \"us\": 1}");
        struct text file = {0}, out = {0};
        struct json json;
        struct hardware made;
        struct error why = {0};
        text_addf(&file, "%.*s\"timings\":%s}", (int)(strstr(ONE, "\"timings\"") - ONE), ONE,
                  FORMS[i]);
        assert_int_equal(hardware_parse("f", text_get(&file), file.length, &made, &why), ERR_OK);
        assert_string_equal(made.timings[i].runtime, i ? "onnxruntime" : "llama.cpp");
        json_init(&json, &out, false);
        hardware_write(&made, &json);
        assert_non_null(strstr(text_get(&out), FORMS[i]));
        hardware_release(&made);
        text_release(&file);
        text_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timed_operations_are_reproduced),
        cmocka_unit_test(other_sizes_are_interpolated),
        cmocka_unit_test(elementwise_time_follows_the_number_of_elements),
        cmocka_unit_test(onnx_runtime_operators_are_bound_by_compute_or_memory),
        cmocka_unit_test(weights_of_a_large_model_come_from_memory),
        cmocka_unit_test(short_onnx_runtime_operators_use_one_thread),
        cmocka_unit_test(timed_onnx_runtime_operators_are_interpolated),
        cmocka_unit_test(errors_of_a_timings_file_name_the_cause),
        cmocka_unit_test(timings_are_one_table_or_a_list),
    };
    return RUN_TESTS(tests);
}
