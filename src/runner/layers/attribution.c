/* Attributes the measurements: times of components corrected for instrumentation overhead, powers of components from
 * the windows (attribute/component_fit.h), joules of layers, and consistency checks.
 *
 * Each stop has the same cost, which is part of the segment that it ends: the difference between a timed and a plain
 * pass, divided by the number of stops, is subtracted.  The remaining times are scaled to the plain pass minus the
 * host's part. */

#include "runner/layers/workload.h"

#include <math.h>
#include <stdlib.h>

#include "attribute/component_fit.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

/* Minimum share of the measured time after subtracting the stops: a component that ran took time. */
#define MIN_TIME_SHARE 0.1

struct per_pass {
    double graphs;
    double stop_s; /* cost of one stop */
    double host_s;
};

/* ---- instrumentation overhead ---- */

#define LOW 0.1

/* The lowest decile: background load only adds time.  Its error is the difference between the earlier and the
 * later half, since such load changes slowly. */
static double lowest_decile(const struct pass_durations *durations, double *relative_error)
{
    size_t count = durations->count < DURATIONS_MAX ? durations->count : DURATIONS_MAX;
    size_t half = count / 2;
    double all = quantile(durations->seconds, count, LOW);
    double early = quantile(durations->seconds, half, LOW);
    double late = quantile(durations->seconds + half, count - half, LOW);
    *relative_error = fabs(early - late) / 2 / all;
    return all;
}

void attribution_overhead(struct layers_setting *setting, const struct replay_times *times)
{
    double plain_error, watched_error;
    double plain = lowest_decile(&times->plain, &plain_error);
    double timed = lowest_decile(&times->timed, &watched_error);
    setting->overhead = timed / plain - 1;
    setting->overhead_sigma = hypot(plain_error, watched_error);
}

/* ---- times ---- */

/* Upper bound of a stop's cost: the shortest segment including its stop. */
static double shortest_segment(const struct replay_times *times, size_t slots)
{
    double shortest = INFINITY, sigma;
    for (size_t i = 0; i < slots; i++) {
        const struct slot_times *slot = &times->slots[i];
        if (slot->graphs && slot->stops)
            shortest = fmin(shortest, slot_times_seconds(slot, &sigma) * (double)slot->graphs /
                                          (double)slot->stops);
    }
    return isfinite(shortest) ? shortest : 0;
}

static struct per_pass per_pass_of(const struct layers_setting *setting,
                                   const struct replay_times *times, size_t slots)
{
    double passes = (double)times->passes;
    struct per_pass it = {
        .graphs = (double)times->graphs / passes,
        .host_s = fmax(1 - times->graph_s / times->wall_s, 0) * setting->pass_s,
    };
    double longer = setting->overhead * setting->pass_s;
    if (times->stops && longer > 0)
        it.stop_s = fmin(longer * passes / (double)times->stops, shortest_segment(times, slots));
    return it;
}

static double slot_seconds(const struct slot_times *slot, const struct per_pass *it, double *sigma)
{
    double seen = slot_times_seconds(slot, sigma);
    *sigma *= it->graphs;
    if (!slot->graphs)
        return 0;
    double stops = it->stop_s * (double)slot->stops / (double)slot->graphs;
    return it->graphs * fmax(seen - stops, MIN_TIME_SHARE * seen);
}

void attribution_times(struct layers_model *model, struct layers_setting *setting,
                       const struct replay_times *times)
{
    struct layers_share *columns = setting->columns;
    for (unsigned c = 0; c < LAYERS_PHASE_COLUMNS; c++)
        columns[c] = (struct layers_share){.joules = UNKNOWN, .sigma = UNKNOWN};
    if (times->passes == 0 || !is_known(setting->pass_s))
        return;
    struct per_pass it = per_pass_of(setting, times, model->slots);
    double sum = 0, sigma;
    for (size_t i = 0; i < model->slots; i++)
        sum += slot_seconds(&times->slots[i], &it, &sigma);
    double scale = sum > 0 ? (setting->pass_s - it.host_s) / sum : 0;
    for (size_t i = 0; i < model->slots; i++) {
        double taken = scale * slot_seconds(&times->slots[i], &it, &sigma);
        struct layers_share *share = &model->shares[setting->phase][i];
        struct layers_share *column = &columns[i % LAYERS_COMPONENTS];
        column->time_s += taken;
        column->time_sigma = hypot(column->time_sigma, scale * sigma);
        share->time_s += taken;
        share->time_sigma = hypot(share->time_sigma, scale * sigma);
    }
    columns[LAYERS_HOST].time_s = it.host_s;
}

