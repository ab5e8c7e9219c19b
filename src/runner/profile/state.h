/* The state of one profile, and what its phases offer each other.  Internal to this folder: profile.c
 * creates it, setup.c fills it, and the threads of worker.c and grading.c share what is marked so.  It is
 * owned by the result of the run, whose summary points into it. */
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
    double cpu_s_before; /* spent by this process before the run */

    /* What setup found out; constant while requests are in flight. */
    struct efficiency_inputs facts; /* of the model and the GPUs; the rest is unknown here */
    struct prices *prices;          /* NULL without a price file */
    struct tariff tariff;           /* of it and of the options */
    const struct client_driver *client_driver;
    struct client_config client_config;
    char base_url[512];      /* as the client uses it */
    struct text client_info; /* what the service says of itself: one JSON object */
    char dataset_name[96];
    struct client_windows windows; /* of a text that the client cuts itself; empty: none */
    struct conditions conditions;
    struct baseline idle;
    bool has_idle;
    unsigned start; /* 1 for the first start in this directory, 2 for the first that resumes ... */
    nanos zero;     /* times in spans and samples count from here (monotonic) */
    nanos zero_wall;

    /* The run directory. */
    char directory[512];
    char journal_path[600], spans_path[600], traces_path[600], samples_path[600];
    int lock_fd; /* -1: not held */
    bool has_files;
    struct resume resume;   /* what earlier starts left; zero for a new run */
    struct journal journal; /* records.jsonl */
    struct journal spans;   /* spans.jsonl */
    struct journal traces;  /* traces.jsonl, of agents */
    struct samples_log samples;
    enum err samples_err; /* why samples are missing */
    nanos began;          /* earlier samples are those of another run in this session */
    struct run_repeat repeat;
    size_t energy_space; /* bytes that a line with an energy may take */
    bool unsettled;      /* such a line could not be written */

    struct proxied *proxied; /* while a proxy takes the requests; else NULL */

    /* Shared by the threads. */
    struct supply supply;
    bool has_supply;
    struct sharing *sharing;
    struct trace_recorder *recorder; /* of an agent's events; NULL without */
    atomic_bool stop;                /* start no new query */
    atomic_bool cancel;              /* abort those in flight */
    atomic_uint_fast64_t done, failed, output_tokens;
    atomic_uint_fast64_t sent;         /* attempts, aborted ones included */
    atomic_uint_fast64_t next_request; /* id of the next request that attribution learns of */
    atomic_uint_fast64_t unrecorded;   /* requests that no journal has: proxied.c */
    atomic_uint working;               /* threads that have not ended */
    atomic_uint reading;               /* those of them that wait for the dataset */
    pthread_mutex_t lock;              /* guards what follows */
    enum err err;                      /* the first that ends the run: disk full, dataset broken */
    struct error why;

    /* The main thread's. */
    const char *phase;
    int64_t phase_total; /* -1 unknown */
    nanos phase_began;
    double phase_tokens; /* output tokens when it began */
    unsigned signals;
    nanos stuck_since; /* when a stopped run was first seen to wait for the dataset alone; 0: not */
    sharing_take *take_share; /* journals the energy of a request */
    bool writes_samples;
    nanos samples_at;               /* when samples were last written */
    nanos settled_at;               /* when energies were last settled */
    nanos settle_cost;              /* how long that took */
    double watts, joules_per_token; /* as of then */
    struct run_energy spent;        /* by this start */
    struct ledger ledger;           /* of this start, while the queries ran */
    bool has_ledger;
    bool abandoned; /* an impatient user left threads behind that still use all of this */

    /* What the summary of the run points to, beside the above. */
    struct run_energy total;                                   /* of all starts */
    struct text dataset_params, client_params, request_params; /* JSON objects */
    char judge_url[512];
    char failure_reason[200], tokens_note[200], ungraded_reason[200];
    char dataset_hash[24]; /* "" where it has none */
    struct traces agent_traces;
};

/* The windows that replace the dataset's items; NULL: none do. */
static inline const struct client_windows *profile_windows(const struct profile *profile)
{
    return profile->windows.count ? &profile->windows : NULL;
}

/* directory.c: names the directory of the run, makes it or reads what earlier starts left in it, and locks it;
 * result->was_done where nothing is left to do.  profile_close_unsettled writes what a killed start owes to the journal,
 * before this one writes anything.  profile_leave_directory unlocks it, and removes it where the run wrote nothing. */
enum err profile_take_directory(struct profile *profile, struct error *why) MUST_USE;
enum err profile_close_unsettled(struct profile *profile, struct error *why) MUST_USE;
void profile_leave_directory(struct profile *profile);

/* setup.c: everything before the first query.  After an error the state holds what was opened. */
enum err profile_setup(struct profile *profile, struct error *why) MUST_USE;

