#define _GNU_SOURCE
#include "runner/microbench/microbench.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/microbench/team.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "sensors/system/host_info.h"

#define WARM_S         0.15 /* load time before a window, for clocks and power to settle */
#define PROBE_S        0.5  /* idle time to determine the sensors' update period */
#define UPDATES_GOOD   13   /* sensor updates per window: ten are required, edges cost some */
#define WINDOW_LEAST_S 0.05
#define CPU_SHARE_MIN  0.9  /* minimum share of a window: with less, threads waited for a CPU */
#define WINDOW_MOST_S  0.15 /* length of a window for a rate: longer windows measure energy */

enum {
    WAIT_TURNS = 2000, /* timeout, in 10 ms, for a load to fill its memory and start */
    ROUNDS = 2,
    RATE_ROUNDS = 3, /* without a meter: windows are short, and the best one is used */
    WINDOW_TRIES = 3,
    CACHES_MAX = 10,
    MEBI = 1024 * 1024,
};

struct plan_row {
    const char *label;
    enum team_load load;
    size_t steps;
    bool on_half; /* use half of the threads */
    bool is_rate; /* measured without an energy meter, too */
};

/* From pure arithmetic to pure memory traffic, to separate the two; half of the threads, to separate both from the
 * constant power. */
static const struct plan_row PLAN[] = {
    {"compute", TEAM_COMPUTE, 0, false, true}, {"mix 1", TEAM_MIX, 1, false, false},
    {"gemm", TEAM_GEMM, 0, false, true},       {"triad", TEAM_TRIAD, 0, false, true},
    {"mix 64", TEAM_MIX, 64, false, false},    {"triad half", TEAM_TRIAD, 0, true, false},
    {"mix 4", TEAM_MIX, 4, false, false},      {"compute half", TEAM_COMPUTE, 0, true, false},
    {"mix 16", TEAM_MIX, 16, false, false},    {"mix 256", TEAM_MIX, 256, false, false},
};
/* Bandwidth of the caches, with a working set that is a share of each. */
static const struct cache_row {
    const char *label;
    int level; /* 0: the largest */
    double share;
} CACHES[] = {{"cache L2", 2, 0.5}, {"cache L3", 0, 0.125}};
enum {
    PLAN_ROWS = COUNT_OF(PLAN),
    CACHE_ROWS = COUNT_OF(CACHES),
    WINDOWS = ROUNDS * (PLAN_ROWS + CACHE_ROWS + 1) + 1,
    RATE_ROWS = 3,
    RATE_WINDOWS = RATE_ROUNDS * (RATE_ROWS + CACHE_ROWS) + 1
};

struct bench {
    struct session *session;
    const struct microbench_options *options;
    struct calibrate_rows *rows;
    struct microbench_meter *meter;
    size_t bytes_each;
    unsigned done;
    double ran; /* share of the last window in which its threads had a CPU */
};

/* ---- sizes ---- */

static bool read_cache(int index, const char *file, uint64_t *out)
{
    char path[96], text[32];
    chars_format(path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, file);
    if (fs_read_text(path, text, sizeof text) != ERR_OK)
        return false;
    text[strcspn(text, "K\n")] = '\0';
    return parse_u64(text, out) == ERR_OK;
}

/* Size of the first CPU's cache of a level, or with 0 of its largest, which may be shared; 32 MiB, or 1 MiB for a
 * level, if the kernel does not report it. */
static double cache_bytes(int level)
{
    double max = 0;
    for (int i = 0; i < CACHES_MAX; i++) {
        uint64_t kib, found;
        if (read_cache(i, "size", &kib) &&
            (!level || (read_cache(i, "level", &found) && (int)found == level)))
            max = fmax(max, (double)kib * 1024);
    }
    return max > 0 ? max : level ? 1.0 * MEBI : 32.0 * MEBI;
}

/* Arrays of four times the cache, so that they are read from memory; at most a quarter of all memory. */
static size_t bytes_for_each(unsigned threads)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    double max = pages > 0 && page > 0 ? 0.25 * (double)pages * (double)page : 256.0 * MEBI;
    return (size_t)(fmin(fmax(4 * cache_bytes(0), 64.0 * MEBI), max) / threads);
}

unsigned microbench_threads(const struct microbench_options *options)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return options->threads ? options->threads : online > 0 ? (unsigned)online : 1;
}

/* ---- one window ---- */

