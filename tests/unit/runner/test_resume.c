/* What a resumed run reads from its journal, and how energies that a kill left open are closed. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/profile.h"
#include "runner/profile/resume.h"
#include "rundir/journal.h"

static char path[] = "/tmp/ipw-test-resume-XXXXXX";

#define RUN         "RUN\n" /* becomes a run line with the settings of OPTIONS */
#define QUERY(key)  "{\"kind\":\"query\",\"key\":\"" key "\",\"ipw\":{\"status\":\"completed\"}}\n"
#define FAILED(key) "{\"kind\":\"query\",\"key\":\"" key "\",\"ipw\":{\"status\":\"failed\"}}\n"
#define ENERGY(key)                                                                                \
    "{\"kind\":\"energy\",\"key\":\"" key                                                          \
    "\",\"ipw\":{\"energy\":{\"joules\":2,\"method\":\"counter\"}}}\n"
#define TRY(key, number)                                                                           \
    "{\"kind\":\"energy\",\"key\":\"" key "\",\"ipw\":{\"failed_attempts\":{\"" number             \
    "\":{\"joules\":0.5,\"method\":\"counter\"}}}}\n"
#define GRADE(key) "{\"kind\":\"grade\",\"key\":\"" key "\"}\n"
#define JUDGE(key) "{\"kind\":\"energy\",\"key\":\"" key "\",\"ipw\":{\"judge_energy\":{}}}\n"
#define END                                                                                        \
    "{\"kind\":\"end\",\"start\":1,\"energy\":{\"joules\":10,\"plus_minus\":1,\"method\":"         \
    "\"counter\"},\"accounted_joules\":10,\"idle_joules\":1,\"unattributed_joules\":0,"            \
    "\"busy_joules\":9,\"busy_s\":3,\"busy_covered_s\":3}\n"

static const struct profile_options OPTIONS = {
    .client = "null", .model = "m", .dataset = "builtin", .repeat = 2};

static void write_journal(const char *text)
{
    struct text settings = {0};
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    struct jv *tree = resume_settings(&OPTIONS, "");
    assert_int_equal(jv_print(tree, &settings), ERR_OK);
    jv_free(tree);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n") + 1;
        if (strncmp(line, "RUN", 3) == 0)
            fprintf(file, "{\"kind\":\"run\",\"started_at\":100,\"settings\":%s}\n",
                    text_get(&settings));
        else
            fwrite(line, 1, strnlen(line, length), file);
        line += strnlen(line, length);
    }
    fclose(file);
    text_release(&settings);
}

static void read_journal(struct resume *out)
{
    struct error why;
    assert_int_equal(resume_read(path, &OPTIONS, "", out, &why), ERR_OK);
}

static enum err collect(void *context, const struct jv *line)
{
    struct text *found = context;
    const struct jv *own = jv_get(line, "ipw");
    for (const struct jv *one = jv_first(own); one; one = jv_next(one))
        if (jv_text(jv_get(one, "note")))
            text_addf(found, " %s.%s", jv_text(jv_get(line, "key")), jv_key(one));
    return ERR_OK;
}

/* Closes open energies and compares the added lines, "q000009.energy" each; then none is left open. */
static void assert_closes(const char *text, const char *expected, uint64_t queries)
{
    struct resume resume;
    struct error why;
    struct text found = {0};
    uint64_t unsettled, damaged;
    write_journal(text);
    for (int round = 0; round < 2; round++) {
        read_journal(&resume);
        assert_int_equal(resume_close_unsettled(&resume, path, &unsettled, &why), ERR_OK);
        assert_int_equal(unsettled, round ? 0 : queries);
        resume_release(&resume);
    }
    assert_int_equal(journal_read(path, collect, &found, &damaged, &why), ERR_OK);
    assert_string_equal(text_get(&found), expected);
    assert_int_equal(damaged, 0);
    text_release(&found);
}

static void open_energies_are_closed(void **state)
{
    (void)state;
    assert_closes(RUN QUERY("q000000") TRY("q000001", "1") QUERY("q000001.r1") QUERY("q000009")
                      ENERGY("q000000") ENERGY("q000001.r1")
                          TRY("q000003", "1.2") "{\"kind\":\"que",
                  " q000009.energy", 1);
    assert_closes(RUN QUERY("q000000") FAILED("q000001.r1"), " q000000.energy q000001.r1.energy",
                  2);
    assert_closes(RUN QUERY("no key") ENERGY("q000000"), "", 0);
}

static void only_the_last_start_counts(void **state)
{
    (void)state;
    assert_closes(RUN QUERY("q000000") QUERY("q000001") RUN QUERY("q000002"), " q000002.energy", 1);
    /* Failed and settled in the first, repeated in the second. */
    assert_closes(RUN FAILED("q000000") ENERGY("q000000") END RUN QUERY("q000000"),
                  " q000000.energy", 1);
    assert_closes(RUN QUERY("q000000") ENERGY("q000000") END RUN, "", 0);
    assert_closes("", "", 0);
}

/* q000001 was judged by an earlier start: its known energy is not replaced. */
static void open_judge_energies_are_closed(void **state)
{
    (void)state;
    assert_closes(RUN JUDGE("q000001") RUN END GRADE("q000000") GRADE("q000001") GRADE("q000002")
                      JUDGE("q000002"),
                  " q000000.judge_energy", 0);
}

static void completed_queries_and_their_spending_are_known(void **state)
{
    (void)state;
    struct resume resume;
    write_journal(RUN QUERY("q000000") FAILED("q000001") QUERY("q000002.r1") ENERGY("q000000")
                      TRY("q000001", "1") END RUN QUERY("q000001") ENERGY("q000001"));
    read_journal(&resume);
    assert_int_equal(resume.starts, 2);
    assert_int_equal(resume.ended, 1);
    assert_near(resume.started_at, 100, 0);
    assert_int_equal(resume.done.count, 3);
    assert_true(query_set_has(&resume.done, 2, 1));
    assert_false(query_set_has(&resume.done, 2, 0));
    assert_near(resume.spent.requests_joules, 4.5, 0);
    assert_near(resume.spent.energy.joules, 12, 1e-12); /* for the second, what its queries spent */
    assert_near(resume.spent.lost_joules, 9 - 2.5, 1e-12); /* of q000002.r1, and more */
    assert_near(resume.spent.idle_joules, 1, 0);
    assert_near(resume.spent.busy_s, 3, 0);
    resume_release(&resume);
    /* An energy may precede its query; one without a query is in no record. */
    write_journal(RUN ENERGY("q000000") QUERY("q000000") ENERGY("q000001"));
    read_journal(&resume);
    assert_near(resume.spent.requests_joules, 2, 0);
    assert_near(resume.spent.lost_joules, 2, 0);
    assert_near(resume.spent.energy.joules, 4, 0);
    resume_release(&resume);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_energies_are_closed),
        cmocka_unit_test(only_the_last_start_counts),
        cmocka_unit_test(open_judge_energies_are_closed),
        cmocka_unit_test(completed_queries_and_their_spending_are_known),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = RUN_TESTS(tests);
    unlink(path);
    return failed;
}
