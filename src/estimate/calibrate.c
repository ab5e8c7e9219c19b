/* Selects the usable rows, builds one equation per window (its power; a column per class of operations, one for bytes,
 * one for the constant), solves the system, and rejects results that the rows do not determine.  Rates and launch times
 * come from the latencies of the same rows. */
#include "estimate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/device_peak.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/least_squares.h"

enum {
    NAME_SIZE = 48,
    LAUNCH_ROWS_MIN = 3,
    SHORT_LOAD = 20, /* maximum multiple of the dispatch time */
};
_Static_assert(CALIBRATE_CLASSES_MAX + 2 <= LEAST_SQUARES_COLUMNS_MAX,
               "a column per class, bytes, constant");

/* ---- rows ---- */

/* Fewer than ten sensor updates, if they were counted; else below the resolution of any energy meter. */
static bool is_too_short(const struct calibrate_row *row)
{
    if (is_known(row->updates))
        return row->updates < CALIBRATE_UPDATES_MIN;
    double window = is_known(row->window_s) ? row->window_s : row->latency_s;
    return window < CALIBRATE_WINDOW_MIN;
}

static enum err choose_rows(const struct calibrate_rows *rows,
                            const struct calibrate_options *options, struct calibration *out,
                            struct error *why)
{
    double idle_j = 0, idle_s = 0;
    out->points = xcalloc(rows->count + 1, sizeof *out->points);
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        bool is_empty = !(row->energy_j > 0), is_short = is_too_short(row);
        if (row->kind == CALIBRATE_CACHE || row->kind == CALIBRATE_HOST ||
            (row->kind == CALIBRATE_LAUNCH && !is_known(row->energy_j)))
            continue; /* measured only for its time */
        if (row->is_estimated && !options->allow_estimated)
            return err_set(
                why, ERR_BAD_VALUE,
                "refused: energy was estimated by a model, not measured ('%s'): a fit would "
                "reproduce that model (--allow-estimated accepts it)",
                row->label);
        out->short_rows += is_short;
        out->empty_rows += !is_short && is_empty;
        if (is_short || is_empty)
            continue;
        out->is_estimated |= row->is_estimated;
        if (row->kind == CALIBRATE_IDLE) {
            out->idle_rows++;
            idle_j += row->energy_j;
            idle_s += row->latency_s;
        } else {
            out->points[out->point_count++] =
                (struct calibrate_point){.row = row, .measured_w = row->energy_j / row->latency_s};
        }
    }
    out->idle_w = idle_s > 0 ? idle_j / idle_s : UNKNOWN;
    return ERR_OK;
}

/* The class of a row, or class_count. */
static size_t class_of(const struct calibration *calibration, const struct calibrate_row *row)
{
    for (size_t i = 0; i < calibration->class_count; i++)
        if (calibration->classes[i].precision == row->precision &&
            calibration->classes[i].unit == row->unit)
            return i;
    return calibration->class_count;
}

static enum err find_classes(struct calibration *out, struct error *why)
{
    for (size_t i = 0; i < out->point_count; i++) {
        const struct calibrate_row *row = out->points[i].row;
        if (row->kind != CALIBRATE_LOAD || !(row->flops > 0))
            continue;
        size_t at = class_of(out, row);
        if (at == CALIBRATE_CLASSES_MAX)
            return err_set(why, ERR_BAD_VALUE, "more than %d combinations of precision and unit",
                           CALIBRATE_CLASSES_MAX);
        struct calibrate_class *class = &out->classes[at];
        if (at == out->class_count) {
            out->class_count++;
            class->precision = row->precision;
            class->unit = row->unit;
            chars_format(class->name, "%s%s%s", precision_name(row->precision),
                         row->unit ? " " : "", calibrate_unit_name(row->unit));
        }
        class->rows++;
    }
    return ERR_OK;
}

/* ---- the equations ---- */

/* Figures are numbered: the classes, then bytes, then the constant.  A given figure has no column: its contribution is
 * subtracted from the power. */
struct design {
    struct least_squares_system system;
    double *a, *b;  /* the system: a weighted and scaled; b in W, weighted */
    double *weight; /* by row; 1 if errors are in watts */
    size_t *first;  /* rows by class; those without a class are last */
    double scale[LEAST_SQUARES_COLUMNS_MAX];  /* by column: its normalization */
    size_t figure[LEAST_SQUARES_COLUMNS_MAX]; /* by column: index of its figure */
};

