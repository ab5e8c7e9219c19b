/* Reading the JSON of `ipw layers` for pictures.  Everything points into the tree that is read. */
#ifndef IPW_REPORT_PLOTS_OF_LAYERS_H
#define IPW_REPORT_PLOTS_OF_LAYERS_H

#include <stddef.h>

#include "report/plot/figure.h"
#include "report/plot/plot.h"

/* Parts of a decoder in the order of its work; more than these are not known. */
enum { PARTS_MOST = 24 };
struct layer_parts {
    const char *names[PARTS_MOST];
    size_t count;
};

/* Names of components, each once, in the order of the file.  `inside`: of those in layers alone. */
void layer_parts_of(const struct jv *layers, bool inside, struct layer_parts *out);

/* The joules of a component in one entry of `layers` (or in `outside`), over the phases; 0 when it has
 * none.  phase NULL: both. */
double layer_joules(const struct jv *entry, const char *component, const char *phase);

/* "model.gguf: what", and how the joules were measured. */
void layers_heading(struct figure *figure, const struct plot_source *source, const char *what);

/* ERR_NO_DATA when the layers were not measured, or not told apart. */
enum err layers_check(const struct plot_source *source, struct error *why) MUST_USE;

enum figure_colour part_colour(size_t part);

#endif
