/* Views of the result of `ipw optimize`: the conclusions first, a sentence each; then the underlying figures, the
 * policy, and the command that applies it. */

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "report/text/power_report.h"

enum { NAME_MAX_BYTES = 120 };

/* The choice for the next application, the first for NULL: the items of a list, or the result itself. */
static const struct result_item *next_choice(const struct result *result,
                                             const struct result_item *choice)
{
    const struct result_item *list = result_find(result, "applications");
    if (choice)
        return list ? result_next(list, choice) : NULL;
    return list ? result_first(list) : result->items;
}

/* "A100 llama", or the parts that are known. */
static const char *name_of(const struct result_item *choice, char *to)
{
    const char *gpu = result_text_at(choice, "gpu");
    const char *application = result_text_at(choice, "application");
    str_format(to, NAME_MAX_BYTES, "%s%s%s", gpu, gpu[0] && application[0] ? " " : "", application);
    return to[0] ? to : "all rows";
}

/* ---- conclusions ---- */

static void show_answer(struct print_page *page, const struct result_item *choice)
{
    char name[NAME_MAX_BYTES];
    text_addf(&page->words, "%s: %s", name_of(choice, name), result_text_at(choice, "view.answer"));
    power_view_line(page);
}

static void show_binding(struct print_page *page, const struct result_item *choice)
{
    RESULT_EACH (limit, result_at(choice, "binding"))
        text_addf(&page->words, "%s%s", page->words.length ? ", " : "limited by ",
                  result_string(limit));
    if (page->words.length)
        power_view_item(page);
}

/* "TTFT p95 310 ms (295 to 340 ms), SLO 500 ms" */
static void show_latencies(struct print_page *page, const struct result_item *choice)
{
    static const struct {
        const char *key, *title;
    } LATENCIES[] = {{"ttft", "TTFT"}, {"itl", "ITL"}, {"tpot", "TPOT"}, {"latency", "latency"}};
    const struct result_item *latencies = result_at(choice, "recommended.latency_s");
    const struct result_item *limits = result_at(choice, "view.slo_s");
    double percentile = result_value(result_at(latencies, "percentile"));
    char which[16] = "mean", cells[4][FORMAT_MAX];
    if (is_known(percentile))
        chars_format(which, "p%.0f", percentile);
    for (size_t i = 0; i < COUNT_OF(LATENCIES); i++) {
        const struct result_item *at = result_at(latencies, LATENCIES[i].key);
        if (!at)
            continue;
        double slo = result_number_at(limits, LATENCIES[i].key);
        double high = result_number_at(at, "high");
        text_addf(&page->words, "%s %s %s (%s to %s), SLO %s%s", LATENCIES[i].title, which,
                  format_si(cells[0], result_number_at(at, "value"), "s"),
                  format_si(cells[1], result_number_at(at, "low"), "s"),
                  format_si(cells[2], high, "s"), format_si(cells[3], slo, "s"),
                  high > slo ? ": may be exceeded; needs more queries" : "");
        power_view_item(page);
    }
}

/* ---- the table ---- */

static void add_setting(struct table *table, const struct result_item *recommended)
{
    if (!recommended) {
        table_add(table, "none");
        return;
    }
    const char *setting = result_text_at(recommended, "setting");
    if (setting[0])
        table_add(table, setting);
    else
        table_addf(table, "%g MHz", result_number_at(recommended, "freq_mhz"));
}

static void add_si(struct table *table, const struct result_item *choice, const char *path,
                   const char *unit)
{
    char cell[FORMAT_MAX];
    table_add(table, format_si(cell, result_number_at(choice, path), unit));
}

static void add_choice(struct table *table, const struct result_item *choice)
{
    const struct result_item *recommended = result_at(choice, "recommended");
    double low = result_number_at(choice, "sensitivity.low_mhz");
    double high = result_number_at(choice, "sensitivity.high_mhz");
    double regret = result_number_at(choice, "regret_pct.mean");
    double most = result_number_at(choice, "regret_pct.max");
    char name[NAME_MAX_BYTES];
    table_add(table, name_of(choice, name));
    add_setting(table, result_first(recommended) ? recommended : NULL);
    add_si(table, choice, "recommended.energy_j.value", "J");
    add_si(table, choice, "recommended.time_s.value", "s");
    add_si(table, choice, "baseline.energy_j.value", "J");
    add_si(table, choice, "baseline.time_s.value", "s");
    add_si(table, choice, "edp", "J·s");
    if (is_known(low))
        table_addf(table, "%g–%g MHz", low, high);
    else
        table_add(table, "");
    if (is_known(regret))
        table_addf(table, "%.2f (%.2f)", regret, most);
    else
        table_add(table, "");
    table_add(table, result_text_at(choice, "models.name"));
    table_add(table, result_text_at(choice, "view.flags"));
}

