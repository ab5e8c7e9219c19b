/* The settings that runs shown together make: a run, or the repeats of one setting as one row with averaged figures.
 * Nothing is kept. */
#ifndef IPW_ANALYSIS_RUN_SETTINGS_H
#define IPW_ANALYSIS_RUN_SETTINGS_H

#include <stddef.h>

#include "core/err.h"

struct compare_groups;
struct result;
struct run_figures;

/* Fills *out, zero at first, which the caller releases: "names" of the runs, by what differs between them; "family": what
 * all models share; "common", the relative error that all energies share, or null;
 * "mixed": different sensors measured them; and "settings": [{"name", "runs": [place among the runs], "hardware",
 * "queries", "concurrency", figures of struct run_point, "intervals": {"accuracy", "joules_per_query"},
 * "pareto_optimal"}].  Intervals are of 95 %, of what can differ between runs.  Every text of `groups` is one of
 * `directories`, by its address. */
enum err run_settings_result(const struct compare_groups *groups, const char *const *directories,
                             struct run_figures *runs, size_t count, struct result *out) MUST_USE;

#endif
