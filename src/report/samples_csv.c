#include "report/samples_csv.h"

#include "core/quantity.h"
#include "core/text.h"
#include "report/csv.h"
#include "sampler/sampler.h"

struct writer {
    const struct sensor *sensor;
    const struct sensor_channel *channel;
    nanos zero;
    struct text text;
    enum err (*put)(const char *bytes, void *context);
    void *context;
    enum err err;
};

static bool write_points(const struct point *points, size_t count, void *context)
{
    struct writer *writer = context;
    const struct sensor_channel *channel = writer->channel;
    text_clear(&writer->text);
    for (size_t i = 0; i < count; i++) {
        text_addf(&writer->text, "%.6f,", seconds(points[i].t - writer->zero));
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
        text_addf(&writer->text, ",%.12g\n", points[i].sum);
    }
    writer->err =
        writer->text.failed ? ERR_NO_MEMORY : writer->put(text_get(&writer->text), writer->context);
    return writer->err == ERR_OK;
}

enum err samples_to_csv(struct sampler *sampler, nanos zero,
                        enum err (*put)(const char *bytes, void *context), void *context)
{
    struct writer writer = {.zero = zero, .put = put, .context = context};
    writer.err = put("t_s,sensor,device,channel,scope,quantity,unit,value,sum\n", context);
    for (size_t s = 0; s < sampler_count(sampler) && !writer.err; s++) {
        writer.sensor = sampler_sensor(sampler, s);
        for (size_t c = 0; c < writer.sensor->channel_count && !writer.err; c++) {
            writer.channel = &writer.sensor->channels[c];
            enum err err = sampler_points(sampler, s, c, write_points, &writer);
            if (!writer.err)
                writer.err = err;
        }
    }
    text_release(&writer.text);
    return writer.err;
}
