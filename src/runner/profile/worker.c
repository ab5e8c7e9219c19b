/* A query passes through attempt (repeated after transient errors), grade and write_record.  Every attempt is announced
 * to attribution before it is sent and submitted when it has ended; its energy is settled later, in the main thread,
 * through request_take_share. */
#include "runner/profile/worker.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "port/thread.h"
#include "rundir/run_dir.h"
#include "runner/profile/records.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "runner/profile/supply.h"
#include "trace/trace.h"

/* ---- a request ---- */

/* Attribution must know a request before it is sent, and owns it from its end until its share is taken. */

enum { UNSETTLED_MAX = 1 << 16 };

enum err request_begin_as(struct profile_shared *shared, uint64_t id, nanos at, struct error *why)
{
    enum err err = sharing_begin(shared->sharing, id, at);
    if (!err)
        atomic_fetch_add(&shared->sent, 1);
    return err_explain(why, err);
}

struct pending *pending_new(uint64_t id, const char *key, unsigned attempt)
{
    struct pending *pending = XNEW(pending);
    pending->id = id;
    chars_copy(pending->key, key);
    pending->attempt = attempt;
    return pending;
}

/* Call before the request is sent.  The caller owns *out until request_end or request_discard. */
static enum err request_begin(struct profile_shared *shared, const char *key, unsigned attempt,
                              struct pending **out, struct error *why)
{
    struct pending *pending = *out =
        pending_new(atomic_fetch_add(&shared->next_request, 1), key, attempt);
    enum err err = request_begin_as(shared, pending->id, clock_now(), why);
    if (err) {
        free(pending);
        *out = NULL;
    }
    return err;
}

/* The request was not sent, or does not count. */
static void request_discard(struct profile_shared *shared, struct pending *pending)
{
    sharing_forget(shared->sharing, pending->id);
    free(pending);
}

static void fill_pending(struct pending *pending, const struct completion *reply)
{
    pending->input_tokens = known_count(reply->prompt_tokens);
    pending->output_tokens = known_count(reply->output_tokens);
    pending->seconds = seconds(reply->done - reply->sent);
    bool phases = reply_has_phases(reply);
    pending->prefill_s = phases ? seconds(reply->first_token - reply->sent) : UNKNOWN;
    pending->decode_s = phases ? seconds(reply->done - reply->first_token) : UNKNOWN;
}

/* Submits the request to attribution; arrivals are copied, since the record needs them too. */
static enum err end_sharing(struct profile_shared *shared, struct pending *pending,
                            const struct completion *reply)
{
    struct request_trace trace = {
        .id = pending->id,
        .context = pending,
        .from = reply->sent,
        .first_token = reply->first_token,
        .to = reply->done,
        .prompt_tokens = pending->input_tokens,
        .output_tokens = pending->output_tokens,
        .arrival_count = reply->arrivals.count,
    };
    if (trace.arrival_count)
        trace.arrivals =
            xmemdup(reply->arrivals.times, trace.arrival_count * sizeof *trace.arrivals);
    enum err err = sharing_end(shared->sharing, &trace);
    if (err)
        request_trace_release(&trace);
    return err;
}

static void end_unrecorded(struct profile_shared *shared, uint64_t id,
                           const struct completion *reply, bool is_unknown)
{
    struct pending *pending = sharing_ended(shared->sharing) < UNSETTLED_MAX
                                  ? pending_new(id, "", 1)
                                  : NULL; /* not settled either: that writes to the same disk */
    if (pending) {
        fill_pending(pending, reply);
        pending->is_dropped = true;
        pending->is_unknown = is_unknown;
    }
    if (!pending || end_sharing(shared, pending, reply)) {
        sharing_forget(shared->sharing, id);
        free(pending);
    }
}

void request_drop(struct profile_shared *shared, uint64_t id, const struct completion *reply)
{
    end_unrecorded(shared, id, reply, false);
}

