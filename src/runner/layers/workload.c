/* A model set up for replays, and the windows in which it is measured.
 *
 * The model is opened once, with two contexts: one that runs undisturbed and one that the segment timer watches.  A
 * window replays a setting (a prompt, or tokens after it) for long enough to be measured by the sensors; idle windows
 * run nothing, or busy-waiting threads. */
#include "runner/layers/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* ---- setup ---- */

/* Length of the longest prompt plus the tokens generated after it. */
static uint32_t tokens_needed(const struct layers_options *options)
{
    return options->prompts[options->prompt_count - 1] + options->generate;
}

static enum err choose_context(struct layers_workload *workload, const char *path,
                               struct error *why)
{
    const struct layers_options *options = workload->options;
    const struct engine_model_facts *facts = engine_model_facts(workload->model);
    uint32_t needed = tokens_needed(options);
    uint32_t longest = options->prompts[options->prompt_count - 1];
    if (options->context && needed > options->context)
        return err_set(why, ERR_USAGE,
                       "a prompt of %u tokens and %u generated ones do not fit into --context %u",
                       longest, options->generate, options->context);
    if (facts->trained_context > 0 && needed > (uint32_t)facts->trained_context)
        return err_set(why, ERR_USAGE,
                       "%s: a prompt of %u tokens and %u generated ones do not fit into its "
                       "context of %d tokens: pass a shorter --prompt-tokens",
                       path, longest, options->generate, facts->trained_context);
    workload->context = options->context ? options->context : needed;
    return ERR_OK;
}

/* Random tokens: their values do not affect the cost. */
static void draw_tokens(struct layers_workload *workload)
{
    struct random draws = random_seeded(workload->options->seed);
    int vocabulary = engine_model_facts(workload->model)->vocabulary;
    workload->tokens = xcalloc(workload->context, sizeof *workload->tokens);
    for (uint32_t i = 0; i < workload->context; i++)
        workload->tokens[i] = (engine_token)random_index(&draws, (size_t)vocabulary);
}

static enum err open_contexts(struct layers_workload *workload, const atomic_bool *cancel,
                              struct error *why)
{
    struct engine_context_options options = {
        .context = workload->context,
        .sequences = workload->options->batch,
        .threads = (int)workload->options->threads,
        .keep_threads = true,
        .flash_attention = -1,
    };
    enum err err = engine_context_open(workload->model, &options, &workload->plain, why);
    if (err)
        return err;
    options.watch = &workload->timer.watch;
    err = engine_context_open(workload->model, &options, &workload->timed, why);
    if (err)
        return err;
    engine_set_abort(workload->plain, cancel, 0);
    engine_set_abort(workload->timed, cancel, 0);
    workload->ubatch = engine_context_facts(workload->plain)->ubatch;
    return ERR_OK;
}

enum err replay_open(struct layers_workload *workload, const char *path,
                     const struct layers_options *options, const atomic_bool *cancel,
                     struct error *why)
{
    struct engine_model_options how = {.gpu_layers = options->gpu_layers, .cancel = cancel};
    *workload = (struct layers_workload){.options = options};
    enum err err = engine_model_open(path, &how, &workload->model, why);
    if (!err)
        err = choose_context(workload, path, why);
    if (err)
        return err;
    segment_timer_init(&workload->timer, engine_model_facts(workload->model)->layers,
                       options->granularity);
    draw_tokens(workload);
    return open_contexts(workload, cancel, why);
}

void replay_describe(const struct layers_workload *workload, struct layers_model *model)
{
    model->facts = *engine_model_facts(workload->model);
    model->context = engine_context_facts(workload->plain)->context;
    model->threads = engine_context_facts(workload->plain)->threads;
}

void replay_close(struct layers_workload *workload)
{
    engine_context_close(workload->plain);
    engine_context_close(workload->timed);
    engine_model_close(workload->model);
    segment_timer_release(&workload->timer);
    free(workload->tokens);
    *workload = (struct layers_workload){0};
}

/* ---- computing ---- */

static enum err compute(struct layers_workload *workload, bool timed, size_t from, size_t count,
                        unsigned stride, struct error *why)
{
    if (timed)
        segment_timer_begin(&workload->timer, stride);
    nanos began = clock_now();
    enum err err = engine_decode(timed ? workload->timed : workload->plain, workload->tokens + from,
                                 count, workload->options->batch, why);
    if (!err && workload->durations)
        workload->durations->seconds[workload->durations->count++ % DURATIONS_MAX] =
            seconds(clock_now() - began);
    return err;
}

enum err replay_record(struct layers_workload *workload, enum layers_granularity granularity,
                       struct error *why)
{
    const struct layers_options *options = workload->options;
    enum err err = ERR_OK;
    segment_timer_clear_plans(&workload->timer, granularity);
    engine_clear(workload->timed);
    for (size_t i = 0; i <= options->prompt_count && !err; i++) {
        bool decodes = i == options->prompt_count; /* after the longest prompt, one token */
        segment_timer_record(&workload->timer);
        if (!decodes)
            engine_clear(workload->timed);
        err = compute(workload, true, decodes ? options->prompts[i - 1] : 0,
                      decodes ? 1 : options->prompts[i], 1, why);
        segment_timer_record_end(&workload->timer);
    }
    return err;
}

