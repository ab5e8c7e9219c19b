/* test: valgrind */
/* Which headers the proxy forwards, and the API keys and tokens in them. */
#include "support/unit.h"

#include "core/params.h"
#include "core/secret.h"
#include "proxy/observer.h"

#define TOKEN "the proxy's token"
#define KEY   "sk-0123456789abcdef"

static void tokens_and_connection_headers_are_not_forwarded(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *connection;
        bool is_forwarded;
    } CASES[] = {
        {"Accept", "*/*", NULL, true},
        {"Authorization", "Bearer " KEY, NULL, true},
        {"authorization", "bearer " TOKEN, NULL, false},
        {"Authorization", "Basic " TOKEN, NULL, true}, /* not our token, but a login */
        {"X-Api-Key", TOKEN, NULL, false},
        {"api-key", TOKEN, NULL, false},
        {"api-key", KEY, NULL, true},
        {"X-Other", TOKEN, NULL, true}, /* not a header that authorizes */
        {"x-ipw-token", TOKEN, NULL, false},
        {"X-IPW-Query", "7", NULL, false},
        {"Host", "localhost", NULL, false},
        {"Expect", "100-continue", NULL, false},
        {"Content-Length", "7", NULL, false},
        {"Keep-Alive", "timeout=5", NULL, false},
        {"X-Hop", "1", "close, x-hop", false},
        {"X-Hop", "1", "close, x-hops", true},
        {"x-tenant", "theirs", NULL, false}, /* the options replace it */
    };
    struct params ours = {0};
    assert_int_equal(params_set(&ours, "X-Tenant", "ours"), ERR_OK);
    const struct proxy_options options = {.access = {.token = TOKEN}, .upstream_headers = &ours};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (header_is_forwarded(&options, CASES[i].name, CASES[i].value, CASES[i].connection) !=
            CASES[i].is_forwarded)
            fail_msg("%s: %s", CASES[i].name, CASES[i].value);
    params_release(&ours);
}

static struct client_keys keys_of(const char *name, const char *value)
{
    struct client_keys keys = {0};
    keys_take(&keys, "Accept", "*/*");
    keys_take(&keys, name, value);
    keys_take(&keys, name, "a second header of this name");
    return keys;
}

static void a_client_needs_the_token_in_a_header_that_authorizes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool is_authorized;
    } CASES[] = {
        {"x-ipw-token", TOKEN, true},    {"Authorization", "Bearer " TOKEN, true},
        {"Authorization", TOKEN, false}, {"x-api-key", TOKEN, true},
        {"Api-Key", TOKEN, true},        {"api-key", TOKEN "s", false},
        {"api-key", "", false},          {"X-Other", TOKEN, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client_keys keys = keys_of(CASES[i].name, CASES[i].value);
        if (keys_are_authorized(&keys, TOKEN) != CASES[i].is_authorized)
            fail_msg("%s: %s", CASES[i].name, CASES[i].value);
        assert_true(keys_are_authorized(&keys, NULL));
    }
}

/* The label of a client's key, and the lines that the proxy adds. */
static const char *labeled(const char *name, const char *value, const char *expected_lines)
{
    static char label[64];
    struct text lines = {0};
    const struct proxy_options options = {.access = {.token = TOKEN}, .upstream_key = "ours"};
    struct client_keys keys = keys_of(name, value);
    label[0] = '\0';
    keys_label(&keys, &options, label, sizeof label);
    header_add_ours(&lines, &options, &keys);
    assert_string_equal(text_get(&lines), expected_lines);
    text_release(&lines);
    return label;
}

/* A server may echo any of them. */
static void all_keys_of_a_client_are_hidden(void **state)
{
    (void)state;
    char label[64] = "", said[] = "3v3ryK3yH1dd3n bG9naW46c2VjcmV0 0th3rK3yH1dd3n";
    const struct proxy_options options = {.access = {.token = TOKEN}};
    struct client_keys keys = {0};
    keys_take(&keys, "Authorization", "Basic bG9naW46c2VjcmV0");
    keys_take(&keys, "X-Api-Key", "3v3ryK3yH1dd3n");
    keys_take(&keys, "api-key", "0th3rK3yH1dd3n");
    keys_label(&keys, &options, label, sizeof label);
    secret_hide(said);
    assert_string_equal(said, "*** *** ***");
}

static void keys_are_labels_and_clients_without_one_use_ours(void **state)
{
    (void)state;
    static const char OURS[] = "Authorization: Bearer ours";
    char label[64];
    snprintf(label, sizeof label, "%s", labeled("Authorization", "Bearer " KEY, ""));
    assert_int_equal(strncmp(label, "key-", 4), 0);
    assert_int_equal(strlen(label), 12);
    assert_string_equal(labeled("x-api-key", KEY, ""), label);
    assert_string_not_equal(labeled("x-api-key", KEY "0", ""), label);
    assert_string_equal(labeled("Authorization", "Basic bG9naW4=", ""), "");
    assert_string_equal(labeled("Authorization", "Bearer " TOKEN, OURS), "");
    assert_string_equal(labeled("x-ipw-token", TOKEN, OURS), "");
}

/* Clients of Anthropic's API send their key in x-api-key, or as OpenAI's clients do. */
static void our_key_is_sent_where_the_service_expects_it(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *expected;
    } CASES[] = {
        {"x-api-key", TOKEN, "x-api-key: ours"},
        {"x-ipw-token", TOKEN, "x-api-key: ours"},
        {"Authorization", "Bearer " TOKEN, "Authorization: Bearer ours"},
        {"x-api-key", KEY, ""},
        {"Authorization", "Bearer " KEY, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text lines = {0};
        const struct proxy_options options = {.access = {.token = TOKEN}, .upstream_key = "ours"};
        struct client_keys keys = keys_of(CASES[i].name, CASES[i].value);
        keys_take(&keys, "Anthropic-Version", "2023-06-01");
        header_add_ours(&lines, &options, &keys);
        assert_string_equal(text_get(&lines), CASES[i].expected);
        text_release(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_connection_headers_are_not_forwarded),
        cmocka_unit_test(a_client_needs_the_token_in_a_header_that_authorizes),
        cmocka_unit_test(all_keys_of_a_client_are_hidden),
        cmocka_unit_test(keys_are_labels_and_clients_without_one_use_ours),
        cmocka_unit_test(our_key_is_sent_where_the_service_expects_it),
    };
    return RUN_TESTS(tests);
}
