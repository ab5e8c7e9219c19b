/* The energy part of a record, from the share of a request, and its grade. */
#include "support/unit.h"

#include "port/json_read.h"

#include "core/text.h"
#include "core/units.h"
#include "rundir/record.h"
#include "runner/profile/records.h"
#include "runner/profile/state.h"
#include "sensors/sensor.h"

#define NO_STATS {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN}

enum { DEVICES_MAX = 4 };

/* One device of a case: its kind, and the joules of the request and of its window. */
struct part {
    enum sensor_kind kind;
    bool counted;
    double joules, window;
};

struct scene {
    struct sensor sensors[DEVICES_MAX];
    struct ledger_device devices[DEVICES_MAX];
    struct device_share shares[DEVICES_MAX];
    struct share share;
};

static void set_parts(struct scene *scene, const struct part *parts, size_t count)
{
    *scene = (struct scene){0};
    for (size_t i = 0; i < count; i++) {
        scene->sensors[i].kind = parts[i].kind;
        scene->devices[i] = (struct ledger_device){.sensor = &scene->sensors[i],
                                                   .has_energy = parts[i].kind != SENSOR_HOST,
                                                   .counted = parts[i].counted};
        scene->shares[i].device = &scene->devices[i];
        scene->shares[i].counted = parts[i].counted;
        scene->shares[i].energy.joules = parts[i].joules;
        scene->shares[i].window_joules = parts[i].window;
        scene->shares[i].watts = (struct value_stats)NO_STATS;
        for (unsigned q = 0; q < QTY_COUNT; q++)
            scene->shares[i].gauges[q] = (struct value_stats)NO_STATS;
    }
    scene->share.devices = scene->shares;
    scene->share.count = count;
}

/* The energy line of a request of 2 s, read back. It points into a tree that lasts until the next call. */
static struct record energy_of(const struct scene *scene)
{
    static struct jv *tree;
    const struct profile_options options = {.model = "m"};
    struct profile profile = {.options = &options, .setup.facts = efficiency_inputs_unknown()};
    struct pending pending = {
        .key = "q000000", .last = true, .seconds = 2, .prefill_s = UNKNOWN, .decode_s = UNKNOWN};
    struct record record;
    struct text line = {0};
    records_energy(&profile, &pending, &scene->share, &line);
    jv_free(tree);
    assert_int_equal(jv_parse(text_get(&line), line.length, &tree, NULL), ERR_OK);
    record_from_json(tree, "m", &record);
    text_release(&line);
    return record;
}

/* UNKNOWN equals UNKNOWN here. */
static void assert_same(double value, double expected)
{
    if (is_known(expected))
        assert_near(value, expected, 1e-12);
    else
        assert_false(is_known(value));
}

