/* A row is read in two passes over a buffer that holds all of it: the first finds its end, taking quotes into
 * account, and can be resumed after a refill; the second splits it into fields in place. */
#include "core/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"

#define ROW_MAX ((size_t)64 << 20)

enum { CHUNK = 256 * 1024, PLAIN_BYTES_MAX = 4096 };

/* ---- the buffer ---- */

void csv_reader_memory(struct csv_reader *reader, char *bytes, size_t length)
{
    *reader = (struct csv_reader){
        .separator = ',',
        .row_max = ROW_MAX,
        .buffer = bytes,
        .end = length,
        .at_end = true,
        .line = 1,
    };
}

void csv_reader_source(struct csv_reader *reader, csv_source *source, void *context)
{
    *reader = (struct csv_reader){
        .separator = ',',
        .row_max = ROW_MAX,
        .source = source,
        .context = context,
        .owns_buffer = true,
        .line = 1,
    };
}

void csv_reader_release(struct csv_reader *reader)
{
    if (reader->owns_buffer)
        free(reader->buffer);
    free(reader->fields);
    free(reader->names);
    free(reader->columns);
    *reader = (struct csv_reader){0};
}

/* Reads more bytes after those kept from reader->at on, which are moved to the front. */
static void refill(struct csv_reader *reader)
{
    size_t kept = reader->end - reader->at;
    if (reader->at > 0)
        memmove(reader->buffer, reader->buffer + reader->at, kept);
    reader->at = 0;
    reader->end = kept;
    if (kept + CHUNK + 1 > reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 2 * CHUNK;
        reader->buffer = xrealloc(reader->buffer, capacity);
        reader->capacity = capacity;
    }
    long got = reader->source(reader->context, reader->buffer + kept, CHUNK);
    if (got < 0)
        reader->failure = errno;
    if (got <= 0)
        reader->at_end = true;
    else
        reader->end += (size_t)got;
    reader->buffer[reader->end] = '\0';
}

/* ---- first pass: where a row ends ---- */

enum within { FIELD_START, UNQUOTED, QUOTED, AFTER_QUOTE, CLOSED };

struct scan {
    enum within within;
    size_t length;      /* bytes of the row so far, without its line end */
    size_t dropped;     /* bytes of the row no longer in the buffer: it is too long to keep */
    uint64_t new_lines; /* inside quotes */
    bool misplaced;     /* text after a closing quote */
};

/* Processes one byte of the row; false for the line end that terminates the row. */
static bool scan_byte(struct scan *scan, char byte, char separator)
{
    if (scan->within == QUOTED) {
        scan->new_lines += byte == '\n';
        if (byte == '"')
            scan->within = AFTER_QUOTE;
    } else if (byte == '\n' || byte == '\r') {
        return false;
    } else if (byte == separator) {
        scan->within = FIELD_START;
    } else if (byte == '"' && (scan->within == FIELD_START || scan->within == AFTER_QUOTE)) {
        scan->within = QUOTED; /* AFTER_QUOTE: the second of a doubled quote */
    } else if (scan->within == AFTER_QUOTE || scan->within == CLOSED) {
        scan->within = CLOSED;
        scan->misplaced = scan->misplaced || (byte != ' ' && byte != '\t');
    } else {
        scan->within = UNQUOTED;
    }
    return true;
}

/* Most rows are one line without a quote: memchr finds their end.  False for any other row, and when the line end
 * is not in the buffer yet. */
static bool find_plain_end(const struct csv_reader *reader, struct scan *scan)
{
    const char *from = reader->buffer + reader->at;
    size_t have = reader->end - reader->at;
    const char *end = memchr(from, '\n', have < PLAIN_BYTES_MAX ? have : PLAIN_BYTES_MAX);
    if (!end)
        return false;
    const char *stop = memchr(from, '\r', (size_t)(end - from));
    stop = stop ? stop : end;
    scan->length = (size_t)(stop - from);
    return !memchr(from, '"', scan->length);
}

/* Finds the end of the row at reader->at, which is then completely in the buffer unless scan->dropped. */
static void find_end(struct csv_reader *reader, struct scan *scan)
{
    *scan = (struct scan){.within = FIELD_START};
    if (find_plain_end(reader, scan))
        return;
    scan->length = 0;
    for (;;) {
        size_t here = scan->length - scan->dropped;
        const char *from = reader->buffer + reader->at;
        for (size_t have = reader->end - reader->at; here < have; here++)
            if (!scan_byte(scan, from[here], reader->separator)) {
                scan->length = scan->dropped + here;
                return;
            }
        scan->length = scan->dropped + here;
        if (reader->at_end)
            return;
        if (scan->length > reader->row_max) {
            scan->dropped = scan->length;
            reader->at = reader->end;
        }
        refill(reader);
    }
}

