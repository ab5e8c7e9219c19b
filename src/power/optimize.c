/* Choosing among settings, and reading measured settings from files. */
#include "power/optimize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/csv_read.h"
#include "port/file.h"
#include "stats/descriptive.h"

/* Tolerance of limits for rounding. */
#define SLACK 1e-9

static const char *const LIMIT_NAMES[OPTIMIZE_LIMITS] = {
    [LIMIT_SLOWDOWN] = "max_slowdown",
    [LIMIT_TIME] = "max_time",
    [LIMIT_POWER] = "max_power",
    [LIMIT_TEMPERATURE] = "max_temperature",
    [LIMIT_LATENCY + LATENCY_TTFT] = "slo_ttft",
    [LIMIT_LATENCY + LATENCY_ITL] = "slo_itl",
    [LIMIT_LATENCY + LATENCY_TPOT] = "slo_tpot",
    [LIMIT_LATENCY + LATENCY_QUERY] = "slo_latency",
    [LIMIT_QUALITY] = "min_quality",
    [LIMIT_CLOCK] = "min_clock",
};

const char *optimize_limit_name(enum optimize_limit limit)
{
    return LIMIT_NAMES[limit];
}

const char *optimize_latency_name(enum optimize_latency latency)
{
    return LIMIT_NAMES[LIMIT_LATENCY + latency] + strlen("slo_");
}

/* ---- limits ---- */

/* Relative to the baseline; higher is better.  No error at all is as good as none of the baseline. */
static double relative_quality(const struct optimize_goal *goal,
                               const struct optimize_point *baseline,
                               const struct optimize_point *point)
{
    double of = goal->is_quality_falling ? baseline->quality : point->quality;
    double by = goal->is_quality_falling ? point->quality : baseline->quality;
    if (goal->is_quality_falling && by == 0 && of >= 0)
        return of > 0 ? INFINITY : 1;
    return by > 0 ? of / by : UNKNOWN;
}

unsigned optimize_violations(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *point)
{
    const double max[] = {
        [LIMIT_SLOWDOWN] =
            point->figures[FREQ_TIME_S].value / baseline->figures[FREQ_TIME_S].value - 1,
        [LIMIT_TIME] = point->figures[FREQ_TIME_S].value,
        [LIMIT_POWER] = point->figures[FREQ_POWER_W].value,
        [LIMIT_TEMPERATURE] = point->temperature_c,
    };
    const double min[] = {relative_quality(goal, baseline, point),
                          point->freq_mhz / baseline->freq_mhz};
    unsigned broken = 0;
    for (unsigned i = 0; i < OPTIMIZE_LIMITS; i++) {
        double limit = goal->limits[i];
        if (!is_known(limit))
            continue;
        double figure = UNKNOWN;
        if (optimize_limit_is_latency(i))
            figure = point->latency[i - LIMIT_LATENCY].value;
        else
            figure = i < LIMIT_LATENCY ? max[i] : min[i - LIMIT_QUALITY];
        bool is_within = i < LIMIT_QUALITY ? figure <= limit + SLACK * (1 + fabs(limit))
                                           : figure >= limit - SLACK;
        broken |= is_within ? 0 : 1u << i;
    }
    return broken;
}

/* ---- the optimum ---- */

static void find_range(const struct optimize_goal *goal, const struct optimize_point *baseline,
                       const struct optimize_point *points, size_t count, struct optimum *out)
{
    for (size_t i = 0; i < count; i++)
        if (optimize_objective(goal, &points[i]) <= (1 + OPTIMIZE_FLAT) * out->objective &&
            !points[i].is_contradicted && !optimize_violations(goal, baseline, &points[i])) {
            out->low_mhz = fmin(out->low_mhz, points[i].freq_mhz); /* of a NaN: the number */
            out->high_mhz = fmax(out->high_mhz, points[i].freq_mhz);
        }
}

/* A limit is binding if a setting that it excludes, alone or with others, has a better objective. */
static unsigned binding_limits(const struct optimize_goal *goal,
                               const struct optimize_point *baseline,
                               const struct optimize_point *points, size_t count, double objective)
{
    unsigned binding = 0;
    for (size_t i = 0; i < count; i++)
        if (optimize_objective(goal, &points[i]) < objective)
            binding |= optimize_violations(goal, baseline, &points[i]);
    return binding;
}

