/* One channel over one window, as an energy figure.  Private to the ledger. */
#ifndef IPW_ATTRIBUTE_FIGURE_H
#define IPW_ATTRIBUTE_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/record.h"
#include "core/units.h"

struct sampler;
struct sensor_channel;

struct figure {
    size_t source, channel;
    struct energy energy; /* METHOD_NONE and a note when the channel is dead or covers nothing */
    double covered_s;
    double power_max; /* W */
};

void figure_take(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to,
                 struct figure *out);

/* The channel it is of. */
const struct sensor_channel *figure_row(const struct sampler *sampler, const struct figure *figure);

/* Does it say anything; and is that a measurement?  NULL says nothing. */
bool figure_lives(const struct figure *figure);
bool figure_is_measured(const struct figure *figure);

/* Does a's figure serve better than b's? */
bool figure_better(const struct sampler *sampler, const struct figure *a, const struct figure *b);

#endif
