/* Streams and documents of inference servers, split in two.  Each parsed call has a name, an id and arguments that are
 * a JSON object, and first and last token times are those of the arrivals.
 *
 * A parser of another API is one read_<api> and one line in DIALECTS, with its seeds. */
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

static enum err read_openai(const struct completion_sink *sink, const char *bytes, size_t length,
                            size_t cut)
{
    struct openai_response response;
    openai_response_init(&response, sink);
    enum err err = openai_response_feed(&response, bytes, cut, 1);
    if (!err)
        err = openai_response_feed(&response, bytes + cut, length - cut, 2);
    err = openai_response_end(&response, err);
    openai_response_release(&response);
    return err;
}

static enum err read_ollama(const struct completion_sink *sink, const char *bytes, size_t length,
                            size_t cut)
{
    struct ollama_response response;
    ollama_response_init(&response, sink);
    enum err err = ollama_response_feed(&response, bytes, cut, 1);
    if (!err)
        err = ollama_response_feed(&response, bytes + cut, length - cut, 2);
    err = ollama_response_end(&response, err);
    ollama_response_release(&response);
    return err;
}

enum { OPENAI, OLLAMA, DIALECT_COUNT };
static enum err (*const DIALECTS[DIALECT_COUNT])(const struct completion_sink *sink,
                                                 const char *bytes, size_t length, size_t cut) = {
    [OPENAI] = read_openai,
    [OLLAMA] = read_ollama,
};

static void run(const char *bytes, size_t length)
{
    unsigned dialect = fuzz_choose(&bytes, &length, DIALECT_COUNT);
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
        check(DIALECTS[dialect](&sink, bytes, length, cut), &reply, &why);
        completion_release(&reply);
    }
}

#define CALL(id, name) "{\"index\":0,\"id\":\"" id "\",\"function\":{\"name\":\"" name "\","

static void seeds(void)
{
    fuzz_seed(
        OPENAI,
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" CALL(
            "x", "add") "\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\ndata: "
                        "{\"choices\":[{\"delta\":{\"tool_calls\":"
                        "[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":"
                        "\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
    fuzz_seed(
        OPENAI,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\","
        "\"reasoning_content\":\"r\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":1,\"delta\":{},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
        "\"prompt_tokens_details\":{\"cached_tokens\":1},\"completion_tokens_details\":"
        "{\"reasoning_tokens\":1}},\"timings\":{\"prompt_ms\":1,\"predicted_ms\":2}}\n\n");
    fuzz_seed(OPENAI,
              "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
              "{\"type\":\"thinking\",\"thinking\":[{\"text\":\"t\"}]}],\"tool_calls\":[" CALL(
                  "1", "f") "\"arguments\":{\"a\":1}}}]},\"finish_reason\":\"stop\"}],"
                            "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");
    fuzz_seed(OPENAI, "{\"choices\":[{\"text\":\"ab\",\"logprobs\":{\"tokens\":[\"a\",\"b\"],"
                      "\"token_logprobs\":[null,-0.5],\"top_logprobs\":[null,{\"b\":-0.5}]},"
                      "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":2}}");
    fuzz_seed(
        OPENAI,
        "event: response.output_text.delta\ndata: {\"type\":"
        "\"response.output_text.delta\",\"delta\":\"a\"}\n\nevent: response.completed\n"
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":"
        "{\"input_tokens\":1,\"output_tokens\":2}}}\n\n");
    fuzz_seed(OPENAI,
              "{\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":"
              "\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]},{\"type\":"
              "\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}],\"usage\":"
              "{\"input_tokens\":1,\"output_tokens\":2}}");
    fuzz_seed(OPENAI, "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    fuzz_seed(OPENAI, "<!DOCTYPE html><title>502</title>");
    fuzz_seed(
        OLLAMA,
        "{\"message\":{\"content\":\"a\",\"thinking\":\"t\",\"tool_calls\":["
        "{\"function\":{\"name\":\"noop\",\"arguments\":{}}}]},\"done\":false}\n"
        "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
        "\"prompt_eval_count\":3,\"eval_count\":2,\"load_duration\":1,\"eval_duration\":5}\n");
    fuzz_seed(OLLAMA, "{\"response\":\"a\",\"done\":true}\r\n{\"error\":\"model not found\"}\n");
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
                                    NULL};

const struct fuzz_target fuzz_replies = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