/* Its tokens are unknown: it gets equal shares. */
void request_end_unknown(struct profile_shared *shared, uint64_t id, nanos from, nanos to)
{
    struct completion reply;
    completion_init(&reply);
    reply.sent = from;
    reply.done = to;
    end_unrecorded(shared, id, &reply, true);
    completion_release(&reply);
}

void request_withdraw(struct profile_shared *shared, uint64_t id)
{
    sharing_forget(shared->sharing, id);
    atomic_fetch_sub(&shared->sent, 1);
}

enum err request_end(struct profile *profile, struct pending *pending,
                     const struct completion *reply, struct text *line, struct error *why)
{
    fill_pending(pending, reply);
    records_span(profile, pending->last ? SPAN_REQUEST : SPAN_FAILED_ATTEMPT, pending->key,
                 pending->attempt, reply, line);
    enum err err = journal_append(&profile->files.spans, line, why);
    enum err lost = end_sharing(&profile->shared, pending, reply);
    return err || !lost ? err : err_set(why, lost, "%s", err_text(lost));
}

/* ---- its record ---- */

/* The record of a query that is too long for a line of the journal: failed, without its texts. */
static void write_without_texts(struct profile *profile, struct answer *answer, struct text *line)
{
    struct query query = *answer->query;
    struct completion reply = *answer->reply;
    char none[] = "";
    query.item.problem = query.item.answer = none;
    query.item.metadata = NULL;
    reply.content = reply.reasoning = (struct text){0};
    answer->err = ERR_BAD_VALUE;
    answer->why = "question and answer are too long for the journal";
    answer->canceled = false;
    struct answer bare = *answer;
    bare.query = &query;
    bare.reply = &reply;
    bare.metadata = NULL;
    bare.grader = NULL;
    records_query(profile, &bare, line);
}

static void count_query(struct profile_shared *shared, const struct answer *answer)
{
    atomic_fetch_add(&shared->done, 1);
    if (answer->err && !answer->canceled)
        atomic_fetch_add(&shared->failed, 1);
    if (answer->grader && answer->grade.verdict == VERDICT_UNREAD)
        atomic_fetch_add(&shared->unread, 1);
    if (answer->reply->output_tokens > 0)
        atomic_fetch_add(&shared->output_tokens, (uint64_t)answer->reply->output_tokens);
}

enum err request_record(struct profile *profile, struct answer *answer, struct text *line,
                        struct error *why)
{
    records_query(profile, answer, line);
    if (line->length >= JOURNAL_LINE_MAX)
        write_without_texts(profile, answer, line);
    enum err err = journal_append(&profile->files.journal, line, why);
    if (!err)
        count_query(&profile->shared, answer);
    return err;
}

void request_take_share(void *context, const struct share *share)
{
    struct profile *profile = context;
    if (agents_take_share(profile, share))
        return;
    struct pending *pending = share->trace->context;
    struct text *line = &profile->files.energy_line;
    if (pending->is_dropped) {
        if (pending->is_unknown && is_known(share->total.joules))
            profile->settling.unknown_joules += share->total.joules;
        if (!share->is_provisional)
            free(pending);
        return;
    }
    struct error why = {0};
    records_energy(profile, pending, share, line);
    bool is_reserved = pending->last && !pending->is_written;
    enum err err = journal_append_reserved(&profile->files.journal, line,
                                           is_reserved ? profile->files.energy_space : 0, &why);
    profile->files.unsettled = profile->files.unsettled || err;
    if (err)
        profile_fail(profile, err, &why);
    pending->is_written = true;
    if (!share->is_provisional)
        free(pending);
}

/* Delay between attempts: half a second, doubled each time, at most a minute. */

/* A shorter suspend cannot be distinguished from the skew of two clock reads. */
#define SUSPEND_MIN (100 * NS_PER_MS)

/* How often a sleeping worker checks whether it should stop. */
#define POLL_INTERVAL (20 * NS_PER_MS)

