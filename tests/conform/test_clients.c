/* test: real time, tsan */
/* Every client driver in the registry against the contract of clients/client.h: without a service,
 * with a healthy one and with a faulty one. A driver added to clients.def is tested automatically;
 * the test server must then speak its protocol. */
#include "support/conform.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "support/ask.h"
#include "support/inference.h"
#include "support/model.h"
#include "support/onnx_made.h"

#define FOR_EACH_DRIVER(d) for (const struct client_driver *const *d = CLIENT_DRIVERS; *d; d++)

/* A driver that is not usable on this machine reports that in a test of its own, and is skipped in the others. */
#define FOR_EACH_USABLE(d) FOR_EACH_DRIVER(d) if (!(*d)->available || !(*d)->available(NULL, NULL))

/* How many requests to make: an in-process model recomputes each answer, which under valgrind takes
 * half a minute and covers nothing new. */
static int repeats(const struct client_driver *driver, int often)
{
    return driver->is_in_process && getenv("IPW_SLOW") ? 1 : often;
}

/* False for a load that reads no questions: it generates no text either. */
static bool has_tokens(const struct client_driver *driver)
{
    return !driver->only_dataset;
}

/* Opens a client on a scenario of the test server, for drivers that have a URL; an in-process model
 * gets one thread, because more would wait for each other on a busy machine. */
static enum err open_with_params(const struct client_driver *driver, const char *scenario,
                                 const char *more, struct client *client)
{
    struct error why = {0};
    struct params params = {0};
    if (driver->is_in_process)
        assert_int_equal(params_add(&params, "threads=1"), ERR_OK);
    if (driver->is_in_process && has_tokens(driver))
        assert_int_equal(params_add(&params, "context=64"), ERR_OK);
    if (more)
        assert_int_equal(params_add(&params, more), ERR_OK);
    const struct client_config config = {
        .base_url = driver->default_url ? inference_url(scenario) : NULL, .params = &params};
    enum err err = client_open(driver, &config, client, &why);
    if (err)
        print_error("%s: %s\n", driver->name, why.text);
    params_release(&params);
    return err;
}

static enum err open_driver(const struct client_driver *driver, const char *scenario,
                            struct client *client)
{
    return open_with_params(driver, scenario, NULL, client);
}

static bool is_line(const char *text)
{
    return text && *text && !strchr(text, '\n');
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    FOR_EACH_DRIVER(d)
    {
        const struct client_driver *driver = *d;
        CHECK(is_line(driver->name) && is_line(driver->summary), driver->name);
        CHECK(strlen(driver->summary) <= 90, driver->name);
        CHECK(driver->open && driver->close && driver->health && driver->models, driver->name);
        CHECK(driver->prepare && driver->describe && driver->tools && driver->ask, driver->name);
        CHECK(client_driver_find(driver->name, NULL) == driver, driver->name);
        for (const struct param_spec *p = driver->params; p && p->name; p++)
            CHECK(is_line(p->name) && is_line(p->value) && is_line(p->help), driver->name);
        for (const struct client_driver *const *other = CLIENT_DRIVERS; other != d; other++)
            CHECK(strcmp((*other)->name, driver->name) != 0, driver->name);
    }
}

static void unknown_name_suggests_the_nearest(void **state)
{
    (void)state;
    struct error why;
    assert_null(client_driver_find("olama", &why));
    assert_int_equal(why.code, ERR_NOT_FOUND);
    assert_contains(why.text, "did you mean 'ollama'?");
    assert_null(client_driver_find("something-else", &why));
    assert_contains(why.text, "openai, ollama");
    assert_null(client_driver_find("", NULL));
}

static void an_unusable_driver_reports_why(void **state)
{
    (void)state;
    FOR_EACH_DRIVER(d)
    {
        struct client client;
        struct error why = {0};
        const struct client_config config = {0};
        if (!(*d)->available || (*d)->available(NULL, &why) == ERR_OK)
            continue;
        CHECK(client_open(*d, &config, &client, &why) == ERR_UNSUPPORTED, (*d)->name);
        CHECK(is_line(why.text) && strstr(why.text, "install") && !client.driver, (*d)->name);
    }
}

