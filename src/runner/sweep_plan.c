/* The points of a sweep, from knobs or from a list, and the command's words at each. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "power/freq_model.h"
#include "power/optimize.h"
#include "rundir/setting.h"
#include "runner/sweep.h"

enum { POINTS_MAX = SWEEP_POINTS_MAX, VALUE_MAX = 1024, NAME_MAX_BYTES = 64, LIST_MAX = 1 << 24 };

/* ---- knobs ---- */

struct values {
    struct setting *items; /* of one knob */
    size_t count, capacity;
};

static void release_values(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        setting_release(&values->items[i]);
    free(values->items);
    *values = (struct values){0};
}

static enum err add_value(struct values *values, const char *knob, const char *value,
                          struct error *why)
{
    if (values->count >= POINTS_MAX)
        return err_set(why, ERR_USAGE, "--knob %s has more than %d values", knob, POINTS_MAX);
    struct setting *added = XADD(values->items, values->count, values->capacity);
    *added = setting_parse(knob, value);
    for (const struct setting *earlier = values->items; earlier < added; earlier++)
        if (setting_same(earlier, added))
            return err_set(why, ERR_USAGE, "--knob %s: value '%.80s' given more than once", knob,
                           value);
    return ERR_OK;
}

static enum err add_range(struct values *values, const char *knob, const char *item, double low,
                          double high, double step, struct error *why)
{
    if (!(step > 0) || high < low)
        return err_set(why, ERR_USAGE, "--knob %s: '%s' is not a range LOW-HIGH:STEP", knob, item);
    double count = floor((high - low) / step * (1 + 1e-12) + 1e-9) + 1;
    if (count > POINTS_MAX)
        return err_set(why, ERR_USAGE, "--knob %s: '%s' has more than %d values", knob, item,
                       POINTS_MAX);
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < (size_t)count; i++) {
        char value[32];
        chars_format(value, "%.10g", low + (double)i * step);
        err = add_value(values, knob, value, why);
    }
    return err;
}

static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    return length > 0 && length < NAME_MAX_BYTES && !isdigit((unsigned char)name[0]) &&
           name[0] != '-';
}

static enum err add_knob(struct sweep *sweep, const char *name, struct error *why)
{
    if (str_find(name, sweep->knobs, sweep->knob_count, sizeof *sweep->knobs))
        return err_set(why, ERR_USAGE, "knob '%s' given more than once", name);
    sweep_word(&sweep->knobs, &sweep->knob_count, name);
    return ERR_OK;
}

static enum err refuse_value(const char *knob, const char *list, struct error *why)
{
    if (list[0] == ',' || !list[0])
        return err_set(why, ERR_USAGE,
                       "--knob %s has an empty value: expected %s=1,2,4 or the like", knob, knob);
    return err_set(why, ERR_USAGE, "--knob %s has a value of more than %d bytes", knob,
                   VALUE_MAX - 1);
}

/* Adds the knob's name to the sweep, and its values to `values`. */
static enum err parse_knob(const char *word, struct sweep *sweep, struct values *values,
                           struct error *why)
{
    char name[NAME_MAX_BYTES] = "", item[VALUE_MAX];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;
    if (!equals || !is_name(word, length))
        return err_set(why, ERR_USAGE,
                       "--knob takes NAME=VALUES, with letters, digits, - and _ in the name, not "
                       "'%.80s'",
                       word);
    memcpy(name, word, length);
    enum err err = add_knob(sweep, name, why);
    const char *knob = err ? NULL : sweep->knobs[sweep->knob_count - 1];
    for (const char *list = equals + 1; !err && list;) {
        double low, high, step;
        if (!str_next_item(&list, item, sizeof item))
            err = refuse_value(name, list, why);
        else if (setting_range(item, &low, &high, &step))
            err = add_range(values, knob, item, low, high, step, why);
        else
            err = add_value(values, knob, item, why);
    }
    return err;
}

/* The number of points; 0, with the reason, if that is not possible. */
static size_t count_points(const struct values *values, const struct sweep *sweep, bool paired,
                           struct error *why)
{
    size_t points = paired ? values[0].count : 1;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        if (paired && values[k].count != points) {
            err_set(why, ERR_USAGE, "--paired: %s has %zu values and %s %zu", sweep->knobs[0],
                    points, sweep->knobs[k], values[k].count);
            return 0;
        }
        points *= paired ? 1 : values[k].count;
        if (points > POINTS_MAX) {
            err_set(why, ERR_USAGE, "the knobs have more than %d combinations", POINTS_MAX);
            return 0;
        }
    }
    return points;
}

