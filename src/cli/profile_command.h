/* Shared by the commands that send a dataset to a service: their common options, the run itself, and the report at its
 * end.  There is one such command per process; it is never released, because threads left behind by an interruption use
 * it until the process exits. */
#ifndef IPW_CLI_PROFILE_COMMAND_H
#define IPW_CLI_PROFILE_COMMAND_H

#include <stdbool.h>

#include "cli/common.h"
#include "core/units.h"
#include "runner/profile/profile.h"

struct profile_command {
    const char *name; /* name of the command */
    struct measure_options measure;
    struct profile_options profile;
    struct tariff tariff;
    unsigned seed, runs;
    struct failed_limit max_failed;
    struct format_options format;
    bool resume, overwrite, yes, quiet;
    const char *output;
    const char *db; /* database to push to; NULL: none */
    /* Before the run, once signals are blocked, and after it; 0 to continue, else the exit code.  May be NULL. */
    int (*begins)(void);
    void (*ended)(void);
};

#define PROFILE_COMMAND_DEFAULTS(command_name)                                                     \
    {.name = (command_name),                                                                       \
     .runs = 1,                                                                                    \
     .tariff = TARIFF_NONE,                                                                        \
     .measure = {.idle_s = UNKNOWN},                                                               \
     .profile = {.dataset = "builtin",                                                             \
                 .repeat = 1,                                                                      \
                 .warmup_queries = 3,                                                              \
                 .retries = 3,                                                                     \
                 .timeout_s = 600,                                                                 \
                 .idle_s = 2,                                                                      \
                 .decode_weight = 64, /* measured: docs/measurements.md */                         \
                 .judge_client = "openai"}}

/* clang-format off */
/* Service, model and dataset. */
#define PROFILE_WHAT_OPTION_ROWS(c)                                                                \
    {.name = "client", .type = OPTION_TEXT, .target = &(c).profile.client, .value = "NAME",        \
     .help = "client: openai, ollama, anthropic, llama (in process) or null"},                     \
    {.name = "model", .type = OPTION_TEXT, .target = &(c).profile.model, .value = "NAME",          \
     .help = "model name, as known to the service"},                                               \
    {.name = "dataset", .type = OPTION_TEXT, .target = &(c).profile.dataset, .value = "NAME",      \
     .help = "questions: one of `ipw list datasets`, or a file (default: builtin)"}