static void opening_contacts_no_server_and_leaks_nothing(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        struct client client;
        struct error why = {0};
        const struct client_config nobody = {.base_url =
                                                 (*d)->default_url ? inference_unused_url() : NULL};
        CHECK(client_open(*d, &nobody, &client, &why) == ERR_OK,
              (*d)->name); /* may load a library that stays loaded */
        client_close(&client);
        int before = open_descriptors();
        for (int i = 0; i < 3; i++) {
            CHECK(client_open(*d, &nobody, &client, &why) == ERR_OK, (*d)->name);
            CHECK(client.driver == *d && client.state, (*d)->name);
            client_close(&client);
            CHECK(!client.state, (*d)->name);
            client_close(&client); /* closing twice is harmless */
        }
        struct params unknown = {0};
        assert_int_equal(params_add(&unknown, "no_such_parameter=1"), ERR_OK);
        const struct client_config wrong = {.params = &unknown};
        CHECK(client_open(*d, &wrong, &client, &why) == ERR_USAGE, (*d)->name);
        CHECK(strstr(why.text, "no_such_parameter") && strstr(why.text, (*d)->name), (*d)->name);
        CHECK(!client.state && !client.driver, (*d)->name);
        params_release(&unknown);
        CHECK(open_descriptors() == before, (*d)->name);
    }
}

static void a_missing_service_is_reported(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        if (!(*d)->default_url)
            continue;
        struct client client;
        struct error why = {0};
        struct client_models models = {0};
        const struct client_config nobody = {.base_url = inference_unused_url()};
        CHECK(client_open(*d, &nobody, &client, &why) == ERR_OK, (*d)->name);
        CHECK((*d)->health(&client, &why) == ERR_LOST, (*d)->name);
        CHECK(is_line(why.text) && strstr(why.text, "http://127.0.0.1:"), (*d)->name);
        CHECK((*d)->models(&client, &models, &why) == ERR_LOST, (*d)->name);
        CHECK((*d)->prepare(&client, "m", NS_PER_S, &why) == ERR_LOST, (*d)->name);
        struct ask_result a = ask_client(&client, NULL);
        CHECK(a.err == ERR_LOST && a.reply.retryable && is_line(a.why.text), (*d)->name);
        CHECK(a.reply.status == 0 && a.reply.done >= a.reply.sent && a.reply.sent > 0, (*d)->name);
        ask_result_release(&a);
        client_models_release(&models);
        client_close(&client);
    }
}

static void check_times(const struct client_driver *driver, const struct completion *r)
{
    CHECK(r->sent > 0 && r->sent <= r->first_token && r->first_token <= r->last_token,
          driver->name);
    CHECK(r->last_token <= r->done, driver->name);
    CHECK(r->arrivals.count > 0 && r->arrivals.times[0] == r->first_token, driver->name);
    CHECK(r->arrivals.times[r->arrivals.count - 1] == r->last_token, driver->name);
    for (size_t i = 1; i < r->arrivals.count; i++)
        CHECK(r->arrivals.times[i - 1] <= r->arrivals.times[i], driver->name);
}

static void check_counts(const struct client_driver *driver, const struct completion *reply)
{
    bool has_counts = reply->prompt_tokens > 0 && reply->output_tokens > 0;
    CHECK(has_counts == has_tokens(driver), driver->name);
    if (has_counts)
        check_times(driver, reply);
    else
        CHECK(reply->prompt_tokens == -1 && reply->output_tokens == -1, driver->name);
}

static void append_bytes(void *context, const char *bytes, size_t length, nanos t)
{
    (void)t;
    text_add_bytes(context, bytes, length);
}

