/* ipw sweep: a command or a profile at every setting of its knobs.
 *
 *   $ ipw sweep --knob threads=1,2,4,8 --repeat 3 -- llama-bench -t {threads}
 *
 * Progress goes to stderr, the settings that were measured to stdout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "cli/common.h"
#include "cli/sweep_plan.h"
#include "core/json.h"
#include "core/result.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/proc.h"
#include "report/plot/figure.h"
#include "report/text/format.h"
#include "report/print/print.h"
#include "report/text/reports.h"
#include "runner/slurm.h"
#include "runner/sweep.h"
#include "runner/sweep_control.h"
#include "runner/sweep_dry_run.h"
#include "runner/sweep_preset.h"

static struct sweep_options args = {.max_repeats = 10,
                                    .until_pct = UNKNOWN,
                                    .reruns = 2,
                                    .cooldown_c = UNKNOWN,
                                    .cooldown_min_c = UNKNOWN,
                                    .cooldown_limit_s = UNKNOWN,
                                    .cooldown_s = UNKNOWN,
                                    .seed = UNKNOWN,
                                    .min_mhz = 510,
                                    .probes = 4,
                                    .mode = "custom",
                                    .objective = "edp"};

static const char *const MODES[] = {"custom", "baseline", "dvfs", "probe", NULL};

/* ---- --dry-run ---- */

/* "12 s, by runs/sweep_x, without repeats of --until-pct".  For a new sweep of unknown work only the pauses are known. */
static void add_expected(const struct result *plan, struct text *out)
{
    char cell[FORMAT_MAX];
    double left_s = result_number_at(plan->items, "expected_s");
    double pauses_s = result_number_at(plan->items, "pauses_s");
    const char *from = result_text_at(plan->items, "expected_from");
    text_add(out, "expected time: ");
    if (!is_known(left_s) && is_known(pauses_s)) {
        text_addf(
            out,
            "%s of idle power and cool-down, plus the commands: unknown until the first attempt\n",
            format_duration(cell, pauses_s));
        return;
    }
    if (!is_known(left_s)) {
        text_add(out, "unknown until the first attempt, whose duration is then assumed for all\n");
        return;
    }
    text_addf(out, "%s%s%s", format_duration(cell, left_s), from[0] ? ", by " : "", from);
    RESULT_EACH (what, result_find(plan, "not_expected"))
        text_addf(out, ", without %s", result_string(what));
    text_add(out, "\n");
}

typedef void add_attempt(const struct result_item *setting, double repeat, void *to);

static void add_line(const struct result_item *setting, double repeat, void *to)
{
    struct text *out = to;
    char cell[FORMAT_MAX];
    double expected_s = result_number_at(setting, "expected_s");
    text_addf(out, " %2.0f  ", repeat);
    if (is_known(expected_s))
        text_addf(out, "%8s  ", format_duration(cell, expected_s));
    text_addf(out, "%s: %s\n", result_text_at(setting, "setting"),
              result_text_at(setting, "command"));
}

static void add_row(const struct result_item *setting, double repeat, void *to)
{
    struct table *table = to;
    char cell[FORMAT_MAX];
    double expected_s = result_number_at(setting, "expected_s");
    table_addf(table, "%.0f", repeat);
    table_add(table, result_text_at(setting, "setting"));
    table_add(table, is_known(expected_s) ? format_duration(cell, expected_s) : "-");
    table_add(table, result_text_at(setting, "command"));
}

/* All attempts, in order. */
static void add_attempts(const struct result *plan, add_attempt *add, void *to)
{
    const struct result_item *list = result_find(plan, "settings");
    const struct result_item **settings = xcalloc(result_length(list), sizeof *settings);
    size_t count = 0;
    RESULT_EACH (setting, list)
        settings[count++] = setting;
    RESULT_EACH (round, result_find(plan, "rounds"))
        RESULT_EACH (number, result_get(round, "settings"))
            add(settings[(size_t)result_value(number) - 1], result_number_at(round, "repeat"), to);
    free(settings);
}

static void add_head(const struct result *plan, struct text *out)
{
    size_t settings = result_length(result_find(plan, "settings"));
    double attempts = result_number_at(plan->items, "attempts");
    const char *uncontrolled = result_text_at(plan->items, "uncontrolled");
    text_addf(out, "%zu setting%s, %.0f attempt%s to run, seed %.0f\n", settings,
              str_plural(settings), attempts, str_plural(attempts),
              result_number_at(plan->items, "seed"));
    if (result_flag_at(plan->items, "sets_gpu"))
        text_add(out, "sets clocks or the power limit of the GPU, which needs root\n");
    else if (uncontrolled[0])
        text_addf(out, "measures only: %s\n", uncontrolled);
}

