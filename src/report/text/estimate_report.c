/* One estimate, as text or Markdown, from its result: summary, phases, energy breakdown, bottlenecks, top consumers,
 * limits and recommendations. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

enum { BAR = 32, UNKNOWN_SHOWN = 8 };

struct page {
    const struct result *result;
    struct text *out;
    bool color, is_markdown;
};

static double number(const struct page *page, const char *path)
{
    return result_number_at(page->result, NULL, path);
}

static const char *word(const struct page *page, const char *path)
{
    return result_text_at(page->result, NULL, path);
}

static bool flag(const struct page *page, const char *path)
{
    return result_flag_at(page->result, NULL, path);
}

static bool is_request(const struct page *page)
{
    return strcmp(word(page, "setting.phase"), "request") == 0;
}

static bool exceeds_memory(const struct page *page)
{
    return number(page, "fits") == 0;
}

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
static void put_title(const struct page *page)
{
    char energy[WORDS_MAX], latency[FORMAT_MAX];
    double joules = number(page, "each.energy_j");
    if (flag(page, "view.is_exceeded_as_shipped"))
        str_format(energy, sizeof energy, "~%s", format_rough(latency, joules, "J"));
    else
        words_estimated(energy, joules, number(page, "each.plus_minus"), "J");
    text_addf(page->out, "%s%s%s on %s%s, %s: %s per %s, %s%s%s\n",
              page->is_markdown ? "### " : "\n ", style(page, BOLD), word(page, "model"),
              word(page, "view.device"), style(page, PLAIN), word(page, "view.runtime"),
              is_known(joules) ? energy : "-", word(page, "each.unit"),
              format_rough(latency, number(page, "latency_s"), "s"),
              is_request(page) ? " per request" : "",
              exceeds_memory(page) ? "; EXCEEDS DEVICE MEMORY" : "");
    text_addf(page->out, page->is_markdown ? "\n%s; " : "   %s\n", word(page, "view.basis"));
    if (word(page, "view.host")[0])
        text_addf(page->out, page->is_markdown ? "%s; " : "   %s\n", word(page, "view.host"));
    text_addf(page->out, page->is_markdown ? "%s\n\n| | |\n|---|---|\n" : "   %s\n\n",
              word(page, "view.setting"));
}

static void put_energy(const struct page *page)
{
    char total[WORDS_MAX], each[WORDS_MAX], request[WORDS_MAX];
    words_energy(each, page->result, "each", word(page, "each.unit"));
    if (is_request(page))
        line(page, "energy", "%s, %s", words_energy(request, page->result, "request", "request"),
             each);
    else if (number(page, "each.count") == 1)
        line(page, "energy", "%s", each);
    else
        line(page, "energy", "%s, %s in total", each,
             words_estimated(total, number(page, "energy_j.total"), UNKNOWN, "J"));
}

static void put_time(const struct page *page)
{
    char latency[WORDS_MAX], first[FORMAT_MAX], rate[WORDS_MAX];
    const char *unit = word(page, "each.unit");
    words_latency(latency, page->result);
    words_rate(rate, number(page, "each.per_s"));
    if (is_request(page))
        line(page, "latency", "%s; time to first token %s; %s %ss/s", latency,
             format_si(first, number(page, "request.first_token_s"), "s"), rate, unit);
    else
        line(page, "latency", "%s; %s %ss/s", latency, rate, unit);
}

/* Per user: a decode step yields a token for each sequence of the batch. */
static void put_user(const struct page *page)
{
    char ttft[FORMAT_MAX], tpot[FORMAT_MAX], rate[WORDS_MAX];
    double steps = number(page, "request.phases.1.tokens");
    format_with_error(ttft, number(page, "request.first_token_s"),
                      number(page, "request.phases.0.latency_plus_minus"), "s");
    if (!is_known(steps)) {
        line(page, "per user", "TTFT %s", ttft);
        return;
    }
    format_with_error(tpot, number(page, "request.tpot_s"),
                      number(page, "request.phases.1.latency_plus_minus") / steps, "s");
    line(page, "per user", "TTFT %s, TPOT %s, %s tokens/s", ttft, tpot,
         words_rate(rate, number(page, "request.tokens_per_s_per_user")));
}