struct worker {
    struct profile *profile;
    struct client client;
    struct graders graders;
    struct text prompt, line;
    pthread_t thread;
};

struct workers {
    struct worker *items;
    size_t count, started;
};

/* ---- waiting ---- */

/* Sleeps until `when`; false if the run was stopped first. */
static bool wait_until(const struct profile_shared *shared, nanos when)
{
    for (;;) {
        nanos left = when - clock_now();
        if (left <= 0)
            return true;
        if (atomic_load(&shared->stop))
            return false;
        thread_sleep(left < POLL_INTERVAL ? left : POLL_INTERVAL);
    }
}

/* ---- one attempt ---- */

/* An item may set the length of its answer; the user's max_tokens overrides it.  *own must be released by the
 * caller. */
static const struct params *params_for(const struct profile_options *options,
                                       const struct item *item, struct params *own)
{
    char digits[24];
    *own = (struct params){0};
    if (item->output_length <= 0 || params_get(&options->request_params, "max_tokens") ||
        !chars_format(digits, "%" PRId64, item->output_length))
        return &options->request_params;
    params_copy(own, &options->request_params);
    params_set(own, "max_tokens", digits);
    return own;
}

static enum err score_window(struct worker *worker, const struct query *query,
                             const struct client_request *request, struct completion *reply,
                             struct error *why)
{
    const struct client_windows *windows = &worker->profile->setup.windows;
    const int32_t *tokens =
        windows->count ? windows->tokens + query->index * windows->length : NULL;
    return worker->client.driver->score(&worker->client, request, tokens, windows->length, reply,
                                        why);
}

static enum err ask_agent(struct worker *worker, const struct query *query,
                          const struct client_request *request, struct completion *reply,
                          struct error *why)
{
    const struct profile_agent *agent = worker->profile->options->agent;
    const struct profile_question question = {.key = query->key,
                                              .client = &worker->client,
                                              .request = request,
                                              .recorder = worker->profile->shared.recorder};
    return agent->answer(agent->context, &question, reply, why);
}

/* A generated file becomes one of the run's, and its name the answer; that of a warm-up is dropped. */
static enum err keep_artifact(const struct worker *worker, const struct query *query,
                              bool is_warm_up, struct completion *reply, struct error *why)
{
    if (!reply->artifact.length)
        return ERR_OK;
    char *name = xformat("%s/%s.%s", RUN_OUTPUTS, query->key, reply->artifact_extension);
    enum err err = is_warm_up
                       ? ERR_OK
                       : run_dir_put(worker->profile->files.directory, name, &reply->artifact, why);
    text_add(&reply->content, name + sizeof RUN_OUTPUTS);
    text_release(&reply->artifact);
    free(name);
    return err;
}

/* is_warm_up: warms up the model, without an agent. */
static enum err send_request(struct worker *worker, const struct query *query, bool is_warm_up,
                             struct completion *reply, struct error *why)
{
    const struct profile_options *options = worker->profile->options;
    struct params own;
    completion_init(reply);
    *why = (struct error){0};
    reply->sent = reply->done = clock_now();
    const struct prompt_form form = profile_prompts(options);
    enum err err = prompt_render(&form, &query->item, &worker->prompt, why);
    if (err)
        return err;
    struct client_request request = {
        .model = options->model,
        .system = options->system,
        .prompt = text_get(&worker->prompt),
        .params = params_for(options, &query->item, &own),
        .timeout = from_seconds(options->timeout_s),
        .cancel = &worker->profile->shared.cancel,
    };
    if (options->is_perplexity)
        err = score_window(worker, query, &request, reply, why);
    else if (options->agent && !is_warm_up)
        err = ask_agent(worker, query, &request, reply, why);
    else
        err = worker->client.driver->ask(&worker->client, &request, reply, why);
    if (!err)
        err = keep_artifact(worker, query, is_warm_up, reply, why);
    params_release(&own);
    return err;
}

