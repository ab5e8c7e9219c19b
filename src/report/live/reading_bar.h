/* A bar for the reading of large files, drawn over itself on a terminal once it takes longer than a
 * second.  A struct reading_bar is owned by the caller; what is written is added to *out. */
#ifndef IPW_REPORT_READING_BAR_H
#define IPW_REPORT_READING_BAR_H

#include <stdint.h>

#include "core/units.h"
#include "report/live/progress.h"

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
