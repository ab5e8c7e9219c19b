/* UNet and VAE: residual blocks of convolutions at several resolutions, with transformers over the pixels of some. */
#include "graph/diffusion.h"

#include "core/text.h"
#include "graph/blocks.h"

enum { NAME_MAX_LENGTH = 64, TIME_FACTOR = 4 };

static struct build_conv biased_conv(int64_t channels, int32_t kernel, int32_t stride)
{
    return (struct build_conv){.channels = channels,
                               .kernel = kernel,
                               .stride = stride,
                               .pad = kernel / 2,
                               .has_bias = true};
}

/* ---- residual blocks of UNet and VAE ---- */

/* `time` is the embedding of the step, or GRAPH_NONE. */
static tensor_id resnet_block(struct build *b, tensor_id in, int64_t channels, tensor_id time)
{
    tensor_id x = build_norm(b, GRAPH_GROUP_NORM, "norm1", in);
    x = build_op(b, GRAPH_SILU, "nonlinearity", x);
    x = build_conv(b, "conv1", x, biased_conv(channels, 3, 1));
    if (time >= 0) {
        tensor_id shift = build_op(b, GRAPH_SILU, "time_nonlinearity", time);
        shift = build_linear(b, "time_emb_proj", shift, channels, true);
        shift = build_view(b, "time_view", shift, DIMS(build_dim(b, shift, 0), channels, 1, 1));
        x = build_binary(b, GRAPH_ADD, "time_add", x, shift);
    }
    x = build_norm(b, GRAPH_GROUP_NORM, "norm2", x);
    x = build_op(b, GRAPH_SILU, "nonlinearity_1", x);
    x = build_conv(b, "conv2", x, biased_conv(channels, 3, 1));
    if (build_dim(b, in, 1) != channels)
        in = build_conv(b, "conv_shortcut", in, biased_conv(channels, 1, 1));
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id upsample(struct build *b, tensor_id x)
{
    int64_t channels = build_dim(b, x, 1);
    x = build_move(
        b, "interpolate", x,
        DIMS(build_dim(b, x, 0), channels, 2 * build_dim(b, x, 2), 2 * build_dim(b, x, 3)));
    return build_conv(b, "conv", x, biased_conv(channels, 3, 1));
}

/* Pixels as tokens: (batch, height x width, channels); and back. */
static tensor_id as_tokens(struct build *b, tensor_id x)
{
    return build_rearrange(
        b, "permute", x,
        DIMS(build_dim(b, x, 0), build_dim(b, x, 2) * build_dim(b, x, 3), build_dim(b, x, 1)));
}

static tensor_id as_image(struct build *b, tensor_id x, tensor_id like)
{
    return build_rearrange(b, "permute_1", x,
                           DIMS(build_dim(b, like, 0), build_dim(b, x, 2), build_dim(b, like, 2),
                                build_dim(b, like, 3)));
}

static tensor_id output_conv(struct build *b, tensor_id x, int64_t channels)
{
    x = build_norm(b, GRAPH_GROUP_NORM, "conv_norm_out", x);
    x = build_op(b, GRAPH_SILU, "conv_act", x);
    return build_conv(b, "conv_out", x, biased_conv(channels, 3, 1));
}

/* ---- UNet ---- */

static const struct block_names SELF_NAMES = {
    .attention = {"norm1", "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1", "attn1.to_out.0",
                  "add"},
    .feed_forward = {"norm3", "ff.net.0.proj", "ff.net.0.gelu", "ff.net.2", "add_2"},
};

static const struct block_attention_names TEXT_NAMES = {
    "norm2", "attn2.to_q", "attn2.to_k", "attn2.to_v", "attn2", "attn2.to_out.0", "add_1"};

struct unet {
    const struct diffusion_unet *sizes;
    tensor_id time, text;
    tensor_id skips[64]; /* skip connections from the down to the up blocks */
    int skip_count;
};

/* Self-attention over pixels, then cross-attention to the text. */
static tensor_id add_transformers(struct build *b, const struct unet *unet,
                                  const struct diffusion_level *level, const char *scope,
                                  tensor_id x)
{
    struct block block = {.hidden = level->channels,
                          .heads = level->heads,
                          .intermediate = 4 * level->channels,
                          .activation = GRAPH_GELU,
                          .is_gated = true,
                          .has_no_qkv_bias = true};
    struct block_pass cross = {.cross_tokens = DIFFUSION_TEXT_TOKENS, .cross_states = unet->text};
    for (int i = 0; i < level->transformers; i++) {
        build_scope(b, "%stransformer_blocks.%d.", scope, i);
        x = block_attention(b, &block, &SELF_NAMES.attention, &(struct block_pass){0}, x);
        x = block_attention(b, &block, &TEXT_NAMES, &cross, x);
        x = block_feed_forward(b, &block, &SELF_NAMES.feed_forward, x);
    }
    build_scope(b, "%s", scope);
    return x;
}

/* A projection, layers of transformers, and another projection. */
static tensor_id unet_attention(struct build *b, const struct unet *unet,
                                const struct diffusion_level *level, const char *scope,
                                tensor_id in)
{
    int64_t channels = level->channels;
    bool is_linear = unet->sizes->has_linear_projection;
    build_scope(b, "%s", scope);
    tensor_id normed = build_norm(b, GRAPH_GROUP_NORM, "norm", in), x;
    if (is_linear) {
        x = build_linear(b, "proj_in", as_tokens(b, normed), channels, true);
        x = add_transformers(b, unet, level, scope, x);
        x = as_image(b, build_linear(b, "proj_out", x, channels, true), in);
    } else {
        x = build_conv(b, "proj_in", normed, biased_conv(channels, 1, 1));
        x = add_transformers(b, unet, level, scope, as_tokens(b, x));
        x = build_conv(b, "proj_out", as_image(b, x, in), biased_conv(channels, 1, 1));
    }
    return build_binary(b, GRAPH_ADD, "add", x, in);
}

static tensor_id save_skip(struct build *b, struct unet *unet, tensor_id x)
{
    if (unet->skip_count == (int)COUNT_OF(unet->skips))
        return build_fail(b, "", "has too many layers");
    unet->skips[unet->skip_count++] = x;
    return x;
}

static tensor_id unet_down(struct build *b, struct unet *unet, tensor_id x)
{
    const struct diffusion_unet *sizes = unet->sizes;
    char scope[NAME_MAX_LENGTH];
    for (int i = 0; i < sizes->levels; i++) {
        const struct diffusion_level *level = &sizes->level[i];
        for (int k = 0; k < sizes->layers; k++) {
            build_scope(b, "down_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, level->channels, unet->time);
            chars_format(scope, "down_blocks.%d.attentions.%d.", i, k);
            x = save_skip(b, unet, level->attends ? unet_attention(b, unet, level, scope, x) : x);
        }
        build_scope(b, "down_blocks.%d.downsamplers.0.", i);
        if (i + 1 < sizes->levels)
            x = save_skip(b, unet, build_conv(b, "conv", x, biased_conv(level->channels, 3, 2)));
    }
    return x;
}

static tensor_id unet_middle(struct build *b, const struct unet *unet, tensor_id x)
{
    const struct diffusion_level *last = &unet->sizes->level[unet->sizes->levels - 1];
    build_scope(b, "mid_block.resnets.0.");
    x = resnet_block(b, x, last->channels, unet->time);
    if (!unet->sizes->has_no_middle_attention)
        x = unet_attention(b, unet, last, "mid_block.attentions.0.", x);
    build_scope(b, "mid_block.resnets.1.");
    return resnet_block(b, x, last->channels, unet->time);
}

static tensor_id unet_up(struct build *b, struct unet *unet, tensor_id x)
{
    const struct diffusion_unet *sizes = unet->sizes;
    char scope[NAME_MAX_LENGTH];
    for (int i = 0; i < sizes->levels && !b->err; i++) {
        const struct diffusion_level *level = &sizes->level[sizes->levels - 1 - i];
        for (int k = 0; k < sizes->layers + 1; k++) {
            build_scope(b, "up_blocks.%d.resnets.%d.", i, k);
            tensor_id both[] = {x, unet->skips[--unet->skip_count]};
            x = build_concat(b, "cat", 1, both, 2);
            x = resnet_block(b, x, level->channels, unet->time);
            chars_format(scope, "up_blocks.%d.attentions.%d.", i, k);
            if (level->attends_upward)
                x = unet_attention(b, unet, level, scope, x);
        }
        build_scope(b, "up_blocks.%d.upsamplers.0.", i);
        if (i + 1 < sizes->levels)
            x = upsample(b, x);
    }
    build_root(b);
    return x;
}

/* Two linear layers over features of the step, or of size and pooled text. */
static tensor_id embed(struct build *b, const char *scope, tensor_id x, int64_t features)
{
    build_scope(b, "%s", scope);
    x = build_linear(b, "linear_1", x, features, true);
    x = build_op(b, GRAPH_SILU, "act", x);
    x = build_linear(b, "linear_2", x, features, true);
    build_root(b);
    return x;
}

static tensor_id embed_time(struct build *b, const struct diffusion_unet *unet, int64_t batch)
{
    int64_t channels = unet->level[0].channels, features = TIME_FACTOR * channels;
    tensor_id x = build_input(b, "timestep_features", GRAPH_FLOAT, DIMS(batch, channels));
    x = embed(b, "time_embedding.", x, features);
    if (!unet->added_features)
        return x;
    tensor_id added =
        build_input(b, "added_conditions", GRAPH_FLOAT, DIMS(batch, unet->added_features));
    added = embed(b, "add_embedding.", added, features);
    return build_binary(b, GRAPH_ADD, "add_conditions", x, added);
}

tensor_id diffusion_unet(struct build *b, const struct diffusion_unet *sizes, int64_t batch,
                         int64_t side)
{
    tensor_id x =
        build_input(b, "sample", GRAPH_FLOAT, DIMS(batch, sizes->in_channels, side, side));
    struct unet unet = {.sizes = sizes, .time = embed_time(b, sizes, batch)};
    unet.text = build_input(b, "encoder_hidden_states", GRAPH_FLOAT,
                            DIMS(batch, DIFFUSION_TEXT_TOKENS, sizes->text_features));
    b->graph->batch = (double)batch;
    x = save_skip(b, &unet,
                  build_conv(b, "conv_in", x, biased_conv(sizes->level[0].channels, 3, 1)));
    x = unet_down(b, &unet, x);
    x = unet_middle(b, &unet, x);
    x = unet_up(b, &unet, x);
    return output_conv(b, x, sizes->out_channels);
}

/* ---- VAE ---- */

/* Single-head attention over all pixels. */
static tensor_id vae_attention(struct build *b, tensor_id in)
{
    int64_t channels = build_dim(b, in, 1);
    tensor_id x = build_norm(b, GRAPH_GROUP_NORM, "group_norm", in);
    x = as_tokens(b, x);
    tensor_id q = build_linear(b, "to_q", x, channels, true);
    tensor_id k = build_linear(b, "to_k", x, channels, true);
    tensor_id v = build_linear(b, "to_v", x, channels, true);
    x = build_attention(b, "attention", q, k, v, GRAPH_NONE, GRAPH_NONE,
                        build_heads(b, x, 1, channels));
    x = build_linear(b, "to_out.0", x, channels, true);
    return build_binary(b, GRAPH_ADD, "add", as_image(b, x, in), in);
}

static tensor_id vae_mid_block(struct build *b, const struct diffusion_vae *vae, const char *part,
                               tensor_id x)
{
    int64_t channels = vae->channels[vae->levels - 1];
    build_scope(b, "%s.mid_block.resnets.0.", part);
    x = resnet_block(b, x, channels, GRAPH_NONE);
    build_scope(b, "%s.mid_block.attentions.0.", part);
    if (!vae->has_no_attention)
        x = vae_attention(b, x);
    build_scope(b, "%s.mid_block.resnets.1.", part);
    x = resnet_block(b, x, channels, GRAPH_NONE);
    build_scope(b, "%s.", part);
    return x;
}

/* Padded by one pixel at the end, so that a stride of 2 halves an even size. */
static tensor_id downsample(struct build *b, tensor_id x)
{
    int64_t channels = build_dim(b, x, 1);
    x = build_move(
        b, "pad", x,
        DIMS(build_dim(b, x, 0), channels, build_dim(b, x, 2) + 1, build_dim(b, x, 3) + 1));
    return build_conv(
        b, "conv", x,
        (struct build_conv){.channels = channels, .kernel = 3, .stride = 2, .has_bias = true});
}

static tensor_id vae_encode(struct build *b, const struct diffusion_vae *vae, tensor_id x)
{
    x = build_conv(b, "encoder.conv_in", x, biased_conv(vae->channels[0], 3, 1));
    for (int i = 0; i < vae->levels; i++) {
        for (int k = 0; k < vae->layers; k++) {
            build_scope(b, "encoder.down_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, vae->channels[i], GRAPH_NONE);
        }
        build_scope(b, "encoder.down_blocks.%d.downsamplers.0.", i);
        if (i + 1 < vae->levels)
            x = downsample(b, x);
    }
    x = vae_mid_block(b, vae, "encoder", x);
    x = output_conv(b, x, 2 * vae->latent_channels);
    build_root(b);
    if (vae->has_no_quant_conv)
        return x;
    return build_conv(b, "quant_conv", x, biased_conv(2 * vae->latent_channels, 1, 1));
}

static tensor_id vae_decode(struct build *b, const struct diffusion_vae *vae, tensor_id x)
{
    int last = vae->levels - 1;
    if (!vae->has_no_post_quant_conv)
        x = build_conv(b, "post_quant_conv", x, biased_conv(vae->latent_channels, 1, 1));
    x = build_conv(b, "decoder.conv_in", x, biased_conv(vae->channels[last], 3, 1));
    x = vae_mid_block(b, vae, "decoder", x);
    for (int i = 0; i <= last; i++) {
        for (int k = 0; k < vae->layers + 1; k++) {
            build_scope(b, "decoder.up_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, vae->channels[last - i], GRAPH_NONE);
        }
        build_scope(b, "decoder.up_blocks.%d.upsamplers.0.", i);
        if (i < last)
            x = upsample(b, x);
    }
    build_scope(b, "decoder.");
    x = output_conv(b, x, vae->out_channels);
    build_root(b);
    return x;
}

tensor_id diffusion_vae(struct build *b, const struct diffusion_vae *vae, int64_t batch,
                        int64_t image)
{
    int64_t side = image >> (vae->levels - 1);
    int64_t latents[] = {batch, vae->latent_channels, side, side};
    tensor_id x;
    b->graph->batch = (double)batch;
    if (vae->has_encoder) {
        x = build_input(b, "sample", GRAPH_FLOAT, DIMS(batch, vae->in_channels, image, image));
        x = vae_encode(b, vae, x); /* means and log-variances */
        if (vae->has_decoder)
            x = build_rearrange(b, "latent_dist.mode", x, 4, latents);
    } else {
        x = build_input(b, "latent_sample", GRAPH_FLOAT, 4, latents);
    }
    return vae->has_decoder ? vae_decode(b, vae, x) : x;
}
