/* Where in a model the joules go: what `ipw layers` measured, by component and phase, by prompt length,
 * and over several models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "rundir/layers_result.h"
#include "stats/fit.h"

enum { POINTS_MOST = 256 };

static bool is_phase(const char *phase, size_t which)
{
    return phase && strcmp(phase, RESULT_PHASE[which]) == 0;
}

static bool has_energy(const struct layers_result *model)
{
    return is_known(model->energy.joules);
}

static void put_model(struct json *json, const struct layers_result *model)
{
    json_string(json, "model", layers_result_name(model));
    json_number(json, "parameters", model->parameters);
    json_number(json, "bits_per_weight", model->bits_per_weight);
    json_string(json, "granularity", model->granularity);
    json_string(json, "method", model->method);
    json_number(json, "joules", model->energy.joules);
    json_number(json, "joules_error", model->energy.plus_minus);
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        char key[64], error_key[80];
        double error, joules = layers_result_per_token(model, RESULT_PHASE[phase], &error);
        str_format(key, sizeof key, "%s_joules_per_token", RESULT_PHASE[phase]);
        str_format(error_key, sizeof error_key, "%s_error", key);
        json_number(json, key, joules);
        json_number(json, error_key, error);
    }
    json_number(json, "idle_joules", model->idle_j);
    json_number(json, "closure", model->closure);
    json_number(json, "null_test_pct", model->null_test.difference_pct);
}

/* ---- components ---- */

/* The part of an uncertainty that is not the sensors' calibration, in which all components share. */
static double own_sigma(const struct layers_result *model, const struct result_component *component)
{
    const struct record_energy *all = &model->energy;
    double square = all->plus_minus * all->plus_minus - all->statistical * all->statistical;
    double common = is_known(all->statistical) ? sqrt(fmax(square, 0)) / all->joules : 0;
    double error = component->plus_minus, part = common * component->energy_j;
    return sqrt(fmax(error * error - part * part, 0));
}

/* Calibration cancels in a share; the rest is taken for independent. */
static double share_error(const struct layers_result *model,
                          const struct result_component *component)
{
    double squares = 0, share = component->share, own = own_sigma(model, component);
    for (size_t i = 0; i < model->components.count; i++) {
        double other = own_sigma(model, &model->components.items[i]);
        if (&model->components.items[i] != component)
            squares += other * other;
    }
    return sqrt((1 - share) * (1 - share) * own * own + share * share * squares) /
           model->components_j;
}

static void put_component(struct json *json, const struct layers_result *model,
                          const struct result_component *c)
{
    json_object(json, NULL);
    json_string(json, "model", layers_result_name(model));
    json_string(json, "phase", c->phase);
    json_string(json, "component", c->name);
    json_number(json, "joules", c->energy_j);
    json_number(json, "joules_error", c->plus_minus);
    json_number(json, "share", c->share);
    json_number(json, "share_error", share_error(model, c));
    json_number(json, "joules_per_token", c->energy_per_token_j);
    json_number(json, "joules_per_token_error",
                c->energy_j > 0 ? c->plus_minus / c->energy_j * c->energy_per_token_j : UNKNOWN);
    json_number(json, "time_s", c->time_s);
    json_number(json, "watts", c->power_w);
    json_number(json, "joules_per_gflop", c->joules_per_gflop);
    json_number(json, "joules_per_gb", c->joules_per_gb);
    json_string(json, "method", c->method);
    json_object_end(json);
}

static void put_components(struct json *json, const struct layers_results *layers)
{
    json_array(json, "components");
    for (size_t i = 0; i < layers->count; i++) {
        const struct layers_result *model = &layers->models[i];
        for (size_t c = 0; c < model->components.count; c++)
            if (is_known(model->components.items[c].energy_j))
                put_component(json, model, &model->components.items[c]);
    }
    json_array_end(json);
}

/* ---- prompt lengths ---- */

