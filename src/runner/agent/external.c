/* An external agent program.  It queries the client's service through its own proxy, which observes its inferences; the
 * time between them is attributed to tools, unless the program reports events: JSON lines, printed or sent to the
 * socket named by IPW_EVENTS.  Its other output is the answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/xalloc.h"
#include "port/subprocess.h"
#include "proxy/proxy.h"
#include "runner/agent/agent.h"
#include "trace/trace.h"

enum { ANSWER_MAX = 16 << 20, MESSAGES_MAX = 8192, EVENT_MAX = 65536, GAPS_MAX = 4096 };

struct external {
    const struct agent_query *query;
    struct completion *out;
    struct text answer, line; /* of stdout: the complete lines, and the incomplete last one */
    int events;               /* socket for events */
    /* NULL: not made. */
    char *socket_folder, *socket_path, *problem_path;
    bool has_tools;       /* the program reported tool calls itself */
    bool has_inferences;  /* the same for inferences, or phases of them */
    pthread_mutex_t lock; /* guards the following fields and *out: the proxy has its own thread */
    unsigned in_flight, ended;
    nanos last_end;
    struct gap {
        nanos from, to;
    } gaps[GAPS_MAX]; /* times between inferences */
    size_t gap_count;
    struct params headers; /* headers of the client, including its key, which are sent upstream */
};

static void record_event(struct external *external, const struct trace_event *event)
{
    trace_event(external->query->recorder, event);
}

static void record_agent(struct external *external, enum trace_edge edge, nanos at,
                         const char *error)
{
    const char *key = external->query->key;
    struct trace_event event = trace_event_new(TRACE_AGENT, edge, key, key);
    event.name = "agent";
    event.at = at;
    event.facts.error = error;
    record_event(external, &event);
}

/* ---- inferences, from the proxy's thread ---- */

static void inference_id(const struct external *external, uint64_t number, char *to, size_t size)
{
    str_format(to, size, "%s/r%llu", external->query->key, (unsigned long long)number);
}

static void on_begins(void *context, uint64_t number, nanos at)
{
    struct external *external = context;
    char id[96];
    inference_id(external, number, id, sizeof id);
    struct trace_event event =
        trace_event_new(TRACE_INFERENCE, TRACE_START, external->query->key, id);
    event.at = at;
    pthread_mutex_lock(&external->lock);
    if (!external->in_flight && external->ended && external->gap_count < GAPS_MAX)
        external->gaps[external->gap_count++] = (struct gap){external->last_end, at};
    external->in_flight++;
    record_event(external, &event);
    pthread_mutex_unlock(&external->lock);
}

static void on_ended(void *context, struct proxy_request *request)
{
    struct external *external = context;
    const struct completion *reply = &request->reply;
    struct completion *out = external->out;
    int64_t output = proxy_request_generates(request) ? reply->output_tokens : 0;
    char id[96];
    inference_id(external, request->id, id, sizeof id);
    struct trace_event event =
        trace_event_new(TRACE_INFERENCE, TRACE_END, external->query->key, id);
    event.at = reply->done;
    event.name = str_or_null(request->model);
    event.facts.input_tokens = known_count(reply->prompt_tokens);
    event.facts.output_tokens = known_count(output);
    event.facts.reasoning_tokens = known_count(reply->reasoning_tokens);
    event.facts.cached_tokens = known_count(reply->cached_tokens);
    event.facts.first_token = reply->first_token;
    event.facts.last_token = reply->last_token;
    event.facts.error = request->err ? request->why : NULL;
    pthread_mutex_lock(&external->lock);
    bool is_first = external->ended++ == 0;
    external->in_flight--;
    external->last_end = reply->done;
    completion_add_count(&out->prompt_tokens, reply->prompt_tokens, is_first);
    completion_add_count(&out->output_tokens, output, is_first);
    if (!out->first_token)
        out->first_token = out->last_token = reply->first_token;
    record_event(external, &event);
    pthread_mutex_unlock(&external->lock);
    proxy_request_free(request);
}

/* ---- output and events of the program ---- */

static bool mentions(const char *line, size_t length, const char *word)
{
    return memmem(line, length, word, strlen(word));
}

