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
#include "core/xalloc.h"
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

static struct rounds count_rounds(const struct sweep *sweep)
{
    size_t *counts = xcalloc(2 * ((size_t)sweep->max_repeats + 1), sizeof *counts);
    struct rounds rounds = {counts, counts + sweep->max_repeats + 1};
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->repeat > sweep->max_repeats)
            continue;
        rounds.made[attempt->repeat]++;
        rounds.rejected[attempt->repeat] +=
            sweep_is_rejected(attempt) && attempt->tries <= sweep->reruns;
    }
    return rounds;
}

bool sweep_each(const struct sweep *sweep, sweep_visit *visit, void *context)
{
    struct rounds rounds = count_rounds(sweep);
    bool stopped = false;
    for (int again = 0; !stopped && again < 2; again++)
        for (unsigned round = 1; !stopped && round <= sweep->max_repeats; round++) {
            bool is_done =
                again ? !rounds.rejected[round] : rounds.made[round] >= sweep->point_count;
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
    struct attempt_times all = {0}, *own = xcalloc(count, sizeof *own);
    *seconds_left = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        add_attempt_time(sweep, &sweep->attempts[i], &all);
        add_attempt_time(sweep, &sweep->attempts[i], &own[sweep->attempts[i].point]);
    }
    for (size_t p = 0; p < count; p++)
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
    return a->knob_count == b->knob_count &&
           settings_same(sweep_point(a, point), sweep_point(b, other), a->knob_count);
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
        for (size_t i = 0; words[i]; i++)
            text_addf(&command, "%s%s", i ? " " : "", words[i]);
        same = strcmp(text_get(&command), summary->model) == 0;
        sweep_free_words(words);
        text_release(&command);
    }
    for (size_t p = 0; same && p < sweep->point_count; p++)
        sweep->expected_s[p] = each_s * queries;
    return same;
}

