/* The networks of a diffusion pipeline: its files, and running each of them.  diffusion.c has the layout of the directory
 * and the loop over steps.
 *
 * The caller owns a struct diffusion_model, and what the functions return in buffers; a model does not change once it is
 * open. */
#ifndef IPW_WORKLOADS_DIFFUSION_MODEL_H
#define IPW_WORKLOADS_DIFFUSION_MODEL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "engine/onnx.h"
#include "port/npy.h"

struct clip_tokenizer;
struct json;
struct jv;
struct model_files;

/* What the U-Net takes besides the sample and the timestep. */
enum diffusion_condition {
    CONDITION_NONE,
    CONDITION_TEXT,           /* states of a text encoder */
    CONDITION_CLASS,          /* the index of a class */
    CONDITION_CLASS_EMBEDDING /* a row of class_embeddings.npy, like the states of a text */
};

struct diffusion_model {
    struct onnx_session *unet;
    struct onnx_session *text_encoder, *vae; /* NULL: none */
    struct clip_tokenizer *tokenizer;        /* of the text encoder */
    struct jv *index;                        /* model_index.json */
    struct jv *scheduler;                    /* scheduler_config.json */
    enum diffusion_condition condition;
    const char **classes; /* names, in `index` */
    size_t class_count;
    struct npy embeddings; /* (classes + 1, tokens, width) */

    int sample_input, timestep_input, condition_input; /* of the U-Net; -1: none */
    int64_t batch, height, width;                      /* of the sample; -1: free */
    size_t channels;
    size_t default_height, default_width; /* of the sample; 0: unknown */
    size_t pixels;                        /* of an image for each element of the sample */
    double scaling;                       /* of the VAE decoder's input */
};

enum err diffusion_model_open(const struct model_files *files, struct diffusion_model *out,
                              struct error *why) MUST_USE;
void diffusion_model_close(struct diffusion_model *model);
void diffusion_model_describe(const struct diffusion_model *model, struct json *json);

/* ---- running ---- */

/* Float32 values, allocated with their shape; free(values). */
struct diffusion_values {
    float *values;
    size_t rank, count;
    int64_t shape[ONNX_RANK_MAX];
};

/* What an image shall show, and what the guidance leads away from. */
struct diffusion_guide {
    const float *states[2]; /* without and with the condition; for CONDITION_CLASS and NONE: NULL */
    int64_t tokens, width;  /* of both states */
    int64_t label[2];
    double scale; /* 1 or less: only the condition is used */
};

/* The states of a text of clip_tokenizer_length ids. */
enum err diffusion_encode(const struct diffusion_model *model, const int64_t *ids,
                          const atomic_bool *cancel, struct diffusion_values *out,
                          struct error *why) MUST_USE;

/* The U-Net's prediction for a sample of channels x height x width, with guidance: one run for a batch of two, where
 * the file allows it, else two runs. */
struct diffusion_sample {
    const float *values;
    size_t height, width;
    double timestep;
};
enum err diffusion_predict(const struct diffusion_model *model,
                           const struct diffusion_sample *sample,
                           const struct diffusion_guide *guide, const atomic_bool *cancel,
                           float *prediction, struct error *why) MUST_USE;

/* The image of a denoised sample: planes in -1..1, 1 or 3 of them. */
enum err diffusion_decode(const struct diffusion_model *model,
                          const struct diffusion_sample *sample, const atomic_bool *cancel,
                          struct diffusion_values *out, struct error *why) MUST_USE;

#endif
