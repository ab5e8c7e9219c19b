/* Equality of expressions: strips parts that do not change the meaning, splits compound expressions into parts,
 * compares the parts by value, at several points if they have variables, and finally as text. */
#include "graders/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graders/formula_parts.h"
#include "graders/unit.h"

enum { NESTING_MAX = 12 };

static const double RADIAN = 3.14159265358979323846 / 180; /* radians per degree */

struct comparison {
    const struct tolerance *tolerance;
    unsigned depth;
    bool is_undecided; /* values too large for a double */
};

/* Parts have parts: `same` limits the recursion to NESTING_MAX. */
/* NOLINTBEGIN(misc-no-recursion) */

static bool same(struct comparison *with, struct part a, struct part b);

/* ---- comparing values ---- */

static bool is_unknown(double complex x)
{
    return isnan(creal(x)) || isnan(cimag(x));
}

/* Whether both have a value, not NaN, at this point. */
static bool values_at(struct part a, struct part b, unsigned point, double complex *x,
                      double complex *y)
{
    bool ignored;
    return formula_value(a.at, a.count, point, x, &ignored) &&
           formula_value(b.at, b.count, point, y, &ignored) && !is_unknown(*x) && !is_unknown(*y);
}

static bool same_at_points(struct part a, struct part b)
{
    unsigned compared = 0;
    for (unsigned point = 0; point < FORMULA_POINTS; point++) {
        double complex x, y;
        if (!values_at(a, b, point, &x, &y))
            continue;
        if (!part_near(x, y))
            return false;
        compared++;
    }
    return compared >= 3;
}

/* Whether one equation, as left side minus right side, is a multiple of the other. */
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
        else if (!part_near(x / y / ratio, 1))
            return false;
    }
    return compared >= 3;
}

/* The significant digits of a part that is one decimal number and its sign; 0 for any other. */
static int decimal_digits(struct part part)
{
    if (part.count && (part_is_sign(part.at, '-') || part_is_sign(part.at, '+')))
        part = (struct part){part.at + 1, part.count - 1};
    if (part.count != 1 || part.at[0].kind != MATH_NUMBER ||
        !memchr(part.at[0].text.start, '.', part.at[0].text.length))
        return 0;
    struct number number;
    return number_whole(part.at[0].text, &number) ? number.digits : 0;
}

static const double EXACT_MAX = 9007199254740992; /* larger integers are rounded */

static bool has_sum(struct part part)
{
    for (size_t i = 1; i < part.count; i++)
        if (part_is_sign(&part.at[i], '+') || part_is_sign(&part.at[i], '-'))
            return true;
    return false;
}

static bool has_infinity(struct part part)
{
    for (size_t i = 0; i < part.count; i++)
        if (part.at[i].kind == MATH_NAME &&
            (slice_starts(part.at[i].text, "inf") || slice_is(part.at[i].text, "oo")))
            return true;
    return false;
}

