/* The plan of a sweep.  The options borrow the command line's strings; the plan belongs to the sweep, which
 * sweep_release frees. */
#ifndef IPW_CLI_SWEEP_PLAN_H
#define IPW_CLI_SWEEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/err.h"

struct sweep;

struct sweep_options {
    struct measure_options measure;
    struct option_list knobs;
    struct format_options format;
    const char *output; /* NULL: stdout */
    bool paired, profile, control, restore, dry_run, quiet;
    unsigned repeats, max_repeats, warmups, reruns;
    double until_pct, cooldown_s, cooldown_c, cooldown_min_c, cooldown_limit_s, seed, min_mhz;
    const char *preset, *workload; /* NULL: none */
    const char *output_dir, *resume, *list, *mode, *objective, *db;
    unsigned probes;
    bool retry_failed;
    unsigned point;
    struct slurm_command slurm;
};

bool sweep_plan_mode_is(const struct sweep_options *options, const char *mode);
/* Fills a zeroed sweep: points, command, repeats and conditions of each attempt. */
enum err sweep_plan_make(struct sweep_options *options, struct sweep *sweep, const char **words,
                         size_t count, struct error *why) MUST_USE;
/* Replaces the command of the sweep. */
void sweep_plan_command(struct sweep *sweep, const char **words, size_t count);
/* ERR_USAGE if the command contained a secret, which is not in the journal and must be given again. */
enum err sweep_plan_check_secrets(const struct sweep *sweep, struct error *why) MUST_USE;

#endif
