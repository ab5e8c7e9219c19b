/* JSON lines: one object per line, or one array of objects. */
#include <stdlib.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "datasets/text_rows.h"
#include "port/json_read.h"

static enum err next_row(void *state, struct text *row, uint64_t *number, bool *end,
                         struct error *why)
{
    return json_rows_next(state, row, number, end, why);
}

static void close_rows(void *state)
{
    json_rows_close(state);
    free(state);
}

static enum err jsonl_open(const struct dataset_config *config, struct dataset *out,
                           struct error *why)
{
    const char *path = params_get(config->params, "path");
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset %s needs path=FILE", out->name);
    struct json_rows *rows = malloc(sizeof *rows);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = json_rows_open(path, ROW_BYTES_MAX, rows, why);
    if (err) {
        free(rows);
        return err;
    }
    struct row_source source = {
        .next = next_row,
        .close = close_rows,
        .state = rows,
        .unit = "line",
        .count = -1,
    };
    return row_feed_open(config->params, source, path, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "FILE", "the file: JSON lines, or one array of objects"},
    ROW_FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_jsonl = {
    .name = "jsonl",
    .summary = "a file of JSON lines, or one JSON array",
    .params = PARAMS,
    .available = jv_available,
    .open = jsonl_open,
    .next = row_feed_next,
    .close = row_feed_close,
};
