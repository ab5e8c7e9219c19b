/* Measuring models by layer: for each model idle windows, then rounds of plain and timed windows until
 * the ± is small enough.  workload.c runs the windows, attribution.c turns them into joules; this file
 * decides what to run: how long windows are, how finely to instrument, and when to stop. */
#include "runner/layers/layers.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/layers/workload.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* The stride of stops is increased until the measured overhead is below this, so that the total stays below
 * LAYERS_OVERHEAD_MAX. */
#define OVERHEAD_TARGET 0.02
/* Rounds end when the relative uncertainty of every setting's joules is below this. */
#define UNCERTAINTY_GOOD 0.02

enum { ROUNDS_LEAST = 3, ROUNDS_MAX = 200 };

#define SETTLE_NS (500 * NS_PER_MS)

struct campaign {
    struct session *session;
    const struct layers_options *options;
    const atomic_bool *cancel;
    struct layers_model *model;
    struct layers_workload workload;
    struct replay_times times[LAYERS_SETTINGS_MAX];
    struct baseline idle; /* of each device; empty if not measured */
    nanos began, rounds_from;
    double window_s;
};

static void report_progress(const struct campaign *c, const char *activity,
                            const struct layers_setting *setting)
{
    struct layers_progress state = {
        .model = c->model->path,
        .activity = activity,
        .phase = setting ? setting->phase : LAYERS_PREFILL,
        .prompt = setting ? setting->prompt : 0,
        .round = c->model->rounds + 1,
        .rounds = c->options->repeats,
        .elapsed_s = seconds(clock_now() - c->began),
    };
    if (c->options->progress)
        c->options->progress(&state);
}

/* ---- before the rounds ---- */

static void make_settings(struct campaign *c)
{
    const struct layers_options *options = c->options;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (size_t i = 0; i < options->prompt_count; i++) {
            if (phase == LAYERS_DECODE && options->generate == 0)
                continue;
            unsigned each = phase == LAYERS_PREFILL ? options->prompts[i] : options->generate;
            c->model->settings[c->model->setting_count++] =
                (struct layers_setting){.phase = (enum layers_phase)phase,
                                        .prompt = options->prompts[i],
                                        .tokens = each * options->batch,
                                        .stride = 1,
                                        .pass_s = UNKNOWN,
                                        .joules = UNKNOWN,
                                        .joules_sigma = UNKNOWN,
                                        .overhead = UNKNOWN,
                                        .overhead_sigma = UNKNOWN};
        }
}

static void allocate(struct campaign *c)
{
    struct layers_model *model = c->model;
    model->slots = c->workload.timer.slot_count;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        model->shares[phase] = xcalloc(model->slots, sizeof *model->shares[phase]);
    for (size_t s = 0; s < model->setting_count; s++)
        c->times[s].slots = xcalloc(model->slots, sizeof *c->times[s].slots);
}

static struct layers_window *new_window(struct layers_model *model)
{
    XGROW(model->windows, model->window_count, model->window_capacity);
    return &model->windows[model->window_count];
}

/* A window with too few sensor updates is repeated with twice the length, as is one that a sensor did not cover
 * although it covered others. */
enum { ATTEMPTS = 3 };

static bool is_too_short(const struct campaign *c, const struct layers_window *window)
{
    if (is_known(window->energy.joules))
        return window->energy.updates < ATTRIBUTION_UPDATES;
    for (size_t i = 0; i < c->model->window_count && !window->timed; i++)
        if (is_known(c->model->windows[i].energy.joules))
            return true;
    return false;
}

static enum err measure_idle_window(struct campaign *c, unsigned threads,
                                    struct layers_window *window, struct layers_idle *out,
                                    struct error *why)
{
    double length_s = c->options->idle_s;
    enum err err = ERR_OK;
    for (int i = 0; i < ATTEMPTS && !err && (i == 0 || out->is_refused || is_too_short(c, window));
         i++) {
        err = replay_idle_window(&c->model->conditions, length_s, threads, c->cancel, window, out,
                                 &c->idle, why);
        length_s *= 2;
    }
    return err;
}

