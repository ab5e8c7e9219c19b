/* The conditions of a measurement: what other processes used meanwhile, whether idle power was measured on an idle
 * machine and stayed the same, temperatures, clocks and throttling.  Findings say which of it may have changed the
 * figures (docs/metrics.md, "Background load").  Nothing is subtracted from any energy.
 *
 * Life: conditions_init, conditions_serve where a server does the work, conditions_idle; conditions_begin,
 * conditions_stop and conditions_take for each measured window; conditions_idle_after, conditions_conclude.  Plain data
 * that borrows the session. */
#ifndef IPW_ATTRIBUTE_CONDITIONS_H
#define IPW_ATTRIBUTE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/ledger.h"
#include "core/err.h"
#include "port/proc_tree.h"
#include "rundir/summary.h"

struct session;

/* CPU time at one moment, s; UNKNOWN where it cannot be read. */
struct conditions_mark {
    nanos t;
    double host_s, own_s; /* busy time of all CPUs; of what is measured, with ipw */
};

/* CPU time between two moments. */
struct conditions_use {
    double seconds, host_s, own_s;
    double background,
        plus_minus; /* CPUs that other processes kept busy; UNKNOWN where a part is */
};

struct conditions {
    struct session *session;
    int servers[PROC_LISTENERS_MAX]; /* processes of a server on this machine */
    size_t server_count;
    bool is_inside;   /* the server started ipw: its processes include ours */
    bool is_hidden;   /* a server does the work, but its processes cannot be seen */
    bool has_orphans; /* processes that we started run on and may not have been waited for */
    struct conditions_mark begin;
    struct conditions_use use;             /* between begin and stop */
    double error_s;                        /* of the CPU times of all windows */
    double joules;                         /* of the measured windows */
    bool has_idle;                         /* idle power was measured, and accepted */
    char refused[120], refused_after[120]; /* why it was not; nor again at the end */
    char gpu_unknown[120]; /* why the GPU load of other processes is; "" where it is known */
    struct summary_conditions figures; /* complete after conditions_conclude */
};

/* What is measured is this process, with the children that it starts. */
void conditions_init(struct conditions *conditions, struct session *session);

/* A server at this address does the work; NULL: it is in this process after all. */
void conditions_serve(struct conditions *conditions, const char *base_url);

/* Idle power, over `idle_s` seconds.  Where other processes were busy it is measured again, and refused after the third
 * time: `out` is then empty and has_idle false, which is no error.  ERR_INTERRUPTED, with the signal's number, when one
 * came.  The caller releases *out with baseline_release. */
enum err conditions_idle(struct conditions *conditions, double idle_s, struct baseline *out,
                         int *signal_number) MUST_USE;

/* Is the machine there for this measurement alone?  Over `length_s` seconds, before anything is asked of it: ERR_BUSY, and the
 * reason, when another process is on a GPU, a GPU was used for more than 5 % of the time or the CPUs by others for more
 * than 10 %.  What cannot be seen is not found.  The conditions are of no use afterwards. */
enum err conditions_dedicated(struct conditions *c, double length_s, struct error *why) MUST_USE;

/* Around a window; conditions_stop right at its end. */
void conditions_begin(struct conditions *conditions);
void conditions_stop(struct conditions *conditions);

/* Takes that window into the figures.  `ledger`: of the same time, with idle energies where they are known. */
void conditions_take(struct conditions *conditions, const struct ledger *ledger);

/* For whoever measures idle power otherwise: has_idle, and a baseline in *out, if the machine was idle in that window.
 * What *out held before is released. */
enum err conditions_judge_idle(struct conditions *conditions, const struct ledger *ledger,
                               struct baseline *out) MUST_USE;

/* Idle power again, for a second at most; nothing without has_idle. */
void conditions_idle_after(struct conditions *conditions, double idle_s);

/* Draws the findings. */
void conditions_conclude(struct conditions *conditions);

#endif
