#include "core/knob.h"

#include <ctype.h>
#include <stddef.h>

static const struct knob KNOBS[KNOB_COUNT] = {
#define KNOB(constant, ...) [KNOB_##constant] = {__VA_ARGS__},
#include "core/knob.def"
#undef KNOB
};

const struct knob *knob_of(enum gpu_knob knob)
{
    return &KNOBS[knob];
}

static bool equals_name(const char *name, const char *known)
{
    size_t i = 0;
    while (name[i] &&
           (tolower((unsigned char)name[i]) == known[i] || (name[i] == '_' && known[i] == '-')))
        i++;
    return i > 0 && !name[i] && !known[i];
}

enum gpu_knob knob_named(const char *name)
{
    enum gpu_knob knob = 0;
    while (knob < KNOB_COUNT && !equals_name(name, KNOBS[knob].name) &&
           !equals_name(name, KNOBS[knob].other_name))
        knob++;
    return knob;
}
