/* The list of plots: finding one by name, and drawing it. */
#include "report/plot/plot.h"

#include <string.h>

#include "analysis/analysis.h"
#include "core/registry.h"
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

static const char *name_at(size_t index)
{
    return PLOT_DRIVERS[index] ? PLOT_DRIVERS[index]->name : NULL;
}

const struct plot_driver *plot_driver_find(const char *name, struct error *why)
{
    const char *unmeasured = unmeasured_kind(name);
    long at = registry_find("plot", name_at, name, ERR_USAGE, why);
    if (at >= 0)
        return PLOT_DRIVERS[at];
    /* No command runs a sweep of clocks, but runs at several clocks can be drawn. */
    if (strstr(name, "sweep"))
        err_set(why, ERR_USAGE, "unknown plot '%s': did you mean '%s'?", name, plot_frequency.name);
    else if (unmeasured)
        err_set(why, ERR_USAGE, "unknown plot '%s': %s", name, unmeasured);
    return NULL;
}

enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why)
{
    struct plot_source given = *source;
    given.driver = driver;
    enum err err = driver->draw(&given, figure, why);
    if (err)
        return err;
    if (figure->failed)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    return figure_drop_empty(figure)
               ? ERR_OK
               : err_set(why, ERR_NO_DATA, "no figure that could be drawn is known");
}
