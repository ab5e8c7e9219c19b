/* test: real time, tsan, valgrind */
/* The HTTP client against a server with scripted faults: bodies, timing, errors, cancelling. */
#include "support/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "port/http.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "support/inference.h"
#include "support/shifted_clock.h"

struct taken {
    struct text body;
    nanos first;
    enum err answer; /* the callback's result after `after` bytes */
    size_t after;
};

static enum err receive(void *context, const char *bytes, size_t length, nanos t)
{
    struct taken *taken = context;
    if (!taken->first)
        taken->first = t;
    text_add_bytes(&taken->body, bytes, length);
    return taken->body.length >= taken->after ? taken->answer : ERR_OK;
}

static struct http *open_http(void)
{
    struct http *http;
    struct error why;
    if (http_open(&http, &why))
        fail_msg("%s", why.text);
    return http;
}

/* One GET on a new connection; the caller releases the body. */
static enum err get(const char *url, const struct params *headers, struct taken *taken,
                    struct http_response *response, struct error *why)
{
    struct http *http = open_http();
    const struct http_request request = {.method = "GET",
                                         .url = url,
                                         .headers = headers,
                                         .timeout = 30 * NS_PER_S,
                                         .take = receive,
                                         .context = taken};
    enum err err = http_perform(http, &request, response, why);
    http_close(http);
    return err;
}

static const char *url_of(const char *scenario, const char *path)
{
    static char url[512];
    snprintf(url, sizeof url, "%s%s", inference_url(scenario), path);
    return url;
}

static void a_body_is_complete_in_any_framing(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const SCENARIOS[] = {"normal", "normal:frame=close", "normal:gzip=1",
                                            "normal:split=1", "normal:gzip=1,split=3"};
    struct text expected = {0};
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++) {
        struct taken taken = {0};
        struct http_response response;
        struct error why;
        assert_int_equal(get(url_of(SCENARIOS[i], "/api/generate"), NULL, &taken, &response, &why),
                         ERR_OK);
        assert_int_equal(response.status, 200);
        assert_string_equal(response.content_type, "application/x-ndjson");
        assert_string_equal(response.server, "PlayServer/1");
        assert_true(response.connected);
        assert_false(is_known(response.retry_after_s));
        assert_true(response.sent > 0 && response.sent <= response.first_byte &&
                    response.first_byte <= response.done);
        assert_int_equal(response.first_byte, taken.first);
        if (i == 0)
            text_add_bytes(&expected, taken.body.bytes, taken.body.length);
        assert_contains(text_get(&taken.body), "\xF0\x9F\x8E\x89");
        assert_string_equal(text_get(&taken.body), text_get(&expected));
        text_release(&taken.body);
        http_response_release(&response);
    }
    text_release(&expected);
}

static void content_type_parameters_are_removed(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {0};
    struct http_response response;
    assert_int_equal(get(url_of("normal", "/v1/chat/completions"), NULL, &taken, &response, NULL),
                     ERR_OK);
    assert_string_equal(response.content_type, "text/event-stream");
    text_release(&taken.body);
    http_response_release(&response);
}

static void first_byte_time_is_of_the_body_not_the_headers(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {0};
    struct http_response response;
    assert_int_equal(
        get(url_of("normal:first_ms=80", "/api/generate"), NULL, &taken, &response, NULL), ERR_OK);
    assert_true(response.first_byte - response.sent >= 80 * NS_PER_MS);
    text_release(&taken.body);
    http_response_release(&response);
}

static void an_error_status_is_a_response(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario;
        int status;
        const char *body;
        double retry_after_s;
    } CASES[] = {
        {"status:code=404,body=text", 404, "the moon is full\n", UNKNOWN},
        {"status:code=500,body=none", 500, "", UNKNOWN},
        {"status:code=429,body=text,retry_after=7", 429, "the moon is full\n", 7},
        {"status:code=503,body=text,retry_after=0", 503, "the moon is full\n", 0},
        {"status:code=503,body=text,retry_after=soon", 503, "the moon is full\n", UNKNOWN},
        {"status:code=400,body=text,gzip=1", 400, "the moon is full\n", UNKNOWN},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct taken taken = {0};
        struct http_response response;
        struct error why;
        assert_int_equal(get(url_of(CASES[i].scenario, "/x"), NULL, &taken, &response, &why),
                         ERR_OK);
        assert_int_equal(response.status, CASES[i].status);
        assert_string_equal(text_get(&response.error_body), CASES[i].body);
        assert_int_equal(taken.body.length, 0);
        if (is_known(CASES[i].retry_after_s))
            assert_near(response.retry_after_s, CASES[i].retry_after_s, 0);
        else
            assert_false(is_known(response.retry_after_s));
        http_response_release(&response);
    }
}

