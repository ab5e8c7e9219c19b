/* The state of one profile, and the functions of its phases.  Internal to this folder: profile.c creates it, setup.c
 * fills it, and the threads of worker.c and grading.c share the fields marked as shared.  It is owned by the result of
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
struct proxied;

struct profile {
    const struct profile_options *options;
    const struct host_report *host;
    struct session *session;
    struct profile_result *result;
    double cpu_s_before; /* CPU time of this process before the run */

    /* Results of setup; constant while requests are in flight. */
    struct efficiency_inputs facts; /* of the model and the GPUs; other fields are unknown here */
    struct prices *prices;          /* NULL without a price file */
    struct tariff tariff;           /* from the price file and the options */
    const struct client_driver *client_driver;
    struct client_config client_config;
    char base_url[512];      /* as used by the client */
    struct text client_info; /* information from the service: one JSON object */
    char dataset_name[96];
    struct client_windows windows; /* of a text that the client splits itself; empty: none */
    struct conditions conditions;
    struct baseline idle;
    bool has_idle;
    unsigned start; /* 1 for the first start in this directory, 2 for the first resumed one ... */
    nanos zero;     /* origin of times in spans and samples (monotonic) */
    nanos zero_wall;

    /* The run directory. */
    char directory[512];
    char journal_path[600], spans_path[600], traces_path[600], samples_path[600];
    int lock_fd; /* -1: not held */
    bool has_files;
    struct resume resume;    /* state of earlier starts; zero for a new run */
    struct journal journal;  /* records.jsonl */
    struct journal spans;    /* spans.jsonl */
    struct journal traces;   /* traces.jsonl, for agents */
    struct text energy_line; /* the main thread's, of the last energy that was recorded */
    struct samples_log samples;
    enum err samples_err; /* why samples are missing */
    nanos began;          /* earlier samples belong to another run of this session */
    struct run_repeat repeat;
    size_t energy_space; /* bytes reserved for an energy line */
    bool unsettled;      /* an energy line could not be written */

    struct proxied *proxied; /* if a proxy receives the requests; else NULL */
    /* Called often by the main thread while requests are in flight; NULL: nothing to do. */
    enum err (*tick)(struct profile *profile);

    /* Shared by the threads. */
    struct supply supply;
    bool has_supply;
    struct sharing *sharing;
    struct trace_recorder *recorder; /* for an agent's events; or NULL */
    atomic_bool stop;                /* start no new queries */
    atomic_bool cancel;              /* abort queries in flight */
    atomic_uint_fast64_t done, failed, output_tokens;
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

    /* Used by the main thread only. */
    const char *phase;
    int64_t phase_total; /* -1: unknown */
    nanos phase_began;
    double phase_tokens; /* output tokens at its start */
    unsigned signals;
    nanos stuck_since; /* since when a stopped run waits only for the dataset; 0: it does not */
    sharing_take *take_share; /* journals the energy of a request */
    bool writes_samples;
    nanos samples_at;               /* time of the last write of samples */
    nanos settled_at;               /* time of the last settling */
    nanos settle_cost;              /* its duration */
    double watts, joules_per_token; /* at that time */
    struct run_energy spent;        /* by this start */
    double unknown_joules;          /* of `unknown`, settled so far */
    struct ledger ledger;           /* of this start, while queries ran */
    bool has_ledger;
    bool abandoned; /* threads left behind by an interruption still use this struct */

    /* Other data referenced by the summary of the run. */
    struct run_energy total; /* of all starts */
    struct jv *dataset_params, *client_params, *request_params;
    char judge_url[512];
    char failure_reason[200], tokens_note[200], ungraded_reason[200];
    char dataset_hash[24]; /* "" if there is none */
    struct traces agent_traces;
};

/* The windows that replace the dataset's items; NULL: none. */
static inline const struct client_windows *profile_windows(const struct profile *profile)
{
    return profile->windows.count ? &profile->windows : NULL;
}

/* directory.c: chooses the name of the run directory, creates it or reads the state of earlier starts, and locks it;
 * sets result->was_done if nothing is left to do.  profile_close_unsettled completes the journal of a killed start,
 * before this one writes anything.  profile_close_directory unlocks it, and removes it if the run wrote nothing. */
enum err profile_open_directory(struct profile *profile, struct error *why) MUST_USE;
enum err profile_close_unsettled(struct profile *profile, struct error *why) MUST_USE;
void profile_close_directory(struct profile *profile);

/* setup.c: everything before the first query.  After an error the state holds what was opened so far. */
enum err profile_setup(struct profile *profile, struct error *why) MUST_USE;

/* proxied.c: a proxy instead of a dataset and workers.  proxied_check checks whether it can be started, before anything
 * is written, and fills base_url and client_info; call proxied_join when no thread is working any more, and free
 * profile->proxied after the last energy. */
