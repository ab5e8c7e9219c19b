#include "runner/layers/times.h"

#include <math.h>

#include "stats/quantile.h"

/* Taking off the stops leaves at least this part of what was seen: a component that ran took time. */
#define LEAST_LEFT 0.1

struct per_pass {
    double graphs;
    double stop_s; /* what one stop costs */
    double host_s;
};

/* ---- overhead ---- */

#define LOW 0.1

/* The lowest tenth: what else runs on the machine only ever slows.  Its error is by the difference of
 * the earlier half and the later one, since such company comes and goes slowly. */
static double typical(const struct rig_lengths *lengths, double *relative_error)
{
    size_t count = lengths->count < RIG_LENGTHS ? lengths->count : RIG_LENGTHS, half = count / 2;
    double all = quantile(lengths->seconds, count, LOW);
    double early = quantile(lengths->seconds, half, LOW);
    double late = quantile(lengths->seconds + half, count - half, LOW);
    *relative_error = fabs(early - late) / 2 / all;
    return all;
}

void times_overhead(struct layers_setting *setting, const struct replay_times *times)
{
    double plain_error, watched_error;
    double plain = typical(&times->plain, &plain_error);
    double watched = typical(&times->watched, &watched_error);
    setting->overhead = watched / plain - 1;
    setting->overhead_sigma = hypot(plain_error, watched_error);
}

/* ---- times ---- */

/* A stop costs no more than the shortest segment took with its stop in it. */
static double shortest_segment(const struct replay_times *times, size_t slots)
{
    double shortest = INFINITY, sigma;
    for (size_t i = 0; i < slots; i++) {
        const struct stopwatch_slot *slot = &times->slots[i];
        if (slot->graphs && slot->stops)
            shortest = fmin(shortest, stopwatch_slot_seconds(slot, &sigma) * (double)slot->graphs /
                                          (double)slot->stops);
    }
    return isfinite(shortest) ? shortest : 0;
}

static struct per_pass take_per_pass(const struct layers_setting *setting,
                                     const struct replay_times *times, size_t slots)
{
    double passes = (double)times->passes;
    struct per_pass it = {
        .graphs = (double)times->graphs / passes,
        .host_s = fmax(1 - times->graph_s / times->wall_s, 0) * setting->pass_s,
    };
    double longer = setting->overhead * setting->pass_s;
    if (times->stops && longer > 0)
        it.stop_s = fmin(longer * passes / (double)times->stops, shortest_segment(times, slots));
    return it;
}

static double slot_seconds(const struct stopwatch_slot *slot, const struct per_pass *it,
                           double *sigma)
{
    double seen = stopwatch_slot_seconds(slot, sigma);
    *sigma *= it->graphs;
    if (!slot->graphs)
        return 0;
    double stops = it->stop_s * (double)slot->stops / (double)slot->graphs;
    return it->graphs * fmax(seen - stops, LEAST_LEFT * seen);
}

void times_settle(struct layers_model *model, struct layers_setting *setting,
                  const struct replay_times *times)
{
    struct layers_share *columns = setting->columns;
    for (unsigned c = 0; c < LAYERS_PHASE_COLUMNS; c++)
        columns[c] = (struct layers_share){.joules = UNKNOWN, .sigma = UNKNOWN};
    if (times->passes == 0 || !is_known(setting->pass_s))
        return;
    struct per_pass it = take_per_pass(setting, times, model->slots);
    double sum = 0, sigma;
    for (size_t i = 0; i < model->slots; i++)
        sum += slot_seconds(&times->slots[i], &it, &sigma);
    double scale = sum > 0 ? (setting->pass_s - it.host_s) / sum : 0;
    for (size_t i = 0; i < model->slots; i++) {
        double taken = scale * slot_seconds(&times->slots[i], &it, &sigma);
        struct layers_share *share = &model->shares[setting->phase][i];
        struct layers_share *column = &columns[i % LAYERS_COMPONENTS];
        column->time_s += taken;
        column->time_sigma = hypot(column->time_sigma, scale * sigma);
        share->time_s += taken;
        share->time_sigma = hypot(share->time_sigma, scale * sigma);
    }
    columns[LAYERS_HOST].time_s = it.host_s;
}
