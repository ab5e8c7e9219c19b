/* Files that a user names or that the program keeps for one: whole reads with a limit, complete transfers, scratch
 * files, and the writing of those that a command or a run leaves behind.  No root prefix applies (port/fs.h has the
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

/* ---- files that are left behind ---- */

/* The one way in which files are written: those that a user names (-o), and those of a run directory.
 *
 * A regular file appears whole or not at all: the bytes go to a file of a random name beside it, which is synced and
 * renamed.  A device, a pipe and standard output cannot be replaced: they are written as they are.  Every failure is
 * reported, those of closing included.  (file_open_own opens the files that grow while a run goes on.)
 *
 * The caller owns the struct; output_finish closes what an open function opened. */

struct output {
    int fd;             /* for the bytes; also read where a file is made in several passes */
    int folder;         /* of the file that is replaced at the end; -1: fd is the file itself */
    char temporary[32]; /* in that folder */
    char name[256];     /* likewise */
    char path[FILE_PATH_MAX]; /* as messages give it */
};

/* "-", as the name of a file, and none (NULL). */
bool output_is_stdout(const char *path);

/* A file that a user names; links are followed.  `grows`: it is written in place from the beginning, so that others
 * can follow it, and what was written remains after a failure. */
enum err output_open(struct output *output, const char *path, bool grows, struct error *why)
    MUST_USE;

/* Whether output_open could write such a file, as far as permissions tell; opens and creates nothing. */
enum err output_check(const char *path, struct error *why) MUST_USE;

/* A file of a run directory: "report.html", "plots/energy.png", whose folders are created.  The directory itself may
 * be a link; a link below it could lead anywhere and is ERR_BAD_VALUE with its path. */
enum err output_open_within(struct output *output, const char *directory, const char *name,
                            struct error *why) MUST_USE;

enum err output_write(struct output *output, const char *bytes, size_t length, struct error *why)
    MUST_USE;

/* Ends it: with ERR_OK the file gets its name, after an error nothing remains of it.  Returns that error, with *why as
 * it is, or the first of its own. */
enum err output_finish(struct output *output, enum err err, struct error *why) MUST_USE;

/* All at once. */
enum err output_put(const char *path, const char *bytes, size_t length, struct error *why) MUST_USE;
enum err output_put_within(const char *directory, const char *name, const char *bytes,
                           size_t length, struct error *why) MUST_USE;

#endif
