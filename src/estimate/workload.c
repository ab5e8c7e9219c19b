/* Builds the graphs and partitions of the passes; only a few of the decode steps of a request (see the header).  A list
 * of workloads is parsed from the options, checked against the model, and expanded. */
#include "estimate/workload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "estimate/parallel.h"

enum {
    BATCH_MAX = 1000000,
    TOKENS_MAX = 10000000,
    IMAGE_MAX = 100000,
    NUMBERS_MAX = 4096,
    WORKLOADS_MAX = 4096,
    DEFAULT_PROMPT = 512,
    DEFAULT_OUTPUT = 128,
};

struct numbers {
    int64_t *items; /* NULL: not given */
    size_t count;
};

struct ranges {
    struct numbers batches, prompts, contexts;
};

/* ---- one workload ---- */

void workload_spec_run_on(struct workload_spec *spec, const struct hardware *hardware)
{
    if (spec->has_default_runtime)
        spec->runtime = runtime_default(spec->model, hardware);
    if (spec->has_default_runtime || spec->runtime != RUNTIME_IDEAL)
        spec->fusion = runtime_fusion(spec->runtime, hardware);
}

/* Combines the precisions of its passes, which differ in their shares of MACs. */
static void add_file_precision(struct estimate_workload *work, const struct workload_pass *pass)
{
    double share = work->file.share, before = 0, own = pass->times * pass->partition.total.macs;
    for (const struct workload_pass *p = work->passes; p < pass; p++)
        before += p->times * p->partition.total.macs;
    work->file = pass->graph.file;
    if (before > 0)
        work->file.share = (share * before + work->file.share * own) / (before + own);
}

static enum err add_pass(struct estimate_workload *work, const struct graph_options *setting,
                         double times, struct error *why)
{
    struct workload_pass *pass = &work->passes[work->count];
    *pass = (struct workload_pass){
        .setting = *setting, .times = times, .step = work->count, .steps = times};
    enum err err = model_graph(work->spec.model, &pass->setting, &pass->graph, why);
    if (err)
        return err;
    partition_make(&pass->graph, work->spec.fusion, &pass->partition);
    if (workload_is_bound(&work->spec))
        partition_make(&pass->graph, PARTITION_PLAIN, &pass->unfused);
    if (work->count)
        partition_continue(&pass->partition, &pass[-1].partition);
    if (work->count && pass->unfused.graph)
        partition_continue(&pass->unfused, &pass[-1].unfused);
    work->prefill_count += work->count == work->prefill_count && setting->phase != GRAPH_DECODE;
    work->count++;
    add_file_precision(work, pass);
    work->notes = pass->graph.notes;
    work->has_stored = work->has_stored || pass->partition.total.weights.stored_weights > 0;
    return ERR_OK;
}

/* The weight of step `at` of those built: itself, and half of each step between it and a neighbor, which is the sum of
 * linear interpolation. */
static double step_times(const int64_t *built, size_t built_count, size_t at)
{
    double times = 1;
    if (at > 0)
        times += (double)(built[at] - built[at - 1] - 1) / 2;
    if (at + 1 < built_count)
        times += (double)(built[at + 1] - built[at] - 1) / 2;
    return times;
}

/* Chooses which of `count` steps are built: the first, the last, and some between. */
static size_t choose_steps(int64_t count, int64_t *built)
{
    size_t max = count < WORKLOAD_STEPS_MAX ? (size_t)count : WORKLOAD_STEPS_MAX;
    for (size_t i = 0; i < max; i++)
        built[i] = max > 1 ? (count - 1) * (int64_t)i / (int64_t)(max - 1) : 0;
    return max;
}

/* ---- micro-batches ---- */

/* Prompt tokens computed at a time: max_num_batched_tokens of vLLM's server on large devices, n_ubatch of llama.cpp. */
enum { CHUNK_TOKENS = 8192, CHUNK_LLAMA_CPP = 512, CHUNKS_MAX = PIPELINE_JOBS_MAX };

