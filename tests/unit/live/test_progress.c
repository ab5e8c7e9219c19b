#include "support/unit.h"

#include "core/text.h"
#include "live/live.h"
#include "report/text/format.h"
#include "runner/profile/profile.h"

static const struct profile_progress NOTHING = {
    .phase = "queries",
    .total = -1,
    .watts = UNKNOWN,
    .joules_per_token = UNKNOWN,
    .output_tokens_per_s = UNKNOWN,
};

/* The line at the moment it is due, without cursor control sequences. */
static const char *line_of(const struct profile_progress *state, bool terminal, unsigned columns,
                           struct text *out)
{
    static const char WIPE[] = "\r\x1b[K", SAID_BY[] = "ipw profile: ";
    struct progress progress;
    progress_init(&progress, "profile", terminal, true, columns, 0);
    progress_draw(&progress, state, 60 * NS_PER_S, out);
    const char *start = terminal ? WIPE : SAID_BY;
    assert_int_equal(strncmp(text_get(out), start, strlen(start)), 0);
    return text_get(out) + strlen(start);
}

static void a_line_reports_progress(void **state)
{
    (void)state;
    static const struct {
        struct profile_progress state;
        const char *line;
    } CASES[] = {
        {{.phase = "idle", .total = -1, .elapsed_s = 3.5e-7}, "idle 0 s\n"},
        {{.phase = "idle", .total = -1, .elapsed_s = 1.99}, "idle 1 s\n"},
        {{.phase = "preparing", .total = -1, .elapsed_s = 75}, "preparing 1 m 15 s\n"},
        {{.phase = "warm-up", .total = 3}, "warm-up 0/3\n"},
        {{.phase = "queries", .total = 60, .done = 8, .elapsed_s = 2},
         "queries 8/60  4.00/s  13 s left\n"},
        {{.phase = "queries", .total = -1, .done = 8, .elapsed_s = 2}, "queries 8  4.00/s\n"},
        {{.phase = "queries", .total = 8, .done = 8, .elapsed_s = 2}, "queries 8/8  4.00/s\n"},
        {{.phase = "queries", .total = 4000, .done = 1, .elapsed_s = 50},
         "queries 1/4000  50 s each  55 h 32 m left\n"},
        {{.phase = "queries", .total = 10000000, .done = 5000000, .elapsed_s = 1},
         "queries 5000000/10000000  5000000/s  1 s left\n"},
        {{.phase = "queries", .total = 9, .done = 3, .failed = 2, .elapsed_s = 1},
         "queries 3/9 (2 failed)  3.00/s  2 s left\n"},
        {{.phase = "queries", .total = 9, .done = 3, .unread = 1, .elapsed_s = 1},
         "queries 3/9 (1 unread)  3.00/s  2 s left\n"},
        {{.phase = "writing", .total = -1, .stopping = true}, "writing 0 s\n"},
        {{.phase = "queries", .total = 9, .done = 3, .elapsed_s = 1, .stopping = true},
         "queries stopping after requests in flight (Ctrl-C: abort)  3/9  3.00/s  2 s left\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct profile_progress now = CASES[i].state;
        struct text out = {0};
        now.watts = now.joules_per_token = now.output_tokens_per_s = UNKNOWN;
        assert_string_equal(line_of(&now, false, 0, &out), CASES[i].line);
        text_release(&out);
    }
}

static void rates_have_few_digits(void **state)
{
    (void)state;
    static const struct {
        double watts, tokens_per_s, joules_per_token;
        const char *line;
    } CASES[] = {
        {310.27, 152.34, 2.0713, "queries 1  310 W  152 tok/s  2.1 J/tok\n"},
        {5.751, 4.2, 1.731e-05, "queries 1  5.8 W  4.20 tok/s  17 µJ/tok\n"},
        {UNKNOWN, 0.05, UNKNOWN, "queries 1  20 s a tok\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct profile_progress now = NOTHING;
        struct text out = {0};
        now.done = 1;
        now.watts = CASES[i].watts;
        now.output_tokens_per_s = CASES[i].tokens_per_s;
        now.joules_per_token = CASES[i].joules_per_token;
        assert_string_equal(line_of(&now, false, 0, &out), CASES[i].line);
        text_release(&out);
    }
}

static void a_bar_fills_and_never_wraps(void **state)
{
    (void)state;
    static const struct {
        uint64_t done;
        bool stopping;
        const char *bar;
    } CASES[] = {
        {0, false, "[················] 0/4"},
        {1, false, "[████············] 1/4"},
        {4, false, "[████████████████] 4/4"},
        {5, false, "[████████████████] 5/4"},
        {1, true, "stopping after requests in flight (Ctrl-C: abort)  1/4"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct profile_progress now = NOTHING;
        now.done = CASES[i].done;
        now.total = 4;
        now.stopping = CASES[i].stopping;
        struct text out = {0};
        assert_contains(line_of(&now, true, 80, &out), CASES[i].bar);
        text_release(&out);
        for (unsigned columns = 2; columns < 80; columns++) {
            assert_true(utf8_width(line_of(&now, true, columns, &out)) < columns);
            text_release(&out);
            out = (struct text){0};
        }
    }
}

static void a_terminal_is_updated_more_often_than_a_file(void **state)
{
    (void)state;
    static const struct {
        bool terminal;
        nanos step;
        size_t lines; /* in a minute */
    } CASES[] = {
        {true, 10 * NS_PER_MS, 601}, {false, 10 * NS_PER_MS, 6}, {false, 15 * NS_PER_S, 4}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct progress progress;
        size_t lines = 0;
        progress_init(&progress, "profile", CASES[i].terminal, false, 80, 0);
        for (nanos now = 0; now <= 60 * NS_PER_S; now += CASES[i].step) {
            struct text out = {0};
            progress_draw(&progress, &NOTHING, now, &out);
            lines += out.length > 0;
            text_release(&out);
        }
        assert_int_equal(lines, CASES[i].lines);
    }
}

static void a_drawn_line_is_cleared_once(void **state)
{
    (void)state;
    struct progress progress;
    struct text out = {0};
    progress_init(&progress, "profile", true, false, 80, 0);
    progress_clear(&progress, &out);
    assert_int_equal(out.length, 0);
    progress_draw(&progress, &NOTHING, 0, &out);
    text_clear(&out);
    progress_clear(&progress, &out);
    assert_string_equal(text_get(&out), "\r\x1b[K");
    text_clear(&out);
    progress_clear(&progress, &out);
    assert_int_equal(out.length, 0);
    text_release(&out);
}

/* ---- reading large files ---- */

static const char *update_bar(struct reading_bar *bar, const char *path, uint64_t done, double at_s,
                              struct text *out)
{
    text_release(out);
    *out = (struct text){0};
    reading_bar_update(bar, path, done, 400000000, (nanos)(at_s * NS_PER_S) + 5, out);
    return text_get(out);
}

static void a_reading_bar_is_drawn_after_a_second(void **state)
{
    (void)state;
    struct reading_bar bar;
    struct text out = {0};
    reading_bar_init(&bar, "export", false, 120);
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 0, 0, &out), "");
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 90000000, 0.9, &out), "");
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 200000000, 2, &out),
                        "\r\x1b[Kreading records.jsonl (MB) [########........] 200/400  100/s  2 s "
                        "left");
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 201000000, 2.05, &out),
                        ""); /* rate-limited */
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 400000000, 4, &out), "\r\x1b[K");
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 400000000, 4.1, &out),
                        ""); /* cleared once */
    /* Restarts from the beginning: with a new rate. */
    assert_string_equal(update_bar(&bar, "r/records.jsonl", 0, 5, &out),
                        "\r\x1b[Kreading records.jsonl (MB) [................] 0/400");
    assert_contains(update_bar(&bar, "r/records.jsonl", 100000000, 7, &out),
                    "100/400  50.0/s  6 s left");
    text_release(&out);
    out = (struct text){0};
    reading_bar_clear(&bar, &out);
    assert_string_equal(text_get(&out), "\r\x1b[K");
    text_release(&out);
}

/* The part that distinguishes two files may be far behind. */
static void a_long_path_keeps_its_rate(void **state)
{
    (void)state;
    struct reading_bar bar;
    struct text out = {0};
    char path[1601];
    memset(path, 'd', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path + sizeof path - 6, "/file", 5);
    reading_bar_init(&bar, "export", false, 120);
    assert_string_equal(update_bar(&bar, path, 0, 0, &out), "");
    assert_contains(update_bar(&bar, path, 100000000, 2, &out), "100/400  50.0/s  6 s left");
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_reports_progress),
        cmocka_unit_test(rates_have_few_digits),
        cmocka_unit_test(a_bar_fills_and_never_wraps),
        cmocka_unit_test(a_terminal_is_updated_more_often_than_a_file),
        cmocka_unit_test(a_drawn_line_is_cleared_once),
        cmocka_unit_test(a_reading_bar_is_drawn_after_a_second),
        cmocka_unit_test(a_long_path_keeps_its_rate),
    };
    return RUN_TESTS(tests);
}
