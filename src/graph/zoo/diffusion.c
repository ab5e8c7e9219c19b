/* Stable Diffusion 1.5 as in diffusers: UNet, VAE and text encoder, one pass of each.  An image takes one pass of the text
 * encoder (batch 2), one of the UNet per step (batch 2, for guidance), and one of the VAE decoder. */
#include <string.h>

#include "graph/blocks.h"
#include "graph/transformers.h"
#include "graph/zoo/family.h"

enum { LATENT_CHANNELS = 4, VAE_SCALE = 8, TEXT_TOKENS = 77, TEXT_FEATURES = 768 };

/* ---- residual blocks of UNet and VAE ---- */

/* `time` is the embedding of the step, or GRAPH_NONE. */
static tensor_id resnet_block(struct build *b, tensor_id in, int64_t channels, tensor_id time)
{
    tensor_id x = build_norm(b, GRAPH_GROUP_NORM, "norm1", in);
    x = build_op(b, GRAPH_SILU, "nonlinearity", x);
    x = build_conv(b, "conv1", x, zoo_biased_conv(channels, 3, 1));
    if (time >= 0) {
        tensor_id shift = build_op(b, GRAPH_SILU, "time_nonlinearity", time);
        shift = build_linear(b, "time_emb_proj", shift, channels, true);
        shift = build_view(b, "time_view", shift, DIMS(build_dim(b, shift, 0), channels, 1, 1));
        x = build_binary(b, GRAPH_ADD, "time_add", x, shift);
    }
    x = build_norm(b, GRAPH_GROUP_NORM, "norm2", x);
    x = build_op(b, GRAPH_SILU, "nonlinearity_1", x);
    x = build_conv(b, "conv2", x, zoo_biased_conv(channels, 3, 1));
    if (build_dim(b, in, 1) != channels)
        in = build_conv(b, "conv_shortcut", in, zoo_biased_conv(channels, 1, 1));
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id upsample(struct build *b, tensor_id x)
{
    int64_t channels = build_dim(b, x, 1);
    x = build_move(
        b, "interpolate", x,
        DIMS(build_dim(b, x, 0), channels, 2 * build_dim(b, x, 2), 2 * build_dim(b, x, 3)));
    return build_conv(b, "conv", x, zoo_biased_conv(channels, 3, 1));
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
    return build_conv(b, "conv_out", x, zoo_biased_conv(channels, 3, 1));
}

/* ---- UNet ---- */

static const struct block_names SELF_NAMES = {
    .attention = {"transformer_blocks.0.norm1", "transformer_blocks.0.attn1.to_q",
                  "transformer_blocks.0.attn1.to_k", "transformer_blocks.0.attn1.to_v",
                  "transformer_blocks.0.attn1", "transformer_blocks.0.attn1.to_out.0",
                  "transformer_blocks.0.add"},
    .feed_forward = {"transformer_blocks.0.norm3", "transformer_blocks.0.ff.net.0.proj",
                     "transformer_blocks.0.ff.net.0.gelu", "transformer_blocks.0.ff.net.2",
                     "transformer_blocks.0.add_2"},
};

static const struct block_attention_names TEXT_NAMES = {
    "transformer_blocks.0.norm2",      "transformer_blocks.0.attn2.to_q",
    "transformer_blocks.0.attn2.to_k", "transformer_blocks.0.attn2.to_v",
    "transformer_blocks.0.attn2",      "transformer_blocks.0.attn2.to_out.0",
    "transformer_blocks.0.add_1"};

/* Self-attention over pixels, then cross-attention to the text. */
static tensor_id unet_transformer(struct build *b, tensor_id in, tensor_id text)
{
    int64_t channels = build_dim(b, in, 1);
    struct block block = {.hidden = channels,
                          .heads = 8,
                          .intermediate = 4 * channels,
                          .activation = GRAPH_GELU,
                          .is_gated = true,
                          .has_no_qkv_bias = true};
    struct block_pass cross = {.cross_tokens = TEXT_TOKENS, .cross_states = text};
    tensor_id x = build_norm(b, GRAPH_GROUP_NORM, "norm", in);
    x = build_conv(b, "proj_in", x, zoo_biased_conv(channels, 1, 1));
    tensor_id before = x;
    x = as_tokens(b, x);
    x = block_attention(b, &block, &SELF_NAMES.attention, &(struct block_pass){0}, x);
    x = block_attention(b, &block, &TEXT_NAMES, &cross, x);
    x = block_feed_forward(b, &block, &SELF_NAMES.feed_forward, x);
    x = as_image(b, x, before);
    x = build_conv(b, "proj_out", x, zoo_biased_conv(channels, 1, 1));
    return build_binary(b, GRAPH_ADD, "add", x, in);
}

struct unet {
    tensor_id time, text;
    tensor_id skips[12]; /* skip connections from the down to the up blocks */
    int skip_count;
};

static const int64_t CHANNELS[] = {320, 640, 1280, 1280};

static tensor_id save_skip(struct unet *unet, tensor_id x)
{
    unet->skips[unet->skip_count++] = x;
    return x;
}

static tensor_id unet_down(struct build *b, struct unet *unet, tensor_id x)
{
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            build_scope(b, "down_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, CHANNELS[i], unet->time);
            build_scope(b, "down_blocks.%d.attentions.%d.", i, k);
            x = save_skip(unet, i < 3 ? unet_transformer(b, x, unet->text) : x);
        }
        build_scope(b, "down_blocks.%d.downsamplers.0.", i);
        if (i < 3)
            x = save_skip(unet, build_conv(b, "conv", x, zoo_biased_conv(CHANNELS[i], 3, 2)));
    }
    return x;
}

