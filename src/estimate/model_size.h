/* How many parameters a model has, and how many of them a token passes through.  Pure over a table
 * (models.def) or the user's own figures; the caller owns every struct, strings are static. */
#ifndef IPW_ESTIMATE_MODEL_SIZE_H
#define IPW_ESTIMATE_MODEL_SIZE_H

#include <stdbool.h>

#include "core/err.h"

struct model_size {
    double total;  /* parameters */
    double active; /* of them, those that one token of text uses: fewer in a mixture of experts */
    const char *source; /* where the figure is from */
};

/* A published model by its name, after normalising (model_name.h); the match is exact: a name that
 * merely contains another is another model.  False, and *out unknown, when it is not in the table. */
bool model_size_find(const char *name, struct model_size *out);

/* The user's own figures: "8.03e9", "8.03B", "360M", "1T".  active may be NULL: all of them. */
enum err model_size_given(const char *total, const char *active, struct model_size *out,
                          struct error *why) MUST_USE;

/* 2 x active: a multiplication and an addition for each weight.  UNKNOWN for an unknown size. */
double model_flops_per_token(const struct model_size *size);

#endif
