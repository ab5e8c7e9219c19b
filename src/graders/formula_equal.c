/* Equality of expressions: strip what does not change the meaning, split compound expressions into parts,
 * compare the parts by value, at several points if they have variables, and finally as text. */
#include "graders/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* A range of tokens. */
struct part {
    const struct math_token *at;
    size_t count;
};

enum { PARTS_MAX = 100, NESTING_MAX = 12 };

struct parts {
    struct part items[PARTS_MAX];
    char signs[PARTS_MAX]; /* before each; that of the first is '\0' */
    size_t count;
};

struct comparison {
    const struct tolerance *tolerance;
    unsigned depth;
};

/* Parts have parts: `same` limits the recursion to NESTING_MAX. */
/* NOLINTBEGIN(misc-no-recursion) */

static bool same(struct comparison *with, struct part a, struct part b);

/* ---- splitting ---- */

static bool is_sign(const struct math_token *token, char sign)
{
    return token->kind == MATH_SIGN && token->sign == sign;
}

static bool is_word(const struct math_token *token, const char *word)
{
    return token->kind == MATH_TEXT && slice_equal(token->text, slice_of(word));
}

/* What separates parts: signs, 'A' for the word "and", 'O' for "or". */
static const char LIST[] = ",;AO", RELATIONS[] = "=<>LGN", UNIONS[] = "UO", CELLS[] = "&R";

static bool separates(const struct math_token *token, const char *set)
{
    int sign = token->kind == MATH_SIGN ? token->sign
               : is_word(token, "and")  ? 'A'
               : is_word(token, "or")   ? 'O'
                                        : '\0';
    return sign && strchr(set, sign);
}

/* Splits at tokens of the set, outside all brackets.  False when there are too many parts. */
static bool split(struct part whole, const char *set, struct parts *out)
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
        if (!ends && (depth > 0 || !separates(&whole.at[i], set)))
            continue;
        if (out->count == PARTS_MAX)
            return false;
        if (i > from) { /* "a, and b" has an empty part, which is ignored */
            out->signs[out->count] = sign;
            out->items[out->count++] = (struct part){whole.at + from, i - from};
        }
        sign = ','; /* "or" and "and" separate as commas do */
        if (!ends && whole.at[i].kind == MATH_SIGN)
            sign = whole.at[i].sign;
        if (out->count == 0)
            sign = '\0';
        from = i + 1;
    }
    return true;
}

/* The opening sign of brackets around everything; '\0' when there are none. */
static char brackets_around(struct part part, char *closing)
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

static struct part inside(struct part part)
{
    return (struct part){part.at + 1, part.count - 2};
}

/* ---- units and suffixes ---- */

/* The spellings of units; a bar separates units. */
static const char UNITS[] =
    " mm millimeter millimeters millimetre millimetres | cm centimeter centimeters "
    "centimetre centimetres | m meter meters metre metres | km kilometer kilometers "
    "kilometre kilometres | in inch inches | ft foot feet | yd yard yards | mi mile miles "
    "| mg milligram milligrams | g gram grams | kg kilogram kilograms | oz ounce ounces | "
    "lb lbs pound pounds | ton tons tonne tonnes | ml milliliter milliliters millilitre "
    "millilitres | l liter liters litre litres | s sec secs second seconds | min mins "
    "minute minutes | h hr hrs hour hours | day days | week weeks | month months | yr year "
    "years | cent cents | dollar dollars | degree degrees | percent ";

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
static bool units_differ(struct slice a, struct slice b)
{
    int first = unit_of(slice_trim(a)), second = unit_of(slice_trim(b));
    return first != UNKNOWN_UNIT && second != UNKNOWN_UNIT && first != second;
}

/* What was stripped from the end of an expression. */
struct suffix {
    bool percent, degrees;
    struct slice unit;
};

