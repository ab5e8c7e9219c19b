/* One estimate as Markdown, and its subgraphs as CSV. */
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/table.h"

static void row(struct text *out, const char *name, const char *value)
{
    text_addf(out, "| %s | %s |\n", name, value);
}

static void put_head(const struct workload_estimate *estimate, struct text *out)
{
    const struct estimate_totals *all = &estimate->total;
    char words[WORDS_MAX], each[WORDS_MAX], name[WORDS_MAX + 16], figure[FORMAT_MAX];
    double units = estimate->work->units;
    text_add(out, "| | |\n|---|---|\n");
    str_format(name, sizeof name, "energy %s", words_each(each, estimate->work->unit));
    row(out, name, words_joules(words, all->joules.total / units, all->joules_plus_minus / units));
    row(out, "energy", words_joules(words, all->joules.total, all->joules_plus_minus));
    row(out, "latency", format_with_error(figure, all->latency_s, all->latency_plus_minus, "s"));
    str_format(name, sizeof name, "%ss a second", estimate->work->unit);
    row(out, name, words_rate(words, workload_estimate_units_per_s(estimate)));
    row(out, "average power", words_watts(words, all->average_w, all->power_plus_minus));
    char room[FORMAT_MAX];
    format_bytes(figure, estimate->memory.total_peak);
    format_bytes(room, estimate->memory.capacity);
    str_format(words, sizeof words, "%s of %s%s", figure, room,
               estimate->memory.fits ? "" : ": **does not fit**");
    row(out, "memory", words);
    if (words_divided(words, estimate))
        row(out, "devices", words);
    row(out, "bound by", words_bounds(words, all->bound_counts));
    str_format(words, sizeof words, "%s: %s", estimate_confidence_name(estimate->confidence),
               estimate->confidence_reason);
    row(out, "confidence", words);
}

static void put_parts(const struct workload_estimate *estimate, struct text *out)
{
    const struct estimate_joules *joules = &estimate->total.joules;
    const struct {
        const char *name;
        double joules;
    } parts[] = {{"compute", joules->compute},
                 {"memory", joules->memory},
                 {"link", joules->link},
                 {"static", joules->idle}};
    char figure[WORDS_MAX], share[WORDS_MAX];
    text_add(out, "\n| where the joules go | energy | share |\n|---|---:|---:|\n");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(parts[i].joules <= 0)) /* unknown ones too */
            text_addf(out, "| %s | %s | %s |\n", parts[i].name,
                      words_joules(figure, parts[i].joules, UNKNOWN),
                      words_share(share, parts[i].joules / joules->total));
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

static void put_proposals(const struct estimate_report *report, struct text *out)
{
    char figure[WORDS_MAX], latency[FORMAT_MAX], memory[FORMAT_MAX], each[WORDS_MAX];
    char saving[WORDS_MAX];
    if (!report->recommendation_count)
        return;
    text_addf(out,
              "\n| %s | saves | %s | latency | memory | limits |\n"
              "|---|---:|---:|---:|---:|---|\n",
              words_proposals(report->budget, report->estimate),
              words_each(each, report->estimate->work->unit));
    for (size_t i = 0; i < report->recommendation_count; i++) {
        const struct recommendation *proposal = &report->recommendations[i];
        text_addf(out, "| `%s` | %s | %s | %s | %s | %s |\n", proposal->options,
                  words_saving(saving, proposal->saving),
                  words_joules(figure, proposal->joules_each, UNKNOWN),
                  format_si(latency, proposal->latency_s, "s"),
                  format_bytes(memory, proposal->memory_bytes),
                  budget_has_any(report->budget) ? budget_verdict_name(proposal->verdict) : "");
    }
    text_add(out, "\n");
    for (size_t i = 0; i < report->recommendation_count; i++)
        if (report->recommendations[i].note[0])
            text_addf(out, "- `%s`: %s\n", report->recommendations[i].options,
                      report->recommendations[i].note);
}

void estimate_markdown(const struct estimate_report *report, struct text *out)
{
    const struct workload_estimate *estimate = report->estimate;
    char setting[WORDS_MAX], device[WORDS_MAX];
    text_addf(out, "### %s on %s\n\n%s\n\n", estimate->work->spec.model->name,
              words_device(device, estimate->hardware), words_setting(setting, estimate));
    put_head(estimate, out);
    put_parts(estimate, out);
    put_checks(report, out);
    put_proposals(report, out);
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
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
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
