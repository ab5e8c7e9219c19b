/* From events to spans.  Starts and ends are paired in the order of recording, by id if they have one.  Then each span
 * gets its parent: the one that it names, else by time, among the types that may contain it.  Missing turns are
 * inferred from the inferences; phases from the first token.  Finally the spans are ordered with parents first. */
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "trace/trace.h"

/* Clocks of two processes, and of two calls, may differ by this much. */
#define SLACK NS_PER_MS

enum { NO_PARENT = -1 };

/* A span under construction. */
struct node {
    struct trace_span span;
    uint64_t key; /* of type and id; 0 without an id */
    const char *parent_id;
    double busy_from, busy_to; /* CPU time of the machine */
    bool open;
    bool pending; /* an end whose start was not seen yet */
};

struct build {
    struct node *nodes;
    size_t count, capacity;
    struct trace_problems problems;
    size_t retries, errors;
    nanos from, to; /* of the query */
};

/* ---- events ---- */

static const char *const NAMES[TRACE_TYPES] = {
#define TYPE(constant, name)  name,
#define POINT(constant, name) name,
#include "trace/types.def"
};

const char *trace_type_name(enum trace_type type)
{
    return NAMES[type];
}

bool trace_type_is_span(enum trace_type type)
{
    return type < TRACE_RETRY;
}

void trace_events_release(struct trace_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        free((void *)events->items[i].query);
    free(events->items);
    *events = (struct trace_events){0};
}

/* ---- pairing ---- */

static uint64_t key_of(const struct trace_event *event)
{
    if (!event->id)
        return 0;
    uint64_t hash = hash_string(HASH_START + (uint64_t)event->type, event->id);
    return hash ? hash : 1;
}

static void add_node(struct build *b, const struct node *node)
{
    *XADD(b->nodes, b->count, b->capacity) = *node;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void take_number(double *fact, double newer)
{
    if (is_known(newer))
        *fact = newer;
}

static void take_facts(struct trace_facts *facts, const struct trace_facts *newer)
{
    take_number(&facts->input_tokens, newer->input_tokens);
    take_number(&facts->output_tokens, newer->output_tokens);
    take_number(&facts->reasoning_tokens, newer->reasoning_tokens);
    take_number(&facts->cached_tokens, newer->cached_tokens);
    take_number(&facts->result_tokens, newer->result_tokens);
    take_number(&facts->cost_usd, newer->cost_usd);
    take_number(&facts->cpu_s, newer->cpu_s);
    facts->first_token = newer->first_token ? newer->first_token : facts->first_token;
    facts->last_token = newer->last_token ? newer->last_token : facts->last_token;
    facts->error = newer->error ? newer->error : facts->error;
    facts->metadata = newer->metadata ? newer->metadata : facts->metadata;
}

static struct node node_of(const struct trace_event *event)
{
    return (struct node){
        .span = {.type = event->type,
                 .id = or_empty(event->id),
                 .name = or_empty(event->name),
                 .from = event->at,
                 .to = event->at,
                 .parent = NO_PARENT,
                 .turn = -1,
                 .cpu_share = UNKNOWN,
                 .facts = event->facts},
        .key = key_of(event),
        .parent_id = event->parent,
        .busy_from = event->cpu_busy_s,
        .busy_to = event->cpu_busy_s,
        .open = event->edge == TRACE_START,
        .pending = event->edge == TRACE_END,
    };
}

/* The newest node with that id and kind; NULL if there is none. */
static struct node *find_id(const struct build *b, uint64_t key, const char *id, bool pending)
{
    for (size_t i = b->count; key && i-- > 0;) {
        struct node *node = &b->nodes[i];
        if (node->key == key && node->pending == pending && str_equal(node->span.id, id))
            return node;
    }
    return NULL;
}

/* The open node of an event without an id.  Tools and inferences run concurrently, and the first to start is assumed to
 * be the first to end; agents and turns nest. */
static struct node *find_named(const struct build *b, const struct trace_event *event)
{
    bool nests = event->type <= TRACE_TURN;
    struct node *found = NULL;
    for (size_t i = 0; i < b->count; i++) {
        struct node *node = &b->nodes[i];
        bool same_name =
            !event->name || !node->span.name[0] || str_equal(event->name, node->span.name);
        if (!node->open || node->span.type != event->type || !same_name || (node->key && event->id))
            continue;
        found = node;
        if (!nests)
            break;
    }
    return found;
}

/* Completes a node with its other event. */
static void join(struct node *node, const struct trace_event *end)
{
    node->span.to = end->at;
    node->busy_to = end->cpu_busy_s;
    node->open = false;
    take_facts(&node->span.facts, &end->facts);
    if (!node->span.name[0])
        node->span.name = or_empty(end->name);
}

static void take_start(struct build *b, const struct trace_event *event)
{
    struct node fresh = node_of(event);
    struct node *known = find_id(b, fresh.key, fresh.span.id, false);
    if (known && (known->open || known->span.from == event->at)) {
        b->problems.duplicates++;
        return;
    }
    struct node *early = find_id(b, fresh.key, fresh.span.id, true);
    if (!early) {
        if (!fresh.key && event->type >= TRACE_TOOL && find_named(b, event))
            b->problems.ambiguous++;
        add_node(b, &fresh);
        return;
    }
    /* Its end came first. */
    b->problems.out_of_order++;
    take_facts(&fresh.span.facts, &early->span.facts);
    fresh.span.to = early->span.to;
    fresh.busy_to = early->busy_to;
    fresh.open = false;
    if (!fresh.span.name[0])
        fresh.span.name = early->span.name;
    *early = fresh;
}

static void take_end(struct build *b, const struct trace_event *event)
{
    struct node fresh = node_of(event);
    struct node *known = find_id(b, fresh.key, fresh.span.id, false);
    if (known && known->open) {
        join(known, event);
        return;
    }
    if (known || find_id(b, fresh.key, fresh.span.id, true)) {
        b->problems.duplicates++;
        return;
    }
    known = find_named(b, event);
    if (known)
        join(known, event);
    else
        add_node(b, &fresh);
}

static void take_event(struct build *b, const struct trace_event *event)
{
    b->problems.events++;
    if (event->type == TRACE_OTHER)
        b->problems.unknown_type++;
    b->retries += event->type == TRACE_RETRY;
    b->errors += event->type == TRACE_ERROR;
    if (!trace_type_is_span(event->type))
        return;
    if (event->edge == TRACE_START)
        take_start(b, event);
    else
        take_end(b, event);
}

/* ---- cleaning up pairs ---- */

/* Drops the ends without a start, and sets the window. */
static void drop_pending(struct build *b)
{
    size_t kept = 0;
    nanos from = INT64_MAX, to = INT64_MIN;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        from = min_nanos(span->from, from);
        to = max_nanos(span->to, to);
        if (b->nodes[i].pending)
            b->problems.no_start++;
        else
            b->nodes[kept++] = b->nodes[i];
    }
    if (b->count == 0)
        from = to = b->from;
    b->count = kept;
    b->from = b->from ? b->from : from;
    b->to = b->to ? b->to : to;
    b->to = b->to < b->from ? b->from : b->to;
}

