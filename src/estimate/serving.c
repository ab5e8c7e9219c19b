/* Discrete-event simulation of continuous batching.  Every replica repeats steps while it has requests.  A step first
 * schedules the running requests, in the order of their admission: one token of each that decodes, and as many tokens
 * of a prompt as the token budget allows.  Then it admits waiting requests.  A request that finds no free block in the
 * KV cache preempts the one admitted last, which loses its blocks, waits at the front of the queue, and is recomputed.
 * A request goes to the replica with the fewest in flight.
 *
 * Inter-token latencies are too many to store: they are counted in a histogram with buckets 0.1 % wide. */
#include "estimate/serving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

const double SERVING_QUANTILE[SERVING_QUANTILES] = {0.5, 0.95, 0.99};
const char *const SERVING_QUANTILE_NAME[SERVING_QUANTILES] = {"p50", "p95", "p99"};

enum { NONE = -1 };

/* ---- histogram ---- */

enum {
    FRACTION_BITS = 10, /* buckets per octave: 2^10 */
    LOWEST = -40,       /* 2^-40 s is 1 ps */
    OCTAVES = 72,       /* up to 2^32 s */
    BUCKETS = OCTAVES << FRACTION_BITS,
};

struct histogram {
    uint64_t *counts;
    uint64_t count;
    double sum;
};

static size_t bucket_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits); /* positive: exponent and fraction in ascending order */
    int64_t at =
        (int64_t)(bits >> (52 - FRACTION_BITS)) - ((int64_t)(1023 + LOWEST) << FRACTION_BITS);
    return at < 0 ? 0 : at >= BUCKETS ? BUCKETS - 1 : (size_t)at;
}

static void histogram_add(struct histogram *histogram, double value, uint64_t times)
{
    histogram->counts[bucket_of(value)] += times;
    histogram->count += times;
    histogram->sum += value * (double)times;
}

/* The middle of its bucket. */
static double histogram_quantile(const struct histogram *histogram, double p)
{
    if (!histogram->count)
        return UNKNOWN;
    uint64_t before = 0, wanted = (uint64_t)floor(p * (double)(histogram->count - 1));
    for (size_t i = 0; i < BUCKETS; i++) {
        before += histogram->counts[i];
        if (before > wanted)
            return ldexp(1 + ((double)(i & ((1 << FRACTION_BITS) - 1)) + 0.5) /
                                 (1 << FRACTION_BITS),
                         LOWEST + (int)(i >> FRACTION_BITS));
    }
    return UNKNOWN;
}

/* ---- state ---- */

struct progress {
    int64_t computed, generated; /* tokens in the KV cache; tokens of the output */
    int64_t blocks;
    double last_s; /* time of its last token */
    double first_s;
    long next; /* in the queue; NONE: the last */
    int chunk; /* tokens of it in the current step */
};

struct replica {
    long *running; /* in order of admission */
    size_t running_count, in_flight, waiting_count;
    long first_waiting, last_waiting;
    bool is_stepping;
    double end_s;          /* end of the current step, or of the previous one */
    double previous_end_s; /* end of the previous step: most tokens follow those of that step */
    int64_t free_blocks;
    struct serving_cost cost;
};

struct simulation {
    const struct serving_run *run;
    struct progress *requests;
    struct replica *replicas;
    struct histogram itl;
    double *ttft_s, *tpot_s, *latency_s;
    size_t tpot_count;
    int64_t blocks; /* KV-cache blocks per replica */
    int64_t max_blocks_used;
    double last_event_s;   /* time up to which `batch` ... are integrated */
    double in_flight_area; /* requests x seconds */
    size_t in_flight;
    struct serving_result *out;
};

static const struct serving_request *request_at(const struct simulation *sim, long index)
{
    return &sim->run->load->items[index];
}

/* ---- KV cache ---- */

static bool reserve(struct simulation *sim, struct replica *replica, long index, int64_t tokens)
{
    const struct serving_policy *policy = sim->run->policy;
    struct progress *request = &sim->requests[index];
    const struct serving_request *asked = request_at(sim, index);
    if (policy->reserves)
        tokens = asked->input + asked->output;
    int64_t blocks = (tokens + policy->block_tokens - 1) / policy->block_tokens;
    int64_t more = blocks - request->blocks;
    if (more <= 0)
        return true;
    if (more > replica->free_blocks)
        return false;
    replica->free_blocks -= more;
    request->blocks = blocks;
    int64_t used = sim->blocks - replica->free_blocks;
    sim->max_blocks_used = used > sim->max_blocks_used ? used : sim->max_blocks_used;
    return true;
}

