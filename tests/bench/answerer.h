/* A server with OpenAI's interface that does next to nothing: every question gets the same stream, all
 * of it made before.  It runs in a process of its own, so that its memory and time are not ours.
 * answerer_start owns the process until answerer_stop. */
#ifndef TESTS_BENCH_ANSWERER_H
#define TESTS_BENCH_ANSWERER_H

#include <sys/types.h>

#include "core/units.h"

struct answerer {
    pid_t process;
    unsigned short port; /* on 127.0.0.1 */
};

/* What a client may look for: the first token stands in an event with this. */
#define ANSWERER_TOKEN "\"content\":\""

/* The headers go out at once, the tokens `delay` later.  A delay holds up whoever asks meanwhile: it is
 * for one client at a time.  Aborts when it cannot. */
void answerer_start(struct answerer *answerer, nanos delay);
void answerer_stop(struct answerer *answerer);

#endif
