#include "estimate/calibrate/interval.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/least_squares.h"
#include "stats/quantile.h"

enum { DRAWS = 2000, DRAWS_LEAST = 200, LINES_IN_ALL = 4000000 };

struct drawing {
    const struct design *design;
    size_t classes;
    double *a, *b;
    struct random draws;
};

/* As many lines of each class as it has, each drawn from all of its own. */
static enum err draw_once(struct drawing *d, double *x)
{
    const struct design *design = d->design;
    size_t width = design->columns;
    for (size_t class = 0; class <= d->classes; class ++) {
        size_t from = design->first[class], to = design->first[class + 1];
        for (size_t i = from; i < to; i++) {
            size_t line = from + random_index(&d->draws, to - from);
            memcpy(&d->a[i * width], &design->a[line * width], width * sizeof *d->a);
            d->b[i] = design->b[line];
        }
    }
    return least_squares(d->a, d->b, design->rows, width, x);
}

/* Many windows need fewer draws, each of which costs more. */
static unsigned how_many(const struct design *design, const struct calibrate_options *options)
{
    size_t affordable = LINES_IN_ALL / design->rows;
    if (options->draws)
        return options->draws;
    return affordable > DRAWS         ? DRAWS
           : affordable < DRAWS_LEAST ? DRAWS_LEAST
                                      : (unsigned)affordable;
}

static enum err draw_all(struct drawing *d, unsigned draws, double *found, struct interval *out)
{
    size_t width = d->design->columns, count = 0;
    double x[DESIGN_COLUMNS_MOST];
    for (unsigned k = 0; k < draws; k++) {
        enum err err = draw_once(d, x);
        if (err == ERR_NO_MEMORY)
            return err;
        if (err)
            continue;
        for (size_t j = 0; j < width; j++)
            found[j * draws + count] = x[j];
        count++;
    }
    out->singular = 1 - (double)count / draws;
    for (size_t j = 0; j < width; j++) {
        const double ps[] = {0.025, 0.975};
        double ends[2];
        quantiles(&found[j * draws], count, ps, 2, ends);
        out->low[j] = ends[0];
        out->high[j] = ends[1];
    }
    return ERR_OK;
}

enum err interval_take(const struct design *design, size_t classes,
                       const struct calibrate_options *options, struct interval *out,
                       struct error *why)
{
    unsigned draws = how_many(design, options);
    struct drawing d = {.design = design,
                        .classes = classes,
                        .a = malloc(design->rows * design->columns * sizeof *d.a),
                        .b = malloc(design->rows * sizeof *d.b),
                        .draws = random_seeded(options->seed)};
    double *found = malloc(draws * design->columns * sizeof *found);
    enum err err = d.a && d.b && found ? draw_all(&d, draws, found, out) : ERR_NO_MEMORY;
    free(d.a);
    free(d.b);
    free(found);
    return err ? err_set(why, err, "out of memory") : ERR_OK;
}
