/* Which attempts of a sweep are used, and their means at a point: for the sweep itself, its analysis, plots, models and
 * recommendations. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "rundir/sweep.h"
#include "stats/descriptive.h"

/* ---- flags and exclusions ---- */

static const struct flag {
    const char *name;
    enum sweep_exclusion exclusion;
} FLAGS[ATTEMPT_FLAGS] = {
#define ATTEMPT_FLAG(constant, name, exclusion, meaning) [ATTEMPT_##constant] = {name, exclusion},
#include "rundir/attempt_flag.def"
#undef ATTEMPT_FLAG
};

const char *attempt_flag_name(enum attempt_flag flag)
{
    return FLAGS[flag].name;
}

unsigned attempt_flags_parse(const char *flags)
{
    unsigned bits = 0;
    char name[64];
    while (flags && *flags && str_next_item(&flags, name, sizeof name)) {
        const struct flag *found = STR_FIND(name, FLAGS);
        if (found)
            bits |= 1U << (found - FLAGS);
    }
    return bits;
}

static enum sweep_exclusion rejection(const struct sweep_attempt *attempt)
{
    for (unsigned flag = 0; flag < ATTEMPT_FLAGS; flag++)
        if ((attempt->flag_bits & 1U << flag) && FLAGS[flag].exclusion)
            return FLAGS[flag].exclusion;
    return SWEEP_USED;
}

bool sweep_is_rejected(const struct sweep_attempt *attempt)
{
    return rejection(attempt) != SWEEP_USED;
}

enum sweep_exclusion sweep_exclusion_of(const struct sweep_attempt *attempt)
{
    if (attempt->exit_code)
        return SWEEP_FAILED;
    if (sweep_is_rejected(attempt))
        return rejection(attempt);
    return attempt->joules > 0 && attempt->seconds > 0 ? SWEEP_USED : SWEEP_UNMEASURED;
}

const char *sweep_exclusion_name(enum sweep_exclusion exclusion)
{
    static const char *const NAMES[SWEEP_EXCLUSIONS] = {"used", "failed", "throttled", "off target",
                                                        "without energy or time"};
    return NAMES[exclusion];
}

/* ---- figures ---- */

/* The gain error of a sensor is the same at every point: repeats do not reduce it, and it cancels in differences. */
static double common_part(const struct sweep_attempt *attempt)
{
    double square = attempt->plus_minus * attempt->plus_minus;
    if (!is_known(attempt->statistical))
        return attempt->plus_minus;
    return sqrt(fmax(square - attempt->statistical * attempt->statistical, 0));
}

struct sweep_figures sweep_figures(const struct sweep *sweep, size_t point)
{
    struct sweep_figures figures = {0};
    struct online joules = {0}, time = {0}, common = {0}, own = {0};
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->point != point)
            continue;
        figures.failed += attempt->exit_code != 0;
        if (sweep_exclusion_of(attempt))
            continue;
        figures.measured++;
        online_add(&joules, attempt->joules);
        online_add(&time, attempt->seconds);
        online_add(&common, common_part(attempt));
        online_add(&own, attempt->statistical);
    }
    double error = online_standard_error(&joules);
    figures.joules = online_mean(&joules);
    figures.independent = is_known(error) ? error : online_mean(&own);
    figures.plus_minus =
        hypot(online_mean(&common), is_known(figures.independent) ? figures.independent : 0);
    figures.seconds = online_mean(&time);
    figures.seconds_error = online_standard_error(&time);
    figures.error_pct = figures.joules > 0 ? 100 * error / figures.joules : UNKNOWN;
    return figures;
}
