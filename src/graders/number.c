/* A hand-written scanner: numbers in answers have currencies, thousands separators, LaTeX and words, and digits inside
 * other words do not count.  Linear time. */
#include "graders/number.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/params.h"
#include "graders/fold.h"
#include "graders/tokens.h"

/* A position in the text; reads as '\0' at the end.  The take_ functions advance it only if they match. */
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

/* Digits for strtod, with a limit that no answer exceeds. */
struct digits {
    char kept[400];
    size_t count;
    int significant; /* without leading zeros */
};

static void keep(struct digits *digits, char c)
{
    digits->significant += is_digit(c) && (digits->significant || c != '0');
    if (digits->count < sizeof digits->kept - 1)
        digits->kept[digits->count++] = c;
}

/* Number of digits that follow, up to 4. */
static size_t digits_ahead(const struct cursor *c, size_t ahead)
{
    size_t count = 0;
    while (count < 4 && is_digit(peek(c, ahead + count)))
        count++;
    return count;
}

/* Whether the comma at `ahead` begins decimals, as in 3,5.  Three digits are thousands, more commas a list. */
static bool is_decimal_comma(const struct cursor *c, size_t ahead)
{
    size_t count = digits_ahead(c, ahead + 1), after = ahead + 1;
    while (is_digit(peek(c, after)))
        after++;
    return peek(c, ahead) == ',' && count && count != 3 &&
           !(strchr(",.", peek(c, after)) && is_digit(peek(c, after + 1)));
}

/* Whether the point separates thousands: yes in 1.234.567 and 1.234,5, no in 1.234. */
static bool is_grouping_point(const struct cursor *c)
{
    if (peek(c, 0) != '.' || digits_ahead(c, 1) != 3)
        return false;
    return (peek(c, 4) == '.' && digits_ahead(c, 5) == 3) || is_decimal_comma(c, 4);
}

/* Length of a thousands separator followed by exactly three digits; else 0. */
static size_t grouping(const struct cursor *c)
{
    static const char *const SEPARATORS[] = {
        ",", " ", "'", "{,}", "\\,", "\xC2\xA0", "\xE2\x80\x89", "\xE2\x80\xAF", NULL};
    struct cursor look = *c;
    if (!take_any(&look, SEPARATORS))
        return 0;
    return digits_ahead(&look, 0) == 3 ? (size_t)(look.at - c->at) : 0;
}

/* Returns true if points separate its thousands, so that a comma begins the decimals. */
static bool take_integer(struct cursor *c, struct digits *digits)
{
    size_t first = 0;
    for (; is_digit(peek(c, 0)); c->at++, first++)
        keep(digits, *c->at);
    bool points = first && first <= 3 && is_grouping_point(c);
    while (first && first <= 3) {
        size_t step = points ? peek(c, 0) == '.' && digits_ahead(c, 1) == 3 : grouping(c);
        if (!step)
            break;
        c->at += step;
        for (size_t i = 0; i < 3; i++, c->at++)
            keep(digits, *c->at);
    }
    return points;
}

/* A decimal exponent: e-5 */
static void take_exponent(struct cursor *c, struct digits *digits)
{
    size_t end = peek(c, 1) == '-' || peek(c, 1) == '+' ? 2 : 1;
    if ((peek(c, 0) | 32) != 'e' || !is_digit(peek(c, end)))
        return;
    while (is_digit(peek(c, end)))
        end++;
    for (bool word = isalpha((unsigned char)peek(c, end)); end && !word; end--, c->at++)
        keep(digits, *c->at);
}

