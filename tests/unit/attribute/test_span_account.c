/* Energy accounts of agents' queries: properties on random machines and random traces. */
#include "attribute/span_account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"
#include "rundir/record.h"
#include "rundir/traces.h"
#include "sampler/sampler.h"
#include "support/rng.h"
#include "support/scripted.h"
#include "support/unit.h"

#define BEGIN         0.3
#define END           3.7
#define DECODE_WEIGHT 1.5
#define CELL          (1 / 4000.0)

enum { MACHINES = 12, QUERIES_MAX = 5, CPU = 0, GPU = 1, DEVICES = 2 };

/* ---- a random machine ---- */

struct machine {
    double watts[DEVICES][SCRIPTED_POINTS];
    struct scripted_channel channels[DEVICES + 1];
    struct baseline_row idle_rows[DEVICES];
    struct baseline idle;
    bool has_idle;
    struct sampler *sampler;
};

static void machine_start(struct machine *m)
{
    static const char *const IDS[] = {"cpu0", "gpu0"};
    memset(m, 0, sizeof *m);
    for (size_t d = 0; d < DEVICES; d++) {
        double level = rng_between(40, 200);
        for (size_t i = 0; i < SCRIPTED_POINTS; i++) {
            level = rng_uniform() < 0.1 ? rng_between(30, 300) : level;
            m->watts[d][i] = level * rng_between(0.95, 1.05);
        }
        m->channels[d] = (struct scripted_channel){.name = IDS[d],
                                                   .device = IDS[d],
                                                   .quantity = QTY_POWER,
                                                   .scope = d == CPU ? SCOPE_PACKAGE : SCOPE_GPU,
                                                   .profile = m->watts[d]};
        m->idle_rows[d].watts = rng_between(0, 25); /* always below the power: the reference
                                                 * implementation does not limit it */
        memcpy(m->idle_rows[d].device, IDS[d], 5);
    }
    m->idle = (struct baseline){m->idle_rows, DEVICES, 1};
    m->has_idle = rng_uniform() < 0.7;
    const struct scripted_channel *sensors[] = {m->channels, NULL};
    m->sampler = scripted_start(sensors);
}

/* ---- random queries ---- */

struct query {
    struct trace_recorder *recorder;
    unsigned ids;
    double from, to;
    struct span_account *account;
};

static double aligned(double s)
{
    return round(s / CELL) * CELL;
}

static void record(struct query *q, enum trace_type type, enum trace_edge edge, double at,
                   const char *id, const char *parent, const struct trace_facts *facts)
{
    struct trace_event event = trace_event_new(type, edge, "q000000", id);
    event.at = scripted_time(at);
    event.parent = parent;
    event.cpu_busy_s = edge == TRACE_END ? 1 : 0;
    if (facts)
        event.facts = *facts;
    trace_event(q->recorder, &event);
}

/* A span with its two events; its id in `id`. */
static void add_span(struct query *q, enum trace_type type, double from, double to,
                     const char *parent, char id[16])
{
    struct trace_facts facts = trace_event_new(type, TRACE_END, "", NULL).facts;
    snprintf(id, 16, "s%u", q->ids++);
    if (type == TRACE_INFERENCE && rng_uniform() < 0.9) {
        facts.input_tokens = floor(rng_between(1, 2000));
        facts.output_tokens = floor(rng_between(1, 300));
        if (rng_uniform() < 0.8)
            facts.first_token = scripted_time(aligned(rng_between(from, to)));
    }
    if (type == TRACE_TOOL && rng_uniform() < 0.6)
        facts.cpu_s = rng_between(0, 1.2); /* of one second of the machine */
    record(q, type, TRACE_START, from, id, parent, NULL);
    record(q, type, TRACE_END, to, id, parent, &facts);
}

