/* The machine's total: a sum of devices in which nothing stands twice.  Private to the ledger and to
 * sharing. */
#ifndef IPW_ATTRIBUTE_TOTAL_H
#define IPW_ATTRIBUTE_TOTAL_H

#include <stddef.h>

#include "core/quantity.h"

struct energy;
struct figure;
struct ledger;
struct sampler;
struct sensor_driver;

/* One figure of a sum, and of what kind its sensor is. */
struct total_part {
    const struct energy *energy;
    const struct sensor_driver *driver;
    enum scope scope;
};

/* Adds figures up, each of which says something: method and coverage of the weakest, statistical
 * errors as the root sum of squares, calibrations of one kind linearly.  Without any, *out keeps
 * what it says. */
void total_add_up(const struct total_part *parts, size_t count, struct energy *out);

/* Decides which devices are counted and adds them up; main_of has each device's figure, or NULL, and
 * `room` is for as many parts as there are devices. */
void total_take(const struct sampler *sampler, const struct figure *const *main_of,
                struct total_part *room, struct ledger *ledger);

#endif