static void put_power(const struct page *page)
{
    char average[WORDS_MAX], peak[WORDS_MAX], limit[FORMAT_MAX], idle[FORMAT_MAX];
    words_estimated(average, number(page, "power_w.average"), number(page, "power_w.plus_minus"),
                    "W");
    line(page, "power", "%s average, %s peak; limit %s, idle %s", average,
         words_estimated(peak, number(page, "power_w.peak"), UNKNOWN, "W"),
         format_si(limit, number(page, "power_w.limit"), "W"),
         format_si(idle, number(page, "power_w.idle"), "W"));
}

/* ---- cost and emissions ---- */

static double charge_at(const struct page *page, const char *kind, const char *each,
                        const char *suffix)
{
    char path[96];
    str_format(path, sizeof path, "operating.%s_per_%s%s", kind, each, suffix);
    return number(page, path);
}

/* If models as shipped take more than the estimate, the upper end instead of the ±, as for the energy. */
static void add_charge(const struct page *page, const char *each, bool emissions, const char *unit,
                       struct text *out)
{
    char cell[FORMAT_MAX];
    bool is_bound = flag(page, "view.is_exceeded_as_shipped");
    struct charge shown = {
        .cost = charge_at(page, "cost", each, ""),
        .cost_plus_minus = charge_at(page, "cost", each, "_plus_minus"),
        .gco2e = charge_at(page, "gco2e", each, ""),
        .gco2e_plus_minus = charge_at(page, "gco2e", each, "_plus_minus"),
    };
    struct charge max = {shown.cost + shown.cost_plus_minus, UNKNOWN,
                         shown.gco2e + shown.gco2e_plus_minus, UNKNOWN};
    if (!is_known(emissions ? shown.gco2e : shown.cost))
        return;
    if (is_bound)
        shown.cost_plus_minus = shown.gco2e_plus_minus = UNKNOWN;
    text_addf(out, "%s~%s per %s", out->length ? ", " : "",
              emissions ? format_emissions(cell, &shown) : format_cost(cell, &shown, ""), unit);
    if (is_bound)
        text_addf(out, " (up to %s as shipped)",
                  emissions ? format_emissions(cell, &max) : format_cost(cell, &max, ""));
}

/* "~0.0012 ± 0.0003 per request, ~1.20 per million output tokens"; or the emissions. */
static void put_charges(const struct page *page, const char *name, bool emissions)
{
    struct text words = {0};
    bool request = is_request(page);
    add_charge(page, "query", emissions, request ? "request" : word(page, "each.unit"), &words);
    add_charge(page, "million_output_tokens", emissions, "million output tokens", &words);
    add_charge(page, "million_input_tokens", emissions,
               request ? "million prompt tokens (prefill alone)" : "million prompt tokens", &words);
    if (words.length)
        line(page, name, "%s", text_get(&words));
    text_release(&words);
}

static void put_operating(const struct page *page)
{
    const struct result_item *operating = result_find(page->result, "operating");
    const struct tariff tariff = words_tariff(page->result, operating);
    struct text at = {0};
    if (!result_first(page->result, operating))
        return;
    put_charges(page, "cost", false);
    put_charges(page, "emissions", true);
    format_tariff(&tariff, "", &at);
    line(page, "", "%s", text_get(&at));
    if (format_scope(&tariff)[0])
        line(page, "", "%s", format_scope(&tariff));
    text_release(&at);
}

/* ---- memory and work ---- */

