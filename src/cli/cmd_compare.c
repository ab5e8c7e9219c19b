/* ipw compare: runs against a baseline.
 *
 *   $ ipw compare runs/before runs/after --fail-if 'energy_per_output_token > +5%'
 *
 * The comparison goes to stdout or a file; an exceeded bound is one line on stderr and exit status 1. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rundir/run_table.h"
#include "analysis/compare.h"
#include "cli/common.h"
#include "core/text.h"
#include "report/text/compare_report.h"
#include "report/html/html.h"

struct compare_options {
    struct option_list fail_if;
    const char *model, *format, *output;
    unsigned seed;
    bool confident, ignore_conditions, json;
};

static int parse_checks(const struct compare_options *options, struct compare_check *checks)
{
    struct error why = {0};
    for (size_t i = 0; i < options->fail_if.count; i++)
        if (compare_check_parse(options->fail_if.items[i], &checks[i], &why))
            return complain(EXIT_USAGE, "--fail-if: %s", why.text);
    return -1;
}

static enum err load(const char *directory, const char *model, struct run_table *out,
                     struct error *why)
{
    enum err err = run_table_load(directory, model, COMPARE_NEEDS, out, why);
    if (!err && out->failed == out->rows) {
        err = err_set(why, ERR_NO_DATA, "%s: all %zu queries failed: nothing to compare", directory,
                      out->rows);
        run_table_release(out);
    }
    return err;
}

/* Compares each run with the baseline; two tables are in memory at a time. */
static enum err compare_all(const struct run_table *baseline, const char **directories,
                            size_t count, const struct compare_options *options,
                            struct comparison *out, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        struct run_table table;
        err = load(directories[i], options->model, &table, why);
        if (err)
            break;
        err = compare_runs(baseline, &table, options->seed, &out[i], why);
        if (options->ignore_conditions && out[i].conditions == CONDITIONS_DIFFER)
            out[i].conditions = CONDITIONS_IGNORED;
        run_table_release(&table);
    }
    return err ? err : compare_judge(out, count, why);
}

/* The HTML report of all runs, which contains the comparison. */
static int put_page(const struct compare_options *options, const char **directories, size_t count)
{
    struct text page = {0};
    struct error why = {0};
    const struct html_report report = {
        .inputs = directories, .count = count, .model = options->model, .page = options->output};
    enum err err = html_write(&report, &page, &why);
    int code = err ? complain(EXIT_FAILED, "%s", why.text) : deliver_page(options->output, &page);
    text_release(&page);
    return code;
}

static bool is_page(const struct compare_options *options)
{
    return !options->json && strcmp(options->format, "html") == 0;
}

static int put_report(const struct compare_report *report, const struct compare_options *options)
{
    struct text out = {0};
    const char *format = options->json ? "json" : options->format;
    if (strcmp(format, "json") == 0)
        compare_json(report, &out);
    else if (strcmp(format, "md") == 0)
        compare_markdown(report, &out);
    else
        compare_text(report, !options->output && wants_color(STDOUT_FILENO), &out);
    int code = deliver(options->output, &out);
    text_release(&out);
    return code;
}

static int judge_checks(const struct compare_report *report)
{
    char line[CHECK_LINE_MAX];
    int code = EXIT_DONE;
    for (size_t i = 0; i < report->count; i++)
        for (size_t c = 0; c < report->check_count; c++) {
            const struct compare_check *check = &report->checks[c];
            enum compare_outcome outcome =
                compare_check_judge(check, &report->comparisons[i], report->confident);
            if (outcome == CHECK_HOLDS)
                continue;
            int now = outcome == CHECK_NOT_COMPARABLE ? EXIT_NOT_COMPARABLE : EXIT_FAILED;
            complain(now, "%s",
                     compare_check_line(check, &report->comparisons[i], outcome, report->confident,
                                        line));
            code = code == EXIT_FAILED ? code : now;
        }
    return code;
}

