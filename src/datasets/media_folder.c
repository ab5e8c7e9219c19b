/* A folder of images or sound as rows: the names of its files are listed and sorted once, labels are looked up by name,
 * and a transcript is read when its row is.  Memory is that of the names and labels. */
#define _DEFAULT_SOURCE /* d_type */
#include "datasets/media_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/jv.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/coco.h"
#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "port/file.h"

#define LABELS_FILE_MAX     ((size_t)1 << 28)
#define TRANSCRIPT_FILE_MAX ((size_t)1 << 20)

/* ---- the kinds ---- */

struct kind {
    const char *driver;               /* its name */
    const char *file;                 /* one of its files, for messages: "image" */
    const char *formats;              /* "PNG or JPEG" */
    const char *const *suffixes;      /* NULL-terminated */
    const char *const *label_columns; /* of labels.csv, NULL-terminated: the first that exists */
    const char *label;                /* what such a column has: "label" */
    const char *label_grader;         /* grader of its answers */
    bool has_boxes;                   /* COCO annotations are read */
    bool has_transcripts;             /* NAME.txt beside NAME.wav */
    bool labels_are_subjects;
};

static const struct kind KINDS[] = {
    [MEDIA_IMAGES] = {.driver = "images",
                      .file = "image",
                      .formats = "PNG or JPEG",
                      .suffixes = (const char *const[]){".png", ".jpg", ".jpeg", NULL},
                      .label_columns = (const char *const[]){"label", NULL},
                      .label = "label",
                      .label_grader = "top_1",
                      .has_boxes = true,
                      .labels_are_subjects = true},
    [MEDIA_AUDIO] = {.driver = "audio",
                     .file = "sound",
                     .formats = "WAV",
                     .suffixes = (const char *const[]){".wav", ".wave", NULL},
                     .label_columns = (const char *const[]){"text", "transcript", "label", NULL},
                     .label = "transcript",
                     .label_grader = "wer",
                     .has_transcripts = true},
};

/* ---- the list of files ---- */

struct file_list {
    const struct kind *kind;
    char **names; /* relative to the folder */
    size_t count, capacity;
    char *other; /* the first file of another format, or NULL */
    bool only_first;
};

static void file_list_release(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free((void *)list->names);
    free(list->other);
}

static bool has_suffix(const char *name, const char *const *suffixes)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && suffixes[i]; i++)
        if (str_equal_nocase(dot, suffixes[i]))
            return true;
    return false;
}

/* Takes ownership of a name. */
static void take_name(struct file_list *list, char *name)
{
    if (has_suffix(name, list->kind->suffixes)) {
        *XADD(list->names, list->count, list->capacity) = name;
        return;
    }
    bool is_other =
        !list->other && !has_suffix(name, (const char *const[]){".csv", ".json", ".txt", NULL});
    if (is_other)
        list->other = name;
    else
        free(name);
}

static bool is_folder(const char *parent, const struct dirent *entry)
{
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    char *path = path_join(parent, entry->d_name);
    bool result = file_is_directory(path);
    free(path);
    return result;
}

/* Adds the files below `inner` of the folder; hidden ones are left out. */
static enum err list_files(struct file_list *list, const char *folder, const char *inner,
                           unsigned depth, struct error *why)
{
    char *path = inner[0] ? path_join(folder, inner) : xstrdup(folder);
    DIR *dir = opendir(path);
    enum err err = ERR_OK;
    if (!dir)
        err = err_errno(why, errno, "%.200s", plain_text(path).text);
    const struct dirent *entry;
    while (!err && !(list->only_first && list->count) && dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        char *name = inner[0] ? path_join(inner, entry->d_name) : xstrdup(entry->d_name);
        if (!is_folder(path, entry)) {
            take_name(list, name);
            continue;
        }
        if (depth < MEDIA_DEPTH_MAX)
            err = list_files(list, folder, name, depth + 1, why);
        free(name);
    }
    if (dir)
        closedir(dir);
    free(path);
    return err;
}

const char *media_folder_driver(const char *path)
{
    const char *driver = NULL;
    for (size_t i = 0; i < COUNT_OF(KINDS) && !driver; i++) {
        struct file_list list = {.kind = &KINDS[i], .only_first = true};
        if (!list_files(&list, path, "", 0, NULL) && list.count)
            driver = KINDS[i].driver;
        file_list_release(&list);
    }
    return driver;
}

