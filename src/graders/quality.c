#include "graders/quality.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"
#include "core/units.h"
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
