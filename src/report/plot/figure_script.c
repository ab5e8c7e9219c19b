/* A figure as a gnuplot script with inline data.
 *
 * Everything from data is a number, or a string in single quotes, in which only the quote itself is special to gnuplot.
 * Terminals use plain text (noenhanced), so "_" and "{" are literal.
 *
 * Positions are given as fractions of the page rather than left to gnuplot, so that legends are above the data, never
 * on it, and panels are aligned. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot/figure.h"

enum { LEGEND_LETTERS = 50 };
enum { FONT = 13, FONT_SMALL = 11, ROW_HEIGHT = 17 }; /* for a page of width 800 */
enum { NOTE_LETTERS = 128, NUMBER_LETTERS = 4 };
#define LETTER       0.0095 /* width of a character, relative to the page's */
#define LETTER_SMALL 0.0080

struct theme {
    const char *background, *foreground, *muted, *grid;
    unsigned colors[FIGURE_COLORS];
};

/* The Okabe-Ito palette.  Some colors are hard to see on white, others on black. */
static const struct theme LIGHT = {
    "#ffffff",
    "#1a1a1a",
    "#5a5a5a",
    "#d9d9d9",
    {0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xd55e00, 0xb3a800, 0x1a1a1a},
};
static const struct theme DARK = {
    "#14171c",
    "#ececec",
    "#a9afb8",
    "#363c45",
    {0x56b4e9, 0xe69f00, 0x1fbf92, 0xe39cc4, 0x3d8fd1, 0xf0743e, 0xf0e442, 0xececec},
};

struct rect {
    double left, right, bottom, top; /* fractions of the page */
};

struct drawing {
    const struct figure *figure;
    const struct theme *theme;
    struct text *out;
    double height;
    bool (*can_be_shown)(uint32_t code); /* NULL: all can */
    bool numbered[FIGURE_PANELS_MAX];    /* labels are numbers, explained above the panel */
};

/* ---- texts ---- */

/* A character of a string: invalid UTF-8 counts as one character per byte. */
struct letter {
    size_t length;  /* in bytes */
    char shown[12]; /* as in the script */
    size_t width;   /* in characters */
};

static struct letter letter_at(const struct drawing *d, const char *at, size_t left, bool is_format)
{
    struct letter letter = {.width = 1};
    uint32_t code = utf8_decode(at, left, &letter.length);
    if (code >= UTF8_INVALID)
        chars_copy(letter.shown, "?");
    else if (code < 0x20 || code == 0x7f)
        chars_copy(letter.shown, " ");
    else if (code == '\'' || (code == '%' && is_format))
        chars_format(letter.shown, "%c%c", *at, *at);
    else if (d->can_be_shown && !d->can_be_shown(code))
        letter.width =
            (size_t)snprintf(letter.shown, sizeof letter.shown, "[U+%04X]", (unsigned)code);
    else
        memcpy(letter.shown, at, letter.length);
    return letter;
}

static size_t letters_in(const struct drawing *d, const char *string)
{
    size_t count = 0;
    size_t end = strlen(string);
    for (size_t at = 0; at < end;) {
        struct letter letter = letter_at(d, string + at, end - at, false);
        count += letter.width;
        at += letter.length;
    }
    return count;
}

/* Quotes at most `max` characters; the middle of a longer string is omitted, since the end of a name often
 * distinguishes it.  Invalid UTF-8 becomes "?", a line break a space. */
static void put_quoted(const struct drawing *d, const char *string, size_t max, bool is_format)
{
    size_t letters = letters_in(d, string);
    size_t end = strlen(string);
    size_t from =
        letters > max ? (max + 1) / 2 : letters; /* of the ellipsis, which takes one character */
    size_t to = letters > max ? letters - (max - 1 - from) : letters;
    bool cut = false;
    /* gnuplot would take a leading quote for the end of an empty string. */
    text_add(d->out, string[0] == '\'' ? "' " : "'");
    for (size_t at = 0, passed = 0; at < end;) {
        struct letter letter = letter_at(d, string + at, end - at, is_format);
        at += letter.length;
        passed += letter.width;
        if (passed <= from || passed > to)
            text_add(d->out, letter.shown);
        else if (!cut)
            text_add(d->out, "…");
        cut = cut || (passed > from && passed <= to);
    }
    text_add(d->out, "'");
}

/* ---- the page ---- */

