/* Which addresses a server may listen on without a token, and which Host headers it accepts. */
#include "support/unit.h"
#include "port/http.h"

#include <string.h>

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
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(http_access_is_host(CASES[i].host, "192.168.1.5", ALLOWED, 2),
                         CASES[i].is_ours);
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
        cmocka_unit_test(urls_of_the_own_address_and_port_are_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
