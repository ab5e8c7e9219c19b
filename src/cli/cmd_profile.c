/* ipw profile: a dataset through an inference service, the energy of every query.
 *
 *   $ ipw profile --client openai --model llama3.2:1b --dataset builtin --concurrency 8
 *
 * Progress and the text report go to stderr; with --format the result goes to stdout. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/profile_command.h"
#include "cli/option_groups.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "rundir/run_path.h"
#include "runner/profile/profile.h"

/* ---- options ---- */

static struct {
    struct profile_command common;
    const char *shard;
    unsigned shards;
    bool merge;
    struct slurm_command slurm;
    const char *task;
} command = {
    .common = PROFILE_COMMAND_DEFAULTS("profile"),
    .task = "answer",
};

static const char *const TASKS[] = {"answer", "perplexity", NULL};

static const struct option_row ROWS[] = {
    TEXT_ROW("workload", command.common.workload, "NAME",
             "application in this process: vit, yolo ... (`ipw list workloads`)"),
    PROFILE_WHAT_OPTION_ROWS(command.common),
    CHOICE_ROW("task", command.task, "TASK", TASKS,
               "answer (default); perplexity: score the text of --dataset FILE.txt"),
    PROFILE_LOAD_OPTION_ROWS(command.common),
    TEXT_ROW("shard", command.shard, "I/N",
             "run only every N-th question, starting at the I-th; see --merge"),
    FLAG_ROW("merge", command.merge, "merge the shards given as arguments into one run"),
    COUNT_ROW("shards", command.shards, "N",
              "with --slurm: split the dataset into N shards, and merge them", .min = 1,
              .max = RUN_PARTS_MAX),
    SLURM_OPTION_ROWS(command.slurm, "run the shards"),
    AGAINST_OPTION_ROWS(command.common.against, "OPTION=VALUE",
                        "measure pairs of runs with and without this option, and compare"),
    PROFILE_RUN_OPTION_ROWS(command.common),
    {0},
};

/* ---- the other options of --against ---- */

/* Whether it describes the load or the service, not this call or where runs are stored. */
static bool may_alternate(const struct option_row *row)
{
    const struct profile_options *profile = &command.common.profile;
    const char *at = row->target, *from = (const char *)profile;
    if (row->target == &command.common.seed)
        return true;
    return at >= from && at < from + sizeof *profile && row->target != &profile->output_dir &&
           row->target != &profile->name;
}

/* "param.temperature=1" is --param temperature=1. */
static void write_option(const char *given, char *name, size_t size, char **word)
{
    size_t length = strcspn(given, "=");
    size_t of_name = strcspn(given, ".=");
    str_format(name, size, "%.*s", (int)of_name, given);
    if (of_name < length)
        *word = xformat("--%s=%s", name, given + of_name + 1);
    else
        *word = xformat("--%s", given);
}

static enum err parse_other(const char *given, struct error *why)
{
    static char *word; /* values of options point into it */
    char name[64];
    int rest;
    bool help = false;
    write_option(given, name, sizeof name, &word);
    if (!name[0])
        return err_set(why, ERR_USAGE, "missing OPTION=VALUE");
    char *words[] = {"profile", word, NULL};
    const struct option_row *row = options_row(ROWS, name);
    if (row && !may_alternate(row))
        return err_set(why, ERR_USAGE, "--%s is no setting that can alternate", name);
    return options_parse(ROWS, 2, words, false, &rest, &help, why);
}

static void copy_params(struct profile_options *profile)
{
    struct params *all[] = {&profile->client_params, &profile->dataset_params,
                            &profile->request_params, &profile->grader_params,
                            &profile->judge_params};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        const struct params given = *all[i];
        *all[i] = (struct params){0};
        params_copy(all[i], &given);
    }
}

/* Parses into the targets of the options, as if the option had been given last, and puts them back. */
static int complete_other(void)
{
    static struct profile_options other; /* threads may use it until the process exits */
    static struct profile_command given; /* owns its parameters, also after an error */
    struct error why = {0};
    given = command.common;
    copy_params(&command.common.profile);
    if (parse_other(given.against.given, &why))
        return print_error(EXIT_USAGE, "--against: %s", why.text);
    int code = profile_command_complete(&command.common);
    other = command.common.profile;
    command.common = given;
    command.common.other = &other;
    return code;
}

