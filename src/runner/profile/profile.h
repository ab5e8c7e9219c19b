/* Profiling an inference service: a dataset through a client, the energy of every query.
 *
 * Data flow of a query: supply -> worker (sends it, grades the answer) -> journal -> attribution, once sensor readings
 * cover it -> journal.  At the end one pass over the journal makes the summary and the stores.  The journal is durable;
 * everything else is derived from it.
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
struct jv;
struct profile;
struct result;
struct trace_recorder;
struct proxy_options;
struct workload_driver;

/* Handling of a directory that already holds a run. */
enum profile_existing { EXISTING_REFUSE, EXISTING_RESUME, EXISTING_OVERWRITE };

/* Progress; unknown figures are UNKNOWN. */
struct profile_progress {
    const char *phase;       /* "preparing", "idle", "warm-up", "queries", "judge", "writing" */
    uint64_t done, failed;   /* queries of this start */
    uint64_t unread;         /* answers of it that the grader could not read */
    int64_t total;           /* -1: unknown until the end of the dataset */
    double elapsed_s;        /* in this phase */
    double watts;            /* recent power of the machine */
    double joules_per_token; /* per output token, so far */
    double output_tokens_per_s;
    bool stopping; /* interrupted: waiting for the queries in flight */
};

/* Answers a query if that is more than one request of the client: an agent. */
struct profile_question {
    const char *key;       /* of the query */
    struct client *client; /* of the worker */
    const struct client_request *request;
    struct trace_recorder *recorder; /* records the events of the query, under its key */
};

struct profile_agent {
    const struct jv *settings; /* an object, stored with the run; must be unchanged to resume it */
    /* Like client_driver.ask: *out is for the whole query.  Thread-safe. */
    enum err (*answer)(void *context, const struct profile_question *question,
                       struct completion *out, struct error *why);
    void *context;
};

struct profile_options {
    const struct profile_agent *agent; /* NULL: none */
    /* Requests come from clients through this proxy instead of a dataset, until a signal ends the run; NULL: no proxy.
     * The run sets begins, ended and first_id itself.  listening: called when the proxy accepts requests. */
    const struct proxy_options *proxy;
    void (*listening)(unsigned port, const char *upstream, const char *directory);
    bool is_perplexity; /* score the text of the dataset; nothing is generated or graded */
    const struct workload_driver *workload; /* whose models run in this process; NULL: a client's */
    const char *client, *model, *dataset;
    const char *base_url; /* NULL for the client's default */
    struct params client_params, dataset_params;
    struct params request_params; /* sent with every request */
    const char *output_dir;       /* parent of the run directory; NULL: runs */
    const char *name;             /* of the run directory; NULL: from hardware, model and dataset */
    unsigned max_queries;         /* 0: all */
    unsigned shard, shards; /* only every `shards`-th query, starting at the shard-th; 0: all */
    unsigned warmup_queries;
    unsigned concurrency;
    unsigned repeat;
    unsigned retries;
    double rate; /* Poisson arrivals per second; 0: as soon as a worker is free */
    uint64_t seed;
    double timeout_s; /* per request; 0: none */
    double idle_s;    /* how long to measure idle power first; 0: no baseline */
    const char *system, *template_text;
    bool no_answer_format; /* leave prompts as the dataset has them */
    const char *grader;    /* NULL: the item's, else the dataset's */
    struct params grader_params;
    const char *judge_client, *judge_url, *judge_model; /* judge_model NULL: no judge */
    struct params judge_params;
    bool judge_unread; /* the judge also grades what the grader could not read */
    const char *price_file;
    const struct tariff *tariff; /* overrides the price file; NULL: none */
    const char *parameters;      /* model size if not in the catalog: "8.03B" or "30B,3B" */
    double weight_bits;          /* bits per stored parameter; 0: unknown */
    double kv_bytes;             /* KV-cache bytes per token; 0: that traffic is not counted */
    double decode_weight;        /* output token relative to prompt token, see attribute/share.h */
    struct run_repeat of_series; /* position in a series of runs; zeros: a single run */
    enum profile_existing existing;
    bool require_dedicated; /* fail at the start if other processes use the GPUs or CPUs */
    bool no_stores;         /* write only the journal and summary.json */

    /* Called if a run exists and `existing` is REFUSE: true overwrites it.  May be NULL. */
    bool (*may_overwrite)(const char *path);
    void (*progress)(const struct profile_progress *progress); /* may be NULL; called often */
    void (*warn)(const char *line);                            /* may be NULL */
};

struct profile_result {
    const char *directory; /* of `state`; "" if there is none */
    int signal;            /* that interrupted the run; 0: none */
    bool has_summary;      /* false: the run did not get that far */
    bool was_done;         /* a completed repeat found by EXISTING_RESUME: it was not run again */
    struct run_repeat repeat; /* of the directory: a resumed run stays in its group */
    struct summary summary;   /* of all starts in the directory */
    struct energy energy;     /* of the machine while queries ran */
    struct profile *state;    /* referenced by the directory and the summary */
};

/* ---- a run, once or several times ---- */

/* A run, and its result, which profile_result_release frees: not after ERR_INTERRUPTED, see profile_repeats_run. */
enum err profile_run(struct session *session, const struct host_report *host,
                     const struct profile_options *options, struct profile_result *out,
                     struct error *why) MUST_USE;
