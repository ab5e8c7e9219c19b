#include "port/arrow.h"

#include <errno.h>
#include <math.h>
#include <nanoarrow.h>
#include <nanoarrow_ipc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"

/* A batch ends at either limit: the default of Hugging Face datasets, and a bound on memory. */
enum { BATCH_ROWS = 1000, BATCH_BYTES = 16 << 20 };

struct arrow_writer {
    const struct arrow_field *root;
    struct output file;
    uint64_t fingerprint;
    struct ArrowIpcWriter ipc;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    struct ArrowArrayView view;
    int64_t bytes;    /* of text in the batch */
    struct text text; /* a value being converted */
};

static enum err failed(const struct arrow_writer *writer, int code, const struct ArrowError *detail,
                       struct error *why)
{
    if (code == ENOMEM)
        end_without_memory();
    enum err err = code == EINVAL || code == ENOTSUP ? ERR_BAD_VALUE : err_from_errno(code);
    return err_set(why, err, "cannot write %s: %.160s", writer->file.path,
                   detail && detail->message[0] ? detail->message : strerror(code));
}

/* ---- the file ---- */

static ArrowErrorCode write_bytes(struct ArrowIpcOutputStream *stream, const void *bytes,
                                  int64_t size, int64_t *written, struct ArrowError *error)
{
    (void)error;
    struct arrow_writer *writer = stream->private_data;
    ssize_t n;
    do
        n = write(writer->file.fd, bytes, (size_t)size);
    while (n < 0 && errno == EINTR);
    *written = n < 0 ? 0 : n;
    if (n < 0)
        return errno;
    writer->fingerprint = hash_bytes(writer->fingerprint, bytes, (size_t)n);
    return NANOARROW_OK;
}

static void release_stream(struct ArrowIpcOutputStream *stream)
{
    stream->release = NULL;
}

/* ---- the schema ---- */

static int set_type(struct ArrowSchema *schema, const struct arrow_field *field)
{
    static const enum ArrowType TYPES[] = {
        [ARROW_TEXT] = NANOARROW_TYPE_STRING,
        [ARROW_DOUBLE] = NANOARROW_TYPE_DOUBLE,
        [ARROW_INT64] = NANOARROW_TYPE_INT64,
        [ARROW_BOOL] = NANOARROW_TYPE_BOOL,
    };
    if (field->type != ARROW_STRUCT)
        return ArrowSchemaSetType(schema, TYPES[field->type]);
    int64_t count = 0, i = 0;
    for (const struct arrow_field *child = field->first; child; child = child->next)
        count++;
    int code = ArrowSchemaSetTypeStruct(schema, count);
    for (const struct arrow_field *child = field->first; !code && child; child = child->next, i++) {
        ArrowSchemaInit(schema->children[i]);
        if (!(code = set_type(schema->children[i], child)))
            code = ArrowSchemaSetName(schema->children[i], child->name);
    }
    return code;
}

static int set_metadata(struct ArrowSchema *schema, const char *key, const char *value)
{
    struct ArrowBuffer buffer;
    ArrowBufferInit(&buffer);
    int code = ArrowMetadataBuilderInit(&buffer, NULL);
    if (!code)
        code = ArrowMetadataBuilderAppend(&buffer, ArrowCharView(key), ArrowCharView(value));
    if (!code)
        code = ArrowSchemaSetMetadata(schema, (const char *)buffer.data);
    ArrowBufferReset(&buffer);
    return code;
}

/* ---- batches ---- */

static int begin_batch(struct arrow_writer *writer, struct ArrowError *detail)
{
    writer->bytes = 0;
    int code = ArrowArrayInitFromSchema(&writer->batch, &writer->schema, detail);
    return code ? code : ArrowArrayStartAppending(&writer->batch);
}

/* nanoarrow sets bits in memory that it has not cleared, so that the bits after a column's last row are random.  Files
 * with the same rows must have the same bytes. */
static void clear_after_last_row(struct ArrowArray *array)
{
    struct ArrowBitmap *valid = ArrowArrayValidityBitmap(array);
    if (valid->size_bits % 8)
        valid->buffer.data[valid->size_bits / 8] &= (uint8_t)((1U << valid->size_bits % 8) - 1);
    for (int64_t i = 0; i < array->n_children; i++)
        clear_after_last_row(array->children[i]);
}

static int end_batch(struct arrow_writer *writer, struct ArrowError *detail)
{
    if (!writer->batch.release)
        return EIO; /* an earlier write failed */
    if (writer->batch.length == 0)
        return NANOARROW_OK;
    clear_after_last_row(&writer->batch);
    int code = ArrowArrayFinishBuildingDefault(&writer->batch, detail);
    if (!code)
        code = ArrowArrayViewSetArray(&writer->view, &writer->batch, detail);
    if (!code)
        code = ArrowIpcWriterWriteArrayView(&writer->ipc, &writer->view, detail);
    ArrowArrayRelease(&writer->batch);
    return code ? code : begin_batch(writer, detail);
}

/* ---- rows ---- */

