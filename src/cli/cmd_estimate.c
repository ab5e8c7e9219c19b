/* ipw estimate: energy, latency and memory of a model on hardware, predicted.
 *
 *   $ ipw estimate --model resnet50 --hardware a100-sxm-80gb --batch 8
 *
 * The report goes to stdout or to a file; the exit status is 1 when a limit is not met. */
#include <stdlib.h>

#include "cli/common.h"
#include "cli/estimate_views.h"
#include "core/log.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "engine/shipped.h"
#include "estimate/budget.h"
#include "core/result.h"
#include "estimate/estimate_grid.h"
#include "estimate/estimate_result.h"
#include "estimate/legacy.h"
#include "estimate/recommend.h"
#include "port/file.h"
#include "report/plot/plot.h"
#include "report/plot/figure.h"
#include "report/text/estimate_report.h"
#include "runner/host_report.h"

enum {
    TOP_DEFAULT = 0x7fffffff, /* --top was not given */
    TOP_SUBGRAPHS = 10,
    TOP_POINTS = 40, /* if there are more than POINTS_ALL */
    POINTS_ALL = 64,
    OUTPUT_MAX = 10000000,
    PATH_SIZE = 1024,
};

extern const struct command command_estimate_calibrate, command_estimate_validate;

struct estimate_options {
    const char *model, *parameters, *graph, *plot, *output, *output_tokens, *benchmark;
    struct format_options format;
    struct option_list hardware, hardware_files, dim_words, models;
    struct workload_options workload;
    struct candidate_options candidates;
    struct estimate_serve_options serve;
    double max_latency_ms, max_energy_j, max_memory_gb, max_power_w;
    struct tariff tariff;
    unsigned top;
    bool compat, verbose;
};

static double to_limit(double value, double unit)
{
    return value > 0 ? value * unit : UNKNOWN;
}

static struct budget budget_of(const struct estimate_options *options)
{
    struct budget budget = budget_none();
    budget.max[BUDGET_LATENCY] = to_limit(options->max_latency_ms, 1e-3);
    budget.max[BUDGET_ENERGY] = to_limit(options->max_energy_j, 1);
    budget.max[BUDGET_MEMORY] = to_limit(options->max_memory_gb, 1e9);
    budget.max[BUDGET_POWER] = to_limit(options->max_power_w, 1);
    return budget;
}

/* ---- output ---- */

static enum print_format format_of(const struct estimate_options *options)
{
    return format_chosen(&options->format, options->output);
}

static size_t rows_shown(const struct estimate_options *options, size_t usual)
{
    if (options->top != TOP_DEFAULT)
        return options->top;
    return options->verbose ? 0 : usual;
}

/* Devices that replicate most of the work multiply the energy without being faster. */
static void warn_of_replication(const struct workload_estimate *estimate)
{
    if (estimate->divided < 0.5)
        log_warn(
            "tensor parallelism over %d devices is inefficient for %.100s: %.2g %% of its MACs "
            "split, rest replicated",
            estimate->config.devices, estimate->work->spec.model->name, 100 * estimate->divided);
    int64_t heads = estimate->work->passes[0].partition.heads_kv;
    int devices = estimate->config.devices;
    double joined = estimate->hardware->link_peers.value + 1;
    if (is_known(joined) && devices > joined)
        log_warn("%s: its link connects at most %.0f devices: the network that %d need is "
                 "not modeled, so latency is underestimated (--pipeline-parallel uses it less)",
                 estimate->hardware->id, joined, devices);
    if (heads > 0 && devices > 1 && heads % devices) /* vLLM requires one to divide the other */
        log_warn("%.100s has %lld KV heads: %d devices %s, so KV cache is replicated",
                 estimate->work->spec.model->name, (long long)heads, devices,
                 devices % heads ? "do not divide them" : "replicate them");
}

/* ---- one estimate ---- */

static struct estimate_shown shown_of(const struct estimate_options *options, size_t usual)
{
    return (struct estimate_shown){
        .tariff = &options->tariff, .top = rows_shown(options, usual), .in_full = options->verbose};
}

