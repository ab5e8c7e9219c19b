#define _GNU_SOURCE
#include "datasets/rows/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 256 * 1024 };

/* Whether there is a byte to read. */
static bool fill(struct bytes *bytes)
{
    if (bytes->at < bytes->end)
        return true;
    if (bytes->err)
        return false;
    ssize_t got;
    do
        got = read(bytes->fd, bytes->buffer, BUFFER_SIZE);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        bytes->errno_value = errno;
        bytes->err = err_from_errno(errno);
        return false;
    }
    bytes->at = 0;
    bytes->end = (size_t)got;
    return got > 0;
}

int bytes_peek(struct bytes *bytes)
{
    return fill(bytes) ? (unsigned char)bytes->buffer[bytes->at] : BYTES_END;
}

int bytes_next(struct bytes *bytes)
{
    if (!fill(bytes))
        return BYTES_END;
    unsigned char byte = (unsigned char)bytes->buffer[bytes->at++];
    bytes->line += byte == '\n';
    return byte;
}

enum err bytes_failure(const struct bytes *bytes, struct error *why)
{
    if (!bytes->err)
        return ERR_OK;
    return err_set(why, bytes->err, "reading stopped at line %llu: %s",
                   (unsigned long long)bytes->line, strerror(bytes->errno_value));
}

/* What a file's first bytes say of it. */
static enum err look_at_start(const char *path, struct bytes *bytes, struct error *why)
{
    static const struct {
        const char *mark;
        size_t length;
        const char *what;
    } REFUSED[] = {
        {"\xFF\xFE", 2, "is UTF-16: save it as UTF-8"},
        {"\xFE\xFF", 2, "is UTF-16: save it as UTF-8"},
        {"\x1F\x8B", 2, "is compressed: unpack it first (gunzip)"},
        {"\x28\xB5\x2F\xFD", 4, "is compressed: unpack it first (unzstd)"},
        {"PK\x03\x04", 4, "is a zip archive: unpack it first"},
        {"PAR1", 4, "is a Parquet file, which is not read: save it as JSON lines or CSV"},
    };
    if (bytes_peek(bytes) == BYTES_END)
        return bytes->err ? err_set(why, bytes->err, "cannot read %s: %s", path,
                                    strerror(bytes->errno_value))
                          : err_set(why, ERR_BAD_VALUE, "%s is empty", path);
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
        if (bytes->end >= REFUSED[i].length &&
            memcmp(bytes->buffer, REFUSED[i].mark, REFUSED[i].length) == 0)
            return err_set(why, ERR_UNSUPPORTED, "%s %s", path, REFUSED[i].what);
    if (bytes->end >= 3 && memcmp(bytes->buffer, "\xEF\xBB\xBF", 3) == 0)
        bytes->at = 3;
    return ERR_OK;
}

enum err bytes_open(const char *path, struct bytes *out, struct error *why)
{
    struct stat st;
    *out = (struct bytes){.fd = open(path, O_RDONLY | O_CLOEXEC), .line = 1};
    if (out->fd < 0)
        return err_set(why, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    enum err err = ERR_OK;
    if (fstat(out->fd, &st) == 0 && S_ISDIR(st.st_mode))
        err = err_set(why, ERR_UNSUPPORTED, "%s is a directory", path);
    else if (!(out->buffer = malloc(BUFFER_SIZE)))
        err = err_set(why, ERR_NO_MEMORY, "%s: out of memory", path);
    else
        err = look_at_start(path, out, why);
    if (err)
        bytes_close(out);
    return err;
}

void bytes_close(struct bytes *bytes)
{
    if (bytes->fd >= 0)
        close(bytes->fd);
    free(bytes->buffer);
    *bytes = (struct bytes){.fd = -1};
}
