/* The id is a hash of the journal's first line, which has the time of the start to the microsecond and all settings:
 * nothing is stored for it, so that runs of older versions have one, too.  The digest is a hash of all names, sizes and
 * bytes, taken again while the bytes are given: a run that changes meanwhile is not mistaken for either state. */
#define _GNU_SOURCE
#include "rundir/run_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/hash.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/sweep.h"

/* ---- which files ---- */

static enum err add_file(struct run_copy *copy, const char *folder, const char *name,
                         const struct stat *status)
{
    struct run_copy_file *files = grow(copy->files, &copy->capacity, copy->count, sizeof *files);
    if (!files)
        return ERR_NO_MEMORY;
    copy->files = files;
    struct run_copy_file *file = &files[copy->count];
    if (!str_format(file->name, sizeof file->name, "%s%s%s", folder, *folder ? "/" : "", name))
        return ERR_OK; /* none of ours is that long */
    file->size = (uint64_t)status->st_size;
    file->changed_ns =
        (int64_t)status->st_mtim.tv_sec * 1000000000 + (int64_t)status->st_mtim.tv_nsec;
    copy->bytes += file->size;
    copy->count++;
    return ERR_OK;
}

static enum err add_folder(struct run_copy *copy, const char *folder, struct error *why)
{
    char path[FILE_PATH_MAX];
    const struct dirent *entry;
    struct stat status;
    enum err err = ERR_OK;
    if (!str_format(path, sizeof path, "%s/%s", copy->directory, folder))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.200s", copy->directory);
    DIR *dir = opendir(path);
    if (!dir)
        return *folder ? ERR_OK
                       : err_set(why, err_from_errno(errno), "cannot read the directory %s: %s",
                                 copy->directory, strerror(errno));
    while (!err && (entry = readdir(dir)))
        if (run_dir_is_measured(folder, entry->d_name) &&
            !fstatat(dirfd(dir), entry->d_name, &status, 0) && S_ISREG(status.st_mode))
            err = add_file(copy, folder, entry->d_name, &status);
    closedir(dir);
    return err_explain(why, err);
}

