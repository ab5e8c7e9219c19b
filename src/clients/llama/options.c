#include "clients/llama/options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "port/json_read.h"

const struct param_spec LLAMA_PARAMS[] = {
    {"context", "TOKENS", "prompt and answer together (as trained, at most 4096)"},
    {"batch", "TOKENS", "of the prompt in one call (2048)"},
    {"ubatch", "TOKENS", "of the prompt in one graph (512)"},
    {"threads", "COUNT", "for one token at a time (as many as cores we may use)"},
    {"threads_batch", "COUNT", "for the prompt (as threads)"},
    {"gpu_layers", "COUNT|all", "layers to put on a GPU (0)"},
    {"flash_attention", "auto|on|off", "(auto)"},
    {"chat", "auto|on|off", "the model's chat template; auto: where there is one (auto)"},
    {"library", "PATH",
     "libllama, or its folder (IPW_LLAMA_LIB, what set-up brought, the system's)"},
    {NULL, NULL, NULL},
};

static const struct param_spec WISHES[] = {
    {"max_tokens", "COUNT", ""}, {"temperature", "T", ""}, {"top_k", "COUNT", ""},
    {"top_p", "P", ""},          {"min_p", "P", ""},       {"repeat_penalty", "P", ""},
    {"seed", "NUMBER", ""},      {"stop", "TEXT", ""},     {NULL, NULL, NULL},
};

static enum err read_u32(const struct params *params, const char *key, uint64_t least,
                         uint64_t most, uint64_t otherwise, uint64_t *out, struct error *why)
{
    enum err err = params_count(params, key, otherwise, out, why);
    if (!err && params_get(params, key) && (*out < least || *out > most))
        return err_set(why, ERR_USAGE, "%s: expected %llu to %llu", key, (unsigned long long)least,
                       (unsigned long long)most);
    return err;
}

/* Which of three words, the first when nothing was said. */
static enum err read_word(const struct params *params, const char *key, const char *const words[3],
                          int *out, struct error *why)
{
    const char *given = params_get(params, key);
    *out = 0;
    if (!given)
        return ERR_OK;
    for (int i = 0; i < 3; i++)
        if (strcmp(given, words[i]) == 0) {
            *out = i;
            return ERR_OK;
        }
    return err_set(why, ERR_USAGE, "%s=%s: expected %s, %s or %s", key, given, words[0], words[1],
                   words[2]);
}

static enum err read_sizes(const struct params *params, struct engine_context_options *out,
                           struct error *why)
{
    enum { MOST_TOKENS = 1 << 30, MOST_THREADS = 512 };
    uint64_t context;
    uint64_t batch;
    uint64_t ubatch;
    uint64_t threads;
    uint64_t threads_batch;
    enum err err = read_u32(params, "context", 16, MOST_TOKENS, 0, &context, why);
    if (!err)
        err = read_u32(params, "batch", 1, MOST_TOKENS, 0, &batch, why);
    if (!err)
        err = read_u32(params, "ubatch", 1, MOST_TOKENS, 0, &ubatch, why);
    if (!err)
        err = read_u32(params, "threads", 1, MOST_THREADS, 0, &threads, why);
    if (!err)
        err = read_u32(params, "threads_batch", 1, MOST_THREADS, 0, &threads_batch, why);
    if (err)
        return err;
    *out = (struct engine_context_options){.context = (uint32_t)context,
                                           .batch = (uint32_t)batch,
                                           .ubatch = (uint32_t)ubatch,
                                           .threads = (int)threads,
                                           .threads_batch = (int)threads_batch};
    return ERR_OK;
}

