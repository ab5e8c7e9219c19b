/* test: valgrind */
/* Windows over a timeline against brute force over every interval, for both shapes, with gaps, in
 * memory, on disk and thinned; and the claimed uncertainty against the actual error. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sampler/window.h"

#define MS NS_PER_MS

static uint64_t seed;

static double uniform(double low, double high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

/* ---- a history and its copy ---- */

struct history {
    struct spill spill;
    struct timeline timeline;
    struct timeline_point *copy;
    size_t count;
};

/* Irregular samples, with a gap before about one in gap_every (0: none). */
static void make_history(struct history *h, enum timeline_shape shape, size_t count,
                         unsigned gap_every)
{
    spill_init(&h->spill);
    timeline_init(&h->timeline, &h->spill, shape);
    h->copy = calloc(count + 1, sizeof *h->copy);
    h->count = count;
    struct timeline_point p = {.t = NS_PER_S, .value = shape == SHAPE_MEANS ? UNKNOWN : 100};
    for (size_t i = 0; i < count; i++) {
        h->copy[i] = p;
        assert_int_equal(timeline_append(&h->timeline, &p), ERR_OK);
        nanos dt = (nanos)uniform(1e5, 3e6);
        double value = uniform(50, 400), before = p.value;
        bool gap = gap_every && uniform(0, gap_every) < 1;
        p.t += gap ? dt * 20 : dt;
        p.value = gap && shape == SHAPE_MEANS ? UNKNOWN : value;
        if (gap)
            continue;
        p.covered += dt;
        p.sum += seconds(dt) * (shape == SHAPE_MEANS ? value : (before + value) / 2);
    }
}

static void free_history(struct history *h)
{
    timeline_release(&h->timeline);
    spill_release(&h->spill);
    free(h->copy);
}

struct truth {
    double sum, covered_s, low, high;
    unsigned long updates;
};

/* The part of [from, to] in the interval a..b. */
static void add_interval(struct truth *truth, enum timeline_shape shape,
                         const struct timeline_point *a, const struct timeline_point *b, nanos from,
                         nanos to)
{
    nanos start = a->t > from ? a->t : from, end = b->t < to ? b->t : to;
    if (start >= end || b->covered == a->covered)
        return;
    double dt = seconds(end - start);
    truth->covered_s += dt;
    if (shape == SHAPE_MEANS) {
        truth->sum += b->value * dt;
        truth->low = fmin(truth->low, b->value);
        truth->high = fmax(truth->high, b->value);
        return;
    }
    double slope = (b->value - a->value) / (double)(b->t - a->t);
    double middle = a->value + slope * ((double)(start - a->t) + (double)(end - start) / 2);
    truth->sum += middle * dt;
    if (from >= a->t) {
        truth->low = fmin(truth->low, a->value);
        truth->high = fmax(truth->high, a->value);
    }
}

static struct truth brute_force(const struct history *h, nanos from, nanos to)
{
    struct truth truth = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < h->count; i++) {
        const struct timeline_point *p = &h->copy[i];
        if (p->t > from && p->t <= to) {
            truth.updates++;
            if (h->timeline.shape == SHAPE_POINTS) {
                truth.low = fmin(truth.low, p->value);
                truth.high = fmax(truth.high, p->value);
            }
        }
        if (i > 0)
            add_interval(&truth, h->timeline.shape, p - 1, p, from, to);
    }
    return truth;
}

static void check_window(const struct history *h, nanos from, nanos to)
{
    struct truth truth = brute_force(h, from, to);
    struct window window;
    enum err err = window_read(&h->timeline, from, to, &window);
    assert_near(window.covered_s, truth.covered_s, 1e-9);
    assert_near(window.coverage, truth.covered_s / seconds(to - from), 1e-9);
    assert_int_equal(window.updates, truth.updates);
    if (truth.covered_s > 0) {
        assert_int_equal(err, ERR_OK);
        assert_near(window.sum, truth.sum, 1e-9 * fabs(truth.sum) + 1e-9);
        assert_true(window.variance >= 0);
    } else {
        assert_int_equal(err, ERR_NO_DATA);
        assert_false(is_known(window.sum));
        assert_false(is_known(window.variance));
    }
    double low, high;
    err = window_extremes(&h->timeline, from, to, &low, &high);
    assert_int_equal(err, truth.high >= truth.low ? ERR_OK : ERR_NO_DATA);
    if (!err) {
        assert_near(low, truth.low, 0);
        assert_near(high, truth.high, 0);
    }
}

