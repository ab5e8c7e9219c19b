/* The text reports of commands: one function per report.  The caller owns the arguments and the output. Reports with
 * their own types (compare_report.h ...) have their own header. */
#ifndef IPW_REPORT_TEXT_REPORTS_H
#define IPW_REPORT_TEXT_REPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/json.h"
#include "core/text.h"
#include "port/proc.h"

struct exec_result;
struct hardware;
struct host_report;
struct layers_results;
struct param_spec;
struct print_views;
struct profile_family;
struct result;
struct run_figures;
struct summary;
struct tariff;
struct text;

/* ---- ipw run ---- */

struct run_report {
    char *const *argv;
    const struct exec_result *result;
    const struct host_report *host;
    struct own_cost own;
    unsigned long reads;
    const struct tariff *tariff; /* for cost and emissions; NULL: none */
};

void run_text(const struct run_report *report, bool color, struct text *out);
void run_json(const struct run_report *report, struct text *out);

/* ---- ipw profile ---- */

void profile_text(const struct summary *run, bool color, struct text *out);

/* Several models side by side: accuracy against energy, and which are Pareto-optimal. */
void family_text(const struct profile_family *family, bool color, struct text *out);
void family_json(const struct profile_family *family, struct text *out);

/* ---- ipw layers ---- */

void layers_text(const struct layers_results *results, bool color, struct text *out);

/* ---- ipw analyze ---- */

/* Conclusions on runs in words (conclusion.c), shown before the results of analyses (report/print/print.h). */

/* A run in one sentence, `each` is the unit of its records: "query". */
void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out);

/* Several runs, after run_figures_settle: a sentence and a table, shortened unless verbose. */
enum err conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                            bool color, struct text *out) MUST_USE;

/* ---- ipw estimate --serve, calibrate and validate ---- */

/* Views of the results of estimate/serving.h, estimate/calibrate.h and estimate/validate.h. */
extern const struct print_views SERVING_VIEWS, CALIBRATE_VIEWS, VALIDATE_VIEWS;

/* ---- lists (listing.c) ---- */

/* Lists of drivers, models and hardware, as text or JSON.  A struct listing owns its text: release it with
 * listing_release. */

struct listing_row {
    const char *name, *summary;
    const struct param_spec *params; /* may be NULL */
    char missing[240];               /* why it is unavailable; "" if it is available */
    char note[240];                  /* important note for users; or "" */
};

struct listing {
    struct text text;
    struct json json_writer;
    bool json, verbose, color;
    bool brief;    /* text: names only */
    size_t column; /* brief: current width of the line */
    bool open;     /* a kind was started */
};

void listing_init(struct listing *listing, bool json, bool verbose, bool color);
void listing_begin(struct listing *listing, const char *kind, const char *what);
void listing_add(struct listing *listing, const struct listing_row *row);
/* Brief: their number instead of their names. */
void listing_count(struct listing *listing, size_t count);
void listing_end(struct listing *listing);
void listing_release(struct listing *listing);

/* The shipped models, all models of the catalog with their size, and the supported model file formats. */
void listing_models(struct listing *listing);
/* Only these, in detail; ERR_NOT_FOUND: unknown name. */
enum err listing_models_named(struct listing *listing, const char **names, size_t count,
                              struct error *why) MUST_USE;

/* The runs in a folder; updates its run index. */
enum err listing_runs(struct listing *listing, const char *parent, struct error *why) MUST_USE;

/* Hardware as text (its JSON is catalog/hardware_json.h): a table of all, or one device. */
enum err listing_hardware_table(bool color, struct text *out, struct error *why) MUST_USE;
void listing_hardware_details(const struct hardware *hardware, bool color, struct text *out);

#endif
