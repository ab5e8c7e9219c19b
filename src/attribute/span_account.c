#include "attribute/span_account.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/span_cost.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "rundir/record.h"
#include "rundir/traces.h"
#include "sensors/sensor.h"

/* Ids of segments, distinct from those of requests: this bit, the query's id, the segment's number. */
#define SEGMENT_BIT  ((uint64_t)1 << 62)
#define SEGMENT_BITS 20
/* An event makes four spans at most: an inference, its turn and its two phases. */
_Static_assert(2 * (4 * TRACE_EVENTS_MAX + 1) < 1 << SEGMENT_BITS, "segments of an account fit");

/* A time range of a span that belongs to none of its children. */
struct span_segment {
    struct span_account *account;
    int span;
    enum request_kind kind;
    nanos from, to;
};

/* ---- segments ---- */

static bool is_phase(const struct trace_span *span)
{
    return span->type == TRACE_PREFILL || span->type == TRACE_DECODE;
}

/* All time of a model request is its own, whatever else is recorded inside. */
static bool is_request(const struct trace_span *span)
{
    return span->type == TRACE_INFERENCE || span->type == TRACE_SUBMODEL;
}

static enum request_kind kind_of(const struct trace_span *span)
{
    if (is_request(span))
        return REQUEST_INFERENCE;
    return span->type == TRACE_TOOL ? REQUEST_TOOL : REQUEST_WAIT;
}

static void add_segment(struct span_account *account, size_t span, nanos from, nanos to)
{
    if (to <= from)
        return;
    XGROW(account->segments, account->segment_count, account->segment_capacity);
    account->segments[account->segment_count++] =
        (struct span_segment){account, (int)span, kind_of(&account->tree.spans[span]), from, to};
    account->segments_s += seconds(to - from);
}

/* Parents come before children, and siblings in the order of their starts: `done` is the end of the time of a span
 * that is already assigned. */
static void add_segments(struct span_account *account, nanos *done)
{
    const struct trace_tree *tree = &account->tree;
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        done[i] = span->from;
        if (is_phase(span) || i == 0)
            continue;
        int parent = span->parent;
        if (is_request(&tree->spans[parent]))
            continue;
        add_segment(account, (size_t)parent, done[parent], span->from);
        done[parent] = span->to > done[parent] ? span->to : done[parent];
    }
    for (size_t i = 0; i < tree->count; i++)
        if (!is_phase(&tree->spans[i]))
            add_segment(account, i, done[i], tree->spans[i].to);
}

struct span_account *span_account_new(struct trace_tree *tree, void *context)
{
    struct span_account *account = XNEW(account);
    nanos *done = xcalloc(tree->count, sizeof *done);
    struct span_energy *spans = xcalloc(tree->count, sizeof *spans);
    *account = (struct span_account){.tree = *tree,
                                     .spans = spans,
                                     .mbu_avg_pct = UNKNOWN,
                                     .mbu_max_pct = UNKNOWN,
                                     .gpu_window_joules = UNKNOWN,
                                     .cpu_window_joules = UNKNOWN,
                                     .soc_window_joules = UNKNOWN,
                                     .window_joules = UNKNOWN,
                                     .context = context};
    *tree = (struct trace_tree){0};
    for (size_t i = 0; i < account->tree.count; i++)
        spans[i] = (struct span_energy){energy_unknown("it took no time"),
                                        energy_unknown(""),
                                        0,
                                        UNKNOWN,
                                        UNKNOWN,
                                        UNKNOWN,
                                        UNKNOWN,
                                        UNKNOWN};
    add_segments(account, done);
    free(done);
    return account;
}

void span_account_free(struct span_account *account)
{
    if (!account)
        return;
    trace_tree_release(&account->tree);
    free(account->spans);
    free(account->segments);
    text_release(&account->texts);
    free(account);
}