static void retry_after_accepts_a_date(void **state)
{
    (void)state;
    NEEDS_HTTP();
    time_t soon = (time_t)(clock_wall() / NS_PER_S) + 100;
    struct tm parts;
    char date[64], scenario[128];
    gmtime_r(&soon, &parts);
    strftime(date, sizeof date, "%d_%b_%Y_%H:%M:%S_GMT", &parts);
    snprintf(scenario, sizeof scenario, "status:code=503,retry_after=%s", date);
    struct taken taken = {0};
    struct http_response response;
    assert_int_equal(get(url_of(scenario, "/x"), NULL, &taken, &response, NULL), ERR_OK);
    assert_true(response.retry_after_s > 40 && response.retry_after_s <= 101);
    http_response_release(&response);
}

static void a_long_error_message_is_truncated(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {0};
    struct http_response response;
    assert_int_equal(
        get(url_of("status:code=500,body=text,times=100000", "/x"), NULL, &taken, &response, NULL),
        ERR_OK);
    assert_int_equal(response.status, 500);
    assert_int_equal(response.error_body.length, HTTP_ERROR_BODY_MAX);
    http_response_release(&response);
}

static void failures_name_the_server(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *path;
        enum err err;
        const char *says;
        bool connected;
    } CASES[] = {
        {NULL, "/x", ERR_LOST, "is the server running", false},
        {"die:after=request", "/api/generate", ERR_LOST, "without a response", true},
        {"die:after=content", "/api/generate", ERR_LOST, "in the middle", true},
        {"die:after=content,how=close", "/api/generate", ERR_LOST, "in the middle", true},
        {"garbage", "/x", ERR_IO, "is not an HTTP server", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct taken taken = {0};
        struct http_response response;
        struct error why = {0};
        char url[300];
        snprintf(url, sizeof url, "%s%s",
                 CASES[i].scenario ? inference_url(CASES[i].scenario) : inference_unused_url(),
                 CASES[i].path);
        assert_int_equal(get(url, NULL, &taken, &response, &why), CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        assert_contains(why.text, "http://127.0.0.1:");
        assert_null(strchr(why.text, '\n'));
        assert_int_equal(response.connected, CASES[i].connected);
        assert_true(response.done >= response.sent && response.sent > 0);
        text_release(&taken.body);
        http_response_release(&response);
    }
}

static void invalid_urls_are_rejected(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const BAD[] = {"127.0.0.1:80/x", "ftp://127.0.0.1/x", "http://",
                                      "http:///x",      "httpx://a",         ""};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct taken taken = {0};
        struct http_response response;
        struct error why;
        assert_int_equal(get(BAD[i], NULL, &taken, &response, &why), ERR_USAGE);
        assert_contains(why.text, "URL");
        http_response_release(&response);
    }
    struct taken taken = {0};
    struct http_response response;
    struct error why;
    /* ".invalid" never resolves, by RFC 2606 */
    assert_int_equal(get("http://user:secret@nowhere.invalid/x", NULL, &taken, &response, &why),
                     ERR_NOT_FOUND);
    assert_contains(why.text, "http://nowhere.invalid");
    assert_null(strstr(why.text, "secret"));
    assert_false(response.connected);
    http_response_release(&response);
}

struct impatient {
    unsigned requests; /* that the server has received before */
    nanos timeout;
};

/* The time passes when the server has the request, or when its first bytes have arrived. */
static void *pass_timeout(void *argument)
{
    const struct impatient *impatient = argument;
    while (inference_request_count() == impatient->requests)
        thread_sleep(2 * NS_PER_MS);
    shifted_clock_advance(impatient->timeout);
    return NULL;
}

static enum err take_and_pass_timeout(void *context, const char *bytes, size_t length, nanos t)
{
    const struct impatient *impatient = context;
    (void)bytes, (void)length, (void)t;
    shifted_clock_advance(impatient->timeout);
    return ERR_OK;
}

