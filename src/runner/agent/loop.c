/* A turn is one request to the model and the tool calls in its response.  Calls of one turn run concurrently, each in a
 * thread, unless one of them has side effects: then in the order given by the model. */
#include "runner/agent/agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "trace/trace.h"
#include "wire/chat.h"

/* Poll interval while waiting. */
#define POLL_INTERVAL (20 * NS_PER_MS)

enum { ID_MAX = 160 };

struct conversation {
    struct agent *agent;
    const struct agent_query *query;
    struct tool_session tools;
    struct chat_tool *offered; /* tools offered to the model */
    size_t offered_count;
    struct chat chat;
    struct completion *total; /* totals of the query so far */
    nanos deadline;           /* 0: none */
    unsigned turn;
};

/* ---- events ---- */

static void record_event(const struct conversation *c, struct trace_event event)
{
    trace_event(c->query->recorder, &event);
}

/* "KEY/t2", and inside it "KEY/t2/lm", "KEY/t2/c1". */
static void turn_id(const struct conversation *c, char id[static ID_MAX])
{
    str_format(id, ID_MAX, "%s/t%u", c->query->key, c->turn);
}

static void record_turn(const struct conversation *c, enum trace_edge edge)
{
    char id[ID_MAX];
    turn_id(c, id);
    struct trace_event event = trace_event_new(TRACE_TURN, edge, c->query->key, id);
    event.parent = c->query->key;
    record_event(c, event);
}

static void record_agent(const struct conversation *c, enum trace_edge edge, nanos at,
                         const char *error)
{
    struct trace_event event = trace_event_new(TRACE_AGENT, edge, c->query->key, c->query->key);
    event.name = "agent";
    event.at = at;
    event.facts.error = error;
    record_event(c, event);
}

/* reply: NULL for the start event. */
static void record_inference(const struct conversation *c, unsigned attempt,
                             const struct completion *reply, const char *error)
{
    char turn[ID_MAX], id[ID_MAX + 32];
    turn_id(c, turn);
    chars_format(id, "%s/lm%u", turn, attempt);
    struct trace_event event =
        trace_event_new(TRACE_INFERENCE, reply ? TRACE_END : TRACE_START, c->query->key, id);
    event.parent = turn;
    event.name = c->query->request->model;
    if (reply) {
        event.at = reply->done;
        event.facts.input_tokens = known_count(reply->prompt_tokens);
        event.facts.output_tokens = known_count(reply->output_tokens);
        event.facts.reasoning_tokens = known_count(reply->reasoning_tokens);
        event.facts.cached_tokens = known_count(reply->cached_tokens);
        event.facts.first_token = reply->first_token;
        event.facts.last_token = reply->last_token;
        event.facts.error = error;
    }
    record_event(c, event);
}

static void record_retry(const struct conversation *c, const char *reason)
{
    char turn[ID_MAX];
    turn_id(c, turn);
    struct trace_event event = trace_event_new(TRACE_RETRY, TRACE_POINT, c->query->key, NULL);
    event.parent = turn;
    event.facts.error = reason;
    record_event(c, event);
}

/* ---- one request to the model ---- */

/* Adds to the query's totals; the content replaces that of the previous turn. */
static void add_reply(struct conversation *c, const struct completion *reply, bool is_first)
{
    struct completion *total = c->total;
    completion_add_count(&total->prompt_tokens, reply->prompt_tokens, is_first);
    completion_add_count(&total->output_tokens, reply->output_tokens, is_first);
    completion_add_count(&total->reasoning_tokens, reply->reasoning_tokens, is_first);
    completion_add_count(&total->cached_tokens, reply->cached_tokens, is_first);
    /* Phases are per inference: the time from the first to the last token of a query is not only decode. */
    if (!total->first_token)
        total->first_token = total->last_token = reply->first_token;
    total->status = reply->status;
    chars_copy(total->finish_reason, reply->finish_reason);
    if (reply->count_problem[0])
        chars_copy(total->count_problem, reply->count_problem);
}

