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

static bool is_host(const char *host, const char *address, const char *const *allowed, size_t count)
{
    struct error why = {0};
    struct http_access *access = http_access_new(&(struct http_access_options){
        .address = address, .allowed = allowed, .allowed_count = count});
    enum err err = http_access_check_host(access, host, &why);
    http_access_free(access);
    return !err;
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
        assert_int_equal(is_host(CASES[i].host, "192.168.1.5", ALLOWED, 2), CASES[i].is_ours);
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
        assert_int_equal(is_host(CASES[i].host, CASES[i].address, NULL, 0), CASES[i].is_ours);
}

static void foreign_origins_are_rejected(void **state)
{
    (void)state;
    static const char *const ALLOWED[] = {"lab.example", "http://web.example:3000", "app://editor"};
    static const struct {
        const char *origin, *host;
        bool is_tls, is_ours;
    } CASES[] = {
        {NULL, "localhost", false, true},
        {"http://localhost:8430", "localhost:8430", false, true},
        {"https://localhost:8430", "localhost:8430", false, true},
        {"https://localhost:8430", "localhost:8430", true, true},
        {"http://localhost:8430", "localhost:8430", true, false},
        {"http://localhost:3000", "localhost:8430", false, false},
        {"http://evil.example", "localhost", false, false},
        {"http://localhost", NULL, false, false},
        {"null", "localhost", false, false},
        {"", "localhost", false, false},
        {"localhost", "localhost", false, false},
        {"lab.example", "localhost", false, false},
        {"http://lab.example", "localhost", false, false},
        {"http://web.example:3000", "localhost", false, true},
        {"http://web.example", "localhost", false, false},
        {"app://editor", "localhost", true, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct error why = {0};
        struct http_access *access =
            http_access_new(&(struct http_access_options){.address = "127.0.0.1",
                                                          .allowed = ALLOWED,
                                                          .allowed_count = 3,
                                                          .is_tls = CASES[i].is_tls});
        enum err err = http_access_check_origin(access, CASES[i].origin, CASES[i].host, &why);
        assert_int_equal(err, CASES[i].is_ours ? ERR_OK : ERR_DENIED);
        http_access_free(access);
    }
}

#define START (1000 * NS_PER_S)

/* Of `count` requests with different wrong tokens or the same one, how many are refused, but not limited. */
static unsigned guess(struct http_access *access, const char *peer, unsigned count, bool is_same,
                      nanos now)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < count; i++)
        refused += http_access_judge(access, peer, false, is_same ? 7 : 1000 + i, false, now) ==
                   HTTP_REFUSED;
    return refused;
}

static enum http_admission right(struct http_access *access, const char *peer, bool is_trusted,
                                 nanos now)
{
    return http_access_judge(access, peer, is_trusted, http_access_token("long enough"), true, now);
}

static void wrong_tokens_limit_their_address(void **state)
{
    (void)state;
    struct http_access *access =
        http_access_new(&(struct http_access_options){.address = "::", .token = "long enough"});
    assert_int_equal(guess(access, "10.0.0.1", 9, false, START), 9);
    assert_int_equal(right(access, "10.0.0.1", false, START), HTTP_ADMITTED);
    assert_int_equal(guess(access, "10.0.0.1", 30, false, START), 1);
    assert_int_equal(right(access, "10.0.0.1", false, START + 59 * NS_PER_S), HTTP_LIMITED);
    assert_int_equal(right(access, "10.0.0.1", true, START), HTTP_ADMITTED);
    assert_int_equal(http_access_judge(access, "10.0.0.1", false, 0, false, START), HTTP_REFUSED);
    assert_int_equal(right(access, "10.0.0.2", false, START), HTTP_ADMITTED);
    assert_int_equal(right(access, "10.0.0.1", false, START + 61 * NS_PER_S), HTTP_ADMITTED);
    assert_int_equal(guess(access, "10.0.0.1", 30, false, START + 61 * NS_PER_S), 10);
    /* A program with an old token is refused, but locks nobody else out. */
    assert_int_equal(guess(access, "10.0.0.2", 30, true, START), 10);
    assert_int_equal(right(access, "10.0.0.2", false, START), HTTP_ADMITTED);
    /* The addresses of one IPv6 network are one. */
    assert_int_equal(guess(access, "2001:db8::1", 6, false, START), 6);
    assert_int_equal(guess(access, "2001:db8::2", 10, false, START), 4);
    assert_int_equal(right(access, "2001:db8::3", false, START), HTTP_LIMITED);
    assert_int_equal(right(access, "2001:db8:0:1::1", false, START), HTTP_ADMITTED);
    http_access_free(access);
}

static void many_addresses_do_not_reset_a_limit(void **state)
{
    (void)state;
    struct http_access *access =
        http_access_new(&(struct http_access_options){.address = "::", .token = "long enough"});
    char peer[20];
    assert_int_equal(guess(access, "10.0.0.1", 30, false, START), 10);
    for (unsigned i = 0; i < 500; i++) {
        str_format(peer, sizeof peer, "10.1.%u.%u", i / 250, i % 250);
        assert_int_equal(guess(access, peer, 1, true, START + NS_PER_S), 1);
    }
    assert_int_equal(right(access, "10.0.0.1", false, START + 2 * NS_PER_S), HTTP_LIMITED);
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
        cmocka_unit_test(foreign_origins_are_rejected),
        cmocka_unit_test(wrong_tokens_limit_their_address),
        cmocka_unit_test(many_addresses_do_not_reset_a_limit),
        cmocka_unit_test(urls_of_the_own_address_and_port_are_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
