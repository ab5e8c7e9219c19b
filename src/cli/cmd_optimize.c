/* ipw optimize: the clock, or another setting, that uses the least energy within limits.
 *
 *   $ ipw optimize --input sweep.csv --clocks clocks.csv --max-slowdown 5
 *   $ ipw optimize model.json --clocks clocks.csv --objective ed2p
 *   $ ipw optimize --input batches.csv --setting batch,precision --quality accuracy --min-quality 95
 *   $ ipw optimize runs/sweep_llama-bench_threads_20261116T060129Z
 *
 * It recommends and prints the command; it never changes a clock. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/json_field.h"
#include "core/params.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "power/clock_choice.h"
#include "power/clock_list.h"
#include "power/optimize_result.h"
#include "power/sweep_points.h"
#include "report/text/power_report.h"
#include "runner/sweep.h"

/* Limits of well-known workloads: slowdown, and clock relative to fmax. */
static const struct preset {
    const char *name;
    double slowdown, clock;
} PRESETS[] = {{"llama", 0.05, 0.85},
               {"vit", 0.20, 0.70},
               {"sd", 0.10, 0.80},
               {"whisper", 0.15, 0.75},
               {"lstm", 0.15, 0.75}};

static struct optimize_command {
    struct power_options data;
    const char *model, *objective, *preset;
    const char *application;
    const char *settings, *quality, *quality_better, *baseline, *policy;
    const char *percentile; /* for latency SLOs */
    double exponent;
    double limits[OPTIMIZE_LIMITS]; /* as given: in percent, latencies in milliseconds */
    bool is_quality_falling;
    struct format_options format;
} args = {.objective = "edp",
          .policy = "mean",
          .exponent = UNKNOWN,
          .percentile = "p95",
          .limits = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN,
                     UNKNOWN, UNKNOWN}};

/* State of the command. */
struct optimize_state {
    const struct optimize_command *command;
    struct optimize_goal goal;
    struct freq_data data;     /* from --input, or from a sweep over clocks */
    struct sweep_points sweep; /* from a sweep over other knobs */
    struct text apply;         /* command that applies the setting of a sweep; "": sets the clock */
    struct clock_list clocks;  /* for a model from a file */
    struct freq_model model;
    struct clock_choice *choices;
    size_t count;
    struct clock_policy *policies;
    size_t policy_count;
    const char *source;
};

static void set_goal(struct optimize_state *o)
{
    const struct optimize_command *c = o->command;
    o->goal = optimize_goal_edp();
    o->goal.time_exponent = known_or(c->exponent, objective_exponent(c->objective));
    const struct preset *preset = STR_FIND(c->preset, PRESETS);
    if (preset) {
        o->goal.limits[LIMIT_SLOWDOWN] = preset->slowdown;
        o->goal.limits[LIMIT_CLOCK] = preset->clock;
    }
    for (unsigned i = 0; i < OPTIMIZE_LIMITS; i++) {
        bool is_percent = i == LIMIT_SLOWDOWN || i == LIMIT_QUALITY || i == LIMIT_CLOCK;
        double divisor = 1;
        if (is_percent)
            divisor = 100;
        else if (optimize_limit_is_latency(i))
            divisor = 1e3;
        if (is_known(c->limits[i]))
            o->goal.limits[i] = c->limits[i] / divisor;
    }
    o->goal.slo_quantile = c->percentile[0] == 'p' ? strtod(c->percentile + 1, NULL) / 100 : 0;
    o->goal.is_quality_falling =
        c->is_quality_falling || (c->quality_better && str_equal(c->quality_better, "lower"));
}

static enum policy_rule policy_rule(const struct optimize_command *c)
{
    return str_equal(c->policy, "minimax") ? POLICY_MINIMAX : POLICY_MEAN;
}

/* --quality may be a file; otherwise a column, or a figure of a sweep's runs. */
static const char *quality_file(const struct optimize_command *c)
{
    return c->quality && file_is_regular(c->quality) ? c->quality : NULL;
}