/* 12, 1,234.5, .5, 1e-5; unsigned.  `significant`, which may be NULL, is set for a number with decimals. */
static bool take_decimal(struct cursor *c, bool may_comma, double *value, int *significant)
{
    struct digits digits = {0};
    struct cursor look = *c;
    may_comma = take_integer(&look, &digits) || may_comma;
    bool whole = look.at > c->at;
    bool comma = whole && may_comma && is_decimal_comma(&look, 0);
    bool decimals = comma || (peek(&look, 0) == '.' && is_digit(peek(&look, 1)));
    if (!whole && !decimals)
        return false;
    if (decimals)
        keep(&digits, '.');
    for (look.at += decimals; decimals && is_digit(peek(&look, 0)); look.at++)
        keep(&digits, *look.at);
    if (significant)
        *significant = decimals ? digits.significant : 0;
    take_exponent(&look, &digits);
    *value = strtod(digits.kept, NULL);
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
    if (!take_decimal(&look, false, value, NULL) || (close && peek(&look, 0) != close))
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
    if (!take(&look, "/") || !take_decimal(&look, false, &under, NULL) || under == 0 ||
        peek(&look, 0) == '/')
        return false;
    *value /= under;
    *c = look;
    return true;
}

/* One of several space-separated spellings, and its value; 0 if there is none.  A spelling that ends with a letter must
 * not be followed by one. */
static double take_valued(struct cursor *c, const char *spellings, const double *values)
{
    for (const char *at = spellings + 1, *end; *at; at = end + 1, values++) {
        struct slice spelling = slice_between(at, end = strchr(at, ' ')),
                     rest = slice_between(c->at, c->end);
        if (rest.length < spelling.length ||
            memcmp(rest.start, spelling.start, spelling.length) != 0)
            continue;
        bool letters = isalpha((unsigned char)end[-1]);
        if (letters && isalnum((unsigned char)peek(c, spelling.length)))
            continue;
        c->at += spelling.length;
        return *values;
    }
    return 0;
}

/* \frac{1}{2}, or a character such as ½. */
static bool take_fraction(struct cursor *c, double *value)
{
    static const double VALUES[] = {0.5, 0.25, 0.75, 1.0 / 3, 2.0 / 3, 0.125};
    if (take_latex_fraction(c, value))
        return true;
    *value = take_valued(c, " ½ ¼ ¾ ⅓ ⅔ ⅛ ", VALUES);
    return *value > 0;
}

/* " and a half", but not "5 and a half of the rest". */
static bool take_part_in_words(struct cursor *c, double *part)
{
    static const char *const SPELLINGS[] = {" and a half", " and a quarter", " and three quarters",
                                            " and a third", NULL};
    static const double VALUES[] = {0.5, 0.25, 0.75, 1.0 / 3};
    for (size_t i = 0; SPELLINGS[i]; i++) {
        struct cursor look = *c, after;
        if (!take(&look, SPELLINGS[i]) || isalnum((unsigned char)peek(&look, 0)))
            continue;
        after = look;
        skip_blanks(&after);
        if (take_word(&after, "of"))
            return false;
        *part = VALUES[i];
        *c = look;
        return true;
    }
    return false;
}

/* The " 1/2" of 1 1/2, and the \frac{1}{2} of 1\frac{1}{2}. */
static bool take_mixed(struct cursor *c, double *value)
{
    struct cursor look = *c;
    double part;
    if (*value != floor(*value))
        return false;
    if (take_part_in_words(c, &part)) {
        *value += part;
        return true;
    }
    skip_blanks(&look);
    if (!take_fraction(&look, &part)) {
        bool apart = look.at > c->at;
        if (!apart || !take_decimal(&look, false, &part, NULL) || part != floor(part) ||
            !take_divisor(&look, &part))
            return false;
    }
    *value += part;
    *c = look;
    return true;
}

/* ^5, **5, or superscript digits. */
static bool take_exponentiation(struct cursor *c, bool stars, double *exponent)
{
    struct cursor look = *c;
    if ((take(&look, "^") || (stars && take(&look, "**"))) && take_operand(&look, exponent)) {
        *c = look;
        return true;
    }
    size_t length = char_superscript(slice_between(c->at, c->end), exponent);
    c->at += length;
    return length > 0;
}

/* x 10^5, \times 10^{-5} */
static bool take_scientific(struct cursor *c, double *value)
{
    static const char *const TIMES[] = {"×", "\\times", "\\cdot", "·", "x", "X", "*", NULL};
    struct cursor look = *c;
    double exponent;
    skip_blanks(&look);
    if (!take_any(&look, TIMES))
        return false;
    skip_blanks(&look);
    if (!take(&look, "10") || !take_exponentiation(&look, true, &exponent))
        return false;
    *value *= pow(10, exponent);
    *c = look;
    return true;
}

