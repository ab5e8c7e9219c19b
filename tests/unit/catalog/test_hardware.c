/* Hardware files: figures in SI units, errors that name the key and the rule, contradictory figures. */
#include "support/unit.h"

#include <stdlib.h>

#include "core/text.h"
#include "catalog/hardware_json.h"
#include "port/json_read.h"
#include "support/hardware_file.h"
#include "support/tree.h"
#include "support/hardware_paths.h"

static struct hardware device;
static struct text changed;

static int set_up(void **state)
{
    (void)state;
    struct error why = {0};
    changed = (struct text){0};
    if (hardware_parse("acme.json", HARDWARE_FILE, strlen(HARDWARE_FILE), &device, &why))
        fail_msg("%s", why.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hardware_release(&device);
    text_release(&changed);
    return 0;
}

/* ---- reading ---- */

static void figures_are_read_in_si_units(void **state)
{
    (void)state;
    assert_string_equal(device.id, "acme-1");
    assert_string_equal(device.name, "Acme One 16GB");
    assert_string_equal(device.vendor, "Acme");
    assert_int_equal(device.class, HARDWARE_GPU);
    assert_int_equal(device.year, 2024);
    assert_false(device.is_calibrated);
    assert_near(device.matrix_flops[PRECISION_BF16].value, 100e12, 1);
    assert_near(device.matrix_flops[PRECISION_INT8].value, 200e12, 1);
    assert_near(device.vector_flops[PRECISION_FP32].value, 10e12, 1);
    assert_near(device.matrix_joules[PRECISION_BF16].value, 2e-12, 1e-20);
    assert_near(device.matrix_joules[PRECISION_BF16].plus_minus, 0.1e-12, 1e-20);
    assert_near(device.vector_joules[PRECISION_FP32].value, 20e-12, 1e-20);
    assert_near(device.limit_w.value, 250, 0);
    assert_near(device.idle_w.value, 50, 1e-12);
    assert_near(device.idle_w.plus_minus, 0.5, 1e-12);
    assert_int_equal(device.idle_w.evidence, EVIDENCE_MEASURED);
    assert_string_equal(device.idle_w.source, "a meter");
    assert_near(device.launch_s.value, 4e-6, 1e-15);
    assert_near(device.units.value, 80, 0);
    assert_near(device.compute_share.value, 0.8, 0);
    assert_near(device.link_bytes_per_s.value, 300e9, 1);
    assert_int_equal(device.memory_count, 2);
    assert_string_equal(device.memories[0].name, "L2");
    assert_near(device.memories[0].bytes_per_s.value, 2e12, 1);
    assert_near(device.memories[0].capacity_bytes.value, 4 * 1024 * 1024, 0);
    assert_ptr_equal(hardware_main_memory(&device), &device.memories[1]);
    assert_near(device.memories[1].capacity_bytes.value, 16.0 * 1024 * 1024 * 1024, 0);
    assert_near(device.memories[1].joules_per_byte.value, 100e-12, 1e-20);
    assert_string_equal(device.aliases.items[1], "one");
    assert_int_equal(device.aliases.count, 2);
}

static void unspecified_values_are_unknown(void **state)
{
    (void)state;
    assert_false(is_known(device.matrix_flops[PRECISION_FP8].value));
    assert_false(is_known(device.vector_joules[PRECISION_FP16].value));
    assert_false(is_known(device.memory_share.value));
    assert_false(is_known(device.kernels.value));
    assert_false(is_known(device.link_latency_s.value));
    assert_false(is_known(device.units.plus_minus));
}

static void a_hardware_file_is_read_from_its_path(void **state)
{
    (void)state;
    struct tree tree;
    struct hardware read;
    struct error why = {0};
    char path[200];
    tree_new(&tree);
    tree_write_bytes(&tree, "/home/mine.json", 0, HARDWARE_FILE, strlen(HARDWARE_FILE));
    str_format(path, sizeof path, "%s/home/mine.json", tree.root);
    assert_int_equal(hardware_read(path, &read, &why), ERR_OK);
    assert_string_equal(read.id, "acme-1");
    hardware_release(&read);
    str_format(path, sizeof path, "%s/home/none.json", tree.root);
    assert_int_not_equal(hardware_read(path, &read, &why), ERR_OK);
    assert_contains(why.text, "none.json");
    tree_free(&tree);
}

/* ---- rejected files ---- */

static void assert_rejected(const char *old, const char *new, const char *words)
{
    struct hardware other;
    struct error why = {0};
    hardware_file_with(old, new, &changed);
    enum err err = hardware_parse("a.json", text_get(&changed), changed.length, &other, &why);
    if (err != ERR_BAD_VALUE || !strstr(why.text, words) || strncmp(why.text, "a.json: ", 8) != 0)
        fail_msg("%s: %d, expected '%s': %s", new, err, words, why.text);
}

static void errors_name_the_key_and_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } CASES[] = {
        {"\"vendor\"", "\"vendr\"", "vendr: unknown key: did you mean 'vendor'?"},
        {"\"id\": \"acme-1\", ", "", "id: is missing"},
        {"acme-1", "Acme 1", "id: must be lowercase letters, digits and dashes"},
        {"acme-1", "", "id: must be one line of text"},
        {"acme-1", "a-very-long-identifier-that-nobody-would-ever-want-to-type",
         "id: must be shorter"},
        {"\"gpu\"", "\"gppu\"", "class: unknown class 'gppu': did you mean 'gpu'?"},
        {"\"gpu\"", "\"abacus\"", "class: unknown class 'abacus' (known: gpu, cpu, tpu, npu)"},
        {"2024", "20.5", "year: must be a year"},
        {"2024", "2024, \"calibrated\": 1", "calibrated: must be true or false"},
        {"\"made up\"", "\"made\\nup\"", "note: must be one line"},
        {"[\"ACME ONE\"", "[1", "aliases: must be one line of text"},
        {"ACME ONE", "ACME\\\\ONE", "aliases: must be names"},
        {"\"bf16\"", "\"bf15\"", "matrix.bf15: unknown key: did you mean 'bf16'?"},
        {"\"bf16\"", "\"int8\"", "matrix.int8: given more than once"},
        {"\"peak\": {\"value\": 100", "\"peek\": {\"value\": 100",
         "matrix.bf16.peek: unknown key: did you mean 'peak'?"},
        {"\"value\": 100,", "", "matrix.bf16.peak.value: is missing"},
        {"\"value\": 100,", "\"value\": -100,",
         "matrix.bf16.peak.value: must be above 0, not -100"},
        {"\"value\": 100,", "\"value\": 0,", "matrix.bf16.peak.value: must be above 0, not 0"},
        {"\"value\": 100,", "\"value\": 1e999,", "matrix.bf16.peak.value: must be a finite number"},
        {"\"value\": 100,", "\"value\": NaN,", "not JSON"},
        {"\"value\": 100,", "\"value\": \"100\",",
         "matrix.bf16.peak.value: must be a finite number"},
        {"\"value\": 100,", "\"value\": 1e9,", "matrix.bf16.peak.value: 1e+09 is above"},
        {"\"unit\": \"tflops\", ", "", "matrix.bf16.peak.unit: is missing"},
        {"\"tflops\"", "\"tflop\"",
         "matrix.bf16.peak.unit: unknown unit 'tflop': did you mean 'tflops'?"},
        {"\"tflops\"", "7", "peak.unit: must be the name of a unit, such as \"tflops\""},
        {"\"tflops\"", "\"t\\nflops\"", "peak.unit: must be the name of a unit"},
        {"\"tflops\"", "\"watts\"", "unit: unknown unit 'watts' (known: tflops, tops, gflops)"},
        {"\"evidence\": \"published\", \"source\": \"a datasheet\"", "\"source\": \"a datasheet\"",
         "matrix.bf16.peak.evidence: is missing"},
        {"\"published\"", "\"publishd\"",
         "evidence: unknown evidence 'publishd': did you mean 'published'?"},
        {", \"source\": \"a datasheet\"", "", "matrix.bf16.peak.source: is missing"},
        {"\"a datasheet\"", "\"\"", "matrix.bf16.peak.source: must be one line of text"},
        {"\"a datasheet\"", "7", "matrix.bf16.peak.source: must be one line of text"},
        {"\"plus_minus\": 0.1", "\"plus_minus\": -1",
         "matrix.bf16.energy.plus_minus: must be a number, 0 or more"},
        {"{\"value\": 80, ", "{\"value\": 0.5, ", "units.value: must be 1 or more"},
        {"{\"value\": 80, ", "{\"value\": 80, \"unit\": \"sm\", ",
         "units.unit: this figure has no unit"},
        {"0.8", "1.2", "compute_share.value: 1.2 is above 1"},
        {"\"memories\": [", "\"memories\": [7, ", "memories.0: must be an object"},
        {"\"memories\": [", "\"memories\": [[7], ", "memories.0: must be an object"},
        {"{\"value\": 100, \"unit\": \"tflops\", \"evidence\": \"published\", \"source\": \"a "
         "datasheet\"}",
         "[1]", "matrix.bf16.peak: must be an object"},
        {"{\"bandwidth\": {\"value\": 300, \"unit\": \"gb_per_s\", \"evidence\": \"published\", "
         "\"source\": \"a datasheet\"}}",
         "[1]", "link: must be an object"},
        {"{\"value\": 4, \"unit\": \"us\", \"evidence\": \"assumed\", \"source\": \"class\"}",
         "[1]", "launch: must be an object"},
        {"\"year\": 2024", "\"processor\": [1]", "processor: must be an object"},
        {"\"year\": 2024", "\"kernel_classes\": [1]", "kernel_classes: must be an object"},
        {"\"year\": 2024", "\"timings\": [[1]]", "timings.0: must be an object"},
        {"\"points\": [", "\"points\": [[1], ", "points.0: must be an object"},
        {"\"name\": \"L2\", ", "", "memories.0.name: is missing"},
        {"\"bandwidth\": {\"value\": 1000, \"unit\": \"gb_per_s\", \"evidence\": \"published\", "
         "\"source\": \"a datasheet\"},",
         "", "memories: the last one must have its bandwidth"},
        {"\"clock_ratio\": 0.5", "\"clock_ratio\": 0",
         "points.1.clock_ratio: must be a number above 0"},
        {"\"Half\"", "\"FULL\"", "points.1.name: 'FULL' given more than once"},
        {"\"Half\"", "\"a@b\"", "points.1.name: must not contain '@'"},
        {", \"source\": \"a mode\"", "", "points.1.source: is missing"},
        {"\"link\": {", "\"link\": {\"hops\": 1, ", "link.hops: unknown key"},
        {"{\"id\"", "[{\"id\"", "not JSON"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_rejected(CASES[i].old, CASES[i].new, CASES[i].words);
}

static void invalid_documents_are_rejected(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {"", "{}", "[]", "[1]", "7", "null", "{\"memories\": []}"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct hardware other;
        struct error why = {0};
        enum err err = hardware_parse("a.json", OTHERS[i], strlen(OTHERS[i]), &other, &why);
        assert_int_equal(err, ERR_BAD_VALUE);
        assert_contains(why.text, "a.json: ");
    }
}

static void truncated_files_are_rejected(void **state)
{
    (void)state;
    for (size_t length = 0; length + 2 < strlen(HARDWARE_FILE); length += 7) {
        struct hardware other;
        struct error why = {0};
        char *part = malloc(length + 1); /* so that a sanitizer sees a read beyond it */
        assert_non_null(part);
        memcpy(part, HARDWARE_FILE, length);
        assert_int_equal(hardware_parse("a.json", part, length, &other, &why), ERR_BAD_VALUE);
        free(part);
    }
}

/* ---- contradictory figures ---- */

static enum err check_modified(const char *old, const char *new, struct error *why)
{
    struct hardware other;
    hardware_file_with(old, new, &changed);
    if (hardware_parse("a.json", text_get(&changed), changed.length, &other, why))
        fail_msg("%s", why->text);
    enum err err = hardware_check(&other, why);
    hardware_release(&other);
    return err;
}

static void contradictory_figures_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } CASES[] = {
        /* 100 TFLOPS x 3.26 pJ + 50 W = 376 W; 1.5 x 250 W = 375 W */
        {"\"value\": 2, \"unit\": \"pj\"", "\"value\": 3.26, \"unit\": \"pj\"",
         "acme-1: matrix.bf16: at its peak it would draw 376 W with idle, above 1.5 x the limit of "
         "250 W"},
        {"\"value\": 0.02, \"unit\": \"nj\"", "\"value\": 0.04, \"unit\": \"nj\"",
         "vector.fp32: at its peak"},
        {"\"value\": 1000, \"unit\": \"gb_per_s\"", "\"value\": 1.9, \"unit\": \"tb_per_s\"", ""},
        {"\"value\": 100, \"unit\": \"pj\"", "\"value\": 330, \"unit\": \"pj\"",
         "memories.HBM: at its peak it would draw 380 W"},
        {"\"value\": 200, \"unit\": \"tops\"", "\"value\": 99, \"unit\": \"tops\"",
         "matrix.int8.peak: is below that of bf16, which is wider"},
        {"\"value\": 1, \"unit\": \"pj\"", "\"value\": 2.1, \"unit\": \"pj\"",
         "matrix.int8.energy: is above that of bf16, which is wider"},
        {"\"value\": 50000", "\"value\": 250000",
         "power.idle: 250 W is not below the limit of 250 W"},
        {"\"value\": 2, \"unit\": \"tb_per_s\"", "\"value\": 0.9, \"unit\": \"tb_per_s\"",
         "memories.L2.bandwidth: below that of HBM"},
        {"\"value\": 50, \"unit\": \"pj\"", "\"value\": 101, \"unit\": \"pj\"",
         "memories.L2.energy: above that of HBM"},
        {"\"value\": 4, \"unit\": \"mib\"", "\"value\": 17, \"unit\": \"gib\"",
         "memories.L2.capacity: is above that of HBM"},
        {"\"source\": \"as it is\"", "\"clock_ratio\": 0.9, \"source\": \"as it is\"",
         "points.full: the first must be the device itself"},
        {"\"source\": \"as it is\"", "\"limit_w\": 240, \"source\": \"as it is\"",
         "points.full: the first must be the device itself"},
        {"\"idle_w\": 40", "\"idle_w\": 150",
         "points.Half: idle of 150 W is not below the limit of 150 W"},
    };
    struct error why = {0};
    assert_int_equal(hardware_check(&device, &why), ERR_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum err err = check_modified(CASES[i].old, CASES[i].new, &why);
        bool is_fine = !CASES[i].words[0];
        if ((err == ERR_OK) != is_fine || (!is_fine && !strstr(why.text, CASES[i].words)))
            fail_msg("%s: %d: %s", CASES[i].new, err, why.text);
    }
}