static void ensure_capacity(struct optimize_state *o, size_t count)
{
    o->choices = xcalloc(count + 1, sizeof *o->choices);
    o->policies = xcalloc(count + 1, sizeof *o->policies);
}

static bool is_selected(const struct optimize_state *o, const struct freq_curve *curve)
{
    const char *wanted = o->command->application;
    return !wanted || str_equal_nocase(curve->application, wanted);
}

/* ---- from measurements ---- */

static enum err choose_measured(struct optimize_state *o, const char *void_because,
                                struct error *why)
{
    const struct optimize_command *c = o->command;
    const struct freq_curves *curves = &o->data.curves;
    enum err err = power_options_read(&c->data, &o->data, why);
    if (!err)
        err = freq_model_fit(&o->model, c->model ? c->model : "roofline", curves,
                             &(struct freq_model_options){.seed = 1}, why);
    if (!err)
        ensure_capacity(o, curves->count);
    for (size_t i = 0; !err && i < curves->count; i++) {
        const struct freq_curve *curve = &curves->items[i];
        struct clock_question question = {.curve = curve,
                                          .model = &o->model,
                                          .is_always_fitted = c->model != NULL,
                                          .data = &o->data,
                                          .clocks = &o->data.clocks,
                                          .lowest_mhz =
                                              curve->count ? curve->samples[0].freq_mhz : UNKNOWN,
                                          .void_because = void_because,
                                          .goal = o->goal};
        if (is_selected(o, curve))
            err = clock_choice_of(&question, &o->choices[o->count++], why);
    }
    return err;
}

/* ---- from a model ---- */

/* Whether a list "A, B" contains the name. */
static bool lists_application(const char *list, const char *gpu, const char *application)
{
    char name[128];
    chars_format(name, "%s %s", gpu, application);
    for (const char *at = list; at && *at;) {
        const char *end = strstr(at, ", ");
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (length == strlen(name) && strncmp(at, name, length) == 0)
            return true;
        at = end ? end + 2 : NULL;
    }
    return false;
}

static enum err choose_modeled(struct optimize_state *o, const char *path, struct error *why)
{
    const struct optimize_command *c = o->command;
    struct freq_curve curve;
    struct clock_question question = {.curve = &curve, .model = &o->model, .clocks = &o->clocks};
    size_t applications = 0;
    o->source = path;
    question.goal = o->goal;
    if (sweep_of_run(path))
        return err_set(why, ERR_BAD_VALUE, "not a sweep, but one run of it: give %.*s",
                       (int)sweep_of_run(path), path);
    if (file_is_directory(path))
        return err_set(why, ERR_BAD_VALUE,
                       "%s is not a readable sweep; a directory of GPU logs is given with --input",
                       path);
    if (!file_is_regular(path))
        return err_set(why, ERR_NOT_FOUND, "%s: no such file or directory", path);
    enum err err = freq_model_load(&o->model, path, why);
    if (!err && !c->data.clocks)
        err = err_set(why, ERR_USAGE,
                      "a model does not list the supported clocks: give --clocks FILE");
    if (!err)
        err = clock_list_read(&o->clocks, c->data.clocks, why);
    if (!err && !o->model.kind->application)
        err = err_set(why, ERR_BAD_VALUE,
                      "%s: %s predicts from activities of an application, which its file does not "
                      "keep: give measurements, --input FILE --model %s, or fit roofline",
                      path, o->model.kind->name, o->model.kind->name);
    while (!err &&
           o->model.kind->application(o->model.state, applications, &curve, &question.lowest_mhz))
        applications++;
    if (!err)
        ensure_capacity(o, applications);
    for (size_t i = 0; !err && i < applications; i++) {
        (void)o->model.kind->application(o->model.state, i, &curve, &question.lowest_mhz);
        if (!is_selected(o, &curve) || (c->data.gpu && !str_equal_nocase(c->data.gpu, curve.gpu)))
            continue;
        if (!clock_list_has(&o->clocks, curve.gpu))
            return err_set(why, ERR_NO_DATA, "%s: no clocks of GPU '%.40s'", c->data.clocks,
                           curve.gpu);
        question.void_because =
            lists_application(o->model.provenance.invalid, curve.gpu, curve.application)
                ? "its data checks found the GPU idle"
                : NULL;
        err = clock_choice_of(&question, &o->choices[o->count++], why);
    }
    return err;
}