static void release_blocks(struct simulation *sim, struct replica *replica, long index)
{
    replica->free_blocks += sim->requests[index].blocks;
    sim->requests[index].blocks = 0;
}

/* ---- scheduling ---- */

static void wait_last(struct simulation *sim, struct replica *replica, long index)
{
    sim->requests[index].next = NONE;
    if (replica->first_waiting == NONE)
        replica->first_waiting = index;
    else
        sim->requests[replica->last_waiting].next = index;
    replica->last_waiting = index;
    replica->waiting_count++;
}

static void wait_first(struct simulation *sim, struct replica *replica, long index)
{
    sim->requests[index].next = replica->first_waiting;
    if (replica->first_waiting == NONE)
        replica->last_waiting = index;
    replica->first_waiting = index;
    replica->waiting_count++;
}

static void preempt_last(struct simulation *sim, struct replica *replica)
{
    long index = replica->running[--replica->running_count];
    release_blocks(sim, replica, index);
    sim->requests[index].computed = 0;
    wait_first(sim, replica, index);
    sim->out->preemptions++;
}

/* Known tokens that are not computed yet: 1 while decoding. */
static int64_t tokens_left(const struct simulation *sim, long index)
{
    const struct progress *request = &sim->requests[index];
    return request_at(sim, index)->input + request->generated - request->computed;
}

static void add_chunk(struct simulation *sim, long index, int64_t tokens, struct serving_step *step)
{
    struct progress *request = &sim->requests[index];
    double before = (double)request->computed, count = (double)tokens;
    request->chunk = (int)tokens;
    step->sampled += tokens == tokens_left(sim, index);
    if (tokens == 1 && request->generated && before > 0) {
        step->sequences++;
        step->context += before + 1;
        return;
    }
    step->prompt_tokens += count;
    step->pairs += count * (count + 2 * before);
    if (before > 0) {
        step->continued++;
        step->continued_context += before + count;
    } else {
        step->begun++;
    }
}

/* False if it was preempted itself. */
static bool reserve_or_preempt(struct simulation *sim, struct replica *replica, size_t at,
                               int64_t tokens)
{
    long index = replica->running[at];
    while (!reserve(sim, replica, index, sim->requests[index].computed + tokens)) {
        bool is_self = replica->running_count - 1 == at;
        preempt_last(sim, replica);
        if (is_self)
            return false;
    }
    return true;
}

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void schedule(struct simulation *sim, struct replica *replica, struct serving_step *step)
{
    const struct serving_policy *policy = sim->run->policy;
    int64_t budget = policy->max_tokens;
    double preempted = sim->out->preemptions;
    for (size_t i = 0; i < replica->running_count; i++) {
        long index = replica->running[i];
        int64_t tokens = minimum(tokens_left(sim, index), budget);
        sim->requests[index].chunk = 0;
        if (tokens == 0)
            continue;
        if (!reserve_or_preempt(sim, replica, i, tokens))
            break;
        add_chunk(sim, index, tokens, step);
        budget -= tokens;
    }
    while (sim->out->preemptions == preempted && replica->first_waiting != NONE && budget > 0 &&
           replica->running_count < policy->max_sequences) {
        long index = replica->first_waiting;
        int64_t tokens = minimum(tokens_left(sim, index), budget);
        if (!reserve(sim, replica, index, tokens))
            break;
        replica->first_waiting = sim->requests[index].next;
        replica->waiting_count--;
        replica->running[replica->running_count++] = index;
        add_chunk(sim, index, tokens, step);
        budget -= tokens;
    }
}

static void start_step(struct simulation *sim, struct replica *replica, double now)
{
    struct serving_step step = {0};
    struct serving_result *out = sim->out;
    schedule(sim, replica, &step);
    replica->cost = sim->run->model->cost(sim->run->model->context, &step);
    replica->cost.seconds *= sim->run->time_scale;
    replica->previous_end_s = replica->end_s;
    replica->end_s = now + replica->cost.seconds;
    replica->is_stepping = true;
    out->steps++;
    out->busy += replica->cost.seconds;
    out->step_j += replica->cost.joules;
    out->batch += replica->cost.seconds * (double)replica->running_count;
    out->waiting += replica->cost.seconds * (double)replica->waiting_count;
}

