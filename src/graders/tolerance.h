/* How far two numbers may be apart and still be the same answer.  Plain data; nothing is owned. */
#ifndef IPW_GRADERS_TOLERANCE_H
#define IPW_GRADERS_TOLERANCE_H

#include <stdbool.h>

#include "core/err.h"

struct params;

struct tolerance {
    double relative, absolute;
    bool given; /* by the user; if not, two whole numbers are equal only when they are the same */
};

#define TOLERANCE_PARAMS                                                                           \
    {"rel", "SHARE", "largest relative difference (1e-6; two whole numbers must be the same)"},    \
        {"abs", "DIFFERENCE", "largest absolute difference that also passes (0)"}

/* The parameters "rel" and "abs". */
enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
    MUST_USE;

/* The difference is at most the larger of abs and rel times the expected value. */
bool tolerance_holds(const struct tolerance *tolerance, double expected, double value);

#endif
