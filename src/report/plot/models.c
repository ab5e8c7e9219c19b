/* Several runs side by side: what a query and a token cost, how fast, and how often right. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/plot/across.h"

/* More would be lines, not bars. */
enum { RUNS_MOST = 40 };

struct measure {
    const char *label;
    double value, low, high; /* UNKNOWN: no interval */
};

enum { MEASURES = 4 };

static void measures_of(const struct run_figures *run, struct measure *out)
{
    const struct run_point *point = &run->point;
    out[0] = (struct measure){"J per query", point->joules_per_query,
                              point->joules_per_query - run->joules_per_query_error,
                              point->joules_per_query + run->joules_per_query_error};
    out[1] = (struct measure){"J per output token", point->joules_per_output_token,
                              point->joules_per_output_token - run->joules_per_output_token_error,
                              point->joules_per_output_token + run->joules_per_output_token_error};
    out[2] = (struct measure){"median latency, s", run->latency_s, UNKNOWN, UNKNOWN};
    out[3] = (struct measure){"accuracy, %", 100 * point->accuracy, 100 * run->accuracy_low,
                              100 * run->accuracy_high};
}

static size_t count_known(const struct plot_source *source, unsigned which)
{
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        struct measure measures[MEASURES];
        measures_of(&source->runs[i], measures);
        known += is_known(measures[which].value);
    }
    return known;
}

/* The share of the page that the longest name takes. */
static double names_share(const struct plot_source *source)
{
    size_t longest = 0;
    char name[FIGURE_TEXT_MAX];
    for (size_t i = 0; i < source->run_count; i++) {
        run_title(source, i, name, sizeof name);
        longest = strlen(name) > longest ? strlen(name) : longest;
    }
    return 0.0095 * fmin((double)longest, 34) + 0.01;
}

static void put_measure(struct figure *figure, const struct plot_source *source, unsigned which,
                        bool with_names)
{
    static const enum figure_colour COLOURS[MEASURES] = {FIGURE_BLUE, FIGURE_SKY, FIGURE_ORANGE,
                                                         FIGURE_GREEN};
    struct measure measures[MEASURES];
    char name[FIGURE_TEXT_MAX];
    measures_of(&source->runs[0], measures);
    struct figure_panel *panel = figure_panel(figure, measures[which].label, "");
    panel->x.from_zero = true;
    panel->y.down = true;
    struct figure_series *bars = figure_series(figure, panel, FIGURE_BOXES, COLOURS[which], "");
    struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_X, FIGURE_INK, "");
    for (size_t i = 0; i < source->run_count; i++) {
        measures_of(&source->runs[i], measures);
        const struct measure *m = &measures[which];
        run_title(source, i, name, sizeof name);
        figure_name(figure, &panel->y, with_names ? name : "");
        series_add4(bars, 0, m->value, (double)i - 0.36, (double)i + 0.36);
        series_add4(errors, m->value, (double)i, fmax(m->low, 0), m->high);
    }
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    bool with_names = true;
    double share;
    if (source->run_count > RUNS_MOST)
        return err_set(why, ERR_NO_DATA, "%zu runs; bars can be told apart up to %d",
                       source->run_count, RUNS_MOST);
    for (unsigned which = 0; which < MEASURES; which++) {
        if (count_known(source, which) < 2)
            continue;
        put_measure(figure, source, which, with_names);
        with_names = false;
    }
    if (with_names)
        return err_set(why, ERR_NO_DATA, "no figure is known of two runs");
    str_format(figure->title, sizeof figure->title, "%zu runs side by side", source->run_count);
    str_copy(figure->note, sizeof figure->note,
             "bars: ±1.96 σ, queries and sensors; of accuracy 95 % (Wilson)");
    figure->beside = true;
    share = names_share(source);
    for (size_t i = 0; i < figure->panel_count; i++)
        figure->panels[i].weight = (1 - share) / (double)figure->panel_count + (i ? 0 : share);
    figure->height = fmax(400, 150 + 34 * (double)source->run_count);
    return ERR_OK;
}

const struct plot_driver plot_models = {
    .name = "models",
    .summary = "several runs side by side: energy, latency, accuracy",
    .of = PLOT_OF_RUNS,
    .draw = draw,
};
