/* Two drivers over text_rows.h: CSV (RFC 4180, with a header that names the columns) and JSON (one object per line, or
 * one array of objects). */
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "datasets/text_rows.h"

extern const struct dataset_driver dataset_csv, dataset_jsonl;

/* An object of strings. */
static struct jv *record_value(const struct text_rows *rows)
{
    struct jv *object = jv_new_object();
    for (size_t i = 0; i < rows->record.count; i++)
        jv_add(object, rows->csv.columns[i].start,
               jv_new_bytes(rows->record.fields[i].start, rows->record.fields[i].length));
    return object;
}

static enum err next_row(void *state, struct jv **row, uint64_t *number, struct error *why)
{
    struct text_rows *rows = state;
    bool end;
    *row = NULL;
    enum err err = text_rows_next(rows, number, &end, why);
    if (err || end)
        return err;
    if (!rows->separator)
        return jv_parse_repaired(text_get(&rows->json), rows->json.length, row, why);
    *row = record_value(rows);
    return ERR_OK;
}

static void close_rows(void *state)
{
    text_rows_close(state);
    free(state);
}

/* Separators have names, because commas separate parameters. */
static enum err read_separator(const struct params *params, const char *path, char *out,
                               struct error *why)
{
    static const struct separator {
        const char *word;
        char character;
    } WORDS[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"pipe", '|'},
                 {"\\t", '\t'},  {",", ','},         {";", ';'},    {"|", '|'}};
    const char *word = params_get(params, "separator");
    const char *dot = strrchr(path, '.');
    *out = dot && str_equal_nocase(dot, ".tsv") ? '\t' : ',';
    if (!word)
        return ERR_OK;
    const struct separator *found = STR_FIND(word, WORDS);
    if (!found)
        return err_set(why, ERR_USAGE, "separator=%s: expected comma, semicolon, tab or pipe",
                       word);
    *out = found->character;
    return ERR_OK;
}

static enum err open_rows(const struct dataset *dataset, const struct params *params,
                          const char *path, void *state, struct error *why)
{
    char separator = 0;
    enum err err = ERR_OK;
    if (dataset->driver == &dataset_csv)
        err = read_separator(params, path, &separator, why);
    return err ? err : text_rows_open(path, separator, ROW_BYTES_MAX, state, why);
}

static enum err open_file(const struct dataset_config *config, struct dataset *out,
                          struct error *why)
{
    static const struct row_file TEXT = {
        .placeholder = "FILE",
        .state_size = sizeof(struct text_rows),
        .open = open_rows,
        .source = {.next = next_row, .close = close_rows, .unit = "line", .count = -1},
    };
    return row_feed_open_file(config->params, &TEXT, out, why);
}

static const struct param_spec CSV_PARAMS[] = {
    {"path", "FILE", "the file; the first row names the columns"},
    {"separator", "NAME", "comma, semicolon, tab or pipe (comma; tab for *.tsv)"},
    ROW_FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_csv = {
    .name = "csv",
    .summary = "a CSV or TSV file with a header",
    .params = CSV_PARAMS,
    .open = open_file,
    .next = row_feed_next,
    .close = row_feed_close,
};

static const struct param_spec JSONL_PARAMS[] = {
    {"path", "FILE", "the file: JSON lines, or one array of objects"},
    ROW_FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_jsonl = {
    .name = "jsonl",
    .summary = "a file of JSON lines, or one JSON array",
    .params = JSONL_PARAMS,
    .open = open_file,
    .next = row_feed_next,
    .close = row_feed_close,
};
