/* A look at a line without reading it all: what kind it is, and of which key.  The answer points into
 * the line. */
#ifndef IPW_RUNDIR_JOURNAL_SKIM_H
#define IPW_RUNDIR_JOURNAL_SKIM_H

#include <stdbool.h>
#include <stddef.h>

struct journal_line;

struct skimmed {
    const char *kind, *key; /* not terminated */
    size_t kind_length, key_length;
};

/* True for a line that begins as ours do, {"kind":"...","key":"...", and whose strings and brackets are
 * closed at its end and not before.  Whether all between is JSON shows when it is read; any other line
 * must be read to be known. */
bool journal_skim(const struct journal_line *line, struct skimmed *out);

#endif
