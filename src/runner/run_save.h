/* Saves a measurement of `ipw run` or `ipw layers` as a run directory: one record per repetition or window, the
 * samples, and a summary.  Borrows everything. */
#ifndef IPW_RUNNER_RUN_SAVE_H
#define IPW_RUNNER_RUN_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/proc.h"
#include "rundir/run_path.h"

struct exec_result;
struct host_report;
struct layers_model;
struct layers_result;
struct tariff;
struct session;

struct run_save {
    const char *parent; /* parent of the run directory; NULL: runs */
    char *const *argv;  /* the command of `ipw run` */
    struct session *session;
    const struct host_report *host;
    struct own_cost own;
    struct run_repeat repeat;    /* zeros: a single run */
    const struct tariff *tariff; /* NULL: none */
    bool without_samples;        /* only what a comparison reads */
};

/* Needs no optional library.  *directory: its path, or NULL; the caller frees it. */
enum err run_save(const struct run_save *save, const struct exec_result *result, char **directory,
                  struct error *why) MUST_USE;

enum err run_save_layers(const struct run_save *save, const struct layers_model *model,
                         const struct layers_result *result, char **directory, struct error *why)
    MUST_USE;

#endif
