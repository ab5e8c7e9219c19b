#include "runner/layers/replay.h"

#include <math.h>
#include <string.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

void replay_times_reset(struct replay_times *times, size_t slots)
{
    struct stopwatch_slot *kept = times->slots;
    memset(kept, 0, slots * sizeof *kept);
    *times = (struct replay_times){.slots = kept};
}

/* ---- what the stopwatch saw ---- */

static void take_counts(struct replay_times *times, const struct stopwatch *watch,
                        const struct layers_window *window)
{
    times->passes += window->passes;
    times->graphs += watch->graphs;
    times->unknown_graphs += watch->unknown_graphs;
    times->stops += watch->stops;
    times->wall_s += seconds(window->to - window->from);
    times->graph_s += watch->graph_s;
}

/* ---- a window ---- */

static enum err run_passes(struct rig *rig, const struct layers_setting *setting, double length_s,
                           struct layers_window *window, struct error *why)
{
    nanos until = window->from + from_seconds(length_s);
    enum err err = ERR_OK;
    do {
        err = rig_pass(rig, window->watched, setting, why);
        window->passes += !err;
    } while (!err &&
             (clock_now() < until || (window->watched && rig->watch.graphs < setting->stride)));
    /* A memory that cannot go back: the window ends where the context does. */
    return err == ERR_NO_DATA && window->passes ? ERR_OK : err;
}

enum err replay_window(struct session *session, struct rig *rig,
                       const struct layers_setting *setting, double length_s,
                       struct replay_times *times, struct layers_window *window, struct error *why)
{
    window->passes = 0;
    window->energy = energy_unknown("not asked for: this window was stopped to take times");
    enum err err = rig_prepare(rig, window->watched, setting, why);
    if (err)
        return err;
    stopwatch_reset(&rig->watch, times->slots);
    rig->lengths = window->watched ? &times->watched : &times->plain;
    if (!window->watched)
        sampler_mark(session->sampler);
    window->from = clock_now();
    err = run_passes(rig, setting, length_s, window, why);
    window->to = clock_now();
    rig->lengths = NULL;
    if (err)
        return err;
    if (window->watched) {
        take_counts(times, &rig->watch, window);
        return ERR_OK;
    }
    struct ledger ledger;
    sampler_settle(session->sampler, window->to);
    err = ledger_take(session->sampler, window->from, window->to, NULL, &ledger);
    if (err)
        return err_set(why, err, "cannot add up the energy: %s", err_text(err));
    window->energy = ledger.total;
    ledger_release(&ledger);
    return ERR_OK;
}

/* ---- the slowdown ---- */

static enum err timed_pass(struct rig *rig, bool watched, const struct layers_setting *setting,
                           struct rig_lengths *lengths, double *seconds_taken, struct error *why)
{
    enum err err = rig_prepare(rig, watched, setting, why);
    rig->lengths = lengths;
    nanos from = clock_now();
    if (!err)
        err = rig_pass(rig, watched, setting, why);
    *seconds_taken = seconds(clock_now() - from);
    rig->lengths = NULL;
    return err;
}

enum err replay_pass_seconds(struct rig *rig, const struct layers_setting *setting, double *pass_s,
                             struct error *why)
{
    return timed_pass(rig, false, setting, NULL, pass_s, why);
}

static double shortest_of(const struct rig_lengths *lengths)
{
    double shortest = INFINITY;
    for (size_t i = 0; i < lengths->count && i < RIG_LENGTHS; i++)
        shortest = fmin(shortest, lengths->seconds[i]);
    return shortest;
}

enum err replay_slowdown(struct rig *rig, const struct layers_setting *setting, double *extra_s,
                         double *pass_s, struct error *why)
{
    enum { FEWEST = 3, MOST = 15 };
    static const double ENOUGH_S = 1;
    struct rig_lengths lengths[2] = {{.count = 0}, {.count = 0}};
    double spent = 0, taken = 0;
    enum err err = timed_pass(rig, false, setting, NULL, &taken, why); /* caches warm, clocks up */
    for (unsigned pairs = 0; !err && pairs < MOST && (pairs < FEWEST || spent < ENOUGH_S); pairs++)
        for (unsigned i = 0; i < 2 && !err; i++) {
            bool watched = i != pairs % 2;
            err = timed_pass(rig, watched, setting, &lengths[watched], &taken, why);
            spent += taken;
        }
    double shortest = shortest_of(&lengths[false]);
    unsigned computations = setting->phase == LAYERS_DECODE ? rig->options->generate : 1;
    *pass_s = shortest * computations;
    *extra_s = fmax(shortest_of(&lengths[true]) - shortest, 0) * computations;
    return err;
}
