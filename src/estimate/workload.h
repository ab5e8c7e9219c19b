/* What is computed: one pass of a model, or a whole request to a decoder as its passes, each with its graph and
 * partition.
 *
 * A request of P prompt and N output tokens is one prefill, which yields the first token, and N - 1 decode steps
 * with contexts of P + 1, P + 2, ... tokens.  The steps differ in nothing else, and their cost is nearly linear in
 * the context.  So only a few of them are built, and each counts `times` for those around it: the sum is that of
 * linear interpolation, and short answers are built step by step.
 *
 * A user asks for several at once: every batch, prompt length and context length of the lists given, with the
 * model's own defaults for the rest.
 *
 * Ownership: workload_make and workload_list_make fill structs that workload_release and workload_list_release
 * free; the model and the dims of the options are borrowed. */
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
    int64_t output_tokens;        /* of a request, at least 1 */
    int stages;                   /* of pipeline parallelism; 0: 1 */
    int micro_batches;            /* that pass them; 0: by batch, length and runtime */
    enum partition_fusion fusion;
    enum runtime_id runtime;
    bool has_usual_runtime; /* the runtime is the default of its device: workload_spec_run_on */
};

/* Sets the runtime that is the default on this device, where none was asked for. */
void workload_spec_run_on(struct workload_spec *spec, const struct hardware *hardware);

/* A step has micro-batches of two sizes at most; of a long prompt as many chunks are built as of decode steps. */
enum { WORKLOAD_STEPS_MOST = 5, WORKLOAD_PASSES_MOST = 3 * WORKLOAD_STEPS_MOST };

struct workload_pass {
    struct graph_options setting; /* as the model resolved it */
    struct graph graph;
    struct partition partition;
    double times;  /* that it runs: steps times micro-batches */
    size_t step;   /* a number that passes of the same step have in common */
    double steps;  /* that it stands for */
    int64_t chunk; /* of a prompt that a pipeline computes in chunks: its number; else 0 */
};

struct workload {
    struct workload_spec spec; /* its setting as the model resolved it */
    struct workload_pass passes[WORKLOAD_PASSES_MOST];
    size_t count, prefill_count; /* those of a prompt are the first ones */
    double batch;                /* samples or sequences of one pass, as its graph has them */
    double units;                /* samples or tokens that all passes produce */
    const char *unit;            /* "sample", "prompt token", "output token", "token" */
    bool has_stored;             /* some weights have a stored precision */
    struct graph_precision file;
    struct graph_notes notes;
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
    int64_t prompt;  /* tokens; 0: none, or irrelevant (a single decode step) */
    int64_t context; /* tokens at the end of a request, or of a decode step; 0: none */
};
struct workload_demand workload_demand(const struct workload_spec *spec);
/* For qsort: shorter prompts first, then shorter contexts. */
int workload_demand_compare(const struct workload *a, const struct workload *b);

/* ---- several workloads ---- */

/* As on the command line; NULL and 0: not given. */
struct workload_options {
    const char *batch, *prompt_tokens, *context; /* "8", "1,8,32", "1..64" or "1..64x2" */
    const char *phase;                           /* "prefill" or "decode"; NULL: a request */
    const char *image;                           /* "224" or "480x640" */
    unsigned output_tokens;
    struct params dims;
    unsigned stages, micro_batches; /* of pipeline parallelism */
    bool sweep; /* batches 1 to 64, where no batch is given and the model takes any */
    bool no_fusion;
    const char *runtime; /* by name; NULL: the default of the device; with no_fusion ideal */
};

struct workload_list {
    struct workload_spec *items; /* every batch of every prompt and context */
    size_t count;                /* at least 1 */
};

/* ERR_USAGE for lists that are not numbers, and for an option that the model cannot follow, since it would seem
 * to have an effect.  Lengths beyond what the model was trained for are warned about, and estimated. */
enum err workload_list_make(const struct workload_options *options, const struct model *model,
                            struct workload_list *out, struct error *why) MUST_USE;
void workload_list_release(struct workload_list *list);

/* ERR_USAGE when the graph of the first workload has another batch or length than was asked for: the file fixes
 * it. */
enum err workload_list_check(const struct workload_list *list, const struct workload *first,
                             struct error *why) MUST_USE;

#endif