/* ---- tokens ---- */

static void count_in_flight(struct simulation *sim, double now)
{
    sim->in_flight_area += (now - sim->last_event_s) * (double)sim->in_flight;
    sim->last_event_s = now;
}

static void finish_request(struct simulation *sim, struct replica *replica, long index)
{
    const struct serving_request *asked = request_at(sim, index);
    const struct progress *request = &sim->requests[index];
    double end = replica->end_s;
    release_blocks(sim, replica, index);
    count_in_flight(sim, end);
    replica->in_flight--;
    sim->in_flight--;
    sim->latency_s[index] = end - asked->arrival / sim->run->rate;
    if (asked->output > 1)
        sim->tpot_s[sim->tpot_count++] = (end - request->first_s) / (double)(asked->output - 1);
}

/* Every sequence with all tokens computed yields one; complete ones are removed. */
static void finish_step(struct simulation *sim, struct replica *replica)
{
    size_t kept = 0;
    uint64_t in_time = 0; /* tokens that follow those of the previous step */
    double end = replica->end_s;
    replica->is_stepping = false;
    for (size_t i = 0; i < replica->running_count; i++) {
        long index = replica->running[i];
        struct progress *request = &sim->requests[index];
        request->computed += request->chunk;
        if (!request->chunk || tokens_left(sim, index) > 0) {
            replica->running[kept++] = index;
            continue;
        }
        if (request->generated++ == 0) {
            request->first_s = end;
            sim->ttft_s[index] = end - request_at(sim, index)->arrival / sim->run->rate;
        } else if (request->last_s == replica->previous_end_s) {
            in_time++;
        } else {
            histogram_add(&sim->itl, end - request->last_s, 1);
        }
        request->last_s = end;
        if (request->generated < request_at(sim, index)->output)
            replica->running[kept++] = index;
        else
            finish_request(sim, replica, index);
    }
    replica->running_count = kept;
    if (in_time)
        histogram_add(&sim->itl, end - replica->previous_end_s, in_time);
}

/* ---- events ---- */

/* Finishes and starts steps until `now`. */
static void advance(struct simulation *sim, double now)
{
    unsigned replicas = sim->run->policy->replicas;
    for (;;) {
        struct replica *next = NULL;
        for (unsigned r = 0; r < replicas; r++) {
            struct replica *one = &sim->replicas[r];
            if (one->is_stepping && one->end_s <= now && (!next || one->end_s < next->end_s))
                next = one;
        }
        if (!next)
            return;
        finish_step(sim, next);
        if (next->in_flight)
            start_step(sim, next, next->end_s);
    }
}

static void arrive(struct simulation *sim, size_t index, double now)
{
    unsigned replicas = sim->run->policy->replicas;
    struct replica *min = &sim->replicas[index % replicas];
    for (unsigned i = 1; i < replicas; i++) {
        struct replica *one = &sim->replicas[(index + i) % replicas];
        min = one->in_flight < min->in_flight ? one : min;
    }
    count_in_flight(sim, now);
    sim->in_flight++;
    min->in_flight++;
    wait_last(sim, min, (long)index);
    if (!min->is_stepping)
        start_step(sim, min, now);
}

/* ---- results ---- */

static void spread_of(double *values, size_t count, struct serving_spread *out)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    out->mean = count ? sum / (double)count : UNKNOWN;
    for (int i = 0; !count && i < SERVING_QUANTILES; i++)
        out->at[i] = UNKNOWN;
    if (count)
        select_quantiles(values, count, SERVING_QUANTILE, SERVING_QUANTILES, out->at);
}

/* Call before the times to first token are reordered. */
static bool queue_grows(const double *ttft_s, size_t count)
{
    double halves[2] = {0, 0};
    size_t half = count / 2;
    for (size_t i = 0; i < 2 * half; i++)
        halves[i >= half] += ttft_s[i];
    return half >= 10 && halves[1] > 2 * halves[0];
}

