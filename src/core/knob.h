/* The knobs of a GPU, in one table (core/knob.def): parsers, checks, help and commands for the operator derive from it.
 * Nothing to own. */
#ifndef IPW_CORE_KNOB_H
#define IPW_CORE_KNOB_H

#include <stdbool.h>

enum gpu_knob {
#define KNOB(constant, ...) KNOB_##constant,
#include "core/knob.def"
#undef KNOB
    KNOB_COUNT
};

struct knob {
    const char *name, *other_name; /* other_name: "" for none */
    const char *what, *unit;       /* "a graphics clock", "MHz" */
    const char *smi_option;
    bool is_range;
};

/* Not for KNOB_COUNT. */
const struct knob *knob_of(enum gpu_knob knob);

/* The knob of either name, whatever its case, with '-' or '_'; KNOB_COUNT: none, as a placeholder of a command. */
enum gpu_knob knob_named(const char *name);

#endif
