/* ipw profile: a dataset through an inference service, every query in joules.
 *
 *   $ ipw profile --client openai --model llama3.2:1b --dataset builtin --concurrency 8
 *
 * Progress and the report for people go to stderr; with --json one object ends on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/profile_view.h"
#include "core/text.h"
#include "port/proc.h"
#include "report/text/profile_report.h"
#include "runner/host_report.h"
#include "runner/profile/profile.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

static int profile_main(int argc, char **argv);

const struct command command_profile = {
    .name = "profile",
    .summary = "a dataset through an inference service, every query in joules",
    .usage = "--client NAME --model NAME [OPTIONS]",
    .details =
        "Asks an inference service every question of a dataset and writes down, for each, what it\n"
        "cost: joules with their uncertainty, seconds, tokens, and whether the answer was right.\n"
        "Requests may run concurrently (--concurrency, --rate): what a device spends is then "
        "shared\n"
        "among those alive by the tokens they process, and adds up to what it spent.\n\n"
        "The run's directory, runs/profile_HARDWARE_MODEL_DATASET, holds records.jsonl (written "
        "as\n"
        "the queries end; a killed run continues with --resume), an Arrow dataset that Python's\n"
        "datasets.load_from_disk reads, summary.json, samples and spans. Ctrl-C lets the queries "
        "in\n"
        "flight end and writes everything; a second one breaks them off.\n\n"
        "`ipw list -v` shows the clients, datasets and graders with their settings (K=V).",
    .run = profile_main,
};

/* ---- a run that stands in the way ---- */

