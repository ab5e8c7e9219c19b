/* Copying a run directory to another place and back: its measured files, in pieces, with an id that identifies the run
 * and a digest that identifies its state.
 *
 * run_copy_open allocates what run_copy_release frees; run_import_end closes what run_import_begin opened, and
 * run_import_release, which is needed after an error of run_import_begin too, frees its paths. */
#ifndef IPW_RUNDIR_RUN_COPY_H
#define IPW_RUNDIR_RUN_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { RUN_ID_MAX = 17, RUN_COPY_PIECE = 1 << 20, RUN_COPY_NAME_MAX = 96 };

struct run_copy_file {
    char name[RUN_COPY_NAME_MAX]; /* "records.jsonl", "hf_dataset/state.json" */
    uint64_t size;
    int64_t changed_ns; /* mtime, which a copy preserves: readers compare mtimes */
};

struct run_copy {
    char *directory;         /* canonical path */
    const char *name;        /* last component of `directory` */
    const char *kind;        /* "profile", "run" ... */
    char *header;            /* the journal's first line; NULL if there is none */
    char sweep[RUN_ID_MAX];  /* id of the sweep that it is an attempt of; "": none */
    const char *path;        /* path relative to that sweep's directory; NULL: none */
    double began_at;         /* seconds since 1970; UNKNOWN without a journal */
    char id[RUN_ID_MAX];     /* unchanged if the run is resumed, moved or renamed */
    char digest[RUN_ID_MAX]; /* hash of all bytes */
    struct run_copy_file *files;
    size_t count, capacity;
    uint64_t bytes;
};

/* ERR_NOT_FOUND: no run; ERR_BUSY: another process is writing it. */
enum err run_copy_open(const char *directory, struct run_copy *out, struct error *why) MUST_USE;
void run_copy_release(struct run_copy *copy);

/* All files in order, each in pieces of at most RUN_COPY_PIECE bytes, an empty file in one piece.  ERR_BUSY, at the
 * end, if the bytes no longer match the digest. */
typedef enum err run_copy_take(void *context, size_t file, unsigned piece, const char *bytes,
                               size_t length, struct error *why);
enum err run_copy_read(const struct run_copy *copy, run_copy_take *take, void *context,
                       struct error *why) MUST_USE;

/* ---- writing a copy ---- */

/* A run directory that is created atomically. */
struct run_import {
    char *directory;         /* final path */
    bool was_there;          /* already identical: nothing to do */
    bool replaces;           /* another state of the same run exists */
    char digest[RUN_ID_MAX]; /* expected digest */
    char *temporary;
    struct run_copy_file file; /* being written */
    int fd;                    /* of the file; -1: none */
    uint64_t left;             /* bytes left to write */
    uint64_t hash;
};

/* Parent folder of an attempt of the sweep in `directory`, by its relative path; the caller frees it.  ERR_BAD_VALUE: no
 * valid path of a sweep. */
enum err run_copy_parent(const char *directory, const char *path, char **parent, struct error *why)
    MUST_USE;

/* Writes to PARENT/NAME or, if another run has that name, PARENT/NAME_<id>.  ERR_BAD_VALUE for a name that leads
 * elsewhere, and for a file that no run has: both are untrusted. */
enum err run_import_begin(struct run_import *import, const char *parent, const char *name,
                          const char *id, const char *digest, struct error *why) MUST_USE;
enum err run_import_file(struct run_import *import, const struct run_copy_file *file,
                         struct error *why) MUST_USE;
enum err run_import_put(struct run_import *import, const char *bytes, size_t length,
                        struct error *why) MUST_USE;
/* With ERR_OK the directory is renamed to its final path if its bytes match the digest; after an error nothing remains.
 * Returns that error or its own. */
enum err run_import_end(struct run_import *import, enum err err, struct error *why) MUST_USE;
void run_import_release(struct run_import *import);

/* ---- runs not yet pushed to a database ---- */

/* A marker in the run directory with the database address, without its password; written before the first attempt to
 * push and removed after a successful one, so that a crash loses no run. */
enum err run_pending_set(const char *directory, const char *address, struct error *why) MUST_USE;
void run_pending_clear(const char *directory);
/* The address, which the caller frees; NULL if none is pending. */
char *run_pending_get(const char *directory);

#endif
