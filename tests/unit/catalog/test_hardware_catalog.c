/* The catalog: every entry is complete, and equal to its file. */
#include "support/unit.h"
#include "support/hardware_paths.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

#include "catalog/cpu_power.h"
#include "catalog/device_peak.h"
#include "catalog/hardware_json.h"
#include "core/json.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

static void for_each_entry(void (*look)(const struct hardware *hardware))
{
    assert_true(hardware_count() >= 50);
    for (size_t i = 0; i < hardware_count(); i++) {
        struct hardware hardware;
        struct error why = {0};
        if (hardware_find(hardware_at(i)->id, &hardware, &why))
            fail_msg("%s", why.text);
        assert_string_equal(hardware.id, hardware_at(i)->id);
        if (i > 0)
            assert_true(strcmp(hardware_at(i - 1)->id, hardware.id) < 0);
        look(&hardware);
        hardware_release(&hardware);
    }
}

static void assert_figure(const struct hardware *hardware, const char *what,
                          const struct hardware_figure *figure)
{
    if (!is_known(figure->value) || !figure->source || !figure->source[0])
        fail_msg("%s: %s: has no value or no source", hardware->id, what);
}

/* An estimate needs joules for every peak, the memory, and the watts. */
static void check_complete(const struct hardware *hardware)
{
    struct error why = {0};
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    if (hardware_check(hardware, &why))
        fail_msg("%s", why.text);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        if (is_known(hardware->matrix_flops[i].value))
            assert_figure(hardware, precision_name((enum precision)i), &hardware->matrix_joules[i]);
        if (is_known(hardware->vector_flops[i].value))
            assert_figure(hardware, precision_name((enum precision)i), &hardware->vector_joules[i]);
    }
    assert_figure(hardware, "bandwidth", &memory->bytes_per_s);
    assert_figure(hardware, "joules a byte", &memory->joules_per_byte);
    assert_figure(hardware, "limit", &hardware->limit_w);
    assert_figure(hardware, "idle", &hardware->idle_w);
    assert_figure(hardware, "launch", &hardware->launch_s);
    assert_figure(hardware, "compute_share", &hardware->compute_share);
    assert_figure(hardware, "memory_share", &hardware->memory_share);
    if (hardware->class != HARDWARE_CPU) /* its memory is not part of the device */
        assert_figure(hardware, "capacity", &memory->capacity_bytes);
}

static void every_entry_is_complete(void **state)
{
    (void)state;
    for_each_entry(check_complete);
}

/* Joules are never exact, nor are assumed watts. */
static void check_uncertainty(const struct hardware *hardware)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        if (is_known(hardware->matrix_joules[i].value))
            assert_true(hardware->matrix_joules[i].plus_minus > 0);
    assert_true(hardware_main_memory(hardware)->joules_per_byte.plus_minus > 0);
    if (hardware->limit_w.evidence == EVIDENCE_ASSUMED)
        assert_true(hardware->limit_w.plus_minus > 0);
    if (hardware->idle_w.evidence == EVIDENCE_ASSUMED)
        assert_true(hardware->idle_w.plus_minus > 0);
}

static void joules_and_assumed_figures_have_an_uncertainty(void **state)
{
    (void)state;
    for_each_entry(check_uncertainty);
}

/* Each width is at least as fast as the wider one, on any units. */
static void check_widths(const struct hardware *hardware)
{
    static const enum precision BY_WIDTH[] = {PRECISION_FP64, PRECISION_FP32, PRECISION_FP16,
                                              PRECISION_INT8};
    double slower = 0, cheaper = INFINITY;
    for (size_t i = 0; i < sizeof BY_WIDTH / sizeof *BY_WIDTH; i++) {
        enum precision used;
        double flops = hardware_matmul_flops(hardware, BY_WIDTH[i], &used);
        double joules = matmul_joules(hardware, BY_WIDTH[i]);
        if (!is_known(flops))
            continue;
        if (flops < slower || joules > cheaper * 1.0001)
            fail_msg("%s: %s: %g FLOPS after %g, %g J after %g", hardware->id,
                     precision_name(BY_WIDTH[i]), flops, slower, joules, cheaper);
        slower = flops;
        cheaper = joules;
    }
}

