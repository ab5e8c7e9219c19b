/* A history that was written as CSV and read back gives the same windows; what is cut or damaged costs
 * resolution, never the truth. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "runner/samples_csv.h"
#include "runner/samples_read.h"
#include "sampler/sampler.h"

#define MS   NS_PER_MS
#define ZERO NS_PER_S

enum { COUNTER, POWER, MEAN, GAUGE, CHANNELS };

static char path[] = "/tmp/ipw-test-samples-XXXXXX";

/* A label of a board's maker may hold anything. */
static const char SENSOR[] = "hwmon:a \"12V\", main";

static struct sampler *make_sampler(void)
{
    static const struct sensor_driver DRIVER = {.name = "history", .summary = ""};
    static const nanos LIMITS[CHANNELS] = {500 * MS, 500 * MS, 500 * MS, 500 * MS};
    struct sensor sensor = {.driver = &DRIVER, .kind = SENSOR_TEST, .channel_count = CHANNELS};
    struct error why;
    str_copy(sensor.id, sizeof sensor.id, SENSOR);
    sensor.channels[COUNTER] = (struct sensor_channel){
        .name = "energy", .device = "d", .quantity = QTY_ENERGY, .joules_per_count = 1e-3};
    sensor.channels[POWER] =
        (struct sensor_channel){.name = "power", .device = "d", .quantity = QTY_POWER};
    sensor.channels[MEAN] = (struct sensor_channel){
        .name = "mean", .device = "d", .quantity = QTY_POWER, .interval_mean = true};
    sensor.channels[GAUGE] =
        (struct sensor_channel){.name = "load", .device = "d", .quantity = QTY_UTILISATION};
    struct sampler *sampler = sampler_new(0);
    assert_non_null(sampler);
    assert_int_equal(sampler_add_past(sampler, &sensor, LIMITS, &why), ERR_OK);
    return sampler;
}

static void put(struct sampler *sampler, size_t channel, nanos t, double value, double added,
                bool covered, double variance)
{
    struct timeline_point last = {0}, point;
    bool follows = sampler_newest(sampler, 0, channel, &last);
    point = (struct timeline_point){
        .t = t,
        .value = value,
        .sum = last.sum + added,
        .covered = last.covered + (covered && follows ? t - last.t : 0),
        .variance = last.variance + variance,
        .t_sigma = channel == COUNTER ? 0.000125 : 0,
    };
    assert_int_equal(sampler_put_past(sampler, 0, channel, &point), ERR_OK);
}

/* Two seconds with a gap in the middle; times that are no round number of microseconds. */
static void fill(struct sampler *sampler)
{
    const double step_s = 0.010000123;
    for (int i = 0; i < 200; i++) {
        nanos t = ZERO - 500 * MS + i * (10 * MS + 123);
        bool gap = i == 100, first = i == 0;
        double watts = 50 + 10 * (i % 3), before = 50 + 10 * ((i + 2) % 3);
        double spread = (watts - before) * step_s;
        bool runs = !gap && !first;
        put(sampler, COUNTER, t, runs ? watts : UNKNOWN, runs ? watts * step_s : 0, runs, 0);
        put(sampler, POWER, t, watts, runs ? (watts + before) / 2 * step_s : 0, runs,
            runs ? spread * spread / 12 : 0);
        put(sampler, MEAN, t, runs ? watts : UNKNOWN, runs ? watts * step_s : 0, runs, 0);
        put(sampler, GAUGE, t, 0, 0, runs, 0); /* nothing, and yet it is known */
    }
}

static enum err add(const char *bytes, void *context)
{
    text_add(context, bytes);
    return ERR_OK;
}

static struct text written(void)
{
    struct text csv = {0};
    struct sampler *sampler = make_sampler();
    fill(sampler);
    assert_int_equal(samples_to_csv(sampler, ZERO, add, &csv), ERR_OK);
    sampler_free(sampler);
    return csv;
}

static struct sampler *read_back(const char *csv, size_t length, struct samples_found *found)
{
    struct error why;
    struct sampler *sampler = make_sampler();
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    assert_int_equal(fwrite(csv, 1, length, file), length);
    fclose(file);
    assert_int_equal(samples_read(path, sampler, 7 * NS_PER_S, found, &why), ERR_OK);
    return sampler;
}

