/* What power each component of a program draws, out of windows in which the components had different
 * times:
 *
 *     joules of a window = idle power x seconds + sum over the components of power x busy seconds
 *
 * with no power below 0.  Components whose times always stand in the same proportion cannot be told
 * apart by energy: they are put into one group with a common power, by which their joules then go by
 * time.  What remains is solved by least squares at 0 or above; the ± is the larger of what the
 * bootstrap over replays and the errors of the windows give.
 *
 * Pure: windows in, powers out.  The caller owns both. */
#ifndef IPW_ATTRIBUTE_COMPONENT_FIT_H
#define IPW_ATTRIBUTE_COMPONENT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { FIT_COLUMNS_MAX = 32 };

/* How far the model itself may be off for a window, as a share of its joules: power is not quite a
 * constant of a component.  Differences below this do not tell components apart. */
#define FIT_MODEL_ERROR 0.01

struct fit_window {
    double joules;
    double sigma; /* of joules, what replays shrink; 0 or UNKNOWN: not known */
    double seconds;
    const double *busy_s; /* of each column; NULL for a window at rest */
    unsigned stratum;     /* windows of one stratum are replays of the same work */
};

struct fit_options {
    /* Columns of different phases are never put together: windows of either stand for themselves. */
    const unsigned *phases;
    size_t columns;
    unsigned resamples; /* of the bootstrap; 0: none */
    uint64_t seed;
};

struct fit_power {
    double watts, sigma; /* above idle; UNKNOWN when the column had no time */
    unsigned group;      /* columns of one group share a power */
    bool is_alone;       /* its power is its own: nobody shares its group */
};

struct component_fit {
    struct fit_power columns[FIT_COLUMNS_MAX];
    unsigned groups;
    bool has_idle; /* windows at rest were given; otherwise idle is in the powers */
    double idle_watts, idle_sigma;
};

/* ERR_NO_DATA, saying what is missing, where not even one power a phase can be found. */
enum err component_fit(const struct fit_window *windows, size_t count,
                       const struct fit_options *options, struct component_fit *out,
                       struct error *why) MUST_USE;

#endif
