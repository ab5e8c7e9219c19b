/* A counter's window shaped by finer power samples. */
#include "support/unit.h"

#include <math.h>

#include "sampler/series.h"
#include "sampler/shaped.h"

#define TICK   (100 * NS_PER_MS)
#define SAMPLE (20 * NS_PER_MS)
#define LENGTH 40 /* ticks */

/* The load: 100 W, and 600 W in every second third of a second. */
static double joules_until(nanos t)
{
    nanos half = 333 * NS_PER_MS, inside = t % (2 * half);
    nanos high = t / (2 * half) * half + (inside > half ? inside - half : 0);
    return 100 * seconds(t) + 500 * seconds(high);
}

static double load_joules(nanos from, nanos to)
{
    return joules_until(to) - joules_until(from);
}

struct pair {
    struct spill spill;
    struct timeline counter, power;
};

/* gain: of a miscalibrated power sensor. */
static void build(struct pair *pair, double gain, int power_ends_at_tick)
{
    spill_init(&pair->spill);
    timeline_init(&pair->counter, &pair->spill, SHAPE_MEANS);
    timeline_init(&pair->power, &pair->spill, SHAPE_MEANS);
    double sum = 0;
    for (int i = 0; i <= LENGTH; i++) {
        nanos t = i * TICK;
        double added = i ? load_joules(t - TICK, t) : 0;
        sum += added;
        struct timeline_point p = {
            .t = t, .covered = t, .sum = sum, .value = i ? added / 0.1 : UNKNOWN};
        assert_int_equal(timeline_append(&pair->counter, &p), ERR_OK);
    }
    sum = 0;
    for (nanos t = 0; t <= power_ends_at_tick * TICK; t += SAMPLE) {
        double added = t ? gain * load_joules(t - SAMPLE, t) : 0;
        sum += added;
        struct timeline_point p = {
            .t = t, .covered = t, .sum = sum, .value = t ? added / 0.02 : UNKNOWN};
        assert_int_equal(timeline_append(&pair->power, &p), ERR_OK);
    }
}

static void release(struct pair *pair)
{
    timeline_release(&pair->counter);
    timeline_release(&pair->power);
    spill_release(&pair->spill);
}

/* A fixed seed: failures are reproducible. */
static uint64_t seed;

static nanos random_time(nanos from, nanos to)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return from + (nanos)((double)(seed >> 11) * 0x1p-53 * (double)(to - from));
}

static void windows_are_within_their_uncertainty_of_the_truth(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 0.97, LENGTH);
    seed = 7;
    double straight_error = 0, shaped_error = 0;
    int within = 0, rounds = 400;
    for (int i = 0; i < rounds; i++) {
        nanos from = random_time(0, 3 * NS_PER_S);
        nanos to = random_time(from + 30 * NS_PER_MS, from + 900 * NS_PER_MS);
        struct window straight, shaped;
        double truth = load_joules(from, to);
        assert_int_equal(window_read(&pair.counter, from, to, &straight), ERR_OK);
        assert_int_equal(shaped_window(&pair.counter, &pair.power, from, to, &shaped), ERR_OK);
        straight_error += fabs(straight.sum - truth);
        shaped_error += fabs(shaped.sum - truth);
        within += fabs(shaped.sum - truth) <= 3 * sqrt(shaped.variance) + 1e-9;
        assert_near(shaped.coverage, 1, 1e-12);
    }
    if (shaped_error > straight_error / 3)
        print_error("shaped %g J, straight %g J\n", shaped_error, straight_error);
    assert_true(shaped_error < straight_error / 3);
    if (within < rounds * 9 / 10)
        print_error("%d of %d within three standard uncertainties\n", within, rounds);
    assert_true(within >= rounds * 9 / 10);
    release(&pair);
}