/* Idle power with the model loaded; then with busy-waiting threads, if the CPU computes. */
static enum err measure_idle(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    struct layers_window *window = new_window(model);
    struct layers_window awake = {0};
    model->idle = model->awake = (struct layers_idle){.watts = UNKNOWN, .sigma = UNKNOWN};
    if (c->options->idle_s <= 0)
        return ERR_OK;
    report_progress(c, "measuring idle power", NULL);
    thread_sleep(SETTLE_NS); /* the engine's threads poll for work for a while before they sleep */
    *window = (struct layers_window){.setting = (unsigned)model->setting_count};
    enum err err = measure_idle_window(c, 0, window, &model->idle, why);
    if (err)
        return err;
    if (model->idle.is_refused)
        model->idle = (struct layers_idle){.watts = UNKNOWN, .sigma = UNKNOWN};
    else
        model->window_count++;
    if (c->options->gpu_layers != 0)
        return ERR_OK;
    report_progress(c, "measuring busy-wait power", NULL);
    return measure_idle_window(c, (unsigned)model->threads, &awake, &model->awake, why);
}

/* Long enough for the required sensor updates; without a sensor, long enough for timing. */
static void choose_window(struct campaign *c)
{
    static const double SHORTEST_S = 0.25;
    struct ledger ledger;
    nanos now = clock_now();
    c->window_s = c->options->window_s;
    if (c->window_s > 0)
        return;
    ledger_take(c->session->sampler, c->session->started, now, NULL, &ledger);
    double period = replay_update_period(c->session, &ledger);
    c->window_s = fmax(SHORTEST_S, (ATTRIBUTION_UPDATES + 3) * period);
    ledger_release(&ledger);
}

/* ---- granularity ---- */

/* Odd, so that alternating graphs do not always time the same layers. */
static unsigned wider_stride(unsigned stride)
{
    return stride == 1 ? 3 : 2 * stride - 1;
}

static bool too_wide(const struct campaign *c, unsigned stride)
{
    return stride > (unsigned)c->workload.timer.layers + 2;
}

/* Makes the granularity one step coarser; ERR_OK also if it is the coarsest, or fixed by the user. */
static enum err coarsen(struct campaign *c, bool *changed, struct error *why)
{
    struct layers_model *model = c->model;
    *changed = c->options->auto_granularity && model->granularity < LAYERS_BY_PHASE;
    if (!*changed)
        return ERR_OK;
    model->granularity++;
    for (size_t s = 0; s < model->setting_count; s++) {
        model->settings[s].stride = 1;
        replay_times_reset(&c->times[s], model->slots);
    }
    log_info("layers: instrumentation overhead is too high; granularity is now %s",
             layers_granularity_name(model->granularity));
    return replay_record(&c->workload, model->granularity, why);
}

/* Increases the stride of a setting until its overhead is low.  *again: the granularity changed, and all settings must
 * be tuned again. */
static enum err widen_stride_of(struct campaign *c, struct layers_setting *setting, double slowdown,
                                bool *again, struct error *why)
{
    unsigned stride = 1;
    while (slowdown / stride > OVERHEAD_TARGET && !too_wide(c, wider_stride(stride)))
        stride = wider_stride(stride);
    setting->stride = stride;
    log_info("layers: %s at %u tokens: instrumentation overhead %.1f %%, stride %u",
             layers_phase_name(setting->phase), setting->prompt, 100 * slowdown, stride);
    return slowdown / stride > LAYERS_OVERHEAD_MAX ? coarsen(c, again, why) : ERR_OK;
}

/* Overhead of the stops, measured again if it seems high: background load can only increase it. */
static enum err measure_overhead(struct campaign *c, const struct layers_setting *setting,
                                 double *extra_s, double *pass_s, struct error *why)
{
    enum { TRIES = 4 };
    enum err err = ERR_OK;
    *extra_s = *pass_s = INFINITY;
    for (int i = 0; i < TRIES && !err && (i == 0 || *extra_s > OVERHEAD_TARGET * *pass_s); i++) {
        double extra, pass;
        err = replay_overhead(&c->workload, setting, &extra, &pass, why);
        *extra_s = fmin(*extra_s, extra);
        *pass_s = fmin(*pass_s, pass);
    }
    return err;
}

/* Tunes with the shortest prompt of a phase, where stops matter most.  Other prompts have the same cost per stop and
 * longer passes. */
static enum err tune_phase(struct campaign *c, enum layers_phase phase, bool *again,
                           struct error *why)
{
    double extra_s = UNKNOWN, pass_s;
    enum err err = ERR_OK;
    for (size_t s = 0; s < c->model->setting_count && !err && !*again; s++) {
        struct layers_setting *setting = &c->model->settings[s];
        if (setting->phase != phase)
            continue;
        report_progress(c, "measuring instrumentation overhead", setting);
        err = is_known(extra_s) ? replay_pass_seconds(&c->workload, setting, &pass_s, why)
                                : measure_overhead(c, setting, &extra_s, &pass_s, why);
        if (!err)
            err = widen_stride_of(c, setting, extra_s / pass_s, again, why);
    }
    return err;
}

