/* Sensor readings sent from one host to another, as JSON: tables bind the structs to their keys. */
#include "wire/readings.h"

#include <string.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/jv.h"
#include "core/text.h"

/* An incompatible version would have another path; this one may gain keys. */
#define FORMAT "ipw.readings.v1"

/* Seconds between updates: no monitor has others, and a reader polls as often. */
#define INTERVAL_MIN 0.001
#define INTERVAL_MAX 3600

#define TIME_MAX     9e18 /* nanoseconds */
#define LOCATION_MAX (1 << 20)

/* ---- the tables ---- */

static const char *scope_at(int value)
{
    return scope_name((enum scope)value);
}

static const char *method_at(int value)
{
    return method_name((enum method)value);
}

static void clear_quantity(const struct json_field *field, void *object)
{
    (void)field;
    ((struct reading_gauge *)object)->quantity = QTY_COUNT;
}

static void write_quantity(struct json *json, const char *key, const struct json_field *field,
                           const void *object)
{
    (void)field;
    json_string(json, key, quantity_name(((const struct reading_gauge *)object)->quantity));
}

/* A quantity unknown to this version stays QTY_COUNT. */
static enum err read_quantity(const struct json_place *at, const struct json_field *field,
                              const struct jv *value, void *object)
{
    const char *name = jv_text(value);
    (void)at, (void)field;
    for (int i = 0; name && i < QTY_COUNT; i++)
        if (str_equal(quantity_name((enum quantity)i), name))
            ((struct reading_gauge *)object)->quantity = (enum quantity)i;
    return ERR_OK;
}

static const struct json_custom QUANTITY = {
    .write = write_quantity, .read = read_quantity, .clear = clear_quantity};

static void write_unit(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    (void)field;
    json_string(json, key, quantity_unit(((const struct reading_gauge *)object)->quantity));
}

static const struct json_custom UNIT = {.write = write_unit};

static const struct json_field POINT_FIELDS[] = {
    BIND_NANOS(reading_point, t, "t_ns", .flags = FIELD_REQUIRED, .max = TIME_MAX),
    BIND_NUMBER(reading_point, joules, "energy_j", .flags = FIELD_REQUIRED, .max = INFINITY),
    BIND_NANOS(reading_point, covered, "covered_ns", .flags = FIELD_REQUIRED, .max = TIME_MAX),
    {0},
};

/* Names are one plain line, so that they are safe for terminals and files. */
static const struct json_field DOMAIN_FIELDS[] = {
    BIND_CHARS(reading_domain, device, "device", .flags = FIELD_REQUIRED),
    BIND_CHARS(reading_domain, name, "name", .flags = FIELD_NULL),
    BIND_CHARS(reading_domain, kind, "kind", .flags = FIELD_REQUIRED),
    BIND_CHARS(reading_domain, source, "source", .flags = FIELD_REQUIRED),
    BIND_CHARS(reading_domain, channel, "channel", .flags = FIELD_REQUIRED),
    BIND_CHARS(reading_domain, uuid, "uuid", .flags = FIELD_NULL),
    BIND_ENUM(reading_domain, scope, scope_at, 0, SCOPE_COUNT, "scope", .flags = FIELD_REQUIRED),
    BIND_INT(reading_domain, location, "location", .flags = FIELD_REQUIRED, .min = -1,
             .max = LOCATION_MAX),
    BIND_ENUM(reading_domain, method, method_at, METHOD_COUNTER, 3, "method",
              .flags = FIELD_REQUIRED),
    BIND_NUMBER(reading_domain, accuracy, "uncertainty_ratio", .flags = FIELD_REQUIRED, .max = 1),
    BIND_FLAG(reading_domain, is_up, "up"),
    BIND_FLAG(reading_domain, is_counted, "counted"),
    BIND_NUMBER(reading_domain, watts, "power_w"),
    BIND_NUMBER(reading_domain, watts_max, "power_max_w"),
    BIND_NUMBER(reading_domain, period_s, "period_s"),
    BIND_NUMBER(reading_domain, age_s, "age_s"),
    BIND_LIST(reading_domain, points, point_count, POINT_FIELDS, "points"),
    {0},
};

