/* test: tsan */
/* The journal: lines are written atomically, and joined to records. */
#include "rundir/journal.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "port/json_read.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static char path[256];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/records.jsonl", tree.root);
    return 0;
}

static enum err append(struct journal *journal, const char *line, struct error *why)
{
    struct text text = {0};
    text_add(&text, line);
    enum err err = journal_append(journal, &text, why);
    text_release(&text);
    return err;
}

static void write_journal(const char *content)
{
    tree_remove(&tree, "/records.jsonl");
    tree_write_bytes(&tree, "/records.jsonl", 0, content, strlen(content));
}

static void read_file(struct text *out)
{
    char block[4096];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    text_clear(out);
    while ((n = read(fd, block, sizeof block)) > 0)
        text_add_bytes(out, block, (size_t)n);
    close(fd);
}

static void assert_content(const char *expected)
{
    struct text content = {0};
    read_file(&content);
    assert_string_equal(text_get(&content), expected);
    text_release(&content);
}

/* ---- writing ---- */

static void test_lines_are_appended(void **state)
{
    (void)state;
    struct journal journal;
    struct error why = {0};
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    assert_int_equal(journal_sync(&journal, &why), ERR_OK); /* nothing to sync */
    assert_int_equal(append(&journal, "{\"a\":1}", &why), ERR_OK);
    assert_true(journal.dirty);
    assert_int_equal(journal_sync(&journal, &why), ERR_OK);
    assert_false(journal.dirty);
    journal_close(&journal);
    journal_close(&journal); /* harmless */
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    assert_int_equal(append(&journal, "{\"b\":2}", &why), ERR_OK);
    journal_close(&journal);
    assert_content("{\"a\":1}\n{\"b\":2}\n");
}

static void test_invalid_lines_are_rejected(void **state)
{
    (void)state;
    struct journal journal;
    struct error why = {0};
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    assert_int_equal(append(&journal, "a\nb", &why), ERR_BAD_VALUE);
    assert_int_equal(append(&journal, "", &why), ERR_BAD_VALUE);
    const struct text endless = {.bytes = "x", .length = JOURNAL_LINE_MAX};
    assert_int_equal(journal_append(&journal, &endless, &why), ERR_BAD_VALUE);
    journal_close(&journal);
    assert_content("");
}

static void test_a_torn_line_is_truncated(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } CASES[] = {
        {"{\"a\":1}\n{\"b\":", "{\"a\":1}\n{\"c\":3}\n"},
        {"{\"a\":1}\n", "{\"a\":1}\n{\"c\":3}\n"},
        {"{\"a\"", "{\"c\":3}\n"},
        {"", "{\"c\":3}\n"},
        {"\n", "\n{\"c\":3}\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct journal journal;
        struct error why = {0};
        write_journal(CASES[i].before);
        assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
        assert_int_equal(append(&journal, "{\"c\":3}", &why), ERR_OK);
        journal_close(&journal);
        assert_content(CASES[i].after);
    }
}

static void test_a_long_torn_line_is_truncated(void **state)
{
    (void)state;
    struct text content = {0};
    struct journal journal;
    struct error why = {0};
    text_add(&content, "{\"a\":1}\n");
    for (int i = 0; i < 30000; i++)
        text_add(&content, "torn line ");
    write_journal(text_get(&content));
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    journal_close(&journal);
    assert_content("{\"a\":1}\n");
    text_release(&content);
}