static void put_terminal(struct drawing *d, enum figure_format format)
{
    text_add(d->out, "set encoding utf8\n");
    if (format == FIGURE_PNG)
        text_addf(d->out,
                  "set terminal pngcairo noenhanced font 'sans-serif,%d' fontscale 1.5 linewidth 2 "
                  "pointscale 2 size 1600,%.0f background '%s'\n",
                  FONT, 2 * d->height, d->theme->background);
    else if (format == FIGURE_SVG)
        text_addf(d->out,
                  "set terminal svg noenhanced font 'sans-serif,%d' size 800,%.0f background "
                  "'%s'\n",
                  FONT, d->height, d->theme->background);
    else
        text_addf(d->out,
                  "set terminal pdfcairo noenhanced font 'sans-serif,%d' fontscale 0.54 "
                  "linewidth 1.5 pointscale 0.8 size 8in,%.2fin background '%s'\n",
                  FONT, d->height / 100, d->theme->background);
}

static void put_settings(struct drawing *d)
{
    const struct theme *theme = d->theme;
    text_addf(d->out, "set border 3 linecolor rgb '%s'\n", theme->muted);
    text_addf(d->out, "set tics nomirror out scale 0.5 textcolor rgb '%s'\n", theme->foreground);
    text_addf(d->out, "set grid linetype 1 linewidth 0.6 linecolor rgb '%s'\n", theme->grid);
    text_addf(d->out, "set errorbars 0.6\nset boxwidth 1 absolute\n");
    /* viridis, sampled at eight points. */
    text_add(d->out, "set palette defined (0 '#440154', 1 '#46327e', 2 '#365c8d', 3 '#277f8e', 4 "
                     "'#1fa187', 5 '#4ac16d', 6 '#a0da39', 7 '#fde725')\n");
}

static double px(const struct drawing *d, double pixels)
{
    return pixels / d->height;
}

/* ---- data ---- */

/* How gnuplot draws a series: the words around its color, and the columns of its data. */
static const struct style {
    const char *with;
    bool is_dashed, is_marked;  /* by the round of its color */
    const char *color, *ending; /* NULL: the color is in the data */
    unsigned columns;
} STYLES[] = {
    [FIGURE_POINTS] = {" using 1:2:3 with points pointtype 7 pointsize 0.75 linecolor rgb variable "
                       "notitle",
                       false, false, NULL, "", 2},
    [FIGURE_LINE] = {" with lines linewidth 2", true, false, " linecolor rgb '#", "'", 2},
    [FIGURE_DOTTED] = {" with lines linewidth 2 dashtype (3,3)", false, false, " linecolor rgb '#",
                       "'", 2},
    [FIGURE_STEPS] = {" with steps linewidth 1.5", false, false, " linecolor rgb '#", "'", 2},
    [FIGURE_MARKED] = {" with linespoints linewidth 1.5", true, true, " linecolor rgb '#", "'", 2},
    [FIGURE_BAND] = {" with filledcurves", false, false, " fillcolor rgb '#c0",
                     "' fillstyle solid noborder", 3},
    [FIGURE_BOXES] = {" with boxxyerror", false, false, " fillcolor rgb '#",
                      "' fillstyle solid noborder", 5},
    [FIGURE_ERRORS_Y] = {" with yerrorbars linewidth 1.5", false, true, " linecolor rgb '#", "'",
                         4},
    [FIGURE_ERRORS_X] = {" with xerrorbars linewidth 1.5", false, true, " linecolor rgb '#", "'",
                         4},
    [FIGURE_HEAT] = {" with boxxyerror fillstyle solid noborder fillcolor palette", false, false,
                     NULL, "", 5},
};

static void put_block(struct drawing *d, size_t p, size_t s, const struct figure_series *series)
{
    bool is_box = series->style == FIGURE_BOXES || series->style == FIGURE_HEAT;
    text_addf(d->out, "$p%zus%zu << END\n", p, s);
    for (size_t i = 0; i < series->count; i++) {
        const double *row = series->rows[i];
        if (is_box)
            text_addf(d->out, "%.9g %.9g ", row[0] / 2 + row[1] / 2, row[2] / 2 + row[3] / 2);
        for (unsigned c = 0; c < STYLES[series->style].columns; c++)
            text_addf(d->out, "%s%.9g", c ? " " : "", row[c]);
        if (series->style == FIGURE_POINTS)
            text_addf(d->out, " %u",
                      (unsigned)lround((1 - row[2]) * 215) << 24 | d->theme->colors[series->color]);
        text_add(d->out, "\n");
    }
    text_add(d->out, "END\n");
}