/* Energy of a window that has ended; unknown if nothing measures it. */
static enum err read_energy(struct bench *b, nanos from, nanos to, struct calibrate_row *row,
                            struct error *why)
{
    struct sampler *sampler = b->session->sampler;
    struct ledger ledger;
    struct ledger_selection energy;
    sampler_settle(sampler, to);
    ledger_take(sampler, from, to, NULL, &ledger);
    enum err err = ledger_select(&ledger, b->options->device, &energy, why);
    ledger_release(&ledger);
    bool has_no_reading = err == ERR_NO_DATA && b->meter->devices[0];
    if (err && !has_no_reading)
        return err;
    if (has_no_reading) /* a counter that did not change in the window: a row without joules */
        energy = (struct ledger_selection){.joules = UNKNOWN};
    row->energy_j = energy.joules;
    row->updates = energy.updates;
    row->is_estimated = energy.is_estimated;
    if (has_no_reading)
        return ERR_OK;
    (void)chars_copy(b->meter->devices, energy.devices);
    (void)chars_copy(b->meter->source, energy.source);
    return ERR_OK;
}

static enum err measure_window(struct bench *b, struct calibrate_row *row, const struct team *team,
                               struct error *why)
{
    sampler_mark(b->session->sampler);
    struct team_work before = team ? team_done(team) : (struct team_work){0};
    nanos from = clock_now();
    b->meter->signal = proc_poll_signal(from_seconds(b->meter->window_s));
    struct team_work after = team ? team_done(team) : (struct team_work){0};
    nanos to = clock_now();
    if (b->meter->signal)
        return err_set(why, ERR_INTERRUPTED, "interrupted");
    row->latency_s = row->window_s = seconds(to - from);
    row->energy_j = row->updates = UNKNOWN;
    row->flops = after.flops - before.flops;
    row->bytes = after.bytes - before.bytes;
    row->kernels = after.barriers - before.barriers;
    if (row->kernels > 0 && after.barrier_s > 0)
        row->kernels = row->latency_s / after.barrier_s; /* as if undisturbed */
    b->ran = team ? fmin((after.ran_s - before.ran_s) / (team_size(team) * row->latency_s), 1) : 1;
    return b->meter->no_energy[0] ? ERR_OK : read_energy(b, from, to, row, why);
}

/* A window in which threads waited for a CPU is repeated, and the best one is used.  Rates are per time that the
 * threads ran, so that other processes do not reduce them; with energy, per wall time of the window. */
static enum err measure_best(struct bench *b, struct calibrate_row *row, const struct team *team,
                             struct error *why)
{
    struct calibrate_row one = *row;
    double best = 0;
    enum err err = ERR_OK;
    for (int i = 0; !err && i < WINDOW_TRIES && best < CPU_SHARE_MIN; i++) {
        err = measure_window(b, &one, team, why);
        if (err || (i && !(b->ran > best)))
            continue;
        best = b->ran;
        *row = one;
    }
    if (best > 0 && b->meter->no_energy[0])
        row->latency_s *= best;
    b->meter->min_cpu_share = fmin(b->meter->min_cpu_share, best);
    return err;
}

static void report_progress(struct bench *b, const char *label)
{
    if (b->options->progress)
        b->options->progress(label, b->done, b->meter->no_energy[0] ? RATE_WINDOWS : WINDOWS);
    b->done++;
}

static bool has_started(const struct team *team)
{
    struct team_work work = team_done(team);
    return work.flops > 0 || work.barriers > 0;
}

static enum err measure_team(struct bench *b, const struct team_order *order,
                             struct calibrate_row row, struct error *why)
{
    struct team *team;
    enum calibrate_kind kind = row.kind;
    report_progress(b, row.label);
    enum err err = team_start(order, &team, why);
    if (err)
        return err;
    for (int i = 0; !has_started(team) && i < WAIT_TURNS; i++)
        thread_sleep(10 * NS_PER_MS);
    thread_sleep(from_seconds(WARM_S));
    err = kind == CALIBRATE_LAUNCH ? measure_window(b, &row, team, why) /* its threads sleep */
                                   : measure_best(b, &row, team, why);
    team_stop(team);
    if (kind == CALIBRATE_LAUNCH || kind == CALIBRATE_CACHE)
        row.energy_j = UNKNOWN; /* waiting threads sleep: that power is neither active nor idle */
    if (!err && kind == CALIBRATE_LAUNCH && !(row.kernels > 0))
        return ERR_OK; /* no barrier completed: nothing to report */
    if (!err)
        calibrate_rows_add(b->rows, &row);
    return err;
}

