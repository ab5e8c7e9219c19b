/* Expressions taken apart: at separators outside brackets, into lists with their brackets, and without what does
 * not change the meaning: units, left sides, conditions. */
#include "graders/formula_parts.h"

#include <ctype.h>

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

/* Splits at tokens of the set, outside all brackets.  False when there are too many parts. */
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

/* The opening sign of brackets around everything; '\0' when there are none. */
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

/* The letters and digits in lower case, without spaces and punctuation; false when they are too many. */
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
    return part_letters(part, found) && strcmp(found, letters) == 0;
}

/* ---- units and suffixes ---- */

/* The spellings of units; a bar separates units. */
static const char UNITS[] =
    " mm millimeter millimeters millimetre millimetres | cm centimeter centimeters centimetre "
    "centimetres | m meter meters metre metres | km kilometer kilometers kilometre kilometres | in "
    "inch "
    "inches | ft foot feet | yd yard yards | mi mile miles | mg milligram milligrams | g gram "
    "grams | kg "
    "kilogram kilograms | oz ounce ounces | lb lbs pound pounds | ton tons tonne tonnes | ml "
    "milliliter "
    "milliliters millilitre millilitres | l liter liters litre litres | s sec secs second seconds "
    "| min "
    "mins minute minutes | h hr hrs hour hours | day days | week weeks | month months | yr year "
    "years | "
    "cent cents | dollar dollars | degree degrees | percent ";

enum { UNKNOWN_UNIT = -1 };

/* The number of the unit. */
static int unit_of(struct slice word)
{
    char padded[20] = " ";
    if (word.length == 0 || word.length > sizeof padded - 3)
        return UNKNOWN_UNIT;
    for (size_t i = 0; i < word.length; i++)
        padded[i + 1] = (char)tolower((unsigned char)word.start[i]);
    padded[word.length + 1] = ' ';
    const char *found = strchr(padded, '|') ? NULL : strstr(UNITS, padded);
    int unit = 0;
    for (const char *c = UNITS; found && c < found; c++)
        unit += *c == '|';
    return found ? unit : UNKNOWN_UNIT;
}

/* Two known, different units?  With an unknown one nothing can be said. */
bool part_units_differ(struct slice a, struct slice b)
{
    int first = unit_of(slice_trim(a)), second = unit_of(slice_trim(b));
    return first != UNKNOWN_UNIT && second != UNKNOWN_UNIT && first != second;
}

/* Where trailing words begin, perhaps with exponents: "cm^2", "miles per hour". */
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

/* Does it contain a trigonometric function?  Degrees are then part of the value. */
static bool has_trigonometry(struct part part)
{
    static const char *const NAMES[] = {"sin", "cos", "tan", "cot", "sec", "csc"};
    for (size_t i = 0; i < part.count; i++)
        for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
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
            suffix->unit = part.at[start].text;
            suffix->degrees =
                suffix->degrees || unit_of(suffix->unit) == unit_of(slice_of("degree"));
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
    bool named = first.count <= 12 && (first.at[0].kind != MATH_NUMBER) &&
                 (!expected || (part_split(first, "+-*/", &terms) && terms.count == 1));
    return (number && !expected) || sides.count > 2 || named ? last : part;
}

/* S of "x \in S"; of "5/12 \approx 0.42" the exact side, of "x \approx 3" the right one. */
struct part part_strip_sides(struct part part)
{
    struct parts sides;
    if (part_split(part, "E", &sides) && sides.count == 2 && sides.items[0].count == 1)
        part = sides.items[1];
    if (part_split(part, "~", &sides) && sides.count == 2)
        part = sides.items[sides.items[0].count == 1 && sides.items[0].at[0].kind == MATH_NAME];
    return part;
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
