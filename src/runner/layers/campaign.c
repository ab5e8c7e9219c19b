#include "runner/layers/campaign.h"

#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/text.h"
#include "port/thread.h"
#include "runner/layers/balance.h"
#include "runner/layers/replay.h"
#include "runner/layers/rest.h"
#include "runner/layers/rig.h"
#include "runner/layers/times.h"
#include "runner/layers/work.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* Stops are thinned out until they slow by less than this when tried, so that the whole stays below
 * LAYERS_OVERHEAD_MAX. */
#define OVERHEAD_AIM 0.02
/* Rounds end when no setting's joules (or seconds) are less certain than this. */
#define CERTAIN_ENOUGH 0.02

enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 200 };

#define SETTLE_NS (500 * NS_PER_MS)

struct campaign {
    struct session *session;
    const struct layers_options *options;
    const atomic_bool *cancel;
    struct layers_model *model;
    struct rig rig;
    struct replay_times times[LAYERS_SETTINGS_MAX];
    nanos began;
    double window_s;
};

static void tell(const struct campaign *c, const char *doing, const struct layers_setting *setting)
{
    struct layers_progress state = {
        .model = c->model->path,
        .doing = doing,
        .phase = setting ? setting->phase : LAYERS_PREFILL,
        .prompt = setting ? setting->prompt : 0,
        .round = c->model->rounds + 1,
        .rounds = c->options->repeats,
        .elapsed_s = seconds(clock_now() - c->began),
        .most_s = c->options->max_s,
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

static enum err make_room(struct campaign *c)
{
    struct layers_model *model = c->model;
    model->slots = c->rig.watch.slot_count;
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++) {
        model->shares[phase] = calloc(model->slots, sizeof *model->shares[phase]);
        if (!model->shares[phase])
            return ERR_NO_MEMORY;
    }
    for (size_t s = 0; s < model->setting_count; s++) {
        c->times[s].slots = calloc(model->slots, sizeof *c->times[s].slots);
        if (!c->times[s].slots)
            return ERR_NO_MEMORY;
    }
    return ERR_OK;
}

static struct layers_window *new_window(struct layers_model *model)
{
    struct layers_window *windows =
        grow(model->windows, &model->window_capacity, model->window_count, sizeof *windows);
    if (!windows)
        return NULL;
    model->windows = windows;
    return &windows[model->window_count];
}

/* A window in which a sensor updated too seldom is tried again, twice as long; so is one that a sensor
 * does not cover which covered others. */
enum { ATTEMPTS = 3 };

static bool is_too_short(const struct campaign *c, const struct layers_window *window)
{
    if (is_known(window->energy.joules))
        return window->energy.updates < BALANCE_UPDATES;
    for (size_t i = 0; i < c->model->window_count && !window->watched; i++)
        if (is_known(c->model->windows[i].energy.joules))
            return true;
    return false;
}

static enum err watch_rest(struct campaign *c, unsigned threads, struct layers_window *window,
                           struct layers_rest *out, struct error *why)
{
    double length_s = c->options->idle_s;
    enum err err = ERR_OK;
    for (int i = 0; i < ATTEMPTS && !err && (i == 0 || is_too_short(c, window)); i++) {
        err = rest_measure(c->session, length_s, threads, c->cancel, window, out, why);
        length_s *= 2;
    }
    return err;
}

/* At rest, with the model loaded; then awake, where the work is the CPU's. */
static enum err measure_rest(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    struct layers_window *window = new_window(model), awake = {0};
    model->idle = model->awake = (struct layers_rest){.watts = UNKNOWN, .sigma = UNKNOWN};
    if (!window)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    if (c->options->idle_s <= 0)
        return ERR_OK;
    tell(c, "watching the machine at rest", NULL);
    thread_sleep(SETTLE_NS); /* the engine's threads look for work for a while before they sleep */
    *window = (struct layers_window){.setting = (unsigned)model->setting_count};
    enum err err = watch_rest(c, 0, window, &model->idle, why);
    if (err)
        return err;
    model->window_count++;
    if (c->options->gpu_layers != 0)
        return ERR_OK;
    tell(c, "watching it awake", NULL);
    return watch_rest(c, (unsigned)model->threads, &awake, &model->awake, why);
}

/* Long enough for more updates than a window needs; without a sensor, long enough to time. */
static enum err choose_window(struct campaign *c, struct error *why)
{
    static const double SHORTEST_S = 0.25;
    struct ledger ledger;
    nanos now = clock_now();
    c->window_s = c->options->window_s;
    if (c->window_s > 0)
        return ERR_OK;
    enum err err = ledger_take(c->session->sampler, c->session->started, now, NULL, &ledger);
    if (err)
        return err_set(why, err, "cannot read the sensors: %s", err_text(err));
    double period = rest_update_period(c->session, &ledger);
    c->window_s = fmax(SHORTEST_S, (BALANCE_UPDATES + 3) * period);
    ledger_release(&ledger);
    return ERR_OK;
}

/* ---- how closely to look ---- */

/* Odd, so that graphs that take turns do not fall in step with the layers that are looked at. */
static unsigned wider_stride(unsigned stride)
{
    return stride == 1 ? 3 : 2 * stride - 1;
}

static bool too_wide(const struct campaign *c, unsigned stride)
{
    return stride > (unsigned)c->rig.watch.layers + 2;
}

/* From layers down to nothing; ERR_OK also when there is nothing coarser, or it may not be. */
static enum err look_coarser(struct campaign *c, bool *changed, struct error *why)
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
    log_info("layers: the stops cost too much; looking by %s",
             layers_granularity_name(model->granularity));
    return rig_learn(&c->rig, model->granularity, why);
}

