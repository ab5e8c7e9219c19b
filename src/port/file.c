#define _GNU_SOURCE
#include "port/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return err_set(why, err_from_errno(number), "cannot %s %s: %s", doing, path, strerror(number));
}

static enum err too_long(const char *path, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "path too long: %.200s...", path);
}

enum err file_read(const char *path, size_t limit, struct text *out, struct error *why)
{
    char buffer[16384];
    text_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(path, "open", why);
    enum err err = ERR_OK;
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

enum err file_write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done < 0 ? errno : ENOSPC;
            return err_from_errno(errno);
        }
        bytes += done;
        length -= (size_t)done;
    }
    return ERR_OK;
}

enum err file_open_own(const char *path, int flags, int *fd, struct error *why)
{
    struct stat status;
    *fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
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

enum err file_make_parents(const char *path, struct error *why)
{
    char folder[FILE_PATH_MAX];
    if (!str_copy(folder, sizeof folder, path))
        return too_long(path, why);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return failed(folder, "create", why);
        *slash = '/';
    }
    return ERR_OK;
}

/* ---- scratch files ---- */

static int open_unnamed(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system has O_TMPFILE. */
    char path[512];
    if (!str_format(path, sizeof path, "%s/ipw-XXXXXX", directory))
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

enum err file_open_scratch(int *fd, struct error *why)
{
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted) {
        *fd = open_unnamed(wanted);
        if (*fd < 0)
            return err_set(why, err_from_errno(errno),
                           "cannot create a scratch file in TMPDIR=%s: %s", wanted,
                           strerror(errno));
        return ERR_OK;
    }
    *fd = open_unnamed("/var/tmp");
    if (*fd < 0)
        *fd = open_unnamed("/tmp");
    if (*fd < 0)
        return err_set(why, err_from_errno(errno),
                       "cannot create a scratch file in /var/tmp or /tmp: %s", strerror(errno));
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