/* Sequences are divided into as many micro-batches as there are stages, so that none has to wait; llama.cpp decodes all
 * of them together. */
static int64_t micro_batches(const struct workload_spec *spec, enum graph_phase phase)
{
    bool is_whole = spec->runtime == RUNTIME_LLAMA_CPP && phase == GRAPH_DECODE;
    int64_t wanted = spec->micro_batches ? spec->micro_batches : is_whole ? 1 : spec->stages;
    return wanted < spec->setting.batch ? wanted : spec->setting.batch;
}

/* One step of all sequences: if they do not divide evenly, some micro-batches have one more. */
static enum err add_micro_batches(struct estimate_workload *work,
                                  const struct graph_options *setting, double steps,
                                  struct error *why)
{
    int64_t count = micro_batches(&work->spec, setting->phase);
    int64_t each = setting->batch / count, more = setting->batch % count;
    size_t step = work->count;
    enum err err = ERR_OK;
    for (int larger = more > 0; !err && larger >= 0; larger--) {
        struct graph_options one = *setting;
        double number = (double)(larger ? more : count - more);
        one.batch = each + larger;
        err = add_pass(work, &one, steps * number, why);
        if (!err) {
            work->passes[work->count - 1].step = step;
            work->passes[work->count - 1].steps = steps;
        }
    }
    return err;
}

/* A single prompt passes the stages in chunks.  Their cost is nearly linear in the preceding tokens, so only some are
 * built, as for decode steps. */
static enum err add_chunks(struct estimate_workload *work, const struct graph_options *setting,
                           struct error *why)
{
    const struct workload_spec *spec = &work->spec;
    int64_t size = spec->runtime == RUNTIME_LLAMA_CPP ? CHUNK_LLAMA_CPP : CHUNK_TOKENS;
    int64_t tokens = setting->tokens, built[WORKLOAD_STEPS_MAX];
    int64_t count = spec->micro_batches ? spec->micro_batches : (tokens + size - 1) / size;
    count = count > tokens ? tokens : count > CHUNKS_MAX ? CHUNKS_MAX : count;
    size_t chosen = choose_steps(count, built), step = work->count;
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < chosen; i++) {
        struct graph_options one = *setting;
        one.cached = tokens * built[i] / count;
        one.tokens = tokens * (built[i] + 1) / count - one.cached;
        err = add_pass(work, &one, step_times(built, chosen, i), why);
        if (!err) {
            work->passes[work->count - 1].step = step;
            work->passes[work->count - 1].steps = 1;
            work->passes[work->count - 1].chunk = built[i];
        }
    }
    return err;
}

/* One pass of all sequences, or its micro-batches. */
static enum err add_step(struct estimate_workload *work, const struct graph_options *setting,
                         double steps, struct error *why)
{
    if (work->spec.stages < 2)
        return add_pass(work, setting, steps, why);
    if (setting->phase == GRAPH_DECODE || setting->batch > 1)
        return add_micro_batches(work, setting, steps, why);
    return add_chunks(work, setting, why);
}

/* Resolves the options with the model's defaults; fails where the model cannot be built with them. */
static enum err resolve(const struct model *model, struct graph_options *setting, struct error *why)
{
    struct graph graph;
    enum err err = model_graph(model, setting, &graph, why);
    if (!err)
        graph_release(&graph);
    return err;
}

/* Before the options are divided. */
static enum err resolve_setting(struct estimate_workload *work, struct error *why)
{
    return work->spec.stages < 2 ? ERR_OK : resolve(work->spec.model, &work->spec.setting, why);
}

/* ---- passes ---- */

