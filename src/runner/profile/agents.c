/* The queries of an agent.  When a query ends, its events become a tree of spans and an account of their energies
 * (attribute/span_account.h), whose shares are settled later, in the main thread; with the last share, the query's
 * energy is written to the journal and its trace to traces.jsonl.  A trace without energies is written when the query
 * ends, like its record, so that a killed run can be resumed; a judge's results are added at the end.  Of several lines
 * of a query the last one is valid. */
#include <stdlib.h>
#include <string.h>

#include "attribute/span_account.h"
#include "attribute/span_cost.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "rundir/record.h"
#include "rundir/traces.h"
#include "runner/profile/records.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"

/* A query until its energy is settled: the context of its account. */
struct ended_query {
    struct pending *pending;
    char id[48]; /* numbered as in the Python IPW */
    char *problem, *answer, *workload;
    char reason[200]; /* why it failed, or could not be graded or read by the grader */
    double started_at, score, cost_usd;
    int8_t completed, timed_out, is_correct; /* -1: unknown */
};

static void free_ended(struct ended_query *ended)
{
    if (!ended)
        return;
    free(ended->pending);
    free(ended->problem);
    free(ended->answer);
    free(ended->workload);
    free(ended);
}

/* Of the dataset's row, as the Python IPW has it. */
static char *workload_of(const struct item *item)
{
    struct text type = {0};
    bool is_given = item_field(item, "workload_type", &type) && type.length;
    char *copy = is_given ? xstrdup(text_get(&type)) : NULL;
    text_release(&type);
    return copy;
}

/* 0 to 1: the grader's score, else 1 for a correct answer and 0 for a wrong one. */
static double score_of(double score, int correct)
{
    if (is_known(score) || correct < 0)
        return score;
    return correct;
}

/* What is known of the grade when the query ends: a judge's comes later (agents_update). */
static void take_grade(struct ended_query *ended, const struct answer *answer)
{
    const struct grade *grade = &answer->grade;
    bool is_right = grade->verdict == VERDICT_TRUE, is_wrong = grade->verdict == VERDICT_FALSE;
    if (!is_right && !is_wrong)
        chars_copy(ended->reason, grade->reason);
    if (grade->verdict != VERDICT_NULL) /* an unread answer resolves nothing */
        ended->is_correct = (int8_t)is_right;
    ended->score = score_of(grade->score, is_right || is_wrong ? is_right : -1);
}

static struct ended_query *new_ended(const struct profile *profile, struct pending *pending,
                                     const struct answer *answer)
{
    const struct query *query = answer->query;
    const char *content = text_get(&answer->reply->content);
    struct ended_query *ended = XNEW(ended);
    ended->problem = xstrdup(query->item.problem);
    ended->answer = xstrdup(answer->err && !content[0] ? answer->why : content);
    ended->workload = workload_of(&query->item);
    ended->started_at = seconds(profile->zero_wall) + seconds(answer->reply->sent - profile->zero);
    ended->score = UNKNOWN;
    ended->cost_usd = answer->cost.total;
    ended->completed = (int8_t)!answer->err;
    ended->timed_out = (int8_t)(answer->err == ERR_TIMEOUT);
    ended->is_correct = -1;
    if (query->repeat)
        chars_format(ended->id, "q%04llu_r%u", (unsigned long long)query->index, query->repeat);
    else
        chars_format(ended->id, "q%04llu", (unsigned long long)query->index);
    if (answer->err)
        chars_copy(ended->reason, answer->why);
    else if (answer->grader)
        take_grade(ended, answer);
    ended->pending = pending;
    return ended;
}

/* ---- energies ---- */

/* Marks the energies as unknown while shares are outstanding. */
static void forget_energies(struct query_trace *trace)
{
    trace->ipw.note = "the run ended before the energy of this query was known";
    for (size_t i = 0; i < trace->span_count; i++)
        trace->spans[i].own_joules = UNKNOWN;
}

static enum err write_trace(struct journal *traces, struct span_account *account, bool is_settled,
                            struct text *line, struct error *why)
{
    const struct ended_query *ended = account->context;
    struct query_trace trace;
    query_trace_init(&trace);
    trace.query_id = ended->id;
    trace.query_text = ended->problem;
    trace.response_text = ended->answer;
    if (ended->workload)
        trace.workload_type = ended->workload;
    trace.completed = ended->completed;
    trace.timed_out = ended->timed_out;
    trace.is_resolved = ended->is_correct;
    trace.accuracy_score = ended->score;
    trace.unscorable_reason = str_or_null(ended->reason);
    trace.ipw.key = ended->pending->key;
    trace.ipw.started_at = ended->started_at;
    trace.total_cost_usd = ended->cost_usd; /* for a query without turns */
    span_account_trace(account, &trace);
    if (!is_settled)
        forget_energies(&trace);
    query_trace_compute(&trace);
    text_clear(line);
    query_trace_to_json(&trace, line);
    query_trace_release(&trace);
    return journal_append(traces, line, why);
}

