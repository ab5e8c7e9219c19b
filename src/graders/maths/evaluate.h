/* The value of a formula.  Variables get values out of their names and the number of a point, so two
 * formulas that agree at every point are, for all that grading needs, the same.  Nothing is
 * allocated or owned. */
#ifndef IPW_GRADERS_MATHS_EVALUATE_H
#define IPW_GRADERS_MATHS_EVALUATE_H

#include <stdbool.h>

#include "graders/maths/lexer.h"

/* Points from this one on give some variables negative values. */
enum { EVALUATE_SIGNED_POINT = 4, EVALUATE_POINTS = 8 };

/* False when the tokens are no expression.  The value may be nan or infinite. */
bool evaluate(const struct math_token *tokens, size_t count, unsigned point, double *value,
              bool *has_variables);

#endif
