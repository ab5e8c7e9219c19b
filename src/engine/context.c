/* Contexts: memory for the KV cache, batches of tokens, abortable decoding, and sampling.
 *
 * All sequences of a context are decoded in lockstep with the same tokens: this reproduces a batch of requests for
 * measurements.  Before a context is created, its memory is compared with what is available, because the OOM killer
 * would later end this process, or another one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/llama_api.h"
#include "port/fs.h"
#include "port/thread.h"

enum { SEQUENCES_MAX = 256, THREADS_MAX = 512 }; /* limits of the library */

struct engine_context {
    struct llama_context *llama;
    struct engine_model *model;
    struct engine_context_options facts;
    const struct engine_watch *watch;

    const atomic_bool *cancel;
    nanos deadline;

    uint32_t position;  /* position of the next token, in every sequence */
    uint32_t sequences; /* decoded in lockstep; 0 before the first */
    bool has_logits;

    struct llama_batch batch;      /* arrays with capacity for facts.batch tokens */
    struct llama_sampler *sampler; /* NULL: greedy */
};

/* ---- available memory ---- */

/* Bytes available to our cgroup; UNKNOWN without a limit. */
static double cgroup_available(void)
{
    uint64_t max;
    uint64_t used;
    if (fs_read_u64("/sys/fs/cgroup/memory.max", &max) ||
        fs_read_u64("/sys/fs/cgroup/memory.current", &used))
        return UNKNOWN;
    return max > used ? (double)(max - used) : 0;
}

/* Available bytes by the kernel's estimate (MemAvailable); UNKNOWN if it has none. */
static double machine_available(void)
{
    char text[4096];
    if (fs_read_text("/proc/meminfo", text, sizeof text))
        return UNKNOWN;
    char *line = strstr(text, "MemAvailable:");
    if (!line)
        return UNKNOWN;
    line += strlen("MemAvailable:");
    line[strcspn(line, "k\n")] = '\0';
    uint64_t kibibytes;
    return parse_u64(line, &kibibytes) ? UNKNOWN : (double)kibibytes * 1024;
}

/* Bytes that grow with the context: the KV cache of every layer in 16 bits, and for one graph the
 * attention mask and, without flash attention, the scores of a layer.  Slightly too low on purpose: a
 * context that might fit is tried. */
static double context_bytes(const struct engine_model_facts *model,
                            const struct llama_context_params *params)
{
    double tokens = params->n_ctx;
    double head = model->heads > 0 ? (double)model->embedding / model->heads : model->embedding;
    double cache = tokens * model->layers * 2 * model->heads_kv * head * 2;
    double mask = tokens / params->n_seq_max * params->n_ubatch * 4;
    double scores = params->flash_attn_type == 0 ? mask * model->heads : 0;
    return cache + mask + scores + (double)model->vocabulary * params->n_seq_max * 4;
}

static enum err check_memory(const struct engine_model_facts *model,
                             const struct llama_context_params *params, struct error *why)
{
    double have = fmin(machine_available(), cgroup_available()); /* ignores an unknown one */
    double need = context_bytes(model, params);
    if (!is_known(have) || need <= have)
        return ERR_OK;
    return err_set(
        why, ERR_UNSUPPORTED,
        "a context of %u tokens needs %.2g GB, but only %.2g GB of memory are available: "
        "use a smaller context",
        params->n_ctx, need * 1e-9, have * 1e-9);
}

/* ---- callbacks ---- */

static bool is_canceled(const struct engine_context *context)
{
    return context->cancel && atomic_load_explicit(context->cancel, memory_order_relaxed);
}

static bool is_late(const struct engine_context *context)
{
    return context->deadline > 0 && clock_now() >= context->deadline;
}

static bool should_abort(void *data)
{
    const struct engine_context *context = data;
    return is_canceled(context) || is_late(context);
}

