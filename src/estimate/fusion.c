/* Nodes are gathered into groups, each of which becomes a kernel, by rules in graph order: decomposed attention,
 * decomposed functions (regions), gated products, elementwise operations after a product; linears that read the same
 * tensor are merged at the end.  Linear in nodes: every lookahead is bounded.
 *
 * Why there are no cyclic dependencies between kernels: a group has one of two forms.  In the first, only its last node
 * is read from outside, so it can run at that node's position.  The second, siblings, reads a single tensor, so it can
 * run at its first node's position.  `position` is that node, and in the order of positions every group comes after
 * those it depends on. */
#include "estimate/dataflow.h"

#include <stdlib.h>

#include "core/xalloc.h"

enum {
    GROUP_MAX_NODES = 16,
    MAX_STEPS = 6,     /* scale, mask and similar steps between the two products of attention */
    MAX_SIBLINGS = 3,  /* queries, keys, values */
    MAX_DISTANCE = 64, /* maximum number of nodes between siblings, to exclude other layers */
    MAX_TENSORS = GROUP_MAX_NODES + 1,
};

enum group_kind {
    GROUP_CLOSED,      /* accepts no more nodes */
    GROUP_PRODUCT,     /* a convolution, linear or matmul, and elementwise operations after it */
    GROUP_ELEMENTWISE, /* elementwise operations only */
    GROUP_NORM,        /* a normalization and its activation */
};

struct group {
    enum group_kind kind;
    node_id head;     /* first node */
    node_id tail;     /* the node read by others; GRAPH_NONE: several, as for siblings */
    node_id position; /* see above */
    node_id last;     /* end of its list in groups.next, which begins with `head` */
    tensor_id
        source; /* the only tensor it reads besides weights; GRAPH_NONE: several, or not a linear */
    uint32_t size;     /* nodes; 0: merged into another group */
    uint32_t products; /* sibling linears */
    bool has_norm;
};

struct groups {
    const struct dataflow *flow;
    struct group *items;
    size_t count;
    int32_t *group_of; /* by node: its group; GRAPH_NONE for views */
    node_id *next;     /* by node: the next one of its group, unordered */
};

static const struct graph_node *node_at(const struct groups *groups, node_id node)
{
    return &groups->flow->graph->nodes[node];
}

/* Elements of a node's first output. */
static double output_elements(const struct groups *groups, node_id node)
{
    const struct graph_tensor *out = graph_output(groups->flow->graph, node_at(groups, node), 0);
    return out ? graph_elements(out) : 0;
}

static bool is_elementwise(enum graph_op op)
{
    enum graph_kind kind = graph_op_kind(op);
    return kind == GRAPH_KIND_ACTIVATION ||
           (kind == GRAPH_KIND_ELEMENTWISE && op != GRAPH_ROTATION);
}

/* NULL: none yet, or no node. */
static struct group *group_of(const struct groups *groups, node_id node)
{
    return node >= 0 && groups->group_of[node] >= 0 ? &groups->items[groups->group_of[node]] : NULL;
}

/* ---- groups ---- */

static void groups_release(struct groups *groups)
{
    free(groups->items);
    free(groups->group_of);
    free(groups->next);
    *groups = (struct groups){0};
}

static void groups_init(const struct dataflow *flow, struct groups *out)
{
    size_t count = flow->graph->node_count;
    *out = (struct groups){.flow = flow,
                           .items = xmalloc((count + 1) * sizeof *out->items),
                           .group_of = xmalloc((count + 1) * sizeof *out->group_of),
                           .next = xmalloc((count + 1) * sizeof *out->next)};
    for (size_t i = 0; i < count; i++)
        out->group_of[i] = GRAPH_NONE;
}

static enum group_kind kind_of(enum graph_op op)
{
    switch (graph_op_kind(op)) {
    case GRAPH_KIND_PRODUCT:
        return op == GRAPH_ATTENTION ? GROUP_CLOSED : GROUP_PRODUCT;
    case GRAPH_KIND_NORM:
        return op == GRAPH_BATCH_NORM ? GROUP_ELEMENTWISE : GROUP_NORM;
    case GRAPH_KIND_ACTIVATION:
        return GROUP_ELEMENTWISE;
    case GRAPH_KIND_ELEMENTWISE: /* a rotation mixes pairs of elements */
        return op == GRAPH_ROTATION ? GROUP_CLOSED : GROUP_ELEMENTWISE;
    default:
        return GROUP_CLOSED;
    }
}

