/* A scratch file that has no name: it vanishes with its descriptor, however the program ends.
 * The caller owns the descriptor. */
#ifndef IPW_PORT_SCRATCH_H
#define IPW_PORT_SCRATCH_H

#include <stddef.h>

#include "core/err.h"

/* In $TMPDIR, else /var/tmp (on disk, unlike many a /tmp), else /tmp. */
enum err scratch_open(int *fd, struct error *why) MUST_USE;

/* Whole transfers at an offset; a short one is ERR_NO_SPACE or ERR_IO. */
enum err scratch_write(int fd, const void *bytes, size_t length, long long offset) MUST_USE;
enum err scratch_read(int fd, void *bytes, size_t length, long long offset) MUST_USE;

#endif
