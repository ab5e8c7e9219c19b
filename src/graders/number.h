/* Numbers as people and models write them, found in running text, and compared within a tolerance: with currencies,
 * signs, thousands separators, decimal commas, exponents, fractions, percent, million, k.  docs/metrics.md has the
 * list.  Digits inside a word (H2O, x1), an exponent or an index are not numbers.  Nothing is allocated. */
#ifndef IPW_GRADERS_NUMBER_H
#define IPW_GRADERS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

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

/* Is the difference at most the larger of abs and rel times the expected value?  Without a tolerance from the
 * user, a decimal of `digits` significant digits equals an exact value only when it is written as it or has
 * at least 8 of them: 1/7 is not 0.142857.  0 digits: both are decimals, or neither is. */
bool tolerance_holds(const struct tolerance *tolerance, double expected, double value, int digits);

struct number {
    double value; /* 50 % is 0.5, 3 million is 3000000 */
    double plain; /* without the percent sign: 50 */
    bool scaled;  /* had a percent sign */
    int digits;   /* significant ones of a decimal, "0.142857" has 6; 0 for what is exact: 5, 1/7 */
    struct slice where;
};

bool number_first(struct slice text, struct number *out);
bool number_last(struct slice text, struct number *out);

/* All numbers of a text, one after the other. */
struct numbers {
    struct slice text; /* what is left */
    uint32_t before;   /* the character before it; 0 at the start */
};
bool number_next(struct numbers *numbers, struct number *out);

/* The text is one number and nothing else. */
bool number_whole(struct slice text, struct number *out);

/* The last number in words: "forty-two", "minus seven", "three quarters"; not one that is denied. */
bool number_in_words(struct slice text, struct number *out);

/* Where only one of the two has a percent sign, both readings of it count. */
bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value);

/* ---- the number that an answer states: numeric.c ---- */

/* Of the line after a marker (final.h): the result of its first equation, or its first number. */
bool stated_after_marker(struct slice line, struct number *out);

/* Of an answer without a marker, in this order: a number in bold in the last paragraph; an answer that comes
 * first; what the last sentence with a number states.  A check of the result at the end does not count. */
bool stated_in_conclusion(struct slice answer, struct number *out);

#endif
