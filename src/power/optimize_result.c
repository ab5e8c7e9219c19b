/* Fills the result of `ipw optimize`, in the order of its JSON: one application is the result itself, several are a
 * list.  What its views and its CSV need besides is set aside: the answer in words, the SLOs, the flags in one text. */
#include "power/optimize_result.h"

#include <math.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "power/data_checks.h"
#include "power/optimize.h"
#include "power/power_result.h"

enum { NAME_MAX_BYTES = 120, COMMAND_MAX = 1024 };

static const struct optimize_point *best_of(const struct clock_choice *choice)
{
    return choice->is_recommended ? &choice->points[choice->optimum.best] : NULL;
}

static double product_at(const struct optimize_point *point, double exponent)
{
    struct optimize_goal goal = {.time_exponent = exponent};
    return point ? optimize_objective(&goal, point) : UNKNOWN;
}

/* ---- in words ---- */

/* How to find out whether a difference is significant. */
#define NOISE(sweep) "cannot be distinguished from noise (no repeats: `" sweep "--repeat 3`)"

static const char *setting_of(const struct optimize_point *point, char *to)
{
    if (point->setting[0])
        return point->setting;
    str_format(to, NAME_MAX_BYTES, "%g MHz", point->freq_mhz);
    return to;
}

/* "50.0 ± 1.0 %" */
static void add_saving(const struct clock_choice *choice, int digits, struct text *out)
{
    text_addf(out, "%.*f", digits, 100 * fabs(choice->saving));
    if (is_known(choice->saving_error))
        text_addf(out, " ± %.*f", digits, 100 * choice->saving_error);
    text_add(out, " %");
}

void optimize_saving_sentence(const struct clock_choice *choice, const char *per, struct text *out)
{
    static const char ONE_RUN[] = ": one run each, which " NOISE("") ".";
    const char *baseline =
        choice->baseline.setting[0] ? choice->baseline.setting : "the highest clock measured";
    bool is_noise = choice->flags & CHOICE_NO_REPEATS;
    char setting[NAME_MAX_BYTES];
    text_addf(out, "%s %s ", setting_of(best_of(choice), setting), is_noise ? "used" : "uses");
    if (choice->flags & CHOICE_STAY) {
        text_addf(out, "the least energy per %s%s", per,
                  is_noise ? ONE_RUN : ": no other setting that was measured saves any.");
        return;
    }
    add_saving(choice, 1, out);
    text_addf(out, " %s energy per %s than %s, in %.1f %% %s time",
              choice->saving < 0 ? "more" : "less", per, baseline, 100 * fabs(choice->slowdown),
              choice->slowdown < 0 ? "less" : "more");
    if (is_noise)
        text_add(out, ONE_RUN);
    else
        text_add(out, is_known(choice->saving_error) ? "." : " (± unknown).");
}

/* "EDP", "energy × time^1.5" */
static const char *objective_title(const struct optimize_goal *goal, char *to)
{
    static const char *const TITLES[] = {"energy", "EDP", "ED²P"};
    for (size_t n = 0; n < COUNT_OF(TITLES); n++)
        if (goal->time_exponent == (double)n)
            return TITLES[n];
    str_format(to, NAME_MAX_BYTES, "energy × time^%g", goal->time_exponent);
    return to;
}

/* "measured 28 % less energy than threads=1", "saves 28 ± 3 % energy against threads=1" */
static void add_brief_saving(const struct clock_choice *choice, struct text *out)
{
    bool is_noise = choice->flags & CHOICE_NO_REPEATS, is_less = choice->saving >= 0;
    const char *baseline = choice->baseline.setting;
    if (is_noise)
        text_add(out, "measured ");
    else
        text_add(out, is_less ? "saves " : "costs ");
    add_saving(choice, choice->saving_error >= 0.01 ? 0 : 1, out);
    if (is_noise)
        text_add(out, is_less ? " less" : " more");
    text_add(out, " energy");
    if (!is_noise && !is_known(choice->saving_error))
        text_add(out, " (± unknown)");
    if (baseline[0])
        text_addf(out, " %s %s", is_noise ? "than" : "against", baseline);
}