static struct request_trace request_of(struct span_segment *segment, uint64_t id, size_t number)
{
    const struct trace_span *span = &segment->account->tree.spans[segment->span];
    return (struct request_trace){
        .id = SEGMENT_BIT | id << SEGMENT_BITS | number,
        .kind = segment->kind,
        .group = id + 1,
        .cpu_share = span->cpu_share,
        .context = segment,
        .from = segment->from,
        .first_token = segment->kind == REQUEST_INFERENCE ? span->facts.first_token : 0,
        .to = segment->to,
        .prompt_tokens = span->facts.input_tokens,
        .output_tokens = span->facts.output_tokens,
    };
}

enum err span_account_submit(struct span_account *account, struct sharing *sharing, uint64_t id)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < account->segment_count && !err; i++) {
        struct request_trace request = request_of(&account->segments[i], id, i);
        err = sharing_begin(sharing, request.id, request.from);
        if (!err)
            err = sharing_end(sharing, &request);
        account->left += !err;
    }
    sharing_forget(sharing, id);
    return err;
}

/* ---- shares ---- */

enum device_kind { KIND_GPU, KIND_CPU, KIND_DRAM, KIND_BOARD };

/* The kind by the scope of its channel; a processor's memory is part of the processors' energy. */
static enum device_kind kind_of_device(const struct device_share *share)
{
    enum scope scope = share->device->sensor->channels[share->device->channel].scope;
    if (scope_contains(SCOPE_GPU, scope))
        return KIND_GPU;
    if (scope == SCOPE_DRAM)
        return KIND_DRAM;
    if (scope_contains(SCOPE_PLATFORM, scope) || scope_contains(SCOPE_GRACE, scope))
        return KIND_CPU;
    return KIND_BOARD;
}

static void add_device(struct span_energy *to, const struct device_share *share, double joules)
{
    if (!share->device->has_energy || !is_known(joules))
        return;
    enum device_kind kind = kind_of_device(share);
    if (kind == KIND_GPU)
        add_known(&to->gpu_joules, joules);
    else if (share->counted && kind == KIND_BOARD)
        add_known(&to->soc_joules, joules);
    else if (share->counted)
        add_known(&to->cpu_joules, joules);
    if (share->counted && kind == KIND_DRAM)
        add_known(&to->dram_joules, joules);
}

static void add_window(struct span_account *account, const struct device_share *share)
{
    if (!share->device->has_energy)
        return;
    enum device_kind kind = kind_of_device(share);
    if (kind == KIND_GPU)
        add_known(&account->gpu_window_joules, share->group_joules);
    else if (share->counted && kind == KIND_BOARD)
        add_known(&account->soc_window_joules, share->group_joules);
    else if (share->counted)
        add_known(&account->cpu_window_joules, share->group_joules);
    if (share->counted)
        add_known(&account->window_joules, share->group_joules);
}

static void add_peak(struct span_energy *to, const struct share *share)
{
    for (size_t i = 0; i < share->count; i++) {
        double watts = share->devices[i].watts.max;
        if (share->devices[i].device->has_energy &&
            kind_of_device(&share->devices[i]) == KIND_GPU && is_known(watts) &&
            !(watts <= to->peak_watts))
            to->peak_watts = watts;
    }
}

/* A request's phases are its children. */
static void add_phases(struct span_account *account, int request, const struct share *share)
{
    for (size_t i = (size_t)request + 1; i < account->tree.count; i++) {
        const struct trace_span *span = &account->tree.spans[i];
        struct span_energy *to = &account->spans[i];
        if (span->parent != request || !is_phase(span))
            continue;
        bool is_prefill = span->type == TRACE_PREFILL;
        to->energy = is_prefill ? share->prefill : share->decode;
        to->own = to->energy;
        to->own_joules = to->energy.joules;
        for (size_t d = 0; d < share->count; d++)
            add_device(to, &share->devices[d],
                       is_prefill ? share->devices[d].prefill_joules
                                  : share->devices[d].decode_joules);
    }
}

/* Mean over the GPUs, weighted by the time in which it is known. */
static void add_gauges(struct span_account *account, const struct share *share, double part)
{
    for (size_t i = 0; i < share->count; i++) {
        const struct value_stats *use = &share->devices[i].gauges[QTY_MEMORY_UTILIZATION];
        if (share->devices[i].device->sensor->kind != SENSOR_GPU || !is_known(use->avg))
            continue;
        account->mbu_sum += use->avg * part;
        account->mbu_parts += part;
        if (!(use->max <= account->mbu_max_pct))
            account->mbu_max_pct = use->max;
    }
}

