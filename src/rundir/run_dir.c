#define _GNU_SOURCE
#include "rundir/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "rundir/run_path.h"

#define LOCK_FILE ".lock"

/* ---- checks before reading ---- */

static bool can_block(mode_t mode)
{
    return S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode) || S_ISBLK(mode);
}

/* Calls `check` for each entry until one fails.  An unreadable directory is reported by its user. */
static enum err each_entry(const char *path,
                           enum err (*check)(const char *path, const char *name, int folder,
                                             struct error *why),
                           struct error *why)
{
    const struct dirent *entry;
    enum err err = ERR_OK;
    DIR *dir = run_open_directory(path);
    int folder = dir ? dirfd(dir) : -1;
    while (folder >= 0 && !err && (entry = readdir(dir)))
        err = check(path, entry->d_name, folder, why);
    if (dir)
        closedir(dir);
    return err;
}

static const char *kind_of(mode_t mode)
{
    if (S_ISFIFO(mode))
        return "pipe";
    return S_ISSOCK(mode) ? "socket" : "device";
}

static enum err check_file(const char *path, const char *name, int folder, struct error *why)
{
    struct stat status;
    if ((fnmatch("*.json*", name, 0) && fnmatch("*.csv", name, 0) && fnmatch("*.arrow", name, 0)) ||
        fstatat(folder, name, &status, 0) || !can_block(status.st_mode))
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "%s/%s is a %s, not a regular file: copy its contents to a file", path, name,
                   kind_of(status.st_mode));
}

enum err run_dir_check_files(const char *path, struct error *why)
{
    return each_entry(path, check_file, why);
}

/* ---- inspecting ---- */

static bool has(int directory, const char *name)
{
    return faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static enum run_dir_state state_of(DIR *dir)
{
    int fd = dirfd(dir);
    if (fd < 0)
        return RUN_DIR_FOREIGN;
    if (has(fd, "records.jsonl") || (has(fd, "dataset_info.json") && has(fd, "state.json")))
        return RUN_DIR_HAS_RUN;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            strcmp(entry->d_name, LOCK_FILE))
            return RUN_DIR_FOREIGN;
    return RUN_DIR_EMPTY;
}

enum err run_dir_inspect(const char *path, enum run_dir_state *out, struct error *why)
{
    DIR *dir = run_open_directory(path);
    if (!dir && errno == ENOENT) {
        *out = RUN_DIR_NEW;
        return ERR_OK;
    }
    if (!dir && errno == ENOTDIR) {
        *out = RUN_DIR_FOREIGN; /* a file, or a path below one */
        return ERR_OK;
    }
    if (!dir)
        return err_errno(why, errno, "cannot read the directory %s", path);
    *out = state_of(dir);
    closedir(dir);
    return ERR_OK;
}

/* ---- making ---- */

static enum err make_directory(const char *path, struct error *why)
{
    struct stat status;
    if (mkdir(path, 0777) == 0)
        return ERR_OK;
    int problem = errno;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return ERR_OK;
        return err_set(why, ERR_BAD_VALUE, "%s exists and is not a directory", path);
    }
    return err_errno(why, problem, "cannot create the directory %s", path);
}

enum err run_dir_make(const char *path, struct error *why)
{
    if (!*path)
        return err_set(why, ERR_BAD_VALUE, "invalid directory name ''");
    char *partial = xstrdup(path);
    enum err err = ERR_OK;
    for (char *slash = partial + 1; !err && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        err = make_directory(partial, why);
        *slash = '/';
    }
    free(partial);
    if (!err)
        err = make_directory(path, why);
    if (!err && access(path, W_OK | X_OK))
        err = err_errno(why, errno, "cannot write into %s", path);
    return err;
}

/* ---- clearing ---- */

/* The files of a run.  "" is the directory itself; anything not listed is not ours.  `measured`: part of a copy; the
 * others can be generated again. */