static nanos clamp(nanos t, nanos low, nanos high)
{
    return t < low ? low : t > high ? high : t;
}

/* The kernel's CPU time has ticks of 10 ms: a share of a few ticks would be noise. */
#define BUSY_MIN 0.05

static double cpu_share(const struct node *node)
{
    double own = node->span.facts.cpu_s, all = node->busy_to - node->busy_from;
    if (!(own >= 0) || !(all >= 0))
        return UNKNOWN;
    if (own == 0)
        return 0;
    if (all < BUSY_MIN)
        return UNKNOWN;
    return own < all ? own / all : 1;
}

static void settle_times(struct build *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct node *node = &b->nodes[i];
        struct trace_span *span = &node->span;
        nanos from = span->from, to = span->to;
        if (node->open) {
            span->no_end = true;
            to = b->to;
            b->problems.no_end++;
        }
        span->from = clamp(from, b->from, b->to);
        span->to = clamp(to, span->from, b->to);
        if (to < from || from < b->from - SLACK || to > b->to + SLACK)
            b->problems.skewed++;
        if (span->type == TRACE_TOOL)
            span->cpu_share = node->open ? UNKNOWN : cpu_share(node);
    }
}

/* ---- parents ---- */

static bool may_contain(enum trace_type outer, enum trace_type inner)
{
    switch (inner) {
    case TRACE_PREFILL:
    case TRACE_DECODE:
        return outer == TRACE_INFERENCE || outer == TRACE_SUBMODEL;
    case TRACE_TURN:
        return outer == TRACE_AGENT;
    case TRACE_SUBMODEL:
    case TRACE_AGENT:
        return outer <= TRACE_TOOL;
    default:
        return outer <= TRACE_TURN;
    }
}

/* Whether `outer` contains `inner` by time: for tools, inferences and their phases by their start, because a tool may
 * outlive its turn; for agents and turns by all of their time. */
