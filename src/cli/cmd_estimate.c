/* ipw estimate: what a model costs on hardware, before that is bought.
 *
 *   $ ipw estimate --model resnet50 --hardware a100-sxm-80gb --batch 8
 *
 * The report on stdout or in a file; a limit that is not kept is exit 1. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/estimate_ask.h"
#include "cli/estimate_legacy.h"
#include "cli/estimate_plot.h"
#include "cli/estimate_tools.h"
#include "cli/estimate_work.h"
#include "core/log.h"
#include "core/text.h"
#include "report/plot/estimate_figure.h"
#include "report/text/estimate_report.h"
#include "report/plot/figure.h"

static int estimate_main(int argc, char **argv);

const struct command command_estimate = {
    .name = "estimate",
    .summary = "predict energy, latency and memory of a model on hardware",
    .usage = "--model FILE|NAME [--hardware ID[,ID...]] [OPTIONS]",
    .details =
        "Counts what a model computes and moves, cuts it into kernels and lays that against what "
        "a\n"
        "device can do and draws. Answers how long it takes, how many joules and why, how much\n"
        "memory, what limits it, and what would cost less. Every figure is a model's: it has its "
        "±\n"
        "and says how well the device is known.\n\n"
        "The model is a file (ONNX, GGUF, config.json, safetensors) or a name of `ipw list "
        "models`,\n"
        "the device one of `ipw list hardware`, with @MODE behind it for one of its power modes, "
        "or\n"
        "a file. Of a decoder a whole request is estimated, prompt and answer, unless --phase "
        "says\n"
        "otherwise.\n\n"
        "Several devices, formats, batches, prompts or contexts give a table, fewest joules first "
        "for\n"
        "each prompt and context, with the frontier of energy and latency marked. With a --max "
        "option\n"
        "the exit status is 1 when the estimate, or of several every one of some prompt and "
        "context,\n"
        "is beyond a limit.\n\n"
        "`ipw estimate calibrate` fits a device to measurements, `ipw estimate validate` lays\n"
        "predictions beside them; each has its own --help.",
    .run = estimate_main,
};

/* ---- output ---- */

/* What --format says, else what the file is called, else a table. */
static const char *format_of(const struct estimate_options *options)
{
    static const char *const SUFFIXES[] = {"json", "csv", "md"};
    const char *dot = options->output ? strrchr(options->output, '.') : NULL;
    if (options->json)
        return "json";
    if (options->format)
        return options->format;
    for (size_t i = 0; dot && i < sizeof SUFFIXES / sizeof *SUFFIXES; i++)
        if (strcmp(dot + 1, SUFFIXES[i]) == 0)
            return SUFFIXES[i];
    return "table";
}

static int deliver(const struct estimate_options *options, const struct text *text)
{
    struct error why = {0};
    if (!options->output)
        return put_output("estimate", text);
    if (text->failed)
        return complain("estimate", EXIT_FAILED, "out of memory");
    if (write_file(options->output, text, &why))
        return complain("estimate", EXIT_FAILED, "%s", why.text);
    return EXIT_DONE;
}

static bool is_coloured(const struct estimate_options *options)
{
    return !options->output && wants_colour(STDOUT_FILENO);
}

static int fail(enum err err, const struct error *why)
{
    bool mistake = err == ERR_USAGE || err == ERR_NOT_FOUND;
    return complain("estimate", mistake ? EXIT_USAGE : EXIT_FAILED, "%s", why->text);
}

static size_t rows_wanted(const struct estimate_options *options, size_t usual)
{
    if (options->top != ESTIMATE_TOP_USUAL)
        return options->top;
    return options->verbose ? 0 : usual;
}

/* Devices that each do nearly all of it cost as many times the joules and answer no sooner. */
static void warn_of_copies(const struct workload_estimate *outcome)
{
    if (outcome->divided < 0.5)
        log_warn("%d devices divide %.2g %% of what %.100s multiplies, and each does all the rest: "
                 "tensor parallelism is not for it",
                 outcome->choice.devices, 100 * outcome->divided, outcome->work->spec.model->name);
}