static int complete_against(void)
{
    struct profile_command *common = &command.common;
    int code = against_check(&common->against, "repeat-runs", &common->runs);
    if (code || !common->against.given)
        return code ? code : -1;
    if (command.shard || command.shards || command.slurm.on)
        return print_error(EXIT_USAGE, "--against and %s are mutually exclusive",
                           command.slurm.on ? "--slurm" : "--shard");
    return complete_other();
}

static int complete_options(void)
{
    struct profile_options *profile = &command.common.profile;
    if (command.shard && !profile_parse_shard(profile, command.shard))
        return print_error(EXIT_USAGE, "--shard %s: expected I/N, I from 1 to N", command.shard);
    profile->is_perplexity = str_equal(command.task, "perplexity");
    int code = complete_against();
    return code < 0 ? profile_command_complete(&command.common) : code;
}

/* ---- shards ---- */

static int show_merged(const char *directory)
{
    struct profile_result result = {0};
    struct error why = {0};
    if (summary_load(directory, &result.summary, &why))
        return print_failure(&why);
    profile_command_show(&command.common, &result);
    if (!command.common.quiet)
        notify("ipw profile: merged into %s\n", directory);
    push_saved(command.common.db, directory, command.common.quiet);
    int code = require_answers(&command.common.max_failed, result.summary.queries,
                               result.summary.failed, "", directory);
    summary_release(&result.summary);
    int written = profile_command_write(&command.common);
    return code ? code : written;
}

static int end_merge(enum err err, const char *directory, const struct error *why)
{
    return err ? print_name_err(err, why) : show_merged(directory);
}

static int merge(const char *const *runs, size_t count)
{
    struct error why = {0};
    char *directory;
    int code = failed_limit_read(&command.common.max_failed);
    if (!code)
        code = check_db(command.common.db, false);
    if (code)
        return code;
    enum err err =
        profile_merge(runs, count, command.common.profile.output_dir, command.common.profile.name,
                      command.common.overwrite || command.common.yes, &directory, &why);
    code = end_merge(err, directory, &why);
    free(directory);
    return code;
}

/* ---- Slurm ---- */

static const char *shard_name(void)
{
    return command.common.profile.name ? command.common.profile.name : "questions";
}

static enum err count_left(void *folder, size_t *left, struct error *why)
{
    (void)why;
    *left = profile_shards_left(folder, shard_name(), command.shards, NULL);
    return ERR_OK;
}

static enum err list_shards(void *folder, size_t *parts, size_t *count, struct error *why)
{
    (void)why;
    *count = profile_shards_left(folder, shard_name(), command.shards, parts);
    return ERR_OK;
}

/* Elements run with our own arguments plus --shard, which disables everything related to Slurm. */
static enum err submit_shards(char *folder, struct error *why)
{
    char suffix[16];
    char *last[] = {"--quiet", "--resume", "--name", (char *)shard_name(), "--output-dir", folder,
                    "--shard", "",         NULL};
    const struct slurm_work work = {.directory = folder,
                                    .name = "ipw-profile",
                                    .same_call = true,
                                    .command = last,
                                    .suffix = suffix,
                                    .list = list_shards,
                                    .context = folder,
                                    .max = command.shards};
    size_t count;
    chars_format(suffix, "/%u", command.shards);
    return slurm_command_submit(&command.slurm, &work, command.common.quiet, &count, why);
}

static int run_shards(char *folder)
{
    struct error why = {0};
    char *directory;
    const struct slurm_wait wait = {"shards", command.common.quiet, count_left, folder};
    size_t left;
    int number;
    if (slurm_was_used(folder) && !command.common.resume)
        return print_error(EXIT_USAGE, "%s holds the shards of a run: --resume continues it",
                           folder);
    enum err err = submit_shards(folder, &why);
    if (err)
        return print_err(err, &why);
    if (command.slurm.script_only)
        return EXIT_DONE;
    proc_block_signals();
    if (slurm_command_follow(folder, &wait, &left, &number, &why))
        return print_failure(&why);
    if (number)
        notify("ipw profile: detached; the job continues, and the same command with --resume "
               "collects its shards\n");
    if (left && !number)
        print_error(
            EXIT_FAILED,
            "%zu of %u shards did not finish: see the logs in %s/slurm; the same command with "
            "--resume resubmits them",
            left, command.shards, folder);
    if (number || left)
        return number ? 128 + number : EXIT_FAILED;
    err = profile_merge_shards(&command.common.profile, folder, shard_name(), command.shards,
                               command.common.overwrite || command.common.yes, &directory, &why);
    int code = end_merge(err, directory, &why);
    free(directory);
    return code;
}