/* ---- from settings other than clocks ---- */

static enum err choose_setting(struct optimize_state *o, struct error *why)
{
    const struct optimize_command *c = o->command;
    struct params columns = {0}, where = {0};
    struct setting_points points = {0};
    if (c->data.inputs.count != 1)
        return err_set(why, ERR_USAGE, "--setting needs one --input FILE");
    enum err err = power_options_pairs(&c->data, &columns, &where, why);
    if (!err)
        err = setting_points_read(&(struct setting_source){c->data.inputs.items[0], c->settings,
                                                           quality_file(c) ? NULL : c->quality,
                                                           &columns, &where},
                                  &points, why);
    if (!err && quality_file(c))
        err = setting_points_add_quality(quality_file(c), &points, why);
    if (!err && points.left_out)
        print_error(0, "warning: %zu rows without a positive energy and time are skipped",
                    points.left_out);
    size_t baseline = c->baseline ? setting_points_find(&points, c->baseline) : 0;
    if (!err && baseline == points.count)
        err = err_set(why, ERR_USAGE, "--baseline: no setting '%.60s'", c->baseline);
    ensure_capacity(o, 1);
    if (!err)
        err = clock_choice_of_settings(points.items, points.count, baseline, &o->goal, NULL,
                                       &o->choices[o->count++], why);
    else
        free(points.items);
    params_release(&columns);
    params_release(&where);
    return err;
}

/* ---- from a sweep ---- */

/* nvidia-smi for one knob of the GPU; none for the value `default`. */
static void write_gpu_knob(struct optimize_state *o, enum gpu_knob knob,
                           const struct setting *setting)
{
    const char *gpus = sweep_points_gpus(&o->sweep);
    if (setting->kind == SETTING_DEFAULT)
        return;
    text_addf(&o->apply, "%ssudo nvidia-smi ", o->apply.length ? " && " : "");
    if (gpus)
        text_addf(&o->apply, "-i %s ", gpus);
    text_addf(&o->apply, "%s %s", knob_of(knob)->smi_option, setting->text);
    if (knob_of(knob)->is_range)
        text_addf(&o->apply, ",%s", setting->text);
}

/* The command for the operator: nvidia-smi for the knobs of the GPU, the command of the sweep for the others. */
static void write_apply(struct optimize_state *o, size_t point)
{
    const struct sweep *sweep = &o->sweep.sweep;
    bool others = false;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        enum gpu_knob knob = sweep_points_gpu_knob(&o->sweep, k);
        if (knob != KNOB_COUNT)
            write_gpu_knob(o, knob, &sweep_point(sweep, point)[k]);
        others |= knob == KNOB_COUNT;
    }
    char **words = others ? sweep_words(sweep, point) : NULL;
    if (words)
        text_addf(&o->apply, "%s%s", o->apply.length ? " && " : "",
                  sweep->profile ? "ipw profile " : "");
    for (size_t i = 0; words && words[i]; i++) {
        text_add(&o->apply, i ? " " : "");
        text_add_shell(&o->apply, words[i]);
    }
    sweep_free_words(words);
}

/* Whether lower is better is known of a metric, unless the user overrides it. */
static enum err choose_quality(struct optimize_state *o, struct error *why)
{
    const struct optimize_command *c = o->command;
    struct sweep_points *sweep = &o->sweep;
    struct text known = {0};
    if (quality_file(c))
        return ERR_OK;
    size_t chosen = c->quality ? sweep_points_quality(sweep, c->quality) : sweep->quality;
    for (size_t i = 0; i < sweep->quality_count && chosen == sweep->quality_count; i++)
        text_addf(&known, "%s, ", plain_text(sweep->qualities[i].name).text);
    enum err err = ERR_OK;
    if (chosen == sweep->quality_count)
        err = err_set(why, ERR_USAGE, "--quality %.60s: expected %sor a file", c->quality,
                      text_get(&known));
    else
        sweep->quality = chosen;
    if (!err && !c->quality_better)
        o->goal.is_quality_falling |= sweep->qualities[chosen].is_lower_better;
    text_release(&known);
    return err;
}

