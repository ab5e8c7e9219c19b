/* The list of plots: finding one by name, and drawing it. */
#include "report/plot/plot.h"

#include <string.h>

#include "analysis/unmeasured.h"
#include "core/text.h"
#include "report/plot/figure.h"

#define PLOT(name) extern const struct plot_driver plot_##name;
#include "report/plot/plots.def"
#undef PLOT

const struct plot_driver *const PLOT_DRIVERS[] = {
#define PLOT(name) &plot_##name,
#include "report/plot/plots.def"
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
    /* No command makes a sweep of clocks, but runs at several clocks can be drawn. */
    bool is_sweep = strstr(name, "sweep") != NULL;
    const char *near = is_sweep ? plot_frequency.name : nearest_name(name, names, DRIVER_COUNT);
    const char *unmeasured = is_sweep ? NULL : unmeasured_kind(name);
    if (unmeasured)
        err_set(why, ERR_USAGE, "unknown plot '%s': %s", name, unmeasured);
    else if (near)
        err_set(why, ERR_USAGE, "unknown plot '%s': did you mean '%s'?", name, near);
    else
        err_set(why, ERR_USAGE, "unknown plot '%s': see ipw list plots", name);
    return NULL;
}

enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why)
{
    enum err err = driver->draw(source, figure, why);
    if (err)
        return err;
    if (figure->failed)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    return figure_drop_empty(figure)
               ? ERR_OK
               : err_set(why, ERR_NO_DATA, "no figure that could be drawn is known");
}
