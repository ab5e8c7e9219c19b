/* The real clock, which a test moves forward: a timeout of minutes passes when the test says so, once the program under
 * test and the processes or servers that it talks to are where it wants them, and never before, however busy the machine
 * is.  Sleeps, deadlines and waits for conditions of port/thread.h see it within milliseconds; other waits, such as
 * poll, when they return to look at the clock. */
#ifndef TESTS_SUPPORT_SHIFTED_CLOCK_H
#define TESTS_SUPPORT_SHIFTED_CLOCK_H

#include "core/units.h"

/* Replaces the clocks and the waits of the process until it ends; there are no other threads yet. */
void shifted_clock_start(void);

void shifted_clock_advance(nanos length);

/* Advances the clock by that, or sets a flag to cancel, once a file contains a text, which another process writes. */
struct shift_at {
    const char *path, *text;
    nanos length;
    _Atomic bool *cancel; /* NULL: none */
};

/* The body of a thread; the argument is a struct shift_at. */
void *shifted_clock_main(void *shift_at);

/* Waits until the file contains the text. */
void await_text(const char *path, const char *text);

#endif