static void test_errors_of_open_name_the_cause(void **state)
{
    (void)state;
    struct journal journal;
    struct error why = {0};
    char long_path[600];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(journal_open(&journal, long_path, &why), ERR_BAD_VALUE);
    assert_int_equal(journal_open(&journal, "/no/such/place/records.jsonl", &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such/place");
    journal_close(&journal); /* harmless after a failure */
    if (geteuid() != 0) {
        tree_write(&tree, "/closed/x", "x");
        tree_mode(&tree, "/closed", 0500);
        snprintf(long_path, sizeof long_path, "%s/closed/records.jsonl", tree.root);
        assert_int_equal(journal_open(&journal, long_path, &why), ERR_DENIED);
        tree_mode(&tree, "/closed", 0700);
    }
}

/* A full disk, by RLIMIT_FSIZE: in a child, since the limit cannot be raised again. */
static int write_until_full(void)
{
    struct journal journal;
    struct error why = {0};
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    signal(SIGXFSZ, SIG_IGN);
    if (journal_open(&journal, path, &why) || setrlimit(RLIMIT_FSIZE, &limit))
        return 2;
    enum err err = ERR_OK;
    for (int i = 0; i < 100 && !err; i++)
        err = append(&journal, "{\"some\":\"line of thirty-odd bytes\"}", &why);
    if (err != ERR_NO_SPACE || !strstr(why.text, "records.jsonl"))
        return 3;
    return append(&journal, "{}", &why) == ERR_OK ? 0 : 4; /* a shorter one still fits */
}

static void test_a_full_disk_leaves_complete_lines(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_until_full());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct text content = {0};
    read_file(&content);
    assert_true(content.length > 900 && content.length <= 1000);
    assert_string_equal(content.bytes + content.length - 4, "\n{}\n");
    text_release(&content);

    struct journal journal;
    struct error why = {0};
    assert_int_equal(journal_open(&journal, "/dev/full", &why), ERR_BAD_VALUE); /* no file */
    assert_contains(why.text, "/dev/full is not a regular file");
    journal_close(&journal);
}

/* An energy line follows its query: the space that a query reserves stays free for it. */
static int write_until_reserved(void)
{
    struct journal journal;
    struct error why = {0};
    struct text later = {0};
    struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
    signal(SIGXFSZ, SIG_IGN);
    if (journal_open(&journal, path, &why) || setrlimit(RLIMIT_FSIZE, &limit))
        return 2;
    enum err err = ERR_OK;
    int queries = 0;
    for (; queries < 100 && !err; queries++) {
        err = journal_reserve(&journal, 500, &why);
        if (!err)
            err = append(&journal, "{\"kind\":\"query\"}", &why);
    }
    if (err != ERR_NO_SPACE || !strstr(why.text, "ulimit -f") || queries < 15 || queries > 20)
        return 3;
    text_addf(&later, "{\"energy\":\"%0480d\"}", 0);
    if (journal_append(&journal, &later, &why) != ERR_NO_SPACE)
        return 4;
    for (int i = 0; i < queries - 1; i++)
        if (journal_append_reserved(&journal, &later, 500, &why))
            return 5;
    struct stat status;
    journal_close(&journal);
    return stat(path, &status) || status.st_blocks * 512 > 16384 ? 6 : 0;
}

static void test_reserved_space_stays_free(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_until_reserved());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a writer that is killed ---- */

/* ---- batches ---- */

static void test_lines_of_a_batch_are_written_at_its_end(void **state)
{
    (void)state;
    struct journal journal;
    struct error why = {0};
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    assert_int_equal(append(&journal, "{\"n\":1}", &why), ERR_OK);
    journal_batch_begin(&journal);
    assert_int_equal(append(&journal, "{\"n\":2}", &why), ERR_OK);
    assert_content("{\"n\":1}\n");
    journal_batch_begin(&journal); /* of another thread */
    assert_int_equal(append(&journal, "{\"n\":3}", &why), ERR_OK);
    assert_int_equal(journal_batch_end(&journal, &why), ERR_OK);
    assert_content("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    assert_int_equal(append(&journal, "{\"n\":4}", &why), ERR_OK);
    assert_content("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    assert_int_equal(journal_batch_end(&journal, &why), ERR_OK);
    assert_content("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n");
    assert_int_equal(append(&journal, "{\"n\":5}", &why), ERR_OK);
    assert_content("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n{\"n\":5}\n");
    journal_close(&journal);
}

/* 42 lines of 23 bytes fit in 1,000 bytes. */
static int write_batch_until_full(void)
{
    struct journal journal;
    struct error why = {0};
    char line[64];
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    signal(SIGXFSZ, SIG_IGN);
    if (journal_open(&journal, path, &why) || setrlimit(RLIMIT_FSIZE, &limit))
        return 2;
    journal_batch_begin(&journal);
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof line, "{\"n\":%d,\"pad\":\"xx\"}", 10000 + i);
        if (append(&journal, line, &why))
            return 3;
    }
    if (journal_batch_end(&journal, &why) != ERR_NO_SPACE || !strstr(why.text, "ulimit -f"))
        return 4;
    if (append(&journal, "{}", &why)) /* a shorter one still fits */
        return 5;
    journal_close(&journal);
    return 0;
}

