/* libFuzzer: any bytes as the response of a server in every format, split in two, and as the text of
 * a model that calls tools. Each parsed call has a name, an id and arguments that are a JSON
 * object, and first and last token times are those of the arrivals. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"
#include "wire/responses.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_calls(const struct tool_calls *calls, bool have_ids)
{
    for (size_t i = 0; i < calls->count; i++) {
        const struct tool_call *call = &calls->items[i];
        struct jv *tree = NULL;
        if (!*call->name || (have_ids && !*call->id) ||
            jv_parse(text_get(&call->arguments), call->arguments.length, &tree, NULL) ||
            !jv_is_object(tree))
            abort();
        jv_free(tree);
    }
}

static void check(enum err err, struct completion *reply)
{
    const struct arrivals *arrivals = &reply->arrivals;
    if (arrivals->count > 0 && (arrivals->times[0] != reply->first_token ||
                                arrivals->times[arrivals->count - 1] != reply->last_token))
        abort();
    if (!err)
        check_calls(&reply->calls, true);
    completion_release(reply);
}

static void read_response(const struct response_format *format, const char *bytes, size_t length,
                          size_t cut)
{
    struct completion reply;
    struct error why;
    union response_state response;
    completion_init(&reply);
    format->init(&response,
                 &(struct completion_sink){.completion = &reply, .server = "s", .why = &why});
    enum err err = format->feed(&response, bytes, cut, 1);
    if (!err)
        err = format->feed(&response, bytes + cut, length - cut, 2);
    (void)format->is_done(&response);
    check(format->end(&response, err), &reply);
    format->release(&response);
}

static void read_text(const char *bytes, size_t length)
{
    static const struct chat_tool TOOLS[] = {
        {"add", NULL, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"}}}"},
        {"noop", NULL, NULL},
    };
    struct text text = {0}, answer = {0};
    struct tool_calls calls = {0};
    text_add_bytes(&text, bytes, length);
    enum err err = tool_text_parse(text_get(&text), TOOLS, 2, &answer, &calls);
    if (!err)
        check_calls(&calls, false);
    tool_calls_release(&calls);
    text_release(&answer);
    text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    size_t cut = length > 1 ? bytes[0] % length : 0;
    for (int kind = 0; kind < RESPONSE_KINDS; kind++)
        read_response(&RESPONSE_FORMATS[kind], (const char *)bytes, length, cut);
    read_text((const char *)bytes, length);
    return 0;
}
