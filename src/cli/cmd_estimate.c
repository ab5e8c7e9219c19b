/* ipw estimate: energy, latency and memory of a model on hardware, predicted.
 *
 *   $ ipw estimate --model resnet50 --hardware a100-sxm-80gb --batch 8
 *
 * The report goes to stdout or to a file; the exit status is 1 when a limit is not met. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/estimate_serve.h"
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
    const char *model, *graph, *plot, *output, *output_tokens;
    struct format_options format;
    struct option_list hardware, hardware_files, dim_words;
    struct workload_options workload;
    struct candidate_options candidates;
    struct estimate_serve_options serve;
    double max_latency_ms, max_energy_j, max_memory_gb, max_power_w;
    struct tariff tariff;
    unsigned top;
    bool compat, verbose;
};

static int fail(enum err err, const struct error *why)
{
    bool is_usage = err == ERR_USAGE || err == ERR_NOT_FOUND;
    return print_error(is_usage ? EXIT_USAGE : EXIT_FAILED, "%s", why->text);
}

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
            return fail(err, &why);
    }
    return deliver_printed(options->output, result, format_of(options), views);
}

static int report_one(const struct estimate_options *options,
                      const struct workload_estimate *estimate, bool is_in_catalog)
{
    static const struct print_views VIEWS = {.text = estimate_text, .markdown = estimate_markdown};
    struct budget budget = budget_of(options);
    const struct recommend_question question = {estimate, &budget, is_in_catalog};
    const struct estimate_shown shown = shown_of(options, TOP_SUBGRAPHS);
    struct result result = {0};
    estimate_result_make(&question, &shown, &result);
    int code = put_result(options, &result, estimate_figure, &VIEWS);
    result_release(&result);
    return code ? code : budget_holds(&budget, estimate) ? EXIT_DONE : EXIT_FAILED;
}

static int estimate_one(const struct estimate_options *options, const struct candidates *candidates,
                        const struct workload *work)
{
    const struct grid_candidate *candidate = &candidates->items[0];
    struct workload_estimate estimate;
    struct error why = {0};
    enum err err = workload_estimate_make(work, &candidates->hardware[candidate->device],
                                          &candidate->config, true, &estimate, &why);
    if (err)
        return fail(err, &why);
    warn_of_replication(&estimate);
    int code = report_one(options, &estimate, candidates->is_in_catalog[candidate->device]);
    workload_estimate_release(&estimate);
    return code;
}

/* ---- several estimates ---- */

static int report_grid(const struct estimate_options *options, const struct estimate_grid *grid)
{
    static const struct print_views VIEWS = {.text = points_text, .markdown = points_markdown};
    struct budget budget = budget_of(options);
    const struct estimate_shown shown =
        shown_of(options, grid->count <= POINTS_ALL ? 0 : TOP_POINTS);
    struct result result = {0};
    grid_result_make(grid, &budget, &shown, &result);
    int code = put_result(options, &result, points_figure, &VIEWS);
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
        return fail(err, &why);
    if (grid.able)
        warn_of_replication(&grid.items[0].estimate);
    int code = grid.able ? report_grid(options, &grid)
                         : print_error(EXIT_FAILED, "%s", grid.items[0].missing);
    estimate_grid_release(&grid);
    return code;
}

/* ---- a model ---- */