/* "pJ/FLOP of fp16 matrix", "pJ/byte", "the constant power". */
static void figure_name(const struct calibration *calibration, size_t figure, char *to, size_t size)
{
    size_t classes = calibration->class_count;
    if (figure > classes)
        (void)str_copy(to, size, "the constant power");
    else if (figure == classes)
        (void)str_copy(to, size, "pJ/byte");
    else
        (void)str_format(to, size, "pJ/FLOP of %s", calibration->classes[figure].name);
}

/* Watts of a row explained by the given figures. */
static double given_watts(const struct calibration *calibration, const struct calibrate_row *row)
{
    const struct calibrate_figure *byte = &calibration->joules_per_byte;
    const struct calibrate_figure *constant = &calibration->constant_w;
    return (byte->is_given ? byte->value * row->bytes / row->latency_s : 0) +
           (constant->is_given ? constant->value : 0);
}

static double coefficient(const struct calibration *calibration, const struct calibrate_row *row,
                          size_t figure)
{
    if (figure == calibration->class_count)
        return row->bytes / row->latency_s;
    if (figure > calibration->class_count)
        return 1;
    return class_of(calibration, row) == figure ? row->flops / row->latency_s : 0;
}

static void choose_columns(const struct calibration *calibration, struct design *d)
{
    for (size_t i = 0; i < calibration->class_count; i++)
        d->figure[d->system.columns++] = i;
    if (!calibration->joules_per_byte.is_given)
        d->figure[d->system.columns++] = calibration->class_count;
    if (!calibration->constant_w.is_given)
        d->figure[d->system.columns++] = calibration->class_count + 1;
}

/* Sorts points by class, which are the strata of the bootstrap; stable. */
static void order_points(struct calibration *calibration, size_t *first)
{
    struct calibrate_point *ordered = xmalloc((calibration->point_count + 1) * sizeof *ordered);
    size_t count = 0;
    for (size_t class = 0; class <= calibration->class_count; class ++) {
        first[class] = count;
        for (size_t i = 0; i < calibration->point_count; i++)
            if (class_of(calibration, calibration->points[i].row) == class)
                ordered[count++] = calibration->points[i];
    }
    first[calibration->class_count + 1] = count;
    free(calibration->points);
    calibration->points = ordered;
}

/* Errors in watts, or relative to the power if powers differ widely: 20 W are small relative to 700 W and large
 * relative to 100 W. */
static void set_weights(struct calibration *calibration, struct design *d)
{
    double low = INFINITY, high = 0, sum = 0;
    for (size_t i = 0; i < d->system.rows; i++) {
        double watts = calibration->points[i].measured_w;
        low = fmin(low, watts);
        high = fmax(high, watts);
        sum += watts;
    }
    calibration->is_relative = high > CALIBRATE_SPAN_ALIKE * low;
    for (size_t i = 0; i < d->system.rows; i++)
        d->weight[i] = calibration->is_relative
                           ? sum / (double)d->system.rows / calibration->points[i].measured_w
                           : 1;
}

static void fill(const struct calibration *calibration, struct design *d)
{
    for (size_t i = 0; i < d->system.rows; i++) {
        const struct calibrate_point *point = &calibration->points[i];
        double weight = d->weight[i];
        for (size_t j = 0; j < d->system.columns; j++)
            d->a[i * d->system.columns + j] =
                weight * coefficient(calibration, point->row, d->figure[j]);
        d->b[i] = weight * (point->measured_w - given_watts(calibration, point->row));
    }
    for (size_t j = 0; j < d->system.columns; j++) {
        double squares = 0;
        for (size_t i = 0; i < d->system.rows; i++)
            squares += d->a[i * d->system.columns + j] * d->a[i * d->system.columns + j];
        d->scale[j] = squares > 0 ? sqrt(squares) : 1;
        for (size_t i = 0; i < d->system.rows; i++)
            d->a[i * d->system.columns + j] /= d->scale[j];
    }
}

static void design_release(struct design *design)
{
    free(design->a);
    free(design->b);
    free(design->weight);
    free(design->first);
    *design = (struct design){0};
}

