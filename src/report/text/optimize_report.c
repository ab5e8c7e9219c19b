/* The conclusions first, a sentence each; then the underlying figures, the policy, and the command that applies it. */
#include "report/text/reports.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "power/clock_choice.h"
#include "report/text/format.h"
#include "report/text/power_report.h"

enum { NAME_MAX_BYTES = 120, COMMAND_MAX = 1024 };

/* How to find out whether a difference is significant. */
#define NOISE "cannot be distinguished from noise (no repeats: `ipw sweep --repeat 3`)"

static const struct optimize_point *best_of(const struct clock_choice *choice)
{
    return choice->is_recommended ? &choice->points[choice->optimum.best] : NULL;
}

static double product_at(const struct optimize_point *point, double exponent)
{
    struct optimize_goal goal = {.time_exponent = exponent};
    return point ? optimize_objective(&goal, point) : UNKNOWN;
}

/* "A100 llama", or the parts that are known. */
static const char *name_of(const struct clock_choice *choice, char *to)
{
    (void)str_format(to, NAME_MAX_BYTES, "%s%s%s", choice->gpu,
                     choice->gpu[0] && choice->application[0] ? " " : "", choice->application);
    return to[0] ? to : "all rows";
}

static const char *setting_of(const struct optimize_point *point, char *to)
{
    if (point->setting[0])
        return point->setting;
    (void)str_format(to, NAME_MAX_BYTES, "%g MHz", point->freq_mhz);
    return to;
}

/* NULL if the setting is not a clock. */
static const char *command_of(const struct optimize_report *report, double mhz, char *to)
{
    (void)str_format(to, COMMAND_MAX, "sudo nvidia-smi %s%s%s-lgc %.0f,%.0f",
                     report->gpus ? "-i " : "", report->gpus ? report->gpus : "",
                     report->gpus ? " " : "", mhz, mhz);
    return is_known(mhz) ? to : NULL;
}

/* "EDP", "energy x time^1.5" */
static const char *objective_title(const struct optimize_report *report, char *to)
{
    double n = report->goal->time_exponent;
    if (n == 0 || n == 1 || n == 2)
        return n == 0 ? "energy" : n == 1 ? "EDP" : "ED²P";
    (void)str_format(to, NAME_MAX_BYTES, "energy × time^%g", n);
    return to;
}

/* ---- text ---- */

/* " saves 28 ± 3 % energy, 1.0 % slower (EDP)"; a difference within noise is not called a saving. */
static void saving_to_text(const struct optimize_report *report, const struct clock_choice *choice,
                           struct text *out)
{
    char title[NAME_MAX_BYTES];
    bool is_measured = choice->flags & CHOICE_NO_REPEATS,
         is_known_error = is_known(choice->saving_error);
    int digits = choice->saving_error >= 0.01 ? 0 : 1;
    text_add(out, is_measured ? " measured" : choice->saving >= 0 ? " saves" : " costs");
    text_addf(out, " %.*f", digits, 100 * fabs(choice->saving));
    if (is_known_error)
        text_addf(out, " ± %.*f", digits, 100 * choice->saving_error);
    text_addf(out, " %%%s energy%s",
              !is_measured          ? ""
              : choice->saving >= 0 ? " less"
                                    : " more",
              is_known_error || is_measured ? "" : " (± unknown)");
    if (choice->baseline.setting[0])
        text_addf(out, " %s %s", is_measured ? "than" : "against", choice->baseline.setting);
    text_addf(out, ", %.1f %% %s (%s)", 100 * fabs(choice->slowdown),
              choice->slowdown < 0 ? "less time" : "slower", objective_title(report, title));
}

