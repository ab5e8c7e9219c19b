/* The eigenvalues of a design's columns among one another: how well they can be told apart, and how much
 * each line pulls the fit to itself.  Plain data, pure. */
#ifndef IPW_ESTIMATE_CALIBRATE_SPECTRUM_H
#define IPW_ESTIMATE_CALIBRATE_SPECTRUM_H

#include "estimate/calibrate/design.h"

struct spectrum {
    size_t columns;
    double values[DESIGN_COLUMNS_MOST];                       /* squares of singular values */
    double vectors[DESIGN_COLUMNS_MOST][DESIGN_COLUMNS_MOST]; /* [column][value] */
    size_t largest, smallest;                                 /* which of them */
};

void spectrum_take(const struct design *design, struct spectrum *out);

/* Largest over smallest singular value; INFINITY when columns depend on one another. */
double spectrum_condition(const struct spectrum *spectrum);

/* The two columns that are hardest to tell apart. */
void spectrum_worst_pair(const struct spectrum *spectrum, size_t *a, size_t *b);

/* The share of a line's fitted value that comes from its own measured one. */
double spectrum_leverage(const struct spectrum *spectrum, const double *line);

#endif
