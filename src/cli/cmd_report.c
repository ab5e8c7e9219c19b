/* ipw report: runs as one self-contained HTML file.
 *
 *   $ ipw report runs/profile_H100_llama3_2_1b_builtin
 *   $ ipw report runs/profile_* layers.json -o family.html
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "report/html/html.h"
#include "rundir/run_dir.h"

static const char *model, *output;

static const struct option_row ROWS[] = {
    OUTPUT_ROW("output", output, "FILE", "output file (default: report.html in the first DIR)",
               .letter = 'o'),
    MODEL_OPTION_ROW(model),
    {0},
};

static int put_page(const char *run, const char *path, const struct text *page)
{
    struct text said = {0};
    struct error why = {0};
    if (output || !run)
        return deliver_page(path, page);
    if (run_dir_put(run, RUN_REPORT, page, &why))
        return print_failure(&why);
    text_add_plain(&said, path);
    text_add(&said, "\n");
    int code = put_output(&said);
    text_release(&said);
    return code;
}

/* The output file: without -o, in the first run directory. */
static void find_path(const char *first, struct text *path)
{
    path->length = 0;
    text_addf(path, "%s", output ? output : first ? first : RUN_REPORT);
    while (!output && first && path->length > 1 && path->bytes[path->length - 1] == '/')
        path->bytes[--path->length] = '\0';
    if (!output && first)
        text_add(path, "/" RUN_REPORT);
}

/* Links are relative to the page: it is rendered again if the directory that it was for contains no run. */
static int make_report(struct html_report *report)
{
    struct text page = {0}, path = {0};
    struct error why = {0};
    enum err err;
    const char *first;
    do {
        first = html_first_run(report);
        find_path(first, &path);
        page.length = 0;
        report->page = text_get(&path);
        err = html_write(report, &page, &why);
    } while (!err && !output && html_first_run(report) != first);
    int code = EXIT_DONE;
    for (size_t i = 0; i < report->count; i++)
        if (report->left_out[i].text[0])
            code = print_error(EXIT_FAILED, "%s", report->left_out[i].text);
    if (err && code == EXIT_DONE)
        code = print_failure(&why);
    int put = err ? code : put_page(first, report->page, &page);
    text_release(&page);
    text_release(&path);
    return put != EXIT_DONE ? put : code;
}

static int report_main(const char **words, size_t count)
{
    struct html_report report = {.inputs = words,
                                 .count = count,
                                 .model = model,
                                 .left_out = xcalloc(count + 1, sizeof *report.left_out)};
    start_reading_bar(wants_color(STDERR_FILENO));
    int code = make_report(&report);
    free(report.left_out);
    return code;
}

const struct command command_report = {
    .name = "report",
    .summary = "HTML report of runs: figures, timeline, fits, tables",
    .usage = "DIR... [OPTIONS]",
    .details =
        "Reads run directories (also of the Python IPW) and results of `ipw layers -o`, and\n"
        "writes one HTML page: figures with uncertainty and measurement quality, power over time\n"
        "with every request, distributions, fits, tables and, for several runs, the Pareto\n"
        "frontier of accuracy and energy. For a sweep: the savings of the best setting, all\n"
        "settings, a chart.\n\n"
        "The page is self-contained: it needs no network and no server. The default is\n"
        "report.html in the first DIR. Runs that cannot be read are skipped: the page and stderr\n"
        "say which and why, and the exit status is 1.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .takes_sweeps = true,
    .required = "missing run directory",
    .run = report_main,
};