static int by_name(const void *left, const void *right)
{
    const struct run_copy_file *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static enum err list_files(struct run_copy *copy, struct error *why)
{
    enum err err = add_folder(copy, "", why);
    if (!err)
        err = add_folder(copy, RUN_TRACE_DATASET, why);
    if (!err && copy->count)
        qsort(copy->files, copy->count, sizeof *copy->files, by_name);
    return err;
}

/* ---- their bytes ---- */

static uint64_t hash_file(uint64_t hash, const struct run_copy_file *file)
{
    char size[32];
    str_format(size, sizeof size, "%llu", (unsigned long long)file->size);
    hash = hash_bytes(hash, file->name, strlen(file->name) + 1);
    return hash_bytes(hash, size, strlen(size) + 1);
}

static void name_hash(uint64_t hash, char to[static RUN_ID_MAX])
{
    str_format(to, RUN_ID_MAX, "%016llx", (unsigned long long)hash_mix(hash));
}

/* One file; no more of it than it had when it was found. */
static enum err give_file(const struct run_copy *copy, size_t index, char *buffer, uint64_t *hash,
                          run_copy_take *take, void *context, struct error *why)
{
    const struct run_copy_file *file = &copy->files[index];
    char path[FILE_PATH_MAX + RUN_COPY_NAME_MAX];
    uint64_t done = 0;
    enum err err = ERR_OK;
    str_format(path, sizeof path, "%s/%s", copy->directory, file->name);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    *hash = hash_file(*hash, file);
    for (unsigned piece = 0; !err && (done < file->size || !piece); piece++) {
        uint64_t left = file->size - done;
        size_t length = left < RUN_COPY_PIECE ? (size_t)left : RUN_COPY_PIECE;
        if (file_read_at(fd, buffer, length, (long long)done))
            err = err_set(why, ERR_IO, "cannot read %s: it became shorter or is damaged", path);
        if (!err)
            *hash = hash_bytes(*hash, buffer, length);
        if (!err && take)
            err = take(context, index, piece, buffer, length, why);
        done += length;
    }
    close(fd);
    return err;
}

static enum err give_all(const struct run_copy *copy, run_copy_take *take, void *context,
                         char digest[static RUN_ID_MAX], struct error *why)
{
    uint64_t hash = HASH_START;
    char *buffer = malloc(RUN_COPY_PIECE);
    enum err err = buffer ? ERR_OK : err_no_memory(why);
    for (size_t i = 0; !err && i < copy->count; i++)
        err = give_file(copy, i, buffer, &hash, take, context, why);
    free(buffer);
    name_hash(hash, digest);
    return err;
}

enum err run_copy_give(const struct run_copy *copy, run_copy_take *take, void *context,
                       struct error *why)
{
    char digest[RUN_ID_MAX];
    enum err err = give_all(copy, take, context, digest, why);
    if (!err && strcmp(digest, copy->digest) != 0)
        err = err_set(why, ERR_BUSY, "%s changed while it was read: try again", copy->directory);
    return err;
}

/* ---- what run it is ---- */

/* The first line of a journal, without its end, and the id that it gives; NULL without one. */
static char *read_header(const char *directory, char id[static RUN_ID_MAX])
{
    char path[FILE_PATH_MAX];
    char *line = NULL;
    size_t capacity = 0;
    FILE *file =
        run_path_file(directory, RUN_FILE_RECORDS, path, sizeof path) ? fopen(path, "re") : NULL;
    if (!file)
        return NULL;
    ssize_t length = getline(&line, &capacity, file);
    if (length > 0) {
        name_hash(hash_bytes(HASH_START, line, (size_t)length), id);
        line[strcspn(line, "\n")] = '\0';
    }
    fclose(file);
    return line;
}

/* By the first line; a run of the Python IPW has none and is never resumed: its bytes name it. */
static enum err identify(struct run_copy *copy, struct error *why)
{
    char path[FILE_PATH_MAX];
    struct jv *header = NULL;
    size_t above = sweep_of_run(copy->directory);
    if (!run_path_file(copy->directory, RUN_FILE_RECORDS, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.200s", copy->directory);
    str_copy(copy->id, sizeof copy->id, copy->digest);
    copy->header = read_header(copy->directory, copy->id);
    if (copy->header && jv_parse(copy->header, strlen(copy->header), &header, NULL) == ERR_OK)
        copy->began_at = jv_number(jv_get(header, "started_at"));
    copy->kind = run_kind_name(run_kind_named(jv_text(jv_get(header, "run_kind"))));
    jv_free(header);
    if (above && str_format(path, sizeof path, "%.*s", (int)above, copy->directory)) {
        free(read_header(path, copy->sweep));
        copy->path = copy->directory + above + 1;
    }
    return ERR_OK;
}

/* The path itself, whatever the current directory and links call it: its last part is the run's name. */
static enum err resolve(struct run_copy *copy, const char *directory, struct error *why)
{
    char real[PATH_MAX];
    if (!realpath(directory, real))
        return err_set(why, err_from_errno(errno), "no run directory %s: %s", directory,
                       strerror(errno));
    if (!str_copy(copy->directory, sizeof copy->directory, real))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.200s", real);
    copy->name = strrchr(copy->directory, '/') + 1;
    return ERR_OK;
}

enum err run_copy_open(const char *directory, struct run_copy *out, struct error *why)
{
    enum run_dir_state state;
    *out = (struct run_copy){.began_at = UNKNOWN};
    enum err err = run_dir_inspect(directory, &state, why);
    if (!err && state != RUN_DIR_HAS_RUN)
        err = err_set(why, ERR_NOT_FOUND, "%s holds no run", directory);
    if (!err)
        err = resolve(out, directory, why);
    if (!err)
        err = run_dir_check_files(directory, why);
    if (!err)
        err = run_dir_check_idle(directory, why);
    if (!err)
        err = list_files(out, why);
    if (!err)
        err = give_all(out, NULL, NULL, out->digest, why);
    if (!err)
        err = identify(out, why);
    if (err)
        run_copy_release(out);
    return err;
}

void run_copy_release(struct run_copy *copy)
{
    free(copy->files);
    free(copy->header);
    *copy = (struct run_copy){0};
}

/* ---- the way back ---- */

static enum err refuse_name(const char *what, const char *name, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "invalid name of a %s: '%.100s'", what,
                   plain_text(name).text);
}

/* Whether a directory may get that name: it is free, or holds this very run. */
static bool may_take(struct run_arrival *arrival, const char *id)
{
    struct run_copy there;
    enum run_dir_state state;
    struct error absence;
    if (run_dir_inspect(arrival->directory, &state, &absence))
        return false;
    if (state == RUN_DIR_NEW || state == RUN_DIR_EMPTY)
        return true;
    if (state != RUN_DIR_HAS_RUN || run_copy_open(arrival->directory, &there, &absence))
        return false;
    arrival->replaces = strcmp(there.id, id) == 0;
    arrival->was_there = arrival->replaces && strcmp(there.digest, arrival->digest) == 0;
    run_copy_release(&there);
    return arrival->replaces;
}

enum err run_copy_place(const char *directory, const char *path, char *parent, size_t size,
                        struct error *why)
{
    const char *last = strrchr(path, '/');
    if (!last || !str_is_plain(path) || path[0] == '/' || path[0] == '.' || strstr(path, "/.") ||
        strstr(path, "//"))
        return refuse_name("sweep's run", path, why);
    return str_format(parent, size, "%s/%.*s", directory, (int)(last - path), path)
               ? ERR_OK
               : err_set(why, ERR_BAD_VALUE, "path too long: %.200s", directory);
}

enum err run_arrival_begin(struct run_arrival *arrival, const char *parent, const char *name,
                           const char *id, const char *digest, struct error *why)
{
    char *at = arrival->directory;
    *arrival = (struct run_arrival){.fd = -1, .hash = HASH_START};
    str_copy(arrival->digest, sizeof arrival->digest, digest);
    if (!*name || name[0] == '.' || strchr(name, '/') || !str_is_plain(name))
        return refuse_name("run", name, why);
    if (!str_format(arrival->temporary, sizeof arrival->temporary, "%s/.%.200s.%ld.tmp", parent,
                    name, (long)getpid()) ||
        !str_format(at, FILE_PATH_MAX, "%s/%s_%.8s", parent, name, id))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.200s", parent);
    at[strlen(parent) + 1 + strlen(name)] = '\0';
    bool taken = may_take(arrival, id);
    if (!taken) {
        str_format(at, FILE_PATH_MAX, "%s/%s_%.8s", parent, name, id);
        taken = may_take(arrival, id);
    }
    if (!taken)
        return err_set(why, ERR_BUSY, "%s is not a run directory: choose another folder", at);
    if (arrival->was_there)
        return ERR_OK;
    enum err err = run_dir_clear(arrival->temporary, why); /* of a process that had our number */
    return err ? err : run_dir_make(arrival->temporary, why);
}

static bool is_ours(const char *name)
{
    static const char FOLDER[] = RUN_TRACE_DATASET "/";
    bool below = str_starts(name, FOLDER);
    return run_dir_is_measured(below ? RUN_TRACE_DATASET : "",
                               below ? name + sizeof FOLDER - 1 : name);
}

static enum err close_file(struct run_arrival *arrival, struct error *why)
{
    const struct timespec changed = {(time_t)(arrival->file.changed_ns / 1000000000),
                                     (long)(arrival->file.changed_ns % 1000000000)};
    const struct timespec times[2] = {{0, UTIME_NOW}, changed};
    enum err err = ERR_OK;
    if (arrival->fd < 0)
        return ERR_OK;
    if (arrival->left)
        err = err_set(why, ERR_BAD_VALUE, "%s is incomplete: %llu bytes are missing",
                      arrival->file.name, (unsigned long long)arrival->left);
    if (!err && (futimens(arrival->fd, times) || fsync(arrival->fd)))
        err = err_set(why, err_from_errno(errno), "cannot write %s: %s", arrival->file.name,
                      strerror(errno));
    if (close(arrival->fd) && !err)
        err = err_set(why, err_from_errno(errno), "cannot write %s: %s", arrival->file.name,
                      strerror(errno));
    arrival->fd = -1;
    return err;
}

enum err run_arrival_file(struct run_arrival *arrival, const struct run_copy_file *file,
                          struct error *why)
{
    char path[FILE_PATH_MAX + RUN_COPY_NAME_MAX];
    enum err err = close_file(arrival, why);
    if (!err && !is_ours(file->name))
        err = refuse_name("run's file", file->name, why);
    if (err)
        return err;
    arrival->file = *file;
    arrival->left = file->size;
    arrival->hash = hash_file(arrival->hash, file);
    str_format(path, sizeof path, "%s/%s", arrival->temporary, file->name);
    err = file_make_parents(path, why);
    return err ? err : file_open_own(path, O_WRONLY | O_CREAT | O_EXCL, &arrival->fd, why);
}

enum err run_arrival_put(struct run_arrival *arrival, const char *bytes, size_t length,
                         struct error *why)
{
    if (arrival->fd < 0 || length > arrival->left)
        return err_set(why, ERR_BAD_VALUE, "%s is longer than expected", arrival->file.name);
    arrival->left -= length;
    arrival->hash = hash_bytes(arrival->hash, bytes, length);
    return file_write_all(arrival->fd, bytes, length)
               ? err_set(why, err_from_errno(errno), "cannot write %s: %s", arrival->file.name,
                         strerror(errno))
               : ERR_OK;
}

/* An other state of the run is there, perhaps with files of the user or the runs of a sweep: file by file, the summary
 * last, and what this state has not is deleted. */
static enum err replace_files(struct run_arrival *arrival, struct error *why)
{
    struct run_copy now = {0}, before = {0};
    char from[FILE_PATH_MAX + RUN_COPY_NAME_MAX], to[FILE_PATH_MAX + RUN_COPY_NAME_MAX];
    str_copy(now.directory, sizeof now.directory, arrival->temporary);
    str_copy(before.directory, sizeof before.directory, arrival->directory);
    enum err err = list_files(&now, why);
    if (!err)
        err = list_files(&before, why);
    for (size_t i = 0; !err && i < before.count; i++) {
        str_format(to, sizeof to, "%s/%s", arrival->directory, before.files[i].name);
        if (!bsearch(&before.files[i], now.files, now.count, sizeof *now.files, by_name))
            unlink(to);
    }
    for (size_t i = 0; !err && i < now.count; i++) {
        str_format(from, sizeof from, "%s/%s", arrival->temporary, now.files[i].name);
        str_format(to, sizeof to, "%s/%s", arrival->directory, now.files[i].name);
        err = file_make_parents(to, why);
        if (!err && rename(from, to))
            err = err_set(why, err_from_errno(errno), "cannot write %s: %s", to, strerror(errno));
    }
    run_copy_release(&now);
    run_copy_release(&before);
    return err;
}

static enum err publish(struct run_arrival *arrival, struct error *why)
{
    if (arrival->replaces)
        return replace_files(arrival, why);
    return rename(arrival->temporary, arrival->directory)
               ? err_set(why, err_from_errno(errno), "cannot create %s: %s", arrival->directory,
                         strerror(errno))
               : ERR_OK;
}

enum err run_arrival_end(struct run_arrival *arrival, enum err err, struct error *why)
{
    char arrived[RUN_ID_MAX];
    struct error ignored;
    enum err closed = close_file(arrival, err ? &ignored : why);
    err = err ? err : closed;
    name_hash(arrival->hash, arrived);
    if (!err && strcmp(arrived, arrival->digest) != 0)
        err = err_set(why, ERR_BAD_VALUE, "%s differs from what was stored: hash %s, expected %s",
                      arrival->directory, arrived, arrival->digest);
    if (!err)
        err = publish(arrival, why);
    (void)!run_dir_clear(arrival->temporary, &ignored); /* what is left of it */
    return err;
}

/* ---- pending ---- */

enum err run_pending_set(const char *directory, const char *address, struct error *why)
{
    struct text content = {0};
    text_addf(&content, "%s\n", address);
    enum err err = run_dir_put(directory, RUN_PENDING_FILE, &content, why);
    text_release(&content);
    return err;
}

void run_pending_clear(const char *directory)
{
    char path[FILE_PATH_MAX];
    if (str_format(path, sizeof path, "%s/%s", directory, RUN_PENDING_FILE))
        unlink(path);
}

bool run_pending_get(const char *directory, char *address, size_t size)
{
    char path[FILE_PATH_MAX];
    struct text content = {0};
    bool found = str_format(path, sizeof path, "%s/%s", directory, RUN_PENDING_FILE) &&
                 file_is_regular(path) && file_read(path, FILE_SMALL, &content, NULL) == ERR_OK;
    if (found && content.length)
        found = str_copy(address, size, str_trim(content.bytes));
    else if (found)
        address[0] = '\0';
    text_release(&content);
    return found;
}
