/* CSV: RFC 4180, with a header that names the columns. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/rows/feed.h"
#include "datasets/rows/table.h"
#include "port/json_read.h"

static enum err next_row(void *state, struct text *row, uint64_t *number, bool *end,
                         struct error *why)
{
    return csv_table_next(state, row, number, end, why);
}

static void close_rows(void *state)
{
    csv_table_close(state);
    free(state);
}

/* A comma is hard to give among parameters that commas separate, so that the names are known too. */
static enum err read_separator(const struct params *params, const char *path, char *out,
                               struct error *why)
{
    static const struct {
        const char *word;
        char separator;
    } WORDS[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"pipe", '|'},
                 {"\\t", '\t'},  {",", ','},         {";", ';'},    {"|", '|'}};
    const char *word = params_get(params, "separator");
    const char *dot = strrchr(path, '.');
    *out = dot && str_equal_nocase(dot, ".tsv") ? '\t' : ',';
    if (!word)
        return ERR_OK;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(word, WORDS[i].word) == 0) {
            *out = WORDS[i].separator;
            return ERR_OK;
        }
    return err_set(why, ERR_USAGE, "separator=%s: expected comma, semicolon, tab or pipe", word);
}

static enum err csv_open(const struct dataset_config *config, struct dataset *out,
                         struct error *why)
{
    char separator;
    const char *path = params_get(config->params, "path");
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset %s needs path=FILE", out->name);
    enum err err = read_separator(config->params, path, &separator, why);
    if (err)
        return err;
    struct table *table = malloc(sizeof *table);
    if (!table)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    err = csv_table_open(path, separator, ROW_BYTES_MAX, table, why);
    if (err) {
        free(table);
        return err;
    }
    struct row_source source = {
        .next = next_row,
        .close = close_rows,
        .state = table,
        .unit = "line",
        .count = -1,
    };
    return feed_open(config->params, source, path, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "FILE", "the file; its first row names the columns"},
    {"separator", "NAME", "comma, semicolon, tab or pipe (comma; tab for *.tsv)"},
    FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_csv = {
    .name = "csv",
    .summary = "a CSV or TSV file with a header",
    .params = PARAMS,
    .available = jv_available,
    .open = csv_open,
    .next = feed_next,
    .close = feed_close,
};
