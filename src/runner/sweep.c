#include "runner/sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/proc.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "runner/sweep_control.h"

static const nanos LOG_TIMEOUT = 30 * NS_PER_S, LOG_PAUSE = 20 * NS_PER_MS;
static const nanos COOL_PAUSE = 200 * NS_PER_MS;

/* ---- the order ---- */

/* Whether another repeat is needed to meet the precision target. */
static bool is_uncertain(const struct sweep *sweep, size_t point)
{
    struct sweep_figures figures = sweep_figures(sweep, point);
    if (!is_known(sweep->until_pct) || !figures.measured || !is_known(figures.joules))
        return false;
    return !is_known(figures.error_pct) || figures.error_pct > sweep->until_pct;
}

/* Order of the points in a round; returns their number. */
static size_t shuffle(const struct sweep *sweep, unsigned round,
                      size_t order[static SWEEP_POINTS_MAX])
{
    size_t count = sweep->point_count < SWEEP_POINTS_MAX ? sweep->point_count : SWEEP_POINTS_MAX;
    struct random random = random_from(sweep->seed, round);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle(&random, order, count, sizeof *order);
    return count;
}

/* Whether the attempt is to be run, or repeated after all others: by then a hot GPU has had time to cool. */
static bool is_wanted(const struct sweep *sweep, const struct sweep_step *step,
                      const struct sweep_attempt *made, bool again)
{
    if (sweep->only && sweep->only != step->point + 1)
        return false;
    if (made)
        return again && sweep_is_rejected(made) && made->tries <= sweep->reruns;
    return !again && (step->repeat <= sweep->repeats || is_uncertain(sweep, step->point));
}

/* Visits the wanted attempts of a round, until `visit` returns true. */
static bool visit_round(const struct sweep *sweep, unsigned round, bool again, sweep_visit *visit,
                        void *context)
{
    size_t order[SWEEP_POINTS_MAX], made[SWEEP_POINTS_MAX] = {0}; /* run so far: index + 1 */
    size_t count = shuffle(sweep, round, order);
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].repeat == round && sweep->attempts[i].point < count)
            made[sweep->attempts[i].point] = i + 1;
    for (size_t i = 0; i < count; i++) {
        size_t index = made[order[i]];
        const struct sweep_step step = {order[i], round};
        if (is_wanted(sweep, &step, index ? &sweep->attempts[index - 1] : NULL, again) &&
            visit(context, sweep, &step))
            return true;
    }
    return false;
}

/* Number of attempts run in each round, and of rejected ones to be repeated: completed rounds are skipped, since
 * there may be thousands of attempts. */
struct rounds {
    size_t *made, *rejected; /* max_repeats + 1 elements each */
};

static bool count_rounds(const struct sweep *sweep, struct rounds *out)
{
    size_t *counts = calloc(2 * ((size_t)sweep->max_repeats + 1), sizeof *counts);
    *out = (struct rounds){counts, counts ? counts + sweep->max_repeats + 1 : NULL};
    for (size_t i = 0; counts && i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->repeat > sweep->max_repeats)
            continue;
        out->made[attempt->repeat]++;
        out->rejected[attempt->repeat] +=
            sweep_is_rejected(attempt) && attempt->tries <= sweep->reruns;
    }
    return counts;
}

bool sweep_each(const struct sweep *sweep, sweep_visit *visit, void *context)
{
    struct rounds rounds;
    bool counted = count_rounds(sweep, &rounds), stopped = false;
    for (int again = 0; !stopped && again < 2; again++)
        for (unsigned round = 1; !stopped && round <= sweep->max_repeats; round++) {
            bool is_done = counted && (again ? !rounds.rejected[round]
                                             : rounds.made[round] >= sweep->point_count);
            if (!is_done)
                stopped = visit_round(sweep, round, again, visit, context);
        }
    free(rounds.made);
    return stopped;
}

static bool take_step(void *context, const struct sweep *sweep, const struct sweep_step *step)
{
    (void)sweep;
    *(struct sweep_step *)context = *step;
    return true;
}

bool sweep_next(const struct sweep *sweep, struct sweep_step *out)
{
    return sweep_each(sweep, take_step, out);
}