static void view_plan(const struct result *plan, bool color, struct text *out)
{
    (void)color;
    add_head(plan, out);
    add_attempts(plan, add_line, out);
    add_expected(plan, out);
}

static void view_plan_markdown(const struct result *plan, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"repeat", true}, {"setting", false}, {"expected", true}, {"command", false}};
    struct table table = TABLE(COLUMNS);
    struct text lines = {0};
    (void)color;
    add_head(plan, &lines);
    add_expected(plan, &lines);
    add_attempts(plan, add_row, &table);
    text_add(out, "# Plan of the sweep\n\n");
    markdown_add_list(out, text_get(&lines));
    text_add(out, "\n");
    table_write_markdown(&table, out);
    table_release(&table);
    text_release(&lines);
}

static int show_plan(struct sweep *sweep)
{
    static const struct print_views VIEWS = {.text = view_plan, .markdown = view_plan_markdown};
    struct sweep_dry_run plan;
    struct result result = {0};
    sweep_dry_run_make(sweep, args.output_dir ? args.output_dir : "runs", args.measure.idle_s,
                       &plan);
    sweep_dry_run_fill(&plan, &result);
    sweep_dry_run_release(&plan);
    return deliver_chosen(args.output, &result, &args.format, &VIEWS);
}

/* ---- progress ---- */

static void show_begin(void *context, const struct sweep *sweep, const struct sweep_step *step)
{
    struct text line = {0};
    char cell[FORMAT_MAX];
    const struct sweep_attempt *made = sweep_find(sweep, step->point, step->repeat);
    double left_s;
    size_t left = sweep_left(sweep, &left_s);
    (void)context;
    if (args.quiet)
        return;
    sweep_setting(sweep, step->point, &line);
    text_addf(&line, ", repeat %u", step->repeat);
    if (made)
        text_addf(&line, " again: %s (try %u of %u)", made->flags, made->tries + 1,
                  sweep->reruns + 1);
    if (step->repeat > sweep->repeats)
        text_add(&line, " until the target precision is reached");
    else
        text_addf(&line, "; %zu left", left);
    if (is_known(left_s) && left)
        text_addf(&line, ", %s", format_about(cell, left_s));
    notify("ipw sweep: %s\n", text_get(&line));
    text_release(&line);
}

static void show_cool(void *context, const struct sweep *sweep, double celsius)
{
    (void)context;
    double limit_s = known_or(sweep->cooldown_limit_s, SWEEP_COOLDOWN_LIMIT_S);
    if (args.quiet)
        return;
    if (celsius < sweep->cooldown_min_c)
        notify("ipw sweep: the GPU is at %.0f °C: warming up to %g °C with unmeasured runs, for at "
               "most %g s\n",
               celsius, sweep->cooldown_min_c, limit_s);
    else
        notify("ipw sweep: the GPU is at %.0f °C: waiting until it is at %g °C, for at most %g s\n",
               celsius, sweep->cooldown_c, limit_s);
}

/* The last line that an attempt wrote: the reason of its failure, if it is one of a profile; to be freed. */
static char *last_line_of(const char *path)
{
    enum { LOG_MAX = 1 << 20 };
    struct text text = {0};
    char *line = NULL;
    if (!file_read(path, LOG_MAX, &text, NULL)) {
        char *end = str_trim(text.bytes);
        char *start = strrchr(end, '\n');
        line = xstrdup(start ? start + 1 : end);
    }
    text_release(&text);
    return line;
}

static void show_end(void *context, const struct sweep *sweep, const struct sweep_attempt *attempt)
{
    const char *directory = context;
    if (!attempt->exit_code)
        return;
    char *folder = sweep_folder(directory, attempt->point, attempt->repeat);
    char *log = sweep_log(folder);
    char *reason = sweep->profile ? last_line_of(log) : NULL;
    if (reason && str_starts(reason, "ipw profile: "))
        notify("ipw sweep: failed with exit status %d: %.300s\n", attempt->exit_code,
               plain_text(reason).text);
    else
        notify("ipw sweep: failed with exit status %d; see %s\n", attempt->exit_code, log);
    free(reason);
    free(log);
    free(folder);
}

static void show_slow(void *context, const struct sweep *sweep, int number, unsigned signals)
{
    (void)context;
    notify_slow(sweep->profile, number, signals);
}

