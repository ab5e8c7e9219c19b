/* One estimate, as text or Markdown: summary, phases, energy breakdown, bottlenecks, top consumers, limits
 * and recommendations. */
#include "report/text/estimate_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

enum { BAR = 32 };

struct page {
    struct text *out;
    bool color, is_markdown;
};

static const char *style(const struct page *page, const char *code)
{
    return page->color ? code : "";
}

/* A line of the summary: "   energy       ~22.1 mJ", in Markdown a row of a table. */
PRINTF_LIKE(3, 4)
static void line(const struct page *page, const char *name, const char *format, ...)
{
    char words[512];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    if (page->is_markdown) {
        text_addf(page->out, "| %s | ", name);
        markdown_add(page->out, words);
        text_add(page->out, " |\n");
    } else {
        text_addf(page->out, "   %-12s %s\n", name, words);
    }
}

/* A line below a heading or a table. */
PRINTF_LIKE(2, 3)
static void item(const struct page *page, const char *format, ...)
{
    char words[512];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    text_add(page->out, page->is_markdown ? "- " : "     ");
    (page->is_markdown ? markdown_add : text_add)(page->out, words);
    text_add(page->out, "\n");
}

static void heading(const struct page *page, const char *words)
{
    if (page->is_markdown)
        text_addf(page->out, "\n**%s**\n\n", words);
    else
        text_addf(page->out, "\n   %s%s%s\n", style(page, BOLD), words, style(page, PLAIN));
}

static void print_table(const struct page *page, struct table *table)
{
    text_add(page->out, "\n");
    if (!page->is_markdown) {
        table_print(table, "   ", page->color, page->out);
        return;
    }
    table_write_markdown(table, page->out);
    table_release(table);
    text_add(page->out, "\n");
}

/* ---- the head ---- */

/* The result first: "resnet50 on NVIDIA H200 SXM 141GB, pytorch-graph (measured): ~131 ± 17 mJ per sample, 850 µs".
 * For a lower bound the interval is in the lines below. */
static void put_title(const struct page *page, const struct workload_estimate *estimate)
{
    char words[WORDS_MAX], runtime[WORDS_MAX], energy[WORDS_MAX], latency[FORMAT_MAX];
    const struct workload *work = estimate->work;
    double joules = workload_estimate_joules_per_unit(estimate);
    if (estimate->shipped.above > 0)
        str_format(energy, sizeof energy, "~%s", format_rough(latency, joules, "J"));
    else
        words_estimated(energy, joules, estimate->total.joules_plus_minus / work->units, "J");
    text_addf(page->out, "%s%s%s on %s%s, %s: %s per %s, %s%s%s\n",
              page->is_markdown ? "### " : "\n ", style(page, BOLD), work->spec.model->name,
              words_device(words, estimate->hardware), style(page, PLAIN),
              words_runtime(runtime, &estimate->work->spec, estimate->hardware,
                            estimate->config.precision),
              is_known(joules) ? energy : "-", work->unit,
              format_rough(latency, estimate->total.latency_s, "s"),
              work->spec.is_request ? " per request" : "",
              estimate->memory.fits ? "" : "; EXCEEDS DEVICE MEMORY");
    words_basis(words, estimate);
    text_addf(page->out, page->is_markdown ? "\n%s; " : "   %s\n", words);
    if (words_host(words, estimate))
        text_addf(page->out, page->is_markdown ? "%s; " : "   %s\n", words);
    words_setting(words, estimate);
    text_addf(page->out, page->is_markdown ? "%s\n\n| | |\n|---|---|\n" : "   %s\n\n", words);
}

static void put_energy(const struct page *page, const struct workload_estimate *estimate)
{
    char total[WORDS_MAX], each[WORDS_MAX], request[WORDS_MAX];
    double units = estimate->work->units;
    words_energy(each, estimate, units, estimate->work->unit);
    if (estimate->work->spec.is_request)
        line(page, "energy", "%s, %s",
             words_energy(request, estimate, estimate->work->batch, "request"), each);
    else if (units == 1)
        line(page, "energy", "%s", each);
    else
        line(page, "energy", "%s, %s in total", each,
             words_estimated(total, estimate->total.joules.total, UNKNOWN, "J"));
}

