/* ABI compatibility of a libllama with our declarations.
 *
 * Two structures are passed by value, so a wrong layout would corrupt memory.  The library's own functions return their
 * defaults, so they are measured first: each function is called twice into buffers with different patterns, and every
 * byte that is equal afterwards was written.  Size and known defaults must match.  Argument lists cannot be checked
 * this way; for them there is a list of tested versions. */
#include <string.h>

#include "engine/llama_api.h"

/* Versions that the unit tests of the engine passed with, separated by ", ".  Run them with IPW_LLAMA_LIB set to a
 * library before adding its version. */
static const char TESTED_VERSIONS[] = "0.5.0";

/* A development build ("0.5.0-dev") counts as its version. */
bool llama_abi_is_tested(const char *version)
{
    size_t length = strlen(version);
    if (length > 4 && str_equal(version + length - 4, "-dev"))
        length -= 4;
    for (const char *row = TESTED_VERSIONS; *row;) {
        size_t row_length = strcspn(row, ",");
        if (row_length == length && memcmp(row, version, length) == 0)
            return true;
        row += row_length;
        row += strspn(row, ", ");
    }
    return false;
}

const char *engine_tested_versions(void)
{
    return TESTED_VERSIONS;
}

/* ---- structures ---- */

/* Much larger than the structures of any version. */
enum { BUFFER_SIZE = 4096 };

/* Calls a function that returns a large structure by value, with `to` as the return buffer.  C cannot express this for
 * a structure of unknown size, but the calling conventions can: the buffer is a hidden first argument on x86-64 and is
 * passed in x8 on aarch64. */
#if defined __x86_64__
static enum err call_into(llama_defaults function, void *to)
{
    void *(*returns)(void *) = NULL;
    memcpy(&returns, &function, sizeof returns);
    returns(to);
    return ERR_OK;
}
#elif defined __aarch64__
static enum err call_into(llama_defaults function, void *to)
{
    register void *buffer __asm__("x8") = to;
    register llama_defaults target __asm__("x9") = function;
    __asm__ volatile("blr %1"
                     : "+r"(buffer), "+r"(target)
                     :
                     : "memory", "cc", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x10", "x11",
                       "x12", "x13", "x14", "x15", "x16", "x17", "x30", "v0", "v1", "v2", "v3",
                       "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                       "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
                       "v27", "v28", "v29", "v30", "v31");
    return ERR_OK;
}
#else
static enum err call_into(llama_defaults function, void *to)
{
    (void)function;
    (void)to;
    return ERR_UNSUPPORTED;
}
#endif

struct returned {
    _Alignas(16) unsigned char bytes[BUFFER_SIZE];
    size_t size; /* up to the last byte written, including possible padding */
};

/* A written byte is independent of the buffer's previous content. */
static enum err measure(llama_defaults function, struct returned *out, struct error *why)
{
    _Alignas(16) unsigned char other[BUFFER_SIZE];
    memset(out->bytes, 0xa5, BUFFER_SIZE);
    memset(other, 0x5a, BUFFER_SIZE);
    if (call_into(function, out->bytes) || call_into(function, other))
        return err_set(why, ERR_UNSUPPORTED,
                       "in-process inference supports x86-64 and aarch64 only");
    size_t size = BUFFER_SIZE;
    while (size > 0 && out->bytes[size - 1] != other[size - 1])
        size--;
    const size_t align = _Alignof(void *);
    out->size = (size + align - 1) / align * align;
    return ERR_OK;
}

static enum err differs(const char *what, size_t size, size_t expected, struct error *why)
{
    if (size != expected)
        return err_set(why, ERR_UNSUPPORTED, "its %s has %zu bytes, expected %zu", what, size,
                       expected);
    return err_set(why, ERR_UNSUPPORTED, "its %s has an unexpected layout", what);
}

static bool is_known_model_params(const struct llama_model_params *p)
{
    return !p->devices && !p->tensor_buft_overrides && p->n_gpu_layers == -1 &&
           p->split_mode == 1 && p->load_mode == LLAMA_LOAD_AUTO && p->lazy_mode == 1 &&
           p->main_gpu == 0 && !p->tensor_split && !p->progress_callback &&
           !p->progress_callback_user_data && !p->kv_overrides && !p->vocab_only &&
           !p->check_tensors && p->use_extra_bufts && !p->no_host && !p->no_alloc && !p->load_mtp;
}

static bool is_known_context_params(const struct llama_context_params *p)
{
    enum { F16 = 1 }; /* dtype of the KV cache */
    return p->n_ctx == 512 && p->n_batch == 2048 && p->n_ubatch == 512 && p->n_seq_max == 1 &&
           p->n_rs_seq == 0 && p->n_outputs_max == 0 && p->n_outputs_max_per_seq == 1 &&
           p->n_threads == p->n_threads_batch && p->n_threads > 0 && p->ctx_type == 0 &&
           p->rope_scaling_type == -1 && p->pooling_type == -1 && p->attention_type == -1 &&
           p->flash_attn_type == -1 && p->rope_freq_base == 0 && p->yarn_ext_factor == -1 &&
           p->yarn_beta_slow == -1 && p->defrag_thold == -1 && !p->cb_eval &&
           !p->cb_eval_user_data && p->type_k == F16 && p->type_v == F16 && !p->abort_callback &&
           !p->abort_callback_data && !p->embeddings && p->offload_kqv && p->op_offload &&
           !p->kv_unified && !p->samplers && p->n_samplers == 0 && !p->ctx_other;
}

enum err llama_abi_read_defaults(llama_defaults model, llama_defaults context,
                                 struct llama_api *api, struct error *why)
{
    struct returned out;
    enum err err = measure(model, &out, why);
    if (err)
        return err;
    memcpy(&api->model_params, out.bytes, sizeof api->model_params);
    if (out.size != sizeof api->model_params || !is_known_model_params(&api->model_params))
        return differs("llama_model_params", out.size, sizeof api->model_params, why);
    err = measure(context, &out, why);
    if (err)
        return err;
    memcpy(&api->context_params, out.bytes, sizeof api->context_params);
    if (out.size != sizeof api->context_params || !is_known_context_params(&api->context_params))
        return differs("llama_context_params", out.size, sizeof api->context_params, why);
    return ERR_OK;
}
