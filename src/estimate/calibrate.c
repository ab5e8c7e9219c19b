#include "estimate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate/design.h"
#include "estimate/calibrate/interval.h"
#include "estimate/calibrate/overheads.h"
#include "estimate/calibrate/spectrum.h"
#include "stats/least_squares.h"

enum { NAME_SIZE = 48 };

/* ---- which rows ---- */

/* Ten updates of the sensor where they were counted; else what no meter of energy resolves. */
static bool is_too_short(const struct calibrate_row *row)
{
    if (is_known(row->updates))
        return row->updates < CALIBRATE_UPDATES_LEAST;
    double window = is_known(row->window_s) ? row->window_s : row->latency_s;
    return window < CALIBRATE_WINDOW_LEAST;
}

static enum err choose_rows(const struct calibrate_rows *rows,
                            const struct calibrate_options *options, struct calibration *out,
                            struct error *why)
{
    double idle_j = 0, idle_s = 0;
    out->points = calloc(rows->count + 1, sizeof *out->points);
    if (!out->points)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        bool is_empty = !(row->energy_j > 0), is_short = is_too_short(row);
        if (row->kind == CALIBRATE_LAUNCH && !is_known(row->energy_j))
            continue; /* measured for its time alone */
        if (row->is_estimated && !options->allow_estimated)
            return err_set(
                why, ERR_BAD_VALUE,
                "refused: energy was estimated by a model, not measured ('%s'): a fit would "
                "only find the model again (--allow-estimated takes it all the same)",
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

static enum err find_classes(struct calibration *out, struct error *why)
{
    for (size_t i = 0; i < out->point_count; i++) {
        const struct calibrate_row *row = out->points[i].row;
        if (row->kind != CALIBRATE_LOAD || !(row->flops > 0))
            continue;
        size_t at = design_class(out, row);
        if (at == CALIBRATE_CLASSES_MOST)
            return err_set(why, ERR_BAD_VALUE, "more than %d formats and units at once",
                           CALIBRATE_CLASSES_MOST);
        struct calibrate_class *class = &out->classes[at];
        if (at == out->class_count) {
            out->class_count++;
            class->precision = row->precision;
            class->unit = row->unit;
            str_format(class->name, sizeof class->name, "%s%s%s", precision_name(row->precision),
                       row->unit ? " " : "", calibrate_unit_name(row->unit));
        }
        class->rows++;
    }
    return ERR_OK;
}

/* ---- refusals before the fit ---- */

static enum err refuse_few(const struct calibration *c, struct error *why)
{
    size_t given = (size_t)c->joules_per_byte.is_given + (size_t)c->constant_w.is_given;
    size_t unknowns = c->class_count + 2 - given;
    size_t wanted = CALIBRATE_ROWS_PER_UNKNOWN * unknowns;
    if (c->class_count == 0 || c->point_count < wanted)
        return err_set(why, ERR_BAD_VALUE,
                       "refused: too few rows: %zu can be used (%zu too short for a sensor, %zu "
                       "without joules), and %zu unknowns need %zu",
                       c->point_count, c->short_rows, c->empty_rows, c->class_count ? unknowns : 3,
                       c->class_count ? wanted : (size_t)3 * CALIBRATE_ROWS_PER_UNKNOWN);
    for (size_t i = 0; i < c->class_count; i++)
        if (c->classes[i].rows < CALIBRATE_ROWS_PER_UNKNOWN)
            return err_set(why, ERR_BAD_VALUE,
                           "refused: too few rows: %zu of %s, which need %d; leave them out or "
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
    if (high - low >= CALIBRATE_SPREAD_LEAST * sum / (double)c->point_count)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "refused: power is the same whatever runs (%.4g to %.4g W): it tells nothing of "
                   "operations and bytes; does the meter see this device?",
                   low, high);
}

static enum err refuse_alike(struct calibration *c, const struct design *d,
                             const struct spectrum *spectrum, struct error *why)
{
    char a[NAME_SIZE], b[NAME_SIZE];
    size_t first, second;
    c->condition = spectrum_condition(spectrum);
    if (c->condition <= CALIBRATE_CONDITION_MOST)
        return ERR_OK;
    spectrum_worst_pair(spectrum, &first, &second);
    design_figure_name(c, d->figure[first], a, sizeof a);
    design_figure_name(c, d->figure[second], b, sizeof b);
    return err_set(
        why, ERR_BAD_VALUE,
        "refused: %s and %s cannot be told apart: they go together in all rows (condition "
        "number %.3g, at most %.0f); measure loads with other FLOPs a byte",
        a, b, c->condition, CALIBRATE_CONDITION_MOST);
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
    if (options->joules_per_byte) {
        c->joules_per_byte = given;
        c->joules_per_byte.value = *options->joules_per_byte;
    }
    if (options->constant_w) {
        c->constant_w = given;
        c->constant_w.value = *options->constant_w;
    }
}

/* Fitted and held-out powers of every row, and how far they are off; the sum of the weighted squares. */
static double fill_points(struct calibration *c, const struct design *d,
                          const struct spectrum *spectrum, const double *x)
{
    double weighted = 0, squares = 0, total = 0, mean = 0, count = (double)d->rows;
    for (size_t i = 0; i < d->rows; i++)
        mean += c->points[i].measured_w / count;
    c->mape = c->mape_held_out = 0;
    for (size_t i = 0; i < d->rows; i++) {
        struct calibrate_point *p = &c->points[i];
        const double *line = &d->a[i * d->columns];
        p->fitted_w = design_given_w(c, p->row);
        for (size_t j = 0; j < d->columns; j++)
            p->fitted_w += line[j] * x[j] / d->weight[i];
        double rest = p->measured_w - p->fitted_w;
        double own = fmin(spectrum_leverage(spectrum, line), 1);
        p->held_out_w = own < 1 ? p->measured_w - rest / (1 - own) : UNKNOWN;
        weighted += d->weight[i] * rest * d->weight[i] * rest;
        squares += rest * rest;
        total += (p->measured_w - mean) * (p->measured_w - mean);
        c->mape += fabs(rest) / p->measured_w / count;
        c->mape_held_out += fabs(p->measured_w - p->held_out_w) / p->measured_w / count;
    }
    c->r2 = 1 - squares / total;
    return weighted;
}

static enum err fit(struct calibration *c, const struct design *d, const struct spectrum *spectrum,
                    const struct calibrate_options *options, struct error *why)
{
    double x[DESIGN_COLUMNS_MOST], sigmas[DESIGN_COLUMNS_MOST];
    struct interval interval;
    enum err err = least_squares(d->a, d->b, d->rows, d->columns, x);
    if (!err)
        err = least_squares_sigmas(d->a, d->rows, d->columns, sigmas);
    if (err)
        return err_set(why, err, "refused: the rows depend on one another");
    double squares = fill_points(c, d, spectrum, x);
    double sigma = sqrt(squares / (double)(d->rows - d->columns));
    err = interval_take(d, c->class_count, options, &interval, why);
    if (err)
        return err;
    if (interval.singular > CALIBRATE_SINGULAR_MOST)
        return err_set(why, ERR_BAD_VALUE,
                       "refused: unbounded: %.0f %% of the draws from these rows have no answer; a "
                       "few rows carry all",
                       100 * interval.singular);
    for (size_t j = 0; j < d->columns; j++)
        *figure_of(c, d->figure[j]) = (struct calibrate_figure){
            .value = x[j] / d->scale[j],
            .error = sigma * sigmas[j] / d->scale[j],
            .low = interval.low[j] / d->scale[j],
            .high = interval.high[j] / d->scale[j],
            .is_weak = !(interval.low[j] > 0),
        };
    return ERR_OK;
}

/* ---- refusals after it ---- */

static void name_value(const struct calibration *c, size_t figure, const struct calibrate_figure *f,
                       char *to, size_t size)
{
    char name[NAME_SIZE];
    double times = figure <= c->class_count ? 1e12 : 1;
    design_figure_name(c, figure, name, sizeof name);
    str_format(to, size, "%s comes out at %.3g ± %.2g%s (95 %%: %.3g to %.3g)", name,
               times * f->value, times * f->error, times > 1 ? "" : " W", times * f->low,
               times * f->high);
}

/* What would tell it, and how to do without. */
static const char *remedy(const struct calibration *c, size_t figure)
{
    if (figure < c->class_count)
        return "measure loads of it that arithmetic binds, in longer windows, or leave its rows "
               "out";
    if (figure == c->class_count)
        return "measure copies of arrays beyond the caches, in longer windows, or give --given "
               "pj-per-byte=NUMBER";
    return "measure loads that differ more in FLOPs and bytes a second, or give --given "
           "constant-w=NUMBER";
}

static enum err refuse_unidentified(struct calibration *c, struct error *why)
{
    char what[160];
    for (size_t j = 0; j < c->class_count + 2; j++) {
        const struct calibrate_figure *f = figure_of(c, j);
        if (f->is_given || (f->value >= 0 && !f->is_weak))
            continue;
        name_value(c, j, f, what, sizeof what);
        if (f->value < 0)
            return err_set(
                why, ERR_BAD_VALUE,
                "refused: negative: %s: no work gives joules back, so these are not of this work "
                "(windows too short, rails counted twice, another load beside it?)",
                what);
        return err_set(why, ERR_BAD_VALUE, "refused: not identified: %s: it may be 0; %s", what,
                       remedy(c, j));
    }
    return ERR_OK;
}

static enum err fit_design(struct calibration *out, const struct calibrate_options *options,
                           struct error *why)
{
    struct design design;
    struct spectrum spectrum;
    enum err err = design_make(out, &design, why);
    if (err)
        return err;
    spectrum_take(&design, &spectrum);
    err = refuse_alike(out, &design, &spectrum, why);
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
        overheads_take(rows, out);
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
