/* Where a run's files go: its directory, made or continued, and held while it writes. */
#ifndef IPW_RUNNER_PROFILE_PLACE_H
#define IPW_RUNNER_PROFILE_PLACE_H

#include "core/err.h"
#include "runner/profile/resume.h"

struct profile_options;

struct place {
    char directory[512];
    char journal[600], spans[600], samples[600];
    int lock;             /* -1: not held */
    struct resume resume; /* zero for a new run */
};

/* Decides by options->existing what becomes of a run that stands there.  After success the directory
 * exists, is ours and is locked. */
enum err place_take(struct place *place, const struct profile_options *options,
                    const char *hardware, const char *dataset_name, struct error *why) MUST_USE;
/* Nothing was written: a directory that holds nothing is removed. */
void place_give_up(struct place *place);
void place_release(struct place *place);

#endif
