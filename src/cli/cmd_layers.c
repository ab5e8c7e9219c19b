/* ipw layers: the energy of each layer and component of a model.
 *
 *   $ ipw layers --model SmolLM2-135M.gguf --prompt-tokens 32,128,512
 *   $ ipw layers --model resnet18.onnx --batch 8
 *
 * The model runs inside this process.  The report goes to stdout, progress to stderr. */
#include <stdlib.h>
#include <string.h>

#include "catalog/hardware.h"
#include "cli/common.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/params.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "engine/shipped.h"
#include "estimate/estimate_grid.h"
#include "port/proc.h"
#include "report/text/reports.h"
#include "rundir/layers_result.h"
#include "runner/host_report.h"
#include "runner/layers/layers.h"
#include "runner/run_save.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

struct layers_command {
    struct measure_options measure;
    struct layers_options layers;
    struct option_list models;
    char *lists[OPTION_LIST_MAX]; /* copies, split at commas */
    const char *paths[OPTION_LIST_MAX];
    size_t path_count;
    char *found[OPTION_LIST_MAX]; /* paths of these models */
    const char *prompts, *granularity, *output;
    struct params dims;
    struct option_list dim_words, hardware, hardware_files;
    struct candidate_options estimate; /* the device to compare an ONNX model with */
    bool is_onnx;
    char *processor; /* this machine's, by its ID in the catalog */
    unsigned gpu_layers;
    struct format_options format;
    bool quiet, save;
    const char *output_dir; /* parent of the run directories; implies --save */
    const char *db;         /* database to push to; implies --save */
};

/* ---- progress ---- */

/* Overwrites one line on a terminal; prints one line per step elsewhere. */
static void show_progress(const struct layers_progress *state)
{
    const char *slash = strrchr(state->model, '/');
    const char *name = slash ? slash + 1 : state->model;
    bool on_terminal = clear_progress();
    if (!state->prompt)
        notify("ipw layers: %s: %s", name, state->activity);
    else if (on_terminal)
        notify("ipw layers: %s: round %u%s, %s at %u tokens: %s (%.0f s)", name, state->round,
               state->rounds ? "" : "+", layers_phase_name(state->phase), state->prompt,
               state->activity, state->elapsed_s);
    else
        return;
    if (!on_terminal)
        notify("\n");
}

/* ---- options ---- */

/* "a,b" is two files. */
static int split_models(struct layers_command *command)
{
    for (size_t i = 0; i < command->models.count; i++) {
        char *copy = command->lists[i] = xstrdup(command->models.items[i]);
        for (char *word = copy, *next; word; word = next) {
            next = strchr(word, ',');
            if (next)
                *next++ = '\0';
            if (!*word)
                return print_error(EXIT_USAGE, "--model: empty name in '%s'",
                                   command->models.items[i]);
            if (command->path_count == OPTION_LIST_MAX)
                return print_error(EXIT_USAGE, "too many models (limit %d)", OPTION_LIST_MAX);
            command->paths[command->path_count++] = word;
        }
    }
    if (command->path_count == 0)
        return usage_error("missing --model");
    return -1;
}

/* A shipped model may be given by name. */
static int find_models(struct layers_command *command)
{
    for (size_t i = 0; i < command->path_count; i++) {
        struct error why = {0};
        enum err err = command->is_onnx
                           ? shipped_find_onnx(command->paths[i], &command->found[i], &why)
                           : shipped_find(command->paths[i], &command->found[i], &why);
        if (err)
            return print_failure(&why);
        command->paths[i] = command->found[i];
    }
    return -1;
}

/* A name without a suffix is that of a GGUF model, if there is one. */
static bool names_onnx(const char *name)
{
    char *path;
    if (layers_is_onnx(name))
        return true;
    if (shipped_find(name, &path, NULL) == ERR_OK) {
        free(path);
        return false;
    }
    bool is_found = shipped_find_onnx(name, &path, NULL) == ERR_OK;
    bool is_onnx = is_found && layers_is_onnx(path);
    if (is_found)
        free(path);
    return is_onnx;
}

