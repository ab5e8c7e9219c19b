/* ipw layers: where in a model the joules go.
 *
 *   $ ipw layers --model SmolLM2-135M.gguf --prompt-tokens 32,128,512
 *
 * The model runs inside this process.  The report goes to stdout, progress to stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/text.h"
#include "engine/shipped.h"
#include "port/proc.h"
#include "report/text/layers_report.h"
#include "runner/host_report.h"
#include "runner/layers/layers.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

static int layers_main(int argc, char **argv);

const struct command command_layers = {
    .name = "layers",
    .summary = "energy by layer and component of a GGUF model",
    .usage = "--model FILE [OPTIONS]",
    .details =
        "Runs the model inside this process: prompts of several lengths (prefill) and tokens\n"
        "generated after each (decode), again and again, in windows long enough for the sensors.\n"
        "Half of the windows run undisturbed and give the energy; the others, between them, stop\n"
        "at the ends of components and give the times. Powers of components come out of both by\n"
        "least squares at 0 or above, with idle apart; components that the windows cannot tell\n"
        "apart share one power, and their joules go by time.\n\n"
        "Several models, in one list or by repeating --model, are measured one after the other\n"
        "and compared. Needs llama.cpp's library: `ipw doctor` says what brings it.",
    .run = layers_main,
};

struct layers_command {
    struct measure_options measure;
    struct layers_options layers;
    struct option_list models;
    char *lists[OPTION_LIST_MAX]; /* copies of them, cut at their commas */
    const char *paths[OPTION_LIST_MAX];
    size_t path_count;
    char *found[OPTION_LIST_MAX]; /* the files that they mean */
    const char *prompts, *granularity, *output;
    unsigned gpu_layers;
    bool json, quiet;
};

/* ---- progress ---- */

static bool on_terminal;

static void wipe(void)
{
    if (on_terminal)
        fprintf(stderr, "\r\033[K");
}

/* One line that is drawn over on a terminal; elsewhere a line for each thing that takes long. */
static void show_progress(const struct layers_progress *state)
{
    const char *slash = strrchr(state->model, '/');
    const char *name = slash ? slash + 1 : state->model;
    wipe();
    if (!state->prompt)
        fprintf(stderr, "ipw layers: %s: %s", name, state->doing);
    else if (on_terminal)
        fprintf(stderr, "ipw layers: %s: round %u%s, %s at %u tokens: %s (%.0f s)", name,
                state->round, state->rounds ? "" : "+", layers_phase_name(state->phase),
                state->prompt, state->doing, state->elapsed_s);
    else
        return;
    if (!on_terminal)
        fputc('\n', stderr);
}

/* ---- options ---- */

/* "a,b" is two files; what is between commas may not be empty. */
static int cut_models(struct layers_command *command)
{
    for (size_t i = 0; i < command->models.count; i++) {
        size_t length = strlen(command->models.items[i]) + 1;
        char *copy = malloc(length);
        if (!copy)
            return complain("layers", EXIT_FAILED, "out of memory");
        memcpy(copy, command->models.items[i], length);
        command->lists[i] = copy;
        for (char *word = copy, *next; word; word = next) {
            next = strchr(word, ',');
            if (next)
                *next++ = '\0';
            if (!*word)
                return complain("layers", EXIT_USAGE, "--model: an empty name in '%s'",
                                command->models.items[i]);
            if (command->path_count == OPTION_LIST_MAX)
                return complain("layers", EXIT_USAGE, "at most %d models", OPTION_LIST_MAX);
            command->paths[command->path_count++] = word;
        }
    }
    if (command->path_count == 0)
        return complain("layers", EXIT_USAGE, "which model? usage: ipw layers %s",
                        command_layers.usage);
    return -1;
}

/* A model may go by the name that it was shipped under. */
static int find_models(struct layers_command *command)
{
    for (size_t i = 0; i < command->path_count; i++) {
        char path[4096];
        struct error why = {0};
        if (shipped_find(command->paths[i], path, sizeof path, &why) != ERR_OK)
            return complain("layers", EXIT_FAILED, "%s", why.text);
        command->found[i] = strdup(path);
        if (!command->found[i])
            return complain("layers", EXIT_FAILED, "out of memory");
        command->paths[i] = command->found[i];
    }
    return -1;
}