/* The same in brief, with the objective: "1005 MHz saves 28 ± 3 % energy, 1.0 % slower (EDP)". */
static void add_answer(const struct clock_choice *choice, const struct optimize_goal *goal,
                       struct text *out)
{
    const struct optimize_point *best = best_of(choice);
    char title[NAME_MAX_BYTES], setting[NAME_MAX_BYTES];
    text_add(out, setting_of(best, setting));
    if (best->is_predicted)
        text_add(out, " (predicted, not measured)");
    if (choice->flags & CHOICE_STAY) {
        text_addf(out, ", %s, is the best",
                  best->setting[0] ? "the baseline" : "the highest clock measured");
    } else {
        text_add(out, " ");
        add_brief_saving(choice, out);
        text_addf(out, ", %.1f %% %s", 100 * fabs(choice->slowdown),
                  choice->slowdown < 0 ? "less time" : "slower");
    }
    text_addf(out, " (%s)", objective_title(goal, title));
    if (choice->flags & CHOICE_NO_REPEATS)
        text_add(out, ": " NOISE("ipw sweep "));
}

/* ---- commands that apply a setting ---- */

/* nvidia-smi for the measured GPUs, with this option. */
static const char *nvidia_smi(const struct optimize_result *from, const char *option, char *to)
{
    str_format(to, COMMAND_MAX, "sudo nvidia-smi %s%s%s%s", from->gpus ? "-i " : "",
               text_or_empty(from->gpus), from->gpus ? " " : "", option);
    return to;
}

/* NULL if the setting is not a clock. */
static const char *command_of(const struct optimize_result *from, double mhz, char *to)
{
    char option[80];
    chars_format(option, "-lgc %.0f,%.0f", mhz, mhz);
    return is_known(mhz) ? nvidia_smi(from, option, to) : NULL;
}

/* NULL if there is nothing to run. */
static const char *apply_of(const struct optimize_result *from, const struct clock_choice *choice,
                            char *to)
{
    if (choice->flags & CHOICE_STAY)
        return NULL;
    return from->apply ? from->apply : command_of(from, best_of(choice)->freq_mhz, to);
}

/* How to undo it; NULL if it is not a clock of the GPU. */
static const char *undo_of(const struct optimize_result *from, const char *apply, char *to)
{
    if (!apply || !str_starts(apply, "sudo nvidia-smi "))
        return NULL;
    if (strstr(apply, " -lgc "))
        return nvidia_smi(from, "-rgc", to);
    return strstr(apply, " -lmc ") ? nvidia_smi(from, "-rmc", to) : NULL;
}

/* ---- one application ---- */

/* Null without an SLO. */
static void put_latencies(struct result *result, const struct optimize_goal *goal,
                          const struct optimize_point *point)
{
    if (!optimize_has_slo(goal)) {
        result_null(result, "latency_s");
        return;
    }
    result_group(result, "latency_s");
    result_number(result, "percentile", goal->slo_quantile > 0 ? 100 * goal->slo_quantile : UNKNOWN,
                  "");
    result_number(result, "queries", point->queries, "");
    for (unsigned i = 0; i < OPTIMIZE_LATENCIES; i++)
        if (is_known(goal->limits[LIMIT_LATENCY + i]))
            power_result_value(result, optimize_latency_name((enum optimize_latency)i),
                               &point->latency[i], "s");
    result_end(result);
}

static void put_point(struct result *result, const struct optimize_goal *goal,
                      const struct optimize_point *point)
{
    result_number(result, "freq_mhz", point->freq_mhz, "MHz");
    result_text(result, "setting", str_or_null(point->setting));
    power_result_figures(result, point->figures);
    put_latencies(result, goal, point);
    result_number(result, "quality", point->quality, "");
    result_number(result, "temperature_c", point->temperature_c, "°C");
    result_flag(result, "extrapolated", point->is_extrapolated);
    result_flag(result, "predicted", point->is_predicted);
}

static void put_recommended(struct result *result, const struct optimize_result *from,
                            const struct clock_choice *choice)
{
    char command[COMMAND_MAX], undo[COMMAND_MAX];
    const struct optimize_point *best = best_of(choice);
    if (!best) {
        result_null(result, "recommended");
        return;
    }
    const char *apply = apply_of(from, choice, command);
    result_group(result, "recommended");
    put_point(result, from->goal, best);
    result_text(result, "command", apply);
    result_text(result, "undo", undo_of(from, apply, undo));
    result_end(result);
}

