/* The dashboard: runs, live power and estimates as pages and as a JSON API over HTTP.
 *
 * Everything but the run index is read-only unless runs are allowed.  One thread runs the event loop and handles quick
 * requests itself; workers handle those that read files or compute. */
#ifndef IPW_SERVE_SERVE_H
#define IPW_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"
#include "port/http_server.h"

struct serve_options {
    struct http_access_options access;
    const char *tls_cert, *tls_key; /* PEM; NULL: plain HTTP */
    const char *runs;               /* the folder of run directories; NULL: a database */
    const char *db;                 /* database address */
    const char *drivers; /* sensors of the live view; comma-separated names, NULL for all */
    const char *devices; /* GPUs; NULL for the visible ones */
    bool no_live;        /* open no sensors */
    bool allow_runs;     /* POST may start profiles in `runs`; needs a token */
    void (*listening)(unsigned port);
};

/* Runs until SIGINT or SIGTERM, and stores the number in *signal.  Blocks them: call before starting threads. */
enum err serve_run(const struct serve_options *options, int *signal, struct error *why) MUST_USE;

#endif
