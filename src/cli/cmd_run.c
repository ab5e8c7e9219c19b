/* ipw run: perf stat for joules.
 *
 *   $ ipw run -r 3 --idle 2 -- python infer.py
 *
 * The command inherits stdin, stdout and stderr, and our report goes to stderr or to -o FILE.  With --format, other than a
 * table, or -o - only the report goes to stdout, so that it can be piped; the command's stdout then goes to stderr. */
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/against.h"
#include "cli/common.h"
#include "core/result.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/proc.h"
#include "report/text/compare_report.h"
#include "report/text/reports.h"
#include "runner/exec.h"
#include "runner/host_report.h"
#include "runner/run_save.h"
#include "runner/samples_log.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "stats/sequential.h"

/* A run is one window: a counter is read at its ends, and this often in between. */
#define COUNTER_PERIOD (10 * NS_PER_S)

#define EXIT_NOT_FOUND 127 /* as of a shell */

struct run_options {
    struct measure_options measure;
    struct exec_options exec;
    struct format_options format;
    enum print_format printed; /* as chosen by `format` */
    bool quiet;
    const char *output;
    const char *samples;
    bool save;
    const char *output_dir; /* parent of the run directory; implies --save */
    const char *db;         /* database to push to; implies --save */
    unsigned runs;          /* --repeat-runs */
    struct run_repeat repeat;
    struct against_options against;
    struct tariff tariff;
    struct text reports; /* of several runs, for a file or stdout: written at the end */
    struct result rows;  /* the same for CSV, which is one table */
    int report_fd;       /* original stdout, for the report; -1: the command uses it */
};

static void show_progress(enum exec_phase phase, unsigned number, unsigned of, double idle_s)
{
    if (phase == EXEC_IDLE)
        notify("ipw run: measuring idle power for %g s\n", idle_s);
    else if (phase == EXEC_WARMUP)
        notify("ipw run: warm-up %u of %u\n", number, of);
    else if (of > 1)
        notify("ipw run: run %u of %u\n", number, of);
}

static void show_pair_progress(enum exec_phase phase, unsigned number, unsigned of, double idle_s)
{
    if (phase == EXEC_RUN)
        notify("ipw run: pair %u of %u\n", number, of);
    else
        show_progress(phase, number, of, idle_s);
}

static void show_slow(void *context, int number, unsigned signals)
{
    (void)context;
    notify_slow(false, number, signals);
}

/* ---- raw samples ---- */

static int write_samples(const char *path, struct session *session, nanos zero)
{
    struct error why = {0};
    if (samples_log_save(session->sampler, zero, INT64_MIN, path, false, &why))
        return print_failure(&why);
    return 0;
}

/* ---- the report ---- */

/* Writes to the file if given; a report that cannot be written there is printed to stderr, so that a full disk loses no
 * measurement. */
static int write_out(const struct run_options *options, const struct text *text)
{
    struct error why;
    int code = 0;
    enum err err;
    if (options->report_fd >= 0) {
        err = write_all(options->report_fd, text, &why);
        if (!err || err == ERR_CLOSED_PIPE)
            return 0;
        code = print_error(EXIT_FAILED, "cannot write to standard output: %s", why.text);
    } else if (options->output) {
        err = write_file(options->output, text, &why);
        if (!err || err == ERR_CLOSED_PIPE)
            return 0;
        code = print_failure(&why);
    }
    err = write_all(STDERR_FILENO, text, &why);
    if (err && err != ERR_CLOSED_PIPE)
        return EXIT_FAILED; /* stderr is the last resort */
    return code;
}

static bool must_save(const struct run_options *options)
{
    return options->save || options->output_dir || options->db;
}

static void announce_saved(const struct run_options *options, const char *directory)
{
    notify("ipw run: saved in %s\n", directory); /* with -q, too: nothing else names it */
    push_saved(options->db, directory, options->quiet);
}

/* A measurement is reported even if it cannot be saved. */
static int save_run(const struct run_options *options, struct session *session,
                    const struct exec_result *result, const struct host_report *host,
                    const struct own_cost *own)
{
    const struct run_save save = {.parent = options->output_dir,
                                  .argv = options->exec.argv,
                                  .session = session,
                                  .host = host,
                                  .own = *own,
                                  .repeat = options->repeat,
                                  .tariff = &options->tariff};
    struct error why = {0};
    char *directory;
    int code = 0;
    if (!must_save(options))
        return 0;
    if (run_save(&save, result, &directory, &why))
        code = print_error(EXIT_FAILED, "cannot save the run: %s", why.text);
    else
        announce_saved(options, directory);
    free(directory);
    return code;
}

