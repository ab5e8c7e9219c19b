/* The cost of a tick over eight RAPL-like zones: against plain preads, and as the whole sampler at
 * 1 kHz - CPU time, memory, and whether ticks are lost. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/zones.h"
#include "core/clock.h"
#include "port/fs.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sampler/source.h"

enum { TICKS = 500, ROUNDS = 101, RUN_SECONDS = 5 };

static struct zones zones;
static uint64_t
    steps; /* files do not count by themselves: this counter does, so that each read is new */
static volatile uint64_t sink;

/* ---- a sensor like powercap ---- */

static enum err zones_open(const struct sensor_finding *finding, struct sensor *out,
                           struct error *why)
{
    (void)finding;
    (void)why;
    for (int i = 0; i < ZONES; i++) {
        char name[32];
        snprintf(name, sizeof name, "zone%d", i);
        struct sensor_channel *channel = sensor_add_channel(out, name, "cpu", QTY_ENERGY);
        channel->joules_per_count = 1e-6;
        channel->wraps_at = 262143328850u;
        channel->watts_max = 1000;
    }
    out->groups[0] = (struct sensor_group){.period_default = 20 * NS_PER_MS, .period_min = 1};
    out->group_count = 1;
    return ERR_OK;
}

static enum err zones_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)sensor;
    (void)group;
    nanos before = clock_now();
    steps += 50000;
    for (unsigned i = 0; i < ZONES; i++) {
        uint64_t count;
        enum err err = fs_pread_u64(zones.fds[i], &count);
        nanos after = clock_now();
        if (err)
            observe_missing(out, i, after, err);
        else
            observe_count(out, i, before + (after - before) / 2, count + steps);
        before = after;
    }
    return ERR_OK;
}

static void zones_close(struct sensor *sensor)
{
    (void)sensor;
}

static const struct sensor_driver ZONES_DRIVER = {
    .name = "zones", .open = zones_open, .read = zones_read, .close = zones_close};

static const struct source_pace PACE = {.period = NS_PER_MS};
static const struct sensor_finding FINDING = {.driver = &ZONES_DRIVER, .id = "zones"};

/* ---- one tick ---- */

static double bare_ns(void)
{
    nanos start = clock_now();
    for (int n = 0; n < TICKS; n++)
        sink += zones_pread(&zones);
    return (double)(clock_now() - start) / TICKS;
}

static double tick_ns(struct source *source)
{
    nanos start = clock_now();
    for (int n = 0; n < TICKS; n++)
        source_read_group(source, 0);
    double each = (double)(clock_now() - start) / TICKS;
    struct channel_sample sample;
    while (ring_pop(&source->ring, &sample))
        sink += sample.count;
    return each;
}

static void bench_one_tick(void)
{
    struct spill spill;
    struct error why;
    spill_init(&spill);
    struct source *source = malloc(sizeof *source);
    if (!source || source_init(source, &FINDING, &spill, &PACE, &why))
        abort();
    double ratio[ROUNDS], cost[ROUNDS];
    tick_ns(source); /* warm-up */
    for (int round = 0; round < ROUNDS; round++) {
        double bare = bare_ns();
        cost[round] = tick_ns(source);
        ratio[round] = cost[round] / bare;
    }
    bench_at_most("tick of 8 zones over bare preads", bench_median(ratio, ROUNDS), "ratio", 3);
    bench_report("tick of 8 zones", bench_median(cost, ROUNDS) / 1000, "us");
    if (source->ring.dropped > 0)
        abort();
    source_free(source);
}

/* ---- the sampler at 1 kHz ---- */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double resident_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void sleep_until(nanos t)
{
    struct timespec at = {.tv_sec = t / NS_PER_S, .tv_nsec = t % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

/* The reference: a thread that wakes up and reads the files, and nothing else. */
static void *bare_main(void *argument)
{
    struct deadline *deadline = argument;
    nanos next = clock_now(), end = next + NS_PER_S;
    while (next < end) {
        next += NS_PER_MS;
        deadline_wait(deadline, next);
        sink += zones_pread(&zones);
    }
    return NULL;
}

/* Percent of a core over one second of it. */
static double bare_cpu(void)
{
    struct deadline deadline;
    pthread_t thread;
    double cpu = cpu_seconds();
    deadline_init(&deadline);
    if (pthread_create(&thread, NULL, bare_main, &deadline))
        abort();
    pthread_join(thread, NULL);
    return 100 * (cpu_seconds() - cpu);
}

static void bench_run(void)
{
    struct error why;
    struct source_state begin, end;
    struct window window;
    double floors[4], rss_before = resident_mb();
    struct sampler *sampler = sampler_new(NS_PER_MS);
    floors[0] = bare_cpu();
    floors[1] = bare_cpu();
    if (!sampler || sampler_add(sampler, &FINDING, &why) || sampler_start(sampler, &why))
        abort();
    sampler_ready(sampler);
    sampler_source(sampler, 0, &begin);
    nanos from = clock_now(), to = from + RUN_SECONDS * NS_PER_S;
    double cpu = cpu_seconds();
    sleep_until(to);
    cpu = 100 * (cpu_seconds() - cpu) / RUN_SECONDS;
    sampler_source(sampler, 0, &end);
    sampler_settle(sampler, to);
    sampler_stop(sampler);
    if (sampler_window(sampler, 0, ZONES - 1, from, to, &window))
        abort();
    floors[2] = bare_cpu();
    floors[3] = bare_cpu();
    double min = bench_median(floors, 4), due = RUN_SECONDS * 1000;
    bench_report("cpu at 1 kHz", cpu, "% of a core");
    bench_at_most("cpu at 1 kHz over bare wake-ups and preads", cpu / min, "ratio", 1.5);
    bench_report("cpu of bare wake-ups and preads", min, "% of a core");
    bench_at_least("reads made of those due", 100 * (double)(end.reads - begin.reads) / due, "%",
                   99);
    /* A late read covers those it replaced: a counter loses resolution, not joules. */
    bench_at_most("late reads", (double)(end.late - begin.late), "reads", due / 100);
    bench_at_most("time not covered", 100 * (1 - window.coverage), "%", 0.1);
    bench_at_most("samples dropped", (double)end.dropped, "samples", 0);
    bench_at_most("memory, peak of the process", resident_mb(), "MB", 10);
    bench_at_most("memory, growth by the run", resident_mb() - rss_before, "MB", 10);
    sampler_free(sampler);
}

int main(void)
{
    zones_new(&zones);
    bench_run();
    bench_one_tick();
    zones_free(&zones);
    return 0;
}
