/* Views of `ipw estimate` with options of their own: a model under load (--serve), and several models on one device
 * (--compare-models). */
#ifndef IPW_CLI_ESTIMATE_VIEWS_H
#define IPW_CLI_ESTIMATE_VIEWS_H

#include <stdbool.h>

#include "cli/options.h"
#include "report/print/print.h"

struct candidate_options;
struct candidates;
struct tariff;
struct model;
struct workload_options;

struct estimate_serve_options {
    bool serve;
    const char *rates, *trace, *step_times, *percentile, *server;
    unsigned replicas, max_sequences, max_tokens, requests, seed;
    double ttft_ms, itl_ms, kv_cache_gb;
};

extern const char *const SERVE_PERCENTILES[], *const SERVE_SERVERS[];

/* clang-format off */
#define SERVE_OPTION_ROWS(o)                                                                       \
    FLAG_ROW("serve", (o).serve, "simulate a server under load: latencies and energy per token"),  \
    TEXT_ROW("request-rate", (o).rates, "RATES",                                                   \
             "requests/s: 2, 1,2,4, 1:10:0.5 (default: up to its capacity)"),                      \
    TEXT_ROW("trace", (o).trace, "FILE",                                                           \
             "requests: CSV of arrival_s, input_tokens, output_tokens"),                           \
    COUNT_ROW("requests", (o).requests, "N",                                                       \
              "requests without a trace (default: 2000 per replica, at most 20000)", .min = 1,     \
              .max = 1e7),                                                                         \
    COUNT_ROW("replicas", (o).replicas, "N",                                                       \
              "number of servers that share the load (default: 1)", .min = 1, .max = 1024),        \
    CHOICE_ROW("server", (o).server, "SERVER", SERVE_SERVERS,                                      \
               "scheduler: vllm or llama.cpp (default: by runtime and device)"),                   \
    COUNT_ROW("max-num-seqs", (o).max_sequences, "N",                                              \
              "maximum sequences per step (default: the server's)", .min = 1, .max = 65536),       \
    COUNT_ROW("max-num-batched-tokens", (o).max_tokens, "N",                                       \
              "maximum tokens per step (default: the server's)", .min = 1, .max = 1048576),        \
    NUMBER_ROW("kv-cache-gb", (o).kv_cache_gb, "GB",                                               \
               "KV cache per device (default: the rest of 0.92 of its memory)", .min = 1e-9,       \
               .max = 1e9),                                                                        \
    TEXT_ROW("step-times", (o).step_times, "FILE",                                                 \
             "measured steps: CSV of prompt_tokens, sequences, context, seconds"),                 \
    NUMBER_ROW("slo-ttft-ms", (o).ttft_ms, "MS",                                                   \
               "SLO on time to first token: find the largest load that meets it", .min = 1e-3,     \
               .max = 1e7),                                                                        \
    NUMBER_ROW("slo-itl-ms", (o).itl_ms, "MS", "SLO on inter-token latency", .min = 1e-3,          \
               .max = 1e7),                                                                        \
    CHOICE_ROW("slo-percentile", (o).percentile, "PCTL", SERVE_PERCENTILES,                        \
               "percentile of the SLOs: p50, p95, p99 or mean (default: p95)"),                    \
    COUNT_ROW("seed", (o).seed, "N", "random seed of arrivals and lengths (default: 0)",           \
              .max = 0x7fffffff)
/* clang-format on */

/* ERR_USAGE for an option that requires --serve. */
enum err estimate_serve_check(const struct estimate_serve_options *options, struct error *why)
    MUST_USE;

struct serve_command {
    const struct estimate_serve_options *options;
    const struct model *model;
    const struct workload_options *workload; /* its prompt_tokens may be a range */
    const char *output_tokens;               /* a length or a range; NULL: the default */
    const struct candidate_options *wanted;
    struct candidates *candidates; /* found */
    const struct tariff *tariff;
    enum print_format format;
    const char *output, *plot;
};

/* Returns the exit code: EXIT_FAILED if no load meets the SLO. */
int estimate_serve(const struct serve_command *command);

/* ---- --compare-models ---- */

struct models_command {
    const struct model *model;       /* the first */
    const struct option_list *names; /* of the others, separated by commas */
    const char *benchmark;           /* the axis of accuracy; NULL: the most common one */
    const struct workload_options *workload;
    const struct candidate_options *wanted;
    struct candidates *candidates; /* with one device */
    enum print_format format;
    const char *output;
};

/* Returns the exit status. */
int estimate_models(const struct models_command *command);

#endif
