/* What an estimate costs and emits at the user's prices: all devices for the whole latency, and their electricity. */
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

enum { MILLION = 1000000 };

struct charge estimate_charge(const struct workload_estimate *estimate,
                              const struct estimate_totals *sums, const struct tariff *tariff,
                              double parts)
{
    double devices = estimate_devices(&estimate->config);
    double joules =
        workload_estimate_interval(estimate, sums->joules.total, sums->joules_plus_minus)
            .plus_minus;
    double latency_s =
        workload_estimate_interval(estimate, sums->latency_s, sums->latency_plus_minus).plus_minus;
    struct charge charge = tariff_charge(tariff, sums->joules.total / parts, joules / parts,
                                         sums->latency_s * devices / parts);
    /* A time that is wrong makes the energy wrong alike. */
    if (is_known(charge.cost))
        add_known(&charge.cost_plus_minus, tariff_devices(tariff, latency_s * devices / parts));
    return charge;
}

void estimate_cost_of(const struct workload_estimate *estimate, const struct tariff *tariff,
                      struct estimate_cost *out)
{
    const struct workload *work = estimate->work;
    const struct workload_spec *spec = &work->spec;
    double input = UNKNOWN, output = UNKNOWN, queries = UNKNOWN;
    if (spec->is_request) {
        queries = work->batch;
        input = work->batch * (double)spec->setting.tokens;
        output = work->units;
    } else if (strcmp(work->unit, "sample") == 0) {
        queries = work->units;
    } else {
        *(strcmp(work->unit, "output token") == 0 ? &output : &input) = work->units;
    }
    out->per_query = estimate_charge(estimate, &estimate->total, tariff, queries);
    out->per_million_input = estimate_charge(estimate, &estimate->total, tariff, input / MILLION);
    out->per_million_output = estimate_charge(estimate, &estimate->total, tariff, output / MILLION);
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

/* Where models as shipped take more than the estimate, the upper end in place of the ±, as of the energy. */
static void add_charge(struct text *out, const struct workload_estimate *estimate,
                       const struct charge *charge, bool emissions, const char *unit)
{
    char cell[FORMAT_MAX];
    bool is_bound = estimate->shipped.above > 0;
    struct charge shown = *charge, most = {charge->cost + charge->cost_plus_minus, UNKNOWN,
                                           charge->gco2e + charge->gco2e_plus_minus, UNKNOWN};
    if (!is_known(emissions ? charge->gco2e : charge->cost))
        return;
    if (is_bound)
        shown.cost_plus_minus = shown.gco2e_plus_minus = UNKNOWN;
    text_addf(out, "%s~%s per %s", out->length ? ", " : "",
              emissions ? format_emissions(cell, &shown) : format_cost(cell, &shown, ""), unit);
    if (is_bound)
        text_addf(out, " (up to %s as shipped)",
                  emissions ? format_emissions(cell, &most) : format_cost(cell, &most, ""));
}

void estimate_cost_words(const struct workload_estimate *estimate, const struct tariff *tariff,
                         bool emissions, struct text *out)
{
    const struct workload *work = estimate->work;
    bool is_request = work->spec.is_request;
    struct estimate_cost cost;
    struct estimate_totals phase;
    estimate_cost_of(estimate, tariff, &cost);
    add_charge(out, estimate, &cost.per_query, emissions, is_request ? "request" : work->unit);
    add_charge(out, estimate, &cost.per_million_output, emissions, "million output tokens");
    if (!is_request) {
        add_charge(out, estimate, &cost.per_million_input, emissions, "million prompt tokens");
        return;
    }
    workload_estimate_total(estimate, 0, work->prefill_count, &phase);
    cost.per_million_input = estimate_charge(
        estimate, &phase, tariff, work->batch * (double)work->spec.setting.tokens / MILLION);
    add_charge(out, estimate, &cost.per_million_input, emissions,
               "million prompt tokens (prefill alone)");
}
