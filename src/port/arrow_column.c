#include "port/arrow_column.h"

#include <inttypes.h>
#include <math.h>
#include <nanoarrow.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/arrow.h"

enum {
    DEPTH_MAX = 24,         /* within the limit of the JSON writer */
    ELEMENT_BITS = 1 << 30, /* limit of a fixed-size element: no product with a length overflows */
    BATCH_ROWS = INT32_MAX, /* limit of rows, or of elements of one list column, in a batch */
};

struct arrow_column {
    char *name;
    enum ArrowType type;
    enum ArrowTimeUnit unit;
    bool in_utc; /* a timestamp with a time zone: the value is an instant */
    size_t child_count;
    struct arrow_column **children;
};

/* ---- the tree ---- */

static bool is_supported(enum ArrowType type)
{
    switch (type) {
    case NANOARROW_TYPE_NA:
    case NANOARROW_TYPE_BOOL:
    case NANOARROW_TYPE_UINT8:
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT64:
    case NANOARROW_TYPE_INT64:
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
    case NANOARROW_TYPE_DATE32:
    case NANOARROW_TYPE_DATE64:
    case NANOARROW_TYPE_TIMESTAMP:
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
    case NANOARROW_TYPE_STRUCT:
    case NANOARROW_TYPE_MAP:
        return true;
    default:
        return false;
    }
}

/* Checks the number of children (a list has one; a map has one with two) and that a fixed size is plausible. */
static bool has_shape(const struct ArrowSchema *schema, const struct ArrowSchemaView *view)
{
    bool sized = view->fixed_size >= 0 && view->fixed_size <= ELEMENT_BITS / 8;
    switch (view->type) {
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
        return sized;
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
        return sized && schema->n_children == 1;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
        return schema->n_children == 1;
    case NANOARROW_TYPE_MAP:
        return schema->n_children == 1 && schema->children[0]->n_children == 2;
    default:
        return true;
    }
}

static enum err column_make(const struct ArrowSchema *schema, unsigned depth,
                            struct arrow_column *column, struct error *why);

