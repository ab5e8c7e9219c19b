/* The calculator: arithmetic as Python computes it, by a recursive-descent parser that evaluates as it goes.  Integers
 * are exact to 38 digits; a larger one becomes a double, and the result says that it was rounded.  Unlike in Python, ^
 * is also exponentiation, since models use it that way. */
#include <ctype.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "core/registry.h"
#include "core/slice.h"

enum { DEPTH_MAX = 100, ARGUMENTS_MAX = 16, FACTORIAL_MAX = 170, DIGITS_MAX = 40 };

typedef __int128 wide; /* NOLINT: exact integers of 38 digits */
#define WIDE_MAX ((wide)(~(unsigned __int128)0 >> 1))

struct value {
    bool is_integer;
    wide integer;
    double number;
};

struct parser {
    const char *at;
    unsigned depth;
    bool rounded; /* an integer became too large */
    char error[160];
};

static struct value from_double(double number)
{
    return (struct value){.number = number};
}

static struct value from_integer(wide integer)
{
    return (struct value){.is_integer = true, .integer = integer};
}

static double as_double(struct value value)
{
    return value.is_integer ? (double)value.integer : value.number;
}

/* Keeps the first error, which ends parsing. */
static struct value fail(struct parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);
static struct value fail(struct parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!parser->error[0])
        vsnprintf(parser->error, sizeof parser->error, format, arguments);
    va_end(arguments);
    parser->at += strlen(parser->at);
    return from_double(NAN);
}

static struct value check_finite(struct parser *parser, double number)
{
    return isfinite(number) ? from_double(number) : fail(parser, "the result is too large");
}

/* The result of an integer overflow, as a double. */
static struct value rounded(struct parser *parser, double number)
{
    parser->rounded = true;
    return check_finite(parser, number);
}

/* ---- operators ---- */

static struct value add(struct parser *parser, struct value a, struct value b, bool minus)
{
    wide sum;
    double other = minus ? -as_double(b) : as_double(b);
    if (!a.is_integer || !b.is_integer)
        return check_finite(parser, as_double(a) + other);
    bool over = minus ? __builtin_sub_overflow(a.integer, b.integer, &sum)
                      : __builtin_add_overflow(a.integer, b.integer, &sum);
    return over ? rounded(parser, as_double(a) + other) : from_integer(sum);
}

static struct value multiply(struct parser *parser, struct value a, struct value b)
{
    wide product;
    if (!a.is_integer || !b.is_integer)
        return check_finite(parser, as_double(a) * as_double(b));
    if (__builtin_mul_overflow(a.integer, b.integer, &product))
        return rounded(parser, as_double(a) * as_double(b));
    return from_integer(product);
}

static struct value divide(struct parser *parser, struct value a, struct value b)
{
    if (as_double(b) == 0)
        return fail(parser, "division by zero");
    return check_finite(parser, as_double(a) / as_double(b));
}

static struct value floor_divide(struct parser *parser, struct value a, struct value b,
                                 bool wants_remainder)
{
    double x = as_double(a), y = as_double(b);
    if (y == 0)
        return fail(parser, "division by zero");
    if (!a.is_integer || !b.is_integer) {
        double left = fmod(x, y), quotient = (x - left) / y;
        if (left != 0 && (left < 0) != (y < 0)) { /* the remainder has the sign of the divisor */
            left += y;
            quotient -= 1;
        }
        /* The difference may have been rounded: rounds the quotient to the nearest integer. */
        quotient = quotient == 0 ? copysign(0, x / y) : floor(quotient + 0.5);
        double remainder = left == 0 ? copysign(0, y) : left;
        return check_finite(parser, wants_remainder ? remainder : quotient);
    }
    if (b.integer == -1) /* the only quotient that can overflow */
        return wants_remainder ? from_integer(0) : add(parser, from_integer(0), a, true);
    wide quotient = a.integer / b.integer, left = a.integer % b.integer;
    if (left != 0 && (left < 0) != (b.integer < 0)) {
        quotient--;
        left += b.integer;
    }
    return from_integer(wants_remainder ? left : quotient);
}

