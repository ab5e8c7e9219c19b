/* What a sweep would measure, and in which order: `ipw sweep --dry-run`.  One table of fields serves its output, in every
 * format, and its reading: a job array has the plan made on a node, for the clocks of its GPU.
 *
 * Ownership: a struct sweep_dry_run owns everything in it; sweep_dry_run_release frees it. */
#ifndef IPW_RUNNER_SWEEP_DRY_RUN_H
#define IPW_RUNNER_SWEEP_DRY_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct jv;
struct result;
struct sweep;

struct dry_run_knob {
    char *name, *unit; /* unit: NULL for knobs of the command alone */
};

struct dry_run_setting {
    size_t number; /* from 1 */
    char *setting; /* "threads=4, batch=8" */
    char **values; /* of each knob */
    size_t value_count;
    char *command; /* quoted for a shell */
    double expected_s;
};

/* Every setting that is still to be measured for the n-th time, in order. */
struct dry_run_round {
    unsigned repeat;
    double *settings; /* their numbers */
    size_t count, capacity;
};

struct sweep_dry_run {
    unsigned seed;
    size_t attempts;    /* to be run, without repeats until a precision is reached */
    bool sets_gpu;      /* sets its clocks or power limit */
    char *uncontrolled; /* why it does not, though it was to */
    double expected_s;
    char *expected_from; /* the earlier runs that took so long; NULL: this sweep, or none */
    char **not_expected; /* what is not included */
    size_t not_expected_count;
    double pauses_s; /* of all attempts, between them and for idle power; UNKNOWN: none */
    struct dry_run_knob *knobs;
    size_t knob_count;
    struct dry_run_setting *settings;
    size_t setting_count;
    struct dry_run_round *rounds;
    size_t round_count, round_capacity;
};

/* parent: the folder with earlier runs; pause_s: per attempt, besides the cool-down. */
void sweep_dry_run_make(struct sweep *sweep, const char *parent, double pause_s,
                        struct sweep_dry_run *out);
void sweep_dry_run_release(struct sweep_dry_run *plan);

void sweep_dry_run_fill(const struct sweep_dry_run *plan, struct result *result);
/* ERR_BAD_VALUE, with the reason, for any other tree. */
enum err sweep_dry_run_read(const struct jv *tree, struct sweep_dry_run *out, struct error *why)
    MUST_USE;

#endif
