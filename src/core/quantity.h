/* Measured quantities with their units, and scopes (parts of the machine) with their containment.
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

/* Why a device runs below its requested clocks; drivers map the vendor's bits to these. */
enum throttle_bit {
    THROTTLE_POWER = 1 << 0,   /* power limit reached */
    THROTTLE_THERMAL = 1 << 1, /* too hot */
    THROTTLE_BRAKE = 1 << 2,   /* external power brake */
    THROTTLE_LIMIT = 1 << 3,   /* clocks limited by a setting */
    THROTTLE_SYNC = 1 << 4,    /* held back to match other devices */
    THROTTLE_OTHER = 1 << 5,
};

/* Size of a device name with its NUL: "gpu0", or for another host "node17.example.org:9860/gpu0". */
enum { DEVICE_NAME_SIZE = 64 };

const char *quantity_name(enum quantity quantity);
const char *quantity_unit(enum quantity quantity);

/* Whether it is energy, or power that can be integrated to energy. */
bool quantity_gives_joules(enum quantity quantity);

const char *scope_name(enum scope scope);

/* Whether `outer` is `inner` or one of its ancestors. */
bool scope_contains(enum scope outer, enum scope inner);

/* "power", "power thermal" ...; "" when no bit is set.  Writes into the caller's buffer. */
void throttle_words(unsigned bits, char *to, unsigned size);

#endif
