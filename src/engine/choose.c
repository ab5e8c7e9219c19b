#include "engine/engine.h"
#include "engine/llama/objects.h"

enum { PENALTY_SPAN = 64 }; /* tokens, as llama.cpp's own programs have it */

static enum err check(const struct engine_choice *choice, struct error *why)
{
    if (!(choice->temperature >= 0 && choice->temperature <= 100))
        return err_set(why, ERR_USAGE, "temperature: expected 0 to 100");
    if (!(choice->top_p > 0 && choice->top_p <= 1))
        return err_set(why, ERR_USAGE, "top_p: expected more than 0, at most 1");
    if (!(choice->min_p >= 0 && choice->min_p <= 1))
        return err_set(why, ERR_USAGE, "min_p: expected 0 to 1");
    if (choice->top_k < 0)
        return err_set(why, ERR_USAGE, "top_k: expected 0 or more");
    if (!(choice->repeat_penalty > 0 && choice->repeat_penalty <= 100))
        return err_set(why, ERR_USAGE, "repeat_penalty: expected more than 0, at most 100");
    return ERR_OK;
}

/* In the order of llama.cpp's own programs: penalties, narrowing, temperature, the draw. */
static void add_links(const struct llama_api *api, struct llama_sampler *chain,
                      const struct engine_choice *choice, int vocabulary)
{
    if (choice->repeat_penalty != 1)
        api->llama_sampler_chain_add(
            chain, api->llama_sampler_init_penalties(vocabulary, PENALTY_SPAN,
                                                     (float)choice->repeat_penalty, 0, 0));
    if (choice->temperature == 0) {
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_greedy());
        return;
    }
    if (choice->top_k > 0)
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_top_k(choice->top_k));
    if (choice->top_p < 1)
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_top_p((float)choice->top_p, 1));
    if (choice->min_p > 0)
        api->llama_sampler_chain_add(chain, api->llama_sampler_init_min_p((float)choice->min_p, 1));
    api->llama_sampler_chain_add(chain, api->llama_sampler_init_temp((float)choice->temperature));
    api->llama_sampler_chain_add(chain, api->llama_sampler_init_dist(choice->seed));
}

enum err engine_choose_by(struct engine_context *context, const struct engine_choice *choice,
                          struct error *why)
{
    const struct llama_api *api = llama_api();
    enum err err = check(choice, why);
    if (err)
        return err;
    if (context->sampler)
        api->llama_sampler_free(context->sampler);
    context->sampler = NULL;
    if (choice->temperature == 0 && choice->repeat_penalty == 1)
        return ERR_OK; /* needs no more than a look at the logits */
    context->sampler =
        api->llama_sampler_chain_init((struct llama_sampler_chain_params){.no_perf = true});
    if (!context->sampler)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a sampler");
    add_links(api, context->sampler, choice, context->model->facts.vocabulary);
    return ERR_OK;
}

/* The first of the largest, as llama.cpp has it. */
static engine_token likeliest(const float *logits, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

engine_token engine_choose(struct engine_context *context)
{
    const struct llama_api *api = llama_api();
    const float *logits =
        context->has_logits ? api->llama_get_logits_ith(context->llama, -1) : NULL;
    if (!logits)
        return -1;
    if (context->sampler)
        return api->llama_sampler_sample(context->sampler, context->llama, -1);
    return likeliest(logits, context->model->facts.vocabulary);
}
