/* test: real time, tsan */
/* The openai driver against a scripted server: requests as sent, faults, service details. */
#include "support/unit.h"

#include <stdlib.h>

#include "core/json.h"
#include "port/json_read.h"
#include "support/ask.h"
#include "support/inference.h"
#include "support/shifted_clock.h"

/* ---- requests ---- */

static void check_body(const char *client_params, const char *params, const char *path,
                       const char *expected)
{
    struct ask_result asked = ask_scenario("openai", "normal", client_params, params);
    assert_int_equal(asked.err, ERR_OK);
    ask_result_release(&asked);
    struct jv *seen = inference_request(0);
    assert_string_equal(jv_text(jv_get(seen, "body")), expected);
    assert_string_equal(jv_text(jv_get(seen, "path")), path);
    assert_string_equal(jv_text(jv_path(seen, "headers.content-type")), "application/json");
    jv_free(seen);
}

#define STREAM "\"stream\":true,\"stream_options\":{\"include_usage\":true}"

static void requests_have_the_documented_form(void **state)
{
    (void)state;
    NEEDS_HTTP();
    check_body(NULL, NULL, "/normal/v1/chat/completions",
               "{\"model\":\"tiny-1b\",\"messages\":[{\"role\":\"user\",\"content\":\"Say "
               "hello\"}]," STREAM "}");
    check_body("endpoint=completions", NULL, "/normal/v1/completions",
               "{\"model\":\"tiny-1b\",\"prompt\":\"Say hello\"," STREAM "}");
    check_body("endpoint=completions",
               "max_tokens=50,temperature=0.70,seed=18446744073709551615,stop=[\"a\"\\,\"b\"],"
               "logprobs=false,user=me",
               "/normal/v1/completions",
               "{\"model\":\"tiny-1b\",\"prompt\":\"Say hello\"," STREAM
               ",\"max_tokens\":50,\"temperature\":0.70,\"seed\":18446744073709551615,"
               "\"stop\":[\"a\",\"b\"],\"logprobs\":false,\"user\":\"me\"}");
    check_body("endpoint=completions", "stream_options={}", "/normal/v1/completions",
               "{\"model\":\"tiny-1b\",\"prompt\":\"Say "
               "hello\",\"stream\":true,\"stream_options\":{}}");
}

static void a_system_prompt_comes_first(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *params, *path, *expected;
    } CASES[] = {{"endpoint=chat", "messages.0.content", "Be \"brief\""},
                 {"endpoint=chat", "messages.1.content", "Q"},
                 {"endpoint=completions", "prompt", "Be \"brief\"\n\nQ"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct completion reply;
        inference_client(&client, "openai", "normal", CASES[i].params);
        const struct client_request request = {
            .model = "tiny-1b", .system = "Be \"brief\"", .prompt = "Q"};
        assert_int_equal(client.driver->ask(&client, &request, &reply, NULL), ERR_OK);
        completion_release(&reply);
        client_close(&client);
        struct jv *seen = inference_request(0), *body;
        const char *text = jv_text(jv_get(seen, "body"));
        assert_int_equal(jv_parse(text, strlen(text), &body, NULL), ERR_OK);
        assert_string_equal(jv_text(jv_path(body, CASES[i].path)), CASES[i].expected);
        jv_free(body);
        jv_free(seen);
    }
}

static void fields_set_by_ipw_are_rejected_as_parameters(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const BAD[] = {"model=x", "messages=[]", "prompt=x"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        unsigned before = inference_request_count();
        struct ask_result asked = ask_scenario("openai", "normal", NULL, BAD[i]);
        assert_int_equal(asked.err, ERR_USAGE);
        assert_true(asked.reply.done > 0 && !asked.reply.retryable);
        assert_int_equal(inference_request_count(), before);
        ask_result_release(&asked);
    }
}

static const char *last_header(const char *name)
{
    static char value[128];
    struct jv *seen = inference_request(0);
    const char *text = jv_text(jv_get(jv_get(seen, "headers"), name));
    snprintf(value, sizeof value, "%s", text ? text : "(none)");
    jv_free(seen);
    return value;
}

