#include "estimate/calibrate/design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

size_t design_class(const struct calibration *calibration, const struct calibrate_row *row)
{
    for (size_t i = 0; i < calibration->class_count; i++)
        if (calibration->classes[i].precision == row->precision &&
            calibration->classes[i].unit == row->unit)
            return i;
    return calibration->class_count;
}

void design_figure_name(const struct calibration *calibration, size_t figure, char *to, size_t size)
{
    size_t classes = calibration->class_count;
    if (figure > classes)
        (void)str_copy(to, size, "the constant power");
    else if (figure == classes)
        (void)str_copy(to, size, "pJ/byte");
    else
        (void)str_format(to, size, "pJ/FLOP of %s", calibration->classes[figure].name);
}

double design_given_w(const struct calibration *calibration, const struct calibrate_row *row)
{
    const struct calibrate_figure *byte = &calibration->joules_per_byte;
    const struct calibrate_figure *constant = &calibration->constant_w;
    return (byte->is_given ? byte->value * row->bytes / row->latency_s : 0) +
           (constant->is_given ? constant->value : 0);
}

static double part_of(const struct calibration *calibration, const struct calibrate_row *row,
                      size_t figure)
{
    if (figure == calibration->class_count)
        return row->bytes / row->latency_s;
    if (figure > calibration->class_count)
        return 1;
    return design_class(calibration, row) == figure ? row->flops / row->latency_s : 0;
}

static void choose_columns(const struct calibration *calibration, struct design *d)
{
    for (size_t i = 0; i < calibration->class_count; i++)
        d->figure[d->columns++] = i;
    if (!calibration->joules_per_byte.is_given)
        d->figure[d->columns++] = calibration->class_count;
    if (!calibration->constant_w.is_given)
        d->figure[d->columns++] = calibration->class_count + 1;
}

/* Points by class, each class in the order in which they came: what a draw takes one from. */
static enum err order_points(struct calibration *calibration, size_t *first, struct error *why)
{
    struct calibrate_point *ordered = malloc((calibration->point_count + 1) * sizeof *ordered);
    if (!ordered)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    size_t count = 0;
    for (size_t class = 0; class <= calibration->class_count; class ++) {
        first[class] = count;
        for (size_t i = 0; i < calibration->point_count; i++)
            if (design_class(calibration, calibration->points[i].row) == class)
                ordered[count++] = calibration->points[i];
    }
    first[calibration->class_count + 1] = count;
    free(calibration->points);
    calibration->points = ordered;
    return ERR_OK;
}

/* Watts, or shares of the power where powers differ widely: an error of 20 W is nothing to 700 W and much to
 * 100. */
static void weigh(struct calibration *calibration, struct design *d)
{
    double low = INFINITY, high = 0, sum = 0;
    for (size_t i = 0; i < d->rows; i++) {
        double watts = calibration->points[i].measured_w;
        low = fmin(low, watts);
        high = fmax(high, watts);
        sum += watts;
    }
    calibration->is_relative = high > CALIBRATE_SPAN_ALIKE * low;
    for (size_t i = 0; i < d->rows; i++)
        d->weight[i] = calibration->is_relative
                           ? sum / (double)d->rows / calibration->points[i].measured_w
                           : 1;
}

static void fill(const struct calibration *calibration, struct design *d)
{
    for (size_t i = 0; i < d->rows; i++) {
        const struct calibrate_point *point = &calibration->points[i];
        double weight = d->weight[i];
        for (size_t j = 0; j < d->columns; j++)
            d->a[i * d->columns + j] = weight * part_of(calibration, point->row, d->figure[j]);
        d->b[i] = weight * (point->measured_w - design_given_w(calibration, point->row));
    }
    for (size_t j = 0; j < d->columns; j++) {
        double squares = 0;
        for (size_t i = 0; i < d->rows; i++)
            squares += d->a[i * d->columns + j] * d->a[i * d->columns + j];
        d->scale[j] = squares > 0 ? sqrt(squares) : 1;
        for (size_t i = 0; i < d->rows; i++)
            d->a[i * d->columns + j] /= d->scale[j];
    }
}

enum err design_make(struct calibration *calibration, struct design *out, struct error *why)
{
    *out = (struct design){.rows = calibration->point_count};
    choose_columns(calibration, out);
    out->a = calloc(out->rows * out->columns + 1, sizeof *out->a);
    out->b = calloc(out->rows, sizeof *out->b);
    out->weight = calloc(out->rows, sizeof *out->weight);
    out->first = calloc(calibration->class_count + 2, sizeof *out->first);
    if (!out->a || !out->b || !out->weight || !out->first) {
        design_release(out);
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    enum err err = order_points(calibration, out->first, why);
    if (err) {
        design_release(out);
        return err;
    }
    weigh(calibration, out);
    fill(calibration, out);
    return ERR_OK;
}

void design_release(struct design *design)
{
    free(design->a);
    free(design->b);
    free(design->weight);
    free(design->first);
    *design = (struct design){0};
}