static struct value power_of(struct parser *parser, struct value base, struct value exponent)
{
    double x = as_double(base), y = as_double(exponent);
    if (x == 0 && y < 0)
        return fail(parser, "division by zero: 0 to a negative power");
    if (x < 0 && y != floor(y))
        return fail(parser, "a negative number has no real power of %.17g", y);
    if (!base.is_integer || !exponent.is_integer || exponent.integer < 0)
        return check_finite(parser, pow(x, y));
    wide result = 1, square = base.integer;
    bool over = false;
    for (wide left = exponent.integer; left > 0 && !over; left >>= 1) {
        if (left & 1)
            over = __builtin_mul_overflow(result, square, &result);
        if (left > 1 && !over && __builtin_mul_overflow(square, square, &square))
            over = true; /* the remaining factors can only be larger */
    }
    return over ? rounded(parser, pow(x, y)) : from_integer(result);
}

/* ---- functions ---- */

static struct value to_integer(struct parser *parser, double number)
{
    if (!isfinite(number) || fabs(number) >= 1e38)
        return rounded(parser, number);
    return from_integer((wide)number);
}

/* Half to even, as Python rounds. */
static double round_even(double x)
{
    double whole = floor(x), part = x - whole;
    if (part > 0.5 || (part == 0.5 && fmod(whole, 2) != 0))
        whole += 1;
    return whole;
}

static struct value call_round(struct parser *parser, const struct value *given, size_t count)
{
    if (count == 1)
        return given[0].is_integer ? given[0] : to_integer(parser, round_even(given[0].number));
    if (!given[1].is_integer || given[1].integer < -300 || given[1].integer > 300)
        return fail(parser, "round: the second argument must be a number of digits");
    if (given[0].is_integer && given[1].integer >= 0)
        return given[0];
    int digits = (int)given[1].integer;
    double x = as_double(given[0]);
    if (digits >= 0) { /* the decimal nearest to the binary value, as printf finds it */
        char decimal[700];
        chars_format(decimal, "%.*f", digits, x);
        return from_double(strtod(decimal, NULL));
    }
    double scale = pow(10, -digits);
    double result = round_even(x / scale) * scale;
    return given[0].is_integer ? to_integer(parser, result) : from_double(result);
}

static struct value call_extreme(const struct value *given, size_t count, bool largest)
{
    struct value best = given[0];
    for (size_t i = 1; i < count; i++) {
        bool both = best.is_integer && given[i].is_integer;
        bool less = both ? given[i].integer < best.integer : as_double(given[i]) < as_double(best);
        bool more = both ? given[i].integer > best.integer : as_double(given[i]) > as_double(best);
        if (largest ? more : less)
            best = given[i];
    }
    return best;
}

static struct value call_factorial(struct parser *parser, struct value n)
{
    if (!n.is_integer || n.integer < 0)
        return fail(parser, "factorial: expected a non-negative integer");
    if (n.integer > FACTORIAL_MAX)
        return fail(parser, "factorial: expected at most %d", FACTORIAL_MAX);
    struct value product = from_integer(1);
    for (wide i = 2; i <= n.integer; i++)
        product = multiply(parser, product, from_integer(i));
    return product;
}

static struct value call_gcd(struct parser *parser, struct value a, struct value b, bool multiple)
{
    if (!a.is_integer || !b.is_integer)
        return fail(parser, "expected integers");
    wide x = a.integer < 0 ? -a.integer : a.integer, y = b.integer < 0 ? -b.integer : b.integer;
    if (multiple && (x == 0 || y == 0))
        return from_integer(0);
    wide p = x, q = y;
    while (q) {
        wide left = p % q;
        p = q;
        q = left;
    }
    if (!multiple)
        return from_integer(p);
    return multiply(parser, from_integer(x / p), from_integer(y));
}

static struct value call_log(struct parser *parser, const struct value *given, size_t count)
{
    double x = as_double(given[0]);
    double base = count > 1 ? as_double(given[1]) : 0;
    if (x <= 0 || (count > 1 && base <= 0))
        return fail(parser, "log: expected positive numbers");
    if (count > 1 && base == 1)
        return fail(parser, "division by zero: a logarithm of base 1");
    return check_finite(parser, count > 1 ? log(x) / log(base) : log(x));
}

static double to_degrees(double x)
{
    return x * (180 / acos(-1));
}

static double to_radians(double x)
{
    return x * (acos(-1) / 180);
}