/* ---- results ---- */

enum { SETTINGS_SHOWN = 8 };

static void view_text(const struct result *result, bool color, struct text *out)
{
    result_brief(result, SETTINGS_SHOWN, color, out);
}

/* With its directory. */
static int put_json(const char *directory, const struct result *result)
{
    struct text out = {0};
    struct json json;
    json_init(&json, &out, true);
    json_object(&json, NULL);
    json_string(&json, "directory", directory);
    result_to_json(result, "sweep", &json);
    json_object_end(&json);
    text_add(&out, "\n");
    int code = deliver(args.output, &out);
    text_release(&out);
    return code;
}

/* A sweep without usable results has failed, even if all commands succeeded. */
static int show_result(const char *directory)
{
    static const struct print_views VIEWS = {.text = view_text};
    struct result result;
    enum print_format format = format_chosen(&args.format, args.output);
    enum err err = analysis_run_sweep(directory, &result);
    int code;
    if (err && err != ERR_NO_DATA)
        code = print_failure(&result.why);
    else if (format == PRINT_JSON)
        code = put_json(directory, &result);
    else
        code = deliver_printed(args.output, &result, format, &VIEWS);
    result_release(&result);
    push_saved(args.db, directory, args.quiet);
    return err == ERR_NO_DATA && !code ? EXIT_FAILED : code;
}

extern const struct command command_plot;
extern const struct command command_report;

/* Whether energy can be plotted against its knob. */
static bool has_numeric_knob(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->point_count; i++)
        if (sweep->knob_count != 1 || sweep_point(sweep, i)->kind != SETTING_NUMBER)
            return false;
    return true;
}

/* The page and the plot of a study, by the commands that make them, which print their paths.  Without quality, which a
 * sample of few answers may not have, there is none of several knobs; it says so. */
static int draw_study(const char *directory, const struct sweep *sweep)
{
    struct error why = {0};
    char *kind = has_numeric_knob(sweep) ? "frequency" : "pareto";
    char *report[] = {"report", (char *)directory, NULL};
    char *plot[] = {"plot", (char *)directory, "--plot", kind, NULL};
    if (!args.preset || args.quiet || format_is_data(&args.format))
        return EXIT_DONE;
    int code = command_call(&command_report, 2, report);
    if (!code && gnuplot_available(&why) == ERR_OK)
        command_call(&command_plot, 4, plot);
    return code;
}

/* ---- control ---- */

/* Whether nothing is left to measure; showing the result needs no GPU. */
static bool is_complete(const struct sweep *sweep)
{
    struct sweep_step step;
    return sweep->ended && !sweep_next(sweep, &step);
}

/* If clocks cannot be set, a new sweep measures at the default clocks; a resumed one does not change its points. */
static enum err take_control(struct sweep *sweep, bool is_new, struct sweep_control **out,
                             struct error *why)
{
    *out = NULL;
    if (!sweep->control || sweep->uncontrolled)
        return ERR_OK;
    enum err err = sweep_control_begin(sweep, out, why);
    if (err && is_new && sweep_control_is_refused(err)) {
        notify("ipw sweep: --control is not possible: %s\n", why->text);
        notify("ipw sweep: MEASURING ONLY: clocks and power limit are not changed\n");
        sweep_control_disable(sweep, why);
        return ERR_OK;
    }
    if (!err && !args.quiet)
        notify(
            "ipw sweep: setting clocks or the power limit of %s as root; restored at the end, or "
            "after a crash by `ipw sweep --restore`\n",
            sweep_control_device(*out));
    return err;
}

/* A plan may be made without a controllable GPU, which is reported. */
static enum err check_plan(const struct sweep *sweep, struct error *why)
{
    struct error reason = {0};
    if (!sweep->control || sweep->uncontrolled)
        return ERR_OK;
    enum err err = sweep_control_plan(sweep, &reason);
    if (err && !sweep_control_is_refused(err))
        return err_set(why, err, "%s", reason.text);
    if (err)
        notify("ipw sweep: --control is not possible here: %s\n", reason.text);
    return ERR_OK;
}

static int restore(void)
{
    unsigned restored, held;
    struct error why = {0};
    enum err err = sweep_control_restore(&restored, &held, &why);
    if (restored)
        notify("ipw sweep: restored %u GPU%s\n", restored, str_plural(restored));
    if (held)
        notify("ipw sweep: %u GPU%s not restored: a running process controls %s\n", held,
               str_plural(held), held == 1 ? "it" : "them");
    if (err)
        return print_failure(&why);
    if (!restored && !held)
        notify("ipw sweep: nothing to restore\n");
    return EXIT_DONE;
}