static void put_fit(const struct page *page)
{
    const char *each = number(page, "setting.devices") > 1 ? " per device" : "";
    char used[FORMAT_MAX], all[FORMAT_MAX], headroom[WORDS_MAX] = "";
    double capacity = number(page, "memory_bytes.capacity"), batch = number(page, "largest_batch"),
           devices = number(page, "view.devices_to_fit");
    bool fits = !exceeds_memory(page);
    format_bytes(used, number(page, "memory_bytes.total_peak"));
    if (!is_known(capacity)) {
        line(page, "memory", "%s%s; device memory unknown", used, each);
        return;
    }
    if (fits && batch >= 1)
        str_format(headroom, sizeof headroom, ", up to batch %.0f", floor(batch));
    else if (!fits && devices > 1)
        str_format(headroom, sizeof headroom, "; fits with --tensor-parallel %.0f", devices);
    line(page, "memory", "%s of %s%s: %s%s%s%s", used, format_bytes(all, capacity), each,
         style(page, fits ? GREEN : RED), fits ? "fits" : "EXCEEDS DEVICE MEMORY",
         style(page, PLAIN), headroom);
}

/* Parts of it: "weights 2.3 GiB, activations 12.0 MiB, KV cache 20.0 MiB of 639 tokens". */
static void put_memory(const struct page *page)
{
    char words[WORDS_MAX] = "", bytes[FORMAT_MAX], sequences[FORMAT_MAX] = "";
    double workspace = number(page, "memory_bytes.workspace_peak"),
           cache = number(page, "memory_bytes.kv_cache"),
           tokens = number(page, "memory_bytes.kv_cache_tokens"), batch = number(page, "batch");
    put_fit(page);
    words_add(words, "weights %s", format_bytes(bytes, number(page, "memory_bytes.weights")));
    words_add(words, "activations %s",
              format_bytes(bytes, number(page, "memory_bytes.activations_peak")));
    if (workspace > 0)
        words_add(words, "workspace %s", format_bytes(bytes, workspace));
    if (batch > 1)
        str_format(sequences, sizeof sequences, "%.0f x ", batch);
    if (cache > 0 && is_known(tokens))
        words_add(words, "KV cache %s of %s%.0f tokens", format_bytes(bytes, cache), sequences,
                  tokens);
    else if (cache > 0)
        words_add(words, "KV cache %s", format_bytes(bytes, cache));
    line(page, "", "%s", words);
}

static void put_work(const struct page *page)
{
    char params[FORMAT_MAX], macs[FORMAT_MAX], flops[FORMAT_MAX], bytes[FORMAT_MAX];
    char read[FORMAT_MAX], written[FORMAT_MAX], weights[FORMAT_MAX];
    double operations = number(page, "flops"), moved = number(page, "bytes");
    line(page, "work", "%s parameters, %s, %s; %.3g FLOP/B",
         str_trim(format_si(params, number(page, "params"), "")),
         format_si(macs, number(page, "macs"), "MAC"), format_si(flops, operations, "FLOP"),
         operations / moved);
    format_si(bytes, moved, "B");
    format_si(weights, number(page, "traffic_bytes.weights"), "B");
    if (number(page, "traffic_bytes.kv_read") > 0)
        line(page, "", "%s moved: %s weights, KV cache %s read, %s written", bytes, weights,
             format_si(read, number(page, "traffic_bytes.kv_read"), "B"),
             format_si(written, number(page, "traffic_bytes.kv_written"), "B"));
    else
        line(page, "", "%s moved, %s of it weights", bytes, weights);
}

/* "4 stages of 20 layers, 4 micro-batches; bubble 12 % of the time". */
static void put_pipeline(const struct page *page)
{
    const struct result_item *stages = result_find(page->result, "pipeline.stages");
    double batches = number(page, "pipeline.micro_batches"), min = INFINITY, max = 0;
    char layers[FORMAT_MAX], waiting[WORDS_MAX];
    if (!stages)
        return;
    RESULT_EACH (stage, page->result, stages) {
        double count = result_number_at(page->result, stage, "layers");
        min = fmin(min, count);
        max = fmax(max, count);
    }
    if (min < max)
        str_format(layers, sizeof layers, "%.0f to %.0f", min, max);
    else
        str_format(layers, sizeof layers, "%.0f", min);
    line(page, "pipeline", "%zu stages of %s layers, %.0f micro-batch%s; bubble %s of the time",
         result_length(page->result, stages), layers, batches, batches == 1 ? "" : "es",
         words_share(waiting, number(page, "pipeline.bubble")));
}

