/* A recursive-descent evaluator that computes while it parses. */
#include "graders/formula.h"

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/hash.h"

/* Constants that C17 does not define. */
static const double PI = 3.14159265358979323846;
static const double EULER = 2.71828182845904523536;

enum { DEPTH_MAX = 60 };

/* The parser's position and state; `bad` after a syntax error. */
struct parser {
    const struct math_token *at, *end;
    unsigned point, depth;
    bool bad, variables, in_bars;
};

/* The grammar is recursive; parser->depth limits it to DEPTH_MAX. */
/* NOLINTBEGIN(misc-no-recursion) */

static double complex sum(struct parser *parser);
static double complex power(struct parser *parser);

static double complex fail(struct parser *parser)
{
    parser->bad = true;
    parser->at = parser->end;
    return NAN;
}

static bool is_sign(const struct parser *parser, char sign)
{
    return parser->at < parser->end && parser->at->kind == MATH_SIGN && parser->at->sign == sign;
}

static bool take_sign(struct parser *parser, char sign)
{
    bool there = is_sign(parser, sign);
    parser->at += there;
    return there;
}

static bool is_kind(const struct parser *parser, enum math_kind kind)
{
    return parser->at < parser->end && parser->at->kind == kind;
}

static bool is_name(const struct parser *parser, const char *name)
{
    return is_kind(parser, MATH_NAME) && slice_equal(parser->at->text, slice_of(name));
}

/* ---- atoms ---- */

static uint64_t mix(uint64_t hash, struct slice text)
{
    return hash_bytes(hash, text.start, text.length);
}

/* 0.5 to 2.5; at later points perhaps negative, smaller or larger. */
static double value_of_name(uint64_t hash, unsigned point)
{
    hash = (hash ^ point) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= hash >> 32;
    double value = 0.5 + 2.0 * (double)(hash >> 11) / 9007199254740992.0;
    if (point >= FORMULA_WIDE_POINT)
        value *= hash & 2 ? 0.2 : 3;
    return point >= FORMULA_SIGNED_POINT && (hash & 1) ? -value : value;
}

/* A variable with its index: x, x_1, a_{ij}.  The base of a number, 4210_5, is such an index. */
static double complex variable(struct parser *parser, uint64_t hash)
{
    parser->variables = true;
    if (!take_sign(parser, '_'))
        return value_of_name(hash, parser->point);
    hash = mix(hash, slice_of("_"));
    bool group = is_kind(parser, MATH_OPEN) && parser->at->sign == '{';
    parser->at += group;
    while (parser->at < parser->end && parser->at->kind != MATH_CLOSE) {
        const struct math_token *index = parser->at++;
        struct slice value = {(const char *)&index->value, sizeof index->value};
        hash = mix(hash, index->kind == MATH_NUMBER ? value : index->text); /* 10 is also ₁₀ */
        if (!group)
            break;
    }
    if (group && parser->at++ >= parser->end)
        return fail(parser);
    return value_of_name(hash, parser->point);
}

/* Brackets of any shape, and the expression inside. */
static double complex bracketed(struct parser *parser)
{
    char sign = parser->at->sign;
    parser->at++;
    bool bars = parser->in_bars;
    parser->in_bars = false;
    double complex value = sum(parser);
    parser->in_bars = bars;
    if (!is_kind(parser, MATH_CLOSE) || parser->at->sign != sign || strchr("SX", sign))
        return fail(parser);
    parser->at++;
    return sign == 'F' ? floor(creal(value)) : sign == 'C' ? ceil(creal(value)) : value;
}

static double complex bars(struct parser *parser)
{
    parser->at++;
    parser->in_bars = true;
    double complex value = sum(parser);
    parser->in_bars = false;
    return take_sign(parser, '|') ? cabs(value) : fail(parser);
}

/* The argument of a command: a group, or the next atom. */
static double complex operand(struct parser *parser)
{
    if (is_kind(parser, MATH_OPEN) && parser->at->sign == '{')
        return bracketed(parser);
    if (is_kind(parser, MATH_NUMBER))
        return parser->at++->value;
    if (is_kind(parser, MATH_NAME) || is_kind(parser, MATH_OPEN))
        return power(parser);
    return fail(parser);
}

static double complex raised(double complex base, double complex exponent)
{
    if (cimag(base) == 0 && cimag(exponent) == 0)
        return pow(creal(base), creal(exponent));
    return cpow(base, exponent);
}

/* Odd roots of negative numbers, which pow() does not compute.  With variables the square root of a negative number has
 * no value: the point is outside the domain. */