static void joules_are_summed_by_kind(void **state)
{
    (void)state;
    static const struct {
        struct part parts[DEVICES_MAX];
        size_t count;
        double gpu, cpu, soc, window;
        const char *basis;
    } CASES[] = {
        {{{0}}, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, NULL},
        {{{SENSOR_HOST, false, UNKNOWN, UNKNOWN}}, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, NULL},
        {{{SENSOR_GPU, true, 3, 5}, {SENSOR_GPU, true, 4, 6}}, 2, 7, UNKNOWN, UNKNOWN, 11, "gpu"},
        {{{SENSOR_GPU, true, 3, 5}, {SENSOR_CPU, true, 1, 2}}, 2, 3, 1, UNKNOWN, 7, "gpu"},
        /* Cores inside a package: the same joules, counted once. */
        {{{SENSOR_CPU, true, 4, 8}, {SENSOR_CPU, false, 3, 6}}, 2, UNKNOWN, 4, UNKNOWN, 8, "cpu"},
        /* A board's only meter includes its GPU, which is still reported. */
        {{{SENSOR_BOARD, true, 9, 10}, {SENSOR_GPU, false, 5, 6}}, 2, 5, UNKNOWN, 9, 10, "gpu"},
        {{{SENSOR_BOARD, true, 9, 10}}, 1, UNKNOWN, UNKNOWN, 9, 10, "soc"},
        /* A device without a measurement makes neither the others unknown, nor itself 0. */
        {{{SENSOR_GPU, true, UNKNOWN, UNKNOWN}, {SENSOR_GPU, true, 4, 6}},
         2,
         4,
         UNKNOWN,
         UNKNOWN,
         6,
         "gpu"},
        {{{SENSOR_GPU, true, UNKNOWN, UNKNOWN}, {SENSOR_CPU, true, 2, 3}},
         2,
         UNKNOWN,
         2,
         UNKNOWN,
         3,
         "cpu"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct scene scene;
        set_parts(&scene, CASES[i].parts, CASES[i].count);
        struct record record = energy_of(&scene);
        assert_same(record.gpu_joules, CASES[i].gpu);
        assert_same(record.cpu_joules, CASES[i].cpu);
        assert_same(record.soc_joules, CASES[i].soc);
        assert_same(record.window_joules, CASES[i].window);
        if (CASES[i].basis)
            assert_string_equal(record.energy_basis, CASES[i].basis);
        else
            assert_null(record.energy_basis);
    }
}

static void mean_powers_add_up_but_extremes_do_not(void **state)
{
    (void)state;
    const struct part parts[] = {{SENSOR_GPU, true, 1, 1}, {SENSOR_GPU, true, 1, 1}};
    struct scene scene;
    set_parts(&scene, parts, 1);
    scene.shares[0].watts = (struct value_stats){300, 400, 310, 100};
    struct record record = energy_of(&scene);
    assert_same(record.gpu_window_watts.max, 400);
    assert_same(record.gpu_window_watts.median, 310);
    assert_same(record.gpu_watts.avg, 0.5); /* its joules over its time */
    assert_same(record.gpu_watts.max, 400); /* it had the device to itself */
    scene.shares[0].window_joules = 2;
    record = energy_of(&scene);
    assert_same(record.gpu_watts.avg, 0.5);
    assert_same(record.gpu_watts.max, UNKNOWN);
    set_parts(&scene, parts, 2);
    scene.shares[0].watts = (struct value_stats){300, 400, 310, 100};
    scene.shares[1].watts = (struct value_stats){200, 250, 210, 50};
    record = energy_of(&scene);
    assert_same(record.gpu_window_watts.avg, 500);
    assert_same(record.gpu_window_watts.max, UNKNOWN);
    assert_same(record.gpu_window_watts.median, UNKNOWN);
    assert_same(record.gpu_window_watts.min, UNKNOWN);
}

static void gauges_of_several_gpus(void **state)
{
    (void)state;
    const struct part parts[] = {
        {SENSOR_GPU, true, 1, 1}, {SENSOR_GPU, true, 1, 1}, {SENSOR_HOST, false, UNKNOWN, UNKNOWN}};
    struct scene scene;
    set_parts(&scene, parts, 3);
    scene.shares[0].gauges[QTY_UTILIZATION].avg = 90;
    scene.shares[1].gauges[QTY_UTILIZATION].avg = 30;
    scene.shares[0].gauges[QTY_MEMORY_USED].avg = 1e9;
    scene.shares[1].gauges[QTY_MEMORY_USED].avg = 2e9;
    scene.shares[2].gauges[QTY_MEMORY_USED].avg = 5e9;
    scene.shares[0].gauges[QTY_TEMPERATURE] = (struct value_stats){60, 70, 61, 50};
    scene.shares[1].gauges[QTY_TEMPERATURE] = (struct value_stats){40, 45, 41, 35};
    struct record record = energy_of(&scene);
    assert_same(record.utilization_pct, 60);
    assert_same(record.memory_utilization_pct, UNKNOWN);
    assert_same(record.gpu_memory_used_gb, 3);
    assert_same(record.gpu_memory_mb.avg, 3e9 / (1 << 20));
    assert_same(record.host_memory_mb.avg, 5e9 / (1 << 20));
    assert_same(record.temperature_c.avg, 50);
    assert_same(record.temperature_c.max, UNKNOWN); /* unknown for two at different times */
}

/* One without a temperature does not remove the other's extremes. */
static void a_gpu_without_temperature_is_ignored(void **state)
{
    (void)state;
    const struct part parts[] = {{SENSOR_GPU, true, 1, 1}, {SENSOR_GPU, true, 1, 1}};
    struct scene scene;
    for (size_t with = 0; with < 2; with++) {
        set_parts(&scene, parts, 2);
        scene.shares[with].gauges[QTY_TEMPERATURE] = (struct value_stats){60, 70, 61, 50};
        struct record record = energy_of(&scene);
        assert_same(record.temperature_c.avg, 60);
        assert_same(record.temperature_c.max, 70);
        assert_same(record.temperature_c.min, 50);
    }
}

/* ---- grades ---- */

/* The grade line, read back: it points into a tree that lasts until the next call. */
static struct record grade_line(const struct graded_by *by, enum grade_verdict verdict,
                                struct evaluation *evaluation)
{
    static struct jv *tree;
    struct grade grade = {.verdict = verdict, .score = UNKNOWN, .attempts = by->judge ? 2 : 0};
    struct record record;
    struct text line = {0};
    str_copy(grade.reason, sizeof grade.reason, "two letters");
    records_grade("m", "q000000", by, &grade, &line);
    jv_free(tree);
    assert_int_equal(jv_parse(text_get(&line), line.length, &tree, NULL), ERR_OK);
    record_from_json(tree, "m", &record);
    record_evaluation(&record, evaluation);
    text_release(&line);
    return record;
}

static void a_grade_says_whether_the_answer_was_read(void **state)
{
    (void)state;
    static const struct {
        const char *judge;
        enum grade_verdict verdict;
        const char *status;
        int correct, simple; /* lm_correctness */
    } CASES[] = {
        {NULL, VERDICT_TRUE, "graded", 1, 1},    {NULL, VERDICT_FALSE, "graded", 0, 0},
        {NULL, VERDICT_UNREAD, "unread", -1, 0}, {NULL, VERDICT_NULL, "ungraded", -1, -1},
        {"j", VERDICT_TRUE, "graded", 1, 1},     {"j", VERDICT_FALSE, "graded", 0, 0},
        {"j", VERDICT_NULL, "unread", -1, 0}, /* a judge without a verdict replaces nothing */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct graded_by by = {"choice", CASES[i].judge};
        struct evaluation evaluation;
        struct record record = grade_line(&by, CASES[i].verdict, &evaluation);
        assert_string_equal(record.grading, CASES[i].status);
        assert_int_equal(record.correct, CASES[i].correct);
        assert_int_equal(record.lm_correctness, CASES[i].simple);
        assert_int_equal(grading_is_unread(record.grading),
                         CASES[i].status[1] == 'n' && CASES[i].status[2] == 'r');
        assert_string_equal(evaluation.grader, "choice");
        assert_string_equal(evaluation.reason, "two letters");
        if (CASES[i].judge)
            assert_contains(record.evaluation, "\"judge\":\"j\"");
        else
            assert_null(strstr(record.evaluation, "judge"));
    }
    assert_int_equal(grading_is_unread(NULL), -1);
    assert_int_equal(grading_is_unread(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_are_summed_by_kind),
        cmocka_unit_test(mean_powers_add_up_but_extremes_do_not),
        cmocka_unit_test(gauges_of_several_gpus),
        cmocka_unit_test(a_gpu_without_temperature_is_ignored),
        cmocka_unit_test(a_grade_says_whether_the_answer_was_read),
    };
    return RUN_TESTS(tests);
}
