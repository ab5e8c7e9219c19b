/* Shared by text, Markdown, CSV, JSON and plots of estimates: cells with units, the device figures that an estimate
 * uses, and subgraphs grouped into consumers of energy. */
#include "report/text/estimate_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/roofline.h"
#include "report/text/estimate_report.h"
#include "report/text/format.h"

void words_add(char *to, const char *format, ...)
{
    size_t length = strlen(to);
    va_list values;
    if (length && length + 2 < WORDS_MAX) {
        str_copy(to + length, WORDS_MAX - length, ", ");
        length += 2;
    }
    va_start(values, format);
    vsnprintf(to + length, WORDS_MAX - length, format, values);
    va_end(values);
}

char *words_each(char *to, const char *unit)
{
    str_format(to, WORDS_MAX, "per %s", unit);
    return to;
}

const char *words_plural(double count)
{
    return count == 1 ? "" : "s";
}

char *words_estimated(char *to, double value, double plus_minus, const char *unit)
{
    char figure[FORMAT_MAX];
    if (!is_known(value))
        str_copy(to, WORDS_MAX, "-");
    else
        str_format(to, WORDS_MAX, "~%s", format_with_error(figure, value, plus_minus, unit));
    return to;
}

/* "9.9 to 45 mJ", "0.9 mJ to 1.2 J". */
static void words_range(char *to, struct estimate_interval range, const char *unit)
{
    char low[FORMAT_MAX], high[FORMAT_MAX];
    format_rough(low, range.low, unit);
    format_rough(high, range.high, unit);
    char *space = strchr(low, ' ');
    const char *other = strchr(high, ' ');
    if (space && other && strcmp(space, other) == 0)
        *space = '\0'; /* common unit */
    str_format(to, WORDS_MAX, "%s to %s", low, high);
}

/* A figure with its unit, followed by `each`. */
static char *words_shipped(char *to, const struct workload_estimate *estimate, double value,
                           double plus_minus, const char *unit, const char *each)
{
    char figure[FORMAT_MAX], range[WORDS_MAX];
    const char *about = *unit == 'J' ? "~" : "";
    if (!is_known(value))
        str_format(to, WORDS_MAX, "-%s", each);
    else if (!(estimate->shipped.above > 0))
        str_format(to, WORDS_MAX, "%s%s%s", about,
                   format_with_error(figure, value, plus_minus, unit), each);
    else {
        words_range(range, workload_estimate_interval(estimate, value, plus_minus), unit);
        str_format(to, WORDS_MAX, "%s%s%s (%.60s as shipped)", about,
                   format_rough(figure, value, unit), each, range);
    }
    return to;
}

char *words_energy(char *to, const struct workload_estimate *estimate, double parts,
                   const char *unit)
{
    const struct estimate_totals *all = &estimate->total;
    char each[64] = "";
    if (*unit)
        str_format(each, sizeof each, " per %.40s", unit);
    return words_shipped(to, estimate, all->joules.total / parts, all->joules_plus_minus / parts,
                         "J", each);
}

char *words_latency(char *to, const struct workload_estimate *estimate)
{
    const struct estimate_totals *all = &estimate->total;
    return words_shipped(to, estimate, all->latency_s, all->latency_plus_minus, "s", "");
}

char *words_bounds(char *to, const double counts[BOUND_COUNT])
{
    to[0] = '\0';
    for (size_t b = 0; b < BOUND_COUNT; b++)
        if (counts[b] > 0)
            words_add(to, "%.0f %s", counts[b], estimate_bound_name((enum estimate_bound)b));
    return to;
}

char *words_share(char *to, double share)
{
    if (!is_known(share))
        str_copy(to, WORDS_MAX, "-");
    else if (share > 0 && share < 0.001)
        str_copy(to, WORDS_MAX, "< 0.1 %");
    else
        str_format(to, WORDS_MAX, "%.1f %%", 100 * share);
    return to;
}

char *words_rate(char *to, double rate)
{
    char figure[FORMAT_MAX];
    if (!is_known(rate))
        str_copy(to, WORDS_MAX, "-");
    else if (rate < 9999.5)
        str_format(to, WORDS_MAX, rate < 9.995 ? "%.3g" : "%.0f", rate);
    else
        str_copy(to, WORDS_MAX, str_trim(format_si(figure, rate, "")));
    return to;
}

char *words_saving(char *to, const struct recommendation *row)
{
    if (!is_known(row->saving))
        str_copy(to, WORDS_MAX, "-");
    else
        str_format(to, WORDS_MAX, "%.0f ± %.0f %%", round(100 * row->saving) + 0.0, /* no "-0" */
                   fmax(1, 100 * row->saving_plus_minus));
    return to;
}

