#include "core/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRECISION_COUNT = 4 };
static const int PRECISIONS[PRECISION_COUNT] = {9, 15, 16, 17};

/* The plain way, for any number: printing and reading back, up to four times. */
static size_t by_printing(double value, char out[DECIMAL_SIZE])
{
    int length = 0;
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        length = snprintf(out, DECIMAL_SIZE, "%.*g", PRECISIONS[i], value);
        if (strtod(out, NULL) == value)
            break;
    }
    return (size_t)length;
}

/* The digits of a number, written to end before `end`; returns where they begin. */
static char *digits_before(char *end, uint64_t number)
{
    do
        *--end = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return end;
}

size_t decimal_from_integer(int64_t value, char out[DECIMAL_SIZE])
{
    char digits[24], *end = digits + sizeof digits;
    char *begin = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--begin = '-';
    size_t length = (size_t)(end - begin);
    memcpy(out, begin, length);
    out[length] = '\0';
    return length;
}

#ifdef __SIZEOF_INT128__

/* ---- the quick way ----
 *
 * A number is m x 2^e.  With k = P - 1 - (its decimal exponent), its P digits are m x 5^k x 2^(e+k),
 * rounded to a whole number; m has 53 bits and 5^27 has 63, so the product is exact in 128 bits, and so
 * is the answer to whether the rounded digits lie within half a unit of m, which is when they read
 * back as the same number.  A run writes nearly a hundred numbers a query: printing and reading back
 * was a third of all that it did. */

__extension__ typedef unsigned __int128 wide;

enum { MOST_POWER = 27 };

static const uint64_t FIVES[MOST_POWER + 1] = {
    UINT64_C(1),
    UINT64_C(5),
    UINT64_C(25),
    UINT64_C(125),
    UINT64_C(625),
    UINT64_C(3125),
    UINT64_C(15625),
    UINT64_C(78125),
    UINT64_C(390625),
    UINT64_C(1953125),
    UINT64_C(9765625),
    UINT64_C(48828125),
    UINT64_C(244140625),
    UINT64_C(1220703125),
    UINT64_C(6103515625),
    UINT64_C(30517578125),
    UINT64_C(152587890625),
    UINT64_C(762939453125),
    UINT64_C(3814697265625),
    UINT64_C(19073486328125),
    UINT64_C(95367431640625),
    UINT64_C(476837158203125),
    UINT64_C(2384185791015625),
    UINT64_C(11920928955078125),
    UINT64_C(59604644775390625),
    UINT64_C(298023223876953125),
    UINT64_C(1490116119384765625),
    UINT64_C(7450580596923828125),
};

static uint64_t ten_to(int power)
{
    return FIVES[power] << power;
}

struct binary {
    uint64_t m; /* 53 bits */
    int e;
};

/* The P digits of the number whose decimal exponent is x, as one whole number of P digits.  False when
 * that is beyond the arithmetic here; *same tells whether they read back as the number. */
static bool round_to(struct binary number, int precision, int *x, uint64_t *digits, bool *same)
{
    int k = precision - 1 - *x, shift = -(number.e + k);
    if (k < 0 || k > MOST_POWER || shift < 1 || shift > 100)
        return false;
    wide exact = (wide)number.m * FIVES[k], half = (wide)1 << (shift - 1);
    uint64_t whole = (uint64_t)(exact >> shift);
    wide rest = exact - ((wide)whole << shift);
    whole += rest > half || (rest == half && (whole & 1));
    wide rounded = (wide)whole << shift;
    *same = 2 * (rounded > exact ? rounded - exact : exact - rounded) < FIVES[k];
    if (whole == ten_to(precision)) { /* 9.99 became 10.0 */
        whole /= 10;
        ++*x;
    }
    *digits = whole;
    return whole >= ten_to(precision - 1) && whole < ten_to(precision);
}

/* As %g lays them out: a point among the digits, or an exponent where that would need many zeros. */
static size_t lay_out(bool negative, uint64_t number, int precision, int x, char *out)
{
    char digits[24], *to = out;
    while (number % 10 == 0)
        number /= 10;
    const char *from = digits_before(digits + sizeof digits, number);
    int count = (int)(digits + sizeof digits - from);
    if (negative)
        *to++ = '-';
    bool scientific = x < -4 || x >= precision;
    int before = scientific ? 1 : x + 1; /* digits before the point */
    if (before <= 0) {
        *to++ = '0';
    } else {
        for (int i = 0; i < before; i++)
            *to++ = i < count ? from[i] : '0';
    }
    if (count > before) {
        *to++ = '.';
        for (int i = before; i < 0; i++)
            *to++ = '0';
        for (int i = before > 0 ? before : 0; i < count; i++)
            *to++ = from[i];
    }
    *to = '\0';
    if (scientific)
        to += sprintf(to, "e%c%02d", x < 0 ? '-' : '+', abs(x));
    return (size_t)(to - out);
}

/* 0 when the number is not one for this way. */
static size_t by_arithmetic(double value, char out[DECIMAL_SIZE])
{
    int exponent;
    double size = fabs(value), fraction = frexp(size, &exponent);
    /* Smaller ones need higher powers; at a power of two numbers lie closer below than above. */
    if (size < 1e-10 || size >= 1e15 || fraction == 0.5)
        return 0;
    struct binary number = {(uint64_t)ldexp(fraction, 53), exponent - 53};
    int least = (int)floor(log10(size));
    for (size_t i = size < 1e9 ? 0 : 1; i < PRECISION_COUNT; i++) {
        int x = least;
        uint64_t digits;
        bool same;
        if (!round_to(number, PRECISIONS[i], &x, &digits, &same))
            return 0;
        if (same)
            return lay_out(value < 0, digits, PRECISIONS[i], x, out);
    }
    return 0;
}

#else

static size_t by_arithmetic(double value, char out[DECIMAL_SIZE])
{
    (void)value, (void)out;
    return 0;
}

#endif

size_t decimal_from_double(double value, char out[DECIMAL_SIZE])
{
    bool whole = fabs(value) < 1e9 && value == (double)(int64_t)value;
    if (whole && (value != 0 || !signbit(value)))
        return decimal_from_integer((int64_t)value, out);
    size_t length = whole || value == floor(value) ? 0 : by_arithmetic(value, out);
    return length ? length : by_printing(value, out);
}
