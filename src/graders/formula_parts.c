/* Splitting expressions: at separators outside brackets, into lists with their brackets, and stripping parts that do
 * not change the meaning: units, left sides, conditions. */
#include "graders/formula_parts.h"

#include <ctype.h>

#include "core/text.h"
#include "graders/unit.h"

/* ---- splitting ---- */

bool part_is_sign(const struct math_token *token, char sign)
{
    return token->kind == MATH_SIGN && token->sign == sign;
}

bool part_is_word(const struct math_token *token, const char *word)
{
    return token->kind == MATH_TEXT && slice_equal(token->text, slice_of(word));
}

bool part_separates(const struct math_token *token, const char *set)
{
    int sign = token->kind == MATH_SIGN     ? token->sign
               : part_is_word(token, "and") ? 'A'
               : part_is_word(token, "or")  ? 'O'
                                            : '\0';
    return sign && strchr(set, sign);
}

/* Splits at tokens of the set, outside all brackets.  False if there are too many parts. */
bool part_split(struct part whole, const char *set, struct parts *out)
{
    int depth = 0;
    size_t from = 0;
    *out = (struct parts){.count = 0};
    char sign = '\0';
    for (size_t i = 0; i <= whole.count; i++) {
        bool ends = i == whole.count;
        if (!ends) {
            depth += whole.at[i].kind == MATH_OPEN;
            depth -= whole.at[i].kind == MATH_CLOSE;
        }
        if (!ends && (depth > 0 || !part_separates(&whole.at[i], set)))
            continue;
        if (out->count == PARTS_MAX)
            return false;
        if (i > from) { /* "a, and b" has an empty part, which is ignored */
            out->signs[out->count] = sign;
            out->items[out->count++] = (struct part){whole.at + from, i - from};
        }
        sign = ','; /* "or", "and" and semicolons separate as commas do */
        if (!ends && whole.at[i].kind == MATH_SIGN && whole.at[i].sign != ';')
            sign = whole.at[i].sign;
        if (out->count == 0)
            sign = '\0';
        from = i + 1;
    }
    return true;
}

/* The opening sign of brackets around everything; '\0' if there are none. */
char part_brackets(struct part part, char *closing)
{
    int depth = 0;
    if (part.count < 2 || part.at[0].kind != MATH_OPEN ||
        part.at[part.count - 1].kind != MATH_CLOSE)
        return '\0';
    for (size_t i = 0; i + 1 < part.count; i++) {
        depth += part.at[i].kind == MATH_OPEN;
        depth -= part.at[i].kind == MATH_CLOSE;
        if (depth == 0)
            return '\0'; /* (a)(b) */
    }
    *closing = part.at[part.count - 1].sign;
    return part.at[0].sign;
}

struct part part_inside(struct part part)
{
    return (struct part){part.at + 1, part.count - 2};
}

bool part_list_read(struct part part, struct part_list *out)
{
    *out = (struct part_list){.open = '\0'};
    char open = part_brackets(part, &out->close);
    if (open && strchr("([S", open)) {
        out->open = open;
        part = part_inside(part);
    } else {
        out->close = '\0';
    }
    if (!part_split(part, PART_LIST, &out->parts))
        return false;
    /* (5) is a number in parentheses, {5} a set of one element */
    return out->parts.count > 1 || (out->open == 'S' && out->parts.count == 1);
}

/* ---- words ---- */

/* The letters and digits in lower case, without spaces and punctuation; false if there are too many. */
bool part_letters(struct part part, char out[LETTERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < part.count; i++)
        for (size_t k = 0; k < part.at[i].text.length; k++) {
            unsigned char c = (unsigned char)part.at[i].text.start[k];
            if (!isalnum(c) && c < 0x80)
                continue;
            if (count == LETTERS_MAX - 1)
                return false;
            out[count++] = (char)tolower(c);
        }
    out[count] = '\0';
    return count > 0;
}

bool part_words_are(struct part part, const char *letters)
{
    char found[LETTERS_MAX];
    return part_letters(part, found) && str_equal(found, letters);
}

/* ---- units and suffixes ---- */

