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
#include "port/json_read.h"
#include "rundir/measured_layers.h"
#include "stats/fit.h"

enum { POINTS_MOST = 256 };

static const char *const PHASES[] = {"prefill", "decode"};

/* What counts as much as the checks of docs/metrics.md, "Energy of layers". */
static const double OVERHEAD_MOST_PCT = 5;

/* ---- one model ---- */

static const char *name_of(const struct jv *model)
{
    const char *path = jv_text(jv_get(model, "model"));
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "unnamed model";
}

static double number(const struct jv *object, const char *key)
{
    return jv_number(jv_get(object, key));
}

static bool is_text(const struct jv *value, const char *text)
{
    return jv_text(value) && strcmp(jv_text(value), text) == 0;
}

static bool has_energy(const struct jv *model)
{
    return is_known(jv_number(jv_path(model, "energy.joules")));
}

struct phase_sums {
    double joules, plus_minus, tokens, seconds;
};

/* Over the prompt lengths; their uncertainties add up, since sensors are wrong alike. */
static struct phase_sums sums_of(const struct jv *model, const char *phase)
{
    struct phase_sums sums = {0};
    for (const struct jv *s = jv_first(jv_get(model, "settings")); s; s = jv_next(s)) {
        if (!is_text(jv_get(s, "phase"), phase) || !is_known(number(s, "energy_j")))
            continue;
        sums.joules += number(s, "energy_j");
        sums.plus_minus += number(s, "plus_minus");
        sums.tokens += number(s, "tokens");
        sums.seconds += number(s, "time_s");
    }
    return sums;
}

static double per_token(const struct jv *model, const char *phase, double *error)
{
    struct phase_sums sums = sums_of(model, phase);
    if (!(sums.tokens > 0)) {
        *error = UNKNOWN;
        return UNKNOWN;
    }
    *error = sums.plus_minus / sums.tokens;
    return sums.joules / sums.tokens;
}

static void put_per_token(struct json *json, const struct jv *model, const char *phase)
{
    char key[64], error_key[80];
    double error, joules = per_token(model, phase, &error);
    str_format(key, sizeof key, "%s_joules_per_token", phase);
    str_format(error_key, sizeof error_key, "%s_error", key);
    json_number(json, key, joules);
    json_number(json, error_key, error);
}

static void put_model(struct json *json, const struct jv *model)
{
    json_string(json, "model", name_of(model));
    json_number(json, "parameters", number(model, "parameters"));
    json_number(json, "bits_per_weight", number(model, "bits_per_weight"));
    json_string(json, "granularity", jv_text(jv_get(model, "granularity")));
    json_string(json, "method", jv_text(jv_get(model, "method")));
    json_number(json, "joules", jv_number(jv_path(model, "energy.joules")));
    json_number(json, "joules_error", jv_number(jv_path(model, "energy.plus_minus")));
    put_per_token(json, model, "prefill");
    put_per_token(json, model, "decode");
    json_number(json, "idle_joules", number(model, "idle_j"));
    json_number(json, "closure", number(model, "closure"));
    json_number(json, "null_test_pct", jv_number(jv_path(model, "null_test.difference_pct")));
}

/* ---- components ---- */

/* The part of an uncertainty that is not the sensors' calibration, in which all components share. */
static double own_sigma(const struct jv *model, const struct jv *component)
{
    double joules = jv_number(jv_path(model, "energy.joules"));
    double whole = jv_number(jv_path(model, "energy.plus_minus"));
    double scatter = jv_number(jv_path(model, "energy.plus_minus_statistical"));
    double common =
        is_known(scatter) ? sqrt(fmax(whole * whole - scatter * scatter, 0)) / joules : 0;
    double error = number(component, "plus_minus"), part = common * number(component, "energy_j");
    return sqrt(fmax(error * error - part * part, 0));
}

/* Calibration cancels in a share; the rest is taken for independent. */
static double share_error(const struct jv *model, const struct jv *component)
{
    double squares = 0, sum = number(model, "components_j");
    double share = number(component, "share"), own = own_sigma(model, component);
    for (const struct jv *c = jv_first(jv_get(model, "components")); c; c = jv_next(c))
        if (c != component)
            squares += own_sigma(model, c) * own_sigma(model, c);
    return sqrt((1 - share) * (1 - share) * own * own + share * share * squares) / sum;
}

