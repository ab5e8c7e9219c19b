/* The lines of a file with their places, read in constant memory.
 * A struct lines is owned by the caller: lines_open, lines_next, lines_close. */
#ifndef IPW_STORE_JOURNAL_LINES_H
#define IPW_STORE_JOURNAL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct line {
    const char *bytes; /* without its newline; valid until the next call; NULL when not whole: cut
                          short, or longer than any line of ours */
    size_t length;
    uint64_t at;
};

struct lines {
    int fd;
    char *buffer;
    size_t capacity, start, end; /* what was read and not given yet: buffer[start, end) */
    uint64_t at;                 /* of buffer[start] */
    bool eof;
    char path[256];
};

enum err lines_open(struct lines *lines, const char *path, struct error *why) MUST_USE;
enum err lines_next(struct lines *lines, struct line *out, bool *end, struct error *why) MUST_USE;

/* One line again, by its place; its bytes are valid until the next call of either. */
enum err lines_at(struct lines *lines, uint64_t at, size_t length, struct line *out,
                  struct error *why) MUST_USE;
void lines_close(struct lines *lines);

#endif