static int append_text(struct arrow_writer *writer, struct ArrowArray *array,
                       const struct jv *value)
{
    const char *string = jv_text(value);
    size_t length = string ? strlen(string) : 0;
    if (!string || utf8_valid_prefix(string, length) < length) {
        struct text whole = {0};
        if (!string)
            jv_print(value, &whole);
        text_clear(&writer->text);
        text_add_repaired(&writer->text, string ? string : text_get(&whole),
                          string ? length : whole.length);
        text_release(&whole);
        string = text_get(&writer->text);
        length = writer->text.length;
    }
    writer->bytes += (int64_t)length;
    return ArrowArrayAppendString(
        array, (struct ArrowStringView){.data = string, .size_bytes = (int64_t)length});
}

/* A double cannot represent every int64, but each integral double within the range is one. */
static bool to_integer(const struct jv *value, int64_t *out)
{
    double number = jv_number(value);
    if (jv_integer(value, out))
        return true;
    if (!is_known(number) || floor(number) != number || number < -9223372036854775808.0 ||
        number >= 9223372036854775808.0)
        return false;
    *out = (int64_t)number;
    return true;
}

static int append_value(struct arrow_writer *writer, const struct arrow_field *field,
                        struct ArrowArray *array, const struct jv *value);

static int append_struct(struct arrow_writer *writer, const struct arrow_field *field,
                         struct ArrowArray *array, const struct jv *object)
{
    struct jv_index members;
    int code = NANOARROW_OK;
    int64_t i = 0;
    jv_index_init(&members, object);
    for (const struct arrow_field *child = field->first; !code && child; child = child->next) {
        const struct jv *value = jv_index_get(&members, child->name);
        if (child->former && jv_is_null(value))
            value = jv_index_get(&members, child->former);
        code = append_value(writer, child, array->children[i++], value);
    }
    jv_index_release(&members);
    return code ? code : ArrowArrayFinishElement(array);
}

static int append_value(struct arrow_writer *writer, const struct arrow_field *field,
                        struct ArrowArray *array, const struct jv *value)
{
    int64_t integer;
    if (field->type == ARROW_STRUCT && (jv_is_object(value) || !field->may_be_null))
        return append_struct(writer, field, array, value);
    if (field->type == ARROW_TEXT && !jv_is_null(value))
        return append_text(writer, array, value);
    if (field->type == ARROW_DOUBLE && is_known(jv_number(value)))
        return ArrowArrayAppendDouble(array, jv_number(value));
    if (field->type == ARROW_INT64 && to_integer(value, &integer))
        return ArrowArrayAppendInt(array, integer);
    if (field->type == ARROW_BOOL && jv_is_bool(value))
        return ArrowArrayAppendInt(array, jv_bool(value, false));
    return ArrowArrayAppendNull(array, 1);
}

enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
{
    struct ArrowError detail = {0};
    if (!jv_is_object(row))
        return err_set(why, ERR_BAD_VALUE, "a row must be an object");
    int code =
        writer->batch.release ? append_value(writer, writer->root, &writer->batch, row) : EIO;
    if (!code && (writer->batch.length >= BATCH_ROWS || writer->bytes >= BATCH_BYTES))
        code = end_batch(writer, &detail);
    return code ? failed(writer, code, &detail, why) : ERR_OK;
}

/* ---- from open to close ---- */

static int start(struct arrow_writer *writer, const char *key, const char *value,
                 struct ArrowError *detail)
{
    struct ArrowIpcOutputStream stream = {write_bytes, release_stream, writer};
    ArrowSchemaInit(&writer->schema);
    int code = set_type(&writer->schema, writer->root);
    if (!code)
        code = set_metadata(&writer->schema, key, value);
    if (!code)
        code = ArrowArrayViewInitFromSchema(&writer->view, &writer->schema, detail);
    if (!code)
        code = ArrowIpcWriterInit(&writer->ipc, &stream);
    if (!code)
        code = ArrowIpcWriterWriteSchema(&writer->ipc, &writer->schema, detail);
    return code ? code : begin_batch(writer, detail);
}

enum err arrow_writer_open(const char *directory, const char *name, const struct arrow_field *root,
                           const char *key, const char *value, struct arrow_writer **out,
                           struct error *why)
{
    *out = NULL;
    struct arrow_writer *writer = XNEW(writer);
    struct ArrowError detail = {0};
    writer->root = root;
    writer->fingerprint = HASH_START;
    enum err err = output_open_within(&writer->file, directory, name, why);
    int code = err ? 0 : start(writer, key, value, &detail);
    if (code)
        err = failed(writer, code, &detail, why);
    if (err)
        arrow_writer_close(writer);
    else
        *out = writer;
    return err;
}

enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
{
    struct ArrowError detail = {0};
    int code = end_batch(writer, &detail);
    if (!code)
        code = ArrowIpcWriterWriteArrayView(&writer->ipc, NULL, &detail);
    if (code)
        return failed(writer, code, &detail, why);
    *fingerprint = writer->fingerprint;
    return output_finish(&writer->file, ERR_OK, why);
}

void arrow_writer_close(struct arrow_writer *writer)
{
    if (!writer)
        return;
    if (writer->ipc.private_data)
        ArrowIpcWriterReset(&writer->ipc);
    if (writer->batch.release)
        ArrowArrayRelease(&writer->batch);
    ArrowArrayViewReset(&writer->view);
    if (writer->schema.release)
        ArrowSchemaRelease(&writer->schema);
    enum err err = writer->file.fd >= 0 ? output_finish(&writer->file, ERR_IO, NULL) : ERR_OK;
    (void)err; /* an unfinished file is removed */
    text_release(&writer->text);
    free(writer);
}
