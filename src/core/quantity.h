/* The vocabulary of measured things: quantities with their units, scopes with their containment.
 * Plain enums and constant tables; nothing to own. */
#ifndef IPW_CORE_QUANTITY_H
#define IPW_CORE_QUANTITY_H

#include <stdbool.h>

enum quantity {
#define QUANTITY(constant, name, unit) QTY_##constant,
#include "core/quantity.def"
#undef QUANTITY
    QTY_COUNT
};

enum scope {
#define SCOPE(constant, name, parent) SCOPE_##constant,
#include "core/scope.def"
#undef SCOPE
    SCOPE_COUNT
};

/* Why a device runs below what was asked of it; vendors' own bits are mapped to these. */
enum throttle_bit {
    THROTTLE_POWER = 1 << 0,   /* power limit reached */
    THROTTLE_THERMAL = 1 << 1, /* too hot */
    THROTTLE_BRAKE = 1 << 2,   /* external power brake */
    THROTTLE_LIMIT = 1 << 3,   /* clocks held down by a setting */
    THROTTLE_SYNC = 1 << 4,    /* held back to match other devices */
    THROTTLE_OTHER = 1 << 5,
};

const char *quantity_name(enum quantity quantity);
const char *quantity_unit(enum quantity quantity);

/* Do joules come from it: a counter of energy, or power to be integrated? */
bool quantity_gives_joules(enum quantity quantity);

const char *scope_name(enum scope scope);

/* Is `outer` the same as `inner` or one of its ancestors? */
bool scope_contains(enum scope outer, enum scope inner);

/* "power", "power thermal" ...; "" when no bit is set.  Writes into the caller's buffer. */
void throttle_words(unsigned bits, char *to, unsigned size);

#endif
