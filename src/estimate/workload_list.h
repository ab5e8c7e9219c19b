/* The workloads that a user asks for: every batch, prompt length and context length of the lists given, as
 * workload specs of one model, with the model's own defaults for the rest.
 *
 * Ownership: workload_list_make fills a struct that workload_list_release frees; specs borrow the model and the
 * dims of the options. */
#ifndef IPW_ESTIMATE_WORKLOAD_LIST_H
#define IPW_ESTIMATE_WORKLOAD_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/params.h"
#include "estimate/workload.h"

/* As on the command line; NULL and 0: not given. */
struct workload_options {
    const char *batch, *prompt_tokens, *context; /* "8", "1,8,32", "1..64" or "1..64x2" */
    const char *phase;                           /* "prefill" or "decode"; NULL: a request */
    unsigned output_tokens, image;
    struct params dims;
    bool sweep; /* batches 1 to 64, where no batch is given and the model takes any */
    bool no_fusion;
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