enum { RESAMPLES = 400, IDLE_STRATUM = LAYERS_SETTINGS_MAX };

/* ---- windows ---- */

static bool is_idle(const struct layers_model *model, const struct layers_window *window)
{
    return window->setting >= model->setting_count;
}

/* Whether the window has usable energy. */
static bool is_usable(const struct layers_window *window)
{
    return !window->timed && is_known(window->energy.joules) &&
           window->energy.updates >= ATTRIBUTION_UPDATES;
}

static double pass_seconds(const struct layers_window *window)
{
    return window->passes ? seconds(window->to - window->from) / (double)window->passes : UNKNOWN;
}

/* ---- settings ---- */

static void average_setting(struct layers_model *model, struct layers_setting *setting,
                            unsigned index)
{
    struct online wall = {0}, joules = {0};
    double errors = 0;
    setting->windows = setting->refused = 0;
    setting->passes = 0;
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        if (window->timed || window->setting != index || !window->passes)
            continue;
        double passes = (double)window->passes;
        setting->passes += window->passes;
        online_add(&wall, pass_seconds(window));
        if (!is_usable(window)) {
            setting->refused += is_known(window->energy.joules);
            continue;
        }
        setting->windows++;
        online_add(&joules, window->energy.joules / passes);
        errors += window->energy.statistical * window->energy.statistical / (passes * passes);
    }
    setting->pass_s = online_mean(&wall);
    setting->joules = online_mean(&joules);
    /* Standard error over the windows, or the window's own uncertainty if there is only one. */
    setting->joules_sigma = UNKNOWN;
    if (joules.count > 1)
        setting->joules_sigma = online_standard_error(&joules);
    else if (joules.count == 1)
        setting->joules_sigma = sqrt(errors);
}

void attribution_settings(struct layers_model *model)
{
    double plain = 0, timed = 0, variance = 0;
    for (unsigned i = 0; i < model->setting_count; i++) {
        struct layers_setting *setting = &model->settings[i];
        average_setting(model, setting, i);
        plain += setting->pass_s;
        timed += setting->pass_s * (1 + setting->overhead);
        double error = setting->pass_s * setting->overhead_sigma;
        variance += error * error;
    }
    model->overhead = timed / plain - 1; /* UNKNOWN if any is */
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
        .stratum = IDLE_STRATUM,
    };
    if (!is_idle(model, window)) {
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
        .windows = xcalloc(model->window_count + 1, sizeof *input.windows),
        .busy = xcalloc(model->window_count + 1, sizeof *input.busy),
    };
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        phases[c] = c / LAYERS_PHASE_COLUMNS;
    for (size_t i = 0; i < model->window_count; i++)
        if (is_usable(&model->windows[i]))
            add_window(&input, model, &model->windows[i]);
    struct fit_options options = {
        .phases = phases, .columns = LAYERS_COLUMNS, .resamples = RESAMPLES, .seed = seed};
    enum err err = component_fit(input.windows, input.count, &options, &model->fit, why);
    free(input.windows);
    free(input.busy);
    return err;
}

/* ---- joules ---- */

static void set_joules(struct layers_share *share, const struct fit_power *power)
{
    share->joules = share->sigma = UNKNOWN;
    if (share->time_s <= 0 || !is_known(power->watts))
        return;
    share->joules = power->watts * share->time_s;
    share->sigma = hypot(power->sigma * share->time_s, power->watts * share->time_sigma);
}

static void set_all_joules(struct layers_model *model)
{
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++) {
        const struct fit_power *powers = &model->fit.columns[(size_t)phase * LAYERS_PHASE_COLUMNS];
        for (size_t i = 0; i < model->slots; i++)
            set_joules(&model->shares[phase][i], &powers[i % LAYERS_COMPONENTS]);
        for (size_t s = 0; s < model->setting_count; s++)
            for (unsigned c = 0; c < LAYERS_PHASE_COLUMNS; c++)
                if (model->settings[s].phase == phase)
                    set_joules(&model->settings[s].columns[c], &powers[c]);
    }
}

/* Whether the windows separate any two components of a phase; the host does not count. */
static bool separates_components(const struct component_fit *fit)
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

/* ---- the balance ---- */