static void put_component(struct json *json, const struct jv *model, const struct jv *component)
{
    double joules = number(component, "energy_j"), error = number(component, "plus_minus");
    double a_token = number(component, "energy_per_token_j");
    json_object(json, NULL);
    json_string(json, "model", name_of(model));
    json_string(json, "phase", jv_text(jv_get(component, "phase")));
    json_string(json, "component", jv_text(jv_get(component, "name")));
    json_number(json, "joules", joules);
    json_number(json, "joules_error", error);
    json_number(json, "share", number(component, "share"));
    json_number(json, "share_error", share_error(model, component));
    json_number(json, "joules_per_token", a_token);
    json_number(json, "joules_per_token_error", joules > 0 ? error / joules * a_token : UNKNOWN);
    json_number(json, "time_s", number(component, "time_s"));
    json_number(json, "watts", number(component, "power_w"));
    json_number(json, "joules_per_gflop", number(component, "joules_per_gflop"));
    json_number(json, "joules_per_gb", number(component, "joules_per_gb"));
    json_string(json, "method", jv_text(jv_get(component, "method")));
    json_object_end(json);
}

static void put_components(struct json *json, const struct measured_layers *layers)
{
    json_array(json, "components");
    for (size_t i = 0; i < layers->count; i++) {
        const struct jv *model = layers->models[i].figures;
        for (const struct jv *c = jv_first(jv_get(model, "components")); c; c = jv_next(c))
            if (is_known(number(c, "energy_j")))
                put_component(json, model, c);
    }
    json_array_end(json);
}

/* ---- prompt lengths ---- */

static void put_setting(struct json *json, const struct jv *model, const struct jv *setting)
{
    double joules = number(setting, "energy_j"), tokens = number(setting, "tokens");
    json_object(json, NULL);
    json_string(json, "model", name_of(model));
    json_string(json, "phase", jv_text(jv_get(setting, "phase")));
    json_number(json, "prompt_tokens", number(setting, "prompt_tokens"));
    json_number(json, "tokens", tokens);
    json_number(json, "joules", joules);
    json_number(json, "joules_error", number(setting, "plus_minus"));
    json_number(json, "joules_per_token", joules / tokens);
    json_number(json, "joules_per_token_error", number(setting, "plus_minus") / tokens);
    json_number(json, "tokens_per_s", number(setting, "tokens_per_s"));
    json_number(json, "watts", joules / number(setting, "time_s"));
    json_object_end(json);
}