/* The figure, if one was requested, and the result. */
static int put_result(const struct estimate_options *options, const struct result *result,
                      estimate_plot *plot, const struct print_views *views)
{
    struct figure figure = {0};
    struct error why = {0};
    if (options->plot) {
        enum err err = plot(result, &figure, &why);
        err = gnuplot_draw_file(&figure, err, options->plot, &why);
        if (err)
            return print_name_err(err, &why);
    }
    return deliver_printed(options->output, result, format_of(options), views);
}

static int report_one(const struct estimate_options *options,
                      const struct workload_estimate *estimate, bool is_in_catalog)
{
    struct budget budget = budget_of(options);
    const struct recommend_question question = {estimate, &budget, is_in_catalog};
    const struct estimate_shown shown = shown_of(options, TOP_SUBGRAPHS);
    struct result result = {0};
    estimate_result_make(&question, &shown, &result);
    int code = put_result(options, &result, estimate_figure, &ESTIMATE_VIEWS);
    result_release(&result);
    return code ? code : budget_holds(&budget, estimate) ? EXIT_DONE : EXIT_FAILED;
}

static int estimate_one(const struct estimate_options *options, const struct candidates *candidates,
                        const struct estimate_workload *work)
{
    const struct grid_candidate *candidate = &candidates->items[0];
    struct workload_estimate estimate;
    struct error why = {0};
    enum err err = workload_estimate_make(work, &candidates->hardware[candidate->device],
                                          &candidate->config, true, &estimate, &why);
    if (err)
        return print_name_err(err, &why);
    warn_of_replication(&estimate);
    int code = report_one(options, &estimate, candidates->is_in_catalog[candidate->device]);
    workload_estimate_release(&estimate);
    return code;
}

/* ---- several estimates ---- */

static int report_grid(const struct estimate_options *options, const struct estimate_grid *grid)
{
    struct budget budget = budget_of(options);
    const struct estimate_shown shown =
        shown_of(options, grid->count <= POINTS_ALL ? 0 : TOP_POINTS);
    struct result result = {0};
    grid_result_make(grid, &budget, &shown, &result);
    int code = put_result(options, &result, points_figure, &POINTS_VIEWS);
    result_release(&result);
    return code ? code : budget_holds_for_all(&budget, grid) ? EXIT_DONE : EXIT_FAILED;
}

static int estimate_several(const struct estimate_options *options,
                            const struct candidates *candidates, const struct workload_list *list)
{
    struct estimate_grid grid;
    struct error why = {0};
    enum err err = estimate_grid_make(list, candidates, &grid, &why);
    if (err)
        return print_name_err(err, &why);
    struct budget budget = budget_of(options);
    budget_sort(&budget, &grid);
    if (grid.able)
        warn_of_replication(&grid.items[0].estimate);
    int code = grid.able ? report_grid(options, &grid)
                         : print_error(EXIT_FAILED, "%s", grid.items[0].missing);
    estimate_grid_release(&grid);
    return code;
}

/* ---- a model ---- */

static int show_graph(const struct estimate_options *options, const struct estimate_workload *work)
{
    struct text out = {0};
    if (str_equal(options->graph, "dot"))
        graph_write_dot(&work->passes[0].graph, &out);
    else
        graph_write_mermaid(&work->passes[0].graph, &out);
    int code = deliver(options->output, &out);
    text_release(&out);
    return code;
}

/* The named devices, or this machine's. */
static enum err find_candidates(const struct estimate_options *options, struct candidates *out,
                                struct error *why)
{
    struct hardware own;
    struct error unknown = {0};
    enum err err = candidates_find(&options->candidates, out, why);
    if (err || out->hardware_count)
        return err;
    if (host_find_hardware(&own, &unknown) != ERR_OK)
        return err_set(
            why, ERR_USAGE,
            "missing --hardware: this machine (%s) is not in the catalog; give --hardware "
            "ID (`ipw list hardware`), or --hardware-file with the result of `ipw "
            "estimate calibrate`",
            unknown.text);
    candidates_add(out, &own);
    return ERR_OK;
}

