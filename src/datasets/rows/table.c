#include "datasets/rows/table.h"

#include <errno.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"

static long read_bytes(void *context, char *to, size_t size)
{
    struct bytes *bytes = context;
    if (bytes_peek(bytes) == BYTES_END) {
        errno = bytes->errno_value;
        return bytes->err ? -1 : 0;
    }
    size_t ready = bytes->end - bytes->at, taken = ready < size ? ready : size;
    memcpy(to, bytes->buffer + bytes->at, taken);
    bytes->at += taken;
    return (long)taken;
}

enum err csv_table_open(const char *path, char separator, size_t most, struct table *out,
                        struct error *why)
{
    struct error reason;
    enum err err = bytes_open(path, &out->bytes, why);
    if (err)
        return err;
    csv_reader_source(&out->reader, read_bytes, &out->bytes);
    out->reader.separator = separator;
    out->reader.row_max = most;
    err = csv_reader_header(&out->reader, &reason);
    if (err) {
        err_set(why, err, "%s, the header: %s", path, reason.text);
        csv_table_close(out);
    }
    return err;
}

void csv_table_close(struct table *table)
{
    csv_reader_release(&table->reader);
    bytes_close(&table->bytes);
}

enum err csv_table_next(struct table *table, struct text *row, uint64_t *line, bool *end,
                        struct error *why)
{
    struct csv_row fields;
    struct json json;
    text_clear(row);
    enum err err = csv_reader_next(&table->reader, &fields, end, why);
    *line = fields.line;
    if (err || *end)
        return err;
    json_init(&json, row, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < fields.count; i++)
        json_string_bytes(&json, table->reader.columns[i].start, fields.fields[i].start,
                          fields.fields[i].length);
    json_object_end(&json);
    return row->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