static void put_settings(struct json *json, const struct measured_layers *layers)
{
    json_array(json, "by_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++) {
        const struct jv *model = layers->models[i].figures;
        for (const struct jv *s = jv_first(jv_get(model, "settings")); s; s = jv_next(s))
            if (is_known(number(s, "energy_j")))
                put_setting(json, model, s);
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

/* Joules a token ~ prompt length ^ exponent, where there are two lengths. */
static void put_law_of(struct json *json, const struct jv *model, const char *phase)
{
    double x[POINTS_MOST], y[POINTS_MOST];
    struct linear_fit fit;
    size_t count = 0;
    for (const struct jv *s = jv_first(jv_get(model, "settings")); s && count < POINTS_MOST;
         s = jv_next(s))
        if (is_text(jv_get(s, "phase"), phase)) {
            x[count] = number(s, "prompt_tokens");
            y[count++] = number(s, "energy_j") / number(s, "tokens");
        }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    json_object(json, NULL);
    json_string(json, "model", name_of(model));
    json_string(json, "phase", phase);
    put_law(json, &fit);
    json_object_end(json);
}

/* The same over the models, of what differs between them. */
static void put_across(struct json *json, const struct measured_layers *layers, const char *phase,
                       const char *of)
{
    double x[POINTS_MOST], y[POINTS_MOST], error;
    struct linear_fit fit;
    char key[96];
    size_t count = 0;
    for (size_t i = 0; i < layers->count && count < POINTS_MOST; i++, count++) {
        x[count] = number(layers->models[i].figures, of);
        y[count] = per_token(layers->models[i].figures, phase, &error);
    }
    if (!linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit))
        return;
    str_format(key, sizeof key, "%s_joules_per_token_of_%s", phase, of);
    json_object(json, key);
    put_law(json, &fit);
    json_object_end(json);
}

static void put_laws(struct json *json, const struct measured_layers *layers)
{
    json_array(json, "joules_per_token_of_prompt_tokens");
    for (size_t i = 0; i < layers->count; i++)
        for (size_t phase = 0; phase < 2; phase++)
            put_law_of(json, layers->models[i].figures, PHASES[phase]);
    json_array_end(json);
    json_object(json, "against");
    for (size_t phase = 0; phase < 2; phase++) {
        put_across(json, layers, PHASES[phase], "parameters");
        put_across(json, layers, PHASES[phase], "bits_per_weight");
    }
    json_object_end(json);
}

/* ---- what a reader must know ---- */

static void warn_of_checks(struct analysis *analysis, const struct jv *model)
{
    const char *name = name_of(model);
    if (jv_is_bool(jv_get(model, "closure_pass")) && !jv_bool(jv_get(model, "closure_pass"), true))
        analysis_warn(analysis,
                      "%s: components and idle add up to %.0f %% of what was measured: the "
                      "account does not close",
                      name, 100 * number(model, "closure"));
    if (jv_is_bool(jv_path(model, "null_test.pass")) &&
        !jv_bool(jv_path(model, "null_test.pass"), true))
        analysis_warn(analysis,
                      "%s: even and odd rounds differ by %.1f ± %.1f %%: something else than the "
                      "work changed the energy",
                      name, jv_number(jv_path(model, "null_test.difference_pct")),
                      jv_number(jv_path(model, "null_test.plus_minus")));
    if (jv_bool(jv_get(model, "interrupted"), false))
        analysis_warn(analysis, "%s: the measurement was interrupted", name);
    if (number(model, "overhead_pct") > OVERHEAD_MOST_PCT)
        analysis_warn(analysis, "%s: instrumentation overhead %.1f %%", name,
                      number(model, "overhead_pct"));
}

static void warn_of(struct analysis *analysis, const struct jv *model)
{
    const char *name = name_of(model);
    if (!has_energy(model)) {
        analysis_warn(analysis, "%s: energy unknown", name);
        return;
    }
    warn_of_checks(analysis, model);
    if (is_text(jv_get(model, "method"), "estimated"))
        analysis_warn(analysis,
                      "%s: energies are estimated by a model, not measured: components "
                      "differ by their time alone",
                      name);
    else if (is_text(jv_get(model, "attribution"), "time-share"))
        analysis_warn(analysis,
                      "%s: components could not be told apart by power: joules go by "
                      "time",
                      name);
}

static bool are_of_one_machine(const struct measured_layers *layers)
{
    const char *label = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const char *its = jv_text(jv_get(layers->models[i].host, "hardware_label"));
        if (label && its && strcmp(label, its) != 0)
            return false;
        label = its ? its : label;
    }
    return true;
}

/* ---- all of it ---- */

static const struct jv *largest(const struct jv *model)
{
    const struct jv *most = NULL;
    for (const struct jv *c = jv_first(jv_get(model, "components")); c; c = jv_next(c))
        if (number(c, "energy_j") > 0 && !(number(c, "energy_j") <= number(most, "energy_j")))
            most = c;
    return most;
}

static void put_summary(struct json *json, const struct measured_layers *layers, size_t measured)
{
    json_object(json, "summary");
    json_integer(json, "models", (int64_t)layers->count);
    json_integer(json, "energy_known", (int64_t)measured);
    if (layers->count == 1) {
        const struct jv *model = layers->models[0].figures, *most = largest(model);
        put_model(json, model);
        json_string(json, "largest_component", jv_text(jv_get(most, "name")));
        json_string(json, "largest_component_phase", jv_text(jv_get(most, "phase")));
        json_number(json, "largest_component_share", number(most, "share"));
    }
    json_object_end(json);
}

static void put_data(struct json *json, const struct measured_layers *layers)
{
    json_object(json, "data");
    json_array(json, "models");
    for (size_t i = 0; layers->count > 1 && i < layers->count; i++) { /* one is in the summary */
        json_object(json, NULL);
        put_model(json, layers->models[i].figures);
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
    const struct measured_layers *layers = analysis->layers;
    size_t measured = 0;
    for (size_t i = 0; i < layers->count; i++)
        measured += has_energy(layers->models[i].figures);
    if (!measured)
        return err_set(why, ERR_NO_DATA,
                       "the energy of no layer is known: no sensor was there "
                       "when they were measured");
    put_summary(analysis->json, layers, measured);
    put_data(analysis->json, layers);
    for (size_t i = 0; i < layers->count; i++)
        warn_of(analysis, layers->models[i].figures);
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