static int by_size(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

static int cut_prompts(struct layers_command *command)
{
    enum { LONGEST = 1000000 };
    struct layers_options *layers = &command->layers;
    const char *word = command->prompts;
    for (bool more = true; more;) {
        char number[24];
        uint64_t tokens;
        size_t length = strcspn(word, ",");
        more = word[length] == ',';
        if (length >= sizeof number ||
            !str_format(number, sizeof number, "%.*s", (int)length, word) ||
            parse_u64(number, &tokens) != ERR_OK || tokens < 1 || tokens > LONGEST)
            return complain("layers", EXIT_USAGE,
                            "--prompt-tokens wants lengths from 1 to %d, like 32,128,512; not '%s'",
                            LONGEST, command->prompts);
        if (layers->prompt_count == LAYERS_PROMPTS_MAX)
            return complain("layers", EXIT_USAGE, "--prompt-tokens: at most %d lengths",
                            LAYERS_PROMPTS_MAX);
        layers->prompts[layers->prompt_count++] = (unsigned)tokens;
        word += length + more;
    }
    qsort(layers->prompts, layers->prompt_count, sizeof *layers->prompts, by_size);
    for (size_t i = 1; i < layers->prompt_count; i++)
        if (layers->prompts[i] == layers->prompts[i - 1])
            return complain("layers", EXIT_USAGE, "--prompt-tokens: %u stands there twice",
                            layers->prompts[i]);
    return -1;
}

static int settle_options(struct layers_command *command)
{
    struct layers_options *layers = &command->layers;
    int code = cut_models(command);
    if (code < 0)
        code = cut_prompts(command);
    if (code >= 0)
        return code;
    layers->auto_granularity = !strcmp(command->granularity, "auto");
    if (!strcmp(command->granularity, "layer"))
        layers->granularity = LAYERS_BY_LAYER;
    layers->gpu_layers = (int)command->gpu_layers;
    on_terminal = isatty(STDERR_FILENO) && wants_colour(STDERR_FILENO);
    if (!command->quiet)
        layers->progress = show_progress;
    return -1;
}

/* ---- the report ---- */

static int deliver(const struct layers_command *command, const struct layers_report *report)
{
    struct text json = {0}, text = {0};
    struct error why;
    int code = 0;
    layers_json(report, &json);
    if (command->output && write_file(command->output, &json, &why) != ERR_OK)
        code = complain("layers", EXIT_FAILED, "%s", why.text);
    if (!command->json)
        layers_text(report, wants_colour(STDOUT_FILENO), &text);
    int written = put_output("layers", command->json ? &json : &text);
    text_release(&json);
    text_release(&text);
    return written ? written : code;
}

static int write_report(const struct layers_command *command, struct session *session,
                        const struct layers_result *result)
{
    struct host_report host;
    struct layers_report report = {
        .result = result,
        .model_count = command->path_count,
        .options = &command->layers,
        .host = &host,
        .reads = sampler_reads(session->sampler),
    };
    for (size_t i = 0; i < sampler_count(session->sampler); i++) {
        struct source_state state;
        sampler_source(session->sampler, i, &state);
        report.read_s += state.read_s;
    }
    host_report_take(&session->findings, &host);
    proc_own_cost(&report.own);
    return deliver(command, &report);
}

static int require_energy(const struct layers_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        int code = require_measured("layers", &result->models[i].total);
        if (code)
            return code;
    }
    return EXIT_DONE;
}