struct optimum optimize_pick(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *points, size_t count)
{
    struct optimum out = {.objective = UNKNOWN, .low_mhz = UNKNOWN, .high_mhz = UNKNOWN};
    unsigned any = 0, every = ~0u;
    for (size_t i = 0; i < count; i++) {
        double objective = optimize_objective(goal, &points[i]);
        if (!is_known(objective) || points[i].is_contradicted)
            continue;
        unsigned broken = optimize_violations(goal, baseline, &points[i]);
        any |= broken;
        every &= broken;
        out.usable++;
        out.within += !broken;
        if (!broken && !(out.is_found && objective >= out.objective)) {
            out.is_found = true;
            out.best = i;
            out.objective = objective;
        }
    }
    if (out.is_found) {
        find_range(goal, baseline, points, count, &out);
        out.binding = binding_limits(goal, baseline, points, count, out.objective);
    } else if (out.usable)
        out.limits = every ? every : any;
    return out;
}

/* ---- Pareto frontier ---- */

/* Figures to be minimized. */
struct costs {
    double items[3];
    size_t count;
};

static bool is_dominated(const struct costs *one, const struct costs *by)
{
    bool is_less = false;
    for (size_t k = 0; k < one->count; k++) {
        if (by->items[k] > one->items[k])
            return false;
        is_less |= by->items[k] < one->items[k];
    }
    return is_less;
}

static struct costs costs_of(const struct optimize_goal *goal, const struct optimize_point *point,
                             bool has_quality)
{
    return (struct costs){{point->figures[FREQ_ENERGY_J].value, point->figures[FREQ_TIME_S].value,
                           goal->is_quality_falling ? point->quality : -point->quality},
                          has_quality ? 3 : 2};
}

static bool is_usable(const struct optimize_point *point)
{
    return point->figures[FREQ_ENERGY_J].value > 0 && point->figures[FREQ_TIME_S].value > 0;
}

size_t optimize_front(const struct optimize_goal *goal, struct optimize_point *points, size_t count)
{
    size_t found = 0;
    bool has_quality = true;
    for (size_t i = 0; i < count; i++)
        has_quality &= is_known(points[i].quality) || !is_usable(&points[i]);
    for (size_t i = 0; i < count; i++) {
        struct costs one = costs_of(goal, &points[i], has_quality);
        bool is_front = is_usable(&points[i]);
        for (size_t j = 0; is_front && j < count; j++) {
            struct costs other = costs_of(goal, &points[j], has_quality);
            is_front = !is_usable(&points[j]) || !is_dominated(&one, &other);
        }
        points[i].is_front = is_front;
        found += is_front;
    }
    return found;
}

/* ---- settings other than clocks, from files ---- */

#define FILE_LIMIT ((size_t)64 << 20)

enum { SETTINGS_MAX = 8 };
enum column { FREQ, POWER, TIME, ENERGY, TEMPERATURE, QUALITY, COLUMNS };
static const char *const COLUMN_NAMES[COLUMNS] = {"freq_mhz", "power_w",       "time_s",
                                                  "energy_j", "temperature_c", NULL};

/* State of reading rows. */
struct reading {
    const struct setting_source *source;
    struct csv_grid grid;
    long settings[SETTINGS_MAX];
    size_t setting_count;
    long at[COLUMNS];
    double *values;      /* COLUMNS per row; UNKNOWN */
    size_t *settings_of; /* index of the point of each row; SIZE_MAX: excluded */
    struct error *why;
};

/* ---- columns ---- */

static enum err named(const struct reading *r, const char *name, long *out)
{
    *out = csv_grid_column(&r->grid, name);
    return *out >= 0 ? ERR_OK
                     : err_set(r->why, ERR_BAD_VALUE, "%.200s: no column '%.40s'", r->source->path,
                               plain_text(name).text);
}

