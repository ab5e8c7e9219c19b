/* Every client driver in the registry, held to the contract of clients/client.h: without a service,
 * with one that is well, and with one that is not.  A driver added to clients.def is under test the
 * same day; the server of the tests must then speak its language. */
#include "support/conform.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/json.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "support/asking.h"
#include "support/inference.h"
#include "support/model.h"

#define FOR_EACH_DRIVER(d) for (const struct client_driver *const *d = CLIENT_DRIVERS; *d; d++)

/* A driver that this machine cannot use has said so in a test of its own, and is skipped in the others. */
#define FOR_EACH_USABLE(d) FOR_EACH_DRIVER(d) if (!(*d)->available || !(*d)->available(NULL, NULL))

/* How often to ask: a model in this process computes its answers anew, and valgrind sees in the second,
 * half a minute later, what it saw in the first. */
static int times_asked(const struct client_driver *driver, int often)
{
    return driver->is_in_process && getenv("IPW_SLOW") ? 1 : often;
}

/* Opens on a play of the server, for drivers that have an address at all; a model in this process gets
 * one thread, because more would wait for each other on a busy machine. */
static enum err open_with(const struct client_driver *driver, const char *play, const char *more,
                          struct client *client)
{
    struct error why = {0};
    struct params params = {0};
    if (driver->is_in_process)
        assert_int_equal(params_add(&params, "threads=1,context=64"), ERR_OK);
    if (more)
        assert_int_equal(params_add(&params, more), ERR_OK);
    const struct client_config config = {
        .base_url = driver->default_url ? inference_url(play) : NULL, .params = &params};
    enum err err = client_open(driver, &config, client, &why);
    if (err)
        print_error("%s: %s\n", driver->name, why.text);
    params_release(&params);
    return err;
}

static enum err open_on(const struct client_driver *driver, const char *play, struct client *client)
{
    return open_with(driver, play, NULL, client);
}

static bool is_line(const char *text)
{
    return text && *text && !strchr(text, '\n');
}

static void a_driver_is_complete(void **state)
{
    (void)state;
    FOR_EACH_DRIVER(d)
    {
        const struct client_driver *driver = *d;
        HOLD(is_line(driver->name) && is_line(driver->summary), driver->name);
        HOLD(strlen(driver->summary) <= 90, driver->name);
        HOLD(driver->open && driver->close && driver->health && driver->models, driver->name);
        HOLD(driver->prepare && driver->describe && driver->tools && driver->ask, driver->name);
        HOLD(client_driver_find(driver->name, NULL) == driver, driver->name);
        for (const struct param_spec *p = driver->params; p && p->name; p++)
            HOLD(is_line(p->name) && is_line(p->value) && is_line(p->help), driver->name);
        for (const struct client_driver *const *other = CLIENT_DRIVERS; other != d; other++)
            HOLD(strcmp((*other)->name, driver->name) != 0, driver->name);
    }
}

static void an_unknown_name_gets_the_near_one(void **state)
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

static void a_driver_that_cannot_work_here_says_why(void **state)
{
    (void)state;
    FOR_EACH_DRIVER(d)
    {
        struct client client;
        struct error why = {0};
        const struct client_config config = {0};
        if (!(*d)->available || (*d)->available(NULL, &why) == ERR_OK)
            continue;
        HOLD(client_open(*d, &config, &client, &why) == ERR_UNSUPPORTED, (*d)->name);
        HOLD(is_line(why.text) && strstr(why.text, "install") && !client.driver, (*d)->name);
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
                                                 (*d)->default_url ? inference_nobody() : NULL};
        HOLD(client_open(*d, &nobody, &client, &why) == ERR_OK,
             (*d)->name); /* loads what is loaded once */
        client_close(&client);
        int before = open_descriptors();
        for (int i = 0; i < 3; i++) {
            HOLD(client_open(*d, &nobody, &client, &why) == ERR_OK, (*d)->name);
            HOLD(client.driver == *d && client.state, (*d)->name);
            client_close(&client);
            HOLD(!client.state, (*d)->name);
            client_close(&client); /* twice is harmless */
        }
        struct params unknown = {0};
        assert_int_equal(params_add(&unknown, "no_such_parameter=1"), ERR_OK);
        const struct client_config wrong = {.params = &unknown};
        HOLD(client_open(*d, &wrong, &client, &why) == ERR_USAGE, (*d)->name);
        HOLD(strstr(why.text, "no_such_parameter") && strstr(why.text, (*d)->name), (*d)->name);
        HOLD(!client.state && !client.driver, (*d)->name);
        params_release(&unknown);
        HOLD(open_descriptors() == before, (*d)->name);
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
        const struct client_config nobody = {.base_url = inference_nobody()};
        HOLD(client_open(*d, &nobody, &client, &why) == ERR_OK, (*d)->name);
        HOLD((*d)->health(&client, &why) == ERR_LOST, (*d)->name);
        HOLD(is_line(why.text) && strstr(why.text, "http://127.0.0.1:"), (*d)->name);
        HOLD((*d)->models(&client, &models, &why) == ERR_LOST, (*d)->name);
        HOLD((*d)->prepare(&client, "m", NS_PER_S, &why) == ERR_LOST, (*d)->name);
        struct asked a = ask_client(&client, NULL);
        HOLD(a.err == ERR_LOST && a.reply.retryable && is_line(a.why.text), (*d)->name);
        HOLD(a.reply.status == 0 && a.reply.done >= a.reply.sent && a.reply.sent > 0, (*d)->name);
        asked_release(&a);
        client_models_release(&models);
        client_close(&client);
    }
}

