#include "report/export/records.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/arrow_read.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/journal.h"

static int is_shard(const struct dirent *entry)
{
    return fnmatch("data-[0-9]*.arrow", entry->d_name, 0) == 0;
}

static enum err find_shards(struct records *out, struct error *why)
{
    struct dirent **entries = NULL;
    int count = scandir(out->directory, &entries, is_shard, alphasort);
    if (count < 0 && errno == ENOENT)
        return err_set(why, ERR_NOT_FOUND, "no such directory: %s", out->directory);
    if (count < 0)
        return err_set(why, err_from_errno(errno), "cannot look into %s: %s", out->directory,
                       strerror(errno));
    out->shards = calloc((size_t)count + 1, sizeof *out->shards);
    for (int i = 0; i < count; i++) {
        if (out->shards && (out->shards[out->shard_count] = strdup(entries[i]->d_name)))
            out->shard_count++;
        free(entries[i]);
    }
    free((void *)entries);
    return out->shard_count == (size_t)count
               ? ERR_OK
               : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

enum err records_open(const char *directory, struct records *out, struct error *why)
{
    char journal[FILE_PATH_MAX];
    *out = (struct records){.directory = directory};
    enum err err = jv_available(why);
    if (!err)
        err = find_shards(out, why);
    if (!err && !str_format(journal, sizeof journal, "%s/records.jsonl", directory))
        err = err_set(why, ERR_BAD_VALUE, "the path is too long: %.100s...", directory);
    if (!err && file_exists(journal))
        err = journal_index_new(&out->index, journal, why);
    else if (!err && !out->shard_count)
        err = err_set(why, ERR_NOT_FOUND, "%s holds no run: neither records.jsonl nor data-*.arrow",
                      directory);
    if (err)
        records_close(out);
    return err;
}

void records_close(struct records *records)
{
    for (size_t i = 0; i < records->shard_count; i++)
        free(records->shards[i]);
    free((void *)records->shards);
    if (records->index)
        journal_index_free(records->index);
    *records = (struct records){0};
}

/* One Arrow file, row by row. */
static enum err give_shard(const char *path,
                           enum err (*take)(void *context, const struct jv *record), void *context,
                           struct error *why)
{
    struct arrow_reader *reader;
    struct text row = {0};
    bool end = false;
    enum err err = arrow_reader_open(path, &reader, why);
    if (err)
        return err;
    while (!err && !(err = arrow_reader_next(reader, &row, &end, why)) && !end) {
        struct jv *record;
        err = jv_parse(text_get(&row), row.length, &record, why);
        if (!err) {
            err = take(context, record);
            jv_free(record);
        }
    }
    text_release(&row);
    arrow_reader_close(reader);
    return err;
}

enum err records_give(struct records *records,
                      enum err (*take)(void *context, const struct jv *record), void *context,
                      struct error *why)
{
    char path[FILE_PATH_MAX];
    enum err err = ERR_OK;
    if (records->index)
        return journal_index_give(records->index, take, context, &records->damaged, why);
    for (size_t i = 0; !err && i < records->shard_count; i++)
        err = str_format(path, sizeof path, "%s/%s", records->directory, records->shards[i])
                  ? give_shard(path, take, context, why)
                  : err_set(why, ERR_BAD_VALUE, "the path is too long: %.100s...",
                            records->directory);
    return err;
}
