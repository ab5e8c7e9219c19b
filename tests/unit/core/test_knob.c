/* The knobs of a GPU: any spelling of their names, and nothing else. */
#include "core/knob.h"

#include <string.h>

#include "support/unit.h"

static void names_are_found_in_any_spelling(void **state)
{
    static const struct {
        const char *name;
        enum gpu_knob knob;
    } CASES[] = {
        {"gpu-clock", KNOB_GRAPHICS_CLOCK},
        {"gpu_clock", KNOB_GRAPHICS_CLOCK},
        {"GPU_Clock", KNOB_GRAPHICS_CLOCK},
        {"mem-clock", KNOB_MEMORY_CLOCK},
        {"memory_clock", KNOB_MEMORY_CLOCK},
        {"power-limit", KNOB_POWER_LIMIT},
        {"power_limit_w", KNOB_POWER_LIMIT},
        {"", KNOB_COUNT},
        {"clock", KNOB_COUNT},
        {"gpu-cloc", KNOB_COUNT},
        {"gpu-clocks", KNOB_COUNT},
        {"gpu clock", KNOB_COUNT},
        {"threads", KNOB_COUNT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (knob_named(CASES[i].name) != CASES[i].knob)
            fail_msg("'%s' is knob %d", CASES[i].name, knob_named(CASES[i].name));
}

/* A row that is incomplete would show in messages and commands for the operator. */
static void every_knob_has_a_name_a_unit_and_an_option(void **state)
{
    (void)state;
    for (enum gpu_knob knob = 0; knob < KNOB_COUNT; knob++) {
        const struct knob *row = knob_of(knob);
        assert_int_equal(knob_named(row->name), knob);
        assert_true(row->what[0] && row->unit[0]);
        assert_int_equal(row->smi_option[0], '-');
        for (enum gpu_knob other = 0; other < knob; other++)
            assert_string_not_equal(knob_of(other)->smi_option, row->smi_option);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_any_spelling),
        cmocka_unit_test(every_knob_has_a_name_a_unit_and_an_option),
    };
    return RUN_TESTS(tests);
}
