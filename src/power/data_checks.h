/* Checks of measurements at several clocks before anything is fitted to them.  Public data sets of this kind contain
 * cold baselines, times copied from one application to all, clocks that were never reached and mostly idle GPUs: each
 * problem is detected, named, and handled as core/finding.def says. */
#ifndef IPW_POWER_DATA_CHECKS_H
#define IPW_POWER_DATA_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/finding.h"
#include "power/clock_list.h"
#include "power/freq_points.h"

/* Marks the points that must not be used (enum freq_flag), and makes curves of the others.  clocks: the supported
 * ones; NULL: unknown.  Findings are not errors: without usable points the curves are empty. */
enum err data_checks_run(struct freq_points *points, const struct clock_list *clocks,
                         struct freq_curves *curves, struct findings *out, struct error *why)
    MUST_USE;
/* Adds a finding about all of the data. */
void data_findings_add(struct findings *findings, enum finding_code code, size_t rows,
                       const char *text);

/* Whether a finding is about a curve, or about all of the data. */
bool data_findings_has(const struct findings *findings, enum finding_code code,
                       const struct freq_curve *curve);
/* The first invalid one of these: the curve has no meaningful optimum.  Or NULL. */
const struct finding *data_findings_invalid(const struct findings *findings,
                                            const struct freq_curve *curve);

/* ---- reading and checking measurements ---- */

struct freq_data {
    struct freq_points points;
    struct clock_list clocks; /* empty: the supported clocks are unknown */
    struct freq_curves curves;
    struct findings findings;
};

/* Reads files (sources[count]) and, unless clocks_path is NULL, the supported clocks, and runs the checks.
 * ERR_NO_DATA without usable points.  Release with freq_data_release, also after an error. */
enum err freq_data_read(struct freq_data *data, const struct freq_source *sources, size_t count,
                        const char *clocks_path, struct error *why) MUST_USE;
/* The same for points and clocks that are already there. */
enum err freq_data_check(struct freq_data *data, struct error *why) MUST_USE;
void freq_data_release(struct freq_data *data);
size_t freq_data_usable(const struct freq_data *data); /* points */

#endif