/* The counter determines the energy: at any gain of the samples, adjacent windows add up to it. */
static void adjacent_windows_add_up_to_the_counter(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1.3, LENGTH);
    seed = 11;
    nanos t = 0;
    double sum = 0;
    struct window part, whole;
    while (t < LENGTH * TICK) {
        nanos to = t + random_time(NS_PER_MS, 250 * NS_PER_MS);
        if (to > LENGTH * TICK)
            to = LENGTH * TICK;
        assert_int_equal(shaped_window(&pair.counter, &pair.power, t, to, &part), ERR_OK);
        assert_true(part.variance >= 0);
        sum += part.sum;
        t = to;
    }
    assert_int_equal(window_read(&pair.counter, 0, LENGTH * TICK, &whole), ERR_OK);
    assert_near(sum, whole.sum, 1e-9 * whole.sum);
    release(&pair);
}

static void edges_without_samples_are_linear(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1, 20);
    struct window straight, shaped;
    nanos from = 2550 * NS_PER_MS, to = 3170 * NS_PER_MS;
    assert_int_equal(window_read(&pair.counter, from, to, &straight), ERR_OK);
    assert_int_equal(shaped_window(&pair.counter, &pair.power, from, to, &shaped), ERR_OK);
    assert_near(shaped.sum, straight.sum, 1e-12);
    assert_near(shaped.variance, straight.variance, 1e-12);
    release(&pair);
}

static void a_window_inside_one_tick_gets_its_share(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1, LENGTH);
    struct window shaped;
    /* 333 ms falls inside the fourth tick: 100 W before it, 600 W after. */
    assert_int_equal(
        shaped_window(&pair.counter, &pair.power, 340 * NS_PER_MS, 380 * NS_PER_MS, &shaped),
        ERR_OK);
    assert_near(shaped.sum, 600 * 0.04, 0.5);
    assert_true(sqrt(shaped.variance) < 5);
    assert_int_equal(
        shaped_window(&pair.counter, &pair.power, 301 * NS_PER_MS, 319 * NS_PER_MS, &shaped),
        ERR_OK);
    assert_near(shaped.sum, 100 * 0.018, 0.5);
    release(&pair);
}

/* One cursor over the whole history, in strides that sometimes skip intervals, and backwards. */
static void windows_are_differences_of_running_sums(void **state)
{
    (void)state;
    static const nanos STRIDES[] = {NS_PER_MS, 7 * NS_PER_MS, 131 * NS_PER_MS, -60 * NS_PER_MS};
    struct pair pair;
    build(&pair, 0.9, LENGTH / 2);
    struct shaped_cursor cursor = {0};
    double last_sum, sum;
    nanos last_covered, covered, t = 5 * NS_PER_MS;
    assert_int_equal(
        shaped_running(&pair.counter, &pair.power, &cursor, t, &last_sum, &last_covered), ERR_OK);
    for (int i = 0; t < LENGTH * TICK + 2 * TICK; i++) {
        nanos stride = STRIDES[i % 4];
        struct window window;
        t += stride;
        assert_int_equal(shaped_running(&pair.counter, &pair.power, &cursor, t, &sum, &covered),
                         ERR_OK);
        if (stride > 0) {
            enum err err = shaped_window(&pair.counter, &pair.power, t - stride, t, &window);
            if (err)
                assert_int_equal(covered, last_covered);
            else
                assert_near(sum - last_sum, window.sum, 1e-9);
            assert_near(seconds(covered - last_covered), window.covered_s, 1e-9);
        }
        last_sum = sum;
        last_covered = covered;
    }
    release(&pair);
}

static void running_sum_of_an_empty_timeline_is_no_data(void **state)
{
    (void)state;
    struct spill spill;
    struct timeline empty;
    struct running_cursor cursor = {0};
    double sum;
    nanos covered;
    spill_init(&spill);
    timeline_init(&empty, &spill, SHAPE_POINTS);
    assert_int_equal(window_running(&empty, &cursor, 1, &sum, &covered), ERR_NO_DATA);
    timeline_release(&empty);
    spill_release(&spill);
}

/* ---- coverage of the ±: a card under square waves ---- */