/* Load, grading and storage. */
#define PROFILE_LOAD_OPTION_ROWS(c)                                                                \
    {.name = "client-base-url", .type = OPTION_TEXT, .target = &(c).profile.base_url,              \
     .value = "URL",                                                                               \
     .help = "address of the service (default: the client's own)"},                                \
    {.name = "client-param", .type = OPTION_PARAMS, .target = &(c).profile.client_params,          \
     .value = "K=V",                                                                               \
     .help = "parameter of the client; K=V options may be repeated"},                              \
    {.name = "dataset-param", .type = OPTION_PARAMS, .target = &(c).profile.dataset_params,        \
     .value = "K=V",                                                                               \
     .help = "parameter of the dataset"},                                                          \
    {.name = "param", .type = OPTION_PARAMS, .target = &(c).profile.request_params,                \
     .value = "K=V",                                                                               \
     .help = "sent with every request: max_tokens=256, temperature=0 ..."},                        \
    {.name = "max-queries", .type = OPTION_COUNT, .target = &(c).profile.max_queries,              \
     .value = "N",                                                                                 \
     .help = "only the first N questions (default: all)", .min = 1, .max = 4e9},                \
    {.name = "warmup-queries", .type = OPTION_COUNT, .target = &(c).profile.warmup_queries,        \
     .value = "N",                                                                                 \
     .help = "queries sent first and discarded (default: 3)", .max = 100000},                     \
    {.letter = 'c', .name = "concurrency", .type = OPTION_COUNT,                                   \
     .target = &(c).profile.concurrency, .value = "N",                                             \
     .help = "max. requests in flight (default: 1; with --request-rate: 64)",                      \
     .min = 1, .max = 4096},                                                                    \
    {.name = "request-rate", .type = OPTION_NUMBER, .target = &(c).profile.rate, .value = "R",     \
     .help = "Poisson arrivals per second (default: closed loop)", .min = 1e-6,                  \
     .max = 1e6},                                                                                 \
    {.name = "repeat", .type = OPTION_COUNT, .target = &(c).profile.repeat, .value = "N",          \
     .help = "run the whole dataset N times (default: 1)", .min = 1, .max = 100000},            \
    {.name = "repeat-runs", .type = OPTION_COUNT, .target = &(c).runs, .value = "N",               \
     .help = "repeat the whole run N times: NAME_r1, NAME_r2 ... (default: 1)", .min = 1,        \
     .max = 1000},                                                                                \
    {.name = "seed", .type = OPTION_COUNT, .target = &(c).seed, .value = "N",                      \
     .help = "random seed of the arrivals with --request-rate (default: 0)", .max = 4e9},         \
    {.name = "timeout", .type = OPTION_NUMBER, .target = &(c).profile.timeout_s, .value = "S",     \
     .help = "seconds per request (default: 600)", .min = 0.001, .max = 604800},                \
    {.name = "retries", .type = OPTION_COUNT, .target = &(c).profile.retries, .value = "N",        \
     .help = "retries after a transient error (default: 3)", .max = 100},                         \
    MAX_FAILED_OPTION_ROW((c).max_failed),                                                         \
    IDLE_OPTION_ROW((c).measure, "measure idle power for S seconds first (default: 2; 0: skip)", 0),\
    {.name = "system", .type = OPTION_TEXT, .target = &(c).profile.system, .value = "TEXT",        \
     .help = "system prompt of every request"},                                                    \
    {.name = "template", .type = OPTION_TEXT, .target = &(c).profile.template_text,                \
     .value = "TEXT",                                                                              \
     .help = "prompt template with {problem}, {subject}, {id}, {KEY}"},                            \
    {.name = "no-answer-format", .type = OPTION_FLAG, .target = &(c).profile.no_answer_format,     \
     .help = "do not ask for the answer in the form that the dataset's grader reads"},             \
    {.name = "grader", .type = OPTION_TEXT, .target = &(c).profile.grader, .value = "NAME",        \
     .help = "grader (default: the dataset's, or chosen by its expected answers)"},                \
    {.name = "grader-param", .type = OPTION_PARAMS, .target = &(c).profile.grader_params,          \
     .value = "K=V",                                                                               \
     .help = "parameter of the grader"},                                                           \
    {.name = "eval-client", .type = OPTION_TEXT, .target = &(c).profile.judge_client,              \
     .value = "NAME",                                                                              \
     .help = "client of the judge model (default: openai)"},                                       \
    {.name = "eval-base-url", .type = OPTION_TEXT, .target = &(c).profile.judge_url,               \
     .value = "URL",                                                                               \
     .help = "address of the judge's service"},                                                    \
    {.name = "eval-model", .type = OPTION_TEXT, .target = &(c).profile.judge_model,                \
     .value = "NAME",                                                                              \
     .help = "name of the judge model; without it, answers are not graded"},                       \
    {.name = "eval-param", .type = OPTION_PARAMS, .target = &(c).profile.judge_params,             \
     .value = "K=V",                                                                               \
     .help = "sent with every request to the judge"},                                              \
    {.name = "judge-unread", .type = OPTION_FLAG, .target = &(c).profile.judge_unread,             \
     .help = "hand answers that the grader cannot read to the judge (--eval-model)"},              \
    {.name = "prices", .type = OPTION_TEXT, .target = &(c).profile.price_file, .value = "FILE",    \
     .help = "JSON file with prices of tokens and electricity"},                                   \
    TARIFF_OPTION_ROWS((c).tariff),                                                                \
    {.name = "parameters", .type = OPTION_TEXT, .target = &(c).profile.parameters,                 \
     .value = "N[,ACTIVE]",                                                                        \
     .help = "parameter count, if the model is unknown to ipw: 8.03B, or 30B,3B"},                 \
    {.name = "weight-bits", .type = OPTION_NUMBER, .target = &(c).profile.weight_bits,             \
     .value = "N",                                                                                 \
     .help = "bits per stored parameter, for bandwidth utilization (MBU)", .min = 0.1,           \
     .max = 64},                                                                                  \
    {.name = "kv-bytes", .type = OPTION_NUMBER, .target = &(c).profile.kv_bytes, .value = "N",     \
     .help = "KV-cache bytes per token, for MBU", .max = 1e9},                                    \
    {.name = "decode-weight", .type = OPTION_NUMBER, .target = &(c).profile.decode_weight,         \
     .value = "W",                                                                                 \
     .help = "weight of an output token relative to a prompt token (default: 64)", .min = 1e-6,  \
     .max = 1e6},                                                                                 \
    {.name = "output-dir", .type = OPTION_TEXT, .target = &(c).profile.output_dir,                 \
     .value = "DIR",                                                                               \
     .help = "parent of the run directory (default: runs)"},                                       \
    {.name = "name", .type = OPTION_TEXT, .target = &(c).profile.name, .value = "NAME",            \
     .help = "name of the run directory (default: hardware, model, dataset, load)"}