/* For several runs, printed immediately only to a terminal or a log: a file and stdout get one document. */
static int put_report(struct run_options *options, const struct text *text)
{
    if (options->runs == 1 || (options->report_fd < 0 && !options->output))
        return write_out(options, text);
    if (options->printed == PRINT_JSON && options->reports.length)
        text_add(&options->reports, ",\n");
    text_add(&options->reports, text_get(text));
    return 0;
}

static int put_reports(struct run_options *options)
{
    struct text all = {0};
    int code = 0;
    if (options->rows.count) {
        result_end(&options->rows);
        result_end(&options->rows);
        result_print(&options->rows, PRINT_CSV, NULL, false, &all);
        code = write_out(options, &all);
    } else if (options->printed == PRINT_JSON && options->reports.length) {
        text_addf(&all, "{\"repeat_group\": \"%s\", \"repeats\": [\n%s]}\n", options->repeat.group,
                  text_get(&options->reports));
        code = write_out(options, &all);
    } else if (options->reports.length) {
        code = write_out(options, &options->reports);
    }
    result_release(&options->rows);
    text_release(&all);
    text_release(&options->reports);
    return code;
}

/* Of several runs, as one CSV. */
static void add_rows(struct run_options *options, const struct run_report *report)
{
    if (!options->rows.count) {
        result_begin(&options->rows, "run");
        result_text(&options->rows, "repeat_group", options->repeat.group);
        result_list(&options->rows, "repeats");
    }
    result_group(&options->rows, NULL);
    exec_result_put(report, &options->rows);
    result_end(&options->rows);
}

static int print_report(struct run_options *options, const struct run_report *report)
{
    struct result result = {0};
    struct text text = {0};
    if (options->printed == PRINT_CSV && options->runs > 1) {
        add_rows(options, report);
        return 0;
    }
    result_begin(&result, "run");
    exec_result_put(report, &result);
    result_end(&result);
    result_print(&result, options->printed, &RUN_VIEWS,
                 !options->output && wants_color(STDERR_FILENO), &text);
    int code = put_report(options, &text);
    text_release(&text);
    result_release(&result);
    return code;
}

static int write_report(struct run_options *options, struct session *session,
                        const struct exec_result *result, double cpu_s_before)
{
    struct host_report host;
    struct run_report report = {
        .argv = options->exec.argv,
        .result = result,
        .host = &host,
        .reads = sampler_reads(session->sampler),
        .tariff = &options->tariff,
    };
    host_report_fill(&session->findings, &host);
    proc_own_cost(&report.own);
    report.own.cpu_s -= cpu_s_before;
    int code = print_report(options, &report);
    int saved = save_run(options, session, result, &host, &report.own);
    return code ? code : saved;
}

static int exit_code_of(const struct run_options *options, const struct exec_result *result,
                        int report_code)
{
    if (result->signal)
        return 128 + result->signal;
    if (result->exit_code)
        return result->exit_code;
    if (report_code)
        return report_code;
    return require_measured(&options->measure, &result->mean.total, &result->conditions.figures);
}

/* One complete run, with its idle baseline, warm-ups and repetitions.  *zero: its start, unless it failed before. */
static int measure_once(struct run_options *options, struct session *session, bool last,
                        nanos *zero, bool *stop)
{
    struct exec_result result;
    struct error why = {0};
    struct own_cost before; /* excludes CPU time before the measurement from our overhead */
    proc_own_cost(&before);
    enum err err = exec_measure(session, &options->exec, &result, &why);
    *stop = err || result.signal || (result.exit_code && !options->exec.ignore_failure);
    if (last || *stop)
        sampler_stop(session->sampler);
    int code;
    if (err && result.count == 0 && !result.signal) {
        code = print_error(result.exit_code ? result.exit_code : EXIT_FAILED, "cannot run '%s': %s",
                           options->exec.argv[0], why.text);
    } else {
        if (err)
            print_failure(&why);
        if (result.count && !*zero)
            *zero = result.runs[0].from;
        code = write_report(options, session, &result, before.cpu_s);
        code = exit_code_of(options, &result, err ? EXIT_FAILED : code);
    }
    exec_result_release(&result);
    return code;
}

/* ---- two commands that alternate ---- */

struct pairs {
    struct run_options *options;
    struct session *session;
    const struct host_report *host;
    double cpu_s_before;
    bool is_decided;
};

