/* A small model with random weights for the tests of in-process inference: one per test program,
 * created and removed as its group fixture. Without libllama nothing is created, and every test
 * skips. */
#ifndef TESTS_SUPPORT_MODEL_H
#define TESTS_SUPPORT_MODEL_H

#include <stddef.h>

#include "core/err.h"

/* Parameters given to tests/e2e/make_gguf.py. */
enum { MODEL_LAYERS = 2, MODEL_HIDDEN = 64, MODEL_HEADS = 2, MODEL_CONTEXT = 256 };

/* Group set-up and teardown.  IPW_MODELS is set to the folder, with the model in it as tiny-1b. */
int model_make(void **state);
int model_remove(void **state);

const char *model_path(void);   /* .../tiny-1b.gguf */
const char *model_folder(void); /* for files that a test creates; they are removed with it */

/* For SKIP_WITHOUT. */
enum err model_available(struct error *why);

/* The file's bytes, for free; NULL when it cannot be read. And a file with those bytes in the folder. */
unsigned char *model_bytes(size_t *length);
const char *model_write(const char *name, const unsigned char *bytes, size_t length);

#endif
