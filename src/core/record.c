#include "core/record.h"

#include <stddef.h>

#include "core/text.h"

const char *method_name(enum method method)
{
    switch (method) {
    case METHOD_COUNTER:
        return "counter";
    case METHOD_INTEGRAL:
        return "integral";
    case METHOD_ESTIMATED:
        return "estimated";
    case METHOD_NONE:
        break;
    }
    return NULL;
}

bool energy_is_measured(const struct energy *energy)
{
    return energy->method == METHOD_COUNTER || energy->method == METHOD_INTEGRAL;
}

struct energy energy_unknown(const char *note)
{
    struct energy energy = {
        .joules = UNKNOWN,
        .plus_minus = UNKNOWN,
        .statistical = UNKNOWN,
        .coverage = UNKNOWN,
        .idle_joules = UNKNOWN,
        .active_joules = UNKNOWN,
    };
    str_copy(energy.note, sizeof energy.note, note);
    return energy;
}