static void the_api_key_is_read_from_the_environment(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *ipw, *openai, *mine; /* variables; NULL: not set */
        const char *params, *expected;
    } CASES[] = {
        {NULL, NULL, NULL, NULL, "(none)"},
        {NULL, "sk-open", NULL, NULL, "Bearer sk-open"},
        {"sk-ipw", "sk-open", NULL, NULL, "Bearer sk-ipw"},
        {"", "sk-open\n", NULL, NULL, "Bearer sk-open"},
        {"sk-ipw", "sk-open", "sk-mine", "api_key_env=MY_KEY", "Bearer sk-mine"},
        {NULL, NULL, NULL, "header.Authorization=Basic xyz", "Basic xyz"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const names[] = {"IPW_API_KEY", "OPENAI_API_KEY", "MY_KEY"};
        const char *const values[] = {CASES[i].ipw, CASES[i].openai, CASES[i].mine};
        for (int k = 0; k < 3; k++)
            if (values[k])
                setenv(names[k], values[k], 1);
        struct ask_result asked = ask_scenario("openai", "normal", CASES[i].params, NULL);
        for (int k = 0; k < 3; k++)
            unsetenv(names[k]);
        assert_int_equal(asked.err, ERR_OK);
        assert_string_equal(last_header("authorization"), CASES[i].expected);
        ask_result_release(&asked);
    }
}

static void user_headers_are_sent(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result asked =
        ask_scenario("openai", "normal", "header.X-Team=blue,header.X-Two=a b", NULL);
    assert_int_equal(asked.err, ERR_OK);
    assert_string_equal(last_header("x-team"), "blue");
    assert_string_equal(last_header("x-two"), "a b");
    ask_result_release(&asked);
}

/* ---- opening ---- */

static enum err open_at(const char *url, const char *params, struct client *client,
                        struct error *why)
{
    struct params given = {0};
    assert_int_equal(params_add(&given, params), ERR_OK);
    const struct client_config config = {.base_url = url, .params = &given};
    enum err err = client_open(client_driver_find("openai", NULL), &config, client, why);
    params_release(&given);
    return err;
}

static void addresses_are_normalized(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *given, *used;
    } CASES[] = {
        {NULL, "http://127.0.0.1:8000/v1"},
        {"localhost:8080", "http://localhost:8080/v1"},
        {"http://h", "http://h/v1"},
        {"http://h/", "http://h/v1"},
        {" https://h/v1 ", "https://h/v1"},
        {"https://h/v1///", "https://h/v1"},
        {"h/v1/chat/completions", "http://h/v1"},
        {"h/v1/completions/", "http://h/v1"},
        {"https://h/openai/v1", "https://h/openai/v1"},
        {"https://h/api/v3", "https://h/api/v3"},
        {"https://h/v1beta/openai", "https://h/v1beta/openai"},
        {"https://h/proxy", "https://h/proxy/v1"},
        {"http://vm1/", "http://vm1/v1"},
        {"[::1]:9", "http://[::1]:9/v1"},
        {"http://me:secret@h:1/v1", "http://h:1/v1"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why;
        assert_int_equal(open_at(CASES[i].given, "", &client, &why), ERR_OK);
        assert_string_equal(client.base_url, CASES[i].used);
        client_close(&client);
    }
}

