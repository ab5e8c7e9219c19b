/* The lines of a file with their places, read in constant memory.
 * A struct journal_lines is owned by the caller: journal_lines_open, journal_lines_next, journal_lines_close. */
#ifndef IPW_RUNDIR_JOURNAL_LINES_H
#define IPW_RUNDIR_JOURNAL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct journal_line {
    const char *bytes; /* without its newline; valid until the next call; NULL when not whole: cut
                          short, or longer than any line of ours */
    size_t length;
    uint64_t at;
};

struct journal_lines {
    int fd;
    char *buffer;
    size_t capacity, start, end; /* what was read and not given yet: buffer[start, end) */
    uint64_t at;                 /* of buffer[start] */
    uint64_t size;               /* of the file when it was opened */
    bool eof;
    char path[256];
};

enum err journal_lines_open(struct journal_lines *lines, const char *path, struct error *why)
    MUST_USE;
enum err journal_lines_next(struct journal_lines *lines, struct journal_line *out, bool *end,
                            struct error *why) MUST_USE;

/* One line again, by its place; its bytes are valid until the next call of either. */
enum err journal_lines_at(struct journal_lines *lines, uint64_t at, size_t length,
                          struct journal_line *out, struct error *why) MUST_USE;
void journal_lines_close(struct journal_lines *lines);

#endif