const struct sweep_attempt *sweep_find(const struct sweep *sweep, size_t point, unsigned repeat)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].point == point && sweep->attempts[i].repeat == repeat)
            return &sweep->attempts[i];
    return NULL;
}

static bool is_unfinished(const struct sweep *sweep, size_t point)
{
    for (unsigned repeat = 1; repeat <= sweep->max_repeats; repeat++) {
        const struct sweep_step step = {point, repeat};
        if (is_wanted(sweep, &step, sweep_find(sweep, point, repeat), false))
            return true;
    }
    return false;
}

size_t sweep_unfinished(const struct sweep *sweep, size_t *points)
{
    size_t order[SWEEP_POINTS_MAX], found = 0, count = shuffle(sweep, 1, order);
    for (size_t i = 0; i < count; i++)
        if (is_unfinished(sweep, order[i])) {
            if (points)
                points[found] = order[i];
            found++;
        }
    return found;
}

bool sweep_has_failures(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].exit_code &&
            (!sweep->only || sweep->only == sweep->attempts[i].point + 1))
            return true;
    return false;
}

/* Durations of the attempts at a point so far. */
struct attempt_times {
    double seconds, waited;
    size_t timed;
    unsigned made; /* number of `repeats` run */
};

static void add_attempt_time(const struct sweep *sweep, const struct sweep_attempt *attempt,
                             struct attempt_times *times)
{
    if (attempt->wall_s > 0) {
        times->seconds += attempt->wall_s;
        times->waited += is_known(attempt->waited_s) ? attempt->waited_s : 0;
        times->timed++;
    }
    times->made +=
        attempt->repeat <= sweep->repeats &&
        !(sweep_is_rejected(attempt) && attempt->tries <= sweep->reruns); /* will be repeated */
}

/* How long a GPU takes to cool depends on the previous attempt, which is random: the mean of all points is used. */
static double expected_time(const struct sweep *sweep, size_t point,
                            const struct attempt_times *own, const struct attempt_times *all)
{
    const struct attempt_times *times = own->timed ? own : all;
    double wait = all->timed ? all->waited / (double)all->timed : 0;
    double wall = ratio(times->seconds, (double)times->timed);
    if (!times->timed && point < sweep->expected_count)
        wall = sweep->expected_s[point];
    return wall + (sweep->cooldown_s > wait ? sweep->cooldown_s : wait);
}

double sweep_expected(const struct sweep *sweep, size_t point)
{
    struct attempt_times own = {0}, all = {0};
    for (size_t i = 0; i < sweep->count; i++) {
        add_attempt_time(sweep, &sweep->attempts[i], &all);
        if (sweep->attempts[i].point == point)
            add_attempt_time(sweep, &sweep->attempts[i], &own);
    }
    return expected_time(sweep, point, &own, &all);
}

size_t sweep_left(const struct sweep *sweep, double *seconds_left)
{
    size_t left = 0, count = sweep->point_count;
    struct attempt_times all = {0}, *own = calloc(count + 1, sizeof *own);
    *seconds_left = own ? 0 : UNKNOWN;
    for (size_t i = 0; own && i < sweep->count; i++) {
        add_attempt_time(sweep, &sweep->attempts[i], &all);
        add_attempt_time(sweep, &sweep->attempts[i], &own[sweep->attempts[i].point]);
    }
    for (size_t p = 0; own && p < count; p++)
        if (own[p].made < sweep->repeats && (!sweep->only || sweep->only == p + 1)) {
            left += sweep->repeats - own[p].made;
            *seconds_left +=
                (sweep->repeats - own[p].made) * expected_time(sweep, p, &own[p], &all);
        }
    free(own);
    return left;
}

/* ---- durations of earlier runs ---- */

