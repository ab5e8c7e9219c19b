/* ipw profile: a dataset through an inference service, the energy of every query.
 *
 *   $ ipw profile --client openai --model llama3.2:1b --dataset builtin --concurrency 8
 *
 * Progress and the report for people go to stderr; with --json one object goes to stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/profile_view.h"
#include "cli/slurm_options.h"
#include "core/text.h"
#include "port/proc.h"
#include "report/text/profile_report.h"
#include "rundir/run_path.h"
#include "runner/host_report.h"
#include "runner/profile/profile.h"
#include "sampler/session.h"

/* ---- options ---- */

/* Static, and its parameters never released: threads that an interruption leaves behind use them until the
 * process ends. */
static struct profile_command {
    struct measure_options measure;
    struct profile_options profile;
    unsigned seed, runs;
    struct failed_limit max_failed;
    const char *shard;
    unsigned shards;
    bool merge;
    struct slurm_command slurm;
    bool resume, overwrite, yes, json, quiet;
    const char *output, *task;
} command = {
    .runs = 1,
    .task = "answer",
    .measure = {.idle_s = UNKNOWN},
    .profile = {.dataset = "builtin",
                .repeat = 1,
                .warmup_queries = 3,
                .retries = 3,
                .timeout_s = 600,
                .idle_s = 2,
                .decode_weight = 64, /* measured: docs/measurements.md */
                .judge_client = "openai"},
};

static const char *const TASKS[] = {"answer", "perplexity", NULL};

