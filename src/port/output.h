/* The one way in which files are written: those that a user names (-o), and those of a run directory.
 *
 * A regular file appears whole or not at all: the bytes go to a file of a random name beside it, which is synced and
 * renamed.  A device, a pipe and standard output cannot be replaced: they are written as they are.  Every failure is
 * reported, those of closing included.  (port/file.h, which this header includes, opens the files that grow while a run goes on.)
 *
 * The caller owns the struct; output_finish closes what an open function opened. */
#ifndef IPW_PORT_OUTPUT_H
#define IPW_PORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/file.h"

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