/* A parent's energy is its own plus that of its children, which come after it. */
static void add_up(struct span_account *account)
{
    for (size_t i = account->tree.count; i-- > 1;) {
        const struct trace_span *span = &account->tree.spans[i];
        const struct span_energy *from = &account->spans[i];
        struct span_energy *to = &account->spans[span->parent];
        if (is_phase(span))
            continue;
        energy_add(&to->energy, &from->energy);
        add_known(&to->gpu_joules, from->gpu_joules);
        add_known(&to->cpu_joules, from->cpu_joules);
        add_known(&to->dram_joules, from->dram_joules);
        add_known(&to->soc_joules, from->soc_joules);
        if (is_known(from->peak_watts) && !(from->peak_watts <= to->peak_watts))
            to->peak_watts = from->peak_watts;
    }
}

bool span_account_owns(const struct share *share)
{
    return share->trace->id & SEGMENT_BIT;
}

struct span_account *span_account_take(const struct share *share)
{
    const struct span_segment *segment = share->trace->context;
    struct span_account *account = segment->account;
    struct span_energy *to = &account->spans[segment->span];
    double length = seconds(segment->to - segment->from);
    if (share->total.method == METHOD_NONE && to->energy.method == METHOD_NONE)
        to->energy = share->total; /* with its reason */
    energy_add(&to->energy, &share->total);
    energy_add(&to->own, &share->total);
    to->own_joules += share->total.joules;
    for (size_t i = 0; i < share->count; i++) {
        add_device(to, &share->devices[i], share->devices[i].energy.joules);
        add_window(account, &share->devices[i]);
    }
    add_peak(to, share);
    if (segment->kind == REQUEST_INFERENCE)
        add_phases(account, segment->span, share);
    add_gauges(account, share, length / account->segments_s);
    account->concurrency += share->concurrency * length / account->segments_s;
    account->alone_s += share->alone_s;
    if (--account->left)
        return NULL;
    add_up(account);
    if (account->mbu_parts > 0)
        account->mbu_avg_pct = account->mbu_sum / account->mbu_parts;
    return account;
}

/* ---- a trace: spans ---- */

static double span_s(const struct trace_span *span)
{
    return seconds(span->to - span->from);
}

static const char *share_of(const struct trace_tree *tree, const struct trace_span *span)
{
    if (is_phase(span))
        span = &tree->spans[span->parent];
    switch (span->type) {
    case TRACE_AGENT:
    case TRACE_TURN:
        return "time";
    case TRACE_TOOL:
        return is_known(span->cpu_share) ? "cpu_time" : "equal";
    default:
        return is_known(span->facts.input_tokens + span->facts.output_tokens) ? "tokens" : "equal";
    }
}

/* All energy of an inference with phases is theirs. */
static bool has_phases(const struct trace_tree *tree, size_t i)
{
    return i + 1 < tree->count && tree->spans[i + 1].parent == (int)i &&
           is_phase(&tree->spans[i + 1]);
}

static void fill_span(const struct span_account *account, size_t i, struct span_trace *out)
{
    const struct trace_span *span = &account->tree.spans[i];
    const struct span_energy *spent = &account->spans[i];
    nanos zero = account->tree.spans[0].from;
    bool is_own = spent->own_joules != 0 && !has_phases(&account->tree, i);
    *out = (struct span_trace){
        .type = trace_type_name(span->type),
        .name = str_or_null(span->name),
        .id = str_or_null(span->id),
        .parent = i ? (double)span->parent : UNKNOWN,
        .turn = span->turn >= 0 ? (double)span->turn : UNKNOWN,
        .from_s = seconds(span->from - zero),
        .to_s = seconds(span->to - zero),
        .joules = spent->energy.joules,
        .plus_minus = spent->energy.plus_minus,
        .idle_joules = spent->energy.idle_joules,
        .active_joules = spent->energy.active_joules,
        .own_joules = is_own ? spent->own_joules : 0,
        .own_plus_minus = is_own ? spent->own.plus_minus : 0,
        .own_idle_joules = is_own ? spent->own.idle_joules : 0,
        .gpu_joules = spent->gpu_joules,
        .cpu_joules = spent->cpu_joules,
        .method = method_name(spent->energy.method),
        .share = share_of(&account->tree, span),
        .cpu_s = span->facts.cpu_s,
        .cpu_share = span->cpu_share,
        .input_tokens = span->facts.input_tokens,
        .output_tokens = span->facts.output_tokens,
        .error = span->facts.error,
        .no_end = span->no_end ? 1 : -1,
        .made_up = span->made_up ? 1 : -1,
    };
}