static void show_choices(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"", false},        {"setting", true}, {"energy", true}, {"time", true},
        {"baseline", true}, {"", true},        {"EDP", true},    {"within 1 %", true},
        {"regret %", true}, {"model", false},  {"flags", false},
    };
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    double fit_level = UNKNOWN;
    for (const struct result_item *choice = NULL; (choice = next_choice(result, choice));) {
        add_choice(&table, choice);
        if (result_flag_at(choice, "baseline.fitted"))
            fit_level = result_number_at(choice, "savings_pct.level");
    }
    power_view_gap(page);
    power_view_table(page, &table);
    if (!is_known(fit_level))
        return;
    power_view_gap(page);
    text_addf(&page->words,
              "Savings are against the fit at the highest clock measured; ± is %.0f %%; regret: "
              "objective at the clocks chosen by refits\nwithout every fifth clock (mean, max).",
              100 * fit_level);
    power_view_line(page);
}

/* ---- one clock for several applications ---- */

/* "12.3 ± 0.4 %"; or "(± unknown)". */
static void add_percent(struct text *out, double percent, double error)
{
    text_addf(out, "%.1f", percent);
    if (is_known(error))
        text_addf(out, " ± %.1f %%", error);
    else
        text_add(out, " % (± unknown)");
}

static void show_effect(struct print_page *page, const struct result_item *effect)
{
    text_addf(&page->words, "%s: saves ", result_text_at(effect, "application"));
    add_percent(&page->words, result_number_at(effect, "savings_pct"),
                result_number_at(effect, "plus_minus"));
    text_addf(&page->words, ", %.1f %% slower, regret %.1f %%",
              result_number_at(effect, "slowdown_pct"), result_number_at(effect, "regret_pct"));
    power_view_item(page);
}

static void show_policy(struct print_page *page, const struct result_item *policy)
{
    const char *gpu = result_text_at(policy, "gpu");
    double mhz = result_number_at(policy, "freq_mhz");
    bool is_minimax = str_equal(result_text_at(policy, "rule"), "minimax");
    power_view_gap(page);
    text_addf(
        &page->words, "%s, one clock for %.0f applications (%s regret): ", gpu[0] ? gpu : "GPU",
        result_number_at(policy, "view.applications"), is_minimax ? "least maximum" : "least mean");
    if (!is_known(mhz)) {
        text_add(&page->words, "none is within the limits of all");
        power_view_line(page);
        return;
    }
    text_addf(&page->words, "%g MHz saves ", mhz);
    add_percent(&page->words, result_number_at(policy, "mean_savings_pct"),
                result_number_at(policy, "plus_minus"));
    text_addf(&page->words, " on average, regret %.1f %% (max %.1f %%)",
              result_number_at(policy, "mean_regret_pct"),
              result_number_at(policy, "most_regret_pct"));
    power_view_line(page);
    RESULT_EACH (effect, result_at(policy, "applications"))
        show_effect(page, effect);
    text_addf(&page->words, "apply: %s", result_text_at(policy, "command"));
    power_view_item(page);
}

/* ---- commands ---- */

/* For each of several applications, if it runs alone. */
static void show_commands(struct print_page *page)
{
    const struct result *result = page->result;
    char name[NAME_MAX_BYTES];
    bool any = false;
    for (const struct result_item *choice = NULL; (choice = next_choice(result, choice));) {
        const char *command = result_text_at(choice, "recommended.command");
        if (!command[0])
            continue;
        if (!any)
            power_view_heading(page, "apply, for one application alone");
        text_addf(&page->words, "%s: %s", name_of(choice, name), command);
        power_view_item(page);
        any = true;
    }
}

static bool has_flag(const struct result *result, const char *name)
{
    RESULT_EACH (flag, result_find(result, "flags"))
        if (str_equal(result_string(flag), name))
            return true;
    return false;
}

/* Of the only application. */
static void show_command(struct print_page *page)
{
    const struct result *result = page->result;
    const char *command = result_text_at(result->items, "recommended.command");
    const char *undo = result_text_at(result->items, "recommended.undo");
    if (!command[0])
        return;
    power_view_gap(page);
    text_addf(&page->words, "apply%s: %s%s%s",
              has_flag(result, "no_repeats") ? ", where repeats confirm it" : "", command,
              undo[0] ? "    undo: " : "", undo);
    power_view_line(page);
}

static void show_optimum(struct print_page *page)
{
    const struct result *result = page->result;
    power_view_title(page);
    for (const struct result_item *choice = NULL; (choice = next_choice(result, choice));) {
        show_answer(page, choice);
        show_binding(page, choice);
        show_latencies(page, choice);
    }
    show_choices(page);
    RESULT_EACH (policy, result_find(result, "policies"))
        show_policy(page, policy);
    if (result_find(result, "applications"))
        show_commands(page);
    else
        show_command(page);
    power_view_findings(page);
}

const struct print_views OPTIMIZE_VIEWS = {.page = show_optimum, .has_blank_line = true};
