/* The journal of a run, records.jsonl: append-only, one JSON object per line, one write per line or per batch of
 * lines, of which a crash leaves at most the last line incomplete; synced to disk in groups.
 *
 * Kinds of lines ("kind"):
 *   run     first line of each start (a resumed run has several): the settings
 *   query   one query has ended, completed or failed: all that is known at that moment
 *   energy  its energy, which is known later: the same keys, to be merged into the query's
 *   grade   the verdict of a judge, later still: likewise
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

#include "core/energy.h"
#include "core/err.h"
#include "core/text.h"
#include "port/out_of_memory.h"
#include "rundir/run_path.h"

struct jv;

/* Maximum length of a line without its newline: a file that lost its newlines must not exhaust memory.  The longest
 * answer and the longest row of a dataset fit. */
enum { JOURNAL_LINE_MAX = 1 << 28 };

/* "format" of the first line: the version that is written, and the newest that can be read. */
enum { JOURNAL_FORMAT = 1 };

struct journal {
    int fd;
    bool dirty;              /* something was written since the last sync */
    long long size;          /* of the file, which only this journal extends */
    unsigned batches;        /* begun and not ended */
    struct text waiting;     /* complete lines that are not written yet */
    size_t reserved;         /* bytes reserved for later lines */
    long long allocated_end; /* end of the file's allocated space; 0: unknown */
    pthread_mutex_t lock;
    struct last_action flush;
    char *path; /* for messages */
};

/* Creates or continues a journal.  When continuing, a last line truncated by a crash is removed first. */
enum err journal_open(struct journal *journal, const char *path, struct error *why) MUST_USE;

/* Appends one line, given without its newline, with secrets redacted (core/secret.h); ERR_BAD_VALUE: too long to be
 * read again.  A failed or short write is undone and reported (ERR_NO_SPACE ...), so that the file stays valid. */
enum err journal_append(struct journal *journal, const struct text *line, struct error *why)
    MUST_USE;

/* Until the batch ends, lines wait in memory, at most some dozens of KiB, and are written by few system calls; batches
 * may overlap.  An error may be that of a line whose append succeeded: those before it are written. */
void journal_batch_begin(struct journal *journal);
enum err journal_batch_end(struct journal *journal, struct error *why) MUST_USE;

/* Reserves space for later lines that must not fail, when the disk may be full: journal_append does not use it.
 * ERR_NO_SPACE: not enough space.  Best effort on a file system that cannot reserve space. */
enum err journal_reserve(struct journal *journal, size_t bytes, struct error *why) MUST_USE;
void journal_unreserve(struct journal *journal, size_t bytes);

/* Appends a line for which this many bytes were reserved. */
enum err journal_append_reserved(struct journal *journal, const struct text *line, size_t bytes,
                                 struct error *why) MUST_USE;

/* Syncs to disk what was written, if anything. */
enum err journal_sync(struct journal *journal, struct error *why) MUST_USE;
void journal_close(struct journal *journal);

/* In a `run` line: the journal was merged from those of several runs, and its records are returned in the order of
 * their keys. */
#define JOURNAL_MERGED "merged"

/* The first line of each start. */
struct journal_header {
    enum run_kind kind;
    unsigned start;    /* from 1 */
    double started_at; /* origin of the times of its spans and samples, in seconds since 1970 */
    const char *hardware_label;
    const struct jv *settings, *measuring; /* objects; may be NULL */
    struct run_repeat repeat;
};
void journal_header_line(const struct journal_header *header, struct text *line);

/* The last line of a start, with its totals: a start without one was killed. */
struct journal_end {
    int64_t start;
    double ended_at; /* in the clock of started_at */
    struct energy energy;
    double accounted_joules, idle_joules, unattributed_joules;
    double busy_joules, busy_s; /* while requests were in flight */
    double busy_covered_s;      /* the part of busy_s with known energy; earlier versions lack it */
    int64_t unrecorded_requests; /* of a proxy; -1: not a proxy */
    int64_t unknown_inference;   /* requests, likewise; -1 also in journals of earlier versions */
    double unknown_joules;       /* of these */
    const char *unknown_path;    /* of the first one; NULL: none */
};
void journal_end_line(const struct journal_end *end, struct text *line);

/* Compares the settings of a new start, an object as in the header, with those of an earlier start's `run` line: calls
 * `differs` for each difference, with both values as JSON for a message.  `then` is NULL for a setting missing in the
 * line; a missing one equals null.  Stops at the first error of `differs`, and returns it. */
typedef enum err journal_differs(void *context, const char *key, const char *then, const char *now);
enum err journal_compare_settings(const struct jv *line, const struct jv *settings,
                                  journal_differs *differs, void *context) MUST_USE;

/* ---- reading ---- */

typedef enum err journal_take(void *context, const struct jv *value);

