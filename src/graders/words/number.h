/* Numbers as people and models write them, found in running text.
 *
 * Understood: 1,234.5 (also with LaTeX's {,} and \, and narrow spaces), .5, 1e-5, 6.02 x 10^23, 2^10,
 * 3/4, 1 1/2, \frac{3}{4}, signs (also the Unicode minus), a currency before, and after it % or
 * thousand, million, billion, trillion.  Digits inside a word (H2O, x1), in an exponent or an index
 * are no numbers.  A comma groups only where three digits follow, so 1.234,5 is not understood.
 * Nothing is allocated. */
#ifndef IPW_GRADERS_WORDS_NUMBER_H
#define IPW_GRADERS_WORDS_NUMBER_H

#include <stdbool.h>

#include "core/slice.h"
#include "graders/tolerance.h"

struct number {
    double value; /* 50 % is 0.5, 3 million is 3000000 */
    double plain; /* without that: 50, 3 */
    bool scaled;  /* had such a sign or word */
    struct slice where;
};

bool number_first(struct slice text, struct number *out);
bool number_last(struct slice text, struct number *out);

/* The text is one number and nothing else. */
bool number_whole(struct slice text, struct number *out);

/* Where only one of the two has a percent sign or a word such as million, it counts with and
 * without it. */
bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value);

#endif