/* Clocks alone are fitted; other knobs, and limits on quality or latency, are chosen among the measured settings. */
static enum err choose_swept(struct optimize_state *o, const char *directory, struct error *why)
{
    struct optimize_command *c = &args;
    struct params columns = {0}, where = {0};
    enum err err = sweep_points_load(directory, &o->sweep, why);
    if (!err)
        err = choose_quality(o, why);
    if (!err && optimize_has_slo(&o->goal))
        err = sweep_choice_latencies(&o->sweep, directory, &o->goal, why);
    if (err)
        return err;
    if (sweep_points_is_estimated(&o->sweep))
        print_error(0, "warning: the energy of this sweep is estimated, not measured");
    if ((sweep_points_is_fitted(&o->sweep) || c->data.columns.count) && !c->baseline &&
        !c->quality && !is_known(c->limits[LIMIT_QUALITY]) && !optimize_has_slo(&o->goal)) {
        c->data.inputs = (struct option_list){{directory}, 1};
        c->data.sweep = &o->sweep;
        err = choose_measured(o, sweep_points_void(&o->sweep), why);
        for (size_t i = 0; !err && i < o->count; i++)
            sweep_choice_note(&o->sweep, &o->choices[i], i ? NULL : &o->data.findings);
        return err;
    }
    err = power_options_pairs(&c->data, &columns, &where, why);
    ensure_capacity(o, 1);
    if (!err)
        err = sweep_choice_of_settings(
            &(struct sweep_question){&o->sweep, &o->goal, &where, c->baseline, quality_file(c)},
            &o->choices[o->count++], &o->data.findings, why);
    if (!err && o->choices->is_recommended)
        write_apply(o, o->choices->points[o->choices->optimum.best].point);
    params_release(&columns);
    params_release(&where);
    return err;
}

/* ---- the command ---- */

static int report(const struct optimize_state *o)
{
    const struct optimize_command *c = o->command;
    struct optimize_result from = {
        .objective = is_known(c->exponent) ? "energy_time_power" : c->objective,
        .goal = &o->goal,
        .choices = o->choices,
        .count = o->count,
        .policies = o->policies,
        .policy_count = o->policy_count,
        .rule = policy_rule(c),
        .findings = o->source || c->settings ? NULL : &o->data.findings,
        .source = o->source,
        .apply = o->apply.length ? text_get(&o->apply) : NULL,
        .gpus = sweep_points_gpus(&o->sweep),
    };
    struct result result = {0};
    optimize_result_fill(&from, &result);
    return deliver_chosen(NULL, &result, &c->format, &OPTIMIZE_VIEWS);
}

static const char *wrong_usage(const struct optimize_command *c, size_t words, bool sweep)
{
    if (words > 1 || (words && c->data.inputs.count))
        return "give one sweep or model, or --input";
    if (sweep && c->settings)
        return "the knobs of a sweep are its settings: omit --setting";
    if (c->is_quality_falling && c->quality_better && str_equal(c->quality_better, "higher"))
        return "--lower-is-better contradicts --quality-better higher";
    if (words && c->settings)
        return "--setting needs --input";
    if (!words && !c->data.inputs.count)
        return "missing measurements: give a sweep, --input FILE or a model of `ipw power fit`";
    if (!sweep && !c->settings && (c->quality || c->baseline || is_known(c->limits[LIMIT_QUALITY])))
        return "--quality, --min-quality and --baseline need a sweep or --setting COLUMNS: a clock "
               "does not change the answers";
    if (c->settings && is_known(c->limits[LIMIT_QUALITY]) && !c->quality)
        return "--min-quality needs --quality COLUMN or FILE";
    for (unsigned i = LIMIT_LATENCY; !sweep && i < LIMIT_QUALITY; i++)
        if (is_known(c->limits[i]))
            return "a latency SLO needs a sweep of profiles: other sweeps have no query latency "
                   "(--max-time limits their time)";
    if (words && !sweep && c->model)
        return "--model: the file already is a model";
    return NULL;
}

