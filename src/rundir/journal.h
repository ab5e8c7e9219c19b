/* The journal of a run, records.jsonl: append-only, one JSON object per line, one write per line, so that
 * a line is there whole or not at all however the program ends; synced to disk in groups.
 *
 * Kinds of lines ("kind"):
 *   run     first line of each start (a resumed run has several): what was asked for
 *   query   one query has ended, completed or failed: all that is known at that moment
 *   energy  what it spent, known a little later: the same keys, to be merged into the query's
 *   grade   how a judge found it, known later still: likewise
 *   end     the run was finished or interrupted: totals
 * query, energy and grade lines carry "key", which names the query within the run.
 *
 * The caller owns a struct journal; several threads may append and sync.  journal_index_new and
 * journal_starts_read allocate what journal_index_free and journal_starts_release free. */
#ifndef IPW_RUNDIR_JOURNAL_H
#define IPW_RUNDIR_JOURNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_path.h"

struct jv;
struct text;

/* A line is shorter than this, its newline not counted: a file that lost its newlines must not eat all
 * memory.  The longest answer and the longest row of a dataset fit. */
enum { JOURNAL_LONGEST = 1 << 28 };

/* "format" of the first line: what this version writes, and knows how to read. */
enum { JOURNAL_FORMAT = 1 };

struct journal {
    int fd;
    bool dirty;              /* something was appended since the last sync */
    size_t reserved;         /* bytes for lines to come */
    long long allocated_end; /* how far the file's space is allocated; 0: unknown */
    pthread_mutex_t lock;
    char path[512];
};

/* Creates or continues.  When it continues, a last line that was cut by a crash is cut off first. */
enum err journal_open(struct journal *journal, const char *path, struct error *why) MUST_USE;

/* One line, without its newline and without secrets (core/secret.h); ERR_BAD_VALUE when it is too long to be read again.  A failed or short write is
 * undone and reported (ERR_NO_SPACE ...), so that the file stays whole. */
enum err journal_append(struct journal *journal, const struct text *line, struct error *why)
    MUST_USE;

/* Sets space aside for lines that must not be refused later, when the disk may be full: journal_append leaves it free.
 * ERR_NO_SPACE: there is not so much.  A file system that cannot reserve space does as well as it can. */
enum err journal_reserve(struct journal *journal, size_t bytes, struct error *why) MUST_USE;
void journal_unreserve(struct journal *journal, size_t bytes);

/* A line for which so many bytes were reserved. */
enum err journal_append_reserved(struct journal *journal, const struct text *line, size_t bytes,
                                 struct error *why) MUST_USE;

/* To the disk, if anything was appended. */
enum err journal_sync(struct journal *journal, struct error *why) MUST_USE;
void journal_close(struct journal *journal);

/* Of a `run` line: the journal is made of those of several runs, and its records are given in the order of their
 * keys. */
#define JOURNAL_MERGED "merged"

/* What the first line of each start says. */
struct journal_header {
    enum run_kind kind;
    unsigned start;    /* from 1 */
    double started_at; /* second 0 of its spans and samples, in seconds since 1970 */
    const char *hardware_label;
    const char *settings, *measuring; /* JSON objects; may be NULL */
    struct run_repeat repeat;
};
void journal_header_line(const struct journal_header *header, struct text *line);

/* Compares the settings of a new start, a JSON object as of a header, with those of an earlier start's `run` line:
 * calls `differs` for each that is not the same, with both values as JSON.  `then` is NULL for a setting that the
 * line lacks; a missing one equals null.  Stops when `differs` returns anything but ERR_OK, and returns that. */
typedef enum err journal_differs(void *context, const char *key, const char *then, const char *now);
enum err journal_compare_settings(const struct jv *line, const char *settings,
                                  journal_differs *differs, void *context) MUST_USE;

/* ---- reading ---- */

typedef enum err journal_take(void *context, const struct jv *value);

/* Line by line, in constant memory; a line that is not JSON is skipped and counted in *damaged.  Stops when take
 * returns anything but ERR_OK, and returns that. */
enum err journal_read(const char *path, journal_take *take, void *context, uint64_t *damaged,
                      struct error *why) MUST_USE;

/* The same, with each query's later lines merged into it: take gets one finished record per query, in the order of
 * the query lines, however far behind its other lines are.  A query whose energy never came is given as it is.
 * When a key was written twice (a query that failed and was tried again by a resumed run), the last one counts, with
 * what the start of the run that wrote it and later ones added.  Memory: one record, and 16 bytes per line. */
enum err journal_records(const char *path, journal_take *take, void *context, uint64_t *damaged,
                         struct error *why) MUST_USE;

/* The same in two steps, for callers that want the records more than once of a journal that does not change
 * meanwhile: it is indexed once. */
struct journal_index;
enum err journal_index_new(struct journal_index **out, const char *path, struct error *why)
    MUST_USE;
enum err journal_index_give(struct journal_index *index, journal_take *take, void *context,
                            uint64_t *damaged, struct error *why) MUST_USE;
void journal_index_free(struct journal_index *index);

/* The kind in the first line; RUN_KIND_PROFILE without one. */
enum run_kind journal_kind(const char *path);

/* Of which run it is a repeat, by the first line; its group is "" without one. */
struct run_repeat journal_repeat(const char *path);

/* The number of the first line, from 1, that readers leave out; 0 when there is none. */
uint64_t journal_first_damaged(const char *path);

/* When each start of a run began, on the wall clock: second 0 of its spans and samples. */
struct journal_starts {
    int64_t *zero_ns; /* of start i + 1; 0 where it is not known */
    size_t count, capacity;
};

/* None, and no error, where there is no journal. */
enum err journal_starts_read(const char *directory, struct journal_starts *out, struct error *why)
    MUST_USE;
void journal_starts_release(struct journal_starts *starts);

/* What a run that is being written has done so far.  Zero at first; each call reads what was added since. */
struct run_progress {
    long long read;        /* bytes */
    uint64_t done, failed; /* queries, those that failed among them */
    double started_at;     /* of the last start, in seconds since 1970; 0: not known */
    uint64_t before;       /* done by earlier starts */
    double total;          /* queries that there will be; 0: not known */
};
enum err run_progress_read(const char *directory, struct run_progress *progress, struct error *why)
    MUST_USE;

/* ---- the records of a run directory, from its journal, or from the Arrow files of one that has none ---- */

struct run_records {
    const char *directory;
    struct journal_index *index; /* NULL: Arrow files */
    struct run_shards shards;
    uint64_t damaged;       /* lines of the journal that the last pass left out */
    uint64_t first_damaged; /* the first of them, from 1 */
    double format;          /* of the journal; UNKNOWN without one */
};

/* run_records_close frees what it opened.  ERR_NOT_FOUND: no such directory, or no run in it. */
enum err run_records_open(const char *directory, struct run_records *out, struct error *why)
    MUST_USE;
void run_records_close(struct run_records *records);

/* May be called several times.  Stops when take returns anything but ERR_OK, and returns that. */
enum err run_records_give(struct run_records *records, journal_take *take, void *context,
                          struct error *why) MUST_USE;

#endif
