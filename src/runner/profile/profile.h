/* Profiling an inference service: a dataset through a client, the energy of every query.
 *
 * The path of a query: supply -> worker (sends it, grades the answer) -> journal -> attribution, once the
 * sensors have been read past it -> journal.  At the end one pass over the journal makes the summary and
 * the stores.  What is in the journal is safe; everything else is derived from it.
 *
 * The caller owns the options, which must outlive the run; profile_family_run fills a family that
 * profile_family_release frees. */
#ifndef IPW_RUNNER_PROFILE_PROFILE_H
#define IPW_RUNNER_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"
#include "core/energy.h"
#include "core/units.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

struct client;
struct client_request;
struct completion;
struct session;
struct host_report;
struct profile;
struct trace_recorder;
struct proxy_options;

/* What to do with a directory that already holds a run. */
enum profile_existing { EXISTING_REFUSE, EXISTING_RESUME, EXISTING_OVERWRITE };

/* Progress; figures are UNKNOWN until they are known. */
struct profile_progress {
    const char *phase;       /* "preparing", "idle", "warm-up", "queries", "judge", "writing" */
    uint64_t done, failed;   /* queries of this start */
    int64_t total;           /* -1 when unknown before the end of the dataset */
    double elapsed_s;        /* in this phase */
    double watts;            /* of the machine, lately */
    double joules_per_token; /* output tokens, so far */
    double output_tokens_per_s;
    bool stopping; /* interrupted: waiting for the queries in flight */
};

/* Who answers a query, where that is not one request of the client: an agent. */
struct profile_question {
    const char *key;       /* of the query */
    struct client *client; /* the worker's own */
    const struct client_request *request;
    struct trace_recorder *recorder; /* for the events of the query, under its key */
};

struct profile_agent {
    const char *
        settings; /* one JSON object, which is kept with the run and must be the same to resume it */
    /* As ask of a client: *out is of the whole query.  Any thread. */
    enum err (*answer)(void *context, const struct profile_question *question,
                       struct completion *out, struct error *why);
    void *context;
};

struct profile_options {
    const struct profile_agent *agent; /* NULL: none */
    /* Requests come from clients through this proxy, not from a dataset, until a signal ends the run; NULL: none do.  Its
     * begins, ended and first_id are the run's own.  listening: the proxy takes requests. */
    const struct proxy_options *proxy;
    void (*listening)(unsigned port, const char *upstream, const char *directory);
    bool is_perplexity; /* the text of the dataset is scored, nothing is generated or graded */
    const char *client, *model, *dataset;
    const char *base_url; /* NULL for the client's default */
    struct params client_params, dataset_params;
    struct params request_params; /* sent with every request */
    const char *output_dir;       /* the parent of the run directory; NULL: runs */
    const char *name;             /* of the run directory; NULL: of what is measured */
    unsigned max_queries;         /* 0: all */
    unsigned shard, shards; /* of these only every `shards`-th, from the shard-th on; 0: all */
    unsigned warmup_queries;
    unsigned concurrency;
    unsigned repeat;
    unsigned retries;
    double rate; /* Poisson arrivals per second; 0: as soon as a worker is free */
    uint64_t seed;
    double timeout_s; /* per request; 0: none */
    double idle_s;    /* how long to measure idle power first; 0: no baseline */
    const char *system, *template_text;
    const char *grader; /* NULL: the item's, then the dataset's */
    struct params grader_params;
    const char *judge_client, *judge_url, *judge_model; /* judge_model NULL: no judge */
    struct params judge_params;
    const char *price_file;
    const struct tariff *tariff; /* instead of those of the price file; NULL: none */
    const char *parameters;      /* the model's size when no table knows it: "8.03B" or "30B,3B" */
    double weight_bits;          /* per stored parameter; 0: unknown */
    double kv_bytes;             /* KV-cache bytes per token; 0: that traffic is not counted */
    double decode_weight;        /* output token relative to prompt token, see attribute/share.h */
    struct run_repeat of_series; /* which of several runs it is; zeros: the only one */
    enum profile_existing existing;
    bool require_dedicated; /* ends before it begins where others use the GPUs or CPUs */
    bool no_stores;         /* the journal and summary.json alone */