/* An answer may be JSON, too: only an object with a known event type is an event. */
static bool is_event(const char *line, size_t length)
{
    static const char *const EDGES[] = {"_start", "_end"};
    for (int type = 0; type < TRACE_OTHER; type++)
        for (int edge = TRACE_START; edge <= TRACE_END; edge++) {
            char mark[48];
            bool is_span = trace_type_is_span((enum trace_type)type);
            chars_format(mark, "\"%s%s\"", trace_type_name((enum trace_type)type),
                         is_span ? EDGES[edge] : "");
            if (mentions(line, length, mark))
                return true;
        }
    return false;
}

static bool handle_event(struct external *external, const char *line, size_t length)
{
    if (length == 0 || line[0] != '{' ||
        trace_event_line(external->query->recorder, external->query->key, line, length, NULL))
        return false;
    external->has_tools |= mentions(line, length, "tool_call_");
    external->has_inferences |=
        mentions(line, length, "lm_inference_") || mentions(line, length, "submodel_call_") ||
        mentions(line, length, "prefill_") || mentions(line, length, "decode_");
    return true;
}

/* Handles a complete line: an event, or part of the answer. */
static void handle_line(struct external *external)
{
    const struct text *line = &external->line;
    if (!is_event(text_get(line), line->length) ||
        !handle_event(external, text_get(line), line->length))
        text_add_bytes(&external->answer, text_get(line), line->length);
    text_clear(&external->line);
}

static void handle_output(void *context, const char *bytes, size_t length)
{
    struct external *external = context;
    struct text *line = &external->line;
    for (size_t i = 0; i < length; i++) {
        /* A NUL would truncate the answer. */
        if (bytes[i] && line->length + external->answer.length < ANSWER_MAX)
            text_add_bytes(line, bytes + i, 1);
        if (bytes[i] != '\n')
            continue;
        handle_line(external);
    }
}

static void read_events(void *context)
{
    struct external *external = context;
    static const size_t SIZE = EVENT_MAX;
    char *bytes = xmalloc(SIZE);
    ssize_t n;
    while ((n = recv(external->events, bytes, SIZE, MSG_DONTWAIT)) > 0)
        for (char *at = bytes, *end = bytes + n, *next; at < end; at = next + 1) {
            next = memchr(at, '\n', (size_t)(end - at));
            next = next ? next : end;
            (void)handle_event(external, at, (size_t)(next - at));
        }
    free(bytes);
}

/* Next to the workspace, so that tools which list the workspace do not see it.  The path of a socket has at most 107
 * bytes: if this one is longer, the socket is in a directory of its own. */
static enum err name_socket(struct external *external, const char *workspace,
                            struct sockaddr_un *address, struct error *why)
{
    external->socket_path = xformat("%s.events", workspace);
    if (chars_copy(address->sun_path, external->socket_path)) {
        unlink(external->socket_path);
        return ERR_OK;
    }
    char *folder = xstrdup("/tmp/ipw-events-XXXXXX");
    if (!mkdtemp(folder)) {
        int number = errno;
        free(folder);
        return err_errno(why, number, "cannot create a directory for the socket of events in /tmp");
    }
    external->socket_folder = folder;
    free(external->socket_path);
    external->socket_path = path_join(folder, "socket");
    chars_copy(address->sun_path, external->socket_path);
    return ERR_OK;
}

static void remove_socket(struct external *external)
{
    if (external->events >= 0)
        close(external->events);
    if (external->socket_path)
        unlink(external->socket_path);
    if (external->socket_folder)
        rmdir(external->socket_folder);
    free(external->socket_path);
    free(external->socket_folder);
}

static enum err open_socket(struct external *external, const char *workspace, struct error *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum err err = name_socket(external, workspace, &address, why);
    if (err)
        return err;
    external->events = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (external->events < 0 ||
        bind(external->events, (struct sockaddr *)&address, sizeof address) != 0)
        return err_errno(why, errno, "cannot create the socket of events");
    return ERR_OK;
}

/* ---- inferences that both the proxy and the program report ---- */

struct requests {
    struct request_span {
        const struct trace_event *start;
        nanos to;
    } *items;
    size_t count;
};

static bool is_text(const char *a, const char *b)
{
    return a && b ? str_equal(a, b) : a == b;
}