static bool contains_by_time(const struct trace_span *outer, const struct trace_span *inner)
{
    nanos length = inner->to - inner->from, own = outer->to - outer->from;
    nanos start = inner->from;
    if (inner->type >= TRACE_INFERENCE || inner->type == TRACE_TOOL || inner->no_end)
        return outer->from <= start && (start < outer->to || outer->to == inner->to);
    bool covers = outer->from <= inner->from + SLACK && outer->to >= inner->to - SLACK;
    return covers && (own > length || (own == length && outer->type < inner->type));
}

/* The innermost span that contains node i by time; with `within`, that one or one of its direct children. */
static int find_by_time(const struct build *b, size_t i, int within)
{
    const struct trace_span *span = &b->nodes[i].span;
    int found = NO_PARENT;
    for (size_t k = 0; k < b->count; k++) {
        const struct trace_span *outer = &b->nodes[k].span;
        bool inside = within == NO_PARENT || outer->parent == within;
        if (k == i || !inside || !may_contain(outer->type, span->type) ||
            !contains_by_time(outer, span))
            continue;
        const struct trace_span *best = found == NO_PARENT ? NULL : &b->nodes[found].span;
        if (!best || outer->from > best->from ||
            (outer->from == best->from &&
             (outer->to < best->to || (outer->to == best->to && outer->type > best->type))))
            found = (int)k;
    }
    return found == NO_PARENT ? within : found;
}

/* The request with the largest overlap with a phase: the clocks of two events of one moment differ slightly, and the
 * phase may begin before its request, or within the previous one. */
static int find_by_overlap(const struct build *b, size_t i)
{
    const struct trace_span *span = &b->nodes[i].span;
    int found = NO_PARENT;
    nanos max = 0;
    for (size_t k = 0; k < b->count && !span->no_end; k++) {
        const struct trace_span *outer = &b->nodes[k].span;
        nanos from = outer->from > span->from ? outer->from : span->from;
        nanos to = min_nanos(outer->to, span->to);
        if (may_contain(outer->type, span->type) && to - from > max) {
            max = to - from;
            found = (int)k;
        }
    }
    return found;
}

static int find_by_id(const struct build *b, size_t i)
{
    const char *id = b->nodes[i].parent_id;
    for (size_t k = 0; id && k < b->count; k++)
        if (k != i && str_equal(b->nodes[k].span.id, id))
            return (int)k;
    return NO_PARENT;
}

static bool is_above(const struct build *b, int above, int below)
{
    for (size_t steps = 0; below != NO_PARENT && steps <= b->count; steps++) {
        if (below == above)
            return true;
        below = b->nodes[below].span.parent;
    }
    return false;
}

static void find_parents(struct build *b)
{
    for (size_t i = 0; i < b->count; i++) {
        int parent = find_by_id(b, i);
        if (parent != NO_PARENT && !is_above(b, (int)i, parent))
            b->nodes[i].span.parent = parent;
    }
    for (int type = 0; type <= TRACE_DECODE; type++)
        for (size_t i = 0; i < b->count; i++) {
            struct trace_span *span = &b->nodes[i].span;
            int named = span->parent;
            bool may_be_in_turn = named != NO_PARENT && b->nodes[named].span.type == TRACE_AGENT &&
                                  (type == TRACE_TOOL || type == TRACE_INFERENCE);
            if ((int)span->type != type || (named != NO_PARENT && !may_be_in_turn))
                continue;
            int parent = type >= TRACE_PREFILL ? find_by_overlap(b, i) : NO_PARENT;
            if (parent == NO_PARENT)
                parent = find_by_time(b, i, named);
            if (parent != NO_PARENT && !is_above(b, (int)i, parent))
                span->parent = parent;
        }
}

/* ---- the query, turns and phases ---- */

static struct node new_inferred(enum trace_type type, nanos from, nanos to, int parent)
{
    struct trace_event none = trace_event_new(type, TRACE_START, "", NULL);
    struct node node = node_of(&none);
    node.span.from = from;
    node.span.to = to;
    node.span.parent = parent;
    node.span.made_up = true;
    node.open = false;
    return node;
}

/* The query is the agent that contains everything else, or is created around it.  Its index. */
static int find_root(struct build *b)
{
    size_t outermost = 0;
    int agent = NO_PARENT;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        if (span->parent != NO_PARENT)
            continue;
        outermost++;
        if (span->type == TRACE_AGENT)
            agent = (int)i;
    }
    if (outermost == 1 && agent != NO_PARENT) {
        b->nodes[agent].span.from = b->from;
        b->nodes[agent].span.to = b->to;
        return agent;
    }
    struct node node = new_inferred(TRACE_AGENT, b->from, b->to, NO_PARENT);
    int root = (int)b->count;
    add_node(b, &node);
    for (size_t i = 0; i + 1 < b->count; i++)
        if (b->nodes[i].span.parent == NO_PARENT)
            b->nodes[i].span.parent = root;
    return root;
}