/* A file that is not a model is measurements, as for `ipw power fit`.  Returns the number of remaining words. */
static size_t take_input(const char **words, size_t count)
{
    size_t length = count ? strlen(words[0]) : 0;
    bool is_model = length > 5 && str_equal_nocase(words[0] + length - 5, ".json");
    if (count != 1 || args.data.inputs.count || is_model || !file_is_regular(words[0]))
        return count;
    args.data.inputs = (struct option_list){{words[0]}, 1};
    return 0;
}

/* --input SWEEP, alone, is the same as SWEEP.  NULL: none. */
static const char *named_sweep(const char **words, size_t count)
{
    const char *named = count ? words[0] : NULL;
    if (!count && args.data.inputs.count == 1)
        named = args.data.inputs.items[0];
    return named && sweep_points_is(named) ? named : NULL;
}

/* None was chosen: --application named none of the measured ones. */
static enum err refuse_application(const struct optimize_state *o, struct error *why)
{
    const struct freq_curves *curves = &o->data.curves;
    struct text known = {0};
    for (size_t i = 0; i < curves->count; i++) {
        const char *name = curves->items[i].application;
        size_t first = 0; /* of that name: another GPU has run it, too */
        while (!str_equal(curves->items[first].application, name))
            first++;
        if (first == i)
            text_addf(&known, "%s%s", known.length ? ", " : "", name);
    }
    enum err err = err_set(why, ERR_NOT_FOUND, "no application '%.60s'%s%s%s",
                           text_or_empty(o->command->application), known.length ? " (known: " : "",
                           text_get(&known), known.length ? ")" : "");
    text_release(&known);
    return err;
}

static int optimize_main(const char **words, size_t count)
{
    struct optimize_state o = {.command = &args};
    struct error why = {0};
    count = take_input(words, count);
    const char *sweep = named_sweep(words, count);
    const char *wrong = wrong_usage(&args, count, sweep);
    if (wrong)
        return usage_error(wrong);
    set_goal(&o);
    enum err err;
    if (sweep)
        err = choose_swept(&o, sweep, &why);
    else if (count)
        err = choose_modeled(&o, words[0], &why);
    else if (args.settings)
        err = choose_setting(&o, &why);
    else
        err = choose_measured(&o, NULL, &why);
    if (!err && o.count == 0)
        err = refuse_application(&o, &why);
    if (!err && !args.settings && !o.apply.length)
        o.policy_count =
            clock_policies_of(o.choices, o.count, &o.goal, policy_rule(&args), o.policies);
    int code = err ? print_err(err, &why) : report(&o);
    for (size_t i = 0; i < o.count; i++)
        clock_choice_release(&o.choices[i]);
    free(o.choices);
    free(o.policies);
    freq_model_release(&o.model);
    clock_list_release(&o.clocks);
    freq_data_release(&o.data);
    sweep_points_release(&o.sweep);
    text_release(&o.apply);
    return code;
}

static const char *const PRESET_NAMES[] = {"llama", "vit", "sd", "whisper", "lstm", NULL};
static const char *const PERCENTILES[] = {"mean", "p50", "p95", "p99", NULL};
static const char *const POLICIES[] = {"mean", "minimax", NULL};
static const char *const BETTER[] = {"lower", "higher", NULL};