/* The first workload is built to check that the model supports it, and whether it has stored precisions. */
static int estimate_list(const struct estimate_options *options, struct candidates *candidates,
                         const struct workload_list *list)
{
    struct estimate_workload first;
    struct error why = {0};
    int code = 0;
    if (options->graph && list->count > 1)
        return print_error(EXIT_USAGE,
                           "--graph shows one workload: give one --batch, --prompt-tokens and "
                           "--context");
    enum err err = workload_make(&list->items[0], &first, &why);
    if (err)
        return print_name_err(err, &why);
    err = workload_list_check(list, &first, &why);
    if (!err && !options->graph)
        err = candidates_make(&options->candidates, &first, candidates, &why);
    if (err)
        code = print_name_err(err, &why);
    else if (options->graph)
        code = show_graph(options, &first);
    else if (candidates->count * list->count == 1)
        code = estimate_one(options, candidates, &first);
    else
        code = estimate_several(options, candidates, list);
    workload_release(&first);
    return code;
}

static int estimate_load(const struct estimate_options *options, const struct model *model,
                         struct candidates *candidates)
{
    struct budget budget = budget_of(options);
    if (options->graph || budget_has_any(&budget))
        return print_error(EXIT_USAGE, "--serve takes no --graph and no --max option: limits of "
                                       "latency under load are --slo-ttft-ms and --slo-itl-ms");
    return estimate_serve(&(struct serve_command){.options = &options->serve,
                                                  .model = model,
                                                  .workload = &options->workload,
                                                  .output_tokens = options->output_tokens,
                                                  .wanted = &options->candidates,
                                                  .candidates = candidates,
                                                  .tariff = &options->tariff,
                                                  .format = format_of(options),
                                                  .output = options->output,
                                                  .plot = options->plot});
}

/* A model of which only the number of parameters is given; an invalid number is the user's error. */
static enum err open_parameters(const char *parameters, struct model *out, struct error *why)
{
    return model_open_with(&graph_reader_assumed, parameters, out, why) ? ERR_USAGE : ERR_OK;
}

/* A file, an architecture by its name, or a model that is installed with ipw. */
static enum err open_model(const struct estimate_options *options, struct model *out,
                           struct error *why)
{
    const char *name = options->model;
    if (options->parameters)
        return open_parameters(options->parameters, out, why);
    char *path;
    struct error unused = {0};
    enum err err = model_open(name, out, why);
    if (err == ERR_NOT_FOUND && shipped_find(name, &path, &unused) == ERR_OK) {
        *why = (struct error){0};
        err = model_open(path, out, why);
        free(path);
    }
    return err;
}

static int estimate_model(const struct estimate_options *options)
{
    struct model model;
    struct candidates candidates = {0};
    struct workload_list list = {0};
    struct error why = {0};
    enum err err = options->plot ? gnuplot_check_file(options->plot, &why) : ERR_OK;
    if (!err)
        err = open_model(options, &model, &why);
    if (err)
        return print_name_err(err, &why);
    if (!options->graph)
        err = find_candidates(options, &candidates, &why);
    if (!err && options->models.count) {
        int code = estimate_models(&(struct models_command){.model = &model,
                                                            .names = &options->models,
                                                            .benchmark = options->benchmark,
                                                            .workload = &options->workload,
                                                            .wanted = &options->candidates,
                                                            .candidates = &candidates,
                                                            .format = format_of(options),
                                                            .output = options->output});
        candidates_release(&candidates);
        model_close(&model);
        return code;
    }
    if (!err && !options->serve.serve)
        err = workload_list_make(&options->workload, &model, &list, &why);
    for (size_t i = 0; !err && candidates.hardware_count && i < list.count; i++)
        workload_spec_run_on(&list.items[i], &candidates.hardware[0]);
    int code = err                    ? print_name_err(err, &why)
               : options->serve.serve ? estimate_load(options, &model, &candidates)
                                      : estimate_list(options, &candidates, &list);
    if (!err && !options->serve.serve)
        workload_list_release(&list);
    candidates_release(&candidates);
    model_close(&model);
    return code;
}

/* ---- the legacy model ---- */

