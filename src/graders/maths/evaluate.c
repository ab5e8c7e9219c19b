#include "graders/maths/evaluate.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/hash.h"

/* Constants that C17 does not name. */
static const double PI = 3.14159265358979323846;
static const double EULER = 2.71828182845904523536;

enum { DEPTH_MAX = 60 };

/* A walk over the tokens that computes as it goes; `bad` once it met what is no expression. */
struct walk {
    const struct math_token *at, *end;
    unsigned point, depth;
    bool bad, variables, in_bars;
};

/* A grammar calls itself; walk->depth stops it at DEPTH_MAX. */
/* NOLINTBEGIN(misc-no-recursion) */

static double sum(struct walk *walk);
static double power(struct walk *walk);

static double give_up(struct walk *walk)
{
    walk->bad = true;
    walk->at = walk->end;
    return NAN;
}

static bool is_sign(const struct walk *walk, char sign)
{
    return walk->at < walk->end && walk->at->kind == MATH_SIGN && walk->at->sign == sign;
}

static bool take_sign(struct walk *walk, char sign)
{
    bool there = is_sign(walk, sign);
    walk->at += there;
    return there;
}

static bool is_kind(const struct walk *walk, enum math_kind kind)
{
    return walk->at < walk->end && walk->at->kind == kind;
}

static bool is_name(const struct walk *walk, const char *name)
{
    return is_kind(walk, MATH_NAME) && slice_equal(walk->at->text, slice_of(name));
}

/* ---- atoms ---- */

static uint64_t mix(uint64_t hash, struct slice text)
{
    return hash_bytes(hash, text.start, text.length);
}

/* 0.5 to 2.5, in the later points perhaps below zero. */
static double value_of_name(uint64_t hash, unsigned point)
{
    hash = (hash ^ point) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= hash >> 32;
    double value = 0.5 + 2.0 * (double)(hash >> 11) / 9007199254740992.0;
    return point >= EVALUATE_SIGNED_POINT && (hash & 1) ? -value : value;
}

/* A variable with its index: x, x_1, a_{ij}. */
static double variable(struct walk *walk)
{
    uint64_t hash = mix(HASH_START, walk->at++->text);
    walk->variables = true;
    if (!take_sign(walk, '_'))
        return value_of_name(hash, walk->point);
    hash = mix(hash, slice_of("_"));
    bool group = is_kind(walk, MATH_OPEN) && walk->at->sign == '{';
    walk->at += group;
    while (walk->at < walk->end && walk->at->kind != MATH_CLOSE) {
        hash = mix(hash, walk->at++->text);
        if (!group)
            break;
    }
    if (group && walk->at++ >= walk->end)
        return give_up(walk);
    return value_of_name(hash, walk->point);
}

/* Brackets of any shape, and what stands in them. */
static double bracketed(struct walk *walk)
{
    char sign = walk->at->sign;
    walk->at++;
    bool bars = walk->in_bars;
    walk->in_bars = false;
    double value = sum(walk);
    walk->in_bars = bars;
    if (!is_kind(walk, MATH_CLOSE) || walk->at->sign != sign || strchr("SX", sign))
        return give_up(walk);
    walk->at++;
    return sign == 'F' ? floor(value) : sign == 'C' ? ceil(value) : value;
}

static double bars(struct walk *walk)
{
    walk->at++;
    walk->in_bars = true;
    double value = sum(walk);
    walk->in_bars = false;
    return take_sign(walk, '|') ? fabs(value) : give_up(walk);
}

/* What a command takes: a group, or the next atom. */
static double operand(struct walk *walk)
{
    if (is_kind(walk, MATH_OPEN) && walk->at->sign == '{')
        return bracketed(walk);
    if (is_kind(walk, MATH_NUMBER))
        return walk->at++->value;
    if (is_kind(walk, MATH_NAME) || is_kind(walk, MATH_OPEN))
        return power(walk);
    return give_up(walk);
}

/* A negative number has odd roots, which pow() denies. */
static double root(double value, double degree)
{
    if (value < 0 && degree == floor(degree) && fmod(degree, 2) != 0)
        return -pow(-value, 1 / degree);
    return pow(value, 1 / degree);
}

