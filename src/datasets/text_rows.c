/* Rows of text files, read through a buffer of fixed size however large the file is: JSON lines, one JSON
 * array, or CSV.  A row that is too long or malformed is reported and skipped. */
#define _GNU_SOURCE
#include "datasets/text_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/xalloc.h"

/* ---- bytes of a file ---- */

enum { READER_END = -1 };

enum { BUFFER_SIZE = 256 * 1024 };

/* Ensures that the buffer has a byte; false at the end. */
static bool fill(struct byte_reader *reader)
{
    if (reader->at < reader->end)
        return true;
    if (reader->err)
        return false;
    ssize_t got;
    do
        got = read(reader->fd, reader->buffer, BUFFER_SIZE);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        reader->errno_value = errno;
        reader->err = err_from_errno(errno);
        return false;
    }
    reader->at = 0;
    reader->end = (size_t)got;
    return got > 0;
}

static int reader_peek(struct byte_reader *reader)
{
    return fill(reader) ? (unsigned char)reader->buffer[reader->at] : READER_END;
}

static int reader_next(struct byte_reader *reader)
{
    if (!fill(reader))
        return READER_END;
    unsigned char byte = (unsigned char)reader->buffer[reader->at++];
    reader->line += byte == '\n';
    return byte;
}

static enum err reader_failure(const struct byte_reader *reader, struct error *why)
{
    if (!reader->err)
        return ERR_OK;
    return err_set(why, reader->err, "read error at line %llu: %s",
                   (unsigned long long)reader->line, strerror(reader->errno_value));
}

/* Rejects formats that the first bytes identify, and skips a byte order mark. */
static enum err check_start(const char *path, struct byte_reader *reader, struct error *why)
{
    static const struct {
        const char *mark;
        size_t length;
        const char *what;
    } REFUSED[] = {
        {"\xFF\xFE", 2, "is UTF-16: convert it to UTF-8"},
        {"\xFE\xFF", 2, "is UTF-16: convert it to UTF-8"},
        {"\x1F\x8B", 2, "is compressed: decompress it first (gunzip)"},
        {"\x28\xB5\x2F\xFD", 4, "is compressed: decompress it first (unzstd)"},
        {"PK\x03\x04", 4, "is a zip archive: extract it first"},
        {"PAR1", 4, "is a Parquet file, which is not supported: convert it to JSON lines or CSV"},
    };
    if (reader_peek(reader) == READER_END)
        return reader->err ? err_set(why, reader->err, "cannot read %s: %s", path,
                                     strerror(reader->errno_value))
                           : err_set(why, ERR_BAD_VALUE, "%s is empty", path);
    for (size_t i = 0; i < COUNT_OF(REFUSED); i++)
        if (reader->end >= REFUSED[i].length &&
            memcmp(reader->buffer, REFUSED[i].mark, REFUSED[i].length) == 0)
            return err_set(why, ERR_UNSUPPORTED, "%s %s", path, REFUSED[i].what);
    if (reader->end >= 3 && memcmp(reader->buffer, "\xEF\xBB\xBF", 3) == 0)
        reader->at = 3;
    return ERR_OK;
}

static void reader_close(struct byte_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->buffer);
    *reader = (struct byte_reader){.fd = -1};
}

static enum err reader_open(const char *path, struct byte_reader *out, struct error *why)
{
    struct stat st;
    *out = (struct byte_reader){.fd = open(path, O_RDONLY | O_CLOEXEC), .line = 1};
    if (out->fd < 0)
        return err_errno(why, errno, "cannot open %s", path);
    enum err err = ERR_OK;
    out->buffer = xmalloc(BUFFER_SIZE);
    if (fstat(out->fd, &st) == 0 && S_ISDIR(st.st_mode))
        err = err_set(why, ERR_UNSUPPORTED, "%s is a directory", path);
    else
        err = check_start(path, out, why);
    if (err)
        reader_close(out);
    return err;
}

/* ---- JSON ---- */

