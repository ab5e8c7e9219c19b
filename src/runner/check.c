/* Reads the sensors while every CPU is busy: a counter that does not change under that load is dead. */
#define _GNU_SOURCE
#include "runner/check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* ---- a load ---- */

struct load {
    atomic_bool stopping;
    unsigned count;
    _Atomic unsigned long rounds;
    pthread_t threads[];
};

enum { LANES = 16, ROUND = 4096 };

/* Independent chains of multiply-adds keep the floating-point units busy without touching memory.
 * The values stay bounded, so no denormal or infinity ever changes the cost. */
static double compute_round(double *lanes)
{
    for (int i = 0; i < ROUND; i++)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = lanes[lane] * 0.999999 + 0.000001;
    return lanes[0];
}

static void *load_main(void *argument)
{
    struct load *load = argument;
    double lanes[LANES];
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = 1.0 + lane * 0.01;
    volatile double keep = 0; /* prevents dead-code elimination */
    while (!atomic_load_explicit(&load->stopping, memory_order_relaxed)) {
        keep = compute_round(lanes);
        atomic_fetch_add_explicit(&load->rounds, 1, memory_order_relaxed);
    }
    (void)keep;
    return NULL;
}

struct load *load_start(unsigned threads)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned wanted = threads ? threads : (online > 0 ? (unsigned)online : 1);
    struct load *load = xmalloc(sizeof *load + wanted * sizeof load->threads[0]);
    load->count = 0;
    atomic_init(&load->stopping, false);
    atomic_init(&load->rounds, 0);
    while (load->count < wanted &&
           thread_start(&load->threads[load->count], load_main, load) == ERR_OK)
        load->count++;
    return load;
}

double load_stop(struct load *load)
{
    atomic_store(&load->stopping, true);
    for (unsigned i = 0; i < load->count; i++)
        pthread_join(load->threads[i], NULL);
    double done = (double)atomic_load(&load->rounds) * ROUND * LANES * 1e-9;
    free(load);
    return done;
}

/* ---- the check ---- */

/* Long enough for a dozen updates of the slowest common sensor (100 ms). */
#define CHECK_TIME (1200 * NS_PER_MS)

/* Whether the channel works: a counter must advance, a power reading must not always be 0 W. */
static bool is_working(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to)
{
    const struct sensor_channel *row = &sampler_sensor(sampler, source)->channels[channel];
    struct channel_state state;
    sampler_channel(sampler, source, channel, &state);
    if (row->quantity == QTY_ENERGY)
        return state.updates > 0;
    double low, high;
    return sampler_extremes(sampler, source, channel, from, to, &low, &high) == ERR_OK && high > 0;
}

static void measure(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to,
                    struct check_row *row)
{
    struct channel_state state;
    struct window window;
    sampler_channel(sampler, source, channel, &state);
    if (state.period > 0 && !is_known(row->period_ms))
        row->period_ms = (double)state.period * 1e-6;
    const struct sensor_channel *about = &sampler_sensor(sampler, source)->channels[channel];
    if (!is_known(row->watts) && !about->secondary &&
        sampler_window(sampler, source, channel, from, to, &window) == ERR_OK)
        row->watts = window.sum / window.covered_s;
}

static void check_sensor(struct session *session, size_t index, nanos from, nanos to,
                         struct check_row *row)
{
    struct sensor_finding *finding = &session->findings.items[index];
    size_t source = (size_t)session->source_of[index];
    const struct sensor *sensor = sampler_sensor(session->sampler, source);
    struct source_state state;
    struct channel_state last = {0};
    size_t energy_channels = 0, working = 0;
    bool answered = false;
    for (size_t c = 0; c < sensor->channel_count; c++) {
        if (!quantity_gives_joules(sensor->channels[c].quantity))
            continue;
        energy_channels++;
        sampler_channel(session->sampler, source, c, &last);
        bool counts = sensor->channels[c].quantity == QTY_ENERGY;
        answered = answered || (counts ? last.t > 0 : last.has_value);
        if (!is_working(session->sampler, source, c, from, to))
            continue;
        working++;
        row->counts |= sensor->channels[c].scope != SCOPE_NONE && !sensor->channels[c].estimated;
        measure(session->sampler, source, c, from, to, row);
    }
    sampler_source(session->sampler, source, &state);
    row->read_us = state.reads ? state.read_us : UNKNOWN;
    if (working > 0 && !row->counts && finding->status == SENSOR_OK && !finding->reason[0])
        chars_copy(finding->reason, "its scope is unknown: shown separately, not in the total");
    if (energy_channels == 0 || working > 0)
        return;
    if (state.is_lost) {
        finding->status = SENSOR_UNSUPPORTED;
        chars_copy(finding->reason, last.blocked_s > 0 ? "the driver does not return from a call"
                                                       : "the device was lost during the check");
    } else {
        finding->status = SENSOR_DEAD;
        if (last.zeros)
            chars_copy(finding->reason, "opens, but reads 0 W under load");
        else if (!answered && (last.missing || last.refused))
            chars_format(finding->reason, "opens, but every reading failed: %s",
                         err_text(last.last_error));
        else
            chars_format(finding->reason,
                         "opens, but its counter did not change in %.1f s under load",
                         seconds(to - from));
    }
}

/* Whether an open sensor measures energy: otherwise no load is needed. */
static bool has_energy(const struct session *session)
{
    for (size_t i = 0; i < session->findings.count; i++) {
        if (session->source_of[i] < 0)
            continue;
        const struct sensor *sensor =
            sampler_sensor(session->sampler, (size_t)session->source_of[i]);
        for (size_t c = 0; c < sensor->channel_count; c++)
            if (quantity_gives_joules(sensor->channels[c].quantity))
                return true;
    }
    return false;
}

void check_run(struct session *session, struct check_row *rows)
{
    for (size_t i = 0; i < session->findings.count; i++)
        rows[i] = (struct check_row){UNKNOWN, UNKNOWN, UNKNOWN, false};
    sampler_ready(session->sampler);
    nanos from = clock_now();
    if (has_energy(session)) {
        struct load *load = load_start(0);
        thread_sleep(CHECK_TIME);
        load_stop(load);
    }
    nanos to = clock_now();
    sampler_settle(session->sampler, to);
    for (size_t i = 0; i < session->findings.count; i++)
        if (session->source_of[i] >= 0)
            check_sensor(session, i, from, to, &rows[i]);
}

void check_untested(const struct sensor_findings *findings, struct check_row *rows)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *found = &findings->items[i];
        bool gives_joules = strstr(found->measures, "energy") || strstr(found->measures, "power");
        rows[i] = (struct check_row){UNKNOWN, UNKNOWN, UNKNOWN,
                                     found->status == SENSOR_OK && gives_joules};
    }
}

bool check_is_measured(const struct sensor_findings *findings, const struct check_row *rows)
{
    for (size_t i = 0; i < findings->count; i++)
        if (rows[i].counts)
            return true;
    return false;
}