static void an_idle_connection_times_out(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const CASES[][2] = {
        {"hang:after=request", "no response within 600 s"},
        {"hang:after=content", "incomplete response within 600 s"},
    };
    const atomic_bool never = false; /* with a flag to look at, the clock is looked at often */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http *http = open_http();
        struct http_response response;
        struct error why;
        pthread_t thread;
        struct impatient impatient = {inference_request_count(), 600 * NS_PER_S};
        const struct http_request request = {.method = "GET",
                                             .url = url_of(CASES[i][0], "/api/generate"),
                                             .timeout = impatient.timeout,
                                             .cancel = &never,
                                             .take = take_and_pass_timeout,
                                             .context = &impatient};
        if (i == 0)
            assert_int_equal(thread_start(&thread, pass_timeout, &impatient), ERR_OK);
        assert_int_equal(http_perform(http, &request, &response, &why), ERR_TIMEOUT);
        if (i == 0)
            pthread_join(thread, NULL);
        assert_true(response.done - response.sent >= request.timeout);
        assert_contains(why.text, CASES[i][1]);
        http_close(http);
        http_response_release(&response);
    }
}

struct canceller {
    atomic_bool flag;
    nanos set_at;
};

static void *cancel_later(void *argument)
{
    struct canceller *c = argument;
    thread_sleep(300 * NS_PER_MS); /* after a 200 ms timer of the library */
    c->set_at = clock_now();
    atomic_store(&c->flag, true);
    return NULL;
}

