/* Smooth curves: known shapes are followed without a formula for them, outliers do not move them, and the uncertainty of a
 * change covers the true one. */
#include "support/unit.h"

#include <math.h>

#include "core/random.h"
#include "power/freq_model.h"
#include "power/smooth_fit.h"

enum { CLOCKS = 40 };
#define FMAX 1480.0

typedef double law(double x); /* of f / fmax */

static double power_law(double x)
{
    return 10 * pow(x, -0.4);
}

static double capped(double x)
{
    return 60 + 190 * pow(fmin(x, 0.9), 3);
}

static double stepped(double x)
{
    return x < 0.6 ? 13.5 : 10;
}

static double kneed(double x)
{
    return 10 * fmax(1, 0.7 / x);
}

struct sweep {
    double mhz[CLOCKS], figure[CLOCKS];
    struct smooth_question question;
    struct smooth_curve curve;
};

static double relative(const struct sweep *s, size_t i)
{
    return s->mhz[i] / FMAX;
}

static void make(struct sweep *s, law *of, bool is_falling, double noise, struct random *random)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        s->mhz[i] = 505 + 25.0 * (double)i;
        s->figure[i] = of(relative(s, i)) * exp(noise > 0 ? noise * random_normal(random) : 0);
    }
    s->question = (struct smooth_question){
        s->mhz, s->figure, CLOCKS, s->mhz, CLOCKS, is_falling, .has_steps = is_falling};
}

static double value_at(const struct sweep *s, size_t i)
{
    return exp(s->curve.value[i]);
}

static void shapes_are_followed_without_a_formula(void **state)
{
    (void)state;
    static const struct {
        law *of;
        bool is_falling;
        double tolerance; /* relative; corners are rounded */
    } SHAPES[] = {{power_law, true, 0.001},
                  {capped, false, 0.02},
                  {stepped, true, 0.002},
                  {kneed, true, 0.01}};
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++) {
        struct sweep s;
        make(&s, SHAPES[k].of, SHAPES[k].is_falling, 0, NULL);
        smooth_fit(&s.question, &s.curve);
        for (size_t i = 0; i < CLOCKS; i++) {
            double wanted = SHAPES[k].of(relative(&s, i));
            assert_near(value_at(&s, i), wanted, SHAPES[k].tolerance * wanted);
        }
        smooth_curve_release(&s.curve);
    }
}

static void a_capped_power_does_not_rise_above_the_cap(void **state)
{
    (void)state;
    struct random random = random_seeded(3);
    struct sweep s;
    make(&s, capped, false, 0.003, &random);
    smooth_fit(&s.question, &s.curve);
    double cap = capped(1);
    for (size_t i = 0; i < CLOCKS; i++)
        if (relative(&s, i) > 0.92)
            assert_near(value_at(&s, i), cap, 0.006 * cap);
    smooth_curve_release(&s.curve);
}

static void curves_are_monotone_although_the_samples_are_not(void **state)
{
    (void)state;
    struct random random = random_seeded(5);
    struct sweep s;
    make(&s, kneed, true, 0.03, &random);
    smooth_fit(&s.question, &s.curve);
    for (size_t i = 1; i < CLOCKS; i++)
        assert_true(s.curve.value[i] <= s.curve.value[i - 1]);
    smooth_curve_release(&s.curve);
}

static void outliers_move_neither_the_curve_nor_a_step(void **state)
{
    (void)state;
    static law *const LAWS[] = {power_law, stepped};
    for (size_t k = 0; k < 2; k++) {
        struct random random = random_seeded(7);
        struct sweep s;
        make(&s, LAWS[k], true, 0.002, &random);
        s.figure[CLOCKS - 1] *= 1.5; /* a cold run at the highest clock */
        s.figure[22] *= 0.7;
        smooth_fit(&s.question, &s.curve);
        for (size_t i = 0; i < CLOCKS; i++) {
            double wanted = LAWS[k](relative(&s, i));
            assert_near(value_at(&s, i), wanted, 0.01 * wanted);
        }
        assert_near(s.curve.noise, 0.002, 0.001);
        smooth_curve_release(&s.curve);
    }
}

/* Averaged over the clocks, as the intervals of a smoothing spline are. */
static void changes_are_within_their_uncertainty(void **state)
{
    (void)state;
    enum { TRIALS = 60 };
    static law *const LAWS[] = {power_law, stepped, kneed};
    struct random random = random_seeded(11);
    for (size_t k = 0; k < 3; k++) {
        double covered = 0, width = 0;
        for (size_t trial = 0; trial < TRIALS; trial++) {
            struct sweep s;
            make(&s, LAWS[k], true, 0.01, &random);
            smooth_fit(&s.question, &s.curve);
            for (size_t i = 0; i + 1 < CLOCKS; i++) {
                double wanted = log(LAWS[k](relative(&s, i)) / LAWS[k](1));
                double found = s.curve.value[i] - s.curve.value[CLOCKS - 1];
                double half = 1.645 * s.curve.change[i] + fabs(s.curve.moved[i]);
                covered += fabs(found - wanted) <= half;
                width += half;
            }
            smooth_curve_release(&s.curve);
        }
        assert_true(covered / TRIALS / (CLOCKS - 1) > 0.85);
        assert_true(width / TRIALS / (CLOCKS - 1) < 1.645 * 0.01); /* one sample's */
    }
}

static void intervals_from_few_curves_are_wider(void **state)
{
    (void)state;
    assert_near(freq_curves_factor(3), 2.3534 / 1.645, 1e-3); /* Student's t with 3 degrees */
    assert_near(freq_curves_factor(100000), 1, 1e-3);
    assert_true(freq_curves_factor(1) > freq_curves_factor(2));
    assert_false(is_known(freq_curves_factor(0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_followed_without_a_formula),
        cmocka_unit_test(a_capped_power_does_not_rise_above_the_cap),
        cmocka_unit_test(curves_are_monotone_although_the_samples_are_not),
        cmocka_unit_test(outliers_move_neither_the_curve_nor_a_step),
        cmocka_unit_test(changes_are_within_their_uncertainty),
        cmocka_unit_test(intervals_from_few_curves_are_wider),
    };
    return RUN_TESTS(tests);
}