static void a_healthy_service_answers(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        struct client client;
        struct error why = {0};
        struct client_models models = {0};
        CHECK(open_driver(*d, "normal:first_ms=5", &client) == ERR_OK, (*d)->name);
        CHECK((*d)->health(&client, &why) == ERR_OK, (*d)->name);
        CHECK((*d)->models(&client, &models, &why) == ERR_OK && models.count > 0, (*d)->name);
        CHECK((*d)->prepare(&client, models.names[0], 60 * NS_PER_S, &why) == ERR_OK, (*d)->name);
        for (int i = 0; i < repeats(*d, 3); i++) {
            struct completion reply;
            struct text seen = {0};
            nanos before = clock_now();
            const struct client_request request = {.model = models.names[0],
                                                   .prompt = "Q",
                                                   .observer = append_bytes,
                                                   .context = &seen};
            CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            CHECK(reply.sent >= before && reply.done <= clock_now(), (*d)->name);
            CHECK(reply.content.length > 0, (*d)->name);
            CHECK(strcmp(text_get(&seen), text_get(&reply.content)) == 0, (*d)->name);
            /* A model with random weights never emits an end token. */
            const char *end = (*d)->is_in_process && has_tokens(*d) ? "length" : "stop";
            CHECK(!reply.retryable && strcmp(reply.finish_reason, end) == 0, (*d)->name);
            check_counts(*d, &reply);
            completion_release(&reply);
            text_release(&seen);
        }
        client_models_release(&models);
        client_close(&client);
    }
}

static void describe_adds_members_to_an_object(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const SCENARIOS[] = {"normal", "loading", "status:code=404"};
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++)
        FOR_EACH_USABLE(d)
        {
            struct client client;
            struct text out = {0};
            struct json json;
            struct jv *root;
            CHECK(open_driver(*d, SCENARIOS[i], &client) == ERR_OK, (*d)->name);
            json_init(&json, &out, false);
            json_object(&json, NULL);
            json_string(&json, "before", "x");
            (*d)->describe(&client, "tiny-1b", &json);
            json_string(&json, "after", "x");
            json_object_end(&json);
            CHECK(json.depth == 0, (*d)->name);
            CHECK(jv_parse(text_get(&out), out.length, &root, NULL) == ERR_OK, (*d)->name);
            CHECK(jv_count(root) >= 2 && jv_get(root, "after"), (*d)->name);
            for (const struct jv *c = jv_first(root); c; c = jv_next(c))
                CHECK(!jv_is_null(c), (*d)->name); /* unknown values are omitted */
            jv_free(root);
            text_release(&out);
            client_close(&client);
        }
}

static void a_canceled_request_returns(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        struct client client;
        struct completion reply;
        struct error why = {0};
        atomic_bool cancel = true;
        CHECK(open_driver(*d, "hang:after=request", &client) == ERR_OK, (*d)->name);
        const struct client_request request = {.model = "m", .prompt = "Q", .cancel = &cancel};
        CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_INTERRUPTED, (*d)->name);
        CHECK(!reply.retryable && is_line(why.text) && reply.done >= reply.sent, (*d)->name);
        completion_release(&reply);
        client_close(&client);
    }
}

static void a_client_is_usable_after_a_failed_request(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        if (!(*d)->default_url)
            continue;
        struct client client;
        CHECK(open_driver(*d, "die:after=content,how=close", &client) == ERR_OK, (*d)->name);
        for (int i = 0; i < 3; i++) {
            struct ask_result a = ask_client(&client, NULL);
            CHECK(a.err == ERR_LOST && a.reply.retryable, (*d)->name);
            CHECK(strcmp(text_get(&a.reply.content), "Hello") == 0, (*d)->name);
            CHECK(a.reply.output_tokens == -1 && a.reply.prompt_tokens == -1, (*d)->name);
            ask_result_release(&a);
        }
        struct client_models models = {0};
        CHECK((*d)->models(&client, &models, NULL) == ERR_OK && models.count > 0, (*d)->name);
        client_models_release(&models);
        client_close(&client);
    }
}

/* ---- conversations and tools ---- */

static const struct chat_tool TOOLS[] = {
    {"add", "Adds two numbers.",
     "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"required\":[\"a\",\"b\"]}"},
    {"noop", NULL, NULL},
};

/* False for an in-process model: random weights call no tools. */
static bool calls_tools(const struct client_driver *driver)
{
    return driver->default_url != NULL;
}

