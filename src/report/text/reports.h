/* The text reports of commands: one function per report.  The caller owns the arguments and the output. Reports with
 * their own types (compare_report.h ...) have their own header. */
#ifndef IPW_REPORT_TEXT_REPORTS_H
#define IPW_REPORT_TEXT_REPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"

struct hardware;
struct print_views;
struct result;
struct result_item;
struct run_figures;
struct run_ranking;
struct run_list;
struct summary;
struct tariff;
struct text;

/* ---- ipw run ---- */

extern const struct print_views RUN_VIEWS;

/* ---- ipw doctor ---- */

extern const struct print_views DOCTOR_VIEWS;

/* ---- ipw profile ---- */

/* has_model: the model ran in this process, so that its CPU time is ours. */
void profile_text(const struct summary *run, bool has_model, bool color, struct text *out);

/* Several models side by side: accuracy against energy, and which are Pareto-optimal. */
extern const struct print_views FAMILY_VIEWS;

/* ---- ipw layers ---- */

extern const struct print_views LAYERS_VIEWS;
/* Its parts for an ONNX model (layers_nodes.c); mark: "~" before estimated energies. */
void layers_nodes_head(const struct result_item *model, const char *name, struct text *out);
void layers_nodes_tables(const struct result_item *model, const char *mark, bool color,
                         struct text *out);

/* ---- ipw analyze ---- */

/* Conclusions on runs in words (conclusion.c), shown before the results of analyses (report/print/print.h). */

/* A run in one sentence, `each` is the unit of its records: "query". */
void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out);

/* Settings in a sentence, without what their energies have in common; names are as they are, not made plain. */
void conclusion_of_ranking(const struct run_ranking *all, const char *each, struct text *out);

/* Several runs, of this model (or NULL): a sentence and a table, shortened unless verbose. */
void conclusion_of_runs(struct run_figures *runs, size_t count, const char *model, const char *each,
                        bool verbose, bool color, struct text *out);

/* Runs of different models in a sentence, with the models' names; nothing for fewer than two that can be read. */
void conclusion_of_models(const char *const *directories, size_t count, struct text *out);

/* ---- ipw estimate --serve, calibrate and validate ---- */

/* Views of the results of estimate/serving.h, estimate/calibrate.h and estimate/validate.h. */
extern const struct print_views SERVING_VIEWS, CALIBRATE_VIEWS, VALIDATE_VIEWS;

/* ---- ipw list (listing.c) ---- */

extern const struct print_views LISTING_VIEWS;
extern const struct print_views LISTING_VERBOSE_VIEWS; /* with parameters */
extern const struct print_views LISTING_BRIEF_VIEWS;   /* names alone */
extern const struct print_views LISTING_NAMES_VIEWS;   /* of the models of a service */

/* Runs of a database: db_run_put. */
extern const struct print_views STORED_RUNS_VIEWS;

/* "clients: send requests to a model (--client)" */
void listing_heading(const char *kind, bool color, struct text *out);

/* A row of the result: a driver, or a shipped model. */
void listing_driver(const struct result_item *row, bool is_verbose, struct text *out);

/* The runs in a folder. */
void listing_runs(const struct run_list *list, const char *parent, bool color, struct text *out);

#endif