static void check_windows(const struct history *h, int count)
{
    nanos first = h->copy[0].t, last = h->copy[h->count - 1].t, span = last - first + 10 * MS;
    for (int i = 0; i < count; i++) {
        nanos from = first - 5 * MS + (nanos)uniform(0, (double)span);
        nanos length = (nanos)uniform(1, i % 2 ? 2e7 : (double)span);
        if (i % 5 == 0) /* exactly on a point */
            from = h->copy[(size_t)uniform(0, (double)h->count - 1)].t;
        nanos to = from + length;
        if (i % 7 == 0)
            to = h->copy[(size_t)uniform(0, (double)h->count - 1)].t;
        if (to > from)
            check_window(h, from, to);
    }
    check_window(h, first - NS_PER_S, last + NS_PER_S);
    check_window(h, first - NS_PER_S, first - 1);
    check_window(h, first - NS_PER_S, first);
    check_window(h, last, last + NS_PER_S);
    check_window(h, last + 1, last + NS_PER_S);
    if (last > first)
        check_window(h, first, last);
}

/* ---- windows ---- */

static void windows_match_brute_force(void **state)
{
    (void)state;
    static const size_t SIZES[] = {1, 2, 3, 7, 64, 65, 1000};
    for (enum timeline_shape shape = SHAPE_MEANS; shape <= SHAPE_POINTS; shape++)
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
            for (unsigned gap_every = 0; gap_every <= 5; gap_every += 5) {
                struct history h;
                make_history(&h, shape, SIZES[i], gap_every);
                check_windows(&h, 300);
                free_history(&h);
            }
}

static void spilled_windows_match_brute_force(void **state)
{
    (void)state;
    for (enum timeline_shape shape = SHAPE_MEANS; shape <= SHAPE_POINTS; shape++) {
        struct history h;
        make_history(&h, shape, 5 * TIMELINE_BLOCK + 77, 50);
        assert_int_equal(timeline_count(&h.timeline), h.count);
        assert_true(h.timeline.block_count >= 3);
        check_windows(&h, 300);
        /* Edges around the borders of blocks. */
        for (size_t block = 1; block <= 4; block++)
            for (int i = -3; i <= 3; i++) {
                size_t at = block * TIMELINE_BLOCK + (size_t)(i + 3) - 3;
                check_window(&h, h.copy[at].t, h.copy[at + 1].t);
                check_window(&h, h.copy[at].t - 1, h.copy[at].t);
                check_window(&h, h.copy[at].t + 1, h.copy[at].t + 900 * MS);
            }
        struct timeline_point *all = malloc(h.count * sizeof *all);
        assert_int_equal(timeline_read(&h.timeline, 0, h.count, all), ERR_OK);
        assert_memory_equal(all, h.copy, h.count * sizeof *all);
        assert_int_equal(timeline_read(&h.timeline, 1, h.count, all), ERR_NO_DATA);
        free(all);
        free_history(&h);
    }
}

static void two_timelines_share_one_file(void **state)
{
    (void)state;
    struct spill spill;
    spill_init(&spill);
    struct timeline lines[2];
    for (int i = 0; i < 2; i++)
        timeline_init(&lines[i], &spill, SHAPE_MEANS);
    for (int n = 0; n < 4 * TIMELINE_BLOCK; n++)
        for (int i = 0; i < 2; i++) {
            struct timeline_point p = {
                .t = 1 + n * MS, .covered = n * MS, .sum = n * (i + 1), .value = 1};
            assert_int_equal(timeline_append(&lines[i], &p), ERR_OK);
        }
    for (int i = 0; i < 2; i++) {
        struct window w;
        assert_int_equal(window_read(&lines[i], 1 + 100 * MS, 1 + 600 * MS, &w), ERR_OK);
        assert_near(w.sum, 500.0 * (i + 1), 1e-9);
        timeline_release(&lines[i]);
    }
    spill_release(&spill);
}

