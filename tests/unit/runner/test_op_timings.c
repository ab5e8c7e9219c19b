/* Rounds of timed operations, on a simulated machine with known durations and disturbances. */
#include "runner/op_timings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/timers.h"
#include "support/unit.h"

enum { CALLS_MAX = 4000 };

/* How the machine is disturbed; zeros: not at all. */
struct machine {
    double slower; /* in every measurement with more than one thread */
    double ran;    /* fraction of the time that threads have a CPU; 0: all */
    unsigned
        spike_every;  /* number of measurements of which one takes three to nine times as long */
    double growing;   /* relative increase of each measurement over the first */
    const char *only; /* "decode": `growing` only for single tokens of large matrices */
    double decode_factor; /* factor for single tokens in every measurement; 0: 1 */
    double budget_s;      /* of the calibration; 0: 10 ms */
    unsigned calls, of_decode;
};

static double true_seconds(const struct op_timer_shape *shape, unsigned threads)
{
    double elements = fmax(1, (double)shape->rows) * fmax(1, (double)shape->depth);
    if (shape->op == OP_TIMER_PRODUCT)
        elements *= (double)shape->columns;
    if (shape->op == OP_TIMER_ATTENTION)
        elements *= (double)shape->context;
    return 1e-6 + 1e-9 * elements / threads;
}

static bool is_decode(const struct op_timer_shape *shape)
{
    return shape->op == OP_TIMER_PRODUCT && shape->rows == 1 && shape->depth == 2048 &&
           shape->format == 1;
}

static enum err time_operation(void *context, unsigned threads, const struct op_timer_shape *shape,
                               double budget_s, struct op_time *out, struct error *why)
{
    struct machine *m = context;
    (void)budget_s, (void)why;
    double took = true_seconds(shape, threads);
    unsigned call = m->calls++;
    if (call > CALLS_MAX)
        return ERR_BAD_VALUE;
    if (threads > 1 && m->slower > 0)
        took *= m->slower;
    /* Out of phase with the rounds: otherwise the same operations would be disturbed in each. */
    if (m->spike_every && (call + call / 50) % m->spike_every == 0)
        took *= 3 + call % 7;
    if (is_decode(shape)) {
        m->of_decode++;
        took *= m->decode_factor > 0 ? m->decode_factor : 1;
    }
    if (!m->only || is_decode(shape))
        took *= 1 + m->growing * (m->only ? m->of_decode : call);
    *out = (struct op_time){took, m->ran > 0 ? m->ran : 1};
    return ERR_OK;
}

static enum err measure(struct machine *m, unsigned threads, struct timings *out, struct error *why)
{
    const struct timings_options options = {.threads = threads,
                                            .budget_s = m->budget_s > 0 ? m->budget_s : 1e-2,
                                            .clock = time_operation,
                                            .context = m,
                                            .skips_onnx = true};
    struct timings both[TIMINGS_RUNTIMES];
    enum err err = timings_measure(&options, both, why);
    *out = both[0];
    return err;
}

/* The shape of a row, as it was timed. */
static double expected(const struct hardware_timing *row, unsigned threads)
{
    const struct op_timer_shape shape = {.op = row->op == TIMING_PRODUCT     ? OP_TIMER_PRODUCT
                                               : row->op == TIMING_ATTENTION ? OP_TIMER_ATTENTION
                                                                             : OP_TIMER_ADD,
                                         .rows = (int64_t)row->rows,
                                         .depth = (int64_t)row->depth,
                                         .columns = (int64_t)row->columns,
                                         .context = (int64_t)row->context};
    return true_seconds(&shape, threads);
}

static void test_spikes_are_removed(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++)
        for (unsigned every = 2; every <= 7; every++) {
            struct machine m = {.spike_every = every};
            struct timings timings;
            struct error why = {0};
            assert_int_equal(measure(&m, threads, &timings, &why), ERR_OK);
            assert_true(timings.table.count > 200 && timings.table.threads == threads);
            for (size_t i = 0; i < timings.table.count; i++)
                assert_near(timings.items[i].seconds / expected(&timings.items[i], threads), 1,
                            1e-9);
            if (every >= 4) /* half of them are too many for two good rounds of each */
                assert_string_equal(timings.unsettled, "");
            timings_release(&timings);
        }
}

static void test_a_quiet_machine_is_timed_three_times(void **state)
{
    (void)state;
    struct machine m = {0};
    struct timings timings;
    struct error why = {0};
    assert_int_equal(measure(&m, 1, &timings, &why), ERR_OK);
    assert_int_equal(m.calls, 3 * timings.table.count);
    timings_release(&timings);
}