static bool same_value(struct comparison *with, struct part a, const struct suffix *a_suffix,
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
    if (isinf(x) && isinf(y) && !(has_infinity(a) && has_infinity(b))) {
        with->is_undecided = true; /* 2^2000 and 3^2000 */
        return false;
    }
    if (fabs(x) >= EXACT_MAX && fabs(y) >= EXACT_MAX && part_near(first, second) &&
        (has_sum(a) || has_sum(b))) {
        with->is_undecided = true; /* 2^100 and 2^100 - 1 */
        return false;
    }
    if (fabs(cimag(first)) > 1e-12 * fabs(x) || fabs(cimag(second)) > 1e-12 * fabs(y))
        return part_near(first, second);
    int digits = decimal_digits(a), b_digits = decimal_digits(b);
    digits = digits && b_digits ? 0 : digits + b_digits;
    bool exact = !digits && !b_digits && !with->tolerance->given; /* 355/113 is not π */
    if (exact ? part_near(first, second) : tolerance_holds(with->tolerance, x, y, digits))
        return true;
    if (a_suffix->degrees != b_suffix->degrees && /* 270° and 3π/2 */
        part_near(a_suffix->degrees ? x * RADIAN : x, b_suffix->degrees ? y * RADIAN : y))
        return true;
    /* If only one has a percent sign, both interpretations count. */
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

static bool has_words(struct part part)
{
    for (size_t i = 0; i < part.count; i++)
        if (part.at[i].kind == MATH_TEXT)
            return true;
    return false;
}

/* If one of them has words, both are compared as letters. */
static bool same_words(struct part a, struct part b)
{
    char x[LETTERS_MAX], y[LETTERS_MAX];
    return (has_words(a) || has_words(b)) && part_letters(a, x) && part_letters(b, y) &&
           str_equal(x, y);
}

/* \text{C, A, B} */
static bool is_text(struct part part)
{
    return part.count == 1 && part.at[0].kind == MATH_TEXT;
}

/* The expected digits with their base, which the answer may leave out; 10 may be left out of both. */
static bool same_digits(struct part expected, struct part answer)
{
    struct digits a, b;
    char x[LETTERS_MAX], y[LETTERS_MAX];
    if (!part_digits(expected, &a) || !part_digits(answer, &b) ||
        !(a.base ? a.base == b.base || !b.base : b.base == 10))
        return false;
    struct math_token first = {.text = a.text}, second = {.text = b.text};
    return part_letters((struct part){&first, 1}, x) &&
           part_letters((struct part){&second, 1}, y) && str_equal(x, y);
}

static bool is_empty_set(struct part part)
{
    return (part.count == 1 && part.at[0].kind == MATH_NAME &&
            slice_is(part.at[0].text, "emptyset")) ||
           part_words_are(part, "nosolution") || part_words_are(part, "nosolutions") ||
           part_words_are(part, "norealsolution") || part_words_are(part, "norealsolutions");
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

/* 2 < x <= 5 and 5 >= x > 2 */
static struct parts reversed(const struct parts *chain)
{
    struct parts out = {.count = chain->count};
    for (size_t i = 0; i < chain->count; i++) {
        out.items[i] = chain->items[chain->count - 1 - i];
        if (i)
            out.signs[i] = part_flipped(chain->signs[chain->count - i]);
    }
    return out;
}

static bool same_relations(struct comparison *with, struct part a, struct part b)
{
    struct parts first, second;
    if (!part_split(a, PART_RELATIONS, &first) || !part_split(b, PART_RELATIONS, &second))
        return false;
    struct parts turned = reversed(&second);
    if (same_in_order(with, &first, &second) || same_in_order(with, &first, &turned))
        return true;
    bool equations =
        first.count == 2 && second.count == 2 && first.signs[1] == '=' && second.signs[1] == '=';
    return equations && proportional(&first, &second);
}

/* A matrix, and the factor before it; that of "M" has no tokens. */
struct matrix {
    struct part factor;
    struct parts cells;
};

static bool read_matrix(struct part part, struct matrix *out)
{
    char closing;
    for (size_t i = 0; i < part.count; i++)
        if (part.at[i].kind == MATH_OPEN && part.at[i].sign == 'X') {
            struct part cells = {part.at + i, part.count - i};
            out->factor = (struct part){part.at, i};
            return part_brackets(cells, &closing) == 'X' &&
                   part_split(part_inside(cells), PART_CELLS, &out->cells);
        }
    return false;
}

enum { PRODUCT_MAX = 64 };

/* The product of the factor and a cell, as tokens in `out`; no tokens if it is too long. */
static struct part scaled(const struct part *factor, struct part cell,
                          struct math_token out[PRODUCT_MAX])
{
    size_t count = 0;
    if (!factor->count)
        return cell;
    if (factor->count + cell.count + 5 > PRODUCT_MAX)
        return (struct part){out, 0};
    out[count++] = (struct math_token){.kind = MATH_OPEN, .sign = '('};
    for (size_t i = 0; i < cell.count; i++)
        out[count++] = cell.at[i];
    out[count++] = (struct math_token){.kind = MATH_CLOSE, .sign = '('};
    out[count++] = (struct math_token){.kind = MATH_SIGN, .sign = '*'};
    for (size_t i = 0; i < factor->count; i++)
        out[count++] = factor->at[i];
    const struct math_token *last = &factor->at[factor->count - 1];
    if (factor->count == 1 && part_is_sign(last, '-')) /* the sign of -M */
        out[count++] = (struct math_token){.kind = MATH_NUMBER, .value = 1};
    else if (part_is_sign(last, '*'))
        count--;
    return (struct part){out, count};
}

static bool same_matrices(struct comparison *with, const struct matrix *a, const struct matrix *b)
{
    struct math_token x[PRODUCT_MAX], y[PRODUCT_MAX];
    bool equal = a->cells.count == b->cells.count;
    for (size_t i = 0; i < a->cells.count && equal; i++)
        equal = a->cells.signs[i] == b->cells.signs[i] &&
                same(with, scaled(&a->factor, a->cells.items[i], x),
                     scaled(&b->factor, b->cells.items[i], y));
    return equal;
}

/* The cells of [[1, 2], [3, 4]], and of (1, 2), which is a row or a column as `sign` says. */
static bool read_rows(struct part part, char sign, struct parts *out)
{
    struct part_list rows, row;
    out->count = 0;
    if (!part_list_read(part, &rows) || rows.open == 'S' || !rows.open)
        return false;
    for (size_t i = 0; i < rows.parts.count; i++) {
        if (!part_list_read(rows.parts.items[i], &row))
            row.parts = (struct parts){.items = {rows.parts.items[i]}, .count = 1};
        for (size_t k = 0; k < row.parts.count; k++) {
            if (out->count == PARTS_MAX)
                return false;
            char before = (char)(k ? '&' : sign);
            out->signs[out->count] = (char)(out->count ? before : '\0');
            out->items[out->count++] = row.parts.items[k];
        }
    }
    return true;
}

static bool same_rows(struct comparison *with, const struct matrix *matrix, struct part other)
{
    struct parts cells;
    char sign = SIGN_ROW;
    if (matrix->factor.count)
        return false;
    if (matrix->cells.count > 1 && !memchr(matrix->cells.signs, SIGN_ROW, matrix->cells.count))
        sign = '&';
    return read_rows(other, sign, &cells) && same_in_order(with, &matrix->cells, &cells);
}

/* (-2, 1) and "x = -2, y = 1" */
static bool same_assignments(struct comparison *with, const struct part_list *tuple,
                             const struct part_list *list)
{
    bool assigned = tuple->open == '(' && tuple->close == '(' && !list->open;
    for (size_t i = 0; i < list->parts.count; i++)
        assigned = assigned && part_has_relation(list->parts.items[i]);
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
    if (!part_split(several, "O", &forms) || forms.count < 2)
        return false;
    for (size_t i = 0; i < forms.count; i++)
        if (!same(with, one, forms.items[i]))
            return false;
    return true;
}

/* ---- any expression ---- */

static bool same_compound(struct comparison *with, struct part a, struct part b, bool *compound)
{
    struct part_list a_list, b_list;
    struct parts a_union, b_union;
    struct matrix x, y;
    *compound = true;
    bool matrix = read_matrix(a, &x);
    if (read_matrix(b, &y))
        return matrix ? same_matrices(with, &x, &y) : same_rows(with, &y, a);
    if (matrix)
        return same_rows(with, &x, b);
    if (part_same_regions(a, b))
        return true;
    if (part_split(a, PART_UNIONS, &a_union) && part_split(b, PART_UNIONS, &b_union) &&
        a_union.count > 1 && b_union.count > 1)
        return same_in_any_order(with, &a_union, &b_union);
    bool a_is_list = part_list_read(a, &a_list), b_is_list = part_list_read(b, &b_list);
    if (a_is_list || b_is_list)
        return a_is_list && b_is_list && same_lists(with, &a_list, &b_list);
    if (part_has_relation(a) && part_has_relation(b))
        return same_relations(with, a, b);
    *compound = false;
    return false;
}

static bool same_expression(struct comparison *with, struct part a, struct part b)
{
    struct suffix a_suffix = {0}, b_suffix = {0};
    if (same_alternatives(with, a, b) || same_alternatives(with, b, a))
        return true;
    a = part_strip_suffix(part_strip_sides(a), &a_suffix);
    b = part_strip_suffix(part_strip_sides(part_strip_condition(b)), &b_suffix);
    if (part_has_relation(a) != part_has_relation(b)) {
        a = part_strip_suffix(part_strip_lhs(a, true), &a_suffix);
        b = part_strip_suffix(part_strip_lhs(b, false), &b_suffix);
    }
    if (units_differ(a_suffix.unit, b_suffix.unit))
        return false;
    if (same_tokens(a, b) || (is_empty_set(a) && is_empty_set(b)))
        return true;
    if (same_digits(a, b))
        return true;
    bool compound;
    bool equal = same_compound(with, a, b, &compound);
    if (compound)
        return equal || ((is_text(a) || is_text(b)) && same_words(a, b));
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
        if (part_is_sign(&formula->items[i], SIGN_PLUS_MINUS))
            return true;
    return false;
}

/* End of the list item that begins at `from`: at a separator outside brackets, or at the end of the enclosing set. */
static size_t item_end(const struct formula *formula, size_t from)
{
    int depth = 0;
    for (size_t i = from; i < formula->count; i++) {
        const struct math_token *token = &formula->items[i];
        depth += token->kind == MATH_OPEN;
        depth -= token->kind == MATH_CLOSE;
        if (depth < 0 || (depth == 0 && part_separates(token, PART_LIST)))
            return i;
    }
    return formula->count;
}

/* The token, or the upper or lower sign of a plus-minus or minus-plus. */
static struct math_token with_sign(const struct math_token *token, bool lower)
{
    struct math_token sign = *token;
    bool upper = part_is_sign(token, SIGN_PLUS_MINUS);
    if (upper || part_is_sign(token, SIGN_MINUS_PLUS))
        sign.sign = upper != lower ? '+' : '-';
    return sign;
}

/* Replaces each item of the list with a plus-minus sign by "item with the upper signs, item with the lower
 * signs". */
static void expand(struct formula *formula)
{
    struct math_token *items = xcalloc(2 * formula->count + 1 + formula->count, sizeof *items);
    size_t count = 0;
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
}

static enum err read(struct formula *formula, struct slice source)
{
    enum err err = formula_read(formula, source);
    if (!err && has_plus_minus(formula))
        expand(formula);
    return err;
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
        if (!*equal && with.is_undecided)
            err = ERR_BAD_VALUE;
    }
    formula_release(&first);
    formula_release(&second);
    return err;
}