/* Saves the runs of both commands in `parent`; without_samples: only to compare them. */
static enum err save_pairs(const struct pairs *pairs, const struct exec_result *results,
                           const char *parent, bool without_samples, struct against_runs *out,
                           struct error *why)
{
    const struct run_options *options = pairs->options;
    const unsigned most = options->exec.repeats;
    struct run_save save = {.parent = parent,
                            .session = pairs->session,
                            .host = pairs->host,
                            .repeat = options->repeat,
                            .tariff = &options->tariff,
                            .without_samples = without_samples};
    enum err err = ERR_OK;
    proc_own_cost(&save.own);
    save.own.cpu_s -= pairs->cpu_s_before;
    for (size_t side = 0; side < 2 && !err; side++) {
        char *directory = NULL;
        save.argv = side ? options->exec.against : options->exec.argv;
        save.repeat = against_repeat(&options->against, side ? 'b' : 'a', most, &options->repeat);
        if (results[side].count) {
            err = run_save(&save, &results[side], &directory, why);
            if (!err)
                against_add(out, side, directory);
        }
        free(directory);
    }
    return err;
}

/* What is compared at the end must be decided, so it is compared in the same way. */
static bool look_at_pairs(void *context, const struct exec_result *results)
{
    struct pairs *pairs = context;
    struct exec_result now[2] = {results[0], results[1]};
    struct against_runs runs = {.is_temporary = true};
    char *folder = NULL;
    if (now[0].count < SEQUENTIAL_FIRST || against_folder(&folder, NULL))
        return false;
    for (size_t side = 0; side < 2; side++)
        exec_conclude(&now[side]);
    pairs->is_decided =
        !save_pairs(pairs, now, folder, true, &runs, NULL) && against_is_decided(&runs);
    for (size_t side = 0; side < 2; side++)
        ledger_release(&now[side].mean);
    against_release(&runs);
    against_remove(folder);
    return pairs->is_decided;
}

static int print_comparison(const struct run_options *options, const struct against_runs *runs)
{
    struct result result = {0};
    struct text text = {0};
    struct error why = {0};
    if (against_result(runs, &result, &why))
        return print_failure(&why);
    result_print(&result, options->printed, &COMPARE_VIEWS,
                 !options->output && wants_color(STDERR_FILENO), &text);
    int code = write_out(options, &text);
    text_release(&text);
    result_release(&result);
    return code;
}

static bool has_completed(const struct exec_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        if (result->runs[i].end.exit_code == 0)
            return true;
    return false;
}

static int report_pairs(const struct pairs *pairs, const struct exec_result *results)
{
    const struct run_options *options = pairs->options;
    struct against_runs runs = {.is_temporary = !must_save(options)};
    struct error why = {0};
    char *folder = NULL;
    enum err err = runs.is_temporary ? against_folder(&folder, &why) : ERR_OK;
    if (!err)
        err = save_pairs(pairs, results, folder ? folder : options->output_dir, folder != NULL,
                         &runs, &why);
    int code = err ? print_error(EXIT_FAILED, "cannot save the runs: %s", why.text) : EXIT_DONE;
    for (size_t side = 0; side < 2 && !runs.is_temporary; side++)
        for (size_t i = 0; i < runs.counts[side]; i++)
            announce_saved(options, runs.directories[side][i]);
    if (!err && has_completed(&results[0]) && has_completed(&results[1]))
        code = print_comparison(options, &runs);
    against_release(&runs);
    against_remove(folder);
    return code;
}

/* Why a series ended before its last pair. */
static void explain_end(const struct pairs *pairs, const struct exec_result *results)
{
    const struct run_options *options = pairs->options;
    const unsigned most = options->exec.repeats;
    for (size_t side = 0; side < 2; side++)
        if (results[side].exit_code && !results[side].signal)
            print_error(EXIT_FAILED, "%s ended with exit status %d%s",
                        side ? "the command of --against" : "the command", results[side].exit_code,
                        options->exec.ignore_failure ? ""
                                                     : ": no more pairs are measured; "
                                                       "--ignore-failure continues");
    if (!options->against.until_decided || options->quiet)
        return;
    if (pairs->is_decided)
        notify("ipw run: decided after %zu of at most %u pairs\n", results[0].count, most);
    else if (results[0].count == most && results[1].count == most)
        notify("ipw run: not decided after %u pairs\n", most);
}

static int exit_code_of_pairs(const struct run_options *options, const struct exec_result *results,
                              int report_code)
{
    int code = report_code;
    for (size_t side = 0; side < 2; side++)
        if (results[side].signal)
            return 128 + results[side].signal;
    for (size_t side = 0; side < 2; side++)
        if (results[side].exit_code)
            return results[side].exit_code;
    for (size_t side = 0; side < 2 && !code; side++)
        code = require_measured(&options->measure, &results[side].mean.total,
                                &results[side].conditions.figures);
    return code;
}

