/* Streams and documents of inference servers, split in two.  Each parsed call has a name, an id and arguments that are
 * a JSON object, and first and last token times are those of the arrivals.
 *
 * Every format of the table is read; a new one gets its seeds here. */
#include "fuzz/fuzz.h"

#include "port/json_read.h"
#include "wire/responses.h"

static void check(enum err err, struct completion *reply, const struct error *why)
{
    const struct arrivals *arrivals = &reply->arrivals;
    fuzz_check_error(err, why);
    fuzz_check(!arrivals->count || (arrivals->times[0] == reply->first_token &&
                                    arrivals->times[arrivals->count - 1] == reply->last_token));
    for (size_t i = 0; !err && i < reply->calls.count; i++) {
        const struct tool_call *call = &reply->calls.items[i];
        struct jv *tree = NULL;
        fuzz_check(*call->name && *call->id);
        fuzz_check(!jv_parse(text_get(&call->arguments), call->arguments.length, &tree, NULL));
        fuzz_check(jv_is_object(tree));
        jv_free(tree);
    }
}

static enum err read(const struct response_format *format, const struct completion_sink *sink,
                     const char *bytes, size_t length, size_t cut)
{
    union response_state state;
    format->init(&state, sink);
    enum err err = format->feed(&state, bytes, cut, 1);
    if (!err)
        err = format->feed(&state, bytes + cut, length - cut, 2);
    (void)format->is_done(&state);
    err = format->end(&state, err);
    format->release(&state);
    return err;
}

static void run(const char *bytes, size_t length)
{
    const struct response_format *format =
        &RESPONSE_FORMATS[fuzz_choose(&bytes, &length, RESPONSE_KINDS)];
    for (unsigned flags = 0; flags < 4; flags++) {
        struct completion reply;
        struct error why = {0};
        struct completion_sink sink = {.completion = &reply,
                                       .server = "s",
                                       .why = &why,
                                       .wants_score = flags & 1,
                                       .skips_choices = flags & 2};
        size_t cut = length > 1 ? (unsigned char)bytes[length - 1] % length : 0;
        completion_init(&reply);
        check(read(format, &sink, bytes, length, cut), &reply, &why);
        completion_release(&reply);
    }
}

#define CALL(id, name)    "{\"index\":0,\"id\":\"" id "\",\"function\":{\"name\":\"" name "\","

#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"

static void seeds_of_anthropic(void)
{
    fuzz_seed(
        RESPONSE_ANTHROPIC,
        EVENT("message_start", ",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":5,"
                               "\"cache_creation_input_tokens\":2,\"cache_read_input_tokens\":4}}")
            EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"thinking\","
                                         "\"thinking\":\"\"}")
                EVENT("content_block_delta", ",\"index\":0,\"delta\":{\"type\":"
                                             "\"thinking_delta\",\"thinking\":\"t\"}")
                    EVENT("content_block_delta", ",\"index\":0,\"delta\":{\"type\":"
                                                 "\"signature_delta\",\"signature\":\"s\"}")
                        EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},"
                                               "\"usage\":{\"output_tokens\":3}}")
                            EVENT("message_stop", ""));
    fuzz_seed(RESPONSE_ANTHROPIC,
              EVENT("content_block_start", ",\"index\":1,\"content_block\":{\"type\":\"tool_use\","
                                           "\"id\":\"c\",\"name\":\"f\",\"input\":{}}")
                  EVENT("content_block_delta", ",\"index\":1,\"delta\":{\"type\":"
                                               "\"input_json_delta\",\"partial_json\":\"{}\"}")
                      EVENT("content_block_delta",
                            ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}")
                          EVENT("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":"
                                         "\"m\"}"));
    fuzz_seed(RESPONSE_ANTHROPIC,
              "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
              "{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{\"a\":1}}],"
              "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2,"
              "\"output_tokens_details\":{\"thinking_tokens\":1}}}");
}