/* ---- turns ---- */

/* Whether a span belongs to a turn of the query, including sub-agents. */
static bool is_in_turn(const struct trace_span *span, int turn)
{
    return span->turn == turn && span->type != TRACE_TURN;
}

/* Whether a count of a request belongs in a sum: a failed attempt without a count adds nothing. */
static bool is_counted(const struct trace_span *span, double count)
{
    return is_request(span) && (is_known(count) || !span->facts.error);
}

static double read_fact(const struct trace_span *span, size_t offset)
{
    const void *fact = (const char *)&span->facts + offset;
    return *(const double *)fact;
}

/* UNKNOWN if it is unknown for any request of the turn. */
static double sum_tokens(const struct trace_tree *tree, int turn, size_t offset)
{
    double sum = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        double count = read_fact(span, offset);
        if (is_in_turn(span, turn) && is_counted(span, count))
            sum += count;
    }
    return sum;
}

static double sum_known_facts(const struct trace_tree *tree, int turn, size_t offset)
{
    double sum = UNKNOWN;
    for (size_t i = 0; i < tree->count; i++)
        if (is_in_turn(&tree->spans[i], turn))
            add_known(&sum, read_fact(&tree->spans[i], offset));
    return sum;
}

#define TOKENS(member) sum_tokens(tree, turn, offsetof(struct trace_facts, member))
#define FACTS(member)  sum_known_facts(tree, turn, offsetof(struct trace_facts, member))

static const char *tool_name(const struct trace_span *span)
{
    return span->name[0] ? span->name : "unknown";
}

static double seconds_of_tool(const struct trace_tree *tree, int turn, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        if (is_in_turn(span, turn) && span->type == TRACE_TOOL && str_equal(tool_name(span), name))
            sum += span_s(span);
    }
    return sum;
}

static bool is_first_of_name(const struct trace_tree *tree, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_in_turn(&tree->spans[i], tree->spans[at].turn) &&
            tree->spans[i].type == TRACE_TOOL &&
            str_equal(tool_name(&tree->spans[i]), tool_name(&tree->spans[at])))
            return false;
    return true;
}

/* Returns their number.  Each text ends in a NUL of its own. */
static size_t write_tools(const struct trace_tree *tree, int turn, struct text *out)
{
    struct json json;
    size_t count = 0;
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t i = 0; i < tree->count; i++)
        if (is_in_turn(&tree->spans[i], turn) && tree->spans[i].type == TRACE_TOOL) {
            json_string(&json, NULL, tool_name(&tree->spans[i]));
            count++;
        }
    json_array_end(&json);
    text_add_bytes(out, "", 1);
    json_init(&json, out, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        if (is_in_turn(span, turn) && span->type == TRACE_TOOL && is_first_of_name(tree, i))
            json_number(&json, tool_name(span), seconds_of_tool(tree, turn, tool_name(span)));
    }
    json_object_end(&json);
    text_add_bytes(out, "", 1);
    return count;
}

static bool has_parallel_tools(const struct trace_tree *tree, int turn)
{
    nanos until = INT64_MIN;
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_span *span = &tree->spans[i];
        if (!is_in_turn(span, turn) || span->type != TRACE_TOOL)
            continue;
        if (span->from < until)
            return true;
        until = span->to > until ? span->to : until;
    }
    return false;
}

static const char *first_error(const struct trace_tree *tree, int turn)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->spans[i].turn == turn && tree->spans[i].facts.error)
            return tree->spans[i].facts.error;
    return NULL;
}

