/* Profiling an inference service: a dataset through a client, every query in joules.
 *
 * The way of a query: supply -> worker (asks, grades) -> journal -> (a little later) attribution ->
 * journal -> at the end one pass over the journal makes the summary and the stores.  What the journal
 * has is safe; all else is made of it and can be made again.
 *
 * The caller owns the options, which must outlive the run.  profile_run fills a result that
 * profile_result_release gives back. */
#ifndef IPW_RUNNER_PROFILE_H
#define IPW_RUNNER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"

struct session;
struct host_report;

/* What to do with a directory that holds a run already. */
enum profile_existing { EXISTING_REFUSE, EXISTING_RESUME, EXISTING_OVERWRITE };

/* How far it is; figures are UNKNOWN while they are. */
struct profile_progress {
    const char *phase;       /* "preparing", "idle", "warm-up", "queries", "judge", "writing" */
    uint64_t done, failed;   /* of this start */
    int64_t total;           /* -1 when only the end of the dataset will tell */
    double elapsed_s;        /* in this phase */
    double watts;            /* of the machine, lately */
    double joules_per_token; /* output tokens, so far */
    double output_tokens_per_s;
    bool stopping; /* interrupted: waiting for the queries in flight */
};

struct profile_options {
    const char *client, *model, *dataset;
    const char *base_url; /* NULL for the client's default */
    struct params client_params, dataset_params;
    struct params request_params; /* sent with every request */
    const char *output_dir;       /* the parent of the run's directory; NULL: runs */
    unsigned max_queries;         /* 0: all */
    unsigned warmup_queries;
    unsigned concurrency;
    unsigned repeat;
    unsigned retries;
    double rate; /* arrivals a second, Poisson; 0: as soon as a worker is free */
    uint64_t seed;
    double timeout_s; /* for one answer; 0: none */
    double idle_s;    /* 0: no baseline */
    const char *system, *template_text;
    const char *grader; /* NULL: the item's, then the dataset's */
    struct params grader_params;
    const char *judge_client, *judge_url, *judge_model; /* judge_model NULL: no judge */
    struct params judge_params;
    const char *price_file;
    const char *parameters; /* the model's size when no table knows it: "8.03B" or "30B,3B" */
    double weight_bits;     /* of one parameter as the service stores it; 0: unknown */
    double kv_bytes;        /* keys and values of one token; 0: their traffic is not counted */
    double decode_weight;
    enum profile_existing existing;
    bool no_stores; /* the journal alone */

    /* Asked when a run stands in the way and `existing` is REFUSE: true overwrites.  May be NULL. */
    bool (*may_overwrite)(const char *path);
    void (*progress)(const struct profile_progress *progress); /* may be NULL; often called */
    void (*warn)(const char *line);                            /* may be NULL */
};

struct profile_result {
    char directory[512];                 /* "" when it came to none */
    int signal;                          /* that interrupted us; 0 for none */
    uint64_t queries, completed, failed; /* in the directory, earlier starts included */
    uint64_t correct, incorrect, ungraded;
    struct energy energy; /* of the machine while the queries ran */
    struct text summary;  /* summary.json */
    struct text report;   /* the contract for scripts: one JSON object */
};

/* The calling thread must have called proc_block_signals before the session was opened. */
enum err profile_run(struct session *session, const struct host_report *host,
                     const struct profile_options *options, struct profile_result *out,
                     struct error *why) MUST_USE;
void profile_result_release(struct profile_result *result);

#endif