/* Time of the matching start or end event; the event's own time if there is none. */
static nanos matching_time(const struct trace_events *events, size_t at)
{
    const struct trace_event *event = &events->items[at];
    bool is_start = event->edge == TRACE_START;
    for (size_t i = is_start ? at + 1 : at; is_start ? i < events->count : i-- > 0; i += is_start) {
        const struct trace_event *other = &events->items[i];
        if (other->type == event->type && other->edge != event->edge &&
            is_text(other->id, event->id))
            return other->at;
    }
    return event->at;
}

static bool is_of_proxy(const struct external *external, const struct trace_event *event)
{
    char prefix[96];
    chars_format(prefix, "%s/r", external->query->key);
    return event->type == TRACE_INFERENCE && event->id &&
           strncmp(event->id, prefix, strlen(prefix)) == 0;
}

/* The proxied request that overlaps a span of the program, if that is an inference (also of a sub-model) or a phase of
 * one. */
static const struct trace_event *find_observed(const struct external *external,
                                               const struct requests *requests,
                                               const struct trace_events *events, size_t at)
{
    const struct trace_event *event = &events->items[at];
    if (event->type < TRACE_SUBMODEL || event->type > TRACE_DECODE || is_of_proxy(external, event))
        return NULL;
    nanos other = matching_time(events, at);
    nanos from = event->at < other ? event->at : other;
    nanos to = event->at < other ? other : event->at;
    for (size_t i = 0; i < requests->count; i++)
        if (from <= requests->items[i].to && to >= requests->items[i].start->at)
            return requests->items[i].start;
    return NULL;
}

/* The proxy's events take precedence.  Each duplicate event of the program is replaced by another start event of the
 * request, at the end, which the span builder drops and counts as a duplicate. */
static void replace_duplicates(struct external *external, const struct trace_events *events,
                               struct requests *requests, const struct trace_event **doubles)
{
    size_t double_count = 0;
    size_t checked = events->count < TRACE_EVENTS_MAX ? events->count : TRACE_EVENTS_MAX;
    for (size_t i = 0; i < checked; i++)
        if (is_of_proxy(external, &events->items[i]) && events->items[i].edge == TRACE_START)
            requests->items[requests->count++] =
                (struct request_span){&events->items[i], matching_time(events, i)};
    for (size_t i = 0; i < events->count; i++) {
        const struct trace_event *request =
            i < checked ? find_observed(external, requests, events, i) : NULL;
        if (request)
            doubles[double_count++] = request;
        else
            record_event(external, &events->items[i]);
    }
    for (size_t i = 0; i < double_count; i++)
        record_event(external, doubles[i]);
}

static void revise(void *context, const struct trace_events *events)
{
    struct external *external = context;
    struct requests requests = {xcalloc(events->count + 1, sizeof *requests.items), 0};
    const struct trace_event **doubles = xcalloc(events->count + 1, sizeof *doubles);
    replace_duplicates(external, events, &requests, doubles);
    free(requests.items);
    free((void *)doubles);
}

static void drop_duplicates(struct external *external)
{
    const struct agent_query *query = external->query;
    if (external->has_inferences && external->ended)
        trace_recorder_revise(query->recorder, query->key, revise, external);
}

/* ---- running it ---- */

static bool is_added(const char *variable, const char *const *added, size_t count)
{
    size_t length = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (!strncmp(added[i], variable, length))
            return true;
    return false;
}

/* Our environment, with variables of the same name replaced: "NAME=VALUE", each NUL-terminated. */
static const char **make_environment(const struct text *added, size_t count)
{
    size_t ours = 0, used = 0;
    while (environ[ours])
        ours++;
    const char **list = xcalloc(ours + count + 1, sizeof *list);
    const char *at = added->bytes;
    for (; used < count; at += strlen(at) + 1)
        list[used++] = at;
    for (size_t i = 0; i < ours; i++)
        if (!is_added(environ[i], list, count))
            list[used++] = environ[i];
    return list;
}

static void add_variable(struct text *out, size_t *count, const char *name, const char *value,
                         const char *rest)
{
    text_addf(out, "%s=%s%s", name, value, rest);
    text_add_bytes(out, "", 1);
    ++*count;
}

