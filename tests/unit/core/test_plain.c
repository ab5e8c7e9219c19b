/* Text of strangers: nothing of it may steer a terminal or show another line than it is. */
#include "core/plain.h"

#include <string.h>

#include "core/err.h"
#include "core/log.h"
#include "core/text.h"
#include "support/unit.h"

static const struct {
    const char *from, *to;
} CASES[] = {
    {"", ""},
    {"model.layers.0/Conv", "model.layers.0/Conv"},
    {"µ ± Größe 模型 🙂", "µ ± Größe 模型 🙂"},
    {"red\x1b[31m", "red?[31m"},
    {"a\rb\nc\td\x7f", "a?b?c?d?"},
    {"csi \xc2\x9b"
     "31m",
     "csi ?31m"},                            /* U+009B: an escape in one character */
    {"x\xe2\x80\xaegpj.exe", "x?gpj.exe"},   /* U+202E: from right to left */
    {"x\xe2\x81\xa6y\xe2\x81\xa9", "x?y?"},  /* isolates */
    {"x\xe2\x80\x8f\xd8\x9c", "x??"},        /* marks */
    {"x\xe2\x80\xa8y", "x?y"},               /* U+2028: a line end */
    {"a\xff\xfe z", "a?? z"},                /* no UTF-8 */
    {"\xc0\x80 \xed\xa0\x80 z", "?? ??? z"}, /* overlong, a surrogate */
    {"cut \xe2\x80", "cut "},                /* as by a buffer that was full */
    {"cut \xf0\x9f\x99", "cut "},
    {"stray \x80", "stray ?"},
};

static void test_what_is_left(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[64];
        strcpy(text, CASES[i].from);
        assert_int_equal(str_is_plain(text), strcmp(CASES[i].from, CASES[i].to) == 0);
        str_plain(text);
        assert_string_equal(text, CASES[i].to);
        assert_true(str_is_plain(text));
    }
}

static void test_messages(void **state)
{
    (void)state;
    struct error why = {0};
    err_set(&why, ERR_BAD_VALUE, "%s: no key '%s'", "a.json", "\x1b]0;mine\x07\r\xe2\x80\xae");
    assert_string_equal(why.text, "a.json: no key '?]0;mine?"
                                  "?"
                                  "?'");
}

static char told[128];

static void keep(enum log_level level, const char *line)
{
    (void)level;
    strncpy(told, line, sizeof told - 1);
}

static void test_log(void **state)
{
    (void)state;
    log_to(keep, LOG_WARN);
    log_warn("weights in %s", "\x1b[2J\n");
    log_to(NULL, LOG_WARN);
    assert_string_equal(told, "weights in ?[2J?");
}

static void what_controls_a_terminal_is_no_part_of_a_text(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"llama-3.1 8B", "llama-3.1 8B"},
        {"\x1b[2Ja\tb\n\x7f", "?[2Ja?b??"},
        {"Modell f\xC3\xBCr 模型 🦙", "Modell f\xC3\xBCr 模型 🦙"},
        {"a\xC2\x9B"
         "2Jb",
         "a?2Jb"},                    /* the same as ESC [ in one character */
        {"\xff\xC3_\xE2\x82", "??_"}, /* no text, and one that was cut */
        {"", ""},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        char text[64];
        str_copy(text, sizeof text, PAIRS[i][0]);
        assert_ptr_equal(str_plain(text), text);
        assert_string_equal(text, PAIRS[i][1]);
        assert_string_equal(plain_text(PAIRS[i][0]).text, PAIRS[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_controls_a_terminal_is_no_part_of_a_text),
        cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_log),
    };
    return RUN_TESTS(tests);
}
