/* The id is a hash of the journal's first line, which contains the start time in microseconds and all settings: it is
 * not stored, so that runs of older versions have one, too.  The digest is a hash of all names, sizes and bytes,
 * computed again while the bytes are read: a run that changes meanwhile is detected. */
#define _GNU_SOURCE
#include "rundir/run_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/sweep.h"

/* ---- listing files ---- */

static void add_file(struct run_copy *copy, const char *folder, const char *name,
                     const struct stat *status)
{
    XGROW(copy->files, copy->count, copy->capacity);
    struct run_copy_file *file = &copy->files[copy->count];
    if (!chars_format(file->name, "%s%s%s", folder, *folder ? "/" : "", name))
        return; /* none of our copy->files has such a long name */
    file->size = (uint64_t)status->st_size;
    file->changed_ns =
        (int64_t)status->st_mtim.tv_sec * 1000000000 + (int64_t)status->st_mtim.tv_nsec;
    copy->bytes += file->size;
    copy->count++;
}

static enum err add_folder(struct run_copy *copy, const char *folder, struct error *why)
{
    const struct dirent *entry;
    struct stat status;
    char *path = path_join(copy->directory, folder);
    DIR *dir = opendir(path);
    free(path);
    int fd = dir ? dirfd(dir) : -1;
    if (fd < 0)
        return *folder ? ERR_OK
                       : err_errno(why, errno, "cannot read the directory %s", copy->directory);
    while ((entry = readdir(dir)))
        if (run_dir_is_measured(folder, entry->d_name) && !fstatat(fd, entry->d_name, &status, 0) &&
            S_ISREG(status.st_mode))
            add_file(copy, folder, entry->d_name, &status);
    closedir(dir);
    return ERR_OK;
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
    chars_format(size, "%llu", (unsigned long long)file->size);
    hash = hash_bytes(hash, file->name, strlen(file->name) + 1);
    return hash_bytes(hash, size, strlen(size) + 1);
}

static void name_hash(uint64_t hash, char to[static RUN_ID_MAX])
{
    str_format(to, RUN_ID_MAX, "%016llx", (unsigned long long)hash_mix(hash));
}

/* Reads one file, up to the size that it had when it was found. */
static enum err read_file(const struct run_copy *copy, size_t index, char *buffer, uint64_t *hash,
                          run_copy_take *take, void *context, struct error *why)
{
    const struct run_copy_file *file = &copy->files[index];
    uint64_t done = 0;
    enum err err = ERR_OK;
    char *path = path_join(copy->directory, file->name);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        err = err_errno(why, errno, "cannot read %s", path);
        free(path);
        return err;
    }
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
    free(path);
    return err;
}

static enum err read_all(const struct run_copy *copy, run_copy_take *take, void *context,
                         char digest[static RUN_ID_MAX], struct error *why)
{
    uint64_t hash = HASH_START;
    char *buffer = xmalloc(RUN_COPY_PIECE);
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < copy->count; i++)
        err = read_file(copy, i, buffer, &hash, take, context, why);
    free(buffer);
    name_hash(hash, digest);
    return err;
}

enum err run_copy_read(const struct run_copy *copy, run_copy_take *take, void *context,
                       struct error *why)
{
    char digest[RUN_ID_MAX];
    enum err err = read_all(copy, take, context, digest, why);
    if (!err && !str_equal(digest, copy->digest))
        err = err_set(why, ERR_BUSY, "%s changed while it was read: try again", copy->directory);
    return err;
}

/* ---- identity ---- */

/* The first line of a journal, without its newline, and its id; NULL if there is none. */
static char *read_header(const char *directory, char id[static RUN_ID_MAX])
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS), *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    free(path);
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

/* By the first line; a run of the Python IPW has none and is never resumed: its id is the hash of its bytes. */
static void identify(struct run_copy *copy)
{
    size_t above = sweep_of_run(copy->directory);
    char *path = run_path_file(copy->directory, RUN_FILE_RECORDS);
    chars_copy(copy->id, copy->digest);
    copy->header = read_header(copy->directory, copy->id);
    struct journal_facts facts = journal_facts(path);
    copy->began_at = facts.started_at;
    copy->kind = run_kind_name(facts.kind);
    free(path);
    if (!above)
        return;
    char *sweep = xstrndup(copy->directory, above);
    free(read_header(sweep, copy->sweep));
    free(sweep);
    copy->path = copy->directory + above + 1;
}

