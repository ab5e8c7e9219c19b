#include "runner/layers/stopwatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/grow.h"
#include "stats/online.h"
#include "stats/quantile.h"

/* ---- learning ---- */

static void forget_nodes(struct stopwatch *watch)
{
    for (size_t i = 0; i < watch->node_count; i++)
        free(watch->nodes[i]);
    watch->node_count = 0;
}

static bool is_known_graph(const struct stopwatch *watch, const struct plan *plan)
{
    for (size_t i = 0; i < watch->plan_count; i++)
        if (watch->plans[i].nodes == plan->nodes &&
            memcmp(watch->plans[i].names, plan->names, plan->nodes * sizeof *plan->names) == 0)
            return true;
    return false;
}

/* Makes a plan of the nodes that went by, unless there is one. */
static enum err take_graph(struct stopwatch *watch)
{
    struct plan plan;
    if (watch->node_count == 0)
        return ERR_OK;
    enum err err = plan_make((const char *const *)watch->nodes, watch->node_count, watch->layers,
                             watch->granularity, &plan);
    forget_nodes(watch);
    if (err)
        return err;
    if (watch->plan_count == STOPWATCH_PLANS_MAX || is_known_graph(watch, &plan))
        plan_release(&plan);
    else
        watch->plans[watch->plan_count++] = plan;
    return ERR_OK;
}

/* A graph begins again with the node that the one before began with. */
static void learn_node(struct stopwatch *watch, const char *node)
{
    if (watch->node_count && strcmp(node, watch->nodes[0]) == 0 && !watch->failed)
        watch->failed = take_graph(watch);
    char **nodes = grow(watch->nodes, &watch->node_capacity, watch->node_count, sizeof *nodes);
    char *copy = nodes ? malloc(strlen(node) + 1) : NULL;
    if (nodes)
        watch->nodes = nodes;
    if (!copy) {
        watch->failed = ERR_NO_MEMORY;
        return;
    }
    memcpy(copy, node, strlen(node) + 1);
    watch->nodes[watch->node_count++] = copy;
}

void stopwatch_learn(struct stopwatch *watch)
{
    forget_nodes(watch);
    watch->failed = ERR_OK;
    watch->learning = true;
}

enum err stopwatch_learned(struct stopwatch *watch)
{
    enum err err = watch->failed ? watch->failed : take_graph(watch);
    watch->learning = false;
    watch->plan = watch->plan_count ? &watch->plans[0] : NULL;
    return err;
}

void stopwatch_forget_plans(struct stopwatch *watch, enum layers_granularity granularity)
{
    for (size_t i = 0; i < watch->plan_count; i++)
        plan_release(&watch->plans[i]);
    watch->plan_count = 0;
    watch->plan = NULL;
    watch->granularity = granularity;
}

/* ---- watching ---- */

static bool looks_at(const struct stopwatch *watch, int group)
{
    return (unsigned)group % watch->stride == watch->turn % watch->stride;
}

/* Stop behind this segment: to end it, to begin the next one, or because the graph ends there. */
static bool stops_behind(const struct stopwatch *watch, size_t segment)
{
    const struct plan *plan = watch->plan;
    return segment + 1 == plan->count || looks_at(watch, plan->segments[segment].group) ||
           looks_at(watch, plan->segments[segment + 1].group);
}

static void begin_graph(struct stopwatch *watch)
{
    if (!watch->plan)
        watch->plan = watch->plan_count ? &watch->plans[0] : NULL;
    watch->position = 0;
    watch->segment = 0;
    watch->began = watch->since = clock_now();
}

/* This node is not what the plan expects: another plan may have the same beginning. */
static bool change_plan(struct stopwatch *watch, uint64_t name)
{
    const struct plan *before = watch->plan;
    for (size_t i = 0; i < watch->plan_count; i++) {
        const struct plan *plan = &watch->plans[i];
        if (plan == before || plan->nodes <= watch->position ||
            plan->names[watch->position] != name ||
            memcmp(plan->names, before->names, watch->position * sizeof *plan->names) != 0)
            continue;
        watch->plan = plan;
        watch->segment = 0;
        while (plan->segments[watch->segment].last < watch->position)
            watch->segment++;
        if (watch->position)
            watch->since = 0; /* where the segment began in time is not known */
        return true;
    }
    watch->plan = NULL;
    watch->unknown_graphs++;
    return false;
}