/* ---- the sweep ---- */

static int execute(struct sweep *sweep, struct run_writer *writer, struct sweep_control *control)
{
    const struct sweep_progress progress = {show_begin, show_end, show_cool, show_slow,
                                            writer->directory};
    struct error why = {0}, later = {0};
    int number, code = EXIT_DONE;
    if (!args.quiet && is_complete(sweep))
        notify("ipw sweep: %s is complete: nothing is left to measure\n", writer->directory);
    else if (!args.quiet && !sweep->only)
        notify("ipw sweep: %zu setting%s into %s, seed %u\n", sweep->point_count,
               str_plural(sweep->point_count), writer->directory, sweep->seed);
    enum err err = sweep_execute(sweep, writer, control, &progress, &number, &why);
    enum err restored = sweep_control_end(control, &later);
    if (restored)
        code = print_error(EXIT_FAILED, "%s; `ipw sweep --restore` tries again", later.text);
    if (err)
        return print_failure(&why);
    if (number) {
        notify("ipw sweep: interrupted; `ipw sweep --resume %s` continues it\n", writer->directory);
        return 128 + number;
    }
    if (sweep_has_failures(sweep))
        code = EXIT_FAILED;
    if (sweep->only)
        return code;
    if (sweep_has_failures(sweep))
        notify("ipw sweep: `ipw sweep --resume %s --retry-failed` retries the failed attempts\n",
               writer->directory);
    int shown = show_result(writer->directory);
    if (!shown)
        shown = draw_study(writer->directory, sweep);
    return shown ? shown : code;
}

/* ---- Slurm ---- */

struct collect_state {
    struct sweep *sweep;
    struct run_writer *writer;
    size_t queued; /* remaining settings whose elements had not ended at the submission */
};

static enum err collect(void *context, size_t *left, struct error *why)
{
    struct collect_state *state = context;
    enum err err = sweep_collect(state->sweep, state->writer, why);
    *left = sweep_unfinished(state->sweep, NULL);
    return err;
}

/* Mode probe then adds settings, a few times at most, and an element that was about to end when its setting was
 * resubmitted ends without measuring it: *more. */
static int follow(struct collect_state *state, bool *more)
{
    struct sweep *sweep = state->sweep;
    struct run_writer *writer = state->writer;
    const struct slurm_wait wait = {"settings", args.quiet, collect, state};
    struct error why = {0};
    size_t left;
    int number;
    enum err err = slurm_command_follow(writer->directory, &wait, &left, &number, &why);
    bool is_done = !err && !left && !number && !sweep->ended;
    if (is_done)
        err = sweep_refine(sweep, writer, more, &why);
    *more |= !err && left && !number && state->queued;
    if (!err && *more && args.slurm.on)
        return EXIT_DONE;
    left += *more;
    if (!err && is_done && !*more)
        err = sweep_finish(sweep, writer, &why);
    if (err)
        return print_failure(&why);
    if (number) {
        notify("ipw sweep: detached; the job continues, and `ipw sweep --resume %s` collects its "
               "results\n",
               writer->directory);
        return 128 + number;
    }
    if (left)
        return print_error(EXIT_FAILED,
                           "%zu of %zu settings were not measured: see the logs in %s/slurm; `ipw "
                           "sweep --resume %s --slurm` resubmits them",
                           left, sweep->point_count, writer->directory, writer->directory);
    int shown = show_result(writer->directory);
    if (shown)
        return shown;
    return sweep_has_failures(sweep) ? EXIT_FAILED : EXIT_DONE;
}

static enum err list_points(void *context, size_t *points, size_t *count, struct error *why)
{
    struct collect_state *state = context;
    enum err err = sweep_collect(state->sweep, state->writer, why);
    *count = state->queued = sweep_unfinished(state->sweep, points);
    for (size_t i = 0; i < *count; i++)
        points[i]++; /* 1-based for users */
    return err;
}

static enum err submit(struct collect_state *state, size_t *count, struct error *why)
{
    char *directory = state->writer->directory;
    char *command[] = {"sweep", "--resume", directory, "--point", "", NULL};
    const struct slurm_work work = {.directory = directory,
                                    .name = "ipw-sweep",
                                    .command = command,
                                    .suffix = "",
                                    .list = list_points,
                                    .context = state,
                                    .max = state->sweep->point_count};
    enum err err = slurm_command_submit(&args.slurm, &work, args.quiet, count, why);
    state->queued -= err ? 0 : *count;
    return err;
}