/* ---- one estimate ---- */

static void write_one(const struct estimate_options *options, const struct estimate_report *report,
                      struct text *out)
{
    const char *format = format_of(options);
    const struct workload_estimate *outcome = report->outcome;
    if (strcmp(format, "json") == 0)
        estimate_json(report, out);
    else if (strcmp(format, "md") == 0)
        estimate_markdown(report, out);
    else if (strcmp(format, "table") == 0)
        estimate_text(report, is_coloured(options), out);
    else if (options->verbose)
        estimate_csv(report, out);
    else {
        struct grid_point point = {.outcome = *outcome,
                                   .work = outcome->work,
                                   .on_frontier = workload_estimate_fits(outcome)};
        struct estimate_grid points = {.works = (struct workload *)outcome->work,
                                       .work_count = 1,
                                       .items = &point,
                                       .count = 1,
                                       .able = 1,
                                       .demand_count = 1};
        points_csv(&(struct points_report){.points = &points,
                                           .hardware = outcome->hardware,
                                           .budget = report->budget},
                   out);
    }
}

static enum err plot_one(const struct estimate_options *options,
                         const struct estimate_report *report, struct error *why)
{
    struct figure figure = {0};
    enum err err = estimate_figure(report, &figure, why);
    if (!err)
        err = estimate_plot_draw(&figure, options->plot, why);
    figure_release(&figure);
    return err;
}

static int report_one(const struct estimate_options *options,
                      const struct workload_estimate *outcome, bool is_catalogued)
{
    struct recommendation proposals[RECOMMEND_MOST];
    struct budget budget = estimate_ask_budget(options);
    struct recommend_question question = {outcome, &budget, is_catalogued};
    struct estimate_report report = {.outcome = outcome,
                                     .budget = &budget,
                                     .recommendations = proposals,
                                     .top = rows_wanted(options, 10),
                                     .shows_figures = options->verbose};
    struct subgraph_total *rows = NULL;
    struct error why = {0};
    struct text out = {0};
    enum err err = workload_estimate_subgraphs(outcome, &rows, &report.row_count, &why);
    if (!err)
        err = recommend_make(&question, proposals, &report.recommendation_count, &why);
    if (!err && !outcome->memory.fits)
        err = recommend_devices_to_fit(outcome, &report.devices_to_fit, &why);
    report.rows = rows;
    if (!err && options->plot)
        err = plot_one(options, &report, &why);
    if (!err)
        write_one(options, &report, &out);
    int code = err ? fail(err, &why) : deliver(options, &out);
    free(rows);
    text_release(&out);
    return code ? code : budget_holds(&budget, outcome) ? EXIT_DONE : EXIT_FAILED;
}

static int estimate_one(const struct estimate_options *options, const struct estimate_asked *asked,
                        const struct workload *work)
{
    const struct grid_candidate *candidate = &asked->candidates[0];
    struct workload_estimate outcome;
    struct error why = {0};
    enum err err = workload_estimate_make(work, &asked->hardware[candidate->device],
                                          &candidate->choice, true, &outcome, &why);
    if (err)
        return fail(err, &why);
    warn_of_copies(&outcome);
    int code = report_one(options, &outcome, asked->is_catalogued[candidate->device]);
    workload_estimate_release(&outcome);
    return code;
}

/* ---- many ---- */

static enum err plot_points(const struct estimate_options *options,
                            const struct points_report *report, struct error *why)
{
    struct figure figure = {0};
    enum err err = points_figure(report, &figure, why);
    if (!err)
        err = estimate_plot_draw(&figure, options->plot, why);
    figure_release(&figure);
    return err;
}

/* Has every demand a choice that keeps the limits?  What cannot be served within them is a failure,
 * however cheap something shorter is. */
static bool holds_everywhere(const struct estimate_grid *points, const struct budget *budget)
{
    size_t held = 0; /* demands; their points stand together */
    bool holds = false;
    for (size_t i = 0; i < points->able; i++) {
        const struct grid_point *point = &points->items[i];
        holds = (holds && point->place > 0) || budget_holds(budget, &point->outcome);
        bool is_last = i + 1 == points->able || points->items[i + 1].place == 0;
        held += is_last && holds;
    }
    return held == points->demand_count;
}