static void fill_turn(const struct span_account *account, size_t at, struct turn_trace *out)
{
    const struct trace_tree *tree = &account->tree;
    const struct trace_span *span = &tree->spans[at];
    const struct span_energy *spent = &account->spans[at];
    int turn = span->turn;
    double results = FACTS(result_tokens), length = span_s(span);
    turn_trace_init(out);
    out->turn_index = turn;
    out->input_tokens = TOKENS(input_tokens);
    out->output_tokens = TOKENS(output_tokens);
    out->tool_result_tokens = is_known(results) ? results : 0;
    out->wall_clock_s = length;
    out->error = first_error(tree, turn);
    out->gpu_energy_joules = spent->gpu_joules;
    out->cpu_energy_joules = spent->cpu_joules;
    out->gpu_power_avg_watts = ratio(spent->gpu_joules, length);
    out->cpu_power_avg_watts = ratio(spent->cpu_joules, length);
    out->cost_usd = span_cost_of_turn(tree, turn);
    out->dram_energy_joules = spent->dram_joules;
    out->peak_watts = spent->peak_watts;
    out->reasoning_tokens = FACTS(reasoning_tokens);
    out->cached_tokens = FACTS(cached_tokens);
    out->has_parallel_tools = (int8_t)has_parallel_tools(tree, turn);
    out->shared_device_warning = (int8_t)(account->concurrency > 1 + 1e-9);
}

/* The texts of all turns are written first: the buffer may be reallocated until the last one. */
static void point_to_texts(struct span_account *account, struct query_trace *out)
{
    const char *at = text_get(&account->texts);
    for (size_t i = 0; i < out->turn_count; i++) {
        out->turns[i].tools_called.text = at;
        at += strlen(at) + 1;
        out->turns[i].tool_latencies_s.text = at;
        at += strlen(at) + 1;
    }
    out->ipw.event_problems = str_or_null(at);
}

static void fill_turns(struct span_account *account, struct query_trace *out)
{
    const struct trace_tree *tree = &account->tree;
    char problems[600];
    out->turns = xcalloc(tree->count, sizeof *out->turns);
    text_clear(&account->texts);
    for (size_t i = 1; i < tree->count; i++) {
        if (tree->spans[i].type != TRACE_TURN || tree->spans[i].parent != 0)
            continue;
        struct turn_trace *turn = &out->turns[out->turn_count++];
        fill_turn(account, i, turn);
        turn->tool_count = write_tools(tree, tree->spans[i].turn, &account->texts);
    }
    trace_problems_text(&tree->problems, problems, sizeof problems);
    text_add(&account->texts, problems);
    point_to_texts(account, out);
}

/* ---- the query ---- */

/* Own time and energy of the query's spans of some types, including sub-agents. */
struct part_sum {
    double seconds, joules;
    int64_t count;
    struct energy energy;
};

static struct part_sum sum_own(const struct span_account *account, enum trace_type first,
                               enum trace_type last)
{
    struct part_sum sum = {0, UNKNOWN, 0, energy_unknown("there are none")};
    for (size_t i = 0; i < account->tree.count; i++) {
        const struct trace_span *span = &account->tree.spans[i];
        if (span->type < first || span->type > last)
            continue;
        sum.count++;
        sum.seconds += span_s(span);
        add_known(&sum.joules, account->spans[i].own_joules);
        energy_add(&sum.energy, &account->spans[i].own);
    }
    if (sum.joules == 0)
        sum.energy.plus_minus = 0;
    return sum;
}

/* Own time of agents and turns: gaps between inferences and tools. */
static struct part_sum gaps_of(const struct span_account *account)
{
    return sum_own(account, TRACE_AGENT, TRACE_TURN);
}

static void fill_events(const struct trace_tree *tree, struct query_trace_ours *out)
{
    const struct trace_problems *problems = &tree->problems;
    out->events = (double)problems->events;
    out->errors = (double)tree->errors;
    out->no_end = (double)problems->no_end;
    out->no_start = (double)problems->no_start;
    out->duplicates = (double)problems->duplicates;
    out->out_of_order = (double)problems->out_of_order;
    out->skewed = (double)problems->skewed;
    out->ambiguous = (double)problems->ambiguous;
    out->unknown_type = (double)problems->unknown_type;
    out->too_many = (double)problems->too_many;
}