    /* Called when a run is in the way and `existing` is REFUSE: true overwrites.  May be NULL. */
    bool (*may_overwrite)(const char *path);
    void (*progress)(const struct profile_progress *progress); /* may be NULL; called often */
    void (*warn)(const char *line);                            /* may be NULL */
};

struct profile_result {
    char directory[512]; /* "" when there is none */
    int signal;          /* that interrupted the run; 0 for none */
    bool has_summary;    /* false: the run did not get so far */
    bool was_done;       /* a repeat that EXISTING_RESUME found finished: it was not run again */
    struct run_repeat repeat; /* of the directory: a resumed run stays in its group */
    struct summary summary;   /* of all starts in the directory */
    struct energy energy;     /* of the machine while the queries ran */
    struct profile *state;    /* what the summary points to */
};

/* ---- a run, once or several times ---- */

struct profile_repeats {
    const struct profile_options *profile;
    unsigned runs; /* in directories NAME_r1, NAME_r2 ...; 1: one run, in NAME */
    void (*begins)(unsigned number, unsigned of); /* before each of several; may be NULL */
    /* After each; the result is gone afterwards. */
    void (*ended)(const struct profile_result *result, enum err err, const struct error *why);
};

/* Each run has its own idle baseline and warm-up.  A signal or an error ends the series after the run in progress was
 * written; EXISTING_RESUME continues it.  The calling thread must have called proc_block_signals before the session was
 * opened.  After ERR_INTERRUPTED threads may still use the options and the session: the process should end. */
enum err profile_repeats_run(struct session *session, const struct host_report *host,
                             const struct profile_repeats *repeats, struct error *why) MUST_USE;

/* ---- shards ---- */

/* Makes one run of those that asked a shard each of the same questions: each becomes a start of it, the energies add
 * up, and records are in the order of the dataset.  The directories may be in any order, and must be all shards.
 * name: of its directory in output_dir; NULL: theirs, without the shard.  ERR_USAGE says why they are not. */
enum err profile_merge(const char *const *directories, size_t count, const char *output_dir,
                       const char *name, bool overwrite, char directory[static 512],
                       struct error *why) MUST_USE;

/* "2/4" into the options; false for anything else. */
bool profile_take_shard(struct profile_options *options, const char *text);

/* Shards that are made apart are in one folder, FOLDER/NAME_shard1of4 ...: its path, false when it does not fit; the
 * shards in it that have not come to their end, in `parts` unless that is NULL; and profile_merge of all of them, named
 * as the options say, else by the hardware of the first. */
bool profile_shards_folder(const struct profile_options *options, char *to, size_t size);
bool profile_shard_is_complete(const char *folder, const char *name, unsigned shard, unsigned of);
size_t profile_shards_left(const char *folder, const char *name, unsigned of, size_t *parts);
enum err profile_merge_shards(const struct profile_options *options, const char *folder,
                              const char *name, unsigned of, bool overwrite,
                              char directory[static 512], struct error *why) MUST_USE;

/* ---- several models over the same questions, one after another ---- */

struct profile_family_options {
    const struct profile_options *profile; /* of every run; its model is ignored */
    const char *const *models;             /* as the client calls them */
    size_t count;
    void (*begins)(const char *model, size_t index, size_t count); /* before each; may be NULL */
};

/* One model; figures are UNKNOWN where they are not known. */
struct profile_member {
    const char *model;   /* of the options */
    char directory[512]; /* of its run; "" when there is none */
    char why[320];       /* why it could not be profiled; "" when it was */
    int64_t queries, completed, failed;
    double accuracy, accuracy_low, accuracy_high; /* 95 % interval */
    double joules_per_query, joules_per_query_plus_minus;
    double joules_per_output_token, output_tokens_per_s;
    double ipj, ipj_plus_minus, ipw, ipw_plus_minus;
    struct energy energy; /* of the machine while the queries ran */
    struct summary_conditions conditions;
    bool on_frontier; /* Pareto-optimal in accuracy against energy per query */
};

struct profile_family {
    struct profile_member *members; /* those that were tried */
    size_t count;
    int signal; /* that interrupted the runs; 0 for none */
};

/* A model that fails is reported in its row and the others go on; ERR_OK as long as one was profiled,
 * else the error of the first. */
enum err profile_family_run(struct session *session, const struct host_report *host,
                            const struct profile_family_options *options,
                            struct profile_family *out, struct error *why) MUST_USE;
void profile_family_release(struct profile_family *family);

#endif