/* Twice, without the products that take most of the time. */
static void test_a_quick_calibration_is_short(void **state)
{
    (void)state;
    struct machine usual = {0}, quick = {.budget_s = 5e-4};
    struct timings timings;
    struct error why = {0};
    assert_int_equal(measure(&usual, 1, &timings, &why), ERR_OK);
    size_t count = timings.table.count;
    timings_release(&timings);
    assert_int_equal(measure(&quick, 1, &timings, &why), ERR_OK);
    assert_int_equal(timings.table.count,
                     count - 2 * 9); /* of 64 and 512 tokens, in nine formats */
    assert_int_equal(quick.calls, 2 * timings.table.count);
    timings_release(&timings);
}

static void assert_rejected(struct machine *m, unsigned threads, const char *reason)
{
    struct timings timings;
    struct error why = {0};
    assert_int_equal(measure(m, threads, &timings, &why), ERR_BUSY);
    assert_non_null(strstr(why.text, reason));
    assert_int_equal(timings.table.count, 0);
}

/* Five times as long in every round, so that the rounds agree. */
static void test_threads_that_do_not_run_concurrently_are_rejected(void **state)
{
    (void)state;
    struct machine m = {.slower = 10};
    assert_rejected(&m, 2, "2 threads take 5.0 times as long as one");
}

static void test_threads_without_a_cpu_are_rejected_early(void **state)
{
    (void)state;
    struct machine m = {.slower = 10, .ran = 0.5};
    assert_rejected(&m, 2, "a thread always waited for a CPU");
    assert_true(m.calls < 50);
}

static void test_rounds_that_never_agree_are_rejected(void **state)
{
    (void)state;
    struct machine m = {.growing = 1e-2};
    assert_rejected(&m, 1, "rounds differ by");
}

static void test_few_operations_that_disagree_are_reported(void **state)
{
    (void)state;
    struct machine m = {.growing = 5, .only = "decode"};
    struct timings timings;
    struct error why = {0};
    assert_int_equal(measure(&m, 1, &timings, &why), ERR_OK);
    assert_non_null(strstr(timings.unsettled, "F16, 1 tokens: rounds differ by"));
    timings_release(&timings);
}

/* A kernel may be slower for fewer tokens: it is timed again, and then accepted. */
static void test_a_repeatable_slowdown_is_kept(void **state)
{
    (void)state;
    struct machine m = {.decode_factor = 6};
    struct timings timings;
    struct error why = {0};
    assert_int_equal(measure(&m, 1, &timings, &why), ERR_OK);
    assert_true(m.of_decode > 3 * 3 && m.of_decode <= 3 * 9);
    for (size_t i = 0; i < timings.table.count; i++) {
        const struct hardware_timing *row = &timings.items[i];
        if (row->op == TIMING_PRODUCT && row->rows == 1 && row->depth == 2048 &&
            !strcmp(row->format, "F16"))
            assert_near(row->seconds / expected(row, 1), 6, 1e-9);
    }
    timings_release(&timings);
}

/* Its library is optional: a calibration goes on without it. */
static void test_a_missing_onnx_runtime_is_reported(void **state)
{
    (void)state;
    const struct timings_options options = {.threads = 1, .budget_s = 1e-3, .skips_llama = true};
    struct timings both[TIMINGS_RUNTIMES], *timings = &both[1];
    struct error why = {0};
    setenv("IPW_ONNXRUNTIME_LIB", "/nowhere/libonnxruntime.so", 1);
    assert_int_equal(timings_measure(&options, both, &why), ERR_OK);
    unsetenv("IPW_ONNXRUNTIME_LIB");
    assert_int_equal(timings->table.count, 0);
    assert_non_null(
        strstr(timings->missing,
               "IPW_ONNXRUNTIME_LIB /nowhere/libonnxruntime.so: no libonnxruntime there"));
    timings_release(timings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spikes_are_removed),
        cmocka_unit_test(test_a_quiet_machine_is_timed_three_times),
        cmocka_unit_test(test_a_quick_calibration_is_short),
        cmocka_unit_test(test_threads_that_do_not_run_concurrently_are_rejected),
        cmocka_unit_test(test_threads_without_a_cpu_are_rejected_early),
        cmocka_unit_test(test_rounds_that_never_agree_are_rejected),
        cmocka_unit_test(test_few_operations_that_disagree_are_reported),
        cmocka_unit_test(test_a_repeatable_slowdown_is_kept),
        cmocka_unit_test(test_a_missing_onnx_runtime_is_reported),
    };
    return RUN_TESTS(tests);
}
