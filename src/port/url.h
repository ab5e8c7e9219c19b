/* Parts of an http or https URL, by libcurl's parser, the one that also connects.  A parser of our own could
 * disagree with libcurl on the host of some URL, and a key would be sent to the wrong one.  Where libcurl is
 * not installed, every call returns an error. */
#ifndef IPW_PORT_URL_H
#define IPW_PORT_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct url {
    char scheme[8];   /* "http" or "https" */
    char host[256];   /* lower case; an IPv6 address in [] */
    char port[8];     /* the scheme's default if none is given */
    char server[280]; /* "http://host:port", as given, for messages */
    char shown[640];  /* the complete URL, without user name and password */
    bool has_login;
};

/* ERR_USAGE unless it is a valid http or https URL; the message contains no password.  A login in the URL becomes a
 * secret (core/secret.h). */
enum err url_read(const char *given, struct url *out, struct error *why) MUST_USE;

/* Scheme, host and port are equal: credentials for one may be sent to the other. */
bool url_same_origin(const struct url *a, const struct url *b);

/* A literal loopback address: nothing sent there leaves this machine, whatever a name server says. */
bool url_is_loopback(const struct url *url);

/* The same, or a name of this machine: no proxy is used. */
bool url_is_local(const struct url *url);

/* Copies a URL for display and storage, without user name and password.  A string that is not a URL is copied unless
 * it contains an @ after "://"; then it becomes "(invalid URL)". */
void url_hide_login(const char *given, char *to, size_t size);

#endif