static bool watch_node(struct ggml_tensor *node, bool ask, void *data)
{
    const struct engine_watch *watch = data;
    const char *name = engine_api()->ggml_get_name(node);
    if (ask)
        return watch->wants(watch->context, name);
    watch->reached(watch->context, name);
    return true;
}

/* ---- opening ---- */

static enum err set_params(struct llama_context_params *params, const struct engine_model *model,
                           const struct engine_context_options *options, struct error *why)
{
    uint32_t sequences = options->sequences ? options->sequences : 1;
    uint32_t each = options->context ? options->context : (uint32_t)model->facts.trained_context;
    int threads = options->threads ? options->threads : thread_cpu_count();
    if (sequences > SEQUENCES_MAX)
        return err_set(why, ERR_USAGE, "%u sequences: the limit is %d", sequences, SEQUENCES_MAX);
    if ((uint64_t)each * sequences > INT32_MAX)
        return err_set(why, ERR_USAGE, "a context of %u tokens is too large", each);
    if (threads < 0 || threads > THREADS_MAX || options->threads_batch < 0 ||
        options->threads_batch > THREADS_MAX)
        return err_set(why, ERR_USAGE, "threads: expected 1 to %d", THREADS_MAX);
    params->n_ctx = each * sequences;
    params->n_seq_max = sequences;
    if (options->batch)
        params->n_batch = options->batch;
    if (options->ubatch)
        params->n_ubatch = options->ubatch;
    if (params->n_batch < sequences)
        params->n_batch = sequences;
    if (params->n_batch > params->n_ctx)
        params->n_batch = params->n_ctx; /* a larger one only takes memory */
    if (params->n_ubatch > params->n_batch)
        params->n_ubatch = params->n_batch;
    params->n_threads = threads;
    params->n_threads_batch = options->threads_batch ? options->threads_batch : threads;
    params->flash_attn_type = options->flash_attention;
    return ERR_OK;
}

static void set_callbacks(struct llama_context_params *params, struct engine_context *context)
{
    params->abort_callback = should_abort;
    params->abort_callback_data = context;
    if (context->watch) {
        params->cb_eval = watch_node;
        params->cb_eval_user_data = (void *)context->watch;
    }
}

/* Arrays for the tokens of one call.  seq_id[i] points into one array of sequence numbers, stored after the last
 * token. */
static void allocate_batch(struct engine_context *context)
{
    size_t capacity = context->facts.batch;
    struct llama_batch *batch = &context->batch;
    batch->token = xcalloc(capacity, sizeof *batch->token);
    batch->pos = xcalloc(capacity, sizeof *batch->pos);
    batch->n_seq_id = xcalloc(capacity, sizeof *batch->n_seq_id);
    batch->seq_id = xcalloc(capacity + 1, sizeof *batch->seq_id);
    batch->logits = xcalloc(capacity, sizeof *batch->logits);
    int32_t *numbers = xcalloc(SEQUENCES_MAX, sizeof *numbers);
    for (int32_t i = 0; i < SEQUENCES_MAX; i++)
        numbers[i] = i;
    batch->seq_id[capacity] = numbers;
}

static void read_facts(struct engine_context *context, const struct engine_context_options *asked)
{
    const struct llama_api *api = engine_api();
    struct engine_context_options *facts = &context->facts;
    *facts = *asked;
    facts->sequences = asked->sequences ? asked->sequences : 1;
    facts->context = api->llama_n_ctx_seq(context->llama);
    facts->batch = api->llama_n_batch(context->llama);
    facts->ubatch = api->llama_n_ubatch(context->llama);
    facts->threads = api->llama_n_threads(context->llama);
    facts->threads_batch = api->llama_n_threads_batch(context->llama);
}

