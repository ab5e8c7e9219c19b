/* The contract of an analysis: something that can be said of a run's table,
 * of what `ipw layers` measured, or of a sweep.
 *
 * A driver is one .c file that exports one `const struct analysis_driver` and one line in analyses.def:
 * see docs/adding-an-analysis.md.  It adds two groups to its result, `summary` and `data`, says what they come to
 * (result_say) and what a reader must know (result_warn).  What cannot be said is ERR_NO_DATA with what is missing;
 * nothing is invented.
 *
 * Ownership: the caller owns every struct here; a driver keeps nothing. */
#ifndef IPW_ANALYSIS_ANALYSIS_H
#define IPW_ANALYSIS_ANALYSIS_H

#include <stdint.h>

#include "analysis/result.h"
#include "rundir/run_table.h"
#include "core/err.h"
#include "core/params.h"

struct layers_results;

/* What there is to look at; any of them may be missing. */
struct analysis_input {
    const struct run_table *table;
    const struct layers_results *layers;
    const char *sweep;  /* its directory */
    const char *traces; /* the directory that has an agent's */
};

struct analysis {
    const struct run_table *table;       /* NULL for one of layers; of traces it may be */
    const struct layers_results *layers; /* NULL for one of a run */
    const char *sweep;                   /* its directory; NULL for any other */
    const char *traces;                  /* likewise, of an agent's run */
    const struct params *params;         /* checked against the driver's list */
    struct result *result;               /* where summary and data go, in this order */
};

struct analysis_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params; /* NULL: none */
    struct run_wanted needs;         /* columns; RUN_WANT(...) | ... */
    size_t texts;                    /* of so many queries at least: run_table_load_texts */
    bool of_failures_too;            /* else a run of which all failed is not given to it */
    bool of_layers;                  /* of measured layers, not of a run */
    bool of_sweep;                   /* of the settings of a sweep */
    bool of_traces;                  /* of an agent's traces */
    const struct result_phrase
        *finding; /* what it comes to, in a line or two; the last has no path */

    /* Adds the groups "summary" and then "data"; ERR_NO_DATA, before anything is added, when the run has
     * not what it takes. */
    enum err (*run)(struct analysis *analysis, struct error *why);
};

/* NULL-terminated, in the order of analyses.def. */
extern const struct analysis_driver *const ANALYSIS_DRIVERS[];

/* NULL, and the nearest name in *why, when there is none of that name. */
const struct analysis_driver *analysis_driver_find(const char *name, struct error *why);

/* The whole result in *out, the caller's to release; returns its err.  Of an analysis without enough data it is
 * ERR_NO_DATA, and the summary is {"not_enough_data": what is missing}. */
enum err analysis_run(const struct analysis_driver *driver, const struct analysis_input *input,
                      const struct params *params, struct result *out);

/* The same for several, results[0..count) in their order; each has its err. */
void analysis_run_all(const struct analysis_driver *const *drivers, size_t count,
                      const struct analysis_input *input, const struct params *params,
                      struct result *results);

#endif
