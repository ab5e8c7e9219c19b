#define _GNU_SOURCE
#include "port/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/memory.h"
#include "core/text.h"

/* A path that does not fit is as long as PATH_MAX, and the kernel refuses it with ENAMETOOLONG: nothing here has to. */
enum { FULL_SIZE = PATH_MAX + 1 };

static char root_prefix[FULL_SIZE];

void fs_set_root(const char *root)
{
    size_t length = root ? strlen(root) : 0;
    while (length > 0 && root[length - 1] == '/')
        length--;
    chars_format(root_prefix, "%.*s", (int)length, root ? root : "");
}

const char *fs_root(void)
{
    return root_prefix;
}

static const char *resolve(const char *path, char full[static FULL_SIZE])
{
    str_join(full, FULL_SIZE, root_prefix, path, "");
    return full;
}

bool fs_exists(const char *path)
{
    char full[FULL_SIZE];
    return access(resolve(path, full), F_OK) == 0;
}

/* ---- counters that ipw-reader may read and this user may not (src/reader) ----
 *
 * The descriptor of such a file is a socket: each request is answered with the value of the file. */

static ssize_t query_reader(int fd, const char *request, size_t length, char *to, size_t size)
{
    ssize_t n = send(fd, request, length, MSG_NOSIGNAL);
    while (n >= 0 && (n = recv(fd, to, size - 1, 0)) < 0 && errno == EINTR)
        ;
    if (n <= 0) { /* the reader ended or hangs: a late response must not match a later request */
        shutdown(fd, SHUT_RDWR);
        errno = ENODEV;
        return -1;
    }
    to[n] = '\0';
    if (to[0] != 'E')
        return n;
    errno = (int)strtol(to + 1, NULL, 10);
    return -1;
}

static int open_through_reader(const char *path)
{
    const char *place = getenv("IPW_READER");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = 2};
    char first[32];
    if (!chars_copy(address.sun_path, place ? place : "/run/ipw/reader.sock"))
        return -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) &&
        !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) &&
        !connect(fd, (struct sockaddr *)&address, sizeof address) &&
        query_reader(fd, path, strlen(path), first, sizeof first) > 0)
        return fd;
    close(fd);
    return -1;
}

enum err fs_open(const char *path, int *out)
{
    char full[FULL_SIZE];
    *out = -1;
    int fd = open(resolve(path, full), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        enum err err = err_from_errno(errno);
        if (err == ERR_DENIED)
            fd = open_through_reader(path);
        if (fd < 0)
            return err;
    }
    *out = fd;
    return ERR_OK;
}

enum err fs_read_text(const char *path, char *to, size_t size)
{
    int fd;
    enum err err = fs_open(path, &fd);
    if (err)
        return err;
    size_t length = 0;
    while (length < size) {
        ssize_t n = read(fd, to + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            err = err_from_errno(errno);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    close(fd);
    if (err)
        return err;
    if (length == size)
        return ERR_BAD_VALUE;
    to[length] = '\0';
    char *trimmed = str_trim(to);
    memmove(to, trimmed, strlen(trimmed) + 1);
    return ERR_OK;
}

enum err fs_read_u64(const char *path, uint64_t *out)
{
    char text[32];
    enum err err = fs_read_text(path, text, sizeof text);
    return err ? err : parse_u64(text, out);
}

enum err fs_read_i64(const char *path, int64_t *out)
{
    char text[32];
    enum err err = fs_read_text(path, text, sizeof text);
    return err ? err : parse_i64(text, out);
}

static ssize_t pread_start(int fd, char *to, size_t size)
{
    ssize_t n;
    do
        n = pread(fd, to, size - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ESPIPE)
        return query_reader(fd, "r", 1, to, size);
    if (n >= 0)
        to[n] = '\0';
    return n;
}

enum err fs_pread_u64(int fd, uint64_t *out)
{
    char text[32];
    ssize_t n = pread_start(fd, text, sizeof text);
    if (n < 0)
        return err_from_errno(errno);
    /* Parsed by hand, because this runs a thousand times a second. */
    uint64_t value = 0;
    ssize_t i = 0;
    for (; i < n && text[i] >= '0' && text[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return ERR_BAD_VALUE;
        value = value * 10 + digit;
    }
    /* Without the newline that ends every attribute the number may be truncated. */
    if (i == 0 || text[i] != '\n')
        return ERR_BAD_VALUE;
    *out = value;
    return ERR_OK;
}

enum err fs_pread_i64(int fd, int64_t *out)
{
    char text[32];
    ssize_t n = pread_start(fd, text, sizeof text);
    if (n < 0)
        return err_from_errno(errno);
    if (n == 0 || text[n - 1] != '\n' || strlen(text) != (size_t)n)
        return ERR_BAD_VALUE; /* truncated, as above */
    return parse_i64(text, out);
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static enum err names_add(struct fs_names *names, size_t *capacity, const char *name)
{
    char **items = grow(names->items, capacity, names->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    names->items = items;
    char *copy = memory_string(name);
    if (!copy)
        return ERR_NO_MEMORY;
    names->items[names->count++] = copy;
    return ERR_OK;
}

enum err fs_list(const char *path, struct fs_names *out)
{
    char full[FULL_SIZE];
    *out = (struct fs_names){0};
    DIR *dir = opendir(resolve(path, full));
    if (!dir)
        return err_from_errno(errno);
    size_t capacity = 0;
    enum err err = ERR_OK;
    struct dirent *entry;
    while (!err && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            err = names_add(out, &capacity, entry->d_name);
    closedir(dir);
    if (err)
        fs_names_release(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_version);
    return err;
}

void fs_names_release(struct fs_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct fs_names){0};
}

ssize_t fs_read_link(const char *path, char *to, size_t size)
{
    char full[FULL_SIZE];
    ssize_t length = readlink(resolve(path, full), to, size - 1);
    to[length > 0 ? length : 0] = '\0';
    return length;
}

enum err fs_real(const char *path, char *to, size_t size)
{
    char full[FULL_SIZE], real[PATH_MAX], real_root[PATH_MAX];
    if (!realpath(resolve(path, full), real))
        return err_from_errno(errno);
    size_t skip = 0;
    if (root_prefix[0] && realpath(root_prefix, real_root)) {
        size_t length = strlen(real_root);
        /* A link may lead out of the root, even to a sibling whose name has the root's as a prefix. */
        if (!strncmp(real, real_root, length) && (real[length] == '/' || real[length] == '\0'))
            skip = length;
    }
    return str_copy(to, size, real + skip) ? ERR_OK : ERR_BAD_VALUE;
}