static bool is_space(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static int skip_space(struct byte_reader *reader)
{
    while (is_space(reader_peek(reader)))
        (void)reader_next(reader);
    return reader_peek(reader);
}

/* Appends in blocks: byte by byte would cost more than reading. */
struct row_buffer {
    struct text *to;
    size_t row_max;
    size_t length; /* length of the row, even if it exceeds `row_max` */
    size_t count;
    char bytes[4096];
};

static void buffer_flush(struct row_buffer *buffer)
{
    if (buffer->length <= buffer->row_max)
        text_add_bytes(buffer->to, buffer->bytes, buffer->count);
    buffer->count = 0;
}

static void buffer_add(struct row_buffer *buffer, int byte)
{
    if (buffer->count == sizeof buffer->bytes)
        buffer_flush(buffer);
    buffer->bytes[buffer->count++] = (char)byte;
    buffer->length++;
}

static void read_line(struct byte_reader *reader, struct row_buffer *buffer)
{
    int byte;
    while ((byte = reader_next(reader)) != READER_END && byte != '\n')
        buffer_add(buffer, byte);
}

/* Reads one element, up to but not including the comma or bracket that ends it. */
static void read_element(struct byte_reader *reader, struct row_buffer *buffer)
{
    unsigned depth = 0;
    bool quoted = false, escaped = false;
    for (int byte; (byte = reader_peek(reader)) != READER_END; (void)reader_next(reader)) {
        if (quoted) {
            quoted = escaped || byte != '"';
            escaped = !escaped && byte == '\\';
        } else if (byte == '"') {
            quoted = true;
        } else if (byte == '{' || byte == '[') {
            depth++;
        } else if (depth == 0 && (byte == ',' || byte == ']')) {
            return;
        } else if ((byte == '}' || byte == ']') && depth > 0) {
            depth--;
        }
        buffer_add(buffer, byte);
    }
}

/* Advances to the first byte of the next row; false at the end. */
static bool find_row(struct text_rows *rows)
{
    struct byte_reader *reader = &rows->file;
    if (!rows->is_array)
        return skip_space(reader) != READER_END;
    while (!rows->array_closed && skip_space(reader) == ',')
        (void)reader_next(reader);
    if (reader_peek(reader) == ']')
        rows->array_closed = true;
    return !rows->array_closed && reader_peek(reader) != READER_END;
}

/* The result at the end of the file: success, a read error, or a truncated array. */
static enum err check_end(struct text_rows *rows, bool *end, struct error *why)
{
    if (rows->file.err || !rows->is_array || rows->array_closed)
        return reader_failure(&rows->file, why);
    rows->array_closed = true; /* report it only once */
    *end = false;
    return err_set(why, ERR_BAD_VALUE, "the file ends within its array: it is truncated");
}

static enum err next_json(struct text_rows *rows, uint64_t *line, bool *end, struct error *why)
{
    struct row_buffer buffer = {.to = &rows->json, .row_max = rows->row_max};
    text_clear(&rows->json);
    *end = !find_row(rows);
    *line = rows->file.line;
    if (*end)
        return check_end(rows, end, why);
    if (rows->is_array)
        read_element(&rows->file, &buffer);
    else
        read_line(&rows->file, &buffer);
    buffer_flush(&buffer);
    if (rows->file.err)
        return reader_failure(&rows->file, why);
    if (buffer.length > rows->row_max)
        return err_set(why, ERR_BAD_VALUE, "a row of %zu bytes (limit %zu)", buffer.length,
                       rows->row_max);
    return ERR_OK;
}

/* ---- CSV ---- */

/* Read callback for core/csv.h. */
static long read_source(void *context, char *to, size_t size)
{
    struct byte_reader *reader = context;
    if (reader_peek(reader) == READER_END) {
        errno = reader->errno_value;
        return reader->err ? -1 : 0;
    }
    size_t ready = reader->end - reader->at, taken = ready < size ? ready : size;
    memcpy(to, reader->buffer + reader->at, taken);
    reader->at += taken;
    return (long)taken;
}

static enum err next_record(struct text_rows *rows, uint64_t *line, bool *end, struct error *why)
{
    enum err err = csv_reader_next(&rows->csv, &rows->record, end, why);
    *line = rows->record.line;
    return err;
}

/* ---- either format ---- */

void text_rows_close(struct text_rows *rows)
{
    if (rows->separator)
        csv_reader_release(&rows->csv);
    text_release(&rows->json);
    reader_close(&rows->file);
}

enum err text_rows_open(const char *path, char separator, size_t row_max, struct text_rows *out,
                        struct error *why)
{
    struct error reason;
    *out = (struct text_rows){.row_max = row_max, .separator = separator};
    enum err err = reader_open(path, &out->file, why);
    if (err)
        return err;
    if (!separator) {
        out->is_array = skip_space(&out->file) == '[';
        if (out->is_array)
            (void)reader_next(&out->file);
        return ERR_OK;
    }
    csv_reader_source(&out->csv, read_source, &out->file);
    out->csv.separator = separator;
    out->csv.row_max = row_max;
    err = csv_reader_header(&out->csv, &reason);
    if (err) {
        err_set(why, err, "%s, header: %s", path, reason.text);
        text_rows_close(out);
    }
    return err;
}

enum err text_rows_next(struct text_rows *rows, uint64_t *line, bool *end, struct error *why)
{
    return (rows->separator ? next_record : next_json)(rows, line, end, why);
}
