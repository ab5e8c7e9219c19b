/* Numbers with the fewest digits that round-trip.  A number is mantissa x 2^exponent, so that its product with a power of
 * ten is exact in 128 bits, for all but very large and small numbers: rounding that product to 15, 16 or 17 digits, and
 * comparing what was rounded off with half the distance to the next number, takes a few integer operations.  printf and
 * strtod, which do the same with numbers of any size, took most of the time of a journal's line. */
#include "core/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MAX = 40,   /* bytes of a number, with its NUL */
    DIGITS = 17,       /* always enough */
    DIGITS_MIN = 15,   /* every decimal number of so many digits survives being read as a double */
    MANTISSA = 52,     /* bits, without the implicit one */
    EXPONENT_MIN = -6, /* of the smallest numbers whose products fit in 128 bits */
};
#define LEAST 1e-6 /* as a double, it is a little smaller than 10^EXPONENT_MIN */
#define MOST  0x1p53

__extension__ typedef unsigned __int128 wide;

static const uint64_t TENS[] = {1,
                                10,
                                100,
                                1000,
                                10000,
                                100000,
                                1000000,
                                10000000,
                                100000000,
                                1000000000,
                                10000000000,
                                100000000000,
                                1000000000000,
                                10000000000000,
                                100000000000000,
                                1000000000000000,
                                10000000000000000,
                                100000000000000000};

/* A positive number below MOST, scaled so that its integer part has 17 digits. */
struct scaled {
    uint64_t mantissa;
    int exponent;   /* of ten, of the first digit */
    uint64_t whole; /* the integer part, 17 digits or, rounded up, 10^17 */
    wide rest;      /* the fraction, as a part of 2^shift */
    unsigned shift;
    wide step; /* from this number to the next, in the same unit */
};

static void scale_to(struct scaled *out, int exponent)
{
    int tens = DIGITS - 1 - exponent;
    wide low = TENS[tens / 2], high = TENS[tens - tens / 2], product = out->mantissa * low * high;
    out->exponent = exponent;
    out->whole = (uint64_t)(product >> out->shift);
    out->rest = product - ((wide)out->whole << out->shift);
    out->step = low * high;
}

static void scale(double value, struct scaled *out)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int power = (int)(bits >> MANTISSA) - 1023; /* value < 2^(power + 1) */
    out->mantissa = (bits & (((uint64_t)1 << MANTISSA) - 1)) | (uint64_t)1 << MANTISSA;
    out->shift = (unsigned)(MANTISSA - power);
    /* 1233 / 4096 is a little less than log10(2): the estimate is the exponent, or less by one. */
    int exponent = (power * 1233 - (power < 0 ? 4095 : 0)) / 4096;
    exponent = exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
    scale_to(out, exponent);
    if (out->whole >= TENS[DIGITS])
        scale_to(out, exponent + 1);
}

/* Rounds to so many digits, half to even as printf does.  Whether strtod reads them as the same number. */
static bool round_to(const struct scaled *scaled, int precision, uint64_t *digits)
{
    uint64_t unit = TENS[DIGITS - precision], cut = scaled->whole % unit;
    *digits = scaled->whole / unit;
    wide away = ((wide)cut << scaled->shift) + scaled->rest, whole = (wide)unit << scaled->shift;
    bool is_up = 2 * away > whole || (2 * away == whole && (*digits & 1));
    if (is_up) {
        away = whole - away;
        ++*digits;
    }
    /* The next number below a power of two is only half as far away. */
    bool is_narrow = !is_up && scaled->mantissa == (uint64_t)1 << MANTISSA;
    wide reach = is_narrow ? 4 * away : 2 * away;
    return reach < scaled->step || (reach == scaled->step && !(scaled->mantissa & 1));
}

/* Writes the last `count` digits of a number. */
static void put_digits(uint64_t number, size_t count, char *to)
{
    while (count) {
        to[--count] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* Lays digits out as "%.*g" does: the first one counts 10^exponent.  Returns the end. */
static char *lay_out(char *to, uint64_t digits, int precision, int exponent)
{
    if (digits == TENS[precision]) { /* 9.99 was rounded to 10 */
        digits /= 10;
        exponent++;
    }
    size_t count = (size_t)precision;
    for (; digits % 10 == 0; digits /= 10)
        count--;
    bool is_scientific = exponent < -4 || exponent >= precision;
    size_t before = is_scientific || exponent < 0 ? 1 : (size_t)exponent + 1;
    if (!is_scientific && exponent < 0) {
        size_t zeros = (size_t)-exponent;
        memcpy(to, "0.000", zeros + 1);
        put_digits(digits, count, to + zeros + 1);
        to += zeros + 1 + count;
    } else if (count <= before) {
        put_digits(digits, count, to);
        memset(to + count, '0', before - count);
        to += before;
    } else {
        put_digits(digits, count, to + 1);
        memmove(to, to + 1, before);
        to[before] = '.';
        to += count + 1;
    }
    if (is_scientific) {
        *to++ = 'e';
        *to++ = exponent < 0 ? '-' : '+';
        put_digits((uint64_t)abs(exponent), 2, to);
        to += 2;
    }
    return to;
}

/* Numbers that do not fit, and 0. */
static void add_any(struct text *text, double value)
{
    char number[NUMBER_MAX];
    for (int precision = DIGITS_MIN; precision <= DIGITS; precision++) {
        snprintf(number, sizeof number, "%.*g", precision, value);
        if (precision == DIGITS || strtod(number, NULL) == value)
            break;
    }
    text_add(text, number);
}

void text_add_number(struct text *text, double value)
{
    struct scaled scaled;
    uint64_t digits;
    int precision = DIGITS_MIN;
    char *to = text_space(text, NUMBER_MAX);
    if (!to)
        return;
    if (fabs(value) <= LEAST || fabs(value) >= MOST) {
        add_any(text, value);
        return;
    }
    if (value < 0)
        *to++ = '-';
    scale(fabs(value), &scaled);
    while (!round_to(&scaled, precision, &digits) && precision < DIGITS)
        precision++;
    text_extend(text, lay_out(to, digits, precision, scaled.exponent));
}