static double square_root(struct walk *walk)
{
    double degree = 2;
    walk->at++;
    if (is_kind(walk, MATH_OPEN) && walk->at->sign == '[')
        degree = bracketed(walk);
    double value = operand(walk);
    return degree == 2 ? sqrt(value) : root(value, degree);
}

static double factorial(double n)
{
    return n >= 0 && n == floor(n) && n <= 170 ? round(tgamma(n + 1)) : NAN;
}

/* ---- functions ---- */

static double cotangent(double x)
{
    return 1 / tan(x);
}

static double secant(double x)
{
    return 1 / cos(x);
}

static double cosecant(double x)
{
    return 1 / sin(x);
}

static const struct function {
    const char *name;
    double (*of)(double);
} FUNCTIONS[] = {
    {"sin", sin},      {"cos", cos},     {"tan", tan},     {"cot", cotangent}, {"sec", secant},
    {"csc", cosecant}, {"arcsin", asin}, {"arccos", acos}, {"arctan", atan},   {"asin", asin},
    {"acos", acos},    {"atan", atan},   {"sinh", sinh},   {"cosh", cosh},     {"tanh", tanh},
    {"ln", log},       {"log", log10},   {"lg", log10},    {"exp", exp},       {"abs", fabs},
};

static const struct function *function_at(const struct walk *walk)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (is_name(walk, FUNCTIONS[i].name))
            return &FUNCTIONS[i];
    return NULL;
}

/* "sin 2x" takes 2x; "sin(x) y" takes x. */
static double argument(struct walk *walk)
{
    double sign = 1;
    while (take_sign(walk, '-'))
        sign = -sign;
    if (is_kind(walk, MATH_OPEN))
        return sign * bracketed(walk);
    double value = sign * power(walk);
    while (!walk->bad && (is_kind(walk, MATH_NAME) && !function_at(walk)))
        value *= power(walk);
    return value;
}

static double inverse(const struct function *function, double x)
{
    return function->of == sin   ? asin(x)
           : function->of == cos ? acos(x)
           : function->of == tan ? atan(x)
                                 : NAN;
}

static double call(struct walk *walk, const struct function *function)
{
    walk->at++;
    double base = 0, exponent = 1;
    if (take_sign(walk, '_'))
        base = operand(walk);
    if (take_sign(walk, '^')) {
        bool negative = take_sign(walk, '-');
        exponent = negative ? -operand(walk) : operand(walk);
    }
    double x = argument(walk);
    if (exponent == -1)
        return inverse(function, x);
    double value = base > 0 ? log(x) / log(base) : function->of(x);
    return exponent == 1 ? value : pow(value, exponent);
}

/* ---- names ---- */

static double choose(double n, double k)
{
    if (!(n >= k && k >= 0 && n <= 1000 && n == floor(n) && k == floor(k)))
        return NAN;
    double ways = 1;
    for (int i = 1; i <= (int)k; i++)
        ways = ways * (n - k + i) / i;
    return round(ways);
}

static double named(struct walk *walk)
{
    const struct function *function = function_at(walk);
    if (function)
        return call(walk, function);
    if (is_name(walk, "sqrt"))
        return square_root(walk);
    bool fraction = is_name(walk, "frac");
    if (fraction || is_name(walk, "binom")) {
        walk->at++;
        double over = operand(walk), under = operand(walk);
        return fraction ? over / under : choose(over, under);
    }
    bool indexed =
        walk->at + 1 < walk->end && walk->at[1].kind == MATH_SIGN && walk->at[1].sign == '_';
    double constant = is_name(walk, "pi")  ? PI
                      : is_name(walk, "e") ? EULER
                      : is_name(walk, "inf") || is_name(walk, "infinity") || is_name(walk, "oo")
                          ? INFINITY
                          : 0;
    if (constant == 0 || indexed)
        return variable(walk);
    walk->at++;
    return constant;
}

/* ---- numbers ---- */

static bool is_whole(const struct math_token *token)
{
    return token->kind == MATH_NUMBER && token->value == floor(token->value);
}

/* Tokens n, /, m from `at`. */
static bool is_plain_fraction(const struct walk *walk, const struct math_token *at)
{
    return walk->end - at >= 3 && is_whole(&at[0]) && at[1].kind == MATH_SIGN &&
           at[1].sign == '/' && is_whole(&at[2]);
}

