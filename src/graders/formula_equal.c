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

static const double RADIAN = 3.14159265358979323846 / 180; /* of a degree */

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
            suffix->degrees =
                suffix->degrees || unit_of(suffix->unit) == unit_of(slice_of("degree"));
            part.count = start;
        } else if ((brackets_around(part, &closing) == '{' && closing == '{') ||
                   (brackets_around(part, &closing) &&
                    brackets_around(inside(part), &closing) == 'X')) {
            part = inside(part);
        } else {
            return part;
        }
    }
}

/* The right side of "x = 5", "(x, y) = (1, 2)" and "6/8 = 3/4"; used when the other expression is not an
 * equation. */
static struct part strip_lhs(struct part part, bool expected)
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
    struct parts terms;
    bool named = first.count <= 12 && (first.at[0].kind != MATH_NUMBER) &&
                 (!expected || (split(first, "+-*/", &terms) && terms.count == 1));
    return (number && !expected) || sides.count > 2 || named ? last : part;
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
    bool exact = !digits && !b_digits && !with->tolerance->given; /* 355/113 is not π */
    if (exact ? near(first, second) : tolerance_holds(with->tolerance, x, y, digits))
        return true;
    if (a_suffix->degrees != b_suffix->degrees && /* 270° and 3π/2 */
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

static bool words_are(struct part part, const char *letters)
{
    char found[LETTERS_MAX];
    return letters_of(part, found) && strcmp(found, letters) == 0;
}

static bool is_empty_set(struct part part)
{
    return (part.count == 1 && part.at[0].kind == MATH_NAME &&
            slice_is(part.at[0].text, "emptyset")) ||
           words_are(part, "nosolution") || words_are(part, "nosolutions") ||
           words_are(part, "norealsolution") || words_are(part, "norealsolutions");
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

/* 2 < x <= 5 and 5 >= x > 2 */
static struct parts reversed(const struct parts *chain)
{
    struct parts out = {.count = chain->count};
    for (size_t i = 0; i < chain->count; i++) {
        out.items[i] = chain->items[chain->count - 1 - i];
        if (i)
            out.signs[i] = flipped(chain->signs[chain->count - i]);
    }
    return out;
}

static bool same_relations(struct comparison *with, struct part a, struct part b)
{
    struct parts first, second;
    if (!split(a, RELATIONS, &first) || !split(b, RELATIONS, &second))
        return false;
    struct parts turned = reversed(&second);
    if (same_in_order(with, &first, &second) || same_in_order(with, &first, &turned))
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

/* A set of real numbers as intervals, with the values that its bounds have at one point. */
struct interval {
    double low, high;
    bool low_closed, high_closed;
};

enum { INTERVALS_MAX = 8 };

struct region {
    struct interval items[INTERVALS_MAX];
    size_t count;
    bool relation; /* from an inequality, or words; not only brackets */
};

static bool add_interval(struct region *to, double low, bool low_closed, double high,
                         bool high_closed)
{
    if (isnan(low) || isnan(high) || to->count == INTERVALS_MAX)
        return false;
    to->items[to->count++] =
        (struct interval){low, high, low_closed && isfinite(low), high_closed && isfinite(high)};
    return true;
}

static double bound_at(struct part part, unsigned point)
{
    double complex value;
    bool ignored;
    if (!part.count || !formula_value(part.at, part.count, point, &value, &ignored) ||
        cimag(value) != 0)
        return NAN;
    return creal(value);
}

/* [low, high) */
static bool read_interval(struct part part, unsigned point, struct region *out)
{
    struct part_list list;
    if (!read_list(part, &list) || list.parts.count != 2 || !list.open || list.open == 'S')
        return false;
    return add_interval(out, bound_at(list.parts.items[0], point), list.open == '[',
                        bound_at(list.parts.items[1], point), list.close == '[');
}

/* x or f(x) */
static bool is_bounded(struct part part)
{
    return part.at[0].kind == MATH_NAME &&
           (part.count == 1 || (part.count == 4 && part.at[1].kind == MATH_OPEN));
}

/* |x|, |x - 3|: its center; NAN for anything else. */
static double center_of(struct part part, unsigned point)
{
    if (part.count < 3 || !is_sign(&part.at[0], '|') || !is_sign(&part.at[part.count - 1], '|') ||
        part.at[1].kind != MATH_NAME)
        return NAN;
    if (part.count == 3)
        return 0;
    return is_sign(&part.at[2], '-') || is_sign(&part.at[2], '+')
               ? -bound_at((struct part){part.at + 2, part.count - 3}, point)
               : NAN;
}

/* |x - center| < radius and the like */
static bool read_distance(double center, char sign, double radius, struct region *out)
{
    bool closed = sign == SIGN_LESS_EQUAL || sign == SIGN_GREATER_EQUAL;
    if (sign == '<' || sign == SIGN_LESS_EQUAL)
        return add_interval(out, center - radius, closed, center + radius, closed);
    return strchr(">G", sign) && add_interval(out, -INFINITY, false, center - radius, closed) &&
           add_interval(out, center + radius, closed, INFINITY, false);
}

/* x < 3, 3 > x, x != 3, |x| < 3 */
static bool read_bound(const struct parts *sides, unsigned point, struct region *out)
{
    bool turned = !is_bounded(sides->items[0]) && isnan(center_of(sides->items[0], point));
    struct part left = sides->items[turned];
    char sign = sides->signs[1];
    if (turned)
        sign = flipped(sign);
    double value = bound_at(sides->items[!turned], point), center = center_of(left, point);
    bool closed = sign == SIGN_LESS_EQUAL || sign == SIGN_GREATER_EQUAL;
    if (!isnan(center))
        return read_distance(center, sign, value, out);
    if (!is_bounded(left) || sign == '=')
        return false;
    if (sign == SIGN_NOT_EQUAL)
        return read_distance(value, '>', 0, out);
    return sign == '<' || sign == SIGN_LESS_EQUAL
               ? add_interval(out, -INFINITY, false, value, closed)
               : add_interval(out, value, closed, INFINITY, false);
}

/* Also 1 < x <= 3 and 3 >= x > 1. */
static bool read_inequality(struct part part, unsigned point, struct region *out)
{
    struct parts sides;
    if (!split(part, RELATIONS, &sides) || sides.count < 2 || sides.count > 3)
        return false;
    out->relation = true;
    if (sides.count == 2)
        return read_bound(&sides, point, out);
    char first = sides.signs[1], second = sides.signs[2];
    bool less = strchr("<L", first) && strchr("<L", second),
         greater = strchr(">G", first) && strchr(">G", second);
    double low = bound_at(sides.items[less ? 0 : 2], point),
           high = bound_at(sides.items[less ? 2 : 0], point);
    if (!is_bounded(sides.items[1]) || (!less && !greater))
        return false;
    bool first_closed = !strchr("<>", first), second_closed = !strchr("<>", second);
    return add_interval(out, low, less ? first_closed : second_closed, high,
                        less ? second_closed : first_closed);
}

/* "all real numbers", and those "except 2" */
static bool read_reals(struct part part, unsigned point, struct region *out)
{
    size_t words = 0;
    while (words < part.count && part.at[words].kind == MATH_TEXT)
        words++;
    bool except = words && is_word(&part.at[words - 1], "except");
    struct part named = {part.at, words - except};
    if (!words || !(words_are(named, "allrealnumbers") || words_are(named, "r") ||
                    words_are(named, "allreals")))
        return false;
    out->relation = true;
    if (except)
        return read_distance(bound_at((struct part){part.at + words, part.count - words}, point),
                             '>', 0, out);
    return words == part.count && add_interval(out, -INFINITY, false, INFINITY, false);
}

static bool read_region(struct part part, unsigned point, struct region *out)
{
    struct parts pieces;
    *out = (struct region){.count = 0};
    if (!split(part, UNIONS, &pieces) || !pieces.count)
        return false;
    for (size_t i = 0; i < pieces.count; i++)
        if (!read_interval(pieces.items[i], point, out) &&
            !read_inequality(pieces.items[i], point, out) &&
            !read_reals(pieces.items[i], point, out))
            return false;
    for (size_t i = 1; i < out->count; i++) /* by their lower bounds */
        for (size_t k = i; k && out->items[k].low < out->items[k - 1].low; k--) {
            struct interval item = out->items[k];
            out->items[k] = out->items[k - 1];
            out->items[k - 1] = item;
        }
    return true;
}

static bool same_intervals(const struct region *a, const struct region *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++) {
        const struct interval *x = &a->items[i], *y = &b->items[i];
        if (!near(x->low, y->low) || !near(x->high, y->high) || x->low_closed != y->low_closed ||
            x->high_closed != y->high_closed)
            return false;
    }
    return a->count == b->count;
}

/* The same set of numbers, at least one of them not only brackets: (1, 2) may be a point. */
static bool same_regions(struct part a, struct part b)
{
    for (unsigned point = 0; point < FORMULA_SIGNED_POINT; point++) {
        struct region x, y;
        if (!read_region(a, point, &x) || !read_region(b, point, &y) ||
            !(x.relation || y.relation || x.count > 1) || !same_intervals(&x, &y))
            return false;
    }
    return true;
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
    if (same_regions(a, b))
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
        a = strip_suffix(strip_lhs(a, true), &a_suffix);
        b = strip_suffix(strip_lhs(b, false), &b_suffix);
    }
    if (units_differ(a_suffix.unit, b_suffix.unit))
        return false;
    if (same_tokens(a, b) || (is_empty_set(a) && is_empty_set(b)))
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
