/* Rows as a system of equations: one line a window, its power on the right; one column a kind of
 * operation, then bytes, then the constant.  What is given has no column: its part of the power is taken off.
 * Columns are scaled to length 1.
 * design_make fills a struct that design_release takes back. */
#ifndef IPW_ESTIMATE_CALIBRATE_DESIGN_H
#define IPW_ESTIMATE_CALIBRATE_DESIGN_H

#include "estimate/calibrate.h"

enum { DESIGN_COLUMNS_MOST = CALIBRATE_CLASSES_MOST + 2 };

struct design {
    size_t rows, columns;
    double *a;                         /* rows x columns, weighted and scaled */
    double *b;                         /* W, weighted */
    double *weight;                    /* of each line; 1 where watts count alike */
    double scale[DESIGN_COLUMNS_MOST]; /* what each column was divided by */
    size_t figure
        [DESIGN_COLUMNS_MOST]; /* which coefficient a column is: a class, then bytes, then the constant */
    size_t
        *first; /* lines stand by class: first[class] to first[class + 1]; those of none are last */
};

/* Of the points and classes of a calibration, which it brings into the order of the lines. */
enum err design_make(struct calibration *calibration, struct design *out, struct error *why)
    MUST_USE;
void design_release(struct design *design);

/* The class of a row, or class_count. */
size_t design_class(const struct calibration *calibration, const struct calibrate_row *row);

/* Watts of a row by what is given. */
double design_given_w(const struct calibration *calibration, const struct calibrate_row *row);

/* "pJ/FLOP of fp16 matrix", "pJ/byte", "the constant power". */
void design_figure_name(const struct calibration *calibration, size_t figure, char *to,
                        size_t size);

#endif