static enum err tune(struct campaign *c, struct error *why)
{
    bool again;
    enum err err = ERR_OK;
    do {
        again = false;
        for (unsigned phase = 0; phase < LAYERS_PHASES && !err && !again; phase++)
            err = tune_phase(c, (enum layers_phase)phase, &again, why);
    } while (again && !err);
    return err;
}

/* Drops the timed windows of a setting whose instrumentation changed. */
static void drop_timed(struct layers_model *model, unsigned setting)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->window_count; i++)
        if (!model->windows[i].timed || model->windows[i].setting != setting)
            model->windows[kept++] = model->windows[i];
    model->window_count = kept;
}

/* After a round, increases the stride of settings with too much overhead. */
static enum err tune_after_round(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    for (unsigned s = 0; s < model->setting_count; s++) {
        struct layers_setting *setting = &model->settings[s];
        /* Only if significant: on a busy machine the overhead itself is uncertain. */
        if (!(setting->overhead - 2 * setting->overhead_sigma > LAYERS_OVERHEAD_MAX))
            continue;
        bool coarsened = false;
        if (!too_wide(c, wider_stride(setting->stride))) {
            setting->stride = wider_stride(setting->stride);
            replay_times_reset(&c->times[s], model->slots);
            drop_timed(model, s);
            continue;
        }
        enum err err = coarsen(c, &coarsened, why);
        if (err || !coarsened)
            return err;
        for (unsigned each = 0; each < model->setting_count; each++)
            drop_timed(model, each);
        return ERR_OK;
    }
    return ERR_OK;
}

/* ---- rounds ---- */

static enum err run_window(struct campaign *c, unsigned setting, bool timed, struct error *why)
{
    struct layers_model *model = c->model;
    struct layers_window *window = new_window(model);
    *window = (struct layers_window){.setting = setting, .round = model->rounds, .timed = timed};
    report_progress(c, timed ? "timing components" : "measuring", &model->settings[setting]);
    bool may_lengthen = c->options->window_s <= 0;
    enum err err = ERR_OK;
    for (int i = 0; i < ATTEMPTS && !err && (i == 0 || (may_lengthen && is_too_short(c, window)));
         i++) {
        c->window_s *= i ? 2 : 1; /* also for all later windows */
        err = replay_window(c->session, &c->workload, &model->settings[setting], c->window_s,
                            &c->times[setting], window, why);
    }
    model->window_count += !err;
    return err;
}

/* Plain and timed windows alternate in which comes first. */
static enum err run_round(struct campaign *c, struct error *why)
{
    enum err err = ERR_OK;
    for (unsigned s = 0; s < c->model->setting_count && !err; s++) {
        bool timed_first = (c->model->rounds + s) % 2;
        err = run_window(c, s, timed_first, why);
        if (!err)
            err = run_window(c, s, !timed_first, why);
    }
    c->model->rounds += !err;
    return err;
}

static bool is_precise(const struct layers_model *model)
{
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        if (is_known(setting->joules) && setting->joules_sigma > UNCERTAINTY_GOOD * setting->joules)
            return false;
        if (setting->overhead > LAYERS_OVERHEAD_MAX || !is_known(setting->overhead))
            return false;
    }
    return true;
}

static bool has_enough(const struct campaign *c)
{
    const struct layers_model *model = c->model;
    if (c->options->repeats)
        return model->rounds >= c->options->repeats;
    if (model->rounds >= ROUNDS_MAX)
        return true;
    if (seconds(clock_now() - c->began) > c->options->max_s)
        return model->rounds > 0;
    return model->rounds >= ROUNDS_LEAST && is_precise(model);
}

static void update_settings(struct campaign *c)
{
    for (size_t s = 0; s < c->model->setting_count; s++)
        attribution_overhead(&c->model->settings[s], &c->times[s]);
    attribution_settings(c->model);
}

static enum err run_rounds(struct campaign *c, struct error *why)
{
    enum err err = ERR_OK;
    while (!err) {
        err = run_round(c, why);
        update_settings(c);
        if (!err && has_enough(c))
            break;
        if (!err && c->model->rounds > 1)
            err = tune_after_round(c, why);
    }
    return err;
}

/* ---- one model ---- */

