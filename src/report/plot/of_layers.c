#include "report/plot/of_layers.h"

#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/drawing.h"

static const char *text_or(const struct jv *value, const char *otherwise)
{
    const char *text = jv_text(value);
    return text ? text : otherwise;
}

static void add_part(struct layer_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->names[i], name) == 0)
            return;
    if (parts->count < PARTS_MOST)
        parts->names[parts->count++] = name;
}

static void add_parts(struct layer_parts *parts, const struct jv *entry)
{
    for (const struct jv *c = jv_first(jv_get(entry, "components")); c; c = jv_next(c))
        if (jv_text(jv_get(c, "name")))
            add_part(parts, jv_text(jv_get(c, "name")));
}

void layer_parts_of(const struct jv *layers, bool inside, struct layer_parts *out)
{
    *out = (struct layer_parts){0};
    if (!inside) {
        add_parts(out, layers);
        return;
    }
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l))
        add_parts(out, l);
}

double layer_joules(const struct jv *entry, const char *component, const char *phase)
{
    double sum = 0;
    for (const struct jv *c = jv_first(jv_get(entry, "components")); c; c = jv_next(c)) {
        double joules = jv_number(jv_get(c, "energy_j"));
        if (is_known(joules) && strcmp(text_or(jv_get(c, "name"), ""), component) == 0 &&
            (!phase || strcmp(text_or(jv_get(c, "phase"), ""), phase) == 0))
            sum += joules;
    }
    return sum;
}

void layers_heading(struct figure *figure, const struct plot_source *source, const char *what)
{
    const char *model = text_or(jv_get(source->layers, "model"), "a model");
    double joules = jv_number(jv_path(source->layers, "energy.joules"));
    double plus_minus = jv_number(jv_path(source->layers, "energy.plus_minus"));
    str_format(figure->title, sizeof figure->title, "%s: %.160s", what, short_name(model));
    if (is_known(joules))
        str_format(
            figure->note, sizeof figure->note,
            "one pass of the workload, %.4g ± %.2g J in all%s; shared out by %s", joules,
            plus_minus,
            strcmp(text_or(jv_get(source->layers, "method"), ""), "estimated") ? "" : ", estimated",
            text_or(jv_get(source->layers, "attribution"), "an unknown method"));
}

enum err layers_check(const struct plot_source *source, struct error *why)
{
    const struct jv *layers = jv_get(source->layers, "layers");
    bool known = false, timed = false;
    if (!jv_count(layers))
        return err_set(why, ERR_NO_DATA, "the file has no layers");
    for (const struct jv *l = jv_first(layers); l; l = jv_next(l)) {
        known = known || is_known(jv_number(jv_get(l, "energy_j")));
        timed = timed || jv_number(jv_get(l, "time_s")) > 0;
    }
    if (!timed)
        return err_set(why, ERR_NO_DATA, "the layers were not told apart: looked at by %s",
                       text_or(jv_get(source->layers, "granularity"), "phase"));
    return known ? ERR_OK : err_set(why, ERR_NO_DATA, "the energy of no layer is known");
}

enum figure_colour part_colour(size_t part)
{
    static const enum figure_colour COLOURS[] = {FIGURE_BLUE,   FIGURE_ORANGE, FIGURE_GREEN,
                                                 FIGURE_PURPLE, FIGURE_SKY,    FIGURE_VERMILION,
                                                 FIGURE_YELLOW, FIGURE_INK};
    return COLOURS[part % (sizeof COLOURS / sizeof *COLOURS)];
}