static void put_certainty(struct result *result, const struct clock_choice *choice)
{
    const struct optimize_point *best = best_of(choice);
    bool is_noise = choice->flags & CHOICE_NO_REPEATS && !(choice->flags & CHOICE_STAY);
    result_group(result, "savings_pct");
    result_number(result, "energy", is_noise ? UNKNOWN : 100 * choice->saving, "");
    /* Not significant without repeats. */
    result_number(result, "measured", 100 * choice->saving, "");
    result_number(result, "plus_minus", 100 * choice->saving_error, "");
    result_number(result, "level", FREQ_LEVEL, "%");
    result_text(result, "method", choice->error_method);
    result_end(result);
    result_number(result, "slowdown_pct", 100 * choice->slowdown, "");
    result_number(result, "edp", product_at(best, 1), "J·s");
    result_number(result, "ed2p", product_at(best, 2), "J·s²");
    result_number(result, "objective_value", best ? choice->optimum.objective : UNKNOWN, "");
    result_group(result, "regret_pct");
    result_number(result, "mean", 100 * choice->regret_mean, "");
    result_number(result, "max", 100 * choice->regret_max, "");
    result_count(result, "refits", choice->refits);
    result_end(result);
    result_group(result, "sensitivity");
    result_number(result, "within_pct", 100 * OPTIMIZE_FLAT, "");
    result_number(result, "low_mhz", best ? choice->optimum.low_mhz : UNKNOWN, "MHz");
    result_number(result, "high_mhz", best ? choice->optimum.high_mhz : UNKNOWN, "MHz");
    result_end(result);
}

static void put_front(struct result *result, const struct clock_choice *choice)
{
    result_list(result, "pareto");
    for (size_t i = 0; i < choice->count; i++) {
        const struct optimize_point *point = &choice->points[i];
        if (!point->is_front)
            continue;
        result_group(result, NULL);
        result_number(result, "freq_mhz", point->freq_mhz, "MHz");
        result_text(result, "setting", str_or_null(point->setting));
        result_number(result, "energy_j", point->figures[FREQ_ENERGY_J].value, "J");
        result_number(result, "time_s", point->figures[FREQ_TIME_S].value, "s");
        result_number(result, "power_w", point->figures[FREQ_POWER_W].value, "W");
        result_number(result, "edp", product_at(point, 1), "J·s");
        result_number(result, "ed2p", product_at(point, 2), "J·s²");
        result_number(result, "quality", point->quality, "");
        result_end(result);
    }
    result_end(result);
}

static void put_binding(struct result *result, const struct clock_choice *choice)
{
    result_list(result, "binding");
    for (unsigned i = 0; choice->is_recommended && i < OPTIMIZE_LIMITS; i++)
        if (choice->optimum.binding & 1u << i)
            result_text(result, NULL, optimize_limit_name((enum optimize_limit)i));
    result_end(result);
}

static void put_thermal(struct result *result, const struct thermal_fit *thermal)
{
    if (!is_known(thermal->resistance_c_per_w)) {
        result_null(result, "thermal");
        return;
    }
    result_group(result, "thermal");
    result_number(result, "resistance_c_per_w", thermal->resistance_c_per_w, "°C/W");
    result_number(result, "ambient_c", thermal->ambient_c, "°C");
    result_count(result, "measurements", thermal->count);
    result_end(result);
}

static void put_flag(void *context, const char *name)
{
    result_text(context, NULL, name);
}

static void add_flag(void *context, const char *name)
{
    struct text *names = context;
    text_addf(names, "%s%s", names->length ? " " : "", name);
}

/* The SLOs by the names of their latencies. */
static void put_slo(struct result *result, const struct optimize_goal *goal)
{
    result_group(result, "slo_s");
    for (unsigned i = 0; i < OPTIMIZE_LATENCIES; i++)
        result_optional_number(result, optimize_latency_name((enum optimize_latency)i),
                               goal->limits[LIMIT_LATENCY + i], "s");
    result_end(result);
}

static void put_view(struct result *result, const struct optimize_result *from,
                     const struct clock_choice *choice)
{
    struct text flags = {0}, answer = {0};
    clock_choice_flags(choice, add_flag, &flags);
    if (choice->is_recommended)
        add_answer(choice, from->goal, &answer);
    else
        text_addf(&answer, "%s%s",
                  choice->flags & CHOICE_NO_OPTIMUM ? "no meaningful optimum: " : "",
                  choice->reason);
    result_aside(result, "view");
    result_text(result, "answer", text_get(&answer));
    result_text(result, "flags", text_get(&flags));
    put_slo(result, from->goal);
    result_end(result);
    text_release(&flags);
    text_release(&answer);
}