static enum err make_pass(struct estimate_workload *work, struct error *why)
{
    enum err err = resolve_setting(work, why);
    struct graph_options asked = work->spec.setting;
    if (!err)
        err = add_step(work, &asked, 1, why);
    if (err)
        return err;
    const struct workload_pass *pass = &work->passes[0];
    if (work->spec.stages < 2)
        work->spec.setting = pass->setting;
    work->batch = work->units =
        work->spec.stages < 2 ? pass->graph.batch : (double)work->spec.setting.batch;
    work->unit = "sample";
    if (work->spec.model->has_phases) {
        bool decodes = pass->setting.phase == GRAPH_DECODE;
        double tokens = decodes ? 1 : (double)asked.tokens;
        work->units = work->spec.stages < 2 ? pass->graph.tokens : work->batch * tokens;
        work->unit = decodes ? "output token" : "prompt token";
    }
    return ERR_OK;
}

static enum err make_request(struct estimate_workload *work, struct error *why)
{
    int64_t built[WORKLOAD_STEPS_MAX];
    work->spec.setting.phase = GRAPH_PREFILL;
    enum err err = resolve_setting(work, why);
    struct graph_options setting = work->spec.setting;
    if (!err)
        err = add_step(work, &setting, 1, why);
    if (err)
        return err;
    if (work->spec.stages < 2)
        work->spec.setting = work->passes[0].setting;
    work->batch =
        work->spec.stages < 2 ? work->passes[0].graph.batch : (double)work->spec.setting.batch;
    size_t steps = choose_steps(work->spec.output_tokens - 1, built);
    for (size_t i = 0; !err && i < steps; i++) {
        setting = work->spec.setting;
        setting.phase = GRAPH_DECODE;
        setting.context = setting.tokens + built[i] + 1; /* including its own token */
        err = add_step(work, &setting, step_times(built, steps, i), why);
    }
    if (err && setting.context < setting.tokens + built[steps - 1] + 1) {
        /* If several contexts are too long for the model, report the longest. */
        setting.context = setting.tokens + built[steps - 1] + 1;
        enum err longest = add_pass(work, &setting, 1, why);
        err = longest ? longest : err;
    }
    work->units = work->batch * (double)work->spec.output_tokens;
    work->unit = "output token";
    return err;
}

enum err workload_make(const struct workload_spec *spec, struct estimate_workload *out,
                       struct error *why)
{
    *out = (struct estimate_workload){.spec = *spec};
    enum err err = spec->is_request ? make_request(out, why) : make_pass(out, why);
    if (err)
        workload_release(out);
    return err;
}

void workload_drop_graphs(struct estimate_workload *work)
{
    for (size_t i = 0; i < work->count; i++) {
        partition_release(&work->passes[i].partition);
        partition_release(&work->passes[i].unfused);
        graph_release(&work->passes[i].graph);
    }
}

void workload_release(struct estimate_workload *work)
{
    workload_drop_graphs(work);
    *work = (struct estimate_workload){0};
}

/* ---- demands ---- */

struct workload_demand workload_demand(const struct workload_spec *spec)
{
    const struct graph_options *setting = &spec->setting;
    if (spec->is_request)
        return (struct workload_demand){setting->tokens, setting->tokens + spec->output_tokens};
    if (spec->model->has_phases && setting->phase == GRAPH_DECODE)
        return (struct workload_demand){0, setting->context};
    return (struct workload_demand){setting->tokens, 0};
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int workload_demand_compare(const struct estimate_workload *a, const struct estimate_workload *b)
{
    struct workload_demand first = workload_demand(&a->spec), second = workload_demand(&b->spec);
    int by_prompt = compare(first.prompt, second.prompt);
    return by_prompt ? by_prompt : compare(first.context, second.context);
}

/* ---- lists of numbers ---- */

struct list {
    const char *option, *words, *example;
    int64_t max;
};

/* One item: "8", "1..64", "1..64x2" into first, last and factor; modified in place. */
static bool parse_range(char *item, int64_t max, int64_t range[3])
{
    char *high = strstr(item, "..");
    char *times = high ? strchr(high, 'x') : NULL;
    const char *const parts[3] = {item, high ? high + 2 : item, times ? times + 1 : "1"};
    if (high)
        *high = '\0';
    if (times)
        *times = '\0';
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        if (parse_u64(parts[i], &value) != ERR_OK || value < 1 || value > (uint64_t)max)
            return false;
        range[i] = (int64_t)value;
    }
    return range[0] <= range[1] && (!times || range[2] > 1);
}

