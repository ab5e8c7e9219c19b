#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "engine/engine.h"
#include "engine/llama/memory.h"
#include "engine/llama/objects.h"
#include "engine/llama/pool.h"
#include "engine/llama/words.h"

enum { MOST_SEQUENCES = 256 }; /* of the library */

/* ---- what the library calls back ---- */

static bool is_cancelled(const struct engine_context *context)
{
    return context->cancel && atomic_load_explicit(context->cancel, memory_order_relaxed);
}

static bool is_late(const struct engine_context *context)
{
    return context->until > 0 && clock_now() >= context->until;
}

static bool should_end(void *data)
{
    const struct engine_context *context = data;
    return is_cancelled(context) || is_late(context);
}

static bool watch_node(struct ggml_tensor *node, bool ask, void *data)
{
    const struct engine_watch *watch = data;
    const char *name = llama_api()->ggml_get_name(node);
    if (ask)
        return watch->wants(watch->context, name);
    watch->reached(watch->context, name);
    return true;
}

/* ---- opening ---- */

static int usable_cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? count : 1;
}

static enum err set_params(struct llama_context_params *params, const struct engine_model *model,
                           const struct engine_context_options *options, struct error *why)
{
    enum { MOST_THREADS = 512 }; /* of the library */
    uint32_t sequences = options->sequences ? options->sequences : 1;
    uint32_t each = options->context ? options->context : (uint32_t)model->facts.trained_context;
    int threads = options->threads ? options->threads : usable_cores();
    if (sequences > MOST_SEQUENCES)
        return err_set(why, ERR_USAGE, "%u sequences: at most %d go together", sequences,
                       MOST_SEQUENCES);
    if ((uint64_t)each * sequences > INT32_MAX)
        return err_set(why, ERR_USAGE, "a context of %u tokens is too large", each);
    if (threads < 0 || threads > MOST_THREADS || options->threads_batch < 0 ||
        options->threads_batch > MOST_THREADS)
        return err_set(why, ERR_USAGE, "threads: expected 1 to %d", MOST_THREADS);
    params->n_ctx = each * sequences;
    params->n_seq_max = sequences;
    if (options->batch)
        params->n_batch = options->batch;
    if (options->ubatch)
        params->n_ubatch = options->ubatch;
    if (params->n_batch < sequences)
        params->n_batch = sequences;
    if (params->n_batch > params->n_ctx)
        params->n_batch = params->n_ctx; /* a larger one only costs memory */
    if (params->n_ubatch > params->n_batch)
        params->n_ubatch = params->n_batch;
    params->n_threads = threads;
    params->n_threads_batch = options->threads_batch ? options->threads_batch : threads;
    params->flash_attn_type = options->flash_attention;
    return ERR_OK;
}

static void set_callbacks(struct llama_context_params *params, struct engine_context *context)
{
    params->abort_callback = should_end;
    params->abort_callback_data = context;
    if (context->watch) {
        params->cb_eval = watch_node;
        params->cb_eval_user_data = (void *)context->watch;
    }
}

/* Arrays for as many tokens as go in one call.  seq_id[i] points into the one array of numbers. */
static enum err make_batch(struct engine_context *context)
{
    size_t room = context->facts.batch;
    struct llama_batch *batch = &context->batch;
    batch->token = calloc(room, sizeof *batch->token);
    batch->pos = calloc(room, sizeof *batch->pos);
    batch->n_seq_id = calloc(room, sizeof *batch->n_seq_id);
    batch->seq_id = calloc(room + 1, sizeof *batch->seq_id);
    batch->logits = calloc(room, sizeof *batch->logits);
    int32_t *numbers = calloc(MOST_SEQUENCES, sizeof *numbers);
    if (!batch->token || !batch->pos || !batch->n_seq_id || !batch->seq_id || !batch->logits ||
        !numbers) {
        free(numbers);
        return ERR_NO_MEMORY;
    }
    for (int32_t i = 0; i < MOST_SEQUENCES; i++)
        numbers[i] = i;
    batch->seq_id[room] = numbers; /* beyond the last token: kept for the rest to point into */
    return ERR_OK;
}

static void read_facts(struct engine_context *context, const struct engine_context_options *asked)
{
    const struct llama_api *api = llama_api();
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
    const struct llama_api *api = llama_api();
    struct llama_context_params params = api->context_params;
    enum err err = set_params(&params, model, options, why);
    if (!err)
        err = memory_suffices(&model->facts, &params, why);
    if (err)
        return err;
    struct engine_context *context = calloc(1, sizeof *context);
    if (!context)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a context");
    context->model = model;
    context->watch = options->watch;
    set_callbacks(&params, context);
    words_forget();
    context->llama = api->llama_init_from_model(model->llama, params);
    if (!context->llama) {
        const char *complaint = words_complaint();
        err = err_set(why, strstr(complaint, "alloc") ? ERR_NO_MEMORY : ERR_UNSUPPORTED,
                      "llama.cpp opens no context of %u tokens: %s", params.n_ctx,
                      complaint[0] ? complaint : "it does not say why");
        free(context);
        return err;
    }
    if (options->keep_threads && !model->threads)
        model->threads = pool_new(params.n_threads);
    if (options->keep_threads && model->threads)
        api->llama_attach_threadpool(context->llama, model->threads, model->threads);
    read_facts(context, options);
    if (make_batch(context)) {
        engine_context_close(context);
        return err_set(why, ERR_NO_MEMORY, "out of memory for a batch");
    }
    *out = context;
    return ERR_OK;
}

