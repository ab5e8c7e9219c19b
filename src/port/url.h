/* Parts of an http or https URL, by the parser of libcurl: the one that connects.  A parser of our own would see another
 * host than libcurl in some URL, and send a key there.  In a build without libcurl every call says so. */
#ifndef IPW_PORT_URL_H
#define IPW_PORT_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct url {
    char scheme[8];   /* "http" or "https" */
    char host[256];   /* lower case; an IPv6 address in [] */
    char port[8];     /* the scheme's own, if none is given */
    char server[280]; /* "http://host:port", as given, for messages */
    char shown[640];  /* the whole, without user name and password */
    bool has_login;
};

/* ERR_USAGE for anything else than a valid http or https URL; the message has no password.  A login in the URL becomes
 * a secret (core/secret.h). */
enum err url_read(const char *given, struct url *out, struct error *why) MUST_USE;

/* Scheme, host and port are equal: credentials for one may be sent to the other. */
bool url_same_origin(const struct url *a, const struct url *b);

/* A literal loopback address: nothing sent there leaves this machine, whatever a name server says. */
bool url_is_loopback(const struct url *url);

/* The same, or a name that stands for this machine: no proxy of the environment is used. */
bool url_is_local(const struct url *url);

/* Copies an address for display and storage, without user name and password.  A string that is not a URL is copied
 * unless it holds an @ after "://"; then it becomes "(invalid URL)". */
void url_hide_login(const char *given, char *to, size_t size);

#endif
