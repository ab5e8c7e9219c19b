/* Each attempt of a sweep is a process, `ipw run` or `ipw profile`, with its output in a log. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/proc.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "runner/await.h"
#include "runner/sweep.h"
#include "runner/sweep_control.h"

static const nanos LOG_TIMEOUT = 30 * NS_PER_S, LOG_PAUSE = 20 * NS_PER_MS;
static const nanos COOL_PAUSE = 200 * NS_PER_MS;

/* What the attempts of one execution share. */
struct execution {
    struct sweep *sweep;
    struct run_writer *writer;
    struct sweep_control *control; /* NULL: the GPU is not set */
    const struct sweep_progress *progress;
    int signal; /* that ends it; 0: none */
};

/* ---- an attempt ---- */

/* Files of a killed attempt would be mistaken for this one's. */
static enum err clear_folder(const char *folder, struct error *why)
{
    struct run_list list;
    enum err err = run_list_load(folder, &list, why);
    if (err)
        return err;
    for (size_t i = 0; !err && i < list.count; i++) {
        char *path = path_join(folder, list.entries[i].name);
        err = run_dir_clear(path, why);
        free(path);
    }
    run_list_release(&list);
    return err;
}

/* The options of the sweep precede those of a profile, which may override them; its output directory comes last. */
static char **build_argv(const struct sweep *sweep, size_t point, const char *folder)
{
    char **argv = NULL;
    char **words = sweep_words(sweep, point);
    const char *const first[] = {"/proc/self/exe", sweep->profile ? "profile" : "run", "--quiet"};
    const char *const place[] = {"--output-dir", folder};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(first); i++)
        sweep_word(&argv, &count, first[i]);
    for (size_t i = 0; i < sweep->option_count; i++)
        sweep_word(&argv, &count, sweep->options[i]);
    for (size_t i = 0; sweep->profile && words[i]; i++)
        sweep_word(&argv, &count, words[i]);
    for (size_t i = 0; i < COUNT_OF(place); i++)
        sweep_word(&argv, &count, place[i]);
    if (!sweep->profile)
        sweep_word(&argv, &count, "--");
    for (size_t i = 0; !sweep->profile && words[i]; i++)
        sweep_word(&argv, &count, words[i]);
    sweep_free_words(words);
    return argv;
}

/* Every process of an attempt writes to its log, and holds its lock while it runs: after a sweep was killed, its last
 * attempt may still be running, and would be measured together with the next one. */
static enum err open_log(struct execution *execution, const char *folder, int *log,
                         struct error *why)
{
    nanos until = clock_now() + LOG_TIMEOUT;
    bool held;
    char *path = sweep_log(folder);
    enum err err = file_open_own(path, O_WRONLY | O_CREAT, log, why);
    if (err) {
        free(path);
        return err;
    }
    while (!(held = flock(*log, LOCK_EX | LOCK_NB) == 0) && !execution->signal &&
           clock_now() < until)
        execution->signal = proc_poll_signal(LOG_PAUSE);
    if (!held && !execution->signal)
        err = err_set(why, ERR_BUSY, "a command of this sweep is still running; it writes to %s",
                      path);
    else if (held && ftruncate(*log, 0))
        err = err_set(why, ERR_IO, "cannot write %s", path);
    if (err || execution->signal)
        close(*log);
    free(path);
    return err;
}

static void report_slow(void *context, int number, unsigned signals)
{
    const struct execution *execution = context;
    const struct sweep_progress *progress = execution->progress;
    progress->slow(progress->context, execution->sweep, number, signals);
}

static enum err run_child(struct execution *execution, char *const *argv, int log, int *exit_code,
                          struct error *why)
{
    const struct await await = {.is_ipw = true, .slow = report_slow, .context = execution};
    struct child child;
    struct child_end end;
    enum err err = child_prepare_helper(&child, argv, log, why);
    if (!err)
        err = child_go(&child, exit_code, why);
    if (!err) {
        execution->signal = await_child(&child, &await, &end);
        *exit_code = end.exit_code;
    }
    return err;
}

/* The codes of the run's warnings, after the flag of the controlled GPU. */
static void add_flags(const struct summary *summary, enum attempt_flag flag, struct text *out)
{
    const char *seen = flag < ATTEMPT_FLAGS ? attempt_flag_name(flag) : NULL;
    if (seen)
        text_add(out, seen);
    for (size_t i = 0; i < summary->conditions.finding_count; i++) {
        const struct finding *finding = &summary->conditions.findings[i];
        if (finding->severity >= FINDING_WARNING && !(seen && str_equal(finding->code, seen)))
            text_addf(out, "%s%s", out->length ? "," : "", finding->code);
    }
}

