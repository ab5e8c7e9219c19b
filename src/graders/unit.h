/* Units of measurement, as far as two of them can be told apart: "km/h" and "mph" differ, "hr" and "hours" do not. */
#ifndef IPW_GRADERS_UNIT_H
#define IPW_GRADERS_UNIT_H

#include <stdbool.h>

#include "core/slice.h"

/* Whether the texts begin with known units that are different; nothing is known of "" and of "apples". */
bool units_differ(struct slice a, struct slice b);

bool unit_is_degree(struct slice text);

#endif
