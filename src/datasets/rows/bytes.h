/* A file read byte by byte through a buffer of fixed size, however large the file is.  A struct bytes
 * owns its descriptor and buffer: bytes_open, bytes_close. */
#ifndef IPW_DATASETS_ROWS_BYTES_H
#define IPW_DATASETS_ROWS_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { BYTES_END = -1 };

/* The longest row that is read; a longer one is told and passed over. */
#define ROW_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct bytes {
    int fd;
    char *buffer;
    size_t at, end;
    uint64_t line; /* of the next byte, from 1 */
    enum err err;  /* why reading stopped, when that was not the end */
    int errno_value;
};

/* Passes over a byte order mark.  Refuses what cannot be text of ours: a directory, UTF-16, a
 * compressed file, Parquet. */
enum err bytes_open(const char *path, struct bytes *out, struct error *why) MUST_USE;
void bytes_close(struct bytes *bytes);

/* The next byte, 0..255, or BYTES_END at the end or when bytes->err says why not. */
int bytes_next(struct bytes *bytes);
int bytes_peek(struct bytes *bytes);

/* bytes->err with its reason, for a reader that met BYTES_END; ERR_OK at a true end. */
enum err bytes_failure(const struct bytes *bytes, struct error *why) MUST_USE;

#endif