/* Sorts the points of the calibration by class. */
static void design_make(struct calibration *calibration, struct design *out)
{
    *out = (struct design){.system = {.rows = calibration->point_count}};
    struct least_squares_system *system = &out->system;
    choose_columns(calibration, out);
    system->a = out->a = xcalloc(system->rows * system->columns + 1, sizeof *out->a);
    system->b = out->b = xcalloc(system->rows + 1, sizeof *out->b);
    system->first = out->first = xcalloc(calibration->class_count + 2, sizeof *out->first);
    system->groups = calibration->class_count + 1;
    out->weight = xcalloc(system->rows + 1, sizeof *out->weight);
    order_points(calibration, out->first);
    set_weights(calibration, out);
    fill(calibration, out);
}

/* ---- checks before the fit ---- */

static enum err refuse_few(const struct calibration *c, struct error *why)
{
    size_t given = (size_t)c->joules_per_byte.is_given + (size_t)c->constant_w.is_given;
    size_t unknowns = c->class_count + 2 - given;
    size_t wanted = CALIBRATE_ROWS_PER_UNKNOWN * unknowns;
    if (c->class_count == 0 || c->point_count < wanted)
        return err_set(why, ERR_BAD_VALUE,
                       "refused: too few rows: %zu can be used (%zu too short for the sensor, %zu "
                       "without energy), and %zu unknowns need %zu",
                       c->point_count, c->short_rows, c->empty_rows, c->class_count ? unknowns : 3,
                       c->class_count ? wanted : (size_t)3 * CALIBRATE_ROWS_PER_UNKNOWN);
    for (size_t i = 0; i < c->class_count; i++)
        if (c->classes[i].rows < CALIBRATE_ROWS_PER_UNKNOWN)
            return err_set(why, ERR_BAD_VALUE,
                           "refused: too few rows: %zu of %s, which needs %d; exclude them or "
                           "measure more",
                           c->classes[i].rows, c->classes[i].name, CALIBRATE_ROWS_PER_UNKNOWN);
    return ERR_OK;
}

static enum err refuse_flat(const struct calibration *c, struct error *why)
{
    double low = c->points[0].measured_w, high = low, sum = 0;
    for (size_t i = 0; i < c->point_count; i++) {
        low = fmin(low, c->points[i].measured_w);
        high = fmax(high, c->points[i].measured_w);
        sum += c->points[i].measured_w;
    }
    if (high - low >= CALIBRATE_SPREAD_MIN * sum / (double)c->point_count)
        return ERR_OK;
    return err_set(
        why, ERR_BAD_VALUE,
        "refused: power does not depend on the load (%.4g to %.4g W), so that energy per "
        "operation and byte cannot be fitted; does the meter measure this device?",
        low, high);
}

static enum err refuse_collinear(struct calibration *c, const struct design *d,
                                 const struct least_squares_spectrum *spectrum, struct error *why)
{
    char a[NAME_SIZE], b[NAME_SIZE];
    size_t first, second;
    c->condition = least_squares_spectrum_condition(spectrum);
    if (c->condition <= CALIBRATE_CONDITION_MAX)
        return ERR_OK;
    least_squares_spectrum_worst_pair(spectrum, &first, &second);
    figure_name(c, d->figure[first], a, sizeof a);
    figure_name(c, d->figure[second], b, sizeof b);
    return err_set(
        why, ERR_BAD_VALUE,
        "refused: %s and %s cannot be separated: they are collinear in these rows (condition "
        "number %.3g, at most %.0f); measure loads with other FLOPs per byte",
        a, b, c->condition, CALIBRATE_CONDITION_MAX);
}

/* ---- the fit ---- */

static struct calibrate_figure *figure_of(struct calibration *c, size_t figure)
{
    if (figure < c->class_count)
        return &c->classes[figure].joules_per_flop;
    return figure == c->class_count ? &c->joules_per_byte : &c->constant_w;
}

static void take_given(const struct calibrate_options *options, struct calibration *c)
{
    const struct calibrate_figure given = {
        .is_given = true, .error = UNKNOWN, .low = UNKNOWN, .high = UNKNOWN};
    if (options->joules_per_byte > 0) {
        c->joules_per_byte = given;
        c->joules_per_byte.value = options->joules_per_byte;
    }
    if (options->constant_w > 0) {
        c->constant_w = given;
        c->constant_w.value = options->constant_w;
    }
}

