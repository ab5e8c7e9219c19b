/* A conversation with a client: `client_ask DRIVER URL|- MODEL [PARAM=VALUE ...]`. Each input line
 * is a JSON object: "user" (a message), "results" (of the calls of the last reply, in their order),
 * "tools" (as in OpenAI's API, without the enclosing "function"), "params" (KEY=VALUE,...). Each
 * output line is the reply. */
#include <stdio.h>
#include <string.h>

#include "clients/client.h"
#include "core/json.h"
#include "port/json_read.h"

enum { TOOLS_MAX = 16, LINE_MAX_BYTES = 65536 };

struct talk {
    struct client client;
    const char *model;
    struct chat chat;
    struct tool_calls calls; /* of the last reply */
};

static enum err read_tools(const struct jv *list, struct chat_tool *tools, struct text *schemas,
                           size_t *count)
{
    enum err err = ERR_OK;
    *count = 0;
    for (const struct jv *t = jv_first(list); t && *count < TOOLS_MAX && !err; t = jv_next(t)) {
        struct text *schema = &schemas[*count];
        err = jv_print(jv_get(t, "parameters"), schema);
        tools[(*count)++] = (struct chat_tool){jv_text(jv_get(t, "name")),
                                               jv_text(jv_get(t, "description")), text_get(schema)};
    }
    return err;
}

static void extend(struct talk *talk, const struct jv *line)
{
    const char *user = jv_text(jv_get(line, "user"));
    if (user)
        chat_add(&talk->chat, CHAT_USER, user);
    size_t i = 0;
    for (const struct jv *r = jv_first(jv_get(line, "results")); r && i < talk->calls.count;
         r = jv_next(r))
        chat_add_result(&talk->chat, &talk->calls.items[i++], jv_text(r));
}

static void write_reply(enum err err, const struct error *why, const struct completion *reply,
                        enum client_tools tools)
{
    static const char *const WORDS[] = {"unknown", "yes", "no"};
    struct text out = {0};
    struct json json;
    json_init(&json, &out, false);
    json_object(&json, NULL);
    json_string(&json, "tools", WORDS[tools]);
    if (err)
        json_string(&json, "error", why->text);
    json_bool(&json, "rejects_tools", reply->rejects_tools);
    json_string(&json, "content", text_get(&reply->content));
    json_string(&json, "finish_reason", reply->finish_reason);
    json_integer(&json, "prompt_tokens", reply->prompt_tokens);
    json_integer(&json, "output_tokens", reply->output_tokens);
    json_bool(&json, "has_first_token", reply->first_token > reply->sent);
    json_array(&json, "calls");
    for (size_t i = 0; i < reply->calls.count; i++) {
        const struct tool_call *call = &reply->calls.items[i];
        json_object(&json, NULL);
        json_string(&json, "id", call->id);
        json_string(&json, "name", call->name);
        json_raw(&json, "arguments", text_get(&call->arguments));
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    printf("%s\n", text_get(&out));
    fflush(stdout);
    text_release(&out);
}

static enum err talk_once(struct talk *talk, const struct jv *line, struct error *why)
{
    struct chat_tool tools[TOOLS_MAX];
    struct text schemas[TOOLS_MAX] = {{0}};
    struct params params = {0};
    struct completion reply;
    struct client_request request = {.model = talk->model, .chat = &talk->chat, .params = &params};
    const char *given = jv_text(jv_get(line, "params"));
    completion_init(&reply);
    extend(talk, line);
    enum err err = read_tools(jv_get(line, "tools"), tools, schemas, &request.tool_count);
    request.tools = tools;
    if (!err && given)
        err = params_add(&params, given);
    if (!err) {
        enum err asked = talk->client.driver->ask(&talk->client, &request, &reply, why);
        write_reply(asked, why, &reply, talk->client.driver->tools(&talk->client, talk->model));
        if (!asked)
            chat_add_reply(&talk->chat, text_get(&reply.content), &reply.calls);
    }
    tool_calls_release(&talk->calls);
    talk->calls = reply.calls;
    reply.calls = (struct tool_calls){0};
    completion_release(&reply);
    for (size_t i = 0; i < TOOLS_MAX; i++)
        text_release(&schemas[i]);
    params_release(&params);
    return err;
}

int main(int argc, char **argv)
{
    char line[LINE_MAX_BYTES];
    struct error why = {0};
    struct params params = {0};
    struct talk talk = {0};
    const struct client_driver *driver = argc > 3 ? client_driver_find(argv[1], &why) : NULL;
    for (int i = 4; i < argc; i++)
        if (params_add(&params, argv[i]))
            return 1;
    const struct client_config config = {
        .base_url = argc > 3 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL, .params = &params};
    if (!driver || client_open(driver, &config, &talk.client, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    talk.model = argv[3];
    enum err err = ERR_OK;
    while (!err && fgets(line, sizeof line, stdin)) {
        struct jv *root = NULL;
        err = jv_parse(line, strlen(line), &root, &why);
        if (!err)
            err = talk_once(&talk, root, &why);
        jv_free(root);
    }
    client_close(&talk.client);
    tool_calls_release(&talk.calls);
    chat_release(&talk.chat);
    params_release(&params);
    return err ? 1 : 0;
}
