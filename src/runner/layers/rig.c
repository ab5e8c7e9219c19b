#include "runner/layers/rig.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/text.h"

/* ---- opening ---- */

/* The longest prompt and what is generated after it. */
static uint32_t tokens_needed(const struct layers_options *options)
{
    return options->prompts[options->prompt_count - 1] + options->generate;
}

static enum err settle_context(struct rig *rig, const char *path, struct error *why)
{
    const struct layers_options *options = rig->options;
    const struct engine_model_facts *facts = engine_model_facts(rig->model);
    uint32_t needed = tokens_needed(options), longest = options->prompts[options->prompt_count - 1];
    if (options->context && needed > options->context)
        return err_set(why, ERR_USAGE,
                       "a prompt of %u tokens and %u generated ones do not fit into --context %u",
                       longest, options->generate, options->context);
    if (facts->trained_context > 0 && needed > (uint32_t)facts->trained_context)
        return err_set(why, ERR_USAGE,
                       "%s: a prompt of %u tokens and %u generated ones do not fit into its "
                       "context of %d tokens: give a shorter --prompt-tokens",
                       path, longest, options->generate, facts->trained_context);
    rig->context = options->context ? options->context : needed;
    return ERR_OK;
}

/* Any tokens do: what a token is does not change what it costs to compute. */
static enum err draw_tokens(struct rig *rig)
{
    struct random draws = random_seeded(rig->options->seed);
    int vocabulary = engine_model_facts(rig->model)->vocabulary;
    rig->tokens = calloc(rig->context, sizeof *rig->tokens);
    for (uint32_t i = 0; rig->tokens && i < rig->context; i++)
        rig->tokens[i] = (engine_token)random_index(&draws, (size_t)vocabulary);
    return rig->tokens ? ERR_OK : ERR_NO_MEMORY;
}

static enum err open_contexts(struct rig *rig, const atomic_bool *cancel, struct error *why)
{
    struct engine_context_options options = {
        .context = rig->context,
        .sequences = rig->options->batch,
        .threads = (int)rig->options->threads,
        .keep_threads = true,
        .flash_attention = -1,
    };
    enum err err = engine_context_open(rig->model, &options, &rig->plain, why);
    if (err)
        return err;
    options.watch = &rig->watch.watch;
    err = engine_context_open(rig->model, &options, &rig->watched, why);
    if (err)
        return err;
    engine_set_abort(rig->plain, cancel, 0);
    engine_set_abort(rig->watched, cancel, 0);
    rig->ubatch = engine_context_facts(rig->plain)->ubatch;
    return ERR_OK;
}

enum err rig_open(struct rig *rig, const char *path, const struct layers_options *options,
                  const atomic_bool *cancel, struct error *why)
{
    struct engine_model_options how = {.gpu_layers = options->gpu_layers};
    *rig = (struct rig){.options = options};
    enum err err = engine_model_open(path, &how, &rig->model, why);
    if (!err)
        err = settle_context(rig, path, why);
    if (err)
        return err;
    stopwatch_init(&rig->watch, engine_model_facts(rig->model)->layers, options->granularity);
    err = draw_tokens(rig);
    if (err)
        return err_set(why, err, "%s: %s", path, err_text(err));
    return open_contexts(rig, cancel, why);
}

void rig_close(struct rig *rig)
{
    engine_context_close(rig->plain);
    engine_context_close(rig->watched);
    engine_model_close(rig->model);
    stopwatch_release(&rig->watch);
    free(rig->tokens);
    *rig = (struct rig){0};
}

/* ---- computing ---- */

static enum err compute(struct rig *rig, bool watched, size_t from, size_t count, unsigned stride,
                        struct error *why)
{
    if (watched)
        stopwatch_begin(&rig->watch, stride);
    nanos began = clock_now();
    enum err err = engine_decode(watched ? rig->watched : rig->plain, rig->tokens + from, count,
                                  rig->options->batch, why);
    if (!err && rig->lengths)
        rig->lengths->seconds[rig->lengths->count++ % RIG_LENGTHS] = seconds(clock_now() - began);
    return err;
}

enum err rig_learn(struct rig *rig, enum layers_granularity granularity, struct error *why)
{
    const struct layers_options *options = rig->options;
    enum err err = ERR_OK;
    stopwatch_forget_plans(&rig->watch, granularity);
    engine_clear(rig->watched);
    for (size_t i = 0; i <= options->prompt_count && !err; i++) {
        bool decodes = i == options->prompt_count; /* after the longest prompt, one token */
        stopwatch_learn(&rig->watch);
        if (!decodes)
            engine_clear(rig->watched);
        err = compute(rig, true, decodes ? options->prompts[i - 1] : 0,
                      decodes ? 1 : options->prompts[i], 1, why);
        enum err learned = stopwatch_learned(&rig->watch);
        if (!err && learned)
            err = err_set(why, learned, "cannot learn the graphs of the model: %s",
                          err_text(learned));
    }
    return err;
}

enum err rig_prepare(struct rig *rig, bool watched, const struct layers_setting *setting,
                     struct error *why)
{
    struct engine_context *context = watched ? rig->watched : rig->plain;
    engine_clear(context);
    if (setting->phase == LAYERS_PREFILL)
        return ERR_OK;
    stopwatch_reset(&rig->watch, NULL);
    return compute(rig, watched, 0, setting->prompt, 1, why);
}

static enum err generate(struct rig *rig, bool watched, const struct layers_setting *setting,
                         struct error *why)
{
    enum err err = ERR_OK;
    for (unsigned i = 0; i < rig->options->generate && !err; i++)
        err = compute(rig, watched, setting->prompt + i, 1, setting->stride, why);
    if (!err)
        engine_rewind(watched ? rig->watched : rig->plain, setting->prompt);
    return err;
}

enum err rig_pass(struct rig *rig, bool watched, const struct layers_setting *setting,
                  struct error *why)
{
    if (setting->phase == LAYERS_DECODE)
        return generate(rig, watched, setting, why);
    engine_clear(watched ? rig->watched : rig->plain);
    return compute(rig, watched, 0, setting->prompt, setting->stride, why);
}
