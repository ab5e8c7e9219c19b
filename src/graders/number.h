/* Numbers as people and models write them, found in running text, and compared within a tolerance: with currencies,
 * signs, thousands separators, decimal commas, exponents, fractions, percent, million, k.  docs/metrics.md has the
 * list.  Digits inside a word (H2O, x1), an exponent or an index are not numbers.  Nothing is allocated. */
#ifndef IPW_GRADERS_NUMBER_H
#define IPW_GRADERS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"
#include "graders/reading.h"

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

/* The last number in words: "forty-two", "minus seven", "three quarters". */
bool number_in_words(struct slice text, struct number *out);

/* The same; *several: there are others that differ. */
bool numbers_in_words(struct slice text, struct number *out, bool *several);

/* If only one has a percent sign, both interpretations count. */
bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value);

/* ---- the number at a place of an answer: numeric.c ---- */

enum number_count { NUMBER_NONE, NUMBER_ONE, NUMBER_SEVERAL };

/* The number that such a place gives as its value: not that of a denial, a bound ("at least 7"), an ordinal, a name
 * ("step 2") or a circumstance ("in 5 days"). */
enum number_count number_at(struct slice span, enum place_kind kind, struct number *out);

/* The same with the question, whose numbers are given: the only other one of a clause or sentence.  PLACE_HEAD: only with
 * a question, as the number of a first clause may as well be given. */
struct asked_question;
enum number_count number_read(struct slice span, enum place_kind kind,
                              const struct asked_question *question, struct number *out);

/* Whether the sentence states the number. */
bool number_stated(struct slice sentence, const struct tolerance *tolerance,
                   const struct number *expected);

/* The text after a number, where its unit is. */
struct slice number_unit(struct slice text, const struct number *number);

#endif
