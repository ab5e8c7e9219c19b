#define _GNU_SOURCE
#include "report/plot/figure.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/uncertainty.h"
#include "report/text/format.h"
#include "rundir/layers_result.h"

/* Larger values are invalid; below this, ranges stay finite. */
#define FIGURE_LARGEST 1e100

const char *const FIGURE_SUFFIXES[FIGURE_FORMATS] = {"png", "svg", "pdf"};

struct figure_panel *figure_panel(struct figure *figure, const char *x_label, const char *y_label)
{
    struct figure_panel *panel = &figure->panels[figure->panel_count];
    if (figure->panel_count < FIGURE_PANELS_MAX - 1)
        figure->panel_count++;
    panel->x.low = panel->x.high = panel->y.low = panel->y.high = UNKNOWN;
    chars_copy(panel->x.label, x_label);
    chars_copy(panel->y.label, y_label);
    return panel;
}

struct axis_label axis_label(const char *which, const char *label, const char *unit)
{
    struct axis_label to = {.label = label, .unit = unit};
    const char *per = strstr(label, " per ");
    const char *tokens = per ? NULL : strstr(label, " tokens");
    int length = (int)strlen(label);
    if (per)
        length = (int)(per - label);
    else if (tokens)
        length = (int)(tokens - label);
    if (unit[0])
        chars_format(to.text, "%s%.*s ({%s}%s)", which, length, label, unit, text_or_empty(per));
    else if (tokens)
        chars_format(to.text, "%s%.*s (tokens)", which, length, label);
    else
        chars_format(to.text, "%s%.*s (%%%s)", which, length, label, text_or_empty(per));
    to.text[0] = (char)tolower((unsigned char)to.text[0]);
    return to;
}

struct axis_label axis_of(const char *which, enum run_number column)
{
    const struct record_field *field = RECORD_FIELDS;
    while (field->column_kind != COLUMN_NUMBER || field->column != (int)column)
        field++;
    return axis_label(which, field->label, field->unit);
}

struct figure_series *figure_series(struct figure *figure, struct figure_panel *panel,
                                    enum figure_style style, enum figure_color color,
                                    const char *name)
{
    XGROW(panel->series, panel->series_count, panel->series_capacity);
    struct figure_series *series = XNEW(series);
    *series = (struct figure_series){.style = style, .color = color, .figure = figure};
    chars_copy(series->name, name);
    panel->series[panel->series_count++] = series;
    return series;
}

void series_add(struct figure_series *series, const double *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!is_known(values[i]) || fabs(values[i]) > FIGURE_LARGEST)
            return;
    XGROW(series->rows, series->count, series->capacity);
    for (unsigned i = 0; i < FIGURE_ROW; i++)
        series->rows[series->count][i] = i < count ? values[i] : 0;
    series->count++;
}

static int by_x(const void *a, const void *b)
{
    return compare_numbers(((const struct figure_point *)a)->x,
                           ((const struct figure_point *)b)->x);
}

void figure_points(struct figure_series *line, struct figure_series *marks,
                   struct figure_point *points, size_t count)
{
    if (count)
        qsort(points, count, sizeof *points, by_x);
    for (size_t i = 0; i < count;) {
        double sum = 0;
        double x = points[i].x;
        size_t first = i;
        for (; i < count && points[i].x == x; i++) {
            double y = points[i].y;
            double error = points[i].plus_minus;
            error = known_or(error, 0);
            series_add4(marks, x, y, y - error > 0 ? y - error : y / 100, y + error);
            sum += y;
        }
        if (line)
            series_add2(line, x, sum / (double)(i - first));
    }
}

void figure_name(struct figure_axis *axis, const char *name)
{
    XGROW(axis->names, axis->name_count, axis->name_capacity);
    str_copy(axis->names[axis->name_count++], FIGURE_TEXT_MAX, name);
}

void figure_label(struct figure_panel *panel, double x, double y, bool left, const char *text)
{
    XGROW(panel->labels, panel->label_count, panel->label_capacity);
    if (!is_known(x) || !is_known(y))
        return;
    panel->labels[panel->label_count] = (struct figure_label){.x = x, .y = y, .left = left};
    str_copy(panel->labels[panel->label_count++].text, FIGURE_TEXT_MAX, text);
}

static void release_panel(struct figure_panel *panel)
{
    for (size_t i = 0; i < panel->series_count; i++) {
        free(panel->series[i]->rows);
        free(panel->series[i]);
    }
    free((void *)panel->series);
    free(panel->labels);
    free(panel->x.names);
    free(panel->y.names);
    *panel = (struct figure_panel){0};
}