/* Start of trailing words, perhaps with exponents: "cm^2", "miles per hour". */
static size_t unit_start(struct part part)
{
    size_t start = part.count;
    for (size_t i = part.count; i-- > 1;) {
        const struct math_token *token = &part.at[i];
        bool exponent = token->kind == MATH_NUMBER && part_is_sign(&part.at[i - 1], '^');
        if (token->kind == MATH_TEXT && !part_separates(token, PART_LIST))
            start = i;
        else if (!exponent && !part_is_sign(token, '^') && !part_is_sign(token, '.') &&
                 !part_is_sign(token, '/'))
            break;
    }
    return start;
}

/* The source of the tokens from `start`; signs have none. */
static struct slice text_of(struct part part, size_t start)
{
    struct slice text = part.at[start].text;
    for (size_t i = start; i < part.count; i++)
        if (part.at[i].text.length)
            text = slice_between(text.start, slice_end(part.at[i].text));
    return text;
}

/* Whether it contains a trigonometric function: degrees are then part of the value. */
static bool has_trigonometry(struct part part)
{
    static const char *const NAMES[] = {"sin", "cos", "tan", "cot", "sec", "csc"};
    for (size_t i = 0; i < part.count; i++)
        for (size_t k = 0; k < COUNT_OF(NAMES); k++)
            if (part.at[i].kind == MATH_NAME && slice_equal(part.at[i].text, slice_of(NAMES[k])))
                return true;
    return false;
}

static bool is_end_mark(struct part part)
{
    const struct math_token *last = &part.at[part.count - 1];
    return part_is_sign(last, '.') || part_is_sign(last, ',') ||
           (part_is_sign(last, SIGN_DEGREE) && !has_trigonometry(part));
}

struct part part_strip_suffix(struct part part, struct suffix *suffix)
{
    char closing;
    struct parts list;
    for (;;) {
        size_t start = unit_start(part);
        if (part.count && is_end_mark(part)) {
            suffix->degrees =
                suffix->degrees || part_is_sign(&part.at[part.count - 1], SIGN_DEGREE);
            part.count--;
        } else if (part.count && part_is_sign(&part.at[part.count - 1], '%') &&
                   part_split(part, PART_LIST, &list) && list.count == 1) { /* not "7/10 or 70%" */
            suffix->percent = true;
            part.count--;
        } else if (start < part.count && part.at[0].kind != MATH_TEXT) {
            suffix->unit = text_of(part, start);
            suffix->degrees = suffix->degrees || unit_is_degree(suffix->unit);
            part.count = start;
        } else if ((part_brackets(part, &closing) == '{' && closing == '{') ||
                   (part_brackets(part, &closing) &&
                    part_brackets(part_inside(part), &closing) == 'X')) {
            part = part_inside(part);
        } else {
            return part;
        }
    }
}

/* ---- numbers with a base ---- */

/* The base that "_2", "_{\\text{two}}", "in base 2" or "(base 2)" names; 0 when it is something else. */
static unsigned base_of(struct part part)
{
    static const char *const NAMES[] = {"two",   "three", "four", "five", "six",
                                        "seven", "eight", "nine", "ten"};
    char closing;
    bool index = part.count && part_is_sign(&part.at[0], '_');
    if (index)
        part = (struct part){part.at + 1, part.count - 1};
    if (part_brackets(part, &closing) && (closing == '{' || closing == '('))
        part = part_inside(part);
    bool words = part.count > 1 && part_is_word(&part.at[0], "in");
    part = (struct part){part.at + words, part.count - words};
    bool base = part.count == 2 && part_is_word(&part.at[0], "base");
    part = (struct part){part.at + base, part.count - base};
    if (part.count != 1 || !(index || base))
        return 0;
    for (unsigned i = 0; i < COUNT_OF(NAMES); i++)
        if (part_is_word(part.at, NAMES[i]))
            return i + 2;
    return part.at->kind == MATH_NUMBER && part.at->value >= 2 && part.at->value <= 36
               ? (unsigned)part.at->value
               : 0;
}