static bool same_words(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static bool same_setting(const struct sweep *a, size_t point, const struct sweep *b, size_t other)
{
    struct text mine = {0}, its = {0};
    sweep_setting(a, point, &mine);
    sweep_setting(b, other, &its);
    bool same = strcmp(text_get(&mine), text_get(&its)) == 0;
    text_release(&mine);
    text_release(&its);
    return same;
}

/* Durations of an earlier sweep at the same settings; at others its mean.  Returns whether it is of the same work. */
static bool expect_as_sweep(struct sweep *sweep, const char *directory)
{
    struct sweep earlier;
    if (sweep_load(directory, &earlier, NULL))
        return false;
    bool same =
        earlier.profile == sweep->profile && earlier.count &&
        same_words(sweep->command, sweep->word_count, earlier.command, earlier.word_count) &&
        same_words(sweep->options, sweep->option_count, earlier.options, earlier.option_count);
    for (size_t p = 0; same && p < sweep->point_count; p++) {
        size_t other = 0;
        while (other < earlier.point_count && !same_setting(sweep, p, &earlier, other))
            other++;
        sweep->expected_s[p] =
            sweep_expected(&earlier, other) -
            (earlier.cooldown_s > 0 ? earlier.cooldown_s : 0); /* ours is added later */
    }
    sweep_release(&earlier);
    return same;
}

static double option_number(const struct sweep *sweep, const char *const *names, const char **text)
{
    double value = UNKNOWN;
    for (size_t i = 0; i + 1 < sweep->word_count; i++)
        for (size_t k = 0; names[k]; k++)
            if (strcmp(sweep->command[i], names[k]) == 0) {
                *text = sweep->command[i + 1];
                if (parse_double(*text, &value))
                    value = UNKNOWN;
            }
    return value;
}

/* Duration of a run with the same command at some setting, or of a profile of the same model and dataset. */
static bool expect_as_run(struct sweep *sweep, const struct run_list_entry *entry)
{
    const struct summary *summary = &entry->summary;
    const char *model = NULL, *dataset = NULL, *unused = NULL;
    double each_s = ratio(summary->seconds, (double)summary->queries), queries = 1;
    bool same = false;
    if (!(each_s > 0) || !summary->model || sweep->profile != (entry->kind == RUN_KIND_PROFILE))
        return false;
    if (sweep->profile) {
        (void)option_number(sweep, (const char *const[]){"--model", NULL}, &model);
        (void)option_number(sweep, (const char *const[]){"--dataset", NULL}, &dataset);
        queries = option_number(sweep, (const char *const[]){"--max-queries", NULL}, &unused);
        queries = is_known(queries) ? queries : (double)summary->queries;
        same = model && strcmp(model, summary->model) == 0 && dataset && summary->dataset_name &&
               strcmp(dataset, summary->dataset_name) == 0;
    }
    for (size_t p = 0; !sweep->profile && !same && p < sweep->point_count; p++) {
        struct text command = {0};
        char **words = sweep_words(sweep, p);
        for (size_t i = 0; words && words[i]; i++)
            text_addf(&command, "%s%s", i ? " " : "", words[i]);
        same = strcmp(text_get(&command), summary->model) == 0;
        sweep_free_words(words);
        text_release(&command);
    }
    for (size_t p = 0; same && p < sweep->point_count; p++)
        sweep->expected_s[p] = each_s * queries;
    return same;
}

enum err sweep_expect_from(struct sweep *sweep, const char *parent, struct text *from)
{
    struct run_list list;
    sweep->expected_s = calloc(sweep->point_count + 1, sizeof *sweep->expected_s);
    if (!sweep->expected_s)
        return ERR_NO_MEMORY;
    if (run_list_load(parent, &list, NULL))
        return ERR_OK; /* no runs yet */
    for (int sweeps = 1; sweeps >= 0 && !sweep->expected_count; sweeps--)
        for (size_t i = list.count; i-- > 0 && !sweep->expected_count;) {
            const struct run_list_entry *entry = &list.entries[i];
            char path[FILE_PATH_MAX];
            bool is_sweep = entry->kind == RUN_KIND_SWEEP;
            if (is_sweep != (sweeps == 1) ||
                !str_format(path, sizeof path, "%s/%s", parent, entry->name))
                continue;
            if (is_sweep ? expect_as_sweep(sweep, path)
                         : entry->has_summary && expect_as_run(sweep, entry)) {
                sweep->expected_count = sweep->point_count;
                text_add(from, path);
            }
        }
    run_list_release(&list);
    return ERR_OK;
}

/* ---- an attempt ---- */

/* Files of a killed attempt would be mistaken for this one's. */
static enum err clear_folder(const char *folder, struct error *why)
{
    struct run_list list;
    enum err err = run_list_load(folder, &list, why);
    if (err)
        return err;
    for (size_t i = 0; !err && i < list.count; i++) {
        char path[FILE_PATH_MAX];
        if (str_format(path, sizeof path, "%s/%s", folder, list.entries[i].name))
            err = run_dir_clear(path, why);
    }
    run_list_release(&list);
    return err;
}

/* The options of the sweep precede those of a profile, which may override them; its output directory comes last. */
static char **build_argv(const struct sweep *sweep, size_t point, const char *folder)
{
    char **argv = NULL, **words = sweep_words(sweep, point);
    const char *const first[] = {"/proc/self/exe", sweep->profile ? "profile" : "run", "--quiet"};
    const char *const place[] = {"--output-dir", folder};
    size_t count = 0;
    enum err err = words ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < sizeof first / sizeof *first; i++)
        err = sweep_word(&argv, &count, first[i]);
    for (size_t i = 0; !err && i < sweep->option_count; i++)
        err = sweep_word(&argv, &count, sweep->options[i]);
    for (size_t i = 0; !err && sweep->profile && words[i]; i++)
        err = sweep_word(&argv, &count, words[i]);
    for (size_t i = 0; !err && i < sizeof place / sizeof *place; i++)
        err = sweep_word(&argv, &count, place[i]);
    if (!err && !sweep->profile)
        err = sweep_word(&argv, &count, "--");
    for (size_t i = 0; !err && !sweep->profile && words[i]; i++)
        err = sweep_word(&argv, &count, words[i]);
    sweep_free_words(words);
    if (err) {
        sweep_free_words(argv);
        argv = NULL;
    }
    return argv;
}