static void put_choice(struct result *result, const struct optimize_result *from,
                       const struct clock_choice *choice)
{
    result_text(result, "objective", from->objective);
    result_text(result, "gpu", str_or_null(choice->gpu));
    result_text(result, "application", str_or_null(choice->application));
    put_recommended(result, from, choice);
    result_text(result, "reason", str_or_null(choice->reason));
    result_group(result, "baseline");
    put_point(result, from->goal, &choice->baseline);
    result_flag(result, "fitted", choice->model != NULL);
    result_end(result);
    put_certainty(result, choice);
    put_front(result, choice);
    put_binding(result, choice);
    put_thermal(result, &choice->thermal);
    result_list(result, "flags");
    clock_choice_flags(choice, put_flag, result);
    result_end(result);
    result_group(result, "models");
    result_text(result, "name", choice->model ? choice->model : "measured");
    result_count(result, "clocks_measured", choice->measured);
    result_count(result, "settings", choice->count);
    result_text(result, "file", from->source);
    result_end(result);
    put_view(result, from, choice);
}

/* ---- one clock for several applications ---- */

static void put_effect(struct result *result, const char *application,
                       const struct clock_effect *effect)
{
    result_group(result, NULL);
    result_text(result, "application", application);
    result_number(result, "savings_pct", 100 * effect->saving, "");
    result_number(result, "plus_minus", 100 * effect->saving_error, "");
    result_number(result, "slowdown_pct", 100 * effect->slowdown, "");
    result_number(result, "regret_pct", 100 * effect->regret, "");
    result_end(result);
}

static void put_policy(struct result *result, const struct optimize_result *from,
                       const struct clock_policy *policy)
{
    char command[COMMAND_MAX];
    result_group(result, NULL);
    result_text(result, "rule", from->rule == POLICY_MINIMAX ? "minimax" : "mean");
    result_text(result, "gpu", str_or_null(policy->gpu));
    result_number(result, "freq_mhz", policy->freq_mhz, "MHz");
    result_number(result, "mean_savings_pct", 100 * policy->saving_mean, "");
    result_number(result, "plus_minus", 100 * policy->saving_error, "");
    result_number(result, "mean_regret_pct", 100 * policy->regret_mean, "");
    result_number(result, "most_regret_pct", 100 * policy->regret_max, "");
    result_list(result, "applications");
    for (size_t i = 0; i < from->count; i++) {
        const struct clock_choice *choice = &from->choices[i];
        struct clock_effect at = clock_choice_at(choice, from->goal, policy->freq_mhz);
        if (choice->is_recommended && at.is_known && str_equal_nocase(choice->gpu, policy->gpu))
            put_effect(result, choice->application, &at);
    }
    result_end(result);
    result_text(result, "command", command_of(from, policy->freq_mhz, command));
    result_aside(result, "view");
    result_count(result, "applications", policy->applications);
    result_end(result);
    result_end(result);
}

/* ---- all ---- */

static const struct result_column COLUMNS[] = {
    {"gpu", "gpu", 0},
    {"application", "application", 0},
    {"objective", "objective", 0},
    {"setting", "recommended.setting", 0},
    {"freq_mhz", "recommended.freq_mhz", 0},
    {"energy_j", "recommended.energy_j.value", 0},
    {"time_s", "recommended.time_s.value", 0},
    {"power_w", "recommended.power_w.value", 0},
    {"baseline_mhz", "baseline.freq_mhz", 0},
    {"baseline_energy_j", "baseline.energy_j.value", 0},
    {"baseline_time_s", "baseline.time_s.value", 0},
    {"savings_pct", "savings_pct.energy", 0},
    {"plus_minus", "savings_pct.plus_minus", 0},
    {"slowdown_pct", "slowdown_pct", 0},
    {"edp", "edp", 0},
    {"ed2p", "ed2p", 0},
    {"regret_mean_pct", "regret_pct.mean", 0},
    {"low_mhz", "sensitivity.low_mhz", 0},
    {"high_mhz", "sensitivity.high_mhz", 0},
    {"model", "models.name", 0},
    {"flags", "view.flags", 0},
    {"reason", "reason", 0},
    {0},
};

void optimize_result_fill(const struct optimize_result *from, struct result *out)
{
    bool is_one = from->count == 1;
    result_begin(out, "optimize");
    if (is_one) {
        put_choice(out, from, from->choices);
    } else {
        result_text(out, "objective", from->objective);
        result_list(out, "applications");
        for (size_t i = 0; i < from->count; i++) {
            result_group(out, NULL);
            put_choice(out, from, &from->choices[i]);
            result_end(out);
        }
        result_end(out);
        result_list(out, "policies");
        for (size_t i = 0; i < from->policy_count; i++)
            put_policy(out, from, &from->policies[i]);
        result_end(out);
    }
    if (from->findings)
        findings_to_result(from->findings, "findings", out);
    result_end(out);
    result_table(out, is_one ? "" : "applications", COLUMNS);
}