/* The last knob changes fastest. */
static void combine(const struct values *values, struct sweep *sweep, size_t points, bool paired)
{
    const char **point = xcalloc(sweep->knob_count, sizeof *point);
    for (size_t p = 0; p < points; p++) {
        size_t below = points;
        for (size_t k = 0; k < sweep->knob_count; k++) {
            below /= paired ? 1 : values[k].count;
            size_t index = paired ? p : p / below % values[k].count;
            point[k] = values[k].items[index].text;
        }
        sweep_add_point(sweep, point);
    }
    free(point);
}

enum err sweep_expand(const char *const *knobs, size_t count, bool paired, struct sweep *sweep,
                      struct error *why)
{
    if (!count)
        return err_set(why, ERR_USAGE,
                       "missing --knob NAME=VALUES, which gives the values of a {NAME} in the "
                       "command (or --list FILE, or --mode baseline)");
    struct values *values = xcalloc(count, sizeof *values);
    enum err err = ERR_OK;
    for (size_t k = 0; !err && k < count; k++)
        err = parse_knob(knobs[k], sweep, &values[k], why);
    size_t points = err ? 0 : count_points(values, sweep, paired, why);
    if (points)
        combine(values, sweep, points, paired);
    for (size_t k = 0; k < count; k++)
        release_values(&values[k]);
    free(values);
    return points ? ERR_OK : ERR_USAGE;
}

/* ---- a list ---- */

static enum err take_list(const struct csv_grid *grid, const char *path, struct sweep *sweep,
                          struct error *why)
{
    enum err err = ERR_OK;
    if (!grid->rows)
        return err_set(why, ERR_USAGE,
                       "%s has no settings: only a first line, which names the knobs", path);
    if (grid->rows > POINTS_MAX)
        return err_set(why, ERR_USAGE, "%s has %zu settings, more than %d", path, grid->rows,
                       POINTS_MAX);
    for (size_t k = 0; !err && k < grid->columns; k++) {
        const char *name = grid->cells[k];
        err = is_name(name, strlen(name))
                  ? add_knob(sweep, name, why)
                  : err_set(why, ERR_USAGE, "%s: '%.80s' is not a knob name", path, name);
    }
    const char **point = xcalloc(grid->columns, sizeof *point);
    for (size_t p = 0; !err && p < grid->rows; p++) {
        for (size_t k = 0; k < grid->columns; k++)
            point[k] = csv_grid_cell(grid, p, (long)k);
        sweep_add_point(sweep, point);
        for (size_t q = 0; !err && q < p; q++)
            if (settings_same(sweep_point(sweep, q), sweep_point(sweep, p), sweep->knob_count))
                err = err_set(why, ERR_USAGE, "%s: lines %zu and %zu are the same setting", path,
                              grid->lines[q], grid->lines[p]);
    }
    free(point);
    return err;
}

enum err sweep_read_list(const char *path, struct sweep *sweep, struct error *why)
{
    struct text text = {0};
    struct csv_grid grid = {0};
    struct error detail = {0};
    enum err err = file_read(path, LIST_MAX, &text, why);
    if (!err && !text.length)
        err = err_set(why, ERR_USAGE, "%s is empty: its first line must name the knobs", path);
    if (!err && csv_grid_read(text.bytes, text.length, &grid, &detail))
        err = err_set(why, ERR_USAGE, "%s: %s", path, detail.text);
    if (!err)
        err = take_list(&grid, path, sweep, why);
    csv_grid_release(&grid);
    text_release(&text);
    return err;
}

/* ---- the command ---- */

/* The knob whose placeholder starts here, and its length; knob_count: none. */
static size_t placeholder_at(const struct sweep *sweep, const char *at, size_t *length)
{
    for (size_t k = 0; *at == '{' && k < sweep->knob_count; k++) {
        size_t name = strlen(sweep->knobs[k]);
        if (strncmp(at + 1, sweep->knobs[k], name) == 0 && at[name + 1] == '}') {
            *length = name + 2;
            return k;
        }
    }
    return sweep->knob_count;
}

/* Whether the command has the placeholder of a knob; *other is the first {name} that is not of any. */
static bool has_placeholder(const struct sweep *sweep, size_t knob, struct text *other)
{
    for (size_t i = 0; i < sweep->word_count; i++)
        for (const char *at = sweep->command[i]; (at = strchr(at, '{')); at++) {
            size_t length = 0;
            size_t found = placeholder_at(sweep, at, &length);
            size_t name = strcspn(at + 1, "}");
            if (found == knob)
                return true;
            if (found == sweep->knob_count && !other->length && at[name + 1] &&
                is_name(at + 1, name))
                text_add_bytes(other, at, name + 2);
        }
    return false;
}

