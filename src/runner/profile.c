#include "runner/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/text.h"
#include "metrics/prices.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/profile/account.h"
#include "runner/profile/beginning.h"
#include "runner/profile/finish.h"
#include "runner/profile/judging.h"
#include "runner/profile/record.h"
#include "runner/profile/whole.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* Attribution settles whole slices of a millisecond. */
#define SHARING_LAG (3 * NS_PER_MS)

/* ---- the queries ---- */

static void take_share(void *context, const struct share *share)
{
    struct profile_run *run = context;
    struct pending *pending = share->trace->context;
    struct text line = {0};
    struct error why = {0};
    record_energy(&run->context, pending, share, &line);
    enum err err = line.failed ? ERR_NO_MEMORY : journal_append(&run->journal, &line, &why);
    if (err)
        run_fail(run, err, &why);
    else if (is_known(share->total.joules))
        run->requests_joules += share->total.joules;
    text_release(&line);
    free(pending);
}

static enum err run_queries(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct workers *workers;
    profile_phase(profile, "queries", run->supply.total);
    profile->keeping.samples = &profile->samples;
    keep_samples(&profile->keeping); /* what came before, so that little is left to write later */
    sampler_mark(run->session->sampler);
    nanos from = clock_now();
    enum err err = account_open(profile, from, why);
    if (!err)
        err = account_share(profile, from, why);
    if (!err)
        err = workers_start(run, run->context.options->concurrency, &workers, why);
    if (err)
        return err;
    profile->keeping.take = take_share;
    err = keep_house(&profile->keeping);
    out->signal = profile->keeping.signal;
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "interrupted three times: what was in flight is lost");
    workers_join(workers);
    thread_sleep(SHARING_LAG); /* so that the last answer's end is well before what is settled */
    err = settle_all(&profile->keeping, clock_now());
    if (!err)
        return account_close(profile, from, why);
    return err_set(why, err, "cannot attribute the energy: %s", err_text(err));
}

/* ---- the judge ---- */

static bool wants_judge(const struct profile *profile)
{
    const struct profile_options *options = profile->run.context.options;
    const char *grader = options->grader ? options->grader : profile->run.supply.dataset.grader;
    const struct grader_driver *driver = grader[0] ? grader_driver_find(grader, NULL) : NULL;
    return driver && driver->needs_judge;
}

static enum err run_judge(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct judging *judging;
    uint64_t waiting;
    if (!wants_judge(profile) || out->signal || run->err)
        return ERR_OK;
    if (!run->context.options->judge_model) {
        profile_warn(profile,
                     "the answers wait for a judge: name one with --eval-model and --resume");
        return ERR_OK;
    }
    enum err err = judging_count(run, profile->place.journal, &waiting, why);
    if (err || waiting == 0)
        return err;
    profile_phase(profile, "judge", (int64_t)waiting);
    err = account_share(profile, clock_now(), why);
    if (!err)
        err = judging_start(run, profile->place.journal, &judging, why);
    if (err)
        return err;
    profile->keeping.take = judging_take_share;
    err = keep_house(&profile->keeping);
    out->signal = profile->keeping.signal;
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "interrupted three times");
    judging_join(judging);
    thread_sleep(SHARING_LAG);
    err = settle_all(&profile->keeping, clock_now());
    return err ? err_set(why, err, "cannot attribute the judge's energy: %s", err_text(err))
               : ERR_OK;
}

/* ---- the end ---- */

static enum err finish(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    const struct resume *resume = &profile->place.resume;
    struct finish_facts facts = {
        .directory = profile->place.directory,
        .dataset_name = run->supply.dataset.name,
        .client_info = text_get(&profile->service.info),
        .base_url = profile->service.base_url,
        .ledger = profile->has_ledger ? &profile->ledger : NULL,
        .idle = profile->has_idle ? &profile->idle : NULL,
        .starts = run->context.start,
        .started_at = resume->starts ? resume->started_at : seconds(run->context.zero_wall),
        .bad_rows = run->supply.bad_rows,
        .first_bad = run->supply.first_bad.text,
        .interrupted = out->signal != 0,
        .reads = sampler_reads(run->session->sampler),
    };
    account_totals(profile, &facts);
    proc_own_cost(&facts.own);
    facts.own.cpu_s -= profile->cpu_s_before;
    atomic_store(&run->done, 0); /* this phase counts nothing */
    atomic_store(&run->failed, 0);
    profile_phase(profile, "writing", -1);
    return finish_run(&run->context, &facts, out, why);
}

