#include "cli/estimate_work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"

enum {
    BATCH_MOST = 1000000,
    TOKENS_MOST = 10000000,
    NUMBERS_MOST = 4096,
    WORKS_MOST = 4096,
    PROMPT = 512,
    OUTPUT = 128
};

/* ---- lists of numbers ---- */

struct list {
    const char *option, *words, *example;
    int64_t most;
};

static enum err bad_list(const struct list *list, struct error *why)
{
    return err_set(why, ERR_USAGE, "--%s wants numbers from 1 to %" PRId64 " like %s; not '%.80s'",
                   list->option, list->most, list->example, list->words);
}

static bool parse_number(const char *from, size_t length, int64_t most, int64_t *out)
{
    char number[24];
    uint64_t value;
    if (length == 0 || length >= sizeof number)
        return false;
    str_format(number, sizeof number, "%.*s", (int)length, from);
    if (parse_u64(number, &value) != ERR_OK || value < 1 || value > (uint64_t)most)
        return false;
    *out = (int64_t)value;
    return true;
}

/* One piece between commas: "8", "1..64", "1..64x2". */
static bool parse_range(const char *word, size_t length, int64_t most, int64_t *first,
                        int64_t *last, int64_t *factor)
{
    const char *dots = strstr(word, "..");
    *factor = 1;
    if (!dots || dots >= word + length) {
        bool good = parse_number(word, length, most, first);
        *last = *first;
        return good;
    }
    const char *end = word + length, *high = dots + 2;
    const char *times = memchr(high, 'x', (size_t)(end - high));
    if (times && (!parse_number(times + 1, (size_t)(end - times - 1), most, factor) || *factor < 2))
        return false;
    return parse_number(word, (size_t)(dots - word), most, first) &&
           parse_number(high, (size_t)((times ? times : end) - high), most, last) &&
           *first <= *last;
}

