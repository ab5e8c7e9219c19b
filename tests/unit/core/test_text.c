/* test: valgrind */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/log.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

static void numbers_are_parsed_strictly(void **state)
{
    (void)state;
    uint64_t u = 7;
    assert_int_equal(parse_u64(" 42\n", &u), ERR_OK);
    assert_int_equal(u, 42);
    static const char *const BAD[] = {"",   " ", "-1", "+1", "12x", "0x10", "18446744073709551616",
                                      "nan"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(parse_u64(BAD[i], &u), ERR_BAD_VALUE);
        assert_int_equal(u, 42);
    }
    int64_t s;
    assert_int_equal(parse_i64("-5\n", &s), ERR_OK);
    assert_int_equal(s, -5);
    assert_int_equal(parse_i64("-", &s), ERR_BAD_VALUE);
    double d = 1;
    assert_int_equal(parse_double("2.5", &d), ERR_OK);
    assert_near(d, 2.5, 0);
    assert_int_equal(parse_double("inf", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("nan", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("1.5W", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("0x10", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("-0X1p3", &d), ERR_BAD_VALUE);
}

static void names_are_listed_as_a_whole(void **state)
{
    static const char *const NAMES[] = {"gpu", "cpu"};
    (void)state;
    assert_true(str_is_listed("cpu", NAMES, 2));
    assert_false(str_is_listed("cpu", NAMES, 1));
    assert_false(str_is_listed("cp", NAMES, 2));
    assert_false(str_is_listed("", NAMES, 2));
}

static void quotients_are_known_or_unknown(void **state)
{
    (void)state;
    assert_near(ratio(6, 4), 1.5, 0);
    assert_false(is_known(ratio(6, 0)));
    assert_false(is_known(ratio(6, -1)));
    assert_false(is_known(ratio(UNKNOWN, 4)));
    assert_false(is_known(ratio(6, INFINITY)));
    assert_false(is_known(ratio(1e300, 1e-300)));
}

static void text_grows_and_formats(void **state)
{
    (void)state;
    struct text text = {0};
    assert_string_equal(text_get(&text), "");
    for (int i = 0; i < 1000; i++)
        text_addf(&text, "%d,", i);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_memory_equal(text_get(&text) + text.length - 4, "999,", 4);
    text_clear(&text);
    assert_string_equal(text_get(&text), "");
    text_release(&text);
}

static void fixed_buffers_are_truncated_not_overrun(void **state)
{
    (void)state;
    char small[4];
    assert_false(str_copy(small, sizeof small, "abcdef"));
    assert_string_equal(small, "abc");
    assert_true(str_copy(small, sizeof small, "abc"));
    assert_false(str_format(small, sizeof small, "%d", 123456));
    assert_string_equal(small, "123");
    assert_true(str_join(small, sizeof small, "a", "b", "c"));
    assert_string_equal(small, "abc");
    assert_true(str_join(small, sizeof small, "", "ab", ""));
    assert_string_equal(small, "ab");
    assert_false(str_join(small, sizeof small, "ab", "cd", "e"));
    assert_string_equal(small, "abc");
    assert_false(str_join(small, sizeof small, "abc", "", "d"));
    assert_string_equal(small, "abc");
}

/* ---- escaping: no text may control a terminal or display as another line ---- */

/* NOLINTBEGIN(misc-misleading-bidirectional): written as escape sequences, which do not mislead a reader. */

static const struct {
    const char *from, *to;
} CASES[] = {
    {"", ""},
    {"model.layers.0/Conv", "model.layers.0/Conv"},
    {"µ ± Größe 模型 🙂", "µ ± Größe 模型 🙂"},
    {"red\x1b[31m", "red\\x1b[31m"},
    {"a\rb\nc\td\x7f", "a\\rb\\nc\\td\\u007f"},
    {"csi \xc2\x9b"
     "31m",
     "csi \\u009b31m"},                                 /* U+009B: CSI as one character */
    {"x\xe2\x80\xaegpj.exe", "x\\u202egpj.exe"},        /* U+202E: right-to-left override */
    {"x\xe2\x81\xa6y\xe2\x81\xa9", "x\\u2066y\\u2069"}, /* isolates */
    {"x\xe2\x80\x8f\xd8\x9c", "x\\u200f\\u061c"},       /* marks */
    {"x\xe2\x80\xa8y", "x\\u2028y"},                    /* U+2028: line separator */
    {"a\xff\xfe z", "a\\xff\\xfe z"},                   /* not UTF-8 */
    {"\xc0\x80 \xed\xa0\x80 z", "\\xc0\\x80 \\xed\\xa0\\x80 z"}, /* overlong, a surrogate */
    {"cut \xe2\x80", "cut "}, /* truncated, as by a full buffer */
    {"cut \xf0\x9f\x99", "cut "},
    {"stray \x80", "stray \\x80"},
};

static void list_items_are_read_in_order(void **state)
{
    const char *rest = "a,bcd", *bad[] = {"", ",a", "abcd"};
    char item[4];
    (void)state;
    assert_true(str_next_item(&rest, item, sizeof item));
    assert_string_equal(item, "a");
    assert_true(str_next_item(&rest, item, sizeof item));
    assert_string_equal(item, "bcd");
    assert_null(rest);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(str_next_item(&bad[i], item, sizeof item));
    rest = "a,";
    assert_true(str_next_item(&rest, item, sizeof item));
    assert_false(str_next_item(&rest, item, sizeof item)); /* an item is missing at the end */
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[64];
        str_copy(text, sizeof text, CASES[i].from);
        assert_int_equal(str_is_plain(text), strcmp(CASES[i].from, CASES[i].to) == 0);
        str_plain(text, sizeof text);
        assert_string_equal(text, CASES[i].to);
        assert_true(str_is_plain(text));
    }
}

static void an_escape_is_never_truncated(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 16; size++) {
        static const char WHOLE[] = "a\\x1bb\\u202e";
        char text[16] = "a\x1b"
                        "b\xe2\x80\xae";
        size_t given = strlen(text);
        str_plain(text, size > given ? size : given + 1);
        assert_int_equal(strncmp(text, WHOLE, strlen(text)), 0);
        assert_true(strlen(text) == 6 || strlen(text) == strlen(WHOLE));
    }
}

/* Report lines whose names were not escaped. */
static void newlines_and_own_colors_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *from, *plain, *styled;
    } LINES[] = {
        {"one\ntwo\n", "one\ntwo\n", "one\ntwo\n"},
        {"\x1b[1mhead\x1b[0m\n", "\\x1b[1mhead\\x1b[0m\n", "\x1b[1mhead\x1b[0m\n"},
        {"\x1b[8mhidden \x1b[2J\x1b]0;t\x07\r", "\\x1b[8mhidden \\x1b[2J\\x1b]0;t\\x07\\r",
         "\\x1b[8mhidden \\x1b[2J\\x1b]0;t\\x07\\r"},
        {"\x1b[1", "\\x1b[1", "\\x1b[1"},
        {"µ \xe2\x80\xae \xff", "µ \\u202e \\xff", "µ \\u202e \\xff"},
    };
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        for (int styled = 0; styled < 2; styled++) {
            struct text out = {0};
            text_add_lines(&out, LINES[i].from, strlen(LINES[i].from), styled);
            assert_string_equal(text_get(&out), styled ? LINES[i].styled : LINES[i].plain);
            text_release(&out);
        }
}

