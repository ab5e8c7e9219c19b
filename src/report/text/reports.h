/* The text reports of commands: one function per report.  The caller owns the arguments and the output. Reports with
 * their own types (compare_report.h, power_report.h ...) have their own header. */
#ifndef IPW_REPORT_TEXT_REPORTS_H
#define IPW_REPORT_TEXT_REPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "estimate/validate.h"

struct calibration;
struct clock_choice;
struct clock_policy;
struct data_findings;
struct hardware;
struct hardware_timings;
struct optimize_goal;
struct print_views;
struct result;
struct result_item;
struct run_figures;
struct run_list;
struct summary;
struct tariff;
struct text;

/* ---- ipw run ---- */

extern const struct print_views RUN_VIEWS;

/* ---- ipw doctor ---- */

extern const struct print_views DOCTOR_VIEWS;

/* ---- ipw profile ---- */

void profile_text(const struct summary *run, bool color, struct text *out);

/* Several models side by side: accuracy against energy, and which are Pareto-optimal. */
extern const struct print_views FAMILY_VIEWS;

/* ---- ipw layers ---- */

extern const struct print_views LAYERS_VIEWS;

/* ---- ipw analyze ---- */

/* Conclusions on runs in words (conclusion.c), shown before the results of analyses (report/print/print.h). */

/* A run in one sentence, `each` is the unit of its records: "query". */
void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out);

/* Several runs, after run_figures_settle: a sentence and a table, shortened unless verbose. */
enum err conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                            bool color, struct text *out) MUST_USE;

/* ---- ipw optimize ---- */

/* The best setting of each application, its savings, and one clock for all. */
struct optimize_report {
    const char *objective; /* "edp" */
    const struct optimize_goal *goal;
    const struct clock_choice *choices;
    size_t count;
    const struct clock_policy *policies;
    size_t policy_count;
    unsigned rule;                        /* enum policy_rule of the policies */
    const struct data_findings *findings; /* NULL: not available */
    const char *source;                   /* the model's file; NULL: measurements */
    const char *apply; /* command that applies the recommended setting; NULL: for its clock */
    const char *gpus;  /* UUIDs of the measured GPUs, comma-separated; NULL: unknown */
};

void optimize_text(const struct optimize_report *report, bool color, struct text *out);
void optimize_json(const struct optimize_report *report, struct text *out);
void optimize_csv(const struct optimize_report *report, struct text *out);

/* ---- calibrations and validations (calibrate_report.c) ---- */

/* Reports of `ipw estimate calibrate` on a fit, and of `ipw estimate validate` on predictions.  The caller owns the
 * arguments and the output. */

struct calibrate_report {
    const struct calibration *calibration;
    const char *hardware;        /* as in the rows or on this machine; "": unknown */
    const struct hardware *base; /* the entry that supplies the other figures; NULL: none */
    const char *data;            /* source of the rows: "a.csv", "built-in loads, cpu0" */
    const char *given_source;    /* of coefficients that were not fitted */
    const char *file;            /* output file; NULL: none */
    const struct hardware_timings *timings; /* TIMINGS_RUNTIMES of them */
    const char *no_energy;                  /* why none was measured; or "" */
};

void calibrate_text(const struct calibrate_report *report, bool color, struct text *out);
void calibrate_json(const struct calibrate_report *report, struct text *out);

struct validate_report {
    const struct validation *validation;
    const struct hardware *hardware;
    const char *data;              /* source of the measurements: the file or run */
    double max;                    /* --max-mape, as a share; or UNKNOWN */
    enum validate_verdict verdict; /* with regard to `max` */
};

void validate_text(const struct validate_report *report, bool color, struct text *out);
void validate_json(const struct validate_report *report, struct text *out);

/* ---- ipw list (listing.c) ---- */

extern const struct print_views LISTING_VIEWS;
extern const struct print_views LISTING_VERBOSE_VIEWS; /* with parameters */
extern const struct print_views LISTING_BRIEF_VIEWS;   /* names alone */
extern const struct print_views LISTING_NAMES_VIEWS;   /* of the models of a service */

/* "clients: send requests to a model (--client)" */
void listing_heading(const char *kind, bool color, struct text *out);

/* A row of the result: a driver, or a shipped model. */
void listing_driver(const struct result *result, const struct result_item *row, bool is_verbose,
                    struct text *out);

/* The runs in a folder. */
void listing_runs(const struct run_list *list, const char *parent, bool color, struct text *out);

#endif