static void test_a_batch_on_a_full_disk_leaves_complete_lines(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_batch_until_full());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct text expected = {0};
    for (int i = 0; i < 43; i++)
        text_addf(&expected, "{\"n\":%d,\"pad\":\"xx\"}\n", 10000 + i);
    text_add(&expected, "{}\n");
    assert_content(text_get(&expected));
    text_release(&expected);
}

/* Space that was reserved for a line stays allocated until the line is written. */
static int write_reserved_batch(void)
{
    struct journal journal;
    struct error why = {0};
    struct text later = {0};
    struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
    signal(SIGXFSZ, SIG_IGN);
    if (journal_open(&journal, path, &why) || setrlimit(RLIMIT_FSIZE, &limit))
        return 2;
    for (int i = 0; i < 10; i++)
        if (journal_reserve(&journal, 500, &why))
            return 3;
    text_addf(&later, "{\"energy\":\"%0480d\"}", 0);
    journal_batch_begin(&journal);
    for (int i = 0; i < 9; i++)
        if (journal_append_reserved(&journal, &later, 500, &why))
            return 4;
    int others = 0; /* one reservation is left, and the lines that wait have their space */
    while (others < 100 && !journal_append(&journal, &later, &why))
        others++;
    if (others < 9 || others > 10 || journal_append_reserved(&journal, &later, 500, &why) ||
        journal_batch_end(&journal, &why))
        return 5;
    journal_close(&journal);
    return 0;
}

static void test_reserved_space_stays_free_in_a_batch(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_reserved_batch());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void write_for_ever(int ready)
{
    struct journal journal;
    if (journal_open(&journal, path, NULL))
        _exit(1);
    struct text line = {0};
    for (unsigned i = 0;; i++) {
        text_clear(&line);
        text_addf(&line, "{\"kind\":\"query\",\"key\":\"%u\",\"pad\":\"", i);
        for (unsigned k = 0; k < i % 300; k++)
            text_add(&line, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        text_add(&line, "\"}");
        if (journal_append(&journal, &line, NULL))
            _exit(1);
        if (i == 0 && write(ready, "x", 1) != 1)
            _exit(1);
    }
}

static enum err count_up(void *context, const struct jv *line)
{
    unsigned *next = context;
    char expected[16];
    snprintf(expected, sizeof expected, "%u", *next);
    assert_string_equal(jv_text(jv_get(line, "key")), expected);
    ++*next;
    return ERR_OK;
}

static void test_a_killed_writer_loses_at_most_its_torn_line(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        int ready[2], status;
        char byte;
        tree_remove(&tree, "/records.jsonl");
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0)
            write_for_ever(ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = round * 700000L}, NULL);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        close(ready[0]);

        uint64_t damaged;
        unsigned before = 0, after = 0;
        struct error why = {0};
        struct journal journal;
        assert_int_equal(journal_read(path, count_up, &before, &damaged, &why), ERR_OK);
        assert_true(damaged <= 1);
        assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
        char line[64];
        snprintf(line, sizeof line, "{\"kind\":\"query\",\"key\":\"%u\"}", before);
        assert_int_equal(append(&journal, line, &why), ERR_OK);
        journal_close(&journal);
        assert_int_equal(journal_read(path, count_up, &after, &damaged, &why), ERR_OK);
        assert_int_equal(damaged, 0);
        assert_int_equal(after, before + 1);
    }
}

