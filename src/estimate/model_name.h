/* One spelling for the many ways in which a model is named.  Pure; the caller owns the buffer. */
#ifndef IPW_ESTIMATE_MODEL_NAME_H
#define IPW_ESTIMATE_MODEL_NAME_H

#include <stddef.h>

#define MODEL_NAME_MAX 128

/* "meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1:8b-instruct-q4_K_M" and
 * "Llama-3.1-8B-Instruct-AWQ" are all "llama-3.1-8b".
 *
 * The last part of a path is taken, in lower case; words that tell how the weights were tuned for
 * use (instruct, chat, it, base ...), stored (gguf, awq, q4_K_M, fp8 ...) or tagged (latest) are
 * dropped, wherever they stand; `:`, `_`, a space, and a dot before a letter become `-`; and a digit
 * that follows a letter gets a `-` before it, the x of "8x7b" apart.  Nothing that may be part of
 * which model it is (coder, vision, distill, a date) is dropped.
 *
 * Writes "" for a name that says nothing, or one that does not fit: a cut name could be another's. */
void model_name_normalise(const char *name, char *to, size_t size);

#endif