static void invalid_configurations_are_rejected(void **state)
{
    (void)state;
    NEEDS_HTTP();
    char very_long[700];
    memset(very_long, 'a', sizeof very_long - 1);
    very_long[sizeof very_long - 1] = '\0';
    const struct {
        const char *url, *params, *says;
    } CASES[] = {
        {"", "", "is not an address"},
        {"ftp://h", "", "expected http:// or https://"},
        {"http://a b", "", "is not an address"},
        {"http://h/v1?x=1", "", "is not an address"},
        {very_long, "", "longer than"},
        {NULL, "endpoint=talk", "endpoint=talk: expected chat or completions"},
        {NULL, "endpiont=chat", "did you mean 'endpoint'?"},
        {NULL, "max_tokens=5", "has no parameter 'max_tokens'"},
        {NULL, "api_key_env=IPW_NO_SUCH_KEY", "IPW_NO_SUCH_KEY"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why;
        assert_int_equal(open_at(CASES[i].url, CASES[i].params, &client, &why), ERR_USAGE);
        assert_contains(why.text, CASES[i].says);
        assert_null(client.driver);
    }
}

/* ---- answers ---- */

static void answers_are_read_in_any_framing(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *client_params;
        size_t pieces;
        int64_t prompt, output;
    } CASES[] = {
        {"normal", NULL, 6, 11, 6},
        {"normal", "endpoint=completions", 6, 11, 6},
        {"normal:eol=crlf", NULL, 6, 11, 6},
        {"normal:eol=cr", NULL, 6, 11, 6},
        {"normal:split=1", NULL, 6, 11, 6},
        {"normal:gzip=1,split=7", NULL, 6, 11, 6},
        {"normal:frame=close", NULL, 6, 11, 6},
        {"no_done", NULL, 6, 11, 6},
        {"no_usage", NULL, 6, -1, -1},
        {"whole", NULL, 1, 11, 6},
        {"whole:gzip=1", "endpoint=completions", 1, 11, 6},
        {"llama", NULL, 6, 11, 6},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a =
            ask_scenario("openai", CASES[i].scenario, CASES[i].client_params, NULL);
        assert_int_equal(a.err, ERR_OK);
        assert_string_equal(text_get(&a.reply.content), SCENARIO_ANSWER);
        assert_int_equal(a.reply.arrivals.count, CASES[i].pieces);
        assert_int_equal(a.reply.prompt_tokens, CASES[i].prompt);
        assert_int_equal(a.reply.output_tokens, CASES[i].output);
        assert_string_equal(a.reply.finish_reason, "stop");
        assert_int_equal(a.reply.status, 200);
        ask_result_release(&a);
    }
}

static void cached_and_reasoning_token_counts_are_kept(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("openai", "normal", NULL, NULL);
    assert_int_equal(a.reply.cached_tokens, 4);
    assert_int_equal(a.reply.reasoning_tokens, 0);
    ask_result_release(&a);
    a = ask_scenario("openai", "llama", NULL, NULL);
    assert_int_equal(a.reply.cached_tokens, 4);
    assert_near(a.reply.server_prefill_s, 0.125, 1e-9);
    assert_near(a.reply.server_decode_s, 0.5, 1e-9);
    ask_result_release(&a);
}