/* \frac{n}{m} or \frac nm of two whole numbers, from `at`; 0 when it is none, else its length. */
static size_t latex_fraction(const struct walk *walk, const struct math_token *at)
{
    if (at >= walk->end || at->kind != MATH_NAME || !slice_equal(at->text, slice_of("frac")))
        return 0;
    size_t length = 1;
    for (int part = 0; part < 2; part++) {
        size_t left = (size_t)(walk->end - at);
        bool group = length < left && at[length].kind == MATH_OPEN && at[length].sign == '{';
        length += group;
        if (length >= left || !is_whole(&at[length]))
            return 0;
        length++;
        if (group && (length >= left || at[length].kind != MATH_CLOSE))
            return 0;
        length += group;
    }
    return length;
}

/* A number, and the fraction of a mixed one: 1\frac{1}{2}, 1 1/2. */
static double number(struct walk *walk)
{
    const struct math_token *first = walk->at++;
    if (is_sign(walk, '_'))
        return give_up(walk); /* a number in another base */
    if (!is_whole(first))
        return first->value;
    if (latex_fraction(walk, walk->at))
        return first->value + named(walk);
    if (is_plain_fraction(walk, walk->at)) {
        double part = walk->at[0].value / walk->at[2].value;
        walk->at += 3;
        return first->value + part;
    }
    return first->value;
}

/* ---- operators ---- */

static double atom(struct walk *walk)
{
    if (walk->at >= walk->end || walk->depth >= DEPTH_MAX)
        return give_up(walk);
    walk->depth++;
    double value = is_kind(walk, MATH_NUMBER) ? number(walk)
                   : is_kind(walk, MATH_NAME) ? named(walk)
                   : is_kind(walk, MATH_OPEN) ? bracketed(walk)
                   : is_sign(walk, '|')       ? bars(walk)
                                              : give_up(walk);
    walk->depth--;
    for (;;) {
        if (take_sign(walk, '!'))
            value = factorial(value);
        else if (take_sign(walk, '%'))
            value /= 100;
        else if (take_sign(walk, SIGN_DEGREE))
            value *= PI / 180;
        else
            return value;
    }
}

static double signed_power(struct walk *walk)
{
    if (walk->depth >= DEPTH_MAX)
        return give_up(walk);
    walk->depth++;
    double value;
    if (take_sign(walk, '-'))
        value = -signed_power(walk);
    else if (take_sign(walk, '+'))
        value = signed_power(walk);
    else
        value = power(walk);
    walk->depth--;
    return value;
}

static double power(struct walk *walk)
{
    double base = atom(walk);
    return take_sign(walk, '^') ? pow(base, signed_power(walk)) : base;
}

/* Does what follows multiply without a sign?  Two numbers side by side do not. */
static bool multiplies(const struct walk *walk)
{
    return is_kind(walk, MATH_NAME) || is_kind(walk, MATH_OPEN) ||
           (is_sign(walk, '|') && !walk->in_bars) ||
           (is_kind(walk, MATH_NUMBER) && walk->at[-1].kind == MATH_CLOSE);
}

static double product(struct walk *walk)
{
    double value = signed_power(walk);
    while (!walk->bad && walk->at < walk->end) {
        if (take_sign(walk, '*'))
            value *= signed_power(walk);
        else if (take_sign(walk, '/'))
            value /= signed_power(walk);
        else if (multiplies(walk))
            value *= power(walk);
        else
            break;
    }
    return value;
}

static double sum(struct walk *walk)
{
    double value = product(walk);
    while (!walk->bad && walk->at < walk->end) {
        if (take_sign(walk, '+'))
            value += product(walk);
        else if (take_sign(walk, '-'))
            value -= product(walk);
        else
            break;
    }
    return value;
}

/* NOLINTEND(misc-no-recursion) */

bool evaluate(const struct math_token *tokens, size_t count, unsigned point, double *value,
              bool *has_variables)
{
    struct walk walk = {.at = tokens, .end = tokens + count, .point = point};
    double result = sum(&walk);
    bool whole = !walk.bad && count > 0 && walk.at == walk.end;
    *value = result;
    *has_variables = walk.variables;
    return whole;
}
