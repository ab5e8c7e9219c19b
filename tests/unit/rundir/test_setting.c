/* Settings of knobs: how they are read, and which are the same. */
#include "rundir/setting.h"

#include <math.h>

#include "core/text.h"
#include "support/unit.h"

static void values_are_read_once_as_what_they_are(void **state)
{
    static const struct {
        const char *knob, *text;
        enum gpu_knob gpu;
        enum setting_kind kind;
        double number;
    } CASES[] = {
        {"gpu-clock", "1410", KNOB_GRAPHICS_CLOCK, SETTING_NUMBER, 1410},
        {"gpu-clock", "default", KNOB_GRAPHICS_CLOCK, SETTING_DEFAULT, NAN},
        {"power_limit", "Default", KNOB_POWER_LIMIT, SETTING_DEFAULT, NAN},
        {"mem-clock", "fast", KNOB_MEMORY_CLOCK, SETTING_TEXT, NAN},
        {"batch", "8", KNOB_COUNT, SETTING_NUMBER, 8},
        {"batch", "8x", KNOB_COUNT, SETTING_TEXT, NAN},
        {"batch", "nan", KNOB_COUNT, SETTING_TEXT, NAN},
        {"batch", "", KNOB_COUNT, SETTING_TEXT, NAN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct setting setting = setting_parse(CASES[i].knob, CASES[i].text);
        bool same_number =
            isnan(CASES[i].number) ? isnan(setting.number) : setting.number == CASES[i].number;
        if (setting.gpu != CASES[i].gpu || setting.kind != CASES[i].kind || !same_number)
            fail_msg("%s=%s: knob %d, kind %d, %g", CASES[i].knob, CASES[i].text, setting.gpu,
                     setting.kind, setting.number);
        assert_string_equal(setting.text, CASES[i].text);
        setting_release(&setting);
    }
}

static void equal_values_are_the_same_setting(void **state)
{
    static const struct {
        const char *knob, *text, *other_knob, *other_text;
        bool same;
    } CASES[] = {
        {"gpu-clock", "1410", "gpu-clock", "1410.0", true},
        {"gpu-clock", "1410", "gpu-clock", "1411", false},
        {"gpu-clock", "default", "gpu-clock", "DEFAULT", true},
        {"gpu-clock", "default", "gpu-clock", "1410", false},
        {"gpu-clock", "1410", "mem-clock", "1410", false},
        {"version", "1.1", "version", "1.10", false},
        {"version", "1.1", "version", "1.1", true},
        {"model", "a", "model", "A", false},
        {"model", "default", "model", "Default", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct setting one = setting_parse(CASES[i].knob, CASES[i].text);
        struct setting other = setting_parse(CASES[i].other_knob, CASES[i].other_text);
        if (setting_same(&one, &other) != CASES[i].same ||
            setting_same(&other, &one) != CASES[i].same)
            fail_msg("%s=%s, %s=%s", CASES[i].knob, CASES[i].text, CASES[i].other_knob,
                     CASES[i].other_text);
        setting_release(&one);
        setting_release(&other);
    }
}

/* --where of a user, who need not know how the sweep wrote it. */
static void a_user_names_a_value_in_any_case(void **state)
{
    struct setting clock = setting_parse("gpu-clock", "1410"), model = setting_parse("model", "a");
    (void)state;
    assert_true(setting_is(&clock, "1410.0") && !setting_is(&clock, "1400"));
    assert_true(setting_is(&model, "A") && !setting_is(&model, "b"));
    setting_release(&clock);
    setting_release(&model);
}

static void settings_of_a_point_are_compared_and_named_together(void **state)
{
    struct setting a[] = {setting_parse("threads", "4"), setting_parse("gpu-clock", "900")};
    struct setting b[] = {setting_parse("threads", "4"), setting_parse("gpu-clock", "900.0")};
    struct text text = {0};
    (void)state;
    assert_true(settings_same(a, b, 2));
    setting_release(&b[0]);
    b[0] = setting_parse("threads", "04");
    assert_false(settings_same(a, b, 2));
    settings_text(a, 2, &text);
    assert_string_equal(text_get(&text), "threads=4, gpu-clock=900");
    for (size_t i = 0; i < 2; i++) {
        setting_release(&a[i]);
        setting_release(&b[i]);
    }
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_once_as_what_they_are),
        cmocka_unit_test(equal_values_are_the_same_setting),
        cmocka_unit_test(a_user_names_a_value_in_any_case),
        cmocka_unit_test(settings_of_a_point_are_compared_and_named_together),
    };
    return RUN_TESTS(tests);
}
