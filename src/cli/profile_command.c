#include "cli/profile_command.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/common.h"
#include "clients/client.h"
#include "core/result.h"
#include "core/text.h"
#include "port/proc.h"
#include "report/text/compare_report.h"
#include "report/text/reports.h"
#include "runner/host_report.h"
#include "sampler/session.h"
#include "stats/sequential.h"
#include "workloads/batch.h"
#include "workloads/workload.h"

static const struct profile_command *command; /* the running command */

/* ---- an existing run ---- */

static bool ask_to_overwrite(const char *path)
{
    char answer[16];
    profile_view_clear();
    notify("ipw %s: %s already holds a run. Replace it? [y/N] ", command->name, path);
    proc_end_by_signals(); /* nothing has been changed yet */
    bool answered = fgets(answer, sizeof answer, stdin) != NULL;
    proc_defer_signals();
    if (!answered)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* ---- the workload ---- */

/* The workload of language models is a client, a model and a dataset that exist without it. */
static const char TEXT_MODEL[] = "ipw-1m-q8_0";

static void set_default(const char **option, const char *value)
{
    if (!*option)
        *option = value;
}

static int complete_workload(struct profile_command *given)
{
    struct profile_options *profile = &given->profile;
    struct error why = {0};
    if (!given->workload)
        return 0;
    bool is_text = str_equal(given->workload, WORKLOAD_TEXT);
    const char *client = is_text ? "llama" : workload_client.name;
    if (profile->client && !str_equal(profile->client, client))
        return print_error(EXIT_USAGE, "--workload %s runs in this process, with the client %s",
                           given->workload, client);
    profile->client = client;
    if (is_text) {
        set_default(&profile->model, TEXT_MODEL);
        return 0;
    }
    const struct workload_driver *driver = workload_driver_find(given->workload, &why);
    if (!driver)
        return print_error(EXIT_USAGE, "%s", why.text);
    profile->workload = driver;
    set_default(&profile->model, driver->default_model);
    set_default(&profile->dataset, driver->default_dataset);
    const char *batch = params_get(&profile->client_params, WORKLOAD_BATCH);
    uint64_t size;
    if (batch && !profile->concurrency && parse_u64(batch, &size) == ERR_OK && size <= BATCH_MAX)
        profile->concurrency = (unsigned)size;
    if (!profile->model || !profile->dataset)
        return print_error(EXIT_USAGE, "--workload %s needs %s", driver->name,
                           profile->model ? "--dataset" : "--model");
    return 0;
}

/* ---- a client that reads no questions ---- */

/* Its dataset only counts the runs: as many as --max-queries says. */
static int complete_load(struct profile_options *profile)
{
    enum { RUNS = 32 };
    const struct client_driver *driver =
        profile->client && !profile->workload ? client_driver_find(profile->client, NULL) : NULL;
    if (!driver || !driver->only_dataset)
        return 0;
    set_default(&profile->dataset, driver->only_dataset);
    if (!str_equal(profile->dataset, driver->only_dataset))
        return print_error(EXIT_USAGE,
                           "--client %s reads no questions: without --dataset, --max-queries N is "
                           "the number of runs",
                           profile->client);
    char runs[24];
    chars_format(runs, "%u", profile->max_queries ? profile->max_queries : RUNS);
    if (!params_get(&profile->dataset_params, "count"))
        params_set(&profile->dataset_params, "count", runs);
    return 0;
}

/* ---- the command ---- */

int profile_command_complete(struct profile_command *given)
{
    struct profile_options *profile = &given->profile;
    int code = failed_limit_read(&given->max_failed);
    command = given;
    if (!code)
        code = check_db(given->db, false);
    if (code)
        return code;
    code = complete_workload(given);
    if (!code)
        code = complete_load(profile);
    if (code)
        return code;
    set_default(&profile->dataset, "builtin");
    if (is_known(given->measure.idle_s))
        profile->idle_s = given->measure.idle_s;
    if (!profile->client || !profile->model)
        return usage_error(profile->client ? "missing --model" : "missing --client or --workload");
    if (profile->judge_unread && !profile->judge_model)
        return print_error(EXIT_USAGE, "--judge-unread needs a judge: --eval-model NAME");
    if (given->resume && (given->overwrite || given->yes))
        return print_error(EXIT_USAGE, "--resume and --overwrite are mutually exclusive");
    if (given->resume)
        profile->existing = EXISTING_RESUME;
    else if (given->overwrite || given->yes)
        profile->existing = EXISTING_OVERWRITE;
    else if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        profile->may_overwrite = ask_to_overwrite;
    /* With fewer workers than requests in flight, requests would not be sent at their arrival times. */
    if (profile->concurrency == 0)
        profile->concurrency = profile->rate > 0 ? 64 : 1;
    profile->seed = given->seed;
    profile->tariff = &given->tariff;
    profile->progress = profile_view_show;
    profile->warn = profile_view_warn;
    return -1;
}

/* Results of the runs. */
static struct {
    int code;            /* first exit code other than 0 */
    struct text objects; /* of all runs as JSON, separated by commas */
    struct text tables;  /* as text */
    struct result rows;  /* for CSV and Markdown: the only run, or a list of all */
    char group[REPEAT_GROUP_MAX];
    struct against_runs sides; /* with --against */
    bool is_decided;
} outcome;

static void fill_result(const struct summary *summary, struct result *out)
{
    result_begin(out, "profile");
    summary_put_report(summary, out);
    result_end(out);
}

static void add_rows(const struct summary *summary)
{
    struct result *rows = &outcome.rows;
    if (!outcome.group[0]) {
        fill_result(summary, rows);
        return;
    }
    if (!rows->count) {
        result_begin(rows, "profile");
        result_text(rows, "repeat_group", outcome.group);
        result_list(rows, "repeats");
    }
    result_group(rows, NULL);
    summary_put_report(summary, rows);
    result_end(rows);
}

static void add_object(const struct summary *summary)
{
    struct text *out = &outcome.objects;
    struct result result = {0};
    fill_result(summary, &result);
    result_print(&result, PRINT_JSON, NULL, false, out);
    text_add(out, "\n");
    result_release(&result);
}

/* For several runs one object that contains all of them. */
static void print_runs(const void *context, enum print_format format, bool color, struct text *out)
{
    (void)context;
    if (format == PRINT_TABLE)
        text_add(out, text_get(&outcome.tables));
    else if (format != PRINT_JSON)
        result_print(&outcome.rows, format, NULL, color, out);
    else if (outcome.group[0])
        text_addf(out, "{\"repeat_group\": \"%s\", \"repeats\": [\n%s]}\n", outcome.group,
                  text_get(&outcome.objects));
    else
        text_add(out, text_get(&outcome.objects));
}

static void print_comparison(const void *context, enum print_format format, bool color,
                             struct text *out)
{
    result_print(context, format, &COMPARE_VIEWS, color, out);
}

/* Of both sides of a series, in place of the results of their runs. */
static int write_comparison(const struct profile_command *given)
{
    struct result result = {0};
    struct error why = {0};
    if (!outcome.sides.counts[0] || !outcome.sides.counts[1])
        return EXIT_DONE; /* it failed, or was interrupted before */
    if (against_result(&outcome.sides, &result, &why))
        return print_failure(&why);
    int code = deliver_result(given->output, &given->format, print_comparison, &result, true);
    result_release(&result);
    against_release(&outcome.sides);
    return code;
}

int profile_command_write(const struct profile_command *given)
{
    int code = EXIT_DONE;
    if (given->other)
        code = write_comparison(given);
    else if (outcome.objects.length)
        code = deliver_result(given->output, &given->format, print_runs, NULL, false);
    result_release(&outcome.rows);
    text_release(&outcome.objects);
    text_release(&outcome.tables);
    return code;
}

static bool has_model_inside(const struct summary *run)
{
    const struct client_driver *driver =
        client_driver_find(text_or_empty(run->config_client), NULL);
    return driver && driver->is_in_process;
}

void profile_command_show(const struct profile_command *given, const struct profile_result *result)
{
    struct text text = {0};
    if (outcome.objects.length)
        text_add(&outcome.objects, ",\n");
    chars_copy(outcome.group, result->repeat.group);
    add_object(&result->summary);
    add_rows(&result->summary);
    bool has_model = has_model_inside(&result->summary);
    profile_text(&result->summary, has_model, false, &outcome.tables);
    if (!given->quiet) {
        profile_text(&result->summary, has_model, wants_color(STDERR_FILENO), &text);
        profile_view_put(&text);
    }
    text_release(&text);
}

static int exit_code_of(const struct profile_result *result, enum err err)
{
    if (result->signal)
        return 128 + result->signal;
    if (err) /* missing only after the directory was created */
        return err == ERR_USAGE || (err == ERR_NOT_FOUND && !result->directory[0]) ? EXIT_USAGE
                                                                                   : EXIT_FAILED;
    int code = require_answers(&command->max_failed, result->summary.queries,
                               result->summary.failed, "", result->directory);
    return code ? code
                : require_measured(&command->measure, &result->energy, &result->summary.conditions);
}

static void announce(const struct run_repeat *repeat, unsigned of)
{
    profile_view_clear();
    if (command->quiet)
        return;
    if (repeat->side)
        notify("ipw %s: pair %u of %u: %s\n", command->name, repeat->number, of,
               repeat->side == 'a' ? "baseline" : command->against.given);
    else
        notify("ipw %s: run %u of %u\n", command->name, repeat->number, of);
}

/* Only with both runs of a pair, which then have been compared with those before. */
static bool look_at_pairs(void)
{
    bool is_enough = outcome.sides.counts[0] >= SEQUENTIAL_FIRST;
    outcome.is_decided = is_enough && against_is_decided(&outcome.sides);
    return outcome.is_decided;
}

static void tell_decision(const struct profile_command *given)
{
    size_t pairs = outcome.sides.counts[1];
    if (!given->against.until_decided || given->quiet)
        return;
    if (outcome.is_decided)
        notify("ipw %s: decided after %zu of at most %u pairs\n", given->name, pairs, given->runs);
    else if (pairs == given->runs)
        notify("ipw %s: not decided after %zu pairs\n", given->name, pairs);
}

static void take_end(const struct profile_result *result, enum err err, const struct error *why)
{
    profile_view_clear();
    if (err)
        print_error(EXIT_FAILED, "%s", why->text[0] ? why->text : err_text(err));
    if (result->was_done && !command->quiet)
        notify("ipw %s: %s is finished\n", command->name, result->directory);
    if (result->has_summary)
        profile_command_show(command, result);
    if (result->has_summary || result->was_done)
        push_saved(command->db, result->directory, command->quiet);
    if (result->has_summary && result->summary.completed > 0 && result->repeat.side)
        against_add(&outcome.sides, result->repeat.side == 'b', result->directory);
    int code = exit_code_of(result, err);
    if (code && (!outcome.code || result->signal))
        outcome.code = code;
}

int profile_command_measure(struct profile_command *given)
{
    /* Neither is released: the process exits next (see cmd_run.c), and after a third signal threads still use them. */
    static struct session session;
    static struct host_report host;
    const struct profile_repeats repeats = {
        .profile = &given->profile,
        .against = given->other,
        .runs = given->runs,
        .begins = announce,
        .ended = take_end,
        .is_decided = given->against.until_decided ? look_at_pairs : NULL};
    struct error why = {0};
    proc_block_signals();
    int code = given->begins ? given->begins() : 0;
    if (!code)
        code = open_session(&given->measure, &session);
    if (code)
        return code;
    host_report_fill(&session.findings, &host);
    profile_view_start(given->name, given->quiet);
    enum err err = profile_repeats_run(&session, &host, &repeats, &why);
    if (err && !outcome.code)
        outcome.code = print_failure(&why);
    tell_decision(given);
    int written = profile_command_write(given);
    code = outcome.code ? outcome.code : written;
    int number = code == EXIT_FAILED ? proc_poll_signal(0) : 0;
    if (number) /* it ended a wait for another process, which failed for that reason */
        code = 128 + number;
    /* Threads may still be in a request; exit handlers of libraries would free memory that they use. Everything has
     * been written. */
    if (err == ERR_INTERRUPTED)
        _exit(code);
    if (given->ended)
        given->ended();
    return code;
}
