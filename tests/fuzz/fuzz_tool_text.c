/* The text of a model that calls tools: each call has a name and arguments that are a JSON object. */
#include "fuzz/fuzz.h"

#include "core/jv.h"
#include "wire/chat.h"

static void run(const char *bytes, size_t length)
{
    static const struct chat_tool TOOLS[] = {
        {"add", NULL, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"}}}"},
        {"noop", NULL, NULL},
    };
    struct text answer = {0};
    struct tool_calls calls = {0};
    enum err err = tool_text_parse(fuzz_string(bytes, length), TOOLS, 2, &answer, &calls);
    for (size_t i = 0; !err && i < calls.count; i++) {
        const struct tool_call *call = &calls.items[i];
        struct jv *tree = NULL;
        fuzz_check(*call->name);
        fuzz_check(!jv_parse(text_get(&call->arguments), call->arguments.length, &tree, NULL));
        fuzz_check(jv_is_object(tree));
        jv_free(tree);
    }
    tool_calls_release(&calls);
    text_release(&answer);
}

static void seeds(void)
{
    fuzz_seed(-1, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n"
                  "<tool_call>{\"name\": \"noop\"}</tool_call>");
    fuzz_seed(-1, "Thought: t\nAction: add\nAction Input: {\"a\": 2}\nObservation: o\n");
    fuzz_seed(-1,
              "Thought: t\nAction: add\nAction Input: 'a'\n\nAction: noop[x]\nFinal Answer: f\n");
    fuzz_seed(-1, "```json\n{\"name\": \"add\", \"parameters\": {\"a\": 1}}\n```");
    fuzz_seed(-1, "[{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}, {\"name\": \"x\"}]");
    fuzz_seed(-1, "<think>no</think>The answer is 4.");
}

static const char *const WORDS[] = {"<tool_call>",
                                    "</tool_call>",
                                    "Action:",
                                    "Action Input:",
                                    "Observation:",
                                    "Final Answer:",
                                    "Thought:",
                                    "\"name\"",
                                    "\"arguments\"",
                                    "```",
                                    "{}",
                                    "[1]",
                                    NULL};

const struct fuzz_target fuzz_tool_text = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