static void put_setting(struct json *json, const struct layers_result *model,
                        const struct result_setting *setting)
{
    json_object(json, NULL);
    json_string(json, "model", layers_result_name(model));
    json_string(json, "phase", setting->phase);
    json_number(json, "prompt_tokens", setting->prompt_tokens);
    json_number(json, "tokens", setting->tokens);
    json_number(json, "joules", setting->energy_j);
    json_number(json, "joules_error", setting->plus_minus);
    json_number(json, "joules_per_token", setting->energy_j / setting->tokens);
    json_number(json, "joules_per_token_error", setting->plus_minus / setting->tokens);
    json_number(json, "tokens_per_s", setting->tokens_per_s);
    json_number(json, "watts", setting->energy_j / setting->time_s);
    json_object_end(json);
}

static void put_settings(struct json *json, const struct layers_results *layers)
{
    json_array(json, "by_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++) {
        const struct layers_result *model = &layers->models[i];
        for (size_t s = 0; s < model->setting_count; s++)
            if (is_known(model->settings[s].energy_j))
                put_setting(json, model, &model->settings[s]);
    }
    json_array_end(json);
}

/* ---- power laws ---- */

static void put_law(struct json *json, const struct linear_fit *fit)
{
    json_integer(json, "count", (int64_t)fit->count);
    json_number(json, "exponent", fit->slope);
    json_number(json, "exponent_error", fit->slope_error);
    put_interval(json, "exponent_interval_95", fit->slope_low, fit->slope_high);
    json_number(json, "r2", fit->r2);
}

/* Joules per token ~ prompt length ^ exponent, where there are two lengths. */
static void put_law_of(struct json *json, const struct layers_result *model, size_t phase)
{
    double x[POINTS_MOST], y[POINTS_MOST];
    struct linear_fit fit;
    size_t count = 0;
    for (size_t i = 0; i < model->setting_count && count < POINTS_MOST; i++) {
        const struct result_setting *setting = &model->settings[i];
        if (!is_phase(setting->phase, phase))
            continue;
        x[count] = setting->prompt_tokens;
        y[count++] = setting->energy_j / setting->tokens;
    }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    json_object(json, NULL);
    json_string(json, "model", layers_result_name(model));
    json_string(json, "phase", RESULT_PHASE[phase]);
    put_law(json, &fit);
    json_object_end(json);
}

/* The same over the models, of what differs between them. */
static void put_across(struct json *json, const struct layers_results *layers, size_t phase,
                       bool of_bits)
{
    double x[POINTS_MOST], y[POINTS_MOST], error;
    struct linear_fit fit;
    char key[96];
    size_t count = 0;
    for (; count < layers->count && count < POINTS_MOST; count++) {
        const struct layers_result *model = &layers->models[count];
        x[count] = of_bits ? model->bits_per_weight : model->parameters;
        y[count] = layers_result_per_token(model, RESULT_PHASE[phase], &error);
    }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    str_format(key, sizeof key, "%s_joules_per_token_of_%s", RESULT_PHASE[phase],
               of_bits ? "bits_per_weight" : "parameters");
    json_object(json, key);
    put_law(json, &fit);
    json_object_end(json);
}

static void put_laws(struct json *json, const struct layers_results *layers)
{
    json_array(json, "joules_per_token_of_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++)
        for (size_t phase = 0; phase < RESULT_PHASES; phase++)
            put_law_of(json, &layers->models[i], phase);
    json_array_end(json);
    json_object(json, "against");
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        put_across(json, layers, phase, false);
        put_across(json, layers, phase, true);
    }
    json_object_end(json);
}

/* ---- what a reader must know ---- */