static void put_time(const struct page *page, const struct workload_estimate *estimate)
{
    char latency[WORDS_MAX], first[FORMAT_MAX], rate[WORDS_MAX];
    words_latency(latency, estimate);
    words_rate(rate, workload_estimate_units_per_s(estimate));
    if (estimate->work->spec.is_request)
        line(page, "latency", "%s; time to first token %s; %s %ss/s", latency,
             format_si(first, estimate->prefill.latency_s, "s"), rate, estimate->work->unit);
    else
        line(page, "latency", "%s; %s %ss/s", latency, rate, estimate->work->unit);
}

/* Per user: a decode step yields a token for each sequence of the batch. */
static void put_user(const struct page *page, const struct workload_estimate *estimate)
{
    const struct workload *work = estimate->work;
    const struct estimate_totals *first = &estimate->prefill;
    char ttft[FORMAT_MAX], tpot[FORMAT_MAX], rate[WORDS_MAX];
    format_with_error(
        ttft, first->latency_s,
        workload_estimate_interval(estimate, first->latency_s, first->latency_plus_minus)
            .plus_minus,
        "s");
    if (work->count == work->prefill_count) {
        line(page, "per user", "TTFT %s", ttft);
        return;
    }
    double steps = (double)(work->spec.output_tokens - 1);
    double each = workload_estimate_tpot_s(estimate);
    format_with_error(
        tpot, each,
        workload_estimate_interval(estimate, each, estimate->decode.latency_plus_minus / steps)
            .plus_minus,
        "s");
    line(page, "per user", "TTFT %s, TPOT %s, %s tokens/s", ttft, tpot, words_rate(rate, 1 / each));
}

static void put_power(const struct page *page, const struct workload_estimate *estimate)
{
    const struct estimate_totals *all = &estimate->total;
    char average[WORDS_MAX], peak[WORDS_MAX], limit[FORMAT_MAX], idle[FORMAT_MAX];
    words_estimated(average, all->average_w, all->power_plus_minus, "W");
    line(page, "power", "%s average, %s peak; limit %s, idle %s", average,
         words_estimated(peak, all->peak_w, UNKNOWN, "W"), format_si(limit, estimate->limit_w, "W"),
         format_si(idle, estimate->hardware->idle_w.value * estimate_devices(&estimate->config),
                   "W"));
}

static void put_operating(const struct page *page, const struct estimate_report *report)
{
    static const char *const NAMES[] = {"cost", "emissions"};
    struct text at = {0};
    if (!report->tariff || !tariff_given(report->tariff))
        return;
    for (int emissions = 0; emissions < 2; emissions++) {
        struct text words = {0};
        estimate_cost_words(report->estimate, report->tariff, emissions, &words);
        if (words.length)
            line(page, NAMES[emissions], "%s", text_get(&words));
        text_release(&words);
    }
    format_tariff(report->tariff, "", &at);
    line(page, "", "%s", text_get(&at));
    if (format_scope(report->tariff)[0])
        line(page, "", "%s", format_scope(report->tariff));
    text_release(&at);
}

static void put_fit(const struct page *page, const struct estimate_report *report)
{
    const struct estimate_memory *memory = &report->estimate->memory;
    const char *each = estimate_devices(&report->estimate->config) > 1 ? " per device" : "";
    char used[FORMAT_MAX], headroom[WORDS_MAX] = "";
    if (!is_known(memory->capacity)) {
        line(page, "memory", "%s%s; device memory unknown", format_bytes(used, memory->total_peak),
             each);
        return;
    }
    char all[FORMAT_MAX];
    format_bytes(used, memory->total_peak);
    format_bytes(all, memory->capacity);
    if (memory->fits && memory->largest_batch >= 1)
        str_format(headroom, sizeof headroom, ", up to batch %.0f", floor(memory->largest_batch));
    else if (!memory->fits && report->devices_to_fit > 1)
        str_format(headroom, sizeof headroom, "; fits with --tensor-parallel %d",
                   report->devices_to_fit);
    line(page, "memory", "%s of %s%s: %s%s%s%s", used, all, each,
         style(page, memory->fits ? GREEN : RED), memory->fits ? "fits" : "EXCEEDS DEVICE MEMORY",
         style(page, PLAIN), headroom);
}