static int report_points(const struct estimate_options *options, const struct estimate_asked *asked,
                         const struct estimate_grid *points)
{
    const char *format = format_of(options);
    struct budget budget = estimate_ask_budget(options);
    struct points_report report = {
        .points = points,
        .hardware = asked->hardware,
        .budget = &budget,
        .top = rows_wanted(options, points->count <= 64 ? 0 : 40),
    };
    struct text out = {0};
    struct error why = {0};
    enum err err = options->plot ? plot_points(options, &report, &why) : ERR_OK;
    if (err)
        return fail(err, &why);
    if (strcmp(format, "json") == 0)
        points_json(&report, &out);
    else if (strcmp(format, "csv") == 0)
        points_csv(&report, &out);
    else if (strcmp(format, "md") == 0)
        points_markdown(&report, &out);
    else
        points_text(&report, is_coloured(options), &out);
    int code = deliver(options, &out);
    text_release(&out);
    bool holds = !budget_has_any(&budget) || holds_everywhere(points, &budget);
    return code ? code : holds ? EXIT_DONE : EXIT_FAILED;
}

static int estimate_many(const struct estimate_options *options, const struct estimate_asked *asked,
                         const struct estimate_works *works)
{
    struct grid_spec question = {
        .works = works->items,
        .work_count = works->count,
        .hardware = asked->hardware,
        .candidates = asked->candidates,
        .candidate_count = asked->candidate_count,
    };
    struct estimate_grid points;
    struct error why = {0};
    enum err err = estimate_grid_make(&question, &points, &why);
    if (err)
        return fail(err, &why);
    if (points.able)
        warn_of_copies(&points.items[0].outcome);
    int code = points.able ? report_points(options, asked, &points)
                           : complain("estimate", EXIT_FAILED, "%s", points.items[0].missing);
    estimate_grid_release(&points);
    return code;
}

/* ---- the graph alone ---- */

static int show_graph(const struct estimate_options *options, const struct workload *work)
{
    struct text out = {0};
    if (strcmp(options->graph, "dot") == 0)
        graph_write_dot(&work->passes[0].graph, &out);
    else
        graph_write_mermaid(&work->passes[0].graph, &out);
    int code = deliver(options, &out);
    text_release(&out);
    return code;
}

/* ---- all ---- */

static int graph_or_estimates(const struct estimate_options *options, struct estimate_asked *asked,
                              const struct estimate_works *works, const struct workload *work)
{
    struct error why = {0};
    if (options->graph)
        return show_graph(options, work);
    enum err err = estimate_ask_candidates(options, work->has_stored, asked, &why);
    if (err)
        return fail(err, &why);
    if (asked->candidate_count * works->count == 1)
        return estimate_one(options, asked, work);
    return estimate_many(options, asked, works);
}

/* A size that the file has already cannot be another.  Of several batches the last is looked at by
 * estimate_works_make. */
static int check_taken(const struct graph_options *wanted, const struct workload *work)
{
    const struct graph_options *taken = &work->spec.setting;
    if (wanted->batch && work->batch != (double)wanted->batch)
        return complain("estimate", EXIT_USAGE,
                        "a batch of %lld changes nothing: the file or --dim has one of %.0f",
                        (long long)wanted->batch, work->batch);
    if (wanted->tokens && taken->tokens != wanted->tokens)
        return complain("estimate", EXIT_USAGE,
                        "--prompt-tokens %lld changes nothing: the file or --dim has %lld",
                        (long long)wanted->tokens, (long long)taken->tokens);
    return 0;
}

