/* Which addresses a server may listen on without a token, and which Host headers it accepts. */
#include "support/unit.h"
#include "port/http.h"

#include <string.h>

#include "core/text.h"
#include "port/http_server.h"
#include "port/url.h"

static void a_non_loopback_address_needs_a_token(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *address, *token;
        bool is_open;
        const char *said; /* NULL: allowed */
    } CASES[] = {
        {"127.0.0.1", NULL, false, NULL},
        {"::1", NULL, false, NULL},
        {"localhost", NULL, false, NULL},
        {"0.0.0.0", NULL, false, "set a token"},
        {"::", NULL, false, "set a token"},
        {"192.0.2.1", "long enough", false, "not one of its interfaces"},
        {"0.0.0.0", NULL, true, NULL},
        {"0.0.0.0", "long enough", false, NULL},
        {"127.0.0.1", "short", false, "too short"},
        {"no address", NULL, false, "not an address of this machine"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct error why = {0};
        enum err err = http_access_check(CASES[i].address, CASES[i].token, CASES[i].is_open,
                                         "set a token", &why);
        assert_int_equal(err, CASES[i].said ? ERR_USAGE : ERR_OK);
        if (CASES[i].said)
            assert_non_null(strstr(why.text, CASES[i].said));
    }
}

static void foreign_host_headers_are_rejected(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const char *const ALLOWED[] = {"lab.example", "10.0.0.7"};
    static const struct {
        const char *host;
        bool is_ours;
    } CASES[] = {
        {"192.168.1.5:8420", true},
        {"192.168.1.5", true},
        {"localhost", true},
        {"LOCALHOST:1", true},
        {"127.0.0.1:8420", true},
        {"127.8.8.8", true},
        {"[::1]:8420", true},
        {"lab.example", true},
        {"Lab.Example:443", true},
        {"10.0.0.7:80", true},
        {NULL, false},
        {"", false},
        {"evil.example", false},
        {"localhost.evil.example", false},
        {"127.0.0.1.nip.io", false},
        {"lab.example.evil", false},
        {"evil@lab.example", false},
        {"lab.example:x", false},
        {"lab.example:", false},
        {"[::1", false},
        {"[::1]x", false},
        {":80", false},
        {"192.168.1.6", false},
        {"user@127.0.0.1", false},
        {"user:password@127.0.0.1:80", false},
        {"127.0.0.1/", false},
        {"127.0.0.1?", false},
        {"127.0.0.1#lab.example", false},
        {"127.0.0.1 ", false},
        {"127.0.0.1:8420000", false},
        {"[::1%lo]", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(http_access_is_host(CASES[i].host, "192.168.1.5", ALLOWED, 2),
                         CASES[i].is_ours);
}

/* DNS rebinding needs a name. */
static void a_listener_on_all_addresses_accepts_numeric_hosts(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *address, *host;
        bool is_ours;
    } CASES[] = {
        {"0.0.0.0", "10.1.2.3:9860", true}, {"::", "[2001:db8::1]:9860", true},
        {"::", "10.1.2.3:9860", true},      {"0.0.0.0", "gpu-node:9860", false},
        {"0.0.0.0", "10.1.2", false},       {"0.0.0.0", "0xa.1.2.3", false},
        {"10.1.2.3", "10.1.2.4", false},    {"0.0.0.0", "10.1.2.3.nip.io", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(http_access_is_host(CASES[i].host, CASES[i].address, NULL, 0),
                         CASES[i].is_ours);
}

static unsigned guess(struct http_access *access, const char *peer, unsigned count, bool is_same,
                      nanos now)
{
    unsigned refused = 0;
    char token[20];
    for (unsigned i = 0; i < count; i++) {
        str_format(token, sizeof token, "guess-%u", is_same ? 0 : i);
        refused += http_access_count_wrong(access, peer, http_access_token(0, token), now);
    }
    return refused;
}

static void wrong_tokens_limit_their_address(void **state)
{
    (void)state;
    const nanos start = 1000 * NS_PER_S;
    struct http_access *access =
        http_access_new(&(struct http_access_options){.address = "::", .token = "long enough"});
    assert_int_equal(guess(access, "10.0.0.1", 9, false, start), 9);
    assert_false(http_access_is_limited(access, "10.0.0.1", start));
    assert_int_equal(guess(access, "10.0.0.1", 30, false, start), 1);
    assert_true(http_access_is_limited(access, "10.0.0.1", start));
    assert_true(http_access_is_limited(access, "10.0.0.1", start + 59 * NS_PER_S));
    assert_false(http_access_is_limited(access, "10.0.0.1", start + 61 * NS_PER_S));
    assert_int_equal(guess(access, "10.0.0.1", 30, false, start + 61 * NS_PER_S), 10);
    assert_false(http_access_is_limited(access, "10.0.0.2", start));
    /* A program with an old token is refused, but locks nobody else out. */
    assert_int_equal(guess(access, "10.0.0.2", 30, true, start), 10);
    assert_false(http_access_is_limited(access, "10.0.0.2", start));
    /* The addresses of one IPv6 network are one. */
    assert_int_equal(guess(access, "2001:db8::1", 6, false, start), 6);
    assert_int_equal(guess(access, "2001:db8::2", 10, false, start), 4);
    assert_true(http_access_is_limited(access, "2001:db8::3", start));
    assert_false(http_access_is_limited(access, "2001:db8:1::1", start));
    http_access_free(access);
}

static void urls_of_the_own_address_and_port_are_recognized(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *address, *url;
        bool reaches;
    } CASES[] = {
        {"127.0.0.1", "http://127.0.0.1:8430", true},
        {"127.0.0.1", "http://127.0.0.1:8431", false},
        {"127.0.0.1", "http://localhost:8430/v1", true},
        {"127.0.0.1", "http://127.0.0.2:8430", false},
        {"0.0.0.0", "http://127.0.0.2:8430", true},
        {"0.0.0.0", "http://192.0.2.1:8430", false},
        {"127.0.0.1", "http://0.0.0.0:8430", true},
        {"::1", "http://[::1]:8430", true},
        {"127.0.0.1", "http://none.invalid:8430", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct url url;
        assert_int_equal(url_read(CASES[i].url, &url, NULL), ERR_OK);
        assert_int_equal(http_access_reaches(CASES[i].address, 8430, &url), CASES[i].reaches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_non_loopback_address_needs_a_token),
        cmocka_unit_test(foreign_host_headers_are_rejected),
        cmocka_unit_test(a_listener_on_all_addresses_accepts_numeric_hosts),
        cmocka_unit_test(wrong_tokens_limit_their_address),
        cmocka_unit_test(urls_of_the_own_address_and_port_are_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
