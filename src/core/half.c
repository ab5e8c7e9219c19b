#include "core/half.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    MANTISSA_BITS = 10,
    EXPONENT_MAX = 31, /* of infinities and NaN */
    BIAS = 15,
    SUBNORMAL_SHIFT = BIAS + MANTISSA_BITS - 1, /* a subnormal is its mantissa * 2^-24 */
};

float half_to_float(uint16_t half)
{
    int exponent = half >> MANTISSA_BITS & EXPONENT_MAX;
    int mantissa = half & ((1 << MANTISSA_BITS) - 1);
    float magnitude;
    if (exponent == EXPONENT_MAX)
        magnitude = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)mantissa, -SUBNORMAL_SHIFT);
    else
        magnitude = ldexpf((float)(mantissa | 1 << MANTISSA_BITS), exponent - BIAS - MANTISSA_BITS);
    return half >> 15 ? -magnitude : magnitude;
}

uint16_t half_from_float(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    float magnitude = fabsf(value);
    if (isnan(value))
        return sign | 0x7E00;
    if (magnitude < 0x1p-14f) /* subnormal; one that rounds up to 2^-14 has that number's bits */
        return sign | (uint16_t)nearbyintf(ldexpf(magnitude, SUBNORMAL_SHIFT));
    if (magnitude >=
        65520) /* halfway between the largest number, 65504, and the next power of two */
        return sign | EXPONENT_MAX << MANTISSA_BITS;
    int exponent = 0;
    float fraction = frexpf(magnitude, &exponent); /* 0.5 .. 1 */
    /* A mantissa that rounds up to the next power of two carries into the exponent. */
    uint16_t mantissa = (uint16_t)nearbyintf(ldexpf(fraction, MANTISSA_BITS + 1));
    return (uint16_t)(sign | (((exponent + BIAS - 2) << MANTISSA_BITS) + mantissa));
}
