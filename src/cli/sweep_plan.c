/* The plan of `ipw sweep`: turns options and the command into the points, options and rules of a sweep. */
#include "cli/sweep_plan.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "core/clock.h"
#include "core/knob.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "runner/slurm.h"
#include "runner/sweep.h"
#include "runner/sweep_control.h"

static void add_option(struct sweep *sweep, const char *name, const char *value)
{
    sweep_word(&sweep->options, &sweep->option_count, name);
    if (value)
        sweep_word(&sweep->options, &sweep->option_count, value);
}

/* Options passed on to the program that measures a point. */
static void add_options(const struct sweep_options *options, struct sweep *sweep)
{
    const struct measure_options *measure = &options->measure;
    char number[32];
    if (measure->devices)
        add_option(sweep, "--devices", measure->devices);
    if (measure->sensors)
        add_option(sweep, "--sensors", measure->sensors);
    if (measure->rate_hz > 0) {
        chars_format(number, "%.10g", measure->rate_hz);
        add_option(sweep, "--sample-rate", number);
    }
    if (measure->require_energy)
        add_option(sweep, "--require-energy", NULL);
    if (measure->idle_s > 0) {
        chars_format(number, "%.10g", measure->idle_s);
        add_option(sweep, "--idle", number);
    }
    if (options->warmups) {
        chars_format(number, "%u", options->warmups);
        add_option(sweep, "--warmup", number);
    }
}

void sweep_plan_command(struct sweep *sweep, const char **words, size_t count)
{
    for (size_t i = 0; i < sweep->word_count; i++)
        free(sweep->command[i]);
    sweep->word_count = 0;
    for (size_t i = 0; i < count; i++)
        sweep_word(&sweep->command, &sweep->word_count, words[i]);
}

/* Elements read the command from the journal, which contains no secrets. */
static enum err check_no_secrets(const struct sweep *sweep, struct error *why)
{
    for (size_t i = 0; i < sweep->word_count; i++)
        for (const char *at = sweep->command[i]; *at; at++)
            if (secret_at(at, strlen(at)))
                return err_set(why, ERR_USAGE,
                               "the command contains a secret, which is not recorded: with --slurm "
                               "pass it in the environment");
    return ERR_OK;
}

bool sweep_plan_mode_is(const struct sweep_options *options, const char *mode)
{
    return str_equal(options->mode, mode);
}

/* Queries the clocks of the local GPU, or of one allocated by Slurm. */
static enum err query_clocks(const struct sweep_options *options, struct sweep *sweep,
                             struct error *why)
{
    if (!options->slurm.on)
        return sweep_control_clocks(options->measure.devices, options->min_mhz, &sweep->clocks,
                                    &sweep->clock_count, why);
    if (!options->quiet)
        notify("ipw sweep: querying a cluster node for the clocks of its GPU (srun)\n");
    return slurm_clocks(&options->slurm.options, options->measure.devices, options->min_mhz,
                        &sweep->clocks, &sweep->clock_count, why);
}

static void add_default_clock(struct text *out)
{
    text_addf(out, "%s=default", knob_of(KNOB_GRAPHICS_CLOCK)->name);
}

/* The --knob gpu-clock of the mode.  Without an accessible GPU only the default, with the reason. */
static enum err clock_knob(const struct sweep_options *options, struct sweep *sweep,
                           struct text *out, struct error *why)
{
    struct error reason = {0};
    enum err err = query_clocks(options, sweep, &reason);
    if (err && !sweep_control_is_refused(err))
        err = err_set(why, err, "%s", reason.text);
    else if (err) {
        notify("ipw sweep: --control is not possible: %s\n", reason.text);
        notify("ipw sweep: MEASURING ONLY: clocks and power limit are not changed\n");
        add_default_clock(out);
        sweep->uncontrolled = xstrdup(reason.text);
        err = ERR_OK;
    } else if (sweep_plan_mode_is(options, "probe")) {
        sweep_probe_knob(sweep->clocks, sweep->clock_count, options->probes, out);
    } else {
        text_addf(out, "%s=", knob_of(KNOB_GRAPHICS_CLOCK)->name);
        for (size_t i = 0; i < sweep->clock_count; i++)
            text_addf(out, "%s%.10g", i ? "," : "", sweep->clocks[i]);
        sweep->clock_count = 0; /* all clocks are points: none to choose from */
    }
    return err;
}

static enum err mode_knob(const struct sweep_options *options, struct sweep *sweep,
                          struct text *out, struct error *why)
{
    if (!sweep_plan_mode_is(options, "baseline"))
        return clock_knob(options, sweep, out, why);
    add_default_clock(out);
    sweep->control = true;
    sweep->uncontrolled = xstrdup("baseline: the GPU's own clocks");
    return ERR_OK;
}

