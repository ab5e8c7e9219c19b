/* ipw compare: runs against a baseline.
 *
 *   $ ipw compare runs/before runs/after --fail-if 'energy_per_output_token > +5%'
 *
 * The comparison goes to stdout or a file; an exceeded bound is one line on stderr and exit status 1. */
#include <stdlib.h>
#include <unistd.h>

#include "analysis/compare_set.h"
#include "cli/common.h"
#include "core/result.h"
#include "core/text.h"
#include "report/html/html.h"
#include "report/text/compare_report.h"
#include "rundir/run_list.h"
#include "rundir/sweep.h"

struct compare_command {
    struct option_list fail_if;
    struct compare_options compare;
    struct format_options format;
    const char *output;
    unsigned seed;
    bool confident;
    struct tariff tariff;
};

static int parse_checks(const struct compare_command *options, struct compare_check *checks)
{
    struct error why = {0};
    for (size_t i = 0; i < options->fail_if.count; i++)
        if (compare_check_parse(options->fail_if.items[i], &checks[i], &why))
            return print_error(EXIT_USAGE, "--fail-if: %s", why.text);
    return -1;
}

/* The HTML report of all runs, including this comparison. */
static int put_page(const struct compare_groups *groups, const struct result *comparison,
                    const struct compare_command *options)
{
    size_t count = 0;
    for (size_t i = 0; i < groups->count; i++)
        count += groups->runs[i];
    struct text page = {0};
    struct error why = {0};
    const struct html_report report = {.inputs = groups->directories,
                                       .count = count,
                                       .model = options->compare.model,
                                       .page = options->output,
                                       .comparison = comparison,
                                       .groups = groups,
                                       .tariff = &options->tariff};
    enum err err = html_write(&report, &page, &why);
    int code = err ? print_failure(&why) : deliver_page(options->output, &page);
    text_release(&page);
    return code;
}

static bool is_page(const struct compare_command *options)
{
    if (options->format.name)
        return str_equal(options->format.name, "html");
    return !options->format.json && options->output && str_ends(options->output, ".html");
}

/* The exit code of a bound that could not be checked, unless another bound fails. */
static int check_bounds(const struct compare_report *report, const struct result *result)
{
    int code = EXIT_DONE;
    size_t number = 0;
    RESULT_EACH (item, result_find(result, "checks")) {
        const struct compare_check *check = &report->checks[number % report->check_count];
        const struct comparison *comparison =
            &report->set->comparisons[number / report->check_count];
        enum compare_outcome outcome = compare_check_evaluate(check, comparison, report->confident);
        number++;
        if (outcome == CHECK_HOLDS)
            continue;
        bool refused = outcome == CHECK_NOT_COMPARABLE || outcome == CHECK_UNREPEATED;
        int now = refused ? EXIT_NOT_COMPARABLE : EXIT_FAILED;
        char *line = compare_check_line(result, item);
        print_error(now, "%s", line);
        free(line);
        code = code == EXIT_FAILED ? code : now;
    }
    return code;
}

/* --confident without a bound only requires that no side has a single run. */
static int check_repeats(const struct compare_report *report)
{
    for (size_t i = 0; report->confident && !report->check_count && i < report->set->count; i++)
        if (!compare_is_repeated(&report->set->comparisons[i]))
            return print_error(
                EXIT_NOT_COMPARABLE,
                "--confident: one run a side: not decided (%s); repeat both sides with "
                "--repeat-runs N",
                report->set->comparisons[i].side.directory);
    return EXIT_DONE;
}

static int compare_groups(const struct compare_command *options,
                          const struct compare_groups *groups)
{
    struct compare_check checks[OPTION_LIST_MAX];
    struct compare_set set;
    struct error why = {0};
    int code = parse_checks(options, checks);
    if (code >= 0)
        return code;
    if (compare_set_load(groups, &options->compare, &set, &why))
        return print_failure(&why);
    struct compare_report report = {.groups = groups,
                                    .set = &set,
                                    .checks = checks,
                                    .check_count = options->fail_if.count,
                                    .confident = options->confident,
                                    .seed = options->seed};
    struct result result = {0};
    compare_result(&report, &result);
    code = is_page(options)
               ? put_page(groups, &result, options)
               : deliver_printed(options->output, &result,
                                 format_chosen(&options->format, options->output), &COMPARE_VIEWS);
    if (code == EXIT_DONE)
        code = check_bounds(&report, &result);
    if (code == EXIT_DONE)
        code = check_repeats(&report);
    result_release(&result);
    compare_set_release(&set);
    return code;
}

static struct compare_command args = {.compare = {.tariff = &args.tariff}, .tariff = TARIFF_NONE};