/* A new group of one node. */
static struct group *begin_group(struct groups *groups, node_id node)
{
    const struct graph_node *begun = node_at(groups, node);
    struct group *group = &groups->items[groups->count];
    bool is_linear = begun->op == GRAPH_LINEAR;
    tensor_id source = is_linear ? dataflow_input(groups->flow, begun, 0) : GRAPH_NONE;
    for (size_t i = 1; is_linear && i < begun->input_count; i++)
        if (dataflow_is_computed(groups->flow, dataflow_input(groups->flow, begun, i)))
            source = GRAPH_NONE;
    *group =
        (struct group){.kind = kind_of(begun->op),
                       .head = node,
                       .tail = node,
                       .position = node,
                       .last = node,
                       .source = dataflow_is_computed(groups->flow, source) ? source : GRAPH_NONE,
                       .size = 1,
                       .products = is_linear};
    groups->group_of[node] = (int32_t)groups->count++;
    groups->next[node] = GRAPH_NONE;
    return group;
}

/* A node that reads the tail of a group becomes its tail. */
static void append_node(struct groups *groups, struct group *group, node_id node)
{
    const struct graph_node *added = node_at(groups, node);
    const struct dataflow *flow = groups->flow;
    for (size_t i = 0; i < added->input_count; i++) {
        tensor_id root = dataflow_input(flow, added, i);
        node_id producer = root >= 0 ? flow->graph->tensors[root].producer : GRAPH_NONE;
        bool is_inside =
            producer >= 0 && groups->group_of[producer] == (int32_t)(group - groups->items);
        if (!is_inside && dataflow_is_computed(flow, root))
            group->source = GRAPH_NONE;
    }
    groups->next[group->last] = node;
    groups->next[node] = GRAPH_NONE;
    groups->group_of[node] = (int32_t)(group - groups->items);
    group->last = group->tail = node;
    if (node > group->position)
        group->position = node;
    group->size++;
    group->has_norm |= graph_op_kind(added->op) == GRAPH_KIND_NORM;
}

/* Moves all nodes of `from` into `into`. */
static void merge_groups(struct groups *groups, struct group *into, struct group *from)
{
    for (node_id node = from->head; node >= 0; node = groups->next[node])
        groups->group_of[node] = (int32_t)(into - groups->items);
    groups->next[into->last] = from->head;
    into->last = from->last;
    into->size += from->size;
    into->products += from->products;
    into->has_norm |= from->has_norm;
    from->size = 0;
}

/* The group whose tail produces this tensor for `reader` alone; NULL if another node reads it too, if it is an output
 * of the model, or if the group is full. */
static struct group *group_before(const struct groups *groups, tensor_id root, node_id reader)
{
    const struct dataflow *flow = groups->flow;
    if (root < 0 || flow->is_output[root] || dataflow_reader_count(flow, root) != 1 ||
        flow->readers[flow->first_reader[root]] != reader)
        return NULL;
    node_id producer = flow->graph->tensors[root].producer;
    struct group *group = group_of(groups, producer);
    bool is_free = group && group->tail == producer && group->size < GROUP_MAX_NODES &&
                   node_at(groups, producer)->output_count == 1;
    return is_free ? group : NULL;
}

/* ---- regions: functions decomposed into elementwise steps ---- */

/* x * sigmoid(x), GELU through erf or tanh, a normalization from means, differences and square roots: elementwise steps
 * (and means) that read only one tensor and each other, and of which only one is read from outside. */
struct region {
    node_id nodes[GROUP_MAX_NODES]; /* in graph order; the last is read from outside */
    uint32_t count;                 /* at least 2 */
    bool has_means;
    bool has_parts; /* concatenated parts */
    bool takes_all; /* nothing else reads its start tensor */
};

struct search {
    const struct groups *groups;
    const struct dataflow *flow;
    tensor_id tensors[MAX_TENSORS]; /* the start, then the result of each node */
    uint32_t read[MAX_TENSORS];     /* by tensor: readers visited so far */
    uint32_t count;
    uint32_t starts; /* nodes of the region that read the start */
    struct region *region;
};

