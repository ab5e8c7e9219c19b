#include "engine/llama/memory.h"

#include <string.h>

#include "core/text.h"
#include "port/fs.h"

/* What the group of processes that a container is may still take; UNKNOWN without a limit. */
static double left_to_group(void)
{
    uint64_t most;
    uint64_t used;
    if (fs_read_u64("/sys/fs/cgroup/memory.max", &most) ||
        fs_read_u64("/sys/fs/cgroup/memory.current", &used))
        return UNKNOWN;
    return most > used ? (double)(most - used) : 0;
}

/* Bytes that new allocations may take, as the kernel estimates; UNKNOWN when it does not say. */
static double left_to_machine(void)
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

/* What grows with the context: keys and values of every layer at two bytes a number, and for one graph
 * the mask, and without flash attention the scores of a layer.  A little less than it really takes:
 * a context that might fit is tried. */
static double needed(const struct engine_model_facts *model,
                     const struct llama_context_params *params)
{
    double tokens = params->n_ctx;
    double head = model->heads > 0 ? (double)model->embedding / model->heads : model->embedding;
    double cache = tokens * model->layers * 2 * model->heads_kv * head * 2;
    double mask = tokens / params->n_seq_max * params->n_ubatch * 4;
    double scores = params->flash_attn_type == 0 ? mask * model->heads : 0;
    return cache + mask + scores + (double)model->vocabulary * params->n_seq_max * 4;
}

enum err memory_suffices(const struct engine_model_facts *model,
                         const struct llama_context_params *params, struct error *why)
{
    double have = fmin(left_to_machine(), left_to_group()); /* of an unknown one the other */
    double need = needed(model, params);
    if (!is_known(have) || need <= have)
        return ERR_OK;
    return err_set(why, ERR_NO_MEMORY,
                   "a context of %u tokens takes %.2g GB, and %.2g GB of memory are available: ask "
                   "for a smaller context",
                   params->n_ctx, need * 1e-9, have * 1e-9);
}
