/* Image generation by a latent or pixel diffusion model in the layout of diffusers' ONNX pipelines:
 *
 *   model_index.json                  "_class_name": "StableDiffusionPipeline", "DDIMPipeline" ...
 *   scheduler/scheduler_config.json   noise schedule and prediction type, as diffusers writes it
 *   unet/model.onnx                   inputs, in any order: sample [batch, channels, height, width];
 *                                     timestep, a scalar, [1] or [batch], int64 or float; and one of
 *                                     encoder_hidden_states [batch, tokens, width] for a text or class embedding,
 *                                     class_labels [batch] int64, or neither (unconditional).  Output 0 is the
 *                                     prediction, of the sample's shape.  Float32 or float16.
 *   unet/config.json                  optional: "sample_size", if the file leaves height and width free
 *   text_encoder/model.onnx           with tokenizer/: input_ids [1, 77] -> last_hidden_state
 *   vae_decoder/model.onnx            latent_sample -> sample in -1..1; with vae_decoder/config.json:
 *                                     "scaling_factor" (0.18215).  Without a VAE decoder the sample is the image, in
 *                                     -1..1, of 1 or 3 channels.
 *   class_embeddings.npy              instead of a text encoder: float32 [classes + 1, tokens, width]
 *
 * A class-conditional model lists its classes in model_index.json: "ipw_classes": ["circle", "square", ...].  A class is
 * its index there; the index after the last means "no class", for guidance.  "ipw_steps" and "ipw_guidance" are the
 * defaults of the model's steps and guidance (otherwise 50 steps, and a guidance of 7.5 for text, 1 for classes).
 *
 * A query is a prompt, or the name or index of a class.  It may end in " seed=N", which replaces the parameter: each of
 * several images of the same prompt needs a seed of its own. */
#include "workloads/workload.h"