static bool has_tensor(const struct search *search, tensor_id root)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (search->tensors[i] == root)
            return true;
    return false;
}

/* Concatenates parts of the region: the swapped halves of a rotary embedding. */
static bool is_joining(const struct graph_node *node)
{
    return node->op == GRAPH_MOVE && node->input_count >= 2;
}

static bool is_step(const struct search *search, node_id id)
{
    const struct graph_node *node = &search->flow->graph->nodes[id];
    bool is_kept = is_elementwise(node->op) || node->op == GRAPH_REDUCE || is_joining(node);
    if (!is_kept || search->groups->group_of[id] >= 0 || node->output_count != 1 ||
        node->input_count > GROUP_MAX_NODES)
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = dataflow_input(search->flow, node, i);
        if (dataflow_is_computed(search->flow, root) && !has_tensor(search, root))
            return false;
    }
    return true;
}

/* The earliest unvisited reader in graph order; *of is the tensor it reads. */
static node_id next_reader(const struct search *search, uint32_t *of)
{
    node_id first = GRAPH_NONE;
    for (uint32_t i = 0; i < search->count; i++) {
        tensor_id root = search->tensors[i];
        if (search->read[i] == dataflow_reader_count(search->flow, root))
            continue;
        node_id reader = search->flow->readers[search->flow->first_reader[root] + search->read[i]];
        if (first < 0 || reader < first || (reader == first && *of == 0)) {
            first = reader;
            *of = i;
        }
    }
    return first;
}

/* Marks a reader as visited at every tensor that it reads. */
static void visit(struct search *search, node_id reader)
{
    for (uint32_t i = 0; i < search->count; i++) {
        tensor_id root = search->tensors[i];
        if (search->read[i] < dataflow_reader_count(search->flow, root) &&
            search->flow->readers[search->flow->first_reader[root] + search->read[i]] == reader)
            search->read[i]++;
    }
}

/* Whether the result of every node except the last is read, and only inside. */
static bool is_closed(const struct search *search)
{
    for (uint32_t i = 1; i + 1 < search->count; i++)
        if (search->read[i] != dataflow_reader_count(search->flow, search->tensors[i]) ||
            search->flow->is_output[search->tensors[i]])
            return false;
    return true;
}

static void grow_region(struct search *search)
{
    struct region *region = search->region;
    uint32_t nodes = 0;
    while (nodes < GROUP_MAX_NODES) {
        uint32_t of = 0;
        node_id reader = next_reader(search, &of);
        if (reader < 0)
            return;
        bool is_one = is_step(search, reader);
        if (!is_one && of != 0)
            return; /* one of its results is read outside: the region ends here */
        uint32_t before = search->read[0];
        visit(search, reader);
        if (!is_one)
            continue; /* another reader of the start */
        search->starts += search->read[0] - before;
        const struct graph_node *node = &search->flow->graph->nodes[reader];
        region->nodes[nodes++] = reader;
        search->tensors[search->count++] =
            search->flow->root[graph_outputs(search->flow->graph, node)[0]];
        if (is_closed(search)) {
            region->count = nodes;
            region->takes_all =
                search->starts == dataflow_reader_count(search->flow, search->tensors[0]) &&
                !search->flow->is_output[search->tensors[0]];
        }
    }
}

/* The largest region that starts from this tensor and contains `first`, its first reader without a group. */
static bool find_region(const struct groups *groups, tensor_id start, node_id first,
                        struct region *out)
{
    struct search search = {
        .groups = groups, .flow = groups->flow, .tensors = {start}, .count = 1, .region = out};
    uint32_t readers = dataflow_reader_count(groups->flow, start);
    *out = (struct region){0};
    if (readers < 2 || readers > GROUP_MAX_NODES)
        return false;
    grow_region(&search);
    if (out->count < 2 || out->nodes[0] != first)
        return false;
    for (uint32_t i = 0; i < out->count; i++)
        out->has_means |= groups->flow->graph->nodes[out->nodes[i]].op == GRAPH_REDUCE;
    for (uint32_t i = 0; i < out->count; i++)
        out->has_parts |= is_joining(&groups->flow->graph->nodes[out->nodes[i]]);
    return true;
}