static void errors_are_escaped(void **state)
{
    (void)state;
    struct error why = {0};
    err_set(&why, ERR_BAD_VALUE, "%s: no key '%s'", "a.json", "\x1b]0;mine\x07\r\xe2\x80\xae");
    assert_string_equal(why.text, "a.json: no key '\\x1b]0;mine\\x07\\r\\u202e'");
}
/* NOLINTEND(misc-misleading-bidirectional) */

static char logged[128];

static void keep(enum log_level level, const char *line)
{
    (void)level;
    strncpy(logged, line, sizeof logged - 1);
}

static void log_lines_are_escaped(void **state)
{
    (void)state;
    log_to(keep, LOG_WARN);
    log_warn("weights in %s", "\x1b[2J\n");
    log_to(NULL, LOG_WARN);
    assert_string_equal(logged, "weights in \\x1b[2J\\n");
}

static void terminal_control_sequences_are_escaped(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"llama-3.1 8B", "llama-3.1 8B"},
        {"\x1b[2Ja\tb\n\x7f", "\\x1b[2Ja\\tb\\n\\u007f"},
        {"Modell f\xC3\xBCr 模型 🦙", "Modell f\xC3\xBCr 模型 🦙"},
        {"a\xC2\x9B"
         "2Jb",
         "a\\u009b2Jb"},                      /* CSI as one character */
        {"\xff\xC3_\xE2\x82", "\\xff\\xc3_"}, /* invalid UTF-8, and truncated UTF-8 */
        {"", ""},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        char text[64];
        str_copy(text, sizeof text, PAIRS[i][0]);
        assert_ptr_equal(str_plain(text, sizeof text), text);
        assert_string_equal(text, PAIRS[i][1]);
        assert_string_equal(plain_text(PAIRS[i][0]).text, PAIRS[i][1]);
    }
}

static void invalid_bytes_are_repaired(void **state)
{
    (void)state;
    struct text out = {0};
    text_add_repaired(&out, "caf\xE9 \xE2\x82", 7);
    assert_string_equal(text_get(&out), "caf\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD");
    text_release(&out);
}

static void a_field_owns_a_copy_or_takes_the_bytes(void **state)
{
    (void)state;
    char *field = NULL;
    struct text text = {0};
    str_set(&field, "first");
    text_add(&text, "second");
    const char *bytes = text.bytes;
    str_take(&field, &text);
    assert_ptr_equal(field, bytes);
    assert_null(text.bytes);
    str_take(&field, &text);
    assert_string_equal(field, "");
    str_set(&field, NULL);
    assert_string_equal(field, "");
    free(field);
}

static void invalid_percent_escapes_are_kept(void **state)
{
    (void)state;
    char string[] = "a%20b%2Fc%2f100%%4g%4";
    str_percent_decode(string);
    assert_string_equal(string, "a b/c/100%%4g%4");
    assert_int_equal(hex_digit('F'), 15);
    assert_int_equal(hex_digit('g'), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_parsed_strictly),
        cmocka_unit_test(names_are_listed_as_a_whole),
        cmocka_unit_test(quotients_are_known_or_unknown),
        cmocka_unit_test(text_grows_and_formats),
        cmocka_unit_test(fixed_buffers_are_truncated_not_overrun),
        cmocka_unit_test(list_items_are_read_in_order),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(invalid_bytes_are_repaired),
        cmocka_unit_test(an_escape_is_never_truncated),
        cmocka_unit_test(newlines_and_own_colors_are_kept),
        cmocka_unit_test(errors_are_escaped),
        cmocka_unit_test(log_lines_are_escaped),
        cmocka_unit_test(terminal_control_sequences_are_escaped),
        cmocka_unit_test(invalid_percent_escapes_are_kept),
        cmocka_unit_test(a_field_owns_a_copy_or_takes_the_bytes),
    };
    return RUN_TESTS(tests);
}