/* Either kind has options of its own. */
static int check_kinds(struct layers_command *command, const char *usual_prompts)
{
    const struct layers_options *layers = &command->layers;
    command->is_onnx = names_onnx(command->paths[0]);
    for (size_t i = 1; i < command->path_count; i++)
        if (names_onnx(command->paths[i]) != command->is_onnx)
            return print_error(EXIT_USAGE, "--model: ONNX and GGUF models need a command each");
    bool is_decoders = command->prompts != usual_prompts || layers->context ||
                       command->gpu_layers || !str_equal(command->granularity, "auto");
    bool is_onnx = command->dims.count || command->hardware.count || command->hardware_files.count;
    if (command->is_onnx && is_decoders)
        return print_error(EXIT_USAGE, "--prompt-tokens, --context, --gpu-layers and --granularity "
                                       "are of GGUF models");
    if (!command->is_onnx && is_onnx)
        return print_error(EXIT_USAGE, "--dim, --hardware and --hardware-file are of ONNX models");
    return -1;
}

static int by_size(const void *a, const void *b)
{
    return compare_numbers(*(const unsigned *)a, *(const unsigned *)b);
}

static int split_prompts(struct layers_command *command)
{
    enum { LONGEST = 1000000 };
    struct layers_options *layers = &command->layers;
    for (const char *rest = command->prompts; rest;) {
        char number[24];
        uint64_t tokens;
        if (!str_next_item(&rest, number, sizeof number) || parse_u64(number, &tokens) != ERR_OK ||
            tokens < 1 || tokens > LONGEST)
            return print_error(
                EXIT_USAGE, "--prompt-tokens takes lengths from 1 to %d, e.g. 32,128,512, not '%s'",
                LONGEST, command->prompts);
        if (layers->prompt_count == LAYERS_PROMPTS_MAX)
            return print_error(EXIT_USAGE, "--prompt-tokens: too many lengths (limit %d)",
                               LAYERS_PROMPTS_MAX);
        layers->prompts[layers->prompt_count++] = (unsigned)tokens;
    }
    qsort(layers->prompts, layers->prompt_count, sizeof *layers->prompts, by_size);
    for (size_t i = 1; i < layers->prompt_count; i++)
        if (layers->prompts[i] == layers->prompts[i - 1])
            return print_error(EXIT_USAGE, "--prompt-tokens: %u given more than once",
                               layers->prompts[i]);
    return -1;
}

static int complete_options(struct layers_command *command)
{
    struct layers_options *layers = &command->layers;
    struct error why = {0};
    int code = split_models(command);
    if (code < 0 && options_pairs("dim", &command->dim_words, &command->dims, &why))
        code = print_failure(&why);
    if (code < 0)
        code = split_prompts(command);
    if (code >= 0)
        return code;
    layers->auto_granularity = str_equal(command->granularity, "auto");
    if (str_equal(command->granularity, "layer"))
        layers->granularity = LAYERS_BY_LAYER;
    layers->gpu_layers = (int)command->gpu_layers;
    layers->dims = &command->dims;
    command->estimate = (struct candidate_options){
        .hardware = command->hardware.items,
        .hardware_count = command->hardware.count,
        .files = command->hardware_files.items,
        .file_count = command->hardware_files.count,
    };
    layers->estimate = &command->estimate;
    if (is_known(command->measure.idle_s))
        layers->idle_s = command->measure.idle_s;
    if (!command->quiet)
        layers->progress = show_progress;
    return -1;
}

/* ---- the report ---- */

static void print_models(const void *context, enum print_format format, bool color,
                         struct text *out)
{
    result_print(context, format, &LAYERS_VIEWS, color, out);
}

static int write_out(const struct layers_command *command, const struct layers_results *results)
{
    struct result result = {0};
    layers_results_fill(results, command->path_count > 1, &result);
    int code = deliver_result(command->output, &command->format, print_models, &result, true);
    result_release(&result);
    return code;
}