static enum err find_columns(struct reading *r)
{
    const char *rest = r->source->settings;
    enum err err = ERR_OK;
    while (!err && rest) {
        char name[64];
        if (r->setting_count == SETTINGS_MAX || !str_next_item(&rest, name, sizeof name))
            return err_set(r->why, ERR_USAGE,
                           "--setting: expected comma-separated columns (at most %d)",
                           SETTINGS_MAX);
        err = named(r, name, &r->settings[r->setting_count++]);
    }
    for (size_t c = 0; !err && c < COLUMNS; c++) {
        const char *mapped = NULL;
        if (c == QUALITY)
            mapped = r->source->quality;
        else if (r->source->columns)
            mapped = params_get(r->source->columns, COLUMN_NAMES[c]);
        r->at[c] = c == QUALITY ? -1 : csv_grid_column(&r->grid, COLUMN_NAMES[c]);
        if (mapped)
            err = named(r, mapped, &r->at[c]);
    }
    if (!err && (r->at[TIME] < 0 || (r->at[ENERGY] < 0 && r->at[POWER] < 0)))
        err = err_set(r->why, ERR_BAD_VALUE,
                      "%.200s: columns time_s and energy_j or power_w are needed (--columns "
                      "maps others)",
                      r->source->path);
    return err;
}

/* ---- rows ---- */

static enum err is_wanted(const struct reading *r, size_t row, bool *out)
{
    const struct params *where = r->source->where;
    enum err err = ERR_OK;
    *out = true;
    for (size_t i = 0; !err && where && i < where->count; i++) {
        long at = -1;
        err = named(r, where->items[i].key, &at);
        *out &= str_equal_nocase(csv_grid_cell(&r->grid, row, at), where->items[i].value);
    }
    return err;
}

static enum err read_values(const struct reading *r, size_t row, double *values)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const char *cell = csv_grid_cell(&r->grid, row, r->at[c]);
        values[c] = UNKNOWN;
        if (cell[0] && !str_equal_nocase(cell, "nan") && !str_equal_nocase(cell, "n/a") &&
            parse_double(cell, &values[c]))
            return err_set(r->why, ERR_BAD_VALUE, "%.160s:%zu: '%.40s': not a number",
                           r->source->path, r->grid.lines[row], plain_text(cell).text);
    }
    if (!is_known(values[ENERGY]))
        values[ENERGY] = values[POWER] * values[TIME];
    if (!is_known(values[POWER]))
        values[POWER] = ratio(values[ENERGY], values[TIME]);
    return ERR_OK;
}

static void label_of(const struct reading *r, size_t row, char *to, size_t size)
{
    struct text label = {0};
    for (size_t i = 0; i < r->setting_count; i++) {
        const char *cell = csv_grid_cell(&r->grid, row, r->settings[i]);
        if (r->setting_count > 1)
            text_addf(&label, "%s%s=%s", i ? " " : "", r->grid.cells[r->settings[i]], cell);
        else
            text_add(&label, cell);
    }
    str_copy(to, size, text_get(&label));
    str_plain(to, size);
    text_release(&label);
}

size_t setting_points_find(const struct setting_points *points, const char *name)
{
    size_t at = 0;
    while (at < points->count && !str_equal(points->items[at].setting, name))
        at++;
    return at;
}

static enum err read_row(struct reading *r, size_t row, struct setting_points *out)
{
    double *values = r->values + row * COLUMNS;
    struct optimize_point point = optimize_point_unknown();
    bool wanted = false;
    r->settings_of[row] = SIZE_MAX;
    enum err err = is_wanted(r, row, &wanted);
    if (!err && wanted)
        err = read_values(r, row, values);
    if (err || !wanted)
        return err;
    if (!(values[ENERGY] > 0) || !(values[TIME] > 0)) {
        out->left_out++;
        return ERR_OK;
    }
    label_of(r, row, point.setting, sizeof point.setting);
    size_t at = setting_points_find(out, point.setting);
    if (at == out->count)
        out->items[out->count++] = point;
    r->settings_of[row] = at;
    return ERR_OK;
}

