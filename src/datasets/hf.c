/* A directory that save_to_disk of the Python library `datasets` wrote: Arrow files and what
 * describes them.  How many rows there are, only reading tells: the count in dataset_info.json stays
 * when a dataset is filtered or cut before it is saved. */
#include <stdlib.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/hf/shards.h"
#include "datasets/rows/feed.h"
#include "port/arrow_read.h"
#include "port/json_read.h"

struct rows {
    struct shards shards;
    size_t next_shard;
    struct arrow_reader *reader; /* of the shard before; NULL between two */
    uint64_t next_row;
};

static enum err next_row(void *state, struct text *row, uint64_t *number, bool *end,
                         struct error *why)
{
    struct rows *rows = state;
    text_clear(row);
    for (;;) {
        *end = !rows->reader && rows->next_shard == rows->shards.count;
        if (*end)
            return ERR_OK;
        if (!rows->reader) {
            const char *path = rows->shards.paths[rows->next_shard];
            enum err err = arrow_reader_open(path, &rows->reader, why);
            if (err)
                return err;
            rows->next_shard++;
        }
        bool shard_end = false;
        enum err err = arrow_reader_next(rows->reader, row, &shard_end, why);
        if (err || !shard_end) {
            *number = rows->next_row++;
            /* A file that is broken in the middle has no row after it: none is "this one only". */
            return err == ERR_BAD_VALUE ? ERR_IO : err;
        }
        arrow_reader_close(rows->reader);
        rows->reader = NULL;
    }
}

static void close_rows(void *state)
{
    struct rows *rows = state;
    if (rows->reader)
        arrow_reader_close(rows->reader);
    shards_release(&rows->shards);
    free(rows);
}

static enum err hf_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : arrow_read_available(why);
}

static enum err hf_open(const struct dataset_config *config, struct dataset *out, struct error *why)
{
    const char *path = params_get(config->params, "path");
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset %s needs path=DIR", out->name);
    struct rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = shards_find(path, params_get(config->params, "split"), &rows->shards, why);
    if (err) {
        free(rows);
        return err;
    }
    struct row_source source = {
        .next = next_row,
        .close = close_rows,
        .state = rows,
        .unit = "row",
        .count = -1,
    };
    return feed_open(config->params, source, path, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "DIR", "the directory that save_to_disk wrote"},
    {"split", "NAME", "which split, where the directory has several"},
    FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_hf = {
    .name = "hf",
    .summary = "a directory written by save_to_disk (Arrow)",
    .params = PARAMS,
    .available = hf_available,
    .open = hf_open,
    .next = feed_next,
    .close = feed_close,
};
