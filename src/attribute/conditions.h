/* The conditions of a measurement: load of other processes, whether idle power was measured on an idle machine and
 * stayed the same, temperatures, clocks and throttling.  Findings report what may have changed the figures
 * (docs/metrics.md, "Background load").  Nothing is subtracted from any energy.
 *
 * Lifecycle: conditions_init, conditions_serve where a server does the work, conditions_idle; conditions_begin,
 * conditions_stop and conditions_take for each measured window; conditions_idle_after, conditions_conclude.  Plain
 * data that borrows the session. */
#ifndef IPW_ATTRIBUTE_CONDITIONS_H
#define IPW_ATTRIBUTE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/ledger.h"
#include "core/err.h"
#include "port/proc_tree.h"
#include "rundir/summary.h"

struct session;

/* CPU time at one moment, s; UNKNOWN where it cannot be read. */
struct conditions_mark {
    nanos t;
    double host_s, own_s; /* busy time of all CPUs; of the measured processes, including ipw */
};

/* CPU time between two moments. */
struct conditions_use {
    double seconds, host_s, own_s;
    double background,
        plus_minus; /* CPUs that other processes kept busy; UNKNOWN where a part is */
};

struct conditions {
    struct session *session;
    int servers[PROC_LISTENERS_MAX]; /* processes of a local server */
    size_t server_count;
    bool is_inside;   /* ipw is a descendant of the server: its CPU time includes ours */
    bool is_hidden;   /* a server does the work, but its processes are not visible */
    bool has_orphans; /* processes that we started may still run and not have been reaped */
    struct conditions_mark begin;
    struct conditions_use use;             /* between begin and stop */
    double error_s;                        /* error of the CPU times of all windows */
    double joules;                         /* energy of the measured windows */
    uint64_t unrecorded;                   /* requests that took a share without a record */
    double unrecorded_share;               /* of the energy of all requests, or of their number */
    char unrecorded_path[96];              /* of the first one */
    bool has_idle;                         /* idle power was measured, and accepted */
    char refused[120], refused_after[120]; /* why it was not accepted; the same for the end */
    char
        gpu_unknown[120]; /* why the GPU load of other processes is unknown; "" where it is known */
    struct summary_conditions figures; /* complete after conditions_conclude */
};

/* The measured processes are this one and its children. */
void conditions_init(struct conditions *conditions, struct session *session);

/* A server at this address does the work; NULL: it runs in this process. */
void conditions_serve(struct conditions *conditions, const char *base_url);

/* Measures idle power over `idle_s` seconds.  It is measured again while other processes are busy, and rejected
 * after the third attempt: `out` is then empty and has_idle false, which is not an error.  ERR_INTERRUPTED, with the
 * signal's number, on a signal.  The caller releases *out with baseline_release. */
enum err conditions_idle(struct conditions *conditions, double idle_s, struct baseline *out,
                         int *signal_number) MUST_USE;

/* Whether the hardware is dedicated to this measurement, observed over `length_s` seconds before any request:
 * ERR_BUSY with the reason when another process is on a GPU, a GPU was used for more than 5 % of the time or the
 * CPUs by others for more than 10 %.  Only what is visible can be detected.  The conditions cannot be used
 * afterwards. */
enum err conditions_dedicated(struct conditions *c, double length_s, struct error *why) MUST_USE;

/* Around a window; conditions_stop right at its end. */
void conditions_begin(struct conditions *conditions);
void conditions_stop(struct conditions *conditions);

/* Adds that window to the figures.  `ledger`: of the same window, with idle energies where known. */
void conditions_take(struct conditions *conditions, const struct ledger *ledger);

/* For callers that measure idle power themselves: sets has_idle and the baseline *out if the machine was idle in
 * that window.  The previous *out is released. */
void conditions_check_idle(struct conditions *conditions, const struct ledger *ledger,
                           struct baseline *out);

/* The same inside a measured window: a mark at the start of the idle time, and the check at its end. */
void conditions_mark(const struct conditions *conditions, struct conditions_mark *out);
void conditions_check_idle_since(struct conditions *conditions, const struct conditions_mark *mark,
                                 const struct ledger *ledger, struct baseline *out);

/* There was no idle time: says so among the findings. */
void conditions_refuse_idle(struct conditions *conditions, const char *why);

/* Measures idle power again, for a second at most; does nothing without has_idle. */
void conditions_idle_after(struct conditions *conditions, double idle_s);

/* For measurements that alternate in the same time: takes over the idle power that `from` has measured at the end. */
void conditions_share_idle_after(const struct conditions *from, struct conditions *to);

/* Derives the findings. */
void conditions_conclude(struct conditions *conditions);

#endif
