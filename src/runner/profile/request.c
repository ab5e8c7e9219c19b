/* Attribution must know of a request before it is sent, and owns it from its end until its share is taken. */
#include "runner/profile/request.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/text.h"
#include "runner/profile/records.h"
#include "runner/profile/state.h"
#include "runner/profile/supply.h"

enum { UNSETTLED_MAX = 1 << 16 };

enum err request_begin_as(struct profile *profile, uint64_t id, nanos at, struct error *why)
{
    enum err err = sharing_begin(profile->sharing, id, at);
    if (!err)
        atomic_fetch_add(&profile->sent, 1);
    return err_explain(why, err);
}

struct pending *pending_new(uint64_t id, const char *key, unsigned attempt)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (pending) {
        pending->id = id;
        str_copy(pending->key, sizeof pending->key, key);
        pending->attempt = attempt;
    }
    return pending;
}

enum err request_begin(struct profile *profile, const char *key, unsigned attempt,
                       struct pending **out, struct error *why)
{
    struct pending *pending = *out =
        pending_new(atomic_fetch_add(&profile->next_request, 1), key, attempt);
    enum err err =
        pending ? request_begin_as(profile, pending->id, clock_now(), why) : err_no_memory(why);
    if (err) {
        free(pending);
        *out = NULL;
    }
    return err;
}

void request_forget(struct profile *profile, struct pending *pending)
{
    sharing_forget(profile->sharing, pending->id);
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

/* Hands the request over to attribution; arrivals are copied, the record needs them too. */
static enum err end_sharing(struct profile *profile, struct pending *pending,
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
    if (trace.arrival_count) {
        trace.arrivals = malloc(trace.arrival_count * sizeof *trace.arrivals);
        if (!trace.arrivals)
            return ERR_NO_MEMORY;
        memcpy(trace.arrivals, reply->arrivals.times, trace.arrival_count * sizeof *trace.arrivals);
    }
    enum err err = sharing_end(profile->sharing, &trace);
    if (err)
        request_trace_release(&trace);
    return err;
}

void request_drop(struct profile *profile, uint64_t id, const struct completion *reply)
{
    struct pending *pending = sharing_ended(profile->sharing) < UNSETTLED_MAX
                                  ? pending_new(id, "", 1)
                                  : NULL; /* nor is it settled: the same disk keeps that waiting */
    if (pending) {
        fill_pending(pending, reply);
        pending->is_dropped = true;
    }
    if (!pending || end_sharing(profile, pending, reply)) {
        sharing_forget(profile->sharing, id);
        free(pending);
    }
}

enum err request_end(struct profile *profile, struct pending *pending,
                     const struct completion *reply, struct text *line, struct error *why)
{
    fill_pending(pending, reply);
    records_span(profile, pending->last ? SPAN_REQUEST : SPAN_FAILED_ATTEMPT, pending->key,
                 pending->attempt, reply, line);
    enum err err = journal_append(&profile->spans, line, why);
    enum err lost = end_sharing(profile, pending, reply);
    return err || !lost ? err : err_set(why, lost, "%s", err_text(lost));
}

/* ---- its record ---- */

/* The record of a query whose texts are too long for a line of the journal: failed, without the texts. */
static void write_without_texts(struct profile *profile, struct answer *answer, struct text *line)
{
    struct query query = *answer->query;
    struct completion reply = *answer->reply;
    char none[] = "";
    query.item.problem = query.item.answer = query.item.metadata = none;
    reply.content = reply.reasoning = (struct text){0};
    answer->err = ERR_BAD_VALUE;
    answer->why = "question and answer are too long for the journal";
    struct answer bare = *answer;
    bare.query = &query;
    bare.reply = &reply;
    bare.grader = NULL;
    records_query(profile, &bare, line);
}

static void count_query(struct profile *profile, const struct answer *answer)
{
    atomic_fetch_add(&profile->done, 1);
    if (answer->err)
        atomic_fetch_add(&profile->failed, 1);
    if (answer->reply->output_tokens > 0)
        atomic_fetch_add(&profile->output_tokens, (uint64_t)answer->reply->output_tokens);
}

enum err request_record(struct profile *profile, struct answer *answer, struct text *line,
                        struct error *why)
{
    records_query(profile, answer, line);
    if (line->length >= JOURNAL_LONGEST)
        write_without_texts(profile, answer, line);
    if (line->failed)
        return err_no_memory(why);
    enum err err = journal_append(&profile->journal, line, why);
    if (!err)
        count_query(profile, answer);
    return err;
}

void request_take_share(void *context, const struct share *share)
{
    struct profile *profile = context;
    if (agents_take_share(profile, share))
        return;
    struct pending *pending = share->trace->context;
    struct text line = {0};
    if (pending->is_dropped) {
        free(pending);
        return;
    }
    struct error why = {0};
    records_energy(profile, pending, share, &line);
    enum err err = journal_append_reserved(&profile->journal, &line,
                                           pending->last ? profile->energy_space : 0, &why);
    profile->unsettled = profile->unsettled || err;
    if (err)
        profile_fail(profile, err, &why);
    text_release(&line);
    free(pending);
}
