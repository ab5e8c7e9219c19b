/* The list of exporters.  A separate file: drivers call export.c, which therefore names none of them. */

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

const struct export_driver *export_driver_find(const char *name, struct error *why)
{
    return registry_find("export", EXPORT_DRIVERS, name, ERR_NOT_FOUND, why);
}