/* Existing runs, output, sensors; and hints. */
#define PROFILE_RUN_OPTION_ROWS(c)                                                                 \
    {.name = "resume", .type = OPTION_FLAG, .target = &(c).resume,                                 \
     .help = "continue the run in that directory"},                                                \
    {.name = "overwrite", .type = OPTION_FLAG, .target = &(c).overwrite,                           \
     .help = "replace the run in that directory"},                                                 \
    {.letter = 'y', .name = "yes", .type = OPTION_FLAG, .target = &(c).yes,                        \
     .help = "same as --overwrite"},                                                               \
    DB_PUSH_OPTION_ROW((c).db),                                                                    \
    RESULT_OPTION_ROWS(c, "no progress and no report on stderr"),                                  \
    MEASURE_OPTION_ROWS((c).measure, NULL),                                                        \
    {.name = "rate", .type = OPTION_HINT,                                                          \
     .help = "use --request-rate for arrivals per second, --sample-rate for the sensors"},         \
    {.name = "base-url", .type = OPTION_HINT, .help = "use --client-base-url URL"},                \
    {.name = "url", .type = OPTION_HINT, .help = "use --client-base-url URL"},                     \
    {.name = "max-tokens", .type = OPTION_HINT, .help = "use --param max_tokens=N"},               \
    {.name = "temperature", .type = OPTION_HINT, .help = "use --param temperature=T"},             \
    {.letter = 'n', .name = "num-prompts", .type = OPTION_HINT, .help = "use --max-queries N"},    \
    {.name = "limit", .type = OPTION_HINT, .help = "use --max-queries N"},                         \
    {.name = "max-concurrency", .type = OPTION_HINT, .help = "use --concurrency N"},               \
    {.name = "api-key", .type = OPTION_HINT,                                                       \
     .help = "set IPW_API_KEY: command lines are visible to other users"}
/* clang-format on */

/* Checks and completes the options; -1 to continue, else the exit code. */
int profile_command_complete(struct profile_command *given);

/* Runs the profile and returns the exit code. */
int profile_command_measure(struct profile_command *given);

/* Parts of the above, for a run made otherwise: prints the result, and writes all printed objects. */
void profile_command_show(const struct profile_command *given, const struct profile_result *result);
int profile_command_write(const struct profile_command *given);

#endif