/* Rejects options without effect. */
static enum err check_legacy(const struct estimate_options *o, struct error *why)
{
    static const char *const OTHERS[] = {"batch",
                                         "tensor-parallel",
                                         "pipeline-parallel",
                                         "micro-batches",
                                         "compare",
                                         "compare-models",
                                         "sweep",
                                         "no-fusion",
                                         "runtime",
                                         "host-launch-us",
                                         "max-latency-ms",
                                         "max-energy-j",
                                         "max-memory-gb",
                                         "max-power-w",
                                         "price-per-kwh",
                                         "device-price-per-hour",
                                         "gco2-per-kwh",
                                         "plot",
                                         "graph",
                                         "top",
                                         "verbose",
                                         "serve",
                                         NULL};
    const char *other = option_given(OTHERS);
    if (o->hardware_files.count != 1 || o->hardware.count)
        return err_set(why, ERR_USAGE,
                       "--model-compat takes one --hardware-file, with the figures of the legacy "
                       "model under \"legacy\"");
    if (other)
        return err_set(why, ERR_USAGE,
                       "--model-compat takes no --%s: it estimates one sample on one device, "
                       "unfused and in full, for comparison with reports",
                       other);
    return ERR_OK;
}

static enum err estimate_legacy(const struct estimate_options *options, const struct model *model,
                                const struct legacy_hardware *device, struct text *out,
                                struct error *why)
{
    struct workload_list list;
    struct graph graph;
    struct legacy_estimate legacy;
    struct error unknown = {0};
    enum precision precision = PRECISION_FP32;
    if (options->candidates.precision &&
        precision_find(options->candidates.precision, &precision, &unknown))
        return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    enum err err = workload_list_make(&options->workload, model, &list, why);
    if (err)
        return err;
    if (list.count > 1)
        err = err_set(why, ERR_USAGE,
                      "--model-compat estimates one workload: give one --prompt-tokens and "
                      "--context");
    if (!err)
        err = model_graph(model, &list.items[0].setting, &graph, why);
    workload_list_release(&list);
    if (err)
        return err;
    err = legacy_estimate_make(&graph, device, precision, &legacy, why);
    if (!err) {
        if (format_of(options) == PRINT_JSON)
            legacy_estimate_json(&legacy, out);
        else
            legacy_estimate_text(&legacy, out);
        legacy_estimate_release(&legacy);
    }
    graph_release(&graph);
    return err;
}

static int show_legacy(const struct estimate_options *options)
{
    enum print_format format = format_of(options);
    struct legacy_hardware device;
    struct model model;
    struct error why = {0};
    struct text out = {0};
    if (format != PRINT_JSON && format != PRINT_TABLE)
        return print_error(EXIT_USAGE, "--model-compat writes a table or JSON, not %s",
                           PRINT_FORMATS[format]);
    enum err err = check_legacy(options, &why);
    if (!err)
        err = legacy_hardware_read(options->hardware_files.items[0], &device, &why);
    if (!err)
        err = open_model(options, &model, &why);
    if (err)
        return print_name_err(err, &why);
    err = estimate_legacy(options, &model, &device, &out, &why);
    int code = err ? print_name_err(err, &why) : deliver(options->output, &out);
    model_close(&model);
    text_release(&out);
    return code;
}

/* ---- options ---- */

/* With --serve a range is also allowed; estimate_serve parses it. */
static enum err read_output_tokens(struct estimate_options *o, struct error *why)
{
    uint64_t tokens;
    if (!o->output_tokens || o->serve.serve)
        return ERR_OK;
    if (parse_u64(o->output_tokens, &tokens) != ERR_OK || tokens < 1 || tokens > OUTPUT_MAX)
        return err_set(why, ERR_USAGE,
                       "--output-tokens takes a whole number from 1 to %d (with --serve, or a "
                       "range), not '%.60s'",
                       OUTPUT_MAX, o->output_tokens);
    o->workload.output_tokens = (unsigned)tokens;
    return ERR_OK;
}