enum err engine_context_open(struct engine_model *model,
                             const struct engine_context_options *options,
                             struct engine_context **out, struct error *why)
{
    const struct llama_api *api = engine_api();
    struct llama_context_params params = api->context_params;
    enum err err = set_params(&params, model, options, why);
    if (!err)
        err = check_memory(&model->facts, &params, why);
    if (err)
        return err;
    struct engine_context *context = XNEW(context);
    context->model = model;
    context->watch = options->watch;
    set_callbacks(&params, context);
    engine_log_clear();
    context->llama = api->llama_init_from_model(model->llama, params);
    if (!context->llama) {
        const char *message = engine_log_error();
        err = err_set(why, ERR_UNSUPPORTED, "llama.cpp cannot create a context of %u tokens: %s",
                      params.n_ctx, message[0] ? message : "unspecified error");
        free(context);
        return err;
    }
    struct ggml_threadpool *pool =
        options->keep_threads ? engine_model_threads(model, params.n_threads) : NULL;
    if (pool)
        api->llama_attach_threadpool(context->llama, pool, pool);
    read_facts(context, options);
    allocate_batch(context);
    *out = context;
    return ERR_OK;
}

void engine_context_close(struct engine_context *context)
{
    if (!context)
        return;
    struct llama_batch *batch = &context->batch;
    free(batch->seq_id[context->facts.batch]);
    free(batch->token);
    free(batch->pos);
    free(batch->n_seq_id);
    free(batch->seq_id);
    free(batch->logits);
    if (context->sampler)
        engine_api()->llama_sampler_free(context->sampler);
    engine_api()->llama_free(context->llama);
    free(context);
}

const struct engine_context_options *engine_context_facts(const struct engine_context *context)
{
    return &context->facts;
}

/* ---- decoding ---- */

void engine_clear(struct engine_context *context)
{
    const struct llama_api *api = engine_api();
    api->llama_memory_clear(api->llama_get_memory(context->llama), false);
    context->position = 0;
    context->sequences = 0;
    context->has_logits = false;
}

bool engine_rewind(struct engine_context *context, uint32_t tokens)
{
    const struct llama_api *api = engine_api();
    if (tokens > context->position)
        return false;
    /* All sequences (-1), to the end (-1). */
    if (!api->llama_memory_seq_rm(api->llama_get_memory(context->llama), -1, (int32_t)tokens, -1))
        return false;
    context->position = tokens;
    context->has_logits = false;
    return true;
}

void engine_set_abort(struct engine_context *context, const atomic_bool *cancel, nanos deadline)
{
    context->cancel = cancel;
    context->deadline = deadline;
}

static enum err aborted(struct engine_context *context, struct error *why)
{
    bool late = !is_canceled(context);
    engine_clear(context);
    return late ? err_set(why, ERR_TIMEOUT, "decoding timed out")
                : err_set(why, ERR_INTERRUPTED, "decoding was canceled");
}

/* The same tokens for every sequence, one sequence after the other: the library's own order. */
static void fill_batch(struct engine_context *context, const engine_token *tokens, size_t count,
                       bool is_last)
{
    struct llama_batch *batch = &context->batch;
    int32_t *numbers = batch->seq_id[context->facts.batch];
    size_t n = 0;
    for (uint32_t s = 0; s < context->sequences; s++)
        for (size_t i = 0; i < count; i++, n++) {
            batch->token[n] = tokens[i];
            batch->pos[n] = (int32_t)(context->position + i);
            batch->n_seq_id[n] = 1;
            batch->seq_id[n] = numbers + s;
            batch->logits[n] = is_last && i == count - 1 ? 1 : 0;
        }
    batch->n_tokens = (int32_t)n;
}

static enum err decode_batch(struct engine_context *context, struct error *why)
{
    if (should_abort(context))
        return aborted(context, why);
    engine_log_clear();
    int32_t result = engine_api()->llama_decode(context->llama, context->batch);
    if (result == LLAMA_DECODED)
        return ERR_OK;
    if (result == LLAMA_ABORTED)
        return aborted(context, why);
    const char *message = engine_log_error();
    engine_clear(context);
    if (result == LLAMA_NO_ROOM)
        return err_set(why, ERR_NO_DATA, "the KV cache is full");
    return err_set(why, ERR_IO, "llama.cpp failed (%d): %s", result,
                   message[0] ? message : "unspecified error");
}

