/* The catalogue as it is in the program: every entry holds what the format promises. */
#include "support/unit.h"
#include "support/ways.h"

#include <math.h>

#include "core/text.h"
#include "catalog/device_peak.h"
#include "catalog/hardware.h"
#include "port/json_read.h"

static void each(void (*look)(const struct hardware *hardware))
{
    assert_true(hardware_catalogue_count() >= 50);
    for (size_t i = 0; i < hardware_catalogue_count(); i++) {
        struct hardware hardware;
        struct error why = {0};
        if (hardware_find(hardware_catalogue_id(i), &hardware, &why))
            fail_msg("%s", why.text);
        assert_string_equal(hardware.id, hardware_catalogue_id(i));
        if (i > 0)
            assert_true(strcmp(hardware_catalogue_id(i - 1), hardware.id) < 0);
        look(&hardware);
        hardware_release(&hardware);
    }
}

static void assert_whole(const struct hardware *hardware, const char *what,
                         const struct hardware_figure *figure)
{
    if (!is_known(figure->value) || !figure->source || !figure->source[0])
        fail_msg("%s: %s: has no value or no source", hardware->id, what);
}

/* What an estimate needs is there: joules for every peak, the memory, the watts. */
static void look_for_gaps(const struct hardware *hardware)
{
    struct error why = {0};
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    if (hardware_check(hardware, &why))
        fail_msg("%s", why.text);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        if (is_known(hardware->matrix_flops[i].value))
            assert_whole(hardware, precision_name((enum precision)i), &hardware->matrix_joules[i]);
        if (is_known(hardware->vector_flops[i].value))
            assert_whole(hardware, precision_name((enum precision)i), &hardware->vector_joules[i]);
    }
    assert_whole(hardware, "bandwidth", &memory->bytes_per_s);
    assert_whole(hardware, "joules a byte", &memory->joules_per_byte);
    assert_whole(hardware, "limit", &hardware->limit_w);
    assert_whole(hardware, "idle", &hardware->idle_w);
    assert_whole(hardware, "launch", &hardware->launch_s);
    assert_whole(hardware, "compute_share", &hardware->compute_share);
    assert_whole(hardware, "memory_share", &hardware->memory_share);
    if (hardware->class != HARDWARE_CPU) /* whose memory is what one puts beside it */
        assert_whole(hardware, "capacity", &memory->capacity_bytes);
}

static void every_entry_is_whole(void **state)
{
    (void)state;
    each(look_for_gaps);
}

/* Joules are not known better than to a few digits unless somebody measured them. */
static void look_for_uncertainty(const struct hardware *hardware)
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

static void joules_and_guesses_have_their_uncertainty(void **state)
{
    (void)state;
    each(look_for_uncertainty);
}

/* Each width does at least what the wider one does, on whichever units that is. */
static void look_at_widths(const struct hardware *hardware)
{
    static const enum precision BY_WIDTH[] = {PRECISION_FP64, PRECISION_FP32, PRECISION_FP16,
                                              PRECISION_INT8};
    double slower = 0, cheaper = INFINITY;
    for (size_t i = 0; i < sizeof BY_WIDTH / sizeof *BY_WIDTH; i++) {
        enum precision used;
        double flops = hardware_product_flops(hardware, BY_WIDTH[i], &used);
        double joules = product_joules(hardware, BY_WIDTH[i]);
        if (!is_known(flops))
            continue;
        if (flops < slower || joules > cheaper * 1.0001)
            fail_msg("%s: %s: %g FLOPS after %g, %g J after %g", hardware->id,
                     precision_name(BY_WIDTH[i]), flops, slower, joules, cheaper);
        slower = flops;
        cheaper = joules;
    }
}

static void narrower_is_not_slower_nor_dearer(void **state)
{
    (void)state;
    each(look_at_widths);
}

/* The formula that derived energies name as their source, worked out again. */
static void look_at_derived(const struct hardware *hardware)
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
    each(look_at_derived);
}

