/* A model set up for replays, the windows in which it is measured, and the account of them.  workload_open fills what
 * workload_close frees, also after a failure; everything else belongs to the caller. */
#ifndef IPW_RUNNER_LAYERS_WORKLOAD_H
#define IPW_RUNNER_LAYERS_WORKLOAD_H

#include <stdatomic.h>

#include "core/err.h"
#include "engine/engine.h"
#include "runner/layers/layers.h"
#include "runner/layers/segment_timer.h"

struct session;

/* Seconds of single computations (a token, or a prompt), the newest of many. */
enum { DURATIONS_MAX = 512 };
struct pass_durations {
    double seconds[DURATIONS_MAX];
    size_t count; /* of all; the oldest are overwritten */
};

struct layers_workload {
    const struct layers_options *options;
    struct engine_model *model;
    struct engine_context *plain, *timed;
    struct segment_timer timer;
    engine_token *tokens; /* as many as the context holds, from the random seed */
    uint32_t context, ubatch;
    struct pass_durations *durations; /* where those of passes are added; not owned; may be NULL */
};

enum err workload_open(struct layers_workload *workload, const char *path,
                       const struct layers_options *options, const atomic_bool *cancel,
                       struct error *why) MUST_USE;
void workload_close(struct layers_workload *workload);

/* Records the compute graphs of every phase, at the granularity. */
enum err workload_record(struct layers_workload *workload, enum layers_granularity granularity,
                         struct error *why) MUST_USE;

/* ---- windows ---- */

/* What the timed windows of a setting have given so far; slots are the caller's, as many as the timer
 * has. */
struct replay_times {
    struct slot_times *slots;
    unsigned long passes, graphs, unknown_graphs, stops;
    double wall_s, graph_s;
    struct pass_durations plain, timed;
};

void replay_times_reset(struct replay_times *times, size_t slots);

/* One window of at least length_s.  A plain one gets its energy from the session. */
enum err workload_window(struct session *session, struct layers_workload *workload,
                         const struct layers_setting *setting, double length_s,
                         struct replay_times *times, struct layers_window *window,
                         struct error *why) MUST_USE;

/* What stops add to a pass, from alternating plain and timed passes: the shortest of each, since other
 * load on the machine only lengthens them. */
enum err workload_overhead(struct layers_workload *workload, const struct layers_setting *setting,
                           double *extra_s, double *pass_s, struct error *why) MUST_USE;

/* How long one plain pass takes. */
enum err workload_pass_seconds(struct layers_workload *workload,
                               const struct layers_setting *setting, double *pass_s,
                               struct error *why) MUST_USE;

/* An idle window, with the model loaded.  threads 0: nothing runs; otherwise so many busy-wait as an
 * engine's threads do while they wait for one another.  *window gets the energy, *out the mean power.
 * Where nothing should run but other processes did, *out is refused; otherwise *idle gets a baseline.  ERR_INTERRUPTED when *cancel turned true. */
enum err workload_idle_window(struct conditions *conditions, double length_s, unsigned threads,
                              const atomic_bool *cancel, struct layers_window *window,
                              struct layers_idle *out, struct baseline *idle, struct error *why)
    MUST_USE;

/* The longest update period of the sensors whose joules are in the ledger's total; 0 when unknown. */
double workload_update_period(struct session *session, const struct ledger *ledger);

/* ---- counted work ---- */

/* Reads the model's shape; a model whose shape is unknown gets the reason. */
void workload_read_shape(struct layers_model *model);

/* Fills model->work: FLOPs and bytes of a pass of the workload, by component.  ubatch: tokens that the
 * engine computes in one graph. */
void workload_count(struct layers_model *model, unsigned batch, unsigned generate, uint32_t ubatch);

/* ---- the account: attribution.c ---- */

/* Component times, powers from the windows, joules of the layers of a model, and the checks on them.  Works on what was
 * measured; measures and owns nothing. */

/* Sensor updates that a window needs before its energy is usable. */
enum { ATTRIBUTION_UPDATES = 10 };

/* Fills the instrumentation overhead of a setting: of a computation, the lowest decile with stops against
 * that without, since other load on the machine only lengthens. */
void attribution_overhead(struct layers_setting *setting, const struct replay_times *times);

/* Fills wall time and joules of a pass of each setting, from the plain windows, and the overhead of the
 * whole workload.  Comes before attribution_times. */
void attribution_settings(struct layers_model *model);

/* Fills the times of a setting's columns, and adds those of its slots to the shares of the model. */
void attribution_times(struct layers_model *model, struct layers_setting *setting,
                       const struct replay_times *times);

/* Fills everything else, once the times are there.  A model whose energy is unknown gets the reason, not
 * an error. */
enum err attribution_energy(struct layers_model *model, unsigned seed) MUST_USE;

#endif
