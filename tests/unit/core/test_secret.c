/* Secrets are found by their values, in whatever they are written. */
#include "support/unit.h"

#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/secret.h"
#include "core/text.h"

static const char *hidden(const char *given)
{
    static char string[400];
    str_copy(string, sizeof string, given);
    secret_hide(string);
    return string;
}

static void values_are_hidden_wherever_they_occur(void **state)
{
    (void)state;
    secret_add("sk-first\n");
    secret_add("sk-first-and-longer");
    secret_add("abc");    /* too short to be told from a word */
    secret_add("ollama"); /* what is written where no key is needed */
    assert_string_equal(hidden("a sk-first, sk-firstsk-first"), "a ***, ******");
    assert_string_equal(hidden("sk-first-and-longer"), "***");
    assert_string_equal(hidden("sk-firs abc ollama"), "sk-firs abc ollama");
    struct error why;
    err_set(&why, ERR_DENIED, "%0300d Incorrect key: sk-first", 0);
    assert_null(strstr(why.text, "sk-"));
    err_set(&why, ERR_DENIED, "%0290d Incorrect key: sk-first", 0); /* cut in its middle */
    assert_null(strstr(why.text, "sk-"));
}

static char logged[600];

static void keep_line(enum log_level level, const char *line)
{
    (void)level;
    str_copy(logged, sizeof logged, line);
}

static void the_log_has_none(void **state)
{
    (void)state;
    log_to(keep_line, LOG_WARN);
    secret_add("sk-logged-key");
    log_warn("the server says %s", "sk-logged-key");
    log_to(NULL, LOG_WARN);
    assert_string_equal(logged, "the server says ***");
}

static void headers_and_logins_have_several_forms(void **state)
{
    (void)state;
    secret_add_header("Bearer header-key");
    secret_add_login("me", "pass:w\xC3\xB6rd");
    assert_string_equal(hidden("key header-key"), "key ***");
    assert_string_equal(hidden("pass:w\xC3\xB6rd"), "***");
    assert_string_equal(hidden("Basic bWU6cGFzczp3w7ZyZA=="),
                        "Basic ***"); /* as python's base64 has it */
}

static void json_stays_json(void **state)
{
    (void)state;
    static const struct {
        const char *given, *expected;
    } CASES[] = {
        {"{\"tokens-of-n\":1,\"a\":\"tokens-of-n\"}",
         "{\"tokens-of-n\":1,\"a\":\"***\"}"}, /* a key is none */
        {"{\"a\" : \"x tokens-of-n y\", \"b\": [\"tokens-of-n\", 2]}",
         "{\"a\" : \"x *** y\", \"b\": [\"***\", 2]}"},
        {"{\"a\":\"\\tokens-of-n\"}",
         "{\"a\":\"\\tokens-of-n\"}"}, /* a tab, and then another word */
        {"{\"a\":\"\\\\tokens-of-n\"}", "{\"a\":\"\\\\***\"}"},
        {"{\"a\":\"say \\\"quo\\\\ted\\\" now\"}", "{\"a\":\"say \\\"***\\\" now\"}"},
        {"{\"a\":\"\"}", "{\"a\":\"\"}"},
    };
    secret_add("tokens-of-n");
    secret_add("quo\\ted");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text json = {0};
        text_add(&json, CASES[i].given);
        secret_hide_json(&json);
        assert_string_equal(text_get(&json), CASES[i].expected);
        text_release(&json);
    }
}

static void commands_and_variables_are_searched(void **state)
{
    (void)state;
    char *variables[] = {"SOME_API_KEY=variable-one", "HF_TOKEN=variable-two",
                         "KEYBOARD=variable-three", "SSH_KEY=/home/variable/four", NULL};
    char *words[] = {"tool",
                     "--api-key",
                     "word-one",
                     "--token=word-two",
                     "Authorization: Bearer word-three",
                     "http://me:word-four@host/x",
                     "--key",
                     "--verbose",
                     "http://host:8000/word-five",
                     NULL};
    char *plain[] = {"sort",       "--key",        "columns-1,2", "--eos-token",
                     "<|im_end|>", "--max-tokens", "1000000",     NULL};
    secret_add_words(plain);
    assert_string_equal(hidden("columns-1,2 <|im_end|> 1000000"), "columns-1,2 <|im_end|> 1000000");
    secret_add_environment(variables);
    secret_add_words(words);
    assert_string_equal(hidden("variable-one variable-two variable-three /home/variable/four"),
                        "*** *** variable-three /home/variable/four");
    assert_string_equal(hidden("word-one word-two word-three word-four --verbose word-five"),
                        "*** *** *** *** --verbose word-five");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_hidden_wherever_they_occur), cmocka_unit_test(the_log_has_none),
        cmocka_unit_test(headers_and_logins_have_several_forms), cmocka_unit_test(json_stays_json),
        cmocka_unit_test(commands_and_variables_are_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