static void warn_of_checks(struct analysis *analysis, const struct layers_result *model)
{
    const char *name = layers_result_name(model);
    if (model->closure_pass == 0)
        analysis_warn(analysis,
                      "%s: components add up to %.0f %% of the energy above idle: the account does "
                      "not close",
                      name, 100 * model->closure);
    if (model->null_test.pass == 0)
        analysis_warn(analysis,
                      "%s: even and odd rounds differ by %.1f ± %.1f %%: something other than the "
                      "work changed the energy",
                      name, model->null_test.difference_pct, model->null_test.plus_minus);
    if (model->interrupted == 1)
        analysis_warn(analysis, "%s: the measurement was interrupted", name);
    if (model->overhead_pct > RESULT_OVERHEAD_PCT_MAX)
        analysis_warn(analysis, "%s: instrumentation overhead %.1f %%", name, model->overhead_pct);
}

static void warn_of(struct analysis *analysis, const struct layers_result *model)
{
    const char *name = layers_result_name(model);
    if (!has_energy(model)) {
        analysis_warn(analysis, "%s: energy unknown", name);
        return;
    }
    warn_of_checks(analysis, model);
    if (layers_result_is_estimated(model))
        analysis_warn(analysis,
                      "%s: energies are estimated by a model, not measured: components "
                      "differ by their time alone",
                      name);
    else if (model->attribution && strcmp(model->attribution, "time-share") == 0)
        analysis_warn(analysis,
                      "%s: components could not be told apart by power: joules go by "
                      "time",
                      name);
}

static bool are_of_one_machine(const struct layers_results *layers)
{
    const char *label = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const char *its = layers->models[i].hardware_label;
        if (label && its && strcmp(label, its) != 0)
            return false;
        label = its ? its : label;
    }
    return true;
}

/* ---- all of it ---- */

static const struct result_component *largest(const struct layers_result *model)
{
    static const struct result_component NONE = {.share = UNKNOWN};
    const struct result_component *most = &NONE;
    for (size_t i = 0; i < model->components.count; i++)
        if (model->components.items[i].energy_j > most->energy_j)
            most = &model->components.items[i];
    return most;
}

static void put_summary(struct json *json, const struct layers_results *layers, size_t measured)
{
    json_object(json, "summary");
    json_integer(json, "models", (int64_t)layers->count);
    json_integer(json, "energy_known", (int64_t)measured);
    if (layers->count == 1) {
        const struct result_component *most = largest(&layers->models[0]);
        put_model(json, &layers->models[0]);
        json_string(json, "largest_component", most->name);
        json_string(json, "largest_component_phase", most->phase);
        json_number(json, "largest_component_share", most->share);
    }
    json_object_end(json);
}

static void put_data(struct json *json, const struct layers_results *layers)
{
    json_object(json, "data");
    json_array(json, "models");
    for (size_t i = 0; layers->count > 1 && i < layers->count; i++) { /* one is in the summary */
        json_object(json, NULL);
        put_model(json, &layers->models[i]);
        json_object_end(json);
    }
    json_array_end(json);
    put_components(json, layers);
    put_settings(json, layers);
    put_laws(json, layers);
    json_object_end(json);
}

static enum err layers_run(struct analysis *analysis, struct error *why)
{
    const struct layers_results *layers = analysis->layers;
    size_t measured = 0;
    for (size_t i = 0; i < layers->count; i++)
        measured += has_energy(&layers->models[i]);
    if (!measured)
        return err_set(why, ERR_NO_DATA,
                       "the energy of no layer is known: no sensor was there "
                       "when they were measured");
    put_summary(analysis->json, layers, measured);
    put_data(analysis->json, layers);
    for (size_t i = 0; i < layers->count; i++)
        warn_of(analysis, &layers->models[i]);
    if (!are_of_one_machine(layers))
        analysis_warn(analysis, "the models were measured on different machines: what differs "
                                "between them may be due to that");
    return ERR_OK;
}

const struct analysis_driver analysis_layers = {
    .name = "layers",
    .summary =
        "energy of a model's components by phase and prompt length; of `ipw layers -o` files",
    .of_layers = true,
    .run = layers_run,
};
