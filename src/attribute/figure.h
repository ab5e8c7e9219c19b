/* One channel over one window, as an energy figure.  Private to the ledger. */
#ifndef IPW_ATTRIBUTE_FIGURE_H
#define IPW_ATTRIBUTE_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/record.h"
#include "core/units.h"

struct sampler;

struct figure {
    size_t source, channel;
    struct energy energy; /* METHOD_NONE and a note when the channel is dead or covers nothing */
    double covered_s;
    double power_max; /* W */
};

void figure_take(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to,
                 struct figure *out);

/* Does a's figure serve better than b's? */
bool figure_better(const struct sampler *sampler, const struct figure *a, const struct figure *b);

#endif
