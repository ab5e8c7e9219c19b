/* Many estimates of one model: every device, format and batch that is asked for, and which of them no
 * other beats.  The graph is built once a batch.
 *
 * Ownership: points_make fills a struct that points_release takes back; the hardware is the caller's. */
#ifndef IPW_ESTIMATE_POINTS_H
#define IPW_ESTIMATE_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/outcome.h"

/* A device and how it is run. */
struct points_candidate {
    size_t device; /* index into the hardware */
    struct outcome_choice choice;
};

struct points_question {
    struct workload_question work;
    const struct hardware *hardware;
    const struct points_candidate *candidates;
    size_t candidate_count;
    const int64_t *batches; /* each with every candidate; NULL: the one of work.setting */
    size_t batch_count;
};

struct point {
    struct outcome outcome; /* without passes; points to nothing where `missing` says something */
    int64_t batch;
    size_t device;
    bool on_frontier;  /* fits, and no other costs as few joules a unit in as short a time */
    char missing[160]; /* why this device cannot do it; "": it can */
};

struct points {
    struct workload *works; /* one a batch */
    size_t work_count;
    struct point *items; /* by batch, then candidate, until points_sort */
    size_t count, able;  /* all, and those that are not missing */
};

/* Fails for the model's sake (a batch that it cannot take) and not for a device's. */
enum err points_make(const struct points_question *question, struct points *out, struct error *why)
    MUST_USE;
void points_release(struct points *points);

/* Fewest joules a unit first; what does not fit, then what is missing, at the end. */
void points_sort(struct points *points);

#endif