/* Parts of it: "weights 2.3 GiB, activations 12.0 MiB, KV cache 20.0 MiB of 639 tokens". */
static void put_memory(const struct page *page, const struct estimate_report *report)
{
    const struct workload_estimate *estimate = report->estimate;
    const struct estimate_memory *memory = &estimate->memory;
    char words[WORDS_MAX] = "", bytes[FORMAT_MAX], sequences[FORMAT_MAX] = "";
    put_fit(page, report);
    words_add(words, "weights %s", format_bytes(bytes, memory->weights));
    words_add(words, "activations %s", format_bytes(bytes, memory->activations_peak));
    if (memory->workspace_peak > 0)
        words_add(words, "workspace %s", format_bytes(bytes, memory->workspace_peak));
    if (estimate->work->batch > 1)
        str_format(sequences, sizeof sequences, "%.0f x ", estimate->work->batch);
    if (memory->kv_cache > 0 && estimate->cache_tokens > 0)
        words_add(words, "KV cache %s of %s%" PRId64 " tokens",
                  format_bytes(bytes, memory->kv_cache), sequences, estimate->cache_tokens);
    else if (memory->kv_cache > 0)
        words_add(words, "KV cache %s", format_bytes(bytes, memory->kv_cache));
    line(page, "", "%s", words);
}

static void put_work(const struct page *page, const struct workload_estimate *estimate)
{
    const struct estimate_totals *all = &estimate->total;
    const struct estimate_traffic *traffic = &all->traffic;
    char params[FORMAT_MAX], macs[FORMAT_MAX], flops[FORMAT_MAX], bytes[FORMAT_MAX];
    char read[FORMAT_MAX], written[FORMAT_MAX], weights[FORMAT_MAX];
    line(page, "work", "%s parameters, %s, %s; %.3g FLOP/B",
         str_trim(format_si(params, estimate->params, "")), format_si(macs, all->macs, "MAC"),
         format_si(flops, all->flops, "FLOP"), all->flops / all->bytes);
    format_si(bytes, all->bytes, "B");
    format_si(weights, traffic->weights, "B");
    if (traffic->cache_read > 0)
        line(page, "", "%s moved: %s weights, KV cache %s read, %s written", bytes, weights,
             format_si(read, traffic->cache_read, "B"),
             format_si(written, traffic->cache_written, "B"));
    else
        line(page, "", "%s moved, %s of it weights", bytes, weights);
}

static void put_devices(const struct page *page, const struct workload_estimate *estimate)
{
    char words[WORDS_MAX];
    if (words_divided(words, estimate))
        line(page, "devices", "%s", words);
    if (words_pipeline(words, estimate))
        line(page, "pipeline", "%s", words);
}

static void put_confidence(const struct page *page, const struct workload_estimate *estimate)
{
    line(page, "confidence", "%s%s%s", estimate_confidence_name(estimate->confidence),
         estimate->confidence_reason[0] ? ": " : "", estimate->confidence_reason);
    for (size_t i = 0; i < estimate->work->notes.count; i++)
        line(page, i ? "" : "notes", "%s", estimate->work->notes.text[i]);
}

/* ---- phases of a request ---- */

static void phase_row(struct table *table, const char *name, double tokens, double batch,
                      const struct estimate_totals *sums)
{
    char cell[WORDS_MAX];
    double made = tokens * batch;
    table_add(table, name);
    table_addf(table, "%.0f", tokens);
    table_add(table, format_si(cell, sums->latency_s, "s"));
    table_add(table, words_rate(cell, made / sums->latency_s));
    table_add(table, words_estimated(cell, sums->joules.total / batch, UNKNOWN, "J"));
    table_add(table, words_estimated(cell, sums->joules.total / made,
                                     sums->joules_plus_minus / made, "J"));
    table_add(table, words_estimated(cell, sums->average_w, UNKNOWN, "W"));
    table_add(table, words_share(cell, sums->mfu));
    table_add(table, words_share(cell, sums->mbu));
}

