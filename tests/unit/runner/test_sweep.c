/* Which points a sweep measures, and how often. Probe mode on GPUs with known curves: the best
 * clock that it measured against the best of all clocks. */
#include "support/unit.h"
#include "port/json_read.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "runner/sweep.h"
#include "support/tree.h"

/* T = t0 + t1 max(0, fmax / f - knee), P = idle + rise (f / fmax)^steep */
static const struct gpu {
    double high, low, step, t0, t1, knee, idle, rise, steep;
} GPUS[] = {
    {1410, 510, 15, 20, 20, 1, 60, 180, 2.6},    /* compute-bound */
    {1410, 510, 15, 47, 40, 2.04, 70, 170, 2.2}, /* memory-bound: a knee at 690 MHz */
    {1785, 510, 15, 10, 10, 1.35, 90, 300, 2.9}, /* between */
    {1380, 510, 7.5, 30, 30, 1.39, 40, 190, 1.8},
    {1785, 510, 15, 10, 10, 1, 350, 40,
     2}, /* idle power dominates: the highest clock is the best */
};

static double time_at(const struct gpu *gpu, double mhz)
{
    return gpu->t0 + gpu->t1 * fmax(0, gpu->high / mhz - gpu->knee);
}

static double objective_at(const struct gpu *gpu, double mhz, double exponent)
{
    double watts = gpu->idle + gpu->rise * pow(mhz / gpu->high, gpu->steep);
    return watts * pow(time_at(gpu, mhz), exponent + 1);
}

static size_t list_clocks(const struct gpu *gpu, double *out)
{
    size_t count = 0;
    for (; gpu->high - (double)count * gpu->step >= gpu->low; count++)
        out[count] = floor(gpu->high - (double)count * gpu->step);
    return count;
}

/* What a command would have measured, with 0.5 % noise. */
static void measure(struct sweep *sweep, struct run_writer *writer, const struct gpu *gpu)
{
    struct sweep_step step;
    struct error why = {0};
    while (sweep_next(sweep, &step)) {
        double mhz = sweep->settings[step.point].number;
        double noise = 1 + 0.005 * sin((double)step.point * 7 + 1), time = time_at(gpu, mhz);
        struct sweep_attempt attempt = {.point = step.point,
                                        .repeat = step.repeat,
                                        .flags = strdup(""),
                                        .wall_s = time,
                                        .seconds = time,
                                        .joules = objective_at(gpu, mhz, 0) * noise,
                                        .plus_minus = UNKNOWN,
                                        .statistical = UNKNOWN};
        assert_int_equal(sweep_add(sweep, writer, &attempt, &why), ERR_OK);
    }
}

/* Returns the regret of the best clock that was measured. */
static double run_probe(const struct gpu *gpu, double exponent, const char *parent, size_t *points)
{
    double clocks[200], best = INFINITY, found = INFINITY;
    size_t count = list_clocks(gpu, clocks);
    struct sweep sweep = {.repeats = 1,
                          .max_repeats = 1,
                          .until_pct = UNKNOWN,
                          .cooldown_s = UNKNOWN,
                          .time_exponent = exponent,
                          .min_mhz = 510,
                          .control = true};
    struct sweep again;
    struct run_writer writer;
    struct text knob = {0};
    struct error why = {0};
    bool more = true;
    sweep.mode = strdup("probe");
    sweep.clocks = malloc(sizeof clocks);
    assert_non_null(sweep.clocks);
    memcpy(sweep.clocks, clocks, sizeof clocks);
    sweep.clock_count = count;
    sweep_probe_knob(clocks, count, 4, &knob);
    const char *words[] = {text_get(&knob)};
    assert_int_equal(sweep_expand(words, 1, false, &sweep, &why), ERR_OK);
    assert_int_equal(sweep.point_count, 4);
    sweep_word(&sweep.command, &sweep.word_count, "load");
    assert_int_equal(sweep_create(&sweep, parent, &writer, &why), ERR_OK);
    while (more) {
        measure(&sweep, &writer, gpu);
        assert_int_equal(sweep_refine(&sweep, &writer, &more, &why), ERR_OK);
    }
    for (size_t i = 0; i < count; i++)
        best = fmin(best, objective_at(gpu, clocks[i], exponent));
    for (size_t p = 0; p < sweep.point_count; p++)
        found = fmin(found, objective_at(gpu, sweep.settings[p].number, exponent));
    /* Added points are there when the sweep is read again. */
    assert_int_equal(sweep_load(writer.directory, &again, &why), ERR_OK);
    assert_int_equal(again.point_count, sweep.point_count);
    for (size_t p = 0; p < sweep.point_count; p++)
        assert_string_equal(again.settings[p].text, sweep.settings[p].text);
    assert_int_equal(again.clock_count, count);
    assert_memory_equal(again.clocks, clocks, count * sizeof *clocks);
    assert_int_equal(again.count, sweep.point_count);
    *points = sweep.point_count;
    run_writer_close(&writer);
    sweep_release(&again);
    sweep_release(&sweep);
    text_release(&knob);
    return found / best - 1;
}

