/* The table of findings, and the one order of those that were raised. */
#include "core/finding.h"

#include <ctype.h>
#include <string.h>

#include "core/result.h"
#include "support/unit.h"

static void every_row_is_complete_and_has_a_code_of_its_own(void **state)
{
    (void)state;
    for (enum finding_code i = 0; i < FINDING_CODES; i++) {
        const struct finding_row *row = finding_row(i);
        assert_true(row->meaning[0] && row->action[0]);
        assert_true(row->lowest <= row->highest);
        assert_true(strlen(row->code) < sizeof((struct finding *)0)->code);
        for (const char *c = row->code; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        for (enum finding_code k = 0; k < i; k++)
            assert_string_not_equal(row->code, finding_row(k)->code);
    }
}

static void a_finding_has_the_severity_of_its_row_or_another_of_its_range(void **state)
{
    (void)state;
    struct findings found = {0};
    const struct finding *finding =
        finding_raise(&found, FINDING_IDLE_CHANGED, "%.3g W before and %.3g W after", 20.0, 24.0);
    assert_int_equal(finding->severity, FINDING_NOTE);
    assert_string_equal(finding->code, "idle_changed");
    assert_string_equal(finding->text, "20 W before and 24 W after");
    finding = finding_raise_as(&found, FINDING_IDLE_CHANGED, FINDING_WARNING, "more");
    assert_int_equal(finding->severity, FINDING_WARNING);
    assert_true(finding_is(finding, FINDING_IDLE_CHANGED));
    assert_false(finding_is(finding, FINDING_THROTTLED));
    assert_ptr_equal(finding_of(found.items, found.count, FINDING_IDLE_CHANGED), &found.items[0]);
    assert_null(finding_of(found.items, found.count, FINDING_THROTTLED));
    findings_release(&found);
}

/* One of a later version comes last among those of its severity. */
static void raise_in_disorder(struct findings *found)
{
    finding_raise(found, FINDING_COLD_RUNS, "a");
    findings_add(found, &(struct finding){.code = "later", .severity = FINDING_WARNING});
    finding_raise(found, FINDING_THROTTLED, "first");
    finding_raise(found, FINDING_IDLE_GPU, "b");
    finding_raise(found, FINDING_BASELINE_REFUSED, "c");
    finding_raise(found, FINDING_THROTTLED, "second");
}

static void the_most_severe_come_first_then_the_order_of_the_table(void **state)
{
    (void)state;
    static const char *const CODES[] = {"idle_gpu", "baseline_refused", "throttled", "throttled",
                                        "later",    "cold_runs"};
    struct findings found = {0};
    struct result result = {0};
    char codes[120], path[32];
    raise_in_disorder(&found);
    result_begin(&result, "test");
    findings_to_result(&found, "findings", &result);
    result_end(&result);
    findings_order(found.items, found.count);
    for (size_t i = 0; i < found.count; i++) {
        assert_string_equal(found.items[i].code, CODES[i]);
        (void)snprintf(path, sizeof path, "findings.%zu.code", i);
        assert_string_equal(result_text_at(result.items, path), CODES[i]);
    }
    assert_string_equal(found.items[2].text, "first");
    assert_string_equal(result_text_at(result.items, "findings.0.severity"), "invalid");
    assert_string_equal(result_text_at(result.items, "findings.0.action"),
                        "no optimum is meaningful");
    assert_string_equal(result_text_at(result.items, "findings.4.action"), "");
    findings_codes(&found, codes, sizeof codes);
    assert_string_equal(codes, "baseline_refused,throttled,idle_gpu,cold_runs");
    result_release(&result);
    findings_release(&found);
}

static void severities_of_earlier_versions_are_known(void **state)
{
    (void)state;
    assert_int_equal(finding_severity_named("breaks"), FINDING_INVALID);
    assert_int_equal(finding_severity_named("void"), FINDING_INVALID);
    assert_int_equal(finding_severity_named("of a later version"), FINDING_WARNING);
    for (enum finding_severity i = 0; i < FINDING_SEVERITIES; i++)
        assert_int_equal(finding_severity_named(finding_severity_name(i)), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete_and_has_a_code_of_its_own),
        cmocka_unit_test(a_finding_has_the_severity_of_its_row_or_another_of_its_range),
        cmocka_unit_test(the_most_severe_come_first_then_the_order_of_the_table),
        cmocka_unit_test(severities_of_earlier_versions_are_known),
    };
    return RUN_TESTS(tests);
}