char *words_unsure(char *to, const struct recommendations *list)
{
    to[0] = '\0';
    if (list->unsure)
        str_format(to, WORDS_MAX, "%zu other%s less than %s ±", list->unsure,
                   list->unsure == 1 ? " saves" : "s save", list->unsure == 1 ? "its" : "their");
    return to;
}

const char *words_proposals(const struct budget *budget, const struct workload_estimate *estimate)
{
    return budget_holds(budget, estimate) ? "to save energy" : "to meet the limits";
}

char *words_divided(char *to, const struct workload_estimate *estimate)
{
    char share[WORDS_MAX];
    if (!(estimate->divided < 0.995))
        return NULL;
    str_format(to, WORDS_MAX, "%d divide %s of the MACs and replicate the rest",
               estimate->config.devices, words_share(share, estimate->divided));
    return to;
}

char *words_pipeline(char *to, const struct workload_estimate *estimate)
{
    const struct workload_pipeline *pipeline = &estimate->pipeline;
    int stages = estimate->config.stages, min = pipeline->stages[0].layers, max = min;
    char layers[FORMAT_MAX], waiting[WORDS_MAX];
    if (stages < 2)
        return NULL;
    for (int s = 1; s < stages; s++) {
        min = pipeline->stages[s].layers < min ? pipeline->stages[s].layers : min;
        max = pipeline->stages[s].layers > max ? pipeline->stages[s].layers : max;
    }
    str_format(layers, sizeof layers, min < max ? "%d to %d" : "%d", min, max);
    str_format(to, WORDS_MAX, "%d stages of %s layers, %.0f micro-batch%s; bubble %s of the time",
               stages, layers, pipeline->micro_batches, pipeline->micro_batches == 1 ? "" : "es",
               words_share(waiting, pipeline->bubble));
    return to;
}

static char *value_words(char *to, enum budget_kind kind, double value)
{
    if (kind == BUDGET_MEMORY || kind == BUDGET_FIT) /* in 10^9 bytes, like the limit */
        str_format(to, FORMAT_MAX, "%.4g GB", value / 1e9);
    else
        format_si(to, value, budget_unit(kind));
    return to;
}

char *words_check(char *to, const struct budget_check *check,
                  const struct workload_estimate *estimate)
{
    char value[FORMAT_MAX], max[FORMAT_MAX], each[WORDS_MAX], of[64] = "";
    const char *about = check->kind == BUDGET_ENERGY || check->kind == BUDGET_POWER ? "~" : "";
    if (check->kind == BUDGET_ENERGY)
        str_format(of, sizeof of, " %.60s", words_each(each, budget_energy_unit(estimate)));
    if (check->kind == BUDGET_FIT) {
        char beyond[FORMAT_MAX];
        str_format(to, WORDS_MAX, "%-7s  %s, capacity %s: exceeds device memory by %s",
                   budget_name(check->kind), value_words(value, check->kind, check->value),
                   value_words(max, check->kind, check->max),
                   value_words(beyond, check->kind, -check->left));
    } else if (check->verdict == BUDGET_UNKNOWN)
        str_format(to, WORDS_MAX, "%s unknown", budget_name(check->kind));
    else
        str_format(to, WORDS_MAX, "%-7s  %s%s%s, limit %s: %.*f %% %s%s", budget_name(check->kind),
                   about, value_words(value, check->kind, check->value), of,
                   value_words(max, check->kind, check->max), fabs(check->margin) < 0.1 ? 2 : 0,
                   fabs(100 * check->margin), check->margin < 0 ? "over" : "under",
                   check->is_sure ? "" : ", within the ±");
    return to;
}

size_t words_unknown(const struct graph *graph, const char **labels, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count && graph->unknown_count && count < max; i++) {
        const struct graph_node *node = &graph->nodes[i];
        bool is_new = node->op == GRAPH_UNKNOWN && node->label;
        for (size_t k = 0; is_new && k < count; k++)
            is_new = strcmp(labels[k], node->label) != 0;
        if (is_new)
            labels[count++] = node->label;
    }
    return count;
}

static size_t put_way(const struct hardware_path *way, struct words_figure *out)
{
    const char *format = precision_name(way->used);
    out[0] = (struct words_figure){way->is_matrix ? "matrix_flops" : "vector_flops", "FLOP/s",
                                   format, *way->flops};
    out[1] = (struct words_figure){way->is_matrix ? "matrix_joules" : "vector_joules", "J/FLOP",
                                   format, *way->joules};
    return 2;
}