static tensor_id unet_up(struct build *b, struct unet *unet, tensor_id x)
{
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) {
            build_scope(b, "up_blocks.%d.resnets.%d.", i, k);
            tensor_id both[] = {x, unet->skips[--unet->skip_count]};
            x = build_concat(b, "cat", 1, both, 2);
            x = resnet_block(b, x, CHANNELS[3 - i], unet->time);
            build_scope(b, "up_blocks.%d.attentions.%d.", i, k);
            if (i > 0)
                x = unet_transformer(b, x, unet->text);
        }
        build_scope(b, "up_blocks.%d.upsamplers.0.", i);
        if (i < 3)
            x = upsample(b, x);
    }
    build_root(b);
    return x;
}

static tensor_id embed_time(struct build *b, int64_t batch)
{
    tensor_id x = build_input(b, "timestep_features", GRAPH_FLOAT, DIMS(batch, CHANNELS[0]));
    x = build_linear(b, "time_embedding.linear_1", x, 4 * CHANNELS[0], true);
    x = build_op(b, GRAPH_SILU, "time_embedding.act", x);
    return build_linear(b, "time_embedding.linear_2", x, 4 * CHANNELS[0], true);
}

static tensor_id unet(struct build *b, int64_t batch, int64_t side)
{
    tensor_id x = build_input(b, "sample", GRAPH_FLOAT, DIMS(batch, LATENT_CHANNELS, side, side));
    struct unet net = {.time = embed_time(b, batch)};
    net.text = build_input(b, "encoder_hidden_states", GRAPH_FLOAT,
                           DIMS(batch, TEXT_TOKENS, TEXT_FEATURES));
    x = save_skip(&net, build_conv(b, "conv_in", x, zoo_biased_conv(CHANNELS[0], 3, 1)));
    x = unet_down(b, &net, x);
    build_scope(b, "mid_block.resnets.0.");
    x = resnet_block(b, x, CHANNELS[3], net.time);
    build_scope(b, "mid_block.attentions.0.");
    x = unet_transformer(b, x, net.text);
    build_scope(b, "mid_block.resnets.1.");
    x = resnet_block(b, x, CHANNELS[3], net.time);
    x = unet_up(b, &net, x);
    return output_conv(b, x, LATENT_CHANNELS);
}

/* ---- VAE ---- */

