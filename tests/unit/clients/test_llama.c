/* The llama client, on a model with random weights. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/client.h"
#include "core/json.h"
#include "engine/engine.h"
#include "engine/shipped.h"
#include "port/file.h"
#include "port/json_read.h"
#include "support/ask.h"
#include "support/model.h"
#include "support/tree.h"
#include "support/unit.h"

/* ---- the models that come with ipw ---- */

static void a_model_is_found_by_its_path_or_its_name(void **state)
{
    (void)state;
    char *path, expected[512];
    struct error why = {0};
    model_write("ipw-1m-f16.gguf", (const unsigned char *)"GGUF", 4);
    model_write("ipw-1m-q8_0.gguf", (const unsigned char *)"GGUF", 4);
    model_write("note.txt", (const unsigned char *)"x", 1);
    snprintf(expected, sizeof expected, "%s/ipw-1m-q8_0.gguf", model_folder());
    assert_int_equal(shipped_find("ipw-1m-q8_0", &path, &why), ERR_OK);
    assert_string_equal(path, expected);
    free(path);
    assert_int_equal(shipped_find(expected, &path, &why), ERR_OK);
    assert_string_equal(path, expected);
    free(path);
    assert_int_equal(shipped_find("ipw-1m-q8", &path, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "did you mean 'ipw-1m-q8_0'?");
    assert_int_equal(shipped_find("something else", &path, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "ipw-1m-f16, ipw-1m-q8_0");
    assert_int_equal(shipped_find("./ipw-1m-f16", &path, &why), ERR_NOT_FOUND);
    assert_int_equal(shipped_find("", &path, &why), ERR_NOT_FOUND);
    struct shipped_names names;
    shipped_list(&names);
    assert_true(names.count >= 2);
    assert_string_equal(names.items[0], "ipw-1m-f16");
    assert_string_equal(names.items[1], "ipw-1m-q8_0");
    shipped_names_release(&names);
    unlink(expected);
    snprintf(expected, sizeof expected, "%s/ipw-1m-f16.gguf", model_folder());
    unlink(expected);
    setenv("IPW_MODELS", "/no/such/folder", 1);
    shipped_list(&names);
    assert_int_equal(names.count, 0);
    assert_int_equal(shipped_find("tiny-1b", &path, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "expected the path of a GGUF file");
    setenv("IPW_MODELS", model_folder(), 1);
}

/* ---- requests ---- */

static struct client open_client(const char *more)
{
    struct client client;
    struct params params = {0};
    struct error why = {0};
    assert_int_equal(params_add(&params, "threads=1"), ERR_OK);
    if (more)
        assert_int_equal(params_add(&params, more), ERR_OK);
    const struct client_config config = {.params = &params};
    if (client_open(client_driver_find("llama", NULL), &config, &client, &why))
        fail_msg("%s", why.text);
    params_release(&params);
    return client;
}

static struct ask_result ask_params(const char *client_params, const char *params)
{
    struct client client = open_client(client_params);
    struct ask_result asked = ask_client(&client, params);
    client_close(&client);
    return asked;
}

#define ASK(name, client_params, params)                                                           \
    struct ask_result name = ask_params(client_params, params);                                    \
    if (name.err)                                                                                  \
    fail_msg("%s", name.why.text)

static void a_model_may_have_a_long_path(void **state)
{
    (void)state;
    struct tree tree;
    struct error why = {0};
    char *found, file[1700];
    tree_new(&tree);
    char *deep = tree_deep(&tree, 1600);
    snprintf(file, sizeof file, "%s/deep.gguf", deep);
    assert_int_equal(output_put(file, "GGUF", 4, &why), ERR_OK);
    assert_int_equal(shipped_find(file, &found, &why), ERR_OK);
    assert_string_equal(found, file);
    free(found);
    setenv("IPW_MODELS", deep, 1);
    assert_int_equal(shipped_find("deep", &found, &why), ERR_OK);
    assert_string_equal(found, file);
    free(found);
    setenv("IPW_MODELS", model_folder(), 1);
    if (model_available(NULL) == ERR_OK) {
        snprintf(file, sizeof file, "%s/tiny-1b.gguf", deep);
        assert_int_equal(symlink(model_path(), file), 0);
        struct client client = open_client(NULL);
        if (client.driver->prepare(&client, file, 0, &why))
            fail_msg("%s", why.text);
        client_close(&client);
    }
    free(deep);
    tree_free(&tree);
}

static void an_answer_is_counted_and_timed(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    ASK(a, NULL, "max_tokens=20");
    const struct completion *r = &a.reply;
    assert_int_equal(r->output_tokens, 20);
    assert_int_equal(r->arrivals.count, 20); /* this model emits whole characters only */
    assert_int_equal(r->cached_tokens, 0);
    assert_string_equal(r->finish_reason, "length");
    assert_true(r->sent < r->first_token && r->first_token < r->last_token);
    assert_true(r->server_prefill_s > 0 && r->server_decode_s > 0 && r->server_load_s >= 0);
    assert_true(r->server_prefill_s + r->server_decode_s + r->server_load_s <=
                (double)(r->done - r->sent) * 1e-9);
    ask_result_release(&a);
}

/* The tokens of a prompt are those that the engine tokenizes. */
static void the_chat_template_can_be_disabled(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    struct engine_model *model;
    struct engine_tokens tokens = {0};
    struct text text = {0};
    static const char PROMPT[] = "Say hello"; /* the prompt of ask_client */
    assert_int_equal(
        engine_model_open(model_path(), &(struct engine_model_options){0}, &model, NULL), ERR_OK);
    assert_int_equal(engine_tokenize(model, PROMPT, strlen(PROMPT), true, true, &tokens, NULL), 0);
    ASK(off, "chat=off", "max_tokens=1");
    assert_int_equal(off.reply.prompt_tokens, tokens.count);
    tokens.count = 0;
    assert_int_equal(
        engine_apply_chat_template(model, &(struct engine_message){"user", PROMPT}, 1, &text, NULL),
        ERR_OK);
    assert_int_equal(
        engine_tokenize(model, text_get(&text), text.length, true, true, &tokens, NULL), ERR_OK);
    ASK(on, "chat=on", "max_tokens=1");
    ASK(unsaid, NULL, "max_tokens=1");
    assert_int_equal(on.reply.prompt_tokens, tokens.count);
    assert_int_equal(unsaid.reply.prompt_tokens, tokens.count);
    ask_result_release(&off);
    ask_result_release(&on);
    ask_result_release(&unsaid);
    text_release(&text);
    engine_tokens_release(&tokens);
    engine_model_close(model);
}

static void the_same_prompt_gets_the_same_answer(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    struct client client = open_client(NULL);
    struct ask_result first = ask_client(&client, "max_tokens=16");
    struct ask_result drawn = ask_client(&client, "max_tokens=16,temperature=2,seed=3");
    struct ask_result again = ask_client(&client, "max_tokens=16");
    struct ask_result drawn_again = ask_client(&client, "max_tokens=16,temperature=2,seed=3");
    struct ask_result other = ask_client(&client, "max_tokens=16,temperature=2,seed=4");
    assert_string_equal(text_get(&first.reply.content), text_get(&again.reply.content));
    assert_string_equal(text_get(&drawn.reply.content), text_get(&drawn_again.reply.content));
    assert_string_not_equal(text_get(&drawn.reply.content), text_get(&other.reply.content));
    assert_string_not_equal(text_get(&drawn.reply.content), text_get(&first.reply.content));
    ask_result_release(&first);
    ask_result_release(&drawn);
    ask_result_release(&again);
    ask_result_release(&drawn_again);
    ask_result_release(&other);
    client_close(&client);
}

static void a_stop_string_ends_the_answer(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    struct client client = open_client(NULL);
    struct ask_result whole = ask_client(&client, "max_tokens=16");
    const char *text = text_get(&whole.reply.content);
    assert_true(strlen(text) > 12);
    char params[128], mark[4] = {text[8], text[9], text[10], '\0'};
    size_t expected = (size_t)(strstr(text, mark) - text);
    snprintf(params, sizeof params, "max_tokens=16,stop=%s", mark);
    struct ask_result cut = ask_client(&client, params);
    assert_int_equal(cut.err, ERR_OK);
    assert_string_equal(cut.reply.finish_reason, "stop");
    assert_int_equal(cut.reply.content.length, expected);
    assert_memory_equal(text_get(&cut.reply.content), text, expected);
    assert_true(cut.reply.output_tokens < 16);
    ask_result_release(&cut);
    snprintf(params, sizeof params, "max_tokens=16,stop=[\"no such\",\"%s\"]", mark);
    struct ask_result listed = ask_client(&client, params);
    assert_int_equal(listed.err, ERR_OK);
    assert_int_equal(listed.reply.content.length, expected);
    ask_result_release(&listed);
    ask_result_release(&whole);
    client_close(&client);
}

static void an_answer_ends_at_the_end_of_the_context(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    ASK(a, NULL, NULL); /* 512 tokens by default, more than the context has left */
    assert_string_equal(a.reply.finish_reason, "length");
    assert_int_equal(a.reply.prompt_tokens + a.reply.output_tokens, MODEL_CONTEXT);
    ask_result_release(&a);
    char prompt[2000];
    memset(prompt, 'q', sizeof prompt - 1);
    prompt[sizeof prompt - 1] = '\0';
    struct client client = open_client("context=256");
    struct completion reply;
    struct error why = {0};
    const struct client_request request = {.model = "tiny-1b", .prompt = prompt};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "the context only 256");
    assert_contains(why.text, "--client-param context=");
    assert_false(reply.retryable);
    completion_release(&reply);
    client_close(&client);
}

static void invalid_parameters_are_rejected(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    static const struct {
        const char *params, *says;
    } WRONG[] = {
        {"max_tokenss=3", "did you mean 'max_tokens'?"},
        {"max_tokens=0", "max_tokens=0: expected 1 to 2147483647"},
        {"max_tokens=many", "max_tokens"},
        {"temperature=-1", "temperature: expected"},
        {"top_p=0", "top_p: expected"},
        {"stop=", "stop"},
        {"seed=-1", "seed"},
    };
    struct client client = open_client(NULL);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct ask_result a = ask_client(&client, WRONG[i].params);
        assert_int_equal(a.err, ERR_USAGE);
        assert_contains(a.why.text, WRONG[i].says);
        assert_false(a.reply.retryable);
        ask_result_release(&a);
    }
    client_close(&client);
    static const struct {
        const char *params, *says;
    } CONFIGURED[] = {
        {"context=1", "context=1: expected 16 to 1073741824"},
        {"threads=0", "threads=0: expected 1 to 512"},
        {"chat=maybe", "expected auto, on or off"},
        {"flash_attention=2", "expected auto"},
        {"gpu_layers=x", "gpu_layers"},
        {"library=/no/such", "/no/such"},
        {"gpu_layers=all", "cannot use a GPU"},
    };
    for (size_t i = 0; i < sizeof CONFIGURED / sizeof *CONFIGURED; i++) {
        struct params params = {0};
        struct error why = {0};
        assert_int_equal(params_add(&params, CONFIGURED[i].params), ERR_OK);
        const struct client_config config = {.params = &params};
        assert_int_not_equal(client_open(client_driver_find("llama", NULL), &config, &client, &why),
                             ERR_OK);
        assert_contains(why.text, CONFIGURED[i].says);
        params_release(&params);
    }
    const struct client_config addressed = {.base_url = "http://127.0.0.1:1"};
    struct error why = {0};
    assert_int_equal(client_open(client_driver_find("llama", NULL), &addressed, &client, &why),
                     ERR_USAGE);
}

/* The model is loaded by the first request, and kept for the next. */
static void clients_share_a_model(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    size_t length;
    unsigned char *bytes = model_bytes(&length);
    assert_non_null(bytes);
    model_write("second.gguf", bytes, length);
    free(bytes);
    struct params params = {0};
    assert_int_equal(params_add(&params, "max_tokens=2"), ERR_OK);
    struct client first = open_client(NULL), other = open_client(NULL);
    struct completion reply;
    const struct client_request request = {.model = "second", .prompt = "Q", .params = &params};
    assert_int_equal(first.driver->ask(&first, &request, &reply, NULL), ERR_OK);
    assert_true(reply.server_load_s > 0);
    completion_release(&reply);
    assert_int_equal(other.driver->ask(&other, &request, &reply, NULL), ERR_OK);
    assert_true(reply.server_load_s == 0);
    completion_release(&reply);
    client_close(&first);
    client_close(&other);
    struct client later = open_client(NULL);
    assert_int_equal(later.driver->ask(&later, &request, &reply, NULL), ERR_OK);
    assert_true(reply.server_load_s == 0);
    completion_release(&reply);
    client_close(&later);
    params_release(&params);
}

static void a_timeout_or_cancellation_ends_a_request(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    struct client client = open_client(NULL);
    struct completion reply;
    struct error why = {0};
    struct client_request request = {.model = "tiny-1b", .prompt = "Q", .timeout = 1};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_TIMEOUT);
    assert_true(reply.retryable);
    completion_release(&reply);
    request.timeout = 0; /* and it is usable afterwards */
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_OK);
    completion_release(&reply);
    client_close(&client);
}

