#include "report/text/profile_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "clients/client.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "rundir/record.h"
#include "runner/profile/profile.h"

/* More than rounding can explain. */
#define CONSERVATION_MOST 1e-6

static double figure(const struct jv *from, const char *path)
{
    return jv_number(jv_path(from, path));
}

static const char *word(const struct jv *from, const char *path)
{
    const char *text = jv_text(jv_path(from, path));
    return text ? text : "";
}

/* Before every figure that a model's joules are in. */
static const char *mark_of(const struct jv *run)
{
    return strcmp(word(run, "energy.method"), "estimated") == 0 ? "~" : "";
}

/* ---- the table ---- */

/* Four significant digits and no more than three decimals; a count is shown as one. */
static char *format_plain(char *to, double value)
{
    double size = fabs(value);
    int decimals = value == floor(value) || size >= 999.95 ? 0
                   : size >= 99.995                        ? 1
                   : size >= 9.9995                        ? 2
                                                           : 3;
    str_format(to, FORMAT_MAX, "%.*f", decimals, value);
    return to;
}

static void add_cell(struct table *table, double value, const char *unit, const char *mark)
{
    char cell[FORMAT_MAX];
    if (!is_known(value))
        table_add(table, "-");
    else if (unit[0] == '\0')
        table_add(table, format_plain(cell, value));
    else if (strcmp(unit, "s") == 0)
        table_add(table, format_duration(cell, value));
    else /* J or W */
        table_addf(table, "%s%s", mark, format_si(cell, value, unit));
}

/* A row that would only repeat another is left out: one kind of device alone, requests one by one. */
static bool is_worth_a_row(const struct jv *statistics, const char *key)
{
    static const char *const KINDS[] = {"gpu_energy_joules", "cpu_energy_joules",
                                        "soc_energy_joules"};
    unsigned kinds = 0;
    bool is_kind = false;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        kinds += jv_get(statistics, KINDS[i]) != NULL;
        is_kind = is_kind || strcmp(key, KINDS[i]) == 0;
    }
    if (is_kind)
        return kinds > 1;
    if (strcmp(key, "requests_alive") == 0)
        return figure(statistics, "requests_alive.max") > 1.0005;
    return true;
}

static void write_statistics(const struct jv *statistics, const char *mark, bool colour,
                             struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"of a query", false}, {"mean", true}, {"median", true},
        {"min", true},         {"max", true},  {"std dev", true},
    };
    static const char *const FIGURES[] = {"avg", "median", "min", "max", "std"};
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const struct record_field *field = record_statistic((enum record_statistic)i);
        const struct jv *row = jv_get(statistics, field->statistic_key);
        if (!row || !field->statistic_label[0] || !is_worth_a_row(statistics, field->statistic_key))
            continue;
        table_add(&table, field->statistic_label);
        for (size_t f = 0; f < sizeof FIGURES / sizeof *FIGURES; f++)
            add_cell(&table, jv_number(jv_get(row, FIGURES[f])), field->statistic_unit, mark);
    }
    if (table.count) {
        table_write(&table, "   ", colour, out);
        text_add(out, "\n");
    }
    table_release(&table);
}

/* ---- energy ---- */

/* ", 12.3 J between them" for what is there and not nothing. */
static void add_part(struct text *out, double joules, const char *mark, const char *what)
{
    char cell[FORMAT_MAX];
    if (is_known(joules) && fabs(joules) >= 1e-9) /* less is rounding */
        text_addf(out, ", %s%s %s", mark, format_si(cell, joules, "J"), what);
}

/* Where the joules went; nothing when no query's are known. */
static void write_parts(const struct jv *run, struct text *out)
{
    char cell[FORMAT_MAX];
    const char *mark = mark_of(run);
    double error = figure(run, "conservation_error");
    if (!is_known(figure(run, "joules.queries")))
        return;
    text_addf(out, "   of which      %s%s queries", mark,
              format_si(cell, figure(run, "joules.queries"), "J"));
    if (is_known(figure(run, "joules.queries_idle_share")))
        text_addf(out, " (%s%s of it idle)", mark,
                  format_si(cell, figure(run, "joules.queries_idle_share"), "J"));
    add_part(out, figure(run, "joules.failed"), mark, "failed tries");
    add_part(out, figure(run, "joules.idle"), mark, "between them");
    add_part(out, figure(run, "joules.unattributed"), mark, "unattributed");
    text_add(out, "\n");
    if (error > CONSERVATION_MOST)
        text_addf(out, "   warning: these miss the energy by %s\n",
                  format_si(cell, 100 * error, "%"));
}

