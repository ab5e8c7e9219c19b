/* The best of some operating points: the published example, limits, ties, and unknown figures. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "power/clock_choice.h"

static struct optimize_point make_point(double mhz, double joules, double seconds)
{
    struct optimize_point point = optimize_point_unknown();
    point.freq_mhz = mhz;
    point.figures[FREQ_ENERGY_J].value = joules;
    point.figures[FREQ_TIME_S].value = seconds;
    point.figures[FREQ_POWER_W].value = joules / seconds;
    return point;
}

/* E 100/120/140 J, T 1/0.9/0.8 s: EDP 100, 108, 112; ED2P 100, 97.2, 89.6. */
static void make_published(struct optimize_point *points)
{
    points[0] = make_point(1000, 100, 1);
    points[1] = make_point(1200, 120, 0.9);
    points[2] = make_point(1400, 140, 0.8);
}

static void the_published_example_is_reproduced(void **state)
{
    (void)state;
    static const struct {
        double exponent, mhz, objective;
    } WANTED[] = {{0, 1000, 100}, {1, 1000, 100}, {2, 1400, 89.6}, {1.5, 1000, 100}};
    struct optimize_point points[3];
    struct optimize_goal goal = optimize_goal_edp();
    make_published(points);
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++) {
        goal.time_exponent = WANTED[i].exponent;
        struct optimum found = optimize_pick(&goal, &points[2], points, 3);
        assert_true(found.is_found);
        assert_near(points[found.best].freq_mhz, WANTED[i].mhz, 0);
        assert_near(found.objective, WANTED[i].objective, 1e-12);
    }
    goal.time_exponent = 1;
    assert_near(optimize_objective(&goal, &points[1]), 108, 1e-12);
    assert_near(optimize_objective(&goal, &points[2]), 112, 1e-12);
}

static void limits_hold_and_are_reported(void **state)
{
    (void)state;
    static const struct {
        enum optimize_limit limit;
        double value, mhz; /* mhz 0: none is within it */
    } WANTED[] = {
        {LIMIT_SLOWDOWN, 0.125, 1200}, /* 0.9 / 0.8 - 1 */
        {LIMIT_SLOWDOWN, 0.12, 1400},  {LIMIT_TIME, 0.85, 1400},   {LIMIT_TIME, 0.7, 0},
        {LIMIT_POWER, 90, 0},          {LIMIT_POWER, 134, 1000},   {LIMIT_CLOCK, 0.8, 1200},
        {LIMIT_TEMPERATURE, 80, 1200}, {LIMIT_TEMPERATURE, 50, 0}, {LIMIT_QUALITY, 0.95, 1200},
    };
    struct optimize_point points[3];
    make_published(points);
    points[1].temperature_c = 70; /* those of the others are unknown: not within a limit */
    points[0].quality = 0.4;
    points[1].quality = points[2].quality = 0.5;
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++) {
        struct optimize_goal goal = optimize_goal_edp();
        goal.limits[WANTED[i].limit] = WANTED[i].value;
        struct optimum found = optimize_pick(&goal, &points[2], points, 3);
        assert_int_equal(found.is_found, WANTED[i].mhz > 0);
        if (found.is_found)
            assert_near(points[found.best].freq_mhz, WANTED[i].mhz, 0);
        else
            assert_int_equal(found.limits, 1u << WANTED[i].limit);
    }
    struct optimize_point tenth[] = {make_point(1000, 100, 1.1), make_point(1400, 140, 1)};
    struct optimize_goal slower = optimize_goal_edp();
    slower.limits[LIMIT_SLOWDOWN] =
        0.1; /* 1.1 - 1 is slightly more in binary: rounding must not exclude it */
    assert_int_equal(optimize_violations(&slower, &tenth[1], &tenth[0]), 0);
    struct optimize_goal both = optimize_goal_edp();
    both.limits[LIMIT_TIME] = 0.85;
    both.limits[LIMIT_POWER] = 134;
    struct optimum found = optimize_pick(&both, &points[2], points, 3);
    assert_false(found.is_found);
    assert_int_equal(found.limits, 1u << LIMIT_TIME | 1u << LIMIT_POWER);
}