static void put_devices(const struct page *page)
{
    char words[WORDS_MAX];
    if (words_divided(words, page->result, NULL))
        line(page, "devices", "%s", words);
    put_pipeline(page);
}

static void put_confidence(const struct page *page)
{
    const struct result_item *notes = result_find(page->result, "notes");
    const char *reason = word(page, "confidence_reason"), *name = "notes";
    line(page, "confidence", "%s%s%s", word(page, "confidence"), reason[0] ? ": " : "", reason);
    RESULT_EACH (note, page->result, notes) {
        line(page, name, "%s", result_string(page->result, note));
        name = "";
    }
}

/* ---- phases of a request ---- */

/* Of a phase, or of the whole request.  Its ± is that of the bound. */
static void phase_row(const struct page *page, struct table *table, const char *name,
                      const struct result_item *phase, double tokens)
{
    const struct result *result = page->result;
    char cell[WORDS_MAX];
    double batch = number(page, "batch"), made = tokens * batch;
    double joules = result_number_at(result, phase, "energy_j.total"),
           latency_s = result_number_at(result, phase, "latency_s");
    table_add(table, name);
    table_addf(table, "%.0f", tokens);
    table_add(table, format_si(cell, latency_s, "s"));
    table_add(table, words_rate(cell, made / latency_s));
    table_add(table, words_estimated(cell, joules / batch, UNKNOWN, "J"));
    table_add(table,
              words_estimated(cell, joules / made,
                              result_number_at(result, phase, "view.plus_minus_j") / made, "J"));
    table_add(table, words_estimated(cell, result_number_at(result, phase, "power_w.average"),
                                     UNKNOWN, "W"));
    table_add(table, words_share(cell, result_number_at(result, phase, "mfu")));
    table_add(table, words_share(cell, result_number_at(result, phase, "mbu")));
}

static void put_phases(const struct page *page)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},   {"tokens", true}, {"latency", true},
        {"tokens/s", true}, {"energy", true}, {"per token", true},
        {"power", true},    {"MFU", true},    {"MBU", true},
    };
    const struct result_item *phases = result_find(page->result, "request.phases");
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (phase, page->result, phases)
        phase_row(page, &table, result_text_at(page->result, phase, "phase"), phase,
                  result_number_at(page->result, phase, "tokens"));
    phase_row(page, &table, "request", NULL, number(page, "setting.output_tokens"));
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

static void put_breakdown(const struct page *page)
{
    static const struct table_column COLUMNS[] = {
        {"energy breakdown", false}, {"", false}, {"energy", true}, {"share", true}};
    static const char *const PARTS[] = {"compute", "memory", "link", "static", "total"};
    const struct result_item *energy = result_find(page->result, "energy_j");
    double total = number(page, "energy_j.total");
    char cell[WORDS_MAX];
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        double joules = result_number_at(page->result, energy, PARTS[i]);
        if (joules <= 0) /* not if unknown */
            continue;
        table_add(&table, PARTS[i]);
        bar_cell(&table, i < 4 ? joules / total : 0);
        table_add(&table, words_estimated(cell, joules, UNKNOWN, "J"));
        table_add(&table, words_share(cell, joules / total));
    }
    print_table(page, &table);
}

/* ---- bottlenecks ---- */

/* "3 compute, 20 memory, 31 launch"; returns their sum. */
static double words_bounds(const struct page *page, char *to)
{
    const struct result_item *counts = result_find(page->result, "bound_counts");
    double sum = 0;
    to[0] = '\0';
    RESULT_EACH (count, page->result, counts) {
        sum += result_value(count);
        if (result_value(count) > 0)
            words_add(to, "%.0f %s", result_value(count), result_key(page->result, count));
    }
    return sum;
}