void span_account_trace(struct span_account *account, struct query_trace *out)
{
    const struct trace_tree *tree = &account->tree;
    const struct span_energy *all = &account->spans[0];
    double length = span_s(&tree->spans[0]);
    out->total_wall_clock_s = length;
    out->query_gpu_energy_joules = all->gpu_joules;
    out->query_cpu_energy_joules = all->cpu_joules;
    out->query_gpu_power_avg_watts = ratio(all->gpu_joules, length);
    out->query_cpu_power_avg_watts = ratio(all->cpu_joules, length);
    out->query_mbu_avg_pct = account->mbu_avg_pct;
    out->query_mbu_max_pct = account->mbu_max_pct;
    out->lm_energy_measurable = (int8_t)energy_is_measured(&all->energy);
    out->shared_device_warning = (int8_t)(account->concurrency > 1 + 1e-9);
    out->n_retries = (double)tree->retries;
    out->ipw.energy_joules = all->energy.joules;
    out->ipw.plus_minus = all->energy.plus_minus;
    out->ipw.idle_joules = all->energy.idle_joules;
    out->ipw.active_joules = all->energy.active_joules;
    if (is_known(all->energy.joules)) {
        struct part_sum gaps = gaps_of(account);
        out->ipw.gap_joules = gaps.joules;
        out->ipw.gap_plus_minus = gaps.energy.plus_minus;
    }
    out->ipw.coverage = all->energy.coverage;
    out->ipw.method = method_name(all->energy.method);
    out->ipw.source = str_or_null(all->energy.source);
    out->ipw.note = str_or_null(all->energy.note);
    out->ipw.energy_split = is_known(all->energy.joules) ? "spans" : NULL;
    fill_events(tree, &out->ipw);
    out->spans = xcalloc(tree->count, sizeof *out->spans);
    for (size_t i = 0; i < tree->count; i++)
        fill_span(account, i, &out->spans[out->span_count++]);
    fill_turns(account, out);
}

/* ---- the record ---- */

static double sum_requests(const struct trace_tree *tree, size_t offset)
{
    double sum = 0;
    bool any = false;
    for (size_t i = 0; i < tree->count; i++) {
        double count = read_fact(&tree->spans[i], offset);
        if (is_counted(&tree->spans[i], count)) {
            sum += count;
            any = true;
        }
    }
    return any ? sum : UNKNOWN;
}

#define REQUESTS(member) sum_requests(tree, offsetof(struct trace_facts, member))

static int64_t to_count(double value)
{
    return is_known(value) ? (int64_t)value : INTEGER_UNKNOWN;
}

static void fill_tokens(const struct trace_tree *tree, double length, struct record *out)
{
    double input = REQUESTS(input_tokens), output = REQUESTS(output_tokens);
    out->latency_s = length;
    size_t first = 0; /* first answered request */
    while (first < tree->count &&
           (!is_request(&tree->spans[first]) || tree->spans[first].facts.error))
        first++;
    if (first < tree->count && tree->spans[first].facts.first_token)
        out->ttft_s = seconds(tree->spans[first].facts.first_token - tree->spans[0].from);
    out->input_tokens = to_count(input);
    out->output_tokens = to_count(output);
    out->total_tokens = to_count(input + output);
    out->cached_tokens = to_count(REQUESTS(cached_tokens));
    out->reasoning_tokens = to_count(REQUESTS(reasoning_tokens));
    out->per_token_ms = 1e3 * ratio(length, output);
    out->tokens_per_s = output > 0 ? ratio(output, length) : UNKNOWN;
}

/* Whether the phases of all answered requests are known, and their tokens.  A sum over some of them would be too
 * small. */
static bool sum_phase_tokens(const struct trace_tree *tree, double *input, double *output)
{
    *input = *output = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct trace_facts *facts = &tree->spans[i].facts;
        if (!is_request(&tree->spans[i]))
            continue;
        if (has_phases(tree, i)) {
            *input += facts->input_tokens;
            *output += facts->output_tokens;
        } else if (!facts->error && facts->output_tokens != 0) {
            return false;
        }
    }
    return true;
}