/* Cancels a request while no data arrives; returns how long that took. */
static nanos cancel_once(void)
{
    struct http *http = open_http();
    struct canceller c = {0};
    struct taken taken = {0};
    struct http_response response;
    struct error why;
    const struct http_request request = {.method = "GET",
                                         .url = url_of("hang:after=headers", "/api/generate"),
                                         .cancel = &c.flag,
                                         .take = receive,
                                         .context = &taken};
    pthread_t thread;
    assert_int_equal(thread_start(&thread, cancel_later, &c), ERR_OK);
    assert_int_equal(http_perform(http, &request, &response, &why), ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    assert_contains(why.text, "canceled");
    nanos reaction = response.done - c.set_at;
    http_response_release(&response);
    http_close(http);
    return reaction;
}

static void cancelling_ends_an_idle_request_promptly(void **state)
{
    (void)state;
    NEEDS_HTTP();
    /* The library alone would poll once per second, 700 ms after the flag. On a busy machine one of
     * several attempts must be prompt. */
    nanos best = NS_PER_S;
    for (int i = 0; i < 5 && best > 300 * NS_PER_MS; i++) {
        nanos reaction = cancel_once();
        assert_true(reaction >= 0);
        best = reaction < best ? reaction : best;
    }
    assert_true(best <= 300 * NS_PER_MS || getenv("IPW_SLOW"));
}

static void a_request_canceled_before_the_start_is_not_sent(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    atomic_bool cancel = true;
    struct http_response response;
    unsigned before = inference_request_count();
    const struct http_request request = {
        .method = "GET", .url = url_of("normal", "/health"), .cancel = &cancel};
    assert_int_equal(http_perform(http, &request, &response, NULL), ERR_INTERRUPTED);
    assert_int_equal(inference_request_count(), before);
    http_response_release(&response);
    http_close(http);
}

static void an_error_of_the_callback_ends_the_transfer(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {.answer = ERR_BAD_VALUE, .after = 10};
    struct http_response response;
    struct error why = {.text = "mine"};
    assert_int_equal(get(url_of("many", "/api/generate"), NULL, &taken, &response, &why),
                     ERR_BAD_VALUE);
    assert_string_equal(why.text, "mine");
    assert_true(taken.body.length < (1 << 20));
    text_release(&taken.body);
    http_response_release(&response);
}

static void a_request_arrives_unchanged(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    struct params headers = {0};
    assert_int_equal(params_add(&headers, "X-One=1,X-Empty=,Content-Type=application/json"),
                     ERR_OK);
    struct text body = {0};
    for (int i = 0; i < 300000;
         i++) /* above the size for which curl would send "Expect: 100-continue" */
        text_add(&body, "[1]\n");
    const struct http_request request = {.method = "POST",
                                         .url = url_of("normal", "/api/generate"),
                                         .headers = &headers,
                                         .body = body.bytes,
                                         .body_length = body.length};
    struct http_response response;
    assert_int_equal(http_perform(http, &request, &response, NULL), ERR_OK);
    http_response_release(&response);
    struct jv *seen = inference_request(0);
    const struct jv *got = jv_get(seen, "headers");
    assert_string_equal(jv_text(jv_get(seen, "method")), "POST");
    assert_string_equal(jv_text(jv_get(seen, "body")), body.bytes);
    assert_string_equal(jv_text(jv_get(got, "x-one")), "1");
    assert_string_equal(jv_text(jv_get(got, "x-empty")), "");
    assert_string_equal(jv_text(jv_get(got, "content-type")), "application/json");
    assert_contains(jv_text(jv_get(got, "accept-encoding")), "gzip");
    assert_contains(jv_text(jv_get(got, "user-agent")), "ipw/");
    assert_null(jv_get(got, "expect"));
    jv_free(seen);
    http_close(http);
    params_release(&headers);
    text_release(&body);
}

static void a_header_cannot_inject_another(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const BAD[][2] = {{"X-A", "1\r\nX-B: 2"}, {"X-A\n", "1"}, {"X: A", "1"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct params headers = {0};
        struct taken taken = {0};
        struct http_response response;
        struct error why;
        unsigned before = inference_request_count();
        assert_int_equal(params_set(&headers, BAD[i][0], BAD[i][1]), ERR_OK);
        assert_int_equal(get(url_of("normal", "/health"), &headers, &taken, &response, &why),
                         ERR_USAGE);
        assert_contains(why.text, "header");
        assert_int_equal(inference_request_count(), before);
        http_response_release(&response);
        params_release(&headers);
    }
}

static void connections_are_reused(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    int64_t first = -1, second = -2, third = -3;
    static const char *const SCENARIOS[] = {"normal", "status:code=503", "normal"};
    int64_t *const numbers[] = {&first, &second, &third};
    for (int i = 0; i < 3; i++) {
        const struct http_request request = {.method = "GET",
                                             .url = url_of(SCENARIOS[i], "/health")};
        struct http_response response;
        assert_int_equal(http_perform(http, &request, &response, NULL), ERR_OK);
        assert_true(response.connected);
        http_response_release(&response);
        struct jv *seen = inference_request(0);
        assert_true(jv_integer(jv_get(seen, "connection"), numbers[i]));
        jv_free(seen);
    }
    assert_true(first == second && second == third);
    http_close(http);
}

static void a_get_follows_redirects_and_a_post_does_not(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    struct text body = {0};
    struct http_response response;
    assert_int_equal(http_fetch(http, url_of("moved", "/health"), NULL, 30 * NS_PER_S, 1000, &body,
                                &response, NULL),
                     ERR_OK);
    assert_int_equal(response.status, 200);
    assert_string_equal(text_get(&body), "{\"status\": \"ok\"}");
    http_response_release(&response);
    const struct http_request request = {
        .method = "POST", .url = url_of("moved", "/api/generate"), .body = "{}", .body_length = 2};
    assert_int_equal(http_perform(http, &request, &response, NULL), ERR_OK);
    assert_int_equal(response.status, 307);
    http_response_release(&response);
    text_release(&body);
    http_close(http);
}

static void a_header_over_the_limit_is_reported(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {0};
    struct http_response response;
    struct error why;
    assert_int_equal(get(url_of("long_header:kb=1024", "/health"), NULL, &taken, &response, &why),
                     ERR_BAD_VALUE);
    assert_contains(why.text, "headers that are too long");
    http_response_release(&response);
    text_release(&taken.body);
}

/* With all descriptors in use no connection can be made: that must not be blamed on the server. */
static void running_out_of_descriptors_is_reported(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    struct http_response response;
    struct error why;
    struct rlimit before, few;
    int taken[64], count = 0;
    const char *url = url_of("normal", "/health");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = 48, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < 64 && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    const struct http_request request = {.method = "GET", .url = url, .timeout = 30 * NS_PER_S};
    enum err err = http_perform(http, &request, &response, &why);
    for (int i = 0; i < count; i++)
        close(taken[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, ERR_TOO_MANY_FILES);
    assert_contains(why.text, "too many open files");
    http_response_release(&response);
    http_close(http);
}

static void a_fetch_has_a_size_limit(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct http *http = open_http();
    struct text body = {0};
    struct http_response response;
    struct error why;
    static const char EXPECTED[] = "{\"status\": \"ok\"}";
    const size_t length = strlen(EXPECTED);
    assert_int_equal(
        http_fetch(http, url_of("normal", "/health"), NULL, 0, length, &body, &response, &why),
        ERR_OK);
    assert_string_equal(text_get(&body), EXPECTED);
    http_response_release(&response);
    assert_int_equal(
        http_fetch(http, url_of("normal", "/health"), NULL, 0, length - 1, &body, &response, &why),
        ERR_BAD_VALUE);
    assert_contains(why.text, "longer than 15 bytes");
    http_response_release(&response);
    text_release(&body);
    http_close(http);
}

static void localhost_bypasses_the_proxy(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct taken taken = {0};
    struct http_response response;
    setenv("http_proxy", inference_unused_url(), 1);
    enum err near = get(url_of("normal", "/health"), NULL, &taken, &response, NULL);
    http_response_release(&response);
    /* Another host goes through the proxy: the server sees an absolute URL. */
    setenv("http_proxy", inference_url(""), 1);
    enum err far = get("http://elsewhere.invalid/normal/health", NULL, &taken, &response, NULL);
    http_response_release(&response);
    unsetenv("http_proxy");
    text_release(&taken.body);
    assert_int_equal(near, ERR_OK);
    assert_int_equal(far, ERR_OK);
    struct jv *seen = inference_request(0);
    assert_string_equal(jv_text(jv_get(seen, "path")), "http://elsewhere.invalid/normal/health");
    jv_free(seen);
}

static void *fetch_in_thread(void *argument)
{
    enum err *result = argument;
    struct http *http;
    if ((*result = http_open(&http, NULL)))
        return NULL;
    for (int i = 0; i < 5 && !*result; i++) {
        struct text body = {0};
        struct http_response response;
        char url[256];
        snprintf(url, sizeof url, "%s/health", inference_url("normal"));
        *result = http_fetch(http, url, NULL, 60 * NS_PER_S, 1000, &body, &response, NULL);
        if (!*result && response.status != 200)
            *result = ERR_IO;
        http_response_release(&response);
        text_release(&body);
    }
    http_close(http);
    return NULL;
}

static void each_thread_has_its_own_handle(void **state)
{
    (void)state;
    NEEDS_HTTP();
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    enum err results[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(thread_start(&threads[i], fetch_in_thread, &results[i]), ERR_OK);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(results[i], ERR_OK);
}

int main(void)
{
    shifted_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_has_its_own_handle),
        cmocka_unit_test(a_body_is_complete_in_any_framing),
        cmocka_unit_test(content_type_parameters_are_removed),
        cmocka_unit_test(first_byte_time_is_of_the_body_not_the_headers),
        cmocka_unit_test(an_error_status_is_a_response),
        cmocka_unit_test(retry_after_accepts_a_date),
        cmocka_unit_test(a_long_error_message_is_truncated),
        cmocka_unit_test(failures_name_the_server),
        cmocka_unit_test(invalid_urls_are_rejected),
        cmocka_unit_test(an_idle_connection_times_out),
        cmocka_unit_test(cancelling_ends_an_idle_request_promptly),
        cmocka_unit_test(a_request_canceled_before_the_start_is_not_sent),
        cmocka_unit_test(an_error_of_the_callback_ends_the_transfer),
        cmocka_unit_test(a_request_arrives_unchanged),
        cmocka_unit_test(a_header_cannot_inject_another),
        cmocka_unit_test(connections_are_reused),
        cmocka_unit_test(a_get_follows_redirects_and_a_post_does_not),
        cmocka_unit_test(a_header_over_the_limit_is_reported),
        cmocka_unit_test(running_out_of_descriptors_is_reported),
        cmocka_unit_test(a_fetch_has_a_size_limit),
        cmocka_unit_test(localhost_bypasses_the_proxy),
    };
    return cmocka_run_group_tests(tests, inference_start, inference_stop);
}