static const int64_t VAE_CHANNELS[] = {128, 256, 512, 512};

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

static tensor_id vae_mid_block(struct build *b, const char *part, tensor_id x)
{
    build_scope(b, "%s.mid_block.resnets.0.", part);
    x = resnet_block(b, x, VAE_CHANNELS[3], GRAPH_NONE);
    build_scope(b, "%s.mid_block.attentions.0.", part);
    x = vae_attention(b, x);
    build_scope(b, "%s.mid_block.resnets.1.", part);
    x = resnet_block(b, x, VAE_CHANNELS[3], GRAPH_NONE);
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

static tensor_id vae_encode(struct build *b, tensor_id x)
{
    x = build_conv(b, "encoder.conv_in", x, zoo_biased_conv(VAE_CHANNELS[0], 3, 1));
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            build_scope(b, "encoder.down_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, VAE_CHANNELS[i], GRAPH_NONE);
        }
        build_scope(b, "encoder.down_blocks.%d.downsamplers.0.", i);
        if (i < 3)
            x = downsample(b, x);
    }
    x = vae_mid_block(b, "encoder", x);
    x = output_conv(b, x, 2 * LATENT_CHANNELS);
    build_root(b);
    return build_conv(b, "quant_conv", x, zoo_biased_conv(2 * LATENT_CHANNELS, 1, 1));
}

static tensor_id vae_decode(struct build *b, tensor_id x)
{
    x = build_conv(b, "post_quant_conv", x, zoo_biased_conv(LATENT_CHANNELS, 1, 1));
    x = build_conv(b, "decoder.conv_in", x, zoo_biased_conv(VAE_CHANNELS[3], 3, 1));
    x = vae_mid_block(b, "decoder", x);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) {
            build_scope(b, "decoder.up_blocks.%d.resnets.%d.", i, k);
            x = resnet_block(b, x, VAE_CHANNELS[3 - i], GRAPH_NONE);
        }
        build_scope(b, "decoder.up_blocks.%d.upsamplers.0.", i);
        if (i < 3)
            x = upsample(b, x);
    }
    build_scope(b, "decoder.");
    x = output_conv(b, x, 3);
    build_root(b);
    return x;
}

static tensor_id vae(struct build *b, bool has_encoder, bool has_decoder, int64_t batch,
                     int64_t image)
{
    int64_t side = image / VAE_SCALE;
    int64_t latents[] = {batch, LATENT_CHANNELS, side, side};
    tensor_id x;
    if (has_encoder) {
        x = build_input(b, "sample", GRAPH_FLOAT, DIMS(batch, 3, image, image));
        x = vae_encode(b, x); /* means and log-variances */
        if (has_decoder)
            x = build_rearrange(b, "latent_dist.mode", x, 4, latents);
    } else {
        x = build_input(b, "latent_sample", GRAPH_FLOAT, 4, latents);
    }
    return has_decoder ? vae_decode(b, x) : x;
}

/* ---- the models ---- */

tensor_id zoo_build_diffusion(struct build *b, const struct graph_options *options)
{
    const char *name = b->graph->name;
    bool is_unet = strstr(name, "unet");
    /* The UNet halves its latents three times. */
    zoo_check_multiple(b, options->image, is_unet ? 64 : VAE_SCALE);
    if (is_unet)
        return unet(b, options->batch, options->image / VAE_SCALE);
    return vae(b, !strstr(name, "decoder"), !strstr(name, "encoder"), options->batch,
               options->image);
}

/* The text encoder of CLIP ViT-L/14, to whose states the UNet attends. */
tensor_id zoo_build_clip_text(struct build *b, const struct graph_options *options)
{
    static const struct transformer_clip CLIP = {
        .has_text = true,
        .has_all_states = true,
        .text = {TEXT_FEATURES, 12, 4 * TEXT_FEATURES, 12, GRAPH_GELU},
        .vocabulary = 49408,
        .positions = TEXT_TOKENS,
    };
    return transformer_clip(b, &CLIP, options);
}
