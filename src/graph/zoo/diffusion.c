/* Stable Diffusion 1.5 as in diffusers: UNet, VAE and text encoder, one pass of each.  An image takes one pass of the text
 * encoder (batch 2), one of the UNet per step (batch 2, for guidance), and one of the VAE decoder. */
#include "graph/diffusion.h"

#include <string.h>

#include "graph/blocks.h"
#include "graph/transformers.h"
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

/* The text encoder of CLIP ViT-L/14, to whose states the UNet attends. */
tensor_id zoo_build_clip_text(struct build *b, const struct graph_options *options)
{
    static const struct transformer_clip CLIP = {
        .has_text = true,
        .has_all_states = true,
        .text = {TEXT_FEATURES, 12, 4 * TEXT_FEATURES, 12, GRAPH_GELU},
        .vocabulary = 49408,
        .positions = DIFFUSION_TEXT_TOKENS,
    };
    return transformer_clip(b, &CLIP, options);
}
