#include <string.h>

#include "core/text.h"
#include "report/plot.h"

#define PLOT(name) extern const struct plot_driver plot_##name;
#include "report/plots.def"
#undef PLOT

const struct plot_driver *const PLOT_DRIVERS[] = {
#define PLOT(name) &plot_##name,
#include "report/plots.def"
#undef PLOT
    NULL,
};

enum { DRIVER_COUNT = sizeof PLOT_DRIVERS / sizeof *PLOT_DRIVERS - 1 };

const struct plot_driver *plot_driver_find(const char *name, struct error *why)
{
    const char *names[DRIVER_COUNT];
    for (size_t i = 0; i < DRIVER_COUNT; i++) {
        names[i] = PLOT_DRIVERS[i]->name;
        if (strcmp(names[i], name) == 0)
            return PLOT_DRIVERS[i];
    }
    const char *near = nearest_name(name, names, DRIVER_COUNT);
    if (near)
        err_set(why, ERR_USAGE, "no plot is called '%s': did you mean '%s'?", name, near);
    else
        err_set(why, ERR_USAGE, "no plot is called '%s': see ipw list plots", name);
    return NULL;
}
