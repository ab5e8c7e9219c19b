/* test: valgrind */
/* Public datasets over the row API, with a server that is busy, changes, or needs a token. The HTTP
 * client is faked; tests/cli/test_datasets.py does the same over a socket. */
#define _GNU_SOURCE
#include "support/unit.h"

#include "port/json_read.h"

#include <stdlib.h>

#include "stubs/http_fake.h"
#include "support/items.h"
#include "support/tree_fixture.h"

#define BASE "http://127.0.0.1:1"

static struct items items;
static unsigned total;    /* rows that the server has */
static unsigned failures; /* number of requests still to fail */
static int failure;       /* their HTTP status; 0: the connection breaks */

static unsigned number_after(const char *url, const char *key)
{
    const char *at = strstr(url, key);
    return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : 0;
}

static enum err serve(const char *url, struct text *body, int *status, double *retry_after_s)
{
    if (failures > 0) {
        failures--;
        *retry_after_s = 0.001;
        *status = failure;
        text_add(body, "{\"error\":\"come back later\"}");
        return failure ? ERR_OK : ERR_LOST;
    }
    if (strstr(url, "/splits?")) {
        text_add(body, "{\"splits\":[{\"config\":\"main\",\"split\":\"train\"},"
                       "{\"config\":\"main\",\"split\":\"test\"},"
                       "{\"config\":\"other\",\"split\":\"train\"}]}");
        return ERR_OK;
    }
    unsigned first = number_after(url, "offset="), length = number_after(url, "length=");
    assert_in_range(length, 1, 100);
    text_add(body, "{\"features\":[],\"rows\":[");
    for (unsigned i = first; i < total && i < first + length; i++)
        text_addf(body,
                  "%s{\"row_idx\":%u,\"row\":{\"question\":\"q%u\",\"answer\":\"a\"},"
                  "\"truncated_cells\":[%s]}",
                  i == first ? "" : ",", i, i, i == 7 ? "\"question\"" : "");
    text_addf(body, "],\"num_rows_total\":%u}", total);
    return ERR_OK;
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    setenv("XDG_CACHE_HOME", tree.root, 1);
    unsetenv("HF_TOKEN");
    http_fake = (struct http_fake){.answer = serve};
    total = 250;
    failures = 0;
    failure = 503;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    items_release(&items);
    assert_int_equal(http_fake.open, 0);
    tree_free(&tree);
    return 0;
}

static enum err read_hub(const char *words)
{
    items_release(&items);
    http_fake.count = 0;
    return items_read(&items, "hub",
                      "dataset=o/n, config=c, split=s, base_url=" BASE ", retry_delay=0, %s",
                      words);
}

static void pages_are_read_in_order(void **state)
{
    (void)state;
    assert_int_equal(read_hub(""), ERR_OK);
    assert_int_equal(items.count, 249); /* one was truncated by the server */
    assert_int_equal(items.reported, 250);
    assert_string_equal(items.name, "n");
    assert_contains(items.errors[0], "o/n, row 7: the server truncated the field 'question'");
    assert_string_equal(items.all[248].problem, "q249");
    assert_string_equal(items.all[248].id, "249");
    assert_int_equal(http_fake.count, 3);
    assert_string_equal(http_fake.urls[0],
                        BASE "/rows?dataset=o%2Fn&config=c&split=s&offset=0&length=100");
    assert_contains(http_fake.urls[2], "offset=200");
}

static void fetched_pages_are_cached(void **state)
{
    (void)state;
    assert_int_equal(read_hub("limit=150"), ERR_OK);
    assert_int_equal(http_fake.count, 2);
    assert_int_equal(read_hub("skip_bad=true"), ERR_OK); /* continues where it stopped */
    assert_int_equal(items.count, 249);
    assert_int_equal(http_fake.count, 1);
    assert_contains(http_fake.urls[0], "offset=200");
    assert_int_equal(read_hub(""), ERR_OK);
    assert_int_equal(http_fake.count, 0);
    assert_int_equal(read_hub("refresh=true"), ERR_OK);
    assert_int_equal(http_fake.count, 3);
    /* A corrupt cached page is requested again. */
    tree_write(&tree, "/ipw/hub/127.0.0.1%3A1/o%2Fn/c/s/rows-0000000100.json", "{\"rows\":[");
    assert_int_equal(read_hub(""), ERR_OK);
    assert_int_equal(http_fake.count, 1);
    assert_int_equal(items.count, 249);
    tree_write(&tree, "/ipw/hub/127.0.0.1%3A1/o%2Fn/c/s/rows-0000000100.json", "{\"error\":1}");
    assert_int_equal(read_hub(""), ERR_OK);
    assert_int_equal(http_fake.count, 1);
    assert_int_equal(items.count, 249);
}

static void an_offset_fetches_only_its_page(void **state)
{
    (void)state;
    assert_int_equal(read_hub("offset=210, limit=5"), ERR_OK);
    assert_string_equal(items.all[0].problem, "q210");
    assert_int_equal(items.count, 5);
    assert_int_equal(items.reported, 5);
    assert_int_equal(http_fake.count, 2); /* the first page has the number of rows */
    assert_contains(http_fake.urls[1], "offset=200");
    assert_int_equal(read_hub("offset=210"), ERR_OK);
    assert_int_equal(items.reported, 40);
    assert_int_equal(items.count, 40);
    assert_int_equal(read_hub("offset=300"), ERR_BAD_VALUE);
    assert_contains(items.why.text, "no rows after offset=300");
    total = 0;
    assert_int_equal(read_hub("refresh=true"), ERR_BAD_VALUE);
    assert_contains(items.why.text, "has no rows");
}