/* ---- decomposed attention: matmul, scale, mask, softmax, matmul ---- */

/* The only reader of a node's result; GRAPH_NONE: several, or it is an output of the model. */
static node_id only_reader(const struct dataflow *flow, const struct graph_node *node)
{
    if (node->output_count != 1 || graph_outputs(flow->graph, node)[0] < 0)
        return GRAPH_NONE;
    tensor_id root = flow->root[graph_outputs(flow->graph, node)[0]];
    bool is_one = dataflow_reader_count(flow, root) == 1 && !flow->is_output[root];
    return is_one ? flow->readers[flow->first_reader[root]] : GRAPH_NONE;
}

/* Elementwise steps on one tensor, read by the product. */
static bool is_scaled(const struct groups *groups, const struct group *group)
{
    tensor_id source = GRAPH_NONE;
    if (group->kind != GROUP_ELEMENTWISE || group->size > MAX_STEPS)
        return false;
    for (node_id node = group->head; node >= 0; node = groups->next[node])
        for (size_t i = 0; i < node_at(groups, node)->input_count; i++) {
            tensor_id root = dataflow_input(groups->flow, node_at(groups, node), i);
            node_id producer = root >= 0 ? groups->flow->graph->tensors[root].producer : GRAPH_NONE;
            bool is_inside = producer >= 0 && groups->group_of[producer] == groups->group_of[node];
            if (is_inside || root == source || !dataflow_is_computed(groups->flow, root))
                continue;
            if (source >= 0)
                return false;
            source = root;
        }
    return true;
}

/* Exporters scale queries and keys before the product. */
static void fuse_scales(struct groups *groups, struct group *group, node_id product)
{
    const struct graph_node *node = node_at(groups, product);
    for (size_t i = 0; i < node->input_count && i < 2; i++) {
        struct group *scale = group_before(groups, dataflow_input(groups->flow, node, i), product);
        if (scale && scale != group && scale->size + group->size <= GROUP_MAX_NODES &&
            is_scaled(groups, scale))
            merge_groups(groups, group, scale);
    }
}

struct chain {
    node_id nodes[MAX_STEPS + 2];
    size_t length;
};

/* Steps that branch and join, as when NaNs after the softmax are replaced; false: none. */
static bool fuse_branches(const struct groups *groups, struct chain *chain, node_id node)
{
    const struct dataflow *flow = groups->flow;
    tensor_id root = flow->root[graph_outputs(flow->graph, node_at(groups, node))[0]];
    struct region region;
    if (dataflow_reader_count(flow, root) < 2 ||
        !find_region(groups, root, flow->readers[flow->first_reader[root]], &region) ||
        !region.takes_all || region.has_means || region.has_parts ||
        chain->length + region.count > MAX_STEPS + 1)
        return false;
    for (uint32_t i = 0; i < region.count; i++)
        chain->nodes[chain->length++] = region.nodes[i];
    return true;
}

/* Finds the nodes from the first product to the second. */
static bool find_attention(const struct groups *groups, node_id first, struct chain *chain)
{
    node_id at = first;
    bool has_softmax = false;
    while (chain->length < MAX_STEPS + 2) {
        chain->nodes[chain->length++] = at;
        const struct graph_node *node = node_at(groups, at);
        if (node->output_count != 1 || graph_outputs(groups->flow->graph, node)[0] < 0)
            return false;
        if (fuse_branches(groups, chain, at))
            at = chain->nodes[chain->length - 1];
        at = only_reader(groups->flow, node_at(groups, at));
        if (at < 0 || groups->group_of[at] >= 0)
            return false;
        enum graph_op op = node_at(groups, at)->op;
        if (op == GRAPH_MATMUL && has_softmax && chain->length < MAX_STEPS + 2) {
            chain->nodes[chain->length++] = at;
            return true;
        }
        if (!is_elementwise(op) && (op != GRAPH_SOFTMAX || has_softmax))
            return false;
        has_softmax |= op == GRAPH_SOFTMAX;
    }
    return false;
}