static void the_library_and_model_are_described(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    struct client client = open_client("context=128");
    struct error why = {0};
    struct text out = {0};
    struct json json;
    struct jv *said;
    int64_t number;
    if (client.driver->prepare(&client, "tiny-1b", 0, &why))
        fail_msg("%s", why.text);
    json_init(&json, &out, false);
    json_object(&json, NULL);
    client.driver->describe(&client, "tiny-1b", &json);
    json_object_end(&json);
    assert_int_equal(jv_parse(text_get(&out), out.length, &said, &why), ERR_OK);
    assert_contains(jv_text(jv_get(said, "version")), "0.5.0");
    assert_contains(jv_text(jv_get(said, "library")), "libllama");
    assert_contains(jv_text(jv_get(said, "model_description")), "F32");
    assert_true(jv_integer(jv_get(said, "threads"), &number) && number == 1);
    assert_true(jv_integer(jv_get(said, "context"), &number) && number == 256); /* its step */
    assert_int_equal(client.driver->prepare(&client, "tiny-2b", 0, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "did you mean 'tiny-1b'?");
    jv_free(said);
    text_release(&out);
    client_close(&client);
}

/* Tools are described to a model that supports them; a chat template without tools is an error. */
static void tools_are_described_in_the_prompt(void **state)
{
    (void)state;
    SKIP_WITHOUT(model_available);
    static const struct chat_tool TOOL = {"add", "Adds.", NULL};
    struct params params = {0};
    assert_int_equal(params_add(&params, "max_tokens=4"), ERR_OK);
    struct client_request request = {.model = model_path(), .prompt = "Q", .params = &params};
    struct completion plain, tooled;
    struct client client = open_client("tools=on,context=2048");
    assert_int_equal(client.driver->tools(&client, model_path()), CLIENT_TOOLS_YES);
    assert_int_equal(client.driver->ask(&client, &request, &plain, NULL), ERR_OK);
    request.tools = &TOOL;
    request.tool_count = 1;
    assert_int_equal(client.driver->ask(&client, &request, &tooled, NULL), ERR_OK);
    assert_true(tooled.prompt_tokens > plain.prompt_tokens + 50);
    assert_true(tooled.content.length > 0); /* random weights call no tools */
    completion_release(&plain);
    completion_release(&tooled);
    client_close(&client);
    client = open_client(NULL);
    assert_int_equal(client.driver->tools(&client, model_path()), CLIENT_TOOLS_NO);
    assert_int_equal(client.driver->tools(&client, "no-such-model"), CLIENT_TOOLS_UNKNOWN);
    assert_int_equal(client.driver->ask(&client, &request, &tooled, NULL), ERR_UNSUPPORTED);
    assert_true(tooled.rejects_tools);
    completion_release(&tooled);
    client_close(&client);
    params_release(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_found_by_its_path_or_its_name),
        cmocka_unit_test(a_model_may_have_a_long_path),
        cmocka_unit_test(an_answer_is_counted_and_timed),
        cmocka_unit_test(the_chat_template_can_be_disabled),
        cmocka_unit_test(the_same_prompt_gets_the_same_answer),
        cmocka_unit_test(a_stop_string_ends_the_answer),
        cmocka_unit_test(an_answer_ends_at_the_end_of_the_context),
        cmocka_unit_test(invalid_parameters_are_rejected),
        cmocka_unit_test(clients_share_a_model),
        cmocka_unit_test(a_timeout_or_cancellation_ends_a_request),
        cmocka_unit_test(tools_are_described_in_the_prompt),
        cmocka_unit_test(the_library_and_model_are_described),
    };
    return cmocka_run_group_tests(tests, model_make, model_remove);
}