/* For a long-running process: the last seconds are exact, and neither memory nor disk grows. */
static void without_spilling_the_newest_points_are_kept(void **state)
{
    (void)state;
    struct spill spill;
    struct timeline line;
    struct window w;
    int points = 50 * TIMELINE_BLOCK;
    spill_init(&spill);
    spill.keeps_nothing = true;
    timeline_init(&line, &spill, SHAPE_MEANS);
    for (int n = 0; n < points; n++) {
        struct timeline_point p = {.t = 1 + n * MS, .covered = n * MS, .sum = 3.0 * n, .value = 3};
        assert_int_equal(timeline_append(&line, &p), ERR_OK);
    }
    assert_true(timeline_count(&line) >= TIMELINE_RECENT);
    assert_true(line.tail_capacity <= 2 * TIMELINE_RECENT);
    assert_int_equal(line.block_count, 0);
    assert_int_equal(spill.fd, -1);
    assert_int_equal(line.thinned, 0);
    assert_int_equal(
        window_read(&line, 1 + (points - 400) * MS, 1 + (points - 101) * MS - MS / 2, &w), ERR_OK);
    assert_near(w.sum, 3.0 * 298.5, 1e-6);
    timeline_release(&line);
    spill_release(&spill);
}

static void an_empty_timeline_has_no_data(void **state)
{
    (void)state;
    struct spill spill;
    struct timeline line;
    struct window w;
    double low, high;
    spill_init(&spill);
    timeline_init(&line, &spill, SHAPE_MEANS);
    assert_null(timeline_last(&line));
    assert_int_equal(window_read(&line, 0, 100, &w), ERR_NO_DATA);
    assert_false(is_known(w.sum));
    assert_int_equal(window_extremes(&line, 0, 100, &low, &high), ERR_NO_DATA);
    assert_false(is_known(low));
    struct timeline_point p = {.t = 50, .value = UNKNOWN};
    assert_int_equal(timeline_append(&line, &p), ERR_OK);
    assert_int_equal(window_read(&line, 0, 100, &w), ERR_NO_DATA);
    assert_int_equal(w.updates, 1);
    assert_int_equal(window_extremes(&line, 0, 100, &low, &high), ERR_NO_DATA);
    assert_int_equal(window_read(&line, 100, 100, &w), ERR_NO_DATA);
    assert_int_equal(window_read(&line, 100, 0, &w), ERR_NO_DATA);
    timeline_release(&line);
}

static void points_must_be_in_order_of_time(void **state)
{
    (void)state;
    struct history h;
    make_history(&h, SHAPE_MEANS, 10, 0);
    struct timeline_point p = h.copy[9];
    assert_int_equal(timeline_append(&h.timeline, &p), ERR_BAD_VALUE);
    p.t--;
    assert_int_equal(timeline_append(&h.timeline, &p), ERR_BAD_VALUE);
    assert_int_equal(timeline_count(&h.timeline), 10);
    free_history(&h);
}

/* ---- without disk space ---- */