/* clang-format off */
static const struct option_row ROWS[] = {
    {.name = "client", .type = OPTION_TEXT, .target = &command.profile.client, .value = "NAME",
     .help = "client: openai, ollama, llama (in process) or null"},
    {.name = "model", .type = OPTION_TEXT, .target = &command.profile.model, .value = "NAME",
     .help = "model, as the service calls it"},
    {.name = "dataset", .type = OPTION_TEXT, .target = &command.profile.dataset, .value = "NAME",
     .help = "questions: one of `ipw list datasets`, or a file (default: builtin)"},
    {.name = "task", .type = OPTION_CHOICE, .target = &command.task, .value = "TASK",
     .help = "answer: send the questions (default); perplexity: score a text file",
     .choices = TASKS},
    {.name = "client-base-url", .type = OPTION_TEXT, .target = &command.profile.base_url,
     .value = "URL",
     .help = "address of the service (default: the client's own)"},
    {.name = "client-param", .type = OPTION_PARAMS, .target = &command.profile.client_params,
     .value = "K=V",
     .help = "parameter of the client; K=V options may be repeated"},
    {.name = "dataset-param", .type = OPTION_PARAMS, .target = &command.profile.dataset_params,
     .value = "K=V",
     .help = "parameter of the dataset"},
    {.name = "param", .type = OPTION_PARAMS, .target = &command.profile.request_params,
     .value = "K=V",
     .help = "sent with every request: max_tokens=256, temperature=0 ..."},
    {.name = "max-queries", .type = OPTION_COUNT, .target = &command.profile.max_queries,
     .value = "N",
     .help = "only the first N questions (default: all)", .most = 4e9},
    {.name = "warmup-queries", .type = OPTION_COUNT, .target = &command.profile.warmup_queries,
     .value = "N",
     .help = "queries sent first and discarded (default: 3)", .most = 100000},
    {.letter = 'c', .name = "concurrency", .type = OPTION_COUNT,
     .target = &command.profile.concurrency, .value = "N",
     .help = "max. requests in flight (default: 1; with --request-rate: 64)", .least = 1, .most = 4096},
    {.name = "request-rate", .type = OPTION_NUMBER, .target = &command.profile.rate, .value = "R",
     .help = "Poisson arrivals per second (default: next when one ends)", .least = 1e-6,
     .most = 1e6},
    {.name = "repeat", .type = OPTION_COUNT, .target = &command.profile.repeat, .value = "N",
     .help = "ask the whole dataset N times (default: 1)", .least = 1, .most = 100000},
    {.name = "repeat-runs", .type = OPTION_COUNT, .target = &command.runs, .value = "N",
     .help = "repeat the run as a whole N times: NAME_r1, NAME_r2 ... (default: 1)", .least = 1,
     .most = 1000},
    {.name = "seed", .type = OPTION_COUNT, .target = &command.seed, .value = "N",
     .help = "random seed of the arrivals of --request-rate (default: 0)", .most = 4e9},
    {.name = "timeout", .type = OPTION_NUMBER, .target = &command.profile.timeout_s, .value = "S",
     .help = "seconds per request (default: 600)", .least = 0.001, .most = 604800},
    {.name = "retries", .type = OPTION_COUNT, .target = &command.profile.retries, .value = "N",
     .help = "retries after a transient error (default: 3)", .most = 100},
    MAX_FAILED_OPTION_ROW(command.max_failed),
    IDLE_OPTION_ROW(command.measure, "measure idle power first, S seconds (default: 2; 0: not at all)", 0),
    {.name = "system", .type = OPTION_TEXT, .target = &command.profile.system, .value = "TEXT",
     .help = "system prompt of every request"},
    {.name = "template", .type = OPTION_TEXT, .target = &command.profile.template_text,
     .value = "TEXT",
     .help = "prompt template with {problem}, {subject}, {id}, {KEY}"},
    {.name = "grader", .type = OPTION_TEXT, .target = &command.profile.grader, .value = "NAME",
     .help = "how answers are graded (default: the dataset's, else by its answers)"},
    {.name = "grader-param", .type = OPTION_PARAMS, .target = &command.profile.grader_params,
     .value = "K=V",
     .help = "parameter of the grader"},
    {.name = "eval-client", .type = OPTION_TEXT, .target = &command.profile.judge_client,
     .value = "NAME",
     .help = "client of the judge model of --grader judge (default: openai)"},
    {.name = "eval-base-url", .type = OPTION_TEXT, .target = &command.profile.judge_url,
     .value = "URL",
     .help = "address of its service"},
    {.name = "eval-model", .type = OPTION_TEXT, .target = &command.profile.judge_model,
     .value = "NAME",
     .help = "its name; without one such answers are not graded"},
    {.name = "eval-param", .type = OPTION_PARAMS, .target = &command.profile.judge_params,
     .value = "K=V",
     .help = "sent with every request to it"},
    {.name = "prices", .type = OPTION_TEXT, .target = &command.profile.price_file, .value = "FILE",
     .help = "JSON file with prices of tokens and electricity"},
    {.name = "parameters", .type = OPTION_TEXT, .target = &command.profile.parameters,
     .value = "N[,ACTIVE]",
     .help = "parameter count, if unknown to ipw: 8.03B, or 30B,3B"},
    {.name = "weight-bits", .type = OPTION_NUMBER, .target = &command.profile.weight_bits,
     .value = "N",
     .help = "bits per stored parameter, for bandwidth utilization (MBU)", .least = 0.1,
     .most = 64},
    {.name = "kv-bytes", .type = OPTION_NUMBER, .target = &command.profile.kv_bytes, .value = "N",
     .help = "KV-cache bytes per token, for MBU", .most = 1e9},
    {.name = "decode-weight", .type = OPTION_NUMBER, .target = &command.profile.decode_weight,
     .value = "W",
     .help = "weight of an output token relative to a prompt token (default: 64)", .least = 1e-6,
     .most = 1e6},
    {.name = "output-dir", .type = OPTION_TEXT, .target = &command.profile.output_dir,
     .value = "DIR",
     .help = "parent of the run directory (default: runs)"},
    {.name = "name", .type = OPTION_TEXT, .target = &command.profile.name, .value = "NAME",
     .help = "name of the run directory (default: hardware, model, dataset, load)"},
    {.name = "shard", .type = OPTION_TEXT, .target = &command.shard, .value = "I/N",
     .help = "ask only every N-th question from the I-th on, for --merge"},
    {.name = "merge", .type = OPTION_FLAG, .target = &command.merge,
     .help = "make one run of the shards that are given as arguments"},
    {.name = "shards", .type = OPTION_COUNT, .target = &command.shards, .value = "N",
     .help = "with --slurm: split the questions into N shards, and merge them", .least = 1,
     .most = RUN_PARTS_MOST},
    SLURM_OPTION_ROWS(command.slurm, "ask the shards"),
    {.name = "resume", .type = OPTION_FLAG, .target = &command.resume,
     .help = "continue the run in that directory"},
    {.name = "overwrite", .type = OPTION_FLAG, .target = &command.overwrite,
     .help = "replace the run in that directory"},
    {.letter = 'y', .name = "yes", .type = OPTION_FLAG, .target = &command.yes,
     .help = "same as --overwrite"},
    RESULT_OPTION_ROWS(command, "no progress and no report on stderr"),
    MEASURE_OPTION_ROWS(command.measure, "sample-rate"),
    {.name = "rate", .type = OPTION_HINT,
     .help = "use --request-rate for arrivals per second, --sample-rate for the sensors"},
    {.name = "base-url", .type = OPTION_HINT, .help = "use --client-base-url URL"},
    {.name = "url", .type = OPTION_HINT, .help = "use --client-base-url URL"},
    {.name = "max-tokens", .type = OPTION_HINT, .help = "use --param max_tokens=N"},
    {.name = "temperature", .type = OPTION_HINT, .help = "use --param temperature=T"},
    {.letter = 'n', .name = "num-prompts", .type = OPTION_HINT, .help = "use --max-queries N"},
    {.name = "limit", .type = OPTION_HINT, .help = "use --max-queries N"},
    {.name = "max-concurrency", .type = OPTION_HINT, .help = "use --concurrency N"},
    {.name = "api-key", .type = OPTION_HINT,
     .help = "set IPW_API_KEY, so that no list of processes shows the key"},
    {0},
};
/* clang-format on */

