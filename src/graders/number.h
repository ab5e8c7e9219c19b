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
    bool given; /* by the user; otherwise two integers must be identical */
};

#define TOLERANCE_PARAMS                                                                           \
    {"rel", "SHARE", "largest relative difference (1e-6; integers must be equal)"},                \
        {"abs", "DIFFERENCE", "largest absolute difference, as an alternative to rel (0)"}

/* The parameters "rel" and "abs". */
enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
    MUST_USE;

/* Whether the difference is at most the larger of abs and rel times the expected value.  Without a tolerance from the
 * user, a decimal of `digits` significant digits equals an exact value only if it is exact or has at least 8 of them:
 * 1/7 is not 0.142857.  0 digits: both are decimals, or neither is. */
bool tolerance_holds(const struct tolerance *tolerance, double expected, double value, int digits);

struct number {
    double value; /* 50 % is 0.5, 3 million is 3000000 */
    double plain; /* without the percent sign: 50 */
    bool scaled;  /* had a percent sign */
    int digits;   /* significant digits of a decimal, "0.142857" has 6; 0 if exact: 5, 1/7 */
    struct slice where;
};

bool number_first(struct slice text, struct number *out);
bool number_last(struct slice text, struct number *out);

/* Iterates over the numbers of a text. */
struct numbers {
    struct slice text; /* the remaining text */
    uint32_t before;   /* the character before it; 0 at the start */
};
bool number_next(struct numbers *numbers, struct number *out);

/* The text is one number and nothing else. */
bool number_whole(struct slice text, struct number *out);

/* The last number in words: "forty-two", "minus seven", "three quarters"; not a negated one. */
bool number_in_words(struct slice text, struct number *out);

/* If only one has a percent sign, both interpretations count. */
bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value);

/* ---- the number that an answer states: stated_number.c ---- */

/* The number after the last equals sign, as in "x = 3 * 4 = 12 apples". */
bool stated_after_equals(struct slice line, struct number *out);

/* The number in the line after a marker (final.h): the result of its first equation, or its first number. */
bool stated_after_marker(struct slice line, struct number *out);

/* The number in an answer without a marker, in this order: a number in bold in the last paragraph; an answer that comes
 * first; the statement of the last sentence with a number.  A verification of the result at the end does not count. */
bool stated_in_conclusion(struct slice answer, struct number *out);

#endif