static void check_times(const struct client_driver *driver, const struct completion *r)
{
    HOLD(r->sent > 0 && r->sent <= r->first_token && r->first_token <= r->last_token, driver->name);
    HOLD(r->last_token <= r->done, driver->name);
    HOLD(r->arrivals.count > 0 && r->arrivals.times[0] == r->first_token, driver->name);
    HOLD(r->arrivals.times[r->arrivals.count - 1] == r->last_token, driver->name);
    for (size_t i = 1; i < r->arrivals.count; i++)
        HOLD(r->arrivals.times[i - 1] <= r->arrivals.times[i], driver->name);
}

static void see(void *context, const char *bytes, size_t length, nanos t)
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
        HOLD(open_on(*d, "normal:first_ms=5", &client) == ERR_OK, (*d)->name);
        HOLD((*d)->health(&client, &why) == ERR_OK, (*d)->name);
        HOLD((*d)->models(&client, &models, &why) == ERR_OK && models.count > 0, (*d)->name);
        HOLD((*d)->prepare(&client, models.names[0], 60 * NS_PER_S, &why) == ERR_OK, (*d)->name);
        for (int i = 0; i < times_asked(*d, 3); i++) {
            struct completion reply;
            struct text seen = {0};
            nanos before = clock_now();
            const struct client_request request = {
                .model = models.names[0], .prompt = "Q", .observer = see, .context = &seen};
            HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            HOLD(reply.sent >= before && reply.done <= clock_now(), (*d)->name);
            HOLD(reply.content.length > 0, (*d)->name);
            HOLD(strcmp(text_get(&seen), text_get(&reply.content)) == 0, (*d)->name);
            HOLD(reply.prompt_tokens > 0 && reply.output_tokens > 0, (*d)->name);
            /* Random weights know no end. */
            const char *end = (*d)->is_in_process ? "length" : "stop";
            HOLD(!reply.retryable && strcmp(reply.finish_reason, end) == 0, (*d)->name);
            check_times(*d, &reply);
            completion_release(&reply);
            text_release(&seen);
        }
        client_models_release(&models);
        client_close(&client);
    }
}

static void describing_adds_members_to_an_object(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const PLAYS[] = {"normal", "loading", "status:code=404"};
    for (size_t i = 0; i < sizeof PLAYS / sizeof *PLAYS; i++)
        FOR_EACH_USABLE(d)
        {
            struct client client;
            struct text out = {0};
            struct json json;
            struct jv *root;
            HOLD(open_on(*d, PLAYS[i], &client) == ERR_OK, (*d)->name);
            json_init(&json, &out, false);
            json_object(&json, NULL);
            json_string(&json, "before", "x");
            (*d)->describe(&client, "tiny-1b", &json);
            json_string(&json, "after", "x");
            json_object_end(&json);
            HOLD(json.depth == 0, (*d)->name);
            HOLD(jv_parse(text_get(&out), out.length, &root, NULL) == ERR_OK, (*d)->name);
            HOLD(jv_count(root) >= 2 && jv_get(root, "after"), (*d)->name);
            for (const struct jv *c = jv_first(root); c; c = jv_next(c))
                HOLD(!jv_is_null(c), (*d)->name); /* unknown values are omitted */
            jv_free(root);
            text_release(&out);
            client_close(&client);
        }
}

