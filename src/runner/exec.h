/* Measuring a command, or two that alternate: idle power first if requested, then warm-ups, then runs, each from its
 * start to its exit.  exec_measure fills results that exec_result_release frees; after an error or an interruption they
 * hold the completed runs. */
#ifndef IPW_RUNNER_EXEC_H
#define IPW_RUNNER_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "core/err.h"
#include "core/units.h"
#include "port/proc.h"
#include "runner/await.h"

struct host_report;
struct result;
struct session;
struct tariff;

enum exec_phase { EXEC_IDLE, EXEC_WARMUP, EXEC_RUN };

struct exec_result;

struct exec_options {
    char *const *argv; /* NULL-terminated */
    /* Another command, which alternates with it: A B, B A, A B ..., so that neither is always first; NULL: none. */
    char *const *against;
    unsigned repeats; /* at least 1; of each command */
    unsigned warmups;
    double idle_s;       /* length of the idle baseline; 0 for none */
    bool wait_all;       /* a run ends when every process it started has ended */
    bool ignore_failure; /* continue after a run that fails */
    void (*progress)(enum exec_phase phase, unsigned number, unsigned of, double idle_s);
    struct await await; /* for the command's end, after a signal */
    /* With `against`, called after each pair of completed runs: true ends the measurement.  May be NULL. */
    bool (*is_decided)(void *context, const struct exec_result *results);
    void *context;
};

struct exec_run {
    nanos from, to;
    double wall_s;
    struct child_end end;
    unsigned left_running; /* processes still running when it exited */
    struct ledger ledger;
};

struct exec_result {
    struct exec_run *runs;
    size_t count;
    int exit_code; /* of the first run that failed, else 0; 126/127: it could not be started */
    int signal;    /* that interrupted the measurement; 0: none */
    struct conditions conditions;
    bool has_idle; /* idle power was measured on an idle machine */
    struct baseline idle;
    struct ledger mean; /* mean over the runs; empty if count is 0 */
    nanos started;      /* earlier samples belong to another run of this session */
    nanos started_wall; /* since the epoch */
};

/* Fills out[0], and with `against` out[1] for that command; both have the same idle baseline.  The calling thread must
 * have called proc_block_signals before the session was opened. */
enum err exec_measure(struct session *session, const struct exec_options *options,
                      struct exec_result *out, struct error *why) MUST_USE;

/* Derives the means and the findings of the runs so far, also while others follow. */
void exec_conclude(struct exec_result *result);
void exec_result_release(struct exec_result *result);

/* ---- the result of `ipw run`: exec_result.c ---- */

struct run_report {
    char *const *argv;
    const struct exec_result *result;
    const struct host_report *host;
    struct own_cost own;
    unsigned long reads;
    const struct tariff *tariff; /* for cost and emissions; NULL: none */
};

/* The members of the open group; secrets in the command are hidden. */
void exec_result_put(const struct run_report *report, struct result *out);

#endif
