/* A stream is a schema message, then one message per record batch.  A message is a marker and the length of its
 * header, the header, and a body.  We read these parts ourselves rather than let the library do it, so that no length
 * is trusted that the file cannot hold. */
#include "port/arrow.h"

#include <errno.h>
#include <fcntl.h>
#include <nanoarrow.h>
#include <nanoarrow_ipc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "port/arrow_column.h"

enum { PREFIX = 8, MAGIC = 8 };

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
    char path[256];
};

enum err arrow_read_available(struct error *why)
{
    (void)why;
    return ERR_OK;
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
        return err_set(why, ERR_NO_MEMORY, "%s: %s", reader->path, err_text(ERR_NO_MEMORY));
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
        uint8_t *data = realloc(to->data, at + length + 1);
        if (!data)
            return err_set(why, ERR_NO_MEMORY, "%s: %s", reader->path, err_text(ERR_NO_MEMORY));
        to->data = data;
        to->capacity = at + length;
    }
    while (length > 0) {
        ssize_t n = read(reader->fd, to->data + at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(why, err_from_errno(errno), "cannot read %s: %s", reader->path,
                           strerror(errno));
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
    uint32_t length = (uint32_t)prefix[4] | (uint32_t)prefix[5] << 8 | (uint32_t)prefix[6] << 16 |
                      (uint32_t)prefix[7] << 24;
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
    enum err err = arrow_column_new(&schema, &reader->columns, &reason);
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

static enum err open_file(struct arrow_reader *reader, const char *path, struct error *why)
{
    struct stat status;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0 || fstat(reader->fd, &status))
        return err_set(why, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(why, ERR_BAD_VALUE, "%s is not a file", path);
    reader->size = reader->left = status.st_size;
    return ERR_OK;
}

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why)
{
    *out = NULL;
    struct arrow_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return err_no_memory(why);
    reader->fd = -1;
    str_copy(reader->path, sizeof reader->path, path);
    bool end = false;
    enum err err = ERR_OK;
    if (ArrowIpcDecoderInit(&reader->decoder))
        err = err_no_memory(why);
    if (!err)
        err = open_file(reader, path, why);
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
    if ((err = arrow_column_check(view, body.data.as_uint8, body.size_bytes, &reason)))
        return err_set(why, err, "%s is damaged: %s", reader->path, reason.text);
    if ((code = ArrowArrayViewValidate(view, NANOARROW_VALIDATION_LEVEL_FULL, &detail)))
        return rejected(reader, code, &detail, why);
    reader->batch = view;
    return ERR_OK;
}

enum err arrow_reader_next(struct arrow_reader *reader, struct text *row, bool *end,
                           struct error *why)
{
    text_clear(row);
    *end = false;
    while (!reader->batch || reader->at >= reader->batch->length) {
        enum err err = next_batch(reader, why);
        if (err)
            return err;
        *end = !reader->batch;
        if (*end)
            return ERR_OK;
    }
    struct json json;
    json_init(&json, row, false);
    arrow_column_print(reader->columns, reader->batch, reader->at++, NULL, &json);
    return row->failed ? err_no_memory(why) : ERR_OK;
}

/* ---- by columns ---- */

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_path *out)
{
    return arrow_column_find(reader->columns, names, count, out);
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_path *path,
                               size_t i)
{
    return arrow_column_child(reader->columns, path, i);
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

void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_path *path,
                          double *out, uint64_t *not_finite)
{
    arrow_column_numbers(reader->batch, path, out, not_finite);
}

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_path *path,
                        struct arrow_text *out)
{
    arrow_column_texts(reader->batch, path, out);
}

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_path *path, bool *out)
{
    arrow_column_known(reader->batch, path, out);
}

void arrow_reader_close(struct arrow_reader *reader)
{
    if (!reader)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    if (reader->decoder.private_data)
        ArrowIpcDecoderReset(&reader->decoder);
    arrow_column_free(reader->columns);
    free(reader->header.data);
    free(reader->body.data);
    free(reader);
}