static void fill_result(struct simulation *sim)
{
    const struct serving_run *run = sim->run;
    const struct serving_load *load = run->load;
    struct serving_result *out = sim->out;
    double duration = 0, tokens = 0, input = 0, replicas = run->policy->replicas;
    for (unsigned r = 0; r < run->policy->replicas; r++)
        duration = fmax(duration, sim->replicas[r].end_s);
    for (size_t i = 0; i < load->count; i++) {
        tokens += (double)load->items[i].output;
        input += (double)load->items[i].input;
    }
    out->grows = queue_grows(sim->ttft_s, load->count);
    spread_of(sim->ttft_s, load->count, &out->ttft_s);
    spread_of(sim->tpot_s, sim->tpot_count, &out->tpot_s);
    spread_of(sim->latency_s, load->count, &out->latency_s);
    out->itl_s.mean = sim->itl.count ? sim->itl.sum / (double)sim->itl.count : UNKNOWN;
    for (int i = 0; i < SERVING_QUANTILES; i++)
        out->itl_s.at[i] = histogram_quantile(&sim->itl, SERVING_QUANTILE[i]);
    out->duration_s = duration;
    out->idle_j = run->model->idle_w * (replicas * duration - out->busy);
    out->joules = out->step_j + out->idle_j;
    out->joules_per_token = out->joules / tokens;
    out->average_w = out->joules / duration;
    out->tokens_per_s = tokens / duration;
    out->input_tokens_per_s = input / duration;
    out->requests_per_s = (double)load->count / duration;
    out->batch = out->busy > 0 ? out->batch / out->busy : 0;
    out->waiting /= duration;
    out->busy /= replicas * duration;
    out->in_flight = sim->in_flight_area / duration;
    out->kv_peak_tokens = (double)sim->max_blocks_used * run->policy->block_tokens;
}

/* ---- a simulation ---- */

static void release(struct simulation *sim)
{
    for (unsigned r = 0; r < sim->run->policy->replicas; r++)
        free(sim->replicas[r].running);
    free(sim->replicas);
    free(sim->requests);
    free(sim->ttft_s);
    free(sim->tpot_s);
    free(sim->latency_s);
    free(sim->itl.counts);
}

static void allocate(struct simulation *sim)
{
    const struct serving_policy *policy = sim->run->policy;
    size_t count = sim->run->load->count;
    sim->requests = xcalloc(count, sizeof *sim->requests);
    sim->ttft_s = xmalloc(count * sizeof *sim->ttft_s);
    sim->tpot_s = xmalloc(count * sizeof *sim->tpot_s);
    sim->latency_s = xmalloc(count * sizeof *sim->latency_s);
    sim->itl.counts = xcalloc(BUCKETS, sizeof *sim->itl.counts);
    sim->replicas = xcalloc(policy->replicas, sizeof *sim->replicas);
    for (unsigned r = 0; r < policy->replicas; r++) {
        struct replica *replica = &sim->replicas[r];
        replica->running = xcalloc(policy->max_sequences, sizeof *replica->running);
        replica->first_waiting = replica->last_waiting = NONE;
        replica->free_blocks = sim->blocks;
    }
}

/* A request larger than the KV cache would wait forever. */
static enum err check(const struct serving_run *run, int64_t blocks, struct error *why)
{
    const struct serving_policy *policy = run->policy;
    if (!run->load->count || !policy->max_sequences || !policy->max_tokens || !policy->replicas ||
        !policy->block_tokens || !(run->rate > 0) || !(run->time_scale > 0))
        return err_set(why, ERR_BAD_VALUE, "no requests, or a limit of 0");
    if (run->load->longest > blocks * policy->block_tokens)
        return err_set(why, ERR_BAD_VALUE,
                       "a request of %lld tokens exceeds the KV cache of %.0f tokens",
                       (long long)run->load->longest, policy->kv_tokens);
    return ERR_OK;
}

enum err serving_simulate(const struct serving_run *run, struct serving_result *out,
                          struct error *why)
{
    const struct serving_load *load = run->load;
    double max = 1e15, blocks = floor(run->policy->kv_tokens / run->policy->block_tokens);
    struct simulation sim = {.run = run, .out = out, .blocks = (int64_t)fmin(blocks, max)};
    *out = (struct serving_result){0};
    enum err err = check(run, sim.blocks, why);
    if (err)
        return err;
    allocate(&sim);
    for (size_t i = 0; i < load->count; i++) {
        double now = load->items[i].arrival / run->rate;
        advance(&sim, now);
        arrive(&sim, i, now);
    }
    advance(&sim, INFINITY);
    fill_result(&sim);
    release(&sim);
    return ERR_OK;
}
