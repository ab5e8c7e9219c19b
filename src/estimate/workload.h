/* A workload: one pass of a model, or a complete request to a decoder as its passes, each with its graph and partition.
 *
 * A request of P prompt and N output tokens is one prefill, which yields the first token, and N - 1 decode steps with
 * contexts of P + 1, P + 2, ... tokens.  The steps differ in nothing else, and their cost is nearly linear in the
 * context.  So only a few of them are built, and each counts `times` for those around it: the sum is that of linear
 * interpolation, and short answers are built step by step.
 *
 * A list of workloads has every combination of the given batches, prompt lengths and context lengths, with the model's
 * own defaults for the others.
 *
 * Ownership: workload_make and workload_list_make fill structs that workload_release and workload_list_release free;
 * the model and the dims of the options are borrowed. */
#ifndef IPW_ESTIMATE_WORKLOAD_H
#define IPW_ESTIMATE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"
#include "estimate/partition.h"
#include "estimate/runtime.h"
#include "graph/reader.h"

struct workload_spec {
    const struct model *model;
    struct graph_options setting; /* 0: the model's own */
    bool is_request;              /* prefill and decode; setting.phase is ignored */
    int64_t output_tokens;        /* per request, at least 1 */
    int stages;                   /* pipeline stages; 0: 1 */
    int micro_batches;            /* 0: by batch, length and runtime */
    enum partition_fusion fusion;
    enum runtime_id runtime;
    bool has_default_runtime; /* the runtime is the default of its device: workload_spec_run_on */
};

/* Sets the default runtime for this device, if none was requested. */
void workload_spec_run_on(struct workload_spec *spec, const struct hardware *hardware);

/* Ideal kernels are a bound only if they are fused. */
static inline bool workload_is_bound(const struct workload_spec *spec)
{
    return spec->runtime == RUNTIME_IDEAL && spec->fusion == PARTITION_FUSED;
}

/* A step has micro-batches of at most two sizes; as many chunks of a long prompt are built as decode steps. */
enum { WORKLOAD_STEPS_MAX = 5, WORKLOAD_PASSES_MAX = 3 * WORKLOAD_STEPS_MAX };

struct workload_pass {
    struct graph_options setting; /* resolved by the model */
    struct graph graph;
    struct partition partition;
    struct partition unfused; /* for a bound: unfused kernels may be faster */
    double times;             /* number of executions: steps times micro-batches */
    size_t step;              /* common to all passes of a step */
    double steps;             /* number of steps that it represents */
    int64_t chunk;            /* index of a chunk, if a pipeline divides the prompt; else 0 */
};

struct estimate_workload {
    struct workload_spec spec; /* its setting as resolved by the model */
    struct workload_pass passes[WORKLOAD_PASSES_MAX];
    size_t count, prefill_count; /* passes of the prompt come first */
    double batch;                /* samples or sequences of one pass, as its graph has them */
    double units;                /* samples or tokens produced by all passes */
    const char *unit;            /* "sample", "prompt token", "output token", "token" */
    bool has_stored;             /* some weights have a stored precision */
    struct graph_precision file;
    struct graph_notes notes;
};

enum err workload_make(const struct workload_spec *spec, struct estimate_workload *out,
                       struct error *why) MUST_USE;
void workload_release(struct estimate_workload *work);

/* Frees graphs and partitions once no more estimates are needed; the rest stays.  workload_release is still
 * required. */
void workload_drop_graphs(struct estimate_workload *work);

/* The demand on a model, independent of the device: the prompt length, and the longest context.  Estimates of one
 * demand are alternatives; those of different demands are not. */
struct workload_demand {
    int64_t prompt;  /* tokens; 0: none, or irrelevant (a single decode step) */
    int64_t context; /* tokens at the end of a request, or of a decode step; 0: none */
};
struct workload_demand workload_demand(const struct workload_spec *spec);
/* For qsort: shorter prompts first, then shorter contexts. */
int workload_demand_compare(const struct estimate_workload *a, const struct estimate_workload *b);

/* ---- several workloads ---- */

/* Command-line options; NULL and 0: not given. */
struct workload_options {
    const char *batch, *prompt_tokens, *context; /* "8", "1,8,32", "1..64" or "1..64x2" */
    const char *phase;                           /* "prefill" or "decode"; NULL: a request */
    const char *image;                           /* "224" or "480x640" */
    unsigned output_tokens;
    struct params dims;
    unsigned stages, micro_batches; /* for pipeline parallelism */
    bool sweep; /* batches 1 to 64, if no batch is given and the model accepts any */
    bool no_fusion;
    const char *runtime; /* by name; NULL: the default of the device; with no_fusion ideal */
};

struct workload_list {
    struct workload_spec *items; /* every batch of every prompt and context */
    size_t count;                /* at least 1 */
};

/* ERR_USAGE for invalid lists, and for an option without effect on the model.  Lengths beyond the trained context cause
 * a warning, and are estimated. */
enum err workload_list_make(const struct workload_options *options, const struct model *model,
                            struct workload_list *out, struct error *why) MUST_USE;
void workload_list_release(struct workload_list *list);

/* ERR_USAGE if the graph of the first workload has another batch or length than requested: the file fixes it. */
enum err workload_list_check(const struct workload_list *list,
                             const struct estimate_workload *first, struct error *why) MUST_USE;

#endif