/* A run directory for each model. */
static int save_models(const struct layers_command *command, const struct run_save *save,
                       const struct layers_run *run)
{
    int code = 0;
    if (!command->save && !command->output_dir && !command->db)
        return 0;
    for (size_t i = 0; i < run->count; i++) {
        struct error why = {0};
        char *directory;
        if (run_save_layers(save, &run->models[i], &run->results.models[i], &directory, &why)) {
            code = print_error(EXIT_FAILED, "cannot save the run: %s", why.text);
        } else {
            notify("ipw layers: saved in %s\n",
                   directory); /* with -q, too: nothing else names it */
            push_saved(command->db, directory, command->quiet);
        }
        free(directory);
    }
    return code;
}

/* Facts about the measurement as a whole. */
static void describe(struct layers_result *result, const struct run_save *save, const char *started)
{
    struct json json;
    json_init(&json, &result->host, false);
    host_to_json(&json, NULL, save->host);
    result->started = started;
    result->own = (struct result_own){.cpu_s = save->own.cpu_s,
                                      .rss_mb = save->own.rss_mb,
                                      .reads = (double)sampler_reads(save->session->sampler)};
    for (size_t i = 0; i < sampler_count(save->session->sampler); i++) {
        struct source_state state;
        sampler_source(save->session->sampler, i, &state);
        result->own.read_s += state.read_s;
    }
}

static int write_report(const struct layers_command *command, struct session *session,
                        const struct layers_run *run)
{
    char started[CLOCK_TEXT_MAX];
    struct host_report host;
    struct run_save save = {.parent = command->output_dir, .session = session, .host = &host};
    host_report_fill(&session->findings, &host);
    proc_own_cost(&save.own);
    clock_text(started, run->started_wall);
    for (size_t i = 0; i < run->results.count; i++)
        describe(&run->results.models[i], &save, started);
    int code = write_out(command, &run->results);
    int saved = save_models(command, &save, run);
    return code ? code : saved;
}

static int require_energy(const struct measure_options *options, const struct layers_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        int code =
            require_measured(options, &run->models[i].total, &run->models[i].conditions.figures);
        if (code)
            return code;
    }
    return EXIT_DONE;
}

/* Without a given device ONNX models are compared with the estimate for this processor, if the catalog has it. */
static void find_processor(struct layers_command *command)
{
    struct hardware own;
    bool is_given = command->hardware.count || command->hardware_files.count;
    if (!command->is_onnx || is_given || host_find_processor(&own, NULL))
        return;
    str_set(&command->processor, own.id);
    hardware_release(&own);
    command->estimate.hardware = (const char *const *)&command->processor;
    command->estimate.hardware_count = 1;
}

static enum err open_library(bool is_onnx, struct error *why)
{
    const struct engine_library *library;
    const char *version;
    return is_onnx ? onnx_available(&version, why) : engine_library_open(&library, why);
}

static int measure(const struct layers_command *command)
{
    static struct session session; /* not closed: see cmd_run.c */
    struct layers_run run;
    struct error why = {0};
    if (open_library(command->is_onnx, &why) != ERR_OK)
        return print_failure(&why);
    proc_block_signals();
    int code = open_session(&command->measure, &session);
    if (code)
        return code;
    enum err err =
        layers_measure(&session, command->paths, command->path_count, &command->layers, &run, &why);
    clear_progress();
    sampler_stop(session.sampler);
    if (err && err != ERR_INTERRUPTED)
        code = print_err(err, &why);
    /* Models measured before a failure are still reported. */
    if (run.count > 0) {
        int delivered = write_report(command, &session, &run);
        code = code ? code : delivered;
    }
    if (run.signal)
        code = 128 + run.signal;
    else if (!code)
        code = require_energy(&command->measure, &run);
    layers_run_release(&run);
    return code;
}

static const char PROMPTS[] = "32,128,512";

static struct layers_command args = {
    .measure = {.idle_s = UNKNOWN},
    .prompts = PROMPTS,
    .granularity = "auto",
    .layers = {.generate = 32, .batch = 1, .seed = 1, .idle_s = 2, .max_s = 60},
};

static const char *const GRANULARITIES[] = {"auto", "component", "layer", NULL};