static void answer_to_text(const struct optimize_report *report, const struct clock_choice *choice,
                           struct text *out)
{
    char name[NAME_MAX_BYTES], setting[NAME_MAX_BYTES], title[NAME_MAX_BYTES];
    const struct optimize_point *best = best_of(choice);
    text_addf(out, "%s: ", name_of(choice, name));
    if (!best && choice->flags & CHOICE_NO_OPTIMUM)
        text_add(out, "no meaningful optimum: ");
    if (!best) {
        text_addf(out, "%s\n", choice->reason);
        return;
    }
    text_add(out, setting_of(best, setting));
    if (choice->flags & CHOICE_STAY)
        text_addf(out, ", %s, is the best (%s)",
                  best->setting[0] ? "the baseline" : "the highest clock measured",
                  objective_title(report, title));
    else
        saving_to_text(report, choice, out);
    text_add(out, choice->flags & CHOICE_NO_REPEATS ? ": " NOISE "\n" : "\n");
}

static void binding_to_text(const struct clock_choice *choice, struct text *out)
{
    const char *lead = "  limited by ";
    for (unsigned i = 0; best_of(choice) && i < OPTIMIZE_LIMITS; i++)
        if (choice->optimum.binding & 1u << i) {
            text_addf(out, "%s%s", lead, optimize_limit_name((enum optimize_limit)i));
            lead = ", ";
        }
    text_add(out, lead[0] == ',' ? "\n" : "");
}

/* "  TTFT p95 310 ms (295 to 340 ms), SLO 500 ms, 120 queries" */
static void latencies_to_text(const struct optimize_goal *goal, const struct clock_choice *choice,
                              struct text *out)
{
    static const char *const TITLES[OPTIMIZE_LATENCIES] = {
        [LATENCY_TTFT] = "TTFT",
        [LATENCY_ITL] = "ITL",
        [LATENCY_TPOT] = "TPOT",
        [LATENCY_QUERY] = "latency",
    };
    const struct optimize_point *best = best_of(choice);
    char which[16] = "mean", cells[4][FORMAT_MAX];
    if (goal->slo_quantile > 0)
        (void)str_format(which, sizeof which, "p%.0f", 100 * goal->slo_quantile);
    for (unsigned i = 0; best && i < OPTIMIZE_LATENCIES; i++) {
        const struct freq_value *at = &best->latency[i];
        if (is_known(goal->limits[LIMIT_LATENCY + i]))
            text_addf(out, "  %s %s %s (%s to %s), SLO %s%s\n", TITLES[i], which,
                      format_si(cells[0], at->value, "s"), format_si(cells[1], at->low, "s"),
                      format_si(cells[2], at->high, "s"),
                      format_si(cells[3], goal->limits[LIMIT_LATENCY + i], "s"),
                      at->high > goal->limits[LIMIT_LATENCY + i]
                          ? ": may be exceeded; needs more queries"
                          : "");
    }
}

static void add_flag(void *context, const char *name)
{
    struct text *names = context;
    text_addf(names, "%s%s", names->length ? " " : "", name);
}

/* "" if there is nothing to run. */
static const char *apply_of(const struct optimize_report *report, const struct clock_choice *choice,
                            char *to)
{
    const struct optimize_point *best = choice ? best_of(choice) : NULL;
    const char *command = !best || choice->flags & CHOICE_STAY ? NULL
                          : report->apply                      ? report->apply
                                          : command_of(report, best->freq_mhz, to);
    return command ? command : "";
}

/* How to undo it; "" if it is not a setting of the GPU. */
static const char *undo_of(const struct optimize_report *report, const char *apply, char *to)
{
    bool is_gpu = str_starts(apply, "sudo nvidia-smi ");
    const char *option = is_gpu && strstr(apply, " -lgc ")   ? "-rgc"
                         : is_gpu && strstr(apply, " -lmc ") ? "-rmc"
                                                             : NULL;
    (void)str_format(to, COMMAND_MAX, "sudo nvidia-smi %s%s%s%s", report->gpus ? "-i " : "",
                     report->gpus ? report->gpus : "", report->gpus ? " " : "",
                     option ? option : "");
    return option ? to : "";
}