/* Children before their parents, deepest first: a parent extends as far as its children.  Phases end with their
 * inference; spans without an end, with their parent. */
static void fit(struct build *b, int at, unsigned depth)
{
    for (size_t i = 0; depth < 64 && i < b->count; i++) {
        struct trace_span *span = &b->nodes[i].span, *outer = &b->nodes[at].span;
        if (span->parent != at)
            continue;
        if (span->no_end || span->type >= TRACE_PREFILL) {
            span->from = clamp(span->from, outer->from, outer->to);
            span->to = clamp(span->to, span->from, outer->to);
        }
        fit(b, (int)i, depth + 1);
        if (span->from < outer->from - SLACK || span->to > outer->to + SLACK)
            b->problems.skewed++;
        outer->from = min_nanos(span->from, outer->from);
        outer->to = max_nanos(span->to, outer->to);
    }
}

static bool has_child(const struct build *b, int of, enum trace_type type)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->nodes[i].span.parent == of && b->nodes[i].span.type == type)
            return true;
    return false;
}

/* The earliest inference of an agent that is in none of its turns; NO_PARENT if there is none. */
static int next_inference(const struct build *b, int agent)
{
    int first = NO_PARENT;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        if (span->parent == agent && span->type == TRACE_INFERENCE &&
            (first == NO_PARENT || span->from < b->nodes[first].span.from))
            first = (int)i;
    }
    return first;
}

/* Start of the next turn: the first inference that begins after `after`. */
static nanos next_begin(const struct build *b, int agent, nanos after)
{
    nanos next = INT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        if (span->parent == agent && span->type == TRACE_INFERENCE && span->from >= after &&
            span->from < next)
            next = span->from;
    }
    return next;
}

/* Start of an agent's first turn: the calls before its first inference, if there are any. */
static nanos first_begin(const struct build *b, int agent, nanos inference)
{
    nanos first = inference;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        if (span->parent == agent && span->from < first)
            first = span->from;
    }
    return first;
}

/* A turn is an inference, those that overlap it, and the calls until the next one. */
static void make_turns(struct build *b, int agent)
{
    int first;
    while ((first = next_inference(b, agent)) != NO_PARENT) {
        nanos from = b->nodes[first].span.from, to = b->nodes[first].span.to;
        nanos until = next_begin(b, agent, to > from ? to : from + 1);
        if (!has_child(b, agent, TRACE_TURN))
            from = first_begin(b, agent, from);
        struct node turn = new_inferred(TRACE_TURN, from, to, agent);
        int number = (int)b->count;
        for (size_t i = 0; i < b->count; i++) {
            struct trace_span *span = &b->nodes[i].span;
            if (span->parent != agent || span->from < from || span->from >= until ||
                span->type == TRACE_TURN)
                continue;
            span->parent = number;
            turn.span.to = max_nanos(span->to, turn.span.to);
        }
        add_node(b, &turn);
    }
}

/* End of prefill: from an event, or from the phases. */
static void find_first_token(const struct build *b, int at, struct trace_span *span)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *phase = &b->nodes[i].span;
        if (phase->parent != at || span->facts.first_token)
            continue;
        if (phase->type == TRACE_DECODE)
            span->facts.first_token = phase->from;
        else if (phase->type == TRACE_PREFILL && !phase->no_end)
            span->facts.first_token = phase->to;
    }
}

/* A reply of several tokens in one chunk arrived after all of its decoding: the time of its first token is unknown. */
static bool is_one_piece(const struct trace_facts *facts)
{
    return facts->last_token && facts->last_token <= facts->first_token &&
           facts->output_tokens != 1;
}

static void make_phases(struct build *b, int at)
{
    struct trace_span *span = &b->nodes[at].span;
    nanos from = span->from, to = span->to;
    if (is_one_piece(&span->facts))
        span->facts.first_token = 0;
    find_first_token(b, at, span);
    nanos change = span->facts.first_token;
    if (!change)
        return;
    span->facts.first_token = change = clamp(change, from, to);
    struct node prefill = new_inferred(TRACE_PREFILL, from, change, at);
    struct node decode = new_inferred(TRACE_DECODE, change, to, at);
    if (!has_child(b, at, TRACE_PREFILL))
        add_node(b, &prefill);
    if (change < to && !has_child(b, at, TRACE_DECODE))
        add_node(b, &decode);
}

