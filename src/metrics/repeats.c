#include "metrics/repeats.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"

static int by_index(const void *left, const void *right)
{
    double a = ((const struct question *)left)->index, b = ((const struct question *)right)->index;
    return (a > b) - (a < b);
}

static void add(struct question *to, const struct question *more)
{
    to->right += more->right;
    to->graded += more->graded;
    to->joules += more->joules;
    to->known += more->known;
}

size_t questions_merge(struct question *answers, size_t count)
{
    size_t questions = 0;
    if (count)
        qsort(answers, count, sizeof *answers, by_index);
    for (size_t i = 0; i < count; i++)
        if (questions && answers[questions - 1].index == answers[i].index)
            add(&answers[questions - 1], &answers[i]);
        else
            answers[questions++] = answers[i];
    return questions;
}

static struct question total_of(const struct question *questions, size_t count)
{
    struct question total = {0};
    for (size_t i = 0; i < count; i++)
        add(&total, &questions[i]);
    return total;
}

/* Without repeats this is the number of graded questions, which leaves Wilson's interval unchanged. */
static double effective_of(const struct question *questions, size_t count,
                           const struct question *total)
{
    double share = total->right / total->graded, squares = 0, asked = 0;
    for (size_t i = 0; i < count; i++) {
        double residual = questions[i].right - share * questions[i].graded;
        squares += residual * residual;
        asked += questions[i].graded > 0;
    }
    double variance = squares / (total->graded * total->graded);
    if (!(variance > 0))
        return asked;
    return fmin(share * (1 - share) / variance, total->graded);
}

/* First-order (delta method) errors of ratios of sums, from the residual of each question. */
struct repeats repeats_of(const struct question *questions, size_t count)
{
    struct question total = total_of(questions, count);
    struct repeats out = {count, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    double accuracy = total.right / total.graded, joules = total.joules / total.known;
    double accuracy_squares = 0, joules_squares = 0, ipj_squares = 0;
    if (total.graded > 0)
        out.effective = effective_of(questions, count, &total);
    for (size_t i = 0; i < count; i++) {
        double right = (questions[i].right - accuracy * questions[i].graded) / total.graded;
        double spent = (questions[i].joules - joules * questions[i].known) / total.known;
        double both = right / joules - accuracy / (joules * joules) * spent;
        accuracy_squares += right * right;
        joules_squares += spent * spent;
        ipj_squares += both * both;
    }
    if (count < 2)
        return out;
    double scale = (double)count / (double)(count - 1);
    out.accuracy_error = sqrt(scale * accuracy_squares);
    out.joules_error = sqrt(scale * joules_squares);
    out.ipj_error = sqrt(scale * ipj_squares);
    return out;
}