static enum err parse_list(const struct list *list, struct estimate_numbers *out, struct error *why)
{
    if (!list->words)
        return ERR_OK;
    out->items = calloc(NUMBERS_MOST, sizeof *out->items);
    if (!out->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (const char *word = list->words; word;) {
        size_t length = strcspn(word, ",");
        int64_t first = 0, last = 0, factor;
        if (!parse_range(word, length, list->most, &first, &last, &factor))
            return bad_list(list, why);
        for (int64_t n = first; n <= last; n = factor > 1 ? n * factor : n + 1) {
            if (out->count == NUMBERS_MOST)
                return err_set(why, ERR_USAGE, "--%s: at most %d of them", list->option,
                               NUMBERS_MOST);
            out->items[out->count++] = n;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    return ERR_OK;
}

enum err estimate_sizes_ask(const struct estimate_options *options, struct estimate_sizes *out,
                            struct error *why)
{
    static const char BATCHES[] = "1,8,32, a range 1..64 or one that doubles, 1..64x2";
    static const char TOKENS[] = "512,2048, a range 1..64 or one that doubles, 512..8192x2";
    const char *batches = options->batch ? options->batch : options->sweep ? "1..64x2" : NULL;
    *out = (struct estimate_sizes){0};
    enum err err =
        parse_list(&(struct list){"batch", batches, BATCHES, BATCH_MOST}, &out->batches, why);
    if (!err)
        err =
            parse_list(&(struct list){"prompt-tokens", options->prompt_tokens, TOKENS, TOKENS_MOST},
                       &out->prompts, why);
    if (!err)
        err = parse_list(&(struct list){"context", options->context, TOKENS, TOKENS_MOST},
                         &out->contexts, why);
    if (err)
        estimate_sizes_release(out);
    return err;
}

void estimate_sizes_release(struct estimate_sizes *sizes)
{
    free(sizes->batches.items);
    free(sizes->prompts.items);
    free(sizes->contexts.items);
    *sizes = (struct estimate_sizes){0};
}

/* ---- one work ---- */

/* What a model takes when nobody says: 0 of what it has none of.  False for one that must be told. */
static bool defaults_of(const struct workload_spec *work, struct graph_options *out)
{
    struct graph graph;
    *out = (struct graph_options){.batch = work->setting.batch, .dims = work->setting.dims};
    if (model_graph(work->model, out, &graph, NULL))
        return false;
    graph_release(&graph);
    return true;
}

/* An option that changes nothing would be read as one that did. */
static enum err check_used(const struct estimate_options *options, const struct model *model,
                           const struct graph_options *defaults, struct error *why)
{
    if (options->dims.count && strcmp(model->reader->name, "onnx") != 0)
        return err_set(why, ERR_USAGE, "%.100s takes no --dim: that is for ONNX files",
                       model->name);
    if (defaults && options->image && !defaults->image)
        return err_set(why, ERR_USAGE, "%.100s takes no --image", model->name);
    if (defaults && options->prompt_tokens && !defaults->tokens)
        return err_set(why, ERR_USAGE, "%.100s takes no --prompt-tokens", model->name);
    if (!model->has_phases && (options->phase || options->context || options->output_tokens))
        return err_set(why, ERR_USAGE,
                       "%.100s has no phases: --phase, --context and --output-tokens are for "
                       "models that write token after token",
                       model->name);
    return ERR_OK;
}

/* Has the model room for a cache of so many tokens? */
static bool has_room(const struct workload_spec *work, int64_t context)
{
    struct graph graph;
    struct graph_options setting = work->setting;
    setting.phase = GRAPH_DECODE;
    setting.context = context;
    if (model_graph(work->model, &setting, &graph, NULL))
        return false;
    graph_release(&graph);
    return true;
}

/* How long a request is that nobody gave a length: the model's usual prompt, and half of that, and so on,
 * where no answer would fit behind it. */
static void usual_lengths(const struct estimate_options *options, int64_t usual,
                          struct workload_spec *work)
{
    int64_t prompt = usual > 0 && usual < PROMPT ? usual : PROMPT, output = OUTPUT;
    if (!options->prompt_tokens && !options->output_tokens && !options->context)
        for (; prompt > 1 && !has_room(work, prompt + output); prompt /= 2)
            output = prompt / 2 < OUTPUT ? prompt / 2 : OUTPUT;
    work->setting.tokens = prompt;
    work->output_tokens = options->output_tokens ? options->output_tokens : output > 0 ? output : 1;
}

/* A request is what a decoder is for; a phase alone when it is asked for. */
static enum err begin_request(const struct estimate_options *options, int64_t usual,
                              struct workload_spec *work, struct error *why)
{
    work->is_request = true;
    usual_lengths(options, usual, work);
    if (options->context && options->output_tokens)
        return err_set(why, ERR_USAGE,
                       "--context says how long a request grows, and so does --output-tokens: "
                       "give one of them, or --phase decode");
    return ERR_OK;
}

static enum err begin_phase(const struct estimate_options *options, struct workload_spec *work,
                            struct error *why)
{
    if (options->output_tokens)
        return err_set(why, ERR_USAGE, "--output-tokens is of a request: leave out --phase");
    bool decodes = strcmp(options->phase, "decode") == 0;
    if (!decodes && options->context)
        return err_set(why, ERR_USAGE,
                       "--context is of --phase decode or of a request: a prefill "
                       "has --prompt-tokens");
    work->setting.phase = decodes ? GRAPH_DECODE : GRAPH_PREFILL;
    return ERR_OK;
}

/* What all works have in common. */
static enum err begin_work(const struct estimate_options *options, const struct model *model,
                           int64_t batch, struct workload_spec *work, struct error *why)
{
    struct graph_options defaults;
    *work = (struct workload_spec){
        .model = model,
        .setting = {.batch = batch,
                    .image = options->image,
                    .dims = options->dims.count ? &options->dims : NULL},
        .fusion = options->no_fusion ? PARTITION_PLAIN : PARTITION_FUSED,
    };
    bool is_told = defaults_of(work, &defaults);
    enum err err = check_used(options, model, is_told ? &defaults : NULL, why);
    if (err || !model->has_phases)
        return err;
    if (options->phase)
        return begin_phase(options, work, why);
    return begin_request(options, is_told ? defaults.tokens : 0, work, why);
}

/* A prompt and a context of 0 were not given. */
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
                       "--context %" PRId64 " is not beyond a prompt of %" PRId64
                       " tokens: give a longer one, fewer --prompt-tokens, or --phase decode",
                       context, setting->tokens);
    if (context)
        work->output_tokens = context - setting->tokens;
    if (setting->tokens + work->output_tokens > TOKENS_MOST)
        return err_set(why, ERR_USAGE,
                       "prompt and answer are %" PRId64 " tokens together: at most %d",
                       setting->tokens + work->output_tokens, TOKENS_MOST);
    return ERR_OK;
}

/* ---- all of them ---- */

static size_t length_of(const struct estimate_numbers *numbers)
{
    return numbers->count ? numbers->count : 1;
}

static int64_t number_at(const struct estimate_numbers *numbers, size_t index)
{
    return numbers->count ? numbers->items[index] : 0;
}

/* The formulas go on beyond what a model was trained for; its answers may not. */
static void warn_of_untrained(const struct estimate_options *options, const struct model *model,
                              const struct estimate_works *works)
{
    int64_t longest = 0;
    if (!options->prompt_tokens && !options->output_tokens && !options->context)
        return; /* lengths that nobody asked for are nobody's mistake */
    for (size_t i = 0; i < works->count; i++) {
        struct workload_demand demand = workload_demand(&works->items[i]);
        int64_t tokens = demand.context > demand.prompt ? demand.context : demand.prompt;
        longest = tokens > longest ? tokens : longest;
    }
    if (model->context_length && longest > model->context_length)
        log_warn("%" PRId64 " tokens are more than the %" PRId64 " that %.100s was trained for: "
                 "what they cost is estimated all the same",
                 longest, model->context_length, model->name);
}

/* Does another batch than the file or --dim has make another work?  Only an ONNX file can have one. */
static bool follows_batch(const struct workload_spec *work, int64_t batch)
{
    struct graph graph;
    struct graph_options setting = work->setting;
    setting.batch = batch;
    if (strcmp(work->model->reader->name, "onnx") != 0)
        return true;
    if (model_graph(work->model, &setting, &graph, NULL))
        return false;
    graph_release(&graph);
    return setting.batch == batch;
}

static enum err check_batches(const struct workload_spec *common,
                              const struct estimate_numbers *batches, struct error *why)
{
    int64_t last = batches->count > 1 ? batches->items[batches->count - 1] : 0;
    if (!last || follows_batch(common, last))
        return ERR_OK;
    return err_set(why, ERR_USAGE,
                   "a batch of %" PRId64 " changes nothing: the file or --dim has one already",
                   last);
}

static enum err fill_works(const struct workload_spec *common, const struct estimate_sizes *sizes,
                           struct estimate_works *out, struct error *why)
{
    for (size_t p = 0; p < length_of(&sizes->prompts); p++)
        for (size_t c = 0; c < length_of(&sizes->contexts); c++) {
            struct workload_spec work = *common;
            enum err err = set_lengths(number_at(&sizes->prompts, p),
                                       number_at(&sizes->contexts, c), &work, why);
            if (err)
                return err;
            for (size_t b = 0; b < length_of(&sizes->batches); b++) {
                work.setting.batch = number_at(&sizes->batches, b);
                out->items[out->count++] = work;
            }
        }
    return ERR_OK;
}

/* --sweep brings batches of its own; where there can be none, those that nobody asked for go again. */
static void drop_batches(const struct estimate_options *options, const struct model *model,
                         struct estimate_sizes *sizes)
{
    const struct estimate_numbers *batches = &sizes->batches;
    struct workload_spec work = {
        .model = model,
        .setting = {.image = options->image,
                    .tokens = number_at(&sizes->prompts, 0),
                    .dims = options->dims.count ? &options->dims : NULL},
    };
    if (!options->sweep || options->batch || !batches->count ||
        follows_batch(&work, batches->items[batches->count - 1]))
        return;
    log_warn("%.100s: the file or --dim has the batch, so that --sweep is of formats alone",
             model->name);
    sizes->batches.count = 0;
}

enum err estimate_works_make(const struct estimate_options *options, struct estimate_sizes *sizes,
                             const struct model *model, struct estimate_works *out,
                             struct error *why)
{
    struct workload_spec common;
    drop_batches(options, model, sizes);
    size_t count =
        length_of(&sizes->batches) * length_of(&sizes->prompts) * length_of(&sizes->contexts);
    *out = (struct estimate_works){0};
    if (count > WORKS_MOST)
        return err_set(why, ERR_USAGE,
                       "%zu combinations of --batch, --prompt-tokens and --context: at most %d",
                       count, WORKS_MOST);
    enum err err = begin_work(options, model, number_at(&sizes->batches, 0), &common, why);
    if (!err)
        err = check_batches(&common, &sizes->batches, why);
    if (err)
        return err;
    out->items = calloc(count, sizeof *out->items);
    if (!out->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    err = fill_works(&common, sizes, out, why);
    if (err)
        estimate_works_release(out);
    else
        warn_of_untrained(options, model, out);
    return err;
}

void estimate_works_release(struct estimate_works *works)
{
    free(works->items);
    *works = (struct estimate_works){0};
}
