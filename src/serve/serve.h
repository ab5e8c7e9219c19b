/* The dashboard: runs, live power and estimates as pages and as a JSON API over HTTP.
 *
 * Everything is read-only unless runs are allowed.  One thread turns the loop and answers what takes no time; whatever
 * reads files or computes is done by workers, and its answer is sent when it is there. */
#ifndef IPW_SERVE_SERVE_H
#define IPW_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct serve_options {
    const char *address; /* to listen on */
    unsigned port;       /* 0: any that is free */
    const char *token;   /* required of every request; NULL: none, for loopback addresses only */
    const char *tls_cert, *tls_key;   /* PEM; NULL: plain HTTP */
    const char *const *allowed_hosts; /* names in Host headers besides our own */
    size_t allowed_count;
    const char *runs;    /* the folder of run directories; NULL: a database */
    const char *db;      /* its address */
    const char *drivers; /* sensors of the live view; comma-separated names, NULL for all */
    const char *devices; /* GPUs; NULL for the visible ones */
    bool no_live;        /* opens no sensor */
    bool allow_runs;     /* POST starts profiles in `runs`; needs a token */
    void (*listening)(unsigned port);
};

/* Runs until SIGINT or SIGTERM, whose number is *signal.  Blocks these signals: call before any thread starts. */
enum err serve_run(const struct serve_options *options, int *signal, struct error *why) MUST_USE;

#endif