static bool tools_in_text(const struct conversation *c, enum tool_text *form)
{
    const struct agent *agent = c->agent;
    *form = agent->options->protocol == AGENT_HERMES ? TOOL_TEXT_HERMES : TOOL_TEXT_REACT;
    return c->offered_count > 0 &&
           (agent->options->protocol == AGENT_HERMES || agent->options->protocol == AGENT_REACT ||
            (agent->options->protocol == AGENT_AUTO && atomic_load(&agent->in_text)));
}

static enum err send_text(struct conversation *c, enum tool_text form,
                          const struct client_request *request, struct completion *reply,
                          struct error *why)
{
    struct client_request own = *request;
    struct chat rendered = {0};
    struct params params = {0};
    tool_text_render(form, &c->chat, c->offered, c->offered_count, &rendered);
    params_copy(&params, request->params);
    if (!params_get(&params, "stop"))
        params_set(&params, "stop", tool_text_stop(form));
    own.chat = &rendered;
    own.params = &params;
    own.tools = NULL;
    own.tool_count = 0;
    enum err err = c->query->client->driver->ask(c->query->client, &own, reply, why);
    params_release(&params);
    chat_release(&rendered);
    return err;
}

static enum err check_time(const struct conversation *c, struct error *why)
{
    if (!c->deadline || clock_now() < c->deadline)
        return ERR_OK;
    return err_set(why, ERR_TIMEOUT, "the query took longer than %.3g s",
                   seconds(c->agent->options->query_timeout));
}

/* Sends one request, within the query's time limit. */
static enum err send_once(struct conversation *c, struct completion *reply, struct error *why)
{
    struct client_request request = *c->query->request;
    enum tool_text form;
    nanos left = c->deadline - clock_now() > 0 ? c->deadline - clock_now() : 1;
    request.chat = &c->chat;
    request.tools = c->offered;
    request.tool_count = c->offered_count;
    if (c->deadline && (!request.timeout || left < request.timeout))
        request.timeout = left;
    if (tools_in_text(c, &form))
        return send_text(c, form, &request, reply, why);
    return c->query->client->driver->ask(c->query->client, &request, reply, why);
}

static bool is_canceled(const struct conversation *c)
{
    const atomic_bool *cancel = c->query->request->cancel;
    return cancel && atomic_load(cancel);
}

/* Waits before the next attempt; false if there is none. */
static bool pause_before_retry(const struct conversation *c, unsigned attempt,
                               const struct completion *reply)
{
    nanos until = clock_now() + from_seconds(completion_backoff_s(reply, attempt));
    if (c->deadline && until >= c->deadline)
        return false;
    while (clock_now() < until && !is_canceled(c))
        thread_sleep(POLL_INTERVAL);
    return !is_canceled(c);
}

/* Switches to tools in text if the service or the model rejected them. */
static bool switch_to_text(struct conversation *c, const struct completion *reply)
{
    if (!reply->rejects_tools || c->agent->options->protocol != AGENT_AUTO)
        return false;
    atomic_store(&c->agent->in_text, true);
    return true;
}

/* Retries after transient errors. */
static enum err ask_model(struct conversation *c, struct completion *reply, struct error *why)
{
    enum err err;
    unsigned retries = 0;
    for (unsigned attempt = 1;; attempt++) {
        struct error reason = {0};
        completion_init(reply);
        record_inference(c, attempt, NULL, NULL);
        err = send_once(c, reply, &reason);
        if (!reply->done)
            reply->done = clock_now();
        record_inference(c, attempt, reply, err ? reason.text : NULL);
        if (!err)
            return ERR_OK;
        err_set(why, err, "%s", reason.text[0] ? reason.text : err_text(err));
        if (!switch_to_text(c, reply)) { /* switching does not count as a retry */
            bool again = reply->retryable && retries < c->agent->options->retries;
            retries++;
            if (!again || !pause_before_retry(c, retries, reply))
                return err;
            record_retry(c, reason.text);
        }
        completion_release(reply);
    }
}

/* ---- tools ---- */

struct running_call {
    const struct conversation *c;
    const struct tool_call *call;
    unsigned number;
    struct tool_result result;
    enum err err;
    struct error why;
};

