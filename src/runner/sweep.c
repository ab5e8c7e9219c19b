#include "runner/sweep.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
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

enum { POINTS_MOST = 10000, VALUE_MAX = 1024, NAME_MAX_BYTES = 64 };

static const nanos LOG_PATIENCE = 30 * NS_PER_S, LOG_PAUSE = 20 * NS_PER_MS;

/* ---- knobs ---- */

struct values {
    char **items;
    size_t count;
};

static void release_values(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        free(values->items[i]);
    free(values->items);
    *values = (struct values){0};
}

static enum err add_value(struct values *values, const char *knob, const char *value,
                          struct error *why)
{
    for (size_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i], value) == 0)
            return err_set(why, ERR_USAGE, "--knob %s has the value '%.80s' twice", knob, value);
    if (values->count >= POINTS_MOST)
        return err_set(why, ERR_USAGE, "--knob %s has more than %d values", knob, POINTS_MOST);
    return sweep_word(&values->items, &values->count, value) ? err_no_memory(why) : ERR_OK;
}

/* "600-1200:150" into its numbers; false for anything else, which is a value as it is. */
static bool parse_range(const char *item, double *low, double *high, double *step)
{
    char copy[VALUE_MAX];
    str_copy(copy, sizeof copy, item);
    char *colon = strchr(copy, ':');
    char *dash = copy[0] ? strchr(copy + 1, '-') : NULL;
    if (!colon || !dash || dash > colon)
        return false;
    *colon = *dash = '\0';
    return parse_double(copy, low) == ERR_OK && parse_double(dash + 1, high) == ERR_OK &&
           parse_double(colon + 1, step) == ERR_OK;
}

static enum err add_range(struct values *values, const char *knob, const char *item, double low,
                          double high, double step, struct error *why)
{
    if (!(step > 0) || high < low)
        return err_set(why, ERR_USAGE, "--knob %s: '%s' is no range LOW-HIGH:STEP", knob, item);
    double count = floor((high - low) / step * (1 + 1e-12) + 1e-9) + 1;
    if (count > POINTS_MOST)
        return err_set(why, ERR_USAGE, "--knob %s: '%s' has more than %d values", knob, item,
                       POINTS_MOST);
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < (size_t)count; i++) {
        char value[32];
        str_format(value, sizeof value, "%.10g", low + (double)i * step);
        err = add_value(values, knob, value, why);
    }
    return err;
}

static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    return length > 0 && length < NAME_MAX_BYTES && !isdigit((unsigned char)name[0]) &&
           name[0] != '-';
}

/* Adds the knob's name to the sweep, and its values to `values`. */
static enum err parse_knob(const char *word, struct sweep *sweep, struct values *values,
                           struct error *why)
{
    char name[NAME_MAX_BYTES] = "", item[VALUE_MAX];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;
    if (!is_name(word, length))
        return err_set(why, ERR_USAGE,
                       "--knob takes NAME=VALUES, with letters, digits and _ in the name, not "
                       "'%.80s'",
                       word);
    memcpy(name, word, length);
    for (size_t i = 0; i < sweep->knob_count; i++)
        if (strcmp(sweep->knobs[i], name) == 0)
            return err_set(why, ERR_USAGE, "--knob %s given more than once", name);
    enum err err =
        sweep_word(&sweep->knobs, &sweep->knob_count, name) ? err_no_memory(why) : ERR_OK;
    for (const char *list = equals + 1; !err && list;) {
        double low, high, step;
        if (!str_next_item(&list, item, sizeof item))
            err = err_set(why, ERR_USAGE, "--knob %s has an empty or too long value", name);
        else if (parse_range(item, &low, &high, &step))
            err = add_range(values, name, item, low, high, step, why);
        else
            err = add_value(values, name, item, why);
    }
    return err;
}

/* How many points there are; 0, and why, when that is not possible. */
static size_t count_points(const struct values *values, const struct sweep *sweep, bool paired,
                           struct error *why)
{
    size_t points = paired ? values[0].count : 1;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        if (paired && values[k].count != points) {
            err_set(why, ERR_USAGE, "--paired: %s has %zu values and %s %zu", sweep->knobs[0],
                    points, sweep->knobs[k], values[k].count);
            return 0;
        }
        points *= paired ? 1 : values[k].count;
        if (points > POINTS_MOST) {
            err_set(why, ERR_USAGE, "the knobs have more than %d combinations", POINTS_MOST);
            return 0;
        }
    }
    return points;
}

