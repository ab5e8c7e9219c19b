/* The energy of one channel over one window, and sums of these.  Private to the ledger and to sharing; the caller
 * owns every struct. */
#ifndef IPW_ATTRIBUTE_CHANNEL_ENERGY_H
#define IPW_ATTRIBUTE_CHANNEL_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/quantity.h"
#include "core/units.h"

struct channel_state;
struct sampler;
struct sensor;
struct sensor_channel;
struct sensor_driver;
struct window;

/* Updates in a window from which its edges no longer dominate the error. */
enum { ENERGY_CONFIDENT_UPDATES = 10 };

struct channel_energy {
    size_t source, channel;           /* indices in the sampler */
    const struct sensor_channel *row; /* owned by the sampler */
    struct energy energy; /* METHOD_NONE and a note when the channel is dead or covers nothing */
    double covered_s;
    double power_max; /* W */
};

void channel_energy_take(struct sampler *sampler, size_t source, size_t channel, nanos from,
                         nanos to, struct channel_energy *out);

/* The plain window of a channel, shaped by `shape` (from sensor_shape_channel). */
enum err channel_energy_window(struct sampler *sampler, size_t source, size_t channel, long shape,
                               nanos from, nanos to, struct window *out) MUST_USE;

enum method channel_energy_method(const struct sensor_channel *channel);

/* Adds a note if part of the window is not covered, with the reason if `state` (may be NULL) has one. */
void energy_note_coverage(struct energy *energy, const struct channel_state *state);

/* Whether its energy is known, and whether that is a measurement; false for NULL. */
bool channel_energy_is_known(const struct channel_energy *of);
bool channel_energy_is_measured(const struct channel_energy *of);

/* Whether a is the better of two measurements of the same device. */
bool channel_energy_is_better(const struct channel_energy *a, const struct channel_energy *b);

/* One term of a sum, and the kind of its sensor. */
struct energy_term {
    const struct energy *energy;
    const struct sensor_driver *driver;
    enum scope scope;
};

/* Adds up known energies: method and coverage of the weakest, statistical errors as the root sum of squares,
 * calibration errors of one kind of sensor linearly.  Without terms *out is unchanged. */
void energy_sum(const struct energy_term *terms, size_t count, struct energy *out);

#endif
