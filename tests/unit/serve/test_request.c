/* test: valgrind */
/* Request targets: what is decoded, what is rejected, and which paths match. */
#include "support/unit.h"

#include "serve/api.h"

static void parameters_are_decoded(void **state)
{
    (void)state;
    struct request request;
    struct error why = {0};
    assert_int_equal(request_read("/a/b?q=a+b%20c&run=%C3%BC&run=2&empty=&flag", &request, &why),
                     ERR_OK);
    assert_string_equal(request.path, "/a/b");
    assert_string_equal(request_param(&request, "q"), "a b c");
    assert_string_equal(request_param(&request, "run"), "ü");
    assert_null(request_param(&request, "empty"));
    assert_null(request_param(&request, "other"));
    assert_int_equal(request.param_count, 5);
    assert_int_equal(request_check(&request, "q run* empty flag", &why), ERR_OK);
    assert_int_equal(request_check(&request, "q run empty flag", &why), ERR_USAGE);
    assert_int_equal(request_check(&request, "q run* empty fla", &why), ERR_USAGE);
    request_release(&request);
}

static void malformed_targets_are_rejected(void **state)
{
    (void)state;
    static const char *const CASES[] = {"",        "a",       "http://x/", "/?q=%",   "/?q=%4",
                                        "/?q=%zz", "/?q=%00", "/?q=%0a",   "/?q=%ff", "/?%1b=1"};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct request request;
        struct error why = {0};
        assert_int_equal(request_read(CASES[i], &request, &why), ERR_USAGE);
        request_release(&request);
    }
}

/* An encoded slash is part of an id; a literal one separates. */
static void segments_are_decoded_after_they_are_separated(void **state)
{
    (void)state;
    static const struct {
        const char *target, *pattern, *id, *name; /* id NULL: no match */
    } CASES[] = {
        {"/runs/a", "/runs/{id}", "a", NULL},
        {"/runs/a%2F..%2fb", "/runs/{id}", "a/../b", NULL},
        {"/runs/a/b", "/runs/{id}", NULL, NULL},
        {"/runs/", "/runs/{id}", NULL, NULL},
        {"/runs", "/runs/{id}", NULL, NULL},
        {"/runs/a/files/b%20c", "/runs/{id}/files/{name}", "a", "b c"},
        {"/runs/a/files/", "/runs/{id}/files/{name}", NULL, NULL},
        {"/runs/%00", "/runs/{id}", "", NULL},
        {"/runs/%ff", "/runs/{id}", "", NULL},
        {"/runs/a+b", "/runs/{id}", "a+b", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct request request;
        struct error why = {0};
        assert_int_equal(request_read(CASES[i].target, &request, &why), ERR_OK);
        assert_int_equal(request_matches(&request, CASES[i].pattern), CASES[i].id != NULL);
        if (CASES[i].id)
            assert_string_equal(request.ids[0], CASES[i].id);
        if (CASES[i].name)
            assert_string_equal(request.ids[1], CASES[i].name);
        request_release(&request);
    }
}

static void encoding_round_trips(void **state)
{
    (void)state;
    static const char ID[] = "a/b c%\"ü&=?#+.~";
    struct text target = {0};
    struct request request;
    struct error why = {0};
    text_add(&target, "/runs/");
    request_encode(&target, ID);
    assert_int_equal(request_read(text_get(&target), &request, &why), ERR_OK);
    assert_true(request_matches(&request, "/runs/{id}"));
    assert_string_equal(request.ids[0], ID);
    request_release(&request);
    text_release(&target);
}

static void counts_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        unsigned value; /* 0: rejected */
    } CASES[] = {{"/", 7},
                 {"/?n=", 7},
                 {"/?n=1", 1},
                 {"/?n=10", 10},
                 {"/?n=11", 0},
                 {"/?n=0", 0},
                 {"/?n=-1", 0},
                 {"/?n=1.5", 0},
                 {"/?n=1e1", 0},
                 {"/?n=x", 0},
                 {"/?n=99999999999999999999", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct request request;
        struct error why = {0};
        unsigned value = 7;
        assert_int_equal(request_read(CASES[i].target, &request, &why), ERR_OK);
        enum err err = request_count(&request, "n", 1, 10, &value, &why);
        assert_int_equal(err, CASES[i].value ? ERR_OK : ERR_USAGE);
        if (CASES[i].value)
            assert_int_equal(value, CASES[i].value);
        request_release(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_decoded),
        cmocka_unit_test(malformed_targets_are_rejected),
        cmocka_unit_test(segments_are_decoded_after_they_are_separated),
        cmocka_unit_test(encoding_round_trips),
        cmocka_unit_test(counts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
