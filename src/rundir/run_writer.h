/* Writing the directory of a measurement: `ipw run`, `ipw layers`, and `ipw sweep`, which may be resumed.  (`ipw
 * profile` writes its own while it runs.)  Needs no optional library.
 *
 * Ownership: the caller owns the struct; run_writer_close frees what it holds.  An unfinished directory is kept: a run
 * without a summary. */
#ifndef IPW_RUNDIR_RUN_WRITER_H
#define IPW_RUNDIR_RUN_WRITER_H

#include "core/err.h"
#include "rundir/journal.h"

struct record;
struct span_line;
struct summary;
struct text;

struct run_writer {
    char *directory;
    char subject[512];
    int lock_fd;
    struct journal records, spans;
};

/* Creates DIR/<kind>_<hardware>_<subject>_<UTC time>; `parent` NULL: runs. */
enum err run_writer_open(struct run_writer *writer, const char *parent, const char *subject,
                         const struct journal_header *header, struct error *why) MUST_USE;

/* Continues the run in a directory: a new start, whose header has its number. */
enum err run_writer_reopen(struct run_writer *writer, const char *directory, const char *subject,
                           const struct journal_header *header, struct error *why) MUST_USE;

/* Requires record->key; the record is stored under the subject, as others are under their model. */
enum err run_writer_add(struct run_writer *writer, const struct record *record, struct error *why)
    MUST_USE;
enum err run_writer_add_span(struct run_writer *writer, const struct span_line *span,
                             struct error *why) MUST_USE;

/* Writes summary.json, and the run's row in the index of its parent if this build has one. */
enum err run_writer_finish(struct run_writer *writer, const struct summary *summary,
                           struct error *why) MUST_USE;
void run_writer_close(struct run_writer *writer);

/* ---- merging parts of a run ---- */

/* Merges the files of all parts, given in any order, into a new directory: each start of a part becomes a start of the
 * run, with its spans and samples, and the journal is marked so that records are returned in the order of their keys.
 * The caller writes the summary and the stores.  ERR_USAGE: the directories are not all parts of one run, once each. */
enum err run_parts_merge(const char *const *directories, size_t count, const char *to,
                         struct error *why) MUST_USE;

#endif