/* Linux limits one argument or variable to 32 pages, including its name and the terminating NUL. */
static bool fits_variable(const char *problem)
{
    return sizeof "IPW_PROBLEM=" + strlen(problem) <= 32 * (size_t)sysconf(_SC_PAGESIZE);
}

/* Writes the question to a file for programs that read it from there; next to the workspace, like the socket. */
static enum err write_problem(struct external *external, const struct agent *agent,
                              const char *workspace, struct error *why)
{
    const char *problem = external->query->request->prompt;
    if (!fits_variable(problem) && strstr(agent->options->command, "{problem}"))
        return err_set(why, ERR_USAGE,
                       "the question has %zu bytes, more than a program argument may have: use "
                       "{problem_file} instead of {problem} in --exec",
                       strlen(problem));
    external->problem_path = xformat("%s.problem", workspace);
    FILE *file = fopen(external->problem_path, "we");
    bool fine = file && fputs(problem, file) >= 0;
    fine = file && fclose(file) == 0 && fine;
    return fine ? ERR_OK : err_errno(why, errno, "cannot write %s", external->problem_path);
}

static size_t add_variables(const struct external *external, const char *workspace, unsigned port,
                            struct text *out)
{
    static const char *const OPENAI[] = {"OPENAI_BASE_URL", "OPENAI_API_BASE",
                                         "OPENAI_API_BASE_URL"};
    static const char *const OTHERS[] = {"OLLAMA_HOST", "ANTHROPIC_BASE_URL"};
    static const char *const KEYS[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"};
    char address[64];
    size_t count = 0;
    chars_format(address, "http://127.0.0.1:%u", port);
    for (size_t i = 0; i < COUNT_OF(OPENAI); i++)
        add_variable(out, &count, OPENAI[i], address, "/v1");
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++)
        add_variable(out, &count, OTHERS[i], address, "");
    const char *key = getenv("IPW_API_KEY"); /* also used by the client itself */
    for (size_t i = 0; i < COUNT_OF(KEYS); i++)
        if (key || !getenv(KEYS[i])) /* programs refuse to start without a key */
            add_variable(out, &count, KEYS[i], key ? key : "none", "");
    if (fits_variable(external->query->request->prompt))
        add_variable(out, &count, "IPW_PROBLEM", external->query->request->prompt, "");
    add_variable(out, &count, "IPW_PROBLEM_FILE", external->problem_path, "");
    add_variable(out, &count, "IPW_MODEL", external->query->request->model, "");
    add_variable(out, &count, "IPW_WORKSPACE", workspace, "");
    add_variable(out, &count, "IPW_EVENTS", external->socket_path, "");
    return count;
}

/* The last nonblank line of its stderr. */
static void last_line(struct text *messages, char *to, size_t size)
{
    char *text = messages->bytes ? str_trim(messages->bytes) : "";
    char *line = strrchr(text, '\n');
    str_copy(to, size, line ? line + 1 : text);
    str_plain(to, size);
}

static enum err check_exit(const struct subprocess_result *result, const struct agent *agent,
                           struct text *messages, struct error *why)
{
    char said[160];
    last_line(messages, said, sizeof said);
    if (result->canceled)
        return err_set(why, ERR_INTERRUPTED, "canceled");
    if (result->timed_out)
        return err_set(why, ERR_TIMEOUT, "the agent took longer than %.3g s",
                       seconds(agent->options->query_timeout));
    if (result->end.exit_code)
        return err_set(why, ERR_IO, "the agent ended with exit code %d%s%s", result->end.exit_code,
                       said[0] ? ": " : "", said);
    return ERR_OK;
}