/* Where trailing words begin, perhaps with exponents: "cm^2", "miles per hour". */
static size_t unit_start(struct part part)
{
    size_t start = part.count;
    for (size_t i = part.count; i-- > 1;) {
        const struct math_token *token = &part.at[i];
        bool exponent = token->kind == MATH_NUMBER && is_sign(&part.at[i - 1], '^');
        if (token->kind == MATH_TEXT && !separates(token, LIST))
            start = i;
        else if (!exponent && !is_sign(token, '^') && !is_sign(token, '.') && !is_sign(token, '/'))
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
    return is_sign(last, '.') || is_sign(last, ',') ||
           (is_sign(last, SIGN_DEGREE) && !has_trigonometry(part));
}

static struct part strip_suffix(struct part part, struct suffix *suffix)
{
    char closing;
    struct parts list;
    for (;;) {
        size_t start = unit_start(part);
        if (part.count && is_end_mark(part)) {
            suffix->degrees = suffix->degrees || is_sign(&part.at[part.count - 1], SIGN_DEGREE);
            part.count--;
        } else if (part.count && is_sign(&part.at[part.count - 1], '%') &&
                   split(part, LIST, &list) && list.count == 1) { /* not "7/10 or 70%" */
            suffix->percent = true;
            part.count--;
        } else if (start < part.count && part.at[0].kind != MATH_TEXT) {
            suffix->unit = part.at[start].text;
            part.count = start;
        } else if (brackets_around(part, &closing) == '{' && closing == '{') {
            part = inside(part);
        } else {
            return part;
        }
    }
}

/* The right side of "x = 5", "(x, y) = (1, 2)" and "6/8 = 3/4"; used when the other expression is not an
 * equation. */
static struct part strip_lhs(struct part part)
{
    struct parts sides, list;
    if (!split(part, LIST, &list) || list.count != 1 || !split(part, RELATIONS, &sides) ||
        sides.count < 2)
        return part;
    for (size_t i = 1; i < sides.count; i++)
        if (sides.signs[i] != '=')
            return part;
    double complex value;
    bool variables = true;
    struct part first = sides.items[0], last = sides.items[sides.count - 1];
    bool number = formula_value(last.at, last.count, 0, &value, &variables) && !variables;
    bool named =
        first.count <= 12 && (first.at[0].kind == MATH_NAME || first.at[0].kind == MATH_OPEN);
    return number || sides.count > 2 || named ? last : part;
}

/* S of "x \in S"; of "5/12 \approx 0.42" the exact side, of "x \approx 3" the right one. */
static struct part strip_sides(struct part part)
{
    struct parts sides;
    if (split(part, "E", &sides) && sides.count == 2 && sides.items[0].count == 1)
        part = sides.items[1];
    if (split(part, "~", &sides) && sides.count == 2)
        part = sides.items[sides.items[0].count == 1 && sides.items[0].at[0].kind == MATH_NAME];
    return part;
}

static bool has_relation(struct part part)
{
    struct parts sides;
    return split(part, RELATIONS, &sides) && sides.count > 1;
}

/* ---- comparing values ---- */

static bool is_unknown(double complex x)
{
    return isnan(creal(x)) || isnan(cimag(x));
}

/* Do both have a value, not NaN, at this point? */
static bool values_at(struct part a, struct part b, unsigned point, double complex *x,
                      double complex *y)
{
    bool ignored;
    return formula_value(a.at, a.count, point, x, &ignored) &&
           formula_value(b.at, b.count, point, y, &ignored) && !is_unknown(*x) && !is_unknown(*y);
}

static bool near(double complex x, double complex y)
{
    if (x == y)
        return true;
    double scale = fmax(1, fmax(cabs(x), cabs(y)));
    return isfinite(scale) && cabs(x - y) <= 1e-9 * scale;
}

static bool same_at_points(struct part a, struct part b)
{
    unsigned compared = 0;
    for (unsigned point = 0; point < FORMULA_POINTS; point++) {
        double complex x, y;
        if (!values_at(a, b, point, &x, &y))
            continue;
        if (!near(x, y))
            return false;
        compared++;
    }
    return compared >= 3;
}

/* Is one equation, as left side minus right side, a multiple of the other? */
static bool proportional(const struct parts *a, const struct parts *b)
{
    double complex ratio = 0;
    unsigned compared = 0;
    for (unsigned point = 0; point < FORMULA_POINTS; point++) {
        double complex left, right, other_left, other_right;
        if (!values_at(a->items[0], a->items[1], point, &left, &right) ||
            !values_at(b->items[0], b->items[1], point, &other_left, &other_right))
            continue;
        double complex x = left - right, y = other_left - other_right;
        if (cabs(x) < 1e-9 || cabs(y) < 1e-9 || !isfinite(cabs(x)) || !isfinite(cabs(y)))
            continue;
        if (compared++ == 0)
            ratio = x / y;
        else if (!near(x / y / ratio, 1))
            return false;
    }
    return compared >= 3;
}

/* The significant digits of a part that is one decimal number and its sign; 0 for any other. */
static int decimal_digits(struct part part)
{
    if (part.count && (is_sign(part.at, '-') || is_sign(part.at, '+')))
        part = (struct part){part.at + 1, part.count - 1};
    if (part.count != 1 || part.at[0].kind != MATH_NUMBER ||
        !memchr(part.at[0].text.start, '.', part.at[0].text.length))
        return 0;
    struct number number;
    return number_whole(part.at[0].text, &number) ? number.digits : 0;
}

static bool same_value(const struct comparison *with, struct part a, const struct suffix *a_suffix,
                       struct part b, const struct suffix *b_suffix)
{
    double complex first, second;
    bool x_variables, y_variables;
    if (!formula_value(a.at, a.count, 0, &first, &x_variables) ||
        !formula_value(b.at, b.count, 0, &second, &y_variables))
        return false;
    if (x_variables || y_variables)
        return same_at_points(a, b);
    double x = creal(first), y = creal(second);
    if (fabs(cimag(first)) > 1e-12 * fabs(x) || fabs(cimag(second)) > 1e-12 * fabs(y))
        return near(first, second);
    int digits = decimal_digits(a), b_digits = decimal_digits(b);
    digits = digits && b_digits ? 0 : digits + b_digits;
    if (tolerance_holds(with->tolerance, x, y, digits))
        return true;
    static const double RADIAN = 3.14159265358979323846 / 180; /* of a degree */
    if (a_suffix->degrees != b_suffix->degrees &&              /* 270° and 3π/2 */
        near(a_suffix->degrees ? x * RADIAN : x, b_suffix->degrees ? y * RADIAN : y))
        return true;
    /* If only one has a percent sign, both readings count. */
    if (a_suffix->percent == b_suffix->percent)
        return false;
    return tolerance_holds(with->tolerance, a_suffix->percent ? x / 100 : x,
                           b_suffix->percent ? y / 100 : y, digits);
}

/* ---- comparing text ---- */

static bool same_tokens(struct part a, struct part b)
{
    for (size_t i = 0; i < a.count && a.count == b.count; i++) {
        const struct math_token *x = &a.at[i], *y = &b.at[i];
        bool named = x->kind == MATH_NAME || x->kind == MATH_TEXT;
        if (x->kind != y->kind || x->sign != y->sign || x->value != y->value ||
            (named && !slice_equal(x->text, y->text)))
            return false;
    }
    return a.count == b.count && a.count > 0;
}

enum { LETTERS_MAX = 400 };

/* The letters and digits in lower case, without spaces and punctuation; false when they are too many. */
static bool letters_of(struct part part, char out[LETTERS_MAX])
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

static bool has_words(struct part part)
{
    for (size_t i = 0; i < part.count; i++)
        if (part.at[i].kind == MATH_TEXT)
            return true;
    return false;
}

/* If one of them has words, both are compared letter by letter. */
static bool same_words(struct part a, struct part b)
{
    char x[LETTERS_MAX], y[LETTERS_MAX];
    return (has_words(a) || has_words(b)) && letters_of(a, x) && letters_of(b, y) &&
           strcmp(x, y) == 0;
}

/* ---- comparing part by part ---- */

static bool same_in_order(struct comparison *with, const struct parts *a, const struct parts *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->signs[i] != b->signs[i] || !same(with, a->items[i], b->items[i]))
            return false;
    return true;
}

