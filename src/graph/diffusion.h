/* Diffusion models of images as in diffusers: the UNet of Stable Diffusion, the transformer of Flux, and the variational autoencoder (VAE), one
 * pass of each.  Nodes are named like the modules.  The graph belongs to the caller. */
#ifndef IPW_GRAPH_DIFFUSION_H
#define IPW_GRAPH_DIFFUSION_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/build.h"

enum { DIFFUSION_LEVELS_MAX = 8, DIFFUSION_VAE_SCALE = 8, DIFFUSION_TEXT_TOKENS = 77 };

struct diffusion_unet {
    int levels; /* each but the last at half of the resolution of the one before */
    struct diffusion_level {
        int64_t channels, heads;
        int transformers;             /* layers of each attention */
        bool attends, attends_upward; /* on the way down, and up */
    } level[DIFFUSION_LEVELS_MAX];
    int layers; /* residual blocks of a level; one more on the way up */
    int64_t in_channels, out_channels;
    int64_t text_features;        /* of the states that it attends to */
    int64_t added_features;       /* of size and pooled text, added to the time step; 0: none */
    bool has_linear_projection;   /* around transformers, instead of 1 x 1 convolutions */
    bool has_no_middle_attention; /* between the ways down and up */
};
/* `side`: of the latents, a multiple of 2 ^ (levels - 1). */
tensor_id diffusion_unet(struct build *b, const struct diffusion_unet *unet, int64_t batch,
                         int64_t side);

struct diffusion_vae {
    int levels;
    int64_t channels[DIFFUSION_LEVELS_MAX];
    int layers;
    int64_t in_channels, out_channels, latent_channels;
    bool has_encoder, has_decoder;
    bool has_no_quant_conv, has_no_post_quant_conv, has_no_attention;
};
/* `image`: pixels of a side, a multiple of 2 ^ (levels - 1). */
tensor_id diffusion_vae(struct build *b, const struct diffusion_vae *vae, int64_t batch,
                        int64_t image);

/* The transformer of Flux (flux.c). */
struct diffusion_flux {
    int layers, single_layers;
    int64_t heads, head_size;
    int64_t in_channels, out_channels; /* of a patch */
    int64_t text_features, pooled_features;
    bool has_guidance;
};
/* `tokens`: patches of the latents. */
tensor_id diffusion_flux(struct build *b, const struct diffusion_flux *flux, int64_t batch,
                         int64_t tokens);

#endif
