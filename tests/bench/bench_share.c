/* The cost of sharing: requests on a machine of two devices, 64 concurrent, 2000 per second, as in
 * a real run, advanced ten times per second. */
#define _GNU_SOURCE
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "attribute/share.h"
#include "bench/bench.h"
#include "core/clock.h"
#include "port/thread.h"
#include "sampler/sampler.h"

enum { RATE = 2000, COMPANY = 64, PIECES = 30, ROUNDS = 3 };
#define SECONDS 20.0 /* seconds of history; the longest run takes half of it */
#define ADVANCE 0.1

/* ---- a sensor with a stored history: a counter, its samples, and gauges ---- */

struct history {
    nanos start;
    double at_s;         /* how far it has been read */
    unsigned gauges;     /* besides the counter and the samples */
    double counter_step; /* s between updates of the counter */
    atomic_bool replayed;
};

static struct history histories[2];

static void probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    (void)out;
}

static enum err open_history(const struct sensor_finding *finding, struct sensor *out,
                             struct error *why)
{
    (void)why;
    static const enum quantity GAUGES[] = {QTY_TEMPERATURE, QTY_UTILIZATION,  QTY_MEMORY_USED,
                                           QTY_CLOCK,       QTY_MEMORY_CLOCK, QTY_THROTTLE};
    struct history *history = &histories[finding->key];
    const char *device = finding->key ? "cpu0" : "gpu0";
    enum scope scope = finding->key ? SCOPE_PACKAGE : SCOPE_GPU;
    struct sensor_channel *channel = sensor_add_channel(out, "energy", device, QTY_ENERGY);
    channel->scope = scope;
    channel->joules_per_count = 1e-6;
    channel = sensor_add_channel(out, "power", device, QTY_POWER);
    channel->scope = scope;
    channel->secondary = true;
    for (unsigned i = 0; i < history->gauges; i++)
        sensor_add_channel(out, quantity_name(GAUGES[i]), device, GAUGES[i]);
    out->groups[0] = (struct sensor_group){.period_default = NS_PER_MS, .period_min = 1};
    out->group_count = 1;
    out->state = history;
    return ERR_OK;
}

/* A fifth of a second of it per read. */
static enum err read_history(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)group;
    struct history *history = sensor->state;
    if (history->at_s > SECONDS) {
        atomic_store(&history->replayed, true);
        return ERR_OK;
    }
    const double length = 0.2;
    for (int i = 0; i * history->counter_step < length; i++) {
        double s = history->at_s + i * history->counter_step;
        observe_count(out, 0, history->start + from_seconds(s),
                      (uint64_t)(1e6 * (200 * s + 20 * sin(s))) + 1);
    }
    for (int i = 0; i * 0.02 < length; i++) {
        double s = history->at_s + i * 0.02;
        observe_value(out, 1, history->start + from_seconds(s), 200 + 20 * cos(s));
    }
    for (int i = 0; i * 0.1 < length; i++) {
        double s = history->at_s + i * 0.1;
        for (unsigned g = 0; g < history->gauges; g++)
            observe_value(out, 2 + g, history->start + from_seconds(s), 50 + 10 * sin(s));
    }
    history->at_s += length;
    return ERR_OK;
}

static void close_history(struct sensor *sensor)
{
    (void)sensor;
}

static const struct sensor_driver DRIVER = {
    .name = "history",
    .summary = "a history that is there at once",
    .probe = probe,
    .open = open_history,
    .read = read_history,
    .close = close_history,
};

static struct sampler *start_sampler(void)
{
    struct error why;
    struct sampler *sampler = sampler_new(NS_PER_MS);
    nanos start = clock_now() - from_seconds(SECONDS + 10);
    if (!sampler)
        abort();
    for (unsigned i = 0; i < 2; i++) {
        struct sensor_finding finding = {.driver = &DRIVER, .kind = SENSOR_TEST, .key = i};
        snprintf(finding.id, sizeof finding.id, "history:%u", i);
        histories[i].start = start;
        histories[i].gauges = i ? 2 : 6;
        histories[i].counter_step = i ? 0.002 : 0.1;
        if (sampler_add(sampler, &finding, &why) != ERR_OK)
            abort();
    }
    if (sampler_start(sampler, &why) != ERR_OK)
        abort();
    for (unsigned i = 0; i < 2; i++)
        while (!atomic_load(&histories[i].replayed))
            thread_sleep(NS_PER_MS);
    return sampler;
}

/* ---- requests ---- */

static volatile double sink;

static void count_share(void *context, const struct share *share)
{
    size_t *count = context;
    sink += share->total.joules;
    (*count)++;
}

static void end_request(struct sharing *sharing, uint64_t id, nanos from, nanos length)
{
    struct request_trace trace = {.id = id,
                                  .from = from,
                                  .first_token = from + length / 4,
                                  .to = from + length,
                                  .prompt_tokens = 100 + (double)(id % 400),
                                  .output_tokens = PIECES,
                                  .arrivals = malloc(PIECES * sizeof(nanos)),
                                  .arrival_count = PIECES};
    if (!trace.arrivals)
        abort();
    for (nanos k = 0; k < PIECES; k++)
        trace.arrivals[k] = from + length / 4 + k * (length - length / 4) / PIECES;
    if (sharing_end(sharing, &trace) != ERR_OK)
        abort();
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU seconds for that many requests, from the first to the last. */
static double share_requests(struct sampler *sampler, uint64_t requests)
{
    nanos start = histories[0].start + NS_PER_S, step = NS_PER_S / RATE, length = COMPANY * step;
    struct baseline_row rows[] = {{"gpu0", 80, 1}, {"cpu0", 50, 1}};
    struct baseline idle = {rows, 2, 1};
    struct sharing *sharing = sharing_new(
        sampler, &(struct sharing_options){.from = start, .idle = &idle, .decode_weight = 1});
    size_t handed = 0;
    if (!sharing)
        abort();
    double began = cpu_seconds();
    nanos next = start;
    for (uint64_t i = 0; i < requests + COMPANY; i++) {
        nanos now = start + (nanos)i * step;
        if (i < requests && sharing_begin(sharing, i + 1, now) != ERR_OK)
            abort();
        if (i >= COMPANY)
            end_request(sharing, i + 1 - COMPANY, now - length, length);
        if (now < next && i + 1 < requests + COMPANY)
            continue;
        if (sharing_advance(sharing, now, count_share, &handed) != ERR_OK)
            abort();
        next += from_seconds(ADVANCE);
    }
    double took = cpu_seconds() - began;
    sharing_free(sharing);
    if (handed != requests) {
        fprintf(stderr, "%zu of %llu requests were handed over\n", handed,
                (unsigned long long)requests);
        exit(1);
    }
    return took;
}

int main(void)
{
    enum { FEW = RATE, MANY = 10 * FEW };
    double rate[ROUNDS], share[ROUNDS], growth[ROUNDS];
    struct sampler *sampler = start_sampler();
    share_requests(sampler, FEW);
    for (int round = 0; round < ROUNDS; round++) {
        double few = share_requests(sampler, FEW), many = share_requests(sampler, MANY);
        rate[round] = MANY / many;
        share[round] = 100 * many * RATE / MANY;
        growth[round] = many / few;
    }
    bench_report("requests shared on two devices, 64 at a time", bench_median(rate, ROUNDS),
                 "requests/s");
    bench_report("sharing 2000 requests a second, 64 at a time", bench_median(share, ROUNDS),
                 "% of a core");
    bench_at_most("sharing ten times the requests", bench_median(growth, ROUNDS), "ratio", 13);
    sampler_free(sampler);
    return 0;
}