/* Line by line, in constant memory; a line that is not JSON is skipped and counted in *damaged.  Stops at the first
 * error of take, and returns it. */
enum err journal_read(const char *path, journal_take *take, void *context, uint64_t *damaged,
                      struct error *why) MUST_USE;

/* The part of a line that a resumed run needs.  It points into the tree that it was read from. */
enum journal_line_kind {
    JOURNAL_OTHER,
    JOURNAL_RUN,
    JOURNAL_QUERY,
    JOURNAL_ENERGY,
    JOURNAL_GRADE,
    JOURNAL_END
};
struct journal_line {
    enum journal_line_kind kind;
    const char *key;      /* of the query; NULL: none */
    double started_at;    /* of a run line */
    bool completed;       /* of a query line */
    bool settled, judged; /* of an energy line: it has the energy of the query, of its judge */
    struct energy energy; /* of the query */
    const struct jv
        *attempt; /* failed before it; journal_line_attempt returns one after the other */
};
enum journal_line_kind journal_line_kind(const struct jv *tree);
void journal_line_read(const struct jv *tree, struct journal_line *out);
bool journal_line_attempt(struct journal_line *line, struct energy *out); /* false: no more */
void journal_end_read(const struct jv *tree, struct journal_end *out);

/* The same, with each query's later lines merged into it: take gets one complete record per query, in the order of the
 * query lines, however far apart its lines are.  A query without an energy line is returned without one. If a key
 * occurs twice (a failed query that a resumed run sent again), the last one is valid, with the lines of the start that
 * wrote it and of later ones.  Memory: one record, and 16 bytes per line. */
enum err journal_records(const char *path, journal_take *take, void *context, uint64_t *damaged,
                         struct error *why) MUST_USE;

/* The same in two steps, for several passes over a journal that does not change meanwhile: it is indexed once. */
struct journal_index;
enum err journal_index_new(struct journal_index **out, const char *path, struct error *why)
    MUST_USE;
enum err journal_index_read(struct journal_index *index, journal_take *take, void *context,
                            uint64_t *damaged, struct error *why) MUST_USE;
void journal_index_free(struct journal_index *index);

/* The first line, with the facts of the run: a tree that the caller frees; NULL if there is none. */
struct jv *journal_header(const char *path);

/* Facts of the run in the first line, if there is one. */
struct journal_facts {
    enum run_kind kind; /* RUN_KIND_PROFILE if it has none */
    double format;      /* larger than JOURNAL_FORMAT if written by a later version; UNKNOWN */
    double started_at;  /* for the first time, in seconds since 1970; UNKNOWN */
    struct run_repeat repeat; /* group "" if it has none */
};
struct journal_facts journal_facts(const char *path);

/* Number, from 1, of the first line that readers skip; 0: none. */
uint64_t journal_first_damaged(const char *path);

/* Wall-clock start of each start of a run: origin of the times of its spans and samples. */
struct journal_starts {
    int64_t *zero_ns; /* of start i + 1; 0: unknown */
    size_t count, capacity;
};

/* Empty, without an error, if there is no journal. */
enum err journal_starts_read(const char *directory, struct journal_starts *out, struct error *why)
    MUST_USE;
void journal_starts_release(struct journal_starts *starts);

/* Progress of a run that is being written.  Zero at first; each call reads only new lines. */
struct run_progress {
    long long read;        /* bytes read so far */
    uint64_t done, failed; /* queries, including failed ones */
    double started_at;     /* of the last start, in seconds since 1970; 0: unknown */
    uint64_t before;       /* completed by earlier starts */
    double total;          /* total number of queries; 0: unknown */
};
enum err run_progress_read(const char *directory, struct run_progress *progress, struct error *why)
    MUST_USE;

/* ---- the records of a run directory, from its journal, or from Arrow files if it has none ---- */

struct run_records {
    const char *directory;
    struct journal_index *index; /* NULL: Arrow files */
    struct run_shards shards;
    uint64_t damaged;       /* lines of the journal skipped by the last pass */
    uint64_t first_damaged; /* number of the first one, from 1 */
    double format;          /* of the journal; UNKNOWN without one */
};

/* run_records_close frees what it opened.  ERR_NOT_FOUND: no such directory, or not a run. */
enum err run_records_open(const char *directory, struct run_records *out, struct error *why)
    MUST_USE;
void run_records_close(struct run_records *records);

/* May be called several times.  Stops at the first error of take, and returns it. */
enum err run_records_read(struct run_records *records, journal_take *take, void *context,
                          struct error *why) MUST_USE;

/* Appends the bytes of the Arrow file of a run that has only one, to send them as they are. */
enum err run_records_arrow(const char *directory, size_t limit, struct text *out, struct error *why)
    MUST_USE;

#endif
