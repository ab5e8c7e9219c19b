/* Times the components of a compute graph by stopping it between them.
 *
 * The order of a graph's nodes is recorded once; a plan then defines the node after which one segment (consecutive
 * nodes of one layer and component) ends and the next begins.  While a recorded graph runs, it is stopped at those
 * nodes, and the time between stops is added to a slot. */
#include "runner/layers/segment_timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/hash.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

/* Names are compared by their hash: a graph has thousands of nodes. */
static uint64_t fingerprint(const char *node)
{
    return hash_string(HASH_START, node);
}

/* ---- node names ---- */

struct node_row {
    const char *name;
    enum decoder_component component;
};

static const struct node_row ROWS[] = {
#define NODE(name, component) {name, DECODER_##component},
#define ENDING(name, component)
#include "runner/layers/nodes.def"
#undef ENDING
#undef NODE
};

static const struct node_row ENDINGS[] = {
#define NODE(name, component)
#define ENDING(name, component) {name, DECODER_##component},
#include "runner/layers/nodes.def"
#undef ENDING
#undef NODE
};

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t fixed = strcspn(pattern, "*");
    return pattern[fixed] ? length >= fixed && strncmp(pattern, name, fixed) == 0
                          : length == fixed && strncmp(pattern, name, fixed) == 0;
}

/* "Qcur-12 (reshaped)" has the base "Qcur" and the layer 12. */
static size_t split_name(const char *node, int *layer)
{
    size_t end = strcspn(node, " ");
    size_t dash = end;
    while (dash > 0 && node[dash - 1] >= '0' && node[dash - 1] <= '9')
        dash--;
    bool has_layer = dash < end && end - dash < 6 && dash > 1 && node[dash - 1] == '-';
    *layer = has_layer ? (int)strtol(node + dash, NULL, 10) : DECODER_OUTSIDE;
    return has_layer ? dash - 1 : end;
}

/* A node whose name has no layer belongs to the layer of the preceding node. */
#define SAME_LAYER (-2)

/* The component and layer given by a node's name; false if there is neither.  *component is LAYERS_WHOLE if only the
 * layer is known; *layer is DECODER_OUTSIDE for a node outside the layers. */
static bool position_of(const char *node, unsigned *component, int *layer)
{
    size_t length = split_name(node, layer);
    *component = LAYERS_WHOLE;
    for (size_t i = 0; i < COUNT_OF(ENDINGS); i++)
        if (str_ends(node, ENDINGS[i].name)) {
            *component = ENDINGS[i].component;
            if (*layer == DECODER_OUTSIDE)
                *layer = SAME_LAYER;
            return true;
        }
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        if (matches(ROWS[i].name, node, length)) {
            *component = ROWS[i].component;
            return true;
        }
    return *layer != DECODER_OUTSIDE;
}

/* ---- plans ---- */

struct node_position {
    unsigned component;
    int layer;
};

/* An unknown node has the position of the preceding one; the first ones belong to the embedding. */
static struct node_position position_after(struct node_position before, const char *node,
                                           int layers)
{
    struct node_position now;
    if (!position_of(node, &now.component, &now.layer))
        return before;
    if (now.layer >= layers || now.layer == SAME_LAYER)
        now.layer = before.layer;
    if (now.component == LAYERS_WHOLE)
        now.component = now.layer == before.layer ? before.component : DECODER_NORM;
    return now;
}

static struct node_position coarser(struct node_position position,
                                    enum layers_granularity granularity)
{
    if (granularity == LAYERS_BY_COMPONENT)
        return position;
    if (granularity == LAYERS_BY_PHASE || position.layer == DECODER_OUTSIDE)
        return (struct node_position){LAYERS_WHOLE, DECODER_OUTSIDE};
    return (struct node_position){LAYERS_WHOLE, position.layer};
}

static int group_of(struct node_position position, int before, int layers)
{
    if (position.layer != DECODER_OUTSIDE)
        return position.layer + 1;
    return before == 0 ? 0 : layers + 1;
}

static void add_segment(struct segment_plan *plan, struct node_position position, int group,
                        size_t node)
{
    size_t slot = layer_slot(position.layer, position.component);
    if (plan->count && plan->segments[plan->count - 1].slot == slot &&
        plan->segments[plan->count - 1].group == group) {
        plan->segments[plan->count - 1].last = node;
        return;
    }
    plan->segments[plan->count++] =
        (struct plan_segment){.last = node, .slot = slot, .group = group};
}

