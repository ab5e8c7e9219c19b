/* A hand-written scanner: numbers in answers come with currencies, thousands separators, LaTeX and words,
 * and digits inside other words do not count.  Linear in the text. */
#include "graders/number.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/params.h"
#include "core/text.h"
#include "graders/fold.h"

/* A position in the text; at the end it reads as '\0'.  The take_ functions advance it only when they
 * match. */
struct cursor {
    const char *at, *end;
};

static char peek(const struct cursor *c, size_t ahead)
{
    if ((size_t)(c->end - c->at) <= ahead)
        return '\0';
    return c->at[ahead];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take(struct cursor *c, const char *literal)
{
    if (!slice_starts(slice_between(c->at, c->end), literal))
        return false;
    c->at += strlen(literal);
    return true;
}

static bool take_any(struct cursor *c, const char *const *literals)
{
    for (; *literals; literals++)
        if (take(c, *literals))
            return true;
    return false;
}

static void skip_blanks(struct cursor *c)
{
    while (peek(c, 0) == ' ' || peek(c, 0) == '\t')
        c->at++;
}

static bool take_word(struct cursor *c, const char *word)
{
    struct cursor look = *c;
    for (; *word; word++, look.at++)
        if (tolower((unsigned char)peek(&look, 0)) != *word)
            return false;
    if (isalpha((unsigned char)peek(&look, 0)))
        return false;
    *c = look;
    return true;
}

/* ---- digits ---- */

/* Digits for strtod.  Those beyond its precision are counted, not stored. */
struct digits {
    char kept[48];
    size_t count;
    long dropped; /* of the integer part */
};

static void keep(struct digits *digits, char c, bool fraction)
{
    enum { CAPACITY = sizeof digits->kept - 2 };
    if (digits->count < CAPACITY)
        digits->kept[digits->count++] = c;
    else if (!fraction)
        digits->dropped++;
}

/* The length of a thousands separator followed by exactly three digits; else 0. */
static size_t grouping(const struct cursor *c)
{
    static const char *const SEPARATORS[] = {
        ",", "{,}", "\\,", "\xC2\xA0", "\xE2\x80\x89", "\xE2\x80\xAF", NULL};
    struct cursor look = *c;
    if (!take_any(&look, SEPARATORS))
        return 0;
    for (size_t i = 0; i < 3; i++)
        if (!is_digit(peek(&look, i)))
            return 0;
    return is_digit(peek(&look, 3)) ? 0 : (size_t)(look.at - c->at);
}

static void take_integer(struct cursor *c, struct digits *digits)
{
    size_t first = 0;
    for (; is_digit(peek(c, 0)); c->at++, first++)
        keep(digits, *c->at, false);
    if (first == 0 || first > 3)
        return;
    for (size_t step; (step = grouping(c));) {
        c->at += step;
        for (size_t i = 0; i < 3; i++, c->at++)
            keep(digits, *c->at, false);
    }
}

/* A decimal exponent, limited beyond the range of a double. */
static long take_exponent(struct cursor *c)
{
    struct cursor look = *c;
    if ((peek(c, 0) | 32) != 'e')
        return 0;
    look.at++;
    bool negative = peek(&look, 0) == '-';
    if (negative || peek(&look, 0) == '+')
        look.at++;
    if (!is_digit(peek(&look, 0)))
        return 0;
    long exponent = 0;
    for (; is_digit(peek(&look, 0)); look.at++)
        exponent = exponent < 100000 ? exponent * 10 + (*look.at - '0') : exponent;
    if (isalpha((unsigned char)peek(&look, 0)))
        return 0;
    *c = look;
    return negative ? -exponent : exponent;
}

/* 12, 1,234.5, .5, 1e-5; unsigned. */
static bool take_decimal(struct cursor *c, double *value)
{
    struct digits digits = {0};
    struct cursor look = *c;
    take_integer(&look, &digits);
    bool whole = look.at > c->at;
    if (peek(&look, 0) == '.' && is_digit(peek(&look, 1))) {
        keep(&digits, '.', true);
        for (look.at++; is_digit(peek(&look, 0)); look.at++)
            keep(&digits, *look.at, true);
    } else if (!whole) {
        return false;
    }
    long exponent = take_exponent(&look) + digits.dropped;
    char number[96];
    str_format(number, sizeof number, "%s%se%ld", whole ? "" : "0", digits.kept, exponent);
    *value = strtod(number, NULL);
    *c = look;
    return true;
}

/* ---- fractions, powers, scales ---- */

/* {12}, (12) or 12, perhaps signed: an exponent or a part of a fraction. */
static bool take_operand(struct cursor *c, double *value)
{
    struct cursor look = *c;
    char open = peek(&look, 0), close = '\0';
    if (open == '{')
        close = '}';
    else if (open == '(')
        close = ')';
    if (close)
        look.at++;
    bool negative = take(&look, "-") || take(&look, "\xE2\x88\x92");
    if (!take_decimal(&look, value) || (close && peek(&look, 0) != close))
        return false;
    if (close)
        look.at++;
    if (negative)
        *value = -*value;
    *c = look;
    return true;
}

/* \frac{1}{2}, \dfrac12 */
static bool take_latex_fraction(struct cursor *c, double *value)
{
    static const char *const NAMES[] = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac", NULL};
    struct cursor look = *c;
    double over, under;
    if (!take_any(&look, NAMES))
        return false;
    if (is_digit(peek(&look, 0)) && is_digit(peek(&look, 1))) {
        over = look.at[0] - '0';
        under = look.at[1] - '0';
        look.at += 2;
    } else if (!take_operand(&look, &over) || !take_operand(&look, &under)) {
        return false;
    }
    if (under == 0)
        return false;
    *value = over / under;
    *c = look;
    return true;
}

/* The "/4" of 3/4; not of a date such as 3/4/2024. */
static bool take_divisor(struct cursor *c, double *value)
{
    struct cursor look = *c;
    double under;
    if (!take(&look, "/") || !take_decimal(&look, &under) || under == 0 || peek(&look, 0) == '/')
        return false;
    *value /= under;
    *c = look;
    return true;
}

/* The " 1/2" of 1 1/2, and the \frac{1}{2} of 1\frac{1}{2}. */
static bool take_mixed(struct cursor *c, double *value)
{
    struct cursor look = *c;
    double part;
    if (*value != floor(*value))
        return false;
    skip_blanks(&look);
    if (!take_latex_fraction(&look, &part)) {
        bool apart = look.at > c->at;
        if (!apart || !take_decimal(&look, &part) || part != floor(part) ||
            !take_divisor(&look, &part))
            return false;
    }
    *value += part;
    *c = look;
    return true;
}

/* x 10^5, \times 10^{-5} */
static bool take_scientific(struct cursor *c, double *value)
{
    static const char *const TIMES[] = {"\xC3\x97", "\\times", "\\cdot", "\xC2\xB7",
                                        "x",        "X",       "*",      NULL};
    struct cursor look = *c;
    double exponent;
    skip_blanks(&look);
    if (!take_any(&look, TIMES))
        return false;
    skip_blanks(&look);
    if (!take(&look, "10") || (!take(&look, "^") && !take(&look, "**")) ||
        !take_operand(&look, &exponent))
        return false;
    *value *= pow(10, exponent);
    *c = look;
    return true;
}

static void take_power(struct cursor *c, double *value)
{
    struct cursor look = *c;
    double exponent;
    if (take(&look, "^") && take_operand(&look, &exponent)) {
        *value = pow(*value, exponent);
        *c = look;
    }
}

/* %, percent, million */
static void take_scale(struct cursor *c, struct number *out)
{
    static const char *const PERCENT[] = {"%", "\\%", "\xEF\xBC\x85", NULL};
    static const struct {
        const char *word;
        double factor;
    } WORDS[] = {
        {"percent", 0.01}, {"per cent", 0.01}, {"thousand", 1e3},
        {"million", 1e6},  {"billion", 1e9},   {"trillion", 1e12},
    };
    struct cursor look = *c;
    skip_blanks(&look);
    double factor = take_any(&look, PERCENT) ? 0.01 : 0;
    for (size_t i = 0; factor == 0 && i < sizeof WORDS / sizeof *WORDS; i++)
        if (take_word(&look, WORDS[i].word))
            factor = WORDS[i].factor;
    if (factor == 0)
        return;
    out->scaled = true;
    out->value = out->plain * factor;
    *c = look;
}

/* Sign and currency, in either order; true when negative. */
static bool take_prefix(struct cursor *c, bool may_sign)
{
    static const char *const MINUS[] = {"-", "\xE2\x88\x92", "\xE2\x80\x93", "\xEF\xBC\x8D", NULL};
    static const char *const CURRENCY[] = {
        "\\$", "$", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5", "\xE2\x82\xB9", NULL};
    bool negative = may_sign && take_any(c, MINUS);
    bool plus = may_sign && !negative && take(c, "+");
    if (take_any(c, CURRENCY)) {
        skip_blanks(c);
        if (may_sign && !negative && !plus)
            negative = take_any(c, MINUS);
    }
    return negative;
}

/* The number that begins exactly at the cursor.  After a slash it is not a fraction: 3/4/2024 is a date. */
static bool take_number(struct cursor *c, bool may_sign, bool may_divide, struct number *out)
{
    struct cursor look = *c;
    bool negative = take_prefix(&look, may_sign);
    double value;
    if (!take_latex_fraction(&look, &value)) {
        if (!take_decimal(&look, &value))
            return false;
        if (!take_mixed(&look, &value) && (!may_divide || !take_divisor(&look, &value))) {
            take_power(&look, &value);
            take_scientific(&look, &value);
        }
    }
    if (negative)
        value = -value;
    *out = (struct number){.value = value, .plain = value};
    take_scale(&look, out);
    out->where = slice_between(c->at, look.at);
    *c = look;
    return true;
}

/* ---- finding ---- */

/* Skips an exponent or index: ^2, ^{10}, _1. */
static void skip_script(struct cursor *c)
{
    c->at++;
    if (peek(c, 0) == '{') {
        while (c->at < c->end && *c->at != '}' && *c->at != '\n')
            c->at++;
        return;
    }
    while (isalnum((unsigned char)peek(c, 0)))
        c->at++;
}

/* Skips a word with the digits in it, or the letters of a LaTeX command. */
static void skip_word(struct cursor *c, bool letters_only)
{
    while (c->at < c->end) {
        size_t length;
        uint32_t character = char_at(slice_between(c->at, c->end), &length);
        if (letters_only ? !isalpha((unsigned char)*c->at) : !char_is_word(character))
            return;
        c->at += length;
    }
}

/* The next number from the cursor on; `before` is the character before it, 0 at the start. */
static bool next_number(struct cursor *c, uint32_t *before, struct number *out)
{
    while (c->at < c->end) {
        bool after_word = char_is_word(*before);
        const char *from = c->at;
        size_t length;
        uint32_t character = char_at(slice_between(c->at, c->end), &length);
        bool attached = after_word && character == '.';
        if (after_word && (character == '^' || character == '_')) {
            skip_script(c);
        } else if (!attached &&
                   take_number(c, !after_word && *before != ')', *before != '/', out)) {
            *before = '0';
            return true;
        } else if (character == '\\') {
            c->at++;
            skip_word(c, true);
        } else if (char_is_word(character)) {
            skip_word(c, false);
        }
        if (c->at == from)
            c->at += length;
        *before = c->at - from > 1 && isalnum((unsigned char)c->at[-1]) ? 'a' : character;
    }
    return false;
}

bool number_first(struct slice text, struct number *out)
{
    struct cursor c = {text.start, slice_end(text)};
    uint32_t before = 0;
    return next_number(&c, &before, out);
}

bool number_last(struct slice text, struct number *out)
{
    struct cursor c = {text.start, slice_end(text)};
    uint32_t before = 0;
    struct number next;
    bool found = false;
    while (next_number(&c, &before, &next)) {
        *out = next;
        found = true;
    }
    return found;
}

bool number_whole(struct slice text, struct number *out)
{
    text = slice_trim(text);
    struct cursor c = {text.start, slice_end(text)};
    return take_number(&c, true, true, out) && c.at == c.end;
}

/* ---- comparing ---- */

enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
{
    *out = (struct tolerance){.given = params_get(params, "rel") || params_get(params, "abs")};
    enum err err = params_number(params, "rel", 1e-6, &out->relative, why);
    if (!err)
        err = params_number(params, "abs", 0, &out->absolute, why);
    if (!err && (out->relative < 0 || out->absolute < 0))
        return err_set(why, ERR_USAGE, "rel and abs: expected 0 or more");
    return err;
}

bool tolerance_holds(const struct tolerance *tolerance, double expected, double value)
{
    if (expected == value)
        return true;
    if (!isfinite(expected) || !isfinite(value))
        return false;
    if (!tolerance->given && expected == floor(expected) && value == floor(value))
        return false;
    return fabs(expected - value) <=
           fmax(tolerance->absolute, tolerance->relative * fabs(expected));
}

bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value)
{
    if (tolerance_holds(tolerance, expected->value, value->value))
        return true;
    if (expected->scaled == value->scaled)
        return false;
    return tolerance_holds(tolerance, expected->plain, value->plain);
}