/* Without --slurm, collects what was submitted, and measures nothing here. */
static int execute_on_slurm(struct sweep *sweep, struct run_writer *writer)
{
    struct collect_state state = {sweep, writer, 0};
    struct error why = {0};
    size_t count;
    for (bool more = true; more;) {
        enum err err = args.slurm.on ? submit(&state, &count, &why) : ERR_OK;
        if (err)
            return print_err(err, &why);
        if (args.slurm.on && !args.quiet)
            notify("ipw sweep: %zu of %zu settings %s, into %s\n", count, sweep->point_count,
                   args.slurm.script_only ? "to be submitted" : "submitted", writer->directory);
        more = false;
        int code = args.slurm.script_only ? EXIT_DONE : follow(&state, &more);
        if (!more || !args.slurm.on)
            return code;
    }
    return EXIT_DONE;
}

/* --dry-run has no writer: it changes nothing. */
static enum err change(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    enum err err = ERR_OK;
    if (args.retry_failed)
        err = sweep_retry_failed(sweep, writer, why);
    if (!err && args.repeats)
        err = sweep_repeat_more(sweep, args.repeats, writer, why);
    return err;
}

/* A plan needs no writer. */
static enum err open_sweep(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    if (args.dry_run)
        return sweep_load(args.resume, sweep, why);
    if (args.point)
        return sweep_wait_for_point(sweep, args.resume, args.point - 1, writer, why);
    return sweep_reopen(sweep, args.resume, writer, why);
}

static int carry_out(struct sweep *sweep, struct run_writer *writer, struct sweep_control *control,
                     bool arrays)
{
    if (args.dry_run)
        return show_plan(sweep);
    return arrays ? execute_on_slurm(sweep, writer) : execute(sweep, writer, control);
}

static int resume(const char **words, size_t count)
{
    struct sweep sweep;
    struct run_writer writer;
    struct sweep_control *control = NULL;
    struct error why = {0};
    enum err err = open_sweep(&sweep, &writer, &why);
    if (err)
        return print_err(err, &why);
    bool arrays = (args.slurm.on || slurm_was_used(args.resume)) && !args.point;
    if (arrays && count)
        err = err_set(&why, ERR_USAGE, "the command of a sweep on Slurm cannot be changed");
    if (!err && !args.point && !args.dry_run)
        err = sweep_collect(&sweep, &writer, &why);
    if (!err)
        err = change(&sweep, args.dry_run ? NULL : &writer, &why);
    if (!err && count)
        sweep_plan_command(&sweep, words, count);
    if (!err)
        err = sweep_plan_check_secrets(&sweep, &why);
    if (!err)
        err = sweep_check_command(&sweep, &why);
    if (!err && !args.dry_run && !arrays && !is_complete(&sweep))
        err = take_control(&sweep, false, &control, &why);
    int code = err ? print_err(err, &why) : carry_out(&sweep, &writer, control, arrays);
    if (!args.dry_run)
        run_writer_close(&writer);
    sweep_release(&sweep);
    return code;
}

static enum err find_expansion(const char **words, size_t count, struct sweep_expansion *out,
                               struct error *why)
{
    const struct sweep_preset *preset;
    struct text left_out = {0};
    if (args.workload)
        return sweep_workload_expand(args.workload, args.knobs.items, args.knobs.count, words,
                                     count, out, why);
    enum err err = sweep_preset_find(args.preset, &preset, why);
    if (!err)
        err = sweep_preset_expand(preset, args.knobs.items, args.knobs.count, words, count, out,
                                  &left_out, why);
    if (!err && !args.quiet)
        notify("ipw sweep: %s: %s\n", preset->name, preset->summary);
    for (const char *line = text_get(&left_out), *end; !err && *line; line = end + 1) {
        end = strchr(line, '\n');
        notify("ipw sweep: left out: %.*s\n", (int)(end - line), line);
    }
    text_release(&left_out);
    return err;
}

/* The knobs and the words of a preset or workload, of which the sweep keeps copies, in place of the user's; *expansion
 * has the strings. */
static enum err expand(struct sweep_expansion *expansion, const char ***words, size_t *count,
                       struct error *why)
{
    if (!args.preset && !args.workload)
        return ERR_OK;
    enum err err = find_expansion(*words, *count, expansion, why);
    if (!err && expansion->knob_count > OPTION_LIST_MAX)
        err = err_set(why, ERR_USAGE, "too many knobs");
    if (err)
        return err;
    args.profile = true;
    args.knobs.count = expansion->knob_count;
    for (size_t i = 0; i < expansion->knob_count; i++)
        args.knobs.items[i] = expansion->knobs[i];
    *words = (const char **)expansion->words;
    *count = expansion->word_count;
    return ERR_OK;
}

