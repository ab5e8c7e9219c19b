#include "runner/profile/restore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/context.h"
#include "runner/profile/measuring.h"
#include "runner/profile/place.h"
#include "runner/profile/replay.h"
#include "runner/profile/start_sums.h"
#include "runner/profile/unsettled.h"
#include "runner/samples_read.h"
#include "sampler/sampler.h"
#include "rundir/journal.h"

/* Second 0 of the start in its sampler of history: anything but 0, which stands for unknown, and so late
 * that no sample lies before the beginning of time. */
#define ZERO ((nanos)1 << 60)

struct restoring {
    const struct profile_context *context;
    const struct place *place;
    struct unsettled left;
    struct journal journal;
    struct sampler *sampler; /* of history */
    struct measuring measuring;
    struct samples_found samples;
    double requests_joules; /* of the start's requests, those in the journal before included */
    struct text line;
    struct error *why;
    bool (*go_on)(void *context);
    void *go_on_context;
};

static bool may_go_on(void *context)
{
    struct restoring *restoring = context;
    return restoring->go_on(restoring->go_on_context);
}

static enum err append(struct restoring *restoring)
{
    return journal_append(&restoring->journal, &restoring->line, restoring->why);
}

/* ---- one request ---- */

static struct pending pending_of(const struct replayed *request, const struct request_trace *trace,
                                 unsigned cut_off_in)
{
    struct pending pending = {
        .attempt = request->attempt,
        .last = request->last && !cut_off_in,
        .input_tokens = trace->prompt_tokens,
        .output_tokens = trace->output_tokens,
        .seconds = seconds(trace->to - trace->from),
        .prefill_s = UNKNOWN,
        .decode_s = UNKNOWN,
        .restored = true,
        .cut_off_in = cut_off_in,
    };
    nanos last = trace->arrival_count ? trace->arrivals[trace->arrival_count - 1] : 0;
    str_copy(pending.key, sizeof pending.key, request->key);
    if (trace->first_token && (last > trace->first_token || trace->output_tokens == 1)) {
        pending.prefill_s = seconds(trace->first_token - trace->from);
        pending.decode_s = seconds(trace->to - trace->first_token);
    }
    return pending;
}

static enum err take_request(void *context, const struct replayed *request,
                             const struct share *share)
{
    struct restoring *restoring = context;
    /* An answer that came and did not reach the journal will be asked for again: it was cut off too. */
    bool cut_off =
        request->cut_off || (request->last && !unsettled_has_query(&restoring->left, request->key));
    struct pending pending = pending_of(request, share->trace, cut_off ? restoring->left.start : 0);
    if (pending.last
            ? unsettled_has_energy(&restoring->left, request->key)
            : unsettled_has_attempt(&restoring->left, request->key, request->attempt, cut_off))
        return ERR_OK;
    joules_add_known(&restoring->requests_joules, share->total.joules);
    record_energy(restoring->context, &pending, share, &restoring->line);
    return append(restoring);
}

static enum err take_judgement(void *context, const struct replayed *request,
                               const struct share *share)
{
    struct restoring *restoring = context;
    struct judgement judgement = {
        .gpu_joules = UNKNOWN,
        .cpu_joules = UNKNOWN,
        .earlier = energy_unknown(""),
        .earlier_gpu_joules = UNKNOWN,
        .earlier_cpu_joules = UNKNOWN,
    };
    if (unsettled_has_judge(&restoring->left, request->key))
        return ERR_OK;
    if (request->judgement)
        judgement = *request->judgement;
    judgement.restored = true;
    str_copy(judgement.key, sizeof judgement.key, request->key);
    record_judge_energy(restoring->context, &judgement, share, &restoring->line);
    return append(restoring);
}

/* ---- a turn: the queries', then the judge's ---- */

static struct replay_options replay_options_of(struct restoring *restoring, bool judge)
{
    const struct measuring *measuring = &restoring->measuring;
    double from_s = judge ? restoring->left.judge_from_s : measuring->from_s;
    return (struct replay_options){
        .spans = restoring->place->spans,
        .start = restoring->left.start,
        .judge = judge,
        .zero = ZERO,
        .from = ZERO + from_seconds(from_s),
        .measured = restoring->samples.last,
        .idle = measuring->has_idle ? &measuring->idle : NULL,
        .decode_weight = measuring->decode_weight,
        .take = judge ? take_judgement : take_request,
        .go_on = may_go_on,
        .context = restoring,
    };
}

/* The account is that of the journal's lines: what a sensor told only after a request had been settled
 * is in no request's line. */
static void use_what_is_written(const struct restoring *restoring, struct start_sums *sums)
{
    double elsewhere = sums->busy.joules - restoring->requests_joules;
    if (is_known(elsewhere) && is_known(sums->unattributed_joules))
        sums->unattributed_joules = fmax(0, sums->unattributed_joules + elsewhere);
}

