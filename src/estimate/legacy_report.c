/* Estimates of the legacy model as text and JSON, with the digits of its own reports. */
#include "estimate/legacy.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"

enum { CONSUMERS = 5 };

/* ---- text ---- */

/* The row with the next smaller energy after `last`, then by row order: few are shown, so nothing is sorted. */
static const struct legacy_row *next_consumer(const struct legacy_estimate *estimate,
                                              const struct legacy_row *last)
{
    const struct legacy_row *best = NULL;
    for (size_t i = 0; i < estimate->count; i++) {
        const struct legacy_row *row = &estimate->rows[i];
        double joules = row->joules.total;
        bool is_left =
            !last || joules < last->joules.total || (joules == last->joules.total && row > last);
        if (is_left && (!best || joules > best->joules.total))
            best = row;
    }
    return best;
}

static void put_consumers(const struct legacy_estimate *estimate, struct text *out)
{
    const struct legacy_row *row = NULL;
    for (int i = 0; i < CONSUMERS && (row = next_consumer(estimate, row)); i++)
        text_addf(out, "   %-12s %-28s ~%.0f µJ\n", i ? "" : "top", row->name,
                  1e6 * row->joules.total);
}

void legacy_estimate_text(const struct legacy_estimate *estimate, struct text *out)
{
    const struct estimate_joules *joules = &estimate->joules;
    text_addf(out,
              "\n %s on %s\n   %s, by the legacy model, for comparison only; see "
              "docs/estimate.md\n\n",
              estimate->graph->name, estimate->hardware.name, precision_name(estimate->precision));
    text_addf(out, "   energy       ~%.2f mJ\n", 1e3 * joules->total);
    text_addf(out, "   compute      ~%.0f µJ\n", 1e6 * joules->compute);
    text_addf(out, "   memory       ~%.0f µJ\n", 1e6 * joules->memory);
    text_addf(out, "   static       ~%.0f µJ\n", 1e6 * joules->idle);
    text_addf(out, "   latency      %.2f ms\n", 1e3 * estimate->latency_s);
    text_addf(out, "   power        ~%.2f W average\n", estimate->average_w);
    text_addf(out, "   efficiency   %.1f %%\n", 100 * estimate->efficiency);
    text_addf(out, "   utilization  %.1f %%\n", 100 * estimate->utilization);
    text_addf(out, "   wasted       ~%.0f µJ\n", 1e6 * estimate->wasted_j);
    text_addf(out, "   subgraphs    %zu\n", estimate->count);
    put_consumers(estimate, out);
    text_add(out, "\n");
}

/* ---- JSON ---- */

static void rows_to_json(struct json *json, const struct legacy_estimate *estimate)
{
    json_array(json, "subgraphs");
    for (size_t i = 0; i < estimate->count; i++) {
        const struct legacy_row *row = &estimate->rows[i];
        json_object(json, NULL);
        json_string(json, "name", row->name);
        json_array(json, "ops");
        json_string(json, NULL, row->op);
        json_array_end(json);
        json_number(json, "flops", row->flops);
        json_number(json, "bytes", row->bytes);
        json_number(json, "latency_s", row->latency_s);
        json_number(json, "energy_j", row->joules.total);
        json_string(json, "bound", estimate_bound_name(row->bound));
        json_object_end(json);
    }
    json_array_end(json);
    json_object(json, "bound_counts");
    for (size_t b = 0; b < BOUND_COUNT; b++)
        json_integer(json, estimate_bound_name((enum estimate_bound)b),
                     (int64_t)estimate->bound_counts[b]);
    json_object_end(json);
}

static void head_to_json(struct json *json, const struct legacy_estimate *estimate)
{
    json_string(json, "model", estimate->graph->name);
    json_string(json, "hardware", estimate->hardware.id);
    json_string(json, "hardware_name", estimate->hardware.name);
    json_string(json, "precision", precision_name(estimate->precision));
    json_number(json, "batch", estimate->graph->batch);
    json_number(json, "params", estimate->params);
    json_number(json, "macs", estimate->macs);
    json_number(json, "flops", estimate->flops);
    json_number(json, "bytes", estimate->bytes);
    json_number(json, "latency_s", estimate->latency_s);
    json_object(json, "energy_j");
    json_number(json, "total", estimate->joules.total);
    json_number(json, "compute", estimate->joules.compute);
    json_number(json, "memory", estimate->joules.memory);
    json_number(json, "static", estimate->joules.idle);
    json_object_end(json);
    json_object(json, "power_w");
    json_number(json, "average", estimate->average_w);
    json_number(json, "peak", estimate->peak_w);
    json_object_end(json);
    json_number(json, "utilisation", estimate->utilization);
    json_number(json, "efficiency", estimate->efficiency);
    json_number(json, "wasted_j", estimate->wasted_j);
}

void legacy_estimate_json(const struct legacy_estimate *estimate, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    head_to_json(&json, estimate);
    json_null(&json, "memory_bytes");
    rows_to_json(&json, estimate);
    json_null(&json, "concurrency");
    json_array(&json, "recommendations");
    json_array_end(&json);
    json_string(&json, "confidence", "legacy");
    json_string(&json, "method", "estimated");
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
}
