/* A model set up for replays, its measurement windows, and their attribution.  replay_open fills what replay_close
 * frees, also after a failure; everything else belongs to the caller. */
#ifndef IPW_RUNNER_LAYERS_WORKLOAD_H
#define IPW_RUNNER_LAYERS_WORKLOAD_H

#include <stdatomic.h>

#include "core/err.h"
#include "engine/engine.h"
#include "runner/layers/layers.h"
#include "runner/layers/segment_timer.h"

struct session;

/* Durations of single computations (a token, or a prompt), the newest ones. */
enum { DURATIONS_MAX = 512 };
struct pass_durations {
    double seconds[DURATIONS_MAX];
    size_t count; /* total number; the oldest are overwritten */
};

struct layers_workload {
    const struct layers_options *options;
    struct engine_model *model;
    struct engine_context *plain, *timed;
    struct segment_timer timer;
    engine_token *tokens; /* as many as the context holds, random */
    uint32_t context, ubatch;
    struct pass_durations *durations; /* durations of passes go here; not owned; may be NULL */
};

enum err replay_open(struct layers_workload *workload, const char *path,
                     const struct layers_options *options, const atomic_bool *cancel,
                     struct error *why) MUST_USE;
void replay_close(struct layers_workload *workload);

/* Fills facts, context and threads of a model from the opened one. */
void replay_describe(const struct layers_workload *workload, struct layers_model *model);

/* Records the compute graphs of every phase, at the granularity. */
enum err replay_record(struct layers_workload *workload, enum layers_granularity granularity,
                       struct error *why) MUST_USE;

/* ---- windows ---- */

/* Results of the timed windows of a setting so far; slots are the caller's, as many as the timer has. */
struct replay_times {
    struct slot_times *slots;
    unsigned long passes, graphs, unknown_graphs, stops;
    double wall_s, graph_s;
    struct pass_durations plain, timed;
};

void replay_times_reset(struct replay_times *times, size_t slots);

/* Around the passes of a window; a plain one gets its energy at its end. */
void replay_begin_window(struct session *session, struct layers_window *window);
void replay_end_window(struct session *session, struct layers_window *window);

/* One window of at least length_s.  A plain one gets its energy from the session. */
enum err replay_window(struct session *session, struct layers_workload *workload,
                       const struct layers_setting *setting, double length_s,
                       struct replay_times *times, struct layers_window *window, struct error *why)
    MUST_USE;

/* Overhead of the stops in a pass, from alternating plain and timed passes: the minimum of each, since background load
 * only adds time. */
enum err replay_overhead(struct layers_workload *workload, const struct layers_setting *setting,
                         double *extra_s, double *pass_s, struct error *why) MUST_USE;

/* Duration of one plain pass. */
enum err replay_pass_seconds(struct layers_workload *workload, const struct layers_setting *setting,
                             double *pass_s, struct error *why) MUST_USE;

/* An idle window, with the model loaded.  threads 0: nothing runs; otherwise this many threads busy-wait as an engine's
 * threads do at a barrier.  *window gets the energy, *out the mean power.  If other processes ran, *out is refused;
 * otherwise *idle gets a baseline.  ERR_INTERRUPTED if *cancel became true. */
enum err replay_idle_window(struct conditions *conditions, double length_s, unsigned threads,
                            const atomic_bool *cancel, struct layers_window *window,
                            struct layers_idle *out, struct baseline *idle, struct error *why)
    MUST_USE;

/* The longest update period of the sensors in the ledger's total; 0 if unknown. */
double replay_update_period(struct session *session, const struct ledger *ledger);

/* ---- attribution: attribution.c ---- */

/* Component times, powers from the windows, joules of layers, and consistency checks.  Works on the measurements;
 * measures and owns nothing. */

/* Sensor updates required for usable energy of a window. */
enum { ATTRIBUTION_UPDATES = 10 };

/* Fills the instrumentation overhead of a setting: the lowest decile of a computation with stops against that without,
 * since background load on the machine only adds time. */
void attribution_overhead(struct layers_setting *setting, const struct replay_times *times);

/* Fills wall time and joules of a pass of each setting from the plain windows, and the overhead of the whole workload.
 * Call before attribution_times. */
void attribution_settings(struct layers_model *model);

/* Fills the times of a setting's columns, and adds those of its slots to the model's shares. */
void attribution_times(struct layers_model *model, struct layers_setting *setting,
                       const struct replay_times *times);

/* Fills everything else, after the times.  If the energy is unknown, stores the reason instead of an error. */
void attribution_energy(struct layers_model *model, unsigned seed);
/* Only the energy of a pass, for parts that share it by time. */
void attribution_total(struct layers_model *model);
/* After the conditions are concluded: withdraws the closure of a balance that idle power or other processes decide. */
void attribution_check(struct layers_model *model);

#endif
