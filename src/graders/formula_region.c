/* Sets of real numbers: intervals, inequalities and their unions, compared by their bounds. */
#include <math.h>

#include "graders/formula_parts.h"

bool part_near(double complex x, double complex y)
{
    if (x == y)
        return true;
    double scale = fmax(1, fmax(cabs(x), cabs(y)));
    return isfinite(scale) && cabs(x - y) <= 1e-9 * scale;
}

/* A set of real numbers as intervals, with the values of its bounds at one point. */
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
    if (!part_list_read(part, &list) || list.parts.count != 2 || !list.open || list.open == 'S')
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
    if (part.count < 3 || !part_is_sign(&part.at[0], '|') ||
        !part_is_sign(&part.at[part.count - 1], '|') || part.at[1].kind != MATH_NAME)
        return NAN;
    if (part.count == 3)
        return 0;
    return part_is_sign(&part.at[2], '-') || part_is_sign(&part.at[2], '+')
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
        sign = part_flipped(sign);
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

/* Includes 1 < x <= 3 and 3 >= x > 1. */
static bool read_inequality(struct part part, unsigned point, struct region *out)
{
    struct parts sides;
    if (!part_split(part, PART_RELATIONS, &sides) || sides.count < 2 || sides.count > 3)
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

/* All numbers except those of the list. */
static bool read_complement(const struct parts *missing, unsigned point, struct region *out)
{
    double low = -INFINITY;
    for (size_t n = 0; n <= missing->count; n++) {
        double next = INFINITY; /* the smallest one above */
        for (size_t i = 0; i < missing->count; i++) {
            double bound = bound_at(missing->items[i], point);
            if (isnan(bound))
                return false;
            next = bound > low && bound < next ? bound : next;
        }
        if (!add_interval(out, low, false, next, false))
            return false;
        if (!isfinite(next))
            return true;
        low = next;
    }
    return false;
}

/* "all real numbers", those "except 2", and \mathbb{R} \setminus \{2\} */
static bool read_reals(struct part part, unsigned point, struct region *out)
{
    size_t words = 0;
    struct part_list set;
    struct parts missing;
    while (words < part.count && part.at[words].kind == MATH_TEXT)
        words++;
    bool except = words && part_is_word(&part.at[words - 1], "except"),
         minus = words < part.count && part_is_sign(&part.at[words], SIGN_DIFFERENCE);
    struct part named = {part.at, words - except},
                rest = {part.at + words + minus, part.count - words - minus};
    if (!words || !(part_words_are(named, "allrealnumbers") || part_words_are(named, "r") ||
                    part_words_are(named, "allreals")))
        return false;
    out->relation = true;
    if (minus)
        return part_list_read(rest, &set) && set.open == 'S' &&
               read_complement(&set.parts, point, out);
    if (except)
        return part_split(rest, PART_LIST, &missing) && missing.count &&
               read_complement(&missing, point, out);
    return words == part.count && add_interval(out, -INFINITY, false, INFINITY, false);
}

static bool read_region(struct part part, unsigned point, struct region *out)
{
    struct parts pieces;
    *out = (struct region){.count = 0};
    if (!part_split(part, PART_UNIONS, &pieces) || !pieces.count)
        return false;
    for (size_t i = 0; i < pieces.count; i++)
        if (!read_interval(pieces.items[i], point, out) &&
            !read_inequality(pieces.items[i], point, out) &&
            !read_reals(pieces.items[i], point, out))
            return false;
    for (size_t i = 1; i < out->count; i++) /* insertion sort by lower bound */
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
        if (!part_near(x->low, y->low) || !part_near(x->high, y->high) ||
            x->low_closed != y->low_closed || x->high_closed != y->high_closed)
            return false;
    }
    return a->count == b->count;
}

/* The same set of numbers, at least one of them not only brackets: (1, 2) may be a point. */
bool part_same_regions(struct part a, struct part b)
{
    for (unsigned point = 0; point < FORMULA_SIGNED_POINT; point++) {
        struct region x, y;
        if (!read_region(a, point, &x) || !read_region(b, point, &y) ||
            !(x.relation || y.relation || x.count > 1) || !same_intervals(&x, &y))
            return false;
    }
    return true;
}
