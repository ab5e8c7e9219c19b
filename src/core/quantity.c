#include "core/quantity.h"

#include <stddef.h>
#include <string.h>

#include "core/text.h"

static const struct {
    const char *name;
    const char *unit;
} QUANTITIES[QTY_COUNT] = {
#define QUANTITY(constant, name, unit) [QTY_##constant] = {name, unit},
#include "core/quantity.def"
#undef QUANTITY
};

static const struct {
    const char *name;
    enum scope parent;
} SCOPES[SCOPE_COUNT] = {
#define SCOPE(constant, name, parent) [SCOPE_##constant] = {name, SCOPE_##parent},
#include "core/scope.def"
#undef SCOPE
};

const char *quantity_name(enum quantity quantity)
{
    return (unsigned)quantity < QTY_COUNT ? QUANTITIES[quantity].name : "unknown";
}

const char *quantity_unit(enum quantity quantity)
{
    return (unsigned)quantity < QTY_COUNT ? QUANTITIES[quantity].unit : "";
}

bool quantity_gives_joules(enum quantity quantity)
{
    return quantity == QTY_ENERGY || quantity == QTY_POWER;
}

const char *scope_name(enum scope scope)
{
    return (unsigned)scope < SCOPE_COUNT ? SCOPES[scope].name : "unknown";
}

bool scope_contains(enum scope outer, enum scope inner)
{
    if (outer == SCOPE_NONE)
        return false;
    while (inner != SCOPE_NONE && inner != outer)
        inner = SCOPES[inner].parent;
    return inner == outer;
}

void throttle_words(unsigned bits, char *to, unsigned size)
{
    static const struct {
        unsigned bit;
        const char *word;
    } WORDS[] = {
        {THROTTLE_POWER, "power"}, {THROTTLE_THERMAL, "thermal"}, {THROTTLE_BRAKE, "brake"},
        {THROTTLE_LIMIT, "limit"}, {THROTTLE_SYNC, "sync"},       {THROTTLE_OTHER, "other"},
    };
    to[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(WORDS); i++) {
        size_t used = strlen(to);
        if (bits & WORDS[i].bit)
            str_format(to + used, size - used, "%s%s", used ? " " : "", WORDS[i].word);
    }
}