static void write_energy(const struct jv *run, struct text *out)
{
    char cell[FORMAT_MAX];
    const char *method = word(run, "energy.method"), *note = word(run, "energy.note");
    if (!method[0]) {
        text_addf(out, "   energy        unknown: %s; see `ipw doctor`\n",
                  note[0] ? note : "no sensor");
        return;
    }
    const char *mark = mark_of(run);
    text_addf(out, "   energy        %s%s", mark,
              format_with_error(cell, figure(run, "energy.joules"),
                                figure(run, "energy.plus_minus"), "J"));
    text_addf(out, ", %s (%s), ", method, word(run, "energy.source"));
    text_addf(out, "%s of the time covered\n",
              format_percent(cell, figure(run, "energy.coverage")));
    write_parts(run, out);
    if (figure(run, "energy_known") < figure(run, "completed"))
        text_addf(out, "   warning: the energy of %.0f of %.0f completed queries is unknown\n",
                  figure(run, "completed") - figure(run, "energy_known"), figure(run, "completed"));
    if (jv_bool(jv_path(run, "energy.low_confidence"), false))
        text_add(out, "   low confidence: shorter than ten sensor updates\n");
    if (is_known(figure(run, "joules.judge")))
        text_addf(out, "   judge         %s%s, not in the above\n", mark,
                  format_si(cell, figure(run, "joules.judge"), "J"));
    if (note[0])
        text_addf(out, "   note: %s\n", note);
    if (mark[0])
        text_add(out, "   ~ estimated from CPU use, not measured: see `ipw doctor`\n");
}

/* ---- what came of it ---- */

static void write_tokens(const struct jv *run, struct text *out)
{
    char cell[FORMAT_MAX];
    double joules = figure(run, "joules_per_output_token"),
           rate = figure(run, "output_tokens_per_s");
    if (!is_known(joules) && !is_known(rate))
        return;
    text_add(out, "   tokens        ");
    if (is_known(joules))
        text_addf(out, "%s%s an output token%s", mark_of(run), format_si(cell, joules, "J"),
                  is_known(rate) ? ", " : "");
    if (is_known(rate))
        text_addf(out, "%s output tokens a second", format_plain(cell, rate));
    text_add(out, "\n");
}

/* What is far below one for a joule is shown for a kilojoule or more: "3.54 ± 0.12 per kJ". */
static void add_ratio(struct text *out, double value, double error, const char *unit)
{
    static const char *const PREFIXES[] = {"", "k", "M", "G"};
    char cell[FORMAT_MAX], name[16];
    unsigned step = 0;
    for (; value > 0 && value < 0.99995 && step < 3; step++) {
        value *= 1e3;
        error *= 1e3;
    }
    str_format(name, sizeof name, "per %s%s", PREFIXES[step], unit);
    if (error > 0)
        text_add(out, format_with_error(cell, value, error, name));
    else if (value == 0)
        text_addf(out, "0 %s", name);
    else
        text_add(out, format_si(cell, value, name));
}

static void write_score(const struct jv *run, struct text *out)
{
    char cell[FORMAT_MAX];
    double right = figure(run, "correct"), wrong = figure(run, "incorrect");
    if (!is_known(figure(run, "accuracy"))) {
        text_add(out, "   accuracy      unknown: no answer was graded\n");
        return;
    }
    text_addf(out, "   accuracy      %s, %.0f of %.0f right",
              format_percent(cell, figure(run, "accuracy")), right, right + wrong);
    if (is_known(figure(run, "accuracy_interval_95.0")))
        text_addf(out, " (95 %% interval %.1f to %.1f %%)",
                  100 * figure(run, "accuracy_interval_95.0"),
                  100 * figure(run, "accuracy_interval_95.1"));
    if (figure(run, "ungraded") > 0)
        text_addf(out, ", %.0f not graded", figure(run, "ungraded"));
    text_add(out, "\n");
    if (!is_known(figure(run, "ipj")) && !is_known(figure(run, "ipw")))
        return;
    text_addf(out, "   intelligence  %s", mark_of(run));
    if (is_known(figure(run, "ipj")))
        add_ratio(out, figure(run, "ipj"), figure(run, "ipj_plus_minus"), "J");
    if (is_known(figure(run, "ipw"))) {
        if (is_known(figure(run, "ipj")))
            text_addf(out, " (IPJ), %s", mark_of(run));
        add_ratio(out, figure(run, "ipw"), figure(run, "ipw_plus_minus"), "W");
        text_add(out, " (IPW)\n");
    } else {
        text_add(out, " (IPJ)\n");
    }
}