static bool is_empty(const struct figure_panel *panel)
{
    for (size_t i = 0; i < panel->series_count; i++)
        if (panel->series[i]->count)
            return false;
    return true;
}

static bool drop_empty(struct figure *figure)
{
    size_t kept = 0;
    for (size_t i = 0; i < figure->panel_count; i++) {
        if (is_empty(&figure->panels[i])) {
            release_panel(&figure->panels[i]);
            continue;
        }
        if (kept != i) {
            figure->panels[kept] = figure->panels[i];
            figure->panels[i] = (struct figure_panel){0};
        }
        kept++;
    }
    figure->panel_count = kept;
    return kept > 0;
}

/* ---- units ---- */

/* Calls visit for every value on an axis. */
static void each_value(struct figure_panel *panel, bool is_x, void (*visit)(double *, double *),
                       double *context)
{
    for (size_t s = 0; s < panel->series_count; s++) {
        unsigned on = figure_values_on(panel->series[s]->style, is_x);
        for (size_t i = 0; i < panel->series[s]->count; i++)
            for (unsigned v = 0; v < FIGURE_ROW; v++)
                if (on >> v & 1)
                    visit(context, &panel->series[s]->rows[i][v]);
    }
}

static void take_largest(double *largest, double *value)
{
    *largest = fmax(*largest, fabs(*value));
}

static void scale(double *factor, double *value)
{
    *value *= *factor;
}

/* Chosen by the largest value: 0.0042 J is 4.2 mJ. */
static const struct prefix {
    double factor;
    const char *text;
} PREFIXES[] = {{1e-9, "G"}, {1e-6, "M"}, {1e-3, "k"}, {1, ""}, {1e3, "m"}, {1e6, "µ"}, {1e9, "n"}};

static const struct prefix *prefix_for(double largest, const char *unit)
{
    size_t at = unit[0] == 's' ? 3 : 0; /* kiloseconds are not used */
    while (at + 1 < COUNT_OF(PREFIXES) && largest * PREFIXES[at].factor < 1)
        at++;
    return &PREFIXES[largest > 0 ? at : 3];
}

static void put_prefix(char *label, const struct prefix *prefix)
{
    char whole[FIGURE_TEXT_MAX];
    char *open = strchr(label, '{');
    char *close = open ? strchr(open, '}') : NULL;
    if (!close)
        return;
    chars_format(whole, "%.*s%s%.*s%s", (int)(open - label), label, prefix->text,
                 (int)(close - open - 1), open + 1, close + 1);
    str_copy(label, FIGURE_TEXT_MAX, whole);
}

static void scale_axis(struct figure_panel *panel, bool is_x)
{
    struct figure_axis *axis = is_x ? &panel->x : &panel->y;
    const char *unit = strchr(axis->label, '{');
    double largest = 0;
    if (!unit || !strchr(unit, '}'))
        return;
    each_value(panel, is_x, take_largest, &largest);
    const struct prefix *prefix = prefix_for(largest, unit + 1);
    double factor = prefix->factor;
    each_value(panel, is_x, scale, &factor);
    for (size_t i = 0; i < panel->label_count; i++)
        *(is_x ? &panel->labels[i].x : &panel->labels[i].y) *= factor;
    axis->low *= factor;
    axis->high *= factor;
    put_prefix(axis->label, prefix);
}

/* Scales the colors of a heat map, if its range is given. */
static void scale_heat(struct figure_panel *panel)
{
    const char *unit = strchr(panel->heat_label, '{');
    if (!unit)
        return;
    const struct prefix *prefix = prefix_for(panel->heat_high, unit + 1);
    panel->heat_high *= prefix->factor;
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; panel->series[s]->style == FIGURE_HEAT && i < panel->series[s]->count;
             i++)
            panel->series[s]->rows[i][FIGURE_ROW - 1] *= prefix->factor;
    put_prefix(panel->heat_label, prefix);
}

bool figure_finish(struct figure *figure)
{
    for (size_t p = 0; p < figure->panel_count; p++) {
        for (int is_x = 0; is_x < 2; is_x++)
            scale_axis(&figure->panels[p], is_x);
        scale_heat(&figure->panels[p]);
    }
    return drop_empty(figure);
}

