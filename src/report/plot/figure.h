/* A figure before it is drawn: panels with axes and data series.  Strings may contain any bytes, and are drawn
 * literally.
 *
 * A struct figure owns all that was added to it: zero-initialize, figure_release. */
#ifndef IPW_REPORT_FIGURE_H
#define IPW_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_table.h"

struct output;

enum { FIGURE_TEXT_MAX = 256, FIGURE_PANELS_MAX = 6, FIGURE_ROW = 5 };

/* Columns of a series. */
enum figure_style {
    FIGURE_POINTS,   /* x, y, weight: 0 is faint, 1 is solid */
    FIGURE_LINE,     /* x, y */
    FIGURE_DOTTED,   /* x, y */
    FIGURE_STEPS,    /* x, y */
    FIGURE_MARKED,   /* x, y: a line with marks on it */
    FIGURE_BAND,     /* x, low, high */
    FIGURE_BOXES,    /* x from, x to, y from, y to */
    FIGURE_ERRORS_Y, /* x, y, low, high: a point with an error bar */
    FIGURE_ERRORS_X, /* x, y, low, high: the same, horizontal */
    FIGURE_HEAT,     /* x from, x to, y from, y to, value */
};

/* Colors by their role in a figure: the same in all, and distinguishable with color vision deficiency. */
enum figure_color {
    FIGURE_BLUE,
    FIGURE_ORANGE,
    FIGURE_GREEN,
    FIGURE_PURPLE,
    FIGURE_SKY_BLUE,
    FIGURE_VERMILION,
    FIGURE_YELLOW,
    FIGURE_INK, /* same as the text */
    FIGURE_COLORS
};

struct figure_series {
    enum figure_style style;
    enum figure_color color;
    unsigned round;             /* if colors repeat: other markers and dashes */
    char name[FIGURE_TEXT_MAX]; /* in the legend; "" for none */
    double (*rows)[FIGURE_ROW];
    size_t count, capacity;
    struct figure *figure;
};

struct figure_axis {
    char label[FIGURE_TEXT_MAX];    /* a unit in braces, "energy ({J} per query)", gets a prefix */
    double log_base;                /* 0: linear */
    double low, high;               /* UNKNOWN: from the data */
    bool from_zero, hidden;         /* hidden: without numbers */
    bool integer;                   /* ticks only at integers */
    bool down;                      /* counts from the top */
    char (*names)[FIGURE_TEXT_MAX]; /* labels of 0, 1, 2 ... instead of numbers */
    size_t name_count, name_capacity;
};

struct figure_label {
    double x, y;
    char text[FIGURE_TEXT_MAX];
    bool left; /* placed to the left of its point */
};

struct figure_panel {
    char title[FIGURE_TEXT_MAX]; /* "" for none */
    struct figure_axis x, y;
    char heat_label[FIGURE_TEXT_MAX]; /* label of the color scale; a unit in braces gets a prefix */
    double heat_high;                 /* end of the color scale from 0; 0: from the data */
    struct figure_series **series;
    size_t series_count, series_capacity;
    struct figure_label *labels;
    size_t label_count, label_capacity;
    double weight; /* relative height or width; 0 counts as 1 */
};

struct figure {
    char title[FIGURE_TEXT_MAX], note[FIGURE_TEXT_MAX];
    struct figure_panel panels[FIGURE_PANELS_MAX];
    size_t panel_count;
    bool horizontal; /* panels from left to right; else from top to bottom */
    double height;   /* for a width of 800; 0: 500 */
};

/* Axes are linear and scaled to the data by default.  At most FIGURE_PANELS_MAX. */
struct figure_panel *figure_panel(struct figure *figure, const char *x_label, const char *y_label);

/* The label of an axis, from the label and unit of record.def: "energy ({J} per query)" for "Energy per query" in J; of
 * a column, after `which`, "mean prompt (tokens)". */
struct axis_label {
    char text[FIGURE_TEXT_MAX];
    const char *label, *unit;
};
struct axis_label axis_label(const char *which, const char *label, const char *unit);
struct axis_label axis_of(const char *which, enum run_number column);

struct figure_series *figure_series(struct figure *figure, struct figure_panel *panel,
                                    enum figure_style style, enum figure_color color,
                                    const char *name);