static void describe_result(const struct tool_result *result, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_integer(&json, "result_bytes", (int64_t)result->output.length);
    json_bool(&json, "is_error", result->is_error);
    json_bool(&json, "timed_out", result->timed_out);
    json_bool(&json, "is_truncated", result->is_truncated);
    json_object_end(&json);
}

static struct trace_event call_event(const struct running_call *running, enum trace_edge edge,
                                     const char *id, const char *turn)
{
    struct trace_event event = trace_event_new(TRACE_TOOL, edge, running->c->query->key, id);
    event.parent = turn;
    event.name = running->call->name;
    return event;
}

static void *run_call(void *context)
{
    struct running_call *running = context;
    const struct conversation *c = running->c;
    char turn[ID_MAX], id[ID_MAX + 32];
    struct text described = {0};
    turn_id(c, turn);
    chars_format(id, "%s/c%u", turn, running->number);
    record_event(c, call_event(running, TRACE_START, id, turn));
    running->err =
        tool_session_call(&c->tools, running->call->name, text_get(&running->call->arguments),
                          c->query->request->cancel, &running->result, &running->why);
    struct trace_event end = call_event(running, TRACE_END, id, turn);
    describe_result(&running->result, &described);
    end.facts.cpu_s = running->result.cpu_s;
    end.facts.metadata = text_get(&described);
    if (running->err)
        end.facts.error = running->why.text;
    else if (running->result.is_error)
        end.facts.error = text_get(&running->result.output);
    record_event(c, end);
    text_release(&described);
    return NULL;
}

static bool has_effects(const struct conversation *c, const struct tool_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        for (size_t t = 0; t < c->tools.set->count; t++)
            if (c->tools.set->tools[t].spec.has_effects &&
                str_equal(c->tools.set->tools[t].spec.name, calls->items[i].name))
                return true;
    return false;
}

