/* A TelemetryReading of energy.proto, parsed without a library: only numbers and strings of protobuf's wire format are
 * needed. */

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "wire/readings.h"

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

static enum err add_domain(struct readings *out, const struct message *message, int energy,
                           int power, enum scope scope, const char *device, const char *name)
{
    struct reading_domain *domain = &out->domains[out->domain_count];
    if (!is_known(message->doubles[energy]))
        return ERR_OK;
    struct reading_point *point = memory_resize(NULL, sizeof *point);
    if (!point)
        return ERR_NO_MEMORY;
    *point = (struct reading_point){(nanos)message->timestamp, (nanos)message->timestamp,
                                    message->doubles[energy]};
    bool is_counter =
        str_equal(message->platform, "nvidia") || str_equal(message->platform, "rapl");
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
    chars_copy(domain->device, device);
    chars_copy(domain->name, name);
    if (scope == SCOPE_GPU)
        chars_copy(domain->kind, "gpu");
    else
        chars_copy(domain->kind, scope == SCOPE_PACKAGE ? "cpu" : "board");
    chars_format(domain->source, "grpc %s", device);
    chars_copy(domain->channel, "energy");
    out->domain_count++;
    return ERR_OK;
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
    chars_copy(gauge->device, device);
    chars_copy(gauge->channel, quantity_name(quantity));
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
        .domains = memory_zeroed(4, sizeof *out->domains),
        .gauges = memory_zeroed(8, sizeof *out->gauges),
    };
    enum err err = out->domains && out->gauges ? ERR_OK : ERR_NO_MEMORY;
    chars_copy(out->host, message.host);
    bool is_board = str_equal(message.platform, "jetson");
    const char *device = is_board ? "board" : "gpu";
    if (!err)
        err = add_domain(out, &message, ENERGY_J, POWER_W, is_board ? SCOPE_BOARD : SCOPE_GPU,
                         device, message.gpu);
    if (!err)
        err =
            add_domain(out, &message, CPU_ENERGY_J, CPU_POWER_W, SCOPE_PACKAGE, "cpu", message.cpu);
    if (!err)
        err = add_domain(out, &message, ANE_ENERGY_J, ANE_POWER_W, SCOPE_RAIL, "ane",
                         "neural engine");
    if (err) {
        readings_release(out);
        return err_no_memory(why);
    }
    add_gauge(out, &message, TEMPERATURE_C, QTY_TEMPERATURE, 1, device);
    add_gauge(out, &message, UTILIZATION_PCT, QTY_UTILIZATION, 1, device);
    add_gauge(out, &message, MEMORY_UTILIZATION_PCT, QTY_MEMORY_UTILIZATION, 1, device);
    add_gauge(out, &message, TENSOR_PCT, QTY_TENSOR_UTILIZATION, 1, device);
    add_gauge(out, &message, GPU_MEMORY_MB, QTY_MEMORY_USED, MEBIBYTE, device);
    add_gauge(out, &message, GPU_MEMORY_TOTAL_MB, QTY_MEMORY_TOTAL, MEBIBYTE, device);
    return ERR_OK;
}