static enum err parse_list(const struct list *list, struct numbers *out, struct error *why)
{
    if (!list->words)
        return ERR_OK;
    out->items = xcalloc(NUMBERS_MAX, sizeof *out->items);
    for (const char *rest = list->words; rest;) {
        char item[64];
        int64_t range[3];
        if (!str_next_item(&rest, item, sizeof item) || !parse_range(item, list->max, range))
            return err_set(why, ERR_USAGE,
                           "--%s takes numbers from 1 to %" PRId64 ", as in %s; not '%.80s'",
                           list->option, list->max, list->example, list->words);
        for (int64_t n = range[0]; n <= range[1]; n = range[2] > 1 ? n * range[2] : n + 1) {
            if (out->count == NUMBERS_MAX)
                return err_set(why, ERR_USAGE, "--%s: more than %d numbers", list->option,
                               NUMBERS_MAX);
            out->items[out->count++] = n;
        }
    }
    return ERR_OK;
}

static void ranges_release(struct ranges *ranges)
{
    free(ranges->batches.items);
    free(ranges->prompts.items);
    free(ranges->contexts.items);
    *ranges = (struct ranges){0};
}

static enum err parse_ranges(const struct workload_options *options, struct ranges *out,
                             struct error *why)
{
    static const char BATCHES[] = "1,8,32, a range 1..64 or a doubling range 1..64x2";
    static const char TOKENS[] = "512,2048, a range 1..64 or a doubling range 512..8192x2";
    const char *batches = options->batch ? options->batch : options->sweep ? "1..64x2" : NULL;
    const struct list lists[] = {
        {"batch", batches, BATCHES, BATCH_MAX},
        {"prompt-tokens", options->prompt_tokens, TOKENS, TOKENS_MAX},
        {"context", options->context, TOKENS, TOKENS_MAX},
    };
    *out = (struct ranges){0};
    enum err err = parse_list(&lists[0], &out->batches, why);
    if (!err)
        err = parse_list(&lists[1], &out->prompts, why);
    if (!err)
        err = parse_list(&lists[2], &out->contexts, why);
    if (err)
        ranges_release(out);
    return err;
}

/* ---- common settings of a list ---- */

/* The model's own ranges; 0 for those it does not have.  False for a model without defaults. */
static bool defaults_of(const struct workload_spec *work, struct graph_options *out)
{
    *out = (struct graph_options){.batch = work->setting.batch, .dims = work->setting.dims};
    return resolve(work->model, out, NULL) == ERR_OK;
}

/* Reject options without effect. */
static enum err check_used(const struct workload_options *options, const struct model *model,
                           const struct graph_options *defaults, struct error *why)
{
    bool is_onnx = str_equal(model->reader->name, "onnx"); /* validates its images itself */
    if (options->dims.count && !is_onnx)
        return err_set(why, ERR_USAGE, "%.100s takes no --dim: only ONNX files do", model->name);
    if (defaults && options->image && !defaults->image && !is_onnx)
        return err_set(why, ERR_USAGE, "%.100s takes no --image", model->name);
    if (defaults && options->prompt_tokens && !defaults->tokens)
        return err_set(why, ERR_USAGE, "%.100s takes no --prompt-tokens", model->name);
    if (!model->has_phases && (options->phase || options->context || options->output_tokens))
        return err_set(why, ERR_USAGE,
                       "%.100s has no phases: --phase, --context and --output-tokens are for "
                       "autoregressive decoders",
                       model->name);
    return ERR_OK;
}