static int estimate_run(struct estimate_options *o)
{
    struct error why = {0};
    if (!o->model && !o->parameters)
        return usage_error("missing --model");
    if (o->model && o->parameters)
        return usage_error(
            "--model and --parameters: give one of them, as --parameters stands for a "
            "model of which nothing else is known");
    if (o->benchmark && !o->models.count)
        return usage_error("--benchmark is for --compare-models");
    if (options_pairs("dim", &o->dim_words, &o->workload.dims, &why) != ERR_OK ||
        estimate_serve_check(&o->serve, &why) != ERR_OK || read_output_tokens(o, &why) != ERR_OK)
        return print_name_err(ERR_USAGE, &why);
    o->candidates.hardware = o->hardware.items;
    o->candidates.hardware_count = o->hardware.count;
    o->candidates.files = o->hardware_files.items;
    o->candidates.file_count = o->hardware_files.count;
    o->candidates.sweep = o->workload.sweep;
    return o->compat ? show_legacy(o) : estimate_model(o);
}

static struct estimate_options args = {.top = TOP_DEFAULT, .tariff = TARIFF_NONE};

static const char *const PHASES[] = {"prefill", "decode", NULL};
static const char *const GRAPHS[] = {"dot", "mermaid", NULL};
static const struct command *const TOOLS[] = {&command_estimate_calibrate,
                                              &command_estimate_validate, NULL};

static const struct option_row ROWS[] = {
    ONCE_ROW("model", args.model, "FILE|NAME", "model file, or a name of `ipw list models`",
             .letter = 'm'),
    TEXT_ROW("parameters", args.parameters, "N[,ACTIVE]",
             "a decoder of this size: 8.03B, or 30B,3B; its layers are assumed"),
    LIST_ROW("hardware", args.hardware, "ID",
             "IDs of `ipw list hardware`, or all (default: this machine)"),
    LIST_ROW("hardware-file", args.hardware_files, "FILE",
             "a device described in a file; may be repeated"),
    TEXT_ROW("precision", args.candidates.precision, "NAMES",
             "fp32, fp16, bf16, fp8, fp4, int8, int4 (default: stored, or 16-bit)", .letter = 'p'),
    TEXT_ROW("batch", args.workload.batch, "NUMBERS",
             "batch size: 8, 1,8,32, 1..64, 1..64x2 (default: 1)", .letter = 'b'),
    TEXT_ROW("prompt-tokens", args.workload.prompt_tokens, "NUMBERS",
             "prompt or input length: 512, 128..4096x2 (default: 512)"),
    TEXT_ROW("output-tokens", args.output_tokens, "N",
             "output tokens of a request; --serve: or 50..200 (default: 128)"),
    HINT_ROW("input-tokens", "use --prompt-tokens N"),
    TEXT_ROW("context", args.workload.context, "NUMBERS",
             "context length of a decode step, or of a whole request: 1024..8192x2"),
    CHOICE_ROW("phase", args.workload.phase, "PHASE", PHASES,
               "prefill or decode only (default: a request)"),
    TEXT_ROW("image", args.workload.image, "SIZE",
             "image side in pixels, or HEIGHTxWIDTH (default: the model's)"),
    LIST_ROW("dim", args.dim_words, "NAME=N",
             "sizes of an ONNX file: seq=128, an input x=1x3x224x224, a loop=10"),
    COUNT_ROW("tensor-parallel", args.candidates.devices, "N",
              "tensor parallelism: devices that share the model (default: 1)", .min = 1,
              .max = 1024),
    COUNT_ROW("pipeline-parallel", args.workload.stages, "N",
              "pipeline stages, each on --tensor-parallel devices (default: 1)", .min = 1,
              .max = PIPELINE_STAGES_MAX),
    COUNT_ROW("micro-batches", args.workload.micro_batches, "N",
              "micro-batches (default: one per stage, if the batch allows)", .min = 1,
              .max = PIPELINE_STAGES_MAX),
    HINT_ROW("pp", "use --pipeline-parallel N"),
    HINT_ROW("devices", "use --tensor-parallel N"),
    HINT_ROW("tp", "use --tensor-parallel N"),
    HINT_ROW("max-energy-mj", "use --max-energy-j J (1 mJ is 0.001)"),
    FLAG_ROW("compare", args.candidates.compare, "compare devices (default: the whole catalog)"),
    LIST_ROW("compare-models", args.models, "NAMES",
             "other models on the same device: energy, latency, published accuracy"),
    TEXT_ROW("benchmark", args.benchmark, "NAME",
             "--compare-models: accuracy of the frontier (default: most common)"),
    FLAG_ROW("sweep", args.workload.sweep,
             "every precision of the devices, and int4; batches 1 to 64"),
    NUMBER_ROW("max-latency-ms", args.max_latency_ms, "MS",
               "fail if a pass or request takes longer", .min = 1e-9, .max = 1e12),
    NUMBER_ROW("max-energy-j", args.max_energy_j, "J",
               "fail if the energy per sample, token (--phase) or request is higher", .min = 1e-9,
               .max = 1e15),
    NUMBER_ROW("max-memory-gb", args.max_memory_gb, "GB",
               "fail if one device needs more (10^9 bytes)", .min = 1e-9, .max = 1e9),
    NUMBER_ROW("max-power-w", args.max_power_w, "W",
               "fail if the mean power of all devices together is higher", .min = 1e-9, .max = 1e9),
    TARIFF_OPTION_ROWS(args.tariff),
    TEXT_ROW("runtime", args.workload.runtime, "NAME",
             "inference runtime: vllm, ideal ... (default: by model and device)"),
    NUMBER_ROW("host-launch-us", args.candidates.host_launch_us, "US",
               "host time to launch an operator in eager mode (default: 8.13)", .min = 0.01,
               .max = 1e5),
    FLAG_ROW("no-fusion", args.workload.no_fusion,
             "no operator fusion: one kernel per operation, as in eager mode"),
    SERVE_OPTION_ROWS(args.serve),
    COUNT_ROW("top", args.top, "N", "rows to show; 0: all (default: 10; 40 for many estimates)",
              .max = 1e9),
    CHOICE_ROW("graph", args.graph, "LANGUAGE", GRAPHS,
               "write the graph of the model instead: dot or mermaid"),
    TEXT_ROW("plot", args.plot, "FILE", "also plot to FILE.png, .svg or .pdf (needs gnuplot)"),
    FLAG_ROW("model-compat", args.compat, "use the legacy model, for comparison with its reports"),
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_OPTION_ROW(args.output),
    FLAG_ROW("verbose", args.verbose,
             "all rows, and the device's figures with sources; csv: subgraphs", .letter = 'v'),
    {0},
};

