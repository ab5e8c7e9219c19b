/* Secrets are redacted by their values, in any output. */
#include "support/unit.h"

#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/secret.h"
#include "core/text.h"

static const char *redacted(const char *given)
{
    static char string[400];
    str_copy(string, sizeof string, given);
    secret_hide(string);
    return string;
}

static void values_are_redacted_wherever_they_occur(void **state)
{
    (void)state;
    secret_add("sk-first\n");
    secret_add("sk-first-and-longer");
    secret_add("abc");    /* too short to be distinguished from a word */
    secret_add("ollama"); /* placeholders where no key is needed */
    assert_string_equal(redacted("a sk-first, sk-firstsk-first"), "a ***, ******");
    assert_string_equal(redacted("sk-first-and-longer"), "***");
    assert_string_equal(redacted("sk-firs abc ollama"), "sk-firs abc ollama");
    struct error why;
    err_set(&why, ERR_DENIED, "%0300d Incorrect key: sk-first", 0);
    assert_null(strstr(why.text, "sk-"));
    err_set(&why, ERR_DENIED, "%0290d Incorrect key: sk-first", 0); /* cut off in the middle */
    assert_null(strstr(why.text, "sk-"));
}

static char logged[600];

static void keep_line(enum log_level level, const char *line)
{
    (void)level;
    str_copy(logged, sizeof logged, line);
}

static void log_lines_are_redacted(void **state)
{
    (void)state;
    log_to(keep_line, LOG_WARN);
    secret_add("sk-logged-key");
    log_warn("the server says %s", "sk-logged-key");
    log_to(NULL, LOG_WARN);
    assert_string_equal(logged, "the server says ***");
}

static void headers_and_logins_are_redacted_in_each_encoding(void **state)
{
    (void)state;
    secret_add_header("Bearer header-key");
    secret_add_login("me", "pass:w\xC3\xB6rd");
    assert_string_equal(redacted("key header-key"), "key ***");
    assert_string_equal(redacted("pass:w\xC3\xB6rd"), "***");
    assert_string_equal(redacted("Basic bWU6cGFzczp3w7ZyZA=="),
                        "Basic ***"); /* as Python's base64 encodes it */
}

static void redacted_json_is_valid(void **state)
{
    (void)state;
    static const struct {
        const char *given, *expected;
    } CASES[] = {
        {"{\"tokens-of-n\":1,\"a\":\"tokens-of-n\"}",
         "{\"tokens-of-n\":1,\"a\":\"***\"}"}, /* keys are not redacted */
        {"{\"a\" : \"x tokens-of-n y\", \"b\": [\"tokens-of-n\", 2]}",
         "{\"a\" : \"x *** y\", \"b\": [\"***\", 2]}"},
        {"{\"a\":\"\\tokens-of-n\"}",
         "{\"a\":\"\\tokens-of-n\"}"}, /* a tab escape, then another word */
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

static void secrets_are_found_in_commands_and_variables(void **state)
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
    assert_string_equal(redacted("columns-1,2 <|im_end|> 1000000"),
                        "columns-1,2 <|im_end|> 1000000");
    secret_add_environment(variables);
    secret_add_words(words);
    assert_string_equal(redacted("variable-one variable-two variable-three /home/variable/four"),
                        "*** *** variable-three /home/variable/four");
    assert_string_equal(redacted("word-one word-two word-three word-four --verbose word-five"),
                        "*** *** *** *** --verbose word-five");
}

static void every_key_of_thousands_of_clients_is_redacted(void **state)
{
    (void)state;
    enum { KEYS = 5000 };
    char key[64], said[160];
    for (unsigned i = 0; i < KEYS; i++) { /* keys of a vendor begin alike */
        snprintf(key, sizeof key, "sk-proj-%08x%06uAb", i * 2654435761U, i);
        secret_add_foreign(key);
        secret_add_foreign(key);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        struct text text = {0};
        snprintf(key, sizeof key, "sk-proj-%08x%06uAb", i * 2654435761U, i);
        snprintf(said, sizeof said, "no such key: %s, or sk-proj-%08x", key, i);
        text_add(&text, said);
        secret_hide_text(&text);
        snprintf(said, sizeof said, "no such key: ***, or sk-proj-%08x", i);
        assert_string_equal(text_get(&text), said);
        text_release(&text);
    }
}

/* Whatever the order in which they are added. */
static void the_longest_of_nested_keys_is_redacted(void **state)
{
    (void)state;
    static const char *const KEYS[] = {"nested0123456789ab-c-d", "nested0123456789ab",
                                       "nested0123456789ab-c", "nested0123456789ab-c-d-e"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        secret_add_foreign(KEYS[i]);
    assert_string_equal(redacted("nested0123456789ab-c-d-e!"), "***!");
    assert_string_equal(redacted("nested0123456789ab-c-d-!"), "***-!");
    assert_string_equal(redacted("nested0123456789ab-c!nested0123456789ab-"), "***!***-");
    assert_string_equal(redacted("nested0123456789a"), "nested0123456789a");
}

/* A key that a client sent is hidden in texts only, unless it is ours too. */
static void our_own_key_is_redacted_in_json_after_a_client_sent_it(void **state)
{
    (void)state;
    struct text json = {0};
    secret_add_foreign("shared0123456789ab");
    text_add(&json, "{\"a\":\"shared0123456789ab\"}");
    secret_hide_json(&json);
    assert_string_equal(text_get(&json), "{\"a\":\"shared0123456789ab\"}");
    secret_add("shared0123456789ab");
    secret_hide_json(&json);
    assert_string_equal(text_get(&json), "{\"a\":\"***\"}");
    text_release(&json);
}

/* Last: it fills the memory for keys of clients. */
static void texts_are_withheld_when_there_are_too_many_keys(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 16 };
    static char key[LENGTH + 1];
    char line[40];
    struct text text = {0};
    memset(key, 'k', LENGTH);
    for (unsigned i = 0; i <= SECRET_FOREIGN_MAX / LENGTH; i++) {
        snprintf(key, 20, "many%015u", i);
        key[19] = 'k';
        secret_add_foreign(key);
    }
    secret_add_foreign("unknown0123456789");
    text_add(&text, "your key is unknown0123456789");
    secret_hide_text(&text);
    assert_string_equal(text_get(&text), "***");
    secret_one_line(line, sizeof line, "unknown0123456789", 17);
    assert_string_equal(line, "***");
    assert_string_equal(redacted("our own line"), "our own line");
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_redacted_wherever_they_occur),
        cmocka_unit_test(log_lines_are_redacted),
        cmocka_unit_test(headers_and_logins_are_redacted_in_each_encoding),
        cmocka_unit_test(redacted_json_is_valid),
        cmocka_unit_test(secrets_are_found_in_commands_and_variables),
        cmocka_unit_test(every_key_of_thousands_of_clients_is_redacted),
        cmocka_unit_test(the_longest_of_nested_keys_is_redacted),
        cmocka_unit_test(our_own_key_is_redacted_in_json_after_a_client_sent_it),
        cmocka_unit_test(texts_are_withheld_when_there_are_too_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
