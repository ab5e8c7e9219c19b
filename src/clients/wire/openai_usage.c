#include "clients/wire/openai_usage.h"

#include "clients/wire/intake.h"
#include "port/json_read.h"

/* Some services count reasoning beside the output, not in it; their total gives them away. */
static void include_reasoning(const struct jv *usage, struct client_reply *reply)
{
    int64_t total = -1;
    intake_count(&total, jv_get(usage, "total_tokens"));
    if (reply->reasoning_tokens > 0 && reply->prompt_tokens >= 0 && reply->output_tokens >= 0 &&
        total == reply->prompt_tokens + reply->output_tokens + reply->reasoning_tokens)
        reply->output_tokens += reply->reasoning_tokens;
}

static void read_usage(const struct jv *usage, struct client_reply *reply)
{
    if (!jv_is_object(usage))
        return;
    intake_count(&reply->prompt_tokens, jv_get(usage, "prompt_tokens"));
    intake_count(&reply->output_tokens, jv_get(usage, "completion_tokens"));
    intake_count(&reply->reasoning_tokens, jv_get(usage, "reasoning_tokens")); /* SGLang */
    intake_count(&reply->reasoning_tokens,
                 jv_path(usage, "completion_tokens_details.reasoning_tokens"));
    intake_count(&reply->cached_tokens, jv_get(usage, "prompt_cache_hit_tokens")); /* DeepSeek */
    intake_count(&reply->cached_tokens, jv_path(usage, "prompt_tokens_details.cached_tokens"));
    intake_seconds(&reply->server_prefill_s, jv_get(usage, "prompt_time"), 1); /* Groq */
    intake_seconds(&reply->server_decode_s, jv_get(usage, "completion_time"), 1);
    include_reasoning(usage, reply);
}

/* llama.cpp.  Its prompt_n leaves out what came from the cache, so that it is the prompt's length
 * only together with cache_n. */
static void read_timings(const struct jv *timings, struct client_reply *reply)
{
    if (!jv_is_object(timings))
        return;
    int64_t computed = -1, cached = -1;
    intake_count(&computed, jv_get(timings, "prompt_n"));
    intake_count(&cached, jv_get(timings, "cache_n"));
    if (computed >= 0 && cached >= 0)
        reply->prompt_tokens = computed + cached;
    intake_count(&reply->cached_tokens, jv_get(timings, "cache_n"));
    intake_count(&reply->output_tokens, jv_get(timings, "predicted_n"));
    intake_seconds(&reply->server_prefill_s, jv_get(timings, "prompt_ms"), 1e-3);
    intake_seconds(&reply->server_decode_s, jv_get(timings, "predicted_ms"), 1e-3);
}

void openai_usage_read(const struct jv *root, struct client_reply *reply)
{
    read_timings(jv_get(root, "timings"), reply); /* first: what usage says counts */
    read_usage(jv_path(root, "x_groq.usage"), reply);
    read_usage(jv_get(root, "usage"), reply);
    /* LM Studio */
    intake_seconds(&reply->server_decode_s, jv_path(root, "stats.generation_time"), 1);
}
