/* What is computed: one pass of a model, or a whole request to a decoder as its passes, each with its graph and
 * partition.
 *
 * A request of P prompt and N output tokens is one prefill, which yields the first token, and N - 1 decode steps
 * with contexts of P + 1, P + 2, ... tokens.  The steps differ in nothing else, and their cost is nearly linear in
 * the context.  So only a few of them are built, and each counts `times` for those around it: the sum is that of
 * linear interpolation, and short answers are built step by step.
 *
 * Ownership: workload_make fills a struct that workload_release frees; the model is borrowed. */
#ifndef IPW_ESTIMATE_WORKLOAD_H
#define IPW_ESTIMATE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/partition.h"
#include "graph/reader.h"

struct workload_spec {
    const struct model *model;
    struct graph_options setting; /* 0: the model's own */
    bool is_request;              /* prefill and decode; setting.phase is ignored */
    int64_t output_tokens;        /* of a request, at least 1 */
    enum partition_fusion fusion;
};

enum { WORKLOAD_STEPS_MOST = 5, WORKLOAD_PASSES_MOST = WORKLOAD_STEPS_MOST + 1 };

struct workload_pass {
    struct graph_options setting; /* as the model resolved it */
    struct graph graph;
    struct partition partition;
    double times; /* that it runs */
};

struct workload {
    struct workload_spec spec; /* its setting as the model resolved it */
    struct workload_pass passes[WORKLOAD_PASSES_MOST];
    size_t count;
    double batch;     /* samples or sequences of one pass, as its graph has them */
    double units;     /* samples or tokens that all passes produce */
    const char *unit; /* "sample", "prompt token", "output token", "token" */
    bool has_stored;  /* some weights have a stored precision */
};

enum err workload_make(const struct workload_spec *spec, struct workload *out, struct error *why)
    MUST_USE;
void workload_release(struct workload *work);

/* Frees graphs and partitions once no more estimates are made of them; the rest stays.  workload_release is
 * still needed. */
void workload_drop_graphs(struct workload *work);

/* What is demanded of a model, whatever it runs on: the prompt length, and the longest context.  Estimates of one
 * demand are alternatives; of two demands neither replaces the other. */
struct workload_demand {
    int64_t prompt; /* tokens; 0: none, or irrelevant (a single decode step) */
    int64_t
        context; /* tokens that prompt and answer grow to, or that a decode step sees; 0: none */
};
struct workload_demand workload_demand(const struct workload_spec *spec);
/* For qsort: shorter prompts first, then shorter contexts. */
int workload_demand_compare(const struct workload *a, const struct workload *b);

#endif
