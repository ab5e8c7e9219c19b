/* A stream is a schema message, then one message per record batch.  A message is a marker and the length of its
 * header, the header, and a body.  We read these parts ourselves rather than let the library do it, so that no length
 * is trusted that the file cannot hold.  The columns of the schema are a tree; a row becomes a JSON value by a walk
 * through it. */
#include "port/arrow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <nanoarrow.h>
#include <nanoarrow_ipc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/jv.h"
#include "core/log.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

enum {
    PREFIX = 8,
    MAGIC = 8,
    DEPTH_MAX = 24,         /* limit of recursion */
    ELEMENT_BITS = 1 << 30, /* limit of a fixed-size element: no product with a length overflows */
    ROW_VALUES = 1 << 24,   /* limit of values in a row */
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

struct buffer {
    uint8_t *data; /* from malloc, which satisfies Arrow's alignment */
    size_t capacity;
};

struct arrow_reader {
    int fd;
    int64_t left; /* remaining bytes of the file */
    int64_t size;
    int64_t message_at; /* file offset of the current message */
    struct ArrowIpcDecoder decoder;
    struct arrow_column *columns;
    struct buffer header, body;
    const struct ArrowArrayView
        *batch; /* points into body; NULL before the first and after the last */
    int64_t at; /* the next row of the batch */
    char *path; /* for messages */
};

/* ---- columns ---- */

static bool is_supported(enum ArrowType type)
{
    static const enum ArrowType TYPES[] = {
        NANOARROW_TYPE_NA,     NANOARROW_TYPE_BOOL,         NANOARROW_TYPE_UINT8,
        NANOARROW_TYPE_INT8,   NANOARROW_TYPE_UINT16,       NANOARROW_TYPE_INT16,
        NANOARROW_TYPE_UINT32, NANOARROW_TYPE_INT32,        NANOARROW_TYPE_UINT64,
        NANOARROW_TYPE_INT64,  NANOARROW_TYPE_HALF_FLOAT,   NANOARROW_TYPE_FLOAT,
        NANOARROW_TYPE_DOUBLE, NANOARROW_TYPE_STRING,       NANOARROW_TYPE_LARGE_STRING,
        NANOARROW_TYPE_BINARY, NANOARROW_TYPE_LARGE_BINARY, NANOARROW_TYPE_FIXED_SIZE_BINARY,
        NANOARROW_TYPE_DATE32, NANOARROW_TYPE_DATE64,       NANOARROW_TYPE_TIMESTAMP,
        NANOARROW_TYPE_LIST,   NANOARROW_TYPE_LARGE_LIST,   NANOARROW_TYPE_FIXED_SIZE_LIST,
        NANOARROW_TYPE_STRUCT, NANOARROW_TYPE_MAP,
    };
    for (size_t i = 0; i < COUNT_OF(TYPES); i++)
        if (TYPES[i] == type)
            return true;
    return false;
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

static enum err make_column(const struct ArrowSchema *schema, unsigned depth,
                            struct arrow_column *column, struct error *why);

static enum err add_children(const struct ArrowSchema *schema, unsigned depth,
                             struct arrow_column *column, struct error *why)
{
    if (schema->n_children <= 0)
        return ERR_OK;
    column->children = xcalloc((size_t)schema->n_children, sizeof *column->children);
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct arrow_column *child = XNEW(child);
        column->children[column->child_count++] = child;
        enum err err = make_column(schema->children[i], depth + 1, child, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err make_column(const struct ArrowSchema *schema, unsigned depth,
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
    column->name = xstrdup(name);
    return add_children(schema, depth, column, why);
}

static void column_free(struct arrow_column *column)
{
    if (!column)
        return;
    for (size_t i = 0; i < column->child_count; i++)
        column_free(column->children[i]);
    free((void *)column->children);
    free(column->name);
    free(column);
}

/* ERR_UNSUPPORTED names the column and its type when the type is not supported. */
static enum err column_new(const struct ArrowSchema *schema, struct arrow_column **out,
                           struct error *why)
{
    *out = NULL;
    struct arrow_column *column = XNEW(column);
    enum err err = make_column(schema, 0, column, why);
    if (err)
        column_free(column);
    else
        *out = column;
    return err;
}

static bool is_text(enum ArrowType type)
{
    return type == NANOARROW_TYPE_STRING || type == NANOARROW_TYPE_LARGE_STRING;
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

/* Checks that the library's own validation omits: plausible lengths, and every buffer aligned and inside the message
 * body of `size` bytes. */
static enum err check_batch(const struct ArrowArrayView *view, const uint8_t *body, int64_t size,
                            struct error *why)
{
    if (view->length < 0 || view->length > BATCH_ROWS || view->offset != 0)
        return err_set(why, ERR_BAD_VALUE, "a column of %" PRId64 " values", view->length);
    for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; i++)
        if (view->layout.buffer_type[i] != NANOARROW_BUFFER_TYPE_NONE &&
            !buffer_is_inside(&view->buffer_views[i], body, size))
            return err_set(why, ERR_BAD_VALUE, "a column's values are outside its message");
    for (int64_t i = 0; i < view->n_children; i++) {
        enum err err = check_batch(view->children[i], body, size, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* ---- a row as a JSON value ---- */

static struct jv *base64_value(const uint8_t *bytes, size_t length)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct text text = {0};
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
    struct jv *value = jv_new_text(text_get(&text));
    text_release(&text);
    return value;
}

/* `units` of 1/per_second s since 1970, with as many digits as the unit has.  Seconds are rounded down, also before
 * 1970, so that the remainder is never negative. */
static struct jv *time_value(int64_t units, int64_t per_second, int digits, bool date_only,
                             const char *suffix)
{
    int64_t whole = units / per_second - (units % per_second < 0);
    int64_t rest = units % per_second + (units % per_second < 0 ? per_second : 0);
    time_t at = (time_t)whole;
    struct tm tm;
    char date[64], text[128];
    if (!gmtime_r(&at, &tm) || !strftime(date, sizeof date, date_only ? "%F" : "%FT%T", &tm))
        chars_format(text, "%" PRId64, units); /* a year beyond any calendar's */
    else if (digits > 0 && !date_only)
        chars_format(text, "%s.%0*" PRId64 "%s", date, digits, rest, suffix);
    else
        chars_format(text, "%s%s", date, suffix);
    return jv_new_text(text);
}

static struct jv *timestamp_value(const struct arrow_column *column, int64_t value)
{
    static const struct {
        int64_t per_second;
        int digits;
    } UNITS[] = {
        [NANOARROW_TIME_UNIT_SECOND] = {1, 0},
        [NANOARROW_TIME_UNIT_MILLI] = {1000, 3},
        [NANOARROW_TIME_UNIT_MICRO] = {1000000, 6},
        [NANOARROW_TIME_UNIT_NANO] = {1000000000, 9},
    };
    return time_value(value, UNITS[column->unit].per_second, UNITS[column->unit].digits, false,
                      column->in_utc ? "Z" : "");
}

static struct jv *value_at(const struct arrow_column *column, const struct ArrowArrayView *view,
                           int64_t at, size_t *left);

static struct jv *list_value(const struct arrow_column *column, const struct ArrowArrayView *view,
                             int64_t at, size_t *left)
{
    int64_t from, to;
    if (column->type == NANOARROW_TYPE_FIXED_SIZE_LIST) {
        from = at * view->layout.child_size_elements;
        to = from + view->layout.child_size_elements;
    } else {
        from = ArrowArrayViewListChildOffset(view, at);
        to = ArrowArrayViewListChildOffset(view, at + 1);
    }
    struct jv *list = jv_new_array();
    enum err err = ERR_OK;
    for (int64_t i = from; i < to && !err; i++)
        err = jv_add(list, NULL, value_at(column->children[0], view->children[0], i, left));
    return jv_finish(list, err);
}

static struct jv *struct_value(const struct arrow_column *column, const struct ArrowArrayView *view,
                               int64_t at, size_t *left)
{
    struct jv *object = jv_new_object();
    enum err err = ERR_OK;
    for (size_t i = 0; i < column->child_count && !err; i++)
        err = jv_add(object, column->children[i]->name,
                     value_at(column->children[i], view->children[i], at, left));
    return jv_finish(object, err);
}

static struct jv *map_value(const struct arrow_column *column, const struct ArrowArrayView *view,
                            int64_t at, size_t *left)
{
    const struct arrow_column *const *of =
        (const struct arrow_column *const *)column->children[0]->children;
    struct ArrowArrayView *const *in = view->children[0]->children;
    const int32_t *offsets = view->buffer_views[1].data.as_int32;
    bool is_object = is_text(of[0]->type);
    struct jv *map = is_object ? jv_new_object() : jv_new_array();
    enum err err = ERR_OK;
    for (int64_t i = offsets[at]; i < offsets[at + 1] && !err; i++) {
        struct jv *value = value_at(of[1], in[1], i, left);
        if (is_object) {
            struct ArrowStringView name = ArrowArrayViewGetStringUnsafe(in[0], i);
            struct text key = {0};
            text_add_bytes(&key, name.data ? name.data : "", (size_t)name.size_bytes);
            err = jv_add(map, text_get(&key), value);
            text_release(&key);
        } else {
            struct jv *pair = jv_new_array();
            err = jv_add(pair, NULL, value_at(of[0], in[0], i, left));
            enum err second = jv_add(pair, NULL, value);
            err = jv_add(map, NULL, jv_finish(pair, err ? err : second));
        }
    }
    return jv_finish(map, err);
}

/* Value `at` of the column; NULL if it has more values than are *left. */
static struct jv *value_at(const struct arrow_column *column, const struct ArrowArrayView *view,
                           int64_t at, size_t *left)
{
    if (!*left)
        return NULL;
    --*left;
    if (ArrowArrayViewIsNull(view, at))
        return jv_new_text(NULL);
    switch (column->type) {
    case NANOARROW_TYPE_BOOL:
        return jv_new_bool(ArrowArrayViewGetIntUnsafe(view, at) != 0);
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
        return jv_new_number(ArrowArrayViewGetDoubleUnsafe(view, at));
    case NANOARROW_TYPE_UINT64:
        return jv_new_unsigned(ArrowArrayViewGetUIntUnsafe(view, at));
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING: {
        struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(view, at);
        return jv_new_bytes(text.data ? text.data : "", (size_t)text.size_bytes);
    }
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_FIXED_SIZE_BINARY: {
        struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(view, at);
        return base64_value(bytes.data.as_uint8, (size_t)bytes.size_bytes);
    }
    case NANOARROW_TYPE_DATE32:
        return time_value(ArrowArrayViewGetIntUnsafe(view, at) * 86400, 1, 0, true, "");
    case NANOARROW_TYPE_DATE64:
        return time_value(ArrowArrayViewGetIntUnsafe(view, at), 1000, 0, true, "");
    case NANOARROW_TYPE_TIMESTAMP:
        return timestamp_value(column, ArrowArrayViewGetIntUnsafe(view, at));
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
        return list_value(column, view, at, left);
    case NANOARROW_TYPE_STRUCT:
        return struct_value(column, view, at, left);
    case NANOARROW_TYPE_MAP:
        return map_value(column, view, at, left);
    default:
        return jv_new_integer(ArrowArrayViewGetIntUnsafe(view, at));
    }
}

/* ---- messages ---- */

static enum err truncated(const struct arrow_reader *reader, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%s is truncated: it ends inside a message", reader->path);
}

static enum err rejected(const struct arrow_reader *reader, int code,
                         const struct ArrowError *detail, struct error *why)
{
    if (code == ENOMEM)
        end_without_memory();
    return err_set(why, code == ENOTSUP ? ERR_UNSUPPORTED : ERR_BAD_VALUE,
                   "%s, message at byte %lld: %.160s", reader->path, (long long)reader->message_at,
                   detail->message[0] ? detail->message : "not a valid Arrow message");
}

/* Reads exactly `length` bytes of the file to data + at. */
static enum err read_bytes(struct arrow_reader *reader, struct buffer *to, size_t at, size_t length,
                           struct error *why)
{
    if (length > (size_t)reader->left)
        return truncated(reader, why);
    if (at + length > to->capacity || !to->data) {
        to->data = xrealloc(to->data, at + length + 1);
        to->capacity = at + length;
    }
    while (length > 0) {
        ssize_t n = read(reader->fd, to->data + at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(why, errno, "cannot read %s", reader->path);
        if (n == 0)
            return truncated(reader, why);
        at += (size_t)n;
        length -= (size_t)n;
        reader->left -= n;
    }
    return ERR_OK;
}

/* ---- headers ---- */

/* nanoarrow follows some parts of a header without checking that they are there: the message's content, the type of
 * each field of a schema, the key and value of each pair of metadata.  The header has been verified, so that every
 * offset in it is known to lie inside.
 *
 * A flatbuffer table begins with the distance back to its list of fields: two sizes, then the position of each field
 * within the table, 0 for one that is left out.  Everything is little-endian. */

/* Field numbers of Arrow's flatbuffer schemas. */
enum {
    MESSAGE_KIND = 1,
    MESSAGE_CONTENT = 2,
    KIND_SCHEMA = 1,
    SCHEMA_FIELDS = 1,
    SCHEMA_METADATA = 2,
    FIELD_TYPE = 3,
    FIELD_CHILDREN = 5,
    FIELD_METADATA = 6,
    PAIR_KEY = 0,
    PAIR_VALUE = 1,
};

static uint32_t read_u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t read_u32(const uint8_t *at)
{
    return read_u16(at) | read_u16(at + 2) << 16;
}

/* The location of field `number` of a table; NULL if it is omitted. */
static const uint8_t *field(const uint8_t *table, unsigned number)
{
    const uint8_t *list = table - (int32_t)read_u32(table);
    size_t slot = 4 + 2 * (size_t)number;
    uint32_t position = slot + 2 <= read_u16(list) ? read_u16(list + slot) : 0;
    return position ? table + position : NULL;
}

/* The target of the offset at `at`; NULL for an omitted field. */
static const uint8_t *follow(const uint8_t *at)
{
    return at ? at + read_u32(at) : NULL;
}

static uint32_t count_of(const uint8_t *list)
{
    return list ? read_u32(list) : 0;
}

static const uint8_t *element(const uint8_t *list, uint32_t number)
{
    return follow(list + 4 + 4 * (size_t)number);
}

static bool pairs_are_complete(const uint8_t *list)
{
    for (uint32_t i = 0; i < count_of(list); i++)
        if (!field(element(list, i), PAIR_KEY) || !field(element(list, i), PAIR_VALUE))
            return false;
    return true;
}

/* Every field of a list has a type, and so do its children. */
static bool fields_are_complete(const uint8_t *list)
{
    for (uint32_t i = 0; i < count_of(list); i++) {
        const uint8_t *one = element(list, i);
        if (!field(one, FIELD_TYPE) || !pairs_are_complete(follow(field(one, FIELD_METADATA))) ||
            !fields_are_complete(follow(field(one, FIELD_CHILDREN))))
            return false;
    }
    return true;
}

static bool header_is_complete(const uint8_t *header)
{
    const uint8_t *message = follow(header);
    const uint8_t *kind = field(message, MESSAGE_KIND);
    const uint8_t *content = follow(field(message, MESSAGE_CONTENT));
    if (!kind || !content)
        return false;
    return *kind != KIND_SCHEMA || (fields_are_complete(follow(field(content, SCHEMA_FIELDS))) &&
                                    pairs_are_complete(follow(field(content, SCHEMA_METADATA))));
}

static const char *message_name(enum ArrowIpcMessageType type)
{
    switch (type) {
    case NANOARROW_IPC_MESSAGE_TYPE_DICTIONARY_BATCH:
        return "dictionaries";
    case NANOARROW_IPC_MESSAGE_TYPE_TENSOR:
    case NANOARROW_IPC_MESSAGE_TYPE_SPARSE_TENSOR:
        return "tensors";
    default:
        return "messages of an unknown kind";
    }
}

/* The next message's header, verified and decoded, when it is of the wanted type. */
static enum err read_header(struct arrow_reader *reader, enum ArrowIpcMessageType wanted, bool *end,
                            struct error *why)
{
    *end = reader->left == 0; /* a stream may end without an end marker */
    if (*end)
        return ERR_OK;
    reader->message_at = reader->size - reader->left;
    enum err err = read_bytes(reader, &reader->header, 0, PREFIX, why);
    if (err)
        return err;
    const uint8_t *prefix = reader->header.data;
    uint32_t length = read_u32(prefix + 4);
    if (memcmp(prefix, "\xFF\xFF\xFF\xFF", 4))
        return err_set(why, ERR_BAD_VALUE, "%s is not an Arrow stream, or is damaged",
                       reader->path);
    *end = length == 0;
    if (*end)
        return ERR_OK;
    if (length > INT32_MAX - PREFIX)
        return truncated(reader, why);
    if ((err = read_bytes(reader, &reader->header, PREFIX, length, why)))
        return err;

    struct ArrowBufferView header = {.data.as_uint8 = reader->header.data,
                                     .size_bytes = PREFIX + (int64_t)length};
    struct ArrowError detail = {0};
    int code = ArrowIpcDecoderVerifyHeader(&reader->decoder, header, &detail);
    if (code)
        return rejected(reader, code, &detail, why);
    if (reader->decoder.message_type != wanted &&
        reader->decoder.message_type != NANOARROW_IPC_MESSAGE_TYPE_SCHEMA)
        return err_set(why, ERR_UNSUPPORTED, "%s contains %s, which are not supported",
                       reader->path, message_name(reader->decoder.message_type));
    if (reader->decoder.message_type != wanted)
        return err_set(why, ERR_BAD_VALUE, "%s is damaged: a second schema", reader->path);
    if (!header_is_complete(reader->header.data + PREFIX))
        return err_set(why, ERR_BAD_VALUE, "%s is damaged: a header without its content",
                       reader->path);
    code = ArrowIpcDecoderDecodeHeader(&reader->decoder, header, &detail);
    return code ? rejected(reader, code, &detail, why) : ERR_OK;
}

static enum err read_body(struct arrow_reader *reader, struct error *why)
{
    int64_t size = reader->decoder.body_size_bytes;
    if (size < 0 || size > reader->left)
        return truncated(reader, why);
    return read_bytes(reader, &reader->body, 0, (size_t)size, why);
}

/* The decoder keeps its own copy of the schema; our columns copy the parts that they need. */
static enum err read_schema(struct arrow_reader *reader, struct error *why)
{
    struct ArrowSchema schema = {0};
    struct ArrowError detail = {0};
    struct error reason = {0};
    if (reader->decoder.endianness != ArrowIpcSystemEndianness())
        return err_set(why, ERR_UNSUPPORTED, "%s has the other byte order, which is not supported",
                       reader->path);
    int code = ArrowIpcDecoderDecodeSchema(&reader->decoder, &schema, &detail);
    if (code)
        return rejected(reader, code, &detail, why);
    enum err err = column_new(&schema, &reader->columns, &reason);
    if (err)
        err_set(why, err, "%s: %s", reader->path, reason.text);
    else if ((code = ArrowIpcDecoderSetSchema(&reader->decoder, &schema, &detail)) ||
             (code = ArrowIpcDecoderSetEndianness(&reader->decoder, reader->decoder.endianness)))
        err = rejected(reader, code, &detail, why);
    if (schema.release)
        ArrowSchemaRelease(&schema);
    return err;
}

/* A file in Arrow's file format is a stream between a magic word and a footer. */
static enum err skip_magic(struct arrow_reader *reader, struct error *why)
{
    char magic[MAGIC];
    if (pread(reader->fd, magic, MAGIC, 0) != MAGIC || memcmp(magic, "ARROW1\0\0", MAGIC) != 0)
        return ERR_OK;
    return read_bytes(reader, &reader->header, 0, MAGIC, why);
}

static enum err cannot_open(const char *path, struct error *why)
{
    return err_errno(why, errno, "cannot open %s", path);
}

static enum err find_size(struct arrow_reader *reader, const char *path, struct error *why)
{
    struct stat status;
    if (fstat(reader->fd, &status))
        return cannot_open(path, why);
    if (!S_ISREG(status.st_mode))
        return err_set(why, ERR_BAD_VALUE, "%s is not a file", path);
    reader->size = reader->left = status.st_size;
    return ERR_OK;
}

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = NULL;
    return fd < 0 ? cannot_open(path, why) : arrow_reader_take(fd, path, out, why);
}

enum err arrow_reader_take(int fd, const char *path, struct arrow_reader **out, struct error *why)
{
    *out = NULL;
    struct arrow_reader *reader = XNEW(reader);
    reader->fd = fd;
    reader->path = xstrdup(path);
    bool end = false;
    enum err err = find_size(reader, path, why);
    if (ArrowIpcDecoderInit(&reader->decoder))
        end_without_memory();
    if (!err)
        err = skip_magic(reader, why);
    if (!err)
        err = read_header(reader, NANOARROW_IPC_MESSAGE_TYPE_SCHEMA, &end, why);
    if (!err && end)
        err = err_set(why, ERR_BAD_VALUE, "%s is empty: no schema", path);
    if (!err)
        err = read_body(reader, why);
    if (!err)
        err = read_schema(reader, why);
    if (err)
        arrow_reader_close(reader);
    else
        *out = reader;
    return err;
}

/* The number of values that so many bytes can hold: the smallest, a flag, takes a bit.  Nulls of a column without a type
 * and structs without fields take nothing, so that a file could claim any number of them: what a reader allocates for
 * each row or value must be bounded by the bytes that are there. */
static int64_t values_in(int64_t bytes)
{
    return bytes < INT64_MAX / 8 ? 8 * bytes : INT64_MAX;
}

/* The next batch; reader->batch is NULL when there is none. */
static enum err next_batch(struct arrow_reader *reader, struct error *why)
{
    bool end;
    reader->batch = NULL;
    reader->at = 0;
    log_progress(reader->path, (uint64_t)(reader->size - reader->left), (uint64_t)reader->size);
    enum err err = read_header(reader, NANOARROW_IPC_MESSAGE_TYPE_RECORD_BATCH, &end, why);
    if (end) {
        reader->left = 0; /* anything after it, such as a footer, is not read */
        return err;
    }
    if (!err && reader->decoder.codec != NANOARROW_IPC_COMPRESSION_TYPE_NONE)
        err =
            err_set(why, ERR_UNSUPPORTED, "%s is compressed, which is not supported", reader->path);
    if (!err)
        err = read_body(reader, why);
    if (err)
        return err;

    struct ArrowBufferView body = {.data.as_uint8 = reader->body.data,
                                   .size_bytes = reader->decoder.body_size_bytes};
    struct ArrowArrayView *view = NULL;
    struct ArrowError detail = {0};
    struct error reason = {0};
    int code = ArrowIpcDecoderDecodeArrayView(&reader->decoder, body, -1, &view, &detail);
    if (code)
        return rejected(reader, code, &detail, why);
    if ((err = check_batch(view, body.data.as_uint8, body.size_bytes, &reason)))
        return err_set(why, err, "%s is damaged: %s", reader->path, reason.text);
    if ((code = ArrowArrayViewValidate(view, NANOARROW_VALIDATION_LEVEL_FULL, &detail)))
        return rejected(reader, code, &detail, why);
    if (view->length > values_in(body.size_bytes))
        return err_set(why, ERR_BAD_VALUE, "%s is damaged: a batch of %lld rows in %lld bytes",
                       reader->path, (long long)view->length, (long long)body.size_bytes);
    reader->batch = view;
    return ERR_OK;
}

enum err arrow_reader_next(struct arrow_reader *reader, struct jv **row, struct error *why)
{
    int64_t most = values_in(reader->size) < ROW_VALUES ? values_in(reader->size) : ROW_VALUES;
    size_t left = (size_t)most;
    *row = NULL;
    while (!reader->batch || reader->at >= reader->batch->length) {
        enum err err = next_batch(reader, why);
        if (err || !reader->batch)
            return err;
    }
    *row = value_at(reader->columns, reader->batch, reader->at++, &left);
    if (!*row)
        return err_set(why, ERR_BAD_VALUE, "%s: a row has more than %lld values", reader->path,
                       (long long)most);
    return ERR_OK;
}

void arrow_reader_close(struct arrow_reader *reader)
{
    if (!reader)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    if (reader->decoder.private_data)
        ArrowIpcDecoderReset(&reader->decoder);
    column_free(reader->columns);
    free(reader->header.data);
    free(reader->body.data);
    free(reader->path);
    free(reader);
}

/* ---- by columns ---- */

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

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_path *out)
{
    const struct arrow_column *column = reader->columns;
    *out = (struct arrow_path){.kind = ARROW_IS_STRUCT};
    for (size_t depth = 0; depth < count; depth++) {
        size_t i = 0;
        if (column->type != NANOARROW_TYPE_STRUCT || depth == ARROW_PATH_MAX)
            return false;
        while (i < column->child_count && !str_equal(column->children[i]->name, names[depth]))
            i++;
        if (i == column->child_count)
            return false;
        column = column->children[i];
        out->child[out->depth++] = (uint32_t)i;
    }
    out->kind = kind_of(column->type);
    return true;
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_path *path,
                               size_t i)
{
    const struct arrow_column *column = reader->columns;
    for (unsigned depth = 0; depth < path->depth; depth++)
        column = column->children[path->child[depth]];
    return column->type == NANOARROW_TYPE_STRUCT && i < column->child_count
               ? column->children[i]->name
               : NULL;
}

enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why)
{
    *rows = 0;
    do {
        enum err err = next_batch(reader, why);
        if (err)
            return err;
    } while (reader->batch && reader->batch->length == 0);
    if (reader->batch)
        *rows = (size_t)reader->batch->length;
    return ERR_OK;
}

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

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_path *path, bool *out)
{
    const struct ArrowArrayView *batch = reader->batch;
    bool some_null = levels_with_nulls(batch, path) > 0;
    for (int64_t i = 0; i < batch->length; i++)
        out[i] = !some_null || !is_null_above(batch, path, i);
}

void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_path *path,
                          double *out, uint64_t *not_finite)
{
    const struct ArrowArrayView *batch = reader->batch;
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

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_path *path,
                        struct arrow_text *out)
{
    const struct ArrowArrayView *batch = reader->batch;
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
