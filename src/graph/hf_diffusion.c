/* The parts of a diffusion pipeline from the keys of their config.json, which has `_class_name` instead of
 * `model_type`: UNet2DConditionModel, AutoencoderKL and FluxTransformer2DModel of diffusers. */
#include <string.h>

#include "core/text.h"
#include "graph/hf.h"
#include "graph/hf_keys.h"
#include "port/json_read.h"

enum { LAYERS_MAX = 8, FLUX_IMAGE = 1024, FLUX_PACKED = 2 /* latents of a side, in a patch */ };

static int64_t size(struct hf_keys *keys, const char *name, uint64_t max, uint64_t otherwise)
{
    return (int64_t)hf_keys_size(keys, name, max, otherwise);
}

/* How many levels there are: entries of block_out_channels. */
static int read_channels(struct hf_keys *keys, const int64_t *otherwise, size_t count,
                         int64_t channels[DIFFUSION_LEVELS_MAX])
{
    const struct jv *list = hf_keys_get(keys, "block_out_channels");
    size_t levels = list ? jv_count(list) : count;
    if (levels < 1 || levels > DIFFUSION_LEVELS_MAX) {
        hf_keys_reject(keys, ERR_BAD_VALUE, "block_out_channels", "must have 1 to 8 entries");
        return 1;
    }
    memcpy(channels, otherwise, count * sizeof *channels);
    hf_keys_sizes(keys, "block_out_channels", HF_MAX_SIZE, levels, channels, channels);
    return (int)levels;
}

/* One number for all levels, or one each. */
static void read_each(struct hf_keys *keys, const char *name, uint64_t max, int levels,
                      int64_t otherwise, int64_t out[DIFFUSION_LEVELS_MAX])
{
    bool is_list = jv_is_array(hf_keys_get(keys, name));
    int64_t one = is_list ? otherwise : size(keys, name, max, (uint64_t)otherwise);
    for (int i = 0; i < levels; i++)
        out[i] = one;
    if (is_list)
        hf_keys_sizes(keys, name, max, (size_t)levels, out, out);
}

/* Whether the block of each level has attention, from its name. */
static void read_blocks(struct hf_keys *keys, const char *name, const char *plain,
                        const char *attending, int levels, bool out[DIFFUSION_LEVELS_MAX])
{
    const struct jv *list = hf_keys_get(keys, name), *one = jv_first(list);
    if (list && jv_count(list) != (size_t)levels)
        hf_keys_reject(keys, ERR_BAD_VALUE, name, "must have one entry per block_out_channels");
    for (int i = 0; i < levels && list; i++, one = jv_next(one)) {
        const char *type = jv_text(one);
        out[i] = type && str_equal(type, attending);
        if (!out[i] && !(type && str_equal(type, plain))) {
            char what[120];
            chars_format(what, "not supported, only %s and %s are", plain, attending);
            hf_keys_reject(keys, ERR_UNSUPPORTED, name, what);
            return;
        }
    }
}

/* Keys that change the operations must have the value of Stable Diffusion. */
static void check_strings(struct hf_keys *keys)
{
    static const struct {
        const char *name, *value;
    } FIXED[] = {{"class_embed_type", NULL},
                 {"encoder_hid_dim_type", NULL},
                 {"resnet_time_scale_shift", "default"},
                 {"time_embedding_type", "positional"},
                 {"attention_type", "default"},
                 {"act_fn", "silu"}};
    static const char *const ABSENT[] = {"dual_cross_attention", "only_cross_attention",
                                         "class_embeddings_concat", "resnet_skip_time_act",
                                         "mid_block_only_cross_attention"};
    static const char *const NONE[] = {"num_class_embeds", "time_cond_proj_dim", "encoder_hid_dim",
                                       "time_embedding_dim"};
    for (size_t i = 0; i < COUNT_OF(FIXED); i++) {
        const char *value = hf_keys_string(keys, FIXED[i].name);
        if (value && !(FIXED[i].value && str_equal(value, FIXED[i].value)))
            hf_keys_reject(keys, ERR_UNSUPPORTED, FIXED[i].name, "not supported");
    }
    for (size_t i = 0; i < COUNT_OF(ABSENT); i++)
        if (hf_keys_bool(keys, ABSENT[i], false))
            hf_keys_reject(keys, ERR_UNSUPPORTED, ABSENT[i], "not supported");
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
        if (hf_keys_optional(keys, NONE[i], HF_MAX_SIZE))
            hf_keys_reject(keys, ERR_UNSUPPORTED, NONE[i], "not supported");
}

