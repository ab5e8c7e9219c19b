/* The ledger of one query of an agent: joules of the query, its turns, inferences with their phases, tools, and the gaps
 * between them, from the sharing of all queries (attribute/share.h).
 *
 * The time of a query is cut into what each span does itself: an inference is a request with tokens, a tool a request
 * with CPU time, and what an agent or a turn has besides those is waiting.  Sharing gives every joule to one of them, so
 * the energies of a query's spans add up to the query's, and those of the queries, with idle and unattributed energy,
 * to the machine's.
 *
 *   at the start of a query   sharing_begin(sharing, id, from)
 *   at its end                trace_tree_build, span_account_new, span_account_submit
 *   when shares come          span_account_take: the account, once it is complete; then span_account_trace
 *
 * Ownership: an account owns its tree; span_account_free frees both. */
#ifndef IPW_ATTRIBUTE_SPAN_ACCOUNT_H
#define IPW_ATTRIBUTE_SPAN_ACCOUNT_H

#include "attribute/share.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/text.h"
#include "trace/trace.h"

struct query_trace;
struct record;

/* What one span spent. */
struct span_energy {
    struct energy energy; /* with what it contains; unknown, with the reason */
    struct energy own;    /* without; unknown where it did nothing itself */
    double own_joules;    /* of that; 0 then */
    double gpu_joules, cpu_joules, dram_joules, soc_joules; /* of `energy`, by kind of device */
    double peak_watts;                                      /* of the GPUs */
};

struct span_account {
    struct trace_tree tree;
    struct span_energy *spans; /* one per span of the tree */
    double mbu_avg_pct, mbu_max_pct;
    double concurrency; /* mean number of queries in flight, this one included */
    double alone_s;
    void *context; /* the caller's */

    struct span_segment *segments; /* what the sharing has of it */
    size_t segment_count, segment_capacity;
    size_t left;       /* whose share has not come yet */
    double segments_s; /* together */
    double mbu_sum,
        mbu_parts;     /* of mbu_avg_pct so far: percents by their parts of the time, and those */
    struct text texts; /* of the trace that was made of it */
};

/* Takes the tree over, also when it fails (NULL: out of memory). */
struct span_account *span_account_new(struct trace_tree *tree, void *context);
void span_account_free(struct span_account *account);

/* Gives its time to the sharing, in which the query is in flight by `id`, below 2^40; that ends here.  An account without
 * any time is complete at once: left is 0. */
enum err span_account_submit(struct span_account *account, struct sharing *sharing, uint64_t id)
    MUST_USE;

/* Whether a share is of an account; and if so, the account when this was the last of it, else NULL. */
bool span_account_owns(const struct share *share);
struct span_account *span_account_take(const struct share *share);

/* Fills in turns, energies and spans of a trace of a complete account; the caller fills in the rest and then calls
 * query_trace_compute.  Texts point into the account, lists are the trace's. */
enum err span_account_trace(struct span_account *account, struct query_trace *out) MUST_USE;

/* Likewise the energies, phases and tokens of its record. */
void span_account_record(const struct span_account *account, struct record *out);

#endif
