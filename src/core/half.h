/* 16-bit floating-point numbers (IEEE 754 binary16), which C has no portable type for, by their bits. */
#ifndef IPW_CORE_HALF_H
#define IPW_CORE_HALF_H

#include <stdint.h>

float half_to_float(uint16_t half);
/* Rounded to nearest, ties to even; what is too large becomes infinite. */
uint16_t half_from_float(float value);

#endif
