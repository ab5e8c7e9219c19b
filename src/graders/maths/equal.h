/* Do two formulas mean the same?
 *
 * Lists, tuples, intervals, sets, unions and matrices are compared part by part; equations and
 * inequalities side by side; expressions by their values, those with variables at several points;
 * what is no expression as text.  Nothing is kept. */
#ifndef IPW_GRADERS_MATHS_EQUAL_H
#define IPW_GRADERS_MATHS_EQUAL_H

#include <stdbool.h>

#include "core/err.h"
#include "core/slice.h"
#include "graders/tolerance.h"

/* ERR_BAD_VALUE when one of them is too long to be compared. */
enum err maths_equal(const struct tolerance *tolerance, struct slice expected, struct slice answer,
                     bool *equal) MUST_USE;

#endif