struct wave {
    double low, high, period, duty, phase;
};

static double wave_joules_until(const struct wave *wave, double t)
{
    double at = t + wave->phase, periods = floor(at / wave->period);
    double inside = fmin(at - periods * wave->period, wave->duty * wave->period);
    double high_s = periods * wave->duty * wave->period + inside;
    return wave->low * at + (wave->high - wave->low) * high_s;
}

static double wave_joules(const struct wave *wave, double from, double to)
{
    return wave_joules_until(wave, to) - wave_joules_until(wave, from);
}

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

static double gaussian(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * 3.14159265358979 * uniform());
}

struct card {
    struct spill spill;
    struct series counter, samples;
};

static void take_sample(struct series *series, struct channel_sample sample)
{
    sample.kind = SAMPLE_GOOD;
    assert_int_equal(series_take(series, &sample), ERR_OK);
}

/* A counter that ticks every 100 ms, read at every `stride`-th tick and dated to 0.3 ms. */
static void count_ticks(struct card *card, const struct wave *wave, int stride)
{
    double first = 0.1 * uniform(), sigma = 0.3e-3;
    for (int i = 0; i < 60; i += stride) {
        double t = first + 0.1 * (i + 1);
        take_sample(&card->counter,
                    (struct channel_sample){.t = from_seconds(t + sigma * gaussian()),
                                            .count = (uint64_t)(1e3 * wave_joules_until(wave, t)),
                                            .sigma_us = (uint32_t)(1e6 * sigma)});
    }
}

/* The same counter, read now and then by a program that does not know its period: a new value may be as old as the
 * read before. */
static void count_reads(struct card *card, const struct wave *wave)
{
    double first = 0.1 * uniform(), before = 0.2;
    while (before < 6.1) {
        double t = before + 0.12 + uniform();
        double tick = first + 0.1 * floor((t - first) / 0.1);
        take_sample(&card->counter, (struct channel_sample){
                                        .t = from_seconds((before + t) / 2),
                                        .count = (uint64_t)(1e3 * wave_joules_until(wave, tick)),
                                        .sigma_us = (uint32_t)(1e6 * (t - before) / sqrt(12))});
        before = t;
    }
}

/* Six seconds of it, and samples that are means of the 20 ms before them; a stride of 0: rare reads. */
static void measure(struct card *card, const struct wave *wave, int stride)
{
    static const struct sensor_channel COUNTER = {.quantity = QTY_ENERGY, .joules_per_count = 1e-3};
    static const struct sensor_channel SAMPLES = {
        .quantity = QTY_POWER, .secondary = true, .watts_max = 2000, .interval_mean = true};
    double first_sample = 0.02 * uniform();
    spill_init(&card->spill);
    series_init(&card->counter, &COUNTER, &card->spill, 3 * NS_PER_S);
    series_init(&card->samples, &SAMPLES, &card->spill, NS_PER_S / 2);
    if (stride)
        count_ticks(card, wave, stride);
    else
        count_reads(card, wave);
    for (int i = 1; i < 310; i++) {
        double t = first_sample + 0.02 * i;
        take_sample(&card->samples,
                    (struct channel_sample){.t = from_seconds(t),
                                            .value = wave_joules(wave, t - 0.02, t) / 0.02});
    }
}

struct coverage {
    int windows, within_1, within_2;
    double errors, variances;
};

static struct coverage count_covered(struct wave wave, double length, int stride)
{
    struct coverage out = {0};
    for (int run = 0; run < 40; run++) {
        struct card card;
        wave.phase = uniform() * wave.period;
        measure(&card, &wave, stride);
        for (int i = 0; i < 25; i++) {
            double from = (stride ? 0.3 : 1.4) + (stride ? 4.4 : 3) * uniform();
            struct window window;
            assert_int_equal(shaped_window(&card.counter.timeline, &card.samples.timeline,
                                           from_seconds(from), from_seconds(from + length),
                                           &window),
                             ERR_OK);
            double error = fabs(window.sum - wave_joules(&wave, from, from + length));
            out.windows++;
            out.within_1 += error <= sqrt(window.variance);
            out.within_2 += error <= 2 * sqrt(window.variance);
            out.errors += error * error;
            out.variances += window.variance;
        }
        series_release(&card.counter);
        series_release(&card.samples);
        spill_release(&card.spill);
    }
    return out;
}