static void probe_mode_finds_the_best_clock_with_few_points(void **state)
{
    (void)state;
    struct tree tree;
    tree_new(&tree);
    for (size_t g = 0; g < sizeof GPUS / sizeof *GPUS; g++)
        for (int exponent = 0; exponent <= 2; exponent++) {
            char parent[200];
            size_t points;
            snprintf(parent, sizeof parent, "%s/%zu-%d", tree.root, g, exponent);
            double regret = run_probe(&GPUS[g], exponent, parent, &points);
            if (regret > 0.01 || points > 11)
                print_error("GPU %zu, n = %d: regret %g, %zu points\n", g, exponent, regret,
                            points);
            assert_true(regret <= 0.01);
            assert_true(points <= 11);
        }
    tree_free(&tree);
}

static bool count_step(void *context, const struct sweep *sweep, const struct sweep_step *step)
{
    unsigned char *times = context;
    assert_true(step->point < sweep->point_count && step->repeat <= sweep->repeats);
    times[(step->repeat - 1) * sweep->point_count + step->point]++;
    return false;
}

/* Each once; a superlinear cost would exceed the test's time limit. */
static void a_large_plan_has_each_attempt_once(void **state)
{
    (void)state;
    enum { POINTS = 5000, REPEATS = 400 };
    struct sweep sweep = {.repeats = REPEATS, .max_repeats = REPEATS, .until_pct = UNKNOWN};
    struct sweep_step step;
    struct error why = {0};
    const char *words[] = {"a=1-5000:1"};
    unsigned char *times = calloc((size_t)POINTS * REPEATS, 1);
    assert_non_null(times);
    assert_int_equal(sweep_expand(words, 1, false, &sweep, &why), ERR_OK);
    assert_false(sweep_each(&sweep, count_step, times));
    for (size_t i = 0; i < (size_t)POINTS * REPEATS; i++)
        assert_int_equal(times[i], 1);
    /* The first of them is the next one. */
    assert_true(sweep_next(&sweep, &step));
    assert_int_equal(step.repeat, 1);
    free(times);
    sweep_release(&sweep);
}

/* Batch 1 is compute-bound, 8 memory-bound. */
static void measure_batches(struct sweep *sweep, struct run_writer *writer)
{
    struct sweep_step step;
    struct error why = {0};
    while (sweep_next(sweep, &step)) {
        const struct setting *settings = sweep_point(sweep, step.point);
        double x = settings[1].number / 1410, time = settings[0].number == 1 ? 10 / x : 10;
        struct sweep_attempt attempt = {.point = step.point,
                                        .repeat = 1,
                                        .flags = strdup(""),
                                        .seconds = time,
                                        .joules = (60 + 200 * x * x * x) * time};
        assert_int_equal(sweep_add(sweep, writer, &attempt, &why), ERR_OK);
    }
}