/* Each call in its own thread; if a thread cannot be started, the call runs here. */
static void run_concurrently(struct running_call *running, size_t count)
{
    pthread_t *threads = xcalloc(count, sizeof *threads);
    bool *started = xcalloc(count, sizeof *started);
    for (size_t i = 1; i < count; i++)
        started[i] = thread_start(&threads[i], run_call, &running[i]) == ERR_OK;
    run_call(&running[0]);
    for (size_t i = 1; i < count; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            run_call(&running[i]);
    free(threads);
    free(started);
}

/* Runs the calls of a turn; their results become messages, in the order of the calls. */
static enum err run_calls(struct conversation *c, const struct tool_calls *calls, struct error *why)
{
    struct running_call *running = xcalloc(calls->count, sizeof *running);
    enum err err = ERR_OK;
    for (size_t i = 0; i < calls->count; i++)
        running[i] = (struct running_call){.c = c, .call = &calls->items[i], .number = (unsigned)i};
    if (has_effects(c, calls))
        for (size_t i = 0; i < calls->count && !is_canceled(c); i++)
            run_call(&running[i]);
    else
        run_concurrently(running, calls->count);
    for (size_t i = 0; i < calls->count; i++) {
        if (!err && running[i].err)
            err = err_set(why, running[i].err, "%s: %s", calls->items[i].name, running[i].why.text);
        else if (!err)
            chat_add_result(&c->chat, &calls->items[i], text_get(&running[i].result.output));
        tool_result_release(&running[i].result);
    }
    free(running);
    return !err && is_canceled(c) ? err_set(why, ERR_INTERRUPTED, "canceled") : err;
}

/* ---- turns ---- */

/* Parses tool calls that the model wrote as text, as instructed, or because the service did not recognize them. */
static enum err read_text_calls(const struct conversation *c, struct completion *reply,
                                struct error *why)
{
    enum tool_text form;
    struct text answer = {0};
    bool expected = tools_in_text(c, &form);
    if (reply->calls.count ||
        (!expected && (!c->offered_count || !strstr(text_get(&reply->content), "<tool_call>"))))
        return ERR_OK;
    enum err err = tool_text_parse(text_get(&reply->content), c->offered, c->offered_count, &answer,
                                   &reply->calls);
    if (err) {
        text_release(&answer);
        return err_set(why, err, "the model wrote more than %d tool calls in one reply",
                       TOOL_CALLS_LIMIT);
    }
    tool_calls_identify(&reply->calls, (uint64_t)reply->sent);
    text_release(&reply->content);
    reply->content = answer;
    return ERR_OK;
}

/* The answer of the query is that of the last turn. */
static void set_answer(struct conversation *c, struct completion *reply)
{
    text_release(&c->total->content);
    text_release(&c->total->reasoning);
    c->total->content = reply->content;
    c->total->reasoning = reply->reasoning;
    reply->content = reply->reasoning = (struct text){0};
}

/* *ended: the model has answered, or no turns are left. */
static enum err run_turn(struct conversation *c, bool *ended, struct error *why)
{
    struct completion reply;
    enum err err = ask_model(c, &reply, why);
    add_reply(c, &reply, c->turn == 0);
    if (!err)
        err = read_text_calls(c, &reply, why);
    bool is_last = c->turn + 1 >= c->agent->options->max_turns;
    *ended = err || reply.calls.count == 0 || is_last;
    if (!err && reply.calls.count && is_last) {
        chars_copy(c->total->finish_reason, "max_turns");
        /* Text next to tool calls is not an answer. */
        text_release(&reply.content);
        text_release(&reply.reasoning);
    }
    if (!err && !*ended) {
        chat_add_reply(&c->chat, text_get(&reply.content), &reply.calls);
        err = run_calls(c, &reply.calls, why);
    }
    if (!err && *ended)
        set_answer(c, &reply);
    completion_release(&reply);
    return err;
}

static enum err run_turns(struct conversation *c, struct error *why)
{
    enum err err = ERR_OK;
    bool ended = false;
    for (; !err && !ended; c->turn++) {
        /* A turn that starts after the deadline is not counted. */
        err = check_time(c, why);
        if (err)
            break;
        record_turn(c, TRACE_START);
        err = run_turn(c, &ended, why);
        record_turn(c, TRACE_END);
    }
    return err;
}

/* ---- a query ---- */

static enum err begin(struct conversation *c, const char *workspace, struct error *why)
{
    const struct client_request *request = c->query->request;
    const struct toolset *set = &c->agent->tools;
    enum err err = tool_session_open(set, workspace, &c->tools, why);
    if (err)
        return err;
    c->tools.deadline = c->deadline;
    c->offered = xcalloc(set->count + 1, sizeof *c->offered);
    for (size_t i = 0; i < set->count; i++) {
        const struct tool_spec *spec = &set->tools[i].spec;
        c->offered[i] = (struct chat_tool){spec->name, spec->description, spec->parameters};
    }
    c->offered_count = set->count;
    if (request->system)
        chat_add(&c->chat, CHAT_SYSTEM, request->system);
    chat_add(&c->chat, CHAT_USER, request->prompt);
    return ERR_OK;
}

/* Uses the service's information about the model to avoid a request that would be rejected. */
static void check_tool_support(struct agent *agent, const struct agent_query *query)
{
    const struct client_driver *driver = query->client->driver;
    if (agent->options->protocol == AGENT_AUTO && !atomic_load(&agent->in_text) && driver->tools &&
        driver->tools(query->client, query->request->model) == CLIENT_TOOLS_NO)
        atomic_store(&agent->in_text, true);
}

enum err agent_loop(struct agent *agent, const struct agent_query *query, const char *workspace,
                    struct completion *out, struct error *why)
{
    struct conversation c = {
        .agent = agent, .query = query, .total = out, .tools.workspace.fd = -1};
    completion_init(out);
    check_tool_support(agent, query);
    out->sent = clock_now();
    if (agent->options->query_timeout)
        c.deadline = out->sent + agent->options->query_timeout;
    record_agent(&c, TRACE_START, out->sent, NULL);
    enum err err = begin(&c, workspace, why);
    if (!err)
        err = run_turns(&c, why);
    tool_session_close(&c.tools);
    out->done = clock_now();
    record_agent(&c, TRACE_END, out->done, err ? why->text : NULL);
    out->retryable = false;
    free(c.offered);
    chat_release(&c.chat);
    return err;
}