static void a_conversation_is_continued(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        struct client client;
        struct completion reply;
        struct error why = {0};
        struct chat chat = {0};
        struct client_models models = {0};
        CHECK(open_driver(*d, "normal", &client) == ERR_OK, (*d)->name);
        CHECK((*d)->models(&client, &models, &why) == ERR_OK, (*d)->name);
        chat_add(&chat, CHAT_SYSTEM, "S");
        chat_add(&chat, CHAT_USER, "Q");
        chat_add_reply(&chat, "A", NULL);
        chat_add(&chat, CHAT_USER, "And?");
        const struct client_request request = {.model = models.names[0], .chat = &chat};
        CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
        CHECK(reply.content.length > 0 && reply.calls.count == 0, (*d)->name);
        CHECK((reply.prompt_tokens > 0) == has_tokens(*d), (*d)->name);
        completion_release(&reply);
        client_models_release(&models);
        chat_release(&chat);
        client_close(&client);
    }
}

/* The tool calls of the scenario: {"a": 1, "b": "x\"}"} for add, no arguments for noop. */
static void check_calls(const struct client_driver *driver, const struct completion *reply)
{
    struct jv *arguments;
    const struct tool_calls *calls = &reply->calls;
    CHECK(calls->count == 2, driver->name);
    CHECK(!strcmp(calls->items[0].name, "add") && !strcmp(calls->items[1].name, "noop"),
          driver->name);
    CHECK(*calls->items[0].id && *calls->items[1].id, driver->name);
    CHECK(strcmp(calls->items[0].id, calls->items[1].id) != 0, driver->name);
    const struct text *text = &calls->items[0].arguments;
    CHECK(jv_parse(text_get(text), text->length, &arguments, NULL) == ERR_OK, driver->name);
    CHECK(jv_number(jv_get(arguments, "a")) == 1, driver->name);
    CHECK(!strcmp(jv_text(jv_get(arguments, "b")), "x\"}"), driver->name);
    jv_free(arguments);
    CHECK(!strcmp(text_get(&calls->items[1].arguments), "{}"), driver->name);
    CHECK(reply->content.length == 0 && reply->output_tokens == 9, driver->name);
    check_times(driver, reply);
}

static void tools_are_called_and_their_results_are_sent_back(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const SCENARIOS[] = {"tools:first_ms=5", "tools:how=same_index"};
    for (size_t i = 0; i < 2; i++)
        FOR_EACH_USABLE(d)
        {
            struct client client;
            struct completion reply;
            struct error why = {0};
            struct chat chat = {0};
            if (!calls_tools(*d))
                continue;
            CHECK(open_driver(*d, SCENARIOS[i], &client) == ERR_OK, (*d)->name);
            CHECK((*d)->tools(&client, "tiny-1b") == CLIENT_TOOLS_YES, (*d)->name);
            chat_add(&chat, CHAT_USER, "1 + x?");
            const struct client_request request = {
                .model = "tiny-1b", .chat = &chat, .tools = TOOLS, .tool_count = 2};
            CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            check_calls(*d, &reply);
            chat_add_reply(&chat, "", &reply.calls);
            for (size_t c = 0; c < 2; c++)
                chat_add_result(&chat, &reply.calls.items[c], c ? "none" : "three");
            completion_release(&reply);
            CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            CHECK(!strcmp(text_get(&reply.content), "Results: three none"), (*d)->name);
            CHECK(reply.calls.count == 0 && strcmp(reply.finish_reason, "stop") == 0, (*d)->name);
            completion_release(&reply);
            chat_release(&chat);
            client_close(&client);
        }
}

