/* Words and cells that the reports of estimates share.  Each writes into the caller's buffer and gives it
 * back. */
#ifndef IPW_REPORT_ESTIMATE_WORDS_H
#define IPW_REPORT_ESTIMATE_WORDS_H

#include <stddef.h>

#include "estimate/budget.h"
#include "estimate/workload_estimate.h"
#include "graph/graph.h"

struct text;

enum { WORDS_MAX = 256 };

/* "batch 8, 512 prompt and 128 output tokens, 2 devices". */
char *words_setting(char *to, const struct workload_estimate *estimate);
/* "whole", "request", "prefill", "decode". */
const char *words_phase(const struct workload_spec *question);
/* The unit in one word, for heads of columns: "sample", "token". */
const char *words_unit(const struct workload *work);
/* "a sample", "an output token". */
char *words_each(char *to, const char *unit);
/* "~12.3 ± 4.5 mJ"; without a ± where that is not known. */
char *words_joules(char *to, double joules, double plus_minus);
/* "~410 ± 20 W", likewise. */
char *words_watts(char *to, double watts, double plus_minus);
/* "3 compute, 20 memory, 31 launch". */
char *words_bounds(char *to, const double counts[BOUND_COUNT]);
/* "NVIDIA H200 SXM 141GB"; the point at which it runs stands behind it: "...@30W". */
char *words_device(char *to, const struct hardware *hardware);
/* "s", or "" of one. */
const char *words_plural(double count);
/* "54 %", "< 1 %", "-". */
char *words_share(char *to, double share);
/* "-", or the number with three digits and a unit prefix: "2.43 k". */
char *words_rate(char *to, double rate);
/* "devices divide 0.01 % of the MACs, and each does the rest"; NULL where they divide nearly all. */
char *words_divided(char *to, const struct workload_estimate *estimate);
/* "54 %", "-12 %" of what costs more, "-". */
char *words_saving(char *to, double saving);
/* What proposals are for: "what would cost less", or "what would help" where limits are broken. */
const char *words_proposals(const struct budget *budget, const struct workload_estimate *estimate);
/* "PASS  latency  0.41 ms of 5 ms, 92 % to spare". */
char *words_check(char *to, const struct budget_check *check,
                  const struct workload_estimate *estimate);

/* The figures of the device that an estimate rests on, those that were assumed for want of any among them. */
struct words_figure {
    const char *name, *unit;
    const char *format; /* of numbers: "fp16"; NULL: it is of none */
    struct hardware_figure figure;
};
enum { WORDS_FIGURES_MOST = 16 };
size_t words_figures(const struct workload_estimate *estimate,
                     struct words_figure out[WORDS_FIGURES_MOST]);

/* What the source calls the operators that nobody knows, each once; gives how many, at most `most`. */
size_t words_unknown(const struct graph *graph, const char **labels, size_t most);

#endif