static void a_canceled_request_ends(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        struct client client;
        struct completion reply;
        struct error why = {0};
        atomic_bool cancel = true;
        HOLD(open_on(*d, "hang:after=request", &client) == ERR_OK, (*d)->name);
        const struct client_request request = {.model = "m", .prompt = "Q", .cancel = &cancel};
        HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_INTERRUPTED, (*d)->name);
        HOLD(!reply.retryable && is_line(why.text) && reply.done >= reply.sent, (*d)->name);
        completion_release(&reply);
        client_close(&client);
    }
}

static void a_client_survives_a_failure(void **state)
{
    (void)state;
    NEEDS_HTTP();
    FOR_EACH_USABLE(d)
    {
        if (!(*d)->default_url)
            continue;
        struct client client;
        HOLD(open_on(*d, "die:after=content,how=close", &client) == ERR_OK, (*d)->name);
        for (int i = 0; i < 3; i++) {
            struct asked a = ask_client(&client, NULL);
            HOLD(a.err == ERR_LOST && a.reply.retryable, (*d)->name);
            HOLD(strcmp(text_get(&a.reply.content), "Hello") == 0, (*d)->name);
            HOLD(a.reply.output_tokens == -1 && a.reply.prompt_tokens == -1, (*d)->name);
            asked_release(&a);
        }
        struct client_models models = {0};
        HOLD((*d)->models(&client, &models, NULL) == ERR_OK && models.count > 0, (*d)->name);
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

/* A driver whose model or play calls no tools: it computes what random weights say. */
static bool has_play(const struct client_driver *driver)
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
        HOLD(open_on(*d, "normal", &client) == ERR_OK, (*d)->name);
        HOLD((*d)->models(&client, &models, &why) == ERR_OK, (*d)->name);
        assert_int_equal(chat_add(&chat, CHAT_SYSTEM, "S"), ERR_OK);
        assert_int_equal(chat_add(&chat, CHAT_USER, "Q"), ERR_OK);
        assert_int_equal(chat_add_reply(&chat, "A", NULL), ERR_OK);
        assert_int_equal(chat_add(&chat, CHAT_USER, "And?"), ERR_OK);
        const struct client_request request = {.model = models.names[0], .chat = &chat};
        HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
        HOLD(reply.content.length > 0 && reply.prompt_tokens > 0 && reply.calls.count == 0,
             (*d)->name);
        completion_release(&reply);
        client_models_release(&models);
        chat_release(&chat);
        client_close(&client);
    }
}

/* The calls of the play: {"a": 1, "b": "x\"}"} for add, nothing for noop. */
static void check_calls(const struct client_driver *driver, const struct completion *reply)
{
    struct jv *arguments;
    const struct tool_calls *calls = &reply->calls;
    HOLD(calls->count == 2, driver->name);
    HOLD(!strcmp(calls->items[0].name, "add") && !strcmp(calls->items[1].name, "noop"),
         driver->name);
    HOLD(*calls->items[0].id && *calls->items[1].id, driver->name);
    HOLD(strcmp(calls->items[0].id, calls->items[1].id) != 0, driver->name);
    const struct text *text = &calls->items[0].arguments;
    HOLD(jv_parse(text_get(text), text->length, &arguments, NULL) == ERR_OK, driver->name);
    HOLD(jv_number(jv_get(arguments, "a")) == 1, driver->name);
    HOLD(!strcmp(jv_text(jv_get(arguments, "b")), "x\"}"), driver->name);
    jv_free(arguments);
    HOLD(!strcmp(text_get(&calls->items[1].arguments), "{}"), driver->name);
    HOLD(reply->content.length == 0 && reply->output_tokens == 9, driver->name);
    check_times(driver, reply);
}

