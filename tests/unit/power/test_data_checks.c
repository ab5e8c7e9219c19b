/* Every data check on data that fails it, and on data that passes. */
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "power/data_checks.h"

enum { CLOCKS = 20 };

struct fixture {
    struct freq_data data;
    struct error why;
};

static double clock_of(size_t i)
{
    return 510 + 45.0 * (double)i;
}

static struct freq_point point_of(const char *application, size_t i, unsigned run)
{
    struct freq_point p = freq_point_unknown();
    double x = clock_of(i) / clock_of(CLOCKS - 1);
    (void)str_copy(p.gpu, sizeof p.gpu, "A100");
    (void)str_copy(p.application, sizeof p.application, application);
    p.run = run;
    p.seq = 3.0 * (double)(CLOCKS - 1 - i) + run; /* in descending order of clock */
    p.freq_mhz = clock_of(i);
    p.time_s = (application[0] - 'a' + 1) * (10 + 5 / x) * (1 + 0.002 * sin((double)(7 * i + run)));
    p.power_w = 60 + (application[0] - 'a') + 100 * x * x;
    p.idle_w = 40;
    p.line = 1 + 3 * i + run;
    return p;
}

static void add_curve(struct fixture *m, const char *application)
{
    for (size_t i = 0; i < CLOCKS; i++)
        for (unsigned run = 1; run <= 3; run++) {
            struct freq_point p = point_of(application, i, run);
            freq_points_add(&m->data.points, &p);
        }
}

static void run_checks(struct fixture *m, const struct clock_list *clocks)
{
    assert_int_equal(
        data_checks_run(&m->data.points, clocks, &m->data.curves, &m->data.findings, &m->why),
        ERR_OK);
}

static const struct finding *find_finding(const struct fixture *m, enum finding_code wanted)
{
    return finding_of(m->data.findings.items, m->data.findings.count, wanted);
}

static struct freq_point *find_row(struct fixture *m, size_t clock, unsigned run)
{
    for (size_t i = 0; i < m->data.points.count; i++)
        if (m->data.points.items[i].freq_mhz == clock_of(clock) &&
            m->data.points.items[i].run == run)
            return &m->data.points.items[i];
    fail();
    return NULL;
}

static void valid_data_passes_except_for_cold_first_runs(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    run_checks(&m, NULL);
    assert_int_equal(m.data.findings.count, 1);
    assert_int_equal(find_finding(&m, FINDING_COLD_RUNS)->rows, CLOCKS);
    assert_int_equal(m.data.curves.items[0].count, CLOCKS);
    assert_int_equal(m.data.curves.items[0].samples[0].runs, 2);
    freq_data_release(&m.data);
}

static void a_cold_baseline_is_excluded_and_fmax_is_kept(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    for (unsigned run = 1; run <= 3; run++)
        find_row(&m, CLOCKS - 1, run)->time_s *= 12;
    run_checks(&m, NULL);
    const struct finding *cold = find_finding(&m, FINDING_COLD_BASELINE);
    assert_non_null(cold);
    assert_int_equal(cold->rows, 2);
    assert_non_null(strstr(cold->text, "92 %"));
    assert_int_equal(m.data.curves.items[0].count, CLOCKS - 1);
    assert_near(m.data.curves.items[0].fmax_mhz, clock_of(CLOCKS - 1), 0);
    freq_data_release(&m.data);
}

/* One slow clock in the middle is an outlier, not a baseline. */
static void a_slow_clock_elsewhere_is_not_a_cold_baseline(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    for (unsigned run = 1; run <= 3; run++)
        find_row(&m, 9, run)->time_s *= 3;
    run_checks(&m, NULL);
    assert_null(find_finding(&m, FINDING_COLD_BASELINE));
    assert_int_equal(m.data.curves.items[0].count, CLOCKS);
    freq_data_release(&m.data);
}

static void identical_times_of_two_applications_are_excluded(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    add_curve(&m, "b");
    add_curve(&m, "c");
    for (size_t i = 0; i < 60; i++)
        m.data.points.items[60 + i].time_s = m.data.points.items[i].time_s;
    run_checks(&m, NULL);
    assert_true(
        data_findings_has(&m.data.findings, FINDING_IDENTICAL_TIMES, &m.data.curves.items[0]));
    assert_true(
        data_findings_has(&m.data.findings, FINDING_IDENTICAL_TIMES, &m.data.curves.items[1]));
    assert_false(
        data_findings_has(&m.data.findings, FINDING_IDENTICAL_TIMES, &m.data.curves.items[2]));
    assert_true(isnan(m.data.curves.items[0].samples[3].time_s));
    assert_true(m.data.curves.items[0].samples[3].power_w > 0);
    assert_true(m.data.curves.items[2].samples[3].time_s > 0);
    freq_data_release(&m.data);
}

static void an_idle_gpu_has_no_optimum(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    for (size_t i = 0; i < m.data.points.count; i++)
        m.data.points.items[i].power_w = 42 + 0.005 * m.data.points.items[i].freq_mhz;
    run_checks(&m, NULL);
    assert_non_null(find_finding(&m, FINDING_IDLE_GPU));
    assert_int_equal(find_finding(&m, FINDING_IDLE_GPU)->severity, FINDING_INVALID);
    assert_non_null(data_findings_invalid(&m.data.findings, &m.data.curves.items[0]));
    freq_data_release(&m.data);
}

