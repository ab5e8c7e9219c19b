/* One line that tells how far a long job is: a bar that is drawn over itself on a terminal, a plain
 * line every now and then elsewhere.  A struct progress is owned by the caller. */
#ifndef IPW_REPORT_PROGRESS_H
#define IPW_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/units.h"

struct profile_progress;
struct text;

struct progress {
    const char *command; /* before every line that is not a bar */
    bool terminal;       /* draw over the line */
    bool utf8;
    unsigned columns;
    nanos next;        /* when the next line is due */
    const char *phase; /* that was shown last */
    bool drawn;        /* a bar stands on the terminal */
};

void progress_init(struct progress *progress, const char *command, bool terminal, bool utf8,
                   unsigned columns, nanos now);

/* What to write now, if anything. */
void progress_draw(struct progress *progress, const struct profile_progress *state, nanos now,
                   struct text *out);

/* Wipes the bar. */
void progress_clear(struct progress *progress, struct text *out);

/* ---- a bar for reading large files ---- */

struct reading_bar {
    struct progress bar;
    nanos first, began; /* the first word of any file; of this one */
    uint64_t before;
    char path[256], phase[96];
};

void reading_bar_init(struct reading_bar *reading, const char *command, bool utf8,
                      unsigned columns);

/* `done` of `all` bytes; at the end of a file the bar is wiped. */
void reading_bar_tell(struct reading_bar *reading, const char *path, uint64_t done, uint64_t all,
                      nanos now, struct text *out);
void reading_bar_wipe(struct reading_bar *reading, struct text *out);

#endif
