/* Any bytes as files of models that are no GGUF: for the tests of damage and the fuzzers, without a test library.
 * Nothing is kept; texts last as long as the program. */
#ifndef TESTS_SUPPORT_MODEL_BYTES_H
#define TESTS_SUPPORT_MODEL_BYTES_H

#include <stddef.h>

#include "core/text.h"

/* A config.json of a small decoder with all that may be told of one. */
const char *model_config_text(void);
/* Adds a whole safetensors file, of a small decoder of two layers, its numbers 0. */
void model_safetensors_add(struct text *out);

/* Reads the bytes, builds what they make, and counts it.  Gives what is wrong with our reading, NULL when nothing
 * is; a file that is refused in one line is nothing wrong. */
const char *model_config_exercise(const void *bytes, size_t length);
const char *model_safetensors_exercise(const void *bytes, size_t length);

#endif
