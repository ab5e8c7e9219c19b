/* Spans come back as they were written, to the microsecond that pieces are kept with. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/context.h"
#include "runner/profile/span_read.h"

#define MS   NS_PER_MS
#define ZERO ((nanos)1 << 60)

static const struct profile_context CONTEXT = {.start = 3, .zero = 5 * NS_PER_S};

static struct span read_line(const char *line, bool expected)
{
    struct jv *value;
    struct span span;
    bool ours;
    assert_int_equal(jv_parse(line, strlen(line), &value, NULL), ERR_OK);
    assert_int_equal(span_from_json(value, ZERO, &span, &ours), ERR_OK);
    assert_int_equal(ours, expected);
    jv_free(value);
    return span;
}

static nanos moved(nanos t)
{
    return t - CONTEXT.zero + ZERO;
}

static void what_has_ended_comes_back(void **state)
{
    (void)state;
    static const enum span_kind KINDS[] = {SPAN_REQUEST, SPAN_FAILED_ATTEMPT, SPAN_JUDGE};
    nanos times[] = {5100 * MS + 777, 5100 * MS + 777, 5130 * MS + 1, 5161 * MS + 999};
    struct completion reply = {
        .sent = 5050 * MS + 123,
        .first_token = times[0],
        .last_token = times[3],
        .done = 5162 * MS + 55,
        .prompt_tokens = 17,
        .output_tokens = -1,
        .arrivals = {times, 4, 4},
    };
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        struct text line = {0};
        struct span_id id = {"q000012.r1", 2, NULL};
        record_span(&CONTEXT, KINDS[i], &id, &reply, &line);
        struct span span = read_line(text_get(&line), true);
        assert_int_equal(span.kind, KINDS[i]);
        assert_true(span_is_whole(&span));
        assert_int_equal(span_is_judges(&span), KINDS[i] == SPAN_JUDGE);
        assert_string_equal(span.key, "q000012.r1");
        assert_int_equal(span.start, 3);
        assert_int_equal(span.attempt, 2);
        assert_near((double)(span.trace.from - moved(reply.sent)), 0, 1);
        assert_near((double)(span.trace.first_token - moved(reply.first_token)), 0, 1);
        assert_near((double)(span.trace.to - moved(reply.done)), 0, 1);
        assert_near(span.trace.prompt_tokens, 17, 0);
        assert_false(is_known(span.trace.output_tokens));
        assert_int_equal(span.trace.arrival_count, 4);
        for (size_t k = 0; k < 4; k++)
            assert_near((double)(span.trace.arrivals[k] - moved(times[k])), 0, 1001);
        span_release(&span);
        text_release(&line);
    }
}

static void a_moment_comes_back(void **state)
{
    (void)state;
    struct text line = {0};
    struct judgement judgement = {.gpu_joules = 12.5,
                                  .cpu_joules = UNKNOWN,
                                  .earlier = {.joules = 3, .method = METHOD_COUNTER},
                                  .earlier_gpu_joules = 2,
                                  .earlier_cpu_joules = UNKNOWN};
    struct span_id id = {"q000000", 1, &judgement};
    record_moment(&CONTEXT, SPAN_JUDGE_SENT, &id, 5001 * MS, &line);
    struct span span = read_line(text_get(&line), true);
    assert_int_equal(span.kind, SPAN_JUDGE_SENT);
    assert_false(span_is_whole(&span));
    assert_true(span_is_judges(&span));
    assert_int_equal(span.trace.from, ZERO + 1 * MS);
    assert_near(span.judgement.gpu_joules, 12.5, 0);
    assert_false(is_known(span.judgement.cpu_joules));
    assert_near(span.judgement.earlier.joules, 3, 0);
    assert_int_equal(span.judgement.earlier.method, METHOD_COUNTER);
    assert_near(span.judgement.earlier_gpu_joules, 2, 0);
    assert_false(is_known(span.judgement.earlier_cpu_joules));
    span_release(&span);
    text_release(&line);
}

static void what_is_none_of_ours_is_told(void **state)
{
    (void)state;
    static const char *const LINES[] = {
        "{}",
        "[]",
        /* of a version that did not tell attempts */
        "{\"key\":\"q000000\",\"start\":1,\"span\":\"request\",\"from_s\":1,\"to_s\":2}",
        "{\"key\":\"q000000\",\"start\":1,\"attempt\":1,\"span\":\"request\",\"from_s\":1}",
        "{\"key\":\"q0\",\"start\":1,\"attempt\":1,\"span\":\"lunch\",\"from_s\":1,\"to_s\":2}",
        "{\"key\":\"q000000\",\"start\":0,\"attempt\":1,\"span\":\"sent\",\"from_s\":1}",
        "{\"key\":7,\"start\":1,\"attempt\":1,\"span\":\"sent\",\"from_s\":1}",
        "{\"key\":\"q000000\",\"start\":1,\"attempt\":1,\"span\":\"sent\",\"from_s\":\"1\"}",
    };
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        struct span span = read_line(LINES[i], false);
        span_release(&span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_ended_comes_back),
        cmocka_unit_test(a_moment_comes_back),
        cmocka_unit_test(what_is_none_of_ours_is_told),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
