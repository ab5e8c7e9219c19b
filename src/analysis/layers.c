/* Energy of a model's components as measured by `ipw layers`: by component and phase, by prompt length, and over
 * several models. */
#include <math.h>

#include "analysis/analysis.h"
#include "core/text.h"
#include "core/units.h"
#include "rundir/layers_result.h"
#include "stats/fit.h"

enum { POINTS_MAX = 256 };

static bool is_phase(const char *phase, size_t which)
{
    return phase && str_equal(phase, RESULT_PHASE[which]);
}

static bool has_energy(const struct layers_result *model)
{
    return is_known(model->energy.joules);
}

static void put_model(struct result *result, const struct layers_result *model)
{
    result_text(result, "model", layers_result_name(model));
    result_number(result, "parameters", model->parameters, "");
    result_number(result, "bits_per_weight", model->bits_per_weight, "");
    result_text(result, "granularity", model->granularity);
    result_text(result, "method", model->method);
    result_figure(result, "joules", model->energy.joules, model->energy.plus_minus, "J");
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        char key[64];
        double error, joules = layers_result_per_token(model, RESULT_PHASE[phase], &error);
        chars_format(key, "%s_joules_per_token", RESULT_PHASE[phase]);
        result_figure(result, key, joules, error, "J");
    }
    result_number(result, "idle_joules", model->idle_j, "J");
    result_number(result, "closure", model->closure, "");
    result_number(result, "null_test_pct", model->null_test.difference_pct, "");
}

/* ---- components ---- */

/* The part of an uncertainty that is not the sensors' calibration error, which all components share. */
static double own_sigma(const struct layers_result *model, const struct result_component *component)
{
    const struct record_energy *all = &model->energy;
    double square = all->plus_minus * all->plus_minus - all->statistical * all->statistical;
    double common = is_known(all->statistical) ? sqrt(fmax(square, 0)) / all->joules : 0;
    double error = component->plus_minus, part = common * component->energy_j;
    return sqrt(fmax(error * error - part * part, 0));
}

/* The calibration error cancels in a share; the remainder is assumed independent. */
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

static void put_component(struct result *result, const struct layers_result *model,
                          const struct result_component *c)
{
    result_group(result, NULL);
    result_text(result, "model", layers_result_name(model));
    result_text(result, "phase", c->phase);
    result_text(result, "component", c->name);
    result_figure(result, "joules", c->energy_j, c->plus_minus, "J");
    result_figure(result, "share", c->share, share_error(model, c), "%");
    result_figure(result, "joules_per_token", c->energy_per_token_j,
                  c->energy_j > 0 ? c->plus_minus / c->energy_j * c->energy_per_token_j : UNKNOWN,
                  "J");
    result_number(result, "time_s", c->time_s, "s");
    result_number(result, "watts", c->power_w, "W");
    result_number(result, "joules_per_gflop", c->joules_per_gflop, "J");
    result_number(result, "joules_per_gb", c->joules_per_gb, "J");
    result_text(result, "method", c->method);
    result_end(result);
}

static void put_components(struct result *result, const struct layers_results *layers)
{
    result_list(result, "components");
    for (size_t i = 0; i < layers->count; i++) {
        const struct layers_result *model = &layers->models[i];
        for (size_t c = 0; c < model->components.count; c++)
            if (is_known(model->components.items[c].energy_j))
                put_component(result, model, &model->components.items[c]);
    }
    result_end(result);
}

/* ---- prompt lengths ---- */

static void put_setting(struct result *result, const struct layers_result *model,
                        const struct result_setting *setting)
{
    result_group(result, NULL);
    result_text(result, "model", layers_result_name(model));
    result_text(result, "phase", setting->phase);
    result_number(result, "prompt_tokens", setting->prompt_tokens, "");
    result_number(result, "tokens", setting->tokens, "");
    result_figure(result, "joules", setting->energy_j, setting->plus_minus, "J");
    result_figure(result, "joules_per_token", setting->energy_j / setting->tokens,
                  setting->plus_minus / setting->tokens, "J");
    result_number(result, "tokens_per_s", setting->tokens_per_s, "1/s");
    result_number(result, "watts", setting->energy_j / setting->time_s, "W");
    result_end(result);
}

static void put_settings(struct result *result, const struct layers_results *layers)
{
    result_list(result, "by_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++) {
        const struct layers_result *model = &layers->models[i];
        for (size_t s = 0; s < model->setting_count; s++)
            if (is_known(model->settings[s].energy_j))
                put_setting(result, model, &model->settings[s]);
    }
    result_end(result);
}

/* ---- power laws ---- */

static void put_law(struct result *result, const struct linear_fit *fit)
{
    result_count(result, "count", fit->count);
    result_figure(result, "exponent", fit->slope, fit->slope_error, "");
    result_interval(result, "exponent", fit->slope_low, fit->slope_high);
    result_number(result, "r2", fit->r2, "");
}

/* Joules per token ~ prompt length ^ exponent, with at least two lengths. */
static void put_law_of(struct result *result, const struct layers_result *model, size_t phase)
{
    double x[POINTS_MAX], y[POINTS_MAX];
    struct linear_fit fit;
    size_t count = 0;
    for (size_t i = 0; i < model->setting_count && count < POINTS_MAX; i++) {
        const struct result_setting *setting = &model->settings[i];
        if (!is_phase(setting->phase, phase))
            continue;
        x[count] = setting->prompt_tokens;
        y[count++] = setting->energy_j / setting->tokens;
    }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    result_group(result, NULL);
    result_text(result, "model", layers_result_name(model));
    result_text(result, "phase", RESULT_PHASE[phase]);
    put_law(result, &fit);
    result_end(result);
}

