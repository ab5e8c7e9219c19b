#include "port/arrow_read.h"

#include <errno.h>
#include <fcntl.h>
#include <nanoarrow.h>
#include <nanoarrow_ipc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/text.h"
#include "core/watch.h"
#include "port/arrow/column.h"
#include "port/arrow/header.h"
#include "port/arrow/values.h"

/* A stream is a schema message, then a message a record batch.  A message is a marker and the length
 * of its header, the header, and a body.  We read the parts ourselves rather than let the library do
 * it: so no length is believed that the file cannot hold. */

enum { PREFIX = 8, MAGIC = 8 };

struct bytes {
    uint8_t *data; /* from malloc, so aligned as Arrow wants it */
    size_t capacity;
};

struct arrow_reader {
    int fd;
    int64_t left; /* of the file */
    int64_t size;
    int64_t message_at; /* the byte at which the message that is read begins */
    struct ArrowIpcDecoder decoder;
    struct arrow_column *columns;
    struct bytes header, body;
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

static enum err cut_short(const struct arrow_reader *reader, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%s is cut short: it ends inside a message", reader->path);
}

static enum err refused(const struct arrow_reader *reader, int code, const struct ArrowError *said,
                        struct error *why)
{
    if (code == ENOMEM)
        return err_set(why, ERR_NO_MEMORY, "%s: %s", reader->path, err_text(ERR_NO_MEMORY));
    return err_set(why, code == ENOTSUP ? ERR_UNSUPPORTED : ERR_BAD_VALUE,
                   "%s, message at byte %lld: %.160s", reader->path, (long long)reader->message_at,
                   said->message[0] ? said->message : "not a valid Arrow message");
}

/* Reads exactly `length` bytes to data + at, which must be in the file. */
static enum err read_bytes(struct arrow_reader *reader, struct bytes *to, size_t at, size_t length,
                           struct error *why)
{
    if (length > (size_t)reader->left)
        return cut_short(reader, why);
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
            return cut_short(reader, why);
        at += (size_t)n;
        length -= (size_t)n;
        reader->left -= n;
    }
    return ERR_OK;
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
    *end = reader->left == 0; /* a stream may end without its mark */
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
        return cut_short(reader, why);
    if ((err = read_bytes(reader, &reader->header, PREFIX, length, why)))
        return err;

    struct ArrowBufferView header = {.data.as_uint8 = reader->header.data,
                                     .size_bytes = PREFIX + (int64_t)length};
    struct ArrowError said = {0};
    int code = ArrowIpcDecoderVerifyHeader(&reader->decoder, header, &said);
    if (code)
        return refused(reader, code, &said, why);
    if (reader->decoder.message_type != wanted &&
        reader->decoder.message_type != NANOARROW_IPC_MESSAGE_TYPE_SCHEMA)
        return err_set(why, ERR_UNSUPPORTED, "%s holds %s, which are not supported", reader->path,
                       message_name(reader->decoder.message_type));
    if (reader->decoder.message_type != wanted)
        return err_set(why, ERR_BAD_VALUE, "%s is damaged: a second schema", reader->path);
    if (!arrow_header_is_complete(reader->header.data + PREFIX))
        return err_set(why, ERR_BAD_VALUE, "%s is damaged: a header without its content",
                       reader->path);
    code = ArrowIpcDecoderDecodeHeader(&reader->decoder, header, &said);
    return code ? refused(reader, code, &said, why) : ERR_OK;
}

static enum err read_body(struct arrow_reader *reader, struct error *why)
{
    int64_t size = reader->decoder.body_size_bytes;
    if (size < 0 || size > reader->left)
        return cut_short(reader, why);
    return read_bytes(reader, &reader->body, 0, (size_t)size, why);
}

/* The decoder keeps its own copy of the schema; our columns know what they need. */
static enum err take_schema(struct arrow_reader *reader, struct error *why)
{
    struct ArrowSchema schema = {0};
    struct ArrowError said = {0};
    struct error reason = {0};
    if (reader->decoder.endianness != ArrowIpcSystemEndianness())
        return err_set(why, ERR_UNSUPPORTED, "%s was written in the other byte order",
                       reader->path);
    int code = ArrowIpcDecoderDecodeSchema(&reader->decoder, &schema, &said);
    if (code)
        return refused(reader, code, &said, why);
    enum err err = arrow_column_new(&schema, &reader->columns, &reason);
    if (err)
        err_set(why, err, "%s: %s", reader->path, reason.text);
    else if ((code = ArrowIpcDecoderSetSchema(&reader->decoder, &schema, &said)) ||
             (code = ArrowIpcDecoderSetEndianness(&reader->decoder, reader->decoder.endianness)))
        err = refused(reader, code, &said, why);
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
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    reader->fd = -1;
    str_copy(reader->path, sizeof reader->path, path);
    bool end = false;
    enum err err = ERR_OK;
    if (ArrowIpcDecoderInit(&reader->decoder))
        err = err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    if (!err)
        err = open_file(reader, path, why);
    if (!err)
        err = skip_magic(reader, why);
    if (!err)
        err = read_header(reader, NANOARROW_IPC_MESSAGE_TYPE_SCHEMA, &end, why);
    if (!err && end)
        err = err_set(why, ERR_BAD_VALUE, "%s is empty: not even a schema", path);
    if (!err)
        err = read_body(reader, why);
    if (!err)
        err = take_schema(reader, why);
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
    watch_tell(reader->path, (uint64_t)(reader->size - reader->left), (uint64_t)reader->size);
    enum err err = read_header(reader, NANOARROW_IPC_MESSAGE_TYPE_RECORD_BATCH, &end, why);
    if (end) {
        reader->left = 0; /* what may follow, such as a footer, is not ours */
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
    struct ArrowError said = {0};
    struct error reason = {0};
    int code = ArrowIpcDecoderDecodeArrayView(&reader->decoder, body, -1, &view, &said);
    if (code)
        return refused(reader, code, &said, why);
    if ((err = arrow_column_check(view, body.data.as_uint8, body.size_bytes, &reason)))
        return err_set(why, err, "%s is damaged: %s", reader->path, reason.text);
    if ((code = ArrowArrayViewValidate(view, NANOARROW_VALIDATION_LEVEL_FULL, &said)))
        return refused(reader, code, &said, why);
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
    return row->failed ? err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY)) : ERR_OK;
}

/* ---- by columns ---- */

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_place *out)
{
    return arrow_column_find(reader->columns, names, count, out);
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_place *place,
                               size_t i)
{
    return arrow_column_child(reader->columns, place, i);
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

void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_place *place,
                          double *out, uint64_t *not_finite)
{
    arrow_values_numbers(reader->batch, place, out, not_finite);
}

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_place *place,
                        struct arrow_text *out)
{
    arrow_values_texts(reader->batch, place, out);
}

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_place *place,
                        bool *out)
{
    arrow_values_known(reader->batch, place, out);
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