static bool ask_to_overwrite(const char *path)
{
    char answer[16];
    profile_view_wipe();
    fprintf(stderr, "ipw profile: %s holds a run already. Replace it? [y/N] ", path);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* ---- the command ---- */

struct profile_command {
    struct measure_options measure;
    struct profile_options profile;
    unsigned seed;
    bool resume, overwrite, yes, json, quiet;
    const char *output;
};

static int settle_options(struct profile_command *command)
{
    struct profile_options *profile = &command->profile;
    if (!profile->client || !profile->model)
        return complain("profile", EXIT_USAGE, "%s is missing; usage: ipw profile %s",
                        profile->client ? "--model" : "--client", command_profile.usage);
    if (command->resume && (command->overwrite || command->yes))
        return complain("profile", EXIT_USAGE, "--resume and --overwrite exclude each other");
    if (command->resume)
        profile->existing = EXISTING_RESUME;
    else if (command->overwrite || command->yes)
        profile->existing = EXISTING_OVERWRITE;
    else if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        profile->may_overwrite = ask_to_overwrite;
    /* Arrivals that nobody is free to serve would not be Poisson any more. */
    if (profile->concurrency == 0)
        profile->concurrency = profile->rate > 0 ? 64 : 1;
    profile->seed = command->seed;
    profile->progress = profile_view_show;
    profile->warn = profile_view_warn;
    return -1;
}

static int deliver(const struct profile_command *command, const struct profile_result *result)
{
    struct text text = {0};
    struct error why = {0};
    int code = 0;
    if (!command->quiet) {
        if (profile_text(result, wants_colour(STDERR_FILENO), &text, &why) != ERR_OK)
            code = complain("profile", EXIT_FAILED, "%s", why.text);
        else
            profile_view_put(&text);
    }
    text_release(&text);
    if (command->output && write_file(command->output, &result->report, &why) != ERR_OK)
        code = complain("profile", EXIT_FAILED, "%s", why.text);
    if (command->json) {
        int written = put_output("profile", &result->report);
        code = written ? written : code;
    }
    return code;
}

static int exit_code_of(const struct profile_command *command, const struct profile_result *result,
                        enum err err, int delivered)
{
    if (result->signal)
        return 128 + result->signal;
    if (err)
        return err == ERR_USAGE || err == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED;
    if (delivered)
        return delivered;
    if (result->queries > 0 && result->completed == 0)
        return complain("profile", EXIT_FAILED, "every query failed: see %s/records.jsonl",
                        result->directory);
    if (command->measure.require_energy)
        return require_measured("profile", &result->energy);
    return EXIT_DONE;
}

static int measure(const struct profile_command *command)
{
    /* Neither is released: the process ends next (see cmd_run.c), and after an impatient interruption
     * threads still use them. */
    static struct session session;
    static struct host_report host;
    struct profile_result result;
    struct error why = {0};
    proc_block_signals();
    int code = open_session("profile", &command->measure, &session);
    if (code)
        return code;
    host_report_take(&session.findings, &host);
    profile_view_start("profile", command->quiet);
    enum err err = profile_run(&session, &host, &command->profile, &result, &why);
    profile_view_wipe();
    if (err)
        complain("profile", EXIT_FAILED, "%s", why.text[0] ? why.text : err_text(err));
    if (result.report.length)
        code = deliver(command, &result);
    code = exit_code_of(command, &result, err, code);
    profile_result_release(&result);
    /* Threads may still be asking; what libraries do at exit would pull their memory from under them.
     * All that we had to say has been written. */
    if (err == ERR_INTERRUPTED)
        _exit(code);
    return code;
}

static int profile_main(int argc, char **argv)
{
    /* Static, and its parameters never released: threads that an interruption leaves behind use them
     * until the process ends. */
    static struct profile_command command = {
        .profile = {.dataset = "builtin",
                    .repeat = 1,
                    .warmup_queries = 3,
                    .retries = 3,
                    .timeout_s = 600,
                    .idle_s = 2,
                    .decode_weight = 64, /* measured: docs/measurements.md */
                    .judge_client = "openai"},
    };
    struct profile_options *p = &command.profile;
    const struct option_row rows[] = {
        {0, "client", OPTION_TEXT, &p->client, "NAME",
         "how to ask: openai, ollama, llama (in this process) or null", 0, 0, NULL},
        {0, "model", OPTION_TEXT, &p->model, "NAME", "the model, as the service calls it", 0, 0,
         NULL},
        {0, "dataset", OPTION_TEXT, &p->dataset, "NAME",
         "questions: of `ipw list datasets`, or a file (default: builtin)", 0, 0, NULL},
        {0, "client-base-url", OPTION_TEXT, &p->base_url, "URL",
         "where the service is (default: the client's own)", 0, 0, NULL},
        {0, "client-param", OPTION_PARAMS, &p->client_params, "K=V",
         "a setting of the client; this and its like may be repeated", 0, 0, NULL},
        {0, "dataset-param", OPTION_PARAMS, &p->dataset_params, "K=V", "a setting of the dataset",
         0, 0, NULL},
        {0, "param", OPTION_PARAMS, &p->request_params, "K=V",
         "sent with every request: max_tokens=256, temperature=0 ...", 0, 0, NULL},
        {0, "max-queries", OPTION_COUNT, &p->max_queries, "N",
         "only the first N questions (default: all)", 0, 4e9, NULL},
        {0, "warmup-queries", OPTION_COUNT, &p->warmup_queries, "N",
         "questions asked first and forgotten (default: 3)", 0, 100000, NULL},
        {'c', "concurrency", OPTION_COUNT, &p->concurrency, "N",
         "requests at the same time, at most (default: 1; with --rate: 64)", 1, 4096, NULL},
        {0, "rate", OPTION_NUMBER, &p->rate, "R",
         "R new requests a second, at random times (default: when one ends)", 1e-6, 1e6, NULL},
        {0, "repeat", OPTION_COUNT, &p->repeat, "N", "the whole dataset N times (default: 1)", 1,
         100000, NULL},
        {0, "seed", OPTION_COUNT, &command.seed, "N", "of the random times of --rate (default: 0)",
         0, 4e9, NULL},
        {0, "timeout", OPTION_NUMBER, &p->timeout_s, "S", "seconds for one answer (default: 600)",
         0.001, 604800, NULL},
        {0, "retries", OPTION_COUNT, &p->retries, "N",
         "more tries after a failure that may pass (default: 3)", 0, 100, NULL},
        {0, "idle", OPTION_NUMBER, &p->idle_s, "S",
         "watch the machine at rest first, S seconds (default: 2; 0: do not)", 0, 86400, NULL},
        {0, "system", OPTION_TEXT, &p->system, "TEXT", "system prompt of every request", 0, 0,
         NULL},
        {0, "template", OPTION_TEXT, &p->template_text, "TEXT",
         "the prompt, with {problem}, {subject}, {id}, {KEY} filled in", 0, 0, NULL},
        {0, "grader", OPTION_TEXT, &p->grader, "NAME",
         "what finds answers right or wrong (default: the dataset's own)", 0, 0, NULL},
        {0, "grader-param", OPTION_PARAMS, &p->grader_params, "K=V", "a setting of the grader", 0,
         0, NULL},
        {0, "eval-client", OPTION_TEXT, &p->judge_client, "NAME",
         "how to ask the model of --grader judge (default: openai)", 0, 0, NULL},
        {0, "eval-base-url", OPTION_TEXT, &p->judge_url, "URL", "where that model's service is", 0,
         0, NULL},
        {0, "eval-model", OPTION_TEXT, &p->judge_model, "NAME",
         "its name; without one the answers wait for a judge", 0, 0, NULL},
        {0, "eval-param", OPTION_PARAMS, &p->judge_params, "K=V", "sent with every request to it",
         0, 0, NULL},
        {0, "prices", OPTION_TEXT, &p->price_file, "FILE", "JSON: what tokens and electricity cost",
         0, 0, NULL},
        {0, "parameters", OPTION_TEXT, &p->parameters, "N[,ACTIVE]",
         "the model's size where it is not known: 8.03B, or 30B,3B", 0, 0, NULL},
        {0, "weight-bits", OPTION_NUMBER, &p->weight_bits, "N",
         "bits of a stored parameter, for the use of memory bandwidth (MBU)", 0.1, 64, NULL},
        {0, "kv-bytes", OPTION_NUMBER, &p->kv_bytes, "N",
         "bytes of one token's keys and values, for the same", 0, 1e9, NULL},
        {0, "decode-weight", OPTION_NUMBER, &p->decode_weight, "W",
         "weight of an output token against a prompt token (default: 64)", 1e-6, 1e6, NULL},
        {0, "output-dir", OPTION_TEXT, &p->output_dir, "DIR",
         "where run directories are made (default: runs)", 0, 0, NULL},
        {0, "resume", OPTION_FLAG, &command.resume, NULL, "continue the run that is there already",
         0, 0, NULL},
        {0, "overwrite", OPTION_FLAG, &command.overwrite, NULL, "replace it", 0, 0, NULL},
        {'y', "yes", OPTION_FLAG, &command.yes, NULL, "the same as --overwrite", 0, 0, NULL},
        {0, "json", OPTION_FLAG, &command.json, NULL, "one JSON object on stdout at the end", 0, 0,
         NULL},
        {'o', "output", OPTION_TEXT, &command.output, "FILE", "that object into FILE", 0, 0, NULL},
        {'q', "quiet", OPTION_FLAG, &command.quiet, NULL, "no progress and no report on stderr", 0,
         0, NULL},
        MEASURE_OPTION_ROWS(command.measure, "sample-rate"),
        {0},
    };
    int rest, code = parse_or_help(&command_profile, rows, argc, argv, false, &rest);
    if (code >= 0)
        return code;
    code = settle_options(&command);
    return code < 0 ? measure(&command) : code;
}
