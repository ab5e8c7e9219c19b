#include "runner/samples_log.h"

#include <stdlib.h>

#include "core/quantity.h"
#include "sampler/sampler.h"

struct appending {
    const struct samples_log *log;
    struct samples_writer *out;
    const struct sensor *sensor;
    const struct sensor_channel *channel;
    struct samples_written *written;
    enum err err;
};

/* How much of the time since the point before is covered: all of it or, after a gap, nothing; something
 * between where the history was thinned. */
static double covered_share(const struct samples_written *before,
                            const struct timeline_point *point)
{
    if (before->t == INT64_MIN)
        return 0;
    nanos covered = point->covered - before->covered, passed = point->t - before->t;
    return covered == passed ? 1 : (double)covered / (double)passed;
}

static bool append_points(const struct timeline_point *points, size_t count, void *context)
{
    struct appending *appending = context;
    const struct sensor_channel *channel = appending->channel;
    for (size_t i = 0; i < count && !appending->err; i++) {
        struct sample sample = {
            .t_s = seconds(points[i].t - appending->log->zero),
            .sensor = appending->sensor->id,
            .device = channel->device,
            .channel = channel->name,
            .scope = scope_name(channel->scope),
            .quantity = quantity_name(channel->quantity),
            .unit = quantity_unit(channel->quantity),
            .value =
                points[i].value, /* a counter's first point, and one after a gap, has no power */
            .sum = points[i].sum,
            .covered = covered_share(appending->written, &points[i]),
            .t_plus_minus_s = points[i].t_sigma > 0 ? points[i].t_sigma : UNKNOWN,
        };
        appending->err = samples_add(appending->out, &sample);
        *appending->written = (struct samples_written){points[i].t, points[i].covered};
    }
    return appending->err == ERR_OK;
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
    log->written = calloc(count + 1, sizeof *log->written);
    if (!log->written)
        return err_no_memory(why);
    for (size_t i = 0; i < count; i++)
        log->written[i].t = INT64_MIN;
    return ERR_OK;
}

enum err samples_log_append(struct samples_log *log)
{
    struct appending appending = {.log = log, .out = &log->out, .written = log->written};
    for (size_t s = 0; s < sampler_count(log->sampler) && !appending.err; s++) {
        appending.sensor = sampler_sensor(log->sampler, s);
        for (size_t c = 0; c < appending.sensor->channel_count && !appending.err; c++) {
            appending.channel = &appending.sensor->channels[c];
            nanos after = appending.written->t > log->since ? appending.written->t : log->since;
            enum err err = sampler_points(log->sampler, s, c, after, append_points, &appending);
            if (!appending.err)
                appending.err = err;
            appending.written++;
        }
    }
    enum err err = samples_flush(&log->out);
    return appending.err ? appending.err : err;
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