void profile_result_release(struct profile_result *result);

struct profile_repeats {
    const struct profile_options *profile;
    /* Other options, whose runs alternate with those: A B, B A, A B ..., in directories NAME_a_r1, NAME_b_r1 ...; NULL:
     * none. */
    const struct profile_options *against;
    unsigned runs; /* of each, in directories NAME_r1, NAME_r2 ...; 1: a single run in NAME */
    /* Before each of several runs, with its position, which has a side if there is `against`; may be NULL. */
    void (*begins)(const struct run_repeat *repeat, unsigned of);
    /* Called after each run; the result is released afterwards. */
    void (*ended)(const struct profile_result *result, enum err err, const struct error *why);
    bool (*is_decided)(void); /* after each pair: true ends the series; NULL: a fixed number */
};

/* In a series with `against`, both runs of a pair are measured next to each other.  Each run has its own idle baseline and warm-up.  A signal or an error ends the series after the current run was
 * written; EXISTING_RESUME continues it.  The calling thread must have called proc_block_signals before the session was
 * opened.  After ERR_INTERRUPTED threads may still use the options and the session: the process should exit. */
enum err profile_repeats_run(struct session *session, const struct host_report *host,
                             const struct profile_repeats *repeats, struct error *why) MUST_USE;

/* ---- shards (shards.c) ---- */

/* Merges the shards of a run: each becomes a start of it, energies are added, and records are in the order of the
 * dataset.  The directories may be in any order, and must be all shards.  name: of its directory in output_dir; NULL:
 * theirs, without the shard.  *directory: where the merged run is, or NULL; the caller frees it.  ERR_USAGE says why
 * they cannot be merged. */
enum err profile_merge(const char *const *directories, size_t count, const char *output_dir,
                       const char *name, bool overwrite, char **directory, struct error *why)
    MUST_USE;

/* Parses "2/4" into the options; false if invalid. */
bool profile_parse_shard(struct profile_options *options, const char *text);

/* Shards run by separate processes are in one folder, FOLDER/NAME_shard1of4 ...: its path, which the caller frees; the
 * shards in it that are incomplete, stored in `parts` unless that is NULL; and profile_merge of all of them, named by
 * the options, else by the hardware of the first. */
char *profile_shards_folder(const struct profile_options *options);
bool profile_shard_is_complete(const char *folder, const char *name, unsigned shard, unsigned of);
size_t profile_shards_left(const char *folder, const char *name, unsigned of, size_t *parts);
enum err profile_merge_shards(const struct profile_options *options, const char *folder,
                              const char *name, unsigned of, bool overwrite, char **directory,
                              struct error *why) MUST_USE;

/* ---- several models on the same questions, one after another (family.c) ---- */

/* A model and how it runs. */
struct profile_entry {
    const struct profile_options *profile; /* its model is ignored */
    const char *model;                     /* name known to the client */
    const char *file;                      /* what the estimator reads; NULL: no estimate */
    const char *image; /* size of its images, where the file leaves it free; or NULL */
};

struct profile_family_options {
    const struct profile_entry *entries;
    size_t count;
    void (*begins)(const char *model, size_t index, size_t count); /* before each; may be NULL */
};

/* What the estimator says of one unit of the work. */
struct predicted {
    double joules, plus_minus, seconds;
};

/* One model; unknown figures are UNKNOWN. */
struct profile_member {
    const char *model; /* as in the options */
    char *directory;   /* of its run; "" if there is none */
    char why[320];     /* why it could not be profiled; or "" */
    int64_t queries, completed, failed;
    double accuracy, accuracy_low, accuracy_high; /* with 95 % CI */
    double joules_per_query, joules_per_query_plus_minus;
    double joules_per_output_token, output_tokens_per_s;
    double ipj, ipj_plus_minus, ipw, ipw_plus_minus;
    const char *workload;           /* NULL: a language model */
    struct summary_quality quality; /* the first metric of all its answers; "": none */
    const char *unit;               /* of what it processes: "query", "image", "second of audio" */
    double joules_per_unit, joules_per_unit_plus_minus, units_per_s;
    struct energy energy; /* of the machine while queries ran */
    struct summary_conditions conditions;
    struct predicted predicted;
    bool
        on_frontier; /* Pareto-optimal in quality against energy per query, among those of its data */
};

struct profile_family {
    char device[96];                /* of the predictions; "": there are none */
    struct profile_member *members; /* the models that were tried */
    size_t count;
    char *conclusion; /* a sentence on their differences, set by the caller; or NULL */
    int signal;       /* that interrupted the runs; 0: none */
};

/* A model that fails is reported in its row, and the others continue; ERR_OK if at least one was profiled, else the
 * error of the first. */
enum err profile_family_run(struct session *session, const struct host_report *host,
                            const struct profile_family_options *options,
                            struct profile_family *out, struct error *why) MUST_USE;
void profile_family_release(struct profile_family *family);

/* Names of the datasets that read no file of this machine, for callers that must not; NULL past the last. */
const char *profile_dataset_at(size_t i);

/* The result of `ipw demo`. */
void profile_family_fill(const struct profile_family *family, struct result *out);

#endif