/* The medians of a point's rows. */
static void summarize(const struct reading *r, size_t index, double *scratch,
                      struct optimize_point *point)
{
    double *const to[COLUMNS] = {&point->freq_mhz,
                                 &point->figures[FREQ_POWER_W].value,
                                 &point->figures[FREQ_TIME_S].value,
                                 &point->figures[FREQ_ENERGY_J].value,
                                 &point->temperature_c,
                                 &point->quality};
    for (size_t c = 0; c < COLUMNS; c++) {
        size_t count = 0;
        for (size_t row = 0; row < r->grid.rows; row++)
            if (r->settings_of[row] == index && is_known(r->values[row * COLUMNS + c]))
                scratch[count++] = r->values[row * COLUMNS + c];
        if (c == TIME || c == ENERGY)
            point->scatter[c == TIME ? FREQ_TIME_S : FREQ_ENERGY_J] =
                relative_scatter(scratch, count);
        point->runs = c == ENERGY ? (unsigned)count : point->runs;
        *to[c] = count ? select_median(scratch, count) : UNKNOWN;
    }
}

static enum err read_grid(struct reading *r, struct setting_points *out)
{
    size_t rows = r->grid.rows;
    double *scratch = xcalloc(rows + 1, sizeof *scratch);
    r->values = xcalloc(rows + 1, COLUMNS * sizeof *r->values);
    r->settings_of = xcalloc(rows + 1, sizeof *r->settings_of);
    out->items = xcalloc(rows + 1, sizeof *out->items);
    enum err err = find_columns(r);
    for (size_t row = 0; !err && row < rows; row++)
        err = read_row(r, row, out);
    for (size_t i = 0; !err && i < out->count; i++)
        summarize(r, i, scratch, &out->items[i]);
    if (!err && out->count == 0)
        err = err_set(r->why, ERR_NO_DATA, "%.200s: none of %zu rows is usable", r->source->path,
                      rows);
    free(scratch);
    free(r->values);
    free(r->settings_of);
    return err;
}

enum err setting_points_read(const struct setting_source *source, struct setting_points *out,
                             struct error *why)
{
    struct reading r = {.source = source, .why = why};
    struct text bytes = {0};
    *out = (struct setting_points){0};
    enum err err = csv_read(source->path, FILE_LIMIT, &bytes, &r.grid, why);
    if (!err)
        err = read_grid(&r, out);
    if (err) {
        free(out->items);
        *out = (struct setting_points){0};
    }
    csv_grid_release(&r.grid);
    text_release(&bytes);
    return err;
}

/* ---- quality from a file ---- */

static enum err add_quality_row(const char *path, const struct csv_grid *grid, size_t row,
                                const struct setting_points *points, size_t *counts,
                                struct error *why)
{
    char name[sizeof points->items->setting];
    double value;
    chars_copy(name, csv_grid_cell(grid, row, csv_grid_column(grid, "setting")));
    str_plain(name, sizeof name);
    size_t at = setting_points_find(points, name);
    if (at == points->count)
        return err_set(why, ERR_BAD_VALUE, "%.160s:%zu: setting '%.60s' was not measured", path,
                       grid->lines[row], name);
    const char *cell = csv_grid_cell(grid, row, csv_grid_column(grid, "value"));
    if (parse_double(cell, &value))
        return err_set(why, ERR_BAD_VALUE, "%.160s:%zu: '%.40s': not a number", path,
                       grid->lines[row], plain_text(cell).text);
    double *mean = &points->items[at].quality;
    *mean = counts[at] ? *mean + (value - *mean) / (double)(counts[at] + 1) : value;
    counts[at]++;
    return ERR_OK;
}

enum err setting_points_add_quality(const char *path, struct setting_points *points,
                                    struct error *why)
{
    struct csv_grid grid;
    struct text bytes = {0};
    size_t *counts = xcalloc(points->count + 1, sizeof *counts);
    enum err err = csv_read(path, FILE_SMALL, &bytes, &grid, why);
    if (!err && (csv_grid_column(&grid, "setting") < 0 || csv_grid_column(&grid, "value") < 0))
        err = err_set(why, ERR_BAD_VALUE, "%.200s: columns setting and value are needed", path);
    if (!err && grid.rows == 0)
        err = err_set(why, ERR_NO_DATA, "%.200s: no rows", path);
    for (size_t i = 0; i < points->count; i++)
        points->items[i].quality = UNKNOWN;
    for (size_t row = 0; row < grid.rows && !err; row++)
        err = add_quality_row(path, &grid, row, points, counts, why);
    csv_grid_release(&grid);
    text_release(&bytes);
    free(counts);
    return err;
}
