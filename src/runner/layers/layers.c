/* Measuring models by layer: for each model idle windows, then rounds of plain and timed windows until
 * the ± is small enough.  workload.c runs the windows, attribution.c turns them into joules; this file
 * decides what to run: how long windows are, how finely to instrument, and when to stop. */
#include "runner/layers/layers.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/layers/campaign.h"
#include "runner/layers/workload.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* Rounds end when the relative uncertainty of every setting's joules is below this. */
#define UNCERTAINTY_GOOD 0.02

enum { ROUNDS_LEAST = 3, ROUNDS_MAX = 200 };

#define SETTLE_NS (500 * NS_PER_MS)

/* ---- before the rounds ---- */

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
    campaign_report(c, "measuring idle power", NULL);
    thread_sleep(SETTLE_NS); /* the engine's threads poll for work for a while before they sleep */
    *window = (struct layers_window){.setting = (unsigned)model->setting_count};
    enum err err = measure_idle_window(c, 0, window, &model->idle, why);
    if (err)
        return err;
    if (model->idle.is_refused)
        model->idle = (struct layers_idle){.watts = UNKNOWN, .sigma = UNKNOWN};
    else
        model->window_count++;
    if (c->options->gpu_layers != 0 || model->is_onnx)
        return ERR_OK;
    campaign_report(c, "measuring busy-wait power", NULL);
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

/* ---- rounds ---- */

static enum err run_window(struct campaign *c, unsigned setting, bool timed, struct error *why)
{
    struct layers_model *model = c->model;
    if (c->subject->wants && !c->subject->wants(c, timed))
        return ERR_OK;
    struct layers_window *window = new_window(model);
    *window = (struct layers_window){.setting = setting, .round = model->rounds, .timed = timed};
    campaign_report(c, timed ? "timing components" : "measuring", &model->settings[setting]);
    bool may_lengthen = c->options->window_s <= 0;
    enum err err = ERR_OK;
    for (int i = 0; i < ATTEMPTS && !err && (i == 0 || (may_lengthen && is_too_short(c, window)));
         i++) {
        c->window_s *= i ? 2 : 1; /* also for all later windows */
        err = c->subject->window(c, setting, window, why);
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

static bool is_precise(const struct campaign *c)
{
    for (size_t s = 0; s < c->model->setting_count; s++) {
        const struct layers_setting *setting = &c->model->settings[s];
        if (is_known(setting->joules) && setting->joules_sigma > UNCERTAINTY_GOOD * setting->joules)
            return false;
        if (c->subject->limits_overhead &&
            (setting->overhead > LAYERS_OVERHEAD_MAX || !is_known(setting->overhead)))
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
    return model->rounds >= ROUNDS_LEAST && is_precise(c);
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
        if (!err && c->model->rounds > 1 && c->subject->after_round)
            err = c->subject->after_round(c, why);
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
    c->subject->finish(c);
    take_conditions(c);
    attribution_check(model);
    if (model->window_count)
        ledger_take(c->session->sampler, model->windows[0].from,
                    model->windows[model->window_count - 1].to, NULL, &model->ledger);
}

static enum err measure(struct campaign *c, struct error *why)
{
    enum err err = c->subject->warm_up(c, why);
    if (!err)
        err = measure_idle(c, why);
    if (!err) {
        choose_window(c);
        err = c->subject->tune ? c->subject->tune(c, why) : ERR_OK;
    }
    c->rounds_from = clock_now();
    conditions_begin(&c->model->conditions);
    if (!err)
        err = run_rounds(c, why);
    conditions_stop(&c->model->conditions);
    return err;
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
        .subject = model->is_onnx ? &layers_onnx : &layers_decoder,
        .began = clock_now(),
    };
    conditions_init(&model->conditions, session);
    model->granularity = options->granularity;
    model->total = energy_unknown("nothing was measured");
    campaign_report(&campaign, "loading", NULL);
    enum err err = campaign.subject->open(&campaign, why);
    if (!err) {
        err = measure(&campaign, why);
        model->interrupted = err == ERR_INTERRUPTED;
        finish(&campaign);
    }
    for (size_t s = 0; s < LAYERS_SETTINGS_MAX; s++)
        free(campaign.times[s].slots);
    baseline_release(&campaign.idle);
    campaign.subject->close(&campaign);
    return err;
}

static void model_release(struct layers_model *model)
{
    ledger_release(&model->ledger);
    layers_nodes_release(&model->nodes);
    free(model->inputs);
    free(model->windows);
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        free(model->shares[phase]);
    *model = (struct layers_model){0};
}

/* ---- all models ---- */

bool layers_is_onnx(const char *path)
{
    return str_ends(path, ".onnx");
}

static enum err measure_all(struct session *session, const char *const *models, size_t count,
                            const struct layers_options *options, const atomic_bool *cancel,
                            struct layers_run *out, struct error *why)
{
    sampler_ready(session->sampler);
    for (size_t i = 0; i < count; i++) {
        struct layers_model *model = &out->models[i];
        model->path = models[i];
        model->is_onnx = layers_is_onnx(models[i]);
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