static void put_style(struct drawing *d, const struct figure_series *series)
{
    static const unsigned MARKS[] = {7, 5, 9, 13};
    static const unsigned DASHES[] = {1, 2, 4, 5};
    const struct style *style = &STYLES[series->style];
    text_add(d->out, style->with);
    if (style->is_dashed)
        text_addf(d->out, " dashtype %u", DASHES[series->round % 4]);
    if (style->is_marked)
        text_addf(d->out, " pointtype %u pointsize 0.9", MARKS[series->round % 4]);
    if (style->color)
        text_addf(d->out, "%s%06x%s", style->color, d->theme->colors[series->color], style->ending);
}

/* Points have variable colors, so their legend entry is separate. */
static void put_series(struct drawing *d, size_t p, size_t s, const struct figure_series *series,
                       bool is_first)
{
    text_addf(d->out, "%s$p%zus%zu", is_first ? "plot " : ", ", p, s);
    put_style(d, series);
    if (series->style == FIGURE_POINTS && series->name[0])
        text_addf(d->out, ", keyentry with points pointtype 7 pointsize 0.75 linecolor rgb '#%06x'",
                  d->theme->colors[series->color]);
    if (series->name[0]) {
        text_add(d->out, " title ");
        put_quoted(d, series->name, LEGEND_LETTERS, false);
    } else if (series->style != FIGURE_POINTS) {
        text_add(d->out, " notitle");
    }
}

/* ---- axes ---- */

struct range {
    double low, high;
};

static void widen(struct range *range, double value, bool logarithmic)
{
    if (logarithmic && value <= 0)
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

static struct range range_of(const struct figure_panel *panel, bool is_x)
{
    const struct figure_axis *axis = is_x ? &panel->x : &panel->y;
    struct range range = {INFINITY, -INFINITY};
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct figure_series *series = panel->series[s];
        unsigned on = figure_values_on(series->style, is_x);
        for (size_t i = 0; i < series->count; i++)
            for (unsigned v = 0; v < FIGURE_ROW; v++)
                if (on >> v & 1)
                    widen(&range, series->rows[i][v], axis->log_base > 0);
    }
    if (axis->from_zero && axis->log_base <= 0)
        widen(&range, 0, false);
    /* Otherwise the padding around the data would not be finite. */
    if (range.low <= range.high) {
        range.low = fmin(fmax(range.low, axis->log_base > 0 ? 1e-150 : -1e150), 1e150);
        range.high = fmax(fmin(range.high, 1e150), range.low);
    }
    return range;
}

/* The data range with padding; a single value is centered. */
static struct range padded_range(const struct figure_panel *panel, bool is_x)
{
    const struct figure_axis *axis = is_x ? &panel->x : &panel->y;
    struct range range = range_of(panel, is_x);
    double air = is_x ? 0.03 : 0.06;
    if (range.low > range.high)
        range = (struct range){axis->log_base > 0 ? 1 : 0, axis->log_base > 0 ? 10 : 1};
    if (axis->log_base > 0) {
        double span = log(range.high / range.low);
        double factor = exp(span > 0 ? fmax(air * span, 0.05) : 0.7);
        range = (struct range){range.low / factor, range.high * factor};
    } else {
        double span = range.high - range.low;
        double step = span > 0 ? air * span : fmax(fabs(range.high) * 0.1, 0.5);
        range.low -= axis->from_zero && range.low >= 0 ? 0 : step;
        range.high += axis->from_zero && range.high <= 0 && span > 0 ? 0 : step;
    }
    if (axis->names)
        range = (struct range){-0.5, (double)axis->name_count - 0.5};
    if (is_known(axis->low))
        range.low = axis->low;
    if (is_known(axis->high))
        range.high = axis->high;
    return range;
}

