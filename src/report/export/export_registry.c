#include <string.h>

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
    const char *names[sizeof EXPORT_DRIVERS / sizeof *EXPORT_DRIVERS];
    struct text all = {0};
    size_t count = 0;
    for (; EXPORT_DRIVERS[count]; count++) {
        if (strcmp(EXPORT_DRIVERS[count]->name, name) == 0) {
            text_release(&all);
            return EXPORT_DRIVERS[count];
        }
        names[count] = EXPORT_DRIVERS[count]->name;
        text_addf(&all, "%s%s", count ? ", " : "", names[count]);
    }
    const char *near = nearest_name(name, names, count);
    if (near)
        err_set(why, ERR_NOT_FOUND, "no export is called '%.64s'; did you mean '%s'?", name, near);
    else
        err_set(why, ERR_NOT_FOUND, "no export is called '%.64s': there are %s", name,
                text_get(&all));
    text_release(&all);
    return NULL;
}