/* A signal to us also interrupts the child, which ends its command; a second one kills it. */
static void wait_for(struct child *child, struct child_end *end, int *signal_number)
{
    pid_t pid = child->pid;
    bool from_terminal = false;
    for (int number; (number = child_wait(child, end, &from_terminal));) {
        if (*signal_number)
            kill(pid, SIGKILL);
        else if (!from_terminal)
            kill(pid, number);
        *signal_number = number;
    }
}

/* Every process of an attempt writes to its log, and holds its lock while it runs: after a sweep was killed, its last
 * attempt may still be running, and would be measured together with the next one. */
static enum err open_log(const char *folder, int *log, int *signal_number, struct error *why)
{
    char path[FILE_PATH_MAX];
    nanos until = clock_now() + LOG_TIMEOUT;
    bool held;
    if (!sweep_log(folder, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", folder);
    enum err err = file_open_own(path, O_WRONLY | O_CREAT, log, why);
    if (err)
        return err;
    while (!(held = flock(*log, LOCK_EX | LOCK_NB) == 0) && !*signal_number && clock_now() < until)
        *signal_number = proc_poll_signal(LOG_PAUSE);
    if (!held && !*signal_number)
        err = err_set(why, ERR_BUSY, "a command of this sweep is still running; it writes to %s",
                      path);
    else if (held && ftruncate(*log, 0))
        err = err_set(why, ERR_IO, "cannot write %s", path);
    if (err || *signal_number)
        close(*log);
    return err;
}

static enum err run_child(char *const *argv, int log, int *exit_code, int *signal_number,
                          struct error *why)
{
    struct child child;
    struct child_end end;
    enum err err = child_prepare_helper(&child, argv, log, why);
    if (!err)
        err = child_go(&child, exit_code, why);
    if (!err) {
        wait_for(&child, &end, signal_number);
        *exit_code = end.exit_code;
    }
    return err;
}

/* The codes of the run's warnings, after the flag of the controlled GPU. */
static void add_flags(const struct summary *summary, const char *seen, struct text *out)
{
    if (seen)
        text_add(out, seen);
    for (size_t i = 0; summary && i < summary->conditions.finding_count; i++) {
        const struct summary_finding *finding = &summary->conditions.findings[i];
        if (finding->severity >= FINDING_WARNING && !(seen && !strcmp(finding->code, seen)))
            text_addf(out, "%s%s", out->length ? "," : "", finding->code);
    }
}

/* Reads the attempt's run; an attempt that failed early has none. */
static enum err take_run(const char *directory, const char *folder, const char *seen,
                         struct sweep_attempt *attempt, struct error *why)
{
    struct run_list list;
    struct text path = {0}, flags = {0};
    enum err err = run_list_load(folder, &list, why);
    if (err)
        return err;
    bool found = list.count && list.entries[0].has_summary;
    const struct summary *summary = found ? &list.entries[0].summary : NULL;
    attempt->joules = found ? summary->energy.joules : UNKNOWN;
    attempt->plus_minus = found ? summary->energy.plus_minus : UNKNOWN;
    attempt->statistical = found ? summary->energy.statistical : UNKNOWN;
    attempt->coverage = found ? summary->energy.coverage : UNKNOWN;
    attempt->method = found && summary->energy.method ? strdup(summary->energy.method) : NULL;
    attempt->source = found && summary->energy.source ? strdup(summary->energy.source) : NULL;
    attempt->seconds = found ? summary->seconds : UNKNOWN;
    attempt->node = found && summary->host_name ? strdup(summary->host_name) : NULL;
    attempt->gpus = found && summary->gpu_uuids ? strdup(summary->gpu_uuids) : NULL;
    add_flags(summary, seen, &flags);
    if (found)
        text_addf(&path, "%s/%s", folder + strlen(directory) + 1, list.entries[0].name);
    bool failed = path.failed || flags.failed;
    attempt->path = found && !failed ? strdup(text_get(&path)) : NULL;
    attempt->flags = failed ? NULL : strdup(text_get(&flags));
    if ((found && !attempt->path) || !attempt->flags)
        err = err_no_memory(why);
    text_release(&path);
    text_release(&flags);
    run_list_release(&list);
    return err;
}

/* Runs with the GPU at the point's settings; *seen is the flag of sweep_control_unwatch. */
static enum err run_controlled(const struct sweep *sweep, size_t point,
                               struct sweep_control *control, char *const *argv, int log,
                               int *exit_code, int *signal_number, const char **seen,
                               struct error *why)
{
    enum err err = control ? sweep_control_set(control, sweep, point, why) : ERR_OK;
    if (!err && control)
        err = sweep_control_watch(control, why);
    if (err)
        return err;
    err = run_child(argv, log, exit_code, signal_number, why);
    *seen = control ? sweep_control_unwatch(control) : NULL;
    return err;
}

static enum err run_attempt(const struct sweep *sweep, const char *directory,
                            struct sweep_control *control, const struct sweep_step *step,
                            const char *flag, struct sweep_attempt *out, int *signal_number,
                            struct error *why)
{
    char folder[FILE_PATH_MAX];
    const char *seen = NULL;
    *out = (struct sweep_attempt){.point = step->point, .repeat = step->repeat};
    if (!sweep_folder(directory, step->point, step->repeat, folder, sizeof folder))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    int log;
    enum err err = run_dir_make(folder, why);
    if (!err)
        err = open_log(folder, &log, signal_number, why);
    if (err || *signal_number)
        return err;
    char **argv = build_argv(sweep, step->point, folder);
    err = argv ? clear_folder(folder, why) : err_no_memory(why);
    nanos began = clock_now();
    if (!err)
        err = run_controlled(sweep, step->point, control, argv, log, &out->exit_code, signal_number,
                             &seen, why);
    out->wall_s = seconds(clock_now() - began);
    close(log);
    sweep_free_words(argv);
    return err || *signal_number ? err : take_run(directory, folder, seen ? seen : flag, out, why);
}

/* Waits for a GPU that is too hot, until the deadline; *celsius is its temperature. */
static enum err cool_down(const struct sweep *sweep, struct sweep_control *control,
                          const struct sweep_progress *progress, nanos until, double *celsius,
                          int *signal, struct error *why)
{
    enum err err = ERR_OK;
    bool was_hot = false;
    *celsius = UNKNOWN;
    while (is_known(sweep->cooldown_c) && !err && !*signal) {
        struct error reason = {0};
        err = sweep_control_temperature(control, sweep, celsius, &reason);
        if (err)
            err_set(why, err, "--cooldown-c: %s", reason.text);
        else if (!is_known(*celsius))
            err = err_set(why, ERR_UNSUPPORTED, "--cooldown-c: the GPU reports no temperature");
        if (err || !(*celsius > sweep->cooldown_c) || clock_now() >= until)
            break;
        if (!was_hot)
            progress->cool(progress->context, sweep, *celsius);
        was_hot = true;
        *signal = proc_poll_signal(COOL_PAUSE);
    }
    return err;
}

/* Brings the GPU into the temperature range before an attempt: a cold one by unmeasured runs.  If that fails, it is
 * measured anyway, and *flag is set. */
static enum err reach_temperature(const struct sweep *sweep, const char *directory,
                                  struct sweep_control *control,
                                  const struct sweep_progress *progress,
                                  const struct sweep_step *step, const char **flag, int *signal,
                                  struct error *why)
{
    double celsius, limit_s = is_known(sweep->cooldown_limit_s) ? sweep->cooldown_limit_s
                                                                : SWEEP_COOLDOWN_LIMIT_S;
    nanos until = clock_now() + from_seconds(limit_s);
    enum err err = cool_down(sweep, control, progress, until, &celsius, signal, why);
    while (!err && !*signal && celsius < sweep->cooldown_min_c && clock_now() < until) {
        struct sweep_attempt warmup = {0};
        double before = celsius;
        progress->cool(progress->context, sweep, celsius);
        err = run_attempt(sweep, directory, control, step, NULL, &warmup, signal, why);
        sweep_attempt_release(&warmup);
        if (!err && !*signal)
            err = cool_down(sweep, control, progress, until, &celsius, signal, why);
        if (celsius <= before) /* the command does not heat it */
            break;
    }
    *flag = celsius > sweep->cooldown_c       ? "not_cooled"
            : celsius < sweep->cooldown_min_c ? "not_warmed"
                                              : NULL;
    return err;
}

static enum err record(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_attempt *attempt, const struct sweep_progress *progress,
                       struct error *why)
{
    size_t point = attempt->point;
    unsigned repeat = attempt->repeat;
    enum err err = sweep_add(sweep, writer, attempt, why);
    if (!err)
        progress->end(progress->context, sweep, sweep_find(sweep, point, repeat));
    return err;
}

/* Runs all remaining attempts at the existing points. */
static enum err run_attempts(struct sweep *sweep, struct run_writer *writer,
                             struct sweep_control *control, const struct sweep_progress *progress,
                             int *signal, struct error *why)
{
    struct sweep_step step;
    enum err err = ERR_OK;
    for (bool first = true; !err && !*signal && sweep_next(sweep, &step); first = false) {
        struct sweep_attempt attempt = {0};
        const char *flag = NULL;
        nanos began = clock_now();
        if (!first && sweep->cooldown_s > 0)
            *signal = proc_poll_signal(from_seconds(sweep->cooldown_s));
        if (!*signal)
            err = reach_temperature(sweep, writer->directory, control, progress, &step, &flag,
                                    signal, why);
        if (err || *signal)
            break;
        double waited_s = seconds(clock_now() - began);
        progress->begin(progress->context, sweep, &step);
        err = run_attempt(sweep, writer->directory, control, &step, flag, &attempt, signal, why);
        attempt.waited_s = waited_s;
        if (!err && !*signal) {
            err = record(sweep, writer, &attempt, progress, why);
        } else {
            sweep_attempt_release(&attempt);
        }
    }
    return err;
}

enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why)
{
    enum err err = ERR_OK;
    *signal = 0;
    for (bool more = true; !err && !*signal && more;) {
        err = run_attempts(sweep, writer, control, progress, signal, why);
        more = false;
        if (!err && !*signal && !sweep->only)
            err = sweep_refine(sweep, writer, &more, why);
    }
    if (!err && !*signal)
        err = sweep_finish(sweep, writer, why);
    return err;
}

/* ---- a point alone ---- */

enum err sweep_wait_for_point(struct sweep *sweep, const char *directory, size_t point,
                              struct run_writer *writer, struct error *why)
{
    static const nanos TIMEOUT = 60 * NS_PER_S, PAUSE = 100 * NS_PER_MS;
    nanos until = clock_now() + TIMEOUT;
    enum err err;
    while ((err = sweep_open_point(sweep, directory, point, writer, why)) == ERR_BUSY &&
           clock_now() < until && !proc_poll_signal(PAUSE))
        ;
    return err;
}