/* Functions of one real number, undefined outside [least, most]. */
static const struct real_function {
    const char *name;
    double (*compute)(double x);
    double min, max;
} REAL[] = {
    {"sqrt", sqrt, 0, INFINITY},
    {"cbrt", cbrt, -INFINITY, INFINITY},
    {"exp", exp, -INFINITY, INFINITY},
    {"log2", log2, DBL_TRUE_MIN, INFINITY},
    {"log10", log10, DBL_TRUE_MIN, INFINITY},
    {"sin", sin, -INFINITY, INFINITY},
    {"cos", cos, -INFINITY, INFINITY},
    {"tan", tan, -INFINITY, INFINITY},
    {"asin", asin, -1, 1},
    {"acos", acos, -1, 1},
    {"atan", atan, -INFINITY, INFINITY},
    {"sinh", sinh, -INFINITY, INFINITY},
    {"cosh", cosh, -INFINITY, INFINITY},
    {"tanh", tanh, -INFINITY, INFINITY},
    {"degrees", to_degrees, -INFINITY, INFINITY},
    {"radians", to_radians, -INFINITY, INFINITY},
};
enum { REAL_COUNT = COUNT_OF(REAL) };

enum function {
    ABS,
    ROUND,
    FLOOR,
    CEIL,
    INT,
    FLOAT,
    MIN,
    MAX,
    SUM,
    POW,
    LOG,
    LN,
    ATAN2,
    HYPOT,
    FACTORIAL,
    GCD,
    LCM,
};

static const struct other_function {
    const char *name;
    size_t min, max; /* number of arguments */
} OTHER[] = {
    [ABS] = {"abs", 1, 1},     [ROUND] = {"round", 1, 2}, [FLOOR] = {"floor", 1, 1},
    [CEIL] = {"ceil", 1, 1},   [INT] = {"int", 1, 1},     [FLOAT] = {"float", 1, 1},
    [MIN] = {"min", 1, 16},    [MAX] = {"max", 1, 16},    [SUM] = {"sum", 1, 16},
    [POW] = {"pow", 2, 2},     [LOG] = {"log", 1, 2},     [LN] = {"ln", 1, 1},
    [ATAN2] = {"atan2", 2, 2}, [HYPOT] = {"hypot", 2, 2}, [FACTORIAL] = {"factorial", 1, 1},
    [GCD] = {"gcd", 2, 2},     [LCM] = {"lcm", 2, 2},
};
enum { OTHER_COUNT = COUNT_OF(OTHER) };

static struct value call_other(struct parser *parser, enum function function,
                               const struct value *given, size_t count)
{
    double x = as_double(given[0]);
    bool whole = given[0].is_integer;
    struct value total = from_integer(0);
    switch (function) {
    case ABS:
        if (whole)
            return given[0].integer < 0 ? add(parser, from_integer(0), given[0], true) : given[0];
        return from_double(fabs(x));
    case ROUND:
        return call_round(parser, given, count);
    case FLOOR:
        return whole ? given[0] : to_integer(parser, floor(x));
    case CEIL:
        return whole ? given[0] : to_integer(parser, ceil(x));
    case INT:
        return whole ? given[0] : to_integer(parser, trunc(x));
    case FLOAT:
        return from_double(x);
    case MIN:
    case MAX:
        return call_extreme(given, count, function == MAX);
    case SUM:
        for (size_t i = 0; i < count; i++)
            total = add(parser, total, given[i], false);
        return total;
    case POW:
        return power_of(parser, given[0], given[1]);
    case LOG:
    case LN:
        return call_log(parser, given, count);
    case ATAN2:
        return from_double(atan2(x, as_double(given[1])));
    case HYPOT:
        return check_finite(parser, hypot(x, as_double(given[1])));
    case FACTORIAL:
        return call_factorial(parser, given[0]);
    default:
        return call_gcd(parser, given[0], given[1], function == LCM);
    }
}

