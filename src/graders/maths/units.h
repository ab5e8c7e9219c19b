/* Words after a number: which of them mean the same unit.  Nothing is allocated or owned. */
#ifndef IPW_GRADERS_MATHS_UNITS_H
#define IPW_GRADERS_MATHS_UNITS_H

#include <stdbool.h>

#include "core/slice.h"

/* Do both texts consist of units that are known, and are they different ones?  Where a word is not
 * known nothing can be said, and they do not clash. */
bool units_clash(struct slice a, struct slice b);

#endif