static enum err measure_load(struct bench *b, const struct plan_row *plan, enum calibrate_kind kind,
                             struct error *why)
{
    unsigned all = b->meter->threads;
    if (b->meter->no_energy[0] && !plan->is_rate)
        return ERR_OK;
    struct team_order order = {.load = plan->load,
                               .steps = plan->steps,
                               .threads = plan->on_half && all > 1 ? all / 2 : all,
                               .bytes_each = b->bytes_each};
    struct calibrate_row row = {.kind = kind, .precision = PRECISION_FP32};
    chars_copy(row.label, plan->label);
    return measure_team(b, &order, row, why);
}

/* Each thread uses its own part of a cache; a private cache is counted once per thread. */
static enum err measure_cache(struct bench *b, const struct cache_row *plan, struct error *why)
{
    unsigned threads = b->meter->threads;
    double bytes = plan->share * cache_bytes(plan->level) * (plan->level ? threads : 1);
    struct team_order order = {.load = TEAM_TRIAD,
                               .threads = threads,
                               .bytes_each =
                                   (size_t)fmin(bytes / threads, (double)b->bytes_each / 4)};
    struct calibrate_row row = {.kind = CALIBRATE_CACHE,
                                .precision = PRECISION_FP32,
                                .held = (double)order.bytes_each * threads};
    chars_copy(row.label, plan->label);
    return measure_team(b, &order, row, why);
}

/* Chooses the window length from the requested time and the update period of the sensors, measured over a short idle
 * window.  Estimated joules are detected here, before minutes are spent. */
static enum err choose_window(struct bench *b, struct error *why)
{
    struct calibrate_row probe = {0};
    struct error reason = {0};
    double share = b->options->seconds / WINDOWS - WARM_S;
    b->meter->window_s = PROBE_S;
    enum err err = measure_window(b, &probe, NULL, &reason);
    if (!err && probe.is_estimated && !b->options->allow_estimated)
        err = err_set(&reason, ERR_BAD_VALUE,
                      "refused: the energy of %s is estimated by a model (%s), not measured: a fit "
                      "would only reproduce the model (--allow-estimated accepts it)",
                      b->meter->devices, b->meter->source);
    bool has_no_meter = err == ERR_NO_DATA || err == ERR_BAD_VALUE;
    if (err && (b->options->requires_energy || !has_no_meter))
        return err_set(why, err, "%s", reason.text);
    if (err) {
        (void)chars_copy(b->meter->no_energy, reason.text);
        b->meter->window_s = fmax(fmin(share, WINDOW_MOST_S), WINDOW_LEAST_S);
        return ERR_OK;
    }
    double period = PROBE_S / fmax(probe.updates, 1);
    b->meter->window_s = fmax(fmax(share, UPDATES_GOOD * period), WINDOW_LEAST_S);
    return ERR_OK;
}

static enum err measure_idle(struct bench *b, struct error *why)
{
    struct calibrate_row row = {.kind = CALIBRATE_IDLE, .label = "idle"};
    if (b->meter->no_energy[0])
        return ERR_OK;
    report_progress(b, "idle");
    thread_sleep(from_seconds(WARM_S));
    enum err err = measure_window(b, &row, NULL, why);
    if (!err)
        calibrate_rows_add(b->rows, &row);
    return err;
}

enum err microbench_measure(struct session *session, const struct microbench_options *options,
                            struct calibrate_rows *rows, struct microbench_meter *meter,
                            struct error *why)
{
    static const struct plan_row BARRIER = {"launch", TEAM_BARRIER, 0, false, true};
    struct host_info host;
    *meter = (struct microbench_meter){.threads = microbench_threads(options), .min_cpu_share = 1};
    host_info_read(&host);
    (void)chars_copy(meter->host, host.cpu_brand);
    struct bench b = {.session = session,
                      .options = options,
                      .rows = rows,
                      .meter = meter,
                      .bytes_each = bytes_for_each(meter->threads)};
    sampler_ready(session->sampler);
    enum err err = choose_window(&b, why);
    if (!err && options->only_rates && !meter->no_energy[0])
        return ERR_OK;
    unsigned rounds = meter->no_energy[0] ? RATE_ROUNDS : ROUNDS;
    for (unsigned round = 0; !err && round < rounds; round++) {
        err = measure_idle(&b, why);
        for (size_t i = 0; !err && i < PLAN_ROWS; i++)
            err = measure_load(&b, &PLAN[i], CALIBRATE_LOAD, why);
        for (size_t i = 0; !err && i < CACHE_ROWS; i++)
            err = measure_cache(&b, &CACHES[i], why);
    }
    if (!err && meter->threads > 1)
        err = measure_load(&b, &BARRIER, CALIBRATE_LAUNCH, why);
    return err;
}
