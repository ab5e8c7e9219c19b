/* The answer of `ipw optimize` as a result (core/result.h), and the saving of a setting in words.  The caller owns the
 * arguments and releases the result. */
#ifndef IPW_POWER_OPTIMIZE_RESULT_H
#define IPW_POWER_OPTIMIZE_RESULT_H

#include <stddef.h>

#include "power/clock_choice.h"

struct findings;
struct optimize_goal;
struct result;
struct text;

/* The best setting of each application, and one clock for all. */
struct optimize_result {
    const char *objective; /* "edp" */
    const struct optimize_goal *goal;
    const struct clock_choice *choices;
    size_t count;
    const struct clock_policy *policies;
    size_t policy_count;
    enum policy_rule rule;           /* of the policies */
    const struct findings *findings; /* NULL: not available */
    const char *source;              /* the model's file; NULL: measurements */
    const char *apply; /* command that applies the recommended setting; NULL: for its clock */
    const char *gpus;  /* UUIDs of the measured GPUs, comma-separated; NULL: unknown */
};

void optimize_result_fill(const struct optimize_result *from, struct result *out);

/* The saving of a recommended setting, which a difference that may be noise is not called: "threads=4 uses 50.0 ± 1.0 %
 * less energy per run than threads=1, in 70.0 % less time." */
void optimize_saving_sentence(const struct clock_choice *choice, const char *per, struct text *out);

#endif
