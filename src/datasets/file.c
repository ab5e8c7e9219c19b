#define _GNU_SOURCE
#include "datasets/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"

bool user_file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool user_file_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool user_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static enum err failed(const char *path, const char *doing, struct error *why)
{
    int number = errno;
    return err_set(why, err_from_errno(number), "cannot %s %s: %s", doing, path, strerror(number));
}

enum err user_file_read(const char *path, size_t most, struct text *out, struct error *why)
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
        if (out->length > most)
            err = err_set(why, ERR_BAD_VALUE, "%s: longer than %zu bytes", path, most);
        else if (out->failed)
            err = err_set(why, ERR_NO_MEMORY, "%s: out of memory", path);
    }
    close(fd);
    return err;
}

static enum err make_parents(const char *path, struct error *why)
{
    char folder[FILE_PATH_MAX];
    if (!str_copy(folder, sizeof folder, path))
        return err_set(why, ERR_BAD_VALUE, "the path is too long: %.100s...", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return failed(folder, "make", why);
        *slash = '/';
    }
    return ERR_OK;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        length -= (size_t)done;
    }
    return fsync(fd) == 0;
}

enum err user_file_write(const char *path, const char *bytes, size_t length, struct error *why)
{
    char beside[FILE_PATH_MAX];
    enum err err = make_parents(path, why);
    if (err)
        return err;
    if (!str_format(beside, sizeof beside, "%s.XXXXXX", path))
        return err_set(why, ERR_BAD_VALUE, "the path is too long: %.100s...", path);
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return failed(path, "write", why);
    bool written = write_all(fd, bytes, length);
    if (!written)
        err = failed(path, "write", why);
    if (close(fd) != 0 && !err)
        err = failed(path, "write", why);
    if (!err && rename(beside, path) != 0)
        err = failed(path, "write", why);
    if (err)
        unlink(beside);
    return err;
}
