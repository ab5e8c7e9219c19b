/* What `ipw sweep` is to measure.  The options borrow the texts of the command line; what is planned is the
 * sweep's, which sweep_release frees. */
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
    bool paired, profile, control, restore, dry_run, json, quiet;
    unsigned repeats, most_repeats, warmups, reruns;
    double until_pct, cooldown_s, cooldown_c, cooldown_min_c, cooldown_limit_s, seed, least_mhz;
    const char *output_dir, *resume, *list, *mode, *objective, *db;
    unsigned probes;
    bool retry_failed;
    unsigned point;
    struct slurm_command slurm;
};

bool sweep_plan_mode_is(const struct sweep_options *options, const char *mode);
/* Fills a zeroed sweep: its points, the command, and how often and in which way each is measured. */
enum err sweep_plan_make(struct sweep_options *options, struct sweep *sweep, const char **words,
                         size_t count, struct error *why) MUST_USE;
/* In the place of the command that it has. */
enum err sweep_plan_command(struct sweep *sweep, const char **words, size_t count) MUST_USE;
/* A secret of the command is not in the journal: ERR_USAGE until it is given again. */
enum err sweep_plan_check_secrets(const struct sweep *sweep, struct error *why) MUST_USE;

#endif
