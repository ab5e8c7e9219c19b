/* The power of each component of a program, from windows in which the components had different busy times:
 *
 *     joules of a window = idle power x seconds + sum over the components of power x busy seconds
 *
 * with non-negative powers.  Components whose times are always proportional cannot be separated by energy: they form
 * one group with a common power, so their joules are proportional to time.  The groups are solved by non-negative least
 * squares (NNLS); the ± is the larger of the bootstrap over replays and the propagated errors of the windows.
 *
 * Pure: windows in, powers out.  The caller owns both. */
#ifndef IPW_ATTRIBUTE_COMPONENT_FIT_H
#define IPW_ATTRIBUTE_COMPONENT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { FIT_COLUMNS_MAX = 32 };

/* Model error of a window, as a share of its joules: the power of a component is not quite constant.  Smaller
 * differences do not separate components. */
#define FIT_MODEL_ERROR 0.01

struct fit_window {
    double joules;
    double sigma; /* standard uncertainty of joules, reduced by replays; 0 or UNKNOWN: unknown */
    double seconds;
    const double *busy_s; /* busy time per column; NULL for an idle window */
    unsigned stratum;     /* windows of one stratum are replays of the same work */
};

struct fit_options {
    /* Columns of different phases are never grouped: the windows of each phase are separate. */
    const unsigned *phases;
    size_t columns;
    unsigned resamples; /* bootstrap resamples; 0: none */
    uint64_t seed;
};

struct fit_power {
    double watts, sigma; /* above idle; UNKNOWN when the column had no time */
    unsigned group;      /* columns of one group share a power */
    bool is_alone;       /* no other column is in its group */
};

struct component_fit {
    struct fit_power columns[FIT_COLUMNS_MAX];
    unsigned groups;
    bool has_idle; /* idle windows were given; otherwise idle is in the powers */
    double idle_watts, idle_sigma;
};

/* ERR_NO_DATA, with the reason, where not even one power per phase can be determined. */
enum err component_fit(const struct fit_window *windows, size_t count,
                       const struct fit_options *options, struct component_fit *out,
                       struct error *why) MUST_USE;

#endif
