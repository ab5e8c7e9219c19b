/* Writing GGUF files in memory, for the tests of their readers. A struct gguf_file is owned by the
 * caller and released with gguf_file_release; it needs no test library, so that fuzzers can use it
 * too. */
#ifndef TESTS_SUPPORT_GGUF_FILE_H
#define TESTS_SUPPORT_GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

struct gguf_file {
    uint32_t version;   /* 3 unless set before the end */
    uint32_t alignment; /* 32 unless set before the first tensor */
    uint64_t value_count, tensor_count, data_bytes;
    struct text values, tensors;
    struct text whole; /* after gguf_file_end */
};

void gguf_file_release(struct gguf_file *file);

/* Keys. `type` is as in enum gguf_type; bytes are written unchanged. */
void gguf_file_raw(struct gguf_file *file, const char *key, uint32_t type, const void *bytes,
                   size_t length);
void gguf_file_string(struct gguf_file *file, const char *key, const char *value);
void gguf_file_u32(struct gguf_file *file, const char *key, uint32_t value);
void gguf_file_array(struct gguf_file *file, const char *key, uint32_t item_type, uint64_t count,
                     const void *bytes, size_t length);
void gguf_file_strings(struct gguf_file *file, const char *key, const char *const *items,
                       size_t count);

/* A tensor after the previous ones; trailing dimensions of 0 are omitted. */
void gguf_file_tensor(struct gguf_file *file, const char *name, uint32_t type, uint64_t columns,
                      uint64_t rows, uint64_t depth);
/* The same at a given offset. */
void gguf_file_tensor_at(struct gguf_file *file, const char *name, uint32_t type, uint64_t columns,
                         uint64_t rows, uint64_t depth, uint64_t offset);

/* Assembles the file; the tensors' elements are 0. */
void gguf_file_end(struct gguf_file *file);

/* A small complete Llama model: two layers of 64 features, 4 heads, 2 KV heads, a feed-forward
 * width of 96, 32 tokens, tied embeddings. */
enum { GGUF_MODEL_LAYERS = 2 };
void gguf_file_model(struct gguf_file *file);

/* Parses the bytes as a file, traverses it, and counts it as a decoder. Returns what is wrong with
 * our reader, NULL when nothing is; rejecting a file is not wrong. */
const char *gguf_file_exercise(const void *bytes, size_t length);

#endif
