/* A formula as tokens: LaTeX or plain notation, without what only changes its looks.
 * A struct formula owns its tokens: zero-initialise, formula_release.  The tokens' texts point into
 * the source, which must stay. */
#ifndef IPW_GRADERS_MATHS_LEXER_H
#define IPW_GRADERS_MATHS_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/slice.h"

enum math_kind {
    MATH_NUMBER,
    MATH_NAME, /* a variable, constant or function; "frac", "sqrt", "binom" too */
    MATH_TEXT, /* words: \text{...}, and runs of letters that are no name */
    MATH_SIGN, /* one of the signs below */
    MATH_OPEN, /* ( [ |; { groups; S is a set's brace, F floor, C ceiling, X a matrix */
    MATH_CLOSE,
};

/* The signs that are no ASCII sign of their own. */
enum math_sign {
    SIGN_LESS_EQUAL = 'L',
    SIGN_GREATER_EQUAL = 'G',
    SIGN_NOT_EQUAL = 'N',
    SIGN_PLUS_MINUS = 'P',
    SIGN_MINUS_PLUS = 'M',
    SIGN_UNION = 'U',
    SIGN_INTERSECTION = 'I',
    SIGN_DEGREE = 'o',
    SIGN_ROW = 'R', /* the end of a row of a matrix */
};

struct math_token {
    enum math_kind kind;
    char sign; /* of MATH_SIGN, MATH_OPEN and MATH_CLOSE */
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

#endif