static void put_phases(const struct page *page, const struct workload_estimate *estimate)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},   {"tokens", true}, {"latency", true},
        {"tokens/s", true}, {"energy", true}, {"per token", true},
        {"power", true},    {"MFU", true},    {"MBU", true},
    };
    const struct workload *work = estimate->work;
    double batch = work->batch, output = (double)work->spec.output_tokens;
    struct table table = TABLE(COLUMNS);

    phase_row(&table, "prefill", (double)work->spec.setting.tokens, batch, &estimate->prefill);
    if (work->count > work->prefill_count)
        phase_row(&table, "decode", output - 1, batch, &estimate->decode);
    phase_row(&table, "request", output, batch, &estimate->total);
    print_table(page, &table);
}

/* ---- energy breakdown ---- */

static void bar_cell(struct table *table, double share)
{
    static const char *const PARTS[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    long eighths = lround(8 * BAR * (share > 0 ? share : 0));
    struct text bar = {0};
    for (long i = 0; i < eighths / 8; i++)
        text_add(&bar, "█");
    text_add(&bar, PARTS[eighths % 8]);
    table_add(table, text_get(&bar));
    text_release(&bar);
}

static void put_breakdown(const struct page *page, const struct workload_estimate *estimate)
{
    static const struct table_column COLUMNS[] = {
        {"energy breakdown", false}, {"", false}, {"energy", true}, {"share", true}};
    const struct estimate_joules *joules = &estimate->total.joules;
    const struct {
        const char *name;
        double joules;
    } parts[] = {{"compute", joules->compute},
                 {"memory", joules->memory},
                 {"link", joules->link},
                 {"static", joules->idle},
                 {"total", joules->total}};
    char cell[WORDS_MAX];
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(parts[i].joules <= 0)) { /* also if unknown */
            table_add(&table, parts[i].name);
            bar_cell(&table, i < 4 ? parts[i].joules / joules->total : 0);
            table_add(&table, words_estimated(cell, parts[i].joules, UNKNOWN, "J"));
            table_add(&table, words_share(cell, parts[i].joules / joules->total));
        }
    print_table(page, &table);
}

static void put_limits(const struct page *page, const struct workload_estimate *estimate)
{
    const struct estimate_totals *all = &estimate->total;
    const struct partition_concurrency *concurrency = &estimate->passes[0].concurrency;
    char bounds[WORDS_MAX], mfu[WORDS_MAX], mbu[WORDS_MAX], wide[64];
    double count = 0;
    for (size_t b = 0; b < BOUND_COUNT; b++)
        count += all->bound_counts[b];
    heading(page, "bottlenecks");
    item(page, "%.0f subgraph%s, bound by: %s", count, words_plural(count),
         words_bounds(bounds, all->bound_counts));
    item(page, "MFU %s of peak compute, MBU %s of memory bandwidth", words_share(mfu, all->mfu),
         words_share(mbu, all->mbu));
    str_format(wide, sizeof wide, "%zu of them with up to %zu", concurrency->wide_levels,
               concurrency->max_width);
    item(page, "%zu sequential level%s, %s concurrent subgraphs", concurrency->levels,
         words_plural((double)concurrency->levels), concurrency->wide_levels ? wide : "none with");
    item(page, "parallelism %.2f, by level %.2f, with batching %.4g", concurrency->parallelism,
         concurrency->stage_parallelism, concurrency->batch_parallelism);
}

/* ---- top consumers ---- */

static void consumer_row(struct table *table, const struct estimate_consumer *row, bool phases,
                         double total)
{
    char cell[WORDS_MAX];
    const char *phase = row->first->phase == GRAPH_DECODE ? "decode" : "prefill";
    table_add(table, row->name);
    if (row->count > 1)
        table_addf(table, "x %zu", row->count);
    else
        table_add(table, "");
    table_add(table, row->first->subgraph->pattern);
    table_add(table, phases ? phase : "");
    table_add(table, words_estimated(cell, row->joules.total, UNKNOWN, "J"));
    table_add(table, words_share(cell, row->joules.total / total));
    table_add(table, format_si(cell, row->latency_s, "s"));
    table_add(table, row->is_mixed ? "mixed" : estimate_bound_name(row->first->bound));
}

