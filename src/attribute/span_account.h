/* The energy of one agent query: joules of the query, its turns, inferences with their phases, tools, and the gaps
 * between them, from the attribution of all queries (attribute/share.h).
 *
 * The time of a query is cut into the own time of each span: an inference is a request with tokens, a tool a request
 * with CPU time, and the remaining time of an agent or a turn is waiting.  Every joule is attributed to one of them, so
 * the energies of a query's spans add up to the query's, and those of the queries, with idle and unattributed energy,
 * to the machine's.
 *
 *   at the start of a query   sharing_begin(sharing, id, from)
 *   at its end                trace_tree_build, span_account_new, span_account_submit
 *   when shares arrive        span_account_take: the account, once it is complete; then span_account_trace
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

/* Energy of one span. */
struct span_energy {
    struct energy energy; /* including its children; unknown, with the reason */
    struct energy own;    /* without its children; unknown where it has no own time */
    double own_joules;    /* joules of `own`; 0 where unknown */
    double gpu_joules, cpu_joules, dram_joules, soc_joules; /* `energy` by kind of device */
    double peak_watts;                                      /* peak power of the GPUs */
};

struct span_account {
    struct trace_tree tree;
    struct span_energy *spans; /* one per span of the tree */
    double mbu_avg_pct, mbu_max_pct;
    /* Of the whole devices in the query's window: by kind, and of those in the total. */
    double gpu_window_joules, cpu_window_joules, soc_window_joules, window_joules;
    double concurrency; /* mean number of queries in flight, this one included */
    double alone_s;
    void *context; /* the caller's */

    struct span_segment *segments; /* as submitted to the sharing */
    size_t segment_count, segment_capacity;
    size_t left;               /* segments whose share has not arrived yet */
    double segments_s;         /* total length */
    double mbu_sum, mbu_parts; /* sums for mbu_avg_pct: percent x weight, and weights */
    struct text texts;         /* strings of the trace made from it */
};

/* Takes ownership of the tree. */
struct span_account *span_account_new(struct trace_tree *tree, void *context);
void span_account_free(struct span_account *account);

/* Submits its segments to the sharing, in which the query is in flight as `id`, below 2^40, and which ends here.  An
 * account without any time is complete at once: left is 0. */
enum err span_account_submit(struct span_account *account, struct sharing *sharing, uint64_t id)
    MUST_USE;

/* Whether a share belongs to an account; and if so, the account when this was its last share, else NULL. */
bool span_account_owns(const struct share *share);
struct span_account *span_account_take(const struct share *share);

/* Fills the turns, energies and spans of the trace of a complete account; the caller fills the other fields and then
 * calls query_trace_compute.  Strings point into the account, lists belong to the trace. */
void span_account_trace(struct span_account *account, struct query_trace *out);

/* Fills the energies, phases and tokens of its record. */
void span_account_record(const struct span_account *account, struct record *out);

#endif