/* ---- labels of a CSV file ---- */

struct label_row {
    const char *file;
    size_t row;
};

struct labels {
    struct text bytes;
    struct csv_grid grid;
    long file, label;         /* columns */
    struct label_row *sorted; /* by file */
};

static void labels_release(struct labels *labels)
{
    free(labels->sorted);
    csv_grid_release(&labels->grid);
    text_release(&labels->bytes);
}

static int compare_rows(const void *left, const void *right)
{
    const struct label_row *a = left, *b = right;
    return strcmp(a->file, b->file);
}

static const struct label_row *find_labels(const struct labels *labels, const char *file)
{
    struct label_row wanted = {.file = file};
    return labels->grid.rows
               ? bsearch(&wanted, labels->sorted, labels->grid.rows, sizeof wanted, compare_rows)
               : NULL;
}

static enum err find_columns(struct labels *labels, const struct kind *kind, struct error *why)
{
    struct text names = {0};
    const char *const *wanted = kind->label_columns;
    labels->file = csv_grid_column(&labels->grid, "file");
    labels->label = -1;
    for (size_t i = 0; wanted[i] && labels->label < 0; i++)
        labels->label = csv_grid_column(&labels->grid, wanted[i]);
    if (labels->file >= 0 && labels->label >= 0)
        return ERR_OK;
    for (size_t i = 0; i < labels->grid.columns; i++)
        text_addf(&names, "%s%s", i ? ", " : "", labels->grid.cells[i]);
    enum err err = err_set(why, ERR_BAD_VALUE, "needs the columns file and %s; it has %s",
                           wanted[0], plain_text(text_get(&names)).text);
    text_release(&names);
    return err;
}

static enum err sort_labels(struct labels *labels, struct error *why)
{
    size_t count = labels->grid.rows;
    labels->sorted = xcalloc(count, sizeof *labels->sorted);
    for (size_t i = 0; i < count; i++)
        labels->sorted[i] = (struct label_row){csv_grid_cell(&labels->grid, i, labels->file), i};
    if (count)
        qsort(labels->sorted, count, sizeof *labels->sorted, compare_rows);
    for (size_t i = 1; i < count; i++)
        if (str_equal(labels->sorted[i].file, labels->sorted[i - 1].file))
            return err_set(why, ERR_BAD_VALUE, "line %zu: '%s' is listed twice",
                           labels->grid.lines[labels->sorted[i].row],
                           plain_text(labels->sorted[i].file).text);
    return ERR_OK;
}

static enum err labels_read(const char *path, const struct kind *kind, struct labels *out,
                            struct error *why)
{
    struct error reason = {0};
    enum err err = file_read(path, LABELS_FILE_MAX, &out->bytes, why);
    if (err)
        return err;
    if (!out->bytes.length)
        return err_set(why, ERR_BAD_VALUE, "%.200s is empty", plain_text(path).text);
    err = csv_grid_read(out->bytes.bytes, out->bytes.length, &out->grid, &reason);
    if (!err)
        err = find_columns(out, kind, &reason);
    if (!err)
        err = sort_labels(out, &reason);
    return err ? err_set(why, err, "%.150s: %s", plain_text(path).text, reason.text) : ERR_OK;
}

/* ---- a folder ---- */

struct media_folder {
    const struct kind *kind;
    char *path;
    struct file_list files;
    size_t next;
    char *note;   /* about files without an answer, until it is logged */
    char *source; /* the file of the answers; NULL: transcripts, names of subfolders, or none */
    bool has_labels, has_boxes;
    struct labels labels;
    struct coco coco;
};

static void folder_close(void *state)
{
    struct media_folder *folder = state;
    file_list_release(&folder->files);
    labels_release(&folder->labels);
    coco_release(&folder->coco);
    free(folder->path);
    free(folder->note);
    free(folder->source);
    free(folder);
}

/* NAME.txt beside NAME.wav, to be freed. */
static char *transcript_path(const struct media_folder *folder, const char *file)
{
    char *text_name = xformat("%.*s.txt", (int)(strrchr(file, '.') - file), file);
    char *path = path_join(folder->path, text_name);
    free(text_name);
    return path;
}