/* ---- second pass: fields ---- */

/* Removes the quotes of a field in place; returns the first byte after it. */
static char *unquote_field(char *at, const char *end, struct slice *field)
{
    char *from = at + 1, *to = at + 1;
    for (; from < end; from++) {
        if (*from == '"') {
            from++; /* the second of a doubled quote, or what follows the closing one */
            if (from == end || *from != '"')
                break;
        }
        *to++ = *from;
    }
    *field = (struct slice){at + 1, (size_t)(to - at - 1)};
    return from;
}

static void split_fields(struct csv_reader *reader, char *row, size_t length, size_t *count)
{
    char *at = row, *end = row + length;
    for (bool more = true; more; at++) {
        reader->fields =
            xgrow(reader->fields, &reader->field_capacity, *count, sizeof *reader->fields);
        struct slice *field = &reader->fields[(*count)++];
        bool quoted = at < end && *at == '"';
        char *rest = quoted ? unquote_field(at, end, field) : at;
        char *stop = rest < end ? memchr(rest, reader->separator, (size_t)(end - rest)) : NULL;
        more = stop != NULL;
        stop = stop ? stop : end;
        if (!quoted)
            *field = slice_between(at, stop);
        /* A quoted field ends before its closing quote, so that this covers no byte still needed. */
        *(char *)slice_end(*field) = '\0';
        at = stop;
    }
}

/* ---- rows ---- */

/* Skips a UTF-8 byte order mark, which some editors write. */
static void skip_byte_order_mark(struct csv_reader *reader)
{
    static const char MARK[] = {'\xEF', '\xBB', '\xBF'};
    while (!reader->at_end && reader->end < sizeof MARK)
        refill(reader);
    if (reader->end >= sizeof MARK && !memcmp(reader->buffer, MARK, sizeof MARK))
        reader->at = sizeof MARK;
    reader->has_started = true;
}

/* Advances to the first byte of the next row. */
static void skip_blank_lines(struct csv_reader *reader)
{
    if (!reader->has_started)
        skip_byte_order_mark(reader);
    for (;;) {
        if (reader->at == reader->end) {
            if (reader->at_end)
                break;
            refill(reader);
            continue;
        }
        char byte = reader->buffer[reader->at];
        if (byte != '\n' && byte != '\r')
            break;
        reader->line += byte == '\r' || !reader->after_return;
        reader->after_return = byte == '\r';
        reader->at++;
    }
    reader->after_return = false;
}

/* Checks a row for errors that concern all of it. */
static enum err check_row(const struct csv_reader *reader, const struct scan *scan,
                          struct error *why)
{
    if (reader->failure)
        return err_set(why, err_from_errno(reader->failure), "read error at line %llu: %s",
                       (unsigned long long)reader->line, strerror(reader->failure));
    if (scan->length > reader->row_max)
        return err_set(why, ERR_BAD_VALUE, "a row of %zu bytes (limit %zu): is a quote not closed?",
                       scan->length, reader->row_max);
    if (scan->within == QUOTED)
        return err_set(why, ERR_BAD_VALUE, "a quote is not closed");
    if (scan->misplaced)
        return err_set(why, ERR_BAD_VALUE,
                       "text after a closing quote: write a quote inside quotes as \"\"");
    return ERR_OK;
}

enum err csv_reader_next(struct csv_reader *reader, struct csv_row *row, bool *end,
                         struct error *why)
{
    struct scan scan;
    *row = (struct csv_row){0};
    *end = false;
    skip_blank_lines(reader);
    row->line = reader->line;
    if (reader->at == reader->end && !reader->failure) {
        *end = true;
        return ERR_OK;
    }
    find_end(reader, &scan);
    char *start = reader->buffer + reader->at;
    size_t here = scan.length - scan.dropped;
    enum err err = check_row(reader, &scan, why);
    reader->at += here;
    row->has_line_end = reader->at < reader->end;
    reader->line += scan.new_lines + row->has_line_end;
    if (row->has_line_end)
        reader->after_return = reader->buffer[reader->at++] == '\r';
    if (err)
        return err;
    split_fields(reader, start, here, &row->count);
    row->fields = reader->fields;
    if (reader->column_count && row->count != reader->column_count)
        return err_set(why, ERR_BAD_VALUE, "%zu fields, but the header has %zu", row->count,
                       reader->column_count);
    return ERR_OK;
}

