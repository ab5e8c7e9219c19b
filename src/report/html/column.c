#include "report/html/sections.h"

#include <math.h>
#include <stdint.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"

/* ---- properties of a column ---- */

struct shape {
    size_t known;
    double low, high;
    bool integers; /* only integers */
    bool even;     /* constant differences, none unknown */
    double by;
};

static struct shape shape_of(const double *values, size_t count)
{
    struct shape shape = {.low = INFINITY, .high = -INFINITY, .integers = true, .even = count > 1};
    shape.by = count > 1 ? values[1] - values[0] : 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_known(values[i])) {
            shape.even = false;
            continue;
        }
        shape.known++;
        shape.low = fmin(shape.low, values[i]);
        shape.high = fmax(shape.high, values[i]);
        shape.integers = shape.integers && values[i] == floor(values[i]);
        shape.even = shape.even && (i == 0 || values[i] - values[i - 1] == shape.by);
    }
    return shape;
}

/* ---- bytes as text ---- */

struct base64 {
    struct text *out;
    uint32_t bits;
    unsigned filled; /* valid bytes in `bits`, 0 to 2 */
};

static void add_group(struct base64 *to, unsigned letters)
{
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char group[4] = {'=', '=', '=', '='};
    for (unsigned i = 0; i < letters; i++)
        group[i] = LETTERS[to->bits >> (18 - 6 * i) & 63];
    text_add_bytes(to->out, group, sizeof group);
    to->bits = 0;
    to->filled = 0;
}

static void add_byte(struct base64 *to, unsigned byte)
{
    to->bits |= (uint32_t)byte << (16 - 8 * to->filled);
    if (++to->filled == 3)
        add_group(to, 4);
}

static void add_code(struct base64 *to, uint32_t code, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        add_byte(to, code >> 8 * i & 255);
}

/* ---- a column ---- */

struct scale {
    double low, step;
    bool log;
    unsigned bytes;
};

static uint32_t none_of(unsigned bytes)
{
    return (UINT32_C(1) << 8 * bytes) - 1;
}

static struct scale scale_of(const struct shape *shape, unsigned bytes, bool may_log)
{
    struct scale scale = {.low = shape->low, .step = 1, .bytes = bytes};
    double range = shape->high - shape->low;
    double max = none_of(bytes) - 1;
    if (shape->integers && range <= none_of(3) - 1) {
        scale.bytes = 1;
        while (scale.bytes < 3 && range >= none_of(scale.bytes))
            scale.bytes++;
        return scale;
    }
    scale.log = may_log && shape->low > 0;
    scale.step = (scale.log ? log(shape->high / shape->low) : range) / max;
    return scale;
}

static uint32_t code_of(const struct scale *scale, double value)
{
    if (!is_known(value))
        return none_of(scale->bytes);
    double place = scale->log ? log(value / scale->low) : value - scale->low;
    double code = scale->step > 0 ? round(place / scale->step) : 0;
    return (uint32_t)fmin(fmax(code, 0), none_of(scale->bytes) - 1);
}

static void put_codes(struct json *json, const double *values, size_t count,
                      const struct scale *scale)
{
    struct text data = {0};
    struct base64 to = {.out = &data};
    text_add(&data, "\"");
    for (size_t i = 0; i < count; i++)
        add_code(&to, code_of(scale, values[i]), scale->bytes);
    if (to.filled)
        add_group(&to, to.filled + 1);
    text_add(&data, "\"");
    json_integer(json, "bytes", scale->bytes);
    json_number(json, "low", scale->low);
    json_number(json, "step", scale->step);
    if (scale->log)
        json_bool(json, "log", true);
    json_raw(json, "data", text_get(&data));
    text_release(&data);
}

static void put_column(struct json *json, const char *key, const double *values, size_t count,
                       unsigned bytes, bool may_log)
{
    struct shape shape = shape_of(values, count);
    json_object(json, key);
    if (shape.known == 0 || (shape.known == count && shape.low == shape.high)) {
        json_number(json, "same", shape.known ? shape.low : UNKNOWN);
    } else if (shape.even && shape.integers) {
        json_number(json, "first", values[0]);
        json_number(json, "by", shape.by);
    } else {
        struct scale scale = scale_of(&shape, bytes, may_log);
        put_codes(json, values, count, &scale);
    }
    json_object_end(json);
}

void column_put(struct json *json, const char *key, const double *values, size_t count,
                unsigned bytes)
{
    put_column(json, key, values, count, bytes, true);
}

void column_put_even(struct json *json, const char *key, const double *values, size_t count,
                     unsigned bytes)
{
    put_column(json, key, values, count, bytes, false);
}
