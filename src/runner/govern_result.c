/* Fills the results of `ipw govern`, in the order of its JSON. */
#include "runner/govern_result.h"

#include "core/energy.h"
#include "core/json.h"
#include "core/result.h"
#include "core/units.h"
#include "runner/govern.h"

static void put_objective(struct result *result, const struct govern_options *options)
{
    result_text(result, "set", options->knob == KNOB_POWER_LIMIT ? "power-limit" : "clock");
    result_flag(result, "dry_run", options->dry_run);
    result_group(result, "slo");
    result_number(result, "ttft_ms", options->slo_ms[GOVERN_TTFT], "ms");
    result_number(result, "itl_ms", options->slo_ms[GOVERN_ITL], "ms");
    result_number(result, "max_power_w", options->max_power_w, "W");
    result_end(result);
}

void govern_result_fill(struct result *result, const struct govern_options *options,
                        const struct govern_result *from)
{
    struct json json;
    result_writer(result, &json);
    result_begin(result, "govern");
    result_text(result, "device", from->device);
    result_text(result, "name", from->name);
    put_objective(result, options);
    result_group(result, "metrics");
    result_text(result, "ttft", from->metric_name[GOVERN_TTFT]);
    result_text(result, "itl", from->metric_name[GOVERN_ITL]);
    result_end(result);
    result_number(result, "seconds", from->seconds, "s");
    result_count(result, "steps", from->steps);
    result_count(result, "readings", from->readings);
    result_count(result, "changes", from->changes);
    result_count(result, "violations", from->violations);
    result_number(result, "violations_pct",
                  100 * ratio((double)from->violations, (double)from->readings), "");
    result_group(result, "mean_power_w");
    result_number(result, "default", from->default_w, "W");
    result_number(result, "governed", from->governed_w, "W");
    result_end(result);
    energy_to_json(&json, "energy", &from->energy);
    result_integer(result, "signal", from->signal);
    result_aside(result, "view");
    result_flag(result, "was_set", from->was_set);
    result_end(result);
    result_end(result);
}

void govern_result_step(struct result *result, const struct govern_step *step)
{
    result_begin(result, "step");
    result_number(result, "t_s", step->t_s, "s");
    result_number(result, "ttft_ms", step->latency_s[GOVERN_TTFT] * 1e3, "ms");
    result_number(result, "itl_ms", step->latency_s[GOVERN_ITL] * 1e3, "ms");
    result_flag(result, "itl_is_mean", step->is_mean[GOVERN_ITL]);
    result_number(result, "observations", step->observations, "");
    result_number(result, "power_w", step->power_w, "W");
    result_number(result, "clock_mhz", step->clock_mhz, "MHz");
    result_number(result, "utilization_pct", step->utilization * 100, "");
    result_number(result, "tokens_per_s", step->tokens_per_s, "1/s");
    result_text(result, "action", governor_action_name(step->decision.action));
    result_flag(result, "change", step->decision.is_change);
    result_number(result, "decided", step->decided, ""); /* null: the default */
    result_number(result, "setting", step->setting, "");
    result_flag(result, "violated", step->is_violated);
    result_text(result, "problem", step->problem);
    result_end(result);
}