static bool same_in_any_order(struct comparison *with, const struct parts *a, const struct parts *b)
{
    bool taken[PARTS_MAX] = {false};
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        bool found = false;
        for (size_t k = 0; k < b->count && !found; k++) {
            found = !taken[k] && same(with, a->items[i], b->items[k]);
            taken[k] = taken[k] || found;
        }
        if (!found)
            return false;
    }
    return true;
}

static char flipped(char sign)
{
    static const char FROM[] = "<>LG", TO[] = "><GL";
    const char *at = sign ? strchr(FROM, sign) : NULL;
    if (!at)
        return sign;
    return TO[at - FROM];
}

static bool same_relations(struct comparison *with, struct part a, struct part b)
{
    struct parts first, second;
    if (!split(a, RELATIONS, &first) || !split(b, RELATIONS, &second))
        return false;
    if (same_in_order(with, &first, &second))
        return true;
    bool equations =
        first.count == 2 && second.count == 2 && first.signs[1] == '=' && second.signs[1] == '=';
    return equations && proportional(&first, &second);
}

static bool same_matrices(struct comparison *with, struct part a, struct part b)
{
    struct parts first, second;
    return split(inside(a), CELLS, &first) && split(inside(b), CELLS, &second) &&
           same_in_order(with, &first, &second);
}

