#define _GNU_SOURCE
#include "runner/microbench/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/thread.h"

enum {
    BLOCK = 16384, /* floats between two updates of the count */
    COMPUTE_STEPS = 4096,
    LINE = 64,
    MATRIX = KERNELS_GEMM * KERNELS_GEMM,
    BARRIERS = 32, /* consecutive barriers that are timed together */
};

/* Each on its own cache lines, to avoid false sharing. */
struct member {
    _Alignas(LINE) atomic_ullong blocks;
    float *memory;
    size_t floats;
    struct team *team;
    pthread_t thread;
    bool is_first;
};

struct team {
    struct team_order order;
    const struct kernels *kernels;
    struct member *members;
    unsigned count;
    atomic_bool stopping;
    bool is_over;      /* set by the first member at a barrier */
    bool is_abandoned; /* set while the gate is closed */
    pthread_mutex_t
        gate; /* closed until all have started: a barrier must not wait for one that failed to */
    pthread_barrier_t barrier;
    atomic_llong barriers_ns; /* minimum time of BARRIERS; 0: none yet */
    size_t per_compute;       /* floats processed by one call of `compute` */
};

static bool is_running(const struct team *team)
{
    return !atomic_load_explicit(&team->stopping, memory_order_relaxed);
}

static void count_one(struct member *member)
{
    atomic_fetch_add_explicit(&member->blocks, 1, memory_order_relaxed);
}

static void run_compute(struct member *member)
{
    while (is_running(member->team)) {
        member->team->kernels->compute(member->memory, 0.71F, COMPUTE_STEPS);
        count_one(member);
    }
}

static void run_mix(struct member *member)
{
    const struct team *team = member->team;
    for (size_t at = 0; is_running(team);
         at = at + 2 * (size_t)BLOCK > member->floats ? 0 : at + BLOCK) {
        team->kernels->mix(member->memory + at, BLOCK, 0.71F, team->order.steps);
        count_one(member);
    }
}

static void run_triad(struct member *member)
{
    size_t third = member->floats / 3 / BLOCK * BLOCK;
    float *a = member->memory, *b = a + third, *c = b + third;
    for (size_t at = 0; is_running(member->team);
         at = at + 2 * (size_t)BLOCK > third ? 0 : at + BLOCK) {
        member->team->kernels->triad(a + at, b + at, c + at, 0.5F, BLOCK);
        count_one(member);
    }
}

static void run_gemm(struct member *member)
{
    float *c = member->memory, *a = c + MATRIX, *b = a + MATRIX;
    for (size_t i = 0; i < MATRIX; i++) /* keeps sums small: an infinity would change the cost */
        a[i] = (i & 1 ? 1e-3F : -1e-3F) * a[i];
    while (is_running(member->team)) {
        member->team->kernels->gemm(c, a, b);
        count_one(member);
    }
}

static void keep_minimum(struct team *team, nanos took)
{
    long long min = atomic_load_explicit(&team->barriers_ns, memory_order_relaxed);
    if (!min || took < min)
        atomic_store_explicit(&team->barriers_ns, took, memory_order_relaxed);
}

/* The first member decides for all, between two barriers, so that none waits for one that has left. */
static void run_barrier(struct member *member)
{
    struct team *team = member->team;
    nanos from = clock_now();
    for (unsigned pairs = 1;; pairs++) {
        if (member->is_first && pairs % (BARRIERS / 2) == 0) {
            keep_minimum(team, clock_now() - from);
            from = clock_now();
        }
        if (member->is_first)
            team->is_over = !is_running(team);
        pthread_barrier_wait(&team->barrier);
        if (team->is_over)
            return;
        pthread_barrier_wait(&team->barrier);
        count_one(member);
    }
}

static void *member_main(void *argument)
{
    static void (*const RUN[])(struct member *) = {run_compute, run_mix, run_triad, run_gemm,
                                                   run_barrier};
    struct member *member = argument;
    pthread_mutex_lock(&member->team->gate);
    bool is_abandoned = member->team->is_abandoned;
    pthread_mutex_unlock(&member->team->gate);
    if (is_abandoned)
        return NULL;
    for (size_t i = 0; i < member->floats;
         i++) /* first touch: the memory is local to this thread */
        member->memory[i] = 1.0F + (float)(i * 2654435761U % 8191) * 1e-4F;
    RUN[member->team->order.load](member);
    return NULL;
}