static void reasoning_is_separated_from_content(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("openai", "thinking", NULL, NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_string_equal(text_get(&a.reply.reasoning), "reasoning_content? reasoning? ");
    assert_string_equal(text_get(&a.reply.content), "42");
    assert_int_equal(a.reply.arrivals.count, 3);
    ask_result_release(&a);
}

static void an_empty_answer_is_valid(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("openai", "empty", NULL, NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_string_equal(text_get(&a.reply.content), "");
    assert_int_equal(a.reply.output_tokens, 0);
    assert_int_equal(a.reply.arrivals.count, 0);
    assert_int_equal(a.reply.first_token, 0);
    assert_int_equal(a.reply.last_token, 0);
    assert_true(a.reply.done >= a.reply.sent);
    ask_result_release(&a);
}

static void ttft_is_of_content_not_headers(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("openai", "normal:first_ms=80,gap_ms=20", NULL, NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_true(a.reply.first_token - a.reply.sent >= 80 * NS_PER_MS);
    assert_true(a.reply.last_token - a.reply.sent >= (80 + 5 * 20) * NS_PER_MS);
    assert_true(a.reply.last_token <= a.reply.done);
    /* If they arrived together they would be one; a busy machine may join two, not all six. */
    assert_true(a.reply.last_token > a.reply.first_token);
    ask_result_release(&a);
}

static void an_unsupported_option_is_not_sent_again(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *params;
        int64_t output; /* without the option no count is reported */
    } CASES[] = {{"old", NULL, -1}, {"new", "max_tokens=50", 6}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        inference_client(&client, "openai", CASES[i].scenario, NULL);
        unsigned before = inference_request_count();
        struct ask_result a = ask_client(&client, CASES[i].params);
        assert_int_equal(a.err, ERR_OK);
        assert_string_equal(text_get(&a.reply.content), SCENARIO_ANSWER);
        assert_int_equal(a.reply.output_tokens, CASES[i].output);
        assert_int_equal(a.reply.status, 200);
        assert_int_equal(inference_request_count(), before + 2);
        ask_result_release(&a);
        a = ask_client(&client, CASES[i].params);
        assert_int_equal(a.err, ERR_OK);
        assert_int_equal(inference_request_count(), before + 3);
        ask_result_release(&a);
        client_close(&client);
    }
}

/* ---- failures ---- */

static void errors_quote_the_servers_message(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario;
        enum err err;
        int status;
        bool retryable;
        double retry_after_s;
        const char *says;
    } CASES[] = {
        {"status:code=400", ERR_BAD_VALUE, 400, false, UNKNOWN,
         "returned status 400: the moon is full"},
        {"status:code=401", ERR_DENIED, 401, false, UNKNOWN, "IPW_API_KEY"},
        {"status:code=403,body=html", ERR_DENIED, 403, false, UNKNOWN,
         "returned status 403: set IPW_API_KEY"},
        {"status:code=404,body=none", ERR_NOT_FOUND, 404, false, UNKNOWN, "returned status 404"},
        {"status:code=408", ERR_TIMEOUT, 408, true, UNKNOWN, "the moon is full"},
        {"status:code=429,retry_after=3", ERR_BUSY, 429, true, 3, "the moon is full"},
        {"status:code=500,body=text", ERR_IO, 500, true, UNKNOWN, "the moon is full"},
        {"status:code=501", ERR_UNSUPPORTED, 501, false, UNKNOWN, "the moon is full"},
        {"status:code=502,body=html", ERR_IO, 502, true, UNKNOWN, "returned status 502"},
        {"status:code=503,retry_after=1", ERR_BUSY, 503, true, 1, "the moon is full"},
        {"moved", ERR_BAD_VALUE, 307, false, UNKNOWN, "the server redirects"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_scenario("openai", CASES[i].scenario, NULL, NULL);
        assert_int_equal(a.err, CASES[i].err);
        assert_int_equal(a.reply.status, CASES[i].status);
        assert_int_equal(a.reply.retryable, CASES[i].retryable);
        assert_contains(a.why.text, CASES[i].says);
        assert_contains(a.why.text, "http://127.0.0.1:");
        assert_null(strchr(a.why.text, '\n'));
        assert_null(strchr(a.why.text, '<'));
        assert_int_equal(is_known(a.reply.retry_after_s), is_known(CASES[i].retry_after_s));
        if (is_known(CASES[i].retry_after_s))
            assert_near(a.reply.retry_after_s, CASES[i].retry_after_s, 0);
        assert_true(a.reply.done >= a.reply.sent && a.reply.sent > 0);
        ask_result_release(&a);
    }
}

static void faults_keep_received_content(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario;
        enum err err;
        bool retryable;
        const char *says, *content;
    } CASES[] = {
        {"die:after=content", ERR_LOST, true, "in the middle", NULL},
        {"die:after=content,how=close", ERR_LOST, true, "in the middle", "Hello"},
        {"die:after=content,how=close,frame=close", ERR_LOST, true,
         "before the completion was finished", "Hello"},
        {"die:after=request", ERR_LOST, true, "closed the connection", ""},
        {"die:after=headers,how=close", ERR_LOST, true, "", ""},
        {"cut", ERR_LOST, true, "before the completion was finished", "Hello"},
        {"malformed", ERR_BAD_VALUE, false, "invalid JSON: {\"choices\": [oops", "Hello"},
        {"error", ERR_IO, true, "failed: out of moons", "Hello"},
        {"huge_line", ERR_BAD_VALUE, false, "a line of more than 16 MiB", "Hello"},
        {"garbage", ERR_IO, false, "is not an HTTP server", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_scenario("openai", CASES[i].scenario, NULL, NULL);
        assert_int_equal(a.err, CASES[i].err);
        assert_int_equal(a.reply.retryable, CASES[i].retryable);
        assert_contains(a.why.text, CASES[i].says);
        if (CASES[i].content) /* a reset may overtake data that was sent before it */
            assert_string_equal(text_get(&a.reply.content), CASES[i].content);
        assert_true(a.reply.done >= a.reply.sent && a.reply.sent > 0);
        ask_result_release(&a);
    }
}

static void an_endless_answer_is_stopped(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("openai", "many:mb=70", NULL, NULL);
    assert_int_equal(a.err, ERR_BAD_VALUE);
    assert_contains(a.why.text, "longer than 64 MiB");
    assert_int_equal(a.reply.content.length, 64 << 20);
    assert_int_equal(a.reply.arrivals.count, 64);
    ask_result_release(&a);
}

struct impatient {
    size_t missing; /* bytes of content; when all have arrived, the time passes */
    nanos timeout;
};

static void pass_timeout(void *context, const char *text, size_t length, nanos t)
{
    struct impatient *impatient = context;
    (void)text, (void)t;
    impatient->missing -= length;
    if (!impatient->missing)
        shifted_clock_advance(impatient->timeout);
}

static void a_timeout_keeps_received_content(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct client client;
    struct completion reply;
    struct error why;
    const atomic_bool never = false; /* with a flag to look at, the clock is looked at often */
    inference_client(&client, "openai", "hang:after=content", NULL);
    struct impatient impatient = {strlen("Hello"), 600 * NS_PER_S};
    const struct client_request request = {.model = "tiny-1b",
                                           .prompt = "Q",
                                           .timeout = impatient.timeout,
                                           .cancel = &never,
                                           .observer = pass_timeout,
                                           .context = &impatient};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_TIMEOUT);
    assert_true(reply.retryable);
    assert_true(reply.done - reply.sent >= request.timeout);
    assert_string_equal(text_get(&reply.content), "Hello");
    completion_release(&reply);
    client_close(&client);
}

/* ---- health and models ---- */

static void health_reports_the_server_state(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario; /* NULL: no server */
        enum err err;
        const char *says;
    } CASES[] = {
        {"normal", ERR_OK, ""},
        {"no_list", ERR_OK, ""},
        {"loading", ERR_BUSY, "Loading model"},
        {"status:code=401", ERR_DENIED, "IPW_API_KEY"},
        {"status:code=500", ERR_IO, "the moon is full"},
        {"garbage", ERR_IO, "is not an HTTP server"},
        {NULL, ERR_LOST, "llama-server"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why = {0};
        const char *url =
            CASES[i].scenario ? inference_url(CASES[i].scenario) : inference_unused_url();
        assert_int_equal(open_at(url, "", &client, &why), ERR_OK);
        assert_int_equal(client.driver->health(&client, &why), CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        client_close(&client);
    }
}

static void an_unlisted_model_is_an_error(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *model;
        enum err err;
        const char *says;
    } CASES[] = {
        {"normal", "tiny-1b", ERR_OK, ""},
        {"normal", "tiny-1", ERR_NOT_FOUND, "did you mean tiny-1b"},
        {"normal", "quite-different-name", ERR_NOT_FOUND,
         "available: tiny-1b, tiny-3b-chat, other/"},
        {"llama", "whatever", ERR_OK, ""}, /* it lists one model, named after its file */
        {"no_list", "whatever", ERR_OK, ""},
        {"loading", "tiny-1b", ERR_BUSY, "Loading model"},
        {"new", "tiny-1b", ERR_OK, ""},
        {"empty", "tiny-1b", ERR_OK, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why = {0};
        inference_client(&client, "openai", CASES[i].scenario, NULL);
        assert_int_equal(client.driver->prepare(&client, CASES[i].model, 60 * NS_PER_S, &why),
                         CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        client_close(&client);
    }
}

static void prepare_requests_one_token(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct client client;
    inference_client(&client, "openai", "normal", NULL);
    assert_int_equal(client.driver->prepare(&client, "tiny-1b", 0, NULL), ERR_OK);
    client_close(&client);
    struct jv *seen = inference_request(0);
    assert_contains(jv_text(jv_get(seen, "path")), "/chat/completions");
    assert_contains(jv_text(jv_get(seen, "body")), "\"max_tokens\":1}");
    jv_free(seen);
}

static void describe(const char *scenario, const char *model, struct text *out)
{
    struct client client;
    struct json json;
    inference_client(&client, "openai", scenario, NULL);
    json_init(&json, out, false);
    json_object(&json, NULL);
    client.driver->describe(&client, model, &json);
    json_object_end(&json);
    client_close(&client);
}

static void service_details_are_described(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *model, *expected;
    } CASES[] = {
        {"normal", "tiny-1b",
         "{\"endpoint\":\"chat\",\"server\":\"PlayServer/1\",\"owned_by\":\"vllm\","
         "\"served_model\":\"tiny-1b\",\"context_length\":8192,\"root\":\"/weights/tiny\","
         "\"server_version\":\"0.9.1\"}"},
        {"llama", "whatever",
         "{\"endpoint\":\"chat\",\"server\":\"PlayServer/1\",\"owned_by\":\"llamacpp\","
         "\"served_model\":\"/models/tiny-1b.Q4_K_M.gguf\",\"context_length\":32768,"
         "\"parameters\":1200000000,\"model_bytes\":800000000,\"server_version\":\"b4242-abc\","
         "\"model_file\":\"/models/tiny-1b.Q4_K_M.gguf\",\"context_used\":4096,\"slots\":4}"},
        {"loading", "x", "{\"endpoint\":\"chat\"}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text out = {0};
        describe(CASES[i].scenario, CASES[i].model, &out);
        assert_string_equal(text_get(&out), CASES[i].expected);
        text_release(&out);
    }
}

int main(void)
{
    unsetenv("IPW_API_KEY");
    unsetenv("OPENAI_API_KEY");
    shifted_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_the_documented_form),
        cmocka_unit_test(a_system_prompt_comes_first),
        cmocka_unit_test(fields_set_by_ipw_are_rejected_as_parameters),
        cmocka_unit_test(the_api_key_is_read_from_the_environment),
        cmocka_unit_test(user_headers_are_sent),
        cmocka_unit_test(addresses_are_normalized),
        cmocka_unit_test(invalid_configurations_are_rejected),
        cmocka_unit_test(answers_are_read_in_any_framing),
        cmocka_unit_test(cached_and_reasoning_token_counts_are_kept),
        cmocka_unit_test(reasoning_is_separated_from_content),
        cmocka_unit_test(an_empty_answer_is_valid),
        cmocka_unit_test(ttft_is_of_content_not_headers),
        cmocka_unit_test(an_unsupported_option_is_not_sent_again),
        cmocka_unit_test(errors_quote_the_servers_message),
        cmocka_unit_test(faults_keep_received_content),
        cmocka_unit_test(an_endless_answer_is_stopped),
        cmocka_unit_test(a_timeout_keeps_received_content),
        cmocka_unit_test(health_reports_the_server_state),
        cmocka_unit_test(an_unlisted_model_is_an_error),
        cmocka_unit_test(prepare_requests_one_token),
        cmocka_unit_test(service_details_are_described),
    };
    return cmocka_run_group_tests(tests, inference_start, inference_stop);
}
