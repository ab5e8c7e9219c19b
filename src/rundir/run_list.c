#include "rundir/run_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/sweep.h"

/* The kind and the start of an unfinished run are in its journal. */
static void read_journal(const char *directory, struct run_list_entry *entry)
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    struct journal_facts facts = journal_facts(path);
    free(path);
    entry->kind = facts.kind;
    entry->began_at = facts.started_at;
}

void run_list_entry_release(struct run_list_entry *entry)
{
    summary_release(&entry->summary);
    free(entry->name);
}

static void read_entry(const char *directory, const char *name, struct run_list_entry *out,
                       bool *found)
{
    enum run_dir_state state;
    *found = !run_dir_inspect(directory, &state, NULL) && state == RUN_DIR_HAS_RUN;
    if (!*found)
        return;
    *out = (struct run_list_entry){
        .name = xstrdup(name), .written_at = summary_written_at(directory), .began_at = UNKNOWN};
    out->has_summary = summary_load(directory, &out->summary, NULL) == ERR_OK;
    out->kind = run_kind_named(out->summary.run_kind);
    if (!out->has_summary)
        read_journal(directory, out);
}

void run_list_read(const char *directory, struct run_list_entry *out, bool *found)
{
    read_entry(directory, str_last_part(directory), out, found);
}

/* How each run of a folder is processed: added to `kept`, or passed to `take`. */
struct visit {
    struct run_list *kept;
    bool (*wants)(void *context, const char *name, int64_t written_at); /* NULL: all */
    enum err (*take)(void *context, const struct run_list_entry *entry);
    void *context;
};

/* Takes ownership of the entry. */
static void keep_entry(struct run_list *list, struct run_list_entry *entry)
{
    *XADD(list->entries, list->count, list->capacity) = *entry;
}

static enum err visit_entry(const struct visit *visit, const char *parent, const char *name)
{
    struct run_list_entry entry;
    bool found = false;
    char *directory = path_join(parent, name);
    if ((!visit->wants || visit->wants(visit->context, name, summary_written_at(directory))) &&
        run_has_directory(directory))
        read_entry(directory, name, &entry, &found);
    free(directory);
    if (!found)
        return ERR_OK;
    if (visit->kept) {
        keep_entry(visit->kept, &entry);
        return ERR_OK;
    }
    enum err err = visit->take(visit->context, &entry);
    run_list_entry_release(&entry);
    return err;
}

static enum err visit_children(const struct visit *visit, const char *parent, struct error *why)
{
    const struct dirent *file;
    enum err err = ERR_OK;
    DIR *dir = run_open_directory(parent);
    if (!dir)
        return err_errno(why, errno, "cannot read the directory %s", parent);
    while (!err && (file = readdir(dir)))
        if (file->d_name[0] != '.')
            err = visit_entry(visit, parent, file->d_name);
    closedir(dir);
    return err_explain(why, err);
}

static enum err visit_attempts(const struct visit *visit, const char *directory)
{
    struct sweep sweep;
    enum err err = ERR_OK;
    if (sweep_load(directory, &sweep, NULL))
        return ERR_OK;
    for (size_t i = 0; !err && i < sweep.count; i++)
        if (sweep.attempts[i].path)
            err = visit_entry(visit, directory, sweep.attempts[i].path);
    sweep_release(&sweep);
    return err;
}

static int by_time(const void *left, const void *right)
{
    const struct run_list_entry *a = left, *b = right;
    double x = a->summary.started_at, y = b->summary.started_at;
    if (is_known(x) != is_known(y))
        return is_known(x) ? -1 : 1;
    if (is_known(x) && x != y)
        return x < y ? -1 : 1;
    return strcmp(a->name, b->name);
}

enum err run_list_load(const char *parent, struct run_list *out, struct error *why)
{
    const struct visit visit = {.kept = out};
    *out = (struct run_list){0};
    enum err err = visit_children(&visit, parent, why);
    if (!err && !out->count && sweep_is(parent))
        err = err_explain(why, visit_attempts(&visit, parent));
    if (out->count)
        qsort(out->entries, out->count, sizeof *out->entries, by_time);
    if (err)
        run_list_release(out);
    return err;
}

void run_list_release(struct run_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        run_list_entry_release(&list->entries[i]);
    free(list->entries);
    *list = (struct run_list){0};
}

enum err run_list_visit(const char *parent,
                        bool (*wants)(void *context, const char *name, int64_t written_at),
                        enum err (*take)(void *context, const struct run_list_entry *entry),
                        void *context, struct error *why)
{
    const struct visit visit = {.wants = wants, .take = take, .context = context};
    return visit_children(&visit, parent, why);
}

/* ---- arguments ---- */