static void add_tools(struct query *q, double from, double to, const char *turn)
{
    char tool[16], agent[16], inference[16];
    for (int n = (int)rng_between(0, 4); n > 0; n--) {
        double begin = aligned(rng_between(from, to)), end = aligned(rng_between(begin, to + 0.1));
        add_span(q, TRACE_TOOL, begin, fmin(end, q->to), turn, tool);
        if (rng_uniform() > 0.3 || end - begin < 0.02)
            continue;
        double a = aligned(rng_between(begin, end)), b = fmin(aligned(rng_between(a, end)), q->to);
        add_span(q, TRACE_AGENT, a, b, tool, agent);
        add_span(q, TRACE_INFERENCE, a, b, agent, inference);
    }
}

static void random_query(struct query *q)
{
    char agent[16], turn[16], inference[16];
    *q = (struct query){.recorder = trace_recorder_new()};
    q->from = aligned(rng_between(BEGIN, END - 0.6));
    q->to = aligned(fmin(END, q->from + rng_between(0.2, 1.5)));
    add_span(q, TRACE_AGENT, q->from, q->to, NULL, agent);
    for (double at = q->from; at < q->to - 0.1;) {
        double begin = aligned(at + rng_between(0, 0.03)),
               end = aligned(begin + rng_between(0.05, 0.4));
        end = fmin(end, q->to);
        double middle = aligned(rng_between(begin, end));
        add_span(q, TRACE_TURN, begin, end, agent, turn);
        add_span(q, TRACE_INFERENCE, begin, middle, turn, inference);
        add_tools(q, middle, end, turn);
        at = end;
    }
}

static void account_for(struct query *q, struct sharing *sharing, uint64_t id)
{
    struct trace_events events;
    struct trace_tree tree;
    trace_recorder_take(q->recorder, "q000000", &events);
    trace_tree_build(&events, scripted_time(q->from), scripted_time(q->to), &tree);
    assert_int_equal(sharing_begin(sharing, id, scripted_time(q->from)), ERR_OK);
    q->account = span_account_new(&tree, q);
    assert_non_null(q->account);
    assert_int_equal(span_account_submit(q->account, sharing, id), ERR_OK);
    trace_recorder_free(q->recorder);
}

static void keep_share(void *context, const struct share *share)
{
    size_t *complete = context;
    assert_true(span_account_owns(share));
    if (span_account_take(share))
        ++*complete;
}

/* ---- reference implementation: the same rule, in small time steps ---- */

/* Whether a span is active itself at a time: none of its child spans is. */
static bool is_active(const struct trace_tree *tree, size_t i, nanos t)
{
    const struct trace_span *span = &tree->spans[i];
    bool is_request = span->type == TRACE_INFERENCE;
    if (span->type >= TRACE_PREFILL || t < span->from || t >= span->to)
        return false;
    for (size_t k = 0; !is_request && k < tree->count; k++)
        if (tree->spans[k].parent == (int)i && t >= tree->spans[k].from && t < tree->spans[k].to)
            return false;
    return true;
}

static double tokens_in(const struct trace_span *span, nanos from, nanos to)
{
    nanos first = span->facts.first_token ? span->facts.first_token : span->to;
    nanos decode_from = first < span->to ? first : span->from;
    double sum = 0;
    if (from < first)
        sum += span->facts.input_tokens * (double)(to - from) / (double)(first - span->from);
    if (from >= decode_from)
        sum += DECODE_WEIGHT * span->facts.output_tokens * (double)(to - from) /
               (double)(span->to - decode_from);
    return sum;
}

struct busy {
    const struct trace_span *span;
    double *joules; /* self energy, by device */
    size_t query, in_query;
    double weight;
};

static size_t find_active(struct query *queries, size_t count, double **joules, nanos from,
                          nanos to, struct busy *out)
{
    size_t found = 0;
    for (size_t q = 0; q < count; q++) {
        const struct trace_tree *tree = &queries[q].account->tree;
        size_t before = found;
        for (size_t i = 0; i < tree->count; i++)
            if (is_active(tree, i, from + (to - from) / 2)) {
                const struct trace_span *span = &tree->spans[i];
                double weight = span->type == TRACE_INFERENCE ? tokens_in(span, from, to) : 0;
                out[found++] = (struct busy){span, joules[q] + DEVICES * i, q, 0, weight};
            }
        for (size_t k = before; k < found; k++)
            out[k].in_query = found - before;
    }
    return found;
}

