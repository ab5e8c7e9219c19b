#include "runner/samples_csv.h"

#include <stdlib.h>

#include "core/csv.h"
#include "core/quantity.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* What is new of several channels goes out together: a log is appended to ten times a second. */
enum { PIECE = 1 << 16 };

struct writer {
    const struct samples_log *log;
    const struct sensor *sensor;
    const struct sensor_channel *channel;
    struct samples_written *written;
    struct text text;
    enum err err;
};

static void give(struct writer *writer)
{
    if (writer->text.failed)
        writer->err = ERR_NO_MEMORY;
    else if (writer->text.length && !writer->err)
        writer->err = writer->log->put(text_get(&writer->text), writer->log->context);
    text_clear(&writer->text);
}

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

static bool write_points(const struct timeline_point *points, size_t count, void *context)
{
    struct writer *writer = context;
    const struct sensor_channel *channel = writer->channel;
    for (size_t i = 0; i < count; i++) {
        text_addf(&writer->text, "%.9f,", seconds(points[i].t - writer->log->zero));
        csv_add(&writer->text, writer->sensor->id);
        text_add(&writer->text, ",");
        csv_add(&writer->text, channel->device); /* these may hold a board maker's own label */
        text_add(&writer->text, ",");
        csv_add(&writer->text, channel->name);
        text_addf(&writer->text, ",%s,%s,%s,", scope_name(channel->scope),
                  quantity_name(channel->quantity), quantity_unit(channel->quantity));
        /* A counter's first point, and one after a gap, has no power: an empty field. */
        if (is_known(points[i].value))
            text_addf(&writer->text, "%.9g", points[i].value);
        text_addf(&writer->text, ",%.12g,%.3g,", points[i].sum,
                  covered_share(writer->written, &points[i]));
        if (points[i].t_sigma > 0)
            text_addf(&writer->text, "%.3g", points[i].t_sigma);
        text_add(&writer->text, "\n");
        *writer->written = (struct samples_written){points[i].t, points[i].covered};
    }
    if (writer->text.length >= PIECE || writer->text.failed)
        give(writer);
    return writer->err == ERR_OK;
}

static size_t channels_in_all(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++)
        count += sampler_sensor(sampler, s)->channel_count;
    return count;
}

enum err samples_log_init(struct samples_log *log, struct sampler *sampler, nanos zero,
                          enum err (*put)(const char *bytes, void *context), void *context)
{
    size_t count = channels_in_all(sampler);
    *log = (struct samples_log){.sampler = sampler, .zero = zero, .put = put, .context = context};
    log->written = calloc(count + 1, sizeof *log->written);
    if (!log->written)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        log->written[i].t = INT64_MIN;
    return put(SAMPLES_HEADER, context);
}

enum err samples_log_append(struct samples_log *log)
{
    struct writer writer = {.log = log, .written = log->written};
    for (size_t s = 0; s < sampler_count(log->sampler) && !writer.err; s++) {
        writer.sensor = sampler_sensor(log->sampler, s);
        for (size_t c = 0; c < writer.sensor->channel_count && !writer.err; c++) {
            writer.channel = &writer.sensor->channels[c];
            enum err err =
                sampler_points(log->sampler, s, c, writer.written->t, write_points, &writer);
            if (!writer.err)
                writer.err = err;
            writer.written++;
        }
    }
    give(&writer);
    text_release(&writer.text);
    return writer.err;
}

void samples_log_release(struct samples_log *log)
{
    free(log->written);
    log->written = NULL;
}

enum err samples_to_csv(struct sampler *sampler, nanos zero,
                        enum err (*put)(const char *bytes, void *context), void *context)
{
    struct samples_log log;
    enum err err = samples_log_init(&log, sampler, zero, put, context);
    if (!err)
        err = samples_log_append(&log);
    samples_log_release(&log);
    return err;
}
