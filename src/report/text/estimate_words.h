/* Shared by the reports and plots of estimates.  The words_ functions write into the caller's buffer and return it;
 * estimate_consumers allocates an array that the caller frees. */
#ifndef IPW_REPORT_ESTIMATE_WORDS_H
#define IPW_REPORT_ESTIMATE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "estimate/budget.h"
#include "estimate/cost.h"
#include "estimate/recommend.h"
#include "estimate/words.h"
#include "estimate/workload_estimate.h"
#include "graph/graph.h"

struct estimate_report;
struct json;
struct text;

enum { WORDS_MAX = ESTIMATE_WORDS_MAX };

/* Appends to a comma-separated list. */
void words_add(char *to, const char *format, ...) PRINTF_LIKE(2, 3);
/* "4 stages of 20 layers, 4 micro-batches; bubble 12 % of the time"; NULL: one stage. */
char *words_pipeline(char *to, const struct workload_estimate *estimate);
/* "per sample", "per output token". */
char *words_each(char *to, const char *unit);
/* Energy and latency with their uncertainty: "~12.3 ± 4.5 mJ per sample", or where models as shipped take more than
 * the estimate "~12 mJ per sample (9.9 to 45 mJ as shipped)".  The energy is per unit of which there are `parts`; with
 * an empty unit it is the total. */
char *words_energy(char *to, const struct workload_estimate *estimate, double parts,
                   const char *unit);
char *words_latency(char *to, const struct workload_estimate *estimate);
/* "~12.3 ± 4.5 mJ"; without ± if that is unknown. */
char *words_estimated(char *to, double value, double plus_minus, const char *unit);
/* "3 compute, 20 memory, 31 launch". */
char *words_bounds(char *to, const double counts[BOUND_COUNT]);
/* "s", or "" for 1. */
const char *words_plural(double count);
/* "54 %", "< 1 %", "-". */
char *words_share(char *to, double share);
/* "-", or the number with three digits and a unit prefix: "2.43 k". */
char *words_rate(char *to, double rate);
/* "2 divide 0.01 % of the MACs and replicate the rest"; NULL if they divide nearly all. */
char *words_divided(char *to, const struct workload_estimate *estimate);
/* "54 ± 6 %", "-12 ± 6 %" where energy increases, "-". */
char *words_saving(char *to, const struct recommendation *row);
/* "3 others save less than their ±"; "" if there are none. */
char *words_unsure(char *to, const struct recommendations *list);
/* Title of the recommendations: "to save energy", or "to meet the limits" if one is exceeded. */
const char *words_proposals(const struct budget *budget, const struct workload_estimate *estimate);
/* "latency  0.41 ms, limit 5 ms: 92 % under". */
char *words_check(char *to, const struct budget_check *check,
                  const struct workload_estimate *estimate);

/* The device figures that an estimate uses, including assumed ones. */
struct words_figure {
    const char *name, *unit;
    const char *format; /* precision: "fp16"; NULL: none */
    struct hardware_figure figure;
};
enum { WORDS_FIGURES_MAX = 18 };
size_t words_figures(const struct workload_estimate *estimate,
                     struct words_figure out[WORDS_FIGURES_MAX]);

/* The distinct names of unknown operators; returns their number, at most `max`. */
size_t words_unknown(const struct graph *graph, const char **labels, size_t max);

/* ---- cost and emissions ---- */

/* "operating", null without prices; and the four figures of one charge: "cost_per_EACH" ... */
void estimate_cost_to_json(struct json *json, const struct workload_estimate *estimate,
                           const struct tariff *tariff);
void charge_to_json(struct json *json, const char *each, const struct charge *charge);
/* "~0.0012 ± 0.0003 per request, ~1.20 per million output tokens"; or the emissions. */
void estimate_cost_words(const struct workload_estimate *estimate, const struct tariff *tariff,
                         bool emissions, struct text *out);

/* A row of the top consumers of energy: subgraphs that repeat in several layers are combined, "layer.*.mlp". */
enum { CONSUMER_NAME_MAX = 36 };
struct estimate_consumer {
    char name[CONSUMER_NAME_MAX + 8];
    const struct subgraph_total *first;
    struct estimate_joules joules;
    double latency_s;
    size_t count;  /* number of subgraphs */
    bool is_mixed; /* they have different bounds */
};
/* Largest energy first; NULL: out of memory. */
struct estimate_consumer *estimate_consumers(const struct estimate_report *report, size_t *count);

#endif
