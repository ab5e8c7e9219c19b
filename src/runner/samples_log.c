#include "runner/samples_log.h"

#include <stdlib.h>

#include "core/quantity.h"
#include "core/xalloc.h"
#include "sampler/sampler.h"

struct append_state {
    const struct samples_log *log;
    struct samples_writer *out;
    const struct sensor *sensor;
    const struct sensor_channel *channel;
    struct samples_written *written;
    enum err err;
};

/* Share of the time since the previous point that is covered: all of it or, after a gap, nothing; in between if the
 * history was thinned. */
static double covered_share(const struct samples_written *before,
                            const struct timeline_point *point)
{
    if (before->t == INT64_MIN)
        return 0;
    nanos covered = point->covered - before->covered;
    nanos passed = point->t - before->t;
    return covered == passed ? 1 : (double)covered / (double)passed;
}

static bool append_points(const struct timeline_point *points, size_t count, void *context)
{
    struct append_state *state = context;
    const struct sensor_channel *channel = state->channel;
    for (size_t i = 0; i < count && !state->err; i++) {
        struct sample sample = {
            .t_s = seconds(points[i].t - state->log->zero),
            .sensor = state->sensor->id,
            .device = channel->device,
            .channel = channel->name,
            .scope = scope_name(channel->scope),
            .quantity = quantity_name(channel->quantity),
            .unit = quantity_unit(channel->quantity),
            .value =
                points[i].value, /* a counter's first point, and one after a gap, have no power */
            .sum = points[i].sum,
            .covered = covered_share(state->written, &points[i]),
            .t_plus_minus_s = points[i].t_sigma > 0 ? points[i].t_sigma : UNKNOWN,
        };
        state->err = samples_add(state->out, &sample);
        *state->written = (struct samples_written){points[i].t, points[i].covered};
    }
    return state->err == ERR_OK;
}

static size_t channels_in_all(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++)
        count += sampler_sensor(sampler, s)->channel_count;
    return count;
}

enum err samples_log_open(struct samples_log *log, struct sampler *sampler, nanos zero, nanos since,
                          const char *path, bool own, struct error *why)
{
    size_t count = channels_in_all(sampler);
    *log = (struct samples_log){.sampler = sampler, .zero = zero, .since = since};
    enum err err = samples_create(&log->out, path, own, why);
    if (err)
        return err;
    log->written = xcalloc(count + 1, sizeof *log->written);
    for (size_t i = 0; i < count; i++)
        log->written[i].t = INT64_MIN;
    return ERR_OK;
}

enum err samples_log_append(struct samples_log *log)
{
    struct append_state state = {.log = log, .out = &log->out, .written = log->written};
    for (size_t s = 0; s < sampler_count(log->sampler) && !state.err; s++) {
        state.sensor = sampler_sensor(log->sampler, s);
        for (size_t c = 0; c < state.sensor->channel_count && !state.err; c++) {
            state.channel = &state.sensor->channels[c];
            nanos after = state.written->t > log->since ? state.written->t : log->since;
            enum err err = sampler_points(log->sampler, s, c, after, append_points, &state);
            if (!state.err)
                state.err = err;
            state.written++;
        }
    }
    enum err err = samples_flush(&log->out);
    return state.err ? state.err : err;
}

enum err samples_log_close(struct samples_log *log)
{
    free(log->written);
    log->written = NULL;
    return samples_close(&log->out);
}

enum err samples_log_save(struct sampler *sampler, nanos zero, nanos since, const char *path,
                          bool own, struct error *why)
{
    struct samples_log log;
    enum err err = samples_log_open(&log, sampler, zero, since, path, own, why);
    if (err) {
        (void)samples_log_close(&log);
        return err;
    }
    err = samples_log_append(&log);
    enum err closed = samples_log_close(&log);
    err = err ? err : closed;
    return err ? err_set(why, err, "cannot write %s: %s", path, err_text(err)) : ERR_OK;
}
