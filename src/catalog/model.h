/* How many parameters a model has, and how many of them a token passes through.  Pure over a table
 * (models.def) or the user's own figures; the caller owns every struct, strings are static. */
#ifndef IPW_CATALOG_MODEL_H
#define IPW_CATALOG_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

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

struct model_size {
    double total;  /* parameters */
    double active; /* of them, those that one token of text uses: fewer in a mixture of experts */
    const char *source; /* where the figure is from */
};

/* A published model by its name, after normalising; the match is exact: a name that
 * merely contains another is another model.  False, and *out unknown, when it is not in the table. */
bool model_size_find(const char *name, struct model_size *out);

/* The user's own figures: "8.03e9", "8.03B", "360M", "1T".  active may be NULL: all of them. */
enum err model_size_given(const char *total, const char *active, struct model_size *out,
                          struct error *why) MUST_USE;

/* 2 x active: a multiplication and an addition for each weight.  UNKNOWN for an unknown size. */
double model_flops_per_token(const struct model_size *size);

#endif