/* Sums over the spans that are active in a cell. */
struct cell {
    double tokens, known; /* CPU share of the tools that have one */
    double queries, inferences, tools;
    double rest_among; /* spans that share the rest of the CPU */
};

static struct cell cell_of(const struct busy *all, size_t count)
{
    struct cell cell = {0};
    for (size_t i = 0; i < count; i++) {
        bool is_tool = all[i].span->type == TRACE_TOOL;
        bool is_inference = all[i].span->type == TRACE_INFERENCE;
        bool is_unknown = is_tool && isnan(all[i].span->cpu_share);
        cell.queries += i == 0 || all[i].query != all[i - 1].query;
        cell.inferences += is_inference;
        cell.tools += is_tool;
        cell.rest_among += is_inference || is_unknown;
        cell.known += is_tool && !is_unknown ? all[i].span->cpu_share : 0;
        cell.tokens += all[i].weight;
    }
    return cell;
}

static double tool_cpu(const struct cell *cell, double share, double used)
{
    if (isnan(share))
        return (1 - used) / cell->rest_among;
    if (cell->known > 0)
        return used * share / cell->known;
    return cell->rest_among > 0 ? 0 : 1 / cell->tools;
}

static void oracle_cell(struct busy *all, size_t count, const double *active, const double *idle)
{
    struct cell cell = cell_of(all, count);
    double used = cell.rest_among > 0 ? fmin(1, cell.known) : cell.known > 0;
    for (size_t i = 0; i < count; i++) {
        const struct trace_span *span = all[i].span;
        double part[DEVICES] = {0}, even = 1 / (cell.queries * (double)all[i].in_query);
        if (span->type == TRACE_INFERENCE) {
            part[GPU] = cell.tokens > 0 ? all[i].weight / cell.tokens : 1 / cell.inferences;
            part[CPU] = part[GPU] * (1 - used) * cell.inferences / cell.rest_among;
        } else if (span->type == TRACE_TOOL) {
            part[GPU] = cell.inferences > 0 ? 0 : 1 / cell.tools;
            part[CPU] = tool_cpu(&cell, span->cpu_share, used);
        } else if (!(cell.inferences > 0) && !(cell.tools > 0)) {
            part[GPU] = part[CPU] = even;
        }
        for (size_t d = 0; d < DEVICES; d++)
            all[i].joules[d] += part[d] * active[d] + idle[d] * even;
    }
}

static void oracle(struct machine *m, struct query *queries, size_t count, double **joules)
{
    static struct busy busy[1000];
    long cells = lround((END - BEGIN) / CELL);
    for (long c = 0; c < cells; c++) {
        nanos from = scripted_time(BEGIN + (double)c * CELL),
              to = scripted_time(BEGIN + (double)(c + 1) * CELL);
        double active[DEVICES], idle[DEVICES];
        size_t found = find_active(queries, count, joules, from, to, busy);
        for (size_t d = 0; d < DEVICES; d++) {
            struct window window;
            assert_int_equal(sampler_window(m->sampler, 0, d, from, to, &window), ERR_OK);
            idle[d] = m->has_idle ? m->idle_rows[d].watts * window.covered_s : 0;
            active[d] = window.sum - idle[d];
        }
        oracle_cell(busy, found, active, idle);
    }
}

/* ---- properties ---- */

