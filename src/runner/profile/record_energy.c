/* The energy lines: a share of the devices' joules in the layout of a profiling record. */
#include "attribute/share.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "runner/profile/state.h"
#include "runner/profile/device_energy.h"
#include "runner/profile/record.h"
#include "sensors/sensor.h"

static void put_known(struct json *json, const char *key, double value)
{
    if (is_known(value))
        json_number(json, key, value);
}

static double ratio(double a, double b)
{
    return is_known(a) && b > 0 ? a / b : UNKNOWN;
}

static void derive(const struct profile *profile, const struct pending *pending,
                   const struct share *share, struct efficiency *out)
{
    struct efficiency_inputs facts = profile->facts;
    facts.prompt_tokens = pending->input_tokens;
    facts.output_tokens = pending->output_tokens;
    facts.seconds = pending->seconds;
    facts.decode_seconds = pending->decode_s;
    facts.joules = share->total.joules;
    facts.prefill_joules = share->prefill_joules;
    facts.decode_joules = share->decode_joules;
    facts.batch = share->concurrency;
    efficiency_of(&facts, out);
}

static void put_stats(struct json *json, const char *key, const struct value_stats *stats,
                      double scale)
{
    if (!is_known(stats->avg))
        return;
    json_object(json, key);
    put_known(json, "avg", stats->avg * scale);
    put_known(json, "max", stats->max * scale);
    put_known(json, "median", stats->median * scale);
    put_known(json, "min", stats->min * scale);
    json_object_end(json);
}

/* ---- energy and power by kind of device ---- */

static void put_energy(struct json *json, const struct device_energy *kinds,
                       const struct efficiency *figures)
{
    json_object(json, "energy_metrics");
    put_known(json, "per_query_joules", kinds->gpu.joules);
    put_known(json, "total_joules", kinds->gpu.window_joules);
    put_known(json, "cpu_per_query_joules", kinds->cpu.joules);
    put_known(json, "cpu_total_joules", kinds->cpu.window_joules);
    put_known(json, "soc_per_query_joules", kinds->soc.joules);
    put_known(json, "soc_total_joules", kinds->soc.window_joules);
    put_known(json, "energy_per_output_token_joules", figures->joules_per_output_token);
    put_known(json, "energy_per_total_token_joules", figures->joules_per_token);
    json_string(json, "basis", device_energy_basis(kinds));
    json_object_end(json);
}

static void put_kind_power(struct json *json, const char *key, const struct device_sum *kind,
                           double query_s)
{
    if (!is_known(kind->joules))
        return;
    /* The query's own watts are its joules over its time; how they rose and fell inside is known only
     * while it had the device to itself. */
    struct value_stats own = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    own.avg = ratio(kind->joules, query_s);
    if (kind->joules >= 0.999 * kind->window_joules) {
        own.max = kind->watts.max;
        own.median = kind->watts.median;
        own.min = kind->watts.min;
    }
    json_object(json, key);
    put_stats(json, "per_query_watts", &own, 1);
    put_stats(json, "total_watts", &kind->watts, 1);
    json_object_end(json);
}

static void put_power(struct json *json, const struct device_energy *kinds, double query_s)
{
    json_object(json, "power_metrics");
    put_kind_power(json, "gpu", &kinds->gpu, query_s);
    put_kind_power(json, "cpu", &kinds->cpu, query_s);
    put_kind_power(json, "soc", &kinds->soc, query_s);
    json_string(json, "basis", device_energy_basis(kinds));
    json_object_end(json);
}

static void put_phases(struct json *json, const struct share *share, const struct pending *pending,
                       const struct efficiency *figures)
{
    json_object(json, "phase_metrics");
    put_known(json, "prefill_energy_j", share->prefill_joules);
    put_known(json, "decode_energy_j", share->decode_joules);
    put_known(json, "prefill_duration_ms", 1e3 * pending->prefill_s);
    put_known(json, "decode_duration_ms", 1e3 * pending->decode_s);
    put_known(json, "prefill_power_avg_w", ratio(share->prefill_joules, pending->prefill_s));
    put_known(json, "decode_power_avg_w", ratio(share->decode_joules, pending->decode_s));
    put_known(json, "prefill_energy_per_input_token_j", figures->prefill_joules_per_token);
    put_known(json, "decode_energy_per_output_token_j", figures->decode_joules_per_token);
    json_object_end(json);
}