static int compare_with(const struct compare_options *options, const char **directories,
                        size_t count)
{
    struct compare_check checks[OPTION_LIST_MAX];
    struct run_table baseline;
    struct error why = {0};
    int code = parse_checks(options, checks);
    if (code >= 0)
        return code;
    struct comparison *comparisons = calloc(count, sizeof *comparisons);
    if (!comparisons)
        return complain(EXIT_FAILED, "out of memory");
    enum err err = load(directories[0], options->model, &baseline, &why);
    if (!err) {
        err = compare_all(&baseline, directories + 1, count - 1, options, comparisons, &why);
        struct compare_report report = {.baseline = baseline.directory,
                                        .model = baseline.model,
                                        .hardware = run_hardware(&baseline),
                                        .queries = baseline.rows,
                                        .comparisons = comparisons,
                                        .count = count - 1,
                                        .checks = checks,
                                        .check_count = options->fail_if.count,
                                        .confident = options->confident,
                                        .seed = options->seed};
        code = err                ? EXIT_FAILED
               : is_page(options) ? put_page(options, directories, count)
                                  : put_report(&report, options);
        if (code == EXIT_DONE)
            code = judge_checks(&report);
        run_table_release(&baseline);
    }
    if (err)
        code = complain(EXIT_FAILED, "%s", why.text);
    free(comparisons);
    return code;
}

static struct compare_options args = {.format = "table"};

static const char *const FORMATS[] = {"table", "md", "json", "html", NULL};

/* clang-format off */
static const struct option_row ROWS[] = {
    {.name = "fail-if", .type = OPTION_LIST, .target = &args.fail_if, .value = "BOUND",
     .help = "exit 1 if the difference exceeds BOUND; may be repeated"},
    {.name = "confident", .type = OPTION_FLAG, .target = &args.confident,
     .help = "--fail-if only if the whole 95 % CI exceeds the bound"},
    {.name = "ignore-conditions", .type = OPTION_FLAG, .target = &args.ignore_conditions,
     .help = "compare energies also where idle power, load or throttling differ"},
    MODEL_OPTION_ROW(args.model),
    {.name = "seed", .type = OPTION_COUNT, .target = &args.seed, .value = "N",
     .help = "random seed of the bootstrap (default: 0)"},
    {.name = "format", .type = OPTION_CHOICE, .target = &args.format, .value = "NAME",
     .help = "table, md, json, or html (the page of `ipw report`; needs -o)",
     .choices = FORMATS},
    JSON_FORMAT_OPTION_ROW(args.json),
    OUTPUT_OPTION_ROW(args.output),
    {0},
};
/* clang-format on */

static int compare_main(const char **words, size_t count)
{
    if (count < 2)
        return complain_usage(count ? "missing run to compare with the baseline"
                                    : "missing run directories");
    if (is_page(&args) && !args.output)
        return complain(EXIT_USAGE, "--format html needs -o FILE");
    start_reading_bar(wants_color(STDERR_FILENO));
    return compare_with(&args, words, count);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "compare runs with a baseline: differences, confidence intervals, verdicts",
    .usage = "BASELINE RUN... [OPTIONS]",
    .details =
        "Reads run directories (also of the Python IPW). Queries that both runs asked are "
        "compared\n"
        "pairwise, others as two samples. Each metric has its value in both runs, the difference\n"
        "with its 95 % CI, the p-value (Holm-corrected for the number of metrics), and a verdict.\n"
        "Whatever makes the comparison unfair is reported first.\n\n"
        "--fail-if METRIC>BOUND or METRIC<BOUND exits 1 if the difference exceeds the bound:\n"
        "'energy_per_output_token > +5%' (relative), 'accuracy < -0.02' (absolute).\n\n"
        "metrics: energy_per_query energy_per_output_token active_energy latency ttft itl\n"
        "         tokens_per_s accuracy ipj ipw power",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .run = compare_main,
};
