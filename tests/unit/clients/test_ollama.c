/* test: real time, tsan */
/* The ollama driver against a scripted server: requests as sent, durations, models, faults. */
#include "support/unit.h"

#include "core/json.h"
#include "port/json_read.h"
#include "support/ask.h"
#include "support/inference.h"

static void requests_have_the_documented_form(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *client_params, *params, *path, *body;
    } CASES[] = {
        {NULL, NULL, "/normal/api/generate",
         "{\"model\":\"tiny-1b\",\"prompt\":\"Say hello\",\"stream\":true}"},
        {"endpoint=chat", NULL, "/normal/api/chat",
         "{\"model\":\"tiny-1b\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hello\"}],"
         "\"stream\":true}"},
        {NULL, "max_tokens=50,temperature=0.7,keep_alive=5m,think=false,format=json,num_ctx=8192",
         "/normal/api/generate",
         "{\"model\":\"tiny-1b\",\"prompt\":\"Say hello\",\"stream\":true,\"keep_alive\":\"5m\","
         "\"think\":false,\"format\":\"json\",\"options\":{\"num_predict\":50,\"temperature\":0.7,"
         "\"num_ctx\":8192}}"},
        {NULL, "num_predict=9,max_tokens=50", "/normal/api/generate",
         "{\"model\":\"tiny-1b\",\"prompt\":\"Say hello\",\"stream\":true,"
         "\"options\":{\"num_predict\":9}}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a =
            ask_scenario("ollama", "normal", CASES[i].client_params, CASES[i].params);
        assert_int_equal(a.err, ERR_OK);
        ask_result_release(&a);
        struct jv *seen = inference_request(0);
        assert_string_equal(jv_text(jv_get(seen, "body")), CASES[i].body);
        assert_string_equal(jv_text(jv_get(seen, "path")), CASES[i].path);
        jv_free(seen);
    }
    static const char *const RESERVED[] = {"options={}", "model=x", "system=x"};
    for (size_t i = 0; i < sizeof RESERVED / sizeof *RESERVED; i++) {
        struct ask_result a = ask_scenario("ollama", "normal", NULL, RESERVED[i]);
        assert_int_equal(a.err, ERR_USAGE);
        ask_result_release(&a);
    }
}

static void a_system_prompt_has_its_own_field(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *params, *body;
    } CASES[] = {{"endpoint=generate",
                  "{\"model\":\"m\",\"system\":\"Be brief\",\"prompt\":\"Q\",\"stream\":true}"},
                 {"endpoint=chat",
                  "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
                  "brief\"},{\"role\":\"user\",\"content\":\"Q\"}],\"stream\":true}"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct completion reply;
        inference_client(&client, "ollama", "normal", CASES[i].params);
        const struct client_request request = {.model = "m", .system = "Be brief", .prompt = "Q"};
        assert_int_equal(client.driver->ask(&client, &request, &reply, NULL), ERR_OK);
        completion_release(&reply);
        client_close(&client);
        struct jv *seen = inference_request(0);
        assert_string_equal(jv_text(jv_get(seen, "body")), CASES[i].body);
        jv_free(seen);
    }
}

static void answers_are_read_in_any_framing(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *scenario, *client_params;
        size_t pieces;
        int64_t prompt, output;
    } CASES[] = {
        {"normal", NULL, 6, 11, 6},          {"normal", "endpoint=chat", 6, 11, 6},
        {"normal:eol=crlf", NULL, 6, 11, 6}, {"normal:split=1", NULL, 6, 11, 6},
        {"normal:gzip=1", NULL, 6, 11, 6},   {"normal:frame=close", NULL, 6, 11, 6},
        {"no_usage", NULL, 6, -1, -1},       {"whole", NULL, 1, -1, 6},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a =
            ask_scenario("ollama", CASES[i].scenario, CASES[i].client_params, NULL);
        assert_int_equal(a.err, ERR_OK);
        assert_string_equal(text_get(&a.reply.content), SCENARIO_ANSWER);
        assert_int_equal(a.reply.arrivals.count, CASES[i].pieces);
        assert_int_equal(a.reply.prompt_tokens, CASES[i].prompt);
        assert_int_equal(a.reply.output_tokens, CASES[i].output);
        assert_string_equal(a.reply.finish_reason, "stop");
        ask_result_release(&a);
    }
}