/* An empty answer is a failure, whatever the server's finish reason: as a success, it would make queries look cheap.
 * An answer truncated at the token limit, one with a tool call, or that of an agent out of turns may be empty: it is
 * wrong, but not a failure. */
static enum err refuse_empty(const struct client *client, struct completion *reply,
                             struct error *why)
{
    static const char *const FINE[] = {"length", "tool_calls", "function_call", "max_turns"};
    if (reply->content.length || reply->reasoning.length || reply->scored_tokens > 0 ||
        str_is_listed(reply->finish_reason, FINE, COUNT_OF(FINE)))
        return ERR_OK;
    reply->retryable = !client->driver->is_in_process; /* in process, no error is transient */
    return err_set(why, ERR_NO_DATA, "the answer is empty (finish_reason: %s)",
                   reply->finish_reason[0] ? reply->finish_reason : "none");
}

/* Sends the query once.  Sets *again if another attempt should follow, *broken if the run itself cannot continue, with
 * the reason in broken_why. */
static enum err attempt(struct worker *worker, const struct query *query, unsigned number,
                        struct completion *reply, struct error *why, bool *again, enum err *broken,
                        struct error *broken_why)
{
    *again = false;
    struct profile *profile = worker->profile;
    struct pending *pending;
    *broken = request_begin(&profile->shared, query->key, number, &pending, broken_why);
    if (*broken) {
        completion_init(reply);
        return *broken;
    }
    enum err err = send_request(worker, query, false, reply, why);
    if (!err)
        err = refuse_empty(&worker->client, reply, why);
    if (err == ERR_INTERRUPTED && atomic_load(&profile->shared.cancel)) {
        request_discard(&profile->shared, pending);
        return err;
    }
    *again = err && reply->retryable && number <= profile->options->retries &&
             !atomic_load(&profile->shared.stop);
    pending->last = !*again;
    *broken = request_end(profile, pending, reply, &worker->line, broken_why);
    return err;
}

/* ---- one query ---- */

static void grade(struct worker *worker, const struct query *query, struct answer *answer)
{
    const struct graders *graders = &worker->graders;
    const char *name = graders_choose(graders, &query->item);
    bool judge = name && graders_is_judge(name);
    bool waits = judge && (graders->options->grader || str_equal(name, graders->usual));
    if (answer->err || !name || waits || answer->reply->scored_tokens > 0)
        return;
    answer->grader = name;
    if (judge) { /* only the row names it, so the run has no judge for it */
        answer->grade = (struct grade){.score = UNKNOWN};
        chars_format(answer->grade.reason,
                     "not graded: pass --grader %s --eval-model NAME --resume", name);
        return;
    }
    graders_grade(&worker->graders, name, &query->item, text_get(&answer->reply->content),
                  &answer->grade);
}

static enum err finish_query(struct worker *worker, struct answer *answer, struct error *why)
{
    grade(worker, answer->query, answer);
    return request_record(worker->profile, answer, &worker->line, why);
}

/* Returns an error only if the run cannot continue; a failed query is a record. */
static enum err run_query(struct worker *worker, const struct query *query, struct error *why)
{
    struct completion reply;
    struct error reason = {0};
    struct answer answer = {.query = query, .reply = &reply};
    struct journal *journal = &worker->profile->files.journal;
    /* Reserves space for the energy line: an answer without it would be useless. */
    enum err broken = journal_reserve(journal, worker->profile->files.energy_space, why);
    if (broken)
        return broken;
    for (;;) {
        answer.attempts++;
        bool again;
        unsigned stops = proc_stops();
        nanos suspended = clock_suspended();
        answer.err = attempt(worker, query, answer.attempts, &reply, &reason, &again, &broken, why);
        answer.paused = proc_stops() != stops || clock_suspended() - suspended > SUSPEND_MIN;
        if (answer.attempts == 1)
            answer.first_sent = reply.sent;
        if (!again || broken)
            break;
        double pause_s = completion_backoff_s(&reply, answer.attempts);
        completion_release(&reply);
        if (!wait_until(&worker->profile->shared, clock_now() + from_seconds(pause_s))) {
            journal_unreserve(journal, worker->profile->files.energy_space);
            return ERR_OK; /* interrupted between attempts: as if never sent */
        }
    }
    answer.why = answer.err ? (reason.text[0] ? reason.text : err_text(answer.err)) : "";
    if (answer.err == ERR_INTERRUPTED && atomic_load(&worker->profile->shared.cancel))
        journal_unreserve(journal, worker->profile->files.energy_space);
    else if (!broken)
        broken = finish_query(worker, &answer, why);
    completion_release(&reply);
    return broken;
}

