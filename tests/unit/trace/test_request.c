/* How a request's tokens are distributed over time. */
#include "trace/request.h"

#include <math.h>
#include <stdlib.h>

#include "support/unit.h"

#define MS NS_PER_MS

static const nanos STEADY[] = {40 * MS, 50 * MS, 60 * MS, 70 * MS, 80 * MS};
static const nanos BURSTS[] = {40 * MS, 40 * MS, 60 * MS, 60 * MS, 60 * MS, 80 * MS};
static const nanos AT_ONCE[] = {40 * MS, 40 * MS, 40 * MS};
static const nanos ONE[] = {40 * MS};
static const nanos LATE[] = {50 * MS, 70 * MS, 130 * MS};
static const nanos AT_END[] = {100 * MS, 100 * MS};

struct row {
    const char *name;
    nanos first_token;
    double prompt, output;
    const nanos *arrivals;
    size_t count;
    nanos from, to;
    double prefill, decode;
};

#define PIECES(list) (list), sizeof(list) / sizeof *(list)
#define ALL          0, 100 * MS

/* Every request is from 0 to 100 ms. */
static const struct row ROWS[] = {
    {"all of it", 40 * MS, 80, 8, PIECES(STEADY), ALL, 80, 8},
    {"half the prefill", 40 * MS, 80, 8, PIECES(STEADY), 0, 20 * MS, 40, 0},
    {"from before it was sent", 40 * MS, 80, 8, PIECES(STEADY), -MS, 20 * MS, 40, 0},
    {"across the change", 40 * MS, 80, 8, PIECES(STEADY), 30 * MS, 50 * MS, 20, 2},
    {"between arrivals", 40 * MS, 80, 8, PIECES(STEADY), 52 * MS, 57 * MS, 0, 1},
    {"after the last piece", 40 * MS, 80, 8, PIECES(STEADY), 80 * MS, 100 * MS, 0, 0},
    {"no time", 40 * MS, 80, 8, PIECES(STEADY), 50 * MS, 50 * MS, 0, 0},
    {"another time", 40 * MS, 80, 8, PIECES(STEADY), 200 * MS, 300 * MS, 0, 0},
    {"bursts", 40 * MS, 80, 8, PIECES(BURSTS), ALL, 80, 8},
    {"in a burst", 40 * MS, 80, 8, PIECES(BURSTS), 40 * MS, 50 * MS, 0, 3},
    {"all at once: even", 40 * MS, 80, 6, PIECES(AT_ONCE), 70 * MS, 100 * MS, 0, 3},
    {"one piece: even", 40 * MS, 80, 6, PIECES(ONE), 40 * MS, 50 * MS, 0, 1},
    {"no piece: even", 40 * MS, 80, 6, NULL, 0, 40 * MS, 50 * MS, 0, 1},
    {"pieces past the end", 40 * MS, 80, 6, PIECES(LATE), ALL, 80, 6},
    {"pieces are counted", 40 * MS, 80, UNKNOWN, PIECES(STEADY), ALL, 80, 5},
    {"0 is no count", 40 * MS, 80, 0, PIECES(STEADY), ALL, 80, 5},
    {"nothing tells", 40 * MS, 80, UNKNOWN, NULL, 0, ALL, 80, UNKNOWN},
    {"nothing tells of a decode that is not there", 40 * MS, 80, UNKNOWN, NULL, 0, 0, 40 * MS, 80,
     0},
    {"prompt unknown", 40 * MS, UNKNOWN, 8, PIECES(STEADY), ALL, UNKNOWN, 8},
    {"prompt unknown, in the decode", 40 * MS, UNKNOWN, 8, PIECES(STEADY), 40 * MS, 80 * MS, 0, 8},
    {"no prompt", 40 * MS, 0, 8, PIECES(STEADY), ALL, 0, 8},
    {"no token came", 0, 80, UNKNOWN, NULL, 0, 0, 50 * MS, 40, 0},
    {"an answer in one piece at the end", 100 * MS, 80, 10, PIECES(AT_END), 0, 50 * MS, 40, 5},
    {"an answer of unknown time", 0, 80, 10, NULL, 0, 0, 50 * MS, 40, 5},
    {"first token after the end", 150 * MS, 80, 10, NULL, 0, 0, 50 * MS, 40, 5},
};