static int begin(const char **words, size_t count)
{
    struct sweep sweep = {0};
    struct run_writer writer;
    struct sweep_control *control = NULL;
    struct sweep_expansion expansion = {0};
    struct error why = {0};
    enum err err = expand(&expansion, &words, &count, &why);
    if (!err)
        err = sweep_plan_make(&args, &sweep, words, count, &why);
    int code;
    if (!err && !args.slurm.on)
        err = args.dry_run ? check_plan(&sweep, &why) : take_control(&sweep, true, &control, &why);
    if (err) {
        code = print_err(err, &why);
    } else if (args.dry_run) {
        code = show_plan(&sweep);
    } else if ((err = sweep_create(&sweep, args.output_dir, &writer, &why))) {
        code = print_err(err, &why);
        (void)!sweep_control_end(control, &why); /* nothing was set */
    } else {
        code =
            args.slurm.on ? execute_on_slurm(&sweep, &writer) : execute(&sweep, &writer, control);
        run_writer_close(&writer);
    }
    sweep_release(&sweep);
    sweep_expansion_release(&expansion);
    return code;
}

#define PROFILE_HINT                                                                               \
    "an option of `ipw profile`, which follows --: `ipw sweep --workload yolo --knob size=64,96 "  \
    "-- --model FILE`"

static const struct option_row ROWS[] = {
    TEXT_ROW("workload", args.workload, "NAME",
             "sweep `ipw profile --workload NAME`: knobs are its parameters"),
    TEXT_ROW("preset", args.preset, "NAME",
             "a study: its knobs and options of `ipw profile` (`ipw list studies`)"),
    LIST_ROW("knob", args.knobs, "NAME=VALUES",
             "values of {NAME}: 1,2,4 or 600-1200:150; may be repeated"),
    FLAG_ROW("paired", args.paired, "pair the values by position (default: all combinations)"),
    TEXT_ROW("list", args.list, "FILE",
             "settings from a CSV file: knob names, then one setting per line"),
    CHOICE_ROW("mode", args.mode, "MODE", MODES,
               "custom (--knob, --list), baseline, dvfs (all clocks) or probe"),
    NUMBER_ROW("min-clock", args.min_mhz, "MHZ",
               "lowest clock of modes dvfs and probe (default: 510)", .min = 0, .max = 1e5),
    COUNT_ROW("probes", args.probes, "PROBES",
              "number of initial clocks of mode probe, 3 to 5 (default: 4)",
              .min = SWEEP_PROBES_MIN, .max = SWEEP_PROBES_MAX),
    CHOICE_ROW("objective", args.objective, "OBJECTIVE", OBJECTIVE_NAMES,
               "what mode probe minimizes: energy, edp (default) or ed2p"),
    FLAG_ROW("profile", args.profile,
             "the arguments after -- are options of `ipw profile`, not a command"),
    {.name = "control",
     .type = OPTION_FLAG,
     .target = &args.control,
     .help = "as root, set these knobs on the GPU:"
#define KNOB(constant, name, ...) " " name
#include "core/knob.def"
#undef KNOB
    },
    FLAG_ROW("restore", args.restore, "restore the GPU settings left by a killed sweep, and exit"),
    COUNT_ROW("repeat", args.repeats, "N", "measure each setting N times (default: 1)", .min = 1,
              .max = SWEEP_REPEATS_MAX, .letter = 'r'),
    NUMBER_ROW("until-pct", args.until_pct, "P",
               "repeat a setting until its standard error is P % of its energy", .min = 0.01,
               .max = 100),
    COUNT_ROW("max-repeats", args.max_repeats, "N",
              "at most N times, with --until-pct (default: 10)", .min = 2,
              .max = SWEEP_REPEATS_MAX),
    COUNT_ROW("warmup", args.warmups, "N", "run the command N times unmeasured before each attempt",
              .max = 100000),
    COUNT_ROW("reruns", args.reruns, "N",
              "repeat a throttled or off-target attempt at most N times (default: 2)", .max = 1000),
    NUMBER_ROW("cooldown-c", args.cooldown_c, "C",
               "wait before each attempt until the GPU is at C degrees or less", .min = 0,
               .max = 150),
    NUMBER_ROW("cooldown-min-c", args.cooldown_min_c, "C",
               "if it is colder than C, warm it up with unmeasured runs", .min = 0, .max = 150),
    NUMBER_ROW("cooldown-limit-s", args.cooldown_limit_s, "S",
               "wait or warm up for at most S seconds (default: 600)", .min = 0, .max = 86400),
    NUMBER_ROW("cooldown-s", args.cooldown_s, "S", "wait S seconds between attempts", .min = 0,
               .max = 86400),
    IDLE_OPTION_ROW(args.measure, "measure idle power for S seconds before each attempt", 0.05),
    NUMBER_ROW("seed", args.seed, "N", "random seed of the order (default: from the clock)",
               .min = 0, .max = 4294967295.0),
    TEXT_ROW("output-dir", args.output_dir, "DIR",
             "parent of the sweep's directory (default: runs)"),
    DB_PUSH_OPTION_ROW(args.db),
    TEXT_ROW("resume", args.resume, "SWEEP", "continue the sweep in that directory"),
    FLAG_ROW("retry-failed", args.retry_failed, "with --resume: retry failed attempts"),
    COUNT_ROW("point", args.point, "K",
              "with --resume: measure only setting K, as the elements of --slurm do", .min = 1,
              .max = 100000),
    SLURM_OPTION_ROWS(args.slurm, "measure the settings"),
    FLAG_ROW("dry-run", args.dry_run,
             "print the attempts in order, with their expected time, and exit"),
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_OPTION_ROW(args.output),
    FLAG_ROW("quiet", args.quiet, "no progress lines", .letter = 'q'),
    HINT_ROW("model", PROFILE_HINT),
    HINT_ROW("dataset", PROFILE_HINT),
    HINT_ROW("dataset-param", PROFILE_HINT),
    HINT_ROW("param", PROFILE_HINT),
    HINT_ROW("client-param", PROFILE_HINT),
    HINT_ROW("max-queries", PROFILE_HINT),
    HINT_ROW("grader", PROFILE_HINT),
    MEASURE_OPTION_ROWS(args.measure, "rate"),
    {0},
};