static const struct json_field GAUGE_FIELDS[] = {
    BIND_CHARS(reading_gauge, device, "device", .flags = FIELD_REQUIRED),
    BIND_CHARS(reading_gauge, channel, "channel", .flags = FIELD_REQUIRED),
    BIND_CUSTOM(reading_gauge, quantity, QUANTITY, "quantity"),
    BIND_CUSTOM(reading_gauge, quantity, UNIT, "unit"),
    BIND_NUMBER(reading_gauge, value, "value"),
    BIND_NUMBER(reading_gauge, age_s, "age_s"),
    {0},
};

static const struct json_field FORMAT_FIELDS[] = {
    BIND_CONSTANT(FORMAT, "format", .flags = FIELD_REQUIRED),
    {0},
};

static const struct json_field READINGS_FIELDS[] = {
    BIND_CHARS(readings, instance, "instance", .flags = FIELD_REQUIRED),
    BIND_CHARS(readings, host, "host"),
    BIND_NANOS(readings, monotonic, "monotonic_ns", .flags = FIELD_REQUIRED, .max = TIME_MAX),
    BIND_NANOS(readings, wall, "unix_ns", .flags = FIELD_REQUIRED, .max = TIME_MAX),
    BIND_SECONDS(readings, interval, "interval_s", .flags = FIELD_REQUIRED, .min = INTERVAL_MIN,
                 .max = INTERVAL_MAX),
    BIND_LIST(readings, domains, domain_count, DOMAIN_FIELDS, "domains", .flags = FIELD_REQUIRED),
    BIND_LIST(readings, gauges, gauge_count, GAUGE_FIELDS, "gauges"),
    {0},
};

/* ---- writing and reading ---- */

void readings_write(const struct readings *readings, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_fields_write(&json, FORMAT_FIELDS, readings);
    json_fields_write(&json, READINGS_FIELDS, readings);
    json_object_end(&json);
}

static enum err check_order(const struct readings *readings, struct error *why)
{
    for (size_t i = 0; i < readings->domain_count; i++) {
        const struct reading_domain *domain = &readings->domains[i];
        for (size_t k = 1; k < domain->point_count; k++)
            if (domain->points[k].t <= domain->points[k - 1].t)
                return err_set(why, ERR_BAD_VALUE,
                               "domains.%zu.points.%zu: must be later than the one before", i, k);
    }
    return ERR_OK;
}

static void drop_unknown_gauges(struct readings *readings)
{
    size_t kept = 0;
    for (size_t i = 0; i < readings->gauge_count; i++)
        if (readings->gauges[i].quantity != QTY_COUNT)
            readings->gauges[kept++] = readings->gauges[i];
    readings->gauge_count = kept;
}

static enum err read_tree(const struct jv *root, struct readings *out, struct error *why)
{
    struct error reason = {0};
    if (json_fields_read_strict(root, FORMAT_FIELDS, out, NULL, NULL))
        return err_set(why, ERR_BAD_VALUE, "the server there is not an ipw monitor");
    enum err err = json_fields_read_strict(root, READINGS_FIELDS, out, NULL, &reason);
    if (!err)
        err = check_order(out, &reason);
    drop_unknown_gauges(out);
    return err ? err_set(why, err, "the readings of its ipw monitor are malformed: %s", reason.text)
               : ERR_OK;
}

enum err readings_read(const char *text, size_t length, struct readings *out, struct error *why)
{
    struct jv *root;
    *out = (struct readings){0};
    enum err err = jv_parse(text, length, &root, why);
    if (err == ERR_NO_MEMORY)
        return err;
    if (err)
        return err_set(why, ERR_BAD_VALUE, "the server there is not an ipw monitor");
    err = read_tree(root, out, why);
    if (err)
        readings_release(out);
    jv_free(root);
    return err;
}

void readings_release(struct readings *readings)
{
    json_fields_release(READINGS_FIELDS, readings);
}
