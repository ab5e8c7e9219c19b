/* Files named by the user or created by the program for the user: reading with a size limit, complete transfers,
 * scratch files, and output files.  Paths are used without the root prefix (port/fs.h is for system files).  The
 * caller owns the buffers. */
#ifndef IPW_PORT_FILE_H
#define IPW_PORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

/* The longest name in a directory that Linux allows (NAME_MAX), and a NUL. */
enum { FILE_NAME_SIZE = 256 };

/* For files written by hand: prices, a device description, a table of measurements. */
#define FILE_SMALL ((size_t)1 << 20)

bool file_exists(const char *path);
bool file_is_regular(const char *path);
bool file_is_directory(const char *path);

/* Replaces *out with the file's bytes; more than `limit` of them is ERR_BAD_VALUE. */
enum err file_read(const char *path, size_t limit, struct text *out, struct error *why) MUST_USE;

/* The same from a descriptor, which is closed; the path is for messages. */
enum err file_read_take(int fd, const char *path, size_t limit, struct text *out, struct error *why)
    MUST_USE;

/* Called about ten times a second while a write waits for a pipe, a terminal or the reader of a FIFO: it may end the
 * process.  NULL, the default: nothing. */
void file_on_stall(void (*handler)(void));

/* Writes all bytes to a descriptor, resuming after short writes and EINTR; a non-blocking one is waited for.  On failure
 * errno says why. */
enum err file_write_all(int fd, const char *bytes, size_t length) MUST_USE;

/* Opens a file of a run directory that grows during the run: a journal, a lock.  Anything but a regular file is
 * ERR_BAD_VALUE with its path: a link could lead anywhere, and opening a pipe would block.  In a directory that is
 * private to its owner, a new file is private too.  The caller owns the descriptor. */
enum err file_open_own(const char *path, int flags, int *fd, struct error *why) MUST_USE;

/* Creates an empty file with the permissions of the umask, unless it exists or cannot be created: SQLite, which would
 * create it next, gives a group no write permission. */
void file_create(const char *path);

/* Creates the missing directories above a file. */
enum err file_make_parents(const char *path, struct error *why) MUST_USE;

/* An unnamed scratch file, deleted when its descriptor is closed, however the program ends; the caller owns the
 * descriptor.  In $TMPDIR, else /var/tmp (on disk, unlike /tmp on many systems), else /tmp. */
enum err file_open_scratch(int *fd, struct error *why) MUST_USE;

/* Complete transfers at an offset; a short transfer is ERR_NO_SPACE or ERR_IO. */
enum err file_write_at(int fd, const void *bytes, size_t length, long long offset) MUST_USE;
enum err file_read_at(int fd, void *bytes, size_t length, long long offset) MUST_USE;

/* ---- output files ---- */

/* Every output file is written this way: those named by the user (-o) and those of a run directory.
 *
 * A regular file is replaced atomically: the bytes go to a randomly named file in the same directory, which is synced
 * and renamed.  A device, a pipe and standard output cannot be replaced and are written directly.  Every failure is
 * reported, including that of close.  (file_open_own opens files that grow during a run.)
 *
 * The caller owns the struct; output_finish closes and frees what an open function opened; a failed one leaves
 * nothing. */

struct output {
    int fd;                    /* receives the bytes; readable, too, for several passes */
    int folder;                /* directory of the file to be replaced; -1: fd is the file itself */
    char temporary[32];        /* in that folder */
    char name[FILE_NAME_SIZE]; /* final name in that directory */
    char *path;                /* for messages, owned; NULL: standard output */
};

/* Whether a path means standard output: "-" or NULL. */
bool output_is_stdout(const char *path);

/* A file named by the user; links are followed.  `grows`: it is written in place, so that others can follow it, and
 * its content remains after a failure. */
enum err output_open(struct output *output, const char *path, bool grows, struct error *why)
    MUST_USE;

/* Whether output_open could write the file, judging by permissions; opens and creates nothing. */
enum err output_check(const char *path, struct error *why) MUST_USE;

/* A file of a run directory: "report.html", "plots/energy.png"; subdirectories are created, and private directories have
 * private files.  The directory itself
 * may be a link; a link below it could lead anywhere and is ERR_BAD_VALUE with its path. */
enum err output_open_within(struct output *output, const char *directory, const char *name,
                            struct error *why) MUST_USE;

enum err output_write(struct output *output, const char *bytes, size_t length, struct error *why)
    MUST_USE;

/* Finishes the file: with ERR_OK it is renamed to its final name, after an error it is removed.  Returns that error
 * with *why unchanged, or the first error of its own. */
enum err output_finish(struct output *output, enum err err, struct error *why) MUST_USE;

/* Opens, writes and finishes in one call. */
enum err output_put(const char *path, const char *bytes, size_t length, struct error *why) MUST_USE;
enum err output_put_within(const char *directory, const char *name, const char *bytes,
                           size_t length, struct error *why) MUST_USE;

#endif
