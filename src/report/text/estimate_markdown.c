/* One estimate as Markdown, and its subgraphs as CSV. */
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/table.h"

static void add_pair(struct table *table, const char *name, const char *value)
{
    table_add(table, name);
    table_add(table, value);
}

static void put_summary(const struct workload_estimate *estimate, struct text *out)
{
    static const struct table_column COLUMNS[] = {{"", false}, {"", false}};
    const struct estimate_totals *all = &estimate->total;
    char words[WORDS_MAX], each[WORDS_MAX], name[WORDS_MAX + 16], figure[FORMAT_MAX];
    char capacity[FORMAT_MAX];
    struct table table = TABLE(COLUMNS);

    str_format(name, sizeof name, "energy %s", words_each(each, estimate->work->unit));
    add_pair(&table, name, words_energy(words, estimate, estimate->work->units, ""));
    add_pair(&table, "energy", words_energy(words, estimate, 1, ""));
    add_pair(&table, "latency", words_latency(words, estimate));
    str_format(name, sizeof name, "%ss/s", estimate->work->unit);
    add_pair(&table, name, words_rate(words, workload_estimate_units_per_s(estimate)));
    add_pair(&table, "average power", words_watts(words, all->average_w, all->power_plus_minus));
    format_bytes(figure, estimate->memory.total_peak);
    format_bytes(capacity, estimate->memory.capacity);
    str_format(words, sizeof words, "%s of %s%s", figure, capacity,
               estimate->memory.fits ? "" : ": exceeds device memory");
    add_pair(&table, "memory", words);
    if (words_divided(words, estimate))
        add_pair(&table, "devices", words);
    add_pair(&table, "bound by", words_bounds(words, all->bound_counts));
    str_format(words, sizeof words, "%s: %s", estimate_confidence_name(estimate->confidence),
               estimate->confidence_reason);
    add_pair(&table, "confidence", words);
    table_write_markdown(&table, out);
    table_release(&table);
}

static void put_breakdown(const struct workload_estimate *estimate, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"energy breakdown", false}, {"energy", true}, {"share", true}};
    const struct estimate_joules *joules = &estimate->total.joules;
    const struct {
        const char *name;
        double joules;
    } parts[] = {{"compute", joules->compute},
                 {"memory", joules->memory},
                 {"link", joules->link},
                 {"static", joules->idle}};
    char cell[WORDS_MAX];
    struct table table = TABLE(COLUMNS);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(parts[i].joules <= 0)) { /* also if unknown */
            add_pair(&table, parts[i].name, words_joules(cell, parts[i].joules, UNKNOWN));
            table_add(&table, words_share(cell, parts[i].joules / joules->total));
        }
    text_add(out, "\n");
    table_write_markdown(&table, out);
    table_release(&table);
}

static void put_checks(const struct estimate_report *report, struct text *out)
{
    struct budget_check checks[BUDGET_KINDS];
    char words[WORDS_MAX];
    size_t count = budget_judge(report->budget, report->estimate, checks);
    text_add(out, count ? "\n" : "");
    for (size_t i = 0; i < count; i++)
        text_addf(out, "- **%s** %s\n", budget_verdict_name(checks[i].verdict),
                  words_check(words, &checks[i], report->estimate));
}

static void put_recommendations(const struct estimate_report *report, struct text *out)
{
    char each[WORDS_MAX], cell[WORDS_MAX];
    const struct table_column columns[] = {
        {words_proposals(report->budget, report->estimate), false},
        {"saves", true},
        {words_each(each, report->estimate->work->unit), true},
        {"latency", true},
        {"memory", true},
        {"limits", false},
    };
    struct table table = TABLE(columns);
    if (!report->recommendations->count)
        return;
    for (size_t i = 0; i < report->recommendations->count; i++) {
        const struct recommendation *row = &report->recommendations->items[i];
        add_pair(&table, row->options, words_saving(cell, row));
        table_add(&table, words_joules(cell, row->joules_each, UNKNOWN));
        table_add(&table, format_si(cell, row->latency_s, "s"));
        table_add(&table, format_bytes(cell, row->memory_bytes));
        table_add(&table, budget_has_any(report->budget) ? budget_verdict_name(row->verdict) : "");
    }
    text_add(out, "\n");
    table_write_markdown(&table, out);
    table_release(&table);
    text_add(out, "\n");
    if (words_unsure(cell, report->recommendations))
        text_addf(out, "- %s\n", cell);
    for (size_t i = 0; i < report->recommendations->count; i++)
        if (report->recommendations->items[i].note[0])
            text_addf(out, "- `%s`: %s\n", report->recommendations->items[i].options,
                      report->recommendations->items[i].note);
}

void estimate_markdown(const struct estimate_report *report, struct text *out)
{
    const struct workload_estimate *estimate = report->estimate;
    char setting[WORDS_MAX], device[WORDS_MAX], basis[WORDS_MAX];
    text_addf(out, "### %s on %s\n\n%s; %s\n\n", estimate->work->spec.model->name,
              words_device(device, estimate->hardware), words_setting(setting, estimate),
              words_basis(basis, &estimate->shipped));
    put_summary(estimate, out);
    put_breakdown(estimate, out);
    put_checks(report, out);
    put_recommendations(report, out);
    text_add(out, "\n\\~ estimated by a model of the device, not measured\n");
}

/* ---- CSV ---- */

void estimate_csv(const struct estimate_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"name", false},     {"ops", false},         {"phase", false},    {"layer", false},
        {"level", false},    {"flops", false},       {"bytes", false},    {"latency_s", false},
        {"energy_j", false}, {"compute_j", false},   {"memory_j", false}, {"static_j", false},
        {"link_j", false},   {"utilisation", false}, {"bound", false},
    };
    bool has_phases = report->estimate->work->spec.model->has_phases;
    struct table table = TABLE(COLUMNS);

    for (size_t i = 0; i < report->row_count; i++) {
        const struct subgraph_total *row = &report->rows[i];
        const struct subgraph *subgraph = row->subgraph;
        const double figures[] = {subgraph->layer == GRAPH_NONE ? UNKNOWN : (double)subgraph->layer,
                                  subgraph->level,
                                  row->flops,
                                  row->bytes,
                                  row->latency_s,
                                  row->joules.total,
                                  row->joules.compute,
                                  row->joules.memory,
                                  row->joules.idle,
                                  row->joules.link,
                                  row->utilization};
        table_add(&table, subgraph->name);
        table_add(&table, subgraph->pattern);
        table_add(&table, !has_phases                  ? "whole"
                          : row->phase == GRAPH_DECODE ? "decode"
                                                       : "prefill");
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            table_add_number(&table, figures[k]);
        table_add(&table, estimate_bound_name(row->bound));
    }
    table_write_csv(&table, out);
    table_release(&table);
}