static void assert_adds_up(const struct span_account *account)
{
    double own = 0;
    for (size_t i = 0; i < account->tree.count; i++) {
        const struct span_energy *spent = &account->spans[i];
        if (account->tree.spans[i].type >= TRACE_PREFILL)
            continue;
        double children = 0, scale = account->spans[0].energy.joules;
        own += spent->own_joules;
        for (size_t k = i + 1; k < account->tree.count; k++)
            if (account->tree.spans[k].parent == (int)i &&
                account->tree.spans[k].type < TRACE_PREFILL &&
                account->spans[k].energy.method != METHOD_NONE)
                children += account->spans[k].energy.joules;
        if (spent->energy.method == METHOD_NONE)
            continue; /* zero duration */
        assert_near(spent->energy.joules, spent->own_joules + children, 1e-9 * scale);
        assert_near(spent->gpu_joules + spent->cpu_joules, spent->energy.joules, 1e-9 * scale);
        assert_true(spent->energy.plus_minus >= 0 && spent->energy.plus_minus < scale);
        if (!isnan(spent->energy.idle_joules))
            assert_near(spent->energy.idle_joules + spent->energy.active_joules,
                        spent->energy.joules, 1e-9 * scale);
    }
    assert_near(own, account->spans[0].energy.joules, 1e-9 * own);
}

static void assert_phases(const struct span_account *account)
{
    for (size_t i = 0; i < account->tree.count; i++) {
        double phases = 0;
        bool any = false;
        for (size_t k = i + 1; k < account->tree.count; k++)
            if (account->tree.spans[k].parent == (int)i &&
                account->tree.spans[k].type >= TRACE_PREFILL &&
                account->spans[k].energy.method != METHOD_NONE) {
                phases += account->spans[k].energy.joules;
                any = true;
            }
        if (any)
            assert_near(phases, account->spans[i].energy.joules, 1e-9 * (1 + phases));
    }
}

static void assert_conserved(struct machine *m, struct sharing *sharing, struct query *queries,
                             size_t count)
{
    struct ledger ledger;
    struct sharing_device_sum sums[DEVICES];
    double agents = 0, rest = 0;
    assert_int_equal(
        ledger_take(m->sampler, scripted_time(BEGIN), scripted_time(END), NULL, &ledger), ERR_OK);
    assert_int_equal(sharing_sums(sharing, sums, DEVICES), DEVICES);
    for (size_t i = 0; i < count; i++)
        agents += queries[i].account->spans[0].energy.joules;
    for (size_t d = 0; d < DEVICES; d++)
        rest +=
            (isnan(sums[d].idle_joules) ? 0 : sums[d].idle_joules) + sums[d].unattributed_joules;
    assert_near(agents + rest, ledger.total.joules, 1e-3 * ledger.total.joules);
    assert_near(agents + rest, ledger.total.joules, 1e-9 * ledger.total.joules);
    ledger_release(&ledger);
}

static void assert_as_oracle(struct machine *m, struct query *queries, size_t count)
{
    double *joules[QUERIES_MAX];
    for (size_t q = 0; q < count; q++)
        joules[q] = calloc(queries[q].account->tree.count * DEVICES, sizeof(double));
    oracle(m, queries, count, joules);
    for (size_t q = 0; q < count; q++) {
        const struct span_account *account = queries[q].account;
        for (size_t i = 0; i < account->tree.count; i++) {
            if (account->tree.spans[i].type >= TRACE_PREFILL)
                continue;
            double expected = joules[q][DEVICES * i + CPU] + joules[q][DEVICES * i + GPU];
            assert_near(account->spans[i].own_joules, expected, 1e-4 + 1e-4 * expected);
        }
        free(joules[q]);
    }
}

static void every_joule_belongs_to_one_span(void **state)
{
    (void)state;
    static struct machine machine;
    struct query queries[QUERIES_MAX];
    for (unsigned i = 0; i < (test_is_instrumented() ? 2 : MACHINES); i++) {
        rng_seed(77 + i);
        machine_start(&machine);
        size_t count = 1 + (size_t)(rng_uniform() * QUERIES_MAX), complete = 0;
        struct sharing *sharing =
            sharing_new(machine.sampler,
                        &(struct sharing_options){.from = scripted_time(BEGIN),
                                                  .idle = machine.has_idle ? &machine.idle : NULL,
                                                  .decode_weight = DECODE_WEIGHT});
        for (size_t q = 0; q < count; q++) {
            random_query(&queries[q]);
            account_for(&queries[q], sharing, q);
        }
        assert_int_equal(sharing_advance(sharing, scripted_time(END), keep_share, &complete),
                         ERR_OK);
        assert_int_equal(complete, count);
        assert_conserved(&machine, sharing, queries, count);
        for (size_t q = 0; q < count; q++) {
            assert_adds_up(queries[q].account);
            assert_phases(queries[q].account);
        }
        assert_as_oracle(&machine, queries, count);
        for (size_t q = 0; q < count; q++)
            span_account_free(queries[q].account);
        sharing_free(sharing);
        scripted_stop(machine.sampler);
    }
}