/* The same over several models, for what differs between them. */
static void put_across(struct result *result, const struct layers_results *layers, size_t phase,
                       bool of_bits)
{
    double x[POINTS_MAX], y[POINTS_MAX], error;
    struct linear_fit fit;
    char key[96];
    size_t count = 0;
    for (; count < layers->count && count < POINTS_MAX; count++) {
        const struct layers_result *model = &layers->models[count];
        x[count] = of_bits ? model->bits_per_weight : model->parameters;
        y[count] = layers_result_per_token(model, RESULT_PHASE[phase], &error);
    }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    chars_format(key, "%s_joules_per_token_of_%s", RESULT_PHASE[phase],
                 of_bits ? "bits_per_weight" : "parameters");
    result_group(result, key);
    put_law(result, &fit);
    result_end(result);
}

static void put_laws(struct result *result, const struct layers_results *layers)
{
    result_list(result, "joules_per_token_of_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++)
        for (size_t phase = 0; phase < RESULT_PHASES; phase++)
            put_law_of(result, &layers->models[i], phase);
    result_end(result);
    result_group(result, "against");
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        put_across(result, layers, phase, false);
        put_across(result, layers, phase, true);
    }
    result_end(result);
}

/* ---- warnings ---- */

static void warn_of_checks(struct analysis *analysis, const struct layers_result *model)
{
    const char *name = layers_result_name(model);
    if (model->closure_pass == 0)
        result_warn(analysis->result,
                    "%s: components add up to %.0f %% of the energy above idle: the energy balance "
                    "does not close",
                    name, 100 * model->closure);
    if (model->null_test.pass == 0)
        result_warn(analysis->result,
                    "%s: even and odd rounds differ by %.1f ± %.1f %%: the energy changed for "
                    "reasons other than the work",
                    name, model->null_test.difference_pct, model->null_test.plus_minus);
    if (model->interrupted == 1)
        result_warn(analysis->result, "%s: the measurement was interrupted", name);
    if (model->overhead_pct > RESULT_OVERHEAD_PCT_MAX)
        result_warn(analysis->result, "%s: instrumentation overhead %.1f %%", name,
                    model->overhead_pct);
}

static void warn_of(struct analysis *analysis, const struct layers_result *model)
{
    const char *name = layers_result_name(model);
    if (!has_energy(model)) {
        result_warn(analysis->result, "%s: energy unknown", name);
        return;
    }
    warn_of_checks(analysis, model);
    if (layers_result_is_estimated(model))
        result_warn(analysis->result,
                    "%s: energies are estimated by a model, not measured: components differ only "
                    "by their time",
                    name);
    else if (model->attribution && str_equal(model->attribution, "time-share"))
        result_warn(analysis->result,
                    "%s: components could not be separated by power: joules are attributed by time",
                    name);
}

static bool are_of_one_machine(const struct layers_results *layers)
{
    const char *label = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const char *its = layers->models[i].hardware_label;
        if (label && its && !str_equal(label, its))
            return false;
        label = its ? its : label;
    }
    return true;
}

/* ---- the complete analysis ---- */

static const struct result_component *largest(const struct layers_result *model)
{
    static const struct result_component NONE = {.share = UNKNOWN};
    const struct result_component *max = &NONE;
    for (size_t i = 0; i < model->components.count; i++)
        if (model->components.items[i].energy_j > max->energy_j)
            max = &model->components.items[i];
    return max;
}

static void put_summary(struct result *result, const struct layers_results *layers, size_t measured)
{
    result_group(result, "summary");
    result_count(result, "models", layers->count);
    result_count(result, "energy_known", measured);
    if (layers->count == 1) {
        const struct result_component *max = largest(&layers->models[0]);
        put_model(result, &layers->models[0]);
        result_text(result, "largest_component", max->name);
        result_text(result, "largest_component_phase", max->phase);
        result_number(result, "largest_component_share", max->share, "%");
    }
    result_end(result);
}

static void put_data(struct result *result, const struct layers_results *layers)
{
    result_group(result, "data");
    result_list(result, "models");
    for (size_t i = 0; layers->count > 1 && i < layers->count; i++) { /* one is in the summary */
        result_group(result, NULL);
        put_model(result, &layers->models[i]);
        result_end(result);
    }
    result_end(result);
    put_components(result, layers);
    put_settings(result, layers);
    put_laws(result, layers);
    result_end(result);
}

static enum err layers_run(struct analysis *analysis, struct error *why)
{
    const struct layers_results *layers = analysis->layers;
    size_t measured = 0;
    for (size_t i = 0; i < layers->count; i++)
        measured += has_energy(&layers->models[i]);
    if (!measured)
        return err_set(
            why, ERR_NO_DATA,
            "the energy of no layer is known: no sensor was available when they were measured");
    put_summary(analysis->result, layers, measured);
    put_data(analysis->result, layers);
    for (size_t i = 0; i < layers->count; i++)
        warn_of(analysis, &layers->models[i]);
    if (!are_of_one_machine(layers))
        result_warn(
            analysis->result,
            "the models were measured on different machines, which may explain their differences");
    return ERR_OK;
}

static const struct result_phrase FINDING[] = {
    {"models: ", "summary.models", ""},
    {", prefill ", "summary.prefill_joules_per_token", " per token"},
    {", decode ", "summary.decode_joules_per_token", " per token"},
    {", largest component ", "summary.largest_component_share", " of the energy"},
    {": ", "summary.largest_component", ""},
    {0},
};

const struct analysis_driver analysis_layers = {
    .name = "layers",
    .summary =
        "energy of a model's components by phase and prompt length; of `ipw layers -o` files",
    .reads_layers = true,
    .finding = FINDING,
    .run = layers_run,
};
