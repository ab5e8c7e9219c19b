/* State-space models from the keys of a config.json: Mamba, Mamba-2, and the mixer of Falcon-H1's layers. */
#include <string.h>

#include "core/text.h"
#include "graph/decoder_shape.h"
#include "graph/hf.h"
#include "graph/hf_keys.h"
#include "port/json_read.h"

static int64_t size(struct hf_keys *keys, const char *names, uint64_t max, int64_t otherwise)
{
    return (int64_t)hf_keys_size(keys, names, max, (uint64_t)otherwise);
}

static bool has_no_head(struct hf_keys *keys, const char *known)
{
    const char *purpose = hf_keys_purpose(keys);
    bool is_bare = str_equal(purpose, "Model");
    if (purpose[0] && !is_bare && !str_equal(purpose, "ForCausalLM") &&
        !str_equal(purpose, "LMHeadModel"))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "architectures", known);
    return is_bare;
}

/* "auto", or a number. */
static int64_t size_or_auto(struct hf_keys *keys, const char *name, int64_t of_auto)
{
    return jv_text(hf_keys_get(keys, name)) ? of_auto : size(keys, name, HF_MAX_SIZE, of_auto);
}

void hf_mamba_read(struct hf_keys *keys, struct hf_config *out)
{
    struct transformer_mamba mamba = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .hidden = size(keys, "hidden_size|d_model", HF_MAX_SIZE, 0),
        .layers = (int)size(keys, "num_hidden_layers|n_layer", HF_MAX_LAYERS, 0),
        .state = size(keys, "state_size", HF_MAX_HEADS, 16),
        .kernel = size(keys, "conv_kernel", HF_MAX_HEADS, 4),
        .has_bias = hf_keys_bool(keys, "use_bias", false),
        .has_no_conv_bias = !hf_keys_bool(keys, "use_conv_bias", true),
        .has_own_head = !hf_keys_bool(keys, "tie_word_embeddings", true),
        .has_no_head = has_no_head(keys, "not supported with this model_type, only "
                                         "MambaForCausalLM and MambaModel are"),
    };
    /* It follows from expand. */
    (void)hf_keys_optional(keys, "intermediate_size|d_inner", HF_MAX_SIZE);
    mamba.inner = size(keys, "expand", 64, 2) * mamba.hidden;
    mamba.rank = size_or_auto(keys, "time_step_rank", (mamba.hidden + 15) / 16);
    out->as.mamba = mamba;
    out->tokens = DECODER_DEFAULT_TOKENS;
    out->has_phases = true;
}

/* ---- Mamba-2 ---- */

static void check_mixer(struct hf_keys *keys, const struct mamba2_mixer *mixer, const char *heads,
                        int64_t head_size, const char *groups)
{
    if (mixer->inner != mixer->heads * head_size)
        hf_keys_reject(keys, ERR_BAD_VALUE, heads,
                       "times the size of a head is not the size of the state");
    else if (mixer->heads % mixer->groups)
        hf_keys_reject(keys, ERR_BAD_VALUE, groups, "does not divide the number of heads");
}

void hf_mamba2_read(struct hf_keys *keys, struct hf_config *out)
{
    int64_t hidden = size(keys, "hidden_size", HF_MAX_SIZE, 0);
    struct mamba2_mixer mixer = {
        .hidden = hidden,
        .inner = size(keys, "expand", 64, 2) * hidden,
        .heads = size(keys, "num_heads", HF_MAX_HEADS, 128),
        .groups = size(keys, "n_groups", HF_MAX_HEADS, 8),
        .state = size(keys, "state_size", HF_MAX_HEADS, 128),
        .kernel = size(keys, "conv_kernel", HF_MAX_HEADS, 4),
        .chunk = size(keys, "chunk_size", HF_MAX_SIZE, 256),
        .has_bias = hf_keys_bool(keys, "use_bias", false),
        .has_no_conv_bias = !hf_keys_bool(keys, "use_conv_bias", true),
        .has_norm = true,
    };
    mixer.has_output_bias = mixer.has_bias;
    (void)size_or_auto(keys, "time_step_rank", 1); /* of Mamba: the step is per head */
    check_mixer(keys, &mixer, "num_heads", size(keys, "head_dim", HF_MAX_HEADS, 64), "n_groups");
    out->as.mamba2 = (struct transformer_mamba2){
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 32768),
        .layers = (int)size(keys, "num_hidden_layers", HF_MAX_LAYERS, 64),
        .mixer = mixer,
        .has_own_head = !hf_keys_bool(keys, "tie_word_embeddings", false),
        .has_no_head = has_no_head(keys, "not supported with this model_type, only "
                                         "Mamba2ForCausalLM and Mamba2Model are"),
    };
    out->tokens = DECODER_DEFAULT_TOKENS;
    out->has_phases = true;
}

/* ---- Falcon-H1 ---- */

void hf_mixer_read(struct hf_keys *keys, struct decoder_shape *shape)
{
    int64_t hidden = (int64_t)shape->embedding;
    int64_t expanded = size(keys, "mamba_expand", 64, 2) * hidden;
    bool is_null = jv_get(keys->json, "mamba_d_ssm") && !hf_keys_get(keys, "mamba_d_ssm");
    struct mamba2_mixer mixer = {
        .hidden = hidden,
        .inner = is_null ? expanded : size(keys, "mamba_d_ssm", HF_MAX_SIZE, 1024),
        .heads = size(keys, "mamba_n_heads", HF_MAX_HEADS, 128),
        .groups = size(keys, "mamba_n_groups", HF_MAX_HEADS, 1),
        .state = size(keys, "mamba_d_state", HF_MAX_HEADS, 256),
        .kernel = size(keys, "mamba_d_conv", HF_MAX_HEADS, 4),
        .chunk = size(keys, "mamba_chunk_size", HF_MAX_SIZE, 256),
        .has_bias = hf_keys_bool(keys, "mamba_proj_bias", false),
        .has_output_bias = hf_keys_bool(keys, "projectors_bias", false),
        .has_no_conv_bias = !hf_keys_bool(keys, "mamba_conv_bias", true),
        .has_norm = hf_keys_bool(keys, "mamba_rms_norm", false),
    };
    (void)hf_keys_bool(keys, "mamba_norm_before_gate", true);
    (void)hf_keys_bool(keys, "mamba_use_mlp", true);
    check_mixer(keys, &mixer, "mamba_n_heads",
                size_or_auto(keys, "mamba_d_head", mixer.inner / mixer.heads), "mamba_n_groups");
    shape->mixer = mixer;
}