bool part_digits(struct part part, struct digits *out)
{
    size_t count = 0;
    while (count < part.count &&
           (part.at[count].kind == MATH_NUMBER || part.at[count].kind == MATH_NAME ||
            part.at[count].kind == MATH_TEXT) &&
           (count == 0 || slice_end(part.at[count - 1].text) == part.at[count].text.start))
        count++;
    if (!count)
        return false;
    *out = (struct digits){
        .text = slice_between(part.at[0].text.start, slice_end(part.at[count - 1].text))};
    for (size_t i = 0; i < out->text.length; i++)
        if (!isalnum((unsigned char)out->text.start[i]))
            return false;
    if (count < part.count)
        out->base = base_of((struct part){part.at + count, part.count - count});
    return count == part.count || out->base;
}

/* ---- sides ---- */

/* A derivative, integral, sum or limit: \\frac{d}{dx}(...), \\int ... */
static bool is_operation(struct part part)
{
    static const char *const NAMES[] = {"int", "sum", "prod", "lim"};
    if (part.count < 4 || part.count > 60 || part.at[0].kind != MATH_NAME)
        return false;
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (slice_is(part.at[0].text, NAMES[i]))
            return true;
    return slice_is(part.at[0].text, "frac") && part.at[2].kind == MATH_NAME &&
           slice_is(part.at[2].text, "d");
}

/* The right side of "x = 5", "(x, y) = (1, 2)" and "6/8 = 3/4"; used when the other expression is not an
 * equation. */
struct part part_strip_lhs(struct part part, bool expected)
{
    struct parts sides, list;
    if (!part_split(part, PART_LIST, &list) || list.count != 1 ||
        !part_split(part, PART_RELATIONS, &sides) || sides.count < 2)
        return part;
    for (size_t i = 1; i < sides.count; i++)
        if (sides.signs[i] != '=')
            return part;
    double complex value;
    bool variables = true;
    struct part first = sides.items[0], last = sides.items[sides.count - 1];
    bool number = formula_value(last.at, last.count, 0, &value, &variables) && !variables;
    struct parts terms;
    bool named = (first.count <= 12 || is_operation(first)) && first.at[0].kind != MATH_NUMBER &&
                 (!expected || (part_split(first, "+-*/", &terms) && terms.count == 1));
    char ignored;
    struct digits digits;
    bool result = number || part_digits(last, &digits) || part_brackets(last, &ignored) == 'X';
    return (result && !expected) || sides.count > 2 || named ? last : part;
}

/* 3.46, perhaps with a unit */
static bool is_decimal(struct part part)
{
    struct suffix ignored = {0};
    part = part_strip_suffix(part, &ignored);
    double complex value;
    bool variables;
    return formula_value(part.at, part.count, 0, &value, &variables) && !variables;
}

/* S of "x \in S"; of "5/12 \approx 0.42" the exact side, of "x \approx 3" the right one. */
struct part part_strip_sides(struct part part)
{
    struct parts sides;
    char closing;
    if (part_brackets(part, &closing) == 'S' && part_split(part_inside(part), "|:", &sides) &&
        sides.count == 2 && sides.items[0].at[0].kind == MATH_NAME &&
        part_has_relation(sides.items[1]))
        return sides.items[1]; /* {x | x > 3} */
    if (part_split(part, "E", &sides) && sides.count == 2 && sides.items[0].count == 1)
        part = sides.items[1];
    if (!part_split(part, "~", &sides) || sides.count < 2 || !is_decimal(sides.items[1]))
        return part;
    struct part first = sides.items[0];
    bool named = first.count == 1 && first.at[0].kind == MATH_NAME;
    return sides.items[named];
}

bool part_has_relation(struct part part)
{
    struct parts sides;
    return part_split(part, PART_RELATIONS, &sides) && sides.count > 1;
}

char part_flipped(char sign)
{
    static const char FROM[] = "<>LG", TO[] = "><GL";
    const char *at = sign ? strchr(FROM, sign) : NULL;
    if (!at)
        return sign;
    return TO[at - FROM];
}

/* ---- conditions ---- */