static void without_scratch_space_total_energy_is_kept(void **state)
{
    (void)state;
    setenv("TMPDIR", "/nonexistent/ipw", 1);
    for (enum timeline_shape shape = SHAPE_MEANS; shape <= SHAPE_POINTS; shape++) {
        struct history h;
        make_history(&h, shape, 20 * TIMELINE_BLOCK, 40);
        assert_true(h.spill.failed);
        assert_true(h.spill.why.text[0] != '\0');
        assert_true(h.timeline.thinned >= 10);
        size_t count = timeline_count(&h.timeline);
        assert_true(count <= 2 * TIMELINE_BLOCK);
        struct timeline_point *kept = malloc(count * sizeof *kept);
        assert_int_equal(timeline_read(&h.timeline, 0, count, kept), ERR_OK);
        for (size_t i = 1; i < count; i++) {
            assert_true(kept[i].t > kept[i - 1].t);
            assert_true(kept[i].sum >= kept[i - 1].sum);
        }
        nanos first = h.copy[0].t, last = h.copy[h.count - 1].t;
        assert_int_equal(kept[0].t, first);
        assert_int_equal(kept[count - 1].t, last);
        struct truth truth = brute_force(&h, first, last);
        struct window w, part;
        assert_int_equal(window_read(&h.timeline, first, last, &w), ERR_OK);
        assert_near(w.sum, truth.sum, 1e-9 * truth.sum);
        assert_near(w.covered_s, truth.covered_s, 1e-6);
        /* Between kept points the sum is still continuous and monotone. */
        for (size_t i = 1; i < count; i += 37) {
            nanos dt = kept[i].t - kept[i - 1].t;
            double sum = 0;
            for (int n = 0; n < 4; n++) {
                enum err err = window_read(&h.timeline, kept[i - 1].t + dt * n / 4,
                                           kept[i - 1].t + dt * (n + 1) / 4, &part);
                assert_true(err == ERR_OK ? part.sum >= 0 : kept[i].covered == kept[i - 1].covered);
                sum += err == ERR_OK ? part.sum : 0;
            }
            assert_near(sum, kept[i].sum - kept[i - 1].sum, 1e-9 * kept[i].sum);
        }
        free(kept);
        free_history(&h);
    }
    unsetenv("TMPDIR");
}

/* ---- uncertainty ---- */

/* A counter that ticks every 100 ms at the given powers, 10 W at first. */
static double sigma_of(const double *watts, size_t count, nanos from, nanos to, double t_sigma)
{
    struct spill spill;
    struct timeline line;
    spill_init(&spill);
    timeline_init(&line, &spill, SHAPE_MEANS);
    struct timeline_point p = {.t = 1, .value = UNKNOWN, .t_sigma = t_sigma};
    for (size_t i = 0; i <= count; i++) {
        assert_int_equal(timeline_append(&line, &p), ERR_OK);
        if (i == count)
            break;
        p.t += 100 * MS;
        p.covered += 100 * MS;
        p.value = watts[i];
        p.sum += watts[i] * 0.1;
    }
    struct window w;
    assert_int_equal(window_read(&line, 1 + from, 1 + to, &w), ERR_OK);
    timeline_release(&line);
    return sqrt(w.variance);
}

static void uncertainty_follows_steps_edges_and_timing(void **state)
{
    (void)state;
    const double small[] = {10, 10, 20, 20, 10, 10}, large[] = {10, 10, 200, 200, 10, 10};
    const double flat[] = {10, 10, 10, 10, 10, 10};
    nanos middle = 250 * MS, tick = 200 * MS, end = 600 * MS;
    assert_near(sigma_of(large, 6, tick, end, 0), 0, 1e-12);
    assert_near(sigma_of(flat, 6, middle, end, 0), 0, 1e-12);
    assert_true(sigma_of(small, 6, middle, end, 0) > 0);
    assert_true(sigma_of(large, 6, middle, end, 0) > 5 * sigma_of(small, 6, middle, end, 0));
    assert_true(sigma_of(large, 6, middle, end, 0) > sigma_of(large, 6, tick + MS, end, 0));
    /* Two edges, each 10 W off by 1 ms. */
    assert_near(sigma_of(flat, 6, tick, 500 * MS, 1e-3), 0.01 * sqrt(2), 1e-9);
}

/* A square wave of power, and its integral since 0. */
struct wave {
    double low, high, period, duty, phase;
};

static double high_time(const struct wave *w, double cycles)
{
    double whole = floor(cycles);
    return whole * w->duty + fmin(cycles - whole, w->duty);
}

static double energy_until(const struct wave *w, double t)
{
    double on = high_time(w, (t + w->phase) / w->period) - high_time(w, w->phase / w->period);
    return w->low * t + (w->high - w->low) * w->period * on;
}

static double power_at(const struct wave *w, double t)
{
    double cycles = (t + w->phase) / w->period;
    return cycles - floor(cycles) < w->duty ? w->high : w->low;
}

