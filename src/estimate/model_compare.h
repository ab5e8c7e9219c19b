/* Several models on one device: energy and latency of the same workload, and published accuracies as a third axis.
 *
 * An accuracy is of the weights as published, never measured.  Each benchmark is a figure of its own, and the frontier
 * takes one of them.  Ownership: a zeroed struct is empty, and model_comparison_release frees it. */
#ifndef IPW_ESTIMATE_MODEL_COMPARE_H
#define IPW_ESTIMATE_MODEL_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/accuracy.h"
#include "estimate/workload_estimate.h"

struct result;

struct compared_model {
    char name[128];
    const char *unit; /* of the energy: "token" */
    double params, memory_bytes, latency_s;
    double joules_each, joules_plus_minus; /* per unit */
    bool fits;                             /* known to */
    enum precision precision;
    struct accuracy accuracies[ACCURACIES_MAX];
    size_t accuracy_count;
    bool on_frontier;
};

struct model_comparison {
    struct compared_model *items; /* least energy first */
    size_t count;
    const struct benchmark *axis; /* NULL: no model has a figure */
    char device[64];
    bool has_phases; /* of decoders */
};

/* The estimate may be released afterwards. */
void model_comparison_add(struct model_comparison *comparison,
                          const struct workload_estimate *estimate);
/* Sorts, and marks models that fit and to which none is superior in energy, latency and accuracy.  axis: NULL, the
 * benchmark that most models have. */
void model_comparison_finish(struct model_comparison *comparison, const struct benchmark *axis);
void model_comparison_release(struct model_comparison *comparison);

void model_comparison_result(const struct model_comparison *comparison, struct result *out);

/* A list "accuracies" of a model of the catalog; omitted if there are none. */
void accuracies_to_result(struct result *result, const struct model *model);

#endif