/* Prepares a setting's passes: computes the prompt before generated tokens. */
static enum err prepare(struct layers_workload *workload, bool timed,
                        const struct layers_setting *setting, struct error *why)
{
    struct engine_context *context = timed ? workload->timed : workload->plain;
    engine_clear(context);
    if (setting->phase == LAYERS_PREFILL)
        return ERR_OK;
    segment_timer_reset(&workload->timer, NULL);
    return compute(workload, timed, 0, setting->prompt, 1, why);
}

static enum err generate(struct layers_workload *workload, bool timed,
                         const struct layers_setting *setting, struct error *why)
{
    enum err err = ERR_OK;
    for (unsigned i = 0; i < workload->options->generate && !err; i++)
        err = compute(workload, timed, setting->prompt + i, 1, setting->stride, why);
    if (!err)
        engine_rewind(timed ? workload->timed : workload->plain, setting->prompt);
    return err;
}

/* One pass: the prompt from an empty KV cache, or the generated tokens after it.  ERR_NO_DATA if the model's KV cache
 * cannot be rewound and the context is full. */
static enum err run_pass(struct layers_workload *workload, bool timed,
                         const struct layers_setting *setting, struct error *why)
{
    if (setting->phase == LAYERS_DECODE)
        return generate(workload, timed, setting, why);
    engine_clear(timed ? workload->timed : workload->plain);
    return compute(workload, timed, 0, setting->prompt, setting->stride, why);
}

void replay_times_reset(struct replay_times *times, size_t slots)
{
    struct slot_times *kept = times->slots;
    memset(kept, 0, slots * sizeof *kept);
    *times = (struct replay_times){.slots = kept};
}

/* ---- windows ---- */

static void add_counts(struct replay_times *times, const struct segment_timer *timer,
                       const struct layers_window *window)
{
    times->passes += window->passes;
    times->graphs += timer->graphs;
    times->unknown_graphs += timer->unknown_graphs;
    times->stops += timer->stops;
    times->wall_s += seconds(window->to - window->from);
    times->graph_s += timer->graph_s;
}

static enum err run_passes(struct layers_workload *workload, const struct layers_setting *setting,
                           double length_s, struct layers_window *window, struct error *why)
{
    nanos until = window->from + from_seconds(length_s);
    enum err err = ERR_OK;
    do {
        err = run_pass(workload, window->timed, setting, why);
        window->passes += !err;
    } while (!err &&
             (clock_now() < until || (window->timed && workload->timer.graphs < setting->stride)));
    /* A KV cache that cannot be rewound: the window ends when the context is full. */
    return err == ERR_NO_DATA && window->passes ? ERR_OK : err;
}

void replay_begin_window(struct session *session, struct layers_window *window)
{
    window->passes = 0;
    window->energy = energy_unknown("not measured: this window was instrumented for timing");
    if (!window->timed)
        sampler_mark(session->sampler);
    window->from = clock_now();
}

void replay_end_window(struct session *session, struct layers_window *window)
{
    struct ledger ledger;
    window->to = clock_now();
    if (window->timed)
        return;
    sampler_settle(session->sampler, window->to);
    ledger_take(session->sampler, window->from, window->to, NULL, &ledger);
    window->energy = ledger.total;
    ledger_release(&ledger);
}

enum err replay_window(struct session *session, struct layers_workload *workload,
                       const struct layers_setting *setting, double length_s,
                       struct replay_times *times, struct layers_window *window, struct error *why)
{
    window->passes = 0;
    enum err err = prepare(workload, window->timed, setting, why);
    if (err)
        return err;
    segment_timer_reset(&workload->timer, times->slots);
    workload->durations = window->timed ? &times->timed : &times->plain;
    replay_begin_window(session, window);
    err = run_passes(workload, setting, length_s, window, why);
    replay_end_window(session, window);
    workload->durations = NULL;
    if (!err && window->timed)
        add_counts(times, &workload->timer, window);
    return err;
}

/* ---- instrumentation overhead ---- */

static enum err timed_pass(struct layers_workload *workload, bool timed,
                           const struct layers_setting *setting, struct pass_durations *durations,
                           double *seconds_taken, struct error *why)
{
    enum err err = prepare(workload, timed, setting, why);
    workload->durations = durations;
    nanos from = clock_now();
    if (!err)
        err = run_pass(workload, timed, setting, why);
    *seconds_taken = seconds(clock_now() - from);
    workload->durations = NULL;
    return err;
}

enum err replay_pass_seconds(struct layers_workload *workload, const struct layers_setting *setting,
                             double *pass_s, struct error *why)
{
    return timed_pass(workload, false, setting, NULL, pass_s, why);
}