static void take_conditions(struct campaign *c)
{
    struct conditions *conditions = &c->model->conditions;
    struct ledger ledger;
    const struct baseline *idle = conditions->has_idle ? &c->idle : NULL;
    if (c->model->rounds) {
        ledger_take(c->session->sampler, c->rounds_from, clock_now(), idle, &ledger);
        conditions_take(conditions, &ledger);
        ledger_release(&ledger);
    }
    if (!c->model->interrupted)
        conditions_idle_after(conditions, c->options->idle_s);
    conditions_conclude(conditions);
}

static void finish(struct campaign *c)
{
    struct layers_model *model = c->model;
    update_settings(c);
    for (size_t s = 0; s < model->setting_count; s++)
        attribution_times(model, &model->settings[s], &c->times[s]);
    layers_count_work(model, c->options->batch, c->options->generate, c->workload.ubatch);
    attribution_energy(model, c->options->seed);
    take_conditions(c);
    attribution_check(model);
    if (model->window_count)
        ledger_take(c->session->sampler, model->windows[0].from,
                    model->windows[model->window_count - 1].to, NULL, &model->ledger);
}

static enum err measure(struct campaign *c, struct error *why)
{
    report_progress(c, "recording its compute graphs", NULL);
    enum err err = replay_record(&c->workload, c->model->granularity, why);
    if (!err)
        err = measure_idle(c, why);
    if (!err) {
        choose_window(c);
        err = tune(c, why);
    }
    c->rounds_from = clock_now();
    conditions_begin(&c->model->conditions);
    if (!err)
        err = run_rounds(c, why);
    conditions_stop(&c->model->conditions);
    return err;
}

static enum err begin(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    report_progress(c, "loading", NULL);
    enum err err = replay_open(&c->workload, model->path, c->options, c->cancel, why);
    if (err)
        return err;
    replay_describe(&c->workload, model);
    make_settings(c);
    allocate(c);
    return ERR_OK;
}

/* Fills *model, whose path is set; after an error partially. */
static enum err measure_model(struct session *session, const struct layers_options *options,
                              const atomic_bool *cancel, struct layers_model *model,
                              struct error *why)
{
    struct campaign campaign = {
        .session = session,
        .options = options,
        .cancel = cancel,
        .model = model,
        .began = clock_now(),
    };
    conditions_init(&model->conditions, session);
    model->granularity = options->granularity;
    model->total = energy_unknown("nothing was measured");
    enum err err = begin(&campaign, why);
    if (!err) {
        err = measure(&campaign, why);
        model->interrupted = err == ERR_INTERRUPTED;
        finish(&campaign);
    }
    for (size_t s = 0; s < LAYERS_SETTINGS_MAX; s++)
        free(campaign.times[s].slots);
    baseline_release(&campaign.idle);
    replay_close(&campaign.workload);
    return err;
}

static void model_release(struct layers_model *model)
{
    ledger_release(&model->ledger);
    free(model->windows);
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        free(model->shares[phase]);
    *model = (struct layers_model){0};
}

/* ---- all models ---- */

static enum err measure_all(struct session *session, const char *const *models, size_t count,
                            const struct layers_options *options, const atomic_bool *cancel,
                            struct layers_run *out, struct error *why)
{
    sampler_ready(session->sampler);
    for (size_t i = 0; i < count; i++) {
        struct layers_model *model = &out->models[i];
        model->path = models[i];
        enum err err = measure_model(session, options, cancel, model, why);
        if (!err || model->interrupted) {
            struct layers_result *result = &out->results.models[out->results.count++];
            out->count++;
            layers_result_fill(model, options, result);
        }
        if (err) {
            if (!model->interrupted)
                model_release(model);
            return err;
        }
    }
    return ERR_OK;
}

enum err layers_measure(struct session *session, const char *const *models, size_t count,
                        const struct layers_options *options, struct layers_run *out,
                        struct error *why)
{
    struct signal_listener listener;
    *out = (struct layers_run){.started_wall = clock_wall()};
    out->models = xcalloc(count, sizeof *out->models);
    out->results.models = xcalloc(count, sizeof *out->results.models);
    enum err err = signal_listener_start(&listener, why);
    if (err)
        return err;
    err = measure_all(session, models, count, options, &listener.cancel, out, why);
    out->signal = signal_listener_stop(&listener);
    return err;
}

void layers_run_release(struct layers_run *run)
{
    layers_results_release(&run->results);
    for (size_t i = 0; i < run->count; i++)
        model_release(&run->models[i]);
    free(run->models);
    *run = (struct layers_run){0};
}