enum err csv_reader_header(struct csv_reader *reader, struct error *why)
{
    struct csv_row row;
    bool end;
    enum err err = csv_reader_next(reader, &row, &end, why);
    if (err)
        return err;
    if (end)
        return err_set(why, ERR_BAD_VALUE, "empty: the first line must name the columns");
    size_t bytes = 1;
    for (size_t i = 0; i < row.count; i++)
        bytes += row.fields[i].length + 1;
    reader->names = xmalloc(bytes);
    reader->columns = xreallocarray(NULL, row.count + 1, sizeof *reader->columns);
    char *to = reader->names;
    for (size_t i = 0; i < row.count; i++) {
        memcpy(to, row.fields[i].start, row.fields[i].length + 1);
        reader->columns[i] = (struct slice){to, row.fields[i].length};
        to += row.fields[i].length + 1;
    }
    reader->column_count = row.count;
    return ERR_OK;
}

/* ---- a small table in memory ---- */

static void add_row(struct csv_grid *grid, size_t *capacity, size_t *lines_capacity,
                    const struct csv_row *row)
{
    size_t count = (grid->columns ? grid->rows + 1 : 0) * row->count;
    for (size_t i = 0; i < row->count; i++) {
        grid->cells = xgrow(grid->cells, capacity, count + i, sizeof *grid->cells);
        grid->cells[count + i] = (char *)row->fields[i].start;
    }
    if (grid->columns == 0) {
        grid->columns = row->count;
        return;
    }
    grid->lines = xgrow(grid->lines, lines_capacity, grid->rows, sizeof *grid->lines);
    grid->lines[grid->rows++] = (size_t)row->line;
}

enum err csv_grid_read(char *bytes, size_t length, struct csv_grid *out, struct error *why)
{
    struct csv_reader reader;
    struct csv_row row;
    struct error inner = {0};
    size_t capacity = 0, lines_capacity = 0;
    *out = (struct csv_grid){0};
    if (memchr(bytes, '\0', length))
        return err_set(why, ERR_BAD_VALUE, "not a CSV file: it contains a NUL byte");
    csv_reader_memory(&reader, bytes, length);
    enum err err = ERR_OK;
    for (bool end = false; !err;) {
        if ((err = csv_reader_next(&reader, &row, &end, &inner)))
            err = err_set(why, err, "line %llu: %s", (unsigned long long)row.line, inner.text);
        else if (end)
            break;
        else
            add_row(out, &capacity, &lines_capacity, &row);
        reader.column_count = out->columns;
    }
    csv_reader_release(&reader);
    if (!err && out->columns == 0)
        err = err_set(why, ERR_BAD_VALUE, "empty: the first line must name the columns");
    for (size_t i = 0; !err && i < out->columns; i++)
        out->cells[i] = str_trim(out->cells[i]);
    if (err)
        csv_grid_release(out);
    return err;
}

void csv_grid_release(struct csv_grid *grid)
{
    free(grid->cells);
    free(grid->lines);
    *grid = (struct csv_grid){0};
}

long csv_grid_column(const struct csv_grid *grid, const char *name)
{
    for (size_t i = 0; i < grid->columns; i++)
        if (str_equal(grid->cells[i], name))
            return (long)i;
    return -1;
}

const char *csv_grid_cell(const struct csv_grid *grid, size_t row, long column)
{
    return column < 0 ? "" : grid->cells[(row + 1) * grid->columns + (size_t)column];
}

/* ---- writing ---- */

void csv_add(struct text *out, const char *value)
{
    if (!strpbrk(value, ",\"\r\n")) {
        text_add(out, value);
        return;
    }
    text_add(out, "\"");
    for (const char *at = value; *at; at++)
        text_add_bytes(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    text_add(out, "\"");
}

void csv_add_text(struct text *out, const char *value)
{
    double number;
    if (!value[0] || !strchr("=+-@\t\r", value[0]) || parse_double(value, &number) == ERR_OK) {
        csv_add(out, value);
        return;
    }
    struct text guarded = {0};
    text_addf(&guarded, "'%s", value);
    csv_add(out, text_get(&guarded));
    text_release(&guarded);
}