static const struct option_row ROWS[] = {
    LIST_ROW("model", args.models, "FILE",
             "GGUF or ONNX file, or shipped model; comma-separated or repeated", .letter = 'm'),
    LIST_ROW("dim", args.dim_words, "NAME=N",
             "sizes of an ONNX file: seq=128, x.2=640, an input x=1x3x640x640"),
    LIST_ROW("hardware", args.hardware, "ID",
             "ONNX: estimate for this ID of `ipw list hardware` (default: here)"),
    LIST_ROW("hardware-file", args.hardware_files, "FILE",
             "the same, described in a file of `ipw estimate calibrate`"),
    TEXT_ROW("prompt-tokens", args.prompts, "LIST", "prompt lengths (default: 32,128,512)"),
    COUNT_ROW("gen", args.layers.generate, "N",
              "tokens to generate after each prompt (default: 32)", .max = 100000),
    COUNT_ROW("repeat", args.layers.repeats, "N",
              "rounds of windows (default: until the ± is small)", .min = 1, .max = 200,
              .letter = 'r'),
    NUMBER_ROW("max-seconds", args.layers.max_s, "S",
               "start no new round of a model after S seconds (default: 60)", .min = 0.1,
               .max = 1e6),
    NUMBER_ROW("window", args.layers.window_s, "S",
               "minimum window length (default: as long as the sensors need)", .min = 0.01,
               .max = 3600),
    COUNT_ROW("batch", args.layers.batch, "N",
              "batch size: sequences computed together (default: 1)", .min = 1, .max = 256),
    COUNT_ROW("threads", args.layers.threads, "N", "compute threads (default: one per core)",
              .min = 1, .max = 512, .letter = 't'),
    COUNT_ROW("context", args.layers.context, "N",
              "context length in tokens (default: as long as needed)", .min = 1, .max = 1e7),
    COUNT_ROW("gpu-layers", args.gpu_layers, "N", "layers to offload to the GPU (default: 0)",
              .max = 100000),
    COUNT_ROW("seed", args.layers.seed, "N", "random seed of the tokens (default: 1)", .max = 4e9),
    IDLE_OPTION_ROW(args.measure, "measure idle power for S seconds first (default: 2; 0: skip)",
                    0),
    CHOICE_ROW("granularity", args.granularity, "WORD", GRANULARITIES,
               "auto, component or layer (default: auto)"),
    RESULT_OPTION_ROWS(args, "no progress"),
    FLAG_ROW("save", args.save, "save a run directory for each model in runs/"),
    TEXT_ROW("output-dir", args.output_dir, "DIR", "save them in DIR instead"),
    DB_PUSH_OPTION_ROW(args.db),
    MEASURE_OPTION_ROWS(args.measure, NULL),
    {0},
};

static int layers_main(const char **words, size_t count)
{
    (void)words, (void)count;
    int code = check_db(args.db, false);
    if (!code)
        code = complete_options(&args);
    if (code < 0)
        code = check_kinds(&args, PROMPTS);
    if (code < 0)
        code = find_models(&args);
    if (code < 0) {
        find_processor(&args);
        code = measure(&args);
    }
    free(args.processor);
    for (size_t i = 0; i < OPTION_LIST_MAX; i++) {
        free(args.lists[i]);
        free(args.found[i]);
    }
    params_release(&args.dims);
    return code;
}

const struct command command_layers = {
    .name = "layers",
    .summary = "energy by layer and component of a GGUF model, or by node of an ONNX model",
    .usage = "--model FILE [OPTIONS]",
    .details =
        "Runs the model in this process: prompts of several lengths (prefill), and tokens\n"
        "generated after each (decode), repeated in windows long enough for the sensors. Half of\n"
        "the windows run without instrumentation and measure the energy; the others, interleaved,\n"
        "synchronize after each component and measure the times. The power of each component\n"
        "above idle is fitted by non-negative least squares; components that the windows cannot\n"
        "separate share one power, and their energy is divided by time.\n\n"
        "An ONNX model runs on random inputs; ONNX Runtime's profile has the time of each node,\n"
        "and nodes share the energy of a run above idle by time. Each is shown beside the\n"
        "estimate for this processor, or --hardware.\n\n"
        "Several models are measured in sequence and compared. Needs the library of llama.cpp or\n"
        "ONNX Runtime; `ipw doctor` shows how to install it.",
    .rows = ROWS,
    .run = layers_main,
};
