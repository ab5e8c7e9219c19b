/* A picture before it is drawn: panels with axes, and series of numbers in them.  Texts may hold any
 * bytes, and are drawn as labels, nothing else.
 *
 * A struct figure owns all that was added to it: zero-initialize, figure_release.  A failed allocation
 * is remembered in `failed`, so that filling needs no checks. */
#ifndef IPW_REPORT_FIGURE_H
#define IPW_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct output;

enum { FIGURE_TEXT_MAX = 256, FIGURE_PANELS_MOST = 6, FIGURE_ROW = 5 };

/* What a row of a series holds. */
enum figure_style {
    FIGURE_POINTS,   /* x, y, weight: 0 is faint, 1 is solid */
    FIGURE_LINE,     /* x, y */
    FIGURE_DOTTED,   /* x, y */
    FIGURE_STEPS,    /* x, y */
    FIGURE_MARKED,   /* x, y: a line with marks on it */
    FIGURE_BAND,     /* x, low, high */
    FIGURE_BOXES,    /* x from, x to, y from, y to */
    FIGURE_ERRORS_Y, /* x, y, low, high: a mark with its interval */
    FIGURE_ERRORS_X, /* x, y, low, high: the same, lying */
    FIGURE_HEAT,     /* x from, x to, y from, y to, value */
};

/* Colors by their part in a picture: the same in every one, distinguishable with color vision deficiency. */
enum figure_color {
    FIGURE_BLUE,
    FIGURE_ORANGE,
    FIGURE_GREEN,
    FIGURE_PURPLE,
    FIGURE_SKY,
    FIGURE_VERMILION,
    FIGURE_YELLOW,
    FIGURE_INK, /* as the text */
    FIGURE_COLORS
};

struct figure_series {
    enum figure_style style;
    enum figure_color color;
    unsigned round;             /* where colors come again: other marks and dashes */
    char name[FIGURE_TEXT_MAX]; /* in the legend; "" for none */
    double (*rows)[FIGURE_ROW];
    size_t count, capacity;
    struct figure *figure;
};

struct figure_axis {
    char label
        [FIGURE_TEXT_MAX]; /* with the unit: one in braces, "energy ({J} per query)", gets a prefix */
    double log_base;       /* 0: linear */
    double low, high;      /* UNKNOWN: by the data */
    bool from_zero, hidden;         /* hidden: without numbers */
    bool whole;                     /* only whole numbers are marked */
    bool down;                      /* counts from the top */
    char (*names)[FIGURE_TEXT_MAX]; /* of 0, 1, 2 ...; instead of numbers */
    size_t name_count, name_capacity;
};

struct figure_label {
    double x, y;
    char text[FIGURE_TEXT_MAX];
    bool left; /* stands to the left of its place */
};

struct figure_panel {
    char title[FIGURE_TEXT_MAX]; /* "" for none */
    struct figure_axis x, y;
    char heat_label[FIGURE_TEXT_MAX]; /* of the colors, with the unit: in braces it gets a prefix */
    double heat_high;                 /* of the colors' scale, which begins at 0; 0: by the data */
    struct figure_series **series;
    size_t series_count, series_capacity;
    struct figure_label *labels;
    size_t label_count, label_capacity;
    double weight; /* of its height or width among the others; 0 counts as 1 */
};

struct figure {
    char title[FIGURE_TEXT_MAX], note[FIGURE_TEXT_MAX];
    struct figure_panel panels[FIGURE_PANELS_MOST];
    size_t panel_count;
    bool beside;   /* panels from left to right; else from top to bottom */
    double height; /* of 800 wide; 0: 500 */
    bool failed;
};

/* Axes are linear and scaled to the data by default.  There are FIGURE_PANELS_MOST. */
struct figure_panel *figure_panel(struct figure *figure, const char *x_label, const char *y_label);

/* Never NULL: a failed figure has one that takes nothing. */
struct figure_series *figure_series(struct figure *figure, struct figure_panel *panel,
                                    enum figure_style style, enum figure_color color,
                                    const char *name);

/* A row as the style has it; one with a value that is not known (of those that count) is left out. */
void series_add(struct figure_series *series, const double *values, unsigned count);
#define series_add2(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 2)
#define series_add3(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 3)
#define series_add4(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 4)
#define series_add5(series, ...) series_add(series, (const double[]){__VA_ARGS__}, 5)

/* Which of a row's values lie on this axis: bits. */
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

/* Marks with their ±, and a line through the mean of those at the same place; sorts the points.  `line` may be NULL. */
struct figure_point {
    double x, y, plus_minus; /* plus_minus UNKNOWN: without one */
};
void figure_points(struct figure_series *line, struct figure_series *marks,
                   struct figure_point *points, size_t count);

void figure_name(struct figure *figure, struct figure_axis *axis, const char *name);
void figure_label(struct figure *figure, struct figure_panel *panel, double x, double y, bool left,
                  const char *text);

/* What is left when all is added: panels without a row are taken out, and units in braces get the SI prefix
 * that suits their data, which are scaled with it.  False when no panel is left. */
bool figure_finish(struct figure *figure);

void figure_release(struct figure *figure);

enum figure_format { FIGURE_PNG, FIGURE_SVG, FIGURE_PDF, FIGURE_FORMATS };
extern const char *const FIGURE_SUFFIXES[FIGURE_FORMATS]; /* "png" ... */

/* What gnuplot draws it from.  The same figure gives the same bytes.  A character that cannot be shown is replaced
 * by its code point, since a picture would show a large box over its neighbors; NULL: all can. */
struct layers_result;
struct run_table;
struct text;
enum err figure_script(const struct figure *figure, enum figure_format format, bool dark,
                       bool (*can_be_shown)(uint32_t code), struct text *out) MUST_USE;

/* ---- titles ---- */

/* "what: llama3.2:1b on H100", and a note with how many queries are drawn, and why the others are not: failed, or
 * without what is `lacking`. */
void draw_heading(struct figure *figure, const struct run_table *table, const char *what,
                  size_t drawn, const char *lacking);

/* Adds to the note, after "; ". */
void figure_note(struct figure *figure, const char *format, ...) PRINTF_LIKE(2, 3);

/* How the energies of a picture were obtained, and their common relative error, which may be UNKNOWN: every
 * picture of energy or power says so. */
void figure_note_energy(struct figure *figure, const char *method, double common);
void figure_note_energy_of(struct figure *figure, const struct run_table *table);

/* The same of a result of `ipw layers`, with its energy and how that was attributed. */
void layers_heading(struct figure *figure, const struct layers_result *layers, const char *what);

/* A vertical line up to `top`, with its name in the legend. */
void draw_vertical(struct figure *figure, struct figure_panel *panel, enum figure_color color,
                   double x, double top, const char *name);

/* ---- drawing by gnuplot ---- */

/* Drawing figures by gnuplot, a program of its own that is looked for in PATH and never linked.  Nothing
 * here keeps state. */

/* ERR_UNSUPPORTED, with how to install it, when PATH has none. */
enum err gnuplot_available(struct error *why) MUST_USE;

/* Writes the picture to a file that was opened for it. */
enum err gnuplot_draw(const struct figure *figure, enum figure_format format, bool dark,
                      struct output *output, struct error *why) MUST_USE;

/* For --plot FILE: by the suffix of the path.  The check is for before anything is computed; drawing releases the
 * figure, and returns `made` where that is an error. */
enum err gnuplot_check_file(const char *path, struct error *why) MUST_USE;
enum err gnuplot_draw_file(struct figure *figure, enum err made, const char *path,
                           struct error *why) MUST_USE;

#endif