static void invalid_figures_are_never_selected(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct optimize_point points[] = {make_point(500, -5, 1), make_point(600, NAN, 1),
                                      make_point(700, 10, 0), make_point(800, 10, 1),
                                      make_point(900, 10, 1), make_point(950, 10.05, 1)};
    struct optimum found = optimize_pick(&goal, &points[4], points, 6);
    assert_true(found.is_found);
    assert_int_equal(found.best, 3); /* the first of equal points */
    assert_int_equal(found.usable, 3);
    assert_near(found.low_mhz, 800, 0);
    assert_near(found.high_mhz, 950, 0);
    assert_int_equal(optimize_front(&goal, points, 6), 2);
    assert_false(points[0].is_front);
    assert_true(points[3].is_front && points[4].is_front);
    found = optimize_pick(&goal, &points[0], points, 3);
    assert_false(found.is_found);
    assert_int_equal(found.usable, 0);
    assert_int_equal(found.limits, 0);
    assert_false(optimize_pick(&goal, &points[0], points, 0).is_found);
    found = optimize_pick(&goal, &points[4], &points[4], 1);
    assert_true(found.is_found && found.best == 0);
}

/* Against a comparison of each pair; quality adds points that are better in nothing else. */
static void pareto_front_of_energy_time_and_quality(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct optimize_point points[] = {make_point(1, 10, 5), make_point(2, 12, 4),
                                      make_point(3, 13, 4.5), make_point(4, 20, 3)};
    assert_int_equal(optimize_front(&goal, points, 4), 3);
    assert_false(points[2].is_front);
    static const double QUALITY[] = {0.8, 0.8, 0.9, 0.7};
    for (size_t i = 0; i < 4; i++)
        points[i].quality = QUALITY[i];
    assert_int_equal(optimize_front(&goal, points, 4), 4);
    goal.is_quality_falling = true; /* 0.9 is now the worst */
    assert_int_equal(optimize_front(&goal, points, 4), 3);
    assert_false(points[2].is_front);
}

/* ---- choices ---- */

enum { CLOCKS = 61 };
#define FMAX 1400.0

struct sweep {
    struct freq_sample samples[CLOCKS];
    struct freq_curve curve;
    struct freq_data data;
    struct freq_model model;
};

/* Time 10 s above 1000 MHz and rising as 1/f below; power a cubic that the fit can represent.
 * `flat`: time as 1/f and constant power, so that nothing can be saved. */
static void make_sweep(struct sweep *s, bool flat, double wobble)
{
    struct error why = {0};
    struct freq_curves curves = {&s->curve, 1};
    *s = (struct sweep){.curve = {.fmax_mhz = FMAX, .idle_w = 30, .count = CLOCKS}};
    s->curve.samples = s->samples;
    (void)str_copy(s->curve.gpu, sizeof s->curve.gpu, "A100");
    (void)str_copy(s->curve.application, sizeof s->curve.application, "work");
    for (size_t i = 0; i < CLOCKS; i++) {
        struct freq_sample *at = &s->samples[i];
        double mhz = 500 + 15.0 * (double)i, z = mhz / FMAX - 1, u = FMAX / mhz;
        double noise = 1 + wobble * sin(37.0 * (double)i);
        at->freq_mhz = mhz;
        at->power_w = noise * (flat ? 200 : 220 + 320 * z + 260 * z * z + 90 * z * z * z);
        at->time_s = at->window_s = flat ? 10 : 10 + 9 * fmax(0, u - 1.4);
        at->energy_j = at->power_w * at->window_s;
        at->runs = 3;
        for (size_t k = 0; k < FREQ_ACTIVITIES; k++)
            at->activity[k] = UNKNOWN;
    }
    assert_int_equal(freq_model_fit(&s->model, "roofline", &curves,
                                    &(struct freq_model_options){.seed = 1}, &why),
                     ERR_OK);
}

static void choose(struct sweep *s, const struct optimize_goal *goal, struct clock_choice *out)
{
    struct error why = {0};
    struct clock_question question = {
        .curve = &s->curve, .model = &s->model, .data = &s->data, .lowest_mhz = 500, .goal = *goal};
    assert_int_equal(clock_choice_of(&question, out, &why), ERR_OK);
}

/* The optimum, the saving and the Pareto front of the formula itself, without a fit. */
static void the_choice_of_a_sweep_matches_its_formula(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct sweep s;
    struct clock_choice choice;
    size_t best = 0;
    make_sweep(&s, false, 0);
    for (size_t i = 0; i < CLOCKS; i++)
        if (s.samples[i].energy_j * s.samples[i].time_s <
            s.samples[best].energy_j * s.samples[best].time_s)
            best = i;
    double saving = 1 - s.samples[best].energy_j / s.samples[CLOCKS - 1].energy_j;
    choose(&s, &goal, &choice);
    assert_true(choice.is_recommended);
    double mhz = choice.points[choice.optimum.best].freq_mhz;
    assert_true(fabs(mhz - s.samples[best].freq_mhz) <= 15.1);
    assert_near(choice.saving, saving, 0.01);
    assert_true(choice.saving_error < 0.02);
    assert_true(choice.regret_mean >= 0 && choice.regret_max < 0.02);
    assert_true(choice.optimum.low_mhz <= mhz && mhz <= choice.optimum.high_mhz);
    clock_choice_release(&choice);
    freq_model_release(&s.model);
}

