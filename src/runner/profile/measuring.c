#include "runner/profile/measuring.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/quantity.h"
#include "core/text.h"
#include "port/json_read.h"
#include "sampler/sampler.h"
#include "sensors/registry.h"
#include "sensors/sensor.h"

/* ---- writing ---- */

static void put_channel(struct json *json, const struct sensor_channel *channel, nanos gap_limit)
{
    json_object(json, NULL);
    json_string(json, "name", channel->name);
    json_string(json, "device", channel->device);
    json_string(json, "quantity", quantity_name(channel->quantity));
    json_string(json, "scope", scope_name(channel->scope));
    json_integer(json, "location", channel->location);
    json_number(json, "joules_per_count", channel->joules_per_count);
    json_number(json, "relative_accuracy", channel->relative_accuracy);
    json_bool(json, "estimated", channel->estimated);
    json_bool(json, "interval_mean", channel->interval_mean);
    json_bool(json, "secondary", channel->secondary);
    json_number(json, "gap_limit_s", seconds(gap_limit));
    json_object_end(json);
}

static void put_sensors(struct json *json, struct sampler *sampler)
{
    json_array(json, "sensors");
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        json_object(json, NULL);
        json_string(json, "id", sensor->id);
        json_string(json, "name", sensor->name);
        json_string(json, "driver", sensor->driver->name);
        json_string(json, "kind", sensor_kind_name(sensor->kind));
        json_array(json, "channels");
        for (size_t c = 0; c < sensor->channel_count; c++) {
            struct channel_state state;
            sampler_channel(sampler, s, c, &state);
            put_channel(json, &sensor->channels[c], state.gap_limit);
        }
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_idle(struct json *json, const struct measuring *measuring)
{
    if (!measuring->has_idle) {
        json_null(json, "idle");
        return;
    }
    json_object(json, "idle");
    json_number(json, "seconds", measuring->idle.seconds);
    json_array(json, "devices");
    for (size_t i = 0; i < measuring->idle.count; i++) {
        const struct baseline_row *row = &measuring->idle.rows[i];
        json_object(json, NULL);
        json_string(json, "id", row->device);
        json_number(json, "power_w", row->watts);
        json_number(json, "plus_minus", row->sigma);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

void measuring_to_json(struct json *json, const char *key, const struct measuring *measuring,
                       struct sampler *sampler)
{
    json_object(json, key);
    json_number(json, "from_s", measuring->from_s);
    json_number(json, "decode_weight", measuring->decode_weight);
    put_idle(json, measuring);
    put_sensors(json, sampler);
    json_object_end(json);
}

/* ---- reading ---- */

static enum err not_ours(struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "the journal does not tell what its sensors were");
}

static bool copy_text(char *to, size_t size, const struct jv *value)
{
    const char *text = jv_text(value);
    return text && str_copy(to, size, text);
}

static bool find_quantity(const char *name, enum quantity *out)
{
    for (int i = 0; name && i < QTY_COUNT; i++)
        if (!strcmp(quantity_name((enum quantity)i), name)) {
            *out = (enum quantity)i;
            return true;
        }
    return false;
}

static bool find_scope(const char *name, enum scope *out)
{
    for (int i = 0; name && i < SCOPE_COUNT; i++)
        if (!strcmp(scope_name((enum scope)i), name)) {
            *out = (enum scope)i;
            return true;
        }
    return false;
}

static bool find_kind(const char *name, enum sensor_kind *out)
{
    for (int i = SENSOR_CPU; name && i <= SENSOR_TEST; i++)
        if (!strcmp(sensor_kind_name((enum sensor_kind)i), name)) {
            *out = (enum sensor_kind)i;
            return true;
        }
    return false;
}

static bool take_channel(const struct jv *value, struct sensor_channel *out, nanos *gap_limit)
{
    int64_t location;
    double gap_s = jv_number(jv_get(value, "gap_limit_s"));
    *out = (struct sensor_channel){
        .joules_per_count = jv_number(jv_get(value, "joules_per_count")),
        .relative_accuracy = jv_number(jv_get(value, "relative_accuracy")),
        .estimated = jv_truth(jv_get(value, "estimated"), false),
        .interval_mean = jv_truth(jv_get(value, "interval_mean"), false),
        .secondary = jv_truth(jv_get(value, "secondary"), false),
    };
    if (!copy_text(out->name, sizeof out->name, jv_get(value, "name")) ||
        !copy_text(out->device, sizeof out->device, jv_get(value, "device")) ||
        !find_quantity(jv_text(jv_get(value, "quantity")), &out->quantity) ||
        !find_scope(jv_text(jv_get(value, "scope")), &out->scope) ||
        !jv_integer(jv_get(value, "location"), &location) || location < -1 || location > INT32_MAX)
        return false;
    if (!is_known(out->joules_per_count) || !is_known(out->relative_accuracy) ||
        !(gap_s >= 0 && gap_s < 1e6))
        return false;
    out->location = (int)location;
    *gap_limit = from_seconds(gap_s);
    return true;
}

/* A driver that this build lacks: its sensors are wrong alike, as those of one driver are. */
static const struct sensor_driver UNKNOWN_DRIVER = {.name = "unknown", .summary = ""};

static bool take_sensor(const struct jv *value, struct sensor *out, nanos *gap_limits)
{
    const char *driver = jv_text(jv_get(value, "driver"));
    *out = (struct sensor){.pin_cpu = -1, .driver = driver ? sensor_driver_find(driver) : NULL};
    if (!out->driver)
        out->driver = &UNKNOWN_DRIVER;
    if (!copy_text(out->id, sizeof out->id, jv_get(value, "id")) ||
        !copy_text(out->name, sizeof out->name, jv_get(value, "name")) ||
        !find_kind(jv_text(jv_get(value, "kind")), &out->kind))
        return false;
    const struct jv *channels = jv_get(value, "channels");
    for (const struct jv *one = jv_first(channels); one; one = jv_next(one)) {
        if (out->channel_count == SENSOR_CHANNELS_MAX ||
            !take_channel(one, &out->channels[out->channel_count], &gap_limits[out->channel_count]))
            return false;
        out->channel_count++;
    }
    return true;
}

static enum err take_sensors(const struct jv *list, struct sampler *sampler, struct error *why)
{
    if (!jv_is_array(list))
        return not_ours(why);
    enum err err = ERR_OK;
    for (const struct jv *one = jv_first(list); one && !err; one = jv_next(one)) {
        struct sensor sensor;
        nanos gap_limits[SENSOR_CHANNELS_MAX];
        err = take_sensor(one, &sensor, gap_limits)
                  ? sampler_add_past(sampler, &sensor, gap_limits, why)
                  : not_ours(why);
    }
    return err;
}

static enum err take_idle(const struct jv *value, struct measuring *out, struct error *why)
{
    const struct jv *devices = jv_get(value, "devices");
    if (jv_is_null(value))
        return ERR_OK;
    out->idle.seconds = jv_number(jv_get(value, "seconds"));
    out->idle.rows = calloc(jv_count(devices) + 1, sizeof *out->idle.rows);
    if (!out->idle.rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (const struct jv *one = jv_first(devices); one; one = jv_next(one)) {
        struct baseline_row *row = &out->idle.rows[out->idle.count++];
        row->watts = jv_number(jv_get(one, "power_w"));
        row->sigma = jv_number(jv_get(one, "plus_minus"));
        if (!copy_text(row->device, sizeof row->device, jv_get(one, "id")) || !is_known(row->watts))
            return not_ours(why);
    }
    out->has_idle = true;
    return ERR_OK;
}

enum err measuring_from_json(const struct jv *value, struct measuring *out, struct sampler *sampler,
                             struct error *why)
{
    *out = (struct measuring){
        .from_s = jv_number(jv_get(value, "from_s")),
        .decode_weight = jv_number(jv_get(value, "decode_weight")),
    };
    if (!is_known(out->from_s) || !is_known(out->decode_weight))
        return not_ours(why);
    enum err err = take_idle(jv_get(value, "idle"), out, why);
    return err ? err : take_sensors(jv_get(value, "sensors"), sampler, why);
}

void measuring_release(struct measuring *measuring)
{
    baseline_release(&measuring->idle);
}
