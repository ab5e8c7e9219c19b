/* Stable Diffusion 1.5 as in diffusers: UNet, VAE and text encoder, one pass of each.  An image takes one pass of the text
 * encoder (batch 2), one of the UNet per step (batch 2, for guidance), and one of the VAE decoder. */
#include "graph/diffusion.h"

#include <string.h>

#include "graph/blocks.h"
#include "graph/zoo/family.h"

enum { TEXT_FEATURES = 768 };

static const struct diffusion_unet UNET = {
    .levels = 4,
    .level = {{320, 8, 1, true, true},
              {640, 8, 1, true, true},
              {1280, 8, 1, true, true},
              {1280, 8, 1, false, false}},
    .layers = 2,
    .in_channels = 4,
    .out_channels = 4,
    .text_features = TEXT_FEATURES,
};

tensor_id zoo_build_diffusion(struct build *b, const struct graph_options *options)
{
    const char *name = b->graph->name;
    bool is_unet = strstr(name, "unet");
    struct diffusion_vae vae = {.levels = 4,
                                .channels = {128, 256, 512, 512},
                                .layers = 2,
                                .in_channels = 3,
                                .out_channels = 3,
                                .latent_channels = 4,
                                .has_encoder = !strstr(name, "decoder"),
                                .has_decoder = !strstr(name, "encoder")};
    /* The UNet halves its latents three times. */
    zoo_check_multiple(b, options->image, is_unet ? 64 : DIFFUSION_VAE_SCALE);
    if (is_unet)
        return diffusion_unet(b, &UNET, options->batch, options->image / DIFFUSION_VAE_SCALE);
    return diffusion_vae(b, &vae, options->batch, options->image);
}

static const struct block_names CLIP_NAMES = {
    .attention = {"layer_norm1", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                  "self_attn", "self_attn.out_proj", "self_attn.add"},
    .feed_forward = {"layer_norm2", "mlp.fc1", "mlp.activation_fn", "mlp.fc2", "mlp.add"},
};

/* The text encoder of CLIP ViT-L/14, to whose states the UNet attends. */
tensor_id zoo_build_clip_text(struct build *b, const struct graph_options *options)
{
    struct block block = {.hidden = TEXT_FEATURES,
                          .heads = 12,
                          .intermediate = 4 * TEXT_FEATURES,
                          .activation = GRAPH_GELU,
                          .is_causal = true};
    tensor_id x = block_text_input(b, options->batch, options->tokens);
    b->component = DECODER_EMBEDDING;
    build_scope(b, "text_model.embeddings.");
    x = build_embedding(b, "token_embedding", x, 49408, TEXT_FEATURES);
    tensor_id positions = block_positions(b, "position_embedding", options->tokens, 0,
                                          DIFFUSION_TEXT_TOKENS, TEXT_FEATURES);
    x = build_binary(b, GRAPH_ADD, "add", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &CLIP_NAMES, &(struct block_pass){0}, 12,
                    "text_model.encoder.layers.", x);
    return block_norm(b, "text_model.final_layer_norm", x);
}