static enum err refuse_unused(const struct sweep *sweep, const char *knob, const char *other,
                              struct error *why)
{
    const char *names[KNOB_COUNT];
    for (enum gpu_knob i = 0; i < KNOB_COUNT; i++)
        names[i] = knob_of(i)->name;
    const char *meant = sweep->control ? nearest_name(knob, names, KNOB_COUNT) : NULL;
    if (meant)
        return err_set(why, ERR_USAGE, "no knob '%s' of the GPU: did you mean %s?", knob, meant);
    return err_set(why, ERR_USAGE, "knob '%s' is not used: the command has no {%s}%s%s%s", knob,
                   knob, other[0] ? ", but " : "", other,
                   knob_named(knob) != KNOB_COUNT ? "; --control would set it on the GPU" : "");
}

enum err sweep_check_command(const struct sweep *sweep, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t k = 0; !err && k < sweep->knob_count; k++) {
        struct text other = {0};
        bool is_set = sweep->control && knob_named(sweep->knobs[k]) != KNOB_COUNT;
        if (!is_set && !has_placeholder(sweep, k, &other))
            err = refuse_unused(sweep, sweep->knobs[k], text_get(&other), why);
        text_release(&other);
    }
    return err;
}

static char *fill_word(const struct sweep *sweep, size_t point, const char *word)
{
    struct text text = {0};
    for (const char *at = word; *at;) {
        size_t length = 0;
        size_t knob = placeholder_at(sweep, at, &length);
        if (knob < sweep->knob_count)
            text_add(&text, sweep_point(sweep, point)[knob].text);
        else
            text_add_bytes(&text, at, length = 1);
        at += length;
    }
    char *filled = xstrdup(text_get(&text));
    text_release(&text);
    return filled;
}

void sweep_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

char **sweep_words(const struct sweep *sweep, size_t point)
{
    char **words = xcalloc(sweep->word_count + 1, sizeof *words);
    for (size_t i = 0; i < sweep->word_count; i++)
        words[i] = fill_word(sweep, point, sweep->command[i]);
    return words;
}

/* ---- probes ---- */

/* Mode probe: a few clocks to which a model of power and time is fitted, then clocks near the predicted optimum, until
 * that was measured.  If the sweep has other knobs, each of their settings has its own curve. */

/* The lowest probe as a share of the highest clock, and how near to a measured clock another is redundant. */
static const double LOWEST_PROBE = 0.45, NEAR = 0.04;
enum { ADDED_MAX = 6 }; /* additional clocks per curve beyond its probes */

/* ---- the first clocks ---- */

static double nearest(const double *clocks, size_t count, double mhz)
{
    double best = clocks[0];
    for (size_t i = 1; i < count; i++)
        if (fabs(clocks[i] - mhz) < fabs(best - mhz))
            best = clocks[i];
    return best;
}

void sweep_probe_knob(const double *clocks, size_t count, unsigned probes, struct text *out)
{
    double high = clocks[0];
    double low = fmax(clocks[count - 1], LOWEST_PROBE * high);
    double last = UNKNOWN;
    text_addf(out, "%s=", knob_of(KNOB_GRAPHICS_CLOCK)->name);
    for (unsigned i = 0; i < probes; i++) {
        double mhz = nearest(clocks, count, high - (high - low) * i / fmax(probes - 1.0, 1));
        if (mhz != last) /* skip duplicates of a short list */
            text_addf(out, "%s%.10g", i ? "," : "", mhz);
        last = mhz;
    }
}

/* ---- a curve ---- */

static size_t find_knob(const struct sweep *sweep)
{
    size_t knob = 0;
    while (knob < sweep->knob_count && sweep->settings[knob].gpu != KNOB_GRAPHICS_CLOCK)
        knob++;
    return knob;
}

static double clock_at(const struct sweep *sweep, size_t point, size_t knob)
{
    return sweep_point(sweep, point)[knob].number;
}

/* Whether two points differ only in the clock. */
static bool same_curve(const struct sweep *sweep, size_t knob, size_t a, size_t b)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (k != knob && !setting_same(&sweep_point(sweep, a)[k], &sweep_point(sweep, b)[k]))
            return false;
    return true;
}

/* Collects the measurements of the curve through point `first`. */
static void collect(const struct sweep *sweep, size_t knob, size_t first, struct freq_points *out)
{
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        struct freq_point point = freq_point_unknown();
        chars_copy(point.gpu, "gpu");
        chars_copy(point.application, "command");
        point.freq_mhz = clock_at(sweep, attempt->point, knob);
        point.time_s = attempt->seconds;
        point.energy_j = attempt->joules;
        point.power_w = ratio(attempt->joules, attempt->seconds);
        if (!sweep_exclusion_of(attempt) && is_known(point.freq_mhz) &&
            same_curve(sweep, knob, first, attempt->point))
            freq_points_add(out, &point);
    }
}