static int profile_on_slurm(void)
{
    char *folder = profile_shards_folder(&command.common.profile);
    int code = run_shards(folder);
    free(folder);
    return code;
}

/* An element that is requeued after its shard has ended has nothing to do. */
static bool is_done(void)
{
    const struct profile_options *profile = &command.common.profile;
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
        return print_error(EXIT_USAGE,
                           command.shards ? "--shards needs --slurm" : "--slurm needs --shards N");
    if (command.slurm.on && command.common.runs > 1)
        return print_error(EXIT_USAGE, "--slurm and --repeat-runs are mutually exclusive");
    if (check_db(command.common.db, command.slurm.on))
        return EXIT_USAGE;
    for (size_t i = 0; command.slurm.on && i < command.common.profile.client_params.count; i++)
        if (str_starts(command.common.profile.client_params.items[i].key, "header."))
            return print_error(EXIT_USAGE, "a header may hold a secret, which must not go into a "
                                           "batch script: set IPW_API_KEY in the environment");
    return -1;
}

static int profile_main(const char **words, size_t count)
{
    bool element = command.slurm.on && command.shard;
    if (command.merge)
        return count ? merge(words, count) : usage_error("--merge: missing run directories");
    if (count)
        return print_error(EXIT_USAGE, "unexpected argument '%s'; see --help", words[0]);
    if (element) { /* applies to the merged run */
        command.common.overwrite = command.common.yes = false;
        command.common.format = (struct format_options){0};
        command.common.output = command.common.db = NULL;
    }
    int code = element ? -1 : check_slurm();
    if (code < 0)
        code = complete_options();
    if (code >= 0)
        return code;
    if (element && is_done())
        return EXIT_DONE;
    return command.slurm.on && !element ? profile_on_slurm()
                                        : profile_command_measure(&command.common);
}

const struct command command_profile = {
    .name = "profile",
    .summary = "run a dataset through an inference service and measure the energy of every query",
    .usage = "--client NAME --model NAME | --workload NAME [OPTIONS]",
    .details =
        "Sends every question of a dataset to an inference service and records, for each query,\n"
        "its energy with uncertainty, its latency, its tokens, and whether the answer was\n"
        "correct. With concurrent requests (--concurrency, --request-rate) the energy of a device\n"
        "is attributed to the requests in flight by the tokens they process; the shares add up to\n"
        "the device's total.\n\n"
        "The run directory, runs/profile_HARDWARE_MODEL_DATASET, holds records.jsonl (written as\n"
        "queries end; --resume continues a killed run), an Arrow dataset for Python's\n"
        "datasets.load_from_disk, summary.json, samples and spans. Ctrl-C waits for the queries\n"
        "in flight and writes all results; a second Ctrl-C aborts them.\n\n"
        "--repeat-runs N repeats the whole run, with its idle baseline and warm-up: `ipw compare`\n"
        "needs several runs per side to distinguish a difference from the variation between "
        "runs.\n\n"
        "--against OPTION=VALUE (model=NAME, param.temperature=1, concurrency=8) measures pairs "
        "of\n"
        "runs, with and without that option, in the order A B, B A, A B ..., and prints what `ipw\n"
        "compare` does. With --until-decided the series ends when the difference of the energies\n"
        "has a verdict: with equal settings at most 3.5 % of series do, however many pairs they\n"
        "have (docs/metrics.md).\n\n"
        "--workload NAME runs a vision, speech or diffusion model (ONNX) in this process instead "
        "of\n"
        "sending questions to a service: `ipw list workloads` shows each with its inputs, models\n"
        "and metrics. Without --model and --dataset it runs the model and the held-out data that\n"
        "ipw ships. --param sets what a query does (steps, guidance, confidence), --client-param\n"
        "how it runs (threads, provider, batch).\n\n"
        "--shard I/N runs one shard of the dataset, --merge RUN... merges shards into one run,\n"
        "and --slurm --shards N does both in a Slurm job array (docs/slurm.md).\n\n"
        "`ipw list -v` shows clients, datasets and graders with their parameters (K=V).",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .run = profile_main,
};