static const struct option_row ROWS[] = {
    POWER_OPTION_ROWS(args.data),
    TEXT_ROW("application", args.application, "NAME", "one application only"),
    TEXT_ROW("model", args.model, "NAME",
             "kind of model (default: roofline; below 8 clocks, as measured)", .letter = 'm'),
    CHOICE_ROW("objective", args.objective, "OBJECTIVE", OBJECTIVE_NAMES,
               "energy, edp or ed2p (default: edp)"),
    NUMBER_ROW("time-exponent", args.exponent, "N", "minimize energy x time^N instead", .min = 0,
               .max = 10),
    NUMBER_ROW("max-slowdown", args.limits[LIMIT_SLOWDOWN], "PERCENT",
               "maximum slowdown relative to the fit at the highest clock", .min = 0, .max = 1e6),
    NUMBER_ROW("max-time", args.limits[LIMIT_TIME], "SECONDS", "maximum time of the work",
               .min = 1e-9, .max = 1e9),
    NUMBER_ROW("slo-ttft-ms", args.limits[LIMIT_LATENCY + LATENCY_TTFT], "MS",
               "SLO on time to first token; SLOs need a sweep of profiles", .min = 1e-3,
               .max = 1e7),
    NUMBER_ROW("slo-itl-ms", args.limits[LIMIT_LATENCY + LATENCY_ITL], "MS",
               "SLO on inter-token latency", .min = 1e-3, .max = 1e7),
    NUMBER_ROW("slo-tpot-ms", args.limits[LIMIT_LATENCY + LATENCY_TPOT], "MS",
               "SLO on time per output token (TPOT)", .min = 1e-3, .max = 1e7),
    NUMBER_ROW("slo-latency-ms", args.limits[LIMIT_LATENCY + LATENCY_QUERY], "MS",
               "SLO on the latency of a query", .min = 1e-3, .max = 1e9),
    CHOICE_ROW("slo-percentile", args.percentile, "PCTL", PERCENTILES,
               "percentile of the SLOs: p50, p95, p99 or mean (default: p95)"),
    NUMBER_ROW("max-power", args.limits[LIMIT_POWER], "WATTS", "maximum mean power of the work",
               .min = 1e-3, .max = 1e7),
    NUMBER_ROW("max-temperature", args.limits[LIMIT_TEMPERATURE], "C",
               "maximum temperature in °C; needs measured temperatures", .min = 1, .max = 200),
    NUMBER_ROW("min-clock", args.limits[LIMIT_CLOCK], "PERCENT",
               "lowest clock allowed, in percent of the highest", .min = 0, .max = 100),
    CHOICE_ROW("preset", args.preset, "WORKLOAD", PRESET_NAMES,
               "limits for llama, vit, sd, whisper or lstm"),
    TEXT_ROW("setting", args.settings, "COLUMNS",
             "choose among the measured settings given by these columns"),
    TEXT_ROW("baseline", args.baseline, "SETTING",
             "reference for savings and quality (default: the first)"),
    TEXT_ROW("quality", args.quality, "NAME",
             "quality of a setting: a column, a metric of the runs, or a CSV file"),
    CHOICE_ROW("quality-better", args.quality_better, "WHICH", BETTER,
               "lower or higher (default: that of the metric, else higher)"),
    NUMBER_ROW("min-quality", args.limits[LIMIT_QUALITY], "PERCENT",
               "minimum quality, in percent of the baseline's", .min = 0, .max = 1000),
    FLAG_ROW("lower-is-better", args.is_quality_falling,
             "same as --quality-better lower: perplexity, FID, LPIPS"),
    CHOICE_ROW("policy", args.policy, "RULE", POLICIES,
               "one clock for all: minimize mean or max. regret (default: mean)"),
    REPORT_FORMAT_OPTION_ROWS(args.format),
    {0},
};

const struct command command_optimize = {
    .name = "optimize",
    .summary = "find the setting that uses the least energy",
    .usage = "[SWEEP | MODEL.json | FILE] [--input FILE] [OPTIONS]",
    .details =
        "Chooses the clock with the least energy, EDP or ED2P within the limits, for every\n"
        "application of the measurements or of a model of `ipw power fit`, and one clock for all;\n"
        "or the best setting of a sweep (`ipw sweep`), whatever its knobs are, with the accuracy\n"
        "of its answers as quality. SWEEP is the directory of a sweep, MODEL.json a model, FILE a\n"
        "CSV with a row per measurement: its clock, time, and power or energy.\n\n"
        "Savings are relative to the fit at the highest clock, never to its measured row; for\n"
        "other knobs, to --baseline. Prints the command that applies the setting, and never runs\n"
        "it.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .run = optimize_main,
};