/* ---- several threads ---- */

enum { THREADS = 4, LINES = 300 };

struct writer {
    struct journal *journal;
    int number;
};

static void *write_lines(void *context)
{
    const struct writer *writer = context;
    struct text line = {0};
    for (int i = 0; i < LINES; i++) {
        text_clear(&line);
        text_addf(&line, "{\"writer\":%d,\"line\":%d}", writer->number, i);
        if (journal_append(writer->journal, &line, NULL))
            break;
        if (i % 100 == 0 && journal_sync(writer->journal, NULL))
            break;
    }
    text_release(&line);
    return NULL;
}

static enum err check_order(void *context, const struct jv *line)
{
    int *next = context;
    int64_t writer, number;
    assert_true(jv_integer(jv_get(line, "writer"), &writer));
    assert_true(jv_integer(jv_get(line, "line"), &number));
    assert_int_equal(number, next[writer]++);
    return ERR_OK;
}

static void test_lines_of_threads_are_not_interleaved(void **state)
{
    (void)state;
    struct journal journal;
    struct writer writers[THREADS];
    pthread_t threads[THREADS];
    struct error why = {0};
    int next[THREADS] = {0};
    uint64_t damaged;
    assert_int_equal(journal_open(&journal, path, &why), ERR_OK);
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){&journal, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    journal_close(&journal);
    assert_int_equal(journal_read(path, check_order, next, &damaged, &why), ERR_OK);
    assert_int_equal(damaged, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(next[i], LINES);
}

/* ---- reading ---- */

static enum err print_line(void *context, const struct jv *line)
{
    struct text *out = context;
    assert_int_equal(jv_print(line, out), ERR_OK);
    text_add(out, "\n");
    return ERR_OK;
}

static void test_damaged_lines_are_skipped_and_counted(void **state)
{
    (void)state;
    struct text out = {0};
    struct error why = {0};
    uint64_t damaged = 77;
    write_journal("{\"a\":1}\nnot json\n\n{\"b\":2}\n[1]\n{\"c\":3} x\n{\"d\":4}\n{\"torn\":");
    assert_int_equal(journal_read(path, print_line, &out, &damaged, &why), ERR_OK);
    assert_string_equal(text_get(&out), "{\"a\":1}\n{\"b\":2}\n{\"d\":4}\n");
    assert_int_equal(damaged, 4); /* not JSON, an array, trailing bytes, torn */
    text_release(&out);
    write_journal("");
    assert_int_equal(journal_read(path, print_line, &out, &damaged, &why), ERR_OK);
    assert_int_equal(damaged, 0);
    assert_int_equal(journal_read("/no/such", print_line, &out, &damaged, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such");
}

static enum err stop_reading(void *context, const struct jv *line)
{
    (void)line;
    ++*(int *)context;
    return ERR_INTERRUPTED;
}

static void test_reading_stops_on_a_callback_error(void **state)
{
    (void)state;
    int calls = 0;
    uint64_t damaged;
    write_journal("{\"kind\":\"query\",\"key\":\"a\"}\n{\"kind\":\"query\",\"key\":\"b\"}\n");
    assert_int_equal(journal_read(path, stop_reading, &calls, &damaged, NULL), ERR_INTERRUPTED);
    assert_int_equal(calls, 1);
    assert_int_equal(journal_records(path, stop_reading, &calls, &damaged, NULL), ERR_INTERRUPTED);
    assert_int_equal(calls, 2);
}

/* ---- records ---- */

#define Q(key, rest) "{\"kind\":\"query\",\"key\":\"" key "\"" rest "}\n"
#define E(key, rest) "{\"kind\":\"energy\",\"key\":\"" key "\"" rest "}\n"
#define G(key, rest) "{\"kind\":\"grade\",\"key\":\"" key "\"" rest "}\n"

static const struct {
    const char *name, *journal, *records;
} RECORDS[] = {
    {"later lines are merged, in the order of the queries",
     "{\"kind\":\"run\",\"model\":\"m\"}\n" Q("a", ",\"m\":{\"x\":1}") Q("b", ",\"m\":{\"x\":2}")
         E("b", ",\"m\":{\"j\":20}") G("b", ",\"m\":{\"ok\":true}")
             E("a", ",\"m\":{\"j\":10}") "{\"kind\":\"end\"}\n",
     Q("a", ",\"m\":{\"x\":1,\"j\":10}") Q("b", ",\"m\":{\"x\":2,\"j\":20,\"ok\":true}")},
    {"a query without energy is given as it is", Q("a", "") Q("b", "") E("b", ",\"j\":1"),
     Q("a", "") Q("b", ",\"j\":1")},
    {"the last of two tries counts, without the energy of the first",
     Q("a", ",\"status\":\"failed\",\"old\":1") E("a", ",\"j\":1,\"old_j\":1")
         Q("b", "") "{\"kind\":\"run\"}\n" Q("a", ",\"status\":\"ok\"") E("a", ",\"j\":2"),
     Q("b", "") Q("a", ",\"status\":\"ok\",\"j\":2")},
    {"the energy of an attempt before the second try's line is that try's",
     Q("a", "") E("a", ",\"j\":1") "{\"kind\":\"run\"}\n" E("a", ",\"failed\":{\"1\":2}")
         Q("a", ",\"status\":\"ok\"") G("a", ",\"ok\":true"),
     Q("a", ",\"status\":\"ok\",\"failed\":{\"1\":2},\"ok\":true")},
    {"two tries of one start: the last counts, with what came after it",
     Q("a", ",\"old\":1") E("a", ",\"j\":1") Q("a", "") E("a", ",\"k\":2"), Q("a", ",\"k\":2")},
    {"a later value replaces an earlier one",
     Q("a", ",\"j\":null") E("a", ",\"j\":1") E("a", ",\"j\":2"), Q("a", ",\"j\":2")},
    {"lines of no query are left out", E("x", ",\"j\":1") G("y", "") Q("a", ""), Q("a", "")},
    {"a line before its only query belongs to it", E("a", ",\"j\":1") Q("a", ",\"x\":2"),
     Q("a", ",\"x\":2,\"j\":1")},
    {"lines without a key or of another kind are left out",
     "{\"kind\":\"query\"}\n{\"key\":\"a\"}\n{\"kind\":\"note\",\"key\":\"a\"}\n" Q("a", ""),
     Q("a", "")},
    {"keys that look alike are of different queries",
     Q("q000001", "") Q("q1", "") Q("q0000001", "") Q("q000001.r1", "") Q("q000001.r01", "")
         Q("q000001.r0", "") Q("q000001.r", "") Q("q00001x", "") Q("q99999999999999999999", "")
             E("q1", ",\"j\":1") E("q000001.r1", ",\"j\":2"),
     Q("q000001", "") Q("q1", ",\"j\":1") Q("q0000001", "") Q("q000001.r1", ",\"j\":2")
         Q("q000001.r01", "") Q("q000001.r0", "") Q("q000001.r", "") Q("q00001x", "")
             Q("q99999999999999999999", "")},
    {"no queries, no records", "{\"kind\":\"run\"}\n", ""},
};

static void test_lines_are_joined_to_records(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof RECORDS / sizeof *RECORDS; i++) {
        struct text out = {0};
        struct error why = {0};
        uint64_t damaged = 77;
        write_journal(RECORDS[i].journal);
        assert_int_equal(journal_records(path, print_line, &out, &damaged, &why), ERR_OK);
        if (strcmp(text_get(&out), RECORDS[i].records))
            print_error("%s\n", RECORDS[i].name);
        assert_string_equal(text_get(&out), RECORDS[i].records);
        assert_int_equal(damaged, 0);
        text_release(&out);
    }
}

static const struct {
    const char *name, *journal, *records;
    unsigned damaged;
} DAMAGED[] = {
    {"a torn query line is no record", "{\"kind\":\"query\",\"key\":\"a\",\"x\":1\n" Q("b", ""),
     Q("b", ""), 1},
    {"two lines in one are neither", "{\"kind\":\"query\",\"key\":\"a\"}{\"x\":1}\n" Q("b", ""),
     Q("b", ""), 1},
    {"a line whose brackets close but that is no JSON is left out",
     Q("a", ",\"x\":1q") Q("b", ",\"x\":1") E("b", ",\"j\":tru"), Q("b", ",\"x\":1"), 2},
    {"an earlier try that can be read counts more than a later one that cannot",
     Q("a", ",\"x\":1") E("a", ",\"j\":1") Q("a", ",\"x\":2q"), Q("a", ",\"x\":1,\"j\":1"), 1},
    {"a string that is not closed", "{\"kind\":\"query\",\"key\":\"a\",\"x\":\"}\n" Q("b", ""),
     Q("b", ""), 1},
    {"a string that ends in a backslash", "{\"kind\":\"query\",\"key\":\"a\",\"x\":\"\\\n", "", 1},
    {"a key with an escape is read", Q("\\u0061", "") E("a", ",\"j\":1"), Q("a", ",\"j\":1"), 0},
    {"brackets in strings do not count", Q("a", ",\"x\":\"}]\\\"{\"") E("a", ",\"j\":1"),
     Q("a", ",\"x\":\"}]\\\"{\",\"j\":1"), 0},
    {"white space and another order are read",
     "{ \"key\": \"a\", \"kind\": \"query\" }\n" E("a", ",\"j\":1"),
     "{\"key\":\"a\",\"kind\":\"query\",\"j\":1}\n", 0},
};

static void test_damaged_lines_give_no_records(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof DAMAGED / sizeof *DAMAGED; i++) {
        struct text out = {0};
        struct error why = {0};
        uint64_t damaged = 77;
        write_journal(DAMAGED[i].journal);
        assert_int_equal(journal_records(path, print_line, &out, &damaged, &why), ERR_OK);
        if (strcmp(text_get(&out), DAMAGED[i].records) || damaged != DAMAGED[i].damaged)
            print_error("%s\n", DAMAGED[i].name);
        assert_string_equal(text_get(&out), DAMAGED[i].records);
        assert_int_equal(damaged, DAMAGED[i].damaged);
        text_release(&out);
    }
}

struct many {
    int64_t next, queries;
};

static enum err check_many(void *context, const struct jv *record)
{
    struct many *many = context;
    int64_t index, joules, grade;
    assert_true(jv_integer(jv_get(record, "index"), &index));
    assert_int_equal(index, many->next++);
    assert_true(jv_integer(jv_get(record, "joules"), &joules));
    assert_int_equal(joules, index * 2);
    assert_true(jv_integer(jv_get(record, "grade"), &grade));
    assert_int_equal(grade, index * 3);
    return ERR_OK;
}

/* Grades long after their queries: in another window of the file. */
static void test_many_records_with_late_grades(void **state)
{
    (void)state;
    if (TEST_SANITIZES_THREADS)
        SKIP("so many records of one thread");
    const int count = 12000;
    struct text content = {0};
    for (int i = 0; i < count; i++) {
        text_addf(&content, "{\"kind\":\"query\",\"key\":\"k%d\",\"index\":%d}\n", i, i);
        if (i > 0)
            text_addf(&content, "{\"kind\":\"energy\",\"key\":\"k%d\",\"joules\":%d}\n", i - 1,
                      2 * (i - 1));
    }
    text_addf(&content, "{\"kind\":\"energy\",\"key\":\"k%d\",\"joules\":%d}\n", count - 1,
              2 * (count - 1));
    for (int i = count; i-- > 0;)
        text_addf(&content, "{\"kind\":\"grade\",\"key\":\"k%d\",\"grade\":%d}\n", i, 3 * i);
    write_journal(text_get(&content));
    text_release(&content);
    struct many many = {0};
    uint64_t damaged;
    struct error why = {0};
    struct journal_index *index;
    assert_int_equal(journal_index_new(&index, path, &why), ERR_OK);
    for (int times = 0; times < 2; times++) { /* deterministic */
        many = (struct many){0};
        assert_int_equal(journal_index_read(index, check_many, &many, &damaged, &why), ERR_OK);
        assert_int_equal(many.next, count);
        assert_int_equal(damaged, 0);
    }
    journal_index_free(index);
}

/* The facts of a run are in its first line, or if that is damaged in that of a later start. */
static void test_the_header_is_the_first_intact_run_line(void **state)
{
    (void)state;
    const char *const CONTENTS[] = {
        "{\"kind\":\"run\",\"run_kind\":\"layers\",\"start\":1,\"started_at\":1700000000.5,"
        "\"repeat_group\":"
        "\"g\",\"repeat_number\":3}\n{\"kind\":\"run\",\"run_kind\":\"run\",\"start\":2}\n",
        "{\"kind\":\"run\",\"run_k\n{\"kind\":\"query\",\"key\":\"q0\"}\n"
        "{\"kind\":\"run\",\"run_kind\":\"layers\",\"start\":2,\"started_at\":1700000000.5,"
        "\"repeat_group\":"
        "\"g\",\"repeat_number\":3}\n",
    };
    for (size_t i = 0; i < sizeof CONTENTS / sizeof *CONTENTS; i++) {
        write_journal(CONTENTS[i]);
        struct journal_facts facts = journal_facts(path);
        assert_int_equal(facts.kind, RUN_KIND_LAYERS);
        assert_true(facts.started_at == 1700000000.5 && isnan(facts.format));
        assert_string_equal(facts.repeat.group, "g");
        assert_int_equal(facts.repeat.number, 3);
    }
    write_journal("{\"kind\":\"query\",\"key\":\"q0\"}\n");
    assert_null(journal_header(path));
    struct journal_facts facts = journal_facts(path);
    assert_int_equal(facts.kind, RUN_KIND_PROFILE);
    assert_true(isnan(facts.started_at) && isnan(facts.format));
    assert_string_equal(facts.repeat.group, "");
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tree_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_lines_are_appended),
        IN_TREE(test_invalid_lines_are_rejected),
        IN_TREE(test_a_torn_line_is_truncated),
        IN_TREE(test_a_long_torn_line_is_truncated),
        IN_TREE(test_errors_of_open_name_the_cause),
        IN_TREE(test_a_full_disk_leaves_complete_lines),
        IN_TREE(test_reserved_space_stays_free),
        IN_TREE(test_lines_of_a_batch_are_written_at_its_end),
        IN_TREE(test_a_batch_on_a_full_disk_leaves_complete_lines),
        IN_TREE(test_reserved_space_stays_free_in_a_batch),
        IN_TREE(test_a_killed_writer_loses_at_most_its_torn_line),
        IN_TREE(test_lines_of_threads_are_not_interleaved),
        IN_TREE(test_damaged_lines_are_skipped_and_counted),
        IN_TREE(test_reading_stops_on_a_callback_error),
        IN_TREE(test_lines_are_joined_to_records),
        IN_TREE(test_damaged_lines_give_no_records),
        IN_TREE(test_many_records_with_late_grades),
        IN_TREE(test_the_header_is_the_first_intact_run_line),
    };
    return RUN_TESTS(tests);
}