/* The total of one pass of the workload: the sum over settings, with the evidence of their windows. */
static void set_total(struct layers_model *model)
{
    struct energy *total = &model->total;
    double variance = 0, systematic = 0, measured = 0;
    *total = energy_unknown("");
    total->joules = 0;
    total->coverage = 1;
    total->updates = 0;
    for (size_t i = 0; i < model->window_count; i++) {
        const struct energy *energy = &model->windows[i].energy;
        if (!is_usable(&model->windows[i]) || is_idle(model, &model->windows[i]))
            continue;
        total->method = energy->method > total->method ? energy->method : total->method;
        total->coverage = fmin(total->coverage, energy->coverage);
        total->updates += energy->updates;
        chars_copy(total->source, energy->source);
        chars_copy(total->note, energy->note);
        double all = energy->plus_minus * energy->plus_minus;
        double chance = energy->statistical * energy->statistical;
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

static double workload_pass_s(const struct layers_model *model)
{
    double sum = 0;
    for (size_t s = 0; s < model->setting_count; s++)
        sum += model->settings[s].pass_s;
    return sum;
}

/* Active energy must exceed its uncertainty by this factor. */
#define CLOSURE_SIGMAS 3

static void set_balance(struct layers_model *model)
{
    double joules = 0, busy = 0, errors[LAYERS_COLUMNS] = {0}, variance = 0;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (size_t i = 0; i < model->slots; i++) {
            const struct layers_share *share = &model->shares[phase][i];
            if (!is_known(share->joules))
                continue;
            joules += share->joules;
            busy += share->time_s;
            /* Errors within a group are fully correlated. */
            unsigned column = phase * LAYERS_PHASE_COLUMNS + (unsigned)(i % LAYERS_COMPONENTS);
            errors[model->fit.columns[column].group] += share->sigma;
        }
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        variance += errors[c] * errors[c];
    model->component_joules = joules;
    model->component_sigma = sqrt(variance);
    double idle = model->fit.has_idle ? model->fit.idle_watts * workload_pass_s(model) : 0;
    model->idle_joules = model->fit.has_idle ? idle : UNKNOWN;
    model->total.idle_joules = model->idle_joules;
    model->total.active_joules = model->total.joules - model->idle_joules;
    model->unattributed_joules = model->total.joules - idle - joules;
    /* Excluding idle energy, which always matches: if there is little active energy, idle would hide any error of the
     * other parts, and a difference within its error would not be meaningful.  Without idle the sum of the components
     * is fitted to the total itself. */
    double active = model->total.joules - model->idle_joules;
    double error = hypot(model->total.statistical, model->fit.idle_sigma * workload_pass_s(model));
    model->closure = joules / active;
    model->closes =
        model->closure >= 0.9 && model->closure <= 1.1 && active > CLOSURE_SIGMAS * error;
    double awake = model->awake.watts - model->fit.idle_watts;
    model->awake_joules = awake > 0 ? fmin(awake * busy, joules) : awake <= 0 ? 0 : UNKNOWN;
}

/* Above this share of the energy, that of other processes hides an error of the balance as large as the closure may
 * be off. */
#define FOREIGN_MAX 0.1

/* Why the balance says nothing about the components; "": it does. */
static void explain_no_closure(const struct layers_model *model, char *why, size_t size)
{
    const struct summary_conditions *figures = &model->conditions.figures;
    double foreign = figures->background_joules / model->conditions.joules;
    str_copy(why, size, "");
    if (!model->fit.has_idle)
        str_copy(why, size, "idle power is unknown");
    else if (model->conditions.joules > 0 && foreign > FOREIGN_MAX)
        str_format(why, size, "other processes used about %.0f %% of the energy", 100 * foreign);
    for (size_t i = 0; !why[0] && i < figures->finding_count; i++) {
        const struct finding *one = &figures->findings[i];
        bool is_load =
            finding_is(one, FINDING_BACKGROUND_CPU) || finding_is(one, FINDING_BACKGROUND_GPU);
        if (is_load && one->severity == FINDING_INVALID)
            str_copy(why, size, one->text);
    }
}

void attribution_check(struct layers_model *model)
{
    if (!model->gave_energy || model->is_onnx)
        return;
    explain_no_closure(model, model->no_closure, sizeof model->no_closure);
    if (model->no_closure[0]) {
        model->closure = UNKNOWN;
        model->closes = false;
    }
}

static void set_no_energy(struct layers_model *model, const char *reason)
{
    chars_copy(model->no_energy, reason);
    model->gave_energy = false;
}

/* Every setting needs a usable window. */
static bool windows_suffice(struct layers_model *model)
{
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        char reason[sizeof model->no_energy], what[64];
        if (setting->windows)
            continue;
        if (model->is_onnx)
            chars_copy(what, "runs");
        else
            chars_format(what, "%s at %u tokens", layers_phase_name(setting->phase),
                         setting->prompt);
        if (setting->refused)
            chars_format(reason,
                         "the windows of %s have fewer than %d sensor updates: "
                         "pass a longer --window",
                         what, ATTRIBUTION_UPDATES);
        else
            chars_format(reason, "no sensor covers %s", what);
        for (size_t i = 0; i < model->window_count && !setting->refused; i++)
            if (model->windows[i].setting == s && !model->windows[i].timed &&
                model->windows[i].energy.note[0])
                chars_copy(reason, model->windows[i].energy.note);
        set_no_energy(model, reason);
        return false;
    }
    return model->setting_count > 0;
}

static void clear_energy(struct layers_model *model)
{
    static const struct fit_power NONE = {.watts = UNKNOWN, .sigma = UNKNOWN};
    for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
        model->fit.columns[c] = NONE;
    model->fit.idle_watts = model->fit.idle_sigma = UNKNOWN;
    set_all_joules(model);
    for (size_t s = 0; s < model->setting_count; s++)
        model->settings[s].joules = model->settings[s].joules_sigma = UNKNOWN;
    model->total = energy_unknown(model->no_energy);
    model->idle_joules = model->component_joules = model->component_sigma = UNKNOWN;
    model->unattributed_joules = model->awake_joules = model->closure = UNKNOWN;
    model->null_difference = model->null_sigma = UNKNOWN;
}

/* ---- the null test ---- */

/* Rounds with even and odd numbers did the same work, so their joules differ only by chance; a larger difference means
 * that the measurement is unreliable.  With few windows the spread is itself uncertain; three sigmas give about 1 %
 * false alarms. */
#define SIGMAS 3

/* Joules of a pass in the rounds of one parity, relative to the mean of the setting. */
static struct online half_of(const struct layers_model *model, unsigned setting, unsigned parity)
{
    struct online half = {0};
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        if (window->setting == setting && !window->timed && window->round % 2 == parity &&
            window->passes && window->energy.updates >= ATTRIBUTION_UPDATES)
            online_add(&half, window->energy.joules / (double)window->passes /
                                  model->settings[setting].joules);
    }
    return half;
}