/* ---- one query with figures that are computed by hand ---- */

/* 100 W CPU and 200 W GPU, of which 20 W and 50 W are idle. An inference for 0.4 s, then two
 * concurrent tools for 0.2 s, with a quarter and three quarters of the machine's CPU time, then 0.1
 * s without spans. */
static struct span_account *simple_account(struct sampler *sampler, struct sharing *sharing)
{
    struct query q = {.recorder = trace_recorder_new(), .from = 1, .to = 1.7};
    struct trace_facts tokens = trace_event_new(TRACE_INFERENCE, TRACE_END, "", NULL).facts;
    struct trace_facts cpu[2] = {tokens, tokens};
    size_t complete = 0;
    (void)sampler;
    tokens.input_tokens = 100;
    tokens.output_tokens = 20;
    tokens.first_token = scripted_time(1.1);
    cpu[0].cpu_s = 0.25;
    cpu[1].cpu_s = 0.75;
    record(&q, TRACE_INFERENCE, TRACE_START, 1, "i", NULL, NULL);
    record(&q, TRACE_INFERENCE, TRACE_END, 1.4, "i", NULL, &tokens);
    record(&q, TRACE_TOOL, TRACE_START, 1.4, "x", NULL, NULL);
    record(&q, TRACE_TOOL, TRACE_START, 1.4, "y", NULL, NULL);
    record(&q, TRACE_TOOL, TRACE_END, 1.6, "x", NULL, &cpu[0]);
    record(&q, TRACE_TOOL, TRACE_END, 1.6, "y", NULL, &cpu[1]);
    account_for(&q, sharing, 3);
    assert_int_equal(sharing_advance(sharing, scripted_time(2), keep_share, &complete), ERR_OK);
    assert_int_equal(complete, 1);
    return q.account;
}

static void run_simple(void (*check)(struct span_account *account))
{
    static const struct scripted_channel CHANNELS[] = {{.name = "p",
                                                        .device = "cpu0",
                                                        .quantity = QTY_POWER,
                                                        .scope = SCOPE_PACKAGE,
                                                        .value = 100,
                                                        .relative_accuracy = 0.05},
                                                       {.name = "g",
                                                        .device = "gpu0",
                                                        .quantity = QTY_POWER,
                                                        .scope = SCOPE_GPU,
                                                        .value = 200,
                                                        .relative_accuracy = 0.05},
                                                       {.name = NULL}};
    struct baseline_row rows[] = {{"cpu0", 20, 0}, {"gpu0", 50, 0}};
    struct baseline idle = {rows, 2, 1};
    const struct scripted_channel *sensors[] = {CHANNELS, NULL};
    struct sampler *sampler = scripted_start(sensors);
    struct sharing *sharing =
        sharing_new(sampler, &(struct sharing_options){.from = scripted_time(0.5), .idle = &idle});
    struct span_account *account = simple_account(sampler, sharing);
    check(account);
    span_account_free(account);
    sharing_free(sharing);
    scripted_stop(sampler);
}