static struct value call_function(struct parser *parser, const char *name,
                                  const struct value *given, size_t count)
{
    for (size_t i = 0; i < REAL_COUNT; i++)
        if (str_equal(REAL[i].name, name)) {
            double x = as_double(given[0]);
            if (count != 1)
                return fail(parser, "%s takes 1 argument", name);
            if (!(x >= REAL[i].min && x <= REAL[i].max))
                return fail(parser, "%s is undefined for %.17g", name, x);
            return check_finite(parser, REAL[i].compute(x));
        }
    for (size_t i = 0; i < OTHER_COUNT; i++)
        if (str_equal(OTHER[i].name, name)) {
            if (count < OTHER[i].min || count > OTHER[i].max)
                return fail(parser, "%s takes %zu argument%s", name, OTHER[i].min,
                            OTHER[i].min == 1 ? "" : "s");
            return call_other(parser, (enum function)i, given, count);
        }
    const char *names[REAL_COUNT + OTHER_COUNT];
    struct error reason = {0};
    for (size_t i = 0; i < REAL_COUNT + OTHER_COUNT; i++)
        names[i] = i < REAL_COUNT ? REAL[i].name : OTHER[i - REAL_COUNT].name;
    registry_unknown("function", name, names, REAL_COUNT + OTHER_COUNT, ERR_USAGE, &reason);
    return fail(parser, "%s", reason.text);
}

/* ---- the grammar ---- */

/* Recursive; parser->depth limits the depth. */
/* NOLINTBEGIN(misc-no-recursion) */

static struct value sum(struct parser *parser);
static struct value unary(struct parser *parser);

static void skip_space(struct parser *parser)
{
    while (slice_is_space(*parser->at))
        parser->at++;
}

static bool accept_sign(struct parser *parser, const char *sign)
{
    skip_space(parser);
    bool there = str_starts(parser->at, sign);
    parser->at += there ? strlen(sign) : 0;
    return there;
}

static struct value fail_unexpected(struct parser *parser)
{
    if (!*parser->at)
        return fail(parser, "the expression ends too early");
    return fail(parser, "syntax error at '%.12s'", plain_text(parser->at).text);
}

/* 12, 1_000, 0.5, .5, 1e-3; an integer with too many digits is rounded. */
static struct value number(struct parser *parser)
{
    char digits[400];
    size_t length = 0;
    bool whole = true, over = false;
    wide integer = 0;
    const char *at = parser->at;
    for (; isalnum((unsigned char)*at) || *at == '.' || *at == '_' ||
           (strchr("+-", *at) && *at && length && strchr("eE", digits[length - 1]));
         at++) {
        if (*at == '_' && isdigit((unsigned char)at[1]) && length)
            continue;
        if (length + 1 >= sizeof digits)
            return fail(parser, "a number is too long");
        digits[length++] = *at;
        whole = whole && isdigit((unsigned char)*at);
        if (whole)
            over = over || __builtin_mul_overflow(integer, 10, &integer) ||
                   __builtin_add_overflow(integer, *at - '0', &integer);
    }
    digits[length] = '\0';
    double value;
    if (strpbrk(digits, "xXnNiIpP") || parse_double(digits, &value))
        return fail(parser, "'%.40s' is not a number", plain_text(digits).text);
    parser->at = at;
    if (!whole)
        return from_double(value);
    return over ? rounded(parser, value) : from_integer(integer);
}

static struct value named(struct parser *parser)
{
    char name[32];
    size_t length = 0;
    while (isalnum((unsigned char)parser->at[length]) || parser->at[length] == '_')
        length++;
    if (!chars_format(name, "%.*s", (int)length, parser->at))
        return fail_unexpected(parser);
    parser->at += length;
    if (str_equal(name, "math") && *parser->at == '.' && isalpha((unsigned char)parser->at[1])) {
        parser->at++; /* as Python spells them */
        return named(parser);
    }
    if (!accept_sign(parser, "(")) {
        static const struct constant {
            const char *name;
            double value;
        } CONSTANTS[] = {{"pi", 3.14159265358979323846},
                         {"e", 2.71828182845904523536},
                         {"tau", 6.28318530717958647692}};
        const struct constant *found = STR_FIND(name, CONSTANTS);
        return found ? from_double(found->value) : fail(parser, "unknown name '%s'", name);
    }
    struct value given[ARGUMENTS_MAX] = {{0}};
    size_t count = 0;
    if (!accept_sign(parser, ")")) {
        do {
            if (count == ARGUMENTS_MAX)
                return fail(parser, "%s: more than %d arguments", name, ARGUMENTS_MAX);
            given[count++] = sum(parser);
        } while (accept_sign(parser, ","));
        if (!parser->error[0] && !accept_sign(parser, ")"))
            return fail_unexpected(parser);
    }
    return parser->error[0] ? from_double(NAN) : call_function(parser, name, given, count);
}