static double complex root(const struct parser *parser, double complex value, double degree)
{
    double real = creal(value);
    if (cimag(value) != 0)
        return cpow(value, 1 / degree);
    if (real < 0 && degree == floor(degree) && fmod(degree, 2) != 0)
        return -pow(-real, 1 / degree);
    if (real < 0 && degree == 2 && !parser->variables)
        return sqrt(-real) * _Complex_I;
    return degree == 2 ? sqrt(real) : pow(real, 1 / degree);
}

static double complex square_root(struct parser *parser)
{
    double degree = 2;
    parser->at++;
    if (is_kind(parser, MATH_OPEN) && parser->at->sign == '[')
        degree = creal(bracketed(parser));
    return root(parser, operand(parser), degree);
}

/* For a variable, which is not an integer here, it is the gamma function. */
static double factorial(const struct parser *parser, double n)
{
    if (!(n >= 0 && n <= 170) || (n != floor(n) && !parser->variables))
        return NAN;
    return n == floor(n) ? round(tgamma(n + 1)) : tgamma(n + 1);
}

/* ---- functions ---- */

static const struct function {
    const char *name;
    double (*of)(double);
    bool reciprocal;
} FUNCTIONS[] = {
    {"sin", sin, false},     {"cos", cos, false},     {"tan", tan, false},
    {"csc", sin, true},      {"sec", cos, true},      {"cot", tan, true},
    {"arcsin", asin, false}, {"arccos", acos, false}, {"arctan", atan, false},
    {"asin", asin, false},   {"acos", acos, false},   {"atan", atan, false},
    {"sinh", sinh, false},   {"cosh", cosh, false},   {"tanh", tanh, false},
    {"ln", log, false},      {"log", log10, false},   {"lg", log10, false},
    {"exp", exp, false},     {"abs", fabs, false},
};

static const struct function *function_at(const struct parser *parser)
{
    for (size_t i = 0; i < COUNT_OF(FUNCTIONS); i++)
        if (is_name(parser, FUNCTIONS[i].name))
            return &FUNCTIONS[i];
    return NULL;
}

/* "sin 2x" takes 2x; "sin(x) y" takes x. */
static double complex argument(struct parser *parser)
{
    double sign = 1;
    while (take_sign(parser, '-'))
        sign = -sign;
    if (is_kind(parser, MATH_OPEN))
        return sign * bracketed(parser);
    double complex value = sign * power(parser);
    while (!parser->bad && (is_kind(parser, MATH_NAME) && !function_at(parser)))
        value *= power(parser);
    return value;
}

static double inverse(const struct function *function, double x)
{
    return function->of == sin   ? asin(x)
           : function->of == cos ? acos(x)
           : function->of == tan ? atan(x)
                                 : NAN;
}

static double complex call(struct parser *parser, const struct function *function)
{
    parser->at++;
    double base = 0, exponent = 1;
    if (take_sign(parser, '_'))
        base = creal(operand(parser));
    if (take_sign(parser, '^')) {
        double sign = take_sign(parser, '-') ? -1 : 1;
        exponent = sign * creal(operand(parser));
    }
    double complex of = argument(parser);
    double x = creal(of);
    if (function->of == fabs)
        return cabs(of);
    if (cimag(of) != 0)
        return function->of == exp ? cexp(of) : NAN;
    if (exponent == -1)
        return inverse(function, x);
    double value = base > 0 ? log(x) / log(base) : function->of(x);
    return pow(function->reciprocal ? 1 / value : value, exponent);
}

/* ---- names ---- */

static double choose(const struct parser *parser, double n, double k)
{
    if (parser->variables && n >= 0 && k >= 0)
        return factorial(parser, n) / (factorial(parser, k) * tgamma(n - k + 1));
    if (!(n >= k && k >= 0 && n <= 1000 && n == floor(n) && k == floor(k)))
        return NAN;
    double ways = 1;
    for (int i = 1; i <= (int)k; i++)
        ways = ways * (n - k + i) / i;
    return round(ways);
}

static double complex constant(const struct parser *parser)
{
    if (is_name(parser, "inf") || is_name(parser, "oo") || is_name(parser, "infinity"))
        return INFINITY;
    if (is_name(parser, "i"))
        return _Complex_I;
    return is_name(parser, "pi") ? PI : is_name(parser, "e") ? EULER : 0;
}

static double complex named(struct parser *parser)
{
    const struct function *function = function_at(parser);
    if (function)
        return call(parser, function);
    if (is_name(parser, "sqrt"))
        return square_root(parser);
    bool fraction = is_name(parser, "frac");
    if (fraction || is_name(parser, "binom")) {
        parser->at++;
        double complex upper = operand(parser), lower = operand(parser);
        return fraction ? upper / lower : choose(parser, creal(upper), creal(lower));
    }
    bool indexed = parser->at + 1 < parser->end && parser->at[1].kind == MATH_SIGN &&
                   parser->at[1].sign == '_';
    double complex value = constant(parser);
    struct slice name = parser->at++->text;
    return value == 0 || indexed ? variable(parser, mix(HASH_START, name)) : value;
}

