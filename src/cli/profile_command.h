/* Shared by the commands that send a dataset to a service: their common options, the run itself, and the report at its
 * end.  There is one such command per process; it is never released, because threads left behind by an interruption use
 * it until the process exits. */
#ifndef IPW_CLI_PROFILE_COMMAND_H
#define IPW_CLI_PROFILE_COMMAND_H

#include <stdbool.h>

#include "cli/against.h"
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
    const char *workload; /* --workload; NULL: none */
    const char *output;
    const char *db; /* database to push to; NULL: none */
    struct against_options against;
    const struct profile_options *other; /* of `against`, complete; NULL: none */
    /* Before the run, once signals are blocked, and after it; 0 to continue, else the exit code.  May be NULL. */
    int (*begins)(void);
    void (*ended)(void);
};

#define PROFILE_COMMAND_DEFAULTS(command_name)                                                     \
    {.name = (command_name),                                                                       \
     .runs = 1,                                                                                    \
     .tariff = TARIFF_NONE,                                                                        \
     .measure = {.idle_s = UNKNOWN},                                                               \
     .profile = {.repeat = 1,                                                                      \
                 .warmup_queries = 3,                                                              \
                 .retries = 3,                                                                     \
                 .timeout_s = 600,                                                                 \
                 .idle_s = 2,                                                                      \
                 .decode_weight = 64, /* measured: docs/measurements.md */                         \
                 .judge_client = "openai"}}

/* Service, model and dataset. */
/* clang-format off */
#define PROFILE_WHAT_OPTION_ROWS(c)                                                                \
    TEXT_ROW("client", (c).profile.client, "NAME",                                                 \
             "client: openai, ollama, anthropic, llama (in process) or null"),                     \
    TEXT_ROW("model", (c).profile.model, "NAME", "model name, as known to the service"),           \
    TEXT_ROW("dataset", (c).profile.dataset, "NAME",                                               \
             "questions: one of `ipw list datasets`, or a file (default: builtin)")

