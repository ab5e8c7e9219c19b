#include "support/unit.h"

#include <math.h>

#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/record.h"
#include "runner/profile/run_energy.h"

static void read_back(const struct energy *energy, struct energy *out)
{
    struct text text = {0};
    struct json json;
    struct jv *value;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    energy_to_json(&json, "energy", energy);
    json_object_end(&json);
    assert_int_equal(jv_parse(text_get(&text), text.length, &value, NULL), ERR_OK);
    struct record_energy read;
    record_energy_from_json(jv_get(value, "energy"), &read);
    record_energy_get(&read, out);
    jv_free(value);
    text_release(&text);
}

static void a_figure_comes_back_as_it_was(void **state)
{
    (void)state;
    struct energy out;
    for (enum method method = METHOD_COUNTER; method <= METHOD_ESTIMATED; method++) {
        struct energy energy = {.joules = 12.5,
                                .plus_minus = 0.25,
                                .statistical = 0.125,
                                .coverage = 0.75,
                                .idle_joules = 2,
                                .active_joules = 10.5,
                                .method = method,
                                .updates = 42,
                                .low_confidence = true,
                                .source = "rapl:0 package + nvml:0 energy",
                                .note = "a note"};
        read_back(&energy, &out);
        assert_near(out.joules, 12.5, 0);
        assert_near(out.plus_minus, 0.25, 0);
        assert_near(out.statistical, 0.125, 0);
        assert_near(out.coverage, 0.75, 0);
        assert_near(out.idle_joules, 2, 0);
        assert_near(out.active_joules, 10.5, 0);
        assert_int_equal(out.method, method);
        assert_int_equal(out.updates, 42);
        assert_true(out.low_confidence);
        assert_string_equal(out.source, energy.source);
        assert_string_equal(out.note, "a note");
    }
}

static void unknown_stays_unknown(void **state)
{
    (void)state;
    struct energy out, unknown = energy_unknown("no sensor here");
    read_back(&unknown, &out);
    assert_int_equal(out.method, METHOD_NONE);
    assert_false(is_known(out.joules));
    assert_string_equal(out.note, "no sensor here");
    struct record_energy read;
    record_energy_from_json(NULL, &read);
    record_energy_get(&read, &out);
    assert_int_equal(out.method, METHOD_NONE);
    assert_false(is_known(out.joules));
    assert_true(out.note[0] != '\0');
}

static struct energy figure(double joules, double statistical, double systematic, double coverage)
{
    return (struct energy){.joules = joules,
                           .statistical = statistical,
                           .plus_minus = hypot(statistical, systematic),
                           .coverage = coverage,
                           .idle_joules = joules / 4,
                           .active_joules = joules * 3 / 4,
                           .method = METHOD_COUNTER,
                           .updates = 10};
}

static void starts_are_added(void **state)
{
    (void)state;
    struct energy sum = figure(30, 0.3, 0.6, 1), part = figure(10, 0.4, 0.2, 0.6);
    energy_add(&sum, &part);
    assert_near(sum.joules, 40, 1e-12);
    assert_near(sum.statistical, 0.5, 1e-12);            /* independent: 0.3 and 0.4 */
    assert_near(sum.plus_minus, hypot(0.5, 0.8), 1e-12); /* one calibration: 0.6 + 0.2 */
    assert_near(sum.coverage, (30 * 1 + 10 * 0.6) / 40, 1e-12);
    assert_near(sum.idle_joules, 10, 1e-12);
    assert_near(sum.active_joules, 30, 1e-12);
    assert_int_equal(sum.updates, 20);
    assert_int_equal(sum.method, METHOD_COUNTER);
}

static void the_worse_method_is_told(void **state)
{
    (void)state;
    struct energy sum = figure(1, 0, 0, 1), part = figure(1, 0, 0, 1);
    part.method = METHOD_ESTIMATED;
    energy_add(&sum, &part);
    assert_int_equal(sum.method, METHOD_ESTIMATED);
    part.method = METHOD_INTEGRAL;
    energy_add(&sum, &part);
    assert_int_equal(sum.method, METHOD_ESTIMATED);
}

static void what_is_unknown_adds_nothing(void **state)
{
    (void)state;
    struct energy unknown = energy_unknown("why"), part = figure(5, 0.1, 0.1, 1), sum = part;
    energy_add(&sum, &unknown);
    assert_near(sum.joules, 5, 0);
    energy_add(&unknown, &part);
    assert_near(unknown.joules, 5, 0);
    assert_int_equal(unknown.method, METHOD_COUNTER);
}

static void nothing_and_nothing_is_nothing(void **state)
{
    (void)state;
    struct energy sum = figure(0, 0, 0, 1), part = figure(0, 0, 0, 0.5);
    energy_add(&sum, &part);
    assert_near(sum.joules, 0, 0);
    assert_near(sum.coverage, 0.75, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_comes_back_as_it_was),
        cmocka_unit_test(unknown_stays_unknown),
        cmocka_unit_test(starts_are_added),
        cmocka_unit_test(the_worse_method_is_told),
        cmocka_unit_test(what_is_unknown_adds_nothing),
        cmocka_unit_test(nothing_and_nothing_is_nothing),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
