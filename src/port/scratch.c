#define _GNU_SOURCE
#include "port/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

static int open_in(const char *directory)
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

enum err scratch_open(int *fd, struct error *why)
{
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted) {
        *fd = open_in(wanted);
        if (*fd < 0)
            return err_set(why, err_from_errno(errno),
                           "cannot make a scratch file in TMPDIR=%s: %s", wanted, strerror(errno));
        return ERR_OK;
    }
    *fd = open_in("/var/tmp");
    if (*fd < 0)
        *fd = open_in("/tmp");
    if (*fd < 0)
        return err_set(why, err_from_errno(errno),
                       "cannot make a scratch file in /var/tmp or /tmp: %s", strerror(errno));
    return ERR_OK;
}

enum err scratch_write(int fd, const void *bytes, size_t length, long long offset)
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

enum err scratch_read(int fd, void *bytes, size_t length, long long offset)
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
