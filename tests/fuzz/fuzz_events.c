/* Events of agents, a line of JSON each, as other programs send them: the tree of spans built from them is nested. */
#include "fuzz/fuzz.h"

#include "trace/trace.h"

static void check_tree(const struct trace_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        fuzz_check(span->from <= span->to && span->parent < (int)i);
        if (span->parent >= 0)
            fuzz_check(tree->spans[span->parent].from <= span->from &&
                       span->to <= tree->spans[span->parent].to);
    }
}

static void run(const char *bytes, size_t length)
{
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events = {0};
    struct trace_tree tree;
    const char *query = fuzz_choose(&bytes, &length, 2) ? "q" : NULL;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t size = end ? (size_t)(end - bytes) - at : length - at;
        struct error why = {0};
        fuzz_check_error(trace_event_line(recorder, query, bytes + at, size, &why), &why);
        at += size + 1;
    }
    trace_recorder_take(recorder, "q", &events);
    trace_tree_build(&events, 0, 0, &tree);
    char problems[200];
    check_tree(&tree);
    trace_problems_text(&tree.problems, problems, sizeof problems);
    trace_tree_release(&tree);
    trace_recorder_free(recorder);
}

#define EVENT(type, more) "{\"type\":\"" type "\",\"query_id\":\"q\"," more "}\n"

static void seeds(void)
{
    fuzz_seed(
        0,
        EVENT("agent_start", "\"timestamp_ns\":1000")
            EVENT("turn_start", "\"timestamp_ns\":1100,\"correlation_id\":\"t1\"") EVENT(
                "lm_inference_start", "\"timestamp_ns\":1200,\"correlation_id\":1,\"model\":\"m\"")
                EVENT("lm_inference_end",
                      "\"timestamp_ns\":2000,\"correlation_id\":1,\"metadata\":{\"input_tokens\":"
                      "5,\"output_tokens\":7,\"first_token_ns\":1500,\"cost_usd\":0.1}")
                    EVENT("tool_call_start",
                          "\"timestamp_ns\":2100,\"tool_name\":\"x\",\"parent_id\":\"t1\"")
                        EVENT("tool_call_end",
                              "\"timestamp_ns\":2200,\"tool_name\":\"x\",\"error\":\"failed\"")
                            EVENT("turn_end", "\"timestamp_ns\":2300,\"correlation_id\":\"t1\"")
                                EVENT("agent_end", "\"timestamp_ns\":2400"));
    fuzz_seed(1, "{\"type\":\"tool_call_end\",\"timestamp\":1700000000.5,\"tool\":\"y\"}\n"
                 "{\"type\":\"retry_attempt\",\"timestamp_ns\":9}\n{\"type\":\"x\"}\n");
}

static const char *const WORDS[] = {"_start",
                                    "_end",
                                    "\"timestamp_ns\"",
                                    "\"timestamp\"",
                                    "1e300",
                                    "-1",
                                    "\"correlation_id\"",
                                    "\"parent_id\"",
                                    "\"metadata\"",
                                    "null",
                                    NULL};

const struct fuzz_target fuzz_events = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
