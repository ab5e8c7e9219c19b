/* Documents of inference servers besides completions: lists of models, versions, properties, the figures of a
 * monitor on another host, and errors with any status.  The HTTP client is a fake: every request gets the input. */
#include "fuzz/fuzz.h"

#include "clients/client.h"
#include "core/json.h"
#include "core/jv.h"
#include "sensors/registry.h"
#include "stubs/http_fake.h"
#include "wire/otlp.h"

static const char *response;
static size_t response_length;
static int response_status;

static enum err answer(const char *url, struct text *body, int *status, double *retry_after_s)
{
    (void)url, (void)retry_after_s;
    if (http_fake.count > 32)
        return ERR_LOST;
    *status = response_status;
    text_add_bytes(body, response, response_length);
    return ERR_OK;
}

static void ask(const char *name, const struct params *params)
{
    const struct client_driver *driver = client_driver_find(name, NULL);
    struct client client;
    struct client_models models = {0};
    struct completion reply;
    struct text described = {0};
    struct json json;
    struct jv *tree = NULL;
    struct error why = {0};
    if (client_open(driver,
                    &(struct client_config){.base_url = "http://127.0.0.1:1", .params = params},
                    &client, &why))
        fuzz_fail(why.text);
    fuzz_check_error(driver->health(&client, &why), &why);
    enum err err = driver->models(&client, &models, &why);
    fuzz_check_error(err, &why);
    client_models_release(&models);
    fuzz_check_error(driver->prepare(&client, "m", 0, &why), &why);
    json_init(&json, &described, false);
    json_object(&json, NULL);
    driver->describe(&client, "m", &json);
    json_object_end(&json);
    if (jv_parse(described.bytes, described.length, &tree, &why))
        fuzz_fail(why.text);
    jv_free(tree);
    text_release(&described);
    (void)driver->tools(&client, "m");
    completion_init(&reply);
    err = driver->ask(&client, &(struct client_request){.model = "m", .prompt = "p"}, &reply, &why);
    fuzz_check_error(err, &why);
    completion_release(&reply);
    client_close(&client);
}

/* The replies of the client that needs no server. */
static void ask_script(const char *path)
{
    struct params params = {0};
    struct client client;
    struct error why = {0};
    fuzz_check(!params_set(&params, "script", path));
    enum err err = client_open(client_driver_find("null", NULL),
                               &(struct client_config){.params = &params}, &client, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        client_close(&client);
        ask("null", &params);
    }
    params_release(&params);
}

/* The reply of a receiver of traces. */
static void push(void)
{
    struct otlp_receiver receiver;
    struct otlp_reply reply;
    struct error why = {0};
    if (otlp_receiver_open(&receiver, OTLP_TRACES, "http://127.0.0.1:1", &why))
        fuzz_fail(why.text);
    enum otlp_outcome outcome = otlp_receiver_send(&receiver, "{}", 2, NULL, &reply);
    fuzz_check(outcome == OTLP_SENT || reply.why.text[0]);
    fuzz_check(reply.rejected >= 0 && str_is_plain(reply.why.text));
    otlp_receiver_release(&receiver);
}

static void probe_remote(void)
{
    struct sensor_findings findings = {0};
    sensors_probe(&(struct sensor_config){.arguments = "127.0.0.1:1"}, "remote", &findings);
    for (size_t i = 0; i < findings.count; i++) {
        struct sensor sensor;
        struct error why = {0};
        fuzz_check(findings.items[i].status <= SENSOR_ESTIMATED || findings.items[i].reason[0]);
        if (findings.items[i].status == SENSOR_OK &&
            !sensor_open(&findings.items[i], &sensor, &why))
            sensor_close(&sensor);
    }
    sensor_findings_release(&findings);
}

static void run(const char *bytes, size_t length)
{
    static const int STATUS[] = {200, 200, 200, 200, 400, 404, 429, 503};
    unsigned choice = fuzz_choose(&bytes, &length, 6);
    response_status = STATUS[fuzz_choose(&bytes, &length, 8)];
    response = bytes;
    response_length = length;
    http_fake = (struct http_fake){.answer = answer};
    if (choice == 2)
        probe_remote();
    else if (choice == 5)
        push();
    else if (choice == 3)
        ask_script(fuzz_file("script", bytes, length));
    else
        ask(choice == 0 ? "openai" : choice == 1 ? "ollama" : "anthropic", NULL);
}

static void seeds(void)
{
    fuzz_seed(0, "a{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"max_model_len\":4096,\"owned_"
                 "by\":\"vllm\"},"
                 "{\"id\":\"n\"}],\"version\":\"0.6\"}");
    fuzz_seed(0,
              "a{\"models\":[{\"name\":\"m\",\"capabilities\":[\"tools\"]}],\"default_generation_"
              "settings\":"
              "{\"n_ctx\":512},\"chat_template\":\"{{tools}}\",\"build_info\":\"b1\",\"choices\":[{"
              "\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}");
    fuzz_seed(1, "a{\"models\":[{\"name\":\"m\",\"model\":\"m\",\"details\":{\"quantization_"
                 "level\":\"Q4\"}}],"
                 "\"version\":\"0.5\",\"capabilities\":[\"tools\",\"completion\"],\"model_info\":{"
                 "\"general.architecture\":\"llama\",\"llama.context_length\":8192},\"details\":{"
                 "\"parameter_size\":\"8B\"},\"response\":\"a\",\"done\":true}");
    fuzz_seed(0, "f{\"error\":{\"message\":\"no such model\",\"code\":\"model_not_found\"}}");
    fuzz_seed(1, "f{\"error\":\"model 'x' not found\"}");
    fuzz_seed(0, "h{\"detail\":[{\"msg\":\"busy\"}]}");
    fuzz_seed(
        2, "a{\"format\":\"ipw.readings.v1\",\"instance\":\"i\",\"host\":\"h\",\"monotonic_ns\":5,"
           "\"unix_ns\":6,\"interval_s\":0.1,\"domains\":[],\"gauges\":[]}");
    fuzz_seed(
        3, "a{\"content\":\"c\",\"tool_calls\":[{\"name\":\"t\",\"arguments\":{\"a\":1}}],\"when\":"
           "\"p\"}\n{\"error\":\"busy\"}\n");
    fuzz_seed(5, "a{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"full\"}}");
    fuzz_seed(5, "e{\"code\":3,\"message\":\"bad\"}");
    fuzz_seed(2, "gToo many requests");
    fuzz_seed(4, "a{\"data\":[{\"type\":\"model\",\"id\":\"m\",\"max_input_tokens\":9},{\"id\":"
                 "\"n\"}],\"has_more\":false,\"type\":\"message\",\"content\":[{\"type\":\"text\","
                 "\"text\":\"a\"}],\"stop_reason\":\"end_turn\"}");
    fuzz_seed(4,
              "g{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"}}");
}

static const char *const WORDS[] = {
    "\"data\"", "\"id\"", "\"models\"", "\"name\"",    "\"error\"",        "null",
    "[]",       "[1]",    "{}",         "\"details\"", "\"capabilities\"", NULL};

const struct fuzz_target fuzz_clients = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
