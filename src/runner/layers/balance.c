#include "runner/layers/balance.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "runner/layers/null_test.h"
#include "stats/online.h"

enum { RESAMPLES = 400, REST_STRATUM = LAYERS_SETTINGS_MAX };

/* ---- windows ---- */

static bool is_rest(const struct layers_model *model, const struct layers_window *window)
{
    return window->setting >= model->setting_count;
}

/* Does its energy count? */
static bool counts(const struct layers_window *window)
{
    return !window->watched && is_known(window->energy.joules) &&
           window->energy.updates >= BALANCE_UPDATES;
}

static double pass_seconds(const struct layers_window *window)
{
    return window->passes ? seconds(window->to - window->from) / (double)window->passes : UNKNOWN;
}

/* ---- settings ---- */

static void take_setting(struct layers_model *model, struct layers_setting *setting, unsigned index)
{
    struct online wall = {0}, joules = {0};
    double errors = 0;
    setting->windows = setting->refused = 0;
    setting->passes = 0;
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        if (window->watched || window->setting != index || !window->passes)
            continue;
        double passes = (double)window->passes;
        setting->passes += window->passes;
        online_add(&wall, pass_seconds(window));
        if (!counts(window)) {
            setting->refused += is_known(window->energy.joules);
            continue;
        }
        setting->windows++;
        online_add(&joules, window->energy.joules / passes);
        errors += window->energy.statistical * window->energy.statistical / (passes * passes);
    }
    setting->pass_s = online_mean(&wall);
    setting->joules = online_mean(&joules);
    /* The scatter of the windows, or their own errors where there is but one. */
    setting->joules_sigma = joules.count > 1    ? online_standard_error(&joules)
                            : joules.count == 1 ? sqrt(errors)
                                                : UNKNOWN;
}

void balance_settings(struct layers_model *model)
{
    double plain = 0, watched = 0, variance = 0;
    for (unsigned i = 0; i < model->setting_count; i++) {
        struct layers_setting *setting = &model->settings[i];
        take_setting(model, setting, i);
        plain += setting->pass_s;
        watched += setting->pass_s * (1 + setting->overhead);
        double error = setting->pass_s * setting->overhead_sigma;
        variance += error * error;
    }
    model->overhead = watched / plain - 1; /* UNKNOWN with any that is */
    model->overhead_sigma = sqrt(variance) / plain;
}

/* ---- the fit ---- */

struct fit_input {
    struct fit_window *windows;
    double (*busy)[LAYERS_COLUMNS];
    size_t count;
};

static void add_window(struct fit_input *input, const struct layers_model *model,
                       const struct layers_window *window)
{
    struct fit_window *to = &input->windows[input->count];
    *to = (struct fit_window){
        .joules = window->energy.joules,
        .sigma = window->energy.statistical,
        .seconds = seconds(window->to - window->from),
        .stratum = REST_STRATUM,
    };
    if (!is_rest(model, window)) {
        const struct layers_setting *setting = &model->settings[window->setting];
        double *busy = input->busy[input->count];
        for (unsigned c = 0; c < LAYERS_PHASE_COLUMNS; c++)
            busy[setting->phase * LAYERS_PHASE_COLUMNS + c] =
                setting->columns[c].time_s * (double)window->passes;
        to->busy_s = busy;
        to->stratum = window->setting;
    }
    input->count++;
}

static enum err fit_powers(struct layers_model *model, unsigned seed, struct error *why)
{
    unsigned phases[LAYERS_COLUMNS];
    struct fit_input input = {
        .windows = calloc(model->window_count + 1, sizeof *input.windows),
        .busy = calloc(model->window_count + 1, sizeof *input.busy),
    };
    enum err err = input.windows && input.busy ? ERR_OK : ERR_NO_MEMORY;
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        phases[c] = c / LAYERS_PHASE_COLUMNS;
    for (size_t i = 0; !err && i < model->window_count; i++)
        if (counts(&model->windows[i]))
            add_window(&input, model, &model->windows[i]);
    struct fit_options options = {
        .phases = phases, .columns = LAYERS_COLUMNS, .resamples = RESAMPLES, .seed = seed};
    if (!err)
        err = component_fit(input.windows, input.count, &options, &model->fit, why);
    free(input.windows);
    free(input.busy);
    return err;
}

/* ---- joules ---- */

static void price(struct layers_share *share, const struct fit_power *power)
{
    share->joules = share->sigma = UNKNOWN;
    if (share->time_s <= 0 || !is_known(power->watts))
        return;
    share->joules = power->watts * share->time_s;
    share->sigma = hypot(power->sigma * share->time_s, power->watts * share->time_sigma);
}

static void price_all(struct layers_model *model)
{
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++) {
        const struct fit_power *powers = &model->fit.columns[(size_t)phase * LAYERS_PHASE_COLUMNS];
        for (size_t i = 0; i < model->slots; i++)
            price(&model->shares[phase][i], &powers[i % LAYERS_COMPONENTS]);
        for (size_t s = 0; s < model->setting_count; s++)
            for (unsigned c = 0; c < LAYERS_PHASE_COLUMNS; c++)
                if (model->settings[s].phase == phase)
                    price(&model->settings[s].columns[c], &powers[c]);
    }
}

/* Did the windows tell any two components of a phase apart?  The host is none. */
static bool tells_apart(const struct component_fit *fit)
{
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++) {
        const struct fit_power *powers = &fit->columns[(size_t)phase * LAYERS_PHASE_COLUMNS];
        for (unsigned a = 0; a < LAYERS_COMPONENTS; a++)
            for (unsigned b = 0; b < a; b++)
                if (is_known(powers[a].watts) && is_known(powers[b].watts) &&
                    powers[a].group != powers[b].group)
                    return true;
    }
    return false;
}

