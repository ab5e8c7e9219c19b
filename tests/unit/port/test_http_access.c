/* Which addresses a server may listen on without a token, and which hosts of requests are its own. */
#include "support/unit.h"
#include "port/http.h"

#include <string.h>

#include "port/http_server.h"

static void an_address_that_others_reach_needs_a_token(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *address, *token;
        bool is_open;
        const char *said; /* NULL: it is fine */
    } CASES[] = {
        {"127.0.0.1", NULL, false, NULL},
        {"::1", NULL, false, NULL},
        {"localhost", NULL, false, NULL},
        {"0.0.0.0", NULL, false, "set a token"},
        {"::", NULL, false, "set a token"},
        {"10.1.2.3", NULL, false, "set a token"},
        {"0.0.0.0", NULL, true, NULL},
        {"0.0.0.0", "long enough", false, NULL},
        {"127.0.0.1", "short", false, "too short"},
        {"no address", NULL, false, "no address to listen on"},
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

static void foreign_hosts_are_not_ours(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_that_others_reach_needs_a_token),
        cmocka_unit_test(foreign_hosts_are_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
