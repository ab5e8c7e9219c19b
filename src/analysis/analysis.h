/* The contract of an analysis: figures derived from a run's table, from the results of `ipw layers`, or from a sweep.
 *
 * A driver is one .c file that exports one `const struct analysis_driver` and one line in analyses.def: see
 * docs/adding-an-analysis.md.  It adds two groups to its result, `summary` and `data`, a finding (result_say) and
 * warnings (result_warn).  Figures that cannot be computed are ERR_NO_DATA with what is missing; nothing is guessed.
 *
 * Ownership: the caller owns every struct here; a driver keeps nothing. */
#ifndef IPW_ANALYSIS_ANALYSIS_H
#define IPW_ANALYSIS_ANALYSIS_H

#include "core/err.h"
#include "core/params.h"
#include "core/result.h"
#include "rundir/run_table.h"

struct layers_results;

/* Available input; any of it may be missing. */
struct analysis_input {
    const struct run_table *table;
    const struct layers_results *layers;
    const char *sweep;  /* its directory */
    const char *traces; /* directory with an agent's traces */
};

struct analysis {
    const struct run_table *table; /* NULL for an analysis of layers; may be NULL for traces */
    const struct layers_results *layers; /* NULL for an analysis of a run */
    const char *sweep;                   /* its directory; NULL for any other */
    const char *traces;                  /* directory of an agent's run; NULL for any other */
    const struct params *params;         /* checked against the driver's list */
    struct result *result;               /* receives summary and data, in this order */
};

struct analysis_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params; /* NULL: none */
    struct run_wanted needs;         /* columns; RUN_WANT(...) | ... */
    size_t texts;        /* minimum number of queries with texts: run_table_load_texts */
    bool accepts_failed; /* otherwise it is not called for a run in which all queries failed */
    bool reads_layers;   /* analyzes measured layers, not a run */
    bool reads_sweep;    /* analyzes the settings of a sweep */
    bool reads_traces;   /* analyzes an agent's traces */
    const struct result_phrase *finding; /* the finding in a line or two; the last has no path */

    /* Adds the groups "summary" and then "data"; ERR_NO_DATA, before anything is added, if the run lacks the required
     * data. */
    enum err (*run)(struct analysis *analysis, struct error *why);
};

/* NULL-terminated, in the order of analyses.def. */
extern const struct analysis_driver *const ANALYSIS_DRIVERS[];

/* NULL if the name is unknown, with the nearest name in *why. */
const struct analysis_driver *analysis_driver_find(const char *name, struct error *why);

/* Around what an analysis adds: its name, and its warnings as a list at the end. */
void analysis_begin(struct result *result, const char *name, const struct result_phrase *finding);
void analysis_end(struct result *result);

/* The complete result in *out, released by the caller; returns its err.  Without enough data it is ERR_NO_DATA, and the
 * summary is {"not_enough_data": what is missing}. */
enum err analysis_run(const struct analysis_driver *driver, const struct analysis_input *input,
                      const struct params *params, struct result *out);

/* Of the settings of a sweep, by default parameters. */
enum err analysis_run_sweep(const char *directory, struct result *out);

/* The same for several, results[0..count) in their order; each has its err. */
void analysis_run_all(const struct analysis_driver *const *drivers, size_t count,
                      const struct analysis_input *input, const struct params *params,
                      struct result *results);

#endif