/* "1-3" is a value like any other, such as a list of CPUs, but whoever gives one may expect 1, 2 and 3. */
static void note_range(const char *knob, const char *item)
{
    char low[64];
    double from, to;
    size_t length = item[0] ? strcspn(item + 1, "-") + 1 : 0;
    if (length < sizeof low && item[length] == '-' &&
        chars_format(low, "%.*s", (int)length, item) && parse_double(low, &from) == ERR_OK &&
        parse_double(item + length + 1, &to) == ERR_OK && from < to)
        notify("ipw sweep: --knob %s: %s is one value; a range has a step: %s:1\n", knob, item,
               item);
}

static void note_ranges(const struct option_list *knobs)
{
    for (size_t k = 0; k < knobs->count; k++) {
        const char *list = strchr(knobs->items[k], '=');
        char name[64], item[64];
        list = list ? list + 1 : NULL;
        if (list)
            chars_format(name, "%.*s", (int)(list - 1 - knobs->items[k]), knobs->items[k]);
        while (list && str_next_item(&list, item, sizeof item))
            note_range(name, item);
    }
}

static enum err find_points(struct sweep_options *options, struct sweep *sweep, struct error *why)
{
    struct text knob = {0};
    enum err err = ERR_OK;
    if (options->list)
        return sweep_read_list(options->list, sweep, why);
    if (!sweep_plan_mode_is(options, "custom")) {
        err = mode_knob(options, sweep, &knob, why);
        if (!err && options->knobs.count == OPTION_LIST_MAX)
            err = err_set(why, ERR_USAGE, "too many knobs");
        if (!err)
            options->knobs.items[options->knobs.count++] = text_get(&knob);
    }
    if (!err)
        err = sweep_expand(options->knobs.items, options->knobs.count, options->paired, sweep, why);
    if (!err && !options->quiet)
        note_ranges(&options->knobs);
    text_release(&knob);
    return err;
}

static void set_conditions(const struct sweep_options *options, struct sweep *sweep)
{
    bool until = is_known(options->until_pct);
    unsigned min =
        until && options->repeats < 2 ? 2 : options->repeats; /* one has no standard error */
    sweep->profile = options->profile;
    sweep->control = options->control;
    sweep->repeats = min;
    sweep->max_repeats = until && options->max_repeats > min ? options->max_repeats : min;
    sweep->until_pct = options->until_pct;
    sweep->reruns = options->reruns;
    sweep->cooldown_s = options->cooldown_s;
    sweep->cooldown_c = options->cooldown_c;
    sweep->cooldown_min_c = options->cooldown_min_c;
    sweep->cooldown_limit_s = options->cooldown_limit_s;
    sweep->started_at = seconds(clock_wall());
    sweep->starts = 1;
    sweep->seed = is_known(options->seed) ? (unsigned)options->seed : (unsigned)sweep->started_at;
    sweep->min_mhz = sweep_plan_mode_is(options, "dvfs") || sweep_plan_mode_is(options, "probe")
                         ? options->min_mhz
                         : UNKNOWN;
    if (sweep_plan_mode_is(options, "probe"))
        sweep->time_exponent = objective_exponent(options->objective);
    else
        sweep->time_exponent = UNKNOWN;
    sweep->mode = xstrdup(options->mode);
}

/* Rejects several runs per attempt: only the first would be used. */
static enum err check_profile(const struct sweep_options *options, const char **words, size_t count,
                              struct error *why)
{
    static const char NAME[] = "--repeat-runs";
    for (size_t i = 0; options->profile && i < count; i++)
        if (strncmp(words[i], NAME, sizeof NAME - 1) == 0)
            return err_set(
                why, ERR_USAGE,
                "an attempt is one run: use --repeat N of the sweep, before --, instead of %s",
                NAME);
    return ERR_OK;
}

enum err sweep_plan_make(struct sweep_options *options, struct sweep *sweep, const char **words,
                         size_t count, struct error *why)
{
    enum err err = check_profile(options, words, count, why);
    set_conditions(options, sweep);
    if (!err && options->measure.devices && options->measure.devices[0] && !options->slurm.on)
        err = sweep_control_devices(options->measure.devices, why);
    if (!err)
        err = find_points(options, sweep, why);
    if (!err)
        sweep_plan_command(sweep, words, count);
    if (!err)
        add_options(options, sweep);
    if (!err && options->slurm.on)
        err = check_no_secrets(sweep, why);
    if (!err)
        err = sweep_check_command(sweep, why);
    if (!err && sweep->control)
        err = sweep_control_check(sweep, why);
    return err;
}

/* A secret in the command is not in the journal: it must be given again. */
enum err sweep_plan_check_secrets(const struct sweep *sweep, struct error *why)
{
    for (size_t i = 0; i < sweep->word_count; i++)
        if (strstr(sweep->command[i], SECRET_MARK))
            return err_set(why, ERR_USAGE,
                           "the command contains a secret, which was not recorded: give the "
                           "command again after --");
    return ERR_OK;
}