static void an_insignificant_saving_is_not_recommended(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct sweep s;
    struct clock_choice choice;
    make_sweep(&s, true, 0.2);
    choose(&s, &goal, &choice);
    assert_false(choice.is_recommended);
    assert_true(choice.flags & CHOICE_NO_OPTIMUM);
    assert_false(is_known(choice.saving));
    assert_contains(choice.reason, "not significant");
    clock_choice_release(&choice);
    freq_model_release(&s.model);
}

static void an_idle_gpu_has_no_optimum(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct sweep s;
    struct clock_choice choice;
    make_sweep(&s, false, 0);
    struct finding *idle =
        finding_raise(&s.data.findings, FINDING_IDLE_GPU, "the GPU is mostly idle");
    idle->scope = FINDING_OF_CURVE;
    (void)str_copy(idle->gpu, sizeof idle->gpu, "A100");
    (void)str_copy(idle->application, sizeof idle->application, "work");
    choose(&s, &goal, &choice);
    assert_false(choice.is_recommended);
    assert_false(is_known(choice.saving));
    assert_true(choice.flags & CHOICE_NO_OPTIMUM);
    assert_string_equal(choice.reason, "the GPU is mostly idle");
    findings_release(&s.data.findings);
    clock_choice_release(&choice);
    freq_model_release(&s.model);
}

/* Two applications whose best clocks are 1000 and 1400: the clock between them has the least mean regret. */
static void one_clock_for_two_applications_has_the_least_mean_regret(void **state)
{
    (void)state;
    struct optimize_goal goal = optimize_goal_edp();
    struct error why = {0};
    struct clock_choice choices[2];
    struct clock_policy policies[2];
    static const double JOULES[2][3] = {{100, 101, 130}, {130, 101, 100}};
    for (size_t a = 0; a < 2; a++) {
        struct optimize_point *points = calloc(3, sizeof *points);
        assert_non_null(points);
        for (size_t i = 0; i < 3; i++)
            points[i] = make_point(1000 + 200 * (double)i, JOULES[a][i], 1);
        assert_int_equal(clock_choice_of_settings(points, 3, 2, &goal, NULL, &choices[a], &why),
                         ERR_OK);
    }
    assert_int_equal(clock_policies_of(choices, 2, &goal, POLICY_MEAN, policies), 1);
    assert_near(policies[0].freq_mhz, 1200, 0);
    assert_near(policies[0].regret_mean, 0.01, 1e-12);
    assert_int_equal(clock_policies_of(choices, 1, &goal, POLICY_MEAN, policies), 0);
    /* Nearly free for the first at 1000, but nearly the worst for the second. */
    choices[1].points[0].figures[FREQ_ENERGY_J].value = 101.5;
    choices[1].points[1].figures[FREQ_ENERGY_J].value = 101.2;
    choices[0].points[1].figures[FREQ_ENERGY_J].value = 101;
    assert_int_equal(clock_policies_of(choices, 2, &goal, POLICY_MEAN, policies), 1);
    assert_near(policies[0].freq_mhz, 1000, 0); /* (0 + 1.5) / 2 against (1 + 1.2) / 2 */
    assert_int_equal(clock_policies_of(choices, 2, &goal, POLICY_MINIMAX, policies), 1);
    assert_near(policies[0].freq_mhz, 1200, 0);
    assert_near(policies[0].regret_max, 0.012, 1e-12);
    for (size_t a = 0; a < 2; a++)
        clock_choice_release(&choices[a]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_example_is_reproduced),
        cmocka_unit_test(limits_hold_and_are_reported),
        cmocka_unit_test(invalid_figures_are_never_selected),
        cmocka_unit_test(pareto_front_of_energy_time_and_quality),
        cmocka_unit_test(the_choice_of_a_sweep_matches_its_formula),
        cmocka_unit_test(an_insignificant_saving_is_not_recommended),
        cmocka_unit_test(an_idle_gpu_has_no_optimum),
        cmocka_unit_test(one_clock_for_two_applications_has_the_least_mean_regret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
