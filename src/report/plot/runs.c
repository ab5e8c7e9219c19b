/* Plots of several runs: energy per output token against concurrency and prompt length, the runs side by
 * side as bars, and accuracy against energy with the Pareto frontier.  Runs are named by what differs between
 * them: model, hardware, dataset, concurrency; by their directory where nothing does. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/utf8.h"
#include "report/plot/plot.h"
#include "stats/pareto.h"

/* ---- names of runs ---- */

enum { LINE_COLORS = FIGURE_INK }; /* of lines: without the one of the text */

static bool differ_in(const struct plot_source *source, size_t at)
{
    const char *first = (const char *)&source->runs[0].point + at;
    for (size_t i = 1; i < source->run_count; i++)
        if (strcmp((const char *)&source->runs[i].point + at, first) != 0)
            return true;
    return false;
}

static bool concurrency_differs(const struct plot_source *source)
{
    for (size_t i = 1; i < source->run_count; i++)
        if (source->runs[i].point.concurrency != source->runs[0].point.concurrency)
            return true;
    return false;
}

/* Without its path or organization, unless another model then has the same name. */
static const char *model_name(const struct plot_source *source, size_t run)
{
    const char *model = source->runs[run].point.model, *name = short_name(model);
    for (size_t i = 0; i < source->run_count; i++) {
        const char *other = source->runs[i].point.model;
        if (strcmp(other, model) != 0 && strcmp(short_name(other), name) == 0)
            return model;
    }
    return name;
}

static bool begins_letter(const char *at)
{
    return !utf8_is_continuation(*at);
}

/* A model's name in about `most` letters: its beginning, and more of its end, which has the precision. */
static void add_model(struct text *out, const char *name, size_t most)
{
    size_t length = strlen(name), head = most / 3,
           tail = length > most ? length - most + head + 1 : 0;
    if (length <= most) {
        text_add(out, name);
        return;
    }
    while (head && !begins_letter(name + head))
        head--;
    while (tail < length && !begins_letter(name + tail))
        tail++;
    text_add_bytes(out, name, head);
    text_addf(out, "…%s", name + tail);
}

/* Letters that fit on an axis, and the least of them for the model. */
enum { TITLE_LETTERS = 34, MODEL_LETTERS = 14, NUMBER_LETTERS = 4 };

static void title_of(const struct plot_source *source, size_t run, size_t letters, char *to,
                     size_t size)
{
    const struct run_point *point = &source->runs[run].point;
    struct text title = {0}, rest = {0};
    if (differ_in(source, offsetof(struct run_point, hardware)) && point->hardware[0])
        text_addf(&rest, ", %s", point->hardware);
    if (differ_in(source, offsetof(struct run_point, dataset)) && point->dataset[0])
        text_addf(&rest, ", %s", point->dataset);
    if (concurrency_differs(source) && is_known(point->concurrency))
        text_addf(&rest, ", concurrency %g", point->concurrency);
    if (differ_in(source, offsetof(struct run_point, model)))
        add_model(&title, model_name(source, run),
                  rest.length + MODEL_LETTERS < letters ? letters - rest.length : MODEL_LETTERS);
    if (rest.length)
        text_add(&title, text_get(&rest) + (title.length ? 0 : strlen(", ")));
    str_copy(to, size, title.length ? text_get(&title) : short_name(point->directory));
    text_release(&title);
    text_release(&rest);
}

/* What was cut may have been all that differed: then the runs have their numbers, too. */
static void run_title(const struct plot_source *source, size_t run, char *to, size_t size)
{
    char own[FIGURE_TEXT_MAX], other[FIGURE_TEXT_MAX];
    bool alone = true;
    title_of(source, run, TITLE_LETTERS, own, sizeof own);
    for (size_t i = 0; i < source->run_count && alone; i++) {
        title_of(source, i, TITLE_LETTERS, other, sizeof other);
        alone = i == run || strcmp(own, other) != 0;
    }
    if (alone) {
        str_copy(to, size, own);
        return;
    }
    title_of(source, run, TITLE_LETTERS - NUMBER_LETTERS, own, sizeof own);
    str_format(to, size, "%zu: %s", run + 1, own);
}