/* Load, grading and storage. */
#define PROFILE_LOAD_OPTION_ROWS(c)                                                                \
    TEXT_ROW("client-base-url", (c).profile.base_url, "URL",                                       \
             "address of the service (default: the client's own)"),                                \
    PARAMS_ROW("client-param", (c).profile.client_params, "K=V",                                   \
               "parameter of the client; K=V options may be repeated"),                            \
    PARAMS_ROW("dataset-param", (c).profile.dataset_params, "K=V",                                 \
               "parameter of the dataset"),                                                        \
    PARAMS_ROW("param", (c).profile.request_params, "K=V",                                         \
               "sent with every request: max_tokens=256, temperature=0 ..."),                      \
    COUNT_ROW("max-queries", (c).profile.max_queries, "N",                                         \
              "only the first N questions (default: all)", .min = 1, .max = 4e9),                  \
    COUNT_ROW("warmup-queries", (c).profile.warmup_queries, "N",                                   \
              "queries sent first and discarded (default: 3)", .max = 100000),                     \
    COUNT_ROW("concurrency", (c).profile.concurrency, "N",                                         \
              "max. requests in flight (default: 1; with --request-rate: 64)", .min = 1,           \
              .max = 4096, .letter = 'c'),                                                         \
    NUMBER_ROW("request-rate", (c).profile.rate, "R",                                              \
               "Poisson arrivals per second (default: closed loop)", .min = 1e-6, .max = 1e6),     \
    COUNT_ROW("repeat", (c).profile.repeat, "N", "run the whole dataset N times (default: 1)",     \
              .min = 1, .max = 100000),                                                            \
    COUNT_ROW("repeat-runs", (c).runs, "N",                                                        \
              "repeat the whole run N times: NAME_r1, NAME_r2 ... (default: 1)", .min = 1,         \
              .max = 1000),                                                                        \
    COUNT_ROW("seed", (c).seed, "N",                                                               \
              "random seed of the arrivals with --request-rate (default: 0)", .max = 4e9),         \
    NUMBER_ROW("timeout", (c).profile.timeout_s, "S", "seconds per request (default: 600)",        \
               .min = 0.001, .max = 604800),                                                       \
    COUNT_ROW("retries", (c).profile.retries, "N",                                                 \
              "retries after a transient error (default: 3)", .max = 100),                         \
    MAX_FAILED_OPTION_ROW((c).max_failed),                                                         \
    IDLE_OPTION_ROW((c).measure,                                                                   \
                    "measure idle power for S seconds first (default: 2; 0: skip)", 0),            \
    TEXT_ROW("system", (c).profile.system, "TEXT", "system prompt of every request"),              \
    TEXT_ROW("template", (c).profile.template_text, "TEXT",                                        \
             "prompt template with {problem}, {subject}, {id}, {KEY}"),                            \
    FLAG_ROW("no-answer-format", (c).profile.no_answer_format,                                     \
             "do not ask for the answer in the form that the dataset's grader reads"),             \
    TEXT_ROW("grader", (c).profile.grader, "NAME",                                                 \
             "grader (default: the dataset's, or chosen by its expected answers)"),                \
    PARAMS_ROW("grader-param", (c).profile.grader_params, "K=V", "parameter of the grader"),       \
    TEXT_ROW("eval-client", (c).profile.judge_client, "NAME",                                      \
             "client of the judge model (default: openai)"),                                       \
    TEXT_ROW("eval-base-url", (c).profile.judge_url, "URL", "address of the judge's service"),     \
    TEXT_ROW("eval-model", (c).profile.judge_model, "NAME",                                        \
             "name of the judge model; without it, answers are not graded"),                       \
    PARAMS_ROW("eval-param", (c).profile.judge_params, "K=V",                                      \
               "sent with every request to the judge"),                                            \
    FLAG_ROW("judge-unread", (c).profile.judge_unread,                                             \
             "hand answers that the grader cannot read to the judge (--eval-model)"),              \
    TEXT_ROW("prices", (c).profile.price_file, "FILE",                                             \
             "JSON file with prices of tokens and electricity"),                                   \
    TARIFF_OPTION_ROWS((c).tariff),                                                                \
    TEXT_ROW("parameters", (c).profile.parameters, "N[,ACTIVE]",                                   \
             "parameter count, if the model is unknown to ipw: 8.03B, or 30B,3B"),                 \
    NUMBER_ROW("weight-bits", (c).profile.weight_bits, "N",                                        \
               "bits per stored parameter, for bandwidth utilization (MBU)", .min = 0.1,           \
               .max = 64),                                                                         \
    NUMBER_ROW("kv-bytes", (c).profile.kv_bytes, "N", "KV-cache bytes per token, for MBU",         \
               .max = 1e9),                                                                        \
    NUMBER_ROW("decode-weight", (c).profile.decode_weight, "W",                                    \
               "weight of an output token relative to a prompt token (default: 64)",               \
               .min = 1e-6, .max = 1e6),                                                           \
    TEXT_ROW("output-dir", (c).profile.output_dir, "DIR",                                          \
             "parent of the run directory (default: runs)"),                                       \
    TEXT_ROW("name", (c).profile.name, "NAME",                                                     \
             "name of the run directory (default: hardware, model, dataset, load)")

/* Existing runs, output, sensors; and hints. */
#define PROFILE_RUN_OPTION_ROWS(c)                                                                 \
    FLAG_ROW("resume", (c).resume, "continue the run in that directory"),                          \
    FLAG_ROW("overwrite", (c).overwrite, "replace the run in that directory"),                     \
    FLAG_ROW("yes", (c).yes, "same as --overwrite", .letter = 'y'),                                \
    DB_PUSH_OPTION_ROW((c).db), RESULT_OPTION_ROWS(c, "no progress and no report on stderr"),      \
    MEASURE_OPTION_ROWS((c).measure, NULL),                                                        \
    HINT_ROW("rate",                                                                               \
             "use --request-rate for arrivals per second, --sample-rate for the sensors"),         \
    HINT_ROW("base-url", "use --client-base-url URL"),                                             \
    HINT_ROW("url", "use --client-base-url URL"),                                                  \
    HINT_ROW("max-tokens", "use --param max_tokens=N"),                                            \
    HINT_ROW("temperature", "use --param temperature=T"),                                          \
    HINT_ROW("num-prompts", "use --max-queries N", .letter = 'n'),                                 \
    HINT_ROW("limit", "use --max-queries N"),                                                      \
    HINT_ROW("max-concurrency", "use --concurrency N"),                                            \
    HINT_ROW("api-key", "set IPW_API_KEY: command lines are visible to other users")
/* clang-format on */

/* Checks and completes the options; -1 to continue, else the exit code. */
int profile_command_complete(struct profile_command *given);

/* Runs the profile and returns the exit code. */
int profile_command_measure(struct profile_command *given);

/* Parts of the above, for a run made otherwise: prints the result, and writes all printed objects. */
void profile_command_show(const struct profile_command *given, const struct profile_result *result);
int profile_command_write(const struct profile_command *given);

#endif