static void fill_phases(const struct span_account *account, struct record *out)
{
    double input, output;
    struct part_sum prefill = sum_own(account, TRACE_PREFILL, TRACE_PREFILL),
                    decode = sum_own(account, TRACE_DECODE, TRACE_DECODE);
    if (!prefill.count || !sum_phase_tokens(&account->tree, &input, &output))
        return;
    out->prefill_s = prefill.seconds;
    out->decode_s = decode.seconds;
    out->prefill_ms = 1e3 * prefill.seconds;
    out->decode_ms = 1e3 * decode.seconds;
    out->prefill_joules = prefill.joules;
    out->decode_joules = decode.joules;
    out->prefill_plus_minus = prefill.energy.plus_minus;
    out->decode_plus_minus = decode.energy.plus_minus;
    out->prefill_watts = ratio(prefill.joules, prefill.seconds);
    out->decode_watts = ratio(decode.joules, decode.seconds);
    out->prefill_joules_per_token = ratio(prefill.joules, input);
    out->decode_joules_per_token = ratio(decode.joules, output);
}

static void fill_parts(const struct span_account *account, struct record *out)
{
    const struct trace_tree *tree = &account->tree;
    struct part_sum requests = sum_own(account, TRACE_SUBMODEL, TRACE_INFERENCE),
                    tools = sum_own(account, TRACE_TOOL, TRACE_TOOL);
    int64_t turns = 0;
    for (size_t i = 1; i < tree->count; i++)
        turns += tree->spans[i].type == TRACE_TURN && tree->spans[i].parent == 0;
    out->turns = turns;
    out->tool_calls = tools.count;
    out->inferences = requests.count;
    out->inference_s = requests.seconds;
    out->tool_s = tools.seconds;
    out->inference_joules = requests.joules;
    out->inference_plus_minus = requests.energy.plus_minus;
    out->tool_joules = tools.joules;
    out->tool_plus_minus = tools.energy.plus_minus;
    if (is_known(account->spans[0].energy.joules)) {
        struct part_sum gaps = gaps_of(account);
        out->gap_joules = gaps.joules;
        out->gap_plus_minus = gaps.energy.plus_minus;
    }
}

void span_account_record(const struct span_account *account, struct record *out)
{
    const struct span_energy *all = &account->spans[0];
    double length = span_s(&account->tree.spans[0]), joules = all->energy.joules;
    fill_tokens(&account->tree, length, out);
    fill_phases(account, out);
    fill_parts(account, out);
    out->energy = record_energy_of(&all->energy);
    out->gpu_joules = all->gpu_joules;
    out->cpu_joules = all->cpu_joules;
    out->soc_joules = all->soc_joules;
    out->gpu_window_joules = account->gpu_window_joules;
    out->cpu_window_joules = account->cpu_window_joules;
    out->soc_window_joules = account->soc_window_joules;
    out->window_joules = account->window_joules;
    out->gpu_window_watts.avg = ratio(account->gpu_window_joules, length);
    out->cpu_window_watts.avg = ratio(account->cpu_window_joules, length);
    out->soc_window_watts.avg = ratio(account->soc_window_joules, length);
    out->gpu_watts.avg = ratio(all->gpu_joules, length);
    out->cpu_watts.avg = ratio(all->cpu_joules, length);
    out->soc_watts.avg = ratio(all->soc_joules, length);
    out->energy_basis = out->power_basis = is_known(all->gpu_joules)   ? "gpu"
                                           : is_known(all->soc_joules) ? "soc"
                                           : is_known(all->cpu_joules) ? "cpu"
                                                                       : NULL;
    out->memory_utilization_pct = account->mbu_avg_pct;
    out->joules_per_output_token = ratio(joules, integer_number(out->output_tokens));
    out->joules_per_token = ratio(joules, integer_number(out->total_tokens));
    out->tokens_per_joule = ratio(integer_number(out->output_tokens), joules);
    out->concurrency = account->concurrency;
    out->alone_s = account->alone_s;
}