static void check_figures(struct span_account *account)
{
    /* query, turn, inference, prefill, decode, x, y */
    static const double OWN[] = {30, 0, 120, 30, 90, 0.25 * 16 + 15 + 7, 0.75 * 16 + 15 + 7};
    assert_int_equal(account->tree.count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_near(account->spans[i].own_joules, OWN[i], 1e-6);
    assert_near(account->spans[0].energy.joules, 210, 1e-6);
    assert_near(account->spans[0].energy.idle_joules, 49, 1e-6);
    assert_near(account->spans[0].gpu_joules, 140, 1e-6);
    assert_near(account->spans[1].energy.joules, 180, 1e-6);
    assert_near(account->spans[1].peak_watts, 200, 1e-6);
    /* CPU energy of each tool's processes. */
    assert_near(account->spans[5].cpu_joules, 0.25 * 16 + 2, 1e-6);
    assert_near(account->spans[6].cpu_joules, 0.75 * 16 + 2, 1e-6);
    /* The query's own 0.1 s: 10 J of one sensor and 20 J of the other, each to 5 %. */
    assert_true(account->spans[0].own.plus_minus > hypot(0.05 * 10, 0.05 * 20) - 1e-9);
    assert_true(account->spans[0].own.plus_minus < account->spans[0].energy.plus_minus);
    assert_near(account->spans[0].own.idle_joules, 7, 1e-6);
}

static void energy_is_attributed_as_documented(void **state)
{
    (void)state;
    run_simple(check_figures);
}

static void check_trace(struct span_account *account)
{
    struct query_trace trace;
    query_trace_init(&trace);
    span_account_trace(account, &trace);
    query_trace_compute(&trace);
    assert_int_equal(trace.turn_count, 1);
    assert_int_equal(trace.span_count, 7);
    assert_near(trace.total_wall_clock_s, 0.7, 1e-9);
    assert_near(trace.query_gpu_energy_joules, 140, 1e-6);
    assert_near(trace.query_cpu_energy_joules, 70, 1e-6);
    assert_near(trace.total_output_tokens, 20, 0);
    assert_near(trace.energy_per_output_token_joules, 7, 1e-6);
    assert_near(trace.total_tool_calls, 2, 0);
    assert_near(trace.ipw.gap_joules, 30, 1e-6);
    assert_near(trace.ipw.gap_plus_minus, account->spans[0].own.plus_minus, 1e-12);
    assert_near(trace.spans[0].own_plus_minus, trace.ipw.gap_plus_minus, 1e-12);
    assert_near(trace.spans[0].own_idle_joules, 7, 1e-6);
    assert_near(trace.spans[1].own_plus_minus, 0, 0); /* all of the turn is in its child spans */
    assert_string_equal(trace.ipw.energy_split, "spans");
    assert_string_equal(trace.ipw.method, "integral");
    const struct turn_trace *turn = &trace.turns[0];
    assert_string_equal(turn->tools_called.text, "[\"unknown\",\"unknown\"]");
    assert_string_equal(turn->tool_latencies_s.text, "{\"unknown\":0.4}");
    assert_int_equal(turn->has_parallel_tools, 1);
    assert_near(turn->gpu_energy_joules, 120, 1e-6);
    assert_near(turn->gpu_power_avg_watts, 200, 1e-6);
    assert_string_equal(trace.spans[5].share, "cpu_time");
    assert_string_equal(trace.spans[2].share, "tokens");
    assert_string_equal(trace.spans[3].share, "tokens"); /* a phase, like its inference */
    query_trace_release(&trace);
}

static void an_account_is_written_to_a_trace(void **state)
{
    (void)state;
    run_simple(check_trace);
}

static void check_record(struct span_account *account)
{
    struct record record;
    record_init(&record);
    span_account_record(account, &record);
    assert_near(record.energy.joules, 210, 1e-6);
    assert_near(record.gpu_joules, 140, 1e-6);
    assert_near(record.latency_s, 0.7, 1e-9);
    assert_near(record.ttft_s, 0.1, 1e-9);
    assert_int_equal(record.input_tokens, 100);
    assert_int_equal(record.total_tokens, 120);
    assert_near(record.prefill_joules, 30, 1e-6);
    assert_near(record.decode_s, 0.3, 1e-9);
    assert_true(record.prefill_plus_minus > 0 && record.decode_plus_minus > 0);
    assert_near(record.prefill_plus_minus, account->spans[3].energy.plus_minus, 1e-12);
    assert_near(record.decode_plus_minus, account->spans[4].energy.plus_minus, 1e-12);
    assert_near(record.decode_joules_per_token, 4.5, 1e-6);
    assert_near(record.inference_joules + record.tool_joules + record.gap_joules, 210, 1e-6);
    assert_near(record.tool_joules, 60, 1e-6);
    /* 60 J of two sensors, 20 and 40 J, each to 5 %; 40 and 80 J, 10 and 20 J in the same way. */
    assert_true(record.tool_plus_minus > hypot(1, 2) - 1e-9 && record.tool_plus_minus < 60);
    assert_true(record.inference_plus_minus > hypot(2, 4) - 1e-9);
    assert_true(record.gap_plus_minus > hypot(0.5, 1) - 1e-9 && record.gap_plus_minus < 30);
    assert_int_equal(record.turns, 1);
    assert_int_equal(record.tool_calls, 2);
    assert_near(record.tool_s, 0.4, 1e-9);
    assert_near(record.concurrency, 1, 1e-9);
    assert_string_equal(record.energy_basis, "gpu");
}

static void an_account_is_written_to_a_record(void **state)
{
    (void)state;
    run_simple(check_record);
}

/* Phases of a query are the sums over all of its answers, or unknown; a failed attempt has none. */
static void query_phases_are_unknown_unless_every_answer_has_them(void **state)
{
    (void)state;
    static const struct scripted_channel CHANNELS[] = {
        {.name = "g", .device = "gpu0", .quantity = QTY_POWER, .scope = SCOPE_GPU, .value = 200},
        {.name = NULL}};
    static const char *const ERRORS[] = {NULL, "timeout"};
    const struct scripted_channel *sensors[] = {CHANNELS, NULL};
    struct sampler *sampler = scripted_start(sensors);
    for (size_t i = 0; i < 2; i++) {
        struct sharing *sharing =
            sharing_new(sampler, &(struct sharing_options){.from = scripted_time(0.5)});
        struct query q = {.recorder = trace_recorder_new(), .from = 1, .to = 1.6};
        struct trace_facts first = trace_event_new(TRACE_INFERENCE, TRACE_END, "", NULL).facts;
        struct record out;
        size_t complete = 0;
        first.input_tokens = 50;
        first.output_tokens = 10;
        first.error = ERRORS[i];
        struct trace_facts second = first;
        second.error = NULL;
        second.first_token = scripted_time(1.3);
        record(&q, TRACE_INFERENCE, TRACE_START, 1, "i", NULL, NULL);
        record(&q, TRACE_INFERENCE, TRACE_END, 1.2, "i", NULL, &first);
        record(&q, TRACE_INFERENCE, TRACE_START, 1.2, "k", NULL, NULL);
        record(&q, TRACE_INFERENCE, TRACE_END, 1.6, "k", NULL, &second);
        account_for(&q, sharing, 3);
        assert_int_equal(sharing_advance(sharing, scripted_time(2), keep_share, &complete), ERR_OK);
        assert_int_equal(complete, 1);
        record_init(&out);
        span_account_record(q.account, &out);
        assert_near(out.inference_joules, 120, 1e-6);
        assert_int_equal(isnan(out.prefill_joules), !ERRORS[i]);
        assert_int_equal(isnan(out.decode_s), !ERRORS[i]);
        if (ERRORS[i]) { /* per token of the answer with known phases */
            assert_near(out.prefill_joules_per_token, 20.0 / 50, 1e-6);
            assert_near(out.decode_joules_per_token, 60.0 / 10, 1e-6);
        }
        span_account_free(q.account);
        sharing_free(sharing);
    }
    scripted_stop(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_attributed_as_documented),
        cmocka_unit_test(an_account_is_written_to_a_trace),
        cmocka_unit_test(an_account_is_written_to_a_record),
        cmocka_unit_test(query_phases_are_unknown_unless_every_answer_has_them),
        cmocka_unit_test(every_joule_belongs_to_one_span),
    };
    return RUN_TESTS(tests);
}
