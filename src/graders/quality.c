#include "graders/quality.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/fold.h"

void quality_unknown(struct grader_quality *out, const char *name, const char *reason, ...)
{
    char full[2 * sizeof out->reason];
    va_list args;
    va_start(args, reason);
    vsnprintf(full, sizeof full, reason, args);
    va_end(args);
    *out = (struct grader_quality){.value = UNKNOWN, .plus_minus = UNKNOWN};
    chars_copy(out->name, name);
    char_one_line(out->reason, sizeof out->reason, slice_of(full));
}

static void close_question(struct quality_sums *sums)
{
    double x = sums->of_question_x, y = sums->of_question_y;
    sums->xx += x * x;
    sums->xy += x * y;
    sums->yy += y * y;
    sums->questions++;
    sums->of_question_x = sums->of_question_y = 0;
}

void quality_add(struct quality_sums *sums, int64_t question, double x, double y)
{
    if (sums->count++ && question != sums->question)
        close_question(sums);
    sums->question = question;
    sums->of_question_x += x;
    sums->of_question_y += y;
    sums->x += x;
    sums->y += y;
}

static double uncertainty_of(const struct quality_sums *sums, double value, bool is_share)
{
    double count = (double)sums->questions;
    /* Sum of squared residuals x - value y; rounding may make it negative. */
    double squares = sums->xx - 2 * value * sums->xy + value * value * sums->yy;
    double error = count < 2 ? UNKNOWN : sqrt(fmax(0, squares) * count / (count - 1)) / sums->y;
    double least = sqrt(value * (1 - value) / count + 1 / (4 * count * count)) / (1 + 1 / count);
    return is_share ? fmax(known_or(error, 0), least) : error;
}

void quality_ratio(struct grader_quality *out, const char *name, struct quality_sums *sums,
                   bool is_share, const char *reason)
{
    double value = ratio(sums->x, sums->y);
    quality_unknown(out, name, "%s", is_known(value) ? "" : reason);
    out->count = sums->count;
    if (!is_known(value))
        return;
    close_question(sums);
    out->value = value;
    out->plus_minus = uncertainty_of(sums, value, is_share);
}

/* ---- draws of items ---- */

struct quality_terms {
    size_t items, metrics;
    double (*terms)[2]; /* x and y: those of an item in sequence */
};

struct quality_terms *quality_terms_new(size_t items, size_t metrics)
{
    struct quality_terms *terms = XNEW(terms);
    *terms =
        (struct quality_terms){items, metrics, xcalloc(items * metrics + 1, sizeof *terms->terms)};
    return terms;
}

void quality_terms_set(struct quality_terms *terms, size_t item, size_t metric, double x, double y)
{
    double *term = terms->terms[item * terms->metrics + metric];
    term[0] = x;
    term[1] = y;
}

void quality_terms_resample(void *terms, const unsigned *weights,
                            double values[GRADER_QUALITIES_MAX])
{
    const struct quality_terms *of = terms;
    for (size_t m = 0; m < of->metrics; m++) {
        double x = 0, y = 0;
        for (size_t i = 0; i < of->items; i++) {
            const double *term = of->terms[i * of->metrics + m];
            x += weights[i] * term[0];
            y += weights[i] * term[1];
        }
        values[m] = ratio(x, y);
    }
}

void quality_terms_free(void *terms)
{
    struct quality_terms *of = terms;
    free(of->terms);
    free(of);
}
