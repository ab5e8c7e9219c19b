/* Parts of an expression: ranges of the tokens of a formula, which must outlive them. */
#ifndef IPW_GRADERS_FORMULA_PARTS_H
#define IPW_GRADERS_FORMULA_PARTS_H

#include "graders/formula.h"

/* A range of tokens. */
struct part {
    const struct math_token *at;
    size_t count;
};

enum { PARTS_MAX = 100 };

struct parts {
    struct part items[PARTS_MAX];
    char signs[PARTS_MAX]; /* sign before each part; '\0' for the first */
    size_t count;
};

bool part_is_sign(const struct math_token *token, char sign);
bool part_is_word(const struct math_token *token, const char *word);

/* ---- splitting ---- */

/* Separators of parts: signs, 'A' for the word "and", 'O' for "or". */
#define PART_LIST      ",;AO"
#define PART_RELATIONS "=<>LGN"
#define PART_UNIONS    "UO"
#define PART_CELLS     "&R"

bool part_separates(const struct math_token *token, const char *set);

/* Splits at tokens of the set, outside all brackets.  False if there are too many parts. */
bool part_split(struct part whole, const char *set, struct parts *out);

/* The opening sign of brackets around everything; '\0' if there are none. */
char part_brackets(struct part part, char *closing);
struct part part_inside(struct part part);

/* A list with its brackets: order matters in (1, 2), not in {1, 2} and 1, 2. */
struct part_list {
    struct parts parts;
    char open, close;
};

/* False for a single part, unless it is the only element of a set. */
bool part_list_read(struct part part, struct part_list *out);

bool part_has_relation(struct part part);
char part_flipped(char sign); /* the relation read from right to left */

/* ---- words ---- */

enum { LETTERS_MAX = 400 };

/* The letters and digits in lower case, without spaces and punctuation; false if there are too many. */
bool part_letters(struct part part, char out[LETTERS_MAX]);
bool part_words_are(struct part part, const char *letters);

/* ---- stripping ---- */

/* The part that was stripped from the end of an expression. */
struct suffix {
    bool percent, degrees;
    struct slice unit;
};

struct part part_strip_suffix(struct part part, struct suffix *suffix);

/* The right side of "x = 5", "(x, y) = (1, 2)" and "6/8 = 3/4"; used when the other expression is not an
 * equation. */
struct part part_strip_lhs(struct part part, bool expected);

/* S of "x \in S"; of "5/12 \approx 0.42" the exact side, of "x \approx 3" the right one. */
struct part part_strip_sides(struct part part);

/* An expression without the conditions after it: "x + 2, x ≠ 2", "2n + 1 for every integer n", "4 (mod 5)". */
struct part part_strip_condition(struct part part);

/* A number as its digits: 11011, 11011_2, 2A_{16}, "11011 in base 2". */
struct digits {
    struct slice text;
    unsigned base; /* 0: not given */
};

bool part_digits(struct part part, struct digits *out);

/* ---- sets of real numbers: formula_region.c ---- */

/* The same set of numbers, at least one of them not only brackets: (1, 2) may be a point. */
bool part_same_regions(struct part a, struct part b);

/* Equal except for rounding. */
bool part_near(double complex x, double complex y);

#endif
