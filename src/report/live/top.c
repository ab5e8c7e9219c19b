/* Two lists of the CPU times of all processes, an interval apart, give each one's share of the time that the processors
 * had; that share of their power is attributed to it.  The shares of processes and of idle time add up to one, so that
 * energy is conserved.  A GPU's processes come from its driver, seconds apart: theirs are means of the whole time. */
#include "report/live/top.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/proc_tree.h"
#include "report/live/reading.h"
#include "sampler/sampler.h"
#include "sensors/sensor.h"

/* Shares below are noise of the scheduler's ticks. */
#define LEAST_SHARE 0.001

void top_release(struct top *top)
{
    free(top->times);
    free(top->joules);
    *top = (struct top){0};
}

static bool is_above(const struct top_row *a, const struct top_row *b)
{
    bool known = is_known(a->watts) && is_known(b->watts);
    return known && a->watts != b->watts ? a->watts > b->watts : a->share > b->share;
}

/* In its place; the least one goes where there are too many. */
static void insert(struct top *top, const struct top_row *row)
{
    size_t at = top->count;
    while (at > 0 && is_above(row, &top->rows[at - 1]))
        at--;
    if (at == TOP_MAX)
        return;
    top->count += top->count < TOP_MAX;
    memmove(&top->rows[at + 1], &top->rows[at], (top->count - 1 - at) * sizeof *row);
    top->rows[at] = *row;
}

/* ---- processors ---- */

static bool read_cpus(struct cpu_times *out)
{
    struct proc_stat stat;
    enum err err = proc_stat_open(&stat);
    if (!err)
        err = proc_stat_times(&stat, out);
    proc_stat_close(&stat);
    return !err;
}

static double ticks_between(const struct cpu_times *from, const struct cpu_times *to)
{
    return (double)(to->busy + to->idle + to->stolen) -
           (double)(from->busy + from->idle + from->stolen);
}

/* The place of a process in the list before, whose pid may be another's by now; count when it is new. */
static size_t find_before(const struct top *top, const struct proc_time *now)
{
    size_t low = 0, high = top->time_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (top->times[middle].pid < now->pid)
            low = middle + 1;
        else
            high = middle;
    }
    bool same = low < top->time_count && top->times[low].pid == now->pid &&
                top->times[low].started == now->started;
    return same ? low : top->time_count;
}

static void add_process(struct top *top, const struct top_row *row)
{
    struct top_row named = *row;
    if (row->share < LEAST_SHARE)
        return;
    proc_name(row->pid, named.name, sizeof named.name);
    insert(top, &named);
}

static void take_cpus(struct top *top, const struct reading *reading, double seconds_passed)
{
    struct ledger_selection power;
    struct cpu_times cpus = {0};
    struct proc_time *times;
    size_t count = proc_times(&times);
    double *joules = calloc(count + 1, sizeof *joules);
    bool known =
        ledger_select(&reading->now, NULL, &power, NULL) == ERR_OK && reading->interval_s > 0;
    double watts = known ? power.joules / reading->interval_s : UNKNOWN;
    bool readable = joules && read_cpus(&cpus);
    double all = readable ? ticks_between(&top->cpus, &cpus) : 0;
    for (size_t i = 0; top->times && all > 0 && i < count; i++) {
        size_t before = find_before(top, &times[i]);
        bool is_new = before == top->time_count;
        double ticks = (double)times[i].ticks - (is_new ? 0 : (double)top->times[before].ticks);
        struct top_row row = {.pid = times[i].pid,
                              .device = "cpu",
                              .share = ticks / all < 1 ? ticks / all : 1,
                              .is_estimated = known && power.is_estimated};
        row.watts = watts * row.share;
        joules[i] = (is_new ? 0 : top->joules[before]) + row.watts * seconds_passed;
        row.joules = joules[i];
        add_process(top, &row);
    }
    free(top->times);
    free(top->joules);
    top->times = readable ? times : NULL;
    top->joules = readable ? joules : NULL;
    top->time_count = readable ? count : 0;
    top->cpus = cpus;
    top->cpu_watts = watts;
    if (!readable) {
        free(times);
        free(joules);
    }
}

/* ---- GPUs ---- */

static void take_gpu(struct top *top, struct sampler *sampler, const struct reading *reading,
                     size_t i)
{
    const struct ledger_device *now = &reading->now.devices[i];
    const struct ledger_device *since = &reading->since.devices[i];
    struct process_use seen[SENSOR_PROCESSES_MAX];
    size_t count;
    double watched_s;
    if (sampler_processes(sampler, now->source, seen, &count, &watched_s) != ERR_OK)
        return;
    for (size_t p = 0; p < count; p++) {
        double share = watched_s > 0 ? seen[p].busy_s / watched_s : UNKNOWN;
        struct top_row row = {.pid = seen[p].pid,
                              .share = share,
                              .watts = since->power_mean * share,
                              .joules = since->energy.joules * share,
                              .is_estimated = now->energy.method == METHOD_ESTIMATED};
        str_copy(row.device, sizeof row.device, now->id);
        str_copy(row.name, sizeof row.name, seen[p].name);
        if (is_known(share))
            insert(top, &row);
    }
}

void top_take(struct top *top, struct sampler *sampler, const struct reading *reading, nanos now)
{
    top->count = 0;
    take_cpus(top, reading, seconds(now - top->taken));
    for (size_t i = 0; i < reading->now.count; i++)
        if (reading->now.devices[i].sensor->kind == SENSOR_GPU && !reading->lost[i])
            take_gpu(top, sampler, reading, i);
    top->taken = now;
}