static enum err write_end(struct restoring *restoring, const struct replay *replay,
                          const struct replay_options *options)
{
    struct start_sums sums = start_sums_nothing();
    struct ledger ledger = {0};
    enum err err = ERR_OK;
    if (replay->requests > 0)
        err = start_sums_take(restoring->sampler, replay->sharing, options->from, options->idle,
                              &sums, &ledger, restoring->why);
    if (err)
        return err;
    ledger_release(&ledger);
    use_what_is_written(restoring, &sums);
    start_sums_line(&sums, restoring->left.start,
                    restoring->left.started_at + seconds(replay->latest - ZERO), true,
                    &restoring->line);
    return append(restoring);
}

static enum err restore_turn(struct restoring *restoring, bool judge)
{
    struct replay replay;
    struct replay_options options = replay_options_of(restoring, judge);
    enum err err = replay_run(&replay, restoring->sampler, &options, restoring->why);
    if (!err && judge) {
        judge_line("judged", restoring->left.start, seconds(replay.latest - ZERO),
                   &restoring->line);
        err = append(restoring);
    } else if (!err) {
        err = write_end(restoring, &replay, &options);
    }
    replay_release(&replay);
    return err;
}

/* ---- what is there ---- */

static void name_samples(const struct restoring *restoring, char *to, size_t size)
{
    if (restoring->left.start == 1)
        str_format(to, size, "%s/samples.csv", restoring->place->directory);
    else
        str_format(to, size, "%s/samples-%u.csv", restoring->place->directory,
                   restoring->left.start);
}

/* ERR_OK with a note when what is on disk does not do. */
static enum err load(struct restoring *restoring, struct error *note)
{
    char path[600];
    struct error why = {0};
    name_samples(restoring, path, sizeof path);
    restoring->sampler = sampler_new(0);
    if (!restoring->sampler)
        return err_set(restoring->why, ERR_NO_MEMORY, "out of memory");
    enum err err = measuring_from_json(restoring->left.measuring, &restoring->measuring,
                                       restoring->sampler, &why);
    if (!err)
        err = samples_read(path, restoring->sampler, ZERO, &restoring->samples, &why);
    if (!err && restoring->samples.rows == 0 && sampler_count(restoring->sampler) > 0)
        err = err_set(&why, ERR_NO_DATA, "%s holds no samples", path);
    if (err == ERR_NO_MEMORY) {
        *restoring->why = why;
        return err;
    }
    if (err)
        *note = why;
    return ERR_OK;
}

/* ---- what cannot be restored ---- */

static enum err tell_unknown(struct restoring *restoring, const char *key, const char *field,
                             const struct error *note)
{
    char why[sizeof(((struct energy *)0)->note)];
    str_format(why, sizeof why, "killed before it was settled; %s", note->text);
    record_no_energy(key, field, why, &restoring->line);
    return append(restoring);
}

static enum err give_up(struct restoring *restoring, const struct error *note)
{
    char key[40];
    enum err err = ERR_OK;
    struct unsettled_walk walk = {0};
    while (!err && unsettled_next_query(&restoring->left, &walk, key, sizeof key))
        err = tell_unknown(restoring, key, "energy", note);
    walk = (struct unsettled_walk){0};
    while (!err && unsettled_next_grade(&restoring->left, &walk, key, sizeof key))
        err = tell_unknown(restoring, key, "judge_energy", note);
    return err;
}

/* ---- all of it ---- */

static enum err restore(struct restoring *restoring, struct error *note)
{
    enum err err = load(restoring, note);
    if (err)
        return err;
    if (note->text[0])
        return give_up(restoring, note);
    restoring->requests_joules = restoring->left.requests_joules;
    if (!restoring->left.ended)
        err = restore_turn(restoring, false);
    if (!err && restoring->left.judging)
        err = restore_turn(restoring, true);
    return err ? err : journal_sync(&restoring->journal, restoring->why);
}

enum err restore_last_start(const struct profile_context *context, const struct place *place,
                            bool (*go_on)(void *), void *go_on_context, struct error *note,
                            struct error *why)
{
    struct restoring restoring = {
        .context = context,
        .place = place,
        .why = why,
        .go_on = go_on,
        .go_on_context = go_on_context,
    };
    *note = (struct error){0};
    enum err err = unsettled_read(place->journal, context->options->repeat, &restoring.left, why);
    if (!err && restoring.left.start > 0 && (!restoring.left.ended || restoring.left.judging)) {
        err = journal_open(&restoring.journal, place->journal, why);
        if (!err) {
            err = restore(&restoring, note);
            journal_close(&restoring.journal);
        }
    }
    measuring_release(&restoring.measuring);
    sampler_free(restoring.sampler);
    unsettled_release(&restoring.left);
    text_release(&restoring.line);
    return err;
}
