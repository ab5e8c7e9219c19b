/* A server with OpenAI's interface that does next to nothing: every question gets the same stream, all
 * of it made before.  It runs in a process of its own, so that its memory and time are not ours.
 * stub_server_start owns the process until stub_server_stop. */
#ifndef TESTS_BENCH_STUB_SERVER_H
#define TESTS_BENCH_STUB_SERVER_H

#include <sys/types.h>

#include "core/units.h"

struct stub_server {
    pid_t process;
    unsigned short port; /* on 127.0.0.1 */
};

/* What a client may look for: the first token stands in an event with this. */
#define STUB_SERVER_TOKEN "\"content\":\""

/* The headers go out at once, the tokens `delay` later.  A delay holds up whoever asks meanwhile: it is
 * for one client at a time.  Aborts when it cannot. */
void stub_server_start(struct stub_server *stub_server, nanos delay);
void stub_server_stop(struct stub_server *stub_server);

#endif
