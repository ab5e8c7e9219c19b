/* Estimates as results (core/result.h): one in full, or those of a grid as points, with the keys of docs/formats.md.
 * What only the CSV, the text, the Markdown and the figures need is in groups "view", which JSON omits.
 *
 * Ownership: the caller releases the result, which keeps nothing of what it was made of. */
#ifndef IPW_ESTIMATE_ESTIMATE_RESULT_H
#define IPW_ESTIMATE_ESTIMATE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/recommend.h"

struct result;
struct result_column;
struct tariff;

struct estimate_shown {
    const struct tariff *tariff; /* for cost and emissions; NULL: none */
    size_t top;   /* rows of text and Markdown: consumers, or points and the frontier; 0: all */
    bool in_full; /* each subgraph for itself, also as the CSV, and the figures of the device */
};

/* One estimate with detail: its subgraphs, recommendations and, where it exceeds device memory, the devices that it
 * would fit on. */
void estimate_result_make(const struct recommend_question *question,
                          const struct estimate_shown *shown, struct result *out);

/* Several, in the order of the grid: grid_result.c. */
void grid_result_make(const struct estimate_grid *grid, const struct budget *budget,
                      const struct estimate_shown *shown, struct result *out);

/* ---- parts of both: estimate_head.c ---- */

/* Setting, figures and memory; limits; confidence and basis. */
void estimate_head_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct tariff *tariff);
void estimate_limits_to_result(struct result *result, const struct budget *budget,
                               const struct workload_estimate *estimate);
void estimate_tail_to_result(struct result *result, const struct workload_estimate *estimate);

/* Work, traffic, latency and energy of a part; its power; shares of the peak, and what limits subgraphs. */
void sums_to_result(struct result *result, const struct workload_estimate *estimate,
                    const struct estimate_totals *sums);
void power_to_result(struct result *result, const struct workload_estimate *estimate,
                     const struct estimate_totals *sums);
void shares_to_result(struct result *result, const struct estimate_totals *sums);
/* "energy_j" of each of `parts`, with its ± and interval. */
void energy_to_result(struct result *result, const struct workload_estimate *estimate,
                      double parts);

/* The phase and the lengths of a setting; the precision of the file; notes of its reader. */
void lengths_to_result(struct result *result, const struct workload_spec *spec);
void file_precision_to_result(struct result *result, const struct graph_precision *file);
void notes_to_result(struct result *result, const struct graph_notes *notes);

/* What the columns of a row need besides, into an open "view"; of a point that is missing only its setting. */
void estimate_row_to_result(struct result *result, const struct grid_point *point);
/* One row per point. */
const struct result_column *estimate_columns(const struct tariff *tariff);

/* ---- consumers of energy: consumers.c ---- */

/* A list "consumers", largest energy first: subgraphs that repeat in several layers are one, "layer.*.mlp", unless
 * in_full. */
void consumers_to_result(struct result *result, const struct subgraph_total *rows, size_t count,
                         bool in_full);

/* ---- figures of the device: device_figures.c ---- */

/* A list "hardware_figures": those that the estimate uses, including assumed ones. */
void device_figures_to_result(struct result *result, const struct workload_estimate *estimate);

/* ---- by names of the catalogs: catalog_estimate.c ---- */

struct catalog_question {
    const char *model, *hardware;
    const char *precision, *batch, *prompt_tokens; /* NULL: the default */
    unsigned output_tokens;                        /* 0: the default */
    const struct tariff *tariff;
    const char *names; /* where the names of models are listed, for messages */
};

/* As estimate_result_make; a path instead of a name is ERR_NOT_FOUND: no file is read. */
enum err catalog_estimate(const struct catalog_question *question, struct result *out,
                          struct error *why) MUST_USE;

/* The names that it takes: lists "models" and "hardware". */
void catalog_models_to_result(struct result *result);
void catalog_hardware_to_result(struct result *result);

#endif