/* Thins the stops of a setting out until they add little to a pass.  *again: the granularity changed,
 * and every setting must be tried anew. */
static enum err thin_out(struct campaign *c, struct layers_setting *setting, double slowdown,
                         bool *again, struct error *why)
{
    unsigned stride = 1;
    while (slowdown / stride > OVERHEAD_AIM && !too_wide(c, wider_stride(stride)))
        stride = wider_stride(stride);
    setting->stride = stride;
    log_info("layers: %s at %u tokens: stops slow it by %.1f %%, stride %u",
             layers_phase_name(setting->phase), setting->prompt, 100 * slowdown, stride);
    return slowdown / stride > LAYERS_OVERHEAD_MAX ? look_coarser(c, again, why) : ERR_OK;
}

/* What stops add, tried again where it seems much: another's load can only make it seem more. */
static enum err try_stops(struct campaign *c, const struct layers_setting *setting, double *extra_s,
                          double *pass_s, struct error *why)
{
    enum { TRIES = 4 };
    enum err err = ERR_OK;
    *extra_s = *pass_s = INFINITY;
    for (int i = 0; i < TRIES && !err && (i == 0 || *extra_s > OVERHEAD_AIM * *pass_s); i++) {
        double extra, pass;
        err = replay_slowdown(&c->rig, setting, &extra, &pass, why);
        *extra_s = fmin(*extra_s, extra);
        *pass_s = fmin(*pass_s, pass);
    }
    return err;
}

/* Tries the shortest prompt of a phase, where stops matter most.  They cost the same in the others,
 * whose passes are longer. */
static enum err tune_phase(struct campaign *c, enum layers_phase phase, bool *again,
                           struct error *why)
{
    double extra_s = UNKNOWN, pass_s;
    enum err err = ERR_OK;
    for (size_t s = 0; s < c->model->setting_count && !err && !*again; s++) {
        struct layers_setting *setting = &c->model->settings[s];
        if (setting->phase != phase)
            continue;
        tell(c, "trying how much stops slow", setting);
        err = is_known(extra_s) ? replay_pass_seconds(&c->rig, setting, &pass_s, why)
                                : try_stops(c, setting, &extra_s, &pass_s, why);
        if (!err)
            err = thin_out(c, setting, extra_s / pass_s, again, why);
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

/* Watched windows of a setting that is looked at otherwise from now on. */
static void drop_watched(struct layers_model *model, unsigned setting)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->window_count; i++)
        if (!model->windows[i].watched || model->windows[i].setting != setting)
            model->windows[kept++] = model->windows[i];
    model->window_count = kept;
}

/* After a round: what turned out too slow is looked at less closely from now on. */
static enum err retune(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    for (unsigned s = 0; s < model->setting_count; s++) {
        struct layers_setting *setting = &model->settings[s];
        /* Only what surely is too slow: on a busy machine the figure itself is uncertain. */
        if (!(setting->overhead - 2 * setting->overhead_sigma > LAYERS_OVERHEAD_MAX))
            continue;
        bool coarser = false;
        if (!too_wide(c, wider_stride(setting->stride))) {
            setting->stride = wider_stride(setting->stride);
            replay_times_reset(&c->times[s], model->slots);
            drop_watched(model, s);
            continue;
        }
        enum err err = look_coarser(c, &coarser, why);
        if (err || !coarser)
            return err;
        for (unsigned each = 0; each < model->setting_count; each++)
            drop_watched(model, each);
        return ERR_OK;
    }
    return ERR_OK;
}

/* ---- rounds ---- */