/* The canonical path: its last component is the run's name. */
static enum err resolve(struct run_copy *copy, const char *directory, struct error *why)
{
    copy->directory = realpath(directory, NULL);
    if (!copy->directory)
        return err_errno(why, errno, "no run directory %s", directory);
    copy->name = strrchr(copy->directory, '/') + 1;
    return ERR_OK;
}

enum err run_copy_open(const char *directory, struct run_copy *out, struct error *why)
{
    enum run_dir_state state;
    *out = (struct run_copy){.began_at = UNKNOWN};
    enum err err = run_dir_inspect(directory, &state, why);
    if (!err && state != RUN_DIR_HAS_RUN)
        err = err_set(why, ERR_NOT_FOUND, "%s: not a run directory", directory);
    if (!err)
        err = resolve(out, directory, why);
    if (!err)
        err = run_dir_check_files(directory, why);
    if (!err)
        err = run_dir_check_idle(directory, why);
    if (!err)
        err = list_files(out, why);
    if (!err)
        err = read_all(out, NULL, NULL, out->digest, why);
    if (!err)
        identify(out);
    else
        run_copy_release(out);
    return err;
}

void run_copy_release(struct run_copy *copy)
{
    free(copy->directory);
    free(copy->files);
    free(copy->header);
    *copy = (struct run_copy){0};
}

/* ---- writing a copy ---- */

static enum err invalid_name(const char *what, const char *name, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "invalid name of a %s: '%.100s'", what,
                   plain_text(name).text);
}

/* Whether the directory name can be used: it is free, or contains this run. */
static bool can_use_name(struct run_import *import, const char *id)
{
    struct run_copy there;
    enum run_dir_state state;
    struct error absence;
    if (run_dir_inspect(import->directory, &state, &absence))
        return false;
    if (state == RUN_DIR_NEW || state == RUN_DIR_EMPTY)
        return true;
    if (state != RUN_DIR_HAS_RUN || run_copy_open(import->directory, &there, &absence))
        return false;
    import->replaces = str_equal(there.id, id);
    import->was_there = import->replaces && str_equal(there.digest, import->digest);
    run_copy_release(&there);
    return import->replaces;
}

enum err run_copy_parent(const char *directory, const char *path, char **parent, struct error *why)
{
    const char *last = strrchr(path, '/');
    *parent = NULL;
    if (!last || !str_is_plain(path) || path[0] == '/' || path[0] == '.' || strstr(path, "/.") ||
        strstr(path, "//"))
        return invalid_name("sweep's run", path, why);
    *parent = xformat("%s/%.*s", directory, (int)(last - path), path);
    return ERR_OK;
}

enum err run_import_begin(struct run_import *import, const char *parent, const char *name,
                          const char *id, const char *digest, struct error *why)
{
    *import = (struct run_import){.fd = -1, .hash = HASH_START};
    chars_copy(import->digest, digest);
    if (!*name || name[0] == '.' || strchr(name, '/') || !str_is_plain(name))
        return invalid_name("run", name, why);
    import->temporary = xformat("%s/.%.200s.%ld.tmp", parent, name, (long)getpid());
    import->directory = xformat("%s/%s", parent, name);
    bool taken = can_use_name(import, id);
    if (!taken) {
        free(import->directory);
        import->directory = xformat("%s/%s_%.8s", parent, name, id);
        taken = can_use_name(import, id);
    }
    if (!taken)
        return err_set(why, ERR_BUSY, "%s is not a run directory: choose another folder",
                       import->directory);
    if (import->was_there)
        return ERR_OK;
    enum err err = run_dir_clear(import->temporary, why); /* left by a process with the same pid */
    return err ? err : run_dir_make(import->temporary, why);
}

static bool is_ours(const char *name)
{
    static const char FOLDER[] = RUN_TRACE_DATASET "/";
    bool below = str_starts(name, FOLDER);
    return run_dir_is_measured(below ? RUN_TRACE_DATASET : "",
                               below ? name + sizeof FOLDER - 1 : name);
}

