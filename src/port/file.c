/* Files: reading completely, atomic replacement, scratch files. */
#define _GNU_SOURCE
#include "port/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum err failed(const char *path, const char *doing, struct error *why)
{
    int number = errno;
    return err_errno(why, number, "cannot %s %s", doing, path);
}

enum err file_read(const char *path, size_t limit, struct text *out, struct error *why)
{
    text_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? failed(path, "open", why) : file_read_take(fd, path, limit, out, why);
}

enum err file_read_take(int fd, const char *path, size_t limit, struct text *out, struct error *why)
{
    char buffer[16384];
    enum err err = ERR_OK;
    text_clear(out);
    for (ssize_t got; !err && (got = read(fd, buffer, sizeof buffer)) != 0;) {
        if (got < 0 && errno != EINTR)
            err = failed(path, "read", why);
        if (got <= 0)
            continue;
        text_add_bytes(out, buffer, (size_t)got);
        if (out->length > limit)
            err = err_set(why, ERR_BAD_VALUE, "%s: longer than %zu bytes", path, limit);
        else if (out->failed)
            err = err_set(why, ERR_NO_MEMORY, "%s: out of memory", path);
    }
    close(fd);
    return err;
}

/* ---- writes that wait ---- */

enum { STALL_MS = 100 };
static void (*_Atomic on_stall)(void);

void file_on_stall(void (*handler)(void))
{
    atomic_store(&on_stall, handler);
}

static void report_stall(void)
{
    void (*handler)(void) = atomic_load(&on_stall);
    if (handler)
        handler();
}

/* Waits until the descriptor takes data, or fails. */
static void await_room(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    while (poll(&ready, 1, STALL_MS) == 0)
        report_stall();
}

/* A pipe that has room takes this many bytes without blocking. */
static size_t part_of(size_t length)
{
    return length < PIPE_BUF ? length : PIPE_BUF;
}

enum err file_write_all(int fd, const char *bytes, size_t length)
{
    struct stat status;
    bool may_stall = atomic_load(&on_stall) && !fstat(fd, &status) && !S_ISREG(status.st_mode);
    while (length > 0) {
        if (may_stall)
            await_room(fd);
        ssize_t done = write(fd, bytes, may_stall ? part_of(length) : length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN) { /* another program made it non-blocking */
            await_room(fd);
            continue;
        }
        if (done <= 0) {
            errno = done < 0 ? errno : ENOSPC;
            return err_from_errno(errno);
        }
        bytes += done;
        length -= (size_t)done;
    }
    return ERR_OK;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The directory of a path, "." for the current one, to be freed.  NULL, in libipw: out of memory. */
static char *parent_of(const char *path)
{
    size_t length = (size_t)(name_of(path) - path);
    if (length == 0)
        return memory_string(".");
    return memory_bytes(path, length == 1 ? 1 : length - 1);
}

/* -1 with errno. */
static int open_parent(const char *path)
{
    char *folder = parent_of(path);
    if (!folder) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int number = errno;
    free(folder);
    errno = number;
    return fd;
}

/* What is created in a private run directory is private too, wherever it is moved; the umask applies to the rest. */
static bool is_private(int folder)
{
    struct stat status;
    return fstat(folder, &status) == 0 && !(status.st_mode & (S_IRWXG | S_IRWXO));
}

static mode_t mode_beside(const char *path)
{
    int folder = open_parent(path);
    mode_t mode = folder >= 0 && is_private(folder) ? 0600 : 0666;
    if (folder >= 0)
        close(folder);
    return mode;
}

enum err file_open_own(const char *path, int flags, int *fd, struct error *why)
{
    struct stat status;
    *fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
               flags & O_CREAT ? mode_beside(path) : 0);
    int number = errno;
    if (*fd >= 0 && fstat(*fd, &status) == 0 && S_ISREG(status.st_mode))
        return ERR_OK;
    if (*fd >= 0)
        close(*fd);
    bool odd = *fd >= 0 || number == ENXIO;
    *fd = -1;
    if (number == ELOOP || odd)
        return err_set(why, ERR_BAD_VALUE, "%s is %s: remove it", path,
                       odd ? "not a regular file" : "a symbolic link");
    errno = number;
    return failed(path, "open", why);
}

void file_create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
}

enum err file_make_parents(const char *path, struct error *why)
{
    char *folder = memory_string(path);
    enum err err = folder ? ERR_OK : err_no_memory(why);
    char *slash = folder && *folder ? strchr(folder + 1, '/') : NULL;
    for (; !err && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            err = failed(folder, "create", why);
        *slash = '/';
    }
    free(folder);
    return err;
}

/* ---- scratch files ---- */

static int open_unnamed(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system has O_TMPFILE. */
    struct text path = {0};
    text_addf(&path, "%s/ipw-XXXXXX", directory);
    if (!path.failed)
        fd = mkostemp(path.bytes, O_CLOEXEC);
    int number = path.failed ? ENOMEM : errno;
    if (fd >= 0)
        unlink(path.bytes);
    text_release(&path);
    errno = number;
    return fd;
}

