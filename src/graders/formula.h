/* Mathematical expressions in LaTeX or plain notation: tokens, values, equality.
 * A struct formula owns its tokens: zero-initialize, formula_release.  The tokens' texts point into
 * the source, which must outlive them. */
#ifndef IPW_GRADERS_FORMULA_H
#define IPW_GRADERS_FORMULA_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/slice.h"
#include "graders/number.h"

/* ---- tokens: formula.c ---- */

enum math_kind {
    MATH_NUMBER,
    MATH_NAME, /* a variable, constant or function; "frac", "sqrt", "binom" too */
    MATH_TEXT, /* words: \text{...}, and runs of letters that are not a name */
    MATH_SIGN, /* an operator or relation */
    MATH_OPEN, /* ( [ |; { groups; S is the brace of a set, F floor, C ceiling, X a matrix */
    MATH_CLOSE,
};

/* Signs without an ASCII character of their own. */
enum math_sign {
    SIGN_LESS_EQUAL = 'L',
    SIGN_GREATER_EQUAL = 'G',
    SIGN_NOT_EQUAL = 'N',
    SIGN_PLUS_MINUS = 'P',
    SIGN_MINUS_PLUS = 'M',
    SIGN_APPROXIMATE = '~',
    SIGN_ELEMENT = 'E',
    SIGN_UNION = 'U',
    SIGN_INTERSECTION = 'I',
    SIGN_DIFFERENCE = 'D', /* set difference */
    SIGN_DEGREE = 'o',
    SIGN_ROW = 'R', /* the end of a row of a matrix */
};

struct math_token {
    enum math_kind kind;
    char sign; /* for MATH_SIGN, MATH_OPEN and MATH_CLOSE */
    double value;
    struct slice text;
};

struct formula {
    struct math_token *items;
    size_t count, capacity;
};

enum { FORMULA_MAX = 2000 };

/* ERR_BAD_VALUE for a formula of more tokens than FORMULA_MAX. */
enum err formula_read(struct formula *formula, struct slice source) MUST_USE;
void formula_release(struct formula *formula);

/* ---- values: formula_value.c ---- */

/* From these points on some variables have negative values, and small and large ones. */
enum { FORMULA_SIGNED_POINT = 4, FORMULA_WIDE_POINT = 8, FORMULA_POINTS = 16 };

/* Evaluates with values for the variables derived from their names and the number of the point: expressions that
 * agree at every point are considered equal.  False if the tokens are not an expression.  The value may be NaN or
 * infinite. */
bool formula_value(const struct math_token *tokens, size_t count, unsigned point,
                   double complex *value, bool *has_variables);

/* ---- equality: formula_equal.c ---- */

/* Lists, tuples, intervals, sets, unions and matrices are compared part by part; equations and
 * inequalities side by side; expressions by value, those with variables at several points; anything else
 * as text.  ERR_BAD_VALUE when one of them is too long, or their values are too large,
 * to compare. */
enum err formula_equal(const struct tolerance *tolerance, struct slice expected,
                       struct slice answer, bool *equal) MUST_USE;

#endif