/* Whether the model supports a context of that length. */
static bool supports_context(const struct workload_spec *work, int64_t context)
{
    struct graph_options setting = work->setting;
    setting.phase = GRAPH_DECODE;
    setting.context = context;
    return resolve(work->model, &setting, NULL) == ERR_OK;
}

/* Default lengths of a request: the model's default prompt, halved until an answer fits after it. */
static void default_lengths(const struct workload_options *options, int64_t usual,
                            struct workload_spec *work)
{
    int64_t prompt = usual > 0 && usual < DEFAULT_PROMPT ? usual : DEFAULT_PROMPT;
    int64_t output = DEFAULT_OUTPUT;
    if (!options->prompt_tokens && !options->output_tokens && !options->context)
        for (; prompt > 1 && !supports_context(work, prompt + output); prompt /= 2)
            output = prompt / 2 < DEFAULT_OUTPUT ? prompt / 2 : DEFAULT_OUTPUT;
    work->setting.tokens = prompt;
    work->output_tokens = options->output_tokens ? options->output_tokens : output > 0 ? output : 1;
}

static enum err begin_request(const struct workload_options *options, int64_t usual,
                              struct workload_spec *work, struct error *why)
{
    work->is_request = true;
    default_lengths(options, usual, work);
    if (options->context && options->output_tokens)
        return err_set(
            why, ERR_USAGE,
            "--context and --output-tokens both set the length of a request: give one of "
            "them, or --phase decode");
    return ERR_OK;
}

static enum err begin_phase(const struct workload_options *options, struct workload_spec *work,
                            struct error *why)
{
    if (options->output_tokens)
        return err_set(why, ERR_USAGE, "--output-tokens applies to a request: omit --phase");
    bool decodes = str_equal(options->phase, "decode");
    if (!decodes && options->context)
        return err_set(why, ERR_USAGE,
                       "--context applies to --phase decode or a request: a prefill has "
                       "--prompt-tokens");
    work->setting.phase = decodes ? GRAPH_DECODE : GRAPH_PREFILL;
    return ERR_OK;
}

/* "224", or height and width: "480x640". */
static enum err parse_image(const char *words, struct graph_options *out, struct error *why)
{
    char height[16];
    uint64_t sizes[2];
    if (!words)
        return ERR_OK;
    const char *x = strchr(words, 'x');
    const char *width = x ? x + 1 : words;
    if (!chars_format(height, "%.*s", x ? (int)(x - words) : 12, words) ||
        parse_u64(height, &sizes[0]) != ERR_OK || parse_u64(width, &sizes[1]) != ERR_OK ||
        sizes[0] < 1 || sizes[1] < 1 || sizes[0] > IMAGE_MAX || sizes[1] > IMAGE_MAX)
        return err_set(why, ERR_USAGE,
                       "--image takes a side or HEIGHTxWIDTH in pixels, 1 to %d, as in 224 or "
                       "480x640; not '%.80s'",
                       IMAGE_MAX, words);
    out->image = (int64_t)sizes[0];
    out->image_width = sizes[1] == sizes[0] ? 0 : (int64_t)sizes[1];
    return ERR_OK;
}