/* proxied.c: a proxy instead of a dataset and its workers.  proxied_check finds out whether it can be started, before
 * anything is written, and fills base_url and client_info; proxied_join is for when no thread is working any more, and
 * profile->proxied is freed after the last energy. */
enum err proxied_check(struct profile *profile, struct error *why) MUST_USE;
enum err proxied_start(struct profile *profile, struct error *why) MUST_USE;
void proxied_join(struct profile *profile);
void proxied_free(struct proxied *proxied);

/* agents.c: the recorder of events, and what was loaded for the summary. */
enum err agents_init(struct profile *profile, struct error *why) MUST_USE;
void agents_release(struct profile *profile);
/* An agent's query has ended, and its record is in the journal; takes `pending` over, unless it fails.  Its
 * energy comes later: agents_take_share is true for a share of one.  agents_forget: the query does not count. */
struct answer;
struct pending;
enum err agents_end(struct profile *profile, struct pending *pending, const struct answer *answer,
                    struct error *why) MUST_USE;
bool agents_take_share(struct profile *profile, const struct share *share);
void agents_forget(struct profile *profile, const char *key);
/* For the summary: the traces of all queries; what the record of one adds; and a dataset of them. */
struct record;
enum err agents_load(struct profile *profile, struct error *why) MUST_USE;
enum err agents_update(struct profile *profile, const struct record *record) MUST_USE;
enum err agents_save(struct profile *profile, struct error *why) MUST_USE;

/* The command that measures. */
static inline enum run_kind profile_kind(const struct profile *profile)
{
    return profile->options->proxy   ? RUN_KIND_PROXY
           : profile->options->agent ? RUN_KIND_AGENT
                                     : RUN_KIND_PROFILE;
}

/* grading.c: the answers that only a model can grade, once the queries are through; their energy is
 * accounted separately.  Does nothing where there are none. */
enum err profile_judge(struct profile *profile, struct error *why) MUST_USE;

/* summary.c: what is known of the model, the machine and the prices before a run. */
enum err profile_find_facts(struct profile *profile, struct error *why) MUST_USE;
void profile_release_facts(struct profile *profile);

/* Reads the journal, writes the summary and the stores, and fills the result. */
enum err profile_summarize(struct profile *profile, struct error *why) MUST_USE;

/* The same, with `describe` for what is no figure: it is called with the figures filled in. */
typedef enum err profile_describe(struct profile *profile, struct summary *out);
enum err profile_summarize_as(struct profile *profile, profile_describe *describe,
                              struct error *why) MUST_USE;

/* ---- settling (settle.c) ---- */

/* The energy of the machine is shared among the requests, and each one's share goes to the journal as soon as it is
 * known; at the end of a start its account does.  The sharing and the ledger that this makes belong to struct profile. */

/* Requests share the machine's energy from `from` on; an earlier sharing is freed.  take gets the share of
 * each that is settled, with the profile as its context, and writes it to the journal. */
enum err settle_begin(struct profile *profile, nanos from, sharing_take *take, struct error *why)
    MUST_USE;

/* Settles what is left when all requests have ended. */
enum err settle_rest(struct profile *profile, struct error *why) MUST_USE;

/* The run line: a start begins with its queries at `from`. */
enum err settle_open_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* The end line, with what was spent since `from`. */
enum err settle_close_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* All starts. */
struct run_energy settle_totals(const struct profile *profile);

/* ---- beside the requests (settle.c) ---- */

/* The first error that ends the run is kept; no new query is started after it.  Any thread. */
void profile_fail(struct profile *profile, enum err err, const struct error *why);
void profile_warn(const struct profile *profile, const char *line);

/* total is -1 when it is not known. */
void profile_begin_phase(struct profile *profile, const char *phase, int64_t total);
void profile_show_progress(const struct profile *profile);

/* Writes the samples that are new.  When that fails, the run goes on without them. */
void profile_write_samples(struct profile *profile);

/* Handles signals, settles energies, writes samples and shows progress until every thread has ended, or,
 * with ERR_INTERRUPTED, until the third signal, or one when only the dataset is waited for.  The first signal lets the queries in flight end, the second
 * aborts them. */
enum err profile_loop(struct profile *profile) MUST_USE;

/* Whether the run was stopped and every thread that has not ended has waited for the dataset for too long:
 * a FIFO without a writer.  To be called again and again. */
bool profile_awaits_dataset(struct profile *profile);

/* The journals and the samples.  Closing also frees the sharing. */
enum err profile_open_files(struct profile *profile, struct error *why) MUST_USE;
void profile_close_files(struct profile *profile);

/* Syncs the journals to disk every few hundredths of a second until stopped. */
struct committer {
    struct profile *profile;
    pthread_t thread;
    atomic_bool stop;
};
enum err committer_start(struct committer *committer, struct profile *profile) MUST_USE;
enum err committer_stop(struct committer *committer, struct error *why) MUST_USE;

#endif
