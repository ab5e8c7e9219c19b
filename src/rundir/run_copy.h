/* A run directory on its way to another place and back: the files that were measured, in pieces, with what tells one
 * run from another (its id) and one state of it from another (its digest).
 *
 * run_copy_open allocates what run_copy_release frees; run_arrival_end closes what run_arrival_begin opened. */
#ifndef IPW_RUNDIR_RUN_COPY_H
#define IPW_RUNDIR_RUN_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "port/file.h"

enum { RUN_ID_MAX = 17, RUN_COPY_PIECE = 1 << 20, RUN_COPY_NAME_MAX = 96 };

struct run_copy_file {
    char name[RUN_COPY_NAME_MAX]; /* "records.jsonl", "hf_dataset/state.json" */
    uint64_t size;
    int64_t changed_ns; /* readers compare the times of files: a copy keeps them */
};

struct run_copy {
    char directory[FILE_PATH_MAX];
    const char *name;       /* its last part, of `directory` */
    const char *kind;       /* "profile", "run" ... */
    char *header;           /* the journal's first line; NULL without one */
    char sweep[RUN_ID_MAX]; /* the id of the sweep that it is an attempt of; "": none */
    const char *path;       /* its place below that sweep's directory; NULL: none */
    double began_at;        /* seconds since 1970; UNKNOWN without a journal */
    char id
        [RUN_ID_MAX]; /* of the run's first line: it stays when the run is resumed, moved or renamed */
    char digest[RUN_ID_MAX]; /* of all bytes */
    struct run_copy_file *files;
    size_t count, capacity;
    uint64_t bytes;
};

/* ERR_NOT_FOUND where there is no run, ERR_BUSY while another process writes it. */
enum err run_copy_open(const char *directory, struct run_copy *out, struct error *why) MUST_USE;
void run_copy_release(struct run_copy *copy);

/* All files in order, each in pieces of at most RUN_COPY_PIECE bytes, an empty one in one piece.  ERR_BUSY, at its end,
 * when the bytes are not those of the digest any more. */
typedef enum err run_copy_take(void *context, size_t file, unsigned piece, const char *bytes,
                               size_t length, struct error *why);
enum err run_copy_give(const struct run_copy *copy, run_copy_take *take, void *context,
                       struct error *why) MUST_USE;

/* ---- the way back ---- */

/* A run directory that appears whole or not at all. */
struct run_arrival {
    char directory[FILE_PATH_MAX]; /* where it will be */
    bool was_there;                /* as it is to be: nothing is left to do */
    bool replaces;                 /* an earlier or later state of the same run */
    char digest[RUN_ID_MAX];       /* that it is to have */
    char temporary[FILE_PATH_MAX];
    struct run_copy_file file; /* that is being written */
    int fd;                    /* of it; -1: none */
    uint64_t left;             /* bytes of it to come */
    uint64_t hash;
};

/* Where an attempt of a sweep in `directory` is, by its place there: the folder that its directory is in.
 * ERR_BAD_VALUE for a path that no sweep has. */
enum err run_copy_place(const char *directory, const char *path, char *parent, size_t size,
                        struct error *why) MUST_USE;

/* Into PARENT/NAME or, where another run has that name, PARENT/NAME_<id>.  A name that leads elsewhere, and a file that
 * no run has, are ERR_BAD_VALUE: they come from outside. */
enum err run_arrival_begin(struct run_arrival *arrival, const char *parent, const char *name,
                           const char *id, const char *digest, struct error *why) MUST_USE;
enum err run_arrival_file(struct run_arrival *arrival, const struct run_copy_file *file,
                          struct error *why) MUST_USE;
enum err run_arrival_put(struct run_arrival *arrival, const char *bytes, size_t length,
                         struct error *why) MUST_USE;
/* With ERR_OK the directory gets its name if its bytes have the digest; after an error nothing remains.  Returns that
 * error or its own. */
enum err run_arrival_end(struct run_arrival *arrival, enum err err, struct error *why) MUST_USE;

/* ---- runs that have yet to reach a database ---- */

/* A marker in the run directory with the address of the database, without its password; written before the first
 * attempt and removed after the one that succeeded, so that no end of the program loses a run. */
enum err run_pending_set(const char *directory, const char *address, struct error *why) MUST_USE;
void run_pending_clear(const char *directory);
/* False where none is pending. */
bool run_pending_get(const char *directory, char *address, size_t size);

#endif