static void seeds(void)
{
    fuzz_seed(
        RESPONSE_OPENAI,
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" CALL(
            "x", "add") "\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\ndata: "
                        "{\"choices\":[{\"delta\":{\"tool_calls\":"
                        "[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":"
                        "\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
    fuzz_seed(
        RESPONSE_OPENAI,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\","
        "\"reasoning_content\":\"r\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":1,\"delta\":{},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
        "\"prompt_tokens_details\":{\"cached_tokens\":1},\"completion_tokens_details\":"
        "{\"reasoning_tokens\":1}},\"timings\":{\"prompt_ms\":1,\"predicted_ms\":2}}\n\n");
    fuzz_seed(RESPONSE_OPENAI,
              "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
              "{\"type\":\"thinking\",\"thinking\":[{\"text\":\"t\"}]}],\"tool_calls\":[" CALL(
                  "1", "f") "\"arguments\":{\"a\":1}}}]},\"finish_reason\":\"stop\"}],"
                            "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");
    fuzz_seed(RESPONSE_OPENAI,
              "{\"choices\":[{\"text\":\"ab\",\"logprobs\":{\"tokens\":[\"a\",\"b\"],"
              "\"token_logprobs\":[null,-0.5],\"top_logprobs\":[null,{\"b\":-0.5}]},"
              "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":2}}");
    fuzz_seed(
        RESPONSE_OPENAI,
        "event: response.output_text.delta\ndata: {\"type\":"
        "\"response.output_text.delta\",\"delta\":\"a\"}\n\nevent: response.completed\n"
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":"
        "{\"input_tokens\":1,\"output_tokens\":2}}}\n\n");
    fuzz_seed(RESPONSE_OPENAI,
              "{\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":"
              "\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]},{\"type\":"
              "\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}],\"usage\":"
              "{\"input_tokens\":1,\"output_tokens\":2}}");
    fuzz_seed(RESPONSE_OPENAI, "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    fuzz_seed(RESPONSE_OPENAI, "<!DOCTYPE html><title>502</title>");
    fuzz_seed(
        RESPONSE_OLLAMA,
        "{\"message\":{\"content\":\"a\",\"thinking\":\"t\",\"tool_calls\":["
        "{\"function\":{\"name\":\"noop\",\"arguments\":{}}}]},\"done\":false}\n"
        "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
        "\"prompt_eval_count\":3,\"eval_count\":2,\"load_duration\":1,\"eval_duration\":5}\n");
    fuzz_seed(RESPONSE_OLLAMA,
              "{\"response\":\"a\",\"done\":true}\r\n{\"error\":\"model not found\"}\n");
    seeds_of_anthropic();
    fuzz_seed(RESPONSE_TGI,
              "data:{\"token\":{\"text\":\"a\",\"special\":false},\"generated_text\":\"a\","
              "\"details\":{\"finish_reason\":\"length\",\"generated_tokens\":1,"
              "\"input_length\":3,\"prefill\":[{\"id\":1}]}}\n\n");
    fuzz_seed(RESPONSE_TGI, "[{\"generated_text\":\"a\"}]");
    fuzz_seed(RESPONSE_COUNTS, "{\"data\":[],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":3}}");
}

static const char *const WORDS[] = {"data: ",
                                    "event: ",
                                    "\n\n",
                                    "[DONE]",
                                    "null",
                                    "[]",
                                    "{}",
                                    "[1]",
                                    "\"choices\"",
                                    "\"delta\"",
                                    "\"content\"",
                                    "\"usage\"",
                                    "\"tool_calls\"",
                                    "\"index\"",
                                    "\"function\"",
                                    "\"arguments\"",
                                    "\"logprobs\"",
                                    "\"done\"",
                                    "\"message\"",
                                    "\"type\"",
                                    "\"finish_reason\"",
                                    "\"stop_reason\"",
                                    "\"content_block\"",
                                    "\"tool_use\"",
                                    "\"partial_json\"",
                                    NULL};

const struct fuzz_target fuzz_replies = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
