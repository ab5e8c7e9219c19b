#include "runner/exec.h"

#include <signal.h>
#include <stdlib.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/xalloc.h"
#include "port/out_of_memory.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

static void report(const struct exec_options *options, enum exec_phase phase, unsigned number,
                   unsigned of)
{
    if (options->progress)
        options->progress(phase, number, of, options->idle_s);
}

static enum err measure_idle(const struct exec_options *options, struct exec_result *out)
{
    report(options, EXEC_IDLE, 1, 1);
    enum err err = conditions_idle(&out->conditions, options->idle_s, &out->idle, &out->signal);
    out->has_idle = out->conditions.has_idle;
    return err;
}

static void terminate_child(void *context)
{
    const struct child *child = context;
    if (child->pid > 0)
        kill(child->pid, SIGTERM);
}

static enum err run_once(struct session *session, const struct exec_options *options,
                         char *const *argv, struct exec_result *result, struct exec_run *run,
                         struct error *why)
{
    struct child child;
    *run = (struct exec_run){0};
    struct own_cost own;
    proc_own_cost(&own);
    enum err err = child_prepare(&child, argv, why);
    if (err) {
        result->exit_code = 126;
        return err;
    }
    conditions_begin(&result->conditions);
    sampler_mark(session->sampler);
    run->from = clock_now();
    err = child_go(&child, &result->exit_code, why);
    if (err)
        return err;
    struct last_action terminate = {.run = terminate_child, .context = &child};
    last_action_add(&terminate);
    result->signal = await_child(&child, &options->await, &run->end);
    last_action_remove(&terminate);
    if (run->end.rss_mb <= own.rss_mb)
        run->end.rss_mb = UNKNOWN; /* includes our own pages before the exec */
    if (options->wait_all && !result->signal)
        result->signal = proc_await_orphans(INT64_MAX);
    run->to = clock_now();
    run->left_running = proc_orphans();
    result->conditions.has_orphans |= run->left_running > 0;
    conditions_stop(&result->conditions);
    run->wall_s = seconds(run->to - run->from);
    sampler_settle(session->sampler, run->to);
    ledger_take(session->sampler, run->from, run->to, result->has_idle ? &result->idle : NULL,
                &run->ledger);
    return ERR_OK;
}

/* ---- one command, or two that alternate ---- */

struct series {
    struct session *session;
    const struct exec_options *options;
    struct exec_result *results;
    size_t sides; /* 1, or 2 with a command to alternate with */
};

static char *const *argv_of(const struct series *series, size_t side)
{
    return side ? series->options->against : series->options->argv;
}

static bool must_stop(const struct series *series, struct exec_result *result,
                      const struct exec_run *run)
{
    if (run->end.exit_code && !result->exit_code)
        result->exit_code = run->end.exit_code;
    return result->signal || (run->end.exit_code && !series->options->ignore_failure);
}

static enum err warm_up(const struct series *series, size_t side, bool *stop, struct error *why)
{
    const struct exec_options *options = series->options;
    struct exec_result *result = &series->results[side];
    for (unsigned i = 0; i < options->warmups && !*stop; i++) {
        struct exec_run warmup;
        report(options, EXEC_WARMUP, i + 1, options->warmups);
        enum err err =
            run_once(series->session, options, argv_of(series, side), result, &warmup, why);
        ledger_release(&warmup.ledger);
        if (err)
            return err;
        *stop = must_stop(series, result, &warmup);
    }
    return ERR_OK;
}

static enum err measure_run(const struct series *series, size_t side, bool *stop, struct error *why)
{
    struct exec_result *result = &series->results[side];
    struct exec_run *run = &result->runs[result->count];
    enum err err =
        run_once(series->session, series->options, argv_of(series, side), result, run, why);
    if (err)
        return err;
    conditions_take(&result->conditions, &run->ledger);
    result->count++;
    *stop = must_stop(series, result, run);
    return ERR_OK;
}

static enum err run_all(const struct series *series, struct error *why)
{
    const struct exec_options *options = series->options;
    bool stop = false;
    enum err err = ERR_OK;
    for (size_t side = 0; side < series->sides && !err && !stop; side++)
        err = warm_up(series, side, &stop, why);
    for (unsigned i = 0; i < options->repeats && !err && !stop; i++) {
        report(options, EXEC_RUN, i + 1, options->repeats);
        for (size_t s = 0; s < series->sides && !err && !stop; s++)
            err = measure_run(series, series->sides > 1 && i % 2 ? 1 - s : s, &stop, why);
        if (!err && !stop && options->is_decided)
            stop = options->is_decided(options->context, series->results);
    }
    return err;
}

static void set_mean(struct exec_result *result)
{
    if (result->count == 0)
        return;
    const struct ledger **ledgers = xcalloc(result->count, sizeof *ledgers);
    for (size_t i = 0; i < result->count; i++)
        ledgers[i] = &result->runs[i].ledger;
    ledger_release(&result->mean);
    ledger_mean(ledgers, result->count, &result->mean);
    free(ledgers);
}

void exec_conclude(struct exec_result *result)
{
    conditions_conclude(&result->conditions);
    set_mean(result);
}

static void share_idle(const struct exec_result *from, struct exec_result *to)
{
    to->conditions = from->conditions;
    to->has_idle = from->has_idle;
    to->idle = from->idle;
    if (from->idle.rows)
        to->idle.rows = xmemdup(from->idle.rows, (from->idle.count + 1) * sizeof *from->idle.rows);
}

static enum err prepare(const struct series *series, struct error *why)
{
    const struct exec_options *options = series->options;
    struct exec_result *first = &series->results[0];
    for (size_t side = 0; side < series->sides; side++) {
        struct exec_result *result = &series->results[side];
        *result = (struct exec_result){.started = clock_now(), .started_wall = clock_wall()};
        result->mean.total = energy_unknown("no run was completed");
        result->runs = xcalloc(options->repeats, sizeof *result->runs);
    }
    conditions_init(&first->conditions, series->session);
    proc_adopt_orphans();
    sampler_ready(series->session->sampler);
    if (options->idle_s > 0 && measure_idle(options, first))
        return err_set(why, ERR_INTERRUPTED, "interrupted while measuring idle power");
    if (series->sides > 1)
        share_idle(first, &series->results[1]);
    return ERR_OK;
}

enum err exec_measure(struct session *session, const struct exec_options *options,
                      struct exec_result *out, struct error *why)
{
    const struct series series = {session, options, out, options->against ? 2 : 1};
    struct exec_result *last = &out[series.sides - 1];
    enum err err = prepare(&series, why);
    if (err)
        return err;
    err = run_all(&series, why);
    if (!out->signal && !last->signal) {
        conditions_idle_after(&out->conditions, options->idle_s);
        if (series.sides > 1)
            conditions_share_idle_after(&out->conditions, &last->conditions);
    }
    if (last != out && out->count && last->count)
        last->started_wall = out->started_wall + last->runs[0].from - out->runs[0].from;
    for (size_t side = 0; side < series.sides; side++)
        exec_conclude(&out[side]);
    return err;
}

void exec_result_release(struct exec_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        ledger_release(&result->runs[i].ledger);
    free(result->runs);
    ledger_release(&result->mean);
    baseline_release(&result->idle);
    *result = (struct exec_result){0};
}
