/* Checks of measurements at several clocks before anything is fitted to them.  Public data sets of this kind contain
 * cold baselines, times copied from one application to all, clocks that were never reached and mostly idle GPUs: each
 * problem is detected, named, and handled as in data_checks.def. */
#ifndef IPW_POWER_DATA_CHECKS_H
#define IPW_POWER_DATA_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "power/clock_list.h"
#include "power/freq_points.h"

enum data_check {
#define DATA_CHECK(id, name, severity, done) CHECK_##id,
#include "power/data_checks.def"
#undef DATA_CHECK
    DATA_CHECKS
};

enum data_severity { DATA_NOTE, DATA_WARNING, DATA_VOID };

const char *data_check_name(enum data_check check); /* "cold_baseline" */
const char *data_check_done(enum data_check check); /* how it was handled */
enum data_severity data_check_severity(enum data_check check);
const char *data_severity_name(enum data_severity severity);

/* What a finding refers to: a curve may have no names, so empty names are ambiguous. */
enum data_scope { DATA_ALL, DATA_GPU, DATA_CURVE };

struct data_finding {
    enum data_check check;
    enum data_scope scope;
    char gpu[40], application[64];
    size_t rows;    /* affected */
    char text[240]; /* the finding, with its figures */
};

struct data_findings {
    struct data_finding *items;
    size_t count, capacity;
};

/* Marks the points that must not be used (enum freq_flag), and makes curves of the others.  clocks: the supported
 * ones; NULL: unknown.  Findings are not errors: without usable points the curves are empty. */
enum err data_checks_run(struct freq_points *points, const struct clock_list *clocks,
                         struct freq_curves *curves, struct data_findings *out, struct error *why)
    MUST_USE;
enum err data_findings_add(struct data_findings *findings, enum data_check check, size_t rows,
                           const char *text) MUST_USE; /* about all of the data */

/* Whether a check found something about a curve, or about all of the data. */
bool data_findings_has(const struct data_findings *findings, enum data_check check,
                       const struct freq_curve *curve);
/* Comma-separated names of the checks with findings. */
void data_findings_names(const struct data_findings *findings, char *to, size_t size);

/* ---- reading and checking measurements ---- */

struct freq_data {
    struct freq_points points;
    struct clock_list clocks; /* empty: the supported clocks are unknown */
    struct freq_curves curves;
    struct data_findings findings;
};

/* Reads files (sources[count]) and, unless clocks_path is NULL, the supported clocks, and runs the checks.
 * ERR_NO_DATA without usable points.  Release with freq_data_release, also after an error. */
enum err freq_data_read(struct freq_data *data, const struct freq_source *sources, size_t count,
                        const char *clocks_path, struct error *why) MUST_USE;
void freq_data_release(struct freq_data *data);
size_t freq_data_usable(const struct freq_data *data); /* points */

#endif