static void put_consumers(const struct page *page, const struct estimate_report *report)
{
    static const struct table_column COLUMNS[] = {
        {"top consumers", false}, {"", true},      {"operations", false}, {"phase", false},
        {"energy", true},         {"share", true}, {"latency", true},     {"bound", false},
    };
    size_t count, shown;
    struct estimate_consumer *rows = estimate_consumers(report, &count);
    struct table table = TABLE(COLUMNS);
    if (!rows) {
        page->out->failed = true;
        return;
    }
    shown = report->top && report->top < count ? report->top : count;
    for (size_t i = 0; i < shown; i++)
        consumer_row(&table, &rows[i], report->estimate->work->spec.is_request,
                     report->estimate->total.joules.total);
    print_table(page, &table);
    if (shown < count)
        text_addf(page->out, "%sand %zu more (--top 0 shows them)\n",
                  page->is_markdown ? "" : "   ", count - shown);
    free(rows);
}

/* ---- limits and recommendations ---- */

static void put_checks(const struct page *page, const struct estimate_report *report)
{
    struct budget_check checks[BUDGET_KINDS];
    char check[WORDS_MAX];
    size_t count = budget_evaluate(report->budget, report->estimate, checks);
    if (count)
        heading(page, "limits");
    for (size_t i = 0; i < count; i++)
        item(page, "%s%-7s%s  %s", style(page, checks[i].verdict == BUDGET_PASS ? GREEN : RED),
             budget_verdict_name(checks[i].verdict), style(page, PLAIN),
             words_check(check, &checks[i], report->estimate));
}

static void fill_recommendations(const struct estimate_report *report, struct table *table)
{
    char cell[WORDS_MAX];
    for (size_t i = 0; i < report->recommendations->count; i++) {
        const struct recommendation *row = &report->recommendations->items[i];
        table_add(table, row->options);
        table_add(table, words_saving(cell, row));
        table_add(table, words_estimated(cell, row->joules_each, UNKNOWN, "J"));
        table_add(table, format_si(cell, row->latency_s, "s"));
        table_add(table, words_rate(cell, row->units_per_s));
        table_add(table, format_bytes(cell, row->memory_bytes));
        table_add(table, budget_has_any(report->budget) ? budget_verdict_name(row->verdict) : "");
    }
}

static void put_no_recommendation(const struct page *page, const struct estimate_report *report)
{
    text_add(page->out, "\n");
    if (!budget_holds(report->budget, report->estimate))
        item(page, "No change that fits meets the limits, or comes closer with less energy.");
    else if (!is_known(report->estimate->total.joules.total))
        item(page, "No recommendations: figures that the energy depends on are unknown.");
    else
        item(page, "No change that fits saves %.0f %%%s.", 100 * RECOMMEND_GAIN_MIN,
             report->recommendations->unsure ? " and more than its ±" : "");
}

static void put_recommendations(const struct page *page, const struct estimate_report *report)
{
    const struct recommendations *list = report->recommendations;
    char each[WORDS_MAX], rate[WORDS_MAX], words[WORDS_MAX];
    const char *unit = words_unit(report->estimate->work);
    const struct table_column columns[] = {
        {words_proposals(report->budget, report->estimate), false},
        {"saves", true},
        {words_each(each, unit), true},
        {"latency", true},
        {rate, true},
        {"memory", true},
        {"limits", false},
    };
    str_format(rate, sizeof rate, "%ss/s", unit);
    struct table table = TABLE(columns);
    if (!list->count) {
        put_no_recommendation(page, report);
        return;
    }
    fill_recommendations(report, &table);
    print_table(page, &table);
    text_addf(page->out, "%seach change alone%s%s\n", page->is_markdown ? "" : "   ",
              list->unsure ? "; " : "", words_unsure(words, list));
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].note[0]) {
            item(page, "%s: %s", list->items[i].options, list->items[i].note);
        }
}