static void narrower_precisions_are_neither_slower_nor_costlier(void **state)
{
    (void)state;
    for_each_entry(check_widths);
}

/* The formula that derived energies give as their source, recomputed. */
static void check_derived(const struct hardware *hardware)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        const struct hardware_figure *joules = &hardware->matrix_joules[i];
        if (!is_known(joules->value) || joules->evidence != EVIDENCE_DERIVED ||
            !str_starts(joules->source, "(limit - idle) / (compute_share x peak)"))
            continue;
        double watts = hardware->idle_w.value + joules->value * hardware->matrix_flops[i].value *
                                                    hardware->compute_share.value;
        assert_near(watts / hardware->limit_w.value, 1, 0.01);
    }
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    if (str_starts(memory->joules_per_byte.source, "0.8 x (limit - idle)")) {
        double share = memory->joules_per_byte.value * memory->bytes_per_s.value *
                       hardware->memory_share.value /
                       (hardware->limit_w.value - hardware->idle_w.value);
        assert_near(share, 0.8, 0.01);
    }
}

static void derived_energies_follow_their_formula(void **state)
{
    (void)state;
    for_each_entry(check_derived);
}

/* ---- names ---- */

static void check_aliases(const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->aliases.count; i++) {
        const char *alias = hardware->aliases.items[i];
        struct hardware found;
        struct error why = {0};
        if (hardware_find(alias, &found, &why))
            fail_msg("%s", why.text);
        assert_string_equal(found.id, hardware->id);
        hardware_release(&found);
    }
}

static void aliases_resolve_to_their_device(void **state)
{
    (void)state;
    for_each_entry(check_aliases);
}

static void check_points(const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->point_count; i++) {
        struct hardware found;
        struct error why = {0};
        char name[160];
        str_format(name, sizeof name, "%s@%s", hardware->id, hardware->points[i].name);
        if (hardware_find(name, &found, &why))
            fail_msg("%s", why.text);
        assert_string_equal(found.id, name);
        if (hardware_check(&found, &why))
            fail_msg("%s", why.text);
        hardware_release(&found);
    }
}

static void operating_points_of_every_device_are_valid(void **state)
{
    (void)state;
    for_each_entry(check_points);
}

