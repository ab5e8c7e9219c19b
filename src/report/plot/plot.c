/* The list of plots: finding one by name, and drawing it. */
#include "report/plot/plot.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/registry.h"
#include "core/xalloc.h"
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

const struct plot_driver *plot_driver_find(const char *name, struct error *why)
{
    const struct plot_driver *found = registry_find("plot", PLOT_DRIVERS, name, ERR_USAGE, why);
    /* A sweep is not a plot, but `frequency` draws it. */
    if (!found && strstr(name, "sweep"))
        err_set(why, ERR_USAGE, "unknown plot '%s': did you mean '%s'?", name, plot_frequency.name);
    return found;
}

static enum err draw_given(const struct plot_source *source, struct figure *figure,
                           struct error *why)
{
    enum err err = source->driver->draw(source, figure, why);
    if (err)
        return err;
    return figure_finish(figure) ? ERR_OK : err_set(why, ERR_NO_DATA, "no data for this plot");
}

/* Characters of a run's name that fit on an axis. */
enum { NAME_LETTERS = 34 };

/* Runs in one plot: named by their differences, with errors that are not common to all. */
static enum err draw_runs(struct plot_source *source, struct figure *figure, struct error *why)
{
    size_t n = source->run_count;
    struct run_figures *runs = xmalloc(n * sizeof *runs);
    const struct run_point **points = xmalloc(n * sizeof *points);
    struct run_names names = {0};
    for (size_t i = 0; i < n; i++) {
        runs[i] = source->runs[i];
        points[i] = &runs[i].point;
    }
    run_names_of(points, n, NAME_LETTERS, &names);
    source->common = run_figures_settle(runs, n);
    source->runs = runs;
    /* cppcheck-suppress autoVariables ; the source is plot_draw's own copy */
    source->names = &names;
    enum err err = draw_given(source, figure, why);
    run_names_release(&names);
    free((void *)points);
    free(runs);
    return err;
}

enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why)
{
    struct plot_source given = *source;
    given.driver = driver;
    return given.runs ? draw_runs(&given, figure, why) : draw_given(&given, figure, why);
}