/* ---- names ---- */

static void look_at_aliases(const struct hardware *hardware)
{
    for (const char **alias = hardware->aliases; *alias; alias++) {
        struct hardware found;
        struct error why = {0};
        if (hardware_find(*alias, &found, &why))
            fail_msg("%s", why.text);
        assert_string_equal(found.id, hardware->id);
        hardware_release(&found);
    }
}

static void aliases_lead_to_their_device(void **state)
{
    (void)state;
    each(look_at_aliases);
}

static void look_at_points(const struct hardware *hardware)
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

static void points_hold_at_every_device(void **state)
{
    (void)state;
    each(look_at_points);
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
        {"jetson-orin-agx-64gb@31W", NULL, "no point '31W': it has MAXN, 50W, 30W, 15W"},
        {"l4@15W", NULL, "l4 has no points"},
        {"h20", NULL, "no hardware 'h20': did you mean 'h200'?"},
        {"h201@MAXN", NULL, "no hardware 'h201': did you mean 'h200'?"},
        {"abacus-with-wooden-beads", NULL, "see `ipw list hardware`"},
        {"", NULL, "no hardware ''"},
        {"@", NULL, "no hardware ''"},
        {"published", NULL, "no hardware 'published'"}, /* stands in every file, as no alias */
        {"bf16", NULL, "no hardware 'bf16'"},
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

static void drivers_names_lead_to_the_device(void **state)
{
    (void)state;
    static const struct {
        const char *driver, *id; /* NULL: none that we know */
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
        {"AMD Instinct MI250X Engineering", NULL}, /* to the driver half of what we call so */
        {"NVIDIA H200 NVL", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct hardware hardware;
        bool found = hardware_of_device(CASES[i].driver, &hardware);
        if (found != (CASES[i].id != NULL))
            fail_msg("%s: %s", CASES[i].driver, found ? hardware.id : "not found");
        if (found)
            assert_string_equal(hardware.id, CASES[i].id);
        hardware_release(&hardware);
    }
}

/* The table of peaks, by which a measured run is judged, says the same of the same device. */
static size_t compared;

static void compare_peaks(const struct hardware *hardware)
{
    for (const char **alias = hardware->aliases; *alias; alias++) {
        struct device_peak peak;
        enum precision precision, used;
        struct error why = {0};
        if (!device_peak_find(*alias, &peak))
            continue;
        compared++;
        assert_int_equal(precision_find(peak.precision, &precision, &why), ERR_OK);
        if (is_known(peak.tflops)) {
            double flops = hardware_product_flops(hardware, precision, &used);
            if (fabs(flops / 1e12 - peak.tflops) > 1e-6 * peak.tflops || used != precision)
                fail_msg("%s: %g TFLOPS, %s has %g", hardware->id, flops / 1e12, peak.name,
                         peak.tflops);
        }
        double bandwidth = hardware_main_memory(hardware)->bytes_per_s.value / 1e9;
        if (is_known(peak.gb_per_s) && fabs(bandwidth - peak.gb_per_s) > 1e-6 * bandwidth)
            fail_msg("%s: %g GB/s, %s has %g", hardware->id, bandwidth, peak.name, peak.gb_per_s);
    }
}

static void peaks_are_those_of_measured_runs(void **state)
{
    (void)state;
    compared = 0;
    each(compare_peaks);
    assert_true(compared >= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_whole),
        cmocka_unit_test(joules_and_guesses_have_their_uncertainty),
        cmocka_unit_test(narrower_is_not_slower_nor_dearer),
        cmocka_unit_test(derived_energies_follow_their_formula),
        cmocka_unit_test(aliases_lead_to_their_device),
        cmocka_unit_test(points_hold_at_every_device),
        cmocka_unit_test(names_are_found_or_suggested),
        cmocka_unit_test(drivers_names_lead_to_the_device),
        cmocka_unit_test(peaks_are_those_of_measured_runs),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