static enum err check_tokens(const struct engine_context *context, const engine_token *tokens,
                             size_t count, uint32_t sequences, struct error *why)
{
    if (count == 0)
        return err_set(why, ERR_USAGE, "no tokens to decode");
    if (sequences > context->facts.sequences ||
        (context->sequences > 0 && context->sequences != sequences))
        return err_set(why, ERR_USAGE, "%u sequences in a context for %u", sequences,
                       context->sequences ? context->sequences : context->facts.sequences);
    if (count > context->facts.context - context->position)
        return err_set(why, ERR_NO_DATA, "%zu more tokens exceed the context of %u", count,
                       context->facts.context);
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= context->model->facts.vocabulary)
            return err_set(why, ERR_BAD_VALUE, "token %d is not in the vocabulary of %d", tokens[i],
                           context->model->facts.vocabulary);
    return ERR_OK;
}

enum err engine_decode(struct engine_context *context, const engine_token *tokens, size_t count,
                       uint32_t sequences, struct error *why)
{
    sequences = sequences > 0 ? sequences : 1;
    enum err err = check_tokens(context, tokens, count, sequences, why);
    if (err)
        return err;
    context->sequences = sequences;
    context->has_logits = false;
    size_t max = context->facts.batch / sequences;
    for (size_t done = 0; done < count;) {
        size_t part = count - done < max ? count - done : max;
        fill_batch(context, tokens + done, part, done + part == count);
        err = decode_batch(context, why);
        if (err)
            return err;
        context->position += (uint32_t)part;
        done += part;
    }
    engine_api()->llama_synchronize(context->llama);
    context->has_logits = true;
    return ERR_OK;
}

/* ---- likelihood ---- */

/* -ln of the softmax of the logits at a token. */
static double negative_log_softmax(const float *logits, int count, engine_token token)
{
    float max = logits[0];
    for (int i = 1; i < count; i++)
        max = logits[i] > max ? logits[i] : max;
    double sum = (double)expf(logits[0] - max);
    for (int i = 1; i < count; i++)
        sum += (double)expf(logits[i] - max);
    return log(sum) - ((double)logits[token] - (double)max);
}

/* Requests logits for the tokens of this batch, from `from` on, whose successor is scored. */
static void want_logits(struct engine_context *context, size_t from, size_t first, size_t count)
{
    for (size_t i = 0; i < (size_t)context->batch.n_tokens; i++)
        context->batch.logits[i] = from + i + 1 >= first && from + i + 1 < count ? 1 : 0;
}

static enum err add_scores(struct engine_context *context, const engine_token *tokens, size_t from,
                           double *sum, struct error *why)
{
    const struct llama_api *api = engine_api();
    int vocabulary = context->model->facts.vocabulary;
    for (int32_t i = 0; i < context->batch.n_tokens; i++) {
        if (!context->batch.logits[i])
            continue;
        const float *logits = api->llama_get_logits_ith(context->llama, i);
        if (!logits)
            return err_set(why, ERR_NO_DATA, "llama.cpp returned no logits");
        *sum += negative_log_softmax(logits, vocabulary, tokens[from + (size_t)i + 1]);
    }
    return is_known(*sum) ? ERR_OK : err_set(why, ERR_BAD_VALUE, "a logit is not a number");
}