/* Whether the name is one of the variables of the expression. */
static bool has_name(struct part part, struct slice name)
{
    for (size_t i = 0; i < part.count; i++)
        if (part.at[i].kind == MATH_NAME && slice_equal(part.at[i].text, name))
            return true;
    return false;
}

/* "where", "for all" */
static bool leads_condition(const struct math_token *token)
{
    static const char *const WORDS[] = {"for",  "with", "where", "provided", "when", "if",
                                        "and",  "that", "such",  "every",    "any",  "all",
                                        "only", "on",   "as",    "long",     "given"};
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        if (part_is_word(token, WORDS[i]))
            return true;
    return false;
}

/* "x ≠ 2", "k ∈ Z", of a variable of the expression */
static bool is_bound_of(struct part condition, struct part expression)
{
    struct parts sides;
    if (!part_split(condition, "<>LGNE", &sides) || sides.count < 2 || sides.count > 3)
        return false;
    struct part left = sides.items[sides.count - 2];
    if (left.count == 3 && part_is_sign(&left.at[0], '|') && part_is_sign(&left.at[2], '|'))
        left = part_inside(left);
    return left.at[0].kind == MATH_NAME && (left.count == 1 || left.at[1].kind == MATH_OPEN) &&
           has_name(expression, left.at[0].text);
}

/* "C is a constant", "every integer n" */
static bool is_kind_of(struct part condition, struct part expression)
{
    static const char *const KINDS[] = {"integer", "integers", "constant",  "constants",
                                        "real",    "natural",  "arbitrary", "number"};
    bool kind = false, named = false;
    for (size_t i = 0; i < condition.count; i++) {
        const struct math_token *token = &condition.at[i];
        if (token->kind != MATH_TEXT && token->kind != MATH_NAME)
            return false;
        named = named || (token->kind == MATH_NAME && has_name(expression, token->text));
        for (size_t k = 0; k < COUNT_OF(KINDS); k++)
            kind = kind || part_is_word(token, KINDS[k]);
    }
    return kind && named;
}

/* Whether all parts of the text are conditions: "x ≠ 2", "where x ≠ 2, 3". */
static bool are_conditions(struct part text, struct part expression)
{
    struct parts list;
    char closing;
    if (text.count && part_is_sign(&text.at[text.count - 1], '.'))
        text.count--;
    if (part_brackets(text, &closing) == '(')
        text = part_inside(text);
    if (!part_split(text, PART_LIST, &list) || !list.count)
        return false;
    for (size_t i = 0; i < list.count; i++) {
        struct part item = list.items[i];
        while (item.count > 1 && leads_condition(item.at))
            item = (struct part){item.at + 1, item.count - 1};
        bool more = i && item.count == 1 && item.at[0].kind == MATH_NUMBER; /* "x ≠ 2, 3" */
        if (!more && !is_bound_of(item, expression) && !is_kind_of(item, expression))
            return false;
    }
    return true;
}

struct part part_strip_condition(struct part part)
{
    enum { CONDITION_MAX = 60 };
    int depth = 0;
    struct parts sides;
    for (size_t i = 0; i + 1 < part.count; i++) {
        const struct math_token *token = &part.at[i];
        struct part kept = {part.at, i}, rest = {part.at + i, part.count - i};
        bool comma = part_is_sign(token, ',') || part_is_sign(token, ';');
        bool mod = (depth == 1 && part_is_word(token, "mod")) ||
                   (depth == 0 && token->kind == MATH_NAME && slice_is(token->text, "mod"));
        bool bracket = depth == 0 && token->kind == MATH_OPEN && token->sign == '(';
        if (mod && i > (size_t)depth && !part_has_relation(rest)) /* "4 (mod 5)" */
            return (struct part){part.at, i - (size_t)depth};
        if (depth == 0 && comma)
            rest = (struct part){rest.at + 1, rest.count - 1};
        if (i && rest.count <= CONDITION_MAX &&
            ((depth == 0 && (comma || leads_condition(token))) || bracket) &&
            !(part_split(kept, "<>LGN", &sides) && sides.count > 1) && are_conditions(rest, kept))
            return kept;
        depth += token->kind == MATH_OPEN;
        depth -= token->kind == MATH_CLOSE;
    }
    return part;
}