/* With an uncertainty, only the excess beyond it counts. */
static void a_fitted_energy_may_exceed_the_power_limit_by_more(void **state)
{
    (void)state;
    static const struct {
        const char *figure;
        bool is_fine;
    } CASES[] = {{"\"value\": 4.4, \"plus_minus\": 0.001", true},
                 {"\"value\": 4.6, \"plus_minus\": 0.001", false},
                 {"\"value\": 5, \"plus_minus\": 0.3", true},
                 {"\"value\": 5, \"plus_minus\": 0.1", false}};
    const char *old =
        "\"value\": 2, \"unit\": \"pj\", \"evidence\": \"derived\", \"plus_minus\": 0.1";
    struct error why = {0};
    char new[120];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        str_format(new, sizeof new, "%s, \"unit\": \"pj\", \"evidence\": \"fitted\"",
                   CASES[i].figure);
        enum err err = check_modified(old, new, &why);
        if (err != (CASES[i].is_fine ? ERR_OK : ERR_BAD_VALUE))
            fail_msg("%s: %d: %s", new, err, why.text);
    }
    assert_contains(why.text, "above 2.0 x the limit");
}

static void a_device_without_peaks_is_rejected(void **state)
{
    (void)state;
    struct error why = {0};
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        device.matrix_flops[i].value = device.vector_flops[i].value = UNKNOWN;
    assert_int_equal(hardware_check(&device, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "has no peak");
}

/* ---- which units operations run on ---- */

static void matmuls_run_on_units_that_represent_their_precision(void **state)
{
    (void)state;
    static const struct {
        enum precision asked, used;
        double flops, joules;
    } CASES[] = {
        {PRECISION_BF16, PRECISION_BF16, 100e12, 2e-12},
        {PRECISION_FP16, PRECISION_BF16, 100e12, 2e-12}, /* the same width */
        {PRECISION_INT8, PRECISION_INT8, 200e12, 1e-12},
        {PRECISION_FP8, PRECISION_BF16, 100e12, 2e-12},  /* integers cannot represent it */
        {PRECISION_INT4, PRECISION_INT8, 200e12, 1e-12}, /* represents four bits */
        {PRECISION_FP4, PRECISION_BF16, 100e12, 2e-12},
        {PRECISION_FP32, PRECISION_FP32, 10e12, 20e-12},
        {PRECISION_TF32, PRECISION_FP32, 10e12, 20e-12},
        {PRECISION_FP64, PRECISION_FP64, UNKNOWN, UNKNOWN}, /* no unit represents it */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum precision used;
        double flops = hardware_matmul_flops(&device, CASES[i].asked, &used);
        double joules = matmul_joules(&device, CASES[i].asked);
        assert_int_equal(used, CASES[i].used);
        assert_int_equal(is_known(flops), is_known(CASES[i].flops));
        assert_int_equal(is_known(joules), is_known(CASES[i].joules));
        if (is_known(flops)) {
            assert_near(flops, CASES[i].flops, 1);
            assert_near(joules, CASES[i].joules, 1e-20);
        }
    }
}

static void add_units(struct hardware_figure *flops, struct hardware_figure *joules,
                      enum precision format, double rate, double each)
{
    flops[format] = joules[format] =
        (struct hardware_figure){.value = rate, .plus_minus = UNKNOWN, .source = "test"};
    joules[format].value = each;
}

/* A supported precision runs on its own units at any cost; another one on the cheapest units that
 * represent it, the fastest among equals. */
static void matmuls_of_unsupported_precisions_run_on_the_cheapest_units(void **state)
{
    (void)state;
    enum precision used;
    struct error why = {0};
    add_units(device.vector_flops, device.vector_joules, PRECISION_FP16, 20e12, 10e-12);
    assert_near(matmul_joules(&device, PRECISION_FP16), 10e-12, 1e-20);
    assert_near(hardware_matmul_flops(&device, PRECISION_FP8, &used), 100e12, 1);
    assert_int_equal(used, PRECISION_BF16); /* on the matrix units */
    assert_near(matmul_joules(&device, PRECISION_FP4), 2e-12, 1e-20);
    add_units(device.matrix_flops, device.matrix_joules, PRECISION_FP16, 150e12, 2e-12);
    assert_near(hardware_matmul_flops(&device, PRECISION_FP8, &used), 150e12, 1);
    assert_int_equal(used, PRECISION_FP16);
    add_units(device.matrix_flops, device.matrix_joules, PRECISION_FP4, 400e12, 0.5e-12);
    assert_near(hardware_matmul_flops(&device, PRECISION_FP4, &used), 400e12, 1);
    assert_int_equal(used, PRECISION_FP4);
    assert_near(matmul_joules(&device, PRECISION_FP4), 0.5e-12, 1e-20);
    hardware_matmul_flops(&device, PRECISION_INT4, &used);
    assert_int_equal(used, PRECISION_INT8); /* fp4 cannot represent it */
    /* Elementwise operations on activations use the cheaper 16-bit precision. */
    assert_near(elementwise_joules(&device, PRECISION_FP4), 10e-12, 1e-20);
    assert_int_equal(hardware_check(&device, &why), ERR_OK);
}

/* Vector units of a precision that the matrix units run faster in a wider one. */
static void vector_units_slower_than_matrix_units_are_rejected(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(hardware_check(&device, &why), ERR_OK);
    add_units(device.vector_flops, device.vector_joules, PRECISION_FP8, 40e12, 5e-12);
    assert_int_equal(hardware_check(&device, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "vector.fp8.peak: is below that of the wider bf16");
}

static void elementwise_operations_run_on_the_vector_units(void **state)
{
    (void)state;
    assert_near(elementwise_flops(&device, PRECISION_BF16), 10e12, 1);
    assert_near(elementwise_joules(&device, PRECISION_INT8), 20e-12, 1e-20);
    assert_false(is_known(elementwise_flops(&device, PRECISION_FP64)));
    device.vector_flops[PRECISION_FP32].value =
        UNKNOWN; /* without vector units: on the matrix units */
    assert_near(elementwise_flops(&device, PRECISION_BF16), 100e12, 1);
    assert_near(elementwise_joules(&device, PRECISION_BF16), 2e-12, 1e-20);
}

static void evidence_is_that_of_the_weakest_figure(void **state)
{
    (void)state;
    assert_int_equal(hardware_evidence(&device, PRECISION_BF16), EVIDENCE_DERIVED);
    device.matrix_joules[PRECISION_BF16].evidence = EVIDENCE_FITTED;
    device.memories[1].joules_per_byte.evidence = EVIDENCE_FITTED;
    assert_int_equal(hardware_evidence(&device, PRECISION_BF16), EVIDENCE_PUBLISHED);
    assert_int_equal(hardware_evidence(&device, PRECISION_INT8), EVIDENCE_DERIVED);
    device.idle_w.evidence = EVIDENCE_ASSUMED;
    assert_int_equal(hardware_evidence(&device, PRECISION_BF16), EVIDENCE_ASSUMED);
    device.idle_w = (struct hardware_figure){.value = UNKNOWN};
    assert_int_equal(hardware_evidence(&device, PRECISION_BF16), EVIDENCE_ASSUMED);
}

/* ---- operating points ---- */

static void an_operating_point_overrides_its_figures(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(hardware_at_point(&device, "half", &why), ERR_OK);
    assert_string_equal(device.id, "acme-1@Half");
    assert_near(device.limit_w.value, 150, 0);
    assert_near(device.idle_w.value, 40, 0);
    assert_false(is_known(device.idle_w.plus_minus));
    assert_near(device.matrix_flops[PRECISION_BF16].value, 50e12, 1);
    assert_int_equal(device.matrix_flops[PRECISION_BF16].evidence, EVIDENCE_DERIVED);
    assert_string_equal(device.matrix_flops[PRECISION_BF16].source, "a mode");
    assert_near(device.vector_joules[PRECISION_FP32].value, 12e-12, 1e-20);
    assert_near(device.matrix_joules[PRECISION_BF16].plus_minus, 0.06e-12, 1e-20);
    assert_near(device.memories[0].bytes_per_s.value, 1e12, 1);
    assert_near(device.memories[1].bytes_per_s.value, 0.75e12, 1);
    assert_near(device.memories[1].joules_per_byte.value, 100e-12, 1e-20);
    assert_false(is_known(device.matrix_flops[PRECISION_FP8].value));
    assert_int_equal(hardware_at_point(&device, "half", &why), ERR_NOT_FOUND);
    assert_contains(why.text, "has no operating points");
}

static void the_first_operating_point_is_the_default(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(hardware_at_point(&device, "full", &why), ERR_OK);
    assert_near(device.limit_w.value, 250, 0);
    assert_near(device.matrix_flops[PRECISION_BF16].value, 100e12, 1);
    assert_int_equal(device.matrix_flops[PRECISION_BF16].evidence, EVIDENCE_PUBLISHED);
}

static void an_unknown_operating_point_lists_the_known_ones(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(hardware_at_point(&device, "quarter", &why), ERR_NOT_FOUND);
    assert_contains(why.text, "acme-1 has no operating point 'quarter': it has full, Half");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(figures_are_read_in_si_units),
        TEST(unspecified_values_are_unknown),
        TEST(a_hardware_file_is_read_from_its_path),
        TEST(errors_name_the_key_and_the_rule),
        TEST(invalid_documents_are_rejected),
        TEST(truncated_files_are_rejected),
        TEST(contradictory_figures_are_rejected),
        TEST(a_fitted_energy_may_exceed_the_power_limit_by_more),
        TEST(a_device_without_peaks_is_rejected),
        TEST(matmuls_run_on_units_that_represent_their_precision),
        TEST(matmuls_of_unsupported_precisions_run_on_the_cheapest_units),
        TEST(vector_units_slower_than_matrix_units_are_rejected),
        TEST(elementwise_operations_run_on_the_vector_units),
        TEST(evidence_is_that_of_the_weakest_figure),
        TEST(an_operating_point_overrides_its_figures),
        TEST(the_first_operating_point_is_the_default),
        TEST(an_unknown_operating_point_lists_the_known_ones),
    };
    return RUN_TESTS(tests);
}
