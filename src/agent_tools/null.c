/* Tools without effects.  null returns a configured result after a delay: for tests, for measuring the agent loop
 * itself, and as the smallest example of a driver.  think lets a model write down its reasoning between calls. */
#include <stdlib.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "core/xalloc.h"
#include "port/thread.h"

enum { DELAY_MAX_MS = 3600 * 1000, STEP_MS = 20 };

struct null {
    nanos delay;
    bool fails;
    char *output; /* NULL: the arguments */
};

static const struct param_spec PARAMS[] = {
    {"delay_ms", "MS", "time that a call takes (default 0)"},
    {"output", "TEXT", "result of a call (default: its arguments)"},
    {"fail", "BOOL", "every call fails (default no)"},
    {NULL, NULL, NULL},
};

static enum err null_open(const struct tool_config *config, void *state, struct error *why)
{
    struct null *null = state;
    struct params_reader read = {config->params, why, ERR_OK};
    null->delay = from_seconds(params_number(&read, "delay_ms", 0, 0, DELAY_MAX_MS) * 1e-3);
    null->fails = params_bool(&read, "fail", false);
    if (read.err)
        return read.err;
    const char *output = params_get(config->params, "output");
    null->output = output ? xstrdup(output) : NULL;
    return ERR_OK;
}

static void null_close(void *state)
{
    free(((struct null *)state)->output);
}

static enum err null_call(const struct tool_request *call, struct tool_result *out,
                          struct error *why)
{
    const struct null *null = call->state;
    nanos start = clock_now(), until = start + null->delay;
    for (nanos now = start; now < until; now = clock_now()) {
        if (call->cancel && atomic_load(call->cancel))
            return err_set(why, ERR_INTERRUPTED, "null: the call was canceled");
        if (call->timeout > 0 && now - start >= call->timeout) {
            out->timed_out = true;
            return tool_fail(out, "timed out after %.3g s", seconds(call->timeout));
        }
        thread_sleep(until - now < STEP_MS * NS_PER_MS ? until - now : STEP_MS * NS_PER_MS);
    }
    if (null->fails)
        return tool_fail(out, "the null tool failed");
    text_add(&out->output, null->output ? null->output : call->json);
    return ERR_OK;
}

const struct tool_driver tool_null = {
    .name = "null",
    .summary = "returns its arguments, or a fixed text after a fixed time; for tests",
    .params = PARAMS,
    .is_opt_in = true,
    .state_size = sizeof(struct null),
    .open = null_open,
    .close = null_close,
    .spec = {"null",
             "Does nothing and returns its arguments.",
             "{\"type\":\"object\",\"properties\":{}}",
             false,
             {NULL}},
    .call = null_call,
};

static enum err think_call(const struct tool_request *call, struct tool_result *out,
                           struct error *why)
{
    (void)call, (void)why;
    text_add(&out->output, "Noted.");
    return ERR_OK;
}

const struct tool_driver tool_think = {
    .name = "think",
    .summary = "scratchpad for a model's reasoning between two calls; no effect",
    .spec = {"think",
             "Write down a thought: a plan, or what the results so far mean. It has no effect and "
             "obtains no new information.",
             "{\"type\":\"object\",\"properties\":{\"thought\":{\"type\":\"string\"}},"
             "\"required\":[\"thought\"]}",
             false,
             {"thought"}},
    .call = think_call,
};