/* The last knob changes fastest. */
static enum err combine(const struct values *values, struct sweep *sweep, size_t points,
                        bool paired)
{
    size_t added = 0;
    enum err err = ERR_OK;
    for (size_t p = 0; !err && p < points; p++) {
        size_t below = points;
        for (size_t k = 0; !err && k < sweep->knob_count; k++) {
            below /= paired ? 1 : values[k].count;
            size_t index = paired ? p : p / below % values[k].count;
            err = sweep_word(&sweep->values, &added, values[k].items[index]);
        }
        if (!err)
            sweep->point_count++;
    }
    for (size_t i = sweep->point_count * sweep->knob_count; i < added; i++)
        free(sweep->values[i]); /* of a point that was not completed */
    return err;
}

enum err sweep_expand(const char *const *knobs, size_t count, bool paired, struct sweep *sweep,
                      struct error *why)
{
    if (!count)
        return err_set(why, ERR_USAGE, "missing --knob NAME=VALUES");
    struct values *values = calloc(count, sizeof *values);
    enum err err = values ? ERR_OK : err_no_memory(why);
    for (size_t k = 0; !err && k < count; k++)
        err = parse_knob(knobs[k], sweep, &values[k], why);
    if (!err) {
        size_t points = count_points(values, sweep, paired, why);
        err = points ? err_explain(why, combine(values, sweep, points, paired)) : ERR_USAGE;
    }
    for (size_t k = 0; values && k < count; k++)
        release_values(&values[k]);
    free(values);
    return err;
}

/* ---- the command ---- */

/* The knob whose placeholder is here, and its length; knob_count for none. */
static size_t placeholder_at(const struct sweep *sweep, const char *at, size_t *length)
{
    for (size_t k = 0; *at == '{' && k < sweep->knob_count; k++) {
        size_t name = strlen(sweep->knobs[k]);
        if (strncmp(at + 1, sweep->knobs[k], name) == 0 && at[name + 1] == '}') {
            *length = name + 2;
            return k;
        }
    }
    return sweep->knob_count;
}

enum err sweep_check_command(const struct sweep *sweep, struct error *why)
{
    for (size_t k = 0; k < sweep->knob_count; k++) {
        bool used = sweep_control_has(sweep, k);
        for (size_t i = 0; !used && i < sweep->word_count; i++)
            for (const char *at = sweep->command[i]; !used && (at = strchr(at, '{')); at++) {
                size_t length;
                used = placeholder_at(sweep, at, &length) == k;
            }
        if (!used)
            return err_set(why, ERR_USAGE, "knob '%s' is not used: the command has no {%s}%s",
                           sweep->knobs[k], sweep->knobs[k],
                           sweep_control_is_name(sweep->knobs[k])
                               ? "; --control would set it on the GPU"
                               : "");
    }
    return ERR_OK;
}

static char *fill_word(const struct sweep *sweep, size_t point, const char *word)
{
    struct text text = {0};
    for (const char *at = word; *at;) {
        size_t length = 0, knob = placeholder_at(sweep, at, &length);
        if (knob < sweep->knob_count)
            text_add(&text, sweep->values[point * sweep->knob_count + knob]);
        else
            text_add_bytes(&text, at, length = 1);
        at += length;
    }
    char *filled = text.failed ? NULL : strdup(text_get(&text));
    text_release(&text);
    return filled;
}

void sweep_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

char **sweep_words(const struct sweep *sweep, size_t point)
{
    char **words = calloc(sweep->word_count + 1, sizeof *words);
    for (size_t i = 0; words && i < sweep->word_count; i++) {
        words[i] = fill_word(sweep, point, sweep->command[i]);
        if (!words[i]) {
            sweep_free_words(words);
            return NULL;
        }
    }
    return words;
}

/* ---- the order ---- */

static bool is_made(const struct sweep *sweep, size_t point, unsigned repeat)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].point == point && sweep->attempts[i].repeat == repeat)
            return true;
    return false;
}

/* Is this repeat beyond those that all points get worth making? */
static bool is_uncertain(const struct sweep *sweep, size_t point)
{
    struct sweep_figures figures = sweep_figures(sweep, point);
    if (!is_known(sweep->until_pct) || !figures.measured || !is_known(figures.joules))
        return false;
    return !is_known(figures.error_pct) || figures.error_pct > sweep->until_pct;
}