static void choice_to_table(const struct clock_choice *choice, struct table *table)
{
    char name[NAME_MAX_BYTES], setting[NAME_MAX_BYTES], cell[FORMAT_MAX];
    const struct optimize_point *best = best_of(choice);
    struct text flags = {0};
    clock_choice_flags(choice, add_flag, &flags);
    table_add(table, name_of(choice, name));
    table_add(table, best ? setting_of(best, setting) : "none");
    for (unsigned i = 0; i < 2; i++) {
        const struct optimize_point *at = i ? &choice->baseline : best;
        table_add(table, format_si(cell, at ? at->figures[FREQ_ENERGY_J].value : UNKNOWN, "J"));
        table_add(table, format_si(cell, at ? at->figures[FREQ_TIME_S].value : UNKNOWN, "s"));
    }
    table_add(table, format_si(cell, product_at(best, 1), "J·s"));
    if (best && is_known(choice->optimum.low_mhz))
        table_addf(table, "%g–%g MHz", choice->optimum.low_mhz, choice->optimum.high_mhz);
    else
        table_add(table, "");
    if (is_known(choice->regret_mean))
        table_addf(table, "%.2f (%.2f)", 100 * choice->regret_mean, 100 * choice->regret_max);
    else
        table_add(table, "");
    table_add(table, choice->model ? choice->model : "measured");
    table_add(table, text_get(&flags));
    text_release(&flags);
}

/* "12.3 ± 0.4 %"; or "(± unknown)". */
static void percent_to_text(double share, double error, struct text *out)
{
    text_addf(out, "%.1f", 100 * share);
    if (is_known(error))
        text_addf(out, " ± %.1f %%", 100 * error);
    else
        text_add(out, " % (± unknown)");
}

static const char *const POLICY_TITLES[] = {"least mean", "least maximum"};

static void policy_to_text(const struct optimize_report *report, const struct clock_policy *policy,
                           struct text *out)
{
    char command[COMMAND_MAX];
    text_addf(out, "\n%s, one clock for %zu applications (%s regret): ",
              policy->gpu[0] ? policy->gpu : "GPU", policy->applications,
              POLICY_TITLES[report->rule]);
    if (!is_known(policy->freq_mhz)) {
        text_add(out, "none is within the limits of all\n");
        return;
    }
    text_addf(out, "%g MHz saves ", policy->freq_mhz);
    percent_to_text(policy->saving_mean, policy->saving_error, out);
    text_addf(out, " on average, regret %.1f %% (max %.1f %%)\n", 100 * policy->regret_mean,
              100 * policy->regret_max);
    for (size_t i = 0; i < report->count; i++) {
        const struct clock_choice *choice = &report->choices[i];
        struct clock_effect at = clock_choice_at(choice, report->goal, policy->freq_mhz);
        if (!choice->is_recommended || !at.is_known || !str_equal_nocase(choice->gpu, policy->gpu))
            continue;
        text_addf(out, "  %s: saves ", choice->application);
        percent_to_text(at.saving, at.saving_error, out);
        text_addf(out, ", %.1f %% slower, regret %.1f %%\n", 100 * at.slowdown, 100 * at.regret);
    }
    text_addf(out, "  apply: %s\n", command_of(report, policy->freq_mhz, command));
}

/* For each of several applications, if it runs alone. */
static void commands_to_text(const struct optimize_report *report, struct text *out)
{
    bool any = false;
    for (size_t i = 0; i < report->count; i++) {
        const struct clock_choice *choice = &report->choices[i];
        char command[COMMAND_MAX];
        const char *apply = apply_of(report, choice, command);
        if (!apply[0])
            continue;
        text_addf(out, "%s  %s%s%s: %s\n", any ? "" : "\napply, for one application alone:\n",
                  choice->gpu, choice->gpu[0] ? " " : "", choice->application, apply);
        any = true;
    }
}