static void release(struct profile *profile)
{
    struct profile_run *run = &profile->run;
    sharing_free(run->sharing);
    if (profile->has_supply)
        supply_close(&run->supply);
    if (!profile->has_files) {
        place_give_up(&profile->place);
    } else {
        journal_close(&run->journal);
        journal_close(&run->spans);
        samples_log_release(&profile->samples);
        if (profile->samples_fd >= 0)
            close(profile->samples_fd);
    }
    if (profile->has_ledger)
        ledger_release(&profile->ledger);
    baseline_release(&profile->idle);
    text_release(&profile->service.info);
    prices_free(profile->prices);
    place_release(&profile->place);
    pthread_mutex_destroy(&run->lock);
}

static void warn_of_rows(const struct profile *profile)
{
    const struct supply *supply = &profile->run.supply;
    char line[sizeof supply->first_bad.text + 64];
    if (supply->bad_rows == 0)
        return;
    str_format(line, sizeof line, "%" PRIu64 " row%s of the dataset left out: %s", supply->bad_rows,
               supply->bad_rows == 1 ? "" : "s", supply->first_bad.text);
    profile_warn(profile, line);
}

static void warn_of_samples(const struct profile *profile)
{
    char line[700];
    if (!profile->samples_err)
        return;
    str_format(line, sizeof line, "%s is incomplete: %s", profile->place.samples,
               err_text(profile->samples_err));
    profile_warn(profile, line);
}

/* From the directory on: whatever happens now, what was measured is written. */
static enum err run_in_place(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct committer committer;
    enum err err = committer_start(&committer, run);
    if (err)
        return err;
    err = run_queries(profile, out, why);
    if (!err)
        err = run_judge(profile, out, why);
    committer_stop(&committer);
    if (err == ERR_INTERRUPTED) { /* workers still write: what is made of the journal can wait */
        struct error unsynced = {0};
        if (journal_sync(&run->journal, &unsynced) != ERR_OK)
            profile_warn(profile, unsynced.text);
        return err;
    }
    if (!err && run->err) {
        *why = run->why;
        err = run->err;
    }
    struct error finish_why = {0};
    enum err finish_err = journal_sync(&run->journal, &finish_why);
    if (!finish_err)
        finish_err = finish(profile, out, &finish_why);
    if (!err && finish_err) {
        *why = finish_why;
        err = finish_err;
    }
    warn_of_samples(profile);
    warn_of_rows(profile);
    return err;
}

enum err profile_run(struct session *session, const struct host_report *host,
                     const struct profile_options *options, struct profile_result *out,
                     struct error *why)
{
    struct own_cost before;
    struct profile *profile = calloc(1, sizeof *profile);
    *out = (struct profile_result){.energy = energy_unknown("no query was asked")};
    if (!profile)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    profile->run.context.options = options;
    profile->run.context.host = host;
    profile->run.session = session;
    profile->place.lock = profile->samples_fd = -1;
    profile->sums = start_sums_nothing();
    pthread_mutex_init(&profile->run.lock, NULL);
    proc_limit_heaps();
    proc_own_cost(&before);
    profile->cpu_s_before = before.cpu_s;
    profile->keeping.run = &profile->run;
    sampler_ready(session->sampler);
    enum err err = profile_begin(profile, out, why);
    if (!err)
        err = run_in_place(profile, out, why);
    if (profile->abandoned) /* the program ends next */
        return err;
    if (!profile->has_files)
        out->directory[0] = '\0';
    release(profile);
    free(profile);
    return err;
}

void profile_result_release(struct profile_result *result)
{
    text_release(&result->summary);
    text_release(&result->report);
}