enum err llama_options_read(const struct params *params, struct llama_options *out,
                            struct error *why)
{
    static const char *const FLASH[] = {"auto", "off", "on"}; /* -1, 0, 1 */
    static const char *const CHAT[] = {"auto", "on", "off"};
    int flash;
    int chat;
    *out = (struct llama_options){0};
    enum err err = read_sizes(params, &out->context, why);
    if (!err)
        err = read_word(params, "flash_attention", FLASH, &flash, why);
    if (!err)
        err = read_word(params, "chat", CHAT, &chat, why);
    if (err)
        return err;
    out->context.flash_attention = flash - 1;
    out->chat = (enum chat)chat;
    const char *gpu_layers = params_get(params, "gpu_layers");
    uint64_t layers = 0;
    if (gpu_layers && strcmp(gpu_layers, "all") == 0)
        out->model.gpu_layers = -1;
    else if ((err = read_u32(params, "gpu_layers", 0, 100000, 0, &layers, why)))
        return err;
    else
        out->model.gpu_layers = (int)layers;
    return ERR_OK;
}

/* ---- of one question ---- */

static enum err add_stop(struct wishes *wishes, const char *text, struct error *why)
{
    if (!*text)
        return err_set(why, ERR_USAGE, "stop: an empty text would stop every answer");
    if (wishes->stop_capacity < wishes->stop_count + 2) { /* this one, and the end */
        char **stops = realloc(wishes->stops, (wishes->stop_count + 2) * sizeof *stops);
        if (!stops)
            return err_set(why, ERR_NO_MEMORY, "out of memory for a request");
        wishes->stops = stops;
        wishes->stop_capacity = wishes->stop_count + 2;
    }
    char *copy = strdup(text);
    if (!copy)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a request");
    wishes->stops[wishes->stop_count++] = copy;
    wishes->stops[wishes->stop_count] = NULL;
    return ERR_OK;
}

/* A text, or several as a JSON array, in which "\n" is a line's end. */
static enum err read_stops(struct wishes *wishes, const char *given, struct error *why)
{
    if (given[0] != '[')
        return add_stop(wishes, given, why);
    struct jv *list;
    enum err err = jv_parse(given, strlen(given), &list, why);
    if (err)
        return err == ERR_BAD_VALUE
                   ? err_set(why, ERR_USAGE, "stop=%s: expected a text or a JSON array of texts",
                             given)
                   : err;
    for (const struct jv *item = jv_first(list); item && !err; item = jv_next(item))
        err = jv_text(item) ? add_stop(wishes, jv_text(item), why)
                            : err_set(why, ERR_USAGE, "stop: expected texts in the array");
    jv_free(list);
    return err;
}

static enum err read_choice(const struct params *params, struct engine_choice *out,
                            struct error *why)
{
    uint64_t seed;
    uint64_t top_k;
    enum err err = params_number(params, "temperature", 0, &out->temperature, why);
    if (!err)
        err = params_number(params, "top_p", 1, &out->top_p, why);
    if (!err)
        err = params_number(params, "min_p", 0, &out->min_p, why);
    if (!err)
        err = params_number(params, "repeat_penalty", 1, &out->repeat_penalty, why);
    if (!err)
        err = read_u32(params, "top_k", 0, INT_MAX, 0, &top_k, why);
    if (!err)
        err = read_u32(params, "seed", 0, UINT32_MAX, 0, &seed, why);
    if (err)
        return err;
    out->top_k = (int)top_k;
    out->seed = (uint32_t)seed;
    return ERR_OK;
}

enum err wishes_read(const struct params *params, struct wishes *out, struct error *why)
{
    *out = (struct wishes){0};
    enum err err = params_check(params, WISHES, "client llama", why);
    if (!err)
        err = read_u32(params, "max_tokens", 1, INT_MAX, 0, &out->max_tokens, why);
    if (!err)
        err = read_choice(params, &out->choice, why);
    const char *stop = params_get(params, "stop");
    if (!err && stop)
        err = read_stops(out, stop, why);
    if (err)
        wishes_release(out);
    return err;
}

void wishes_release(struct wishes *wishes)
{
    for (size_t i = 0; i < wishes->stop_count; i++)
        free(wishes->stops[i]);
    free(wishes->stops);
    *wishes = (struct wishes){0};
}