static int show_graph(const struct estimate_options *options, const struct workload *work)
{
    struct text out = {0};
    if (strcmp(options->graph, "dot") == 0)
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
    struct workload first;
    struct error why = {0};
    int code = 0;
    if (options->graph && list->count > 1)
        return print_error(EXIT_USAGE,
                           "--graph shows one workload: give one --batch, --prompt-tokens and "
                           "--context");
    enum err err = workload_make(&list->items[0], &first, &why);
    if (err)
        return fail(err, &why);
    err = workload_list_check(list, &first, &why);
    if (!err && !options->graph)
        err = candidates_make(&options->candidates, &first, candidates, &why);
    if (err)
        code = fail(err, &why);
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

/* A file, an architecture by its name, or a model that is installed with ipw. */
static enum err open_model(const char *name, struct model *out, struct error *why)
{
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
        err = open_model(options->model, &model, &why);
    if (err)
        return fail(err, &why);
    if (!options->graph)
        err = find_candidates(options, &candidates, &why);
    if (!err && !options->serve.serve)
        err = workload_list_make(&options->workload, &model, &list, &why);
    for (size_t i = 0; !err && candidates.hardware_count && i < list.count; i++)
        workload_spec_run_on(&list.items[i], &candidates.hardware[0]);
    int code = err                    ? fail(err, &why)
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
    const struct {
        bool is_given;
        const char *name;
    } OTHERS[] = {
        {o->workload.batch != NULL, "batch"},
        {o->candidates.devices != 0, "tensor-parallel"},
        {o->workload.stages != 0, "pipeline-parallel"},
        {o->workload.micro_batches != 0, "micro-batches"},
        {o->candidates.compare, "compare"},
        {o->workload.sweep, "sweep"},
        {o->workload.no_fusion, "no-fusion"},
        {o->workload.runtime != NULL, "runtime"},
        {o->candidates.host_launch_us > 0, "host-launch-us"},
        {o->max_latency_ms > 0, "max-latency-ms"},
        {o->max_energy_j > 0, "max-energy-j"},
        {o->max_memory_gb > 0, "max-memory-gb"},
        {o->max_power_w > 0, "max-power-w"},
        {is_known(o->tariff.price_per_kwh), "price-per-kwh"},
        {is_known(o->tariff.device_price_per_hour), "device-price-per-hour"},
        {is_known(o->tariff.gco2_per_kwh), "gco2-per-kwh"},
        {o->plot != NULL, "plot"},
        {o->graph != NULL, "graph"},
        {o->top != TOP_DEFAULT, "top"},
        {o->verbose, "verbose"},
        {o->serve.serve, "serve"},
    };
    if (o->hardware_files.count != 1 || o->hardware.count)
        return err_set(why, ERR_USAGE,
                       "--model-compat takes one --hardware-file, with the figures of the legacy "
                       "model under \"legacy\"");
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (OTHERS[i].is_given)
            return err_set(why, ERR_USAGE,
                           "--model-compat takes no --%s: it estimates one sample on one device, "
                           "unfused and in full, for comparison with reports",
                           OTHERS[i].name);
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
        err = open_model(options->model, &model, &why);
    if (err)
        return fail(err, &why);
    err = estimate_legacy(options, &model, &device, &out, &why);
    int code = err ? fail(err, &why) : deliver(options->output, &out);
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
    if (!o->model)
        return usage_error("missing --model");
    if (options_pairs("dim", &o->dim_words, &o->workload.dims, &why) != ERR_OK ||
        estimate_serve_check(&o->serve, &why) != ERR_OK || read_output_tokens(o, &why) != ERR_OK)
        return fail(ERR_USAGE, &why);
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

/* clang-format off */
static const struct option_row ROWS[] = {
    {.letter = 'm', .name = "model", .type = OPTION_ONCE, .target = &args.model,
     .value = "FILE|NAME", .help = "model file, or a name of `ipw list models`"},
    {.name = "hardware", .type = OPTION_LIST, .target = &args.hardware, .value = "ID",
     .help = "IDs of `ipw list hardware`, or all (default: this machine)"},
    {.name = "hardware-file", .type = OPTION_LIST, .target = &args.hardware_files, .value = "FILE",
     .help = "a device described in a file; may be repeated"},
    {.letter = 'p', .name = "precision", .type = OPTION_TEXT, .target = &args.candidates.precision,
     .value = "NAMES",
     .help = "fp32, fp16, bf16, fp8, int8, int4, stored (default: stored or 16-bit)"},
    {.letter = 'b', .name = "batch", .type = OPTION_TEXT, .target = &args.workload.batch,
     .value = "NUMBERS", .help = "batch size: 8, 1,8,32, 1..64, 1..64x2 (default: 1)"},
    {.name = "prompt-tokens", .type = OPTION_TEXT, .target = &args.workload.prompt_tokens,
     .value = "NUMBERS", .help = "prompt or input length: 512, 128..4096x2 (default: 512)"},
    {.name = "output-tokens", .type = OPTION_TEXT, .target = &args.output_tokens, .value = "N",
     .help = "output tokens of a request; --serve: or 50..200 (default: 128)"},
    {.name = "input-tokens", .type = OPTION_HINT, .help = "use --prompt-tokens N"},
    {.name = "context", .type = OPTION_TEXT, .target = &args.workload.context, .value = "NUMBERS",
     .help = "context length of a decode step, or of a whole request: 1024..8192x2"},
    {.name = "phase", .type = OPTION_CHOICE, .target = &args.workload.phase, .value = "PHASE",
     .help = "prefill or decode only (default: a request)", .choices = PHASES},
    {.name = "image", .type = OPTION_TEXT, .target = &args.workload.image, .value = "SIZE",
     .help = "image side in pixels, or HEIGHTxWIDTH (default: the model's)"},
    {.name = "dim", .type = OPTION_LIST, .target = &args.dim_words, .value = "NAME=N",
     .help = "sizes of an ONNX file: seq=128, an input x=1x3x224x224, a loop=10"},
    {.name = "tensor-parallel", .type = OPTION_COUNT, .target = &args.candidates.devices, .value = "N",
     .help = "tensor parallelism: devices that share the model (default: 1)", .min = 1,
     .max = 1024},
    {.name = "pipeline-parallel", .type = OPTION_COUNT, .target = &args.workload.stages, .value = "N",
     .help = "pipeline stages, each on --tensor-parallel devices (default: 1)", .min = 1,
     .max = PIPELINE_STAGES_MAX},
    {.name = "micro-batches", .type = OPTION_COUNT, .target = &args.workload.micro_batches, .value = "N",
     .help = "micro-batches (default: one per stage, if the batch allows)", .min = 1,
     .max = PIPELINE_STAGES_MAX},
    {.name = "pp", .type = OPTION_HINT, .help = "use --pipeline-parallel N"},
    {.name = "devices", .type = OPTION_HINT, .help = "use --tensor-parallel N"},
    {.name = "tp", .type = OPTION_HINT, .help = "use --tensor-parallel N"},
    {.name = "max-energy-mj", .type = OPTION_HINT, .help = "use --max-energy-j J (1 mJ is 0.001)"},
    {.name = "compare", .type = OPTION_FLAG, .target = &args.candidates.compare,
     .help = "compare devices (default: the whole catalog)"},
    {.name = "sweep", .type = OPTION_FLAG, .target = &args.workload.sweep,
     .help = "every precision of the devices, and int4; batches 1 to 64"},
    {.name = "max-latency-ms", .type = OPTION_NUMBER, .target = &args.max_latency_ms,
     .value = "MS", .help = "fail if a pass or request takes longer", .min = 1e-9,
     .max = 1e12},
    {.name = "max-energy-j", .type = OPTION_NUMBER, .target = &args.max_energy_j, .value = "J",
     .help = "fail if the energy per sample, token (--phase) or request is higher", .min = 1e-9,
     .max = 1e15},
    {.name = "max-memory-gb", .type = OPTION_NUMBER, .target = &args.max_memory_gb, .value = "GB",
     .help = "fail if one device needs more (10^9 bytes)", .min = 1e-9, .max = 1e9},
    {.name = "max-power-w", .type = OPTION_NUMBER, .target = &args.max_power_w, .value = "W",
     .help = "fail if the mean power of all devices together is higher",
     .min = 1e-9, .max = 1e9},
    TARIFF_OPTION_ROWS(args.tariff),
    {.name = "runtime", .type = OPTION_TEXT, .target = &args.workload.runtime, .value = "NAME",
     .help = "inference runtime: vllm, ideal ... (default: by model and device)"},
    {.name = "host-launch-us", .type = OPTION_NUMBER, .target = &args.candidates.host_launch_us, .value = "US",
     .help = "host time to launch an operator in eager mode (default: 8.5)", .min = 0.01,
     .max = 1e5},
    {.name = "no-fusion", .type = OPTION_FLAG, .target = &args.workload.no_fusion,
     .help = "no operator fusion: one kernel per operation, as in eager mode"},
    SERVE_OPTION_ROWS(args.serve),
    {.name = "top", .type = OPTION_COUNT, .target = &args.top, .value = "N",
     .help = "rows to show; 0: all (default: 10; 40 for many estimates)", .max = 1e9},
    {.name = "graph", .type = OPTION_CHOICE, .target = &args.graph, .value = "LANGUAGE",
     .help = "write the graph of the model instead: dot or mermaid", .choices = GRAPHS},
    {.name = "plot", .type = OPTION_TEXT, .target = &args.plot, .value = "FILE",
     .help = "also plot to FILE.png, .svg or .pdf (needs gnuplot)"},
    {.name = "model-compat", .type = OPTION_FLAG, .target = &args.compat,
     .help = "use the legacy model, for comparison with its reports"},
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_OPTION_ROW(args.output),
    {.letter = 'v', .name = "verbose", .type = OPTION_FLAG, .target = &args.verbose,
     .help = "all rows, and the device's figures with sources; csv: subgraphs"},
    {0},
};
/* clang-format on */

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
    .usage = "--model FILE|NAME [--hardware ID[,ID...]] [OPTIONS]",
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
        "marked. With a --max option the exit status is 1 if the estimate exceeds a limit or, in\n"
        "a table, if every estimate of some prompt and context does.\n\n"
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