/* %, percent, million, dozen, and attached k, M, bn */
static void take_scale(struct cursor *c, struct number *out)
{
    static const double WORDS[] = {0.01, 0.01, 0.01, 0.01, 1e3, 1e6, 1e9, 1e12, 100, 12},
                        LETTERS[] = {1e3, 1e3, 1e6, 1e9};
    struct cursor look = *c;
    double factor = take_valued(&look, " k K M bn ", LETTERS);
    if (factor == 0) {
        skip_blanks(&look);
        factor = take_valued(
            &look, " % \\% ％ percent thousand million billion trillion hundred dozen ", WORDS);
    }
    if (factor == 0)
        return;
    out->value = out->plain * factor;
    out->scaled = factor < 1 || (factor > 100 && out->plain != floor(out->plain));
    out->plain =
        out->scaled ? out->plain : out->value; /* "1.5 million" may answer 1.5, "2 million" not 2 */
    *c = look;
}

/* Sign and currency, in either order; true when negative. */
static bool take_prefix(struct cursor *c, bool may_sign)
{
    static const char *const MINUS[] = {"-", "\xE2\x88\x92", "\xE2\x80\x93", "\xEF\xBC\x8D", NULL};
    static const char *const CURRENCY[] = {
        "\\$", "$", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5", "\xE2\x82\xB9", NULL};
    struct cursor look = *c;
    bool word = may_sign && (take_word(&look, "minus") || take_word(&look, "negative"));
    if (word) {
        skip_blanks(&look);
        *c = look;
    }
    bool negative = may_sign && (word || take_any(c, MINUS));
    bool plus = may_sign && !negative && take(c, "+");
    if (take_any(c, CURRENCY)) {
        skip_blanks(c);
        if (may_sign && !negative && !plus)
            negative = take_any(c, MINUS);
    }
    return negative;
}

/* Arrows and ≈ are not letters. */
static bool is_letter(uint32_t c)
{
    return char_is_word(c) && c != 0x2248 && !(c >= 0x2190 && c <= 0x21FF);
}

/* Whether it is part of a word, to which a number would belong.  Chinese has no spaces around numbers. */
static bool belongs(uint32_t c)
{
    return is_letter(c) && !char_is_cjk(c);
}

/* The number that begins exactly at the cursor, after the character `before`.  After a slash it is not a
 * fraction: 3/4/2024 is a date.  In a list, 1,2 are two numbers. */
static bool take_number(struct cursor *c, uint32_t before, struct number *out)
{
    struct cursor look = *c;
    bool negative = take_prefix(&look, !belongs(before) && before != ')');
    bool may_comma = !before || !strchr(",([{", (int)(before < 0x80 ? before : 'a'));
    double value;
    int digits = 0;
    if (!take_fraction(&look, &value)) {
        if (!take_decimal(&look, may_comma, &value, &digits))
            return false;
        if (!take_mixed(&look, &value) && (before == '/' || !take_divisor(&look, &value))) {
            double exponent;
            if (take_exponentiation(&look, false, &exponent))
                value = pow(value, exponent);
            take_scientific(&look, &value);
        }
    }
    if (negative)
        value = -value;
    *out = (struct number){.value = value, .plain = value, .digits = digits};
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
    size_t length;
    bool cjk = char_is_cjk(char_at(slice_between(c->at, c->end), &length));
    while (c->at < c->end) {
        uint32_t character = char_at(slice_between(c->at, c->end), &length);
        if (letters_only ? !isalpha((unsigned char)*c->at)
                         : !is_letter(character) || char_is_cjk(character) != cjk)
            return;
        c->at += length;
    }
}

bool number_next(struct numbers *numbers, struct number *out)
{
    struct cursor c = {numbers->text.start, slice_end(numbers->text)};
    uint32_t *before = &numbers->before;
    bool found = false;
    while (c.at < c.end && !found) {
        bool after_word = belongs(*before);
        const char *from = c.at;
        size_t length;
        uint32_t character = char_at(slice_between(c.at, c.end), &length);
        bool attached = after_word && character == '.';
        if (after_word && (character == '^' || character == '_')) {
            skip_script(&c);
        } else if (!attached && take_number(&c, *before, out)) {
            *before = '0';
            found = true;
            break;
        } else if (character == '\\' && c.at + 1 < c.end) {
            c.at++;
            skip_word(&c, true);
        } else if (is_letter(character)) {
            skip_word(&c, false);
        }
        if (c.at == from)
            c.at += length;
        *before = c.at - from > 1 && isalnum((unsigned char)c.at[-1]) ? 'a' : character;
    }
    numbers->text = slice_between(c.at, c.end);
    return found;
}

bool number_first(struct slice text, struct number *out)
{
    struct numbers numbers = {.text = text};
    return number_next(&numbers, out);
}

bool number_last(struct slice text, struct number *out)
{
    struct numbers numbers = {.text = text};
    bool found = false;
    for (struct number next; number_next(&numbers, &next); found = true)
        *out = next;
    return found;
}

bool number_whole(struct slice text, struct number *out)
{
    text = slice_trim(text);
    struct cursor c = {text.start, slice_end(text)};
    return take_number(&c, ',', out) && c.at == c.end; /* "1,2" may be a list */
}

/* ---- comparing ---- */

enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    *out = (struct tolerance){
        .given = params_get(params, "rel") || params_get(params, "abs"),
        .relative = params_number(&read, "rel", 1e-6, 0, INFINITY),
        .absolute = params_number(&read, "abs", 0, 0, INFINITY),
    };
    return read.err;
}

