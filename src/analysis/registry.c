#include <string.h>

#include "analysis/analysis.h"
#include "analysis/unmeasured.h"
#include "core/registry.h"
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

static const char *name_at(size_t index)
{
    return ANALYSIS_DRIVERS[index] ? ANALYSIS_DRIVERS[index]->name : NULL;
}

const struct analysis_driver *analysis_driver_find(const char *name, struct error *why)
{
    const char *unmeasured = unmeasured_kind(name);
    long at = registry_find("analysis", name_at, name, ERR_USAGE, why);
    if (at < 0 && unmeasured)
        err_set(why, ERR_USAGE, "unknown analysis '%s': %s", name, unmeasured);
    return at < 0 ? NULL : ANALYSIS_DRIVERS[at];
}
