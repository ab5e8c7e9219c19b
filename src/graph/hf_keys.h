/* The keys of a config.json, each checked before it is used.  The first failure is kept in `err` and names its key;
 * later calls do nothing, so that only `err` is checked, at the end.
 *
 * A name may have alternatives, "num_hidden_layers|n_layer": the first one in the file counts.  Every requested name is
 * recorded, so that hf_keys_report can list the keys of the file that were not read.
 *
 * Ownership: nothing; a struct hf_keys points into the JSON and to names that must outlive it. */
#ifndef IPW_GRAPH_HF_KEYS_H
#define IPW_GRAPH_HF_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct build;
struct decoder;
struct decoder_shape;
struct graph_options;
struct hf_config;
struct jv;

/* Products of three such sizes fit into 64 bits. */
enum {
    HF_MAX_LAYERS = 4096,
    HF_MAX_SIZE = 1 << 20,
    HF_MAX_HEADS = 1 << 14,
    HF_MAX_POSITIONS = 1 << 24,
    HF_MAX_PIXELS = 1 << 16,
    HF_MAX_CLASSES = 1 << 24,
};

enum { HF_KEYS_USED = 96 };

struct hf_keys {
    const char *file;
    const struct jv *json;
    struct error *why;
    enum err err;
    const char *used[HF_KEYS_USED];
    size_t used_count;
};

struct hf_keys hf_keys_of(const char *file, const struct jv *json, struct error *why);

/* The value of a name, NULL if it is missing or null. */
const struct jv *hf_keys_get(struct hf_keys *keys, const char *names);
void hf_keys_reject(struct hf_keys *keys, enum err code, const char *names, const char *what);

/* 1 .. max.  A missing or null key gives `otherwise`; an error if that is 0. */
uint64_t hf_keys_size(struct hf_keys *keys, const char *names, uint64_t max, uint64_t otherwise);
/* The same, where missing or 0 means none. */
uint64_t hf_keys_optional(struct hf_keys *keys, const char *names, uint64_t max);
bool hf_keys_bool(struct hf_keys *keys, const char *names, bool otherwise);
const char *hf_keys_string(struct hf_keys *keys, const char *names); /* NULL: missing or null */
/* `count` sizes of a list, each 1 .. max. */
void hf_keys_sizes(struct hf_keys *keys, const char *names, uint64_t max, size_t count,
                   const int64_t *otherwise, int64_t *out);
/* A number of heads that divides `hidden`. */
int64_t hf_keys_heads(struct hf_keys *keys, const char *names, uint64_t otherwise, int64_t hidden,
                      const char *hidden_name);
enum graph_op hf_keys_activation(struct hf_keys *keys, const char *names, enum graph_op otherwise);
/* num_labels, or the number of entries of id2label, or two. */
int64_t hf_keys_labels(struct hf_keys *keys, uint64_t otherwise);

/* The first architecture without the name of the model: "ForMaskedLM", "LMHeadModel"; "" if there is none. */
const char *hf_keys_purpose(struct hf_keys *keys);

/* Logs keys that were not read and are not known to be irrelevant. */
void hf_keys_report(const struct hf_keys *keys);

/* A decoder (hf_decoder.c).  `shape` is that of its kind, with the name; on failure nothing is kept. */
void hf_decoder_read(struct hf_keys *keys, struct decoder_shape *shape, struct decoder *out);

/* A model of another kind (hf_transformer.c), by its model_type; out->kind is set. */
void hf_transformer_read(struct hf_keys *keys, const char *type, struct hf_config *out);

/* A part of a diffusion pipeline (hf_diffusion.c), by its _class_name; out->kind is set. */
void hf_diffusion_read(struct hf_keys *keys, const char *class_name, struct hf_config *out);
tensor_id hf_diffusion_build(struct build *b, const struct hf_config *config,
                             const struct graph_options *options);

/* Mamba and Mamba-2 (hf_state_space.c), and the mixer of Falcon-H1. */
void hf_mamba_read(struct hf_keys *keys, struct hf_config *out);
void hf_mamba2_read(struct hf_keys *keys, struct hf_config *out);
void hf_mixer_read(struct hf_keys *keys, struct decoder_shape *shape);

#endif
