#include <string.h>

#include "analysis/analysis.h"
#include "analysis/unmeasured.h"
#include "core/text.h"

#define ANALYSIS(name) extern const struct analysis_driver analysis_##name;
#include "analysis/analyses.def"
#undef ANALYSIS

const struct analysis_driver *const ANALYSIS_DRIVERS[] = {
#define ANALYSIS(name) &analysis_##name,
#include "analysis/analyses.def"
#undef ANALYSIS
    NULL,
};

enum { DRIVER_COUNT = sizeof ANALYSIS_DRIVERS / sizeof *ANALYSIS_DRIVERS - 1 };

const struct analysis_driver *analysis_driver_find(const char *name, struct error *why)
{
    const char *names[DRIVER_COUNT];
    for (size_t i = 0; i < DRIVER_COUNT; i++) {
        names[i] = ANALYSIS_DRIVERS[i]->name;
        if (strcmp(names[i], name) == 0)
            return ANALYSIS_DRIVERS[i];
    }
    const char *unmeasured = unmeasured_kind(name);
    const char *near = nearest_name(name, names, DRIVER_COUNT);
    if (unmeasured)
        err_set(why, ERR_USAGE, "no analysis is called '%s': %s", name, unmeasured);
    else if (near)
        err_set(why, ERR_USAGE, "no analysis is called '%s': did you mean '%s'?", name, near);
    else
        err_set(why, ERR_USAGE, "no analysis is called '%s': see ipw list analyses", name);
    return NULL;
}
