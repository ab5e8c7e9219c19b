/* A look at a GGUF file before the library gets it, which ends the process for some broken ones.
 * Nothing is kept. */
#ifndef IPW_ENGINE_LLAMA_GGUF_H
#define IPW_ENGINE_LLAMA_GGUF_H

#include "core/err.h"

/* ERR_NOT_FOUND, ERR_DENIED, or ERR_BAD_VALUE with what is wrong with it. */
enum err gguf_look(const char *path, struct error *why) MUST_USE;

#endif
