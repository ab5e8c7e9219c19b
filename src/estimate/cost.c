/* Charges of an estimate and of its parts, by a tariff; and as part of a result. */
#include "estimate/cost.h"

#include <string.h>

#include "core/result.h"
#include "core/text.h"

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
    /* Errors of time and energy are fully correlated. */
    if (is_known(charge.cost))
        add_known(&charge.cost_plus_minus, tariff_devices(tariff, latency_s * devices / parts));
    return charge;
}

/* UNKNOWN without prices. */
struct estimate_cost {
    struct charge per_query;          /* a request or a sample */
    struct charge per_million_input;  /* of a request: its prefill over the prompt's tokens */
    struct charge per_million_output; /* the total over the output tokens */
};

static void find_cost(const struct workload_estimate *estimate, const struct tariff *tariff,
                      struct estimate_cost *out)
{
    const struct estimate_workload *work = estimate->work;
    const struct workload_spec *spec = &work->spec;
    const struct estimate_totals *of_input = &estimate->total;
    double input = UNKNOWN, output = UNKNOWN, queries = UNKNOWN;
    if (spec->is_request) {
        queries = work->batch;
        input = work->batch * (double)spec->setting.tokens;
        output = work->units;
        of_input = &estimate->prefill;
    } else if (str_equal(work->unit, "sample")) {
        queries = work->units;
    } else {
        *(str_equal(work->unit, "output token") ? &output : &input) = work->units;
    }
    out->per_query = estimate_charge(estimate, &estimate->total, tariff, queries);
    out->per_million_input = estimate_charge(estimate, of_input, tariff, input / MILLION);
    out->per_million_output = estimate_charge(estimate, &estimate->total, tariff, output / MILLION);
}

/* ---- results ---- */

static void add_figure(struct result *result, const char *kind, const char *each, double value,
                       double plus_minus, const char *unit)
{
    char key[80], error[96];
    chars_format(key, "%s_per_%s", kind, each);
    chars_format(error, "%s_plus_minus", key);
    result_measured(result, key, value, error, plus_minus, unit);
}

void charge_to_result(struct result *result, const char *each, const struct charge *charge)
{
    add_figure(result, "cost", each, charge->cost, charge->cost_plus_minus, "");
    add_figure(result, "gco2e", each, charge->gco2e, charge->gco2e_plus_minus, "g");
}

static void tariff_to_result(struct result *result, const struct tariff *tariff)
{
    result_number(result, "price_per_kwh", tariff->price_per_kwh, "");
    result_number(result, "gco2_per_kwh", tariff->gco2_per_kwh, "g");
    result_number(result, "device_price_per_hour", tariff->device_price_per_hour, "");
}

void estimate_cost_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct tariff *tariff)
{
    struct estimate_cost cost;
    if (!tariff || !tariff_given(tariff)) {
        result_null(result, "operating");
        return;
    }
    find_cost(estimate, tariff, &cost);
    result_group(result, "operating");
    tariff_to_result(result, tariff);
    result_integer(result, "devices", estimate_devices(&estimate->config));
    charge_to_result(result, "query", &cost.per_query);
    charge_to_result(result, "million_input_tokens", &cost.per_million_input);
    charge_to_result(result, "million_output_tokens", &cost.per_million_output);
    result_end(result);
}