/* Settings common to all workloads. */
static enum err begin_spec(const struct workload_options *options, const struct model *model,
                           int64_t batch, struct workload_spec *work, struct error *why)
{
    struct graph_options defaults;
    struct error unknown = {0};
    enum runtime_id runtime = RUNTIME_IDEAL;
    if (options->runtime && options->no_fusion)
        return err_set(why, ERR_USAGE,
                       "--no-fusion contradicts --runtime, which determines what is fused");
    if (options->runtime && runtime_find(options->runtime, &runtime, &unknown))
        return err_set(why, ERR_USAGE, "--runtime: %s", unknown.text);
    *work = (struct workload_spec){
        .model = model,
        .setting = {.batch = batch, .dims = options->dims.count ? &options->dims : NULL},
        .fusion = options->no_fusion ? PARTITION_PLAIN : runtime_at(runtime)->fusion,
        .runtime = runtime,
        .has_default_runtime = !options->runtime && !options->no_fusion,
        .stages = (int)options->stages,
        .micro_batches = (int)options->micro_batches,
    };
    if (options->stages > 1 && !model->has_phases)
        return err_set(why, ERR_USAGE,
                       "--pipeline-parallel divides the layers of a decoder: %.100s is not one",
                       model->name);
    if (options->micro_batches && options->stages < 2)
        return err_set(why, ERR_USAGE, "--micro-batches needs --pipeline-parallel above 1");
    bool has_defaults = defaults_of(work, &defaults);
    bool has_text = model->has_phases || (has_defaults && defaults.tokens);
    if (runtime_is_of_text(runtime) && !has_text)
        return err_set(why, ERR_USAGE, "--runtime %s runs language models: %.100s is not one",
                       runtime_at(runtime)->name, model->name);
    enum err err = parse_image(options->image, &work->setting, why);
    if (!err)
        err = check_used(options, model, has_defaults ? &defaults : NULL, why);
    if (err || !model->has_phases)
        return err;
    if (options->phase)
        return begin_phase(options, work, why);
    return begin_request(options, has_defaults ? defaults.tokens : 0, work, why);
}

/* 0: not given. */
static enum err set_lengths(int64_t prompt, int64_t context, struct workload_spec *work,
                            struct error *why)
{
    struct graph_options *setting = &work->setting;
    if (prompt)
        setting->tokens = prompt;
    if (!work->is_request) {
        bool decodes = setting->phase == GRAPH_DECODE;
        setting->context = decodes && !context && prompt ? prompt + 1 : context;
        return ERR_OK;
    }
    if (context && context <= setting->tokens)
        return err_set(why, ERR_USAGE,
                       "--context %" PRId64 " is not above the prompt of %" PRId64
                       " tokens: give a longer one, fewer --prompt-tokens, or --phase decode",
                       context, setting->tokens);
    if (context)
        work->output_tokens = context - setting->tokens;
    if (setting->tokens + work->output_tokens > TOKENS_MAX)
        return err_set(why, ERR_USAGE,
                       "prompt and answer of %" PRId64 " tokens together: at most %d",
                       setting->tokens + work->output_tokens, TOKENS_MAX);
    return ERR_OK;
}

/* ---- the list ---- */

static size_t length_of(const struct numbers *numbers)
{
    return numbers->count ? numbers->count : 1;
}

static int64_t number_at(const struct numbers *numbers, size_t index)
{
    return numbers->count ? numbers->items[index] : 0;
}

/* The cost can be extrapolated beyond the trained context; the quality of answers cannot. */
static void warn_of_untrained(const struct workload_options *options, const struct model *model,
                              const struct workload_list *list)
{
    int64_t longest = 0;
    if (!options->prompt_tokens && !options->output_tokens && !options->context)
        return; /* no warning for default lengths */
    for (size_t i = 0; i < list->count; i++) {
        struct workload_demand demand = workload_demand(&list->items[i]);
        int64_t tokens = demand.context > demand.prompt ? demand.context : demand.prompt;
        longest = tokens > longest ? tokens : longest;
    }
    if (model->context_length && longest > model->context_length)
        log_warn("%" PRId64 " tokens exceed the %" PRId64 " that %.100s was trained for: "
                 "estimating anyway",
                 longest, model->context_length, model->name);
}

/* Whether the graph has this batch.  Only an ONNX file can fix it. */
static bool follows_batch(const struct workload_spec *work, int64_t batch)
{
    struct graph_options setting = work->setting;
    setting.batch = batch;
    if (!str_equal(work->model->reader->name, "onnx"))
        return true;
    return resolve(work->model, &setting, NULL) == ERR_OK && setting.batch == batch;
}