static bool place_attention(struct groups *groups, node_id first)
{
    struct chain chain = {.length = 0};
    if (!find_attention(groups, first, &chain))
        return false;
    struct group *group = begin_group(groups, first);
    for (size_t i = 1; i < chain.length; i++)
        append_node(groups, group, chain.nodes[i]);
    group->kind = GROUP_CLOSED;
    fuse_scales(groups, group, first);
    return true;
}

/* ---- subsequent elementwise operations ---- */

static bool may_follow(const struct groups *groups, const struct group *group, node_id node)
{
    enum graph_op op = node_at(groups, node)->op;
    if (group->kind == GROUP_CLOSED)
        return false;
    /* A broadcast to a larger shape does not fit the same loop. */
    if (output_elements(groups, node) != output_elements(groups, group->tail))
        return false;
    if (op == GRAPH_BATCH_NORM)
        return group->kind == GROUP_PRODUCT && !group->has_norm;
    if (group->kind == GROUP_NORM)
        return graph_op_kind(op) == GRAPH_KIND_ACTIVATION;
    return is_elementwise(op);
}

/* The region starts a new group, or extends the group that produces its start tensor. */
static bool place_region(struct groups *groups, node_id node)
{
    struct region region;
    const struct dataflow *flow = groups->flow;
    tensor_id start = GRAPH_NONE;
    for (size_t i = 0; start < 0 && i < node_at(groups, node)->input_count; i++)
        if (dataflow_is_computed(flow, dataflow_input(flow, node_at(groups, node), i)))
            start = dataflow_input(flow, node_at(groups, node), i);
    if (start < 0 || !find_region(groups, start, node, &region))
        return false;
    node_id producer = flow->graph->tensors[start].producer, last = region.nodes[region.count - 1];
    struct group *group = group_of(groups, producer);
    bool joins = group && region.takes_all && !region.has_means && !region.has_parts &&
                 group->tail == producer && node_at(groups, producer)->output_count == 1 &&
                 group->size + region.count <= GROUP_MAX_NODES && may_follow(groups, group, last);
    uint32_t first = joins ? 0 : 1;
    if (!joins)
        group = begin_group(groups, node);
    for (uint32_t i = first; i < region.count; i++)
        append_node(groups, group, region.nodes[i]);
    if (region.has_means)
        group->kind = GROUP_NORM;
    if (region.has_parts) /* a rotary embedding: closed, as when it is one node */
        group->kind = GROUP_CLOSED;
    return true;
}

/* activation(x A) * (x B), a gated linear unit: the product joins both groups. */
static bool place_gate(struct groups *groups, node_id node)
{
    const struct graph_node *gate = node_at(groups, node);
    if (gate->op != GRAPH_MUL || gate->input_count != 2)
        return false;
    struct group *a = group_before(groups, dataflow_input(groups->flow, gate, 0), node);
    struct group *b = group_before(groups, dataflow_input(groups->flow, gate, 1), node);
    bool fits = a && b && a != b && a->source >= 0 && a->source == b->source &&
                a->size + b->size < GROUP_MAX_NODES && may_follow(groups, a, node) &&
                may_follow(groups, b, node);
    if (!fits)
        return false;
    merge_groups(groups, a, b);
    append_node(groups, a, node);
    return true;
}

static bool place_behind(struct groups *groups, node_id node)
{
    const struct graph_node *follower = node_at(groups, node);
    for (size_t i = 0; i < follower->input_count && i < GROUP_MAX_NODES; i++) {
        struct group *group = group_before(groups, dataflow_input(groups->flow, follower, i), node);
        if (group && may_follow(groups, group, node)) {
            append_node(groups, group, node);
            return true;
        }
    }
    return false;
}

static bool join_group(struct groups *groups, node_id node)
{
    enum graph_op op = node_at(groups, node)->op;
    if (op == GRAPH_MATMUL)
        return place_attention(groups, node);
    if (op == GRAPH_REDUCE)
        return place_region(groups, node);
    if (op == GRAPH_BATCH_NORM)
        return place_behind(groups, node);
    return is_elementwise(op) &&
           (place_region(groups, node) || place_gate(groups, node) || place_behind(groups, node));
}

/* ---- siblings: linears that read the same tensor ---- */