/* The first work is built to see whether the model takes it, and what its weights are stored in. */
static int estimate_works(const struct estimate_options *options, struct estimate_asked *asked,
                          const struct estimate_works *works)
{
    struct workload work;
    struct error why = {0};
    if (options->graph && works->count > 1)
        return complain("estimate", EXIT_USAGE,
                        "--graph is of one setting: give one --batch, --prompt-tokens and "
                        "--context");
    enum err err = workload_make(&works->items[0], &work, &why);
    if (err)
        return fail(err, &why);
    int code = check_taken(&works->items[0].setting, &work);
    if (!code)
        code = graph_or_estimates(options, asked, works, &work);
    workload_release(&work);
    return code;
}

static int estimate_model(const struct estimate_options *options, struct estimate_sizes *sizes,
                          struct estimate_asked *asked)
{
    struct model model;
    struct estimate_works works;
    struct error why = {0};
    enum err err = model_open(options->model, &model, &why);
    if (err)
        return fail(err, &why);
    err = options->graph ? ERR_OK : estimate_ask(options, asked, &why);
    int code = err ? fail(err, &why) : 0;
    if (!code) {
        err = estimate_works_make(options, sizes, &model, &works, &why);
        code = err ? fail(err, &why) : estimate_works(options, asked, &works);
        estimate_works_release(&works);
    }
    model_close(&model);
    return code;
}

static int show_legacy(const struct estimate_options *options)
{
    const char *format = format_of(options);
    struct error why = {0};
    struct text out = {0};
    bool json = strcmp(format, "json") == 0;
    if (!json && strcmp(format, "table") != 0)
        return complain("estimate", EXIT_USAGE, "--model-compat gives a table or JSON, not %s",
                        format);
    enum err err = estimate_legacy(options, json, &out, &why);
    int code = err ? fail(err, &why) : deliver(options, &out);
    text_release(&out);
    return code;
}

static int estimate_asked_for(const struct estimate_options *options)
{
    struct estimate_asked asked = {0};
    struct estimate_sizes sizes = {0};
    struct error why = {0};
    if (!options->model)
        return complain("estimate", EXIT_USAGE, "which model? usage: ipw estimate %s",
                        command_estimate.usage);
    if (options->compat)
        return show_legacy(options);
    enum err err = options->plot ? estimate_plot_check(options->plot, &why) : ERR_OK;
    if (!err)
        err = estimate_sizes_ask(options, &sizes, &why);
    int code = err ? fail(err, &why) : estimate_model(options, &sizes, &asked);
    estimate_asked_release(&asked);
    estimate_sizes_release(&sizes);
    return code;
}

/* Commands of their own behind `ipw estimate`; NULL when the word is none of them. */
static int (*find_tool(const char *word))(int argc, char **argv)
{
    if (!strcmp(word, "calibrate"))
        return estimate_calibrate;
    return strcmp(word, "validate") ? NULL : estimate_validate;
}