/* Each setting of the other knobs has its own optimum. */
static void each_setting_of_other_knobs_has_its_own_curve(void **state)
{
    (void)state;
    static const double CLOCKS[] = {1410, 1305, 1200, 1095, 1005, 900, 810, 735, 660, 585, 510};
    struct tree tree;
    struct sweep sweep = {.repeats = 1, .max_repeats = 1, .control = true};
    struct run_writer writer;
    struct error why = {0};
    const char *const words[] = {"batch=1,8", "gpu-clock=1410,1005,660"};
    size_t best[2];
    tree_new(&tree);
    sweep.mode = strdup("probe");
    sweep.clocks = malloc(sizeof CLOCKS);
    assert_non_null(sweep.clocks);
    memcpy(sweep.clocks, CLOCKS, sizeof CLOCKS);
    sweep.clock_count = sizeof CLOCKS / sizeof *CLOCKS;
    sweep.until_pct = sweep.cooldown_s = sweep.min_mhz = UNKNOWN;
    assert_int_equal(sweep_expand(words, 2, false, &sweep, &why), ERR_OK);
    sweep_word(&sweep.command, &sweep.word_count, "load");
    assert_int_equal(sweep_create(&sweep, tree.root, &writer, &why), ERR_OK);
    for (bool more = true; more;) {
        measure_batches(&sweep, &writer);
        assert_int_equal(sweep_refine(&sweep, &writer, &more, &why), ERR_OK);
    }
    for (size_t i = 0; i < 6; i++) /* one of each at the start */
        best[*sweep_point(&sweep, sweep.attempts[i].point)[0].text == '8'] = i;
    for (size_t i = 0; i < sweep.count; i++) {
        size_t curve = *sweep_point(&sweep, sweep.attempts[i].point)[0].text == '8';
        if (sweep.attempts[i].joules < sweep.attempts[best[curve]].joules)
            best[curve] = i;
    }
    /* 60 / x + 200 x^2 is least at x = 0.53, 60 + 200 x^3 at the lowest clock. */
    assert_string_equal(sweep_point(&sweep, sweep.attempts[best[0]].point)[1].text, "735");
    assert_string_equal(sweep_point(&sweep, sweep.attempts[best[1]].point)[1].text, "510");
    assert_true(sweep.point_count < 22);
    run_writer_close(&writer);
    sweep_release(&sweep);
    tree_free(&tree);
}

/* Repeats until the target precision is reached: a throttled repeat does not count for it. */
static void a_throttled_repeat_does_not_count_as_spread(void **state)
{
    (void)state;
    struct sweep_attempt attempts[] = {
        {.repeat = 1, .tries = 1, .seconds = 1, .joules = 100},
        {.repeat = 2, .tries = 1, .seconds = 1, .joules = 100.1},
        {.repeat = 3,
         .tries = 3,
         .flag_bits = attempt_flags_parse("background_cpu,throttled"),
         .seconds = 1,
         .joules = 150},
    };
    struct sweep sweep = {.point_count = 1,
                          .repeats = 2,
                          .max_repeats = 10,
                          .reruns = 2,
                          .until_pct = 1,
                          .attempts = attempts,
                          .count = 3};
    struct sweep_step step;
    assert_false(sweep_next(&sweep, &step));
    attempts[2].tries = 2; /* one more is allowed */
    assert_true(sweep_next(&sweep, &step));
    assert_int_equal(step.repeat, 3);
    attempts[2].flag_bits = 0; /* a real spread */
    assert_true(sweep_next(&sweep, &step));
    assert_int_equal(step.repeat, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_mode_finds_the_best_clock_with_few_points),
        cmocka_unit_test(a_large_plan_has_each_attempt_once),
        cmocka_unit_test(a_throttled_repeat_does_not_count_as_spread),
        cmocka_unit_test(each_setting_of_other_knobs_has_its_own_curve),
    };
    return RUN_TESTS(tests);
}
