/* Any bytes as model files other than GGUF: for the tests of damage and the fuzzers, without a test
 * library. Nothing is kept; texts are static. */
#ifndef TESTS_SUPPORT_MODEL_BYTES_H
#define TESTS_SUPPORT_MODEL_BYTES_H

#include <stddef.h>

#include "core/text.h"

/* A config.json of a small decoder with all supported keys. */
const char *model_config_text(void);
/* Adds a complete safetensors file of a small decoder of two layers, with elements of 0. */
void model_safetensors_add(struct text *out);

/* Parses the bytes, builds the graph, and counts it. Returns what is wrong with our reader, NULL
 * when nothing is; rejecting a file with a one-line error is not wrong. */
const char *model_config_exercise(const void *bytes, size_t length);
const char *model_safetensors_exercise(const void *bytes, size_t length);

#endif
