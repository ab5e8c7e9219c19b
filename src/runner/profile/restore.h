/* After a kill: the energies that a start had not attributed yet, attributed from what it left on disk
 * (its line in the journal, its spans, its samples) by the same rules, and written into the journal as
 * the start itself would have written them, with its account.  What the disk does not tell stays null,
 * and says why.  It may be broken off, or killed, at any moment and be done again. */
#ifndef IPW_RUNNER_PROFILE_RESTORE_H
#define IPW_RUNNER_PROFILE_RESTORE_H

#include <stdbool.h>

#include "core/err.h"

struct place;
struct profile_context;

/* Of the last start in the journal; call it before another start has written a line.  go_on is asked now
 * and then; false breaks it off with ERR_INTERRUPTED.  *note is what could not be restored, and why;
 * "" when all could. */
enum err restore_last_start(const struct profile_context *context, const struct place *place,
                            bool (*go_on)(void *), void *go_on_context, struct error *note,
                            struct error *why) MUST_USE;

#endif