/* Options that would have no effect. */
static int check_given(void)
{
    static const char *const RECORDED[] = {
        "preset",     "knob",        "paired",         "list",           "mode",
        "min-clock",  "probes",      "objective",      "profile",        "control",
        "until-pct",  "max-repeats", "warmup",         "reruns",         "cooldown-c",
        "cooldown-s", "idle",        "seed",           "output-dir",     "devices",
        "sensors",    "sample-rate", "require-energy", "cooldown-min-c", "cooldown-limit-s",
        NULL};
    static const char *const PROBE[] = {"probes", "objective", NULL};
    static const char *const MAX[] = {"max-repeats", NULL};
    bool has_max = option_given(MAX);
    const char *name = args.resume || args.restore ? option_given(RECORDED) : NULL;
    if (args.restore && (name || args.resume))
        return print_error(EXIT_USAGE, "--restore measures nothing: omit --%s",
                           name ? name : "resume");
    if (name)
        return print_error(
            EXIT_USAGE,
            "--resume continues with the options that the sweep was started with: omit "
            "--%s, or start a new sweep",
            name);
    if (args.resume)
        return 0;
    if ((is_known(args.cooldown_min_c) || is_known(args.cooldown_limit_s)) &&
        !is_known(args.cooldown_c))
        return print_error(EXIT_USAGE, "--%s needs --cooldown-c",
                           is_known(args.cooldown_min_c) ? "cooldown-min-c" : "cooldown-limit-s");
    if (args.cooldown_min_c >= args.cooldown_c)
        return print_error(EXIT_USAGE, "--cooldown-min-c must be below --cooldown-c");
    name = option_given(PROBE);
    if (name && !sweep_plan_mode_is(&args, "probe"))
        return print_error(EXIT_USAGE, "--%s is for --mode probe", name);
    if (has_max && !is_known(args.until_pct))
        return print_error(EXIT_USAGE,
                           "--max-repeats needs --until-pct; --repeat N measures N times");
    if (has_max && args.max_repeats < args.repeats)
        return print_error(EXIT_USAGE, "--max-repeats %u is less than --repeat %u",
                           args.max_repeats, args.repeats);
    return 0;
}

