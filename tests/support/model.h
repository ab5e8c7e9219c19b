/* A small model of random weights for the tests of in-process inference: one a test program, made and
 * removed as its group fixture.  Where libllama is missing nothing is made, and every test skips. */
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
const char *model_folder(void); /* for files that a test makes; all go with it */

/* For SKIP_WITHOUT. */
enum err model_available(struct error *why);

/* The file's bytes, for free; NULL when it cannot be read.  And a file of those bytes in the folder. */
unsigned char *model_bytes(size_t *length);
const char *model_write(const char *name, const unsigned char *bytes, size_t length);

#endif