/* Whether the sources have an answer for a file; one that they have may still be empty. */
static bool has_answer(const struct media_folder *folder, const char *file)
{
    if (folder->has_labels)
        return find_labels(&folder->labels, file);
    if (folder->has_boxes) {
        struct text answer = {0};
        bool found = coco_answer(&folder->coco, file, &answer);
        text_release(&answer);
        return found;
    }
    if (!folder->kind->has_transcripts)
        return strchr(file, '/');
    char *path = transcript_path(folder, file);
    bool found = file_exists(path);
    free(path);
    return found;
}

/* ---- rows ---- */

static enum err read_transcript(const struct media_folder *folder, const char *file,
                                struct text *out, struct error *why)
{
    char *path = transcript_path(folder, file);
    enum err err = file_exists(path) ? file_read(path, TRANSCRIPT_FILE_MAX, out, why) : ERR_OK;
    free(path);
    if (err)
        return err_set(why, ERR_BAD_VALUE, "%s", why->text);
    while (out->length && slice_is_space(out->bytes[out->length - 1]))
        out->bytes[--out->length] = '\0';
    return ERR_OK;
}

static bool is_own_field(const char *name)
{
    static const char *const NAMES[] = {"id", "problem", "answer", "subject"};
    return str_is_listed(name, NAMES, COUNT_OF(NAMES));
}

/* The label, and the other columns as further fields of the row. */
static void add_label(const struct media_folder *folder, const char *file, struct text *answer,
                      struct jv *row)
{
    const struct csv_grid *grid = &folder->labels.grid;
    const struct label_row *found = find_labels(&folder->labels, file);
    if (!found)
        return;
    text_add(answer, csv_grid_cell(grid, found->row, folder->labels.label));
    for (long column = 0; column < (long)grid->columns; column++)
        if (column != folder->labels.file && column != folder->labels.label &&
            !is_own_field(grid->cells[column]))
            jv_put_text(row, grid->cells[column], csv_grid_cell(grid, found->row, column));
}

static enum err add_answer(const struct media_folder *folder, const char *file, struct jv *row,
                           struct error *why)
{
    struct text answer = {0};
    enum err err = ERR_OK;
    if (folder->has_labels)
        add_label(folder, file, &answer, row);
    else if (folder->has_boxes)
        (void)coco_answer(&folder->coco, file, &answer);
    else if (folder->kind->has_transcripts)
        err = read_transcript(folder, file, &answer, why);
    else if (strchr(file, '/'))
        text_add_bytes(&answer, file, strcspn(file, "/"));
    jv_put_text(row, "answer", text_get(&answer));
    if (folder->kind->labels_are_subjects && !folder->has_boxes && answer.length)
        jv_put_text(row, "subject", text_get(&answer));
    text_release(&answer);
    return err;
}

/* With the second row: who only checks a dataset before it is used reads the first. */
static void log_note(struct media_folder *folder)
{
    if (folder->note && folder->next > 0) {
        log_warn("%s", folder->note);
        free(folder->note);
        folder->note = NULL;
    }
}

static enum err next_row(void *state, struct jv **row, uint64_t *number, struct error *why)
{
    struct media_folder *folder = state;
    *row = NULL;
    log_note(folder);
    if (folder->next == folder->files.count)
        return ERR_OK;
    const char *file = folder->files.names[folder->next++];
    char *path = path_join(folder->path, file);
    enum err err = ERR_OK;
    *number = folder->next;
    *row = jv_new_object();
    jv_put_text(*row, "id", file);
    jv_put_text(*row, "problem", path);
    if (utf8_valid_prefix(path, strlen(path)) < strlen(path))
        err = err_set(why, ERR_BAD_VALUE, "name is not UTF-8: %s", plain_text(file).text);
    if (!err)
        err = add_answer(folder, file, *row, why);
    free(path);
    if (err) {
        jv_free(*row);
        *row = NULL;
    }
    return err;
}

/* Shuffling needs every row; an offset does not. */
static enum err skip_rows(void *state, uint64_t rows, struct error *why)
{
    (void)why;
    struct media_folder *folder = state;
    size_t left = folder->files.count - folder->next;
    folder->next += rows < left ? (size_t)rows : left;
    return ERR_OK;
}