/* Without effect on the operations. */
static void ignore(struct hf_keys *keys)
{
    static const char *const IGNORED[] = {"flip_sin_to_cos",  "center_input_sample",
                                          "freq_shift",       "downsample_padding",
                                          "norm_num_groups",  "mid_block_scale_factor",
                                          "norm_eps",         "upcast_attention",
                                          "conv_in_kernel",   "conv_out_kernel",
                                          "force_upcast",     "scaling_factor",
                                          "shift_factor",     "addition_time_embed_dim",
                                          "latents_mean",     "latents_std",
                                          "down_block_types", "up_block_types",
                                          "out_channels",     "resnet_out_scale_factor",
                                          "sample_size",      "in_channels",
                                          "mid_block_type"};
    for (size_t i = 0; i < COUNT_OF(IGNORED); i++)
        (void)hf_keys_get(keys, IGNORED[i]);
    (void)hf_keys_get(keys, "addition_embed_type_num_heads");
}

static void read_added(struct hf_keys *keys, struct diffusion_unet *unet)
{
    const char *type = hf_keys_string(keys, "addition_embed_type");
    uint64_t features =
        hf_keys_optional(keys, "projection_class_embeddings_input_dim", HF_MAX_SIZE);
    if (!type)
        return;
    unet->added_features = (int64_t)features;
    if (!str_equal(type, "text_time"))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "addition_embed_type", "only text_time is supported");
    else if (!features)
        hf_keys_reject(keys, ERR_BAD_VALUE, "projection_class_embeddings_input_dim",
                       "is needed with addition_embed_type");
}

static void check_heads(struct hf_keys *keys, const struct diffusion_unet *unet)
{
    for (int i = 0; i < unet->levels; i++)
        if (unet->level[i].channels % unet->level[i].heads)
            hf_keys_reject(keys, ERR_BAD_VALUE, "num_attention_heads|attention_head_dim",
                           "does not divide 'block_out_channels'");
}

static void read_unet(struct hf_keys *keys, struct hf_config *out)
{
    static const int64_t CHANNELS[] = {320, 640, 1280, 1280};
    int64_t channels[DIFFUSION_LEVELS_MAX] = {0}, heads[DIFFUSION_LEVELS_MAX];
    int64_t transformers[DIFFUSION_LEVELS_MAX];
    bool down[DIFFUSION_LEVELS_MAX] = {true, true, true};
    bool up[DIFFUSION_LEVELS_MAX] = {false, true, true, true};
    struct diffusion_unet unet = {
        .levels = read_channels(keys, CHANNELS, COUNT_OF(CHANNELS), channels),
        .layers = (int)size(keys, "layers_per_block", LAYERS_MAX, 2),
        .in_channels = size(keys, "in_channels", HF_MAX_SIZE, 4),
        .out_channels = size(keys, "out_channels", HF_MAX_SIZE, 4),
        .text_features = size(keys, "cross_attention_dim", HF_MAX_SIZE, 1280),
        .has_linear_projection = hf_keys_bool(keys, "use_linear_projection", false),
    };
    /* attention_head_dim is the number of heads: a name that was kept. */
    read_each(keys, "num_attention_heads|attention_head_dim", HF_MAX_HEADS, unet.levels, 8, heads);
    read_each(keys, "transformer_layers_per_block", HF_MAX_LAYERS, unet.levels, 1, transformers);
    read_blocks(keys, "down_block_types", "DownBlock2D", "CrossAttnDownBlock2D", unet.levels, down);
    read_blocks(keys, "up_block_types", "UpBlock2D", "CrossAttnUpBlock2D", unet.levels, up);
    for (int i = 0; i < unet.levels; i++)
        unet.level[i] = (struct diffusion_level){.channels = channels[i],
                                                 .heads = heads[i],
                                                 .transformers = (int)transformers[i],
                                                 .attends = down[i],
                                                 .attends_upward = up[unet.levels - 1 - i]};
    const char *middle = hf_keys_string(keys, "mid_block_type");
    if (middle && !str_equal(middle, "UNetMidBlock2DCrossAttn"))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "mid_block_type",
                       "only UNetMidBlock2DCrossAttn is supported");
    read_added(keys, &unet);
    check_heads(keys, &unet);
    check_strings(keys);
    out->as.unet = unet;
    out->image = DIFFUSION_VAE_SCALE * size(keys, "sample_size", HF_MAX_PIXELS, 64);
}

