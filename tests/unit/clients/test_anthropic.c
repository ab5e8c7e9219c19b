/* test: real time, tsan */
/* The anthropic driver against a scripted server: requests as sent, responses and faults.  What it shares with the
 * openai driver is tested in test_openai.c. */
#include "support/unit.h"

#include <stdlib.h>

#include "core/json.h"
#include "port/json_read.h"
#include "support/ask.h"
#include "support/inference.h"

/* ---- requests ---- */

#define QUESTION                                                                                   \
    "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Say hello\"}]}]"

static void requests_have_the_documented_form(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *params, *expected;
    } CASES[] = {
        {NULL, "{\"model\":\"tiny-1b\",\"max_tokens\":4096," QUESTION ",\"stream\":true}"},
        {"max_tokens=50,temperature=0.70,top_k=3,thinking={\"type\":\"disabled\"}",
         "{\"model\":\"tiny-1b\"," QUESTION ",\"stream\":true,\"max_tokens\":50,"
         "\"temperature\":0.70,\"top_k\":3,\"thinking\":{\"type\":\"disabled\"}}"},
        {"stream=false,max_tokens=9,stop=[\"a\"\\,\"b\"]",
         "{\"model\":\"tiny-1b\"," QUESTION
         ",\"stream\":false,\"max_tokens\":9,\"stop_sequences\":[\"a\",\"b\"]}"},
        {"max_tokens=9,stop=42", "{\"model\":\"tiny-1b\"," QUESTION
                                 ",\"stream\":true,\"max_tokens\":9,\"stop_sequences\":[\"42\"]}"},
        {"max_tokens=9,stop=\"Q:\"",
         "{\"model\":\"tiny-1b\"," QUESTION
         ",\"stream\":true,\"max_tokens\":9,\"stop_sequences\":[\"Q:\"]}"},
        {"max_tokens=9,stop_sequences=[\"a\"]",
         "{\"model\":\"tiny-1b\"," QUESTION
         ",\"stream\":true,\"max_tokens\":9,\"stop_sequences\":[\"a\"]}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result asked = ask_scenario("anthropic", "normal", NULL, CASES[i].params);
        assert_int_equal(asked.err, ERR_OK);
        ask_result_release(&asked);
        struct jv *seen = inference_request(0);
        assert_string_equal(jv_text(jv_get(seen, "body")), CASES[i].expected);
        assert_string_equal(jv_text(jv_get(seen, "path")), "/normal/v1/messages");
        assert_string_equal(jv_text(jv_path(seen, "headers.content-type")), "application/json");
        jv_free(seen);
    }
}

static void fields_set_by_ipw_are_rejected_as_parameters(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const BAD[] = {"model=x", "messages=[]", "system=x"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        unsigned before = inference_request_count();
        struct ask_result asked = ask_scenario("anthropic", "normal", NULL, BAD[i]);
        assert_int_equal(asked.err, ERR_USAGE);
        assert_int_equal(inference_request_count(), before);
        ask_result_release(&asked);
    }
}

static void key_and_version_are_headers(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *ipw, *anthropic, *openai; /* variables; NULL: not set */
        const char *params, *key, *version;
    } CASES[] = {
        {NULL, NULL, "sk-open", NULL, NULL, "2023-06-01"},
        {NULL, "sk-ant\n", NULL, NULL, "sk-ant", "2023-06-01"},
        {"sk-ipw", "sk-ant", NULL, NULL, "sk-ipw", "2023-06-01"},
        {"sk-ipw", "sk-ant", "sk-open", "api_key_env=OPENAI_API_KEY", "sk-open", "2023-06-01"},
        {NULL, NULL, NULL, "header.x-api-key=sk-other,header.anthropic-version=2024-01-01",
         "sk-other", "2024-01-01"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const names[] = {"IPW_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"};
        const char *const values[] = {CASES[i].ipw, CASES[i].anthropic, CASES[i].openai};
        for (int k = 0; k < 3; k++)
            if (values[k])
                setenv(names[k], values[k], 1);
        struct ask_result asked = ask_scenario("anthropic", "normal", CASES[i].params, NULL);
        for (int k = 0; k < 3; k++)
            unsetenv(names[k]);
        assert_int_equal(asked.err, ERR_OK);
        ask_result_release(&asked);
        struct jv *seen = inference_request(0);
        const struct jv *headers = jv_get(seen, "headers");
        const char *key = jv_text(jv_get(headers, "x-api-key"));
        assert_string_equal(key ? key : "(none)", CASES[i].key ? CASES[i].key : "(none)");
        assert_string_equal(jv_text(jv_get(headers, "anthropic-version")), CASES[i].version);
        assert_null(jv_get(headers, "authorization"));
        jv_free(seen);
    }
}

