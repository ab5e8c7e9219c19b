/* The watch that engine/engine.h asks for: learns the graphs that go by, then stops them where a plan
 * says and keeps the time between stops, by slot.
 *
 * To cost little it need not look at every layer of every graph: with a stride of n, each graph is
 * stopped in every n-th layer only, in turn, until all have been seen.
 *
 * A struct stopwatch owns its plans; times go into slots of the caller's: stopwatch_init,
 * stopwatch_release.  One thread. */
#ifndef IPW_RUNNER_LAYERS_STOPWATCH_H
#define IPW_RUNNER_LAYERS_STOPWATCH_H

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "runner/layers/plan.h"

enum { STOPWATCH_PLANS_MAX = 8, STOPWATCH_SAMPLES = 48 };

/* Seconds of a slot in a graph: of many graphs, as many as there is room for, drawn evenly. */
struct stopwatch_slot {
    unsigned long graphs; /* in which it was seen */
    unsigned long stops;  /* that ended one of its segments */
    double pending;       /* in the graph that goes by */
    float samples[STOPWATCH_SAMPLES];
};

struct stopwatch {
    struct engine_watch watch; /* hand this to a context */
    int layers;
    enum layers_granularity granularity;

    /* learning */
    bool learning;
    char **nodes;
    size_t node_count, node_capacity;
    enum err failed; /* while learning */

    struct plan plans[STOPWATCH_PLANS_MAX];
    size_t plan_count;

    /* the graph that goes by */
    const struct plan *plan; /* NULL: one that was not learned */
    size_t position, segment;
    nanos began, since; /* of the graph, of the segment; since 0: not seen */
    unsigned stride;
    unsigned long turn;

    struct stopwatch_slot *slots; /* where times go: not owned; may be NULL */
    size_t slot_count;
    /* what was seen since stopwatch_reset */
    unsigned long graphs, unknown_graphs, stops;
    double graph_s;
};

void stopwatch_init(struct stopwatch *watch, int layers, enum layers_granularity granularity);
void stopwatch_release(struct stopwatch *watch);

/* Around a computation whose graphs are to be learned.  Learning again with another granularity
 * forgets the plans of before. */
void stopwatch_learn(struct stopwatch *watch);
enum err stopwatch_learned(struct stopwatch *watch) MUST_USE;
void stopwatch_forget_plans(struct stopwatch *watch, enum layers_granularity granularity);

/* Before each computation: whatever went by is over. */
void stopwatch_begin(struct stopwatch *watch, unsigned stride);

/* Counts from 0 again; times go to the slots from now on. */
void stopwatch_reset(struct stopwatch *watch, struct stopwatch_slot *slots);

/* Seconds that the slot takes in a graph, and how far off that may be: the mean and scatter of the
 * middle half of what was seen, so that what now and then interrupts does not count. */
double stopwatch_slot_seconds(const struct stopwatch_slot *slot, double *sigma);

#endif