static void add_input(struct run_inputs *inputs, const char *parent, const char *name)
{
    inputs->paths =
        xgrow(inputs->paths, &inputs->capacity, inputs->count + 1, sizeof *inputs->paths);
    inputs->paths[inputs->count++] = name ? xformat("%s/%s", parent, name) : xstrdup(parent);
    inputs->paths[inputs->count] = NULL;
}

static bool is_run(const char *directory)
{
    enum run_dir_state state;
    return run_dir_inspect(directory, &state, NULL) == ERR_OK && state == RUN_DIR_HAS_RUN;
}

/* The successful runs of a sweep, in the order of their points. */
static void add_points(struct run_inputs *inputs, const char *directory, bool separated)
{
    struct sweep sweep;
    if (sweep_load(directory, &sweep, NULL))
        return;
    size_t before = inputs->count, last = sweep.point_count;
    for (size_t point = 0; point < sweep.point_count; point++)
        for (size_t i = 0; i < sweep.count; i++) {
            const struct sweep_attempt *attempt = &sweep.attempts[i];
            if (attempt->point != point || attempt->exit_code || !attempt->path)
                continue;
            if (separated && inputs->count > before && last != point)
                add_input(inputs, "--", NULL);
            add_input(inputs, directory, attempt->path);
            last = point;
        }
    sweep_release(&sweep);
}

static void add_entry_input(struct run_inputs *inputs, const char *parent,
                            const struct run_list_entry *entry, bool whole_sweeps)
{
    if (entry->kind != RUN_KIND_SWEEP || whole_sweeps) {
        add_input(inputs, parent, entry->name);
        return;
    }
    char *directory = path_join(parent, entry->name);
    add_points(inputs, directory, false);
    free(directory);
}

/* Whether there are runs.  A folder that cannot be read is left to the command, which reports it. */
static bool add_children(struct run_inputs *inputs, const char *folder, bool whole_sweeps)
{
    struct run_list list = {0};
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    char *parent = xstrndup(folder, length);
    (void)!run_list_load(parent, &list, NULL);
    bool has_runs = list.count > 0;
    for (size_t i = 0; i < list.count; i++)
        add_entry_input(inputs, parent, &list.entries[i], whole_sweeps);
    run_list_release(&list);
    free(parent);
    return has_runs;
}

/* Files that commands write among runs, which a wildcard may match. */
static bool is_generated_file(const char *word)
{
    static const char *const NAMES[] = {"catalog.db", RUN_REPORT, RUN_PLOTS, RUN_ANALYSES};
    const char *slash = strrchr(word, '/');
    return str_is_listed(slash ? slash + 1 : word, NAMES, COUNT_OF(NAMES));
}

/* Unreadable arguments are added as well: the command reports the reason. */
static void add_word(struct run_inputs *inputs, const char *word, bool whole_sweeps)
{
    size_t before = inputs->count;
    if (file_is_directory(word) && !is_run(word)) {
        if (add_children(inputs, word, whole_sweeps))
            return;
    } else if (!whole_sweeps && sweep_is(word)) {
        add_points(inputs, word, false);
    }
    if (inputs->count == before)
        add_input(inputs, word, NULL);
}

void run_inputs_find(const char *const *words, size_t count, bool whole_sweeps,
                     struct run_inputs *out)
{
    *out = (struct run_inputs){0};
    for (size_t i = 0; i < count; i++)
        if (count == 1 || !is_generated_file(words[i]))
            add_word(out, words[i], whole_sweeps);
}

void run_inputs_settings(const char *sweep, struct run_inputs *out)
{
    *out = (struct run_inputs){0};
    add_points(out, sweep, true);
}

void run_inputs_release(struct run_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->paths[i]);
    free(inputs->paths);
    *inputs = (struct run_inputs){0};
}

/* ---- the result ---- */

static void put_run(struct result *out, const struct run_list_entry *entry)
{
    const struct summary *summary = entry->has_summary ? &entry->summary : NULL;
    result_group(out, NULL);
    result_text(out, "directory", entry->name);
    result_text(out, "kind", run_kind_name(entry->kind));
    result_flag(out, "complete", entry->has_summary);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct summary_field *column = summary_index(i);
        if (column->at.type == FIELD_TEXT)
            result_text(out, column->index_name, summary_index_text(column, summary));
        else
            result_number(out, column->index_name,
                          summary ? json_field_number(&column->at, summary) : UNKNOWN,
                          column->unit ? column->unit : "");
    }
    result_end(out);
}

void run_list_put(const struct run_list *list, struct result *out)
{
    result_list(out, "runs");
    for (size_t i = 0; i < list->count; i++)
        put_run(out, &list->entries[i]);
    result_end(out);
}