/* ---- what the devices were doing ---- */

static void put_memory(struct json *json, const struct device_energy *kinds)
{
    const double mb = 1.0 / (1 << 20);
    json_object(json, "memory_metrics");
    put_stats(json, "cpu_mb", &kinds->host_memory, mb);
    put_stats(json, "gpu_mb", &kinds->gpu_memory, mb);
    json_object_end(json);
}

static void put_utilisation(struct json *json, const struct device_energy *kinds,
                            const struct efficiency *figures)
{
    const double gb = 1e-9;
    json_object(json, "hardware_utilization");
    json_object(json, "gpu");
    put_known(json, "compute_utilization_pct", kinds->utilisation);
    put_known(json, "memory_bandwidth_utilization_pct", kinds->memory_utilisation);
    put_known(json, "tensor_core_utilization_pct", kinds->tensor_utilisation);
    put_known(json, "memory_used_gb", kinds->gpu_memory.avg * gb);
    put_known(json, "memory_total_gb", kinds->gpu_memory_total * gb);
    json_object_end(json);
    json_object(json, "derived");
    put_known(json, "mfu", figures->mfu);
    put_known(json, "mbu", figures->mbu);
    put_known(json, "arithmetic_intensity", figures->arithmetic_intensity);
    json_object_end(json);
    json_object_end(json);
}

static void put_efficiency(struct json *json, const struct efficiency *figures)
{
    json_object(json, "efficiency");
    put_known(json, "throughput_per_watt", figures->tokens_per_joule);
    put_known(json, "flops_per_joule", figures->flops_per_joule);
    /* A rate over a power: the same number, under the name that older readers look for. */
    put_known(json, "flops_per_watt", figures->flops_per_joule);
    json_object_end(json);
}

/* ---- our own columns ---- */

static void put_devices(struct json *json, const struct share *share, bool phases)
{
    struct text text = {0};
    struct json list;
    json_init(&list, &text, false);
    json_array(&list, NULL);
    for (size_t i = 0; i < share->count; i++) {
        const struct device_share *device = &share->devices[i];
        if (!device->device->has_energy)
            continue;
        json_object(&list, NULL);
        json_string(&list, "id", device->device->id);
        json_bool(&list, "in_total", device->counted);
        json_number(&list, "joules", device->energy.joules);
        json_number(&list, "plus_minus", device->energy.plus_minus);
        json_string(&list, "method", method_name(device->energy.method));
        json_string(&list, "source", device->energy.source);
        json_number(&list, "coverage", device->energy.coverage);
        json_number(&list, "idle_joules", device->energy.idle_joules);
        json_number(&list, "prefill_joules", phases ? device->prefill_joules : UNKNOWN);
        json_number(&list, "decode_joules", phases ? device->decode_joules : UNKNOWN);
        json_number(&list, "window_joules", device->window_joules);
        json_object_end(&list);
    }
    json_array_end(&list);
    json_string(json, "devices", text_get(&text));
    text_release(&text);
}

static void put_own(struct json *json, const struct share *share, const struct device_energy *kinds,
                    bool phases)
{
    json_object(json, "ipw");
    energy_to_json(json, "energy", &share->total);
    put_known(json, "window_joules", kinds->window_joules);
    put_known(json, "prefill_plus_minus", share->prefill.plus_minus);
    put_known(json, "decode_plus_minus", share->decode.plus_minus);
    put_known(json, "company", share->concurrency);
    put_known(json, "alone_s", share->alone_s);
    put_devices(json, share, phases);
    json_object_end(json);
}