void optimize_text(const struct optimize_report *report, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"", false},        {"setting", true}, {"energy", true}, {"time", true},
        {"baseline", true}, {"", true},        {"EDP", true},    {"within 1 %", true},
        {"regret %", true}, {"model", false},  {"flags", false},
    };
    struct table table = TABLE(COLUMNS);
    bool any_fit = false;
    char command[COMMAND_MAX], undo[COMMAND_MAX];
    for (size_t i = 0; i < report->count; i++) {
        answer_to_text(report, &report->choices[i], out);
        binding_to_text(&report->choices[i], out);
        latencies_to_text(report->goal, &report->choices[i], out);
        choice_to_table(&report->choices[i], &table);
        any_fit |= report->choices[i].model != NULL;
    }
    text_add(out, "\n");
    table_print(&table, "", color, out);
    if (any_fit)
        text_addf(out,
                  "\nSavings are against the fit at the highest clock measured; ± is %.0f %%; "
                  "regret: objective at the clocks chosen by refits\nwithout every fifth clock "
                  "(mean, max).\n",
                  100 * FREQ_LEVEL);
    for (size_t i = 0; i < report->policy_count; i++)
        policy_to_text(report, &report->policies[i], out);
    if (report->count > 1 && !report->apply)
        commands_to_text(report, out);
    const char *apply = apply_of(report, report->count == 1 ? report->choices : NULL, command);
    const char *back = undo_of(report, apply, undo);
    if (apply[0])
        text_addf(out, "\napply%s: %s%s%s\n",
                  report->choices->flags & CHOICE_NO_REPEATS ? ", where repeats confirm it" : "",
                  apply, back[0] ? "    undo: " : "", back);
    if (report->findings)
        power_findings_text(report->findings, color, out);
}

/* ---- JSON ---- */

/* Null without an SLO. */
static void latencies_to_json(const struct optimize_goal *goal, const struct optimize_point *point,
                              struct json *json)
{
    if (!optimize_has_slo(goal)) {
        json_null(json, "latency_s");
        return;
    }
    json_object(json, "latency_s");
    json_number(json, "percentile", goal->slo_quantile > 0 ? 100 * goal->slo_quantile : UNKNOWN);
    json_number(json, "queries", point->queries);
    for (unsigned i = 0; i < OPTIMIZE_LATENCIES; i++)
        if (is_known(goal->limits[LIMIT_LATENCY + i]))
            power_value_json(&point->latency[i], optimize_latency_name((enum optimize_latency)i),
                             json);
    json_object_end(json);
}

static void point_to_json(const struct optimize_goal *goal, const struct optimize_point *point,
                          struct json *json)
{
    json_number(json, "freq_mhz", point->freq_mhz);
    json_string(json, "setting", str_or_null(point->setting));
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        power_value_json(&point->figures[k], freq_figure_name((enum freq_figure)k), json);
    latencies_to_json(goal, point, json);
    json_number(json, "quality", point->quality);
    json_number(json, "temperature_c", point->temperature_c);
    json_bool(json, "extrapolated", point->is_extrapolated);
}

static void recommended_to_json(const struct optimize_report *report,
                                const struct clock_choice *choice, struct json *json)
{
    char command[COMMAND_MAX], undo[COMMAND_MAX];
    const struct optimize_point *best = best_of(choice);
    if (!best) {
        json_null(json, "recommended");
        return;
    }
    json_object(json, "recommended");
    point_to_json(report->goal, best, json);
    const char *apply = apply_of(report, choice, command);
    json_string(json, "command", str_or_null(apply));
    json_string(json, "undo", str_or_null(undo_of(report, apply, undo)));
    json_object_end(json);
}

static void front_to_json(const struct clock_choice *choice, struct json *json)
{
    json_array(json, "pareto");
    for (size_t i = 0; i < choice->count; i++) {
        const struct optimize_point *point = &choice->points[i];
        if (!point->is_front)
            continue;
        json_object(json, NULL);
        json_number(json, "freq_mhz", point->freq_mhz);
        json_string(json, "setting", str_or_null(point->setting));
        json_number(json, "energy_j", point->figures[FREQ_ENERGY_J].value);
        json_number(json, "time_s", point->figures[FREQ_TIME_S].value);
        json_number(json, "power_w", point->figures[FREQ_POWER_W].value);
        json_number(json, "edp", product_at(point, 1));
        json_number(json, "ed2p", product_at(point, 2));
        json_number(json, "quality", point->quality);
        json_object_end(json);
    }
    json_array_end(json);
}

static void binding_to_json(const struct clock_choice *choice, struct json *json)
{
    json_array(json, "binding");
    for (unsigned i = 0; best_of(choice) && i < OPTIMIZE_LIMITS; i++)
        if (choice->optimum.binding & 1u << i)
            json_string(json, NULL, optimize_limit_name((enum optimize_limit)i));
    json_array_end(json);
}

