/* The keys of a config.json, each held to what a model may have.  Nothing is kept. */
#ifndef IPW_GRAPH_HF_KEYS_H
#define IPW_GRAPH_HF_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct jv;

/* The first failure stays, and the rest does nothing: only `err` is looked at, at the end. */
struct hf_keys {
    const char *file;
    const struct jv *json;
    struct error *why;
    enum err err;
};

/* 1 .. most.  A key that is missing or null leaves `otherwise`; where that is 0 it is an error. */
uint64_t hf_size(struct hf_keys *keys, const char *key, uint64_t most, uint64_t otherwise);

/* The same, where missing or 0 means that there is none. */
uint64_t hf_size_or_none(struct hf_keys *keys, const char *key, uint64_t most);

bool hf_truth(struct hf_keys *keys, const char *key, bool otherwise);

/* NULL when it is missing or null; something else than a string is an error. */
const char *hf_text(struct hf_keys *keys, const char *key);

void hf_refuse(struct hf_keys *keys, enum err code, const char *key, const char *what);

#endif
