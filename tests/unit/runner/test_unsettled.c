/* What a journal's last start left open. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/unsettled.h"

static char path[] = "/tmp/ipw-test-unsettled-XXXXXX";

#define RUN        "{\"kind\":\"run\",\"started_at\":100,\"measuring\":{\"from_s\":1}}\n"
#define QUERY(key) "{\"kind\":\"query\",\"key\":\"" key "\"}\n"
#define ENERGY(key)                                                                                \
    "{\"kind\":\"energy\",\"key\":\"" key "\",\"ipw\":{\"energy\":{\"joules\":2}}}\n"
#define TRY(key, number)                                                                           \
    "{\"kind\":\"energy\",\"key\":\"" key "\",\"ipw\":{\"failed_attempts\":{\"" number             \
    "\":{\"joules\":0.5}}}}\n"
#define GRADE(key) "{\"kind\":\"grade\",\"key\":\"" key "\"}\n"
#define JUDGE(key) "{\"kind\":\"energy\",\"key\":\"" key "\",\"ipw\":{\"judge_energy\":{}}}\n"
#define END        "{\"kind\":\"end\",\"start\":1}\n"

static void read_text(const char *text, unsigned repeats, struct unsettled *out)
{
    struct error why;
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    fputs(text, file);
    fclose(file);
    assert_int_equal(unsettled_read(path, repeats, out, &why), ERR_OK);
}

static void assert_open(const struct unsettled *left, const char *queries, const char *grades)
{
    char key[40];
    struct text found = {0};
    for (struct unsettled_walk walk = {0}; unsettled_next_query(left, &walk, key, sizeof key);)
        text_addf(&found, " %s", key);
    assert_string_equal(text_get(&found), queries);
    text_clear(&found);
    for (struct unsettled_walk walk = {0}; unsettled_next_grade(left, &walk, key, sizeof key);)
        text_addf(&found, " %s", key);
    assert_string_equal(text_get(&found), grades);
    text_release(&found);
}

static void queries_without_their_energy(void **state)
{
    (void)state;
    struct unsettled left;
    read_text(RUN QUERY("q000000") TRY("q000001", "1") QUERY("q000001.r1") QUERY("q000009")
                  ENERGY("q000000") ENERGY("q000001.r1") TRY("q000003", "1.2") "{\"kind\":\"que",
              2, &left);
    assert_int_equal(left.start, 1);
    assert_near(left.started_at, 100, 0);
    assert_near(jv_number(jv_get(left.measuring, "from_s")), 1, 0);
    assert_false(left.ended);
    assert_false(left.judging);
    assert_near(left.requests_joules, 5, 0);
    assert_true(unsettled_has_query(&left, "q000009"));
    assert_false(unsettled_has_query(&left, "q000001"));
    assert_false(unsettled_has_query(&left, "no key"));
    assert_true(unsettled_has_energy(&left, "q000001.r1"));
    assert_false(unsettled_has_energy(&left, "q000009"));
    assert_true(unsettled_has_attempt(&left, "q000001", 1, false));
    assert_false(unsettled_has_attempt(&left, "q000001", 2, false));
    assert_false(unsettled_has_attempt(&left, "q000001.r1", 1, false));
    assert_true(unsettled_has_attempt(&left, "q000003", 2, true));
    assert_false(unsettled_has_attempt(&left, "q000003", 2, false));
    assert_open(&left, " q000009", "");
    unsettled_release(&left);
}

static void only_the_last_start_counts(void **state)
{
    (void)state;
    struct unsettled left;
    read_text(RUN QUERY("q000000") QUERY("q000001") TRY("q000002", "1") RUN QUERY("q000002") END, 1,
              &left);
    assert_int_equal(left.start, 2);
    assert_true(left.ended);
    assert_false(is_known(left.requests_joules));
    assert_false(unsettled_has_attempt(&left, "q000002", 1, false));
    assert_open(&left, " q000002", "");
    unsettled_release(&left);
}

#define JUDGING "{\"kind\":\"judge\",\"start\":1,\"at_s\":7.5}\n"
#define JUDGED  "{\"kind\":\"judged\",\"start\":1,\"at_s\":9}\n"
/* q000001 was judged by an earlier start: what is known of that is not forgotten. */
#define TWO_STARTS                                                                                 \
    RUN QUERY("q000000") QUERY("q000001") JUDGE("q000001") RUN END JUDGING GRADE("q000000")        \
        GRADE("q000001") GRADE("q000002") JUDGE("q000002")

static void judgements(void **state)
{
    (void)state;
    struct unsettled left;
    read_text(TWO_STARTS, 1, &left);
    assert_true(left.judging);
    assert_near(left.judge_from_s, 7.5, 0);
    assert_true(unsettled_has_judge(&left, "q000002"));
    assert_false(unsettled_has_judge(&left, "q000001"));
    assert_open(&left, "", " q000000");
    unsettled_release(&left);
    read_text(TWO_STARTS JUDGED, 1, &left);
    assert_false(left.judging);
    unsettled_release(&left);
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    struct unsettled left;
    read_text("", 1, &left);
    assert_int_equal(left.start, 0);
    assert_null(left.measuring);
    assert_open(&left, "", "");
    unsettled_release(&left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_without_their_energy),
        cmocka_unit_test(only_the_last_start_counts),
        cmocka_unit_test(judgements),
        cmocka_unit_test(nothing_is_nothing),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = RUN_TESTS_WITH(jv_available, tests);
    unlink(path);
    return failed;
}
