/* The legacy model reproduces its published figures to the last digit; the default model does not
 * repeat its errors. */
#include "estimate/legacy.h"

#include "core/text.h"
#include "estimate/pass_estimate.h"
#include "graph/zoo/zoo.h"
#include "port/json_read.h"
#include "support/tree.h"
#include "support/unit.h"

#define A100   IPW_FIXTURES "/hardware/legacy-a100-like.json"
#define JETSON IPW_FIXTURES "/hardware/legacy-jetson-like.json"

static struct graph build(const char *name)
{
    struct graph graph;
    struct error why = {0};
    struct graph_options setting = {.batch = 1};
    const struct zoo_entry *entry = zoo_find(name);
    assert_non_null(entry);
    assert_int_equal(zoo_build(entry, &setting, &graph, &why), ERR_OK);
    return graph;
}

static struct legacy_hardware read_device(const char *path)
{
    struct legacy_hardware hardware;
    struct error why = {0};
    assert_int_equal(legacy_hardware_read(path, &hardware, &why), ERR_OK);
    return hardware;
}

static const struct legacy_estimate *estimate_model(const char *model, const char *device,
                                                    enum precision precision, struct graph *graph,
                                                    struct legacy_estimate *out)
{
    struct legacy_hardware hardware = read_device(device);
    struct error why = {0};
    *graph = build(model);
    assert_int_equal(legacy_estimate_make(graph, &hardware, precision, out, &why), ERR_OK);
    return out;
}

static void release(struct graph *graph, struct legacy_estimate *compat)
{
    legacy_estimate_release(compat);
    graph_release(graph);
}

/* Printed with that many digits after the decimal point, the value reads as expected. */
static void assert_printed(double value, int digits, const char *expected)
{
    char text[48];
    snprintf(text, sizeof text, "%.*f", digits, value);
    assert_string_equal(text, expected);
}

static double joules_of(const struct legacy_estimate *compat, const char *name)
{
    for (size_t i = 0; i < compat->count; i++)
        if (strcmp(compat->rows[i].name, name) == 0)
            return compat->rows[i].joules.total;
    fail_msg("no subgraph %s", name);
    return 0;
}

static void test_resnet18_has_the_published_figures(void **state)
{
    (void)state;
    struct graph graph;
    struct legacy_estimate compat;
    const struct legacy_estimate *e =
        estimate_model("resnet18", A100, PRECISION_FP32, &graph, &compat);
    assert_int_equal(compat.count, 68);
    assert_printed(e->flops, 0, "3643625984");
    assert_printed(e->joules.compute * 1e6, 0, "72873");
    assert_printed(e->joules.memory * 1e6, 0, "1170");
    assert_printed(e->joules.idle * 1e6, 0, "131186");
    assert_printed(e->joules.total * 1e3, 2, "205.23");
    assert_printed(e->average_w, 2, "366.07");
    assert_printed(e->latency_s * 1e3, 2, "0.56");
    assert_printed(e->efficiency * 100, 1, "14.8");
    assert_printed(e->utilization * 100, 0, "41");
    assert_printed(e->utilization * 100, 2, "41.26");
    assert_printed(e->wasted_j * 1e6, 0, "73028");
    assert_printed(joules_of(&compat, "conv1") * 1e6, 0, "8761");
    assert_printed(joules_of(&compat, "layer4.0.conv2") * 1e6, 0, "8665");
    for (size_t i = 0; i < compat.count; i++)
        assert_true(e->rows[i].joules.total <= joules_of(&compat, "conv1"));
    release(&graph, &compat);
}

static void test_resnet18_in_fp16_costs_four_times_as_much(void **state)
{
    (void)state;
    struct graph graph;
    struct legacy_estimate compat;
    const struct legacy_estimate *e =
        estimate_model("resnet18", A100, PRECISION_FP16, &graph, &compat);
    assert_printed(e->joules.total * 1e3, 2, "814.88");
    assert_printed(e->average_w, 2, "1962.57");
    assert_printed(e->latency_s * 1e3, 2, "0.42");
    release(&graph, &compat);
}

static void test_mobilenet_v2_has_the_published_figures(void **state)
{
    (void)state;
    struct graph graph;
    struct legacy_estimate compat;
    const struct legacy_estimate *e =
        estimate_model("mobilenet_v2", A100, PRECISION_FP32, &graph, &compat);
    assert_int_equal(compat.count, 151);
    assert_printed(e->joules.total * 1e3, 0, "219");
    assert_printed(e->joules.compute * 1e6, 0, "12825");
    assert_printed(e->joules.memory * 1e6, 0, "1728");
    assert_printed(e->joules.idle * 1e6, 0, "204530");
    release(&graph, &compat);
}