static void missing_tool_support_is_distinguished_from_other_failures(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const SCENARIOS[] = {"no_tools:as=ollama", "no_tools:as=llama",
                                            "no_tools:as=vllm", "no_tools:as=strict"};
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++)
        FOR_EACH_USABLE(d)
        {
            if (i > 0 && !(*d)->default_url)
                continue; /* without a server the result is the same */
            struct client client;
            struct completion reply;
            struct error why = {0};
            struct client_models models = {0};
            bool is_null = strcmp((*d)->name, "null") == 0;
            CHECK(open_with_params(*d, SCENARIOS[i], is_null ? "tools=no" : NULL, &client) ==
                      ERR_OK,
                  (*d)->name);
            CHECK((*d)->models(&client, &models, &why) == ERR_OK, (*d)->name);
            const char *model = models.names[0];
            const struct client_request request = {
                .model = model, .prompt = "Q", .tools = TOOLS, .tool_count = 2};
            CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_UNSUPPORTED, (*d)->name);
            CHECK(reply.rejects_tools && !reply.retryable && is_line(why.text), (*d)->name);
            CHECK(strstr(why.text, "tools"), (*d)->name);
            CHECK((*d)->tools(&client, model) == CLIENT_TOOLS_NO, (*d)->name);
            completion_release(&reply);
            const struct client_request plain = {.model = model, .prompt = "Q"};
            CHECK((*d)->ask(&client, &plain, &reply, &why) == ERR_OK, (*d)->name);
            CHECK(!reply.rejects_tools && reply.content.length > 0, (*d)->name);
            completion_release(&reply);
            client_close(&client);
            CHECK(open_driver(*d, "status:code=400", &client) == ERR_OK, (*d)->name);
            if (calls_tools(*d)) {
                CHECK((*d)->ask(&client, &request, &reply, &why) == ERR_BAD_VALUE, (*d)->name);
                CHECK(!reply.rejects_tools, (*d)->name);
                completion_release(&reply);
            }
            client_models_release(&models);
            client_close(&client);
        }
}

enum { ASKED = 4 };

struct worker {
    const struct client_driver *driver;
    struct client client;
    pthread_t thread;
    int good;
};

static void *client_thread(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < repeats(w->driver, ASKED); i++) {
        struct completion reply;
        const struct client_request request = {.model = "tiny-1b", .prompt = "Q"};
        if (!w->driver->ask(&w->client, &request, &reply, NULL) && reply.content.length > 0)
            w->good++;
        completion_release(&reply);
    }
    return NULL;
}

static void several_clients_work_concurrently(void **state)
{
    (void)state;
    NEEDS_HTTP();
    enum { WORKERS = 4 };
    FOR_EACH_USABLE(d)
    {
        struct worker workers[WORKERS];
        for (int i = 0; i < WORKERS; i++) {
            workers[i] = (struct worker){.driver = *d};
            CHECK(open_driver(*d, "normal:gap_ms=1", &workers[i].client) == ERR_OK, (*d)->name);
        }
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(thread_start(&workers[i].thread, client_thread, &workers[i]), ERR_OK);
        for (int i = 0; i < WORKERS; i++)
            pthread_join(workers[i].thread, NULL);
        for (int i = 0; i < WORKERS; i++) {
            CHECK(workers[i].good == repeats(*d, ASKED), (*d)->name);
            client_close(&workers[i].client);
        }
    }
}

/* The ONNX model of the name that the GGUF model has, in the folder of its kind. */
static char onnx_folder[256], onnx_file[300];

static int make_onnx_model(void)
{
    struct onnx_made made = onnx_made_sum();
    snprintf(onnx_folder, sizeof onnx_folder, "%s/vision", model_folder());
    snprintf(onnx_file, sizeof onnx_file, "%s/tiny-1b.onnx", onnx_folder);
    if (mkdir(onnx_folder, 0755))
        return -1;
    onnx_made_file_at(&made, onnx_file);
    return 0;
}

static int start_server(void **state)
{
    return inference_start(state) || model_make(state) || make_onnx_model() ? -1 : 0;
}

static int stop_server(void **state)
{
    unlink(onnx_file);
    rmdir(onnx_folder);
    return inference_stop(state) || model_remove(state) ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_well_formed),
        cmocka_unit_test(unknown_name_suggests_the_nearest),
        cmocka_unit_test(an_unusable_driver_reports_why),
        cmocka_unit_test(opening_contacts_no_server_and_leaks_nothing),
        cmocka_unit_test(a_missing_service_is_reported),
        cmocka_unit_test(a_healthy_service_answers),
        cmocka_unit_test(describe_adds_members_to_an_object),
        cmocka_unit_test(a_canceled_request_returns),
        cmocka_unit_test(a_client_is_usable_after_a_failed_request),
        cmocka_unit_test(a_conversation_is_continued),
        cmocka_unit_test(tools_are_called_and_their_results_are_sent_back),
        cmocka_unit_test(missing_tool_support_is_distinguished_from_other_failures),
        cmocka_unit_test(several_clients_work_concurrently),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