static int estimate_main(int argc, char **argv)
{
    int (*tool)(int, char **) = argc > 1 ? find_tool(argv[1]) : NULL;
    if (tool)
        return tool(argc - 1, argv + 1);
    static const char *const FORMATS[] = {"table", "json", "csv", "md", NULL};
    static const char *const PHASES[] = {"prefill", "decode", NULL};
    static const char *const GRAPHS[] = {"dot", "mermaid", NULL};
    struct estimate_options o = {.top = ESTIMATE_TOP_USUAL};
    const struct option_row rows[] = {
        {'m', "model", OPTION_ONCE, &o.model, "FILE|NAME",
         "a model's file, or a name of `ipw list models`", 0, 0, NULL},
        {0, "hardware", OPTION_LIST, &o.hardware, "ID",
         "of `ipw list hardware`, with commas; or all (default: this machine)", 0, 0, NULL},
        {0, "hardware-file", OPTION_LIST, &o.hardware_files, "FILE",
         "a device described in a file; may be repeated", 0, 0, NULL},
        {'p', "precision", OPTION_TEXT, &o.precision, "FORMATS",
         "fp32, fp16, bf16, fp8, int8, int4; stored (default: it, else 16 bits)", 0, 0, NULL},
        {'b', "batch", OPTION_TEXT, &o.batch, "BATCHES",
         "samples at a time: 8, 1,8,32, 1..64, 1..64x2 (default: 1)", 0, 0, NULL},
        {0, "prompt-tokens", OPTION_TEXT, &o.prompt_tokens, "NUMBERS",
         "of a prompt, or of a text read whole: 512, 128..4096x2 (default: 512)", 0, 0, NULL},
        {0, "output-tokens", OPTION_COUNT, &o.output_tokens, "N",
         "tokens of the answer to a request (default: 128)", 1, 1e7, NULL},
        {0, "context", OPTION_TEXT, &o.context, "NUMBERS",
         "tokens that a decoded one sees, or a request grows to: 512..8192x2", 0, 0, NULL},
        {0, "phase", OPTION_CHOICE, &o.phase, "PHASE",
         "prefill or decode alone (default: a request)", 0, 0, PHASES},
        {0, "image", OPTION_COUNT, &o.image, "N", "pixels of a side (default: the model's)", 1,
         100000, NULL},
        {0, "dim", OPTION_LIST, &o.dim_words, "NAME=N",
         "what an ONNX file leaves open: seq=128, x=1x3x224x224", 0, 0, NULL},
        {0, "devices", OPTION_COUNT, &o.devices, "N",
         "so many devices share the model (tensor parallelism; default: 1)", 1, 1024, NULL},
        {0, "compare", OPTION_FLAG, &o.compare, NULL,
         "devices beside each other (default: the whole catalogue)", 0, 0, NULL},
        {0, "sweep", OPTION_FLAG, &o.sweep, NULL,
         "every format that the devices have, and int4; batches 1 to 64", 0, 0, NULL},
        {0, "max-latency-ms", OPTION_NUMBER, &o.max_latency_ms, "MS",
         "fail when it takes longer: a pass, or a request", 1e-9, 1e12, NULL},
        {0, "max-energy-mj", OPTION_NUMBER, &o.max_energy_mj, "MJ",
         "fail when a sample, a token of a phase or a request costs more", 1e-9, 1e15, NULL},
        {0, "max-memory-gb", OPTION_NUMBER, &o.max_memory_gb, "GB",
         "fail when it needs more (10^9 bytes, on one device)", 1e-9, 1e9, NULL},
        {0, "max-power-w", OPTION_NUMBER, &o.max_power_w, "W",
         "fail when it draws more on average, all devices together", 1e-9, 1e9, NULL},
        {0, "no-fusion", OPTION_FLAG, &o.no_fusion, NULL, "every operation is a kernel of its own",
         0, 0, NULL},
        {0, "top", OPTION_COUNT, &o.top, "N",
         "rows to show; 0: all (default: 10; of many estimates 40)", 0, 1e9, NULL},
        {0, "graph", OPTION_CHOICE, &o.graph, "LANGUAGE",
         "write the model's graph instead: dot or mermaid", 0, 0, GRAPHS},
        {0, "plot", OPTION_TEXT, &o.plot, "FILE",
         "draw it too: FILE.png, .svg or .pdf (needs gnuplot)", 0, 0, NULL},
        {0, "model-compat", OPTION_FLAG, &o.compat, NULL,
         "by the legacy model, to compare with its reports", 0, 0, NULL},
        {0, "format", OPTION_CHOICE, &o.format, "NAME",
         "table, json, csv or md (default: by FILE's name, else table)", 0, 0, FORMATS},
        {0, "json", OPTION_FLAG, &o.json, NULL, "the same as --format json", 0, 0, NULL},
        {'o', "output", OPTION_TEXT, &o.output, "FILE", "write there and not to stdout", 0, 0,
         NULL},
        {'v', "verbose", OPTION_FLAG, &o.verbose, NULL,
         "all rows, and the device's figures with sources; csv: subgraphs", 0, 0, NULL},
        {0},
    };
    int rest, code = parse_or_help(&command_estimate, rows, argc, argv, false, &rest);
    struct error why = {0};
    if (code < 0 && options_pairs("dim", &o.dim_words, &o.dims, &why) != ERR_OK)
        code = fail(ERR_USAGE, &why);
    if (code < 0)
        code = estimate_asked_for(&o);
    params_release(&o.dims);
    return code;
}