static bool are_siblings(const struct groups *groups, const struct group *a, const struct group *b)
{
    const struct graph_node *first = node_at(groups, a->head), *second = node_at(groups, b->head);
    return a->products + b->products <= MAX_SIBLINGS && b->head - a->head <= MAX_DISTANCE &&
           first->layer == second->layer && first->split == second->split &&
           first->weight_fraction == second->weight_fraction;
}

static void join_siblings(struct groups *groups)
{
    size_t tensors = groups->flow->graph->tensor_count;
    int32_t *latest = xmalloc((tensors + 1) * sizeof *latest); /* by source: its last group */
    for (size_t i = 0; i < tensors; i++)
        latest[i] = GRAPH_NONE;
    for (size_t i = 0; i < groups->count; i++) {
        struct group *group = &groups->items[i];
        if (group->size == 0 || group->source < 0)
            continue;
        struct group *earlier =
            latest[group->source] >= 0 ? &groups->items[latest[group->source]] : NULL;
        if (earlier && are_siblings(groups, earlier, group)) {
            earlier->tail = GRAPH_NONE;
            earlier->position = earlier->head;
            merge_groups(groups, earlier, group);
        } else {
            latest[group->source] = (int32_t)i;
        }
    }
    free(latest);
}

/* Numbers the kernels in the order of their positions, in one pass over the nodes. */
static void number_kernels(const struct groups *groups, struct fusion *out)
{
    size_t nodes = groups->flow->graph->node_count;
    for (size_t i = 0; i < nodes; i++) {
        const struct group *group = group_of(groups, (node_id)i);
        if (!group || group->position != (node_id)i)
            continue;
        for (node_id node = group->head; node >= 0; node = groups->next[node])
            out->kernel_of[node] = (int32_t)out->count;
        out->count++;
    }
}

void fusion_make(const struct dataflow *flow, bool is_fused, struct fusion *out)
{
    struct groups groups;
    size_t nodes = flow->graph->node_count;
    *out = (struct fusion){0};
    groups_init(flow, &groups);
    for (size_t i = 0; i < nodes; i++) {
        bool is_placed = groups.group_of[i] >= 0 || dataflow_is_view(flow, &flow->graph->nodes[i]);
        if (!is_placed && !(is_fused && join_group(&groups, (node_id)i)))
            begin_group(&groups, (node_id)i);
    }
    if (is_fused)
        join_siblings(&groups);
    out->kernel_of = xmalloc((nodes + 1) * sizeof *out->kernel_of);
    for (size_t i = 0; i < nodes; i++)
        out->kernel_of[i] = GRAPH_NONE;
    number_kernels(&groups, out);
    groups_release(&groups);
}

/* The first kernel from `first` on after all that the node depends on. */
static size_t kernel_after_inputs(const struct dataflow *flow, const struct fusion *fusion,
                                  const struct graph_node *node, size_t first)
{
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = dataflow_input(flow, node, i);
        node_id producer = root >= 0 ? flow->graph->tensors[root].producer : GRAPH_NONE;
        if (producer >= 0 && (size_t)fusion->kernel_of[producer] > first)
            first = (size_t)fusion->kernel_of[producer];
    }
    return first;
}

void fusion_by_component(const struct dataflow *flow, struct fusion *out)
{
    const struct graph_node *nodes = flow->graph->nodes;
    size_t count = flow->graph->node_count, layer_start = 0; /* its first kernel */
    node_id *heads = xmalloc((count + 1) * sizeof *heads);   /* by kernel */
    *out = (struct fusion){.kernel_of = xmalloc((count + 1) * sizeof *out->kernel_of)};
    for (size_t i = 0; i < count; i++) {
        out->kernel_of[i] = GRAPH_NONE;
        if (dataflow_is_view(flow, &nodes[i]))
            continue;
        if (out->count && nodes[heads[out->count - 1]].layer != nodes[i].layer)
            layer_start = out->count;
        size_t kernel = kernel_after_inputs(flow, out, &nodes[i], layer_start);
        while (kernel < out->count && nodes[heads[kernel]].component != nodes[i].component)
            kernel++;
        if (kernel == out->count)
            heads[out->count++] = (node_id)i;
        out->kernel_of[i] = (int32_t)kernel;
    }
    free(heads);
}

void fusion_release(struct fusion *fusion)
{
    free(fusion->kernel_of);
    *fusion = (struct fusion){0};
}