/* A list with its brackets: order matters in (1, 2), not in {1, 2} and 1, 2. */
struct part_list {
    struct parts parts;
    char open, close;
};

static bool read_list(struct part part, struct part_list *out)
{
    *out = (struct part_list){.open = '\0'};
    char open = brackets_around(part, &out->close);
    if (open && strchr("([S", open)) {
        out->open = open;
        part = inside(part);
    } else {
        out->close = '\0';
    }
    if (!split(part, LIST, &out->parts))
        return false;
    /* (5) is a number in parentheses, {5} a set of one element */
    return out->parts.count > 1 || (out->open == 'S' && out->parts.count == 1);
}

/* (-2, 1) and "x = -2, y = 1" */
static bool same_assignments(struct comparison *with, const struct part_list *tuple,
                             const struct part_list *list)
{
    bool assigned = tuple->open == '(' && tuple->close == '(' && !list->open;
    for (size_t i = 0; i < list->parts.count; i++)
        assigned = assigned && has_relation(list->parts.items[i]);
    return assigned && same_in_order(with, &tuple->parts, &list->parts);
}

static bool same_lists(struct comparison *with, const struct part_list *a,
                       const struct part_list *b)
{
    if (same_assignments(with, a, b) || same_assignments(with, b, a))
        return true;
    bool a_loose = !a->open || a->open == 'S', b_loose = !b->open || b->open == 'S';
    if (a_loose && b_loose)
        return same_in_any_order(with, &a->parts, &b->parts);
    return a->open == b->open && a->close == b->close && same_in_order(with, &a->parts, &b->parts);
}

/* "7/2 or 3.5": one answer in several forms. */
static bool same_alternatives(struct comparison *with, struct part one, struct part several)
{
    struct parts forms;
    if (!split(several, "O", &forms) || forms.count < 2)
        return false;
    for (size_t i = 0; i < forms.count; i++)
        if (!same(with, one, forms.items[i]))
            return false;
    return true;
}

/* ---- intervals and inequalities ---- */

/* [low, high), or low <= x < high; an infinite bound is left out. */
struct range {
    struct part low, high; /* of no tokens: none */
    bool low_closed, high_closed;
    bool symmetric; /* |x| < high */
};

static bool is_infinite(struct part part)
{
    double complex value;
    bool ignored;
    return formula_value(part.at, part.count, 0, &value, &ignored) && isinf(creal(value));
}

static bool read_interval(struct part part, struct range *out)
{
    struct part_list list;
    if (!read_list(part, &list) || list.parts.count != 2 || !list.open || list.open == 'S')
        return false;
    *out = (struct range){.low = list.parts.items[0],
                          .high = list.parts.items[1],
                          .low_closed = list.open == '[',
                          .high_closed = list.close == '['};
    if (is_infinite(out->low))
        out->low.count = 0;
    if (is_infinite(out->high))
        out->high.count = 0;
    return true;
}