/* ---- numbers ---- */

static bool is_integer(const struct math_token *token)
{
    return token->kind == MATH_NUMBER && token->value == floor(token->value);
}

/* Tokens n, /, m from `at`. */
static bool is_plain_fraction(const struct parser *parser, const struct math_token *at)
{
    return parser->end - at >= 3 && is_integer(&at[0]) && at[1].kind == MATH_SIGN &&
           at[1].sign == '/' && is_integer(&at[2]);
}

/* Whether \frac{n}{m} or \frac nm with two integers is at `at`. */
static bool is_latex_fraction(const struct parser *parser, const struct math_token *at)
{
    unsigned integers = 0;
    if (at >= parser->end || at->kind != MATH_NAME || !slice_is(at->text, "frac"))
        return false;
    for (at++; at < parser->end && integers < 2; at++)
        if (is_integer(at))
            integers++;
        else if ((at->kind != MATH_OPEN && at->kind != MATH_CLOSE) || at->sign != '{')
            return false;
    return integers == 2 &&
           (at == parser->end || at[-2].kind != MATH_OPEN || at->kind == MATH_CLOSE);
}

/* A number, and the fraction of a mixed one: 1\frac{1}{2}, 1 1/2. */
static double complex number(struct parser *parser)
{
    const struct math_token *first = parser->at++;
    if (is_sign(parser, '_')) /* equal only to the same digits in the same base */
        return first->value * variable(parser, HASH_START);
    if (!is_integer(first))
        return first->value;
    if (is_latex_fraction(parser, parser->at))
        return first->value + named(parser);
    if (is_plain_fraction(parser, parser->at)) {
        double part = parser->at[0].value / parser->at[2].value;
        parser->at += 3;
        return first->value + part;
    }
    return first->value;
}

/* ---- operators ---- */

static double complex atom(struct parser *parser)
{
    if (parser->at >= parser->end || parser->depth >= DEPTH_MAX)
        return fail(parser);
    parser->depth++;
    double complex value = is_kind(parser, MATH_NUMBER) ? number(parser)
                           : is_kind(parser, MATH_NAME) ? named(parser)
                           : is_kind(parser, MATH_OPEN) ? bracketed(parser)
                           : is_sign(parser, '|')       ? bars(parser)
                                                        : fail(parser);
    parser->depth--;
    for (;;) {
        if (take_sign(parser, '!'))
            value = factorial(parser, creal(value));
        else if (take_sign(parser, '%'))
            value /= 100;
        else if (take_sign(parser, SIGN_DEGREE))
            value *= PI / 180;
        else
            return value;
    }
}

static double complex signed_power(struct parser *parser)
{
    if (parser->depth >= DEPTH_MAX)
        return fail(parser);
    parser->depth++;
    double complex value;
    if (take_sign(parser, '-'))
        value = -signed_power(parser);
    else if (take_sign(parser, '+'))
        value = signed_power(parser);
    else
        value = power(parser);
    parser->depth--;
    return value;
}

static double complex power(struct parser *parser)
{
    double complex base = atom(parser);
    return take_sign(parser, '^') ? raised(base, signed_power(parser)) : base;
}

/* Whether it is an implicit multiplication.  Two adjacent numbers do not multiply. */
static bool multiplies(const struct parser *parser)
{
    return is_kind(parser, MATH_NAME) || is_kind(parser, MATH_OPEN) ||
           (is_sign(parser, '|') && !parser->in_bars) ||
           (is_kind(parser, MATH_NUMBER) && parser->at[-1].kind == MATH_CLOSE);
}

static double complex product(struct parser *parser)
{
    double complex value = signed_power(parser);
    while (!parser->bad && parser->at < parser->end) {
        if (take_sign(parser, '*'))
            value *= signed_power(parser);
        else if (take_sign(parser, '/'))
            value /= signed_power(parser);
        else if (multiplies(parser))
            value *= power(parser);
        else
            break;
    }
    return value;
}

static double complex sum(struct parser *parser)
{
    double complex value = product(parser);
    while (!parser->bad && parser->at < parser->end) {
        if (take_sign(parser, '+'))
            value += product(parser);
        else if (take_sign(parser, '-'))
            value -= product(parser);
        else
            break;
    }
    return value;
}

/* NOLINTEND(misc-no-recursion) */

bool formula_value(const struct math_token *tokens, size_t count, unsigned point,
                   double complex *value, bool *has_variables)
{
    if (count == 0)
        return false;
    struct parser parser = {.at = tokens, .end = tokens + count, .point = point};
    double complex result = sum(&parser);
    bool whole = !parser.bad && parser.at == parser.end;
    *value = result;
    *has_variables = parser.variables;
    return whole;
}
