/* Rate limits of clients, and browser sessions, at simulated times. */
#include "support/unit.h"

#include <string.h>

#include "serve/api.h"

#define START (1000 * NS_PER_S)

static unsigned allowed(struct access *access, const char *peer, unsigned last_request, nanos now)
{
    unsigned count = 0;
    for (unsigned i = 0; i < last_request; i++)
        count += access_check_rate(access, peer, now);
    return count;
}

static void each_address_has_a_burst_and_a_rate_limit(void **state)
{
    (void)state;
    struct access *access = access_new();
    assert_int_equal(allowed(access, "10.0.0.1", 5000, START), ACCESS_BURST);
    assert_int_equal(allowed(access, "10.0.0.2", 10, START),
                     10); /* each address has its own limit */
    assert_int_equal(allowed(access, "10.0.0.1", 5000, START + NS_PER_S), ACCESS_RATE);
    assert_int_equal(allowed(access, "10.0.0.1", 5000, START + 100 * NS_PER_S), ACCESS_BURST);
    access_free(access);
}

static bool has_cookie(const struct access *access, const char *before, const char *id,
                       const char *after, nanos now)
{
    char cookies[200];
    str_format(cookies, sizeof cookies, "%s%s%s", before, id, after);
    return access_has_session(access, cookies, now);
}

static void a_session_is_found_until_it_expires(void **state)
{
    (void)state;
    struct access *access = access_new();
    char id[SESSION_ID_MAX], other[SESSION_ID_MAX];
    assert_true(access_new_session(access, START, id));
    assert_true(access_new_session(access, START, other));
    assert_string_not_equal(id, other);
    assert_int_equal(strlen(id), SESSION_ID_MAX - 1);
    assert_true(has_cookie(access, "ipw_session=", id, "", START));
    assert_true(has_cookie(access, "a=b; ipw_session=", id, "; c=d", START));
    assert_false(has_cookie(access, "xipw_session=", id, "", START));
    assert_false(has_cookie(access, "ipw_session=", id, "0", START));
    assert_false(access_has_session(access, NULL, START));
    assert_false(access_has_session(access, "ipw_session=", START));
    assert_false(has_cookie(access, "ipw_session=", "00000000000000000000000000000000", "", START));
    assert_false(has_cookie(access, "ipw_session=", id, "", START + 13 * 3600 * NS_PER_S));
    access_free(access);
}

static void many_sessions_replace_the_oldest(void **state)
{
    (void)state;
    struct access *access = access_new();
    char first[SESSION_ID_MAX], id[SESSION_ID_MAX];
    assert_true(access_new_session(access, START, first));
    for (int i = 1; i <= 256; i++)
        assert_true(access_new_session(access, START + i, id));
    assert_false(has_cookie(access, "ipw_session=", first, "", START + 300));
    assert_true(has_cookie(access, "ipw_session=", id, "", START + 300));
    access_free(access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_a_burst_and_a_rate_limit),
        cmocka_unit_test(a_session_is_found_until_it_expires),
        cmocka_unit_test(many_sessions_replace_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