void engine_context_close(struct engine_context *context)
{
    if (!context)
        return;
    struct llama_batch *batch = &context->batch;
    if (batch->seq_id)
        free(batch->seq_id[context->facts.batch]);
    free(batch->token);
    free(batch->pos);
    free(batch->n_seq_id);
    free(batch->seq_id);
    free(batch->logits);
    if (context->sampler)
        llama_api()->llama_sampler_free(context->sampler);
    llama_api()->llama_free(context->llama);
    free(context);
}

const struct engine_context_options *engine_context_facts(const struct engine_context *context)
{
    return &context->facts;
}

/* ---- computing ---- */

void engine_forget(struct engine_context *context)
{
    const struct llama_api *api = llama_api();
    api->llama_memory_clear(api->llama_get_memory(context->llama), false);
    context->position = 0;
    context->sequences = 0;
    context->has_logits = false;
}

bool engine_rewind(struct engine_context *context, uint32_t tokens)
{
    const struct llama_api *api = llama_api();
    if (tokens > context->position)
        return false;
    /* Every sequence (-1), to the end (-1). */
    if (!api->llama_memory_seq_rm(api->llama_get_memory(context->llama), -1, (int32_t)tokens, -1))
        return false;
    context->position = tokens;
    context->has_logits = false;
    return true;
}

void engine_end_by(struct engine_context *context, const atomic_bool *cancel, nanos until)
{
    context->cancel = cancel;
    context->until = until;
}

static enum err ended(struct engine_context *context, struct error *why)
{
    bool late = !is_cancelled(context);
    engine_forget(context);
    return late ? err_set(why, ERR_TIMEOUT, "the computation took too long")
                : err_set(why, ERR_INTERRUPTED, "the computation was cancelled");
}

/* The tokens at `tokens`, for every sequence; sequence after sequence, as the library sorts them
 * itself. */
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

static enum err compute_batch(struct engine_context *context, struct error *why)
{
    if (should_end(context))
        return ended(context, why);
    words_forget();
    int32_t result = llama_api()->llama_decode(context->llama, context->batch);
    if (result == LLAMA_DECODED)
        return ERR_OK;
    if (result == LLAMA_ABORTED)
        return ended(context, why);
    const char *complaint = words_complaint();
    engine_forget(context);
    if (result == LLAMA_NO_ROOM)
        return err_set(why, ERR_NO_DATA, "llama.cpp found no room in its context");
    return err_set(why, ERR_IO, "llama.cpp failed (%d): %s", result,
                   complaint[0] ? complaint : "it does not say why");
}

static enum err check(const struct engine_context *context, const engine_token *tokens,
                      size_t count, uint32_t sequences, struct error *why)
{
    if (count == 0)
        return err_set(why, ERR_USAGE, "no tokens to compute");
    if (sequences > context->facts.sequences ||
        (context->sequences > 0 && context->sequences != sequences))
        return err_set(why, ERR_USAGE, "%u sequences in a context of %u", sequences,
                       context->sequences ? context->sequences : context->facts.sequences);
    if (count > context->facts.context - context->position)
        return err_set(why, ERR_NO_DATA, "%zu more tokens do not fit into the context of %u", count,
                       context->facts.context);
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= context->model->facts.vocabulary)
            return err_set(why, ERR_BAD_VALUE, "token %d is not in the vocabulary of %d", tokens[i],
                           context->model->facts.vocabulary);
    return ERR_OK;
}

enum err engine_compute(struct engine_context *context, const engine_token *tokens, size_t count,
                        uint32_t sequences, struct error *why)
{
    sequences = sequences > 0 ? sequences : 1;
    enum err err = check(context, tokens, count, sequences, why);
    if (err)
        return err;
    context->sequences = sequences;
    context->has_logits = false;
    size_t most = context->facts.batch / sequences;
    for (size_t done = 0; done < count;) {
        size_t part = count - done < most ? count - done : most;
        fill_batch(context, tokens + done, part, done + part == count);
        err = compute_batch(context, why);
        if (err)
            return err;
        context->position += (uint32_t)part;
        done += part;
    }
    llama_api()->llama_synchronize(context->llama);
    context->has_logits = true;
    return ERR_OK;
}