static void read_vae(struct hf_keys *keys, struct hf_config *out)
{
    static const int64_t CHANNELS[] = {64};
    struct diffusion_vae vae = {
        .layers = (int)size(keys, "layers_per_block", LAYERS_MAX, 1),
        .in_channels = size(keys, "in_channels", HF_MAX_SIZE, 3),
        .out_channels = size(keys, "out_channels", HF_MAX_SIZE, 3),
        .latent_channels = size(keys, "latent_channels", HF_MAX_SIZE, 4),
        .has_encoder = true,
        .has_decoder = true,
        .has_no_quant_conv = !hf_keys_bool(keys, "use_quant_conv", true),
        .has_no_post_quant_conv = !hf_keys_bool(keys, "use_post_quant_conv", true),
        .has_no_attention = !hf_keys_bool(keys, "mid_block_add_attention", true),
    };
    bool unused[DIFFUSION_LEVELS_MAX];
    vae.levels = read_channels(keys, CHANNELS, COUNT_OF(CHANNELS), vae.channels);
    read_blocks(keys, "down_block_types", "DownEncoderBlock2D", "DownEncoderBlock2D", vae.levels,
                unused);
    read_blocks(keys, "up_block_types", "UpDecoderBlock2D", "UpDecoderBlock2D", vae.levels, unused);
    out->as.vae = vae;
    out->image = size(keys, "sample_size", HF_MAX_PIXELS, 512);
}

static void read_flux(struct hf_keys *keys, struct hf_config *out)
{
    struct diffusion_flux flux = {
        .layers = (int)size(keys, "num_layers", HF_MAX_LAYERS, 19),
        .single_layers = (int)size(keys, "num_single_layers", HF_MAX_LAYERS, 38),
        .heads = size(keys, "num_attention_heads", HF_MAX_HEADS, 24),
        .head_size = size(keys, "attention_head_dim", HF_MAX_HEADS, 128),
        .in_channels = size(keys, "in_channels", HF_MAX_SIZE, 64),
        .text_features = size(keys, "joint_attention_dim", HF_MAX_SIZE, 4096),
        .pooled_features = size(keys, "pooled_projection_dim", HF_MAX_SIZE, 768),
        .has_guidance = hf_keys_bool(keys, "guidance_embeds", false),
    };
    flux.out_channels = size(keys, "out_channels", HF_MAX_SIZE, (uint64_t)flux.in_channels);
    if (size(keys, "patch_size", HF_MAX_HEADS, 1) != 1)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "patch_size", "only 1 is supported");
    (void)hf_keys_get(keys, "axes_dims_rope");
    out->as.flux = flux;
    out->image = FLUX_IMAGE;
}

/* Classes of diffusers that are read. */
static const struct {
    const char *name;
    enum hf_kind kind;
    void (*read)(struct hf_keys *keys, struct hf_config *out);
} CLASSES[] = {{"UNet2DConditionModel", HF_UNET, read_unet},
               {"AutoencoderKL", HF_VAE, read_vae},
               {"FluxTransformer2DModel", HF_FLUX, read_flux}};

void hf_diffusion_read(struct hf_keys *keys, const char *class_name, struct hf_config *out)
{
    for (size_t i = 0; i < COUNT_OF(CLASSES); i++)
        if (str_equal(CLASSES[i].name, class_name)) {
            out->kind = CLASSES[i].kind;
            CLASSES[i].read(keys, out);
            ignore(keys);
            return;
        }
    hf_keys_reject(keys, ERR_UNSUPPORTED, "_class_name",
                   "of diffusers, only UNet2DConditionModel, AutoencoderKL and "
                   "FluxTransformer2DModel are supported");
}

/* The image is a multiple of this many pixels. */
static int64_t multiple_of(const struct hf_config *config)
{
    if (config->kind == HF_FLUX)
        return DIFFUSION_VAE_SCALE * FLUX_PACKED;
    if (config->kind == HF_UNET)
        return (int64_t)DIFFUSION_VAE_SCALE << (config->as.unet.levels - 1);
    return (int64_t)1 << (config->as.vae.levels - 1);
}

tensor_id hf_diffusion_build(struct build *b, const struct hf_config *config,
                             const struct graph_options *options)
{
    int64_t multiple = multiple_of(config), side = options->image / multiple;
    if (options->image % multiple) {
        b->err =
            err_set(b->why, ERR_BAD_VALUE, "%s: image size must be a multiple of %lld, not %lld",
                    b->graph->name, (long long)multiple, (long long)options->image);
        return GRAPH_NONE;
    }
    if (config->kind == HF_FLUX)
        return diffusion_flux(b, &config->as.flux, options->batch, side * side);
    if (config->kind == HF_UNET)
        return diffusion_unet(b, &config->as.unet, options->batch,
                              options->image / DIFFUSION_VAE_SCALE);
    return diffusion_vae(b, &config->as.vae, options->batch, options->image);
}
