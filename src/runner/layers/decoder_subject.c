/* A decoder of llama.cpp as a subject of `ipw layers`: windows of prompts and generated tokens; the timed ones stop at the
 * ends of components, as finely as the overhead of the stops allows. */
#include <math.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/xalloc.h"
#include "runner/layers/campaign.h"

/* The stride of stops is increased until the measured overhead is below this, so that the total stays below
 * LAYERS_OVERHEAD_MAX. */
#define OVERHEAD_TARGET 0.02

/* ---- loading ---- */

static void make_settings(struct campaign *c)
{
    const struct layers_options *options = c->options;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (size_t i = 0; i < options->prompt_count; i++) {
            if (phase == LAYERS_DECODE && options->generate == 0)
                continue;
            unsigned each = phase == LAYERS_PREFILL ? options->prompts[i] : options->generate;
            campaign_add_setting(c->model, (enum layers_phase)phase, options->prompts[i],
                                 each * options->batch);
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

static enum err open_decoder(struct campaign *c, struct error *why)
{
    enum err err = replay_open(&c->workload, c->model->path, c->options, c->cancel, why);
    if (err)
        return err;
    replay_describe(&c->workload, c->model);
    make_settings(c);
    allocate(c);
    return ERR_OK;
}

static void close_decoder(struct campaign *c)
{
    replay_close(&c->workload);
}

static enum err record(struct campaign *c, struct error *why)
{
    campaign_report(c, "recording its compute graphs", NULL);
    return replay_record(&c->workload, c->model->granularity, why);
}

/* ---- granularity and overhead ---- */

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
        campaign_report(c, "measuring instrumentation overhead", setting);
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

/* ---- windows ---- */

static enum err run_window(struct campaign *c, unsigned setting, struct layers_window *window,
                           struct error *why)
{
    return replay_window(c->session, &c->workload, &c->model->settings[setting], c->window_s,
                         &c->times[setting], window, why);
}

static void finish(struct campaign *c)
{
    struct layers_model *model = c->model;
    for (size_t s = 0; s < model->setting_count; s++)
        attribution_times(model, &model->settings[s], &c->times[s]);
    layers_count_work(model, c->options->batch, c->options->generate, c->workload.ubatch);
    attribution_energy(model, c->options->seed);
}

const struct layers_subject layers_decoder = {
    .open = open_decoder,
    .close = close_decoder,
    .warm_up = record,
    .tune = tune,
    .window = run_window,
    .after_round = tune_after_round,
    .finish = finish,
    .limits_overhead = true,
};
