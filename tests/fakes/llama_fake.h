/* A libllama with one defect, which the including file selects: its version (VERSION), the size or order
 * of its structures (EXTRA_BYTES, SWAP_MEMBERS), missing functions (LACKS_FUNCTIONS) or backends
 * (LACKS_BACKENDS).  Its functions do nothing. */
#include <string.h>

#include "engine/llama_api.h"

#pragma GCC visibility push(default)

#ifdef VERSION
const char *llama_version(void);
const char *llama_version(void)
{
    return VERSION;
}
#endif

#ifndef EXTRA_BYTES
#define EXTRA_BYTES 0
#endif

struct returned_model_params {
    struct llama_model_params params;
};

/* Larger than declared by EXTRA_BYTES. */
struct returned_context_params {
    struct llama_context_params params;
#if EXTRA_BYTES > 0
    char extra[EXTRA_BYTES];
#endif
};

struct returned_model_params llama_model_default_params(void);
struct returned_model_params llama_model_default_params(void)
{
    struct returned_model_params out;
    memset(&out, 0, sizeof out);
    out.params.n_gpu_layers = -1;
    out.params.split_mode = 1;
    out.params.load_mode = LLAMA_LOAD_AUTO;
    out.params.lazy_mode = 1;
    out.params.use_extra_bufts = true;
    return out;
}

struct returned_context_params llama_context_default_params(void);
struct returned_context_params llama_context_default_params(void)
{
    struct returned_context_params out;
    memset(&out, 0, sizeof out);
    struct llama_context_params *p = &out.params;
    p->n_ctx = 512;
    p->n_batch = 2048;
    p->n_ubatch = 512;
    p->n_seq_max = 1;
    p->n_outputs_max_per_seq = 1;
    p->n_threads = p->n_threads_batch = 4;
    p->rope_scaling_type = p->pooling_type = p->attention_type = p->flash_attn_type = -1;
    p->yarn_ext_factor = p->yarn_attn_factor = p->yarn_beta_fast = p->yarn_beta_slow = -1;
    p->defrag_thold = -1;
    p->type_k = p->type_v = 1;
    p->offload_kqv = p->no_perf = p->op_offload = p->swa_full = true;
#ifdef SWAP_MEMBERS
    p->n_batch = 512;
    p->n_ubatch = 2048;
#endif
    return out;
}

/* The rest is only looked up; the few that are called while opening return 0. */
#ifndef LACKS_FUNCTIONS
#ifdef LACKS_BACKENDS
#define BACKENDS 0
#else
#define BACKENDS 1
#endif
#define SYMBOL(result, name, arguments)                                                            \
    long name(void);                                                                               \
    long name(void)                                                                                \
    {                                                                                              \
        return strcmp(#name, "ggml_backend_reg_count") == 0 ? BACKENDS : 0;                        \
    }
#include "engine/llama_api.def"
#undef SYMBOL
#endif

#pragma GCC visibility pop