static const char *conflict_of_options(void)
{
    bool clocks = sweep_plan_mode_is(&args, "dvfs") || sweep_plan_mode_is(&args, "probe");
    if (args.preset && args.workload)
        return "--preset has its own workload: omit --workload";
    if (args.preset && (args.list || args.paired || !sweep_plan_mode_is(&args, "custom")))
        return "--preset gives the knobs: omit --list, --paired and --mode";
    if (args.list && (args.knobs.count || args.paired || !sweep_plan_mode_is(&args, "custom")))
        return "--list gives all knobs and settings: omit --knob, --paired and --mode";
    if (clocks && !args.control && !args.resume)
        return "modes dvfs and probe set the GPU's clock: give --control, which needs root";
    if (clocks && args.slurm.script_only && !args.resume)
        return "modes dvfs and probe query a node for its clocks, and --slurm-script-only submits "
               "nothing: give the clocks with --knob gpu-clock";
    if (sweep_plan_mode_is(&args, "baseline") && args.control)
        return "mode baseline does not set the GPU: omit --control";
    if (is_known(args.seed) && args.seed != floor(args.seed))
        return "--seed takes a whole number";
    if (args.profile && args.warmups)
        return "--warmup applies to commands: use --warmup-queries after --";
    return NULL;
}

static int check_point(void)
{
    if (!args.resume && (args.point || args.retry_failed))
        return print_error(EXIT_USAGE, "--%s needs --resume SWEEP",
                           args.point ? "point" : "retry-failed");
    static const char *const OF_ALL[] = {"slurm", "dry-run", "repeat", "retry-failed", NULL};
    const char *of_all = args.point ? option_given(OF_ALL) : NULL;
    if (of_all)
        return print_error(EXIT_USAGE, "--point measures one setting: omit --%s", of_all);
    return slurm_command_check(&args.slurm);
}

static int sweep_main(const char **words, size_t count)
{
    int code = check_db(args.db, false) ? EXIT_USAGE : check_given();
    if (code)
        return code;
    if (!args.repeats && !args.resume)
        args.repeats = 1;
    if (args.restore)
        return count ? usage_error("--restore takes no command") : restore();
    secret_add_words((char *const *)words);
    if (!count && !args.resume && !args.preset && !args.workload)
        return usage_error(args.profile ? "missing options of `ipw profile`" : "missing command");
    const char *conflict = conflict_of_options();
    if (conflict)
        return print_error(EXIT_USAGE, "%s", conflict);
    code = check_point();
    if (code)
        return code;
    if (!args.dry_run) /* otherwise a signal terminates it */
        proc_block_signals();
    return args.resume ? resume(words, count) : begin(words, count);
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "measure a command or a profile at every setting of its knobs",
    .usage = "[OPTIONS] -- COMMAND [ARGUMENTS]",
    .details =
        "Each {NAME} in the command is replaced by a value of --knob NAME, without a shell. Every\n"
        "setting is measured by `ipw run` or, with --profile, by `ipw profile`, in random order.\n"
        "A command that fails is recorded with its exit status, and the sweep continues; the exit\n"
        "status of the sweep is then 1.\n\n"
        "--workload NAME sweeps a vision, speech or diffusion model in this process: each knob is "
        "a\n"
        "parameter of it (steps, size, batch ...), or model, dataset or concurrency; arguments "
        "after\n"
        "-- are options of `ipw profile`: `ipw sweep --workload yolo --knob size=64,96`.\n"
        "--preset NAME is a whole study (`ipw list studies`): what it varies, and the options of\n"
        "`ipw profile` that it takes. --knob replaces the values of a knob, and options after --\n"
        "replace its options: `ipw sweep --preset sd-schedulers -- --model DIR`.\n\n"
        "The sweep is a directory with a run for each attempt; `ipw analyze`, `compare`, `plot`\n"
        "and `report` read it. After an interruption or a kill, --resume SWEEP runs the remaining\n"
        "attempts.\n\n"
        "With --control these knobs are set on the GPU for each setting, through its driver:\n"
#define KNOB(constant, name, other_name, what, unit, ...) "  " name ": " what " in " unit "\n"
#include "core/knob.def"
#undef KNOB
        "This needs root, and a GPU whose clocks and power limit are at their defaults. The value\n"
        "`default` leaves a knob unchanged. Knobs are restored at the end, after a signal and, by\n"
        "a watchdog process, after a kill. If control is not permitted, the sweep measures at the\n"
        "GPU's own clocks and prints a warning.\n\n"
        "With --slurm each setting is an element of a Slurm job array (docs/slurm.md). A signal\n"
        "stops the waiting, not the job: --resume SWEEP collects its results, and with --slurm\n"
        "resubmits the settings that were not measured.",
    .rows = ROWS,
    .words = WORDS_APART,
    .run = sweep_main,
};