enum err proxied_check(struct profile *profile, struct error *why) MUST_USE;
enum err proxied_start(struct profile *profile, struct error *why) MUST_USE;
/* Idle power is measured while the proxy runs; call this after the last request is settled, in case it is unknown until
 * then.  All energy is attributed again once it is known. */
enum err proxied_measure_idle_last(struct profile *profile, struct error *why) MUST_USE;
void proxied_join(struct profile *profile);
void proxied_free(struct proxied *proxied);

/* agents.c: the event recorder, and the data loaded for the summary. */
enum err agents_init(struct profile *profile, struct error *why) MUST_USE;
void agents_release(struct profile *profile);
/* Call when an agent's query has ended and its record is in the journal; takes ownership of `pending`, unless it fails.
 * Its energy is settled later: agents_take_share is true for its shares.  agents_discard: the query does not count. */
struct answer;
struct pending;
enum err agents_end(struct profile *profile, struct pending *pending, const struct answer *answer,
                    struct error *why) MUST_USE;
bool agents_take_share(struct profile *profile, const struct share *share);
void agents_discard(struct profile *profile, const char *key);
/* For the summary: the traces of all queries; what they add to a record; and a dataset of them. */
struct record;
enum err agents_load(struct profile *profile, struct error *why) MUST_USE;
enum err agents_update(struct profile *profile, const struct record *record) MUST_USE;
enum err agents_save(struct profile *profile, struct error *why) MUST_USE;

/* The command that runs the profile. */
static inline enum run_kind profile_kind(const struct profile *profile)
{
    return profile->options->proxy   ? RUN_KIND_PROXY
           : profile->options->agent ? RUN_KIND_AGENT
                                     : RUN_KIND_PROFILE;
}

/* grading.c: grades the answers that need a judge, after the queries; their energy is accounted separately.  No effect
 * if there are none. */
enum err profile_judge(struct profile *profile, struct error *why) MUST_USE;

/* summary.c: facts about the model, the machine and the prices, before a run. */
enum err profile_find_facts(struct profile *profile, struct error *why) MUST_USE;
void profile_release_facts(struct profile *profile);

/* Reads the journal, writes the summary and the stores, and fills the result. */
enum err profile_summarize(struct profile *profile, struct error *why) MUST_USE;

/* The same, with `describe` for everything that is not a figure: it is called after the figures were filled in. */
typedef enum err profile_describe(struct profile *profile, struct summary *out);
enum err profile_summarize_as(struct profile *profile, profile_describe *describe,
                              struct error *why) MUST_USE;

/* ---- settling (settle.c) ---- */

/* Attributes the energy of the machine to requests, and writes each share to the journal as soon as it is settled; at
 * the end of a start, its account.  The sharing and the ledger belong to struct profile. */

/* Starts sharing the machine's energy among requests at `from`; an earlier sharing is freed.  take is called with each
 * settled share and the profile as its context, and journals it. */
enum err settle_begin(struct profile *profile, nanos from, sharing_take *take, struct error *why)
    MUST_USE;

/* Settles the remaining requests when all have ended. */
enum err settle_rest(struct profile *profile, struct error *why) MUST_USE;

/* Writes the run line: the queries of a start begin at `from`. */
enum err settle_open_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Writes the end line, with the energy since `from`. */
enum err settle_close_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Totals of all starts. */
struct run_energy settle_totals(const struct profile *profile);

/* ---- the main thread while queries run (settle.c) ---- */

/* Keeps the first error that ends the run; no new query is started after it.  Thread-safe. */
void profile_fail(struct profile *profile, enum err err, const struct error *why);
void profile_warn(const struct profile *profile, const char *line);

/* total is -1 if unknown. */
void profile_begin_phase(struct profile *profile, const char *phase, int64_t total);
void profile_show_progress(const struct profile *profile);

/* Appends new samples to their file.  After a failure the run continues without them. */
void profile_write_samples(struct profile *profile);

/* Handles signals, settles energies, writes samples and shows progress until every thread has ended or, with
 * ERR_INTERRUPTED, until the third signal, or until one while only the dataset is being waited for.  The first signal
 * waits for the queries in flight, the second aborts them. */
enum err profile_loop(struct profile *profile) MUST_USE;

/* Whether the run was stopped and all remaining threads have waited too long for the dataset: a FIFO without a writer.
 * Call repeatedly. */
bool profile_awaits_dataset(struct profile *profile);

/* The journals and the samples.  Closing also frees the sharing. */
enum err profile_open_files(struct profile *profile, struct error *why) MUST_USE;
void profile_close_files(struct profile *profile);

/* Syncs the journals to disk every few tens of milliseconds until stopped. */
struct committer {
    struct profile *profile;
    pthread_t thread;
    atomic_bool stop;
};
enum err committer_start(struct committer *committer, struct profile *profile) MUST_USE;
enum err committer_stop(struct committer *committer, struct error *why) MUST_USE;

#endif