static const struct {
    const char *folder, *pattern;
    bool measured;
} OWN_FILES[] = {
    {"", "records.jsonl", true},
    {"", "summary.json", true},
    {"", "dataset_info.json", true},
    {"", "state.json", true},
    {"", "data-[0-9]*-of-[0-9]*.arrow", true},
    {"", "samples.csv", true},
    {"", "samples-[0-9]*.csv", true}, /* of a resumed run */
    {"", "spans.jsonl", true},
    {"", "traces.jsonl", true}, /* of agents */
    {"", "layers.json", true},
    {"", RUN_REPORT, false},
    {"", ".*.tmp", false},
    {"", RUN_PENDING_FILE, false},
    {RUN_ANALYSES, "*.json", false},
    {RUN_ANALYSES, ".*.tmp", false},
    {RUN_PLOTS, "*.png", false},
    {RUN_PLOTS, "*.svg", false},
    {RUN_PLOTS, "*.pdf", false},
    {RUN_PLOTS, ".*.tmp", false},
    {RUN_TRACE_DATASET, "dataset_info.json", true},
    {RUN_TRACE_DATASET, "state.json", true},
    {RUN_TRACE_DATASET, "data-[0-9]*-of-[0-9]*.arrow", true},
    {RUN_TRACE_DATASET, ".*.tmp", false},
    {RUN_OUTPUTS, "*.png", true},
    {RUN_OUTPUTS, ".*.tmp", false},
};

static bool is_own(const char *folder, const char *name, bool measured_only)
{
    for (size_t i = 0; i < COUNT_OF(OWN_FILES); i++)
        if ((OWN_FILES[i].measured || !measured_only) && str_equal(OWN_FILES[i].folder, folder) &&
            !fnmatch(OWN_FILES[i].pattern, name, FNM_PATHNAME))
            return true;
    return false;
}

static bool is_run_file(const char *folder, const char *name)
{
    return is_own(folder, name, false);
}

bool run_dir_is_measured(const char *folder, const char *name)
{
    if (is_own(folder, name, true))
        return true;
    return !*folder && str_equal(name, "estimate.json"); /* the user's, for reports */
}

/* Hidden files and pages are not data. */
static bool is_data(const char *name)
{
    static const char *const ENDS[] = {".jsonl", ".json", ".csv", ".arrow"};
    for (size_t i = 0; name[0] != '.' && i < COUNT_OF(ENDS); i++)
        if (str_ends(name, ENDS[i]))
            return true;
    return false;
}

/* Whether it is to be listed. */
static bool find_file(const char *path, const char *name, enum run_dir_files which,
                      struct stat *status)
{
    bool is_all = which == RUN_DIR_DATA;
    if (is_all ? !is_data(name) : strchr(name, '/') || !run_dir_is_measured("", name))
        return false;
    char *file = path_join(path, name);
    bool found = is_all ? run_stat(file, status) : lstat(file, status) == 0;
    free(file);
    return found && S_ISREG(status->st_mode);
}

void run_dir_list(const char *path, enum run_dir_files which, run_dir_take *take, void *context)
{
    struct dirent **entries = NULL;
    int count = run_scan(path, &entries, NULL);
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (find_file(path, entries[i]->d_name, which, &status))
            take(context, entries[i]->d_name, status.st_size);
        free(entries[i]);
    }
    free((void *)entries);
}

enum err run_dir_read(const char *path, const char *name, size_t limit, struct text *out,
                      struct error *why)
{
    struct stat status;
    if (!find_file(path, name, RUN_DIR_MEASURED, &status))
        return err_set(why, ERR_NOT_FOUND, "the run has no such file");
    char *file = path_join(path, name);
    enum err err = run_read(file, limit, out, why);
    free(file);
    return err;
}

static enum err hide_file(const char *path, const char *name, int folder, struct error *why)
{
    struct stat status;
    if ((!is_run_file("", name) && !str_equal(name, LOCK_FILE)) ||
        fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
        !fchmodat(folder, name, 0600, 0))
        return ERR_OK;
    return err_errno(why, errno, "cannot make %s/%s private", path, name);
}

enum err run_dir_make_private(const char *path, struct error *why)
{
    if (chmod(path, 0700))
        return err_errno(why, errno, "cannot make %s private", path);
    return each_entry(path, hide_file, why);
}

static enum err check_link(const char *path, const char *name, int folder, struct error *why)
{
    struct stat status;
    if (!is_run_file("", name) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) ||
        !S_ISLNK(status.st_mode))
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "%s/%s is a symbolic link: remove it; a run writes its own files only", path,
                   name);
}

enum err run_dir_check_links(const char *path, struct error *why)
{
    return each_entry(path, check_link, why);
}

/* Takes ownership of `fd`.  A directory with a name of ours is not ours: unlinkat fails on it. */
static enum err clear_folder(int fd, const char *folder, const char *path, struct error *why)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    enum err err = ERR_OK;
    struct dirent *entry;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return err_errno(why, errno, "cannot read the directory %s", path);
    }
    while (!err && (entry = readdir(dir)))
        if (is_run_file(folder, entry->d_name) && unlinkat(fd, entry->d_name, 0) &&
            errno != EISDIR && errno != ENOENT)
            err = err_errno(why, errno, "cannot delete %s in %s", entry->d_name, path);
    closedir(dir);
    return err;
}