static void thermal_to_json(const struct thermal_fit *thermal, struct json *json)
{
    if (!is_known(thermal->resistance_c_per_w)) {
        json_null(json, "thermal");
        return;
    }
    json_object(json, "thermal");
    json_number(json, "resistance_c_per_w", thermal->resistance_c_per_w);
    json_number(json, "ambient_c", thermal->ambient_c);
    json_integer(json, "measurements", (int64_t)thermal->count);
    json_object_end(json);
}

static void flag_to_json(void *context, const char *name)
{
    json_string(context, NULL, name);
}

static void certainty_to_json(const struct clock_choice *choice, struct json *json)
{
    bool is_noise = choice->flags & CHOICE_NO_REPEATS && !(choice->flags & CHOICE_STAY);
    json_object(json, "savings_pct");
    json_number(json, "energy", is_noise ? UNKNOWN : 100 * choice->saving);
    json_number(json, "measured", 100 * choice->saving); /* not significant without repeats */
    json_number(json, "plus_minus", 100 * choice->saving_error);
    json_number(json, "level", FREQ_LEVEL);
    json_string(json, "method", choice->error_method);
    json_object_end(json);
    json_number(json, "slowdown_pct", 100 * choice->slowdown);
    json_number(json, "edp", product_at(best_of(choice), 1));
    json_number(json, "ed2p", product_at(best_of(choice), 2));
    json_number(json, "objective_value",
                choice->is_recommended ? choice->optimum.objective : UNKNOWN);
    json_object(json, "regret_pct");
    json_number(json, "mean", 100 * choice->regret_mean);
    json_number(json, "most", 100 * choice->regret_max);
    json_integer(json, "refits", (int64_t)choice->refits);
    json_object_end(json);
    json_object(json, "sensitivity");
    json_number(json, "within_pct", 100 * OPTIMIZE_FLAT);
    json_number(json, "low_mhz", choice->is_recommended ? choice->optimum.low_mhz : UNKNOWN);
    json_number(json, "high_mhz", choice->is_recommended ? choice->optimum.high_mhz : UNKNOWN);
    json_object_end(json);
}

static void choice_to_json(const struct optimize_report *report, const struct clock_choice *choice,
                           struct json *json)
{
    json_string(json, "objective", report->objective);
    json_string(json, "gpu", str_or_null(choice->gpu));
    json_string(json, "application", str_or_null(choice->application));
    recommended_to_json(report, choice, json);
    json_string(json, "reason", str_or_null(choice->reason));
    json_object(json, "baseline");
    point_to_json(report->goal, &choice->baseline, json);
    json_bool(json, "fitted", choice->model != NULL);
    json_object_end(json);
    certainty_to_json(choice, json);
    front_to_json(choice, json);
    binding_to_json(choice, json);
    thermal_to_json(&choice->thermal, json);
    json_array(json, "flags");
    clock_choice_flags(choice, flag_to_json, json);
    json_array_end(json);
    json_object(json, "models");
    json_string(json, "name", choice->model ? choice->model : "measured");
    json_integer(json, "clocks_measured", (int64_t)choice->measured);
    json_integer(json, "settings", (int64_t)choice->count);
    json_string(json, "file", report->source);
    json_object_end(json);
}

