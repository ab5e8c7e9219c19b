/* Models of Hugging Face: config.json (hf_config.c) and the headers of safetensors files (safetensors.c).
 *
 * A config.json gives the sizes of a model, from which its graph is built: decoders (decoder_kinds.def) and the others
 * of hf_types.def.  Only the header of a safetensors file is read: its tensors with shape and dtype.
 *
 * Nothing declared in a file is trusted before it is checked: ERR_BAD_VALUE names the key with an implausible value, or
 * the tensor that is not inside the file or whose size contradicts its shape.
 *
 * Ownership: hf_config_release and safetensors_release free their structs; nothing in them points into the files. */
#ifndef IPW_GRAPH_HF_H
#define IPW_GRAPH_HF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "graph/decoder.h"
#include "graph/diffusion.h"
#include "graph/reader.h"
#include "graph/transformers.h"

struct decoder_shape;
struct jv;

/* ---- config.json ---- */

enum hf_kind {
    HF_DECODER,
    HF_GPT2,
    HF_BERT,
    HF_VIT,
    HF_SEQ2SEQ,
    HF_DEBERTA,
    HF_CLIP,
    HF_MAMBA,
    HF_MAMBA2,
    HF_SIGLIP,
    HF_UNET,
    HF_VAE,
    HF_FLUX,
    HF_SEGFORMER,
    HF_DETR,
};

struct hf_config {
    enum hf_kind kind;
    char name[128];
    bool is_quantized;
    bool has_products;           /* file.products is of quantized matrices alone */
    struct graph_precision file; /* as "dtype" and "quantization_config" state it */
    /* For models other than decoders: */
    bool has_phases;
    int64_t tokens, image; /* defaults; 0: not applicable */
    union {
        struct decoder decoder;
        struct transformer_gpt2 gpt2;
        struct transformer_bert bert;
        struct transformer_vit vit;
        struct transformer_seq2seq seq2seq;
        struct transformer_deberta deberta;
        struct transformer_clip clip;
        struct transformer_mamba mamba;
        struct transformer_mamba2 mamba2;
        struct transformer_siglip siglip;
        struct diffusion_unet unet;
        struct diffusion_vae vae;
        struct diffusion_flux flux;
        struct transformer_segformer segformer;
        struct transformer_detr detr;
    } as;
};

/* `file` is for messages, `name` for display.  ERR_UNSUPPORTED for an unknown model_type. */
enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why) MUST_USE;
enum err hf_config_read(const char *path, struct hf_config *out, struct error *why) MUST_USE;
void hf_config_release(struct hf_config *config);

bool hf_config_has_phases(const struct hf_config *config);
int64_t hf_config_context(const struct hf_config *config); /* maximum length; 0: unknown */
enum err hf_config_graph(const struct hf_config *config, struct graph_options *options,
                         struct graph *out, struct error *why) MUST_USE;

/* ---- safetensors: the files of a sharded model are read into the same struct ---- */

enum { SAFETENSORS_MAX_RANK = 8 };

struct safetensors_tensor {
    const char *name;
    uint8_t rank;
    uint64_t dims[SAFETENSORS_MAX_RANK];
    uint64_t elements, bytes;
    bool is_float; /* at least 8 bits: may be an unpacked weight */
};

struct safetensors {
    struct safetensors_tensor *tensors; /* sorted by name after safetensors_sort */
    size_t count, capacity;
    double floats[PRECISION_COUNT]; /* elements by their dtype */
    struct arena names;
};

/* `bytes` are the first `length` of a file of `file_length`, and contain at least its header.  Adds to *out; on failure
 * it is unchanged. */
enum err safetensors_read(const char *file, const char *bytes, size_t length, uint64_t file_length,
                          struct safetensors *out, struct error *why) MUST_USE;

/* A duplicate name is ERR_BAD_VALUE. */
enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
    MUST_USE;
void safetensors_release(struct safetensors *tensors);

/* NULL if there is none of that name; after safetensors_sort. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name);

/* The shape of a decoder from the names and shapes of its tensors.  Heads, experts per token, windows and the
 * activation cannot be inferred and are assumed.  False if these are not the tensors of a known decoder.  The caller
 * sets the name. */
bool safetensors_guess(const struct safetensors *tensors, struct decoder_shape *out);

#endif