static void the_servers_durations_are_kept(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("ollama", "normal:first_ms=80", NULL, NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_near(a.reply.server_load_s, 1.5, 1e-9);
    assert_near(a.reply.server_prefill_s, 0.25, 1e-9);
    assert_near(a.reply.server_decode_s, 3, 1e-9);
    assert_true(a.reply.first_token - a.reply.sent >= 80 * NS_PER_MS);
    ask_result_release(&a);
}

static void reasoning_is_separated_from_content(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct ask_result a = ask_scenario("ollama", "thinking", NULL, NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_string_equal(text_get(&a.reply.reasoning), "reasoning_content? reasoning? ");
    assert_string_equal(text_get(&a.reply.content), "42");
    assert_int_equal(a.reply.reasoning_tokens, -1);
    ask_result_release(&a);
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
        {"die:after=content,how=close", ERR_LOST, true, "in the middle", "Hello"},
        {"die:after=content,how=close,frame=close", ERR_LOST, true,
         "before the completion was finished", "Hello"},
        {"cut", ERR_LOST, true, "before the completion was finished", "Hello"},
        {"malformed", ERR_BAD_VALUE, false, "invalid JSON: {\"choices\": [oops", "Hello"},
        {"error", ERR_IO, true, "failed: out of moons", "Hello"},
        {"huge_line", ERR_BAD_VALUE, false, "a line of more than 16 MiB", "Hello"},
        {"status:code=404,body=ollama", ERR_NOT_FOUND, false, "404: the moon is full", ""},
        {"status:code=503,body=ollama", ERR_BUSY, true, "503: the moon is full", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_scenario("ollama", CASES[i].scenario, NULL, NULL);
        assert_int_equal(a.err, CASES[i].err);
        assert_int_equal(a.reply.retryable, CASES[i].retryable);
        assert_contains(a.why.text, CASES[i].says);
        assert_string_equal(text_get(&a.reply.content), CASES[i].content);
        ask_result_release(&a);
    }
}

static void an_unlisted_model_is_an_error(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *model;
        enum err err;
        const char *says;
    } CASES[] = {
        {"tiny-1b", ERR_OK, ""}, /* implies the tag "latest" */
        {"tiny-1b:latest", ERR_OK, ""},
        {"Tiny-1B", ERR_OK, ""},
        {"tiny-3b-chat:q8", ERR_OK, ""},
        {"tiny-3b-chat", ERR_NOT_FOUND, "did you mean tiny-3b-chat:q8"},
        {"tiny-1b:q4", ERR_NOT_FOUND, "did you mean tiny-1b:latest?"},
        {"something-else-entirely", ERR_NOT_FOUND, "ollama pull something-else-entirely"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why = {0};
        inference_client(&client, "ollama", "normal", NULL);
        assert_int_equal(client.driver->prepare(&client, CASES[i].model, 60 * NS_PER_S, &why),
                         CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        client_close(&client);
        struct jv *seen = inference_request(0);
        if (!CASES[i].err)
            assert_contains(jv_text(jv_get(seen, "body")), "\"options\":{\"num_predict\":1}");
        jv_free(seen);
    }
}

static void addresses_are_normalized(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const struct {
        const char *given, *used;
    } CASES[] = {{NULL, "http://127.0.0.1:11434"},
                 {"box:11434", "http://box:11434"},
                 {"http://box:11434/", "http://box:11434"},
                 {"https://box/api/", "https://box"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        const struct client_config config = {.base_url = CASES[i].given};
        assert_int_equal(client_open(client_driver_find("ollama", NULL), &config, &client, NULL),
                         ERR_OK);
        assert_string_equal(client.base_url, CASES[i].used);
        client_close(&client);
    }
    struct client client;
    struct error why;
    const struct client_config nobody = {.base_url = inference_unused_url()};
    assert_int_equal(client_open(client_driver_find("ollama", NULL), &nobody, &client, NULL),
                     ERR_OK);
    assert_int_equal(client.driver->health(&client, &why), ERR_LOST);
    assert_contains(why.text, "ollama serve");
    client_close(&client);
}

static void service_details_are_described(void **state)
{
    (void)state;
    NEEDS_HTTP();
    struct client client;
    struct json json;
    struct text out = {0};
    inference_client(&client, "ollama", "normal", NULL);
    json_init(&json, &out, false);
    json_object(&json, NULL);
    client.driver->describe(&client, "tiny-1b", &json);
    json_object_end(&json);
    client_close(&client);
    assert_string_equal(
        text_get(&out),
        "{\"server\":\"ollama\",\"endpoint\":\"generate\",\"server_version\":\"0.12.3\","
        "\"model_format\":\"gguf\",\"family\":\"llama\",\"parameter_size\":\"1.2B\","
        "\"quantization\":\"Q4_K_M\",\"parameters\":1235814432,\"context_length\":131072,"
        "\"model_bytes\":900,\"gpu_bytes\":450,\"context_used\":4096,\"digest\":\"d1\"}");
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_the_documented_form),
        cmocka_unit_test(a_system_prompt_has_its_own_field),
        cmocka_unit_test(answers_are_read_in_any_framing),
        cmocka_unit_test(the_servers_durations_are_kept),
        cmocka_unit_test(reasoning_is_separated_from_content),
        cmocka_unit_test(faults_keep_received_content),
        cmocka_unit_test(an_unlisted_model_is_an_error),
        cmocka_unit_test(addresses_are_normalized),
        cmocka_unit_test(service_details_are_described),
    };
    return cmocka_run_group_tests(tests, inference_start, inference_stop);
}