/* x or f(x) */
static bool is_bounded(struct part part)
{
    return part.at[0].kind == MATH_NAME &&
           (part.count == 1 || (part.count == 4 && part.at[1].kind == MATH_OPEN));
}

/* x < 3, 3 > x, 1 < x <= 3 */
static bool read_inequality(struct part part, struct range *out)
{
    struct parts sides;
    *out = (struct range){.low_closed = false};
    if (!split(part, RELATIONS, &sides) || sides.count < 2 || sides.count > 3)
        return false;
    struct part left = sides.items[0];
    if (sides.count == 2 && left.count == 3 && is_sign(left.at, '|') && is_sign(left.at + 2, '|') &&
        strchr("<L", sides.signs[1])) {
        *out = (struct range){.high = sides.items[1], .symmetric = true};
        out->low_closed = out->high_closed = sides.signs[1] == SIGN_LESS_EQUAL;
        return true;
    }
    size_t middle = sides.count == 3 || !is_bounded(sides.items[0]);
    if (!is_bounded(sides.items[middle]))
        return false;
    for (size_t i = 0; i < sides.count; i++) {
        if (i == middle)
            continue;
        int sign = i < middle ? sides.signs[middle] : flipped(sides.signs[i]);
        if (!sign || !strchr("<>LG", sign))
            return false;
        bool closed = sign == SIGN_LESS_EQUAL || sign == SIGN_GREATER_EQUAL;
        bool low = sign == '<' || sign == SIGN_LESS_EQUAL; /* bound < x */
        *(low ? &out->low : &out->high) = sides.items[i];
        *(low ? &out->low_closed : &out->high_closed) = closed;
    }
    return sides.count == 2 || (out->low.count && out->high.count);
}

static bool same_bound(struct comparison *with, struct part a, bool a_closed, struct part b,
                       bool b_closed)
{
    if (!a.count || !b.count)
        return a.count == b.count;
    return a_closed == b_closed && same(with, a, b);
}

/* Is the lower bound the negative of the upper one? */
static bool is_symmetric(const struct range *range)
{
    double complex low, high;
    bool ignored;
    return range->symmetric ||
           (range->low.count && range->high.count && range->low_closed == range->high_closed &&
            formula_value(range->low.at, range->low.count, 0, &low, &ignored) &&
            formula_value(range->high.at, range->high.count, 0, &high, &ignored) &&
            near(low, -high));
}

/* An interval and an inequality, or two inequalities. */
static bool same_ranges(struct comparison *with, struct part a, struct part b)
{
    struct range x, y;
    if (!(has_relation(a) || has_relation(b)) ||
        !(read_interval(a, &x) || read_inequality(a, &x)) ||
        !(read_interval(b, &y) || read_inequality(b, &y)))
        return false;
    bool low = x.symmetric || y.symmetric
                   ? is_symmetric(&x) && is_symmetric(&y)
                   : same_bound(with, x.low, x.low_closed, y.low, y.low_closed);
    return low && same_bound(with, x.high, x.high_closed, y.high, y.high_closed);
}

/* ---- any expression ---- */

static bool same_compound(struct comparison *with, struct part a, struct part b, bool *compound)
{
    struct part_list a_list, b_list;
    struct parts a_union, b_union;
    char ignored;
    *compound = true;
    if (brackets_around(a, &ignored) == 'X' && brackets_around(b, &ignored) == 'X')
        return same_matrices(with, a, b);
    if (same_ranges(with, a, b))
        return true;
    if (split(a, UNIONS, &a_union) && split(b, UNIONS, &b_union) && a_union.count > 1 &&
        b_union.count > 1)
        return same_in_any_order(with, &a_union, &b_union);
    bool a_is_list = read_list(a, &a_list), b_is_list = read_list(b, &b_list);
    if (a_is_list || b_is_list)
        return a_is_list && b_is_list && same_lists(with, &a_list, &b_list);
    if (has_relation(a) && has_relation(b))
        return same_relations(with, a, b);
    *compound = false;
    return false;
}