static enum err close_file(struct run_import *import, struct error *why)
{
    const struct timespec changed = {(time_t)(import->file.changed_ns / 1000000000),
                                     (long)(import->file.changed_ns % 1000000000)};
    const struct timespec times[2] = {{0, UTIME_NOW}, changed};
    enum err err = ERR_OK;
    if (import->fd < 0)
        return ERR_OK;
    if (import->left)
        err = err_set(why, ERR_BAD_VALUE, "%s is incomplete: %llu bytes are missing",
                      import->file.name, (unsigned long long)import->left);
    if (!err && (futimens(import->fd, times) || fsync(import->fd)))
        err = err_errno(why, errno, "cannot write %s", import->file.name);
    if (close(import->fd) && !err)
        err = err_errno(why, errno, "cannot write %s", import->file.name);
    import->fd = -1;
    return err;
}

enum err run_import_file(struct run_import *import, const struct run_copy_file *file,
                         struct error *why)
{
    enum err err = close_file(import, why);
    if (!err && !is_ours(file->name))
        err = invalid_name("run's file", file->name, why);
    if (err)
        return err;
    import->file = *file;
    import->left = file->size;
    import->hash = hash_file(import->hash, file);
    char *path = path_join(import->temporary, file->name);
    err = file_make_parents(path, why);
    if (!err)
        err = file_open_own(path, O_WRONLY | O_CREAT | O_EXCL, &import->fd, why);
    free(path);
    return err;
}

enum err run_import_put(struct run_import *import, const char *bytes, size_t length,
                        struct error *why)
{
    if (import->fd < 0 || length > import->left)
        return err_set(why, ERR_BAD_VALUE, "%s is longer than expected", import->file.name);
    import->left -= length;
    import->hash = hash_bytes(import->hash, bytes, length);
    return file_write_all(import->fd, bytes, length)
               ? err_errno(why, errno, "cannot write %s", import->file.name)
               : ERR_OK;
}

/* Another state of the run exists, perhaps with files of the user or runs of a sweep: replaces file by file, the
 * summary last, and deletes files that this state does not have. */
static enum err replace_files(struct run_import *import, struct error *why)
{
    struct run_copy now = {.directory = xstrdup(import->temporary)};
    struct run_copy before = {.directory = xstrdup(import->directory)};
    enum err err = list_files(&now, why);
    if (!err)
        err = list_files(&before, why);
    for (size_t i = 0; !err && i < before.count; i++) {
        if (bsearch(&before.files[i], now.files, now.count, sizeof *now.files, by_name))
            continue;
        char *path = path_join(import->directory, before.files[i].name);
        unlink(path);
        free(path);
    }
    for (size_t i = 0; !err && i < now.count; i++) {
        char *from = path_join(import->temporary, now.files[i].name);
        char *to = path_join(import->directory, now.files[i].name);
        err = file_make_parents(to, why);
        if (!err && rename(from, to))
            err = err_errno(why, errno, "cannot write %s", to);
        free(from);
        free(to);
    }
    run_copy_release(&now);
    run_copy_release(&before);
    return err;
}

static enum err publish(struct run_import *import, struct error *why)
{
    if (import->replaces)
        return replace_files(import, why);
    return rename(import->temporary, import->directory)
               ? err_errno(why, errno, "cannot create %s", import->directory)
               : ERR_OK;
}

enum err run_import_end(struct run_import *import, enum err err, struct error *why)
{
    char arrived[RUN_ID_MAX];
    struct error ignored;
    enum err closed = close_file(import, err ? &ignored : why);
    err = err ? err : closed;
    name_hash(import->hash, arrived);
    if (!err && !str_equal(arrived, import->digest))
        err = err_set(why, ERR_BAD_VALUE, "%s differs from what was stored: hash %s, expected %s",
                      import->directory, arrived, import->digest);
    if (!err)
        err = publish(import, why);
    if (import->temporary)
        (void)!run_dir_clear(import->temporary, &ignored); /* remaining files */
    return err;
}

void run_import_release(struct run_import *import)
{
    free(import->directory);
    free(import->temporary);
    *import = (struct run_import){.fd = -1};
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
    char *path = path_join(directory, RUN_PENDING_FILE);
    unlink(path);
    free(path);
}

char *run_pending_get(const char *directory)
{
    char *path = path_join(directory, RUN_PENDING_FILE);
    struct text content = {0};
    bool found = file_is_regular(path) && file_read(path, FILE_SMALL, &content, NULL) == ERR_OK;
    free(path);
    char *address = NULL;
    if (found)
        address = xstrdup(content.length ? str_trim(content.bytes) : "");
    text_release(&content);
    return address;
}