static void a_busy_server_is_retried(void **state)
{
    (void)state;
    static const int STATUSES[] = {503, 429, 0};
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++) {
        failure = STATUSES[i];
        failures = 2;
        assert_int_equal(read_hub("limit=1, refresh=true"), ERR_OK);
        assert_int_equal(http_fake.count, 3);
        failures = 99;
        assert_int_equal(read_hub("refresh=true, tries=3"), failure ? ERR_BUSY : ERR_LOST);
        assert_int_equal(http_fake.count, 3);
    }
    failure = 503;
    assert_int_equal(read_hub("refresh=true"), ERR_BUSY);
    assert_contains(items.why.text, "come back later");
    assert_contains(items.why.text, "4 times");
}

static void a_client_error_is_not_retried(void **state)
{
    (void)state;
    failure = 404;
    failures = 1;
    assert_int_equal(read_hub(""), ERR_NOT_FOUND);
    assert_contains(items.why.text, "come back later");
    assert_int_equal(http_fake.count, 1);
    failure = 401;
    failures = 1;
    assert_int_equal(read_hub(""), ERR_DENIED);
    assert_contains(items.why.text, "set HF_TOKEN");
}

static void the_token_is_sent_to_trusted_hosts_only(void **state)
{
    (void)state;
    setenv("HF_TOKEN", "secret", 1);
    assert_int_equal(read_hub("limit=1"), ERR_OK);
    assert_string_equal(http_fake.authorizations[0], "Bearer secret");
    items_release(&items);
    http_fake.count = 0;
    assert_int_equal(
        items_read(&items, "hub", "dataset=o/n, config=c, split=s, base_url=http://example.org/"),
        ERR_OK);
    assert_string_equal(http_fake.authorizations[0],
                        ""); /* without TLS it could be read in transit */
    assert_contains(http_fake.urls[0], "http://example.org/rows?");
    static const struct {
        const char *base;
        bool gets;
    } BASES[] = {
        {"http://127.0.0.1:9", true},
        {"http://[::1]:9", true},
        {"https://hub.example", true},
        {"http://localhost.example.org", false}, /* only a prefix of the name is localhost */
        {"http://127.0.0.1.example.org", false},
        {"http://127.0.0.1@example.org", false},
        {"http://127.0.0.1:80@example.org", false},
        {"http://localhost:9", false}, /* a name, which may resolve to another host */
    };
    for (size_t i = 0; i < sizeof BASES / sizeof *BASES; i++) {
        items_release(&items);
        http_fake.count = 0;
        assert_int_equal(items_read(&items, "hub",
                                    "dataset=o/n, config=c, split=s, refresh=true, base_url=%s",
                                    BASES[i].base),
                         ERR_OK);
        assert_string_equal(http_fake.authorizations[0], BASES[i].gets ? "Bearer secret" : "");
    }
    failure = 401;
    failures = 1;
    items_release(&items);
    assert_int_equal(items_read(&items, "hub",
                                "dataset=o/n, config=c, split=s, refresh=true, "
                                "base_url=http://me:pass-word@example.org"),
                     ERR_DENIED);
    assert_contains(items.why.text, "HF_TOKEN is sent over https");
    assert_null(strstr(items.why.text, "pass-word"));
    failure = 403;
    failures = 1;
    assert_int_equal(read_hub("refresh=true"), ERR_DENIED);
    assert_contains(items.why.text, "access denied for the token in HF_TOKEN");
    assert_null(strstr(items.why.text, "secret"));
}

static void default_config_and_split_are_looked_up(void **state)
{
    (void)state;
    static const struct {
        const char *words, *url;
    } CASES[] = {
        {"", "config=main&split=test"},
        {"config=other", "config=other&split=train"},
        {"split=train", "config=main&split=train"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        items_release(&items);
        http_fake.count = 0;
        assert_int_equal(items_read(&items, "hub", "dataset=o/n, base_url=" BASE ", limit=1, %s",
                                    CASES[i].words),
                         ERR_OK);
        assert_contains(http_fake.urls[http_fake.count - 1], CASES[i].url);
    }
    items_release(&items);
    assert_int_equal(items_read(&items, "hub", "dataset=o/n, base_url=" BASE ", split=dev"),
                     ERR_NOT_FOUND);
    assert_contains(items.why.text, "available: main/train, main/test, other/train");
}

static void wrong_parameters_are_rejected(void **state)
{
    (void)state;
    assert_int_equal(items_read(&items, "hub", "%s", ""), ERR_USAGE);
    assert_contains(items.why.text, "dataset=OWNER/NAME");
    assert_int_equal(read_hub("tries=0"), ERR_USAGE);
    assert_int_equal(read_hub("base_url=ftp://x"), ERR_USAGE);
    assert_int_equal(read_hub("refesh=true"), ERR_USAGE);
    assert_contains(items.why.text, "did you mean 'refresh'");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(pages_are_read_in_order),
        TEST(fetched_pages_are_cached),
        TEST(an_offset_fetches_only_its_page),
        TEST(a_busy_server_is_retried),
        TEST(a_client_error_is_not_retried),
        TEST(the_token_is_sent_to_trusted_hosts_only),
        TEST(default_config_and_split_are_looked_up),
        TEST(wrong_parameters_are_rejected),
    };
    return RUN_TESTS(tests);
}
