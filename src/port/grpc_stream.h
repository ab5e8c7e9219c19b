/* The messages of a server-streaming gRPC call, over HTTP/2 without TLS and without a gRPC library.
 *
 * A thread keeps the call open, starts it again with increasing delays when it ends, and queues its messages with the
 * times of their arrival: nobody waits for the network but who wants to.  grpc_stream_new allocates, grpc_stream_free
 * ends the call. */
#ifndef IPW_PORT_GRPC_STREAM_H
#define IPW_PORT_GRPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct grpc_stream;

struct grpc_stream_options {
    const char *server; /* "HOST:PORT" */
    const char *method; /* "/package.Service/Method"; its request is the empty message */
    unsigned attempts;  /* calls before the first message; later ones are always repeated */
};

struct grpc_message {
    unsigned char *bytes; /* owned: grpc_message_release */
    size_t length;
    nanos sent;    /* when its call was started: the server got the request after this */
    nanos t;       /* when it arrived */
    bool is_first; /* of its call */
};

enum err grpc_stream_new(const struct grpc_stream_options *options, struct grpc_stream **out,
                         struct error *why) MUST_USE;
void grpc_stream_free(struct grpc_stream *stream);

/* Takes the oldest message, waiting for one until a monotonic time (0: does not wait).  ERR_NO_DATA: there is none yet,
 * and *why is the reason if the last call failed; any other error: there will be none, because the server does not
 * have the method or could not be reached. */
enum err grpc_stream_next(struct grpc_stream *stream, nanos until, struct grpc_message *out,
                          struct error *why) MUST_USE;
void grpc_message_release(struct grpc_message *message);

#endif
