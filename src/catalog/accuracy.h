/* Published accuracies of models, from data/models: never measured here, and of the weights as published.  Strings are
 * the catalog's. */
#ifndef IPW_CATALOG_ACCURACY_H
#define IPW_CATALOG_ACCURACY_H

#include <stddef.h>

#include "catalog/benchmark.h"

struct accuracy {
    const struct benchmark *benchmark;
    const char *model, *source, *note; /* the published model, with its owner */
    double percent;
};

enum { ACCURACIES_MAX = 16 };

/* Of a model by any of its names, regardless of tags for tuning and storage; a name with an owner matches that owner's
 * alone. */
size_t model_accuracies(const char *name, struct accuracy out[ACCURACIES_MAX]);

/* An item of the open list. */
struct result;
void accuracy_to_result(struct result *result, const struct accuracy *accuracy);

#endif
