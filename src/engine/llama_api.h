/* Our declarations of libllama: the types and functions that are used, under the library's own names, as in the
 * versions listed in llama_abi.c; and what the files of the engine share.  The table of functions is filled once and
 * then read-only. */
#ifndef IPW_ENGINE_LLAMA_API_H
#define IPW_ENGINE_LLAMA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "engine/engine.h"

struct llama_model;
struct llama_context;
struct llama_vocab;
struct llama_sampler;
struct llama_memory_i;
struct ggml_tensor;
struct ggml_backend_device;
struct ggml_backend_reg;
struct ggml_threadpool;

typedef int32_t llama_token;
typedef void (*llama_log_callback)(int level, const char *text, void *data);
typedef void (*llama_abort_callback)(const char *message);

enum { LLAMA_LOG_DEBUG = 1, LLAMA_LOG_ERROR = 4, LLAMA_LOG_CONTINUED = 5 };
enum { LLAMA_VOCAB_NONE = 0 };
enum { LLAMA_LOAD_AUTO = -1, LLAMA_LOAD_READ = 0 };
enum { LLAMA_DECODED = 0, LLAMA_NO_ROOM = 1, LLAMA_ABORTED = 2 };

struct llama_model_params {
    void *devices;
    const void *tensor_buft_overrides;
    int32_t n_gpu_layers;
    int32_t split_mode;
    int32_t load_mode;
    int32_t lazy_mode;
    int32_t main_gpu;
    const float *tensor_split;
    bool (*progress_callback)(float progress, void *data);
    void *progress_callback_user_data;
    const void *kv_overrides;
    bool vocab_only;
    bool check_tensors;
    bool use_extra_bufts;
    bool no_host;
    bool no_alloc;
    bool load_mtp;
};

struct llama_context_params {
    uint32_t n_ctx;
    uint32_t n_batch;
    uint32_t n_ubatch;
    uint32_t n_seq_max;
    uint32_t n_rs_seq;
    uint32_t n_outputs_max;
    uint32_t n_outputs_max_per_seq;
    int32_t n_threads;
    int32_t n_threads_batch;
    int32_t ctx_type;
    int32_t rope_scaling_type;
    int32_t pooling_type;
    int32_t attention_type;
    int32_t flash_attn_type;
    float rope_freq_base;
    float rope_freq_scale;
    float yarn_ext_factor;
    float yarn_attn_factor;
    float yarn_beta_fast;
    float yarn_beta_slow;
    uint32_t yarn_orig_ctx;
    float defrag_thold;
    bool (*cb_eval)(struct ggml_tensor *node, bool ask, void *data);
    void *cb_eval_user_data;
    int32_t type_k;
    int32_t type_v;
    bool (*abort_callback)(void *data);
    void *abort_callback_data;
    bool embeddings;
    bool offload_kqv;
    bool no_perf;
    bool op_offload;
    bool swa_full;
    bool kv_unified;
    void *samplers;
    size_t n_samplers;
    struct llama_context *ctx_other;
};

struct llama_batch {
    int32_t n_tokens;
    llama_token *token;
    float *embd;
    int32_t *pos;
    int32_t *n_seq_id;
    int32_t **seq_id;
    int8_t *logits;
};

struct llama_sampler_chain_params {
    bool no_perf;
};

struct llama_chat_message {
    const char *role;
    const char *content;
};

struct llama_api {
#define SYMBOL(result, name, arguments) result(*name) arguments;
#include "engine/llama_api.def"
#undef SYMBOL
    /* The library's defaults. */
    struct llama_model_params model_params;
    struct llama_context_params context_params;
};

/* ---- llama_abi.c: ABI compatibility ---- */

/* A function of the library that returns a structure of unknown size by value. */
typedef void (*llama_defaults)(void);

/* Reads both default structures into *api.  ERR_UNSUPPORTED, with the difference, if their layout is not as
 * declared. */
enum err llama_abi_read_defaults(llama_defaults model, llama_defaults context,
                                 struct llama_api *api, struct error *why) MUST_USE;
bool llama_abi_is_tested(const char *version);

/* ---- library.c ---- */

/* The library that engine_library_open opened; only valid after it has succeeded. */
const struct llama_api *engine_api(void);

/* Looks up further functions of that library. */
struct dl_symbol;
enum err engine_load(const struct dl_symbol *symbols, size_t count, struct error *why) MUST_USE;

/* The library's first error message in this thread since engine_log_clear, without the name of the function that
 * reported it; "" if there was none. */
void engine_log_clear(void);
const char *engine_log_error(void);

/* ---- model.c ---- */

struct engine_model {
    struct llama_model *llama;
    const struct llama_vocab *vocabulary;
    const char *chat_template; /* owned by the library; NULL for none */
    struct engine_model_facts facts;
    struct engine_model_options options;
    char *path;
    struct ggml_threadpool *threads; /* pool of contexts with keep_threads; NULL: not created yet */
    struct engine_model *next;       /* shared models only, as `users` */
    unsigned users;
};

/* The model's thread pool, created on first use; NULL if the library has none. */
struct ggml_threadpool *engine_model_threads(struct engine_model *model, int threads);

/* Threads that persist between graphs.  NULL if the library has none. */
struct ggml_threadpool *engine_pool_new(int threads);
void engine_pool_free(struct ggml_threadpool *pool);

/* A function of the CPU backend's library, which libllama does not export; NULL if it has none of this name. */
typedef void (*engine_function)(void);
engine_function engine_cpu_function(const char *name);

#endif