/* ---- J per token ---- */

static bool same_line(const struct run_point *a, const struct run_point *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->hardware, b->hardware) == 0;
}

static bool has_token_energy(const struct run_figures *run, double x)
{
    return x > 0 && run->point.joules_per_output_token > 0;
}

/* The runs that are on the line of the first. */
static void put_token_line(const struct plot_source *source, size_t first,
                           double (*of)(const struct run_figures *run), struct figure_series *line,
                           struct figure_series *marks)
{
    struct figure_point *points = calloc(source->run_count, sizeof *points);
    size_t count = 0;
    marks->figure->failed = marks->figure->failed || !points;
    for (size_t i = first; i < source->run_count && points; i++) {
        const struct run_figures *run = &source->runs[i];
        if (same_line(&run->point, &source->runs[first].point) && has_token_energy(run, of(run)))
            points[count++] = (struct figure_point){of(run), run->point.joules_per_output_token,
                                                    run->joules_per_output_token_error};
    }
    figure_points(line, marks, points, count);
    free(points);
}

static enum err check_per_token(const struct plot_source *source,
                                double (*of)(const struct run_figures *run), const char *what,
                                struct error *why)
{
    double least = INFINITY, most = -INFINITY;
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        double x = of(&source->runs[i]);
        if (!has_token_energy(&source->runs[i], x))
            continue;
        known++;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    if (known < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu runs have both %s and joules per output token",
                       known, source->run_count, what);
    if (least == most)
        return err_set(why, ERR_NO_DATA, "all runs have the same %s, %g", what, least);
    return ERR_OK;
}

/* Of a line: its model, and its machine where there are several; long names as a legend shows them. */
static void plain_line_title(const struct plot_source *source, size_t run, bool with_machine,
                             char *to, size_t size)
{
    enum { LETTERS = 44, MACHINE_LETTERS = 20 };
    struct text title = {0};
    add_model(&title, model_name(source, run), with_machine ? LETTERS - MACHINE_LETTERS : LETTERS);
    text_addf(&title, "%s%.*s", with_machine ? " on " : "", MACHINE_LETTERS,
              with_machine ? source->runs[run].point.hardware : "");
    str_copy(to, size, text_get(&title));
    text_release(&title);
}

static void line_title(const struct plot_source *source, size_t run, bool with_machine, char *to,
                       size_t size)
{
    char own[FIGURE_TEXT_MAX], other[FIGURE_TEXT_MAX];
    bool alone = true;
    plain_line_title(source, run, with_machine, own, sizeof own);
    for (size_t i = 0; i < source->run_count && alone; i++) {
        plain_line_title(source, i, with_machine, other, sizeof other);
        alone =
            same_line(&source->runs[i].point, &source->runs[run].point) || strcmp(own, other) != 0;
    }
    if (alone)
        str_copy(to, size, own);
    else
        str_format(to, size, "%zu: %s", run + 1, own);
}

struct per_token_plot {
    double (*of)(const struct run_figures *run);
    const char *what, *x_label;
};