static struct value atom(struct parser *parser)
{
    skip_space(parser);
    if (accept_sign(parser, "(")) {
        struct value inside = sum(parser);
        return parser->error[0] || accept_sign(parser, ")") ? inside : fail_unexpected(parser);
    }
    if (isdigit((unsigned char)*parser->at) || *parser->at == '.')
        return number(parser);
    if (isalpha((unsigned char)*parser->at))
        return named(parser);
    return fail_unexpected(parser);
}

/* -2 ** 2 is -4, 2 ** -1 is 0.5, and 2 ** 3 ** 2 is right-associative. */
static struct value power(struct parser *parser)
{
    struct value base = atom(parser);
    if (!accept_sign(parser, "**") && !accept_sign(parser, "^"))
        return base;
    struct value exponent = unary(parser);
    return parser->error[0] ? base : power_of(parser, base, exponent);
}

static struct value unary(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX)
        return fail(parser, "nested too deeply");
    bool minus = accept_sign(parser, "-") || accept_sign(parser, "\xE2\x88\x92"); /* U+2212 */
    struct value value;
    if (minus || accept_sign(parser, "+")) {
        value = unary(parser);
        if (minus && !parser->error[0])
            value = value.is_integer ? add(parser, from_integer(0), value, true)
                                     : from_double(-value.number);
    } else {
        value = power(parser);
    }
    parser->depth--;
    return value;
}

static struct value product(struct parser *parser)
{
    struct value value = unary(parser);
    while (!parser->error[0]) {
        if (accept_sign(parser, "*") || accept_sign(parser, "\xC3\x97")) /* U+00D7 */
            value = multiply(parser, value, unary(parser));
        else if (accept_sign(parser, "//"))
            value = floor_divide(parser, value, unary(parser), false);
        else if (accept_sign(parser, "/") || accept_sign(parser, "\xC3\xB7")) /* U+00F7 */
            value = divide(parser, value, unary(parser));
        else if (accept_sign(parser, "%"))
            value = floor_divide(parser, value, unary(parser), true);
        else
            break;
    }
    return value;
}

static struct value sum(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX)
        return fail(parser, "nested too deeply");
    struct value value = product(parser);
    while (!parser->error[0]) {
        if (accept_sign(parser, "+"))
            value = add(parser, value, product(parser), false);
        else if (accept_sign(parser, "-") || accept_sign(parser, "\xE2\x88\x92"))
            value = add(parser, value, product(parser), true);
        else
            break;
    }
    parser->depth--;
    return value;
}
/* NOLINTEND(misc-no-recursion) */

/* ---- the tool ---- */

static void add_integer(struct text *out, wide integer)
{
    char digits[DIGITS_MAX + 2], *at = digits + sizeof digits - 1;
    *at = '\0';
    unsigned __int128 left = integer < 0 ? -(unsigned __int128)integer : (unsigned __int128)integer;
    do
        *--at = (char)('0' + (int)(left % 10));
    while (left /= 10);
    text_addf(out, "%s%s", integer < 0 ? "-" : "", at);
}

static enum err calculate(const struct tool_request *call, struct tool_result *out,
                          struct error *why)
{
    (void)why;
    struct parser parser = {.at = call->texts[0]};
    struct value value = sum(&parser);
    skip_space(&parser);
    if (!parser.error[0] && *parser.at)
        fail_unexpected(&parser);
    if (parser.error[0])
        return tool_fail(out, "%s", parser.error);
    if (value.is_integer)
        add_integer(&out->output, value.integer);
    else
        text_add_number(&out->output, value.number);
    if (parser.rounded)
        text_add(&out->output, " (rounded: more than 38 digits)");
    return ERR_OK;
}

const struct tool_driver tool_calculator = {
    .name = "calculator",
    .summary = "evaluates arithmetic expressions, with Python's operators and math functions",
    .spec = {"calculator",
             "Evaluate an arithmetic expression: + - * / // % ** and parentheses; sqrt, log, exp, "
             "sin, cos, tan, abs, round, floor, ceil, min, max, factorial, gcd, lcm; pi and e.",
             "{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":\"string\","
             "\"description\":\"for example (17 + 4) * 2\"}},\"required\":[\"expression\"]}",
             false,
             {"expression"}},
    .call = calculate,
};