/* Of a command that cannot be started, or an interruption before the first run. */
static int print_pairs_error(const struct run_options *options, const struct exec_result *results,
                             const struct error *why)
{
    for (size_t side = 0; side < 2; side++)
        if (results[side].exit_code)
            return print_error(results[side].exit_code, "cannot run '%s': %s",
                               side ? options->exec.against[0] : options->exec.argv[0], why->text);
    return print_error(EXIT_FAILED, "%s", why->text);
}

static int measure_pairs(struct run_options *options, struct session *session)
{
    struct exec_result results[2] = {{0}, {0}};
    struct host_report host;
    struct own_cost before;
    struct error why = {0};
    proc_own_cost(&before);
    host_report_fill(&session->findings, &host);
    struct pairs pairs = {options, session, &host, before.cpu_s, false};
    options->repeat = against_repeat(&options->against, 'a', options->exec.repeats, NULL);
    options->exec.context = &pairs;
    if (options->against.until_decided)
        options->exec.is_decided = look_at_pairs;
    enum err err = exec_measure(session, &options->exec, results, &why);
    sampler_stop(session->sampler);
    bool has_runs = results[0].count && results[1].count;
    int code = EXIT_DONE;
    if (err)
        code = print_pairs_error(options, results, &why);
    else
        explain_end(&pairs, results);
    if (has_runs && report_pairs(&pairs, results) && !code)
        code = EXIT_FAILED;
    code = exit_code_of_pairs(options, results, code);
    nanos zero = results[0].count ? results[0].runs[0].from : session->started;
    if (options->samples && write_samples(options->samples, session, zero) && !code)
        code = EXIT_FAILED;
    for (size_t side = 0; side < 2; side++)
        exec_result_release(&results[side]);
    return code;
}

static int measure(struct run_options *options)
{
    /* Not closed: the process exits next, and the kernel frees everything at once, whereas a vendor's library may take
     * tens of milliseconds.  Static, so that leak checkers see it. */
    static struct session session;
    nanos zero = 0;
    bool stop = false;
    proc_block_signals();
    options->measure.counter_period = COUNTER_PERIOD;
    int code = open_session(&options->measure, &session);
    if (code)
        return code;
    if (options->exec.against)
        return measure_pairs(options, &session);
    if (options->runs > 1)
        options->repeat = run_repeat_new();
    for (unsigned i = 1; i <= options->runs && !stop; i++) {
        if (options->runs > 1) {
            options->repeat.number = i;
            if (!options->quiet)
                notify("ipw run: measurement %u of %u\n", i, options->runs);
        }
        int now = measure_once(options, &session, i == options->runs, &zero, &stop);
        if (!code || (stop && now))
            code = now;
    }
    int written = put_reports(options);
    /* Even if the report failed: samples cannot be taken again. */
    if (options->samples &&
        write_samples(options->samples, &session, zero ? zero : session.started))
        written = EXIT_FAILED;
    return code ? code : written;
}

