/* What is to be computed: one pass of a model, or a whole request to a decoder as the passes that it is
 * made of, each with its graph and partition.
 *
 * A request of P prompt and N output tokens is one prefill, out of which the first token comes, and
 * N - 1 steps of decoding that see P + 1, P + 2, ... tokens.  The steps differ in nothing else, and
 * what one costs is nearly a straight line in their number.  So a few of them are built, and
 * each counts `times` for those around it: the sum is that of straight lines from one to the next, and
 * of few tokens every step is built.
 *
 * Ownership: workload_make fills a struct that workload_release takes back; the model is the caller's. */
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
    struct graph_options setting; /* 0 in it: the model's own */
    bool is_request;              /* both phases of a decoder; setting.phase is not looked at */
    int64_t output_tokens;        /* of a request, at least 1 */
    enum partition_fusion fusion;
};

enum { WORKLOAD_STEPS_MOST = 5, WORKLOAD_PASSES_MOST = WORKLOAD_STEPS_MOST + 1 };

struct workload_pass {
    struct graph_options setting; /* as the model took it */
    struct graph graph;
    struct partition partition;
    double times; /* that it is run */
};

struct workload {
    struct workload_spec spec; /* its setting as the model took it */
    struct workload_pass passes[WORKLOAD_PASSES_MOST];
    size_t count;
    double batch;     /* samples or sequences of one pass, as its graph has them */
    double units;     /* samples, or tokens, that come of all passes */
    const char *unit; /* "sample", "prompt token", "output token", "token" */
    bool has_stored;  /* weights that have a format of their own */
};

enum err workload_make(const struct workload_spec *spec, struct workload *out, struct error *why)
    MUST_USE;
void workload_release(struct workload *work);

/* Gives graphs and partitions back, once no more estimates are made of them: what is left says what was
 * computed.  workload_release is still due. */
void workload_drop_graphs(struct workload *work);

/* What is wanted of a model, whatever it is run on and with how many beside it: how long a prompt, and how many
 * tokens the last one sees.  Estimates of one demand are choices between which one may take the cheaper; of two
 * demands neither stands for the other. */
struct workload_demand {
    int64_t prompt; /* tokens; 0: there is none, or it does not count (one step of decoding) */
    int64_t
        context; /* tokens that prompt and answer grow to, or that a decoded one sees; 0: none */
};
struct workload_demand workload_demand(const struct workload_spec *spec);
/* Below 0, 0, above 0, as qsort wants it: shorter prompts first, then shorter contexts. */
int workload_demand_compare(const struct workload *a, const struct workload *b);

#endif
