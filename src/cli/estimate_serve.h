/* `ipw estimate --serve`: its options, and the view of a model under load. */
#ifndef IPW_CLI_ESTIMATE_SERVE_H
#define IPW_CLI_ESTIMATE_SERVE_H

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
    {.name = "serve", .type = OPTION_FLAG, .target = &(o).serve,                                   \
     .help = "simulate a server under load: latencies and energy per token"},                      \
    {.name = "request-rate", .type = OPTION_TEXT, .target = &(o).rates, .value = "RATES",          \
     .help = "requests/s: 2, 1,2,4, 1:10:0.5 (default: up to its capacity)"},                      \
    {.name = "trace", .type = OPTION_TEXT, .target = &(o).trace, .value = "FILE",                  \
     .help = "requests: CSV of arrival_s, input_tokens, output_tokens"},                           \
    {.name = "requests", .type = OPTION_COUNT, .target = &(o).requests, .value = "N",              \
     .help = "requests without a trace (default: 2000 per replica, at most 20000)", .min = 1,    \
     .max = 1e7},                                                                                 \
    {.name = "replicas", .type = OPTION_COUNT, .target = &(o).replicas, .value = "N",              \
     .help = "number of servers that share the load (default: 1)", .min = 1, .max = 1024},      \
    {.name = "server", .type = OPTION_CHOICE, .target = &(o).server, .value = "SERVER",            \
     .help = "scheduler: vllm or llama.cpp (default: by runtime and device)",                      \
     .choices = SERVE_SERVERS},                                                                    \
    {.name = "max-num-seqs", .type = OPTION_COUNT, .target = &(o).max_sequences, .value = "N",     \
     .help = "maximum sequences per step (default: the server's)", .min = 1, .max = 65536},     \
    {.name = "max-num-batched-tokens", .type = OPTION_COUNT, .target = &(o).max_tokens,            \
     .value = "N", .help = "maximum tokens per step (default: the server's)", .min = 1,          \
     .max = 1048576},                                                                             \
    {.name = "kv-cache-gb", .type = OPTION_NUMBER, .target = &(o).kv_cache_gb, .value = "GB",      \
     .help = "KV cache per device (default: the rest of 0.92 of its memory)", .min = 1e-9,        \
     .max = 1e9},                                                                                 \
    {.name = "step-times", .type = OPTION_TEXT, .target = &(o).step_times, .value = "FILE",        \
     .help = "measured steps: CSV of prompt_tokens, sequences, context, seconds"},                 \
    {.name = "slo-ttft-ms", .type = OPTION_NUMBER, .target = &(o).ttft_ms, .value = "MS",          \
     .help = "SLO on time to first token: find the largest load that meets it",                    \
     .min = 1e-3, .max = 1e7},                                                                  \
    {.name = "slo-itl-ms", .type = OPTION_NUMBER, .target = &(o).itl_ms, .value = "MS",            \
     .help = "SLO on inter-token latency", .min = 1e-3, .max = 1e7},                  \
    {.name = "slo-percentile", .type = OPTION_CHOICE, .target = &(o).percentile, .value = "PCTL",  \
     .help = "percentile of the SLOs: p50, p95, p99 or mean (default: p95)",                       \
     .choices = SERVE_PERCENTILES},                                                                \
    {.name = "seed", .type = OPTION_COUNT, .target = &(o).seed, .value = "N",                      \
     .help = "random seed of arrivals and lengths (default: 0)", .max = 0x7fffffff}
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

#endif