/* For devices that share a model.  An unknown latency counts as 0. */
static size_t put_link(const struct hardware *hardware, struct words_figure *out)
{
    out[0] = (struct words_figure){"link_bandwidth", "B/s", NULL, hardware->link_bytes_per_s};
    out[1] = (struct words_figure){"link_latency", "s", NULL, hardware->link_latency_s};
    if (!is_known(out[1].figure.value))
        out[1].figure = (struct hardware_figure){.value = 0,
                                                 .evidence = EVIDENCE_ASSUMED,
                                                 .plus_minus = UNKNOWN,
                                                 .source = "unknown: assumed to be 0"};
    size_t count = 2;
    if (is_known(hardware->link_peers.value))
        out[count++] = (struct words_figure){"link_peers", "", NULL, hardware->link_peers};
    if (is_known(hardware->link_count.value))
        out[count++] = (struct words_figure){"links", "", NULL, hardware->link_count};
    return count;
}

/* Host launch time, unless given by an option. */
static size_t put_host(const struct workload_estimate *estimate, struct words_figure *out)
{
    const struct runtime_host host = words_runtime_host(estimate);
    if (!is_known(host.launch_s) || estimate->config.host_launch_s > 0)
        return 0;
    out[0] = (struct words_figure){"host_launch", "s", NULL, estimate->hardware->host_launch_s};
    if (host.spread > 0)
        out[0].figure = (struct hardware_figure){.value = host.launch_s,
                                                 .evidence = EVIDENCE_ASSUMED,
                                                 .plus_minus = host.spread * host.launch_s,
                                                 .source = "not stated: mean of nine hosts"};
    return 1;
}

size_t words_figures(const struct workload_estimate *estimate,
                     struct words_figure out[WORDS_FIGURES_MAX])
{
    const struct hardware *hardware = estimate->hardware;
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    struct hardware_path products = hardware_matmul_path(hardware, estimate->config.precision);
    struct hardware_path others = hardware_elementwise_path(hardware, estimate->config.precision);
    struct rates_stated stated = rates_stated_or_assumed(hardware);
    size_t count = put_way(&products, out);
    if (others.flops != products.flops)
        count += put_way(&others, out + count);
    const struct words_figure more[] = {
        {"memory_bandwidth", "B/s", NULL, memory->bytes_per_s},
        {"memory_joules", "J/B", NULL, memory->joules_per_byte},
        {"memory_capacity", "B", NULL, memory->capacity_bytes},
        {"power_limit", "W", NULL, hardware->limit_w},
        {"idle_power", "W", NULL, hardware->idle_w},
        {"launch", "s", NULL, stated.launch_s},
        {"units", "", NULL, hardware->units},
        {"compute_share", "", NULL, stated.compute_share},
        {"memory_share", "", NULL, stated.memory_share},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        out[count++] = more[i];
    count += put_host(estimate, out + count);
    if (estimate_devices(&estimate->config) > 1)
        count += put_link(hardware, out + count);
    return count;
}

/* ---- consumers ---- */

static int by_joules(const void *left, const void *right)
{
    const struct estimate_consumer *a = left, *b = right;
    double x = a->joules.total, y = b->joules.total;
    if (is_known(x) != is_known(y))
        return is_known(x) ? -1 : 1;
    if (is_known(x) && x != y)
        return x < y ? 1 : -1;
    return (a->first > b->first) - (a->first < b->first);
}

/* Replaces numbers between dots, which distinguish layers, by "*". */
static void collapse(char *to, size_t size, const char *name)
{
    size_t used = 0;
    while (*name && used + 1 < size) {
        size_t digits = strspn(name, "0123456789");
        bool starts = used == 0 || to[used - 1] == '.';
        if (digits && starts && (name[digits] == '.' || !name[digits])) {
            to[used++] = '*';
            name += digits;
        } else {
            to[used++] = *name++;
        }
    }
    to[used] = '\0';
}

static void short_name(char *to, const char *name)
{
    size_t length = strlen(name);
    if (length <= CONSUMER_NAME_MAX) {
        str_copy(to, CONSUMER_NAME_MAX + 8, name);
        return;
    }
    name += length - (CONSUMER_NAME_MAX - 1); /* the end of a name is more specific */
    while (utf8_is_continuation(*name))       /* not within a character */
        name++;
    str_format(to, CONSUMER_NAME_MAX + 8, "…%s", name);
}

static struct estimate_consumer *find_consumer(struct estimate_consumer *all, size_t count,
                                               const char *name, const struct subgraph_total *row)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].first->phase == row->phase && strcmp(all[i].name, name) == 0 &&
            strcmp(all[i].first->subgraph->pattern, row->subgraph->pattern) == 0)
            return &all[i];
    return NULL;
}

/* Above this number subgraphs are not grouped: the search is quadratic. */
enum { GROUPED_MAX = 5000 };