/* All shares of the account were settled. */
static void settle_account(struct profile *profile, struct span_account *account)
{
    struct ended_query *ended = account->context;
    struct record record;
    struct text line = {0};
    struct error why = {0};
    record_init(&record);
    span_account_record(account, &record);
    record_line(&record, profile->options->model, "energy", ended->pending->key, &line);
    enum err err =
        journal_append_reserved(&profile->files.journal, &line, profile->files.energy_space, &why);
    profile->files.unsettled = profile->files.unsettled || err;
    if (!err)
        err = write_trace(&profile->files.traces, account, true, &line, &why);
    if (err)
        profile_fail(profile, err, &why);
    text_release(&line);
    span_account_free(account);
    free_ended(ended);
}

bool agents_take_share(struct profile *profile, const struct share *share)
{
    if (!span_account_owns(share))
        return false;
    struct span_account *account = span_account_take(share);
    if (account)
        settle_account(profile, account);
    return true;
}

/* ---- the end of a query ---- */

void agents_take_tree(struct profile *profile, struct answer *answer, struct trace_tree *out)
{
    struct trace_events events;
    const struct completion *reply = answer->reply;
    trace_recorder_take(profile->shared.recorder, answer->query->key, &events);
    trace_tree_build(&events, reply->sent, reply->done, out);
    span_cost_take(out, profile->setup.prices, profile->options->model, &answer->cost);
    if (answer->cost.has_other_currency)
        atomic_store(&profile->shared.has_other_currency, true);
}

enum err agents_end(struct profile *profile, struct pending *pending, const struct answer *answer,
                    struct trace_tree *tree, struct error *why)
{
    uint64_t id = pending->id;
    const struct completion *reply = answer->reply;
    struct ended_query *ended = new_ended(profile, pending, answer);
    struct span_account *account = span_account_new(tree, ended);
    /* Once submitted, shares may be settled and the account freed at any time; a query of no duration gets none. */
    bool has_time = reply->done > reply->sent;
    struct text line = {0};
    enum err err = ERR_OK;
    if (has_time)
        err = write_trace(&profile->files.traces, account, false, &line, why);
    text_release(&line);
    if (err) {
        span_account_free(account);
        ended->pending = NULL;
        free_ended(ended);
        return err;
    }
    err = span_account_submit(account, profile->shared.sharing, id);
    if (err)
        return err_explain(why, err); /* part of it may be in flight: must not be freed */
    if (!has_time)
        settle_account(profile, account);
    return ERR_OK;
}

void agents_discard(struct profile_shared *shared, const char *key)
{
    struct trace_events events;
    trace_recorder_take(shared->recorder, key, &events);
    trace_events_release(&events);
}

/* ---- the summary ---- */

void agents_init(struct profile *profile)
{
    profile->shared.recorder = trace_recorder_new();
}

void agents_release(struct profile *profile)
{
    trace_recorder_free(profile->shared.recorder);
    traces_release(&profile->report.agent_traces);
}

enum err agents_load(struct profile *profile, struct error *why)
{
    enum err err = journal_sync(&profile->files.traces, why);
    if (!err)
        err = traces_load(profile->files.directory, &profile->report.agent_traces, why);
    profile->report.agent_traces.config = profile->options->agent->settings;
    profile->result->summary.traces = &profile->report.agent_traces;
    return err;
}

/* The score and what the grader reported with it, as in the record. */
static void update_score(struct query_trace *trace, const struct record *record)
{
    struct evaluation evaluation;
    record_evaluation(record, &evaluation);
    trace->accuracy_score = score_of(evaluation.score, record->correct);
    query_trace_put_score_metadata(trace, record->evaluation);
}

enum err agents_update(struct profile *profile, const struct record *record)
{
    struct text line = {0};
    struct error why = {0};
    struct query_trace *trace = traces_find(&profile->report.agent_traces, record->key);
    profile->report.agent_traces.missing += !trace;
    if (trace)
        update_score(trace, record);
    bool is_known_already =
        trace && record->correct == trace->is_resolved && !trace->unscorable_reason;
    if (!trace || is_known_already || record->correct < 0)
        return ERR_OK;
    trace->is_resolved = record->correct;
    trace->unscorable_reason = NULL;
    trace->judge_gpu_energy_joules = record->judge_gpu_joules;
    trace->judge_cpu_energy_joules = record->judge_cpu_joules;
    query_trace_compute(trace);
    query_trace_to_json(trace, &line);
    enum err err = journal_append(&profile->files.traces, &line, &why);
    text_release(&line);
    return err;
}

enum err agents_save(struct profile *profile, struct error *why)
{
    enum err err = traces_save(profile->files.directory, &profile->report.agent_traces, why);
    if (err || profile->options->no_stores)
        return err;
    err = traces_save_dataset(profile->files.directory, &profile->report.agent_traces, why);
    return err == ERR_UNSUPPORTED ? ERR_OK : err; /* like the other stores that need Arrow */
}