static bool same_expression(struct comparison *with, struct part a, struct part b)
{
    struct suffix a_suffix = {0}, b_suffix = {0};
    if (same_alternatives(with, a, b) || same_alternatives(with, b, a))
        return true;
    a = strip_suffix(strip_sides(a), &a_suffix);
    b = strip_suffix(strip_sides(b), &b_suffix);
    if (has_relation(a) != has_relation(b)) {
        a = strip_suffix(strip_lhs(a), &a_suffix);
        b = strip_suffix(strip_lhs(b), &b_suffix);
    }
    if (units_differ(a_suffix.unit, b_suffix.unit))
        return false;
    if (same_tokens(a, b))
        return true;
    bool compound;
    bool equal = same_compound(with, a, b, &compound);
    if (compound)
        return equal;
    return same_value(with, a, &a_suffix, b, &b_suffix) || same_words(a, b);
}

static bool same(struct comparison *with, struct part a, struct part b)
{
    if (with->depth >= NESTING_MAX)
        return false;
    with->depth++;
    bool equal = same_expression(with, a, b);
    with->depth--;
    return equal;
}

/* NOLINTEND(misc-no-recursion) */

/* ---- plus or minus ---- */

static bool has_plus_minus(const struct formula *formula)
{
    for (size_t i = 0; i < formula->count; i++)
        if (is_sign(&formula->items[i], SIGN_PLUS_MINUS))
            return true;
    return false;
}

/* Where the item of a list that begins at `from` ends: at a separator outside brackets, or at the end of the
 * set around it. */
static size_t item_end(const struct formula *formula, size_t from)
{
    int depth = 0;
    for (size_t i = from; i < formula->count; i++) {
        const struct math_token *token = &formula->items[i];
        depth += token->kind == MATH_OPEN;
        depth -= token->kind == MATH_CLOSE;
        if (depth < 0 || (depth == 0 && separates(token, LIST)))
            return i;
    }
    return formula->count;
}

/* The token, or the upper or lower sign of a plus-minus or minus-plus. */
static struct math_token with_sign(const struct math_token *token, bool lower)
{
    struct math_token sign = *token;
    bool upper = is_sign(token, SIGN_PLUS_MINUS);
    if (upper || is_sign(token, SIGN_MINUS_PLUS))
        sign.sign = upper != lower ? '+' : '-';
    return sign;
}

/* Replaces each item of the list with a plus-minus sign by "item with the upper signs, item with the lower
 * signs". */
static enum err expand(struct formula *formula)
{
    struct math_token *items = calloc(2 * formula->count + 1 + formula->count, sizeof *items);
    size_t count = 0;
    if (!items)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < formula->count;) {
        bool opens = formula->items[i].kind == MATH_OPEN && formula->items[i].sign == 'S';
        size_t end = opens ? i : item_end(formula, i);
        struct formula item = {formula->items + i, end - i, 0};
        int signs = has_plus_minus(&item) ? 2 : 1;
        for (int lower = 0; lower < signs && end > i; lower++) {
            if (lower)
                items[count++] = (struct math_token){.kind = MATH_SIGN, .sign = ','};
            for (size_t k = i; k < end; k++)
                items[count++] = with_sign(&formula->items[k], lower);
        }
        if (end < formula->count)
            items[count++] = formula->items[end];
        i = end + 1;
    }
    free(formula->items);
    *formula = (struct formula){items, count, count};
    return ERR_OK;
}

static enum err read(struct formula *formula, struct slice source)
{
    enum err err = formula_read(formula, source);
    return !err && has_plus_minus(formula) ? expand(formula) : err;
}

enum err formula_equal(const struct tolerance *tolerance, struct slice expected,
                       struct slice answer, bool *equal)
{
    struct formula first = {0}, second = {0};
    *equal = false;
    enum err err = read(&first, expected);
    if (!err)
        err = read(&second, answer);
    if (!err) {
        struct comparison with = {.tolerance = tolerance};
        *equal = same(&with, (struct part){first.items, first.count},
                      (struct part){second.items, second.count});
    }
    formula_release(&first);
    formula_release(&second);
    return err;
}