static size_t longest_name(const struct drawing *d, const struct figure_axis *axis)
{
    size_t longest = 0;
    for (size_t i = 0; i < axis->name_count; i++) {
        size_t length = letters_in(d, axis->names[i]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

enum { NAME_LETTERS = 34 };

static bool are_names_rotated(const struct drawing *d, const struct figure_axis *axis, double width)
{
    return (double)(axis->name_count * (longest_name(d, axis) + 2)) * LETTER > width;
}

static void put_names(struct drawing *d, const char *letter, const struct figure_axis *axis,
                      double width)
{
    text_addf(d->out, "set %stics %s(", letter,
              letter[0] == 'x' && are_names_rotated(d, axis, width) ? "rotate by 35 right "
                                                                    : "norotate ");
    for (size_t i = 0; i < axis->name_count; i++) {
        text_add(d->out, i ? ", " : "");
        put_quoted(d, axis->names[i], NAME_LETTERS, true);
        text_addf(d->out, " %zu", i);
    }
    text_add(d->out, ")\n");
}

/* 1, 2 or 5 times a power of ten, so that the range has at most `max` steps. */
static double nice_step(struct range range, double max, bool integer)
{
    static const double STEPS[] = {1, 2, 5, 10};
    double min = (range.high - range.low) / fmax(max, 3);
    double power = pow(10, floor(log10(min)));
    size_t i = 0;
    while (i + 1 < COUNT_OF(STEPS) && min > STEPS[i] * power)
        i++;
    double step = STEPS[i] * power;
    return integer ? fmax(step, 1) : step;
}

/* With at most one power of ten in the range, the axis is labeled as a linear one. */
static bool has_few_powers(const struct figure_axis *axis, struct range range)
{
    double base = log(axis->log_base);
    return floor(log(range.high) / base) - ceil(log(range.low) / base) < 1;
}

static void put_numbers(struct drawing *d, struct range range, double step)
{
    double first = ceil(range.low / step);
    text_add(d->out, "(");
    for (int i = 0; (first + i) * step <= range.high; i++)
        text_addf(d->out, "%s%.9g", i ? ", " : "", (first + i) * step);
    text_add(d->out, ")");
}

/* Ticks far enough apart for their labels: 46 wide on a horizontal axis, 34 high on a vertical one, or 24 for
 * counts. */
static void put_ticks(struct drawing *d, const char *letter, const struct figure_axis *axis,
                      struct range range, struct rect rect)
{
    double max = letter[0] == 'x'
                     ? (rect.right - rect.left) * 800 / 46
                     : (rect.top - rect.bottom) * d->height / (axis->integer ? 24 : 34);
    text_addf(d->out, "set %stics norotate ", letter);
    if (axis->log_base > 0 && has_few_powers(axis, range))
        put_numbers(d, range, nice_step(range, fmin(max, 6), axis->integer));
    else if (axis->log_base > 0)
        text_add(d->out, "autofreq");
    else
        text_addf(d->out, "%.9g", nice_step(range, max, axis->integer));
    text_addf(d->out, "\nset format %s '%s'\n", letter, axis->hidden ? "" : "%.7g");
}

static void put_axis(struct drawing *d, const char *letter, const struct figure_panel *panel,
                     struct rect rect)
{
    bool is_x = letter[0] == 'x';
    const struct figure_axis *axis = is_x ? &panel->x : &panel->y;
    struct range range = padded_range(panel, is_x);
    text_addf(d->out, "unset logscale %s\n", letter);
    if (axis->log_base > 0)
        text_addf(d->out, "set logscale %s %.0f\n", letter, axis->log_base);
    if (axis->down)
        text_addf(d->out, "set %srange [%.9g:%.9g]\n", letter, range.high, range.low);
    else
        text_addf(d->out, "set %srange [%.9g:%.9g]\n", letter, range.low, range.high);
    text_addf(d->out, "set %slabel ", letter);
    put_quoted(d, axis->label, 80, false);
    text_addf(d->out, " textcolor rgb '%s'\n", d->theme->foreground);
    if (axis->names)
        put_names(d, letter, axis, rect.right - rect.left);
    else
        put_ticks(d, letter, axis, range, rect);
}

/* ---- layout ---- */

static size_t named_series(const struct drawing *d, const struct figure_panel *panel,
                           size_t *longest)
{
    size_t count = 0;
    *longest = 0;
    for (size_t s = 0; s < panel->series_count; s++) {
        size_t length = panel->series[s]->count ? letters_in(d, panel->series[s]->name) : 0;
        length = length > LEGEND_LETTERS ? LEGEND_LETTERS : length;
        count += length > 0;
        *longest = length > *longest ? length : *longest;
    }
    return count;
}

static size_t legend_columns(const struct drawing *d, const struct figure_panel *panel,
                             double width)
{
    size_t longest, count = named_series(d, panel, &longest);
    double columns = floor(width / (((double)longest + 6) * LETTER));
    if (columns < 1)
        return 1;
    return columns > (double)count ? count : (size_t)columns;
}

/* In pixels; 0 without a legend. */
static double legend_height(const struct drawing *d, const struct figure_panel *panel, double width)
{
    size_t longest, named = named_series(d, panel, &longest);
    return named ? 20 * ceil((double)named / (double)legend_columns(d, panel, width)) + 4 : 0;
}

/* Length of the longest number along an axis. */
static size_t longest_number(const struct figure_axis *axis, struct range range)
{
    bool is_log = axis->log_base > 0 && !has_few_powers(axis, range);
    double step = is_log ? log(axis->log_base) : nice_step(range, 10, axis->integer);
    double low = is_log ? log(range.low) : range.low;
    double high = is_log ? log(range.high) : range.high;
    size_t longest = 1;
    char number[32];
    double first = ceil(low / step);
    for (int i = 0; first + i <= high / step; i++) {
        chars_format(number, "%.7g", is_log ? pow(axis->log_base, first + i) : (first + i) * step);
        longest = strlen(number) > longest ? strlen(number) : longest;
    }
    return longest;
}

/* Space for the tick labels of the y axis, and for its label. */
static double left_margin(const struct drawing *d, const struct figure_panel *panel)
{
    size_t names = longest_name(d, &panel->y);
    if (panel->y.names)
        return LETTER * (double)(names < NAME_LETTERS ? names : NAME_LETTERS) +
               (panel->y.label[0] ? 0.055 : 0.025);
    return 0.055 + LETTER * (double)longest_number(&panel->y, padded_range(panel, false));
}

enum { LABELS_MAX = 128, LABEL_LETTERS = 40 }; /* more would be unreadable */

static double label_width(const struct drawing *d, const char *text)
{
    size_t letters = letters_in(d, text);
    return LETTER_SMALL * (double)(letters < LABEL_LETTERS ? letters : LABEL_LETTERS);
}

/* Explanations of numbers above the panel, in rows from left to right. */
static size_t number_columns(const struct drawing *d, const struct figure_panel *panel,
                             double width)
{
    double widest = 0;
    for (size_t i = 0; i < panel->label_count; i++)
        widest = fmax(widest, label_width(d, panel->labels[i].text));
    double columns = floor(width / (widest + (NUMBER_LETTERS + 2) * LETTER_SMALL));
    return columns < 1 ? 1 : (size_t)columns;
}

static double number_rows(const struct drawing *d, const struct figure_panel *panel, double width)
{
    size_t columns = number_columns(d, panel, width);
    return ceil((double)(panel->label_count < LABELS_MAX ? panel->label_count : LABELS_MAX) /
                (double)columns);
}

/* The part of a cell inside the axes.  Stacked panels have the same left edge. */
static struct rect inside(const struct drawing *d, const struct figure_panel *panel,
                          struct rect cell)
{
    double left = left_margin(d, panel);
    double bottom = panel->x.hidden ? 12 : 56;
    double above = 8;
    for (size_t i = 0; i < d->figure->panel_count && !d->figure->horizontal; i++)
        left = fmax(left, left_margin(d, &d->figure->panels[i]));
    struct rect rect = {cell.left + left, cell.right - (panel->heat_label[0] ? 0.1 : 0.025), 0, 0};
    if (panel->x.names && are_names_rotated(d, &panel->x, rect.right - rect.left)) {
        size_t letters = longest_name(d, &panel->x);
        bottom += 5.2 * (double)(letters < NAME_LETTERS ? letters : NAME_LETTERS) - 20;
    }
    rect.bottom = cell.bottom + px(d, bottom);
    above += legend_height(d, panel, rect.right - rect.left);
    if (d->numbered[panel - d->figure->panels])
        above += ROW_HEIGHT * number_rows(d, panel, rect.right - rect.left) + 6;
    above += panel->title[0] ? 22 : 0;
    rect.top = cell.top - px(d, above);
    return rect;
}

static void put_place(struct drawing *d, const struct figure_panel *panel, struct rect rect,
                      struct rect cell)
{
    size_t longest;
    text_addf(d->out,
              "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset bmargin at screen "
              "%.4f\nset tmargin at screen %.4f\n",
              rect.left, rect.right, rect.bottom, rect.top);
    if (named_series(d, panel, &longest))
        text_addf(d->out,
                  "set key at screen %.4f,%.4f left bottom horizontal Left reverse samplen 1.6 "
                  "spacing 1 maxcols %zu textcolor rgb '%s'\n",
                  rect.left, rect.top + px(d, 5), legend_columns(d, panel, rect.right - rect.left),
                  d->theme->foreground);
    else
        text_add(d->out, "unset key\n");
    text_add(d->out, "unset label\n");
    if (panel->title[0]) {
        text_addf(d->out, "set label ");
        put_quoted(d, panel->title, (size_t)((cell.right - cell.left) / LETTER), false);
        text_addf(d->out, " at screen %.4f,%.4f left textcolor rgb '%s'\n", rect.left,
                  cell.top - px(d, 12), d->theme->foreground);
    }
    if (panel->heat_label[0]) {
        text_addf(d->out,
                  "set colorbox user origin screen %.4f,%.4f size screen 0.02,%.4f noborder\n",
                  rect.right + 0.015, rect.bottom, rect.top - rect.bottom);
        text_add(d->out, "set label ");
        put_quoted(d, panel->heat_label, 20, false);
        text_addf(d->out, " at screen %.4f,%.4f left font ',%d' textcolor rgb '%s'\n",
                  rect.right + 0.01, cell.top - px(d, 12), FONT_SMALL, d->theme->foreground);
        text_addf(d->out, "set cbtics textcolor rgb '%s'\n", d->theme->foreground);
        if (panel->heat_high > 0)
            text_addf(d->out, "set cbrange [0:%.9g]\n", panel->heat_high);
    } else {
        text_add(d->out, "unset colorbox\n");
    }
}

/* ---- labels of points ---- */

/* Position of a value on the page. */
static double on_page(double value, const struct figure_axis *axis, struct range range, double from,
                      double to)
{
    double share = axis->log_base > 0 ? (log(value) - log(range.low)) / log(range.high / range.low)
                                      : (value - range.low) / (range.high - range.low);
    share = fmax(fmin(share, 1), 0); /* values outside the range are clamped to its edge */
    return from + (axis->down ? 1 - share : share) * (to - from);
}

static bool overlap(const struct rect *a, const struct rect *b)
{
    return a->left < b->right && b->left < a->right && a->bottom < b->top && b->bottom < a->top;
}

struct labels {
    double x[LABELS_MAX], y[LABELS_MAX]; /* of the points */
    size_t points;
    struct rect taken[2 * LABELS_MAX]; /* occupied by the points, and by labels so far */
    size_t count;
};

static void find_points(const struct drawing *d, const struct figure_panel *panel, struct rect rect,
                        struct labels *out)
{
    struct range x_range = padded_range(panel, true);
    struct range y_range = padded_range(panel, false);
    out->points = panel->label_count < LABELS_MAX ? panel->label_count : LABELS_MAX;
    for (size_t i = 0; i < out->points; i++) {
        double x = on_page(panel->labels[i].x, &panel->x, x_range, rect.left, rect.right);
        double y = on_page(panel->labels[i].y, &panel->y, y_range, rect.bottom, rect.top);
        out->x[i] = x;
        out->y[i] = y;
        out->taken[i] = (struct rect){x - 0.005, x + 0.005, y - px(d, 4), y + px(d, 4)};
    }
    out->count = out->points;
}

/* Distance in pixels between a point and the nearest edge of a label. */
static double distance(const struct drawing *d, const struct rect *box, double x, double y)
{
    double across = fmax(fmax(box->left - x, x - box->right), 0) * 800;
    double along = fmax(fmax(box->bottom - y, y - box->top), 0) * d->height;
    return hypot(across, along);
}

/* Whether no other point is as near, so that the label is unambiguous. */
static bool is_unambiguous(const struct drawing *d, const struct labels *labels,
                           const struct rect *box, size_t own)
{
    double nearest = distance(d, box, labels->x[own], labels->y[own]);
    for (size_t i = 0; i < labels->points; i++)
        if (i != own && distance(d, box, labels->x[i], labels->y[i]) < 1.5 * nearest + 2)
            return false;
    return true;
}

/* Next to its point, a little above or below; on the other side if another label is there.  False if no free place is
 * nearest to its own point: then `far` places are tried, and the box is any free one. */
static bool find_space(const struct drawing *d, const struct labels *labels, size_t own,
                       double width, bool left, bool far, struct rect panel, struct rect *out)
{
    static const double SHIFTS[] = {10, -10, 0, 16, -16, 28, -28, 42, -42, 56, -56};
    double x = labels->x[own];
    double y = labels->y[own];
    *out = (struct rect){x + 0.008, x + 0.008 + width, y - px(d, 7), y + px(d, 7)};
    for (size_t i = 0; i < (far ? 6 : 2) * COUNT_OF(SHIFTS); i++) {
        bool to_left = left != (i % 2 == 1);
        size_t ring = i / (2 * COUNT_OF(SHIFTS));
        double middle = y + px(d, SHIFTS[i / 2 % (COUNT_OF(SHIFTS))]);
        double gap = 0.008 + 0.02 * (double)ring;
        double begin = to_left ? x - gap - width : x + gap;
        struct rect tried = {begin, begin + width, middle - px(d, 7), middle + px(d, 7)};
        bool free = tried.left >= panel.left && tried.right <= panel.right + 0.02 &&
                    tried.bottom >= panel.bottom && tried.top <= panel.top + px(d, 8);
        for (size_t j = 0; j < labels->count && free; j++)
            free = !overlap(&tried, &labels->taken[j]);
        if (!free || (!far && !is_unambiguous(d, labels, &tried, own)))
            continue;
        *out = tried;
        return true;
    }
    return false;
}

/* Whether every label has a place nearest to its own point; otherwise all become numbers. */
static bool labels_fit(const struct drawing *d, const struct figure_panel *panel, struct rect rect)
{
    struct labels labels;
    struct rect box;
    find_points(d, panel, rect, &labels);
    for (size_t i = 0; i < labels.points; i++) {
        const struct figure_label *label = &panel->labels[i];
        if (!find_space(d, &labels, i, label_width(d, label->text), label->left, false, rect, &box))
            return false;
        labels.taken[labels.count++] = box;
    }
    return true;
}

static void put_label(struct drawing *d, const char *text, double x, double y, const char *side)
{
    text_add(d->out, "set label ");
    put_quoted(d, text, LABEL_LETTERS + NUMBER_LETTERS, false);
    text_addf(d->out, " at screen %.4f,%.4f %s front font ',%d' textcolor rgb '%s'\n", x, y, side,
              FONT_SMALL, d->theme->foreground);
}

/* A line from a number to its point, if another is as near. */
static void put_leader(struct drawing *d, double x, double y, const struct rect *box)
{
    text_addf(d->out,
              "set arrow from screen %.4f,%.4f to screen %.4f,%.4f nohead front linewidth 0.7 "
              "linecolor rgb '%s'\n",
              box->left > x ? box->left - 0.002 : box->right + 0.002, (box->bottom + box->top) / 2,
              x, y, d->theme->foreground);
}

static void put_numbers_legend(struct drawing *d, const struct figure_panel *panel,
                               struct rect rect)
{
    double width = rect.right - rect.left;
    size_t columns = number_columns(d, panel, width);
    double base = rect.top + px(d, 12 + legend_height(d, panel, width));
    double rows = number_rows(d, panel, width);
    for (size_t i = 0; i < panel->label_count && i < LABELS_MAX; i++) {
        char text[FIGURE_TEXT_MAX + 16];
        size_t row = i / columns;
        size_t column = i % columns;
        chars_format(text, "%zu  %s", i + 1, panel->labels[i].text);
        put_label(d, text, rect.left + width / (double)columns * (double)column,
                  base + px(d, ROW_HEIGHT * (rows - 1 - (double)row)), "left");
    }
}

static void put_labels(struct drawing *d, const struct figure_panel *panel, struct rect rect,
                       bool numbered)
{
    struct labels labels;
    text_add(d->out, "unset arrow\n");
    find_points(d, panel, rect, &labels);
    for (size_t i = 0; i < labels.points; i++) {
        char number[16];
        const struct figure_label *label = &panel->labels[i];
        struct rect box;
        chars_format(number, "%zu", i + 1);
        const char *text = numbered ? number : label->text;
        double width = label_width(d, text);
        if (!find_space(d, &labels, i, width, label->left, false, rect, &box)) {
            find_space(d, &labels, i, width, label->left, true, rect, &box);
            put_leader(d, labels.x[i], labels.y[i], &box);
        }
        labels.taken[labels.count++] = box;
        put_label(d, text, box.left > labels.x[i] ? box.left : box.right,
                  (box.bottom + box.top) / 2, box.left > labels.x[i] ? "left" : "right");
    }
    if (numbered)
        put_numbers_legend(d, panel, rect);
}

/* ---- the figure ---- */

/* Where the note is broken: at the last "; " that fits on a line; 0: not broken. */
static size_t note_break(const struct drawing *d)
{
    const char *note = d->figure->note;
    size_t at = 0;
    if (letters_in(d, note) <= NOTE_LETTERS)
        return 0;
    for (const char *next = note; (next = strstr(next, "; ")); next += 2)
        if (next - note <= NOTE_LETTERS)
            at = (size_t)(next - note);
    return at;
}

static double heading_height(const struct drawing *d)
{
    if (!d->figure->note[0])
        return 38;
    return note_break(d) ? 56 + ROW_HEIGHT : 56;
}

static void put_note(struct drawing *d, const char *text, double below)
{
    text_add(d->out, "set label ");
    put_quoted(d, text, NOTE_LETTERS, false);
    text_addf(d->out, " at screen 0.02,%.4f left font ',%d' textcolor rgb '%s'\n", 1 - px(d, below),
              FONT_SMALL, d->theme->muted);
}

static void put_heading(struct drawing *d)
{
    char first[FIGURE_TEXT_MAX];
    size_t at = note_break(d);
    text_add(d->out, "set label ");
    put_quoted(d, d->figure->title, 92, false);
    text_addf(d->out, " at screen 0.02,%.4f left font ',%d' textcolor rgb '%s'\n", 1 - px(d, 22),
              FONT + 2, d->theme->foreground);
    if (!d->figure->note[0])
        return;
    chars_format(first, "%.*s", at ? (int)at : FIGURE_TEXT_MAX, d->figure->note);
    put_note(d, first, 44);
    if (at)
        put_note(d, d->figure->note + at + strlen("; "), 44 + ROW_HEIGHT);
}

static struct rect cell_of(const struct drawing *d, size_t wanted)
{
    const struct figure *figure = d->figure;
    double before = 0;
    double own = 1;
    double all = 0;
    double top = 1 - px(d, heading_height(d));
    for (size_t i = 0; i < figure->panel_count; i++) {
        double weight = figure->panels[i].weight > 0 ? figure->panels[i].weight : 1;
        before += i < wanted ? weight : 0;
        own = i == wanted ? weight : own;
        all += weight;
    }
    if (figure->horizontal)
        return (struct rect){before / all, (before + own) / all, 0, top};
    return (struct rect){0, 1, top * (1 - (before + own) / all), top * (1 - before / all)};
}

static void put_panel(struct drawing *d, size_t p)
{
    const struct figure_panel *panel = &d->figure->panels[p];
    struct rect cell = cell_of(d, p);
    struct rect rect = inside(d, panel, cell);
    put_place(d, panel, rect, cell);
    if (p == 0)
        put_heading(d);
    put_labels(d, panel, rect, d->numbered[p]);
    put_axis(d, "x", panel, rect);
    put_axis(d, "y", panel, rect);
    bool is_first = true;
    for (size_t s = 0; s < panel->series_count; s++) {
        if (!panel->series[s]->count)
            continue;
        put_series(d, p, s, panel->series[s], is_first);
        is_first = false;
    }
    text_add(d->out, "\n");
}

/* Legends of more than three lines, and of numbers, enlarge the page rather than shrink the panel. */
static double page_height(const struct drawing *d)
{
    const struct figure *figure = d->figure;
    double height = figure->height > 0 ? figure->height : 500;
    for (size_t p = 0; p < figure->panel_count; p++) {
        size_t longest, named = named_series(d, &figure->panels[p], &longest);
        double width = figure->horizontal ? 0.85 / (double)figure->panel_count : 0.85;
        double lines = ceil((double)named / (double)legend_columns(d, &figure->panels[p], width));
        height += named && lines > 3 ? 20 * (lines - 3) : 0;
        if (d->numbered[p])
            height += ROW_HEIGHT * number_rows(d, &figure->panels[p], width);
    }
    return height;
}

/* Ambiguous names are replaced by numbers. */
static void choose_labels(struct drawing *d)
{
    d->height = page_height(d);
    for (size_t p = 0; p < d->figure->panel_count; p++) {
        const struct figure_panel *panel = &d->figure->panels[p];
        d->numbered[p] = !labels_fit(d, panel, inside(d, panel, cell_of(d, p)));
    }
    d->height = page_height(d);
}

void figure_script(const struct figure *figure, enum figure_format format, bool dark,
                   bool (*can_be_shown)(uint32_t code), struct text *out)
{
    struct drawing d = {
        .figure = figure, .theme = dark ? &DARK : &LIGHT, .out = out, .can_be_shown = can_be_shown};
    choose_labels(&d);
    put_terminal(&d, format);
    put_settings(&d);
    for (size_t p = 0; p < figure->panel_count; p++)
        for (size_t s = 0; s < figure->panels[p].series_count; s++)
            put_block(&d, p, s, figure->panels[p].series[s]);
    if (figure->panel_count > 1)
        text_add(out, "set multiplot\n");
    for (size_t p = 0; p < figure->panel_count; p++)
        put_panel(&d, p);
    if (figure->panel_count > 1)
        text_add(out, "unset multiplot\n");
}
