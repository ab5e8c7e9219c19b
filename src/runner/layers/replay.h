/* Windows: a setting computed again and again for long enough that sensors see it.  What the stopwatch
 * saw in those that it watched is kept for each setting. */
#ifndef IPW_RUNNER_LAYERS_REPLAY_H
#define IPW_RUNNER_LAYERS_REPLAY_H

#include "core/err.h"
#include "runner/layers.h"
#include "runner/layers/rig.h"

struct session;

/* What the watched windows of a setting have shown so far; slots are the caller's, as many as the
 * stopwatch has. */
struct replay_times {
    struct stopwatch_slot *slots;
    unsigned long passes, graphs, unknown_graphs, stops;
    double wall_s, graph_s;
    struct rig_lengths plain, watched;
};

/* One window of at least length_s.  An undisturbed one gets its energy from the session. */
enum err replay_window(struct session *session, struct rig *rig,
                       const struct layers_setting *setting, double length_s,
                       struct replay_times *times, struct layers_window *window, struct error *why)
    MUST_USE;

/* What stops add to a pass, by passes that take turns, undisturbed and watched: the shortest of either,
 * since what else runs on the machine only lengthens them. */
enum err replay_slowdown(struct rig *rig, const struct layers_setting *setting, double *extra_s,
                         double *pass_s, struct error *why) MUST_USE;

/* How long one undisturbed pass takes. */
enum err replay_pass_seconds(struct rig *rig, const struct layers_setting *setting, double *pass_s,
                             struct error *why) MUST_USE;

void replay_times_reset(struct replay_times *times, size_t slots);

#endif