static void plan_release(struct segment_plan *plan)
{
    free(plan->names);
    free(plan->segments);
    *plan = (struct segment_plan){0};
}

static struct segment_plan plan_make(const char *const *nodes, size_t count, int layers,
                                     enum layers_granularity granularity)
{
    struct node_position position = {DECODER_EMBEDDING, DECODER_OUTSIDE};
    int group = 0;
    struct segment_plan plan = {.nodes = count, .groups = layers + 2};
    plan.names = xcalloc(count, sizeof *plan.names);
    plan.segments = xcalloc(count, sizeof *plan.segments);
    for (size_t i = 0; i < count; i++) {
        position = position_after(position, nodes[i], layers);
        struct node_position coarse = coarser(position, granularity);
        group = granularity == LAYERS_BY_PHASE ? 0 : group_of(coarse, group, layers);
        add_segment(&plan, coarse, group, i);
        plan.names[i] = fingerprint(nodes[i]);
    }
    return plan;
}

/* ---- recording graphs ---- */

static void clear_nodes(struct segment_timer *timer)
{
    for (size_t i = 0; i < timer->node_count; i++)
        free(timer->nodes[i]);
    timer->node_count = 0;
}

static bool has_plan(const struct segment_timer *timer, const struct segment_plan *plan)
{
    for (size_t i = 0; i < timer->plan_count; i++)
        if (timer->plans[i].nodes == plan->nodes &&
            memcmp(timer->plans[i].names, plan->names, plan->nodes * sizeof *plan->names) == 0)
            return true;
    return false;
}

/* Makes a plan of the recorded nodes, unless it exists. */
static void add_plan(struct segment_timer *timer)
{
    if (timer->node_count == 0)
        return;
    struct segment_plan plan = plan_make((const char *const *)timer->nodes, timer->node_count,
                                         timer->layers, timer->granularity);
    clear_nodes(timer);
    if (timer->plan_count == SEGMENT_PLANS_MAX || has_plan(timer, &plan))
        plan_release(&plan);
    else
        timer->plans[timer->plan_count++] = plan;
}

/* A new graph starts when the first node of the previous one appears again. */
static void record_node(struct segment_timer *timer, const char *node)
{
    if (timer->node_count && str_equal(node, timer->nodes[0]))
        add_plan(timer);
    *XADD(timer->nodes, timer->node_count, timer->node_capacity) = xstrdup(node);
}

void segment_timer_record(struct segment_timer *timer)
{
    clear_nodes(timer);
    timer->recording = true;
}

void segment_timer_record_end(struct segment_timer *timer)
{
    add_plan(timer);
    timer->recording = false;
    timer->plan = timer->plan_count ? &timer->plans[0] : NULL;
}

void segment_timer_clear_plans(struct segment_timer *timer, enum layers_granularity granularity)
{
    for (size_t i = 0; i < timer->plan_count; i++)
        plan_release(&timer->plans[i]);
    timer->plan_count = 0;
    timer->plan = NULL;
    timer->granularity = granularity;
}

/* ---- timing ---- */

static bool is_timed(const struct segment_timer *timer, int group)
{
    return (unsigned)group % timer->stride == timer->turn % timer->stride;
}

/* Whether to stop after this segment: to end it, to begin the next one, or because the graph ends. */
static bool stops_after(const struct segment_timer *timer, size_t segment)
{
    const struct segment_plan *plan = timer->plan;
    return segment + 1 == plan->count || is_timed(timer, plan->segments[segment].group) ||
           is_timed(timer, plan->segments[segment + 1].group);
}

static void begin_graph(struct segment_timer *timer)
{
    if (!timer->plan)
        timer->plan = timer->plan_count ? &timer->plans[0] : NULL;
    timer->position = 0;
    timer->segment = 0;
    timer->began = timer->since = clock_now();
}

/* The node is not the one in the plan: looks for another plan with the same first nodes. */
static bool change_plan(struct segment_timer *timer, uint64_t name)
{
    const struct segment_plan *before = timer->plan;
    for (size_t i = 0; i < timer->plan_count; i++) {
        const struct segment_plan *plan = &timer->plans[i];
        if (plan == before || plan->nodes <= timer->position ||
            plan->names[timer->position] != name ||
            memcmp(plan->names, before->names, timer->position * sizeof *plan->names) != 0)
            continue;
        timer->plan = plan;
        timer->segment = 0;
        while (plan->segments[timer->segment].last < timer->position)
            timer->segment++;
        if (timer->position)
            timer->since = 0; /* the start of the segment is unknown */
        return true;
    }
    timer->plan = NULL;
    timer->unknown_graphs++;
    return false;
}

