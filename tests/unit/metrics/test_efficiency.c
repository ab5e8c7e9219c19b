#include "support/unit.h"

#include "core/units.h"
#include "metrics/efficiency.h"

/* Llama-3.1-8B in 16 bits on one H100 SXM: every expected value below is computed by hand from these. */
static struct efficiency_inputs example(void)
{
    return (struct efficiency_inputs){
        .prompt_tokens = 1000,
        .output_tokens = 201,
        .seconds = 4,
        .decode_seconds = 3,
        .joules = 1206,
        .prefill_joules = 300,
        .decode_joules = 904.5,
        .flops_per_token = 2 * 8e9,
        .peak = {.tflops = 1000, .gb_per_s = 3000},
        .devices = 1,
        .weight_bytes = 16e9,
        .kv_bytes_per_token = 131072,
        .batch = 1,
    };
}

static void figures_match_a_calculation_by_hand(void **state)
{
    (void)state;
    struct efficiency_inputs inputs = example();
    struct efficiency figures;
    efficiency_of(&inputs, &figures);
    assert_near(figures.flops_per_token, 16e9, 1);
    assert_near(figures.flops, 1.9216e13, 1e3);           /* 16e9 x 1201 */
    assert_near(figures.tokens_per_joule, 1. / 6, 1e-12); /* 50.25 tok/s / 301.5 W */
    assert_near(figures.joules_per_output_token, 6, 1e-12);
    assert_near(figures.joules_per_token, 1206. / 1201, 1e-12);
    assert_near(figures.prefill_joules_per_token, 0.3, 1e-12);
    assert_near(figures.decode_joules_per_token, 4.5, 1e-12);
    assert_near(figures.flops_per_joule, 1.9216e13 / 1206, 1);
    assert_near(figures.mfu, 0.004804, 1e-12); /* 4.804e12 / 1e15 */
    /* 200 steps x 16e9 + 131072 x (200 x 1000 + 201 x 200 / 2), in 3 s of 3e12 each */
    assert_near(figures.mbu, 3228848947200.0 / 9e12, 1e-9);
    assert_near(figures.arithmetic_intensity, 3.2e12 / 3228848947200.0, 1e-9);
}

static void utilization_falls_with_the_number_of_devices(void **state)
{
    (void)state;
    struct efficiency_inputs inputs = example();
    struct efficiency one, eight;
    efficiency_of(&inputs, &one);
    inputs.devices = 8;
    efficiency_of(&inputs, &eight);
    assert_near(eight.mfu, one.mfu / 8, 1e-15);
    assert_near(eight.mbu, one.mbu / 8, 1e-15);
}

static void a_batch_reads_the_weights_once(void **state)
{
    (void)state;
    struct efficiency_inputs inputs = example();
    struct efficiency figures;
    const double capacity = 9e12; /* bytes that the memory could move in the decode phase */
    efficiency_of(&inputs, &figures);
    assert_near(figures.mbu * capacity, 3228848947200.0, 1);
    inputs.batch = 4;
    efficiency_of(&inputs, &figures);
    assert_near(figures.mbu * capacity, 3.2e12 + 4 * 28848947200.0, 1);
    inputs.kv_bytes_per_token = 0; /* deliberately ignored */
    efficiency_of(&inputs, &figures);
    assert_near(figures.mbu * capacity, 3.2e12, 1);
    inputs.output_tokens = 1; /* it is from the prefill: there was no decode step */
    efficiency_of(&inputs, &figures);
    assert_false(is_known(figures.mbu));
}

/* Each input in turn is unknown, zero or negative; the figures that need it are then unknown, and
 * the others unchanged. Letters name the figures in their order. */
static void figures_that_need_an_unknown_input_are_unknown(void **state)
{
    (void)state;
#define INPUT(field) #field, offsetof(struct efficiency_inputs, field)
    static const struct {
        const char *name;
        size_t offset;
        const char *unknown, *zero;
    } CASES[] = {
        {INPUT(prompt_tokens), "befhijk", "f"}, /* its figure over zero prompt tokens */
        {INPUT(output_tokens), "bcdeghijk", "cdgjk"},
        {INPUT(seconds), "i", "i"},
        {INPUT(decode_seconds), "j", "j"},
        {INPUT(joules), "cdeh", "ch"},
        {INPUT(prefill_joules), "f", ""},
        {INPUT(decode_joules), "g", ""},
        {INPUT(flops_per_token), "abhik", "abhik"},
        {INPUT(peak.tflops), "i", "i"},
        {INPUT(peak.gb_per_s), "j", "j"},
        {INPUT(devices), "ij", "ij"},
        {INPUT(weight_bytes), "jk", "jk"},
        {INPUT(kv_bytes_per_token), "jk", ""},
        {INPUT(batch), "jk", "jk"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int zero = 0; zero < 2; zero++) {
            struct efficiency_inputs inputs = example();
            struct efficiency figures;
            double value = zero ? 0 : UNKNOWN;
            memcpy((char *)&inputs + CASES[i].offset, &value, sizeof value);
            efficiency_of(&inputs, &figures);
            const double all[] = {figures.flops_per_token,
                                  figures.flops,
                                  figures.tokens_per_joule,
                                  figures.joules_per_output_token,
                                  figures.joules_per_token,
                                  figures.prefill_joules_per_token,
                                  figures.decode_joules_per_token,
                                  figures.flops_per_joule,
                                  figures.mfu,
                                  figures.mbu,
                                  figures.arithmetic_intensity};
            for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
                bool expected = !strchr(zero ? CASES[i].zero : CASES[i].unknown, (int)('a' + j));
                if (is_known(all[j]) != expected)
                    fail_msg("%s %s: figure %c is %g", CASES[i].name, zero ? "0" : "unknown",
                             (int)('a' + j), all[j]);
            }
        }
}

static void unknown_inputs_give_unknown_figures(void **state)
{
    (void)state;
    struct efficiency_inputs inputs = efficiency_inputs_unknown();
    struct efficiency figures;
    efficiency_of(&inputs, &figures);
    const double *all = (const double *)&figures;
    for (size_t i = 0; i < sizeof figures / sizeof *all; i++)
        assert_false(is_known(all[i]));
}

/* The energy above idle may be negative, since the baseline is also measured. */
static void negative_energy_is_kept_but_not_divided_by(void **state)
{
    (void)state;
    struct efficiency_inputs inputs = example();
    struct efficiency figures;
    inputs.joules = -201;
    efficiency_of(&inputs, &figures);
    assert_near(figures.joules_per_output_token, -1, 1e-12);
    assert_false(is_known(figures.tokens_per_joule));
    assert_false(is_known(figures.flops_per_joule));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_match_a_calculation_by_hand),
        cmocka_unit_test(utilization_falls_with_the_number_of_devices),
        cmocka_unit_test(a_batch_reads_the_weights_once),
        cmocka_unit_test(figures_that_need_an_unknown_input_are_unknown),
        cmocka_unit_test(unknown_inputs_give_unknown_figures),
        cmocka_unit_test(negative_energy_is_kept_but_not_divided_by),
    };
    return RUN_TESTS(tests);
}