static void windows_are_the_same(void **state)
{
    (void)state;
    struct text csv = written();
    struct samples_found found;
    struct sampler *before = make_sampler(), *after = read_back(csv.bytes, csv.length, &found);
    const nanos moved = 7 * NS_PER_S - ZERO;
    fill(before);
    assert_int_equal(found.rows, 200 * CHANNELS);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.last, ZERO - 500 * MS + 199 * (10 * MS + 123) + moved);
    for (size_t channel = 0; channel < CHANNELS; channel++)
        for (nanos from = 300 * MS; from < 3000 * MS; from += 77 * MS) {
            struct window a, b;
            nanos to = from + 130 * MS;
            enum err err = sampler_window(before, 0, channel, from, to, &a);
            assert_int_equal(sampler_window(after, 0, channel, from + moved, to + moved, &b), err);
            if (err)
                continue;
            assert_near(a.sum, b.sum, 1e-9);
            assert_near(a.coverage, b.coverage, 1e-12);
            assert_near(a.variance, b.variance, 1e-6 * a.variance + 1e-15);
            assert_int_equal(a.updates, b.updates);
        }
    struct channel_state there, here;
    sampler_channel(before, 0, COUNTER, &there);
    sampler_channel(after, 0, COUNTER, &here);
    assert_int_equal(here.updates, there.updates);
    assert_int_equal(here.gaps, 1);
    sampler_free(before);
    sampler_free(after);
    text_release(&csv);
}

static double joules_of_all(struct sampler *sampler)
{
    struct window window;
    assert_int_equal(sampler_window(sampler, 0, COUNTER, 0, 100 * NS_PER_S, &window), ERR_OK);
    return window.sum;
}

static void a_line_that_was_cut_is_left_out(void **state)
{
    (void)state;
    struct text csv = written();
    struct samples_found found;
    /* Wherever the kill cut it. */
    for (size_t cut = 1; cut < 60; cut++) {
        struct sampler *sampler = read_back(csv.bytes, csv.length - cut, &found);
        assert_int_equal(found.rows, 200 * CHANNELS - 1);
        assert_int_equal(found.damaged, 0);
        sampler_free(sampler);
    }
    text_release(&csv);
}

static void a_damaged_row_costs_no_joules(void **state)
{
    (void)state;
    static const char *const DAMAGE[] = {"\001", "\"", ",", "x"};
    struct text csv = written();
    struct samples_found found;
    struct sampler *whole = read_back(csv.bytes, csv.length, &found);
    double joules = joules_of_all(whole);
    for (size_t i = 0; i < sizeof DAMAGE / sizeof *DAMAGE; i++) {
        char *copy = strdup(csv.bytes), *row = copy;
        assert_non_null(copy);
        for (int line = 0; line < 50; line++)
            row = strchr(row, '\n') + 1;
        row[1] = DAMAGE[i][0];
        struct sampler *sampler = read_back(copy, csv.length, &found);
        assert_int_equal(found.damaged, 1);
        assert_near(joules_of_all(sampler), joules, 1e-9);
        sampler_free(sampler);
        free(copy);
    }
    sampler_free(whole);
    text_release(&csv);
}

static void what_is_no_such_file_is_refused(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",
        "t_s,sensor",
        "t_s,sensor,device,channel,scope,quantity,unit,value,sum\n",
        "hello\n",
    };
    struct sampler *sampler = make_sampler();
    struct samples_found found;
    struct error why;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        FILE *file = fopen(path, "w");
        if (!file)
            abort();
        fputs(TEXTS[i], file);
        fclose(file);
        assert_int_equal(samples_read(path, sampler, ZERO, &found, &why), ERR_BAD_VALUE);
        assert_non_null(strstr(why.text, "columns"));
    }
    assert_int_equal(samples_read("/nowhere/samples.csv", sampler, ZERO, &found, &why),
                     ERR_NOT_FOUND);
    assert_int_equal(found.last, INT64_MIN);
    sampler_free(sampler);
}

static void another_channel_is_not_taken_for_it(void **state)
{
    (void)state;
    static const char TEXT[] =
        SAMPLES_HEADER "0.1,\"hwmon:a \"\"12V\"\", main\",d,energy,none,energy,J,5,1,0,\n"
                       "0.2,\"hwmon:a \"\"12V\"\", main\",d,other,none,energy,J,5,2,1,\n"
                       "0.3,hwmon:b,d,energy,none,energy,J,5,3,1,\n"
                       "0.4,\"hwmon:a \"\"12V\"\", main\",d,energy,none,power,W,5,4,1,\n"
                       "0.05,\"hwmon:a \"\"12V\"\", main\",d,energy,none,energy,J,5,4,1,\n"
                       "nan,\"hwmon:a \"\"12V\"\", main\",d,energy,none,energy,J,5,4,1,\n"
                       "0.6,\"hwmon:a \"\"12V\"\", main\",d,energy,none,energy,J,,4,1,\n";
    struct samples_found found;
    struct sampler *sampler = read_back(TEXT, sizeof TEXT - 1, &found);
    assert_int_equal(found.rows, 2);
    assert_int_equal(found.damaged, 5);
    assert_near(joules_of_all(sampler), 3, 1e-12);
    sampler_free(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_the_same),
        cmocka_unit_test(a_line_that_was_cut_is_left_out),
        cmocka_unit_test(a_damaged_row_costs_no_joules),
        cmocka_unit_test(what_is_no_such_file_is_refused),
        cmocka_unit_test(another_channel_is_not_taken_for_it),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = RUN_TESTS(tests);
    unlink(path);
    return failed;
}