/* ---- a run that is in the way ---- */

static bool ask_to_overwrite(const char *path)
{
    char answer[16];
    profile_view_wipe();
    tell("ipw profile: %s already holds a run. Replace it? [y/N] ", path);
    proc_end_by_signals(); /* nothing has been changed yet */
    bool answered = fgets(answer, sizeof answer, stdin) != NULL;
    proc_defer_signals();
    if (!answered)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* ---- the command ---- */

static int complete_options(void)
{
    struct profile_options *profile = &command.profile;
    int code = failed_limit_read(&command.max_failed);
    if (code)
        return code;
    if (is_known(command.measure.idle_s))
        profile->idle_s = command.measure.idle_s;
    if (!profile->client || !profile->model)
        return complain_usage(profile->client ? "missing --model" : "missing --client");
    if (command.shard && !profile_take_shard(profile, command.shard))
        return complain(EXIT_USAGE, "--shard %s: I/N, with I from 1 to N", command.shard);
    if (command.resume && (command.overwrite || command.yes))
        return complain(EXIT_USAGE, "--resume and --overwrite are mutually exclusive");
    if (command.resume)
        profile->existing = EXISTING_RESUME;
    else if (command.overwrite || command.yes)
        profile->existing = EXISTING_OVERWRITE;
    else if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        profile->may_overwrite = ask_to_overwrite;
    /* With fewer workers than arrivals in flight, requests would not be sent at their times. */
    if (profile->concurrency == 0)
        profile->concurrency = profile->rate > 0 ? 64 : 1;
    profile->seed = command.seed;
    profile->is_perplexity = strcmp(command.task, "perplexity") == 0;
    profile->progress = profile_view_show;
    profile->warn = profile_view_warn;
    return -1;
}

/* What the runs gave, as they end. */
static struct {
    int code;            /* of the first that was not right */
    struct text objects; /* of all, separated by commas */
    char group[REPEAT_GROUP_MAX];
} outcome;

/* Of several runs one object, which has all of them. */
static int write_objects(void)
{
    struct text all = {0};
    if (!outcome.objects.length)
        return EXIT_DONE;
    if (outcome.group[0])
        text_addf(&all, "{\"repeat_group\": \"%s\", \"repeats\": [\n%s]}\n", outcome.group,
                  text_get(&outcome.objects));
    int code = deliver_result(command.output, command.json,
                              outcome.group[0] ? &all : &outcome.objects, NULL);
    text_release(&all);
    text_release(&outcome.objects);
    return code;
}

static void keep_outputs(const struct profile_result *result)
{
    struct text text = {0};
    if (outcome.objects.length)
        text_add(&outcome.objects, ",\n");
    str_copy(outcome.group, sizeof outcome.group, result->repeat.group);
    summary_to_report(&result->summary, &outcome.objects);
    if (!command.quiet) {
        profile_text(&result->summary, wants_color(STDERR_FILENO), &text);
        profile_view_put(&text);
    }
    text_release(&text);
}

static int exit_code_of(const struct profile_result *result, enum err err)
{
    if (result->signal)
        return 128 + result->signal;
    if (err) /* what is not found once the run has its directory was there before */
        return err == ERR_USAGE || (err == ERR_NOT_FOUND && !result->directory[0]) ? EXIT_USAGE
                                                                                   : EXIT_FAILED;
    int code = require_answers(&command.max_failed, result->summary.queries, result->summary.failed,
                               "", result->directory);
    return code ? code
                : require_measured(&command.measure, &result->energy, &result->summary.conditions);
}

static void announce(unsigned number, unsigned of)
{
    profile_view_wipe();
    if (!command.quiet)
        tell("ipw profile: run %u of %u\n", number, of);
}

static void take_end(const struct profile_result *result, enum err err, const struct error *why)
{
    profile_view_wipe();
    if (err)
        complain(EXIT_FAILED, "%s", why->text[0] ? why->text : err_text(err));
    if (result->was_done && !command.quiet)
        tell("ipw profile: %s is finished\n", result->directory);
    if (result->has_summary)
        keep_outputs(result);
    int code = exit_code_of(result, err);
    if (code && (!outcome.code || result->signal))
        outcome.code = code;
}

static int measure(void)
{
    /* Neither is released: the process ends next (see cmd_run.c), and after a third signal threads still use
     * them. */
    static struct session session;
    static struct host_report host;
    const struct profile_repeats repeats = {
        .profile = &command.profile, .runs = command.runs, .begins = announce, .ended = take_end};
    struct error why = {0};
    proc_block_signals();
    int code = open_session(&command.measure, &session);
    if (code)
        return code;
    host_report_take(&session.findings, &host);
    profile_view_start("profile", command.quiet);
    enum err err = profile_repeats_run(&session, &host, &repeats, &why);
    if (err && !outcome.code)
        outcome.code = complain(EXIT_FAILED, "%s", why.text);
    int written = write_objects();
    code = outcome.code ? outcome.code : written;
    /* Threads may still be in a request; exit handlers of libraries would free memory that they use.
     * Everything has been written. */
    if (err == ERR_INTERRUPTED)
        _exit(code);
    return code;
}

/* ---- shards ---- */

static int show_merged(const char *directory)
{
    struct profile_result result = {0};
    struct error why = {0};
    if (summary_load(directory, &result.summary, &why))
        return complain(EXIT_FAILED, "%s", why.text);
    keep_outputs(&result);
    if (!command.quiet)
        tell("ipw profile: merged into %s\n", directory);
    int code = require_answers(&command.max_failed, result.summary.queries, result.summary.failed,
                               "", directory);
    summary_release(&result.summary);
    int written = write_objects();
    return code ? code : written;
}

static int end_merge(enum err err, const char *directory, const struct error *why)
{
    if (err)
        return complain(err == ERR_USAGE || err == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED, "%s",
                        why->text);
    return show_merged(directory);
}

static int merge(const char *const *runs, size_t count)
{
    struct error why = {0};
    char directory[512];
    int code = failed_limit_read(&command.max_failed);
    if (code)
        return code;
    enum err err = profile_merge(runs, count, command.profile.output_dir, command.profile.name,
                                 command.overwrite || command.yes, directory, &why);
    return end_merge(err, directory, &why);
}

/* ---- Slurm ---- */

static const char *shard_name(void)
{
    return command.profile.name ? command.profile.name : "questions";
}

static enum err count_left(void *folder, size_t *left, struct error *why)
{
    (void)why;
    *left = profile_shards_left(folder, shard_name(), command.shards, NULL);
    return ERR_OK;
}

/* Elements are called as we are: they take --shard, and with it leave all of Slurm alone. */
static enum err submit_shards(char *folder, struct error *why)
{
    char suffix[16];
    char *last[] = {"--quiet", "--resume", "--name", (char *)shard_name(), "--output-dir", folder,
                    "--shard", "",         NULL};
    const struct slurm_work work = {.directory = folder,
                                    .name = "ipw-profile",
                                    .same_call = true,
                                    .command = last,
                                    .suffix = suffix};
    size_t count, *parts = calloc(command.shards, sizeof *parts);
    str_format(suffix, sizeof suffix, "/%u", command.shards);
    enum err err = parts ? ERR_OK : err_no_memory(why);
    if (!err)
        count = profile_shards_left(folder, shard_name(), command.shards, parts);
    if (!err)
        err = slurm_command_submit(&command.slurm, &work, command.quiet, parts, &count, why);
    free(parts);
    return err;
}

static int profile_on_slurm(void)
{
    struct error why = {0};
    char folder[512], directory[512];
    const struct slurm_wait wait = {"shards", command.quiet, count_left, folder};
    size_t left;
    int number;
    if (!profile_shards_folder(&command.profile, folder, sizeof folder))
        return complain(EXIT_USAGE, "the path of the run directory is too long");
    if (slurm_command_has(folder) && !command.resume)
        return complain(EXIT_USAGE, "%s has the shards of a run: --resume continues it", folder);
    enum err err = submit_shards(folder, &why);
    if (err)
        return complain(err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    if (command.slurm.script_only)
        return EXIT_DONE;
    proc_block_signals();
    if (slurm_command_follow(folder, &wait, &left, &number, &why))
        return complain(EXIT_FAILED, "%s", why.text);
    if (number)
        tell("ipw profile: no longer followed; the job goes on, and the same command with --resume "
             "collects its shards\n");
    if (left && !number)
        complain(EXIT_FAILED,
                 "%zu of %u shards have not ended: see the logs in %s/slurm; the same command with "
                 "--resume submits them again",
                 left, command.shards, folder);
    if (number || left)
        return number ? 128 + number : EXIT_FAILED;
    err = profile_merge_shards(&command.profile, folder, shard_name(), command.shards,
                               command.overwrite || command.yes, directory, &why);
    return end_merge(err, directory, &why);
}

/* An element that is requeued after its shard has ended has nothing to do. */
static bool is_done(void)
{
    const struct profile_options *profile = &command.profile;
    return profile->name && profile->output_dir &&
           profile_shard_is_complete(profile->output_dir, profile->name, profile->shard,
                                     profile->shards);
}

static int check_slurm(void)
{
    int code = slurm_command_check(&command.slurm);
    if (code)
        return code;
    if (command.slurm.on != (command.shards > 0))
        return complain(EXIT_USAGE,
                        command.shards ? "--shards needs --slurm" : "--slurm needs --shards N");
    if (command.slurm.on && command.runs > 1)
        return complain(EXIT_USAGE, "--slurm and --repeat-runs are mutually exclusive");
    for (size_t i = 0; command.slurm.on && i < command.profile.client_params.count; i++)
        if (str_starts(command.profile.client_params.items[i].key, "header."))
            return complain(EXIT_USAGE, "a header may be a secret, and a batch script is no place "
                                        "for one: set IPW_API_KEY in the environment");
    return -1;
}

static int profile_main(const char **words, size_t count)
{
    bool element = command.slurm.on && command.shard;
    if (command.merge)
        return count ? merge(words, count) : complain_usage("missing run directories to --merge");
    if (count)
        return complain(EXIT_USAGE, "unexpected argument '%s'; see --help", words[0]);
    if (element) { /* what is asked for is asked of the merged run */
        command.overwrite = command.yes = command.json = false;
        command.output = NULL;
    }
    int code = element ? -1 : check_slurm();
    if (code < 0)
        code = complete_options();
    if (code >= 0)
        return code;
    if (element && is_done())
        return EXIT_DONE;
    return command.slurm.on && !element ? profile_on_slurm() : measure();
}

const struct command command_profile = {
    .name = "profile",
    .summary = "a dataset through an inference service, with the energy of every query",
    .usage = "--client NAME --model NAME [OPTIONS]",
    .details =
        "Sends every question of a dataset to an inference service and records, for each query, "
        "its\n"
        "energy with uncertainty, its latency, its tokens, and whether the answer was correct.\n"
        "Requests may run concurrently (--concurrency, --request-rate): the energy of a device is "
        "attributed\n"
        "to the requests in flight by the tokens they process, and adds up to what it spent.\n\n"
        "The run directory, runs/profile_HARDWARE_MODEL_DATASET, holds records.jsonl (written as\n"
        "queries end; a killed run continues with --resume), an Arrow dataset for Python's\n"
        "datasets.load_from_disk, summary.json, samples and spans. Ctrl-C lets the queries in "
        "flight\n"
        "end and writes everything; a second one aborts them.\n\n"
        "--repeat-runs N repeats the run as a whole, with its idle baseline and warm-up: `ipw "
        "compare`\n"
        "needs several runs per side to tell a difference from the variation between runs.\n\n"
        "--shard I/N asks a part of the questions, --merge RUN... makes one run of all parts, and "
        "--slurm\n"
        "--shards N does both in a Slurm job array (docs/slurm.md).\n\n"
        "`ipw list -v` shows clients, datasets and graders with their parameters (K=V).",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .run = profile_main,
};