static double shortest_of(const struct pass_durations *durations)
{
    double shortest = INFINITY;
    for (size_t i = 0; i < durations->count && i < DURATIONS_MAX; i++)
        shortest = fmin(shortest, durations->seconds[i]);
    return shortest;
}

enum err replay_overhead(struct layers_workload *workload, const struct layers_setting *setting,
                         double *extra_s, double *pass_s, struct error *why)
{
    enum { FEWEST = 3, MAX = 15 };
    static const double ENOUGH_S = 1;
    struct pass_durations durations[2] = {{.count = 0}, {.count = 0}};
    double spent = 0, taken = 0;
    enum err err =
        timed_pass(workload, false, setting, NULL, &taken, why); /* warm-up: caches and clocks */
    for (unsigned pairs = 0; !err && pairs < MAX && (pairs < FEWEST || spent < ENOUGH_S); pairs++)
        for (unsigned i = 0; i < 2 && !err; i++) {
            bool timed = i != pairs % 2;
            err = timed_pass(workload, timed, setting, &durations[timed], &taken, why);
            spent += taken;
        }
    double shortest = shortest_of(&durations[false]);
    unsigned computations = setting->phase == LAYERS_DECODE ? workload->options->generate : 1;
    *pass_s = shortest * computations;
    *extra_s = fmax(shortest_of(&durations[true]) - shortest, 0) * computations;
    return err;
}

/* ---- idle windows ---- */

enum { SPINNERS_MAX = 512 };

/* Busy-waits as an engine's thread does at a barrier, with a pause instruction. */
static void *spin(void *argument)
{
    atomic_bool *stop = argument;
    while (!atomic_load_explicit(stop, memory_order_relaxed)) {
#if defined __x86_64__
        __builtin_ia32_pause();
#elif defined __aarch64__
        __asm__ volatile("yield");
#endif
    }
    return NULL;
}

static bool sleep_for(double length_s, const atomic_bool *cancel)
{
    nanos until = clock_now() + from_seconds(length_s);
    for (nanos now = clock_now(); now < until && !atomic_load(cancel); now = clock_now()) {
        nanos left = until - now;
        thread_sleep(left < 20 * NS_PER_MS ? left : 20 * NS_PER_MS);
    }
    return !atomic_load(cancel);
}

static enum err measure_window(struct conditions *conditions, double length_s,
                               const atomic_bool *cancel, struct layers_window *window,
                               struct baseline *idle, struct error *why)
{
    struct session *session = conditions->session;
    struct ledger ledger;
    sampler_mark(session->sampler);
    conditions_begin(conditions);
    window->from = clock_now();
    bool complete = sleep_for(length_s, cancel);
    window->to = clock_now();
    conditions_stop(conditions);
    if (!complete)
        return err_set(why, ERR_INTERRUPTED, "interrupted");
    sampler_settle(session->sampler, window->to);
    ledger_take(session->sampler, window->from, window->to, NULL, &ledger);
    window->energy = ledger.total;
    if (idle)
        conditions_check_idle(conditions, &ledger, idle);
    ledger_release(&ledger);
    return ERR_OK;
}

enum err replay_idle_window(struct conditions *conditions, double length_s, unsigned threads,
                            const atomic_bool *cancel, struct layers_window *window,
                            struct layers_idle *out, struct baseline *idle, struct error *why)
{
    pthread_t spinners[SPINNERS_MAX];
    unsigned started = 0;
    atomic_bool stop;
    atomic_init(&stop, false);
    *out = (struct layers_idle){.watts = UNKNOWN, .sigma = UNKNOWN};
    window->energy = energy_unknown("not measured");
    while (started < threads && started < SPINNERS_MAX &&
           thread_start(&spinners[started], spin, &stop) == ERR_OK)
        started++;
    enum err err = ERR_OK;
    if (started < threads && started < SPINNERS_MAX)
        err = err_set(why, ERR_BUSY, "cannot start %u threads", threads);
    else
        err = measure_window(conditions, length_s, cancel, window, threads ? NULL : idle, why);
    atomic_store(&stop, true);
    while (started > 0)
        pthread_join(spinners[--started], NULL);
    if (err)
        return err;
    double length = seconds(window->to - window->from);
    *out = (struct layers_idle){.seconds = length,
                                .watts = window->energy.joules / length,
                                .sigma = window->energy.plus_minus / length,
                                .is_refused = threads == 0 && !conditions->has_idle};
    return ERR_OK;
}

double replay_update_period(struct session *session, const struct ledger *ledger)
{
    double longest = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        struct channel_state state;
        if (!device->counted || !device->has_energy)
            continue;
        sampler_channel(session->sampler, device->source, device->channel, &state);
        longest = fmax(longest, seconds(state.period));
        if (device->energy.updates)
            longest =
                fmax(longest, seconds(ledger->to - ledger->from) / (double)device->energy.updates);
    }
    return longest;
}
