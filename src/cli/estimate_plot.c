#include "cli/estimate_plot.h"

#include <string.h>

#include "core/text.h"
#include "report/plot/figure.h"
#include "report/plot/gnuplot.h"

enum { PATH_LONGEST = 1024 };

/* The folder and the name without its suffix; false when that is no picture's. */
static bool cut(const char *path, char *folder, char *name, enum figure_format *format)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (!dot || dot == base || strlen(path) >= PATH_LONGEST)
        return false;
    str_format(folder, PATH_LONGEST, "%.*s", slash == path ? 1 : (int)(slash ? slash - path : 1),
               slash ? path : ".");
    str_format(name, PATH_LONGEST, "%.*s", (int)(dot - base), base);
    for (int i = 0; i < FIGURE_FORMATS; i++)
        if (strcmp(dot + 1, FIGURE_SUFFIXES[i]) == 0) {
            *format = (enum figure_format)i;
            return true;
        }
    return false;
}

enum err estimate_plot_check(const char *path, struct error *why)
{
    char folder[PATH_LONGEST], name[PATH_LONGEST];
    enum figure_format format;
    if (!cut(path, folder, name, &format))
        return err_set(why, ERR_USAGE, "--plot wants a file that ends in .png, .svg or .pdf");
    return gnuplot_available(why);
}

enum err estimate_plot_draw(struct figure *figure, const char *path, struct error *why)
{
    char folder[PATH_LONGEST], name[PATH_LONGEST];
    enum figure_format format;
    if (!cut(path, folder, name, &format))
        return err_set(why, ERR_USAGE, "%.100s is no picture's name", path);
    return gnuplot_draw(figure, format, false, folder, name, why);
}