static char *copy_known(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* Reads the attempt's run; an attempt that failed early has none. */
static enum err take_run(const char *directory, const char *folder, enum attempt_flag seen,
                         struct sweep_attempt *attempt, struct error *why)
{
    struct run_list list;
    struct text flags = {0};
    struct summary none;
    enum err err = run_list_load(folder, &list, why);
    if (err)
        return err;
    summary_init(&none);
    bool found = list.count && list.entries[0].has_summary;
    const struct summary *summary = found ? &list.entries[0].summary : &none;
    attempt->joules = summary->energy.joules;
    attempt->plus_minus = summary->energy.plus_minus;
    attempt->statistical = summary->energy.statistical;
    attempt->coverage = summary->energy.coverage;
    attempt->method = copy_known(summary->energy.method);
    attempt->source = copy_known(summary->energy.source);
    attempt->seconds = summary->seconds;
    attempt->node = copy_known(summary->host_name);
    attempt->gpus = copy_known(summary->gpu_uuids);
    attempt->path = found ? path_join(folder + strlen(directory) + 1, list.entries[0].name) : NULL;
    add_flags(summary, seen, &flags);
    attempt->flags = xstrdup(text_get(&flags));
    text_release(&flags);
    run_list_release(&list);
    return ERR_OK;
}

/* Runs with the GPU at the point's settings; *seen is the flag of sweep_control_unwatch. */
static enum err run_controlled(struct execution *execution, size_t point, char *const *argv,
                               int log, int *exit_code, enum attempt_flag *seen, struct error *why)
{
    struct sweep_control *control = execution->control;
    enum err err = control ? sweep_control_set(control, execution->sweep, point, why) : ERR_OK;
    if (!err && control)
        err = sweep_control_watch(control, why);
    if (err)
        return err;
    err = run_child(execution, argv, log, exit_code, why);
    *seen = control ? sweep_control_unwatch(control) : ATTEMPT_FLAGS;
    return err;
}

/* In its folder, with an open log. */
static enum err run_logged(struct execution *execution, const char *folder, int log,
                           struct sweep_attempt *out, enum attempt_flag *seen, struct error *why)
{
    char **argv = build_argv(execution->sweep, out->point, folder);
    enum err err = clear_folder(folder, why);
    nanos began = clock_now();
    if (!err)
        err = run_controlled(execution, out->point, argv, log, &out->exit_code, seen, why);
    out->wall_s = seconds(clock_now() - began);
    sweep_free_words(argv);
    return err;
}

/* flag: what is known before, ATTEMPT_FLAGS for nothing. */
static enum err run_attempt(struct execution *execution, const struct sweep_step *step,
                            enum attempt_flag flag, struct sweep_attempt *out, struct error *why)
{
    const char *directory = execution->writer->directory;
    enum attempt_flag seen = ATTEMPT_FLAGS;
    int log;
    *out = (struct sweep_attempt){.point = step->point, .repeat = step->repeat};
    char *folder = sweep_folder(directory, step->point, step->repeat);
    enum err err = run_dir_make(folder, why);
    if (!err)
        err = open_log(execution, folder, &log, why);
    if (!err && !execution->signal) {
        err = run_logged(execution, folder, log, out, &seen, why);
        close(log);
        if (!err && !execution->signal)
            err = take_run(directory, folder, seen < ATTEMPT_FLAGS ? seen : flag, out, why);
    }
    free(folder);
    return err;
}

/* Waits for a GPU that is too hot, until the deadline; *celsius is its temperature. */
static enum err cool_down(struct execution *execution, nanos until, double *celsius,
                          struct error *why)
{
    const struct sweep *sweep = execution->sweep;
    const struct sweep_progress *progress = execution->progress;
    enum err err = ERR_OK;
    bool was_hot = false;
    *celsius = UNKNOWN;
    while (is_known(sweep->cooldown_c) && !err && !execution->signal) {
        struct error reason = {0};
        err = sweep_control_temperature(execution->control, sweep, celsius, &reason);
        if (err)
            err_set(why, err, "--cooldown-c: %s", reason.text);
        else if (!is_known(*celsius))
            err = err_set(why, ERR_UNSUPPORTED, "--cooldown-c: the GPU reports no temperature");
        if (err || !(*celsius > sweep->cooldown_c) || clock_now() >= until)
            break;
        if (!was_hot)
            progress->cool(progress->context, sweep, *celsius);
        was_hot = true;
        execution->signal = proc_poll_signal(COOL_PAUSE);
    }
    return err;
}

static enum attempt_flag temperature_flag(const struct sweep *sweep, double celsius)
{
    if (celsius > sweep->cooldown_c)
        return ATTEMPT_NOT_COOLED;
    if (celsius < sweep->cooldown_min_c)
        return ATTEMPT_NOT_WARMED;
    return ATTEMPT_FLAGS;
}

/* Brings the GPU into the temperature range before an attempt: a cold one by unmeasured runs.  If that fails, it is
 * measured anyway, and *flag is set. */
static enum err reach_temperature(struct execution *execution, const struct sweep_step *step,
                                  enum attempt_flag *flag, struct error *why)
{
    const struct sweep *sweep = execution->sweep;
    const struct sweep_progress *progress = execution->progress;
    double celsius;
    double limit_s =
        is_known(sweep->cooldown_limit_s) ? sweep->cooldown_limit_s : SWEEP_COOLDOWN_LIMIT_S;
    nanos until = clock_now() + from_seconds(limit_s);
    enum err err = cool_down(execution, until, &celsius, why);
    while (!err && !execution->signal && celsius < sweep->cooldown_min_c && clock_now() < until) {
        struct sweep_attempt warmup = {0};
        double before = celsius;
        progress->cool(progress->context, sweep, celsius);
        err = run_attempt(execution, step, ATTEMPT_FLAGS, &warmup, why);
        sweep_attempt_release(&warmup);
        if (!err && !execution->signal)
            err = cool_down(execution, until, &celsius, why);
        if (celsius <= before) /* the command does not heat it */
            break;
    }
    *flag = temperature_flag(sweep, celsius);
    return err;
}

static enum err record(const struct execution *execution, struct sweep_attempt *attempt,
                       struct error *why)
{
    struct sweep *sweep = execution->sweep;
    const struct sweep_progress *progress = execution->progress;
    size_t point = attempt->point;
    unsigned repeat = attempt->repeat;
    enum err err = sweep_add(sweep, execution->writer, attempt, why);
    if (!err)
        progress->end(progress->context, sweep, sweep_find(sweep, point, repeat));
    return err;
}

/* Runs all remaining attempts at the existing points. */
static enum err run_attempts(struct execution *execution, struct error *why)
{
    struct sweep *sweep = execution->sweep;
    const struct sweep_progress *progress = execution->progress;
    struct sweep_step step;
    enum err err = ERR_OK;
    for (bool first = true; !err && !execution->signal && sweep_next(sweep, &step); first = false) {
        struct sweep_attempt attempt = {0};
        enum attempt_flag flag = ATTEMPT_FLAGS;
        nanos began = clock_now();
        if (!first && sweep->cooldown_s > 0)
            execution->signal = proc_poll_signal(from_seconds(sweep->cooldown_s));
        if (!execution->signal)
            err = reach_temperature(execution, &step, &flag, why);
        if (err || execution->signal)
            break;
        double waited_s = seconds(clock_now() - began);
        progress->begin(progress->context, sweep, &step);
        err = run_attempt(execution, &step, flag, &attempt, why);
        attempt.waited_s = waited_s;
        if (!err && !execution->signal)
            err = record(execution, &attempt, why);
        else
            sweep_attempt_release(&attempt);
    }
    return err;
}

enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why)
{
    struct execution execution = {sweep, writer, control, progress, 0};
    enum err err = ERR_OK;
    for (bool more = true; !err && !execution.signal && more;) {
        err = run_attempts(&execution, why);
        more = false;
        if (!err && !execution.signal && !sweep->only)
            err = sweep_refine(sweep, writer, &more, why);
    }
    if (!err && !execution.signal)
        err = sweep_finish(sweep, writer, why);
    *signal = execution.signal;
    return err;
}

/* ---- a point alone ---- */

enum err sweep_wait_for_point(struct sweep *sweep, const char *directory, size_t point,
                              struct run_writer *writer, struct error *why)
{
    static const nanos TIMEOUT = 60 * NS_PER_S;
    static const nanos PAUSE = 100 * NS_PER_MS;
    nanos until = clock_now() + TIMEOUT;
    enum err err;
    while ((err = sweep_open_point(sweep, directory, point, writer, why)) == ERR_BUSY &&
           clock_now() < until && !proc_poll_signal(PAUSE))
        ;
    return err;
}
