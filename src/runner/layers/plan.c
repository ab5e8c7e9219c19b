#include "runner/layers/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "graph/decoder_cost.h"

size_t plan_slot(int layer, unsigned component)
{
    return (size_t)(layer + 1) * LAYERS_COMPONENTS + component;
}

size_t plan_slots(int layers)
{
    return plan_slot(layers, 0);
}

uint64_t plan_fingerprint(const char *node)
{
    return hash_string(HASH_START, node);
}

/* ---- names ---- */

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

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static bool fits(const char *pattern, const char *name, size_t length)
{
    size_t fixed = strcspn(pattern, "*");
    return pattern[fixed] ? length >= fixed && strncmp(pattern, name, fixed) == 0
                          : length == fixed && strncmp(pattern, name, fixed) == 0;
}

/* "Qcur-12 (reshaped)" has the base "Qcur" and the layer 12. */
static size_t split_name(const char *node, int *layer)
{
    size_t end = strcspn(node, " "), dash = end;
    while (dash > 0 && node[dash - 1] >= '0' && node[dash - 1] <= '9')
        dash--;
    bool has_layer = dash < end && end - dash < 6 && dash > 1 && node[dash - 1] == '-';
    *layer = has_layer ? (int)strtol(node + dash, NULL, 10) : DECODER_OUTSIDE;
    return has_layer ? dash - 1 : end;
}

/* A node that only tells its component is in the layer it is found in. */
#define SAME_LAYER (-2)

/* The component and layer that a node's name tells; false when it tells neither.  *component is
 * LAYERS_WHOLE when only the layer is known; *layer is DECODER_OUTSIDE for a node that belongs to
 * none. */
static bool place_of(const char *node, unsigned *component, int *layer)
{
    size_t length = split_name(node, layer);
    *component = LAYERS_WHOLE;
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
        if (ends_with(node, ENDINGS[i].name)) {
            *component = ENDINGS[i].component;
            if (*layer == DECODER_OUTSIDE)
                *layer = SAME_LAYER;
            return true;
        }
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (fits(ROWS[i].name, node, length)) {
            *component = ROWS[i].component;
            return true;
        }
    return *layer != DECODER_OUTSIDE;
}

/* ---- segments ---- */

struct place {
    unsigned component;
    int layer;
};

/* A node that nothing is known of is where the one before it is; the first are with the embedding. */
static struct place place_after(struct place before, const char *node, int layers)
{
    struct place now;
    if (!place_of(node, &now.component, &now.layer))
        return before;
    if (now.layer >= layers || now.layer == SAME_LAYER)
        now.layer = before.layer;
    if (now.component == LAYERS_WHOLE)
        now.component = now.layer == before.layer ? before.component : DECODER_NORM;
    return now;
}

static struct place coarser(struct place place, enum layers_granularity granularity)
{
    if (granularity == LAYERS_BY_COMPONENT)
        return place;
    if (granularity == LAYERS_BY_PHASE || place.layer == DECODER_OUTSIDE)
        return (struct place){LAYERS_WHOLE, DECODER_OUTSIDE};
    return (struct place){LAYERS_WHOLE, place.layer};
}

static int group_of(struct place place, int before, int layers)
{
    if (place.layer != DECODER_OUTSIDE)
        return place.layer + 1;
    return before == 0 ? 0 : layers + 1;
}

static void add_segment(struct plan *plan, struct place place, int group, size_t node)
{
    size_t slot = plan_slot(place.layer, place.component);
    if (plan->count && plan->segments[plan->count - 1].slot == slot &&
        plan->segments[plan->count - 1].group == group) {
        plan->segments[plan->count - 1].last = node;
        return;
    }
    plan->segments[plan->count++] =
        (struct plan_segment){.last = node, .slot = slot, .group = group};
}

enum err plan_make(const char *const *nodes, size_t count, int layers,
                   enum layers_granularity granularity, struct plan *out)
{
    struct place place = {DECODER_EMBEDDING, DECODER_OUTSIDE};
    int group = 0;
    *out = (struct plan){.nodes = count, .groups = layers + 2};
    if (count == 0)
        return ERR_NO_DATA;
    out->names = calloc(count, sizeof *out->names);
    out->segments = calloc(count, sizeof *out->segments);
    if (!out->names || !out->segments) {
        plan_release(out);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        place = place_after(place, nodes[i], layers);
        struct place shown = coarser(place, granularity);
        group = granularity == LAYERS_BY_PHASE ? 0 : group_of(shown, group, layers);
        add_segment(out, shown, group, i);
        out->names[i] = plan_fingerprint(nodes[i]);
    }
    return ERR_OK;
}

void plan_release(struct plan *plan)
{
    free(plan->names);
    free(plan->segments);
    *plan = (struct plan){0};
}
