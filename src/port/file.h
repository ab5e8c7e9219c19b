/* Files that a user names or that the program keeps for one: whole reads with a limit, complete transfers, scratch
 * files.  port/output.h writes those that a command or a run leaves behind.  No root prefix applies (port/fs.h has the
 * machine's own files).  The caller owns the texts. */
#ifndef IPW_PORT_FILE_H
#define IPW_PORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

enum { FILE_PATH_MAX = 1024 };

/* For files that a person writes: prices, a device description, a table of measurements. */
#define FILE_SMALL ((size_t)1 << 20)

bool file_exists(const char *path);
bool file_is_regular(const char *path);
bool file_is_directory(const char *path);

/* Replaces *out with the file's bytes; more than `limit` of them is ERR_BAD_VALUE. */
enum err file_read(const char *path, size_t limit, struct text *out, struct error *why) MUST_USE;

/* Writes all bytes to a descriptor, however often write(2) stops short or is interrupted.  On failure errno says
 * why. */
enum err file_write_all(int fd, const char *bytes, size_t length) MUST_USE;

/* Opens a file of a run directory that grows while a run goes on: a journal, a lock.  What is no regular file is
 * ERR_BAD_VALUE with its path: a link could lead anywhere, a pipe would be waited for.  The caller owns the
 * descriptor. */
enum err file_open_own(const char *path, int flags, int *fd, struct error *why) MUST_USE;

/* Creates the missing directories above a file. */
enum err file_make_parents(const char *path, struct error *why) MUST_USE;

/* A scratch file without a name, which vanishes with its descriptor however the program ends; the caller owns the
 * descriptor.  In $TMPDIR, else /var/tmp (on disk, unlike many a /tmp), else /tmp. */
enum err file_open_scratch(int *fd, struct error *why) MUST_USE;

/* Complete transfers at an offset; a short one is ERR_NO_SPACE or ERR_IO. */
enum err file_write_at(int fd, const void *bytes, size_t length, long long offset) MUST_USE;
enum err file_read_at(int fd, void *bytes, size_t length, long long offset) MUST_USE;

#endif
