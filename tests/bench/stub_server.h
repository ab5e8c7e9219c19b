/* A minimal server with OpenAI's API: every request gets the same prepared stream. It runs in a
 * separate process, so that its memory and time are not ours. stub_server_start owns the process
 * until stub_server_stop. */
#ifndef TESTS_BENCH_STUB_SERVER_H
#define TESTS_BENCH_STUB_SERVER_H

#include <sys/types.h>

#include "core/units.h"

struct stub_server {
    pid_t process;
    unsigned short port; /* on 127.0.0.1 */
};

/* For clients: the event with the first token contains this. */
#define STUB_SERVER_TOKEN "\"content\":\""

/* The headers are sent immediately, the tokens `delay` later. A delay blocks other clients
 * meanwhile: it is for one client at a time. Aborts on failure. */
void stub_server_start(struct stub_server *stub_server, nanos delay);
void stub_server_stop(struct stub_server *stub_server);

#endif