void figure_release(struct figure *figure)
{
    for (size_t i = 0; i < FIGURE_PANELS_MAX; i++)
        release_panel(&figure->panels[i]);
    *figure = (struct figure){0};
}

/* ---- headings ---- */

void figure_note(struct figure *figure, const char *format, ...)
{
    size_t length = strlen(figure->note);
    va_list arguments;
    if (length)
        length += str_copy(figure->note + length, sizeof figure->note - length, "; ") ? 2 : 0;
    va_start(arguments, format);
    vsnprintf(figure->note + length, sizeof figure->note - length, format, arguments);
    va_end(arguments);
}

void figure_note_energy(struct figure *figure, const char *method, double common)
{
    char words[FORMAT_MAX], error[FORMAT_MAX];
    format_method(words, method);
    if (common > 0)
        figure_note(figure, "energies %s, %s", words, format_common(error, common));
    else
        figure_note(figure, "energies %s", words);
}

void figure_note_bars(struct figure *figure, const char *what, const struct run_figures *runs,
                      size_t count, const struct uncertainty *common)
{
    char spread[64];
    figure_note(figure, "%s: 95 %% CI%s%s", what, run_spread_note(runs, count, spread),
                common->sensors == UNCERTAINTY_MIXED ? ", sensors included" : "");
}

void figure_note_energy_of(struct figure *figure, const struct run_table *table)
{
    figure_note_energy(figure, run_energy_method(table), uncertainty_of(table).common);
}

void draw_heading(struct figure *figure, const struct run_table *table, const char *what,
                  size_t drawn, const char *lacking)
{
    const char *hardware = run_hardware(table);
    size_t without = run_completed_count(table) - drawn;
    char counts[128] = "";
    chars_format(figure->title, "%s: %.100s%s%.60s", what, table->model, hardware[0] ? " on " : "",
                 hardware);
    figure->title[0] = (char)toupper((unsigned char)figure->title[0]);
    if (drawn == table->rows) {
        figure_note(figure, "%zu quer%s", drawn, drawn == 1 ? "y" : "ies");
        return;
    }
    if (table->failed)
        chars_format(counts, "%zu failed%s", table->failed, without || table->canceled ? ", " : "");
    if (table->canceled)
        str_format(counts + strlen(counts), sizeof counts - strlen(counts), "%zu canceled%s",
                   table->canceled, without ? ", " : "");
    if (without)
        str_format(counts + strlen(counts), sizeof counts - strlen(counts), "%zu without %.60s",
                   without, lacking);
    figure_note(figure, "%zu of %zu queries; %s", drawn, table->rows, counts);
}

void draw_vertical(struct figure *figure, struct figure_panel *panel, enum figure_color color,
                   double x, double top, const char *name)
{
    struct figure_series *line = figure_series(figure, panel, FIGURE_DOTTED, color, name);
    series_add2(line, x, 0);
    series_add2(line, x, top);
}

void layers_heading(struct figure *figure, const struct layers_result *layers, const char *what)
{
    const struct record_energy *energy = &layers->energy;
    chars_format(figure->title, "%s: %.160s", what,
                 str_last_part(layers->model ? layers->model : "a model"));
    char total[FORMAT_MAX];
    if (is_known(energy->joules))
        chars_format(figure->note, "one pass of the workload, %s in total%s; attributed by %s",
                     format_with_error(total, energy->joules, energy->plus_minus, "J"),
                     layers_result_is_estimated(layers) ? ", estimated" : "",
                     layers->attribution ? layers->attribution : "an unknown method");
}

/* ---- drawing by gnuplot ---- */

/* Draws figures with gnuplot, a program found in PATH and never linked.  Characters without a glyph in any font are
 * replaced by their code points first: they would be drawn as large boxes over their neighbors. */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "port/proc.h"
#include "report/plot/figure.h"

/* ---- characters without a glyph, as reported by fontconfig ---- */

static struct text covered; /* "20-7e a0-17f 6a21", a line per font; "" without fontconfig */
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void run_fontconfig(void)
{
    char piece[4096], *program = proc_find("fc-list");
    const char *const argv[] = {program, "--format", "%{charset}\n", NULL};
    struct text nothing = {0};
    FILE *file = program ? tmpfile() : NULL;
    if (file && !proc_filter(argv, &nothing, fileno(file), NULL)) {
        size_t got = fseek(file, 0, SEEK_SET) == 0 ? sizeof piece : 0;
        while (got == sizeof piece) {
            got = fread(piece, 1, sizeof piece, file);
            text_add_bytes(&covered, piece, got);
        }
    }
    if (file)
        fclose(file);
    free(program);
}