static enum err draw_per_token(const struct plot_source *source, struct figure *figure,
                               struct error *why)
{
    const struct per_token_plot *plot = source->driver->row;
    size_t lines = 0;
    char name[FIGURE_TEXT_MAX];
    bool several_machines = differ_in(source, offsetof(struct run_point, hardware));
    enum err err = check_per_token(source, plot->of, plot->what, why);
    if (err)
        return err;
    str_format(figure->title, sizeof figure->title, "Energy per output token against %s",
               plot->what);
    str_format(figure->note, sizeof figure->note,
               "%zu runs%s%.60s; bars: ±1.96 σ, queries and sensors", source->run_count,
               several_machines ? "" : " on ",
               several_machines ? "" : source->runs[0].point.hardware);
    struct figure_panel *panel = figure_panel(figure, plot->x_label, "energy (J per output token)");
    panel->x.log_base = 2;
    panel->y.from_zero = true;
    for (size_t i = 0; i < source->run_count; i++) {
        const struct run_point *point = &source->runs[i].point;
        bool before = false;
        for (size_t j = 0; j < i && !before; j++)
            before = same_line(&source->runs[j].point, point);
        if (before)
            continue;
        line_title(source, i, several_machines, name, sizeof name);
        enum figure_color color = (enum figure_color)(lines % LINE_COLORS);
        struct figure_series *line = figure_series(figure, panel, FIGURE_LINE, color, "");
        struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_Y, color, name);
        line->round = errors->round = (unsigned)(lines++ / LINE_COLORS);
        put_token_line(source, i, plot->of, line, errors);
    }
    return ERR_OK;
}

static double concurrency(const struct run_figures *run)
{
    return run->point.concurrency;
}

const struct plot_driver plot_concurrency = {
    .name = "concurrency",
    .summary = "several runs: energy per output token against concurrency",
    .of = PLOT_OF_RUNS,
    .row = &(const struct per_token_plot){concurrency, "concurrency", "concurrent requests"},
    .draw = draw_per_token,
};

static double mean_prompt(const struct run_figures *run)
{
    return run->prompt_tokens;
}

const struct plot_driver plot_context = {
    .name = "context",
    .summary = "several runs: energy per output token against prompt length",
    .of = PLOT_OF_RUNS,
    .row = &(const struct per_token_plot){mean_prompt, "prompt length", "mean prompt (tokens)"},
    .draw = draw_per_token,
};

/* ---- models: bars side by side ---- */

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
    static const enum figure_color BARS[MEASURES] = {FIGURE_BLUE, FIGURE_SKY, FIGURE_ORANGE,
                                                     FIGURE_GREEN};
    struct measure measures[MEASURES];
    char name[FIGURE_TEXT_MAX];
    measures_of(&source->runs[0], measures);
    struct figure_panel *panel = figure_panel(figure, measures[which].label, "");
    panel->x.from_zero = true;
    panel->y.down = true;
    struct figure_series *bars = figure_series(figure, panel, FIGURE_BOXES, BARS[which], "");
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

static enum err draw_models(const struct plot_source *source, struct figure *figure,
                            struct error *why)
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
        return err_set(why, ERR_NO_DATA, "no metric is known for two runs");
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
    .draw = draw_models,
};

/* ---- pareto: accuracy against energy ---- */

struct choice {
    double joules, accuracy;
};

static int by_joules(const void *a, const void *b)
{
    double x = ((const struct choice *)a)->joules, y = ((const struct choice *)b)->joules;
    return (x > y) - (x < y);
}

static bool is_graded(const struct run_figures *run)
{
    return run->point.joules_per_query > 0 && is_known(run->point.accuracy);
}

static void put_run(struct figure *figure, struct figure_panel *panel,
                    const struct plot_source *source, size_t i, bool on, double farthest,
                    struct figure_series *const series[2][2])
{
    const struct run_figures *run = &source->runs[i];
    double x = run->point.joules_per_query, y = 100 * run->point.accuracy;
    double error = is_known(run->joules_per_query_error) ? run->joules_per_query_error : 0;
    char name[FIGURE_TEXT_MAX];
    series_add4(series[on][0], x, y, 100 * run->accuracy_low, 100 * run->accuracy_high);
    series_add4(series[on][1], x, y, x - error > 0 ? x - error : x / 100, x + error);
    run_title(source, i, name, sizeof name);
    figure_label(figure, panel, x, y, x > farthest, name);
}