/* Fitted and held-out power of every row and their errors; returns the weighted sum of squared residuals. */
static double fill_points(struct calibration *c, const struct design *d,
                          const struct least_squares_spectrum *spectrum, const double *x)
{
    double weighted = 0, squares = 0, total = 0, mean = 0, count = (double)d->system.rows;
    for (size_t i = 0; i < d->system.rows; i++)
        mean += c->points[i].measured_w / count;
    c->mape = c->mape_held_out = 0;
    for (size_t i = 0; i < d->system.rows; i++) {
        struct calibrate_point *p = &c->points[i];
        const double *line = &d->a[i * d->system.columns];
        p->fitted_w = given_watts(c, p->row);
        for (size_t j = 0; j < d->system.columns; j++)
            p->fitted_w += line[j] * x[j] / d->weight[i];
        double rest = p->measured_w - p->fitted_w;
        double leverage = fmin(least_squares_spectrum_leverage(spectrum, line), 1);
        p->held_out_w = leverage < 1 ? p->measured_w - rest / (1 - leverage) : UNKNOWN;
        weighted += d->weight[i] * rest * d->weight[i] * rest;
        squares += rest * rest;
        total += (p->measured_w - mean) * (p->measured_w - mean);
        c->mape += fabs(rest) / p->measured_w / count;
        c->mape_held_out += fabs(p->measured_w - p->held_out_w) / p->measured_w / count;
    }
    c->r2 = 1 - squares / total;
    return weighted;
}

static enum err fit(struct calibration *c, const struct design *d,
                    const struct least_squares_spectrum *spectrum,
                    const struct calibrate_options *options, struct error *why)
{
    double x[LEAST_SQUARES_COLUMNS_MAX], sigmas[LEAST_SQUARES_COLUMNS_MAX];
    struct least_squares_intervals interval;
    enum err err = least_squares(d->a, d->b, d->system.rows, d->system.columns, x);
    if (!err)
        err = least_squares_sigmas(d->a, d->system.rows, d->system.columns, sigmas);
    if (err)
        return err_set(why, err, "refused: the rows are linearly dependent");
    double squares = fill_points(c, d, spectrum, x);
    double sigma = sqrt(squares / (double)(d->system.rows - d->system.columns));
    least_squares_bootstrap(&d->system, options->draws, options->seed, &interval);
    if (interval.singular > CALIBRATE_SINGULAR_MAX)
        return err_set(
            why, ERR_BAD_VALUE,
            "refused: unbounded: %.0f %% of the bootstrap draws have no solution; the fit "
            "depends on a few rows",
            100 * interval.singular);
    for (size_t j = 0; j < d->system.columns; j++)
        *figure_of(c, d->figure[j]) = (struct calibrate_figure){
            .value = x[j] / d->scale[j],
            .error = sigma * sigmas[j] / d->scale[j],
            .low = interval.low[j] / d->scale[j],
            .high = interval.high[j] / d->scale[j],
            .is_weak = !(interval.low[j] > 0),
        };
    return ERR_OK;
}

/* ---- checks after the fit ---- */

static void describe_figure(const struct calibration *c, size_t figure,
                            const struct calibrate_figure *f, char *to, size_t size)
{
    char name[NAME_SIZE];
    double times = figure <= c->class_count ? 1e12 : 1;
    figure_name(c, figure, name, sizeof name);
    str_format(to, size, "%s is %.3g ± %.2g%s (95 %%: %.3g to %.3g)", name, times * f->value,
               times * f->error, times > 1 ? "" : " W", times * f->low, times * f->high);
}

/* Measurements that would determine it, and the alternative. */
static const char *suggested_fix(const struct calibration *c, size_t figure)
{
    if (figure < c->class_count)
        return "measure compute-bound loads of it, in longer windows, or exclude its rows";
    if (figure == c->class_count)
        return "measure copies of arrays larger than the caches, in longer windows, or pass "
               "--given "
               "pj-per-byte=NUMBER";
    return "measure loads that differ more in FLOP/s and bytes/s, or pass --given "
           "constant-w=NUMBER";
}