static void addresses_are_normalized(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const CASES[][2] = {
        {NULL, "http://127.0.0.1:8000/v1"},
        {"https://api.anthropic.com", "https://api.anthropic.com/v1"},
        {"localhost:8080/v1/messages/", "http://localhost:8080/v1"},
        {"https://h/anthropic/v1", "https://h/anthropic/v1"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why;
        const struct client_config config = {.base_url = CASES[i][0]};
        assert_int_equal(client_open(client_driver_find("anthropic", NULL), &config, &client, &why),
                         ERR_OK);
        assert_string_equal(client.base_url, CASES[i][1]);
        client_close(&client);
    }
}

/* ---- answers ---- */

static void answers_are_read_in_any_framing(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *params;
        size_t pieces;
        int64_t prompt, output, cached;
    } CASES[] = {
        {"normal", NULL, 6, 11, 6, 4},
        {"normal:eol=crlf", NULL, 6, 11, 6, 4},
        {"normal:eol=cr", NULL, 6, 11, 6, 4},
        {"normal:split=1", NULL, 6, 11, 6, 4},
        {"normal:gzip=1,split=7", NULL, 6, 11, 6, 4},
        {"normal:frame=close", NULL, 6, 11, 6, 4},
        {"no_done", NULL, 6, 11, 6, 4},
        {"no_usage", NULL, 6, -1, -1, -1},
        {"whole", "stream=false", 1, 11, 6, 4},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_scenario("anthropic", CASES[i].scenario, NULL, CASES[i].params);
        assert_int_equal(a.err, ERR_OK);
        assert_string_equal(text_get(&a.reply.content), SCENARIO_ANSWER);
        assert_int_equal(a.reply.arrivals.count, CASES[i].pieces);
        assert_int_equal(a.reply.prompt_tokens, CASES[i].prompt);
        assert_int_equal(a.reply.output_tokens, CASES[i].output);
        assert_int_equal(a.reply.cached_tokens, CASES[i].cached);
        assert_string_equal(a.reply.finish_reason, "stop");
        assert_int_equal(a.reply.status, 200);
        ask_result_release(&a);
    }
    struct ask_result a = ask_scenario("anthropic", "thinking", NULL, "max_tokens=9");
    assert_int_equal(a.err, ERR_OK);
    assert_string_equal(text_get(&a.reply.reasoning), "reasoning_content? reasoning? ");
    assert_string_equal(text_get(&a.reply.content), "42");
    ask_result_release(&a);
    a = ask_scenario("anthropic", "normal", NULL, "max_tokens=2");
    assert_string_equal(a.reply.finish_reason, "length");
    ask_result_release(&a);
}

static void faults_say_whether_to_retry(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario;
        enum err err;
        int status;
        bool is_retryable;
        double retry_after_s;
        const char *says;
    } CASES[] = {
        {"status:code=529,body=anthropic", ERR_BUSY, 529, true, UNKNOWN, "the moon is full"},
        {"status:code=429,body=anthropic,retry_after=7", ERR_BUSY, 429, true, 7, "status 429"},
        {"status:code=500,body=anthropic", ERR_IO, 500, true, UNKNOWN, "the moon is full"},
        {"status:code=400,body=anthropic", ERR_BAD_VALUE, 400, false, UNKNOWN, "status 400"},
        {"status:code=401,body=anthropic", ERR_DENIED, 401, false, UNKNOWN, "ANTHROPIC_API_KEY"},
        {"status:code=404,body=html", ERR_NOT_FOUND, 404, false, UNKNOWN, "status 404"},
        {"error", ERR_IO, 200, true, UNKNOWN, "out of moons"},
        {"cut", ERR_LOST, 200, true, UNKNOWN, "before the completion was finished"},
        {"interrupted:pieces=2", ERR_LOST, 200, true, UNKNOWN, "before the completion"},
        {"malformed", ERR_BAD_VALUE, 200, false, UNKNOWN, "invalid JSON"},
        {"die:after=content,how=rst", ERR_LOST, 200, true, UNKNOWN, "http://127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_scenario("anthropic", CASES[i].scenario, NULL, NULL);
        assert_int_equal(a.err, CASES[i].err);
        assert_int_equal(a.reply.status, CASES[i].status);
        assert_int_equal(a.reply.retryable, CASES[i].is_retryable);
        if (is_known(CASES[i].retry_after_s))
            assert_near(a.reply.retry_after_s, CASES[i].retry_after_s, 1e-9);
        assert_contains(a.why.text, CASES[i].says);
        assert_int_equal(a.reply.output_tokens, -1);
        ask_result_release(&a);
    }
}

/* ---- the server ---- */

static void a_model_must_be_listed_or_an_alias(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *model;
        enum err err;
    } CASES[] = {
        {"normal", "tiny-1b", ERR_OK},    {"normal", "tiny-2b", ERR_NOT_FOUND},
        {"alias", "latest", ERR_OK},      {"alias", "newest", ERR_NOT_FOUND},
        {"alias", "../x", ERR_NOT_FOUND}, {"no_list", "anything", ERR_OK},
        {"llama", "any-name", ERR_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why = {0};
        inference_client(&client, "anthropic", CASES[i].scenario, NULL);
        assert_int_equal(client.driver->prepare(&client, CASES[i].model, 30 * NS_PER_S, &why),
                         CASES[i].err);
        if (CASES[i].err)
            assert_contains(why.text, "tiny-1b");
        client_close(&client);
    }
}

static void the_service_is_described(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct client client;
    struct text out = {0};
    struct json json;
    inference_client(&client, "anthropic", "normal", NULL);
    json_init(&json, &out, false);
    json_object(&json, NULL);
    client.driver->describe(&client, "tiny-1b", &json);
    json_object_end(&json);
    assert_contains(text_get(&out), "\"endpoint\":\"messages\"");
    assert_contains(text_get(&out), "\"context_length\":8192");
    assert_contains(text_get(&out), "\"server_version\":\"0.9.1\"");
    text_release(&out);
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_the_documented_form),
        cmocka_unit_test(fields_set_by_ipw_are_rejected_as_parameters),
        cmocka_unit_test(key_and_version_are_headers),
        cmocka_unit_test(addresses_are_normalized),
        cmocka_unit_test(answers_are_read_in_any_framing),
        cmocka_unit_test(faults_say_whether_to_retry),
        cmocka_unit_test(a_model_must_be_listed_or_an_alias),
        cmocka_unit_test(the_service_is_described),
    };
    unsetenv("IPW_API_KEY");
    unsetenv("OPENAI_API_KEY");
    unsetenv("ANTHROPIC_API_KEY");
    return cmocka_run_group_tests(tests, inference_start, inference_stop);
}