/* The clock with the least E T^n by a model fitted to the measurements; UNKNOWN if it cannot be predicted. */
static enum err predict_best(const struct freq_curves *curves, double exponent,
                             const double *clocks, size_t count, double *best, struct error *why)
{
    struct optimize_goal goal = optimize_goal_edp();
    struct freq_model model;
    struct optimize_point *points = xcalloc(count, sizeof *points);
    struct freq_prediction *at = xcalloc(count, sizeof *at);
    const struct freq_target target = {.gpu = curves->items[0].gpu,
                                       .application = curves->items[0].application};
    goal.time_exponent = exponent;
    *best = UNKNOWN;
    enum err err = freq_model_fit(&model, "roofline", curves, &(struct freq_model_options){0}, why);
    if (!err) {
        err = freq_model_predict(&model, &target, clocks, count, at, why);
        for (size_t i = 0; !err && i < count; i++) {
            points[i] = optimize_point_unknown();
            points[i].freq_mhz = clocks[i];
            memcpy(points[i].figures, at[i].figures, sizeof at[i].figures);
        }
        struct optimum optimum = {0};
        if (!err)
            optimum = optimize_pick(&goal, &points[0], points, count);
        if (optimum.is_found)
            *best = clocks[optimum.best];
        freq_model_release(&model);
    }
    free(points);
    free(at);
    return err;
}

/* ---- the next clock ---- */

static bool is_measured(const struct sweep *sweep, size_t knob, size_t first, double mhz,
                        double near)
{
    for (size_t p = 0; p < sweep->point_count; p++)
        if (same_curve(sweep, knob, first, p) && fabs(clock_at(sweep, p, knob) - mhz) < near)
            return true;
    return false;
}

/* The best clock, then one on either side of it; UNKNOWN if all three were measured well enough. */
static double next_clock(const struct sweep *sweep, size_t knob, size_t first, double best,
                         const double *clocks, size_t count)
{
    double spacing = NEAR * clocks[0];
    const double wanted[] = {best, nearest(clocks, count, best + spacing),
                             nearest(clocks, count, best - spacing)};
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        if (!is_measured(sweep, knob, first, wanted[i], i ? spacing / 2 : 0.5))
            return wanted[i];
    return UNKNOWN;
}

static enum err add_clock(struct sweep *sweep, struct run_writer *writer, size_t knob, size_t first,
                          double mhz, struct error *why)
{
    char number[32];
    const char **values = xcalloc(sweep->knob_count, sizeof *values);
    chars_format(number, "%.10g", mhz);
    for (size_t k = 0; k < sweep->knob_count; k++)
        values[k] = k == knob ? number : sweep_point(sweep, first)[k].text;
    enum err err = sweep_extend(sweep, writer, values, why);
    free(values);
    return err;
}

static enum err refine_curve(struct sweep *sweep, struct run_writer *writer, size_t knob,
                             size_t first, bool *added, struct error *why)
{
    const double *clocks = sweep->clocks;
    size_t count = sweep->clock_count;
    struct freq_points points = {0};
    struct freq_curves curves = {0};
    double best = UNKNOWN;
    enum err err = ERR_OK;
    collect(sweep, knob, first, &points);
    if (points.count)
        freq_curves_of(&points, &curves);
    if (curves.count && curves.items[0].count)
        err = predict_best(&curves, sweep->time_exponent, clocks, count, &best, why);
    if (err == ERR_NO_DATA) /* too few measurements to refine */
        err = ERR_OK;
    double mhz = is_known(best) ? next_clock(sweep, knob, first, best, clocks, count) : UNKNOWN;
    if (!err && is_known(mhz)) {
        err = add_clock(sweep, writer, knob, first, mhz, why);
        *added = !err;
    }
    freq_curves_release(&curves);
    freq_points_release(&points);
    return err;
}

enum err sweep_refine(struct sweep *sweep, struct run_writer *writer, bool *added,
                      struct error *why)
{
    size_t knob = find_knob(sweep);
    size_t points = sweep->point_count;
    enum err err = ERR_OK;
    *added = false;
    /* Without control there are no other clocks. */
    bool is_probe = is_known(sweep->time_exponent) && sweep->clock_count && !sweep->uncontrolled;
    for (size_t p = 0; is_probe && !err && knob < sweep->knob_count && p < points; p++) {
        size_t first = 0, on_curve = 0;
        while (!same_curve(sweep, knob, first, p))
            first++;
        for (size_t q = 0; q < points; q++)
            on_curve += same_curve(sweep, knob, p, q);
        if (first == p && on_curve < SWEEP_PROBES_MAX + ADDED_MAX)
            err = refine_curve(sweep, writer, knob, p, added, why);
    }
    return err;
}
