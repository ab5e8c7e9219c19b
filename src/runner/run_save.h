/* The run directory of what `ipw run` measured: one record per repetition, the samples, and a summary. */
#ifndef IPW_RUNNER_RUN_SAVE_H
#define IPW_RUNNER_RUN_SAVE_H

#include <stddef.h>

#include "core/err.h"
#include "port/proc.h"

struct exec_result;
struct host_report;
struct session;

struct run_save {
    const char *parent; /* of the run directory; NULL: runs */
    char *const *argv;  /* the command */
    struct session *session;
    const struct host_report *host;
    struct own_cost own;
};

/* Needs no optional library.  directory: where it is. */
enum err run_save(const struct run_save *save, const struct exec_result *result, char *directory,
                  size_t size, struct error *why) MUST_USE;

#endif