static bool wants(void *context, const char *node)
{
    struct segment_timer *timer = context;
    if (timer->recording) {
        record_node(timer, node);
        return false;
    }
    uint64_t name = fingerprint(node);
    bool is_over = timer->plan ? timer->position == timer->plan->nodes
                               : timer->plan_count && name == timer->plans[0].names[0];
    if (timer->position == 0 || is_over)
        begin_graph(timer);
    if (!timer->plan)
        return false;
    if (timer->position >= timer->plan->nodes || timer->plan->names[timer->position] != name)
        if (!change_plan(timer, name))
            return false;
    const struct plan_segment *segment = &timer->plan->segments[timer->segment];
    if (timer->position++ < segment->last)
        return false;
    if (stops_after(timer, timer->segment))
        return true;
    timer->segment++;
    timer->since = 0;
    return false;
}

static void keep_sample(struct slot_times *slot)
{
    size_t at = slot->graphs;
    if (at >=
        SLOT_SAMPLES) /* reservoir sampling: every graph so far is kept with equal probability */
        at = (size_t)((slot->graphs * UINT64_C(0x9E3779B97F4A7C15) >> 16) % (slot->graphs + 1));
    if (at < SLOT_SAMPLES)
        slot->samples[at] = (float)slot->pending;
    slot->graphs++;
    slot->pending = 0;
}

static void end_graph(struct segment_timer *timer, nanos now)
{
    for (size_t i = 0; i < timer->plan->count && timer->slots; i++) {
        struct slot_times *slot = &timer->slots[timer->plan->segments[i].slot];
        if (slot->pending > 0)
            keep_sample(slot);
    }
    timer->graphs++;
    timer->graph_s += seconds(now - timer->began);
    timer->turn++;
}

static void reached(void *context, const char *node)
{
    (void)node;
    struct segment_timer *timer = context;
    const struct segment_plan *plan = timer->plan;
    if (!plan || timer->segment >= plan->count)
        return;
    nanos now = clock_now();
    const struct plan_segment *segment = &plan->segments[timer->segment++];
    timer->stops++;
    if (is_timed(timer, segment->group) && timer->since && timer->slots) {
        timer->slots[segment->slot].pending += seconds(now - timer->since);
        timer->slots[segment->slot].stops++;
    }
    timer->since = now;
    if (timer->segment == plan->count)
        end_graph(timer, now);
}

void segment_timer_begin(struct segment_timer *timer, unsigned stride)
{
    timer->stride = stride ? stride : 1;
    timer->position = 0;
    timer->segment = 0;
    timer->since = 0;
}

void segment_timer_reset(struct segment_timer *timer, struct slot_times *slots)
{
    timer->slots = slots;
    timer->graphs = timer->unknown_graphs = timer->stops = 0;
    timer->graph_s = 0;
    for (size_t i = 0; i < timer->slot_count && slots; i++)
        slots[i].pending = 0; /* left by an aborted graph */
}

double slot_times_seconds(const struct slot_times *slot, double *sigma)
{
    double values[SLOT_SAMPLES] = {0};
    size_t count = slot->graphs < SLOT_SAMPLES ? slot->graphs : SLOT_SAMPLES;
    struct online middle = {0};
    for (size_t i = 0; i < count; i++)
        values[i] = (double)slot->samples[i];
    double low = quantile(values, count, 0.25);
    double high = quantile(values, count, 0.75);
    for (size_t i = 0; i < count; i++)
        if (values[i] >= low && values[i] <= high)
            online_add(&middle, values[i]);
    *sigma = count > 1 ? (high - low) / 1.35 / sqrt((double)count)
                       : 0; /* 1.35 sigma of a normal distribution */
    if (!count)
        return 0;
    return middle.count ? online_mean(&middle) : (low + high) / 2; /* two: none is in the middle */
}

/* ---- setup ---- */

void segment_timer_init(struct segment_timer *timer, int layers,
                        enum layers_granularity granularity)
{
    *timer = (struct segment_timer){.layers = layers, .granularity = granularity, .stride = 1};
    timer->watch = (struct engine_watch){.wants = wants, .reached = reached, .context = timer};
    timer->slot_count = layer_slot(layers, 0);
}

void segment_timer_release(struct segment_timer *timer)
{
    clear_nodes(timer);
    free(timer->nodes);
    segment_timer_clear_plans(timer, timer->granularity);
    *timer = (struct segment_timer){0};
}
