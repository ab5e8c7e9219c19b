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
                         struct exec_result *result, struct exec_run *run, struct error *why)
{
    struct child child;
    *run = (struct exec_run){0};
    struct own_cost own;
    proc_own_cost(&own);
    enum err err = child_prepare(&child, options->argv, why);
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

static bool must_stop(const struct exec_options *options, struct exec_result *result,
                      const struct exec_run *run)
{
    if (run->end.exit_code && !result->exit_code)
        result->exit_code = run->end.exit_code;
    return result->signal || (run->end.exit_code && !options->ignore_failure);
}

static enum err run_all(struct session *session, const struct exec_options *options,
                        struct exec_result *out, struct error *why)
{
    for (unsigned i = 0; i < options->warmups; i++) {
        struct exec_run warmup;
        report(options, EXEC_WARMUP, i + 1, options->warmups);
        enum err err = run_once(session, options, out, &warmup, why);
        ledger_release(&warmup.ledger);
        if (err || must_stop(options, out, &warmup))
            return err;
    }
    for (unsigned i = 0; i < options->repeats; i++) {
        report(options, EXEC_RUN, i + 1, options->repeats);
        enum err err = run_once(session, options, out, &out->runs[i], why);
        if (err)
            return err;
        conditions_take(&out->conditions, &out->runs[i].ledger);
        out->count++;
        if (must_stop(options, out, &out->runs[i]))
            break;
    }
    return ERR_OK;
}

static void set_mean(struct exec_result *result)
{
    if (result->count == 0)
        return;
    const struct ledger **ledgers = xcalloc(result->count, sizeof *ledgers);
    for (size_t i = 0; i < result->count; i++)
        ledgers[i] = &result->runs[i].ledger;
    ledger_mean(ledgers, result->count, &result->mean);
    free(ledgers);
}

enum err exec_measure(struct session *session, const struct exec_options *options,
                      struct exec_result *out, struct error *why)
{
    *out = (struct exec_result){.started = clock_now(), .started_wall = clock_wall()};
    out->mean.total = energy_unknown("no run was completed");
    out->runs = xcalloc(options->repeats, sizeof *out->runs);
    conditions_init(&out->conditions, session);
    proc_adopt_orphans();
    sampler_ready(session->sampler);
    enum err err = ERR_OK;
    if (options->idle_s > 0)
        err = measure_idle(options, out);
    if (err)
        return err_set(why, err, "interrupted while measuring idle power");
    err = run_all(session, options, out, why);
    if (!out->signal)
        conditions_idle_after(&out->conditions, options->idle_s);
    conditions_conclude(&out->conditions);
    set_mean(out);
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