static enum err run_window(struct campaign *c, unsigned setting, bool watched, struct error *why)
{
    struct layers_model *model = c->model;
    struct layers_window *window = new_window(model);
    if (!window)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    *window =
        (struct layers_window){.setting = setting, .round = model->rounds, .watched = watched};
    tell(c, watched ? "timing components" : "measuring", &model->settings[setting]);
    bool may_lengthen = c->options->window_s <= 0;
    enum err err = ERR_OK;
    for (int i = 0; i < ATTEMPTS && !err && (i == 0 || (may_lengthen && is_too_short(c, window)));
         i++) {
        c->window_s *= i ? 2 : 1; /* for all that follow, too */
        err = replay_window(c->session, &c->rig, &model->settings[setting], c->window_s,
                            &c->times[setting], window, why);
    }
    model->window_count += !err;
    return err;
}

/* Undisturbed and watched take turns at being first. */
static enum err run_round(struct campaign *c, struct error *why)
{
    enum err err = ERR_OK;
    for (unsigned s = 0; s < c->model->setting_count && !err; s++) {
        bool watched_first = (c->model->rounds + s) % 2;
        err = run_window(c, s, watched_first, why);
        if (!err)
            err = run_window(c, s, !watched_first, why);
    }
    c->model->rounds += !err;
    return err;
}

static bool is_certain(const struct layers_model *model)
{
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        bool knows = is_known(setting->joules);
        if (knows && setting->joules_sigma > CERTAIN_ENOUGH * setting->joules)
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
    if (model->rounds >= ROUNDS_MOST)
        return true;
    if (seconds(clock_now() - c->began) > c->options->max_s)
        return model->rounds > 0;
    return model->rounds >= ROUNDS_LEAST && is_certain(model);
}

static void take_stock(struct campaign *c)
{
    for (size_t s = 0; s < c->model->setting_count; s++)
        times_overhead(&c->model->settings[s], &c->times[s]);
    balance_settings(c->model);
}

static enum err run_rounds(struct campaign *c, struct error *why)
{
    enum err err = ERR_OK;
    while (!err) {
        err = run_round(c, why);
        take_stock(c);
        if (!err && has_enough(c))
            break;
        if (!err && c->model->rounds > 1)
            err = retune(c, why);
    }
    return err;
}

/* ---- all of it ---- */

static enum err settle(struct campaign *c)
{
    struct layers_model *model = c->model;
    take_stock(c);
    for (size_t s = 0; s < model->setting_count; s++)
        times_settle(model, &model->settings[s], &c->times[s]);
    work_count(model, c->options->batch, c->options->generate, c->rig.ubatch);
    enum err err = balance_energy(model, c->options->seed);
    if (err || model->window_count == 0)
        return err;
    return ledger_take(c->session->sampler, model->windows[0].from,
                       model->windows[model->window_count - 1].to, NULL, &model->ledger);
}

static enum err measure(struct campaign *c, struct error *why)
{
    tell(c, "learning its graphs", NULL);
    enum err err = rig_learn(&c->rig, c->model->granularity, why);
    if (!err)
        err = measure_rest(c, why);
    if (!err)
        err = choose_window(c, why);
    if (!err)
        err = tune(c, why);
    if (!err)
        err = run_rounds(c, why);
    return err;
}

static enum err begin(struct campaign *c, struct error *why)
{
    struct layers_model *model = c->model;
    tell(c, "loading", NULL);
    enum err err = rig_open(&c->rig, model->path, c->options, c->cancel, why);
    if (err)
        return err;
    model->facts = *engine_model_facts(c->rig.model);
    model->context = engine_context_facts(c->rig.plain)->context;
    model->threads = engine_context_facts(c->rig.plain)->threads;
    work_read(model);
    make_settings(c);
    err = make_room(c);
    return err ? err_set(why, err, "out of memory") : ERR_OK;
}

enum err campaign_run(struct session *session, const struct layers_options *options,
                      const atomic_bool *cancel, struct layers_model *model, struct error *why)
{
    struct campaign campaign = {
        .session = session,
        .options = options,
        .cancel = cancel,
        .model = model,
        .began = clock_now(),
    };
    model->granularity = options->granularity;
    model->total = energy_unknown("nothing was measured");
    enum err err = begin(&campaign, why);
    if (!err) {
        err = measure(&campaign, why);
        model->interrupted = err == ERR_INTERRUPTED;
        enum err settled = settle(&campaign);
        if (settled && !err)
            err = err_set(why, settled, "cannot settle the account: %s", err_text(settled));
    }
    for (size_t s = 0; s < LAYERS_SETTINGS_MAX; s++)
        free(campaign.times[s].slots);
    rig_close(&campaign.rig);
    return err;
}

void layers_model_release(struct layers_model *model)
{
    decoder_release(&model->decoder);
    ledger_release(&model->ledger);
    free(model->windows);
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        free(model->shares[phase]);
    *model = (struct layers_model){0};
}
