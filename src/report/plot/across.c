#include "report/plot/across.h"

#include <stdbool.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot/drawing.h"

enum { COLOURS = FIGURE_INK }; /* of lines: without the one of the text */

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

/* Without its path or organisation, unless another model is then called the same. */
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
    return ((unsigned char)*at & 0xC0) != 0x80;
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

/* What an axis has room for; of the model at least so much. */
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
        text_addf(&rest, ", %g at once", point->concurrency);
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
void run_title(const struct plot_source *source, size_t run, char *to, size_t size)
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

static bool is_drawn(const struct run_figures *run, double x)
{
    return x > 0 && run->point.joules_per_output_token > 0;
}

/* The runs of one line, from the least x to the largest. */
static void put_line(const struct plot_source *source, size_t first,
                     double (*of)(const struct run_figures *run), struct figure_series *line,
                     struct figure_series *errors)
{
    double last = -1;
    for (;;) {
        const struct run_figures *next = NULL;
        for (size_t i = first; i < source->run_count; i++) {
            const struct run_figures *run = &source->runs[i];
            double x = of(run);
            if (same_line(&run->point, &source->runs[first].point) && is_drawn(run, x) &&
                x > last && (!next || x < of(next)))
                next = run;
        }
        if (!next)
            return;
        last = of(next);
        /* Several at the same place: each has its mark, and the line goes through their mean. */
        double sum = 0, count = 0;
        for (size_t i = first; i < source->run_count; i++) {
            const struct run_figures *run = &source->runs[i];
            double y = run->point.joules_per_output_token;
            double error = run->joules_per_output_token_error;
            if (!same_line(&run->point, &next->point) || !is_drawn(run, of(run)) || of(run) != last)
                continue;
            sum += y;
            count++;
            error = is_known(error) ? error : 0;
            series_add4(errors, last, y, y - error > 0 ? y - error : y / 100, y + error);
        }
        series_add2(line, last, sum / count);
    }
}

static enum err check(const struct plot_source *source, double (*of)(const struct run_figures *run),
                      const char *what, struct error *why)
{
    double least = INFINITY, most = -INFINITY;
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        double x = of(&source->runs[i]);
        if (!is_drawn(&source->runs[i], x))
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

enum err draw_per_token(const struct plot_source *source, double (*of)(const struct run_figures *run),
                        const char *what, const char *x_label, struct figure *figure,
                        struct error *why)
{
    size_t lines = 0;
    char name[FIGURE_TEXT_MAX];
    bool several_machines = differ_in(source, offsetof(struct run_point, hardware));
    enum err err = check(source, of, what, why);
    if (err)
        return err;
    str_format(figure->title, sizeof figure->title, "Energy of an output token against %s", what);
    str_format(figure->note, sizeof figure->note,
               "%zu runs%s%.60s; bars: ±1.96 σ, queries and sensors", source->run_count,
               several_machines ? "" : " on ",
               several_machines ? "" : source->runs[0].point.hardware);
    struct figure_panel *panel = figure_panel(figure, x_label, "energy (J per output token)");
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
        enum figure_colour colour = (enum figure_colour)(lines % COLOURS);
        struct figure_series *line = figure_series(figure, panel, FIGURE_LINE, colour, "");
        struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_Y, colour, name);
        line->round = errors->round = (unsigned)(lines++ / COLOURS);
        put_line(source, i, of, line, errors);
    }
    return ERR_OK;
}