static enum err check_batches(const struct workload_spec *common, const struct numbers *batches,
                              struct error *why)
{
    int64_t last = batches->count > 1 ? batches->items[batches->count - 1] : 0;
    if (!last || follows_batch(common, last))
        return ERR_OK;
    return err_set(why, ERR_USAGE,
                   "--batch %" PRId64 " has no effect: the file or --dim fixes the batch", last);
}

static enum err fill_list(const struct workload_spec *common, const struct ranges *ranges,
                          struct workload_list *out, struct error *why)
{
    for (size_t p = 0; p < length_of(&ranges->prompts); p++)
        for (size_t c = 0; c < length_of(&ranges->contexts); c++) {
            struct workload_spec work = *common;
            enum err err = set_lengths(number_at(&ranges->prompts, p),
                                       number_at(&ranges->contexts, c), &work, why);
            if (err)
                return err;
            for (size_t b = 0; b < length_of(&ranges->batches); b++) {
                work.setting.batch = number_at(&ranges->batches, b);
                out->items[out->count++] = work;
            }
        }
    return ERR_OK;
}

/* --sweep adds default batches; they are removed if the file fixes the batch. */
static void drop_batches(const struct workload_options *options, const struct model *model,
                         struct ranges *ranges)
{
    const struct numbers *batches = &ranges->batches;
    struct workload_spec work = {
        .model = model,
        .setting = {.tokens = number_at(&ranges->prompts, 0),
                    .dims = options->dims.count ? &options->dims : NULL},
    };
    if (parse_image(options->image, &work.setting, NULL) != ERR_OK)
        return; /* reported later */
    if (!options->sweep || options->batch || !batches->count ||
        follows_batch(&work, batches->items[batches->count - 1]))
        return;
    log_warn("%.100s: the file or --dim fixes the batch, so --sweep covers precisions only",
             model->name);
    ranges->batches.count = 0;
}

static enum err make_list(const struct workload_options *options, struct ranges *ranges,
                          const struct model *model, struct workload_list *out, struct error *why)
{
    struct workload_spec common;
    drop_batches(options, model, ranges);
    size_t count =
        length_of(&ranges->batches) * length_of(&ranges->prompts) * length_of(&ranges->contexts);
    if (count > WORKLOADS_MAX)
        return err_set(why, ERR_USAGE,
                       "%zu combinations of --batch, --prompt-tokens and --context: at most %d",
                       count, WORKLOADS_MAX);
    enum err err = begin_spec(options, model, number_at(&ranges->batches, 0), &common, why);
    if (!err)
        err = check_batches(&common, &ranges->batches, why);
    if (err)
        return err;
    out->items = xcalloc(count, sizeof *out->items);
    return fill_list(&common, ranges, out, why);
}

enum err workload_list_make(const struct workload_options *options, const struct model *model,
                            struct workload_list *out, struct error *why)
{
    struct ranges ranges;
    *out = (struct workload_list){0};
    enum err err = parse_ranges(options, &ranges, why);
    if (err)
        return err;
    err = make_list(options, &ranges, model, out, why);
    ranges_release(&ranges);
    if (err)
        workload_list_release(out);
    else
        warn_of_untrained(options, model, out);
    return err;
}

void workload_list_release(struct workload_list *list)
{
    free(list->items);
    *list = (struct workload_list){0};
}

enum err workload_list_check(const struct workload_list *list,
                             const struct estimate_workload *first, struct error *why)
{
    const struct graph_options *asked = &list->items[0].setting, *taken = &first->spec.setting;
    if (asked->batch && first->batch != (double)asked->batch)
        return err_set(why, ERR_USAGE,
                       "--batch %" PRId64 " has no effect: the file or --dim fixes it at %.0f",
                       asked->batch, first->batch);
    if (asked->tokens && taken->tokens != asked->tokens)
        return err_set(why, ERR_USAGE,
                       "--prompt-tokens %" PRId64 " has no effect: the file or --dim fixes it at "
                       "%" PRId64,
                       asked->tokens, taken->tokens);
    return ERR_OK;
}
