/* ipw export: a run in the format of another program.
 *
 *   $ ipw export runs/profile_H100_llama3_2_1b_builtin --to csv -o queries.csv
 *
 * To stdout, to the file of -o or, where the format is a directory, to --output-dir. */
#include <unistd.h>

#include "cli/common.h"
#include "core/log.h"
#include "core/text.h"
#include "report/export/export.h"
#include "rundir/journal.h"
#include "rundir/sweep.h"

struct export_options {
    const char *to, *output, *directory, *model, *name, *push;
    bool replace, raw;
};

static int export_with(const struct export_driver *driver, const struct export_options *options,
                       const char *directory)
{
    struct error why = {0};
    struct export_done done;
    if (driver->available && driver->available(&why))
        return print_error(EXIT_FAILED, "%s: %s", driver->name, why.text);
    const char *output = driver->makes_directory ? options->directory : options->output;
    if (driver->makes_files && (!output || is_dash(output)))
        return print_error(EXIT_USAGE, "%s needs %s", driver->name,
                           driver->makes_directory ? "--output-dir DIR" : "-o FILE");
    struct export_request request = {.directory = directory,
                                     .model = options->model,
                                     .output = output,
                                     .name = options->name,
                                     .replace = options->replace,
                                     .raw = options->raw,
                                     .push = options->push};
    enum err err = export_run(driver, &request, &done, &why);
    if (err)
        return err == ERR_CLOSED_PIPE ? EXIT_DONE : print_failure(&why);
    if (done.damaged)
        log_warn("skipped %llu damaged line%s of records.jsonl; the first is line %llu",
                 (unsigned long long)done.damaged, str_plural(done.damaged),
                 (unsigned long long)done.first_damaged);
    if (done.format > JOURNAL_FORMAT)
        log_warn("records.jsonl has format %.0f, newer than %d of this version: some data may be "
                 "missing",
                 done.format, JOURNAL_FORMAT);
    if (options->push)
        notify("ipw export: pushed %llu batch%s to %s\n", (unsigned long long)done.pushed,
               done.pushed == 1 ? "" : "es", done.receiver);
    return done.rejected ? EXIT_FAILED : EXIT_DONE;
}

static int check_push(const struct export_driver *driver, const struct export_options *options,
                      const char *directory)
{
    if (!options->push)
        return EXIT_DONE;
    if (!driver->is_otlp)
        return print_error(EXIT_USAGE,
                           "--push sends otlp-json or otlp-metrics to an OTLP receiver, not %s",
                           driver->name);
    if (options->output)
        return print_error(EXIT_USAGE, "--push sends the export instead of writing it: omit -o");
    if (sweep_is(directory))
        return print_error(EXIT_USAGE, "--push needs a run: a sweep has no OTLP export");
    return EXIT_DONE;
}

static int export_points(const struct export_options *options, const char *sweep)
{
    struct error why = {0};
    struct text out = {0};
    enum err err = export_sweep(sweep, options->to, options->raw, &out, &why);
    int code = err ? print_err(err, &why) : deliver(options->output, &out);
    text_release(&out);
    return code;
}

static struct export_options args;

static const struct option_row ROWS[] = {
    TEXT_ROW("to", args.to, "FORMAT", "format; see `ipw list exports`"),
    TEXT_ROW("output", args.output, "FILE", "write to FILE instead of stdout", .letter = 'o'),
    TEXT_ROW("output-dir", args.directory, "DIR", "hf: write the dataset to DIR"),
    MODEL_OPTION_ROW(args.model),
    TEXT_ROW("name", args.name, "NAME", "name of the run in the output (default: its directory's)"),
    FLAG_ROW("replace", args.replace, "sqlite: replace a run of the same name (default: keep it)"),
    TEXT_ROW("push", args.push, "URL", "otlp-json, otlp-metrics: send to the OTLP receiver at URL"),
    FLAG_ROW("raw", args.raw, "csv: do not escape text that a spreadsheet would read as a formula"),
    {0},
};

static int export_main(const char **words, size_t count)
{
    struct error why = {0};
    if (count != 1)
        return usage_error(count ? "more than one run directory" : "missing run directory");
    if (!args.to)
        return print_error(EXIT_USAGE, "missing --to FORMAT; see `ipw list exports`");
    const struct export_driver *driver = export_driver_find(args.to, &why);
    if (!driver)
        return print_error(EXIT_USAGE, "%s", why.text);
    if (driver->makes_directory ? args.output : args.directory)
        return print_error(EXIT_USAGE, "%s writes a %s instead of %s", driver->name,
                           driver->makes_directory ? "directory: use --output-dir DIR"
                                                   : "file: use -o FILE",
                           driver->makes_directory ? "-o" : "--output-dir");
    if (check_push(driver, &args, words[0]))
        return EXIT_USAGE;
    if (sweep_is(words[0]))
        return export_points(&args, words[0]);
    bool to_terminal = !args.push && !args.output && !args.directory && isatty(STDOUT_FILENO);
    start_reading_bar(wants_color(STDERR_FILENO) && !to_terminal);
    return export_with(driver, &args, words[0]);
}

const struct command command_export = {
    .name = "export",
    .summary = "convert a run to CSV, SQLite, Prometheus, Perfetto, OpenTelemetry ...",
    .usage = "DIR --to FORMAT [OPTIONS]",
    .details =
        "Writes the records of a run directory (also of the Python IPW) in another format, to\n"
        "stdout or to the FILE of -o; sqlite needs -o, and hf, a Hugging Face dataset, needs\n"
        "--output-dir. Uses constant memory. `ipw list exports` shows the formats:\n"
        "jsonl, csv, hf, sqlite, prom, perfetto, otlp-json, otlp-metrics. For a sweep, csv "
        "and\njsonl have one row per attempt, with a column for every knob.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .takes_sweeps = true,
    .run = export_main,
};