/* A submodel call whose inferences have their own events is a sub-agent, not another inference. */
static void unwrap_submodels(struct build *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        if (span->type == TRACE_INFERENCE && span->parent != NO_PARENT &&
            b->nodes[span->parent].span.type == TRACE_SUBMODEL)
            b->nodes[span->parent].span.type = TRACE_AGENT;
    }
}

static void make_missing(struct build *b)
{
    size_t count = b->count;
    unwrap_submodels(b);
    for (size_t i = 0; i < count; i++)
        if (b->nodes[i].span.type == TRACE_AGENT && !has_child(b, (int)i, TRACE_TURN))
            make_turns(b, (int)i);
    for (size_t i = 0; i < count; i++)
        if (b->nodes[i].span.type == TRACE_INFERENCE || b->nodes[i].span.type == TRACE_SUBMODEL)
            make_phases(b, (int)i);
}

/* ---- ordering ---- */

/* The first child after `last` in the order of starts. */
static int next_child(const struct build *b, int of, int last)
{
    int found = NO_PARENT;
    for (size_t i = 0; i < b->count; i++) {
        const struct trace_span *span = &b->nodes[i].span;
        const struct trace_span *before = last == NO_PARENT ? NULL : &b->nodes[last].span;
        if (span->parent != of || (before && (span->from < before->from ||
                                              (span->from == before->from && (int)i <= last))))
            continue;
        if (found == NO_PARENT || span->from < b->nodes[found].span.from)
            found = (int)i;
    }
    return found;
}

static void order_spans(const struct build *b, int at, int parent, int turn, struct trace_tree *out)
{
    int own = (int)out->count, turns = 0;
    struct trace_span *span = &out->spans[out->count++];
    *span = b->nodes[at].span;
    span->parent = parent;
    span->turn = turn;
    for (int i = next_child(b, at, NO_PARENT); i != NO_PARENT && out->count < b->count;
         i = next_child(b, at, i)) {
        bool is_own_turn = parent == NO_PARENT && b->nodes[i].span.type == TRACE_TURN;
        order_spans(b, i, own, is_own_turn ? turns++ : turn, out);
    }
}

void trace_tree_build(struct trace_events *events, nanos from, nanos to, struct trace_tree *out)
{
    struct build b = {.from = from, .to = to};
    *out = (struct trace_tree){.events = *events};
    *events = (struct trace_events){0};
    size_t count = out->events.count < TRACE_EVENTS_MAX ? out->events.count : TRACE_EVENTS_MAX;
    b.problems.too_many = out->events.count - count;
    for (size_t i = 0; i < count; i++)
        take_event(&b, &out->events.items[i]);
    drop_pending(&b);
    settle_times(&b);
    find_parents(&b);
    int root = find_root(&b);
    fit(&b, root, 0);
    make_missing(&b);
    out->spans = xcalloc(b.count, sizeof *out->spans);
    out->retries = b.retries;
    out->errors = b.errors;
    out->problems = b.problems;
    order_spans(&b, root, NO_PARENT, -1, out);
    free(b.nodes);
}

void trace_tree_release(struct trace_tree *tree)
{
    trace_events_release(&tree->events);
    free(tree->spans);
    *tree = (struct trace_tree){0};
}

/* ---- problems ---- */

static const struct problem {
    size_t offset;
    const char *text;
} PROBLEMS[] = {
    {offsetof(struct trace_problems, no_end), "without an end (closed with their parent)"},
    {offsetof(struct trace_problems, no_start), "without a start (dropped)"},
    {offsetof(struct trace_problems, duplicates), "duplicated (dropped)"},
    {offsetof(struct trace_problems, out_of_order), "recorded before their start (paired)"},
    {offsetof(struct trace_problems, skewed), "outside their parent (clock skew)"},
    {offsetof(struct trace_problems, ambiguous),
     "of the same name at the same time without correlation ids (paired in order)"},
    {offsetof(struct trace_problems, unknown_type), "of an unknown type (dropped)"},
    {offsetof(struct trace_problems, too_many), "above the limit per query (dropped)"},
};

enum { PROBLEM_COUNT = COUNT_OF(PROBLEMS) };

static size_t problem_at(const struct trace_problems *problems, size_t i)
{
    return *(const size_t *)((const char *)problems + PROBLEMS[i].offset);
}

void trace_problems_text(const struct trace_problems *problems, char *to, size_t size)
{
    to[0] = '\0';
    for (size_t i = 0; i < PROBLEM_COUNT; i++) {
        size_t used = strlen(to), count = problem_at(problems, i);
        if (count)
            str_format(to + used, size - used, "%s%zu %s %s", used ? "; " : "", count,
                       count == 1 ? "event" : "events", PROBLEMS[i].text);
    }
}