/* The expected spread from the windows' own uncertainties, if there are too few windows. */
static double own_error(const struct layers_model *model)
{
    struct online errors = {0};
    for (size_t i = 0; i < model->window_count; i++)
        if (!model->windows[i].timed && model->windows[i].setting < model->setting_count)
            online_add(&errors,
                       model->windows[i].energy.statistical / model->windows[i].energy.joules);
    return online_mean(&errors);
}

/* Standard deviation of the difference of a setting's halves under the null hypothesis: from the spread of its windows,
 * from that of the settings' differences, or from the windows' own uncertainties, depending on their number. */
static double null_sigma(const struct layers_model *model, double squares, long degrees_of_freedom,
                         double weights, const struct online *differences)
{
    double settings = (double)differences->count;
    if (degrees_of_freedom >= 3)
        return sqrt(squares / (double)degrees_of_freedom * weights) / settings;
    if (differences->count >= 3)
        return online_standard_error(differences);
    return own_error(model) * sqrt(weights) / settings;
}

static void null_test(struct layers_model *model)
{
    struct online differences = {0};
    double squares = 0, weights = 0;
    long degrees_of_freedom = 0;
    model->null_difference = model->null_sigma = UNKNOWN;
    model->null_holds = false;
    for (unsigned s = 0; s < model->setting_count; s++) {
        struct online odd = half_of(model, s, 1);
        struct online even = half_of(model, s, 0);
        if (!odd.count || !even.count)
            continue;
        online_add(&differences, online_mean(&odd) - online_mean(&even));
        squares += odd.squares + even.squares;
        degrees_of_freedom += (long)(odd.count + even.count) - 2;
        weights += 1 / (double)odd.count + 1 / (double)even.count;
    }
    if (differences.count == 0)
        return;
    model->null_difference = online_mean(&differences);
    model->null_sigma = null_sigma(model, squares, degrees_of_freedom, weights, &differences);
    model->null_holds = fabs(model->null_difference) <= SIGMAS * model->null_sigma;
}

/* ---- all together ---- */

void attribution_energy(struct layers_model *model, unsigned seed)
{
    struct error why = {0};
    model->gave_energy = windows_suffice(model);
    if (model->gave_energy) {
        if (fit_powers(model, seed, &why))
            set_no_energy(model, why.text);
    }
    if (!model->gave_energy) {
        clear_energy(model);
        return;
    }
    model->is_nnls = separates_components(&model->fit);
    set_all_joules(model);
    set_total(model);
    set_balance(model);
    null_test(model);
}

void attribution_total(struct layers_model *model)
{
    model->gave_energy = windows_suffice(model);
    if (!model->gave_energy) {
        clear_energy(model);
        return;
    }
    set_total(model);
    null_test(model);
    model->closure = model->awake_joules = UNKNOWN;
}