static void policy_to_json(const struct optimize_report *report, const struct clock_policy *policy,
                           struct json *json)
{
    char command[COMMAND_MAX];
    json_object(json, NULL);
    json_string(json, "rule", report->rule == POLICY_MINIMAX ? "minimax" : "mean");
    json_string(json, "gpu", str_or_null(policy->gpu));
    json_number(json, "freq_mhz", policy->freq_mhz);
    json_number(json, "mean_savings_pct", 100 * policy->saving_mean);
    json_number(json, "plus_minus", 100 * policy->saving_error);
    json_number(json, "mean_regret_pct", 100 * policy->regret_mean);
    json_number(json, "most_regret_pct", 100 * policy->regret_max);
    json_array(json, "applications");
    for (size_t i = 0; i < report->count; i++) {
        const struct clock_choice *choice = &report->choices[i];
        struct clock_effect at = clock_choice_at(choice, report->goal, policy->freq_mhz);
        if (!choice->is_recommended || !at.is_known || !str_equal_nocase(choice->gpu, policy->gpu))
            continue;
        json_object(json, NULL);
        json_string(json, "application", choice->application);
        json_number(json, "savings_pct", 100 * at.saving);
        json_number(json, "plus_minus", 100 * at.saving_error);
        json_number(json, "slowdown_pct", 100 * at.slowdown);
        json_number(json, "regret_pct", 100 * at.regret);
        json_object_end(json);
    }
    json_array_end(json);
    json_string(json, "command", command_of(report, policy->freq_mhz, command));
    json_object_end(json);
}

void optimize_json(const struct optimize_report *report, struct text *out)
{
    struct json json;
    bool is_one = report->count == 1;
    json_init(&json, out, true);
    json_object(&json, NULL);
    if (is_one) {
        choice_to_json(report, report->choices, &json);
    } else {
        json_string(&json, "objective", report->objective);
        json_array(&json, "applications");
        for (size_t i = 0; i < report->count; i++) {
            json_object(&json, NULL);
            choice_to_json(report, &report->choices[i], &json);
            json_object_end(&json);
        }
        json_array_end(&json);
        json_array(&json, "policies");
        for (size_t i = 0; i < report->policy_count; i++)
            policy_to_json(report, &report->policies[i], &json);
        json_array_end(&json);
    }
    if (report->findings)
        power_findings_json(report->findings, "findings", &json);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- CSV ---- */

void optimize_csv(const struct optimize_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"gpu", false},
        {"application", false},
        {"objective", false},
        {"setting", false},
        {"freq_mhz", true},
        {"energy_j", true},
        {"time_s", true},
        {"power_w", true},
        {"baseline_mhz", true},
        {"baseline_energy_j", true},
        {"baseline_time_s", true},
        {"savings_pct", true},
        {"plus_minus", true},
        {"slowdown_pct", true},
        {"edp", true},
        {"ed2p", true},
        {"regret_mean_pct", true},
        {"low_mhz", true},
        {"high_mhz", true},
        {"model", false},
        {"flags", false},
        {"reason", false},
    };
    struct table table = TABLE(COLUMNS);
    const struct optimize_point none = optimize_point_unknown();
    for (size_t i = 0; i < report->count; i++) {
        const struct clock_choice *choice = &report->choices[i];
        const struct optimize_point *best = best_of(choice), *at = best ? best : &none,
                                    *base = &choice->baseline;
        const double numbers[] = {at->freq_mhz,
                                  at->figures[FREQ_ENERGY_J].value,
                                  at->figures[FREQ_TIME_S].value,
                                  at->figures[FREQ_POWER_W].value,
                                  base->freq_mhz,
                                  base->figures[FREQ_ENERGY_J].value,
                                  base->figures[FREQ_TIME_S].value,
                                  choice->flags & CHOICE_NO_REPEATS &&
                                          !(choice->flags & CHOICE_STAY)
                                      ? UNKNOWN
                                      : 100 * choice->saving,
                                  100 * choice->saving_error,
                                  100 * choice->slowdown,
                                  product_at(best, 1),
                                  product_at(best, 2),
                                  100 * choice->regret_mean,
                                  best ? choice->optimum.low_mhz : UNKNOWN,
                                  best ? choice->optimum.high_mhz : UNKNOWN};
        struct text flags = {0};
        clock_choice_flags(choice, add_flag, &flags);
        table_add(&table, choice->gpu);
        table_add(&table, choice->application);
        table_add(&table, report->objective);
        table_add(&table, at->setting);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            table_add_number(&table, numbers[k]);
        table_add(&table, choice->model ? choice->model : "measured");
        table_add(&table, text_get(&flags));
        table_add(&table, choice->reason);
        text_release(&flags);
    }
    table_write_csv(&table, out);
    table_release(&table);
}