static void begin_line(struct json *json, const char *key, struct text *line)
{
    text_clear(line);
    json_init(json, line, false);
    json_object(json, NULL);
    json_string(json, "kind", "energy");
    json_string(json, "key", key);
}

/* An attempt that failed and was tried again: its joules are the query's too, but apart. */
static void record_failed_attempt(const struct pending *pending, const struct share *share,
                                  struct text *line)
{
    struct json json;
    char number[32];
    str_format(number, sizeof number, "%u", pending->attempt);
    begin_line(&json, pending->key, line);
    json_object(&json, "ipw");
    json_object(&json, "failed_attempts");
    energy_to_json(&json, number, &share->total);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
}

void record_energy(const struct profile *profile, const struct pending *pending,
                   const struct share *given, struct text *line)
{
    struct json json;
    struct device_energy kinds;
    struct efficiency figures;
    struct share known = *given;
    const struct share *share = &known;
    bool phases = is_known(pending->prefill_s);
    if (!phases) { /* attribution took all of it for prefill */
        known.prefill_joules = known.decode_joules = UNKNOWN;
        known.prefill = known.decode = energy_unknown("the answer came in one piece");
    }
    if (!pending->last) {
        record_failed_attempt(pending, share, line);
        return;
    }
    device_energy_of(share, &kinds);
    derive(profile, pending, share, &figures);
    begin_line(&json, pending->key, line);
    json_object(&json, "model_metrics");
    json_object(&json, profile->options->model);
    put_energy(&json, &kinds, &figures);
    put_memory(&json, &kinds);
    put_power(&json, &kinds, pending->seconds);
    put_stats(&json, "temperature_metrics", &kinds.temperature, 1);
    put_phases(&json, share, pending, &figures);
    put_utilisation(&json, &kinds, &figures);
    put_efficiency(&json, &figures);
    json_object_end(&json);
    json_object_end(&json);
    put_own(&json, share, &kinds, phases);
    json_object_end(&json);
}

/* An unknown part adds nothing. */
static double with(double joules, double earlier)
{
    return is_known(joules) && is_known(earlier) ? joules + earlier
           : is_known(joules)                    ? joules
                                                 : earlier;
}

/* What this judgement spent and those before it that came to no verdict. */
static struct energy all_judgements(const struct judgement *judgement, const struct energy *own)
{
    struct energy energy = *own;
    energy_add(&energy, &judgement->earlier);
    if (own->method == METHOD_NONE && judgement->earlier.method != METHOD_NONE)
        str_copy(energy.note, sizeof energy.note,
                 "of earlier judgements alone: what the last one spent is not known");
    return energy;
}

void record_judge_energy(const struct profile *profile, const struct judgement *judgement,
                         const struct share *share, struct text *line)
{
    struct json json;
    struct device_energy kinds;
    struct energy energy = all_judgements(judgement, &share->total);
    device_energy_of(share, &kinds);
    double gpu = with(kinds.gpu.joules, judgement->earlier_gpu_joules);
    double cpu = with(kinds.cpu.joules, judgement->earlier_cpu_joules);
    begin_line(&json, judgement->key, line);
    json_object(&json, "model_metrics");
    json_object(&json, profile->options->model);
    json_object(&json, "energy_metrics");
    put_known(&json, "judge_gpu_joules", gpu);
    put_known(&json, "judge_cpu_joules", cpu);
    put_known(&json, "total_task_gpu_joules", judgement->gpu_joules + gpu);
    put_known(&json, "total_task_cpu_joules", judgement->cpu_joules + cpu);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_object(&json, "ipw");
    energy_to_json(&json, "judge_energy", &energy);
    json_object_end(&json);
    json_object_end(&json);
}

void record_no_energy(const char *key, const char *field, const char *why, struct text *line)
{
    struct json json;
    struct energy unknown = energy_unknown(why);
    begin_line(&json, key, line);
    json_object(&json, "ipw");
    energy_to_json(&json, field, &unknown);
    json_object_end(&json);
    json_object_end(&json);
}
