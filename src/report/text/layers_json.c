#include <string.h>

#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "graph/decoder_cost.h"
#include "report/text/format.h"
#include "report/text/layers_report.h"
#include "report/text/ledger_json.h"
#include "runner/host_report.h"
#include "runner/layers/layers.h"

/* ---- sums over shares ---- */

static double share_of_all(const struct layers_model *model, double joules)
{
    return model->component_joules > 0 ? joules / model->component_joules : UNKNOWN;
}

static unsigned tokens_of(const struct layers_model *model, enum layers_phase phase)
{
    unsigned tokens = 0;
    for (size_t s = 0; s < model->setting_count; s++)
        if (model->settings[s].phase == phase)
            tokens += model->settings[s].tokens;
    return tokens;
}

/* ---- components of a layer ---- */

static void share_to_json(struct json *json, const struct layers_model *model,
                          enum layers_phase phase, unsigned component,
                          const struct layers_share *share)
{
    json_object(json, NULL);
    json_string(json, "name", layers_component_name(component));
    json_string(json, "phase", layers_phase_name(phase));
    json_number(json, "time_s", share->time_s);
    json_number(json, "energy_j", share->joules);
    json_number(json, "plus_minus", layers_plus_minus(model, share->joules, share->sigma));
    json_number(json, "share", share_of_all(model, share->joules));
    json_number(json, "energy_per_token_j", share->joules / tokens_of(model, phase));
    json_string(json, "method", layers_method(model, phase, component));
    json_object_end(json);
}

/* Those that took time. */
static void components_of_layer(struct json *json, const struct layers_model *model, int layer)
{
    json_array(json, "components");
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
            const struct layers_share *share =
                layers_share_of(model, (enum layers_phase)phase, layer, c);
            if (share->time_s > 0)
                share_to_json(json, model, (enum layers_phase)phase, c, share);
        }
    json_array_end(json);
}

static struct layers_share sum_of_layer(const struct layers_model *model, int layer)
{
    struct layers_share sum = {0};
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
            const struct layers_share *share =
                layers_share_of(model, (enum layers_phase)phase, layer, c);
            if (share->time_s <= 0)
                continue;
            sum.time_s += share->time_s;
            sum.joules += share->joules;
            sum.sigma += share->sigma; /* they mostly err together */
        }
    if (sum.time_s <= 0) /* it was not looked at by itself */
        sum = (struct layers_share){.time_s = UNKNOWN, .joules = UNKNOWN, .sigma = UNKNOWN};
    return sum;
}

static void sum_to_json(struct json *json, const struct layers_model *model, int layer)
{
    struct layers_share sum = sum_of_layer(model, layer);
    json_number(json, "time_s", sum.time_s);
    json_number(json, "energy_j", sum.joules);
    json_number(json, "plus_minus", layers_plus_minus(model, sum.joules, sum.sigma));
    json_number(json, "share", share_of_all(model, sum.joules));
    components_of_layer(json, model, layer);
}

static void layers_to_json(struct json *json, const struct layers_model *model)
{
    json_array(json, "layers");
    for (int layer = 0; layer < model->facts.layers && model->shares[0]; layer++) {
        json_object(json, NULL);
        json_integer(json, "index", layer);
        sum_to_json(json, model, layer);
        json_object_end(json);
    }
    json_array_end(json);
    json_object(json, "outside");
    if (model->shares[0])
        sum_to_json(json, model, DECODER_OUTSIDE);
    json_object_end(json);
}

/* ---- components over all layers ---- */

static void component_to_json(struct json *json, const struct layers_model *model, unsigned phase,
                              unsigned component)
{
    struct layers_share sum = layers_component_sum(model, (enum layers_phase)phase, component);
    const double *work = model->work[phase][component];
    const struct fit_power *power = &model->fit.columns[phase * LAYERS_PHASE_COLUMNS + component];
    if (sum.time_s <= 0)
        return;
    json_object(json, NULL);
    json_string(json, "name", layers_component_name(component));
    json_string(json, "phase", layers_phase_name((enum layers_phase)phase));
    json_number(json, "time_s", sum.time_s);
    json_number(json, "energy_j", sum.joules);
    json_number(json, "plus_minus", layers_plus_minus(model, sum.joules, sum.sigma));
    json_number(json, "share", share_of_all(model, sum.joules));
    json_number(json, "energy_per_token_j",
                sum.joules / tokens_of(model, (enum layers_phase)phase));
    json_string(json, "method", layers_method(model, (enum layers_phase)phase, component));
    json_number(json, "power_w", power->watts);
    json_integer(json, "group", (int64_t)power->group);
    json_number(json, "flops", work[0]);
    json_number(json, "bytes", work[1]);
    json_number(json, "flops_share", layers_work_share(model, phase, component, 0));
    json_number(json, "bytes_share", layers_work_share(model, phase, component, 1));
    json_number(json, "joules_per_gflop", sum.joules / work[0] * 1e9);
    json_number(json, "joules_per_gb", sum.joules / work[1] * 1e9);
    json_object_end(json);
}

