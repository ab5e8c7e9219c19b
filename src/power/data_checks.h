/* Checks of measurements at several clocks before anything is fitted to them.  Public data sets of this kind hold cold
 * baselines, times copied from one application to all, clocks that were never reached and GPUs that hardly worked: each
 * is found, named, and dealt with as data_checks.def says.
 *
 * Ownership: a zeroed struct data_findings is empty; data_findings_release frees it. */
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
const char *data_check_done(enum data_check check); /* what was done about it */
enum data_severity data_check_severity(enum data_check check);
const char *data_severity_name(enum data_severity severity);

/* What a finding is about: a curve may have no names, so that an empty one does not say it. */
enum data_scope { DATA_ALL, DATA_GPU, DATA_CURVE };

struct data_finding {
    enum data_check check;
    enum data_scope scope;
    char gpu[40], application[64];
    size_t rows;    /* affected */
    char text[240]; /* what was found, with its figures */
};

struct data_findings {
    struct data_finding *items;
    size_t count, capacity;
};

/* Marks the points that must not be used (enum freq_flag), and makes curves of the others.  clocks: the legal ones;
 * NULL: unknown.  What is found is not an error: with nothing usable the curves are empty. */
enum err data_checks_run(struct freq_points *points, const struct clock_list *clocks,
                         struct freq_curves *curves, struct data_findings *out, struct error *why)
    MUST_USE;
enum err data_findings_add(struct data_findings *findings, enum data_check check, size_t rows,
                           const char *text) MUST_USE; /* of all of the data */
void data_findings_release(struct data_findings *findings);

/* Whether a check found something about a curve, or about all of the data. */
bool data_findings_has(const struct data_findings *findings, enum data_check check,
                       const struct freq_curve *curve);
/* The names of the checks that found something, with commas. */
void data_findings_names(const struct data_findings *findings, char *to, size_t size);

/* ---- measurements, read and checked ---- */

struct freq_data {
    struct freq_points points;
    struct clock_list clocks; /* empty: the legal clocks are not known */
    struct freq_curves curves;
    struct data_findings findings;
};

/* Reads files (sources[count]) and, unless clocks_path is NULL, the legal clocks, and runs the checks.  ERR_NO_DATA
 * where nothing is usable.  Release with freq_data_release, also after an error. */
enum err freq_data_read(struct freq_data *data, const struct freq_source *sources, size_t count,
                        const char *clocks_path, struct error *why) MUST_USE;
void freq_data_release(struct freq_data *data);
size_t freq_data_usable(const struct freq_data *data); /* points */

#endif