/* The same for an agent, which retries its requests itself, and whose energy is accounted by spans. */
static enum err run_agent_query(struct worker *worker, const struct query *query, struct error *why)
{
    struct profile *profile = worker->profile;
    struct completion reply;
    struct error reason = {0}, late = {0};
    struct answer answer = {.query = query, .reply = &reply, .attempts = 1};
    struct trace_tree tree;
    struct pending *pending;
    enum err broken = journal_reserve(&profile->files.journal, profile->files.energy_space, why);
    if (!broken)
        broken = request_begin(&profile->shared, query->key, 1, &pending, why);
    if (broken)
        return broken;
    unsigned stops = proc_stops();
    nanos suspended = clock_suspended();
    answer.err = send_request(worker, query, false, &reply, &reason);
    if (!answer.err)
        answer.err = refuse_empty(&worker->client, &reply, &reason);
    answer.paused = proc_stops() != stops || clock_suspended() - suspended > SUSPEND_MIN;
    answer.first_sent = reply.sent;
    answer.why = answer.err ? (reason.text[0] ? reason.text : err_text(answer.err)) : "";
    if (answer.err == ERR_INTERRUPTED && atomic_load(&profile->shared.cancel)) {
        journal_unreserve(&profile->files.journal, profile->files.energy_space);
        request_discard(&profile->shared, pending);
        agents_discard(&profile->shared, query->key);
    } else {
        agents_take_tree(profile, &answer, &tree);
        broken = finish_query(worker, &answer, why);
        records_span(profile, SPAN_REQUEST, query->key, 1, &reply, &worker->line);
        if (!broken)
            broken = journal_append(&profile->files.spans, &worker->line, why);
        enum err lost = agents_end(profile, pending, &answer, &tree, &late);
        if (lost)
            request_discard(&profile->shared, pending);
        if (lost && !broken)
            broken = err_set(why, lost, "%s", late.text);
    }
    completion_release(&reply);
    return broken;
}

/* Counts workers that wait for the dataset, which may be a pipe. */
static enum err next_query(struct profile_shared *shared, struct supply *supply, struct query *out,
                           bool *end, struct error *why)
{
    atomic_fetch_add(&shared->reading, 1);
    enum err err = supply_next(supply, out, end, why);
    atomic_fetch_sub(&shared->reading, 1);
    return err;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct profile *profile = worker->profile;
    struct error why = {0};
    thread_name("ipw-worker", -1);
    while (!atomic_load(&profile->shared.stop)) {
        struct query query;
        bool end;
        if (!sharing_has_capacity(profile->shared.sharing, WORKERS_PENDING_MAX, POLL_INTERVAL))
            continue;
        enum err err = next_query(&profile->shared, &profile->shared.supply, &query, &end, &why);
        if (!err && end)
            break;
        if (!err && wait_until(&profile->shared, query.due))
            err = profile->options->agent ? run_agent_query(worker, &query, &why)
                                          : run_query(worker, &query, &why);
        query_release(&query);
        if (err)
            profile_fail(profile, err, &why);
    }
    atomic_fetch_sub(&profile->shared.working, 1);
    return NULL;
}

/* ---- starting and ending ---- */