static void put_limits(const struct page *page)
{
    char bounds[WORDS_MAX], mfu[WORDS_MAX], mbu[WORDS_MAX], wide[64];
    double count = words_bounds(page, bounds), levels = number(page, "concurrency.levels"),
           wide_levels = number(page, "concurrency.wide_levels");
    heading(page, "bottlenecks");
    item(page, "%.0f subgraph%s, bound by: %s", count, words_plural(count), bounds);
    item(page, "MFU %s of peak compute, MBU %s of memory bandwidth",
         words_share(mfu, number(page, "mfu")), words_share(mbu, number(page, "mbu")));
    str_format(wide, sizeof wide, "%.0f of them with up to %.0f", wide_levels,
               number(page, "concurrency.max_width"));
    item(page, "%.0f sequential level%s, %s concurrent subgraphs", levels, words_plural(levels),
         wide_levels > 0 ? wide : "none with");
    item(page, "parallelism %.2f, by level %.2f, with batching %.4g",
         number(page, "concurrency.parallelism"), number(page, "concurrency.stage_parallelism"),
         number(page, "concurrency.batch_parallelism"));
}

/* ---- top consumers ---- */

static void consumer_row(const struct page *page, struct table *table,
                         const struct result_item *row)
{
    const struct result *result = page->result;
    char cell[WORDS_MAX];
    double joules = result_number_at(result, row, "energy_j"),
           count = result_number_at(result, row, "subgraphs");
    table_add(table, result_text_at(result, row, "name"));
    if (count > 1)
        table_addf(table, "x %.0f", count);
    else
        table_add(table, "");
    table_add(table, result_text_at(result, row, "ops"));
    table_add(table, is_request(page) ? result_text_at(result, row, "phase") : "");
    table_add(table, words_estimated(cell, joules, UNKNOWN, "J"));
    table_add(table, words_share(cell, joules / number(page, "energy_j.total")));
    table_add(table, format_si(cell, result_number_at(result, row, "latency_s"), "s"));
    table_add(table, result_text_at(result, row, "bound"));
}

static void put_consumers(const struct page *page)
{
    static const struct table_column COLUMNS[] = {
        {"top consumers", false}, {"", true},      {"operations", false}, {"phase", false},
        {"energy", true},         {"share", true}, {"latency", true},     {"bound", false},
    };
    const struct result_item *rows = result_find(page->result, "view.consumers");
    struct table table = TABLE(COLUMNS);
    double top = number(page, "view.top");
    size_t count = 0, shown = 0;
    RESULT_EACH (row, page->result, rows) {
        if (top == 0 || (double)shown < top) {
            consumer_row(page, &table, row);
            shown++;
        }
        count++;
    }
    print_table(page, &table);
    if (shown < count)
        text_addf(page->out, "%sand %zu more (--top 0 shows them)\n",
                  page->is_markdown ? "" : "   ", count - shown);
}

static void put_unknown(const struct page *page)
{
    const struct result_item *names = result_find(page->result, "unknown_ops");
    double nodes = number(page, "view.unknown_nodes");
    struct text words = {0};
    size_t shown = 0;
    if (!(nodes > 0))
        return;
    text_addf(&words, "%.0f unknown operator%s, counted as data movement only:", nodes,
              words_plural(nodes));
    RESULT_EACH (name, page->result, names)
        if (shown++ < UNKNOWN_SHOWN)
            text_addf(&words, "%s %s", shown > 1 ? "," : "", result_string(page->result, name));
    text_add(page->out, "\n");
    item(page, "%s", text_get(&words));
    text_release(&words);
}

/* ---- limits ---- */

static char *limit_value(char *to, const char *unit, double value)
{
    if (strcmp(unit, "B") == 0) /* in 10^9 bytes, like the limit */
        str_format(to, FORMAT_MAX, "%.4g GB", value / 1e9);
    else
        format_si(to, value, unit);
    return to;
}