static enum err add_children(const struct ArrowSchema *schema, unsigned depth,
                             struct arrow_column *column, struct error *why)
{
    if (schema->n_children <= 0)
        return ERR_OK;
    column->children = calloc((size_t)schema->n_children, sizeof *column->children);
    if (!column->children)
        return ERR_NO_MEMORY;
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct arrow_column *child = calloc(1, sizeof *child);
        if (!child)
            return ERR_NO_MEMORY;
        column->children[column->child_count++] = child;
        enum err err = column_make(schema->children[i], depth + 1, child, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err column_make(const struct ArrowSchema *schema, unsigned depth,
                            struct arrow_column *column, struct error *why)
{
    struct ArrowSchemaView view = {0};
    struct ArrowError detail = {0};
    const char *name = schema->name ? schema->name : "";
    if (depth > DEPTH_MAX)
        return err_set(why, ERR_UNSUPPORTED, "columns are nested deeper than %d levels", DEPTH_MAX);
    if (ArrowSchemaViewInit(&view, schema, &detail))
        return err_set(why, ERR_BAD_VALUE, "column '%.60s': %.160s", name, detail.message);
    if (!is_supported(view.type) || !is_supported(view.storage_type))
        return err_set(why, ERR_UNSUPPORTED, "column '%.60s' is of type %s, which is not supported",
                       name, ArrowTypeString(view.type));
    if (!has_shape(schema, &view))
        return err_set(why, ERR_BAD_VALUE, "column '%.60s' is not a valid %s", name,
                       ArrowTypeString(view.type));
    column->type = view.type;
    column->unit = view.time_unit;
    column->in_utc = view.type == NANOARROW_TYPE_TIMESTAMP && view.timezone && *view.timezone;
    column->name = strdup(name);
    if (!column->name)
        return ERR_NO_MEMORY;
    return add_children(schema, depth, column, why);
}

enum err arrow_column_new(const struct ArrowSchema *schema, struct arrow_column **out,
                          struct error *why)
{
    *out = NULL;
    struct arrow_column *column = calloc(1, sizeof *column);
    enum err err = column ? column_make(schema, 0, column, why) : ERR_NO_MEMORY;
    if (err == ERR_NO_MEMORY)
        err_set(why, err, "%s", err_text(err));
    if (err)
        arrow_column_free(column);
    else
        *out = column;
    return err;
}

void arrow_column_free(struct arrow_column *column)
{
    if (!column)
        return;
    for (size_t i = 0; i < column->child_count; i++)
        arrow_column_free(column->children[i]);
    free((void *)column->children);
    free(column->name);
    free(column);
}

/* ---- paths ---- */

static bool is_text(enum ArrowType type)
{
    return type == NANOARROW_TYPE_STRING || type == NANOARROW_TYPE_LARGE_STRING;
}

static enum arrow_kind kind_of(enum ArrowType type)
{
    if (is_text(type))
        return ARROW_IS_TEXT;
    if (type == NANOARROW_TYPE_STRUCT)
        return ARROW_IS_STRUCT;
    /* Integers and floats are adjacent in the list of types. */
    return type >= NANOARROW_TYPE_BOOL && type <= NANOARROW_TYPE_DOUBLE ? ARROW_IS_NUMBER
                                                                        : ARROW_IS_OTHER;
}

bool arrow_column_find(const struct arrow_column *root, const char *const *names, size_t count,
                       struct arrow_path *out)
{
    const struct arrow_column *column = root;
    *out = (struct arrow_path){.kind = ARROW_IS_STRUCT};
    for (size_t depth = 0; depth < count; depth++) {
        size_t i = 0;
        if (column->type != NANOARROW_TYPE_STRUCT || depth == ARROW_PATH_MAX)
            return false;
        while (i < column->child_count && strcmp(column->children[i]->name, names[depth]) != 0)
            i++;
        if (i == column->child_count)
            return false;
        column = column->children[i];
        out->child[out->depth++] = (uint32_t)i;
    }
    out->kind = kind_of(column->type);
    return true;
}

const char *arrow_column_child(const struct arrow_column *root, const struct arrow_path *path,
                               size_t i)
{
    const struct arrow_column *column = root;
    for (unsigned depth = 0; depth < path->depth; depth++)
        column = column->children[path->child[depth]];
    return column->type == NANOARROW_TYPE_STRUCT && i < column->child_count
               ? column->children[i]->name
               : NULL;
}

/* ---- checks of a batch ---- */

static bool buffer_is_inside(const struct ArrowBufferView *buffer, const uint8_t *body,
                             int64_t size)
{
    if (buffer->size_bytes == 0)
        return true;
    const uint8_t *start = buffer->data.as_uint8;
    return buffer->size_bytes > 0 && start >= body && buffer->size_bytes <= size &&
           start - body <= size - buffer->size_bytes && (start - body) % 8 == 0;
}

enum err arrow_column_check(const struct ArrowArrayView *view, const uint8_t *body, int64_t size,
                            struct error *why)
{
    if (view->length < 0 || view->length > BATCH_ROWS || view->offset != 0)
        return err_set(why, ERR_BAD_VALUE, "a column of %" PRId64 " values", view->length);
    for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; i++)
        if (view->layout.buffer_type[i] != NANOARROW_BUFFER_TYPE_NONE &&
            !buffer_is_inside(&view->buffer_views[i], body, size))
            return err_set(why, ERR_BAD_VALUE, "a column's values are outside its message");
    for (int64_t i = 0; i < view->n_children; i++) {
        enum err err = arrow_column_check(view->children[i], body, size, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* ---- a row as JSON ---- */

static void print_base64(const uint8_t *bytes, size_t length, const char *key, struct json *json)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct text text = {0};
    text_add(&text, "\"");
    for (size_t i = 0; i < length; i += 3) {
        size_t have = length - i < 3 ? length - i : 3;
        uint32_t word = (uint32_t)bytes[i] << 16;
        word |= have > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        word |= have > 2 ? bytes[i + 2] : 0;
        char four[4] = {DIGITS[word >> 18], DIGITS[word >> 12 & 63], DIGITS[word >> 6 & 63],
                        DIGITS[word & 63]};
        memset(four + 1 + have, '=', 3 - have);
        text_add_bytes(&text, four, sizeof four);
    }
    text_add(&text, "\"");
    json->out->failed |= text.failed;
    json_raw(json, key, text_get(&text));
    text_release(&text);
}

/* `units` of 1/per_second s since 1970, with as many digits as the unit has.  Seconds are rounded down, also before
 * 1970, so that the remainder is never negative. */
static void print_time(int64_t units, int64_t per_second, int digits, bool date_only,
                       const char *suffix, const char *key, struct json *json)
{
    int64_t whole = units / per_second - (units % per_second < 0);
    int64_t rest = units % per_second + (units % per_second < 0 ? per_second : 0);
    time_t at = (time_t)whole;
    struct tm tm;
    char date[64], text[128];
    if (!gmtime_r(&at, &tm) || !strftime(date, sizeof date, date_only ? "%F" : "%FT%T", &tm))
        str_format(text, sizeof text, "%" PRId64, units); /* a year beyond any calendar's */
    else if (digits > 0 && !date_only)
        str_format(text, sizeof text, "%s.%0*" PRId64 "%s", date, digits, rest, suffix);
    else
        str_format(text, sizeof text, "%s%s", date, suffix);
    json_string(json, key, text);
}

static void print_timestamp(const struct arrow_column *column, int64_t value, const char *key,
                            struct json *json)
{
    const char *suffix = column->in_utc ? "Z" : "";
    switch (column->unit) {
    case NANOARROW_TIME_UNIT_SECOND:
        print_time(value, 1, 0, false, suffix, key, json);
        break;
    case NANOARROW_TIME_UNIT_MILLI:
        print_time(value, 1000, 3, false, suffix, key, json);
        break;
    case NANOARROW_TIME_UNIT_MICRO:
        print_time(value, 1000000, 6, false, suffix, key, json);
        break;
    case NANOARROW_TIME_UNIT_NANO:
        print_time(value, 1000000000, 9, false, suffix, key, json);
        break;
    }
}

static void print_list(const struct arrow_column *column, const struct ArrowArrayView *view,
                       int64_t at, const char *key, struct json *json)
{
    int64_t from, to;
    if (column->type == NANOARROW_TYPE_FIXED_SIZE_LIST) {
        from = at * view->layout.child_size_elements;
        to = from + view->layout.child_size_elements;
    } else {
        from = ArrowArrayViewListChildOffset(view, at);
        to = ArrowArrayViewListChildOffset(view, at + 1);
    }
    json_array(json, key);
    for (int64_t i = from; i < to; i++)
        arrow_column_print(column->children[0], view->children[0], i, NULL, json);
    json_array_end(json);
}

static void print_struct(const struct arrow_column *column, const struct ArrowArrayView *view,
                         int64_t at, const char *key, struct json *json)
{
    json_object(json, key);
    for (size_t i = 0; i < column->child_count; i++)
        arrow_column_print(column->children[i], view->children[i], at, column->children[i]->name,
                           json);
    json_object_end(json);
}

static void print_map(const struct arrow_column *column, const struct ArrowArrayView *view,
                      int64_t at, const char *key, struct json *json)
{
    const struct arrow_column *const *of =
        (const struct arrow_column *const *)column->children[0]->children;
    struct ArrowArrayView *const *in = view->children[0]->children;
    const int32_t *offsets = view->buffer_views[1].data.as_int32;
    bool as_object = is_text(of[0]->type);
    if (as_object)
        json_object(json, key);
    else
        json_array(json, key);
    for (int64_t i = offsets[at]; i < offsets[at + 1]; i++) {
        if (as_object) {
            struct ArrowStringView name = ArrowArrayViewGetStringUnsafe(in[0], i);
            struct text copy = {0};
            text_add_bytes(&copy, name.data ? name.data : "", (size_t)name.size_bytes);
            arrow_column_print(of[1], in[1], i, text_get(&copy), json);
            text_release(&copy);
        } else {
            json_array(json, NULL);
            arrow_column_print(of[0], in[0], i, NULL, json);
            arrow_column_print(of[1], in[1], i, NULL, json);
            json_array_end(json);
        }
    }
    if (as_object)
        json_object_end(json);
    else
        json_array_end(json);
}

static void print_unsigned(uint64_t value, const char *key, struct json *json)
{
    char digits[24];
    str_format(digits, sizeof digits, "%" PRIu64, value);
    json_raw(json, key, digits);
}

void arrow_column_print(const struct arrow_column *column, const struct ArrowArrayView *view,
                        int64_t at, const char *key, struct json *json)
{
    if (ArrowArrayViewIsNull(view, at)) {
        json_null(json, key);
        return;
    }
    switch (column->type) {
    case NANOARROW_TYPE_BOOL:
        json_bool(json, key, ArrowArrayViewGetIntUnsafe(view, at) != 0);
        break;
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
        json_number(json, key, ArrowArrayViewGetDoubleUnsafe(view, at));
        break;
    case NANOARROW_TYPE_UINT64:
        print_unsigned(ArrowArrayViewGetUIntUnsafe(view, at), key, json);
        break;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING: {
        struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(view, at);
        json_string_bytes(json, key, text.data ? text.data : "", (size_t)text.size_bytes);
        break;
    }
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_FIXED_SIZE_BINARY: {
        struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(view, at);
        print_base64(bytes.data.as_uint8, (size_t)bytes.size_bytes, key, json);
        break;
    }
    case NANOARROW_TYPE_DATE32:
        print_time(ArrowArrayViewGetIntUnsafe(view, at) * 86400, 1, 0, true, "", key, json);
        break;
    case NANOARROW_TYPE_DATE64:
        print_time(ArrowArrayViewGetIntUnsafe(view, at), 1000, 0, true, "", key, json);
        break;
    case NANOARROW_TYPE_TIMESTAMP:
        print_timestamp(column, ArrowArrayViewGetIntUnsafe(view, at), key, json);
        break;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
        print_list(column, view, at, key, json);
        break;
    case NANOARROW_TYPE_STRUCT:
        print_struct(column, view, at, key, json);
        break;
    case NANOARROW_TYPE_MAP:
        print_map(column, view, at, key, json);
        break;
    default:
        json_integer(json, key, ArrowArrayViewGetIntUnsafe(view, at));
    }
}

/* ---- values by column ---- */

static const struct ArrowArrayView *view_at(const struct ArrowArrayView *batch,
                                            const struct arrow_path *path)
{
    for (unsigned depth = 0; depth < path->depth; depth++)
        batch = batch->children[path->child[depth]];
    return batch;
}

/* Children of a null struct have values, but these are undefined.  The row itself is never null. */
static bool has_validity(const struct ArrowArrayView *view)
{
    return view->storage_type == NANOARROW_TYPE_NA || view->buffer_views[0].data.data;
}

/* Copies the values without checking validity. */
static void copy_numbers(const struct ArrowArrayView *view, int64_t rows, double *out)
{
    if (view->storage_type == NANOARROW_TYPE_DOUBLE) {
        for (int64_t i = 0; i < rows; i++)
            out[i] = view->buffer_views[1].data.as_double[i];
    } else if (view->storage_type == NANOARROW_TYPE_INT64) {
        for (int64_t i = 0; i < rows; i++)
            out[i] = (double)view->buffer_views[1].data.as_int64[i];
    } else {
        for (int64_t i = 0; i < rows; i++)
            out[i] = ArrowArrayViewGetDoubleUnsafe(view, i);
    }
}

static bool is_float(enum ArrowType type)
{
    return type == NANOARROW_TYPE_DOUBLE || type == NANOARROW_TYPE_FLOAT ||
           type == NANOARROW_TYPE_HALF_FLOAT;
}

static bool is_null_above(const struct ArrowArrayView *batch, const struct arrow_path *path,
                          int64_t row)
{
    for (unsigned depth = 0; depth < path->depth; depth++) {
        batch = batch->children[path->child[depth]];
        if (ArrowArrayViewIsNull(batch, row))
            return true;
    }
    return false;
}

/* Bitmask of the levels with nulls: most columns have none, and then no validity bit is read. */
static unsigned levels_with_nulls(const struct ArrowArrayView *batch, const struct arrow_path *path)
{
    unsigned levels = 0;
    for (unsigned depth = 0; depth < path->depth; depth++) {
        batch = batch->children[path->child[depth]];
        levels += has_validity(batch);
    }
    return levels;
}

void arrow_column_known(const struct ArrowArrayView *batch, const struct arrow_path *path,
                        bool *out)
{
    bool some_null = levels_with_nulls(batch, path) > 0;
    for (int64_t i = 0; i < batch->length; i++)
        out[i] = !some_null || !is_null_above(batch, path, i);
}

void arrow_column_numbers(const struct ArrowArrayView *batch, const struct arrow_path *path,
                          double *out, uint64_t *not_finite)
{
    const struct ArrowArrayView *view = view_at(batch, path);
    bool some_null = levels_with_nulls(batch, path) > 0;
    if (path->kind == ARROW_IS_NUMBER)
        copy_numbers(view, batch->length, out);
    for (int64_t i = 0; i < batch->length; i++)
        if (path->kind != ARROW_IS_NUMBER || (some_null && is_null_above(batch, path, i))) {
            out[i] = UNKNOWN;
        } else if (!isfinite(out[i])) {
            *not_finite += is_float(view->storage_type);
            out[i] = UNKNOWN;
        }
}

void arrow_column_texts(const struct ArrowArrayView *batch, const struct arrow_path *path,
                        struct arrow_text *out)
{
    const struct ArrowArrayView *view = view_at(batch, path);
    bool some_null = levels_with_nulls(batch, path) > 0;
    for (int64_t i = 0; i < batch->length; i++) {
        out[i] = (struct arrow_text){0};
        if (path->kind != ARROW_IS_TEXT || (some_null && is_null_above(batch, path, i)))
            continue;
        struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(view, i);
        out[i] = (struct arrow_text){text.data ? text.data : "", (size_t)text.size_bytes};
    }
}
