#include "runner/profile/replay.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "core/grow.h"
#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/span_read.h"
#include "rundir/journal.h"

/* Lines stand in the file nearly in the order of their times: each was written right after its moment,
 * by a thread that may have had to wait for its turn.  So attribution keeps this far behind them. */
#define BEHIND (10 * NS_PER_S)
/* As often as it settled then: the channel that measures a device is chosen for each stretch. */
#define STRETCH NS_PER_S

/* ---- the requests ---- */

static uint64_t id_of(const struct replayed *request)
{
    return (uint64_t)(uintptr_t)request;
}

static enum err keep_judgement(struct replayed *request, const struct span *span)
{
    request->judgement = malloc(sizeof *request->judgement);
    if (!request->judgement)
        return ERR_NO_MEMORY;
    *request->judgement = span->judgement;
    return ERR_OK;
}

static enum err begin_request(struct replay *replay, const struct span *span)
{
    struct replayed **flights = grow(replay->flights, &replay->flight_capacity,
                                     replay->flight_count, sizeof(struct replayed *));
    if (!flights)
        return ERR_NO_MEMORY;
    replay->flights = flights;
    struct replayed *request = calloc(1, sizeof *request);
    if (!request)
        return ERR_NO_MEMORY;
    str_copy(request->key, sizeof request->key, span->key);
    request->attempt = span->attempt;
    request->from = span->trace.from;
    enum err err = span->kind == SPAN_JUDGE_SENT ? keep_judgement(request, span) : ERR_OK;
    if (!err)
        err = sharing_begin(replay->sharing, id_of(request), span->trace.from);
    if (err) {
        free(request->judgement);
        free(request);
        return err;
    }
    flights[replay->flight_count++] = request;
    request->next = replay->all;
    if (replay->all)
        replay->all->before = request;
    replay->all = request;
    replay->requests++;
    return ERR_OK;
}

static void free_request(struct replay *replay, struct replayed *request)
{
    *(request->before ? &request->before->next : &replay->all) = request->next;
    if (request->next)
        request->next->before = request->before;
    free(request->judgement);
    free(request);
}

static size_t find_flight(const struct replay *replay, const struct span *span)
{
    size_t i = 0;
    while (i < replay->flight_count && (replay->flights[i]->attempt != span->attempt ||
                                        strcmp(replay->flights[i]->key, span->key) != 0))
        i++;
    return i;
}

/* Out of those under way; attribution hands it back. */
static enum err end_flight(struct replay *replay, size_t place, struct request_trace *trace)
{
    struct replayed *request = replay->flights[place];
    trace->id = id_of(request);
    enum err err = sharing_end(replay->sharing, trace);
    if (!err)
        replay->flights[place] = replay->flights[--replay->flight_count];
    return err;
}

static enum err end_request(struct replay *replay, struct span *span)
{
    size_t place = find_flight(replay, span);
    enum err err = ERR_OK;
    if (place == replay->flight_count) /* its sending is lost */
        err = begin_request(replay, span);
    if (err)
        return err;
    replay->flights[place]->last = span->kind != SPAN_FAILED_ATTEMPT;
    return end_flight(replay, place, &span->trace);
}

static void forget_request(struct replay *replay, const struct span *span)
{
    size_t place = find_flight(replay, span);
    if (place == replay->flight_count)
        return;
    sharing_forget(replay->sharing, id_of(replay->flights[place]));
    free_request(replay, replay->flights[place]);
    replay->flights[place] = replay->flights[--replay->flight_count];
}

/* Those that a kill cut off were alive until the last that is known; what they did is not. */
static enum err cut_off(struct replay *replay)
{
    enum err err = ERR_OK;
    while (!err && replay->flight_count > 0) {
        struct replayed *request = replay->flights[0];
        struct request_trace trace = {
            .from = request->from,
            .to = replay->latest,
            .prompt_tokens = UNKNOWN,
            .output_tokens = UNKNOWN,
        };
        request->cut_off = true;
        err = end_flight(replay, 0, &trace);
    }
    return err;
}

/* ---- going through them ---- */

static void take_share(void *context, const struct share *share)
{
    struct replay *replay = context;
    struct replayed *request =
        (struct replayed *)(uintptr_t)share->trace->id; /* NOLINT(performance-no-int-to-ptr) */
    if (!replay->err)
        replay->err = replay->options->take(replay->options->context, request, share);
    free_request(replay, request);
}

static enum err advance(struct replay *replay, nanos until)
{
    replay->advanced = replay->latest;
    enum err err = sharing_advance(replay->sharing, until, take_share, replay);
    if (err)
        return err_set(replay->why, err, "cannot attribute the energy: %s", err_text(err));
    if (replay->err)
        return replay->err;
    if (replay->options->go_on(replay->options->context))
        return ERR_OK;
    return err_set(replay->why, ERR_INTERRUPTED, "interrupted while energies were restored");
}

static enum err take_span(struct replay *replay, struct span *span)
{
    enum err err = ERR_OK;
    nanos t = span_is_whole(span) ? span->trace.to : span->trace.from;
    if (t > replay->latest)
        replay->latest = t;
    switch (span->kind) {
    case SPAN_SENT:
    case SPAN_JUDGE_SENT:
        err = begin_request(replay, span);
        break;
    case SPAN_BROKEN_OFF:
    case SPAN_JUDGE_BROKEN_OFF:
        forget_request(replay, span);
        break;
    default:
        err = end_request(replay, span);
        break;
    }
    if (err)
        return err_set(replay->why, err, "%s", err_text(err));
    return replay->latest - replay->advanced >= STRETCH ? advance(replay, replay->latest - BEHIND)
                                                        : ERR_OK;
}

static enum err take_line(void *context, const struct jv *line)
{
    struct replay *replay = context;
    struct span span;
    bool ours;
    enum err err = span_from_json(line, replay->options->zero, &span, &ours);
    if (err)
        err_set(replay->why, err, "%s", err_text(err));
    else if (ours && span.start == replay->options->start &&
             span_is_judges(&span) == replay->options->judge)
        err = take_span(replay, &span);
    span_release(&span);
    return err;
}

enum err replay_run(struct replay *replay, struct sampler *sampler,
                    const struct replay_options *options, struct error *why)
{
    uint64_t damaged;
    *replay = (struct replay){
        .options = options,
        .sampler = sampler,
        .latest = options->from,
        .advanced = options->from,
        .why = why,
    };
    replay->sharing = sharing_new(
        sampler, &(struct sharing_options){options->from, options->idle, options->decode_weight});
    if (!replay->sharing)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = journal_read(options->spans, take_line, replay, &damaged, why);
    if (options->measured > replay->latest)
        replay->latest = options->measured;
    if (!err && (err = cut_off(replay)))
        err_set(why, err, "%s", err_text(err));
    return err ? err : advance(replay, replay->latest);
}

void replay_release(struct replay *replay)
{
    for (struct replayed *one = replay->all, *next; one; one = next) {
        next = one->next;
        free(one->judgement);
        free(one);
    }
    free(replay->flights);
    sharing_free(replay->sharing);
    *replay = (struct replay){0};
}