/* "latency  0.41 ms, limit 5 ms: 92 % under". */
static char *check_words(char *to, const struct page *page, const struct result_item *check)
{
    const struct result *result = page->result;
    const char *limit = result_text_at(result, check, "limit"),
               *unit = result_text_at(result, check, "unit");
    char value[FORMAT_MAX], max[FORMAT_MAX], beyond[FORMAT_MAX], each[WORDS_MAX], of[64] = "";
    double margin = result_number_at(result, check, "margin");
    bool is_energy = strcmp(limit, "energy") == 0, is_power = strcmp(limit, "power") == 0;
    limit_value(value, unit, result_number_at(result, check, "value"));
    limit_value(max, unit, result_number_at(result, check, "most"));
    if (is_energy)
        str_format(of, sizeof of, " %.60s",
                   words_each(each, is_request(page) ? "request" : word(page, "each.unit")));
    if (strcmp(limit, "fit") == 0)
        str_format(to, WORDS_MAX, "%-7s  %s, capacity %s: exceeds device memory by %s", limit,
                   value, max, limit_value(beyond, unit, -result_number_at(result, check, "left")));
    else if (strcmp(result_text_at(result, check, "verdict"), "UNKNOWN") == 0)
        str_format(to, WORDS_MAX, "%s unknown", limit);
    else
        str_format(to, WORDS_MAX, "%-7s  %s%s%s, limit %s: %.*f %% %s%s", limit,
                   is_energy || is_power ? "~" : "", value, of, max, fabs(margin) < 0.1 ? 2 : 0,
                   fabs(100 * margin), margin < 0 ? "over" : "under",
                   result_flag_at(result, check, "sure") ? "" : ", within the ±");
    return to;
}

static void put_checks(const struct page *page)
{
    const struct result_item *checks = result_find(page->result, "budget.checks");
    char words[WORDS_MAX];
    if (checks)
        heading(page, "limits");
    RESULT_EACH (check, page->result, checks) {
        const char *verdict = result_text_at(page->result, check, "verdict");
        item(page, "%s%-7s%s  %s", style(page, strcmp(verdict, "PASS") == 0 ? GREEN : RED), verdict,
             style(page, PLAIN), check_words(words, page, check));
    }
}

/* ---- recommendations ---- */

/* "54 ± 6 %", "-12 ± 6 %" where energy increases, "-". */
static char *saving_words(char *to, double saving, double plus_minus)
{
    if (!is_known(saving))
        str_copy(to, WORDS_MAX, "-");
    else
        str_format(to, WORDS_MAX, "%.0f ± %.0f %%", round(100 * saving) + 0.0, /* no "-0" */
                   fmax(1, 100 * plus_minus));
    return to;
}

static void proposal_row(const struct page *page, struct table *table,
                         const struct result_item *row)
{
    const struct result *result = page->result;
    char cell[WORDS_MAX];
    table_add(table, result_text_at(result, row, "options"));
    table_add(table, saving_words(cell, result_number_at(result, row, "saving"),
                                  result_number_at(result, row, "saving_plus_minus")));
    table_add(table,
              words_estimated(cell, result_number_at(result, row, "energy_j"), UNKNOWN, "J"));
    table_add(table, format_si(cell, result_number_at(result, row, "latency_s"), "s"));
    table_add(table, words_rate(cell, result_number_at(result, row, "per_s")));
    table_add(table, format_bytes(cell, result_number_at(result, row, "memory_bytes")));
    table_add(table, result_text_at(result, row, "limits"));
}

static void put_no_proposal(const struct page *page)
{
    text_add(page->out, "\n");
    if (!flag(page, "view.meets_limits"))
        item(page, "No change that fits meets the limits, or comes closer with less energy.");
    else if (!is_known(number(page, "energy_j.total")))
        item(page, "No recommendations: figures that the energy depends on are unknown.");
    else
        item(page, "No change that fits saves %.0f %%%s.", 100 * number(page, "view.least_saving"),
             number(page, "recommendations_unsure") > 0 ? " and more than its ±" : "");
}

