/* Sensor readings sent from one host to another, as JSON, and converted from a telemetry message. */
#include "wire/readings.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"

/* An incompatible version would have another path; this one may gain keys. */
#define FORMAT "ipw.readings.v1"

/* Seconds between updates: no monitor has others, and a reader polls as often. */
#define INTERVAL_MIN 0.001
#define INTERVAL_MAX 3600

/* ---- writing ---- */

static void write_domain(const struct reading_domain *domain, struct json *json)
{
    json_object(json, NULL);
    json_string(json, "device", domain->device);
    json_string(json, "name", str_or_null(domain->name));
    json_string(json, "kind", domain->kind);
    json_string(json, "source", domain->source);
    json_string(json, "channel", domain->channel);
    json_string(json, "uuid", str_or_null(domain->uuid));
    json_string(json, "scope", scope_name(domain->scope));
    json_integer(json, "location", domain->location);
    json_string(json, "method", method_name(domain->method));
    json_number(json, "uncertainty_ratio", domain->accuracy);
    json_bool(json, "up", domain->is_up);
    json_bool(json, "counted", domain->is_counted);
    json_number(json, "power_w", domain->watts);
    json_number(json, "power_max_w", domain->watts_max);
    json_number(json, "period_s", domain->period_s);
    json_number(json, "age_s", domain->age_s);
    json_array(json, "points");
    for (size_t i = 0; i < domain->point_count; i++) {
        json_object(json, NULL);
        json_integer(json, "t_ns", domain->points[i].t);
        json_number(json, "energy_j", domain->points[i].joules);
        json_integer(json, "covered_ns", domain->points[i].covered);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_gauge(const struct reading_gauge *gauge, struct json *json)
{
    json_object(json, NULL);
    json_string(json, "device", gauge->device);
    json_string(json, "channel", gauge->channel);
    json_string(json, "quantity", quantity_name(gauge->quantity));
    json_string(json, "unit", quantity_unit(gauge->quantity));
    json_number(json, "value", gauge->value);
    json_number(json, "age_s", gauge->age_s);
    json_object_end(json);
}

void readings_write(const struct readings *readings, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_string(&json, "format", FORMAT);
    json_string(&json, "instance", readings->instance);
    json_string(&json, "host", readings->host);
    json_integer(&json, "monotonic_ns", readings->monotonic);
    json_integer(&json, "unix_ns", readings->wall);
    json_number(&json, "interval_s", seconds(readings->interval));
    json_array(&json, "domains");
    for (size_t i = 0; i < readings->domain_count; i++)
        write_domain(&readings->domains[i], &json);
    json_array_end(&json);
    json_array(&json, "gauges");
    for (size_t i = 0; i < readings->gauge_count; i++)
        write_gauge(&readings->gauges[i], &json);
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- reading ---- */

/* A name that is missing, too long or not plain is rejected, so that it is safe for terminals and files. */
static bool read_name(const struct jv *value, char *to, size_t size, bool may_lack)
{
    const char *text = jv_text(value);
    *to = '\0';
    if (!text)
        return may_lack && jv_is_null(value);
    return (text[0] || may_lack) && str_is_plain(text) && str_copy(to, size, text);
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

static bool find_quantity(const char *name, enum quantity *out)
{
    for (int i = 0; name && i < QTY_COUNT; i++)
        if (!strcmp(quantity_name((enum quantity)i), name)) {
            *out = (enum quantity)i;
            return true;
        }
    return false;
}

static bool find_method(const char *name, enum method *out)
{
    for (int i = METHOD_COUNTER; name && i <= METHOD_ESTIMATED; i++)
        if (!strcmp(method_name((enum method)i), name)) {
            *out = (enum method)i;
            return true;
        }
    return false;
}

/* Nanoseconds; beyond 2^53 the JSON parser rounds them, by less than the clock uncertainty. */
static bool read_time(const struct jv *value, nanos *out)
{
    double number = jv_number(value);
    if (!(number >= 0 && number < 9e18))
        return false;
    *out = (nanos)number;
    return true;
}

static bool read_points(const struct jv *list, struct reading_point *to, size_t *count)
{
    nanos last = INT64_MIN;
    *count = 0;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        struct reading_point point = {.joules = jv_number(jv_get(item, "energy_j"))};
        if (!read_time(jv_get(item, "t_ns"), &point.t) || point.t <= last || !(point.joules >= 0) ||
            !read_time(jv_get(item, "covered_ns"), &point.covered))
            return false;
        last = point.t;
        to[(*count)++] = point;
    }
    return true;
}

static bool read_domain(const struct jv *item, struct reading_point *points,
                        struct reading_domain *out)
{
    int64_t location;
    *out = (struct reading_domain){.points = points};
    if (!read_name(jv_get(item, "device"), out->device, sizeof out->device, false) ||
        !read_name(jv_get(item, "name"), out->name, sizeof out->name, true) ||
        !read_name(jv_get(item, "kind"), out->kind, sizeof out->kind, false) ||
        !read_name(jv_get(item, "source"), out->source, sizeof out->source, false) ||
        !read_name(jv_get(item, "channel"), out->channel, sizeof out->channel, false) ||
        !read_name(jv_get(item, "uuid"), out->uuid, sizeof out->uuid, true) ||
        !find_scope(jv_text(jv_get(item, "scope")), &out->scope) ||
        !find_method(jv_text(jv_get(item, "method")), &out->method) ||
        !jv_integer(jv_get(item, "location"), &location) || location < -1 || location > 1 << 20)
        return false;
    out->location = (int)location;
    out->accuracy = jv_number(jv_get(item, "uncertainty_ratio"));
    out->is_up = jv_bool(jv_get(item, "up"), false);
    out->is_counted = jv_bool(jv_get(item, "counted"), false);
    out->watts = jv_number(jv_get(item, "power_w"));
    out->watts_max = jv_number(jv_get(item, "power_max_w"));
    out->period_s = jv_number(jv_get(item, "period_s"));
    out->age_s = jv_number(jv_get(item, "age_s"));
    return out->accuracy >= 0 && out->accuracy <= 1 &&
           read_points(jv_get(item, "points"), points, &out->point_count);
}

static bool read_domains(const struct jv *list, struct readings *out)
{
    size_t count = 0;
    if (!jv_is_array(list))
        return false;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item))
        count += jv_count(jv_get(item, "points"));
    out->domains = calloc(jv_count(list) + 1, sizeof *out->domains);
    out->points = calloc(count + 1, sizeof *out->points);
    struct reading_point *points = out->points;
    for (const struct jv *item = jv_first(list); item && out->domains && points;
         item = jv_next(item)) {
        struct reading_domain *domain = &out->domains[out->domain_count];
        if (!read_domain(item, points, domain))
            return false;
        points += domain->point_count;
        out->domain_count++;
    }
    return out->domains && out->points;
}

/* Quantities unknown to this version are skipped. */
static bool read_gauges(const struct jv *list, struct readings *out)
{
    out->gauges = calloc(jv_count(list) + 1, sizeof *out->gauges);
    for (const struct jv *item = jv_first(list); item && out->gauges; item = jv_next(item)) {
        struct reading_gauge gauge = {.value = jv_number(jv_get(item, "value")),
                                      .age_s = jv_number(jv_get(item, "age_s"))};
        if (!read_name(jv_get(item, "device"), gauge.device, sizeof gauge.device, false) ||
            !read_name(jv_get(item, "channel"), gauge.channel, sizeof gauge.channel, false))
            return false;
        if (find_quantity(jv_text(jv_get(item, "quantity")), &gauge.quantity))
            out->gauges[out->gauge_count++] = gauge;
    }
    return out->gauges;
}

enum err readings_read(const char *text, size_t length, struct readings *out, struct error *why)
{
    struct jv *root;
    *out = (struct readings){0};
    enum err err = jv_parse(text, length, &root, why);
    if (err == ERR_NO_MEMORY)
        return err;
    const char *format = err ? NULL : jv_text(jv_get(root, "format"));
    if (!format || strcmp(format, FORMAT) != 0) {
        if (!err)
            jv_free(root);
        return err_set(why, ERR_BAD_VALUE, "the server there is not an ipw monitor");
    }
    double interval = jv_number(jv_get(root, "interval_s"));
    if (!read_name(jv_get(root, "instance"), out->instance, sizeof out->instance, false) ||
        !read_name(jv_get(root, "host"), out->host, sizeof out->host, true) ||
        !read_time(jv_get(root, "monotonic_ns"), &out->monotonic) ||
        !read_time(jv_get(root, "unix_ns"), &out->wall) ||
        !(interval >= INTERVAL_MIN && interval <= INTERVAL_MAX) ||
        !read_domains(jv_get(root, "domains"), out) || !read_gauges(jv_get(root, "gauges"), out)) {
        readings_release(out);
        err = err_set(why, ERR_BAD_VALUE, "the readings of its ipw monitor are malformed");
    } else {
        out->interval = from_seconds(interval);
    }
    jv_free(root);
    return err;
}

void readings_release(struct readings *readings)
{
    free(readings->domains);
    free(readings->gauges);
    free(readings->points);
    *readings = (struct readings){0};
}

/* ---- telemetry messages ---- */

/* A TelemetryReading of energy.proto, parsed without a library: only numbers and strings of protobuf's wire format are
 * needed. */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum {
    DOUBLES_MAX = 18,
    TIMESTAMP = 7,
    PLATFORM = 6,
    SYSTEM = 8,
    GPU = 9,
    HOST_NAME = 4,
    CPU_BRAND = 6,
    NAME = 1
};

/* Field numbers of doubles. */
enum {
    POWER_W = 1,
    ENERGY_J = 2,
    TEMPERATURE_C = 3,
    GPU_MEMORY_MB = 4,
    CPU_POWER_W = 10,
    CPU_ENERGY_J = 11,
    ANE_POWER_W = 12,
    ANE_ENERGY_J = 13,
    UTILIZATION_PCT = 14,
    MEMORY_UTILIZATION_PCT = 15,
    TENSOR_PCT = 16,
    GPU_MEMORY_TOTAL_MB = 17,
};

#define MEBIBYTE (1024.0 * 1024)
/* The service reports no calibration: assumed for the counters that it may read. */
#define ACCURACY 0.05

struct bytes {
    const unsigned char *at, *end;
};

struct field {
    unsigned number, type;
    uint64_t value;
    struct bytes text;
};

struct message {
    double doubles[DOUBLES_MAX];
    uint64_t timestamp;
    char platform[32], host[64], cpu[96], gpu[96];
};

/* ---- protobuf ---- */

static bool read_varint(struct bytes *from, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        unsigned char byte = *from->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool read_fixed(struct bytes *from, size_t size, uint64_t *out)
{
    if ((size_t)(from->end - from->at) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)from->at[i] << (8 * i);
    from->at += size;
    return true;
}

static bool read_field(struct bytes *from, struct field *out)
{
    uint64_t tag;
    if (!read_varint(from, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    *out = (struct field){.number = (unsigned)(tag >> 3), .type = tag & 7};
    switch (out->type) {
    case WIRE_VARINT:
        return read_varint(from, &out->value);
    case WIRE_64:
        return read_fixed(from, 8, &out->value);
    case WIRE_32:
        return read_fixed(from, 4, &out->value);
    case WIRE_BYTES:
        if (!read_varint(from, &out->value) || out->value > (uint64_t)(from->end - from->at))
            return false;
        out->text = (struct bytes){from->at, from->at + out->value};
        from->at += out->value;
        return true;
    default:
        return false;
    }
}

/* Text for display: escaped where it is not plain. */
static void take_text(const struct field *field, char *to, size_t size)
{
    if (field->type != WIRE_BYTES)
        return;
    str_format(to, size, "%.*s", (int)(field->text.end - field->text.at),
               (const char *)field->text.at);
    str_plain(to, size);
}

/* The text of one field of a nested message. */
static bool take_inner(const struct field *outer, unsigned number, char *to, size_t size)
{
    struct bytes from = outer->text;
    struct field field;
    if (outer->type != WIRE_BYTES)
        return false;
    while (from.at < from.end) {
        if (!read_field(&from, &field))
            return false;
        if (field.number == number)
            take_text(&field, to, size);
    }
    return true;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value >= 0 && is_known(value) ? value : UNKNOWN;
}

static bool read_message(struct bytes from, struct message *out)
{
    struct field field;
    *out = (struct message){0};
    for (size_t i = 0; i < DOUBLES_MAX; i++)
        out->doubles[i] = UNKNOWN;
    while (from.at < from.end) {
        if (!read_field(&from, &field))
            return false;
        if (field.type == WIRE_64 && field.number < DOUBLES_MAX)
            out->doubles[field.number] = as_double(field.value);
        else if (field.number == TIMESTAMP && field.type == WIRE_VARINT)
            out->timestamp = field.value;
        else if (field.number == PLATFORM)
            take_text(&field, out->platform, sizeof out->platform);
        else if (field.number == SYSTEM &&
                 (!take_inner(&field, HOST_NAME, out->host, sizeof out->host) ||
                  !take_inner(&field, CPU_BRAND, out->cpu, sizeof out->cpu)))
            return false;
        else if (field.number == GPU && !take_inner(&field, NAME, out->gpu, sizeof out->gpu))
            return false;
    }
    return out->timestamp > 0 && out->timestamp < (uint64_t)INT64_MAX;
}

/* ---- as readings ---- */

static void add_domain(struct readings *out, const struct message *message, int energy, int power,
                       enum scope scope, const char *device, const char *name)
{
    struct reading_point *point = &out->points[out->domain_count];
    struct reading_domain *domain = &out->domains[out->domain_count];
    if (!is_known(message->doubles[energy]))
        return;
    *point = (struct reading_point){(nanos)message->timestamp, (nanos)message->timestamp,
                                    message->doubles[energy]};
    bool is_counter = !strcmp(message->platform, "nvidia") || !strcmp(message->platform, "rapl");
    *domain = (struct reading_domain){
        .scope = scope,
        .location = -1,
        .method = is_counter ? METHOD_COUNTER : METHOD_INTEGRAL,
        .accuracy = ACCURACY,
        .watts = message->doubles[power],
        .watts_max = UNKNOWN,
        .period_s = UNKNOWN,
        .age_s = UNKNOWN,
        .is_up = true,
        .is_counted = true,
        .points = point,
        .point_count = 1,
    };
    str_copy(domain->device, sizeof domain->device, device);
    str_copy(domain->name, sizeof domain->name, name);
    str_copy(domain->kind, sizeof domain->kind,
             scope == SCOPE_GPU       ? "gpu"
             : scope == SCOPE_PACKAGE ? "cpu"
                                      : "board");
    str_format(domain->source, sizeof domain->source, "grpc %s", device);
    str_copy(domain->channel, sizeof domain->channel, "energy");
    out->domain_count++;
}

static void add_gauge(struct readings *out, const struct message *message, int field,
                      enum quantity quantity, double scale, const char *device)
{
    struct reading_gauge *gauge = &out->gauges[out->gauge_count++];
    *gauge = (struct reading_gauge){
        .quantity = quantity,
        .value = message->doubles[field] * scale,
        .is_absent = !is_known(message->doubles[field]),
    };
    str_copy(gauge->device, sizeof gauge->device, device);
    str_copy(gauge->channel, sizeof gauge->channel, quantity_name(quantity));
}

enum err readings_from_telemetry(const unsigned char *bytes, size_t length, struct readings *out,
                                 struct error *why)
{
    struct message message;
    *out = (struct readings){0};
    if (!read_message((struct bytes){bytes, bytes + length}, &message))
        return err_set(why, ERR_BAD_VALUE, "the server there is not an energy-monitor");
    *out = (struct readings){
        .monotonic = (nanos)message.timestamp,
        .wall = (nanos)message.timestamp,
        .domains = calloc(4, sizeof *out->domains),
        .points = calloc(4, sizeof *out->points),
        .gauges = calloc(8, sizeof *out->gauges),
    };
    if (!out->domains || !out->points || !out->gauges) {
        readings_release(out);
        return err_no_memory(why);
    }
    str_copy(out->host, sizeof out->host, message.host);
    bool is_board = !strcmp(message.platform, "jetson");
    const char *device = is_board ? "board" : "gpu";
    add_domain(out, &message, ENERGY_J, POWER_W, is_board ? SCOPE_BOARD : SCOPE_GPU, device,
               message.gpu);
    add_domain(out, &message, CPU_ENERGY_J, CPU_POWER_W, SCOPE_PACKAGE, "cpu", message.cpu);
    add_domain(out, &message, ANE_ENERGY_J, ANE_POWER_W, SCOPE_RAIL, "ane", "neural engine");
    add_gauge(out, &message, TEMPERATURE_C, QTY_TEMPERATURE, 1, device);
    add_gauge(out, &message, UTILIZATION_PCT, QTY_UTILIZATION, 1, device);
    add_gauge(out, &message, MEMORY_UTILIZATION_PCT, QTY_MEMORY_UTILIZATION, 1, device);
    add_gauge(out, &message, TENSOR_PCT, QTY_TENSOR_UTILIZATION, 1, device);
    add_gauge(out, &message, GPU_MEMORY_MB, QTY_MEMORY_USED, MEBIBYTE, device);
    add_gauge(out, &message, GPU_MEMORY_TOTAL_MB, QTY_MEMORY_TOTAL, MEBIBYTE, device);
    return ERR_OK;
}