bool sweep_next(const struct sweep *sweep, struct sweep_step *out)
{
    size_t order[POINTS_MOST];
    size_t count = sweep->point_count < POINTS_MOST ? sweep->point_count : POINTS_MOST;
    for (unsigned round = 1; round <= sweep->most_repeats; round++) {
        struct random random = random_from(sweep->seed, round);
        for (size_t i = 0; i < count; i++)
            order[i] = i;
        random_shuffle(&random, order, count, sizeof *order);
        for (size_t i = 0; i < count; i++) {
            *out = (struct sweep_step){order[i], round};
            if (!is_made(sweep, order[i], round) &&
                (round <= sweep->repeats || is_uncertain(sweep, order[i])))
                return true;
        }
    }
    return false;
}

size_t sweep_left(const struct sweep *sweep, double *seconds_left)
{
    size_t made = 0, all = sweep->point_count * sweep->repeats;
    double wall = UNKNOWN, cooldown = is_known(sweep->cooldown_s) ? sweep->cooldown_s : 0;
    for (size_t i = 0; i < sweep->count; i++) {
        made += sweep->attempts[i].repeat <= sweep->repeats;
        add_known(&wall, sweep->attempts[i].wall_s);
    }
    size_t left = made < all ? all - made : 0;
    *seconds_left = (ratio(wall, (double)sweep->count) + cooldown) * (double)left;
    return left;
}

/* ---- an attempt ---- */

/* What an attempt that was killed left there would pass for this one's. */
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

/* The options of the sweep go before those of a profile, which may change them, and its place behind. */
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

/* A signal to us ends the child too, which ends its command; a second one kills it. */
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

/* Whatever an attempt starts writes to its log, and holds its lock for as long as it runs: after a sweep was killed,
 * its last attempt may still be about to end, and would be measured with the next one. */
static enum err open_log(const char *folder, int *log, int *signal_number, struct error *why)
{
    char path[FILE_PATH_MAX];
    nanos until = clock_now() + LOG_PATIENCE;
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

/* The codes of the run's warnings, after what was seen of the GPU that was controlled. */
static enum err add_flags(const struct summary *summary, const char *seen,
                          struct sweep_attempt *attempt)
{
    struct text flags = {0};
    if (seen)
        text_add(&flags, seen);
    for (size_t i = 0; i < summary->conditions.finding_count; i++) {
        const struct summary_finding *finding = &summary->conditions.findings[i];
        if (finding->severity >= FINDING_WARNING && !(seen && !strcmp(finding->code, seen)))
            text_addf(&flags, "%s%s", flags.length ? "," : "", finding->code);
    }
    attempt->flags = flags.failed ? NULL : strdup(text_get(&flags));
    text_release(&flags);
    return attempt->flags ? ERR_OK : ERR_NO_MEMORY;
}

/* What its run says; an attempt that failed early left none. */
static enum err take_run(const char *directory, const char *folder, const char *seen,
                         struct sweep_attempt *attempt, struct error *why)
{
    struct run_list list;
    struct text path = {0};
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
    attempt->seconds = summary->seconds;
    err = add_flags(summary, seen, attempt);
    if (found) {
        text_addf(&path, "%s/%s", folder + strlen(directory) + 1, list.entries[0].name);
        attempt->path = path.failed ? NULL : strdup(text_get(&path));
        err = attempt->path ? err : ERR_NO_MEMORY;
    }
    text_release(&path);
    summary_release(&none);
    run_list_release(&list);
    return err_explain(why, err);
}

/* With the GPU set as the point wants it; *seen is what sweep_control_unwatch says. */
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

static enum err make_attempt(const struct sweep *sweep, const char *directory,
                             struct sweep_control *control, const struct sweep_step *step,
                             struct sweep_attempt *out, int *signal_number, struct error *why)
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
    return err || *signal_number ? err : take_run(directory, folder, seen, out, why);
}

enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why)
{
    struct sweep_step step;
    bool first = true;
    enum err err = ERR_OK;
    *signal = 0;
    while (!err && !*signal && sweep_next(sweep, &step)) {
        struct sweep_attempt attempt;
        if (!first && sweep->cooldown_s > 0)
            *signal = proc_poll_signal(from_seconds(sweep->cooldown_s));
        first = false;
        if (*signal)
            break;
        progress->begin(progress->context, sweep, &step);
        err = make_attempt(sweep, writer->directory, control, &step, &attempt, signal, why);
        if (err || *signal) {
            free(attempt.path);
            free(attempt.flags);
            break;
        }
        err = sweep_add(sweep, writer, &attempt, why);
        if (!err)
            progress->end(progress->context, sweep, &sweep->attempts[sweep->count - 1]);
    }
    if (!err && !*signal)
        err = sweep_finish(sweep, writer, why);
    return err;
}
