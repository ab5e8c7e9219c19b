/* The contract of a workload: an application of inference (image classification, detection, speech recognition, image
 * generation ...) over models of engine/.
 *
 * A driver is one .c file that exports one `const struct workload_driver` and one line in workloads.def.  A struct
 * workload is used by one thread at a time; several of a process share the weights.
 *
 * A query has three steps, of which only the second one is in the measured window: prepare (decode, resize, spectrogram,
 * tokenize), run (inference) and finish (decode the outputs, write the answer).  Work that needs several inferences,
 * such as the loop of a decoder or a scheduler, is part of run.
 *
 * Ownership: the caller owns every struct here; a driver owns only what `state` points to. */
#ifndef IPW_WORKLOADS_WORKLOAD_H
#define IPW_WORKLOADS_WORKLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"
#include "core/text.h"

struct completion;
struct json;
struct workload;

/* One query, from prepare to finish. */
struct workload_query {
    /* The caller's: */
    const char *input;           /* the item's problem: path of an image or WAV file, or a text */
    const struct params *params; /* --param: steps, guidance, confidence ...; may be NULL */
    const atomic_bool *cancel;   /* may be NULL */
    /* The driver's: */
    void *state; /* from prepare until discard */
    /* What the query consists of; unknown: NaN and -1.  Set by prepare, or by finish where it depends on the result. */
    double images, audio_s, denoise_steps;
    int64_t input_tokens, output_tokens;
};

struct workload_config {
    const char *model;           /* a file, a directory, or the name of a shipped model */
    const struct params *params; /* --client-param: threads, provider, library ...; may be NULL */
};

struct workload_driver {
    const char *name;
    const char *summary;         /* one line for `ipw list` */
    const char *inputs;          /* what a query is: "an image file" */
    bool takes_text;             /* it is a text, and not the path of a file */
    const char *model_layout;    /* which files are recognized */
    const char *default_model;   /* shipped; NULL: none */
    const char *default_dataset; /* of the shipped held-out data; NULL: none */
    const char *const
        *graders; /* names of its quality metrics, the default first; ends with NULL */
    const struct param_spec *params;       /* --client-param; ends with a NULL name */
    const struct param_spec *query_params; /* --param; ends with a NULL name */

    /* Reads the model's files.  ERR_USAGE, ERR_NOT_FOUND and ERR_UNSUPPORTED name the file and what does not fit. *out is
     * zeroed with driver set; on failure nothing is left open. */
    enum err (*open)(const struct workload_config *config, struct workload *out, struct error *why);
    void (*close)(struct workload *workload);

    /* An input that does not fit or is damaged is ERR_BAD_VALUE with the path; the rest of the dataset is measured. */
    enum err (*prepare)(struct workload *workload, struct workload_query *query, struct error *why);
    /* ERR_BAD_VALUE if the model's output is NaN or of another shape. */
    enum err (*run)(struct workload *workload, struct workload_query *query, struct error *why);
    /* Writes the answer into out->content, a generated file into out->artifact, and the finish reason if it is not
     * "stop"; times and counts are the caller's. */
    enum err (*finish)(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why);
    void (*discard)(struct workload *workload,
                    struct workload_query *query); /* after any of them */

    /* Optional: runs several prepared queries as one batch; NULL: one after another. */
    enum err (*run_batch)(struct workload *workload, struct workload_query *const *queries,
                          size_t count, struct error *why);

    /* Members of the object open in *json: models, their sizes and precision, provider, version of the runtime. */
    void (*describe)(const struct workload *workload, struct json *json);
};

struct workload {
    const struct workload_driver *driver;
    void *state;
};

/* The workload of language models is no driver: the client llama, its models and the dataset builtin. */
#define WORKLOAD_TEXT "text"

/* NULL-terminated, in the order of workloads.def. */
extern const struct workload_driver *const WORKLOAD_DRIVERS[];

/* NULL for an unknown name, with similar names in *why. */
const struct workload_driver *workload_driver_find(const char *name, struct error *why);

/* Checks the parameters and opens. */
enum err workload_open(const struct workload_driver *driver, const struct workload_config *config,
                       struct workload *out, struct error *why) MUST_USE;
void workload_close(struct workload *workload);

/* ERR_USAGE for a parameter of a query that the workload does not have. */
enum err workload_check_query(const struct workload_driver *driver, const struct params *params,
                              struct error *why) MUST_USE;

/* For callers of the driver's steps: nothing known yet; finish, with what the query consisted of in *out. */
void workload_query_begin(struct workload_query *query);
enum err workload_query_end(struct workload *workload, struct workload_query *query,
                            struct completion *out, struct error *why) MUST_USE;

/* prepare, run, finish and discard, for callers that measure no energy: tests. */
enum err workload_answer(struct workload *workload, struct workload_query *query,
                         struct completion *out, struct error *why) MUST_USE;

/* ---- the client of a workload (client.c): sends each query of a profile to it ---- */

/* Its own --client-param: queries that run together, for which so many workers send, and how long the first one waits for
 * the others, in ms. */
#define WORKLOAD_BATCH       "batch"
#define WORKLOAD_BATCH_DELAY "batch_delay_ms"
/* Both, of workloads that have run_batch (batch.c); ends with a NULL name. */
extern const struct param_spec WORKLOAD_BATCH_PARAMS[];

struct client_driver;
/* Its configuration names the workload. */
extern const struct client_driver workload_client;

#endif