static int estimate_main(const char **words, size_t count)
{
    if (count)
        return print_error(EXIT_USAGE, "unexpected argument '%s': use --model for models",
                           words[0]);
    int code = estimate_run(&args);
    params_release(&args.workload.dims);
    return code;
}

const struct command command_estimate = {
    .name = "estimate",
    .summary = "predict energy, latency and memory of a model on hardware",
    .usage = "--model FILE|NAME | --parameters N [--hardware ID[,ID...]] [OPTIONS]",
    .details =
        "Counts the operations and bytes of a model, partitions it into kernels, and compares\n"
        "them with the peak figures and the power of a device: energy, latency, memory,\n"
        "bottlenecks, and what would save energy. Kernels are those of the runtime that is usual\n"
        "for such a model on the device, or of --runtime; `ideal` gives a lower bound.\n\n"
        "The model is a file (ONNX, GGUF, config.json, safetensors) or a name of `ipw list\n"
        "models`; the device is one of `ipw list hardware`, with @MODE for one of its power\n"
        "modes, or a file. For a decoder a whole request is estimated, prefill and decode, unless\n"
        "--phase is given.\n\n"
        "Several devices, precisions, batch sizes, prompts or contexts give a table, sorted by\n"
        "energy within each prompt and context, with the Pareto frontier of energy and latency\n"
        "marked. With a --max option those within the limits come first, and the exit status is\n"
        "1 if the estimate exceeds a limit or, in a table, if every estimate of some prompt and\n"
        "context does.\n\n"
        "--serve simulates a server under load, with continuous batching, chunked prefill and a\n"
        "limited KV cache: TTFT, TPOT, ITL, tokens/s, power and energy per token against the\n"
        "request rate, and the largest load that meets an SLO (exit status 1: none does).\n\n"
        "`ipw estimate calibrate` fits a device to measurements, `ipw estimate validate` compares\n"
        "predictions with measurements; each has its own --help.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .tools = TOOLS,
    .run = estimate_main,
};
