/* Published models: parameters, architectures, and the many spellings of their names.  From
 * data/models (catalog/catalog_file.h); the caller owns every struct, strings are the catalog's.
 *
 * There are two rules for names.  The size of a model does not depend on how its weights were tuned or stored, so
 * model_size_find ignores both ("llama3.1:8b-instruct-q4_K_M" is Llama 3.1 8B).  An estimate does depend on how they
 * are stored, so model_architecture ignores spelling alone, and other names must be listed. */
#ifndef IPW_CATALOG_MODEL_H
#define IPW_CATALOG_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* ---- sizes ---- */

struct model_size {
    double total;       /* parameters */
    double active;      /* used per text token: fewer in a mixture of experts */
    const char *source; /* source of the figure */
};

/* The match is exact after normalization: a name that merely contains another is another model.  False, and *out
 * unknown, when it is not in the catalog. */
bool model_size_find(const char *name, struct model_size *out);

/* Figures given by the user: "8.03e9", "8.03B", "360M", "1T", or "671B,37B" with those active per token; one number
 * is all parameters. */
enum err model_size_parse(const char *text, struct model_size *out, struct error *why) MUST_USE;

/* 2 x active: a multiplication and an addition per weight.  UNKNOWN for an unknown size. */
double model_flops_per_token(const struct model_size *size);

/* ---- architectures ---- */

/* The architecture (in the zoo) of a model by one of its listed names, with or without its owner; NULL when it has none. */
const char *model_architecture(const char *name);

struct jv;

/* An architecture of the catalog. */
struct model_shape {
    const char *name;             /* name of the architecture: "llama-3.1-8b" */
    const char *summary, *source; /* source of the sizes */
    const struct jv *config; /* its config.json (graph/hf.h), without what has no effect on sizes */
};
size_t model_shape_count(void);
const struct model_shape *model_shape_at(size_t index);
const struct model_shape *model_shape_find(const char *name); /* NULL: none of this name */

/* ---- the complete list ---- */

struct model_card {
    const char *const *names; /* as published first; ends in NULL */
    struct model_size size;   /* UNKNOWN where it is not needed */
    const char *architecture; /* NULL: cannot be built */
};
size_t model_card_count(void);
const struct model_card *model_card_at(size_t index);
/* By a listed name, with or without its owner; NULL: none. */
const struct model_card *model_card_find(const char *name);

/* Published accuracies (catalog/benchmark.h). */
struct accuracy_table;
size_t model_accuracy_table_count(void);
const struct accuracy_table *model_accuracy_table_at(size_t index);

/* ---- names ---- */

#define MODEL_NAME_MAX 128

/* "meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1:8b-instruct-q4_K_M" and "Llama-3.1-8B-Instruct-AWQ" are all
 * "llama-3.1-8b".
 *
 * The last component of a path is taken, in lower case; words for tuning (instruct, chat, it, base ...), storage (gguf,
 * awq, q4_K_M, fp8 ...) and tags (latest) are removed wherever they occur; `:`, `_`, a space, and a dot before a letter
 * become `-`; and a `-` is inserted before a digit that follows a letter, except after the x of "8x7b".  Words that may
 * identify the model (coder, vision, distill, a date) are kept.
 *
 * Writes "" for a name without identifying words, or one that does not fit: a truncated name could be that of
 * another model. */
void model_name_normalize(const char *name, char *to, size_t size);

/* Equal when case is ignored, and "-", "_", "." and spaces except between digits. */
bool model_name_equal(const char *a, const char *b);

#endif
