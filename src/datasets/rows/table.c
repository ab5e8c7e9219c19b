#include "datasets/rows/table.h"

#include <string.h>

#include "core/json.h"

/* Reading one record is a small machine: where are we within the field? */
enum place { AT_START, IN_PLAIN, IN_QUOTES, AFTER_QUOTES };

struct parse {
    struct record *to;
    size_t most, length;
    enum place place;
    bool misplaced; /* something stood after a closing quote */
    bool any;       /* the record holds more than an empty line */
};

static void add(struct parse *parse, int byte)
{
    char one = (char)byte;
    parse->length++;
    if (parse->length > parse->most)
        return;
    if (byte == 0) /* it ends a field here, and no text may hold it */
        text_add(&parse->to->bytes, "\xEF\xBF\xBD");
    else
        text_add_bytes(&parse->to->bytes, &one, 1);
}

static void end_field(struct parse *parse)
{
    text_add_bytes(&parse->to->bytes, "", 1);
    parse->to->fields++;
    parse->place = AT_START;
}

static void take_quoted(struct bytes *bytes, struct parse *parse, int byte)
{
    if (byte != '"') {
        add(parse, byte);
    } else if (bytes_peek(bytes) == '"') {
        (void)bytes_next(bytes);
        add(parse, '"');
    } else {
        parse->place = AFTER_QUOTES;
    }
}

/* One byte outside quotes; true when it ends the record. */
static bool take_plain(struct parse *parse, int byte, char separator)
{
    if (byte == '\n' || byte == '\r')
        return true; /* of CRLF the second is an empty line, and those are passed over */
    parse->any = true;
    if (byte == (unsigned char)separator) {
        end_field(parse);
    } else if (byte == '"' && parse->place == AT_START) {
        parse->place = IN_QUOTES;
    } else if (parse->place == AFTER_QUOTES) {
        parse->misplaced = parse->misplaced || (byte != ' ' && byte != '\t');
    } else {
        parse->place = IN_PLAIN;
        add(parse, byte);
    }
    return false;
}

static enum err judge(const struct parse *parse, const struct bytes *bytes, struct error *why)
{
    if (bytes->err)
        return bytes_failure(bytes, why);
    if (parse->to->bytes.failed)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    if (parse->length > parse->most)
        return err_set(why, ERR_BAD_VALUE,
                       "a row of %zu bytes, and the most is %zu: is a quote not closed?",
                       parse->length, parse->most);
    if (parse->place == IN_QUOTES)
        return err_set(why, ERR_BAD_VALUE, "a quote that is never closed");
    if (parse->misplaced)
        return err_set(why, ERR_BAD_VALUE,
                       "something follows a closing quote: a quote within quotes is written \"\"");
    return ERR_OK;
}

/* The next record that is not an empty line; *end when there is none. */
static enum err read_record(struct table *table, struct record *to, uint64_t *line, bool *end,
                            struct error *why)
{
    struct parse parse = {.to = to, .most = table->most};
    struct bytes *bytes = &table->bytes;
    text_clear(&to->bytes);
    to->fields = 0;
    *line = bytes->line;
    for (int byte; (byte = bytes_next(bytes)) != BYTES_END;) {
        if (parse.place == IN_QUOTES) {
            take_quoted(bytes, &parse, byte);
        } else if (take_plain(&parse, byte, table->separator)) {
            if (parse.any)
                break;
            *line = bytes->line;
        }
    }
    *end = !parse.any && !bytes->err;
    if (*end)
        return ERR_OK;
    enum err err = judge(&parse, bytes, why);
    end_field(&parse);
    return err;
}

enum err csv_table_open(const char *path, char separator, size_t most, struct table *out,
                        struct error *why)
{
    uint64_t line;
    bool end;
    struct error reason;
    *out = (struct table){.separator = separator, .most = most};
    enum err err = bytes_open(path, &out->bytes, why);
    if (err)
        return err;
    err = read_record(out, &out->names, &line, &end, &reason);
    if (err)
        err = err_set(why, err, "%s, the header: %s", path, reason.text);
    else if (end)
        err = err_set(why, ERR_BAD_VALUE, "%s has no header and no rows", path);
    if (err)
        csv_table_close(out);
    return err;
}

void csv_table_close(struct table *table)
{
    bytes_close(&table->bytes);
    text_release(&table->names.bytes);
    text_release(&table->fields.bytes);
}

static void write_row(const struct table *table, struct text *row)
{
    struct json json;
    const char *name = text_get(&table->names.bytes), *value = text_get(&table->fields.bytes);
    json_init(&json, row, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < table->names.fields; i++) {
        json_string(&json, name, value);
        name += strlen(name) + 1;
        value += strlen(value) + 1;
    }
    json_object_end(&json);
}

enum err csv_table_next(struct table *table, struct text *row, uint64_t *line, bool *end,
                        struct error *why)
{
    text_clear(row);
    enum err err = read_record(table, &table->fields, line, end, why);
    if (err || *end)
        return err;
    if (table->fields.fields != table->names.fields)
        return err_set(why, ERR_BAD_VALUE, "%zu fields, and the header has %zu",
                       table->fields.fields, table->names.fields);
    write_row(table, row);
    return row->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