static void tools_are_called_and_their_results_answered(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const PLAYS[] = {"tools:first_ms=5", "tools:how=same_index"};
    for (size_t i = 0; i < 2; i++)
        FOR_EACH_USABLE(d)
        {
            struct client client;
            struct completion reply;
            struct error why = {0};
            struct chat chat = {0};
            if (!has_play(*d))
                continue;
            HOLD(open_on(*d, PLAYS[i], &client) == ERR_OK, (*d)->name);
            HOLD((*d)->tools(&client, "tiny-1b") == CLIENT_TOOLS_YES, (*d)->name);
            assert_int_equal(chat_add(&chat, CHAT_USER, "1 + x?"), ERR_OK);
            const struct client_request request = {
                .model = "tiny-1b", .chat = &chat, .tools = TOOLS, .tool_count = 2};
            HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            check_calls(*d, &reply);
            assert_int_equal(chat_add_reply(&chat, "", &reply.calls), ERR_OK);
            for (size_t c = 0; c < 2; c++)
                assert_int_equal(
                    chat_add_result(&chat, &reply.calls.items[c], c ? "none" : "three"), ERR_OK);
            completion_release(&reply);
            HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_OK, (*d)->name);
            HOLD(!strcmp(text_get(&reply.content), "Results: three none"), (*d)->name);
            HOLD(reply.calls.count == 0 && strcmp(reply.finish_reason, "stop") == 0, (*d)->name);
            completion_release(&reply);
            chat_release(&chat);
            client_close(&client);
        }
}

static void a_refusal_of_tools_is_distinguished_from_other_failures(void **state)
{
    (void)state;
    NEEDS_HTTP();
    static const char *const PLAYS[] = {"no_tools:as=ollama", "no_tools:as=llama",
                                        "no_tools:as=vllm", "no_tools:as=strict"};
    for (size_t i = 0; i < sizeof PLAYS / sizeof *PLAYS; i++)
        FOR_EACH_USABLE(d)
        {
            if (i > 0 && !(*d)->default_url)
                continue; /* without a server it is the same again */
            struct client client;
            struct completion reply;
            struct error why = {0};
            struct client_models models = {0};
            bool is_null = strcmp((*d)->name, "null") == 0;
            HOLD(open_with(*d, PLAYS[i], is_null ? "tools=no" : NULL, &client) == ERR_OK,
                 (*d)->name);
            HOLD((*d)->models(&client, &models, &why) == ERR_OK, (*d)->name);
            const char *model = models.names[0];
            const struct client_request request = {
                .model = model, .prompt = "Q", .tools = TOOLS, .tool_count = 2};
            HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_UNSUPPORTED, (*d)->name);
            HOLD(reply.rejects_tools && !reply.retryable && is_line(why.text), (*d)->name);
            HOLD(strstr(why.text, "tools"), (*d)->name);
            HOLD((*d)->tools(&client, model) == CLIENT_TOOLS_NO, (*d)->name);
            completion_release(&reply);
            const struct client_request plain = {.model = model, .prompt = "Q"};
            HOLD((*d)->ask(&client, &plain, &reply, &why) == ERR_OK, (*d)->name);
            HOLD(!reply.rejects_tools && reply.content.length > 0, (*d)->name);
            completion_release(&reply);
            client_close(&client);
            HOLD(open_on(*d, "status:code=400", &client) == ERR_OK, (*d)->name);
            if (has_play(*d)) {
                HOLD((*d)->ask(&client, &request, &reply, &why) == ERR_BAD_VALUE, (*d)->name);
                HOLD(!reply.rejects_tools, (*d)->name);
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

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < times_asked(w->driver, ASKED); i++) {
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
            HOLD(open_on(*d, "normal:gap_ms=1", &workers[i].client) == ERR_OK, (*d)->name);
        }
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(thread_start(&workers[i].thread, work, &workers[i]), ERR_OK);
        for (int i = 0; i < WORKERS; i++)
            pthread_join(workers[i].thread, NULL);
        for (int i = 0; i < WORKERS; i++) {
            HOLD(workers[i].good == times_asked(*d, ASKED), (*d)->name);
            client_close(&workers[i].client);
        }
    }
}

static int start(void **state)
{
    return inference_start(state) || model_make(state) ? -1 : 0;
}

static int stop(void **state)
{
    return inference_stop(state) || model_remove(state) ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_is_complete),
        cmocka_unit_test(an_unknown_name_gets_the_near_one),
        cmocka_unit_test(a_driver_that_cannot_work_here_says_why),
        cmocka_unit_test(opening_contacts_no_server_and_leaks_nothing),
        cmocka_unit_test(a_missing_service_is_reported),
        cmocka_unit_test(a_healthy_service_answers),
        cmocka_unit_test(describing_adds_members_to_an_object),
        cmocka_unit_test(a_canceled_request_ends),
        cmocka_unit_test(a_client_survives_a_failure),
        cmocka_unit_test(a_conversation_is_continued),
        cmocka_unit_test(tools_are_called_and_their_results_answered),
        cmocka_unit_test(a_refusal_of_tools_is_distinguished_from_other_failures),
        cmocka_unit_test(several_clients_work_concurrently),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
