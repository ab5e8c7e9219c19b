#include "datasets/rows/json_rows.h"

#include "core/text.h"

static bool is_space(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static int skip_space(struct bytes *bytes)
{
    while (is_space(bytes_peek(bytes)))
        (void)bytes_next(bytes);
    return bytes_peek(bytes);
}

enum err json_rows_open(const char *path, size_t most, struct json_rows *out, struct error *why)
{
    *out = (struct json_rows){.most = most};
    enum err err = bytes_open(path, &out->bytes, why);
    if (err)
        return err;
    if (skip_space(&out->bytes) == '[') {
        out->is_array = true;
        (void)bytes_next(&out->bytes);
    }
    return ERR_OK;
}

void json_rows_close(struct json_rows *rows)
{
    bytes_close(&rows->bytes);
}

/* Bytes are added in pieces: one at a time would cost more than reading them. */
struct piece {
    struct text *to;
    size_t most;
    size_t length; /* of the row, also beyond `most` */
    size_t count;
    char bytes[4096];
};

static void piece_flush(struct piece *piece)
{
    if (piece->length <= piece->most)
        text_add_bytes(piece->to, piece->bytes, piece->count);
    piece->count = 0;
}

static void piece_add(struct piece *piece, int byte)
{
    if (piece->count == sizeof piece->bytes)
        piece_flush(piece);
    piece->bytes[piece->count++] = (char)byte;
    piece->length++;
}

static void read_line(struct bytes *bytes, struct piece *piece)
{
    int byte;
    while ((byte = bytes_next(bytes)) != BYTES_END && byte != '\n')
        piece_add(piece, byte);
}

/* One element: to the comma or bracket that ends it, neither of them read. */
static void read_element(struct bytes *bytes, struct piece *piece)
{
    unsigned depth = 0;
    bool quoted = false, escaped = false;
    for (int byte; (byte = bytes_peek(bytes)) != BYTES_END; (void)bytes_next(bytes)) {
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
        piece_add(piece, byte);
    }
}

/* To the first byte of the next row; false at the end. */
static bool find_row(struct json_rows *rows)
{
    struct bytes *bytes = &rows->bytes;
    if (!rows->is_array)
        return skip_space(bytes) != BYTES_END;
    while (!rows->array_closed && skip_space(bytes) == ',')
        (void)bytes_next(bytes);
    if (bytes_peek(bytes) == ']')
        rows->array_closed = true;
    return !rows->array_closed && bytes_peek(bytes) != BYTES_END;
}

/* The end that was reached: a true one, a failure, or that of an array which was cut off. */
static enum err end_of(struct json_rows *rows, bool *end, struct error *why)
{
    if (rows->bytes.err || !rows->is_array || rows->array_closed)
        return bytes_failure(&rows->bytes, why);
    rows->array_closed = true; /* told once */
    *end = false;
    return err_set(why, ERR_BAD_VALUE, "the file ends within its array: it was cut off");
}

enum err json_rows_next(struct json_rows *rows, struct text *row, uint64_t *line, bool *end,
                        struct error *why)
{
    struct piece piece = {.to = row, .most = rows->most};
    text_clear(row);
    *end = !find_row(rows);
    *line = rows->bytes.line;
    if (*end)
        return end_of(rows, end, why);
    if (rows->is_array)
        read_element(&rows->bytes, &piece);
    else
        read_line(&rows->bytes, &piece);
    piece_flush(&piece);
    if (rows->bytes.err)
        return bytes_failure(&rows->bytes, why);
    if (piece.length > rows->most)
        return err_set(why, ERR_BAD_VALUE, "a row of %zu bytes: the most is %zu", piece.length,
                       rows->most);
    return row->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