static enum err refuse_unidentified(struct calibration *c, struct error *why)
{
    char what[160];
    for (size_t j = 0; j < c->class_count + 2; j++) {
        const struct calibrate_figure *f = figure_of(c, j);
        if (f->is_given || (f->value >= 0 && !f->is_weak))
            continue;
        describe_figure(c, j, f, what, sizeof what);
        if (f->value < 0)
            return err_set(why, ERR_BAD_VALUE,
                           "refused: negative: %s: energy cannot be negative, so these rows do not "
                           "measure this "
                           "work (windows too short, rails counted twice, another load running?)",
                           what);
        return err_set(why, ERR_BAD_VALUE, "refused: not identified: %s: it may be 0; %s", what,
                       suggested_fix(c, j));
    }
    return ERR_OK;
}

/* ---- rates and launch overhead ---- */

/* The highest FLOP/s of any row; the highest bytes/s of rows long enough to come from memory and not from a cache. */
static void take_rates(const struct calibrate_rows *rows, struct calibration *out)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        size_t class = class_of(out, row);
        if (row->kind == CALIBRATE_LOAD && class < out->class_count)
            out->classes[class].flops_per_s =
                fmax(out->classes[class].flops_per_s, row->flops / row->latency_s);
    }
    for (size_t i = 0; i < out->point_count; i++) {
        const struct calibrate_row *row = out->points[i].row;
        out->bytes_per_s = fmax(out->bytes_per_s, row->bytes / row->latency_s);
    }
}

/* The best rate of each size, the smallest first. */
static void take_caches(const struct calibrate_rows *rows, struct calibration *out)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        size_t at = 0;
        if (row->kind != CALIBRATE_CACHE)
            continue;
        while (at < out->cache_count && out->caches[at].held < row->held)
            at++;
        bool is_new = at == out->cache_count || out->caches[at].held > row->held;
        if (is_new && out->cache_count == CALIBRATE_CACHES_MAX)
            continue;
        if (is_new) {
            memmove(&out->caches[at + 1], &out->caches[at],
                    (out->cache_count - at) * sizeof *out->caches);
            out->caches[at] = (struct calibrate_cache){.held = row->held};
            out->cache_count++;
        }
        out->caches[at].bytes_per_s =
            fmax(out->caches[at].bytes_per_s, row->bytes / row->latency_s);
    }
}

/* The shortest time per kernel over rows of a kind. */
static double shortest(const struct calibrate_rows *rows, enum calibrate_kind kind, size_t *count)
{
    double min = UNKNOWN;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].kind == kind) {
            min = fmin(min, rows->items[i].latency_s / rows->items[i].kernels);
            ++*count;
        }
    return min;
}

/* Time of a load explained by arithmetic or memory, at the attained rates. */
static double explained(const struct calibration *c, const struct calibrate_row *row)
{
    size_t class = class_of(c, row);
    if (row->kind != CALIBRATE_LOAD || class == c->class_count)
        return UNKNOWN;
    return fmax(row->flops / c->classes[class].flops_per_s, row->bytes / c->bytes_per_s);
}

/* Quantile p of the unexplained time of loads whose explained time is between `min` and `max` times `unit`, or times
 * their own latency if unit is UNKNOWN. */
static double unexplained(const struct calibrate_rows *rows, const struct calibration *c,
                          double unit, double min, double max, double p, size_t *count)
{
    double *excess = xmalloc((rows->count + 1) * sizeof *excess), found = UNKNOWN;
    size_t n = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        double time = explained(c, row);
        double scale = is_known(unit) ? unit : row->latency_s;
        if (time >= min * scale && time < max * scale)
            excess[n++] = row->latency_s - time;
    }
    if (n >= LAUNCH_ROWS_MIN)
        found = quantile(excess, n, p);
    *count = is_known(found) ? n : 0;
    free(excess);
    return found;
}

/* Launch rows give the dispatch rate.  That is not the gap between kernels, since dispatch overlaps with execution;
 * longer loads show it: the time of the better ones beyond arithmetic and memory.  Without launch rows, loads too small
 * for either show it. */