static void names_are_found_or_suggested(void **state)
{
    (void)state;
    static const struct {
        const char *name, *id, *words;
    } CASES[] = {
        {"h200", "h200", NULL},
        {"H200", "h200", NULL},
        {"NVIDIA H200", "h200", NULL},
        {"nvidia a100-sxm4-80gb", "a100-sxm-80gb", NULL},
        {"h100", "h100-sxm", NULL},
        {"Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "xeon-8380", NULL},
        {"jetson-orin-agx@30w", "jetson-orin-agx-64gb@30W", NULL},
        {"jetson-orin-agx-64gb@31W", NULL, "no operating point '31W': it has MAXN, 50W, 30W, 15W"},
        {"l4@15W", NULL, "l4 has no operating points"},
        {"h20", NULL, "unknown hardware 'h20': see `ipw list hardware`"},
        {"h201@MAXN", NULL, "unknown hardware 'h201': see `ipw list hardware`"},
        {"hh200@MAXN", NULL, "unknown hardware 'hh200': see `ipw list hardware`"},
        {"a100-sxn", NULL,
         "unknown hardware 'a100-sxn': did you mean a100-sxm-40gb or a100-sxm-80gb?"},
        {"abacus-with-wooden-beads", NULL,
         "unknown hardware 'abacus-with-wooden-beads': see `ipw list hardware`"},
        {"", NULL, "unknown hardware ''"},
        {"@", NULL, "unknown hardware ''"},
        {"published", NULL, "unknown hardware 'published'"}, /* in every file, but no alias */
        {"bf16", NULL, "unknown hardware 'bf16'"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct hardware hardware;
        struct error why = {0};
        enum err err = hardware_find(CASES[i].name, &hardware, &why);
        if (CASES[i].id) {
            assert_int_equal(err, ERR_OK);
            assert_string_equal(hardware.id, CASES[i].id);
            hardware_release(&hardware);
        } else {
            assert_int_equal(err, ERR_NOT_FOUND);
            assert_contains(why.text, CASES[i].words);
        }
    }
}

static void driver_names_resolve_to_the_device(void **state)
{
    (void)state;
    static const struct {
        const char *driver, *id; /* NULL: not in the catalog */
    } CASES[] = {
        {"NVIDIA H200", "h200"},
        {"NVIDIA H100 80GB HBM3", "h100-sxm"},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
        {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
        {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
        {"Tesla T4", "t4"},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"AMD Instinct MI300X OAM", "mi300x"},
        {"AMD Instinct MI250X", "mi250x-gcd"},
        {"AMD EPYC 9654 96-Core Processor", "epyc-9654"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
        {"NVIDIA GeForce RTX 3090 Ti", NULL},
        {"AMD Instinct MI250X Engineering", "mi250x-gcd"}, /* one device to the driver */
        {"NVIDIA H200 NVL", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct hardware hardware;
        bool found = hardware_find_device(CASES[i].driver, &hardware);
        if (found != (CASES[i].id != NULL))
            fail_msg("%s: %s", CASES[i].driver, found ? hardware.id : "not found");
        if (found)
            assert_string_equal(hardware.id, CASES[i].id);
        hardware_release(&hardware);
    }
}

/* The peaks of measured runs equal those of the same device in estimates. */
static size_t compared;

static void compare_peaks(const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->aliases.count; i++) {
        const char *alias = hardware->aliases.items[i];
        struct device_peak peak;
        enum precision precision, used;
        struct error why = {0};
        if (!device_peak_find(alias, &peak))
            continue;
        compared++;
        assert_int_equal(precision_find(peak.precision, &precision, &why), ERR_OK);
        if (is_known(peak.tflops)) {
            double flops = hardware_matmul_flops(hardware, precision, &used);
            if (fabs(flops / 1e12 - peak.tflops) > 1e-6 * peak.tflops || used != precision)
                fail_msg("%s: %g TFLOPS, %s has %g", hardware->id, flops / 1e12, peak.name,
                         peak.tflops);
        }
        double bandwidth = hardware_main_memory(hardware)->bytes_per_s.value / 1e9;
        if (is_known(peak.gb_per_s) && fabs(bandwidth - peak.gb_per_s) > 1e-6 * bandwidth)
            fail_msg("%s: %g GB/s, %s has %g", hardware->id, bandwidth, peak.name, peak.gb_per_s);
    }
}

static void peaks_match_those_of_measured_runs(void **state)
{
    (void)state;
    compared = 0;
    for_each_entry(compare_peaks);
    assert_true(compared >= 25);
}

/* ---- the files of data/hardware against lookups ---- */

static void assert_same_text(const char *where, const char *a, const char *b)
{
    if (!a != !b || (a && strcmp(a, b) != 0))
        fail_msg("%s: '%s' and '%s'", where, a ? a : "none", b ? b : "none");
}

static void assert_same_number(const char *where, double a, double b)
{
    if (is_known(a) != is_known(b) || (is_known(a) && a != b))
        fail_msg("%s: %.17g and %.17g", where, a, b);
}

static void assert_same_list(const char *where, const struct hardware_names *a,
                             const struct hardware_names *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_same_text(where, a->items[i], b->items[i]);
}

static void assert_same_figures(const char *where, const struct hardware_figure *a,
                                const struct hardware_figure *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_same_number(where, a[i].value, b[i].value);
        assert_same_number(where, a[i].plus_minus, b[i].plus_minus);
        assert_int_equal(a[i].evidence, b[i].evidence);
        assert_same_text(where, a[i].source, b[i].source);
        assert_same_text(where, a[i].unit, b[i].unit);
    }
}

static void assert_same_points(const struct hardware *a, const struct hardware *b)
{
    assert_int_equal(a->point_count, b->point_count);
    for (size_t i = 0; i < a->point_count; i++) {
        const struct hardware_point *x = &a->points[i], *y = &b->points[i];
        assert_same_text(a->id, x->name, y->name);
        assert_same_text(a->id, x->source, y->source);
        assert_same_number(a->id, x->limit_w, y->limit_w);
        assert_same_number(a->id, x->clock_ratio, y->clock_ratio);
        assert_same_number(a->id, x->memory_ratio, y->memory_ratio);
        assert_same_number(a->id, x->energy_ratio, y->energy_ratio);
        assert_same_number(a->id, x->idle_w, y->idle_w);
    }
}

static void assert_same_hardware(const struct hardware *a, const struct hardware *b)
{
    assert_same_text(a->id, a->id, b->id);
    assert_same_text(a->id, a->name, b->name);
    assert_same_text(a->id, a->vendor, b->vendor);
    assert_same_text(a->id, a->note, b->note);
    assert_int_equal(a->class, b->class);
    assert_int_equal(a->year, b->year);
    assert_int_equal(a->is_calibrated, b->is_calibrated);
    assert_same_figures(a->id, a->matrix_flops, b->matrix_flops, PRECISION_COUNT);
    assert_same_figures(a->id, a->matrix_joules, b->matrix_joules, PRECISION_COUNT);
    assert_same_figures(a->id, a->vector_flops, b->vector_flops, PRECISION_COUNT);
    assert_same_figures(a->id, a->vector_joules, b->vector_joules, PRECISION_COUNT);
    assert_int_equal(a->memory_count, b->memory_count);
    for (size_t i = 0; i < a->memory_count; i++) {
        assert_same_text(a->id, a->memories[i].name, b->memories[i].name);
        assert_same_figures(a->id, &a->memories[i].bytes_per_s, &b->memories[i].bytes_per_s, 1);
        assert_same_figures(a->id, &a->memories[i].capacity_bytes, &b->memories[i].capacity_bytes,
                            1);
        assert_same_figures(a->id, &a->memories[i].joules_per_byte, &b->memories[i].joules_per_byte,
                            1);
    }
    assert_same_figures(a->id, &a->limit_w, &b->limit_w, 1);
    assert_same_figures(a->id, &a->idle_w, &b->idle_w, 1);
    assert_same_figures(a->id, &a->launch_s, &b->launch_s, 1);
    assert_same_figures(a->id, &a->units, &b->units, 1);
    assert_same_figures(a->id, &a->compute_share, &b->compute_share, 1);
    assert_same_figures(a->id, &a->memory_share, &b->memory_share, 1);
    assert_same_figures(a->id, &a->kernels, &b->kernels, 1);
    assert_int_equal(!a->kernel_classes, !b->kernel_classes);
    for (size_t i = 0; a->kernel_classes && i < KERNEL_COUNT; i++) {
        const struct kernel_figures *x = &a->kernel_classes[i], *y = &b->kernel_classes[i];
        assert_true(x->fixed_s > 0 && x->compute_share > 0 && x->memory_share > 0);
        const double pairs[][2] = {{x->fixed_s, y->fixed_s},
                                   {x->compute_share, y->compute_share},
                                   {x->memory_share, y->memory_share},
                                   {x->depth_s, y->depth_s},
                                   {x->row_s, y->row_s},
                                   {x->active_w, y->active_w}};
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
            assert_true(fabs(pairs[k][0] - pairs[k][1]) <= 1e-12 * pairs[k][0]);
    }
    assert_same_figures(a->id, &a->host_launch_s, &b->host_launch_s, 1);
    assert_same_figures(a->id, &a->link_bytes_per_s, &b->link_bytes_per_s, 1);
    assert_same_figures(a->id, &a->link_latency_s, &b->link_latency_s, 1);
    assert_same_figures(a->id, &a->link_peers, &b->link_peers, 1);
    assert_same_figures(a->id, &a->link_count, &b->link_count, 1);
    assert_same_points(a, b);
    assert_same_list(a->id, &a->aliases, &b->aliases);
    assert_same_list(a->id, &a->matches, &b->matches);
    assert_same_list(a->id, &a->processor.brands, &b->processor.brands);
    assert_int_equal(a->processor.threads, b->processor.threads);
    assert_same_text(a->id, a->processor.source, b->processor.source);
}

/* What hardware_write writes is read back unchanged. */
static void assert_round_trip(const struct hardware *entry)
{
    struct text out = {0};
    struct json json;
    struct hardware again;
    struct error why = {0};
    json_init(&json, &out, true);
    hardware_write(entry, &json);
    if (hardware_parse(entry->id, text_get(&out), out.length, &again, &why))
        fail_msg("%s", why.text);
    assert_same_hardware(entry, &again);
    hardware_release(&again);
    text_release(&out);
}

static void compare_device(const char *path, const struct text *bytes)
{
    struct hardware read, entry;
    struct error why = {0};
    if (hardware_parse(path, text_get(bytes), bytes->length, &read, &why) ||
        hardware_find(read.id, &entry, &why))
        fail_msg("%s", why.text);
    assert_same_hardware(&entry, &read);
    assert_round_trip(&entry);
    if (read.processor.brands.count) {
        double watts = read.limit_w.value;
        struct cpu_power power = cpu_power_find(&(struct cpu_power_key){
            .brand = read.processor.brands.items[0], .product = "", .board = "", .vendor = ""});
        assert_same_text(path, power.name, read.processor.brands.items[0]);
        assert_same_text(path, power.source, read.processor.source);
        assert_same_number(path, power.watts_per_thread, watts / read.processor.threads);
    }
    hardware_release(&read);
}

static double number_at(const struct jv *row, const char *key)
{
    return jv_number(jv_get(row, key));
}

static void compare_peak_row(const struct jv *row)
{
    struct jv const *names = jv_get(row, "match");
    for (const struct jv *name = jv_first(names); name; name = jv_next(name)) {
        struct device_peak peak;
        const char *match = jv_text(name);
        assert_true(device_peak_find(match, &peak));
        assert_same_text(match, peak.name, match);
        assert_same_number(match, peak.tflops, number_at(row, "tflops"));
        assert_same_number(match, peak.gb_per_s, number_at(row, "gb_per_s"));
        assert_same_text(match, peak.hardware, jv_text(jv_get(row, "estimate_as")));
        assert_same_text(match, peak.source, jv_text(jv_get(row, "source")));
        if (is_known(peak.tflops))
            assert_same_text(match, peak.precision, jv_text(jv_get(row, "precision")));
        assert_true(is_known(peak.tflops) || is_known(peak.gb_per_s));
        if (peak.hardware)
            assert_true(hardware_find(peak.hardware, &(struct hardware){0}, &(struct error){0}) ==
                        ERR_OK);
    }
}

static void compare_power_row(const struct jv *row)
{
    const struct jv *names = jv_get(row, "match");
    double watts = number_at(row, "watts"), cores = number_at(row, "cores");
    double threads = number_at(row, "threads");
    assert_true(threads == cores || (threads > cores && threads <= 2 * cores));
    assert_true(watts / threads > 0.5 && watts / threads < 30);
    for (const struct jv *name = jv_first(names); name; name = jv_next(name)) {
        struct cpu_power_key key = {
            .brand = jv_text(name), .product = "", .board = "", .vendor = ""};
        struct cpu_power power = cpu_power_find(&key);
        assert_same_text(key.brand, power.name, key.brand); /* and no other row has this name */
        assert_same_number(key.brand, power.watts_per_thread, watts / threads);
        key.is_single_threaded = true;
        assert_same_number(key.brand, cpu_power_find(&key).watts_per_thread, watts / cores);
        assert_same_text(key.brand, power.source, jv_text(jv_get(row, "source")));
    }
}

static unsigned hex(const struct jv *row, const char *key)
{
    return (unsigned)strtoul(jv_text(jv_get(row, key)), NULL, 16);
}

static void compare_list(const struct jv *list)
{
    for (const struct jv *row = jv_first(jv_get(list, "devices")); row; row = jv_next(row))
        compare_peak_row(row);
    for (const struct jv *row = jv_first(jv_get(list, "processors")); row; row = jv_next(row))
        compare_power_row(row);
    for (const struct jv *row = jv_first(jv_get(list, "families")); row; row = jv_next(row)) {
        struct cpu_power_key key = {.brand = "", .product = "", .board = ""};
        key.vendor = jv_text(jv_get(row, "vendor"));
        key.family = (unsigned)number_at(row, "family");
        key.model = (unsigned)number_at(row, "model");
        struct cpu_power power = cpu_power_find(&key);
        assert_same_text(key.vendor, power.name, jv_text(jv_get(row, "name")));
        assert_same_number(power.name, power.watts_per_thread, number_at(row, "watts_per_thread"));
    }
    for (const struct jv *row = jv_first(jv_get(list, "cores")); row; row = jv_next(row)) {
        struct cpu_power_key key = {.brand = "", .product = "", .board = "", .vendor = ""};
        const char *name = jv_text(jv_get(row, "name"));
        key.implementer = hex(row, "implementer");
        key.part = hex(row, "part");
        assert_same_text(name, cpu_core_name(key.implementer, key.part), name);
        if (is_known(number_at(row, "watts_per_thread")))
            assert_same_number(name, cpu_power_find(&key).watts_per_thread,
                               number_at(row, "watts_per_thread"));
    }
}

static void lookups_match_the_files(void **state)
{
    (void)state;
    struct error why = {0};
    size_t devices = 0, lists = 0;
    static const char FOLDER[] = IPW_FIXTURES "/../../data/hardware";
    DIR *folder = opendir(FOLDER);
    if (!folder)
        fail_msg("cannot open %s", FOLDER);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[512];
        struct text bytes = {0};
        struct jv *tree = NULL;
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".json") != 0)
            continue;
        str_format(path, sizeof path, "%s/%s", FOLDER, entry->d_name);
        if (file_read(path, FILE_SMALL, &bytes, &why) ||
            jv_parse(text_get(&bytes), bytes.length, &tree, &why))
            fail_msg("%s", why.text);
        bool is_list = jv_get(tree, "kind");
        if (is_list)
            compare_list(tree);
        else
            compare_device(path, &bytes);
        devices += !is_list;
        lists += is_list;
        jv_free(tree);
        text_release(&bytes);
    }
    closedir(folder);
    assert_int_equal(devices, hardware_count());
    assert_true(lists >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_complete),
        cmocka_unit_test(joules_and_assumed_figures_have_an_uncertainty),
        cmocka_unit_test(narrower_precisions_are_neither_slower_nor_costlier),
        cmocka_unit_test(derived_energies_follow_their_formula),
        cmocka_unit_test(aliases_resolve_to_their_device),
        cmocka_unit_test(operating_points_of_every_device_are_valid),
        cmocka_unit_test(names_are_found_or_suggested),
        cmocka_unit_test(driver_names_resolve_to_the_device),
        cmocka_unit_test(peaks_match_those_of_measured_runs),
        cmocka_unit_test(lookups_match_the_files),
    };
    return RUN_TESTS(tests);
}