static void fill_from_wave(struct timeline *line, const struct wave *wave, double step)
{
    const double t_sigma = 1e-3;
    struct timeline_point p = {.value = UNKNOWN, .t_sigma = t_sigma};
    double offset = uniform(0, step), before = 0;
    for (int i = 0; i < 60; i++) {
        double t = i * step + offset;
        nanos dated = from_seconds(t + uniform(-1.7, 1.7) * t_sigma) + NS_PER_S;
        if (line->shape == SHAPE_MEANS) {
            double sum = energy_until(wave, t);
            p.value = i ? (sum - p.sum) / seconds(dated - p.t) : UNKNOWN;
            p.sum = sum;
        } else {
            dated = from_seconds(t) + NS_PER_S;
            double value = power_at(wave, t), dt = seconds(dated - p.t);
            if (i > 0) {
                p.sum += (before + value) / 2 * dt;
                p.variance += (value - before) * (value - before) * dt * dt / 12;
            }
            p.value = before = value;
        }
        p.covered += i ? dated - p.t : 0;
        p.t = dated;
        assert_int_equal(timeline_append(line, &p), ERR_OK);
    }
}

/* How often the true value is within 1 and 3 claimed standard uncertainties. */
static void monte_carlo(enum timeline_shape shape, double shortest, double longest)
{
    enum { RUNS = 3000 };
    const double step = 0.1, rounding = 1e-5; /* J: windows are cut to nanoseconds */
    int within_1 = 0, within_3 = 0;
    for (int run = 0; run < RUNS; run++) {
        struct wave wave = {.low = uniform(50, 150), .duty = uniform(0.1, 0.9)};
        wave.high = wave.low + uniform(20, 500);
        wave.period = step * exp(uniform(log(shortest), log(longest)));
        wave.phase = uniform(0, wave.period);
        struct spill spill;
        struct timeline line;
        spill_init(&spill);
        timeline_init(&line, &spill, shape);
        fill_from_wave(&line, &wave, step);
        double from = uniform(0.5, 2.5), to = from + uniform(0.2, 2.5);
        struct window w;
        assert_int_equal(
            window_read(&line, from_seconds(from) + NS_PER_S, from_seconds(to) + NS_PER_S, &w),
            ERR_OK);
        double error = fabs(w.sum - (energy_until(&wave, to) - energy_until(&wave, from)));
        within_1 += error <= sqrt(w.variance) + rounding;
        within_3 += error <= 3 * sqrt(w.variance) + rounding;
        timeline_release(&line);
    }
    print_message("shape %d, wave %g..%g ticks: %.1f %% within 1 sigma, %.1f %% within 3\n", shape,
                  shortest, longest, 100.0 * within_1 / RUNS, 100.0 * within_3 / RUNS);
    assert_true(within_1 >= RUNS * 60 / 100);
    assert_true(within_3 >= RUNS * 90 / 100);
}

static void uncertainty_covers_the_true_error(void **state)
{
    (void)state;
    seed = 7;
    monte_carlo(SHAPE_MEANS, 4, 40);
    monte_carlo(SHAPE_MEANS, 0.7, 4);
    monte_carlo(SHAPE_MEANS, 0.1, 0.7);
    /* Readings that miss whole pulses are aliased, which is undetectable: slow waves only. */
    monte_carlo(SHAPE_POINTS, 4, 40);
}

int main(void)
{
    seed = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_match_brute_force),
        cmocka_unit_test(spilled_windows_match_brute_force),
        cmocka_unit_test(two_timelines_share_one_file),
        cmocka_unit_test(without_spilling_the_newest_points_are_kept),
        cmocka_unit_test(an_empty_timeline_has_no_data),
        cmocka_unit_test(points_must_be_in_order_of_time),
        cmocka_unit_test(without_scratch_space_total_energy_is_kept),
        cmocka_unit_test(uncertainty_follows_steps_edges_and_timing),
        cmocka_unit_test(uncertainty_covers_the_true_error),
    };
    return RUN_TESTS(tests);
}