static void test_jetson_has_the_published_figures(void **state)
{
    (void)state;
    struct graph graph;
    struct legacy_estimate compat;
    const struct legacy_estimate *e =
        estimate_model("resnet18", JETSON, PRECISION_FP32, &graph, &compat);
    assert_printed(e->joules.total * 1e3, 0, "667");
    assert_printed(e->joules.compute * 1e6, 0, "364363");
    assert_printed(e->joules.memory * 1e6, 0, "5848");
    assert_printed(e->joules.idle * 1e6, 0, "296826");
    assert_printed(e->latency_s * 1e3, 2, "3.30");
    assert_printed(e->efficiency * 100, 1, "21.1");
    release(&graph, &compat);
}

/* The same network on the real device, by the default model. */
static void test_fp16_saves_energy_in_the_default_model(void **state)
{
    (void)state;
    struct graph graph = build("resnet18");
    struct partition partition;
    struct hardware hardware;
    struct pass_estimate wide, narrow;
    struct error why = {0};
    partition_make(&graph, PARTITION_FUSED, &partition);
    assert_int_equal(hardware_find("a100-sxm-40gb", &hardware, &why), ERR_OK);
    struct estimate_config setting = {.precision = PRECISION_FP32};
    assert_int_equal(pass_estimate_make(&partition, &hardware, &setting, NULL, true, &wide, &why),
                     ERR_OK);
    setting.precision = PRECISION_FP16;
    assert_int_equal(pass_estimate_make(&partition, &hardware, &setting, NULL, true, &narrow, &why),
                     ERR_OK);
    assert_true(narrow.total.joules.total < 0.8 * wide.total.joules.total);
    assert_true(narrow.total.latency_s < wide.total.latency_s);
    assert_true(wide.total.average_w < hardware.limit_w.value);
    assert_true(wide.total.average_w > hardware.idle_w.value);
    pass_estimate_release(&wide);
    pass_estimate_release(&narrow);
    hardware_release(&hardware);
    partition_release(&partition);
    graph_release(&graph);
}

static void test_errors_of_a_file_name_the_cause(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } CASES[] = {
        {"{", "f.json: "},
        {"{\"id\": \"x\"}", "missing object \"legacy\""},
        {"{\"legacy\": {}}", "id: missing"},
        {"{\"id\": \"x\", \"legacy\": {}}", "legacy.flops: must be an object"},
        {"{\"id\": \"x\", \"legacy\": {\"flops\": [1]}}", "legacy.flops: must be an object"},
        {"{\"id\": \"x\", \"legacy\": {\"flops\": {\"fp31\": 1}}}",
         "legacy.flops: unknown precision 'fp31'"},
        {"{\"id\": \"x\", \"legacy\": {\"flops\": {\"fp32\": -1}}}", "must be numbers above 0"},
        {"{\"id\": \"x\", \"legacy\": {\"flops\": {\"fp32\": 1}, \"joules_per_flop\": {\"fp32\": "
         "1}}}",
         "legacy.bytes_per_s: must be a number above 0"},
    };
    struct tree tree;
    char path[160];
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/f.json", tree.root);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct legacy_hardware hardware;
        struct error why = {0};
        tree_write(&tree, "/f.json", "%s", CASES[i].json);
        assert_int_equal(legacy_hardware_read(path, &hardware, &why), ERR_BAD_VALUE);
        assert_contains(why.text, CASES[i].says);
    }
    tree_free(&tree);
}

static void test_an_unsupported_precision_is_an_error(void **state)
{
    (void)state;
    struct legacy_hardware hardware = read_device(JETSON);
    struct legacy_estimate compat;
    struct error why = {0};
    struct graph graph = build("resnet18");
    assert_int_equal(legacy_estimate_make(&graph, &hardware, PRECISION_FP16, &compat, &why),
                     ERR_BAD_VALUE);
    assert_contains(why.text, "legacy-jetson-like: no legacy figures in fp16");
    graph_release(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet18_has_the_published_figures),
        cmocka_unit_test(test_resnet18_in_fp16_costs_four_times_as_much),
        cmocka_unit_test(test_mobilenet_v2_has_the_published_figures),
        cmocka_unit_test(test_jetson_has_the_published_figures),
        cmocka_unit_test(test_fp16_saves_energy_in_the_default_model),
        cmocka_unit_test(test_errors_of_a_file_name_the_cause),
        cmocka_unit_test(test_an_unsupported_precision_is_an_error),
    };
    return RUN_TESTS(tests);
}