/* ---- opening ---- */

/* The file of a parameter, or the usual one of the folder if that exists, to be freed; else NULL. */
static char *source_path(const struct media_folder *folder, const struct params *params,
                         const char *key, const char *usual)
{
    const char *given = params_get(params, key);
    if (given && *given)
        return xstrdup(given);
    char *path = path_join(folder->path, usual);
    if (file_exists(path))
        return path;
    free(path);
    return NULL;
}

static enum err read_source(struct media_folder *folder, const struct params *params,
                            struct error *why)
{
    const struct kind *kind = folder->kind;
    bool wants_boxes = kind->has_boxes && params_get(params, "annotations");
    if (wants_boxes && params_get(params, "labels"))
        return err_set(why, ERR_USAGE, "dataset %s takes labels=FILE or annotations=FILE, not both",
                       kind->driver);
    if (!wants_boxes)
        folder->source = source_path(folder, params, "labels", "labels.csv");
    folder->has_labels = folder->source;
    if (folder->has_labels)
        return labels_read(folder->source, kind, &folder->labels, why);
    if (kind->has_boxes)
        folder->source = source_path(folder, params, "annotations", "annotations.json");
    folder->has_boxes = folder->source;
    return folder->has_boxes ? coco_read(folder->source, &folder->coco, why) : ERR_OK;
}

static enum err find_files(struct media_folder *folder, struct error *why)
{
    struct file_list *files = &folder->files;
    if (!file_exists(folder->path))
        return err_set(why, ERR_NOT_FOUND, "%.200s: no such folder", plain_text(folder->path).text);
    enum err err = list_files(files, folder->path, "", 0, why);
    if (err)
        return err;
    if (!files->count && files->other)
        return err_set(why, ERR_NO_DATA, "%.150s has no %s files; it has others, such as %.60s",
                       plain_text(folder->path).text, folder->kind->formats,
                       plain_text(files->other).text);
    if (!files->count)
        return err_set(why, ERR_NO_DATA, "%.200s has no %s files", plain_text(folder->path).text,
                       folder->kind->formats);
    qsort((void *)files->names, files->count, sizeof *files->names, compare_strings);
    return ERR_OK;
}

/* A file of answers that has none of these files is the wrong one; some without an answer are measured, not graded. */
static enum err check_answers(struct media_folder *folder, bool *graded, struct error *why)
{
    const struct file_list *files = &folder->files;
    const char *without = "";
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        if (!has_answer(folder, files->names[i])) {
            without = count ? without : files->names[i];
            count++;
        }
    *graded = count < files->count;
    if (!*graded && folder->source)
        return err_set(why, ERR_BAD_VALUE, "%.120s has none of the files of %.100s, such as %.60s",
                       plain_text(folder->source).text, plain_text(folder->path).text,
                       plain_text(without).text);
    if (*graded && count)
        folder->note =
            xformat("%.150s: %zu of %zu files have no %s and are not graded, such as %.60s",
                    plain_text(folder->path).text, count, files->count, folder->kind->label,
                    plain_text(without).text);
    return ERR_OK;
}

static void set_grader(const struct media_folder *folder, struct dataset *out)
{
    if (!out->grader[0])
        chars_copy(out->grader, folder->has_boxes ? "map" : folder->kind->label_grader);
}

enum err media_folder_open(enum media_kind which, const struct dataset_config *config,
                           struct dataset *out, struct error *why)
{
    const struct kind *kind = &KINDS[which];
    const char *path = params_get(config->params, "path");
    bool graded = false;
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset %s needs path=DIR", kind->driver);
    struct media_folder *folder = XNEW(folder);
    *folder = (struct media_folder){.kind = kind, .path = xstrdup(path), .files.kind = kind};
    enum err err = find_files(folder, why);
    if (!err)
        err = read_source(folder, config->params, why);
    if (!err)
        err = check_answers(folder, &graded, why);
    if (err) {
        folder_close(folder);
        return err;
    }
    if (graded)
        set_grader(folder, out);
    struct row_source source = {.next = next_row,
                                .skip = skip_rows,
                                .close = folder_close,
                                .state = folder,
                                .unit = kind->file,
                                .count = (int64_t)folder->files.count};
    return row_feed_open(config->params, source, path, out, why);
}