/* ---- the account ---- */

/* A pass of the workload: the settings' passes together, with the evidence of their windows. */
static void take_total(struct layers_model *model)
{
    struct energy *total = &model->total;
    double variance = 0, systematic = 0, measured = 0;
    *total = energy_unknown("");
    total->joules = 0;
    total->coverage = 1;
    total->updates = 0;
    for (size_t i = 0; i < model->window_count; i++) {
        const struct energy *energy = &model->windows[i].energy;
        if (!counts(&model->windows[i]) || is_rest(model, &model->windows[i]))
            continue;
        total->method = energy->method > total->method ? energy->method : total->method;
        total->coverage = fmin(total->coverage, energy->coverage);
        total->updates += energy->updates;
        str_copy(total->source, sizeof total->source, energy->source);
        str_copy(total->note, sizeof total->note, energy->note);
        double all = energy->plus_minus * energy->plus_minus,
               chance = energy->statistical * energy->statistical;
        systematic += sqrt(fmax(all - chance, 0));
        measured += energy->joules;
    }
    for (size_t s = 0; s < model->setting_count; s++) {
        total->joules += model->settings[s].joules;
        variance += model->settings[s].joules_sigma * model->settings[s].joules_sigma;
    }
    total->statistical = sqrt(variance);
    model->systematic = measured > 0 ? systematic / measured : 0;
    total->plus_minus = hypot(total->statistical, model->systematic * total->joules);
}

static double pass_of_workload_s(const struct layers_model *model)
{
    double sum = 0;
    for (size_t s = 0; s < model->setting_count; s++)
        sum += model->settings[s].pass_s;
    return sum;
}

static void take_balance(struct layers_model *model)
{
    double joules = 0, busy = 0, errors[LAYERS_COLUMNS] = {0}, variance = 0;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (size_t i = 0; i < model->slots; i++) {
            const struct layers_share *share = &model->shares[phase][i];
            if (!is_known(share->joules))
                continue;
            joules += share->joules;
            busy += share->time_s;
            /* Those of one group err together. */
            unsigned column = phase * LAYERS_PHASE_COLUMNS + (unsigned)(i % LAYERS_COMPONENTS);
            errors[model->fit.columns[column].group] += share->sigma;
        }
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        variance += errors[c] * errors[c];
    model->component_joules = joules;
    model->component_sigma = sqrt(variance);
    double idle = model->fit.has_idle ? model->fit.idle_watts * pass_of_workload_s(model) : 0;
    model->idle_joules = model->fit.has_idle ? idle : UNKNOWN;
    model->total.idle_joules = model->idle_joules;
    model->total.active_joules = model->total.joules - model->idle_joules;
    model->unattributed_joules = model->total.joules - idle - joules;
    model->closure = (joules + idle) / model->total.joules;
    model->closes = model->closure >= 0.9 && model->closure <= 1.1;
    double awake = model->awake.watts - model->fit.idle_watts;
    model->awake_joules = awake > 0 ? fmin(awake * busy, joules) : awake <= 0 ? 0 : UNKNOWN;
}

static void refuse(struct layers_model *model, const char *reason)
{
    str_copy(model->no_energy, sizeof model->no_energy, reason);
    model->gave_energy = false;
}

/* Every setting needs a window that counts. */
static bool windows_suffice(struct layers_model *model)
{
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        if (setting->windows)
            continue;
        char reason[sizeof model->no_energy];
        if (setting->refused)
            str_format(reason, sizeof reason,
                       "the windows of %s at %u tokens hold fewer than %d updates of the sensor: "
                       "give a longer --window",
                       layers_phase_name(setting->phase), setting->prompt, BALANCE_UPDATES);
        else
            str_format(reason, sizeof reason, "no sensor covers %s at %u tokens",
                       layers_phase_name(setting->phase), setting->prompt);
        for (size_t i = 0; i < model->window_count && !setting->refused; i++)
            if (model->windows[i].setting == s && !model->windows[i].watched &&
                model->windows[i].energy.note[0])
                str_copy(reason, sizeof reason, model->windows[i].energy.note);
        refuse(model, reason);
        return false;
    }
    return model->setting_count > 0;
}

static void forget_energy(struct layers_model *model)
{
    static const struct fit_power NONE = {.watts = UNKNOWN, .sigma = UNKNOWN};
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        model->fit.columns[c] = NONE;
    model->fit.idle_watts = model->fit.idle_sigma = UNKNOWN;
    price_all(model);
    for (size_t s = 0; s < model->setting_count; s++)
        model->settings[s].joules = model->settings[s].joules_sigma = UNKNOWN;
    model->total = energy_unknown(model->no_energy);
    model->idle_joules = model->component_joules = model->component_sigma = UNKNOWN;
    model->unattributed_joules = model->awake_joules = model->closure = UNKNOWN;
    model->null_difference = model->null_sigma = UNKNOWN;
}

enum err balance_energy(struct layers_model *model, unsigned seed)
{
    struct error why = {0};
    model->gave_energy = windows_suffice(model);
    if (model->gave_energy) {
        enum err err = fit_powers(model, seed, &why);
        if (err == ERR_NO_MEMORY)
            return err;
        if (err)
            refuse(model, why.text);
    }
    if (!model->gave_energy) {
        forget_energy(model);
        return ERR_OK;
    }
    model->is_nnls = tells_apart(&model->fit);
    price_all(model);
    take_total(model);
    take_balance(model);
    null_test(model);
    return ERR_OK;
}