static void components_to_json(struct json *json, const struct layers_model *model)
{
    json_array(json, "components");
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (unsigned c = 0; c < LAYERS_COMPONENTS && model->shares[0]; c++)
            component_to_json(json, model, phase, c);
    json_array_end(json);
}

/* ---- settings and windows ---- */

static void setting_components(struct json *json, const struct layers_setting *setting)
{
    double sum = 0;
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++)
        sum += setting->columns[c].time_s > 0 ? setting->columns[c].joules : 0;
    json_array(json, "components");
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
        const struct layers_share *share = &setting->columns[c];
        if (share->time_s <= 0)
            continue;
        json_object(json, NULL);
        json_string(json, "name", layers_component_name(c));
        json_number(json, "time_s", share->time_s);
        json_number(json, "energy_j", share->joules);
        json_number(json, "share", share->joules / sum);
        json_object_end(json);
    }
    json_array_end(json);
}

static void settings_to_json(struct json *json, const struct layers_model *model)
{
    json_array(json, "settings");
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        json_object(json, NULL);
        json_string(json, "phase", layers_phase_name(setting->phase));
        json_integer(json, "prompt_tokens", setting->prompt);
        json_integer(json, "tokens", setting->tokens);
        json_number(json, "time_s", setting->pass_s);
        json_number(json, "tokens_per_s", setting->tokens / setting->pass_s);
        json_number(json, "energy_j", setting->joules);
        json_number(json, "plus_minus",
                    layers_plus_minus(model, setting->joules, setting->joules_sigma));
        json_number(json, "energy_per_token_j", setting->joules / setting->tokens);
        json_integer(json, "passes", (int64_t)setting->passes);
        json_integer(json, "windows", setting->windows);
        json_integer(json, "refused", setting->refused);
        json_number(json, "overhead_pct", 100 * setting->overhead);
        json_integer(json, "stride", setting->stride);
        json_number(json, "outside_graphs_s", setting->columns[LAYERS_HOST].time_s);
        setting_components(json, setting);
        json_object_end(json);
    }
    json_array_end(json);
}

static void windows_to_json(struct json *json, const struct layers_model *model)
{
    json_array(json, "windows");
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        bool is_rest = window->setting >= model->setting_count;
        double length = seconds(window->to - window->from);
        json_object(json, NULL);
        if (is_rest)
            json_null(json, "setting");
        else
            json_integer(json, "setting", window->setting);
        json_integer(json, "round", window->round);
        json_bool(json, "watched", window->timed);
        json_number(json, "start_s", seconds(window->from - model->windows[0].from));
        json_number(json, "time_s", length);
        json_integer(json, "passes", (int64_t)window->passes);
        json_number(json, "energy_j", window->energy.joules);
        json_number(json, "plus_minus", window->energy.plus_minus);
        json_number(json, "power_w", window->energy.joules / length);
        json_number(json, "coverage", window->energy.coverage);
        json_integer(json, "updates", (int64_t)window->energy.updates);
        json_object_end(json);
    }
    json_array_end(json);
}

/* ---- a model ---- */

static void rest_to_json(struct json *json, const char *key, const struct layers_idle *rest)
{
    if (rest->seconds <= 0) {
        json_null(json, key);
        return;
    }
    json_object(json, key);
    json_number(json, "seconds", rest->seconds);
    json_number(json, "power_w", rest->watts);
    json_number(json, "plus_minus", rest->sigma);
    json_object_end(json);
}

