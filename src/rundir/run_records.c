#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/arrow_read.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/journal.h"

enum err run_records_open(const char *directory, struct run_records *out, struct error *why)
{
    char journal[FILE_PATH_MAX];
    *out = (struct run_records){.directory = directory, .format = UNKNOWN};
    enum err err = jv_available(why);
    if (!err)
        err = run_shards_find(directory, &out->shards, why);
    if (!err && !run_path_file(directory, RUN_FILE_RECORDS, journal, sizeof journal))
        err = err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    if (!err && file_exists(journal)) {
        err = journal_index_new(&out->index, journal, why);
        out->format = journal_format(journal);
    } else if (!err && !out->shards.count) {
        err = err_set(why, ERR_NOT_FOUND, "%s holds no run: neither records.jsonl nor data-*.arrow",
                      directory);
    }
    if (err)
        run_records_close(out);
    return err;
}

void run_records_close(struct run_records *records)
{
    run_shards_release(&records->shards);
    journal_index_free(records->index);
    *records = (struct run_records){.format = UNKNOWN};
}

/* One Arrow file, row by row. */
static enum err give_shard(const char *path, journal_take *take, void *context, struct error *why)
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

enum err run_records_give(struct run_records *records, journal_take *take, void *context,
                          struct error *why)
{
    char journal[FILE_PATH_MAX];
    enum err err = ERR_OK;
    for (size_t i = 0; !records->index && !err && i < records->shards.count; i++)
        err = give_shard(records->shards.paths[i], take, context, why);
    if (!records->index)
        return err;
    err = journal_index_give(records->index, take, context, &records->damaged, why);
    if (records->damaged && !records->first_damaged &&
        run_path_file(records->directory, RUN_FILE_RECORDS, journal, sizeof journal))
        records->first_damaged = journal_first_damaged(journal);
    return err;
}

/* ---- progress ---- */

/* Quotes inside of strings are escaped: these bytes are what they seem. */
static void take_progress(struct run_progress *progress, const char *line, size_t length)
{
    struct jv *value;
    bool is_query = str_starts(line, "{\"kind\":\"query\"");
    bool is_start = str_starts(line, "{\"kind\":\"run\"");
    if (is_query)
        progress->done++;
    if (!is_start && !(is_query && strstr(line, "\"status\":\"failed\"")))
        return;
    if (jv_parse(line, length, &value, NULL))
        return;
    const char *status = jv_text(jv_path(value, "ipw.status"));
    progress->failed += is_query && status && !strcmp(status, "failed");
    if (is_start) {
        double wanted = jv_number(jv_path(value, "measuring.queries"));
        progress->started_at = jv_number(jv_get(value, "started_at"));
        progress->before = progress->done;
        progress->total = wanted > 0 ? (double)progress->done + wanted : 0;
    }
    jv_free(value);
}

enum err run_progress_read(const char *directory, struct run_progress *progress, struct error *why)
{
    char path[FILE_PATH_MAX], *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    if (!run_path_file(directory, RUN_FILE_RECORDS, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    FILE *file = fopen(path, "re");
    if (!file || fseek(file, (long)progress->read, SEEK_SET)) {
        if (file)
            fclose(file);
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    }
    while ((length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n') {
        take_progress(progress, line, (size_t)length);
        progress->read += length;
    }
    free(line);
    fclose(file);
    return ERR_OK;
}