/* A decimal represents an exact value, such as 1/7, if it has at least this many significant digits. */
enum { EXACT_DIGITS = 8 };

bool tolerance_holds(const struct tolerance *tolerance, double expected, double value, int digits)
{
    double difference = fabs(expected - value);
    if (!isfinite(expected) || !isfinite(value)) /* too large: 2^2000 and 3^2000 */
        return false;
    if (expected == value)
        return true;
    bool integers = expected == floor(expected) && value == floor(value);
    if (tolerance->given)
        return difference <= fmax(tolerance->absolute, tolerance->relative * fabs(expected));
    if (integers)
        return difference <= 4 * DBL_EPSILON * fabs(expected);
    if (digits == 0)
        return difference <= tolerance->relative * fabs(expected);
    double unit = pow(10, floor(log10(fabs(value))) + 1 - digits); /* unit of the last digit */
    return difference <= 1e-12 * fabs(expected) || (digits >= EXACT_DIGITS && difference <= unit);
}

bool number_equal(const struct tolerance *tolerance, const struct number *expected,
                  const struct number *value)
{
    bool exact = !expected->digits || !value->digits;
    int digits = exact ? expected->digits + value->digits : 0;
    if (tolerance_holds(tolerance, expected->value, value->value, digits))
        return true;
    if (expected->scaled == value->scaled)
        return false;
    return tolerance_holds(tolerance, expected->plain, value->plain, digits);
}

/* ---- in English words: "forty-two", "two and a half", "three quarters", "minus seven" ---- */

static const char UNITS[] = " zero one two three four five six seven eight nine ten eleven twelve "
                            "thirteen fourteen fifteen sixteen seventeen eighteen nineteen ";
static const char TENS[] = " twenty thirty forty fifty sixty seventy eighty ninety ";
static const char SCALES[] = " hundred dozen thousand million billion trillion ";
static const double SCALE_VALUES[] = {1e2, 12, 1e3, 1e6, 1e9, 1e12};
static const char PARTS[] =
    " half halves third thirds quarter quarters fourth fourths fifth fifths eighth "
    "eighths tenth tenths sixth sixths seventh sevenths ninth ninths twelfth twelfths ";
static const double PART_VALUES[] = {2, 3, 4, 4, 5, 8, 10, 6, 7, 9, 12};

/* The denominator named by the word; 0 if it is none. */
static double part_of(const struct token *token)
{
    int index = token_index(token, PARTS);
    return index < 0 ? 0 : PART_VALUES[index / 2];
}

