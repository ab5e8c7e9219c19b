/* The list of exporters.  A separate file: drivers call export.c, which therefore names none of them. */
#include <string.h>

#include "core/registry.h"
#include "report/export/export.h"

#define EXPORT(name) extern const struct export_driver export_##name;
#include "report/export/exports.def"
#undef EXPORT

const struct export_driver *const EXPORT_DRIVERS[] = {
#define EXPORT(name) &export_##name,
#include "report/export/exports.def"
#undef EXPORT
    NULL,
};

static const char *name_at(size_t index)
{
    return EXPORT_DRIVERS[index] ? EXPORT_DRIVERS[index]->name : NULL;
}

const struct export_driver *export_driver_find(const char *name, struct error *why)
{
    long at = registry_find("export", name_at, name, ERR_NOT_FOUND, why);
    return at < 0 ? NULL : EXPORT_DRIVERS[at];
}
