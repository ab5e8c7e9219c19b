/* test: valgrind */
/* URLs as libcurl parses them: which host gets the credentials. */
#include "support/unit.h"

#include "core/secret.h"
#include "core/text.h"
#include "port/http.h"
#include "port/url.h"

static void the_host_is_parsed_like_libcurl(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *given, *host, *port, *shown;
        bool is_loopback;
    } CASES[] = {
        {"http://Example.org", "example.org", "80", "http://Example.org", false},
        {"https://example.org/a?b", "example.org", "443", "https://example.org/a?b", false},
        {"http://127.0.0.1:8000/v1", "127.0.0.1", "8000", "http://127.0.0.1:8000/v1", true},
        {"http://127.9.9.9", "127.9.9.9", "80", "http://127.9.9.9", true},
        {"http://[::1]:9/", "[::1]", "9", "http://[::1]:9/", true},
        {"http://localhost", "localhost", "80", "http://localhost", false},
        {"http://127.0.0.1.example.org", "127.0.0.1.example.org", "80",
         "http://127.0.0.1.example.org", false},
        {"http://127.0.0.1@example.org/x", "example.org", "80", "http://example.org/x", false},
        {"http://example.org/x@127.0.0.1", "example.org", "80", "http://example.org/x@127.0.0.1",
         false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct url url;
        struct error why;
        char shown[200];
        if (url_read(CASES[i].given, &url, &why))
            fail_msg("%s", why.text);
        assert_string_equal(url.host, CASES[i].host);
        assert_string_equal(url.port, CASES[i].port);
        assert_int_equal(url_is_loopback(&url), CASES[i].is_loopback);
        url_hide_login(CASES[i].given, shown, sizeof shown);
        assert_true(str_equal_nocase(shown, CASES[i].shown));
    }
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    static const struct {
        const char *a, *b;
        bool same;
    } CASES[] = {
        {"http://h/a", "http://H:80/b?c", true},
        {"https://u:p@h", "https://h:443", true},
        {"http://h", "https://h", false},
        {"http://h:1", "http://h:2", false},
        {"http://h", "http://h.example.org", false},
        {"http://a@h", "http://h@a", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct url a, b;
        assert_int_equal(url_read(CASES[i].a, &a, NULL), ERR_OK);
        assert_int_equal(url_read(CASES[i].b, &b, NULL), ERR_OK);
        assert_int_equal(url_same_origin(&a, &b), CASES[i].same);
    }
}

static void passwords_are_registered_as_secrets(void **state)
{
    (void)state;
    SKIP_WITHOUT(http_available);
    struct url url;
    char text[] = "p%40ssword p@ssword bWU6cEBzc3dvcmQ="; /* as given, decoded, as sent by HTTP */
    assert_int_equal(url_read("http://me:p%40ssword@h/", &url, NULL), ERR_OK);
    secret_hide(text);
    assert_string_equal(text, "*** *** ***");
    struct error why;
    static const char *const BAD[] = {"http://me:hunter2@h:port/", "http://me:a@hunter2@h/",
                                      "me:hunter2@h", "ftp://me:hunter2@h", "http:///h"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(url_read(BAD[i], &url, &why), ERR_USAGE);
        assert_null(strstr(why.text, "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_parsed_like_libcurl),
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(passwords_are_registered_as_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