/* "Twenty-sixth" is an ordinal, "five sixths" and "one sixth" are fractions. */
static bool is_ordinal(const struct token *token, double count)
{
    return count != 1 && token_in(token, " sixth seventh ninth twelfth ");
}

/* State: "two hundred and fifty" is 250 in `group`; thousands and above are in `total`. */
struct words {
    double total, group;
    bool any;
};

/* Adds one word.  False if it does not continue the number: "one two". */
static bool add_word(struct words *words, const struct token *token)
{
    int unit = token_index(token, UNITS), ten = token_index(token, TENS),
        scale = token_index(token, SCALES);
    int last = (int)fmod(words->group, 100);
    if (unit >= 0 || ten >= 0) {
        bool fits = last == 0 || (unit > 0 && unit < 10 && last >= 20 && last % 10 == 0);
        if (words->any && (!fits || unit == 0))
            return false;
        words->group += unit >= 0 ? unit : 10 * (ten + 2);
    } else if (scale >= 0 && scale < 2) {
        if (words->group >= 100)
            return false;
        words->group = (words->any ? words->group : 1) * SCALE_VALUES[scale];
    } else if (scale >= 0) {
        words->total += (words->any ? words->group : 1) * SCALE_VALUES[scale];
        words->group = 0;
    }
    bool taken = unit >= 0 || ten >= 0 || scale >= 0;
    words->any = words->any || taken;
    return taken;
}

/* The number that begins with `first`; *tokens is then after it. */
static bool take_words(struct tokens *tokens, const struct token *first, double *value)
{
    struct words words = {0};
    struct token token = *first;
    struct tokens at = *tokens;
    double part = part_of(first);
    if (part > 0) { /* "half"; "a quarter of" */
        *value = 1 / part;
        return part == 2 || part == 4;
    }
    for (bool more = true; more && add_word(&words, &token);) {
        *tokens = at;
        do
            more = token_next(&at, &token);
        while (more && (token_is(&token, "-") || token_is(&token, "and")));
    }
    *value = words.total + words.group;
    struct tokens look = *tokens;
    if (words.any && token_next(&look, &token) &&
        (!token_is(&token, "-") || token_next(&look, &token)) && (part = part_of(&token)) > 0 &&
        !is_ordinal(&token, *value)) { /* "three quarters" */
        *value /= part;
        *tokens = look;
    }
    look = *tokens;
    if (words.any && token_next(&look, &token) && token_is(&token, "and") &&
        token_next(&look, &token)) { /* "two and a half", "one and three quarters" */
        int count = token_is(&token, "a") ? 1 : token_index(&token, UNITS);
        if (count > 0 && token_next(&look, &token) && (part = part_of(&token)) > 0) {
            *value += count / part;
            *tokens = look;
        }
    }
    return words.any;
}

/* "One" in "one of them" and "the right one" is not a number. */
static bool is_pronoun(const struct token *before, const struct token *token, struct tokens after)
{
    static const char BEFORE[] =
        " the this that each every any another no which first last right correct other ";
    struct token next;
    return token_is(token, "one") && slice_end(token->text) == after.at &&
           ((before->kind == TOKEN_WORD && before->text.length && token_in(before, BEFORE)) ||
            (token_next(&after, &next) &&
             token_in(&next, " of another who that can by could might ")));
}

/* The last number in words: "forty-two", "minus seven", "three quarters". */
bool number_in_words(struct slice text, struct number *out)
{
    bool several;
    return numbers_in_words(text, out, &several);
}

bool numbers_in_words(struct slice text, struct number *out, bool *several)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    bool found = false;
    *several = false;
    for (; token_next(&tokens, &token); before = token) {
        double value = 1;
        bool single = token_is(&token, "single") && token_is(&before, "a"); /* "a single orange" */
        if (token.kind != TOKEN_WORD || !(single || take_words(&tokens, &token, &value)) ||
            is_pronoun(&before, &token, tokens))
            continue;
        bool negative = before.text.length && token_in(&before, " minus negative ");
        value = negative ? -value : value;
        *several = *several || (found && value != out->value);
        *out = (struct number){.value = value, .plain = value};
        out->where = slice_between(negative ? before.text.start : token.text.start, tokens.at);
        found = true;
    }
    return found;
}
