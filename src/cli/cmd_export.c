/* ipw export: a run in the format of another program.
 *
 *   $ ipw export runs/profile_H100_llama3_2_1b_builtin --to csv -o queries.csv
 *
 * To stdout, to the file of -o or, where the format is a directory, to --output-dir. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/log.h"
#include "report/export/export.h"
#include "rundir/journal.h"

static int export_main(int argc, char **argv);

const struct command command_export = {
    .name = "export",
    .summary = "convert a run to CSV, SQLite, Prometheus, Perfetto, OpenTelemetry ...",
    .usage = "DIR --to FORMAT [OPTIONS]",
    .details =
        "Writes the records of a run directory (also of the Python IPW) in another format, to\n"
        "stdout or to the FILE of -o; sqlite needs -o, and hf, a Hugging Face dataset, needs\n"
        "--output-dir. Uses constant memory. `ipw list exports` shows the formats:\n"
        "jsonl, csv, hf, sqlite, prom, perfetto, otlp-json, otlp-metrics.",
    .run = export_main,
};

struct export_options {
    const char *to, *output, *directory, *model, *name;
    bool replace;
};

static int export_with(const struct export_options *options, const char *directory)
{
    struct error why = {0};
    struct export_done done;
    const struct export_driver *driver = export_driver_find(options->to, &why);
    if (!driver)
        return complain("export", EXIT_USAGE, "%s", why.text);
    if (driver->available && driver->available(&why))
        return complain("export", EXIT_FAILED, "%s: %s", driver->name, why.text);
    if (options->directory && (options->output || !driver->makes_directory))
        return complain("export", EXIT_USAGE,
                        options->output ? "%s: -o and --output-dir are mutually exclusive"
                                        : "%s writes a file: use -o FILE instead of --output-dir",
                        driver->name);
    const char *output = options->directory ? options->directory : options->output;
    if (driver->makes_files && !output)
        return complain("export", EXIT_USAGE, "%s needs %s", driver->name,
                        driver->makes_directory ? "--output-dir DIR" : "-o FILE");
    struct export_request request = {.directory = directory,
                                     .model = options->model,
                                     .output = output,
                                     .fd = STDOUT_FILENO,
                                     .name = options->name,
                                     .replace = options->replace};
    if (export_run(driver, &request, &done, &why))
        return complain("export", EXIT_FAILED, "%s", why.text);
    if (done.damaged)
        log_warn("skipped %llu damaged line%s of records.jsonl; the first is line %llu",
                 (unsigned long long)done.damaged, done.damaged == 1 ? "" : "s",
                 (unsigned long long)done.first_damaged);
    if (done.format > JOURNAL_FORMAT)
        log_warn("records.jsonl has format %.0f, newer than %d of this version: some data may be "
                 "missing",
                 done.format, JOURNAL_FORMAT);
    return EXIT_DONE;
}

static int export_main(int argc, char **argv)
{
    struct export_options options = {0};
    /* clang-format off */
    const struct option_row rows[] = {
        {.name = "to", .type = OPTION_TEXT, .target = &options.to, .value = "FORMAT",
         .help = "format; see `ipw list exports`"},
        {.letter = 'o', .name = "output", .type = OPTION_TEXT, .target = &options.output,
         .value = "FILE", .help = "write to FILE instead of stdout"},
        {.name = "output-dir", .type = OPTION_TEXT, .target = &options.directory, .value = "DIR",
         .help = "hf: write the dataset to DIR"},
        {.name = "model", .type = OPTION_TEXT, .target = &options.model, .value = "NAME",
         .help = "select one model's records"},
        {.name = "name", .type = OPTION_TEXT, .target = &options.name, .value = "NAME",
         .help = "name of the run in the output (default: its directory's)"},
        {.name = "replace", .type = OPTION_FLAG, .target = &options.replace,
         .help = "sqlite: replace a run of the same name (default: keep it)"},
        {0},
    };
    /* clang-format on */
    const char **words = malloc((size_t)(argc + 1) * sizeof *words);
    size_t count = 0;
    int code = words ? parse_with_words(&command_export, rows, argc, argv, words, &count)
                     : complain("export", EXIT_FAILED, "out of memory");
    if (code < 0 && count != 1)
        code = complain("export", EXIT_USAGE, "%s; usage: ipw export %s",
                        count ? "more than one run directory" : "missing run directory",
                        command_export.usage);
    if (code < 0 && !options.to)
        code = complain("export", EXIT_USAGE, "missing --to FORMAT; see `ipw list exports`");
    start_reading_bar("export",
                      wants_color(STDERR_FILENO) && (options.output || !isatty(STDOUT_FILENO)));
    if (code < 0 && words)
        code = export_with(&options, words[0]);
    free((void *)words);
    return code;
}
