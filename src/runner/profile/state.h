/* The state of one profile, by phase; phases.h has the functions.  Internal to this folder: profile.c creates it, setup.c
 * fills it, and the threads of worker.c and judging.c share `shared`.  It is owned by the result of
 * the run, whose summary points into it. */
#ifndef IPW_RUNNER_PROFILE_STATE_H
#define IPW_RUNNER_PROFILE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "attribute/share.h"
#include "clients/client.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/efficiency.h"
#include "rundir/journal.h"
#include "rundir/traces.h"
#include "runner/host_report.h"
#include "runner/profile/profile.h"
#include "runner/profile/resume.h"
#include "runner/profile/supply.h"
#include "runner/samples_log.h"

struct prices;
struct profile;
struct proxied;

/* Facts of setup.c, constant while requests are in flight. */
struct profile_setup {
    struct efficiency_inputs facts; /* of the model and the GPUs; other fields are unknown here */
    struct prices *prices;          /* NULL without a price file */
    struct tariff tariff;           /* from the price file and the options */
    const struct client_driver *client_driver;
    struct client_config client_config;
    struct client keeper;    /* open during the run, so that the model is loaded once; or empty */
    char base_url[512];      /* as used by the client */
    struct text client_info; /* information from the service: one JSON object */
    char dataset_name[96];
    struct client_windows windows; /* of a text that the client splits itself; empty: none */
    char dataset_hash[24];         /* "" if there is none */
};

/* The run directory and its open files. */
struct profile_files {
    char *directory, *journal_path, *spans_path, *traces_path, *samples_path; /* owned */
    int lock_fd;                                                              /* -1: not held */
    bool has_files;
    struct resume resume;    /* state of earlier starts; zero for a new run */
    struct journal journal;  /* records.jsonl */
    struct journal spans;    /* spans.jsonl */
    struct journal traces;   /* traces.jsonl, for agents */
    struct text energy_line; /* the main thread's, of the last energy that was recorded */
    struct samples_log samples;
    enum err samples_err; /* why samples are missing */
    size_t energy_space;  /* bytes reserved for an energy line */
    bool unsettled;       /* an energy line could not be written */
};

/* Shared by the threads while queries run. */
struct profile_shared {
    struct supply supply;
    bool has_supply;
    struct sharing *sharing;
    struct trace_recorder *recorder; /* for an agent's events; or NULL */
    atomic_bool stop;                /* start no new queries */
    atomic_bool cancel;              /* abort queries in flight */
    atomic_bool has_other_currency;  /* costs that agents reported were left out (span_cost.h) */
    atomic_uint_fast64_t done, failed, unread, output_tokens;
    atomic_uint_fast64_t sent;         /* attempts, including aborted ones */
    atomic_uint_fast64_t next_request; /* id of the next request for attribution */
    atomic_uint_fast64_t unrecorded;   /* requests without a record: proxied.c */
    atomic_uint_fast64_t unknown;      /* inference at endpoints that are not recorded: proxied.c */
    atomic_uint working;               /* threads that have not ended */
    atomic_uint reading;               /* threads waiting for the dataset */
    pthread_mutex_t lock;              /* guards the following fields */
    enum err err; /* first error that ends the run: disk full, corrupt dataset */
    struct error why;
    char unknown_path[96]; /* the first one of `unknown`; "" */
};

/* The main thread's loop: progress, signals and samples. */
struct profile_loop_state {
    /* Called often while requests are in flight; NULL: nothing to do. */
    void (*tick)(struct profile *profile);
    const char *phase;
    int64_t phase_total; /* -1: unknown */
    nanos phase_began;
    double phase_tokens; /* output tokens at its start */
    unsigned signals;
    nanos stuck_since; /* since when a stopped run waits only for the dataset; 0: it does not */
    bool writes_samples;
    nanos samples_at; /* time of the last write of samples */
};

/* The energy of this start, settled by the main thread. */
struct profile_settling {
    sharing_take *take_share;       /* journals the energy of a request */
    nanos settled_at;               /* time of the last settling */
    nanos settle_cost;              /* its duration */
    double watts, joules_per_token; /* at that time */
    struct run_energy spent;        /* by this start */
    double unknown_joules;          /* of `unknown`, settled so far */
    struct ledger ledger;           /* of this start, while queries ran */
    bool has_ledger;
};

/* Other data that the summary of the run refers to. */
struct profile_report {
    struct run_energy total; /* of all starts */
    struct jv *dataset_params, *client_params, *request_params;
    char judge_url[512];
    char failure_reason[200], tokens_note[200];
    char ungraded_reason[200], unread_reason[200];
    struct traces agent_traces;
};

struct profile {
    const struct profile_options *options;
    const struct host_report *host;
    struct session *session;
    struct profile_result *result;
    double cpu_s_before; /* CPU time of this process before the run */

    struct conditions conditions;
    struct baseline idle;
    bool has_idle;
    bool abandoned; /* threads left behind by an interruption still use this struct */
    unsigned start; /* 1 for the first start in this directory, 2 for the first resumed one ... */
    nanos zero;     /* origin of times in spans and samples (monotonic) */
    nanos zero_wall;
    nanos began; /* earlier samples belong to another run of this session */
    struct run_repeat repeat;
    struct proxied *proxied; /* if a proxy receives the requests; else NULL */

    struct profile_setup setup;
    struct profile_files files;
    struct profile_shared shared;
    struct profile_loop_state loop;
    struct profile_settling settling;
    struct profile_report report;
};

#endif