static void unreached_and_unsupported_clocks_are_excluded(void **state)
{
    (void)state;
    struct fixture m = {0};
    struct clock_list clocks = {0};
    add_curve(&m, "a");
    for (size_t i = 0; i < CLOCKS; i++)
        if (i != 4)
            clock_list_add(&clocks, "A100", 1215, clock_of(i));
    find_row(&m, 7, 2)->achieved_mhz = 400;
    find_row(&m, 7, 3)->achieved_mhz = clock_of(7) - 15; /* one step: rounding */
    run_checks(&m, &clocks);
    assert_int_equal(find_finding(&m, FINDING_ILLEGAL_CLOCK)->rows, 3);
    assert_int_equal(find_finding(&m, FINDING_CLOCK_MISMATCH)->rows, 1);
    assert_int_equal(m.data.curves.items[0].count, CLOCKS - 1);
    clock_list_release(&clocks);
    freq_data_release(&m.data);
}

static void invalid_values_are_reported_and_excluded(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    find_row(&m, 3, 2)->energy_j = -5;
    find_row(&m, 3, 3)->power_w = NAN;
    find_row(&m, 5, 1)->freq_mhz = 0;
    find_row(&m, 5, 2)->freq_mhz = NAN; /* NaN is not equal to itself */
    find_row(&m, 6, 2)->time_s = 0;
    run_checks(&m, NULL);
    assert_int_equal(find_finding(&m, FINDING_INVALID_VALUE)->rows, 5);
    freq_data_release(&m.data);
}

static void duplicate_and_unordered_rows_are_reported(void **state)
{
    (void)state;
    struct fixture m = {0};
    add_curve(&m, "a");
    for (size_t i = 0; i < m.data.points.count; i++)
        m.data.points.items[i].timestamp_s = 1000 + 60 * m.data.points.items[i].seq;
    find_row(&m, 8, 2)->timestamp_s = 5;
    struct freq_point again = *find_row(&m, 2, 2);
    freq_points_add(&m.data.points, &again);
    run_checks(&m, NULL);
    assert_int_equal(find_finding(&m, FINDING_DUPLICATE_POINTS)->rows, 1);
    assert_int_equal(find_finding(&m, FINDING_UNORDERED_TIMESTAMPS)->rows, 1);
    freq_data_release(&m.data);
}

static void too_few_points_and_unknown_gpus_are_reported(void **state)
{
    (void)state;
    struct fixture m = {0};
    struct freq_point p = point_of("a", 3, 1);
    (void)str_copy(p.gpu, sizeof p.gpu, "Imaginator 9000");
    freq_points_add(&m.data.points, &p);
    run_checks(&m, NULL);
    assert_non_null(find_finding(&m, FINDING_TOO_FEW_POINTS));
    assert_non_null(find_finding(&m, FINDING_UNKNOWN_GPU));
    assert_int_equal(m.data.curves.items[0].count, 1);
    freq_data_release(&m.data);
    m = (struct fixture){0};
    run_checks(&m, NULL); /* empty data */
    assert_int_equal(m.data.curves.count, 0);
    freq_data_release(&m.data);
}

static void findings_of_unnamed_curves_do_not_flag_others(void **state)
{
    (void)state;
    struct fixture m = {0};
    struct freq_point lone = point_of("a", 3, 1);
    add_curve(&m, "b");
    lone.gpu[0] = lone.application[0] = '\0';
    freq_points_add(&m.data.points, &lone);
    (void)str_copy(lone.gpu, sizeof lone.gpu, "A100");
    freq_points_add(&m.data.points, &lone);
    run_checks(&m, NULL);
    assert_int_equal(m.data.curves.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct freq_curve *curve = &m.data.curves.items[i];
        assert_int_equal(data_findings_has(&m.data.findings, FINDING_TOO_FEW_POINTS, curve),
                         !curve->application[0]);
    }
    /* A finding about all data applies to each curve. */
    data_findings_add(&m.data.findings, FINDING_IDLE_GPU, 1, "all");
    for (size_t i = 0; i < 3; i++)
        assert_true(data_findings_has(&m.data.findings, FINDING_IDLE_GPU, &m.data.curves.items[i]));
    freq_data_release(&m.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_data_passes_except_for_cold_first_runs),
        cmocka_unit_test(a_cold_baseline_is_excluded_and_fmax_is_kept),
        cmocka_unit_test(a_slow_clock_elsewhere_is_not_a_cold_baseline),
        cmocka_unit_test(identical_times_of_two_applications_are_excluded),
        cmocka_unit_test(an_idle_gpu_has_no_optimum),
        cmocka_unit_test(unreached_and_unsupported_clocks_are_excluded),
        cmocka_unit_test(invalid_values_are_reported_and_excluded),
        cmocka_unit_test(duplicate_and_unordered_rows_are_reported),
        cmocka_unit_test(too_few_points_and_unknown_gpus_are_reported),
        cmocka_unit_test(findings_of_unnamed_curves_do_not_flag_others),
    };
    return RUN_TESTS(tests);
}