static void measure_overheads(const struct calibrate_rows *rows, struct calibration *out)
{
    size_t dispatches = 0, graphs = 0, hosts = 0;
    take_rates(rows, out);
    take_caches(rows, out);
    out->host_launch_s = shortest(rows, CALIBRATE_HOST, &hosts);
    out->graph_launch_s = shortest(rows, CALIBRATE_GRAPH, &graphs);
    out->dispatch_s = shortest(rows, CALIBRATE_LAUNCH, &dispatches);
    if (!dispatches) {
        out->launch_s =
            unexplained(rows, out, UNKNOWN, 0, CALIBRATE_LAUNCH_SHARE, 0.5, &out->launch_rows);
        return;
    }
    out->launch_s = unexplained(rows, out, out->dispatch_s, 1, SHORT_LOAD, 0.25, &out->launch_rows);
    if (!is_known(out->launch_s)) {
        out->launch_s = out->dispatch_s;
        out->launch_rows = dispatches;
    }
}

enum err calibrate_give(struct calibrate_options *options, const char *key, const char *value,
                        struct error *why)
{
    bool is_byte = str_equal(key, "pj-per-byte");
    double number;
    if (!is_byte && !str_equal(key, "constant-w"))
        return err_set(why, ERR_USAGE,
                       "--given %.60s: unknown key (known: pj-per-byte, constant-w)", key);
    if (parse_double(value, &number) != ERR_OK || !(number > 0))
        return err_set(why, ERR_USAGE, "--given %s=%.40s: not a number above 0", key, value);
    *(is_byte ? &options->joules_per_byte : &options->constant_w) =
        is_byte ? number * 1e-12 : number;
    return ERR_OK;
}

enum err calibrate_find_base(const char *id, const char *device, struct hardware *out,
                             bool *is_found, struct error *why)
{
    char name[96];
    *is_found = false;
    if (id) {
        enum err err = hardware_find(id, out, why);
        *is_found = !err;
        return err;
    }
    (void)chars_copy(name, device);
    for (char *at = name; *at; at++)
        if (*at == '_')
            *at = '-';
    *is_found = name[0] && (hardware_find_device(device, out) ||
                            hardware_find(name, out, &(struct error){0}) == ERR_OK);
    return ERR_OK;
}

static enum err fit_design(struct calibration *out, const struct calibrate_options *options,
                           struct error *why)
{
    struct design design;
    struct least_squares_spectrum spectrum;
    design_make(out, &design);
    least_squares_spectrum_of(&design.system, &spectrum);
    enum err err = refuse_collinear(out, &design, &spectrum, why);
    if (!err)
        err = fit(out, &design, &spectrum, options, why);
    design_release(&design);
    return err;
}

enum err calibrate_fit(const struct calibrate_rows *rows, const struct calibrate_options *options,
                       struct calibration *out, struct error *why)
{
    *out = (struct calibration){0};
    take_given(options, out);
    enum err err = choose_rows(rows, options, out, why);
    if (!err)
        err = find_classes(out, why);
    if (!err)
        err = refuse_few(out, why);
    if (!err)
        err = refuse_flat(out, why);
    if (!err)
        err = fit_design(out, options, why);
    if (!err)
        err = refuse_unidentified(out, why);
    if (!err)
        measure_overheads(rows, out);
    if (err)
        calibration_release(out);
    return err;
}

enum err calibrate_rates(const struct calibrate_rows *rows, struct calibration *out,
                         struct error *why)
{
    const struct calibrate_figure NONE = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, false, false};
    *out = (struct calibration){.joules_per_byte = NONE,
                                .constant_w = NONE,
                                .idle_w = UNKNOWN,
                                .has_no_energy = true,
                                .r2 = UNKNOWN,
                                .mape = UNKNOWN,
                                .mape_held_out = UNKNOWN,
                                .condition = UNKNOWN};
    out->points = xcalloc(rows->count + 1, sizeof *out->points);
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].kind == CALIBRATE_LOAD)
            out->points[out->point_count++] =
                (struct calibrate_point){&rows->items[i], UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = find_classes(out, why);
    for (size_t i = 0; i < out->class_count; i++)
        out->classes[i].joules_per_flop = NONE;
    if (!err)
        measure_overheads(rows, out);
    if (!err && (!out->class_count || !(out->bytes_per_s > 0)))
        err = err_set(why, ERR_BAD_VALUE, "refused: no row has operations, or none has bytes");
    if (err)
        calibration_release(out);
    return err;
}

void calibration_release(struct calibration *calibration)
{
    free(calibration->points);
    calibration->points = NULL;
    calibration->point_count = 0;
}
