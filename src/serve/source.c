/* Where the table of runs comes from: a folder of run directories, or a database.
 *
 * A folder has changed when its own time has: runs come and go in it, and the run index beside them is written at the
 * end of each.  Summaries that were read are read again only when their file is another.  Of a database, the figures of
 * its table `runs` are read; the files of a run are copied to a scratch folder when they are asked for. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/text/format.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/sweep.h"
#include "serve/parts.h"

struct row_source {
    char folder[FILE_PATH_MAX];
    struct timespec changed;
};

const struct run_row_column ROW_COLUMN[ROW_COLUMNS] = {
#define RUN_TEXT(constant, name, index)   {name, index, true},
#define RUN_NUMBER(constant, name, index) {name, index, false},
#include "serve/columns.def"
#undef RUN_TEXT
#undef RUN_NUMBER
};

/* ---- rows ---- */

void run_row_release(struct run_row *row)
{
    free(row->id);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (ROW_COLUMN[i].is_text)
            free(row->values[i].text);
}

void run_row_to_json(const struct run_row *row, struct json *json)
{
    char when[FORMAT_MAX];
    json_string(json, "id", row->id);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (ROW_COLUMN[i].is_text)
            json_string(json, ROW_COLUMN[i].name, row->values[i].text);
        else if (i != ROW_CREATED)
            json_number(json, ROW_COLUMN[i].name, row->values[i].number);
        else
            json_string(json, ROW_COLUMN[i].name,
                        is_known(row->values[i].number)
                            ? format_time(when, from_seconds(row->values[i].number))
                            : NULL);
}

static bool set_text(struct run_row *row, enum run_column column, const char *text)
{
    free(row->values[column].text);
    row->values[column].text = text ? strdup(text) : NULL;
    return !text || row->values[column].text;
}

static void begin_row(struct run_row *row)
{
    *row = (struct run_row){.written_at = UNKNOWN};
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (!ROW_COLUMN[i].is_text)
            row->values[i].number = UNKNOWN;
}

/* The column of the run index that a column is; NULL for those that are none. */
static const struct summary_field *index_of(size_t column)
{
    for (size_t i = 0; ROW_COLUMN[column].index[0] && i < SUMMARY_INDEXES; i++)
        if (!strcmp(summary_index(i)->index_name, ROW_COLUMN[column].index))
            return summary_index(i);
    return NULL;
}

static bool fill_row(struct run_row *row, const struct summary *summary)
{
    bool is_whole = true;
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        const struct summary_field *field = index_of(i);
        if (field && ROW_COLUMN[i].is_text)
            is_whole &= set_text(row, (enum run_column)i, summary_index_text(field, summary));
        else if (field)
            row->values[i].number = json_field_number(&field->at, summary);
    }
    return is_whole;
}

/* ---- a folder ---- */

static const char *state_of(const char *directory, const struct run_list_entry *entry)
{
    if (entry->has_summary)
        return entry->summary.interrupted == 1 ? "interrupted" : "done";
    return run_dir_check_idle(directory, NULL) == ERR_BUSY ? "running" : "interrupted";
}

static enum err fill_from(const char *directory, const char *id, const struct run_list_entry *entry,
                          struct run_row *row)
{
    begin_row(row);
    row->id = strdup(id);
    row->written_at = entry->written_at;
    row->is_final = entry->has_summary;
    row->values[ROW_CREATED].number =
        entry->has_summary ? entry->summary.started_at : entry->began_at;
    if (row->id && set_text(row, ROW_NAME, str_last_part(id)) &&
        set_text(row, ROW_KIND, run_kind_name(entry->kind)) &&
        set_text(row, ROW_STATE, state_of(directory, entry)) &&
        (!entry->has_summary || fill_row(row, &entry->summary)))
        return ERR_OK;
    run_row_release(row);
    return ERR_NO_MEMORY;
}

enum err run_row_of(const char *directory, const char *id, struct run_row *out)
{
    struct run_list_entry entry;
    bool found;
    enum err err = run_list_read(directory, &entry, &found);
    if (err || !found)
        return err ? err : ERR_NOT_FOUND;
    err = fill_from(directory, id, &entry, out);
    run_list_entry_release(&entry);
    return err;
}

struct folder_reading {
    const struct row_source *source;
    const struct row_taker *taker;
};

static bool wants_entry(void *context, const char *name, double written_at)
{
    const struct folder_reading *reading = context;
    return !is_known(written_at) ||
           !reading->taker->keep(reading->taker->context, name, written_at);
}

static enum err take_entry(void *context, const struct run_list_entry *entry)
{
    const struct folder_reading *reading = context;
    char directory[FILE_PATH_MAX];
    struct run_row row;
    if (!str_format(directory, sizeof directory, "%s/%s", reading->source->folder, entry->name))
        return ERR_OK;
    enum err err = fill_from(directory, entry->name, entry, &row);
    return err ? err : reading->taker->take(reading->taker->context, &row);
}

static bool folder_time(const struct row_source *source, struct timespec *out)
{
    struct stat status;
    *out = (struct timespec){0};
    if (stat(source->folder, &status))
        return false;
    *out = status.st_mtim;
    return true;
}

bool row_source_changed(struct row_source *source)
{
    struct timespec now;
    return !folder_time(source, &now) || now.tv_sec != source->changed.tv_sec ||
           now.tv_nsec != source->changed.tv_nsec;
}

enum err row_source_read(struct row_source *source, const struct row_taker *taker,
                         struct error *why)
{
    struct folder_reading reading = {source, taker};
    struct timespec before;
    (void)folder_time(source, &before);
    enum err err = run_list_visit(source->folder, wants_entry, take_entry, &reading, why);
    if (!err)
        source->changed = before;
    return err;
}

/* An attempt of a sweep, by its path there: nothing else inside a run is a run. */
static bool is_attempt(const char *sweep_directory, const char *path)
{
    struct sweep sweep;
    bool found = false;
    if (sweep_load(sweep_directory, &sweep, NULL))
        return false;
    for (size_t i = 0; i < sweep.count && !found; i++)
        found = sweep.attempts[i].path && !strcmp(sweep.attempts[i].path, path);
    sweep_release(&sweep);
    return found;
}

enum err row_source_directory(struct row_source *source, const char *id,
                              char to[static FILE_PATH_MAX], struct error *why)
{
    const char *slash = strchr(id, '/');
    size_t length = slash ? (size_t)(slash - id) : strlen(id);
    bool fits = str_format(to, FILE_PATH_MAX, "%s/%.*s", source->folder, (int)length, id);
    if (fits && slash && !is_attempt(to, slash + 1))
        return err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
    if (fits && slash)
        fits = str_format(to, FILE_PATH_MAX, "%s/%s", source->folder, id);
    return fits ? ERR_OK : err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
}

/* ---- opening ---- */

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why)
{
    struct row_source *source = *out = calloc(1, sizeof *source);
    if (!source)
        return err_no_memory(why);
    if (!str_copy(source->folder, sizeof source->folder, options->runs))
        return err_set(why, ERR_USAGE, "path too long: %.200s", options->runs);
    return ERR_OK;
}

void row_source_close(struct row_source *source)
{
    free(source);
}

const char *row_source_shown(const struct row_source *source)
{
    return source->folder;
}