static size_t floats_wanted(const struct team_order *order)
{
    switch (order->load) {
    case TEAM_COMPUTE:
        return KERNELS_COMPUTE;
    case TEAM_GEMM:
        return (size_t)3 * MATRIX;
    case TEAM_BARRIER:
        return 0;
    default:
        break;
    }
    size_t floats = order->bytes_each / sizeof(float) / BLOCK * BLOCK;
    return floats < (size_t)6 * BLOCK ? (size_t)6 * BLOCK : floats;
}

static enum err member_start(struct team *team, unsigned index)
{
    struct member *member = &team->members[index];
    *member = (struct member){.team = team, .is_first = index == 0};
    member->floats = floats_wanted(&team->order);
    if (member->floats) {
        size_t bytes = (member->floats * sizeof(float) + LINE - 1) / LINE * LINE;
        member->memory = xneed(aligned_alloc(LINE, bytes));
    }
    enum err err = thread_start(&member->thread, member_main, member);
    if (err) {
        free(member->memory);
        return err;
    }
    team->count++;
    return ERR_OK;
}

/* Number of floats kept in registers: the return value of a call with no steps. */
static size_t register_floats(const struct kernels *kernels)
{
    _Alignas(LINE) float x[KERNELS_COMPUTE] = {0};
    return kernels->compute(x, 0, 0);
}

static const struct kernels *best_kernels(void)
{
    const struct kernels *const *all = kernels_all();
    while (all[1])
        all++;
    return *all;
}

static struct team *team_new(const struct team_order *order)
{
    struct team *team = XNEW(team);
    team->members = xneed(aligned_alloc(LINE, order->threads * sizeof *team->members));
    pthread_barrier_init(&team->barrier, NULL, order->threads);
    pthread_mutex_init(&team->gate, NULL);
    team->order = *order;
    team->kernels = best_kernels();
    team->per_compute = register_floats(team->kernels);
    return team;
}

enum err team_start(const struct team_order *order, struct team **out, struct error *why)
{
    *out = team_new(order);
    enum err err = ERR_OK;
    pthread_mutex_lock(&(*out)->gate);
    for (unsigned i = 0; !err && i < order->threads; i++)
        err = member_start(*out, i);
    (*out)->is_abandoned = err != ERR_OK;
    pthread_mutex_unlock(&(*out)->gate);
    if (!err)
        return ERR_OK;
    team_stop(*out);
    *out = NULL;
    return err_set(why, err, "cannot start %u threads with %zu MiB each", order->threads,
                   order->bytes_each >> 20);
}

static struct team_work work_done(const struct team *team)
{
    double blocks = 0, barriers = 0;
    for (unsigned i = 0; i < team->count; i++)
        blocks += (double)atomic_load_explicit(&team->members[i].blocks, memory_order_relaxed);
    if (team->count)
        barriers = 2 * (double)atomic_load_explicit(&team->members[0].blocks, memory_order_relaxed);
    switch (team->order.load) {
    case TEAM_COMPUTE:
        return (struct team_work){.flops =
                                      2.0 * COMPUTE_STEPS * (double)team->per_compute * blocks};
    case TEAM_MIX:
        return (struct team_work){.flops = 2.0 * (double)team->order.steps * BLOCK * blocks,
                                  .bytes = 2.0 * sizeof(float) * BLOCK * blocks};
    case TEAM_TRIAD:
        return (struct team_work){.flops = 2.0 * BLOCK * blocks,
                                  .bytes = 3.0 * sizeof(float) * BLOCK * blocks};
    case TEAM_GEMM:
        return (struct team_work){.flops = 2.0 * MATRIX * KERNELS_GEMM * blocks};
    case TEAM_BARRIER:
        break;
    }
    return (struct team_work){.barriers = barriers};
}

static double thread_cpu_s(pthread_t thread)
{
    clockid_t clock;
    struct timespec now = {0};
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &now))
        return UNKNOWN;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct team_work team_done(const struct team *team)
{
    struct team_work work = work_done(team);
    for (unsigned i = 0; i < team->count; i++)
        work.ran_s += thread_cpu_s(team->members[i].thread);
    work.barrier_s =
        seconds(atomic_load_explicit(&team->barriers_ns, memory_order_relaxed)) / BARRIERS;
    return work;
}
unsigned team_size(const struct team *team)
{
    return team->count;
}

void team_stop(struct team *team)
{
    if (!team)
        return;
    atomic_store(&team->stopping, true);
    for (unsigned i = 0; i < team->count; i++)
        pthread_join(team->members[i].thread, NULL);
    for (unsigned i = 0; i < team->count; i++)
        free(team->members[i].memory);
    pthread_barrier_destroy(&team->barrier);
    pthread_mutex_destroy(&team->gate);
    free(team->members);
    free(team);
}
