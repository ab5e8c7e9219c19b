/* One channel over one window, as an energy figure.  Private to the ledger and to sharing. */
#ifndef IPW_ATTRIBUTE_FIGURE_H
#define IPW_ATTRIBUTE_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"

struct sampler;
struct sensor;
struct sensor_channel;
struct window;

/* Ten sensor updates are what a window needs before its edges stop mattering. */
enum { FIGURE_CONFIDENT_UPDATES = 10 };

struct figure {
    size_t source, channel;
    struct energy energy; /* METHOD_NONE and a note when the channel is dead or covers nothing */
    double covered_s;
    double power_max; /* W */
};

void figure_take(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to,
                 struct figure *out);

/* The power channel that lays out the joules of a counter between its updates; -1 without one, and
 * for a channel that is no counter. */
long figure_shape(const struct sensor *sensor, size_t channel);

/* The bare window of a channel, laid out by `shape` (as figure_shape tells). */
enum err figure_window(struct sampler *sampler, size_t source, size_t channel, long shape,
                       nanos from, nanos to, struct window *out) MUST_USE;

enum method figure_method(const struct sensor_channel *channel);

/* Says in the note that part of the window is not covered, if that is so. */
void figure_note_coverage(struct energy *energy);

/* The channel it is of. */
const struct sensor_channel *figure_row(const struct sampler *sampler, const struct figure *figure);

/* Does it say anything; and is that a measurement?  NULL says nothing. */
bool figure_lives(const struct figure *figure);
bool figure_is_measured(const struct figure *figure);

/* Does a's figure serve better than b's? */
bool figure_better(const struct sampler *sampler, const struct figure *a, const struct figure *b);

#endif