static int measure(const struct layers_command *command)
{
    static struct session session; /* not closed: see cmd_run.c */
    const struct engine_library *library;
    struct layers_result result;
    struct error why = {0};
    if (engine_library_open(&library, &why) != ERR_OK)
        return complain("layers", EXIT_FAILED, "%s", why.text);
    proc_block_signals();
    int code = open_session("layers", &command->measure, &session);
    if (code)
        return code;
    enum err err = layers_measure(&session, command->paths, command->path_count, &command->layers,
                                  &result, &why);
    wipe();
    sampler_stop(session.sampler);
    if (err && err != ERR_INTERRUPTED)
        code = complain("layers", err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    /* What came before a failure cost time to measure, and is shown all the same. */
    if (result.count > 0) {
        int delivered = write_report(command, &session, &result);
        code = code ? code : delivered;
    }
    if (result.signal)
        code = 128 + result.signal;
    else if (!code && command->measure.require_energy)
        code = require_energy(&result);
    layers_result_release(&result);
    return code;
}

static int layers_main(int argc, char **argv)
{
    static const char *const GRANULARITIES[] = {"auto", "component", "layer", NULL};
    struct layers_command command = {
        .prompts = "32,128,512",
        .granularity = "auto",
        .layers = {.generate = 32, .batch = 1, .seed = 1, .idle_s = 2, .max_s = 60},
    };
    struct layers_options *p = &command.layers;
    const struct option_row rows[] = {
        {'m', "model", OPTION_LIST, &command.models, "FILE",
         "a GGUF file or a shipped model; with commas several", 0, 0, NULL},
        {0, "prompt-tokens", OPTION_TEXT, &command.prompts, "LIST",
         "lengths of the prompts (default: 32,128,512)", 0, 0, NULL},
        {0, "gen", OPTION_COUNT, &p->generate, "N",
         "tokens generated after each prompt (default: 32)", 0, 100000, NULL},
        {'r', "repeat", OPTION_COUNT, &p->repeats, "N",
         "rounds of windows (default: until the ± is small)", 1, 200, NULL},
        {0, "max-seconds", OPTION_NUMBER, &p->max_s, "S",
         "begin no more rounds of a model after S seconds (default: 60)", 0.1, 1e6, NULL},
        {0, "window", OPTION_NUMBER, &p->window_s, "S",
         "least length of a window (default: what the sensors need)", 0.01, 3600, NULL},
        {0, "batch", OPTION_COUNT, &p->batch, "N", "sequences computed together (default: 1)", 1,
         256, NULL},
        {'t', "threads", OPTION_COUNT, &p->threads, "N",
         "threads that compute (default: one a core)", 1, 512, NULL},
        {0, "context", OPTION_COUNT, &p->context, "N",
         "tokens of context (default: as many as are needed)", 1, 1e7, NULL},
        {0, "gpu-layers", OPTION_COUNT, &command.gpu_layers, "N",
         "layers to put on a GPU (default: 0)", 0, 100000, NULL},
        {0, "seed", OPTION_COUNT, &p->seed, "N", "for the tokens that are drawn (default: 1)", 0,
         4e9, NULL},
        {0, "idle", OPTION_NUMBER, &p->idle_s, "S",
         "watch the machine at rest for S seconds; 0: not at all (default: 2)", 0, 86400, NULL},
        {0, "granularity", OPTION_CHOICE, &command.granularity, "WORD",
         "auto, component or layer: how closely to look (default: auto)", 0, 0, GRANULARITIES},
        {0, "json", OPTION_FLAG, &command.json, NULL, "report as JSON", 0, 0, NULL},
        {'o', "output", OPTION_TEXT, &command.output, "FILE", "write the JSON there as well", 0, 0,
         NULL},
        {'q', "quiet", OPTION_FLAG, &command.quiet, NULL, "no progress", 0, 0, NULL},
        MEASURE_OPTION_ROWS(command.measure, "sample-rate"),
        {0},
    };
    int rest, code = parse_or_help(&command_layers, rows, argc, argv, false, &rest);
    if (code < 0)
        code = settle_options(&command);
    if (code < 0)
        code = find_models(&command);
    if (code < 0)
        code = measure(&command);
    for (size_t i = 0; i < OPTION_LIST_MAX; i++) {
        free(command.lists[i]);
        free(command.found[i]);
    }
    return code;
}