/* Periods from just above the resolution of the samples to one that every sensor resolves; lengths
 * that are multiples of the period, and not. */
static void the_uncertainty_covers_square_waves(void **state)
{
    (void)state;
    static const double PERIODS[] = {0.030, 0.037, 0.050, 0.077, 0.1, 0.13, 0.2, 0.3, 1};
    static const double LENGTHS[] = {0.05, 0.1, 0.13, 0.25};
    const size_t step = test_is_instrumented() ? 4 : 1; /* the first, the middle and the last */
    double errors = 0, variances = 0;
    seed = 5;
    for (size_t p = 0; p < sizeof PERIODS / sizeof *PERIODS; p += step)
        for (size_t l = 0; l < sizeof LENGTHS / sizeof *LENGTHS; l++)
            for (int stride = 1; stride <= 10; stride += 9)
                for (int tenths = 3; tenths <= 5; tenths += 2) {
                    double duty = tenths / 10.0;
                    struct wave wave = {100, 500, PERIODS[p], duty, 0};
                    struct coverage got = count_covered(wave, LENGTHS[l], stride);
                    if (got.within_1 < 0.6 * got.windows || got.within_2 < 0.9 * got.windows)
                        print_error("%g ms, duty %g, %g s, stride %d: %d and %d of %d\n",
                                    1e3 * PERIODS[p], duty, LENGTHS[l], stride, got.within_1,
                                    got.within_2, got.windows);
                    assert_true(got.within_1 >= 0.6 * got.windows);
                    assert_true(got.within_2 >= 0.9 * got.windows);
                    errors += got.errors;
                    variances += got.variances;
                }
    assert_true(sqrt(variances) < 3 * sqrt(errors)); /* and it is not vacuous */
}

static void the_uncertainty_at_constant_power_is_that_of_the_ticks(void **state)
{
    (void)state;
    seed = 6;
    for (int stride = 1; stride <= 10; stride += 9) {
        struct coverage got = count_covered((struct wave){300, 300, 1, 0.5, 0}, 0.1, stride);
        double sigma = sqrt(got.variances / got.windows), error = sqrt(got.errors / got.windows);
        assert_true(got.within_1 >= 0.6 * got.windows && got.within_2 >= 0.9 * got.windows);
        assert_true(sigma < 300 * 2 * 0.3e-3); /* two ticks of 0.3 ms each, and no more */
        assert_true(error < sigma);
    }
}

static void the_uncertainty_covers_ticks_of_unknown_period(void **state)
{
    (void)state;
    seed = 8;
    for (int step = 0; step <= 4; step++) {
        double high = 100 + 100 * step;
        struct coverage got = count_covered((struct wave){100, high, 0.3, 0.5, 0}, 0.1, 0);
        assert_true(got.within_1 >= 0.68 * got.windows && got.within_2 >= 0.95 * got.windows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_within_their_uncertainty_of_the_truth),
        cmocka_unit_test(adjacent_windows_add_up_to_the_counter),
        cmocka_unit_test(edges_without_samples_are_linear),
        cmocka_unit_test(a_window_inside_one_tick_gets_its_share),
        cmocka_unit_test(windows_are_differences_of_running_sums),
        cmocka_unit_test(running_sum_of_an_empty_timeline_is_no_data),
        cmocka_unit_test(the_uncertainty_covers_square_waves),
        cmocka_unit_test(the_uncertainty_at_constant_power_is_that_of_the_ticks),
        cmocka_unit_test(the_uncertainty_covers_ticks_of_unknown_period),
    };
    return RUN_TESTS(tests);
}