static void assert_same(const char *row, const char *what, double got, double wanted)
{
    if (isnan(got) == isnan(wanted) && !(fabs(got - wanted) > 1e-9))
        return;
    print_error("%s: %s is %g, expected %g\n", row, what, got, wanted);
    fail();
}

static struct request_trace trace_of(const struct row *row, nanos *room)
{
    for (size_t i = 0; i < row->count; i++)
        room[i] = row->arrivals[i];
    return (struct request_trace){.from = 0,
                                  .first_token = row->first_token,
                                  .to = 100 * MS,
                                  .prompt_tokens = row->prompt,
                                  .output_tokens = row->output,
                                  .arrivals = room,
                                  .arrival_count = row->count};
}

static void tokens_in_a_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct row *row = &ROWS[i];
        nanos room[8];
        struct request_trace trace = trace_of(row, room);
        assert_same(row->name, "prefill", request_prefill_tokens(&trace, row->from, row->to),
                    row->prefill);
        assert_same(row->name, "decode", request_decode_tokens(&trace, row->from, row->to),
                    row->decode);
    }
}

/* Adjacent windows of any size contain each token once, and never a negative number. */
static void adjacent_windows_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        nanos room[8];
        struct request_trace trace = trace_of(&ROWS[i], room);
        double prefill = 0, decode = 0;
        for (nanos t = -3 * MS; t < 120 * MS; t += 777777) {
            double p = request_prefill_tokens(&trace, t, t + 777777);
            double d = request_decode_tokens(&trace, t, t + 777777);
            assert_true(isnan(p) || p >= 0);
            assert_true(isnan(d) || d >= 0);
            prefill += p;
            decode += d;
        }
        assert_same(ROWS[i].name, "sum of prefill", prefill, ROWS[i].prompt);
        double output = ROWS[i].output > 0    ? ROWS[i].output
                        : ROWS[i].count       ? (double)ROWS[i].count
                        : ROWS[i].first_token ? UNKNOWN
                                              : 0;
        assert_same(ROWS[i].name, "sum of decode", decode, output);
    }
}

/* At any time, the rates are the slope of the tokens processed up to then, as long as they hold. */
static void rates_are_the_slope_of_the_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        nanos room[8];
        struct request_trace trace = trace_of(&ROWS[i], room);
        for (nanos at = trace.from; at < trace.to; at += 333333) {
            struct token_rates rates;
            nanos until = request_rates(&trace, at, &rates);
            assert_true(until > at && until <= trace.to);
            for (nanos to = at + 1; to <= until; to += (until - at) / 3 + 1) {
                double length = (double)(to - at);
                assert_same(ROWS[i].name, "prefill", rates.prefill * length,
                            request_prefill_tokens(&trace, at, to));
                assert_same(ROWS[i].name, "decode", rates.decode * length,
                            request_decode_tokens(&trace, at, to));
            }
        }
    }
}

static void phases_meet_at_the_first_token(void **state)
{
    (void)state;
    struct request_trace trace = {.from = 0, .first_token = 40 * MS, .to = 100 * MS};
    assert_int_equal(request_phase_change(&trace), 40 * MS);
    trace.first_token = 0;
    assert_int_equal(request_phase_change(&trace), 100 * MS);
}

static void release_frees_the_arrivals(void **state)
{
    (void)state;
    struct request_trace trace = {.arrivals = malloc(sizeof(nanos)), .arrival_count = 1};
    request_trace_release(&trace);
    assert_null(trace.arrivals);
    assert_int_equal(trace.arrival_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_in_a_window),
        cmocka_unit_test(adjacent_windows_add_up),
        cmocka_unit_test(rates_are_the_slope_of_the_tokens),
        cmocka_unit_test(phases_meet_at_the_first_token),
        cmocka_unit_test(release_frees_the_arrivals),
    };
    return RUN_TESTS(tests);
}