/* From choice to choice: what is cheaper than the next is worth no more than the one before. */
static void put_frontier(struct figure *figure, struct figure_panel *panel, struct choice *best,
                         size_t count)
{
    struct figure_series *line =
        figure_series(figure, panel, FIGURE_LINE, FIGURE_GREEN, "Pareto frontier");
    qsort(best, count, sizeof *best, by_joules);
    for (size_t i = 0; i < count; i++) {
        if (i)
            series_add2(line, best[i].joules, best[i - 1].accuracy);
        series_add2(line, best[i].joules, best[i].accuracy);
    }
}

/* Names of points in the right half stand to their left, so that none is cut off. */
static double middle_of(const struct plot_source *source, bool *is_wide)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < source->run_count; i++)
        if (is_graded(&source->runs[i])) {
            least = fmin(least, source->runs[i].point.joules_per_query);
            most = fmax(most, source->runs[i].point.joules_per_query);
        }
    *is_wide = most / least > 20;
    return *is_wide ? sqrt(least * most) : (least + most) / 2;
}

static enum err put_runs(const struct plot_source *source, const bool *on, struct choice *best,
                         struct figure *figure)
{
    size_t count = 0;
    struct figure_panel *panel =
        figure_panel(figure, "energy (J per query)", "accuracy (% of the graded answers)");
    bool is_wide;
    double farthest = middle_of(source, &is_wide);
    panel->x.log_base = is_wide ? 10 : 0;
    struct figure_series *series[2][2];
    for (int i = 0; i < 2; i++) {
        enum figure_color color = i ? FIGURE_GREEN : FIGURE_BLUE;
        series[i][0] = figure_series(figure, panel, FIGURE_ERRORS_Y, color,
                                     i ? "Pareto-optimal" : "dominated");
        series[i][1] = figure_series(figure, panel, FIGURE_ERRORS_X, color, "");
    }
    for (size_t i = 0; i < source->run_count; i++) {
        const struct run_point *point = &source->runs[i].point;
        if (!is_graded(&source->runs[i]))
            continue;
        put_run(figure, panel, source, i, on[i], farthest, series);
        if (on[i])
            best[count++] = (struct choice){point->joules_per_query, 100 * point->accuracy};
    }
    put_frontier(figure, panel, best, count);
    return ERR_OK;
}

static enum err draw_known(const struct plot_source *source, double *cost, double *worth, bool *on,
                           struct choice *best, struct figure *figure, struct error *why)
{
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        bool drawn = is_graded(&source->runs[i]);
        cost[i] = drawn ? source->runs[i].point.joules_per_query : UNKNOWN;
        worth[i] = drawn ? source->runs[i].point.accuracy : UNKNOWN;
        known += drawn;
    }
    if (known < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu runs have graded answers of known energy",
                       known, source->run_count);
    enum err err = pareto_mark(cost, worth, source->run_count, on);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    str_copy(figure->title, sizeof figure->title, "Accuracy against energy");
    str_format(figure->note, sizeof figure->note,
               "%zu runs; bars: ±1.96 σ of energy, queries and sensors; 95 %% of accuracy%s", known,
               known < source->run_count ? "; runs without grades or energy are left out" : "");
    return put_runs(source, on, best, figure);
}

static enum err draw_pareto(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    size_t n = source->run_count;
    double *cost = malloc(n * sizeof *cost), *worth = malloc(n * sizeof *worth);
    bool *on = calloc(n, sizeof *on);
    struct choice *best = malloc(n * sizeof *best);
    enum err err = cost && worth && on && best
                       ? draw_known(source, cost, worth, on, best, figure, why)
                       : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    free(cost);
    free(worth);
    free(on);
    free(best);
    return err;
}

const struct plot_driver plot_pareto = {
    .name = "pareto",
    .summary = "several runs: accuracy against energy, with the Pareto frontier",
    .of = PLOT_OF_RUNS,
    .draw = draw_pareto,
};