enum err engine_score(struct engine_context *context, const engine_token *tokens, size_t count,
                      size_t first, double *negative_log_likelihood, struct error *why)
{
    enum err err = check_tokens(context, tokens, count, 1, why);
    *negative_log_likelihood = 0;
    context->sequences = 1;
    context->has_logits = false;
    for (size_t done = 0; !err && done < count;) {
        size_t left = count - done;
        size_t part = left < context->facts.batch ? left : context->facts.batch;
        fill_batch(context, tokens + done, part, false);
        want_logits(context, done, first, count);
        err = decode_batch(context, why);
        if (err)
            break;
        engine_api()->llama_synchronize(context->llama);
        err = add_scores(context, tokens, done, negative_log_likelihood, why);
        context->position += (uint32_t)part;
        done += part;
    }
    return err;
}

/* ---- sampling ---- */

enum { PENALTY_TOKENS = 64 }; /* the default of llama.cpp's own programs */

static enum err check_sampling(const struct engine_sampling *sampling, struct error *why)
{
    if (!(sampling->temperature >= 0 && sampling->temperature <= 100))
        return err_set(why, ERR_USAGE, "temperature: expected 0 to 100");
    if (!(sampling->top_p > 0 && sampling->top_p <= 1))
        return err_set(why, ERR_USAGE, "top_p: expected more than 0, at most 1");
    if (!(sampling->min_p >= 0 && sampling->min_p <= 1))
        return err_set(why, ERR_USAGE, "min_p: expected 0 to 1");
    if (sampling->top_k < 0)
        return err_set(why, ERR_USAGE, "top_k: expected 0 or more");
    if (!(sampling->repeat_penalty > 0 && sampling->repeat_penalty <= 100))
        return err_set(why, ERR_USAGE, "repeat_penalty: expected more than 0, at most 100");
    return ERR_OK;
}

/* Adds samplers in the order of llama.cpp's own programs: penalties, top-k, top-p, min-p, temperature, sampling. */
static void add_samplers(const struct llama_api *api, struct llama_sampler *chain,
                         const struct engine_sampling *sampling, int vocabulary)
{
    if (sampling->repeat_penalty != 1)
        api->llama_sampler_chain_add(
            chain, api->llama_sampler_init_penalties(vocabulary, PENALTY_TOKENS,
                                                     (float)sampling->repeat_penalty, 0, 0));
    if (sampling->temperature == 0) {
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_greedy());
        return;
    }
    if (sampling->top_k > 0)
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_top_k(sampling->top_k));
    if (sampling->top_p < 1)
        api->llama_sampler_chain_add(chain,
                                     api->llama_sampler_init_top_p((float)sampling->top_p, 1));
    if (sampling->min_p > 0)
        api->llama_sampler_chain_add(chain,
                                     api->llama_sampler_init_min_p((float)sampling->min_p, 1));
    api->llama_sampler_chain_add(chain, api->llama_sampler_init_temp((float)sampling->temperature));
    api->llama_sampler_chain_add(chain, api->llama_sampler_init_dist(sampling->seed));
}

enum err engine_set_sampling(struct engine_context *context, const struct engine_sampling *sampling,
                             struct error *why)
{
    const struct llama_api *api = engine_api();
    enum err err = check_sampling(sampling, why);
    if (err)
        return err;
    if (context->sampler)
        api->llama_sampler_free(context->sampler);
    context->sampler = NULL;
    if (sampling->temperature == 0 && sampling->repeat_penalty == 1)
        return ERR_OK; /* greedy: the logits suffice */
    context->sampler =
        xneed(api->llama_sampler_chain_init((struct llama_sampler_chain_params){.no_perf = true}));
    add_samplers(api, context->sampler, sampling, context->model->facts.vocabulary);
    return ERR_OK;
}

/* The first of the largest logits, as in llama.cpp. */
static engine_token argmax(const float *logits, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

engine_token engine_sample(struct engine_context *context)
{
    const struct llama_api *api = engine_api();
    const float *logits =
        context->has_logits ? api->llama_get_logits_ith(context->llama, -1) : NULL;
    if (!logits)
        return -1;
    if (context->sampler)
        return api->llama_sampler_sample(context->sampler, context->llama, -1);
    return argmax(logits, context->model->facts.vocabulary);
}