enum err file_open_scratch(int *fd, struct error *why)
{
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted) {
        *fd = open_unnamed(wanted);
        if (*fd < 0)
            return err_errno(why, errno, "cannot create a scratch file in TMPDIR=%s", wanted);
        return ERR_OK;
    }
    *fd = open_unnamed("/var/tmp");
    if (*fd < 0)
        *fd = open_unnamed("/tmp");
    if (*fd < 0)
        return err_errno(why, errno, "cannot create a scratch file in /var/tmp or /tmp");
    return ERR_OK;
}

enum err file_write_at(int fd, const void *bytes, size_t length, long long offset)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t n = pwrite(fd, from, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_from_errno(errno) : ERR_NO_SPACE;
        from += n;
        offset += n;
        length -= (size_t)n;
    }
    return ERR_OK;
}

enum err file_read_at(int fd, void *bytes, size_t length, long long offset)
{
    char *to = bytes;
    while (length > 0) {
        ssize_t n = pread(fd, to, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_from_errno(errno) : ERR_IO;
        to += n;
        offset += n;
        length -= (size_t)n;
    }
    return ERR_OK;
}

/* ---- output files ---- */

static enum err output_failed(const struct output *output, struct error *why)
{
    int number = errno;
    return err_errno(why, number, "cannot write %s",
                     output->path ? output->path : "to standard output");
}

static void close_folder(struct output *output)
{
    if (output->folder >= 0)
        close(output->folder);
    output->folder = -1;
}

/* Of a file that is finished or could not be opened; returns the error. */
static enum err forget(struct output *output, enum err err)
{
    close_folder(output);
    free(output->path);
    output->path = NULL;
    return err;
}

/* ---- a temporary file in the same directory ---- */

/* The name is unpredictable, and an existing file is never opened. */
static enum err open_temporary(struct output *output, mode_t mode)
{
    for (unsigned tries = 0; tries < 100; tries++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return ERR_IO;
        chars_format(output->temporary, ".%016" PRIx64 ".tmp", number);
        output->fd = openat(output->folder, output->temporary,
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (output->fd >= 0)
            return ERR_OK;
        if (errno != EEXIST)
            break;
    }
    return err_from_errno(errno);
}

/* False, with errno, when no file can be created next to it. */
static bool open_in_folder(struct output *output, const char *path, const struct stat *there)
{
    bool fits = chars_copy(output->name, name_of(path));
    if (!fits || !output->name[0]) {
        errno = fits ? EISDIR : ENAMETOOLONG;
        return false;
    }
    if (there && access(path, W_OK))
        return false; /* write-protected, though a rename would succeed */
    output->folder = open_parent(path);
    if (output->folder < 0)
        return false;
    if (open_temporary(output, 0666)) {
        int number = errno;
        close_folder(output);
        errno = number;
        return false;
    }
    if (there) /* keep the permissions of the existing file */
        (void)!fchmod(output->fd, there->st_mode & 0777);
    return true;
}

/* ---- a file named by the user ---- */

bool output_is_stdout(const char *path)
{
    return !path || str_equal(path, "-");
}

/* /dev/stdout is a link that may lead to a regular file that other programs write to as well. */
static bool is_descriptor(const struct stat *there, int fd)
{
    struct stat open_file;
    return fstat(fd, &open_file) == 0 && open_file.st_dev == there->st_dev &&
           open_file.st_ino == there->st_ino;
}

/* Waits for its reader. */
static int open_fifo(const char *path)
{
    int fd;
    while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO) {
        poll(NULL, 0, STALL_MS);
        report_stall();
    }
    if (fd >= 0)
        fcntl(fd, F_SETFL, 0);
    return fd;
}

static int open_in_place(const char *path, const struct stat *there)
{
    if (!there)
        return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (is_descriptor(there, fd))
            return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return S_ISFIFO(there->st_mode) ? open_fifo(path) : open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

/* Resolves links to the regular file, existing or not; NULL where that fails. */
static char *target_of(const char *path)
{
    struct stat link;
    if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
        return realpath(path, NULL);
    return memory_string(path);
}

static bool is_replaced(const struct stat *there)
{
    return !there || (S_ISREG(there->st_mode) && !is_descriptor(there, STDOUT_FILENO) &&
                      !is_descriptor(there, STDERR_FILENO));
}

/* Opens output->path; may leave the folder open when it fails. */
static enum err open_named(struct output *output, bool grows, struct error *why)
{
    struct stat status;
    const struct stat *there = stat(output->path, &status) == 0 ? &status : NULL;
    if (!grows && is_replaced(there)) {
        char *target = target_of(output->path);
        bool has_target = target, opened = target && open_in_folder(output, target, there);
        int number = errno;
        free(target);
        if (opened)
            return ERR_OK;
        /* The file may be writable while its directory is not. */
        bool refused = number == EACCES || number == EPERM || number == EROFS;
        errno = number;
        if (has_target && !(there && refused))
            return output_failed(output, why);
    }
    output->fd = open_in_place(output->path, there);
    return output->fd < 0 ? output_failed(output, why) : ERR_OK;
}

enum err output_open(struct output *output, const char *path, bool grows, struct error *why)
{
    *output = (struct output){.fd = -1, .folder = -1};
    if (output_is_stdout(path)) {
        output->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        return output->fd < 0 ? output_failed(output, why) : ERR_OK;
    }
    output->path = memory_string(path);
    if (!output->path)
        return err_no_memory(why);
    enum err err = open_named(output, grows, why);
    return err ? forget(output, err) : ERR_OK;
}

enum err output_check(const char *path, struct error *why)
{
    struct stat status;
    if (output_is_stdout(path))
        return ERR_OK;
    if (stat(path, &status) == 0) {
        errno = EISDIR;
        return S_ISDIR(status.st_mode) || access(path, W_OK) ? failed(path, "write", why) : ERR_OK;
    }
    char *folder = parent_of(path);
    if (!folder)
        return err_no_memory(why);
    enum err err = access(folder, W_OK | X_OK) ? failed(path, "write", why) : ERR_OK;
    free(folder);
    return err;
}

/* ---- a file of a run directory ---- */

static enum err is_link(const char *directory, const char *name, size_t length, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE,
                   "%s/%.*s is a symbolic link: remove it; nothing is written through links in a "
                   "run directory",
                   directory, (int)length, name);
}

/* Opens each directory of the name in turn. */
static enum err enter_folders(struct output *output, const char *directory, const char *name,
                              const char **last, struct error *why)
{
    struct stat status;
    output->folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (output->folder < 0)
        return output_failed(output, why);
    const char *at = name;
    for (const char *slash; (slash = strchr(at, '/')); at = slash + 1) {
        char folder[FILE_NAME_SIZE];
        if (!chars_format(folder, "%.*s", (int)(slash - at), at)) {
            errno = ENAMETOOLONG;
            return output_failed(output, why);
        }
        if (mkdirat(output->folder, folder, is_private(output->folder) ? 0700 : 0777) &&
            errno != EEXIST)
            return output_failed(output, why);
        if (fstatat(output->folder, folder, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(status.st_mode))
            return is_link(directory, name, (size_t)(slash - name), why);
        int next = openat(output->folder, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return output_failed(output, why);
        close(output->folder);
        output->folder = next;
    }
    *last = at;
    return ERR_OK;
}

/* Opens output->path, which is directory/name; may leave the folder open when it fails. */
static enum err open_within(struct output *output, const char *directory, const char *name,
                            struct error *why)
{
    struct stat status;
    const char *last = name;
    enum err err = enter_folders(output, directory, name, &last, why);
    if (err)
        return err;
    if (!chars_copy(output->name, last)) {
        errno = ENAMETOOLONG;
        return output_failed(output, why);
    }
    if (fstatat(output->folder, last, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(status.st_mode))
            return is_link(directory, name, strlen(name), why);
        if (!S_ISREG(status.st_mode))
            return err_set(why, ERR_BAD_VALUE, "%s is not a regular file", output->path);
    }
    if (open_temporary(output, is_private(output->folder) ? 0600 : 0666))
        return output_failed(output, why);
    return ERR_OK;
}

enum err output_open_within(struct output *output, const char *directory, const char *name,
                            struct error *why)
{
    struct text path = {0};
    *output = (struct output){.fd = -1, .folder = -1};
    text_addf(&path, "%s/%s", directory, name);
    output->path = path.bytes;
    enum err err = path.failed ? err_no_memory(why) : open_within(output, directory, name, why);
    return err ? forget(output, err) : ERR_OK;
}

/* ---- writing and ending ---- */

enum err output_write(struct output *output, const char *bytes, size_t length, struct error *why)
{
    return file_write_all(output->fd, bytes, length) ? output_failed(output, why) : ERR_OK;
}

/* fsync of the directory makes the rename survive a power failure; some file systems do not support it. */
static void sync_folder(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

enum err output_finish(struct output *output, enum err err, struct error *why)
{
    bool replaces = output->folder >= 0;
    if (!err && replaces && output->fd >= 0 && fsync(output->fd) && errno != EINVAL)
        err = output_failed(output, why);
    /* Some file systems report a full disk or a lost server only on close. */
    if (output->fd >= 0 && close(output->fd) && !err)
        err = output_failed(output, why);
    output->fd = -1;
    if (replaces && !err &&
        renameat(output->folder, output->temporary, output->folder, output->name))
        err = output_failed(output, why);
    if (replaces && err)
        unlinkat(output->folder, output->temporary, 0);
    else if (replaces)
        sync_folder(output->folder);
    return forget(output, err);
}

enum err output_put(const char *path, const char *bytes, size_t length, struct error *why)
{
    struct output output;
    enum err err = output_open(&output, path, false, why);
    return err ? err : output_finish(&output, output_write(&output, bytes, length, why), why);
}

enum err output_put_within(const char *directory, const char *name, const char *bytes,
                           size_t length, struct error *why)
{
    struct output output;
    enum err err = output_open_within(&output, directory, name, why);
    return err ? err : output_finish(&output, output_write(&output, bytes, length, why), why);
}
