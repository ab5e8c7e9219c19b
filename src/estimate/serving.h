/* Simulation of serving a decoder under load: requests arrive, wait, and are computed in the steps of a server with
 * continuous batching, chunked prefill and a limited KV cache.  docs/serving.md has the rules.
 *
 *   load (serving_load.c) + steps (serving_steps.c) -> simulation (serving.c) -> curve (serving_curve.c)
 *   -> result (serving_result.c)
 *
 * Ownership: serving_load_*, serving_steps_make and serving_curve_make fill structs that their _release frees;
 * everything else is plain data of the caller. */
#ifndef IPW_ESTIMATE_SERVING_H
#define IPW_ESTIMATE_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/estimate_grid.h"

struct result;
struct tariff;

/* ---- load: serving_load.c ---- */

struct serving_request {
    double arrival; /* after the first request, in mean inter-arrival times */
    int64_t input, output;
};

struct serving_load {
    struct serving_request *items; /* in order of arrival */
    size_t count;
    double rate; /* requests per s of a trace; UNKNOWN otherwise */
    double mean_input, mean_output;
    int64_t longest_input, longest; /* tokens: prompts; prompts with their outputs */
};

struct serving_lengths {
    int64_t low, high; /* uniform between them, inclusive */
};
/* "512", "100..500"; and rates "2", "1,2,4", "1:10:0.5", which the caller frees. */
enum err serving_lengths_parse(const char *option, const char *words, struct serving_lengths *out,
                               struct error *why) MUST_USE;
enum err serving_rates_parse(const char *words, double **rates, size_t *count, struct error *why)
    MUST_USE;

/* Poisson arrivals. */
void serving_load_draw(size_t count, struct serving_lengths input, struct serving_lengths output,
                       uint64_t seed, struct serving_load *out);
/* A CSV file with the columns arrival_s, input_tokens and output_tokens. */
enum err serving_load_read(const char *path, struct serving_load *out, struct error *why) MUST_USE;
void serving_load_release(struct serving_load *load);

/* ---- steps: serving_steps.c ---- */

/* The work of a step. */
struct serving_step {
    double sequences, context; /* decoding one token each; sum of the tokens that they attend to */
    double prompt_tokens;      /* tokens of prompts */
    double begun;              /* prompts that start with these tokens */
    double pairs;              /* their squares, and twice the products with earlier tokens */
    double continued, continued_context; /* chunks after the first; tokens attended to */
    double sampled;                      /* sequences that yield a token */
};

struct serving_cost {
    double seconds, joules; /* joules UNKNOWN: the device has no figures */
};

/* Time and energy of a step, and the power between steps. */
struct serving_model {
    struct serving_cost (*cost)(const void *context, const struct serving_step *step);
    const void *context;
    double idle_w;                 /* idle power of all devices of a replica */
    double relative_s, relative_j; /* standard deviations of a step's time and energy */
    double kv_bytes;               /* per token and device */
};

/* Scheduling policy. */
struct serving_policy {
    const char *server;                 /* "vllm", "llama.cpp" */
    unsigned max_sequences, max_tokens; /* per step */
    unsigned block_tokens;              /* tokens per block of the KV cache */
    bool reserves;    /* reserves the complete KV cache of a request on admission: no preemption */
    double kv_tokens; /* per replica; INFINITY: no limit */
    unsigned replicas;
};

struct serving_question {
    const struct grid_candidate *candidate;
    const struct hardware *hardware;
    const struct workload_spec *spec; /* its lengths and batch are ignored */
    const struct serving_load *load;
    const char *measured;  /* CSV file of measured steps; NULL: as estimated */
    double kv_cache_bytes; /* per device; UNKNOWN: the available memory */
};

struct serving_steps;
/* Estimates a grid of steps, and completes the policy: zeros become the defaults of the server, by default that of
 * runtime and device, and kv_tokens is set.  ERR_USAGE if a request exceeds the context of the model or the KV
 * cache. */
enum err serving_steps_make(const struct serving_question *question, struct serving_policy *policy,
                            struct serving_steps **out, struct error *why) MUST_USE;
void serving_steps_release(struct serving_steps *steps);
struct serving_model serving_steps_model(const struct serving_steps *steps);

/* ---- simulation: serving.c ---- */

enum { SERVING_QUANTILES = 3 };
extern const double SERVING_QUANTILE[SERVING_QUANTILES];           /* 0.5, 0.95, 0.99 */
extern const char *const SERVING_QUANTILE_NAME[SERVING_QUANTILES]; /* "p50" ... */

struct serving_spread {
    double mean, at[SERVING_QUANTILES];
};

struct serving_result {
    struct serving_spread ttft_s, tpot_s, itl_s, latency_s; /* over requests; itl_s over tokens */
    double duration_s; /* from the first arrival to the last token */
    double tokens_per_s, requests_per_s, input_tokens_per_s; /* in total */
    double steps, step_j, idle_j; /* all replicas; their joules add up to `joules` */
    double joules, joules_per_token, average_w;
    double busy;                      /* share of the time in which a step runs */
    double batch, in_flight, waiting; /* means over time: requests in steps, arrived, not started */
    double kv_peak_tokens, preemptions; /* peak of one replica; sum over all */
    bool grows; /* the second half of the requests waited far longer than the first: overload */
};

struct serving_run {
    const struct serving_model *model;
    const struct serving_policy *policy;
    const struct serving_load *load;
    double rate;       /* requests per s, of all replicas */
    double time_scale; /* scale of step times; 1: as estimated */
};
enum err serving_simulate(const struct serving_run *run, struct serving_result *out,
                          struct error *why) MUST_USE;

/* ---- curve: serving_curve.c ---- */

struct serving_slo {
    double ttft_s, itl_s; /* UNKNOWN: none */
    int quantile;         /* index; -1: the mean */
};

struct serving_point {
    double rate;
    struct serving_result mid, fast,
        slow;   /* steps as estimated, and one ± shorter or longer: as mid if the ± is unknown */
    bool meets; /* the SLO, as estimated, within capacity; true without one */
};

struct serving_curve {
    struct serving_point *points; /* by rate, ascending */
    size_t count;
    double capacity;              /* requests per s with all requests queued; UNKNOWN: not needed */
    struct serving_point largest; /* meets the SLO: rate UNKNOWN without one, 0: none */
    bool is_limited_by_capacity;  /* limited by capacity, not by the SLO */
};

/* Without rates, eight are chosen, up to 1.1 times the capacity.  `progress` (done, total) may be NULL. */
enum err serving_curve_make(const struct serving_run *run, const double *rates, size_t rate_count,
                            const struct serving_slo *slo, void (*progress)(unsigned, unsigned),
                            struct serving_curve *out, struct error *why) MUST_USE;
void serving_curve_release(struct serving_curve *curve);

/* ---- result: serving_result.c ---- */

struct serving_outcome {
    const struct workload_spec *spec;
    const struct hardware *hardware;
    const struct estimate_config *config;
    const struct serving_model *model;
    const struct serving_policy *policy;
    const struct serving_load *load;
    const struct serving_slo *slo;
    const struct serving_curve *curve;
    const struct tariff *tariff;
    const char *trace;    /* path; NULL: Poisson arrivals by `seed` */
    const char *measured; /* path of measured steps; NULL: estimated */
    unsigned seed;
};
/* Its table has a row per load. */
void serving_to_result(const struct serving_outcome *outcome, struct result *result);

#endif