/* Three digits of an amount, or the hundredths: "12.34 USD", "0.000000202 USD". */
static void add_amount(struct text *out, double amount, const char *currency, const char *what)
{
    double size = fabs(amount);
    int decimals = size > 0 && size < 1 ? 2 - (int)floor(log10(size)) : 2;
    text_addf(out, "%.*f %s%sfor %s", decimals < 12 ? decimals : 12, amount, currency,
              currency[0] ? " " : "", what);
}

static void write_cost(const struct jv *run, struct text *out)
{
    double tokens = figure(run, "cost"), electricity = figure(run, "electricity_cost");
    const char *currency = word(run, "currency");
    if (!is_known(tokens) && !is_known(electricity))
        return;
    text_add(out, "   cost          ");
    if (is_known(tokens))
        add_amount(out, tokens, currency, "tokens");
    if (is_known(tokens) && is_known(electricity))
        text_add(out, ", ");
    if (is_known(electricity))
        add_amount(out, electricity, currency, "electricity");
    text_add(out, "\n");
}

/* A client that computes in this process makes the model's work ours. */
static bool has_model_inside(const struct jv *summary)
{
    const char *name = word(summary, "profiler_config.client_id");
    const struct client_driver *driver = client_driver_find(name, NULL);
    return driver && driver->is_in_process;
}

static void write_notes(const struct profile_result *result, const struct jv *summary,
                        const struct jv *run, struct text *out)
{
    char cell[FORMAT_MAX];
    double left_out = figure(run, "rows_left_out"), idle_s = figure(run, "idle.seconds");
    if (result->failed)
        text_addf(out, "   %" PRIu64 " failed: records.jsonl has the reasons\n", result->failed);
    if (left_out > 0)
        text_addf(out, "   %.0f row%s of the dataset left out: %s\n", left_out,
                  left_out == 1 ? "" : "s", word(run, "first_row_left_out"));
    if (is_known(idle_s))
        text_addf(out, "   idle baseline measured for %s\n", format_duration(cell, idle_s));
    text_addf(out, "   %s: %s CPU",
              has_model_inside(summary) ? "ipw and the model in it" : "ipw itself",
              format_si(cell, figure(run, "own.cpu_s"), "s"));
    text_addf(out, ", %.1f MB, %.0f reads\n", figure(run, "own.rss_mb"), figure(run, "own.reads"));
}

/* ---- all of it ---- */

static void write_heading(const struct profile_result *result, const struct jv *summary,
                          struct text *out)
{
    double together = figure(summary, "profiler_config.max_concurrency");
    double rate = figure(summary, "profiler_config.rate");
    text_addf(out, "\n energy of %" PRIu64 " quer%s of %s to '%s' (%s)", result->queries,
              result->queries == 1 ? "y" : "ies", word(summary, "dataset_name"),
              word(summary, "model"), word(summary, "profiler_config.client_id"));
    if (rate > 0) {
        char cell[FORMAT_MAX];
        text_addf(out, ", %s a second", format_plain(cell, rate));
    } else if (together > 1) {
        text_addf(out, ", %.0f at a time", together);
    }
    text_add(out, result->signal ? " (interrupted: --resume continues)\n\n" : "\n\n");
}

enum err profile_text(const struct profile_result *result, bool colour, struct text *out,
                      struct error *why)
{
    struct jv *summary;
    enum err err = jv_parse(text_get(&result->summary), result->summary.length, &summary, why);
    if (err)
        return err;
    const struct jv *run = jv_get(summary, "ipw");
    write_heading(result, summary, out);
    write_statistics(jv_get(run, "statistics"), mark_of(run), colour, out);
    write_energy(run, out);
    write_tokens(run, out);
    write_score(run, out);
    write_cost(run, out);
    write_notes(result, summary, run, out);
    text_addf(out, "\n %s\n\n", result->directory);
    jv_free(summary);
    return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