static enum err clear_below(int directory, const char *folder, const char *path, struct error *why)
{
    /* Symbolic links are not followed: their targets do not belong to the run. */
    int fd = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ERR_OK;
    enum err err = clear_folder(fd, folder, path, why);
    if (!err)
        unlinkat(directory, folder, AT_REMOVEDIR); /* fails if it contains other files */
    return err;
}

static long lock_owner(int fd)
{
    char text[32] = "";
    uint64_t pid;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return parse_u64(text, &pid) == ERR_OK ? (long)pid : 0;
}

/* Whether the lock is held; ERR_BUSY if by another process. */
static enum err check_lock(int directory, const char *path, bool *held, struct error *why)
{
    *held = false;
    int fd = openat(directory, LOCK_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ERR_OK;
    *held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    long owner = lock_owner(fd);
    close(fd);
    if (*held && owner != (long)getpid())
        return err_set(why, ERR_BUSY, "a run is writing into %s (process %ld)", path, owner);
    return ERR_OK;
}

enum err run_dir_clear(const char *path, struct error *why)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 && errno == ENOENT)
        return ERR_OK;
    if (directory < 0)
        return err_errno(why, errno, "cannot clear %s", path);
    bool held;
    enum err err = check_lock(directory, path, &held, why);
    if (!err)
        err = clear_below(directory, RUN_ANALYSES, path, why);
    if (!err)
        err = clear_below(directory, RUN_PLOTS, path, why);
    if (!err)
        err = clear_below(directory, RUN_TRACE_DATASET, path, why);
    if (!err)
        err = clear_below(directory, RUN_OUTPUTS, path, why);
    if (!err)
        err = clear_folder(fcntl(directory, F_DUPFD_CLOEXEC, 0), "", path, why);
    if (!err && !held) {
        unlinkat(directory, LOCK_FILE, 0);
        rmdir(path);
    }
    close(directory);
    return err;
}

enum err run_dir_check_idle(const char *path, struct error *why)
{
    bool held;
    DIR *dir = run_open_directory(path);
    if (!dir)
        return err_errno(why, errno, "cannot read %s", path);
    enum err err = check_lock(dirfd(dir), path, &held, why);
    closedir(dir);
    return err;
}

void run_dir_remove_empty(const char *path)
{
    enum run_dir_state state;
    struct error why;
    if (run_dir_inspect(path, &state, &why) != ERR_OK || state != RUN_DIR_EMPTY)
        return;
    char *name = path_join(path, LOCK_FILE);
    unlink(name);
    free(name);
    rmdir(path); /* fails if another process has used it meanwhile */
}

/* ---- the lock ---- */

/* Whether the path still refers to the locked file.  It may have been cleared meanwhile. */
static bool is_same_file(const char *name, int fd)
{
    struct stat there, here;
    return lstat(name, &there) == 0 && fstat(fd, &here) == 0 && there.st_ino == here.st_ino &&
           there.st_dev == here.st_dev;
}

static void write_owner(int fd)
{
    char text[32];
    chars_format(text, "%ld\n", (long)getpid());
    /* The pid is informational: the lock is held without it. */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, strlen(text), 0) < 0)
        errno = 0;
}

/* `name`: the path of the lock file. */
static enum err lock_file(const char *path, const char *name, int *fd, struct error *why)
{
    for (;;) {
        int lock;
        enum err err = file_open_own(name, O_RDWR | O_CREAT, &lock, why);
        if (err)
            return err;
        if (flock(lock, LOCK_EX | LOCK_NB)) {
            long owner = lock_owner(lock);
            close(lock);
            return err_set(why, ERR_BUSY, "another run is writing into %s (process %ld)", path,
                           owner);
        }
        if (is_same_file(name, lock)) {
            write_owner(lock);
            *fd = lock;
            return ERR_OK;
        }
        close(lock);
    }
}

enum err run_dir_lock(const char *path, int *fd, struct error *why)
{
    char *name = path_join(path, LOCK_FILE);
    *fd = -1;
    enum err err = lock_file(path, name, fd, why);
    free(name);
    return err;
}

/* ---- small files, whole or not at all ---- */

enum err run_dir_put(const char *directory, const char *name, const struct text *content,
                     struct error *why)
{
    return output_put_within(directory, name, text_get(content), content->length, why);
}