static const char *const FORMATS[] = {"table", "json", "csv", "md", "html", NULL};

static const struct option_row ROWS[] = {
    LIST_ROW("fail-if", args.fail_if, "BOUND",
             "exit 1 if the difference exceeds BOUND; may be repeated"),
    FLAG_ROW("confident", args.confident,
             "fail only if the whole 95 % CI exceeds the bound; needs repeats"),
    FLAG_ROW("ignore-conditions", args.compare.ignore_conditions,
             "compare energies even if idle power, load or throttling differ"),
    MODEL_OPTION_ROW(args.compare.model),
    COUNT_ROW("seed", args.seed, "N", "random seed of the bootstrap (default: 0)"),
    TARIFF_OPTION_ROWS(args.tariff),
    CHOICE_ROW("format", args.format.name, "NAME", FORMATS,
               "table, json, csv, md or html (default: by FILE's suffix, else table)"),
    JSON_FORMAT_OPTION_ROW(args.format.json),
    OUTPUT_OPTION_ROW(args.output),
    {0},
};

/* sweep: its directory, whose settings are the sides; NULL: named runs. */
static int compare_runs(const char **words, size_t count, const char *sweep)
{
    struct compare_groups groups;
    if (is_page(&args) && !args.output)
        return print_error(EXIT_USAGE, "--format html needs -o FILE");
    start_reading_bar(wants_color(STDERR_FILENO));
    args.compare.seed = args.seed;
    compare_groups_find(words, count, &groups);
    int code;
    if (groups.count >= 2)
        code = compare_groups(&args, &groups);
    else if (sweep)
        code = print_error(EXIT_FAILED, "%s has %s: there is nothing to compare", sweep,
                           groups.count ? "one measured setting" : "no run");
    else
        code = usage_error(groups.count ? "missing run to compare with the baseline"
                                        : "missing run directories");
    compare_groups_release(&groups);
    return code;
}

/* The settings of one sweep are sides, with the first as the baseline; several sweeps would be ambiguous. */
static int compare_main(const char **words, size_t count)
{
    struct run_inputs runs;
    const char *sweep = NULL;
    for (size_t i = 0; i < count && !sweep; i++)
        sweep = sweep_is(words[i]) ? words[i] : NULL;
    if (!sweep)
        return compare_runs(words, count, NULL);
    if (count > 1)
        return print_error(
            EXIT_USAGE,
            "a sweep cannot be compared with other runs: give the runs of two settings "
            "instead, `ipw compare %s/points/p001_r* -- OTHER/points/p001_r*`",
            sweep);
    run_inputs_settings(sweep, &runs);
    int code = compare_runs((const char **)runs.paths, runs.count, sweep);
    run_inputs_release(&runs);
    return code;
}

const struct command command_compare = {
    .name = "compare",
    .summary = "compare runs with a baseline: differences, confidence intervals, verdicts",
    .usage = "BASELINE... [--] RUN... [OPTIONS]",
    .details =
        "Reads run directories (also of the Python IPW). Queries that both runs have are "
        "compared\n"
        "pairwise, others as two samples. Each metric has its value in both runs, the difference\n"
        "with its 95 % CI, the p-value (energy per query is tested first, the others are\n"
        "Holm-corrected), and a verdict, which allows for different idle power and background "
        "load.\n"
        "Conditions that make the comparison unfair are reported first.\n\n"
        "The settings of a sweep are compared with the first one.\n\nRepeats of one setting (ipw "
        "profile or run --repeat-runs N) form one side: `ipw compare c1 c8`\nfor two folders of "
        "repeats, or A1 A2 A3 -- B1 B2 B3. Differences are then tested against the\nvariation "
        "between runs. For one run per side, that is taken from repeats in the run index,\n"
        "else assumed to be 5 %.\n\n"
        "--fail-if METRIC>BOUND or METRIC<BOUND exits 1 if the difference exceeds the bound:\n"
        "'energy_per_output_token > +5%' (relative), 'accuracy < -0.02' (absolute).\n\n"
        "metrics: energy_per_query energy_per_output_token active_energy latency ttft itl\n"
        "         tokens_per_s accuracy ipj ipw power perplexity bits_per_byte; of a workload:\n"
        "         energy_per_image energy_per_audio_second energy_per_denoise_step\n"
        "         real_time_factor; with prices:\n"
        "         cost_per_query cost_per_million_output_tokens gco2e_per_query\n"
        "         gco2e_per_million_output_tokens",
    .rows = ROWS,
    .words = WORDS_SIDES,
    .takes_runs = true,
    .takes_sweeps = true,
    .run = compare_main,
};