static bool is_in_a_font(uint32_t code)
{
    pthread_once(&asked, run_fontconfig);
    for (const char *at = text_get(&covered); *at;) {
        char *end;
        unsigned long low = strtoul(at, &end, 16);
        unsigned long high = low;
        if (end == at) {
            at++;
            continue;
        }
        if (*end == '-')
            high = strtoul(end + 1, &end, 16);
        if (code >= low && code <= high)
            return true;
        at = end;
    }
    return false;
}

/* Latin, Greek, Cyrillic and their punctuation are always available. */
static bool can_be_shown(uint32_t code)
{
    return code < 0x250 || (code >= 0x370 && code < 0x500) || (code >= 0x2010 && code < 0x2028) ||
           is_in_a_font(code);
}

/* ---- gnuplot ---- */

static enum err find_gnuplot(char **path, struct error *why)
{
    *path = proc_find("gnuplot");
    if (!*path)
        return err_set(why, ERR_UNSUPPORTED,
                       "no gnuplot in PATH; install gnuplot-nox (Debian, Ubuntu) or gnuplot");
    return ERR_OK;
}

enum err gnuplot_available(struct error *why)
{
    char *path;
    enum err err = find_gnuplot(&path, why);
    free(path);
    return err;
}

/* Removes the creation date from a PDF, so that the same figure gives the same file. */
static void remove_date(int file)
{
    static const char KEY[] = "/CreationDate (D:";
    static const char DATE[] = "19700101000000";
    char tail[4096];
    off_t end = lseek(file, 0, SEEK_END);
    off_t begin = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
    ssize_t length = pread(file, tail, sizeof tail, begin);
    const char *found = length > 0 ? memmem(tail, (size_t)length, KEY, sizeof KEY - 1) : NULL;
    if (!found || found + sizeof KEY + sizeof DATE > tail + length)
        return;
    off_t place = begin + (found - tail) + (off_t)(sizeof KEY - 1);
    if (pwrite(file, DATE, sizeof DATE - 1, place) != (ssize_t)(sizeof DATE - 1))
        log_info("the PDF keeps its creation date: %s", strerror(errno));
}

/* The picture is written to gnuplot's stdout, so that the script contains no file name. */
static enum err run_gnuplot(int file, const char *path, const struct text *script,
                            struct error *why)
{
    const char *const argv[] = {path, "-d", "-", NULL}; /* ignores the user's configuration */
    enum err err = proc_filter(argv, script, file, why);
    if (err)
        return err;
    if (lseek(file, 0, SEEK_END) <= 0)
        return err_set(why, ERR_IO, "%s drew nothing; is it built with cairo?", path);
    remove_date(file);
    return ERR_OK;
}

enum err gnuplot_draw(const struct figure *figure, enum figure_format format, bool dark,
                      struct output *output, struct error *why)
{
    char *path;
    struct text script = {0};
    enum err err = find_gnuplot(&path, why);
    if (err)
        return err;
    /* An SVG is rendered by its viewer, with the fonts there. */
    figure_script(figure, format, dark, format == FIGURE_SVG ? NULL : can_be_shown, &script);
    err = run_gnuplot(output->fd, path, &script, why);
    free(path);
    text_release(&script);
    return err;
}

/* ---- files ---- */

/* By the suffix of the path; false if it is not that of a picture. */
static bool format_of(const char *path, enum figure_format *format)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (!dot || dot == base)
        return false;
    for (int i = 0; i < FIGURE_FORMATS; i++)
        if (str_equal(dot + 1, FIGURE_SUFFIXES[i])) {
            *format = (enum figure_format)i;
            return true;
        }
    return false;
}

enum err gnuplot_check_file(const char *path, struct error *why)
{
    enum figure_format format;
    if (!format_of(path, &format))
        return err_set(why, ERR_USAGE, "--plot takes a file that ends in .png, .svg or .pdf");
    return gnuplot_available(why);
}

enum err gnuplot_draw_file(struct figure *figure, enum err made, const char *path,
                           struct error *why)
{
    enum figure_format format = 0;
    struct output output;
    (void)format_of(path, &format);
    enum err err = made ? made : file_make_parents(path, why);
    if (!err)
        err = output_open(&output, path, false, why);
    if (!err)
        err = output_finish(&output, gnuplot_draw(figure, format, false, &output, why), why);
    figure_release(figure);
    return err;
}
