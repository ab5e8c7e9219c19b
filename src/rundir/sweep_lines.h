/* Lines of the journal of a sweep: writing them, and applying them to a struct sweep in the order in which they were
 * written.  Private to the sweep in rundir/.
 *
 * Ownership: as in rundir/sweep.h; lines are appended to the caller's text. */
#ifndef IPW_RUNDIR_SWEEP_LINES_H
#define IPW_RUNDIR_SWEEP_LINES_H

#include "core/err.h"
#include "rundir/sweep.h"

struct jv;
struct text;

/* The settings in the header of the journal; the caller frees them. */
struct jv *sweep_settings_value(const struct sweep *sweep);

void sweep_put_attempt(const struct sweep *sweep, const struct sweep_attempt *attempt,
                       struct text *out);
void sweep_put_added(const char *const *values, size_t count, struct text *out);
void sweep_put_retry(const struct sweep_attempt *attempt, struct text *out);
void sweep_put_repeats(unsigned repeats, struct text *out);
void sweep_put_end(struct text *out);

/* Appends a line to the journal, and syncs it. */
enum err sweep_append(struct run_writer *writer, const struct text *line, struct error *why)
    MUST_USE;

/* Applies a line.  ERR_BAD_VALUE, with the reason; lines of other kinds are ignored. */
enum err sweep_take_line(struct sweep *sweep, const struct jv *line, struct error *why) MUST_USE;
/* One that is not an attempt at a point of this sweep is ignored. */
enum err sweep_take_attempt(struct sweep *sweep, const struct jv *line, struct error *why) MUST_USE;

/* Takes ownership of the attempt's strings; replaces an earlier try of this repeat. */
void sweep_keep_attempt(struct sweep *sweep, const struct sweep_attempt *attempt);
void sweep_drop_attempt(struct sweep *sweep, size_t i);
void sweep_set_repeats(struct sweep *sweep, unsigned repeats);

#endif
