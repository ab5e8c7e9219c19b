/* The shape of a decoder-only language model of Llama's kind, out of a GGUF file (here) or of its
 * numbers (decoder_shape.h): how many layers, heads and features, and what each component of each layer weighs.
 *
 * Every tensor of the file is counted in exactly one component, so the parts add up to the file's
 * tensors; a tensor whose place is not known, or whose shape contradicts the keys, is an error.
 *
 * Ownership: decoder_read fills a struct of the caller's, who releases it; nothing in it points into
 * the file, which may be closed. */
#ifndef IPW_GRAPH_DECODER_H
#define IPW_GRAPH_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/gguf.h"

enum decoder_component {
#define DECODER_COMPONENT(constant, name, words) DECODER_##constant,
#include "graph/decoder_components.def"
#undef DECODER_COMPONENT
    DECODER_COMPONENT_COUNT
};

const char *decoder_component_name(enum decoder_component component);  /* "attn_qkv" */
const char *decoder_component_words(enum decoder_component component); /* "attention: qkv" */

enum decoder_activation { DECODER_SILU, DECODER_GELU };

/* The tensors that a layer may have, and those outside of the layers. */
enum decoder_tensor {
#define DECODER_TENSOR(constant, name, component, role, columns, rows) DECODER_TENSOR_##constant,
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
    DECODER_TENSOR_COUNT
};

/* One of them, as it lies; all zero where there is none. */
struct decoder_weight {
    uint64_t columns, rows, matrices; /* one a matrix, but for experts */
    uint64_t bytes;
    uint64_t bias_numbers, bias_bytes; /* 0: it has no bias */
    /* The bytes are those of its own format, in a file; otherwise they are as with 16 bits a number,
     * and whoever asks for another precision may change them. */
    bool is_stored;
};

/* The weights of one component in one layer, or outside of the layers. */
struct decoder_part {
    uint64_t parameters, bytes;
    /* Of these, what belongs to the experts, all of them together; a token uses its share. */
    uint64_t expert_parameters, expert_bytes;
    /* Of these, what is added or scales number by number (norms, biases), not a matrix. */
    uint64_t vector_parameters, bias_parameters;
    const struct tensor_type *type; /* of its largest matrix, or vector; NULL without weights */
    bool is_mixed;                  /* its matrices are not all of that type */
    uint64_t largest;               /* bytes of that tensor */
};

struct decoder_layer {
    uint64_t heads, heads_kv;
    uint64_t key_size, value_size; /* of one head */
    uint64_t feed_forward;        /* the width that every token goes through, shared experts' too */
    uint64_t expert_feed_forward; /* the width of one expert; 0 in a dense layer */
    uint64_t window;              /* tokens that attention sees, itself included; 0: all */
    /* Numbers of one token that its norms go over: those before attention, and those after it. */
    uint64_t norm_numbers, norm_numbers_after;
    bool norm_has_mean; /* LayerNorm rather than RMSNorm */
    bool is_gated;      /* activation(gate) x up, rather than activation(up) */
    bool is_fused;      /* gate and up are one matrix */
    struct decoder_part parts[DECODER_COMPONENT_COUNT];
    struct decoder_weight weights[DECODER_TENSOR_COUNT];
};

struct decoder {
    char architecture[64];
    char name[128]; /* general.name; "" without */
    enum decoder_activation activation;
    uint64_t embedding, vocabulary, context;
    uint64_t heads, heads_kv, key_size, value_size, feed_forward; /* of the first layer */
    uint64_t experts, experts_used;                               /* 0: a dense model */
    bool has_tied_head; /* the embedding is the output head too, and stored once */
    uint64_t parameters, bytes;
    size_t layer_count;
    struct decoder_layer *layers;
    /* Outside of the layers: embedding, final norm, head, rotation factors.  The tensor of a tied head
     * is counted under the embedding. */
    struct decoder_part outside[DECODER_COMPONENT_COUNT];
    struct decoder_weight outside_weights[DECODER_TENSOR_COUNT];
};

/* ERR_UNSUPPORTED for an architecture, tensor or split file that is not known; ERR_BAD_VALUE for a
 * file that contradicts itself. */
enum err decoder_read(const struct gguf *gguf, struct decoder *out, struct error *why) MUST_USE;
void decoder_release(struct decoder *decoder);

#endif