static void figure_cell(struct table *table, const struct words_figure *row)
{
    char cell[FORMAT_MAX];
    const struct hardware_figure *figure = &row->figure;
    if (!is_known(figure->value))
        table_add(table, "-");
    else if (!row->unit[0])
        table_addf(table, "%.3g", figure->value);
    else if (figure->value > 0 &&
             figure->value < 1e-9) /* J/FLOP: below the prefixes of format_si */
        table_addf(table, "%.3g p%s", figure->value * 1e12, row->unit);
    else
        table_add(table, format_si(cell, figure->value, row->unit));
}

static void put_figures(const struct page *page, const struct workload_estimate *estimate)
{
    static const struct table_column COLUMNS[] = {
        {"device figure", false}, {"value", true}, {"evidence", false}, {"source", false}};
    struct words_figure figures[WORDS_FIGURES_MAX];
    size_t count = words_figures(estimate, figures);
    struct table table = TABLE(COLUMNS);

    for (size_t i = 0; i < count; i++) {
        const struct hardware_figure *figure = &figures[i].figure;
        bool known = is_known(figure->value);
        table_addf(&table, "%s%s%s", figures[i].name, figures[i].format ? " " : "",
                   figures[i].format ? figures[i].format : "");
        figure_cell(&table, &figures[i]);
        table_add(&table, known ? evidence_name(figure->evidence) : "unknown");
        table_add(&table, known && figure->source ? figure->source : "");
    }
    print_table(page, &table);
}

static void put_unknown(const struct page *page, const struct workload_estimate *estimate)
{
    const struct graph *graph = &estimate->work->passes[0].graph;
    struct text words = {0};
    if (!graph->unknown_count)
        return;
    text_addf(&words,
              "%zu unknown operator%s, counted as data movement only:", graph->unknown_count,
              words_plural((double)graph->unknown_count));
    const char *labels[8];
    size_t count = words_unknown(graph, labels, sizeof labels / sizeof *labels);
    for (size_t i = 0; i < count; i++)
        text_addf(&words, "%s %s", i ? "," : "", labels[i]);
    text_add(page->out, "\n");
    item(page, "%s", text_get(&words));
    text_release(&words);
}

static void put_estimate(const struct page *page, const struct estimate_report *report)
{
    const struct workload_estimate *estimate = report->estimate;
    put_title(page, estimate);
    put_energy(page, estimate);
    put_time(page, estimate);
    if (estimate->work->spec.is_request)
        put_user(page, estimate);
    put_power(page, estimate);
    put_operating(page, report);
    put_memory(page, report);
    put_work(page, estimate);
    put_devices(page, estimate);
    put_confidence(page, estimate);
    if (estimate->work->spec.is_request)
        put_phases(page, estimate);
    put_breakdown(page, estimate);
    put_limits(page, estimate);
    put_consumers(page, report);
    put_unknown(page, estimate);
    put_checks(page, report);
    put_recommendations(page, report);
    if (report->shows_figures)
        put_figures(page, estimate);
    text_addf(page->out, "\n%s~ estimated by a model of the device, not measured\n%s",
              page->is_markdown ? "\\" : "   ", page->is_markdown ? "" : "\n");
}

void estimate_text(const struct estimate_report *report, bool color, struct text *out)
{
    put_estimate(&(struct page){.out = out, .color = color}, report);
}

void estimate_markdown(const struct estimate_report *report, struct text *out)
{
    put_estimate(&(struct page){.out = out, .is_markdown = true}, report);
}

/* ---- parts of a report ---- */

enum err estimate_report_make(const struct recommend_question *question,
                              struct estimate_parts *parts, struct estimate_report *out,
                              struct error *why)
{
    const struct workload_estimate *estimate = question->now;
    *parts = (struct estimate_parts){0};
    *out = (struct estimate_report){
        .estimate = estimate, .budget = question->budget, .recommendations = &parts->proposals};
    enum err err = workload_estimate_subgraphs(estimate, &parts->rows, &out->row_count, why);
    if (!err)
        err = recommend_make(question, &parts->proposals, why);
    if (!err && !estimate->memory.fits)
        err = recommend_devices_to_fit(estimate, &out->devices_to_fit, why);
    out->rows = parts->rows;
    return err;
}