/* What applies to all of them, then their side effects. */
static void put_proposal_notes(const struct page *page, const struct result_item *list)
{
    double unsure = number(page, "recommendations_unsure");
    text_addf(page->out, "%seach change alone", page->is_markdown ? "" : "   ");
    if (unsure > 0)
        text_addf(page->out, "; %.0f other%s less than %s ±", unsure,
                  unsure == 1 ? " saves" : "s save", unsure == 1 ? "its" : "their");
    text_add(page->out, "\n");
    RESULT_EACH (row, page->result, list) {
        const char *note = result_text_at(page->result, row, "note");
        if (note[0])
            item(page, "%s: %s", result_text_at(page->result, row, "options"), note);
    }
}

static void put_proposals(const struct page *page)
{
    const struct result_item *list = result_find(page->result, "recommendations");
    char each[WORDS_MAX], rate[WORDS_MAX];
    const char *unit = word(page, "view.unit");
    const struct table_column columns[] = {
        {flag(page, "view.meets_limits") ? "to save energy" : "to meet the limits", false},
        {"saves", true},
        {words_each(each, unit), true},
        {"latency", true},
        {rate, true},
        {"memory", true},
        {"limits", false},
    };
    str_format(rate, sizeof rate, "%ss/s", unit);
    struct table table = TABLE(columns);
    if (!result_first(page->result, list)) {
        put_no_proposal(page);
        return;
    }
    RESULT_EACH (row, page->result, list)
        proposal_row(page, &table, row);
    print_table(page, &table);
    put_proposal_notes(page, list);
}

/* ---- figures of the device ---- */

static void figure_cell(struct table *table, double value, const char *unit)
{
    char cell[FORMAT_MAX];
    if (!is_known(value))
        table_add(table, "-");
    else if (!unit[0])
        table_addf(table, "%.3g", value);
    else if (value > 0 && value < 1e-9) /* J/FLOP: below the prefixes of format_si */
        table_addf(table, "%.3g p%s", value * 1e12, unit);
    else
        table_add(table, format_si(cell, value, unit));
}

static void put_figures(const struct page *page)
{
    static const struct table_column COLUMNS[] = {
        {"device figure", false}, {"value", true}, {"evidence", false}, {"source", false}};
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (row, result, result_find(result, "hardware_figures")) {
        const char *format = result_text_at(result, row, "format"),
                   *evidence = result_text_at(result, row, "evidence");
        table_addf(&table, "%s%s%s", result_text_at(result, row, "name"), format[0] ? " " : "",
                   format);
        figure_cell(&table, result_number_at(result, row, "value"),
                    result_text_at(result, row, "unit"));
        table_add(&table, evidence[0] ? evidence : "unknown");
        table_add(&table, result_text_at(result, row, "source"));
    }
    print_table(page, &table);
}

/* ---- all of it ---- */

static void put_estimate(const struct page *page)
{
    put_title(page);
    put_energy(page);
    put_time(page);
    if (is_request(page))
        put_user(page);
    put_power(page);
    put_operating(page);
    put_memory(page);
    put_work(page);
    put_devices(page);
    put_confidence(page);
    if (is_request(page))
        put_phases(page);
    put_breakdown(page);
    put_limits(page);
    put_consumers(page);
    put_unknown(page);
    put_checks(page);
    put_proposals(page);
    if (flag(page, "view.in_full"))
        put_figures(page);
    text_addf(page->out, "\n%s~ estimated by a model of the device, not measured\n%s",
              page->is_markdown ? "\\" : "   ", page->is_markdown ? "" : "\n");
}

void estimate_text(const struct result *result, bool color, struct text *out)
{
    put_estimate(&(struct page){.result = result, .out = out, .color = color});
}

void estimate_markdown(const struct result *result, bool color, struct text *out)
{
    (void)color;
    put_estimate(&(struct page){.result = result, .out = out, .is_markdown = true});
}