void sweep_expect_from(struct sweep *sweep, const char *parent, struct text *from)
{
    struct run_list list;
    sweep->expected_s = xcalloc(sweep->point_count, sizeof *sweep->expected_s);
    if (run_list_load(parent, &list, NULL))
        return; /* no runs yet */
    for (int sweeps = 1; sweeps >= 0 && !sweep->expected_count; sweeps--)
        for (size_t i = list.count; i-- > 0 && !sweep->expected_count;) {
            const struct run_list_entry *entry = &list.entries[i];
            bool is_sweep = entry->kind == RUN_KIND_SWEEP;
            if (is_sweep != (sweeps == 1))
                continue;
            char *path = path_join(parent, entry->name);
            if (is_sweep ? expect_as_sweep(sweep, path)
                         : entry->has_summary && expect_as_run(sweep, entry)) {
                sweep->expected_count = sweep->point_count;
                text_add(from, path);
            }
            free(path);
        }
    run_list_release(&list);
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
    char **argv = NULL, **words = sweep_words(sweep, point);
    const char *const first[] = {"/proc/self/exe", sweep->profile ? "profile" : "run", "--quiet"};
    const char *const place[] = {"--output-dir", folder};
    size_t count = 0;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        sweep_word(&argv, &count, first[i]);
    for (size_t i = 0; i < sweep->option_count; i++)
        sweep_word(&argv, &count, sweep->options[i]);
    for (size_t i = 0; sweep->profile && words[i]; i++)
        sweep_word(&argv, &count, words[i]);
    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        sweep_word(&argv, &count, place[i]);
    if (!sweep->profile)
        sweep_word(&argv, &count, "--");
    for (size_t i = 0; !sweep->profile && words[i]; i++)
        sweep_word(&argv, &count, words[i]);
    sweep_free_words(words);
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
    nanos until = clock_now() + LOG_TIMEOUT;
    bool held;
    char *path = sweep_log(folder);
    enum err err = file_open_own(path, O_WRONLY | O_CREAT, log, why);
    if (err) {
        free(path);
        return err;
    }
    while (!(held = flock(*log, LOCK_EX | LOCK_NB) == 0) && !*signal_number && clock_now() < until)
        *signal_number = proc_poll_signal(LOG_PAUSE);
    if (!held && !*signal_number)
        err = err_set(why, ERR_BUSY, "a command of this sweep is still running; it writes to %s",
                      path);
    else if (held && ftruncate(*log, 0))
        err = err_set(why, ERR_IO, "cannot write %s", path);
    if (err || *signal_number)
        close(*log);
    free(path);
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
static void add_flags(const struct summary *summary, enum attempt_flag flag, struct text *out)
{
    const char *seen = flag < ATTEMPT_FLAGS ? attempt_flag_name(flag) : NULL;
    if (seen)
        text_add(out, seen);
    for (size_t i = 0; summary && i < summary->conditions.finding_count; i++) {
        const struct finding *finding = &summary->conditions.findings[i];
        if (finding->severity >= FINDING_WARNING && !(seen && !strcmp(finding->code, seen)))
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
    enum err err = run_list_load(folder, &list, why);
    if (err)
        return err;
    bool found = list.count && list.entries[0].has_summary;
    const struct summary *summary = found ? &list.entries[0].summary : NULL;
    attempt->joules = found ? summary->energy.joules : UNKNOWN;
    attempt->plus_minus = found ? summary->energy.plus_minus : UNKNOWN;
    attempt->statistical = found ? summary->energy.statistical : UNKNOWN;
    attempt->coverage = found ? summary->energy.coverage : UNKNOWN;
    attempt->method = found ? copy_known(summary->energy.method) : NULL;
    attempt->source = found ? copy_known(summary->energy.source) : NULL;
    attempt->seconds = found ? summary->seconds : UNKNOWN;
    attempt->node = found ? copy_known(summary->host_name) : NULL;
    attempt->gpus = found ? copy_known(summary->gpu_uuids) : NULL;
    attempt->path = found ? path_join(folder + strlen(directory) + 1, list.entries[0].name) : NULL;
    add_flags(summary, seen, &flags);
    attempt->flags = xstrdup(text_get(&flags));
    text_release(&flags);
    run_list_release(&list);
    return ERR_OK;
}

/* Runs with the GPU at the point's settings; *seen is the flag of sweep_control_unwatch. */
static enum err run_controlled(const struct sweep *sweep, size_t point,
                               struct sweep_control *control, char *const *argv, int log,
                               int *exit_code, int *signal_number, enum attempt_flag *seen,
                               struct error *why)
{
    enum err err = control ? sweep_control_set(control, sweep, point, why) : ERR_OK;
    if (!err && control)
        err = sweep_control_watch(control, why);
    if (err)
        return err;
    err = run_child(argv, log, exit_code, signal_number, why);
    *seen = control ? sweep_control_unwatch(control) : ATTEMPT_FLAGS;
    return err;
}

/* In its folder, with an open log. */
static enum err run_logged(const struct sweep *sweep, const char *folder,
                           struct sweep_control *control, int log, struct sweep_attempt *out,
                           int *signal_number, enum attempt_flag *seen, struct error *why)
{
    char **argv = build_argv(sweep, out->point, folder);
    enum err err = clear_folder(folder, why);
    nanos began = clock_now();
    if (!err)
        err = run_controlled(sweep, out->point, control, argv, log, &out->exit_code, signal_number,
                             seen, why);
    out->wall_s = seconds(clock_now() - began);
    sweep_free_words(argv);
    return err;
}

/* flag: what is known before, ATTEMPT_FLAGS for nothing. */
static enum err run_attempt(const struct sweep *sweep, const char *directory,
                            struct sweep_control *control, const struct sweep_step *step,
                            enum attempt_flag flag, struct sweep_attempt *out, int *signal_number,
                            struct error *why)
{
    enum attempt_flag seen = ATTEMPT_FLAGS;
    int log;
    *out = (struct sweep_attempt){.point = step->point, .repeat = step->repeat};
    char *folder = sweep_folder(directory, step->point, step->repeat);
    enum err err = run_dir_make(folder, why);
    if (!err)
        err = open_log(folder, &log, signal_number, why);
    if (!err && !*signal_number) {
        err = run_logged(sweep, folder, control, log, out, signal_number, &seen, why);
        close(log);
        if (!err && !*signal_number)
            err = take_run(directory, folder, seen < ATTEMPT_FLAGS ? seen : flag, out, why);
    }
    free(folder);
    return err;
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
                                  const struct sweep_step *step, enum attempt_flag *flag,
                                  int *signal, struct error *why)
{
    double celsius, limit_s = is_known(sweep->cooldown_limit_s) ? sweep->cooldown_limit_s
                                                                : SWEEP_COOLDOWN_LIMIT_S;
    nanos until = clock_now() + from_seconds(limit_s);
    enum err err = cool_down(sweep, control, progress, until, &celsius, signal, why);
    while (!err && !*signal && celsius < sweep->cooldown_min_c && clock_now() < until) {
        struct sweep_attempt warmup = {0};
        double before = celsius;
        progress->cool(progress->context, sweep, celsius);
        err = run_attempt(sweep, directory, control, step, ATTEMPT_FLAGS, &warmup, signal, why);
        sweep_attempt_release(&warmup);
        if (!err && !*signal)
            err = cool_down(sweep, control, progress, until, &celsius, signal, why);
        if (celsius <= before) /* the command does not heat it */
            break;
    }
    *flag = celsius > sweep->cooldown_c       ? ATTEMPT_NOT_COOLED
            : celsius < sweep->cooldown_min_c ? ATTEMPT_NOT_WARMED
                                              : ATTEMPT_FLAGS;
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
        enum attempt_flag flag = ATTEMPT_FLAGS;
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
