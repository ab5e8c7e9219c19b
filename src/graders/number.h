/* Numbers as people and models write them, found in running text, and compared within a tolerance.
 *
 * Understood: 1,234.5 (also with LaTeX's {,} and \, and narrow spaces), .5, 1e-5, 6.02 x 10^23, 2^10,
 * 3/4, 1 1/2, \frac{3}{4}, signs (also the Unicode minus), a currency before, and after it % or
 * thousand, million, billion, trillion.  Digits inside a word (H2O, x1), an exponent or an index are not
 * numbers.  A comma separates thousands only before exactly three digits, so 1.234,5 is not understood.
 * Plain data; nothing is allocated. */
#ifndef IPW_GRADERS_NUMBER_H
#define IPW_GRADERS_NUMBER_H

#include <stdbool.h>

#include "core/err.h"
#include "core/slice.h"

struct params;

struct tolerance {
    double relative, absolute;
    bool given; /* by the user; if not, two integers are equal only when they are the same */
};

#define TOLERANCE_PARAMS                                                                           \
    {"rel", "SHARE", "largest relative difference (1e-6; integers must be equal)"},                \
        {"abs", "DIFFERENCE", "largest absolute difference, as an alternative to rel (0)"}

/* The parameters "rel" and "abs". */
enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
    MUST_USE;

/* Is the difference at most the larger of abs and rel times the expected value? */
bool tolerance_holds(const struct tolerance *tolerance, double expected, double value);

struct number {
    double value; /* 50 % is 0.5, 3 million is 3000000 */
    double plain; /* without the scale: 50, 3 */
    bool scaled;  /* had a percent sign or such a word */
    struct slice where;
};

bool number_first(struct slice text, struct number *out);
bool number_last(struct slice text, struct number *out);

/* The text is one number and nothing else. */
bool number_whole(struct slice text, struct number *out);

/* Where only one of the two has a percent sign or a word such as million, both readings of it count. */
bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value);

#endif