static enum err run(struct external *external, const struct agent *agent, const char *workspace,
                    unsigned port, struct error *why)
{
    static const char *const NAMES[] = {"problem", "problem_file", "model", "workspace", NULL};
    struct text variables = {0}, command = {0}, messages = {0};
    size_t count = add_variables(external, workspace, port, &variables);
    const char **environment = make_environment(&variables, count);
    subprocess_command(agent->options->command, NAMES, &command);
    const char *const argv[] = {"/bin/sh", "-c", text_get(&command), NULL};
    const struct subprocess_options options = {
        .argv = argv, .environment = environment, .directory = -1};
    const struct subprocess_run how = {.timeout = agent->options->query_timeout,
                                       .cancel = external->query->request->cancel,
                                       .output_limit = MESSAGES_MAX,
                                       .take = handle_output,
                                       .ready = read_events,
                                       .watched = external->events,
                                       .context = external};
    struct subprocess_result result;
    enum err err = subprocess_run(&options, &how, &messages, &result, why);
    read_events(external);
    if (!err)
        err = check_exit(&result, agent, &messages, why);
    free(environment);
    text_release(&variables);
    text_release(&command);
    text_release(&messages);
    return err;
}

/* If the program reported no tool calls: records the time between inferences as such. */
static void record_gaps(struct external *external)
{
    const char *key = external->query->key;
    for (size_t i = 0; i < external->gap_count && !external->has_tools; i++) {
        char id[96];
        chars_format(id, "%s/g%zu", key, i);
        for (int edge = TRACE_START; edge <= TRACE_END; edge++) {
            struct trace_event event = trace_event_new(TRACE_TOOL, (enum trace_edge)edge, key, id);
            event.name = "between_inferences";
            event.at = edge == TRACE_START ? external->gaps[i].from : external->gaps[i].to;
            record_event(external, &event);
        }
    }
}

/* ---- a query ---- */

/* Without Content-Type, which the program sets. */
static void copy_headers(const struct client *client, struct params *out)
{
    for (size_t i = 0; client->headers && i < client->headers->count; i++)
        if (!str_equal_nocase(client->headers->items[i].key, "Content-Type"))
            params_set(out, client->headers->items[i].key, client->headers->items[i].value);
}

/* Requests already have "/v1" in their path. */
static enum err start_proxy(struct external *external, bool inject_usage, struct proxy **out,
                            struct error *why)
{
    char upstream[sizeof external->query->client->base_url];
    chars_copy(upstream, external->query->client->base_url);
    size_t length = strlen(upstream);
    while (length && upstream[length - 1] == '/')
        upstream[--length] = '\0';
    if (length > 3 && str_equal(upstream + length - 3, "/v1"))
        upstream[length - 3] = '\0';
    if (!upstream[0])
        return err_set(why, ERR_USAGE, "--exec needs the client anthropic, openai or ollama");
    copy_headers(external->query->client, &external->headers);
    const struct proxy_options options = {.upstream = upstream,
                                          .upstream_headers = &external->headers,
                                          .inject_usage = inject_usage,
                                          .begins = on_begins,
                                          .ended = on_ended,
                                          .context = external};
    return proxy_start(&options, out, why);
}

static void set_answer(struct external *external)
{
    struct text *answer = &external->answer;
    handle_line(external);
    if (answer->bytes)
        text_add_repaired(&external->out->content, str_trim(answer->bytes),
                          strlen(str_trim(answer->bytes)));
    chars_copy(external->out->finish_reason, "stop");
}

enum err agent_external(const struct agent *agent, const struct agent_query *query,
                        const char *workspace, struct completion *out, struct error *why)
{
    struct proxy *proxy = NULL;
    struct external *external = XNEW(external);
    out->sent = out->done = clock_now();
    external->query = query;
    external->out = out;
    external->events = -1;
    pthread_mutex_init(&external->lock, NULL);
    record_agent(external, TRACE_START, out->sent, NULL);
    enum err err = open_socket(external, workspace, why);
    if (!err)
        err = write_problem(external, agent, workspace, why);
    if (!err)
        err = start_proxy(external, !agent->options->no_inject_usage, &proxy, why);
    if (!err)
        err = run(external, agent, workspace, proxy_port(proxy), why);
    if (proxy)
        proxy_stop(proxy);
    set_answer(external);
    drop_duplicates(external);
    record_gaps(external);
    out->done = clock_now();
    record_agent(external, TRACE_END, out->done, err ? why->text : NULL);
    remove_socket(external);
    if (external->problem_path)
        unlink(external->problem_path);
    free(external->problem_path);
    pthread_mutex_destroy(&external->lock);
    text_release(&external->answer);
    text_release(&external->line);
    params_release(&external->headers);
    free(external);
    return err;
}