struct estimate_consumer *estimate_consumers(const struct estimate_report *report, size_t *count)
{
    struct estimate_consumer *all = calloc(report->row_count + 1, sizeof *all);
    bool grouped = !report->shows_figures && report->row_count <= GROUPED_MAX;
    *count = 0;
    for (size_t i = 0; all && i < report->row_count; i++) {
        const struct subgraph_total *row = &report->rows[i];
        char whole[256], name[CONSUMER_NAME_MAX + 8];
        if (grouped)
            collapse(whole, sizeof whole, row->subgraph->name);
        else
            str_copy(whole, sizeof whole, row->subgraph->name);
        short_name(name, whole);
        struct estimate_consumer *consumer = grouped ? find_consumer(all, *count, name, row) : NULL;
        if (!consumer) {
            consumer = &all[(*count)++];
            str_copy(consumer->name, sizeof consumer->name, name);
            consumer->first = row;
        }
        estimate_joules_add(&consumer->joules, &row->joules, 1);
        consumer->latency_s += row->latency_s;
        consumer->is_mixed = consumer->is_mixed || row->bound != consumer->first->bound;
        consumer->count++;
    }
    for (size_t i = 0; all && i < *count; i++)
        if (all[i].count == 1) /* alone in its group: keeps its own name */
            short_name(all[i].name, all[i].first->subgraph->name);
    if (all)
        qsort(all, *count, sizeof *all, by_joules);
    return all;
}

/* ---- JSON ---- */

void charge_to_json(struct json *json, const char *each, const struct charge *charge)
{
    char key[80];
    str_format(key, sizeof key, "cost_per_%s", each);
    json_number(json, key, charge->cost);
    str_format(key, sizeof key, "cost_per_%s_plus_minus", each);
    json_number(json, key, charge->cost_plus_minus);
    str_format(key, sizeof key, "gco2e_per_%s", each);
    json_number(json, key, charge->gco2e);
    str_format(key, sizeof key, "gco2e_per_%s_plus_minus", each);
    json_number(json, key, charge->gco2e_plus_minus);
}

void estimate_cost_to_json(struct json *json, const struct workload_estimate *estimate,
                           const struct tariff *tariff)
{
    struct estimate_cost cost;
    if (!tariff || !tariff_given(tariff)) {
        json_null(json, "operating");
        return;
    }
    estimate_cost_of(estimate, tariff, &cost);
    json_object(json, "operating");
    json_number(json, "price_per_kwh", tariff->price_per_kwh);
    json_number(json, "gco2_per_kwh", tariff->gco2_per_kwh);
    json_number(json, "device_price_per_hour", tariff->device_price_per_hour);
    json_integer(json, "devices", estimate_devices(&estimate->config));
    charge_to_json(json, "query", &cost.per_query);
    charge_to_json(json, "million_input_tokens", &cost.per_million_input);
    charge_to_json(json, "million_output_tokens", &cost.per_million_output);
    json_object_end(json);
}

/* ---- words ---- */

/* If models as shipped take more than the estimate, the upper end instead of the ±, as for the energy. */
static void add_charge(struct text *out, const struct workload_estimate *estimate,
                       const struct charge *charge, bool emissions, const char *unit)
{
    char cell[FORMAT_MAX];
    bool is_bound = estimate->shipped.above > 0;
    struct charge shown = *charge, max = {charge->cost + charge->cost_plus_minus, UNKNOWN,
                                          charge->gco2e + charge->gco2e_plus_minus, UNKNOWN};
    if (!is_known(emissions ? charge->gco2e : charge->cost))
        return;
    if (is_bound)
        shown.cost_plus_minus = shown.gco2e_plus_minus = UNKNOWN;
    text_addf(out, "%s~%s per %s", out->length ? ", " : "",
              emissions ? format_emissions(cell, &shown) : format_cost(cell, &shown, ""), unit);
    if (is_bound)
        text_addf(out, " (up to %s as shipped)",
                  emissions ? format_emissions(cell, &max) : format_cost(cell, &max, ""));
}

void estimate_cost_words(const struct workload_estimate *estimate, const struct tariff *tariff,
                         bool emissions, struct text *out)
{
    const struct workload *work = estimate->work;
    bool is_request = work->spec.is_request;
    struct estimate_cost cost;
    estimate_cost_of(estimate, tariff, &cost);
    add_charge(out, estimate, &cost.per_query, emissions, is_request ? "request" : work->unit);
    add_charge(out, estimate, &cost.per_million_output, emissions, "million output tokens");
    add_charge(out, estimate, &cost.per_million_input, emissions,
               is_request ? "million prompt tokens (prefill alone)" : "million prompt tokens");
}
