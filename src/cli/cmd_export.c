/* ipw export: a run in another program's format.
 *
 *   $ ipw export runs/profile_H100_llama3_2_1b_builtin --to csv -o queries.csv
 *
 * To stdout, or to what -o names. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/reading_view.h"
#include "core/log.h"
#include "report/export/export.h"
#include "rundir/journal.h"

static int export_main(int argc, char **argv);

const struct command command_export = {
    .name = "export",
    .summary = "a run in other formats: CSV, SQLite, Prometheus, Perfetto, OpenTelemetry",
    .usage = "DIR --to FORMAT [OPTIONS]",
    .details =
        "Writes the records of a run directory, ours or the Python IPW's, as another program\n"
        "reads them, to standard output or to what -o names. Memory does not grow with the\n"
        "number of queries. `ipw list exports` shows the formats:\n"
        "jsonl, csv, hf, sqlite, prom, perfetto, otlp-json, otlp-metrics.",
    .run = export_main,
};

struct export_options {
    const char *to, *output, *model, *name;
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
    if (driver->makes_files && !options->output)
        return complain("export", EXIT_USAGE, "%s makes files: say where with -o", driver->name);
    struct export_request request = {directory,     options->model, options->output,
                                     STDOUT_FILENO, options->name,  options->replace};
    if (export_run(driver, &request, &done, &why))
        return complain("export", EXIT_FAILED, "%s", why.text);
    if (done.damaged)
        log_warn("%llu damaged line%s of records.jsonl left out; the first is line %llu",
                 (unsigned long long)done.damaged, done.damaged == 1 ? "" : "s",
                 (unsigned long long)done.first_damaged);
    if (done.format > JOURNAL_FORMAT)
        log_warn("records.jsonl is of format %.0f, and this version knows %d: some of it may be "
                 "missing",
                 done.format, JOURNAL_FORMAT);
    return EXIT_DONE;
}

static int export_main(int argc, char **argv)
{
    struct export_options options = {0};
    const struct option_row rows[] = {
        {0, "to", OPTION_TEXT, &options.to, "FORMAT", "which: see `ipw list exports`", 0, 0, NULL},
        {'o', "output", OPTION_TEXT, &options.output, "PATH",
         "the file, or for hf the directory, to make", 0, 0, NULL},
        {0, "model", OPTION_TEXT, &options.model, "NAME",
         "whose records, where a directory has several models'", 0, 0, NULL},
        {0, "name", OPTION_TEXT, &options.name, "NAME",
         "what the run is called there (default: as its directory)", 0, 0, NULL},
        {0, "replace", OPTION_FLAG, &options.replace, NULL,
         "sqlite: in place of a run of the same name, which is kept else", 0, 0, NULL},
        {0},
    };
    const char **words = malloc((size_t)(argc + 1) * sizeof *words);
    size_t count = 0;
    int code = words ? parse_with_words(&command_export, rows, argc, argv, words, &count)
                     : complain("export", EXIT_FAILED, "out of memory");
    if (code < 0 && count != 1)
        code = complain("export", EXIT_USAGE, "%s; usage: ipw export %s",
                        count ? "one run at a time" : "which run?", command_export.usage);
    if (code < 0 && !options.to)
        code = complain("export", EXIT_USAGE, "--to which format? `ipw list exports` shows them");
    reading_view_start("export",
                       wants_colour(STDERR_FILENO) && (options.output || !isatty(STDOUT_FILENO)));
    if (code < 0 && words)
        code = export_with(&options, words[0]);
    free((void *)words);
    return code;
}