static void workload_to_json(struct json *json, const struct layers_model *model,
                             const struct layers_options *options)
{
    json_object(json, "workload");
    json_array(json, "prompt_tokens");
    for (size_t i = 0; i < options->prompt_count; i++)
        json_integer(json, NULL, options->prompts[i]);
    json_array_end(json);
    json_integer(json, "generated_tokens", options->generate);
    json_integer(json, "batch", options->batch);
    json_integer(json, "context", model->context);
    json_integer(json, "threads", model->threads);
    json_integer(json, "gpu_layers", options->gpu_layers);
    json_integer(json, "seed", options->seed);
    json_object_end(json);
}

static void facts_to_json(struct json *json, const struct layers_model *model)
{
    const struct engine_model_facts *facts = &model->facts;
    json_string(json, "model", model->path);
    json_string(json, "description", facts->description);
    json_integer(json, "parameters", (int64_t)facts->parameters);
    json_integer(json, "tensor_bytes", (int64_t)facts->tensor_bytes);
    json_number(json, "bits_per_weight",
                8 * (double)facts->tensor_bytes / (double)facts->parameters);
    json_integer(json, "layer_count", facts->layers);
    json_integer(json, "embedding", facts->embedding);
    json_integer(json, "heads", facts->heads);
    json_integer(json, "heads_kv", facts->heads_kv);
    json_string(json, "work_unknown", model->has_decoder ? NULL : model->no_decoder);
}

static void checks_to_json(struct json *json, const struct layers_model *model)
{
    bool known = model->gave_energy;
    json_string(json, "method",
                !known                                    ? NULL
                : model->total.method == METHOD_ESTIMATED ? "estimated"
                : model->is_nnls                          ? "nnls"
                                                          : "time-share");
    json_string(json, "attribution", !known ? NULL : model->is_nnls ? "nnls" : "time-share");
    json_string(json, "granularity", layers_granularity_name(model->granularity));
    json_integer(json, "rounds", model->rounds);
    json_bool(json, "interrupted", model->interrupted);
    json_number(json, "overhead_pct", 100 * model->overhead);
    json_number(json, "overhead_plus_minus", 100 * model->overhead_sigma);
    json_number(json, "closure", model->closure);
    if (known)
        json_bool(json, "closure_pass", model->closes);
    else
        json_null(json, "closure_pass");
    json_object(json, "null_test");
    json_number(json, "difference_pct", 100 * model->null_difference);
    json_number(json, "plus_minus", 100 * model->null_sigma);
    if (is_known(model->null_difference))
        json_bool(json, "pass", model->null_holds);
    else
        json_null(json, "pass");
    json_object_end(json);
}

static void model_to_json(struct json *json, const struct layers_model *model,
                          const struct layers_options *options)
{
    facts_to_json(json, model);
    workload_to_json(json, model, options);
    checks_to_json(json, model);
    energy_to_json(json, "energy", &model->total);
    json_number(json, "components_j", model->component_joules);
    json_number(json, "components_plus_minus",
                layers_plus_minus(model, model->component_joules, model->component_sigma));
    json_number(json, "idle_j", model->idle_joules);
    json_number(json, "unattributed_j", model->unattributed_joules);
    json_number(json, "awake_j", model->awake_joules);
    rest_to_json(json, "idle", &model->idle);
    rest_to_json(json, "awake", &model->awake);
    components_to_json(json, model);
    layers_to_json(json, model);
    settings_to_json(json, model);
    windows_to_json(json, model);
    devices_to_json(json, &model->ledger);
}

/* ---- all of it ---- */

static void run_to_json(struct json *json, const struct layers_report *report)
{
    char started[FORMAT_MAX];
    json_string(json, "started", format_time(started, report->result->started_wall));
    json_object(json, "own");
    json_number(json, "cpu_s", report->own.cpu_s);
    json_number(json, "read_s", report->read_s);
    json_number(json, "rss_mb", report->own.rss_mb);
    json_integer(json, "reads", (int64_t)report->reads);
    json_object_end(json);
    host_to_json(json, "host", report->host);
    json_string(json, "version", IPW_VERSION);
}

void layers_json(const struct layers_report *report, struct text *out)
{
    const struct layers_result *result = report->result;
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    if (report->model_count > 1) {
        json_array(&json, "models");
        for (size_t i = 0; i < result->count; i++) {
            json_object(&json, NULL);
            model_to_json(&json, &result->models[i], report->options);
            json_object_end(&json);
        }
        json_array_end(&json);
    } else {
        model_to_json(&json, &result->models[0], report->options);
    }
    run_to_json(&json, report);
    json_object_end(&json);
}