static void worker_release(struct worker *worker)
{
    client_close(&worker->client);
    graders_release(&worker->graders);
    text_release(&worker->prompt);
    text_release(&worker->line);
}

static enum err worker_init(struct worker *worker, struct profile *profile, struct error *why)
{
    *worker = (struct worker){.profile = profile};
    enum err err = client_open(profile->setup.client_driver, &profile->setup.client_config,
                               &worker->client, why);
    if (!err)
        graders_init(&worker->graders, profile->options, &profile->shared.supply.dataset);
    return err;
}

void workers_join(struct workers *workers)
{
    for (size_t i = 0; i < workers->started; i++)
        pthread_join(workers->items[i].thread, NULL);
    for (size_t i = 0; i < workers->count; i++)
        worker_release(&workers->items[i]);
    free(workers->items);
    free(workers);
}

enum err workers_start(struct profile *profile, unsigned count, struct workers **out,
                       struct error *why)
{
    struct workers *workers = XNEW(workers);
    enum err err = ERR_OK;
    workers->items = xcalloc(count, sizeof *workers->items);
    for (; !err && workers->count < count; workers->count++) {
        err = worker_init(&workers->items[workers->count], profile, why);
        if (err)
            break;
    }
    for (; !err && workers->started < count; workers->started++) {
        struct worker *worker = &workers->items[workers->started];
        atomic_fetch_add(&profile->shared.working, 1);
        err = thread_start(&worker->thread, worker_main, worker);
        if (err) {
            atomic_fetch_sub(&profile->shared.working, 1);
            err_set(why, err, "cannot start %u workers: %s", count, err_text(err));
            break;
        }
    }
    if (!err) {
        *out = workers;
        return ERR_OK;
    }
    atomic_store(&profile->shared.stop, true);
    workers_join(workers);
    return err;
}

/* ---- warming up ---- */

/* Inputs that a model in this process refuses, such as damaged images, are no warm-up: so many of them are skipped, as the
 * run will count them as failures. */
enum { WARM_UP_REFUSED_MAX = 100 };

static bool is_refused(const struct worker *worker, const struct completion *reply, enum err err)
{
    bool is_input = err == ERR_BAD_VALUE || err == ERR_UNSUPPORTED || err == ERR_NOT_FOUND;
    bool is_inferred = reply->done > reply->sent;
    return is_input && !is_inferred && worker->client.driver->is_in_process;
}

enum err warm_up_queries(struct profile *profile, unsigned wanted, unsigned *answered,
                         struct error *why)
{
    const struct profile_options *options = profile->options;
    struct supply supply;
    struct worker worker;
    *answered = 0;
    atomic_fetch_add(&profile->shared.reading, 1);
    enum err err =
        supply_open(&supply,
                    &(struct supply_options){.dataset = options->dataset,
                                             .params = &options->dataset_params,
                                             .windows = profile_windows(&profile->setup),
                                             .max_items = (uint64_t)wanted + WARM_UP_REFUSED_MAX,
                                             .repeats = wanted},
                    why);
    atomic_fetch_sub(&profile->shared.reading, 1);
    if (err)
        return err;
    err = worker_init(&worker, profile, why);
    unsigned refused = 0;
    for (unsigned i = 0; i < wanted && !err && !atomic_load(&profile->shared.stop);) {
        struct query query;
        struct completion reply;
        bool end;
        err = next_query(&profile->shared, &supply, &query, &end, why);
        if (err || end)
            break;
        enum err failed = send_request(&worker, &query, true, &reply, why);
        bool is_skipped = is_refused(&worker, &reply, failed) && refused < WARM_UP_REFUSED_MAX;
        *answered += !failed;
        refused += is_skipped;
        i += !is_skipped;
        completion_release(&reply);
        query_release(&query);
        atomic_store(&profile->shared.done, i);
    }
    worker_release(&worker);
    supply_close(&supply);
    return err;
}
