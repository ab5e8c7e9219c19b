/* Distributions, fits, ranks and densities on Anscombe's first set: the expected values are
 * SciPy's. tests/cli/test_stats_oracle.py has more cases, against SciPy itself. */
#include "support/unit.h"

#include <math.h>

#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"
#include "stats/fit.h"

enum { COUNT = 11 };

static const double X[COUNT] = {10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
static const double Y[COUNT] = {8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68};

static void test_distributions_match_scipy(void **state)
{
    (void)state;
    assert_near(student_quantile(0.05, 10), 2.2281388519862753, 1e-9);
    assert_near(student_quantile(0.05, 1), 12.706204736174705, 1e-8);
    assert_near(student_two_sided(-2.5, 7), 0.04099221858575289, 1e-12);
    assert_near(student_two_sided(0, 7), 1, 1e-15);
    assert_true(isnan(student_quantile(0, 3)) && isnan(student_two_sided(1, 0)));
}

static void test_line_fits_match_scipy(void **state)
{
    (void)state;
    struct linear_fit fit;
    assert_true(linear_fit(X, Y, COUNT, &fit));
    assert_near(fit.slope, 0.5000909090909091, 1e-12);
    assert_near(fit.intercept, 3.0000909090909103, 1e-12);
    assert_near(fit.r2, 0.666542459508775, 1e-12);
    assert_near(fit.slope_error, 0.11790550059563408, 1e-12);
    assert_near(fit.intercept_error, 1.1247467908086437, 1e-12);
    assert_near(fit.p_value, 0.0021696288730787905, 1e-12);
    assert_near(fit.slope_low, 0.23337013638518744, 1e-10);
    assert_near(fit.intercept_high, 5.544444918252978, 1e-9);
    assert_true(linear_fit_logs(X, Y, COUNT, LINEAR_LOG_LOG, &fit));
    assert_near(fit.slope, 0.5993900281708087, 1e-12);
    assert_near(fit.intercept, 0.7035878561807531, 1e-12);
    const double same[] = {3, 3, 3}, zeros[] = {0, -1, 2};
    assert_false(linear_fit(same, Y, 3, &fit));
    assert_true(isnan(fit.slope) && fit.count == 3);
    assert_false(linear_fit_logs(zeros, Y, 3, LINEAR_LOG_X, &fit));
    assert_int_equal(fit.count, 1);
    assert_false(linear_fit(NULL, NULL, 0, &fit));
    assert_true(linear_fit(Y, same, 3, &fit)); /* a constant y is fitted exactly */
    assert_near(fit.r2, 1, 0);
    assert_near(fit.p_value, 1, 0);
}

static void test_plane_fits(void **state)
{
    (void)state;
    double z[COUNT];
    struct plane_fit fit;
    for (size_t i = 0; i < COUNT; i++)
        z[i] = fmod(X[i] * X[i], 7);
    assert_true(plane_fit(X, z, Y, COUNT, &fit));
    assert_near(fit.intercept, 1.75639325, 1e-8);
    assert_near(fit.a, 0.53537311, 1e-8);
    assert_near(fit.b, 0.48513029, 1e-8);
    assert_near(fit.a_error, 0.09959943, 1e-8);
    assert_near(fit.intercept_error, 1.09217495, 1e-8);
    assert_near(fit.r2, 0.7938604222765419, 1e-12);
    for (size_t i = 0; i < COUNT; i++)
        z[i] = 2 * X[i] + 1;
    assert_false(plane_fit(X, z, Y, COUNT, &fit)); /* the two are not identifiable */
    assert_true(isnan(fit.a) && fit.count == COUNT);
}

static void test_theil_sen_matches_scipy(void **state)
{
    (void)state;
    struct theil_sen line;
    theil_sen(X, Y, COUNT, &line);
    assert_near(line.slope, 0.5016666666666668, 1e-12);
    assert_near(line.intercept, 3.0649999999999986, 1e-12);
    assert_int_equal(line.pairs, 55);
    const double far[] = {-1.5e308, 1.5e308, 1, 2}, wide[] = {1.5e308, -1.5e308, 1, 2};
    theil_sen(far, wide, 4, &line); /* inf / inf between the first two */
    assert_true(line.pairs < 6 && isfinite(line.slope));
    theil_sen(X, Y, 0, &line);
    assert_true(isnan(line.slope));
}

static void test_correlations_match_scipy(void **state)
{
    (void)state;
    static const double TIED_X[] = {1, 1, 2, 3, 3, 4}, TIED_Y[] = {2, 1, 2, 2, 5, 4};
    struct correlation found;
    spearman(X, Y, COUNT, &found);
    assert_near(found.value, 0.8181818181818182, 1e-12);
    assert_near(found.p_value, 0.0020831448404786917, 1e-12);
    kendall(X, Y, COUNT, &found);
    assert_near(found.value, 0.6363636363636364, 1e-12);
    assert_near(found.p_value, 0.006435091231559117, 1e-12);
    spearman(TIED_X, TIED_Y, 6, &found);
    assert_near(found.value, 0.750366479376867, 1e-12);
    kendall(TIED_X, TIED_Y, 6, &found);
    assert_near(found.value, 0.6405126152203486, 1e-12);
    assert_near(found.p_value, 0.09577258478155487, 1e-12);
    kendall(X, Y, 0, &found);
    assert_true(isnan(found.value) && found.count == 0);
}

/* Equal values have no spread, though their mean may differ from them in the last digit. */
static void test_equal_values_have_no_slope_or_correlation(void **state)
{
    (void)state;
    double same[7], y[7], ones[7];
    struct linear_fit fit;
    for (size_t i = 0; i < 7; i++) {
        same[i] = 0.1;
        ones[i] = 1.0 / 3;
        y[i] = (double)i + 1;
    }
    for (int logs = LINEAR_PLAIN; logs <= LINEAR_LOG_LOG; logs++) {
        assert_false(linear_fit_logs(same, y, 7, (enum linear_logs)logs, &fit));
        assert_int_equal(fit.count, 7);
        assert_true(isnan(fit.slope) && isnan(fit.r2) && isnan(fit.slope_error));
        assert_true(linear_fit_logs(y, ones, 7, (enum linear_logs)logs, &fit));
        assert_true(fit.slope == 0 && fit.r2 == 1);
    }
}

static void test_density_matches_scipy(void **state)
{
    (void)state;
    static const double AT[] = {5, 8, 12}, WANTED[] = {0.0998436519, 0.1770652154, 0.0261291873};
    double density[3], same[] = {1, 1};
    assert_near(kde_bandwidth(Y, COUNT), 1.1318669135998993, 1e-12);
    assert_int_equal(kde(Y, COUNT, AT, 3, density), ERR_OK);
    for (size_t i = 0; i < 3; i++)
        assert_near(density[i], WANTED[i], 1e-8);
    assert_int_equal(kde(same, 2, AT, 3, density), ERR_NO_DATA);
    assert_int_equal(kde(same, 0, AT, 3, density), ERR_NO_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions_match_scipy),
        cmocka_unit_test(test_line_fits_match_scipy),
        cmocka_unit_test(test_plane_fits),
        cmocka_unit_test(test_theil_sen_matches_scipy),
        cmocka_unit_test(test_correlations_match_scipy),
        cmocka_unit_test(test_equal_values_have_no_slope_or_correlation),
        cmocka_unit_test(test_density_matches_scipy),
    };
    return RUN_TESTS(tests);
}
