/* The number that an answer states, for the graders of numbers and mathematics.  Nothing is allocated. */
#ifndef IPW_GRADERS_STATED_H
#define IPW_GRADERS_STATED_H

#include <stdbool.h>

#include "core/slice.h"

struct number;

/* The number after the last equals sign, as in "x = 3 * 4 = 12 apples". */
bool stated_after_equals(struct slice line, struct number *out);

/* Of the line after a marker (final.h): the result of its first equation, or its first number. */
bool stated_after_marker(struct slice line, struct number *out);

/* Of an answer without a marker, in this order: a number in bold in the last paragraph; an answer that comes
 * first; what the last sentence with a number states.  A check of the result at the end does not count. */
bool stated_in_conclusion(struct slice answer, struct number *out);

#endif