static bool wants(void *context, const char *node)
{
    struct stopwatch *watch = context;
    if (watch->learning) {
        learn_node(watch, node);
        return false;
    }
    uint64_t name = plan_fingerprint(node);
    bool is_over = watch->plan ? watch->position == watch->plan->nodes
                               : watch->plan_count && name == watch->plans[0].names[0];
    if (watch->position == 0 || is_over)
        begin_graph(watch);
    if (!watch->plan)
        return false;
    if (watch->position >= watch->plan->nodes || watch->plan->names[watch->position] != name)
        if (!change_plan(watch, name))
            return false;
    const struct plan_segment *segment = &watch->plan->segments[watch->segment];
    if (watch->position++ < segment->last)
        return false;
    if (stops_behind(watch, watch->segment))
        return true;
    watch->segment++;
    watch->since = 0;
    return false;
}

static void keep(struct stopwatch_slot *slot)
{
    size_t at = slot->graphs;
    if (at >= STOPWATCH_SAMPLES) /* every graph so far stays with the same chance */
        at = (size_t)((slot->graphs * UINT64_C(0x9E3779B97F4A7C15) >> 16) % (slot->graphs + 1));
    if (at < STOPWATCH_SAMPLES)
        slot->samples[at] = (float)slot->pending;
    slot->graphs++;
    slot->pending = 0;
}

static void end_graph(struct stopwatch *watch, nanos now)
{
    for (size_t i = 0; i < watch->plan->count && watch->slots; i++) {
        struct stopwatch_slot *slot = &watch->slots[watch->plan->segments[i].slot];
        if (slot->pending > 0)
            keep(slot);
    }
    watch->graphs++;
    watch->graph_s += seconds(now - watch->began);
    watch->turn++;
}

static void reached(void *context, const char *node)
{
    (void)node;
    struct stopwatch *watch = context;
    const struct plan *plan = watch->plan;
    if (!plan || watch->segment >= plan->count)
        return;
    nanos now = clock_now();
    const struct plan_segment *segment = &plan->segments[watch->segment++];
    watch->stops++;
    if (looks_at(watch, segment->group) && watch->since && watch->slots) {
        watch->slots[segment->slot].pending += seconds(now - watch->since);
        watch->slots[segment->slot].stops++;
    }
    watch->since = now;
    if (watch->segment == plan->count)
        end_graph(watch, now);
}

void stopwatch_begin(struct stopwatch *watch, unsigned stride)
{
    watch->stride = stride ? stride : 1;
    watch->position = 0;
    watch->segment = 0;
    watch->since = 0;
}

void stopwatch_reset(struct stopwatch *watch, struct stopwatch_slot *slots)
{
    watch->slots = slots;
    watch->graphs = watch->unknown_graphs = watch->stops = 0;
    watch->graph_s = 0;
    for (size_t i = 0; i < watch->slot_count && slots; i++)
        slots[i].pending = 0; /* of a graph that was broken off */
}

double stopwatch_slot_seconds(const struct stopwatch_slot *slot, double *sigma)
{
    double values[STOPWATCH_SAMPLES] = {0};
    size_t count = slot->graphs < STOPWATCH_SAMPLES ? slot->graphs : STOPWATCH_SAMPLES;
    struct online middle = {0};
    for (size_t i = 0; i < count; i++)
        values[i] = (double)slot->samples[i];
    double low = quantile(values, count, 0.25), high = quantile(values, count, 0.75);
    for (size_t i = 0; i < count; i++)
        if (values[i] >= low && values[i] <= high)
            online_add(&middle, values[i]);
    *sigma = count > 1 ? (high - low) / 1.35 / sqrt((double)count) : 0; /* 1.35: a normal one's */
    if (!count)
        return 0;
    return middle.count ? online_mean(&middle) : (low + high) / 2; /* two: none is in the middle */
}

/* ---- life ---- */

void stopwatch_init(struct stopwatch *watch, int layers, enum layers_granularity granularity)
{
    *watch = (struct stopwatch){.layers = layers, .granularity = granularity, .stride = 1};
    watch->watch = (struct engine_watch){.wants = wants, .reached = reached, .context = watch};
    watch->slot_count = plan_slots(layers);
}

void stopwatch_release(struct stopwatch *watch)
{
    forget_nodes(watch);
    free(watch->nodes);
    stopwatch_forget_plans(watch, watch->granularity);
    *watch = (struct stopwatch){0};
}