/* The command inherits descriptor 1, which becomes stderr; the report uses a duplicate of the original. */
static enum err redirect_stdout(int *out)
{
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (*out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return ERR_IO;
    return ERR_OK;
}

static struct run_options args = {.exec = {.repeats = 1, .await = {.slow = show_slow}},
                                  .report_fd = -1,
                                  .runs = 1,
                                  .tariff = TARIFF_NONE};

static const struct option_row ROWS[] = {
    COUNT_ROW("repeat", args.exec.repeats, "N",
              "measure N runs; report mean and standard deviation", .min = 1, .max = 100000,
              .letter = 'r'),
    COUNT_ROW("warmup", args.exec.warmups, "N", "run the command N times first, unmeasured",
              .max = 100000),
    IDLE_OPTION_ROW(args.measure, "measure idle power for S seconds first", 0.05),
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_ROW("output", args.output, "FILE",
               "write the report to FILE instead of stderr; - is stdout", .letter = 'o'),
    OUTPUT_ROW("samples", args.samples, "FILE", "write all raw samples to a CSV file"),
    FLAG_ROW("save", args.save, "save records, samples and summary as a run directory in runs/"),
    TEXT_ROW("output-dir", args.output_dir, "DIR", "save the run in DIR instead"),
    DB_PUSH_OPTION_ROW(args.db),
    COUNT_ROW("repeat-runs", args.runs, "N",
              "repeat the whole measurement N times, each saved as a run", .min = 1, .max = 1000),
    AGAINST_OPTION_ROWS(args.against, "COMMAND_B",
                        "measure pairs with this command: -r N (default: 5), and compare"),
    TARIFF_OPTION_ROWS(args.tariff),
    FLAG_ROW("wait-all", args.exec.wait_all,
             "wait until all processes started by the command have ended"),
    FLAG_ROW("ignore-failure", args.exec.ignore_failure,
             "continue with the next repeat after a failed one"),
    FLAG_ROW("quiet", args.quiet, "no progress lines", .letter = 'q'),
    MEASURE_OPTION_ROWS(args.measure, "rate"),
    HINT_ROW("runs", "use --repeat N", .letter = 'n'),
    {0},
};

/* Before the command runs, which may take hours. */
static int make_save_folder(void)
{
    const char *parent = args.output_dir ? args.output_dir : "runs";
    struct error why = {0};
    if (!args.save && !args.output_dir && !args.db)
        return 0;
    char *inside = path_join(parent, ".");
    enum err err = file_make_parents(inside, &why);
    free(inside);
    if (!err && !file_is_directory(parent))
        err = err_set(&why, ERR_BAD_VALUE, "%s exists and is not a directory", parent);
    return err ? print_failure(&why) : 0;
}

static int read_against(void)
{
    struct error why = {0};
    char **words;
    int code = against_check(&args.against, "repeat", &args.exec.repeats);
    if (code || !args.against.given)
        return code;
    if (args.runs > 1)
        return print_error(EXIT_USAGE, "--against and --repeat-runs are mutually exclusive: -r N "
                                       "measures N pairs, whose repeats count as runs");
    if (against_split(args.against.given, &words, &why))
        return print_err(ERR_USAGE, &why);
    args.exec.against = words;
    secret_add_words(args.exec.against);
    char *path = strchr(words[0], '/') ? xstrdup(words[0]) : proc_find(words[0]);
    bool is_there = path && access(path, X_OK) == 0;
    free(path);
    if (!is_there) /* found out before the other command has run, which may take hours */
        return print_error(EXIT_NOT_FOUND,
                           "--against: cannot run '%s': not found, or not executable", words[0]);
    return EXIT_DONE;
}

static int run_run(const char **words, size_t count)
{
    (void)count;
    args.exec.argv = (char *const *)words;
    args.exec.idle_s = args.measure.idle_s;
    secret_add_words(args.exec.argv); /* reports and saved runs quote the command */
    int code = read_against();
    if (code)
        return code;
    if (args.runs > 1 && !args.save && !args.output_dir && !args.db)
        return print_error(EXIT_USAGE, "--repeat-runs needs --save or --output-dir");
    if (check_db(args.db, false))
        return EXIT_USAGE;
    if (make_save_folder())
        return EXIT_FAILED;
    args.printed = format_chosen(&args.format, args.output);
    bool is_piped = is_dash(args.output) || (args.printed != PRINT_TABLE && !args.output);
    if (is_piped && redirect_stdout(&args.report_fd))
        return print_error(EXIT_FAILED, "cannot redirect standard output");
    if (!args.quiet && isatty(STDERR_FILENO))
        args.exec.progress = args.exec.against ? show_pair_progress : show_progress;
    return measure(&args);
}

const struct command command_run = {
    .name = "run",
    .summary = "measure the energy of any command",
    .usage = "[OPTIONS] [--] COMMAND [ARGUMENTS]",
    .details =
        "Starts sampling, then the command, and reports the energy of every device from start to\n"
        "exit: joules with standard uncertainty, method and coverage. The exit status is that of\n"
        "the command (128 + signal if one ended it, 127 if it was not found). With --idle, idle\n"
        "power is measured first, and the energy is divided into idle (idle power x time) and\n"
        "active.\n\n"
        "The report goes to stderr; with --format json, csv or md it goes to stdout, and the\n"
        "command's stdout to stderr.\n\n"
        "--against 'COMMAND_B' measures both commands in pairs, in the order A B, B A, A B ..., "
        "and\n"
        "prints what `ipw compare` does. COMMAND_B is split into words as by a shell, with "
        "quotes,\n"
        "variables and file name patterns; for pipes and the like write sh -c '...' in both. With\n"
        "--until-decided the series ends when the difference of the energies has a verdict: with\n"
        "equal commands at most 3.5 % of series do, however many pairs they have "
        "(docs/metrics.md).",
    .rows = ROWS,
    .words = WORDS_FOLLOW,
    .required = "missing command",
    .run = run_run,
};
