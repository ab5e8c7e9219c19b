#include "rundir/journal/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "rundir/journal.h"

enum { FIRST = 1 << 16 };

static enum err failed(const struct journal_lines *lines, int problem, struct error *why)
{
    return err_set(why, err_from_errno(problem), "cannot read %s: %s", lines->path,
                   strerror(problem));
}

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

enum err journal_lines_open(struct journal_lines *lines, const char *path, struct error *why)
{
    *lines = (struct journal_lines){.capacity = FIRST, .fd = -1};
    str_copy(lines->path, sizeof lines->path, path);
    lines->buffer = malloc(FIRST);
    if (!lines->buffer)
        return no_memory(why);
    lines->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (lines->fd < 0) {
        enum err err = failed(lines, errno, why);
        journal_lines_close(lines);
        return err;
    }
    struct stat status;
    lines->size = fstat(lines->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    return ERR_OK;
}

void journal_lines_close(struct journal_lines *lines)
{
    if (lines->fd >= 0)
        close(lines->fd);
    free(lines->buffer);
    *lines = (struct journal_lines){.fd = -1};
}

static enum err make_room(struct journal_lines *lines, size_t wanted, struct error *why)
{
    if (wanted <= lines->capacity)
        return ERR_OK;
    size_t capacity = lines->capacity;
    while (capacity < wanted)
        capacity *= 2;
    char *buffer = realloc(lines->buffer, capacity);
    if (!buffer)
        return no_memory(why);
    lines->buffer = buffer;
    lines->capacity = capacity;
    return ERR_OK;
}

/* Reads on after what is there, which is first moved to the front. */
static enum err read_more(struct journal_lines *lines, struct error *why)
{
    memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
    lines->end -= lines->start;
    lines->start = 0;
    enum err err = make_room(lines, lines->end + FIRST / 2, why);
    if (err)
        return err;
    ssize_t n;
    do
        n = read(lines->fd, lines->buffer + lines->end, lines->capacity - lines->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return failed(lines, errno, why);
    lines->eof = n == 0;
    lines->end += (size_t)n;
    log_progress(lines->path, lines->eof ? lines->size : lines->at + lines->end, lines->size);
    return ERR_OK;
}

static void drop(struct journal_lines *lines, size_t length)
{
    lines->start += length;
    lines->at += length;
}

enum err journal_lines_next(struct journal_lines *lines, struct journal_line *out, bool *end,
                            struct error *why)
{
    bool too_long = false;
    uint64_t at = lines->at;
    *end = false;
    for (size_t searched = 0;;) {
        const char *from = lines->buffer + lines->start;
        size_t have = lines->end - lines->start;
        const char *newline =
            have > searched ? memchr(from + searched, '\n', have - searched) : NULL;
        if (newline) {
            size_t length = (size_t)(newline - from);
            *out =
                (struct journal_line){.bytes = too_long ? NULL : from, .length = length, .at = at};
            drop(lines, length + 1);
            return ERR_OK;
        }
        if (lines->eof) {
            *end = have == 0 && !too_long;
            *out = (struct journal_line){.at = at}; /* whatever there is was cut short */
            drop(lines, have);
            return ERR_OK;
        }
        searched = have;
        if (have >= JOURNAL_LONGEST) {
            too_long = true;
            drop(lines, have);
            searched = 0;
        }
        enum err err = read_more(lines, why);
        if (err)
            return err;
    }
}

enum err journal_lines_at(struct journal_lines *lines, uint64_t at, size_t length,
                          struct journal_line *out, struct error *why)
{
    enum err err = make_room(lines, length, why);
    lines->start = lines->end = 0;
    for (size_t have = 0; !err && have < length;) {
        ssize_t n = pread(lines->fd, lines->buffer + have, length - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            err = failed(lines, n < 0 ? errno : EIO, why);
        else
            have += (size_t)n;
    }
    *out = (struct journal_line){.bytes = lines->buffer, .length = length, .at = at};
    return err;
}
