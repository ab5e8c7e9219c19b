/* Database addresses: what is shown and stored of them never has a password. */
#include "support/unit.h"

#include <stdlib.h>

#include "core/secret.h"
#include "db/db.h"

static void passwords_are_neither_shown_nor_stored(void **state)
{
    (void)state;
    static const struct {
        const char *given, *shown, *kept;
    } CASES[] = {
        {"postgres://lab/energy", "postgres://lab/energy", "postgres://lab/energy"},
        {"postgres://", "postgres://", "postgres://"},
        {"postgres:///energy?host=/run", "postgres:///energy", "postgres:///energy?host=/run"},
        {"postgres://me@lab/energy", "postgres://lab/energy", "postgres://me@lab/energy"},
        {"postgres://me:hunter22@lab:5/e?sslmode=require", "postgres://lab:5/e",
         "postgres://me@lab:5/e?sslmode=require"},
        {"postgresql://me:a/b@c:d@lab/e", "postgresql://lab/e", "postgresql://me@lab/e"},
        {"postgres://lab/e?user=me&password=hunter22&sslmode=require", "postgres://lab/e",
         "postgres://lab/e?user=me&sslmode=require"},
        {"postgres://lab/e?sslpassword=hunter22", "postgres://lab/e", "postgres://lab/e"},
        {"postgres://me:x@lab/e?user=a@b&password=hunter22", "postgres://lab/e",
         "postgres://me@lab/e?user=a@b"},
        {"postgres://lab/e?password=ab@hunter22", "postgres://lab/e", "postgres://lab/e"},
        {"postgres://me:hunter/22", "postgres://***", "postgres://me:hunter/22"},
        {"postgres://me:hunter/x?user=a@b&password=22", "postgres://***", "postgres://me?user=a@b"},
        {"sqlite:///srv/a@b?.db", "sqlite:///srv/a@b?.db", "sqlite:///srv/a@b?.db"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *shown = db_address_display(CASES[i].given);
        char *kept = db_address_without_password(CASES[i].given);
        assert_string_equal(shown, CASES[i].shown);
        assert_string_equal(kept, CASES[i].kept);
        free(shown);
        free(kept);
    }
}

/* A server may echo the password as sent, or as in the address. */
static void passwords_are_registered_as_secrets(void **state)
{
    (void)state;
    char said[] = "no role with 'p@ss/w%rd', given as p%40ss%2Fw%25rd, or correcthorse";
    assert_false(db_address_add_secret("postgres://me@lab/energy"));
    assert_true(db_address_add_secret("postgres://me:p%40ss%2Fw%25rd@lab/energy"));
    assert_true(db_address_add_secret("postgres://lab/e?password=correcthorse&x=y"));
    secret_hide(said);
    assert_string_equal(said, "no role with '***', given as ***, or ***");
}

/* What libpq would take for a host, a port or a name, and quote in a message. */
static void addresses_that_libpq_would_misread_are_refused(void **state)
{
    (void)state;
    static const char *const VALID[] = {
        "postgres://",
        "postgres:///energy?host=/run",
        "postgres://me:p%40ss%2Fw%25rd@lab:5432/energy",
        "postgres://me@[::1]:5432,other:1,third/e?sslmode=require&user=a@b",
        "postgresql://me:p:w@lab",
        "sqlite:///srv/a@b?.db",
    };
    static const char *const INVALID[] = {
        "postgres://me:PASS/w@lab/energy",
        "postgres://me:PASS@w@lab/energy",
        "postgres://me:12345/PASS@lab",
        "postgres://me:PASS%zz@lab/energy",
        "postgres://me:PASS%00@lab/energy",
        "postgres://me:PASS@[lab/energy",
        "postgres://lab:PASS/energy",
        "postgres://lab/e?password=PA=SS",
        "postgres://lab/e?PASS",
        "mysql://me:PASS@lab/energy",
        "host=lab password=PASS",
        "postgres://me:PASS@w/x@lab/energy",
    };
    struct error why;
    for (size_t i = 0; i < sizeof VALID / sizeof *VALID; i++)
        if (db_address_check(VALID[i], &why))
            fail_msg("%s: %s", VALID[i], why.text);
    for (size_t i = 0; i < sizeof INVALID / sizeof *INVALID; i++) {
        if (db_address_check(INVALID[i], &why) != ERR_USAGE)
            fail_msg("%s is accepted", INVALID[i]);
        assert_null(strstr(why.text, "PASS"));
    }
}

static void database_kind_follows_from_the_address(void **state)
{
    (void)state;
    assert_int_equal(db_address_kind("postgres://x"), DB_IS_POSTGRES);
    assert_int_equal(db_address_kind("postgresql://x"), DB_IS_POSTGRES);
    assert_int_equal(db_address_kind("sqlite:///x"), DB_IS_SQLITE);
    assert_int_equal(db_address_kind("http://x"), DB_IS_NONE);
    assert_int_equal(db_address_kind("runs/postgres"), DB_IS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_neither_shown_nor_stored),
        cmocka_unit_test(passwords_are_registered_as_secrets),
        cmocka_unit_test(addresses_that_libpq_would_misread_are_refused),
        cmocka_unit_test(database_kind_follows_from_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