/* Adds a row of the style; a row with an unknown value (of those used) is omitted. */
void series_add(struct figure_series *series, const double *values, unsigned count);
#define series_add2(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 2)
#define series_add3(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 3)
#define series_add4(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 4)
#define series_add5(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 5)

/* Which values of a row are on this axis: bits. */
static inline unsigned figure_values_on(enum figure_style style, bool is_x)
{
    switch (style) {
    case FIGURE_BAND:
        return is_x ? 1 : 2 | 4;
    case FIGURE_BOXES:
    case FIGURE_HEAT:
        return is_x ? 1 | 2 : 4 | 8;
    case FIGURE_ERRORS_Y:
        return is_x ? 1 : 2 | 4 | 8;
    case FIGURE_ERRORS_X:
        return is_x ? 1 | 4 | 8 : 2;
    default:
        return is_x ? 1 : 2;
    }
}

/* Points with their ±, and a line through the means of those at the same x; sorts the points.  `line` may be NULL. */
struct figure_point {
    double x, y, plus_minus; /* plus_minus UNKNOWN: none */
};
void figure_points(struct figure_series *line, struct figure_series *marks,
                   struct figure_point *points, size_t count);

void figure_name(struct figure_axis *axis, const char *name);
void figure_label(struct figure_panel *panel, double x, double y, bool left, const char *text);

/* Call when everything was added: removes panels without rows, and gives units in braces the SI prefix that suits their
 * data, which are scaled accordingly.  False if no panel is left. */
bool figure_finish(struct figure *figure);

void figure_release(struct figure *figure);

enum figure_format { FIGURE_PNG, FIGURE_SVG, FIGURE_PDF, FIGURE_FORMATS };
extern const char *const FIGURE_SUFFIXES[FIGURE_FORMATS]; /* "png" ... */

/* The gnuplot script.  The same figure gives the same bytes.  A character without a glyph is replaced by its code
 * point, since it would be drawn as a large box over its neighbors; NULL: all have one. */
struct layers_result;
struct run_figures;
struct text;
struct uncertainty;
void figure_script(const struct figure *figure, enum figure_format format, bool dark,
                   bool (*can_be_shown)(uint32_t code), struct text *out);

/* ---- titles ---- */

/* "What: llama3.2:1b on H100", and a note with the number of queries drawn, and why others are not: failed, or lacking
 * `lacking`. */
void draw_heading(struct figure *figure, const struct run_table *table, const char *what,
                  size_t drawn, const char *lacking);

/* Appends to the note, after "; ". */
void figure_note(struct figure *figure, const char *format, ...) PRINTF_LIKE(2, 3);

/* How the energies of a figure were obtained, and their common relative error, which may be UNKNOWN: every figure with
 * energy or power states it. */
void figure_note_energy(struct figure *figure, const char *method, double common);
void figure_note_energy_of(struct figure *figure, const struct run_table *table);

/* "bars: 95 % CI", and what else of other runs they include. */
void figure_note_bars(struct figure *figure, const char *what, const struct run_figures *runs,
                      size_t count, const struct uncertainty *common);

/* The same for a result of `ipw layers`, with its energy and how that was attributed. */
void layers_heading(struct figure *figure, const struct layers_result *layers, const char *what);

/* A vertical line up to `top`, with a legend entry. */
void draw_vertical(struct figure *figure, struct figure_panel *panel, enum figure_color color,
                   double x, double top, const char *name);

/* ---- drawing by gnuplot ---- */

/* Draws figures with gnuplot, a separate program that is looked up in PATH and never linked.  No state. */

/* ERR_UNSUPPORTED, with how to install it, when PATH has none. */
enum err gnuplot_available(struct error *why) MUST_USE;

/* Writes the picture to a file that was opened for it. */
enum err gnuplot_draw(const struct figure *figure, enum figure_format format, bool dark,
                      struct output *output, struct error *why) MUST_USE;

/* For --plot FILE: by the suffix of the path.  Call the check before anything is computed; drawing releases the figure,
 * and returns `made` if that is an error. */
enum err gnuplot_check_file(const char *path, struct error *why) MUST_USE;
enum err gnuplot_draw_file(struct figure *figure, enum err made, const char *path,
                           struct error *why) MUST_USE;

#endif
