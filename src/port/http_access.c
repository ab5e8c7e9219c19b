#define _GNU_SOURCE
#include "port/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/secret.h"
#include "core/text.h"
#include "port/url.h"

/* ---- addresses ---- */

/* Whether a socket can be bound to the address; for a name, to any of its addresses. */
static bool is_ours(const struct addrinfo *found)
{
    for (; found; found = found->ai_next) {
        int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage any_port;
        memcpy(&any_port, found->ai_addr, found->ai_addrlen);
        ((struct sockaddr_in *)&any_port)->sin_port = 0; /* IPv6 has it at the same place */
        bool is_bound = fd >= 0 && !bind(fd, (struct sockaddr *)&any_port, found->ai_addrlen);
        if (fd >= 0)
            close(fd);
        if (is_bound)
            return true;
    }
    return false;
}

static int find(const char *address, const char *port, struct addrinfo **found)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    return getaddrinfo(address, port, &hints, found);
}

static enum err check_address(const char *address, struct error *why)
{
    struct addrinfo *found = NULL;
    int code = find(address, NULL, &found);
    /* On a host without IPv6, binding fails with a better message than a rejection here. */
    bool is_good = !code && (found->ai_family == AF_INET6 || is_ours(found));
    if (!code)
        freeaddrinfo(found);
    return is_good
               ? ERR_OK
               : err_set(why, ERR_USAGE,
                         "cannot listen on '%.80s', which is not an address of this machine (%s); "
                         "expected PORT, ADDRESS or ADDRESS:PORT, such as 127.0.0.1:8080 or "
                         "[::1]:8080",
                         address, code ? gai_strerror(code) : "not one of its interfaces");
}

/* 0.0.0.0 or ::, by the bytes of the address. */
static bool is_any(const struct sockaddr *address)
{
    static const unsigned char ZERO[16];
    return address->sa_family == AF_INET
               ? !memcmp(&((const struct sockaddr_in *)address)->sin_addr, ZERO, 4)
               : !memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, ZERO, 16);
}

static bool is_same(const struct addrinfo *a, const struct addrinfo *b)
{
    if (a->ai_family != b->ai_family)
        return false;
    return a->ai_family == AF_INET ? !memcmp(&((struct sockaddr_in *)a->ai_addr)->sin_addr,
                                             &((struct sockaddr_in *)b->ai_addr)->sin_addr, 4)
                                   : !memcmp(&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr,
                                             &((struct sockaddr_in6 *)b->ai_addr)->sin6_addr, 16);
}

bool http_access_reaches(const char *address, unsigned port, const struct url *url)
{
    struct addrinfo *here = NULL, *there = NULL;
    char host[256];
    bool is_v6 = url->host[0] == '[', reaches = false;
    str_format(host, sizeof host, "%.*s", (int)strlen(url->host) - 2 * is_v6, url->host + is_v6);
    if (strtoul(url->port, NULL, 10) == port && !find(address, NULL, &here) &&
        !find(host, NULL, &there))
        for (const struct addrinfo *to = there; to && !reaches; to = to->ai_next)
            /* A listener on all addresses is reached by every address of this machine, and 0.0.0.0 as a destination
             * is this machine. */
            reaches =
                is_same(here, to) || is_any(to->ai_addr) || (is_any(here->ai_addr) && is_ours(to));
    if (here)
        freeaddrinfo(here);
    if (there)
        freeaddrinfo(there);
    return reaches;
}

/* ---- access ---- */

enum err http_access_check(const char *address, const char *token, bool is_open, const char *advice,
                           struct error *why)
{
    struct url url;
    char text[300];
    if (token && strlen(token) < SECRET_SHORTEST)
        return err_set(why, ERR_USAGE, "the token is too short: expected at least %d characters",
                       SECRET_SHORTEST);
    enum err err = check_address(address, why);
    if (err)
        return err;
    str_format(text, sizeof text, strchr(address, ':') ? "http://[%s]" : "http://%s", address);
    if (url_read(text, &url, NULL))
        return err_set(why, ERR_USAGE, "'%.80s' is not an address to listen on", address);
    if (!token && !is_open && !url_is_local(&url))
        return err_set(why, ERR_USAGE, "%.80s can be reached from other machines: %s", address,
                       advice);
    return ERR_OK;
}

bool http_access_has_token(struct http_exchange *exchange, const char *token)
{
    const char *given = http_exchange_header(exchange, "Authorization");
    if (given && str_starts(given, "Bearer "))
        given += strlen("Bearer ");
    return !token || secret_matches(given, token) ||
           secret_matches(http_exchange_header(exchange, "x-ipw-token"), token);
}

/* Removes port and brackets of "[::1]:80" and "name:80"; false for anything else. */
static bool host_name(const char *host, char *to, size_t size)
{
    bool is_v6 = host[0] == '[';
    const char *begin = host + is_v6, *end = is_v6 ? strchr(host, ']') : strchr(host, ':');
    size_t length = end ? (size_t)(end - begin) : strlen(begin);
    if ((is_v6 && !end) || !length || length >= size)
        return false;
    const char *rest = end ? end + is_v6 : "";
    if (*rest && (*rest != ':' || !rest[1] || rest[1 + strspn(rest + 1, "0123456789")]))
        return false;
    str_format(to, size, "%.*s", (int)length, begin);
    return true;
}

static bool is_loopback(const char *name)
{
    struct url url;
    char text[300];
    str_format(text, sizeof text, strchr(name, ':') ? "http://[%s]" : "http://%s", name);
    return str_equal_nocase(name, "localhost") ||
           (!url_read(text, &url, NULL) && url_is_loopback(&url));
}

bool http_access_is_host(const char *host, const char *address, const char *const *allowed,
                         size_t count)
{
    char name[256];
    if (!host || !host_name(host, name, sizeof name))
        return false;
    for (size_t i = 0; i < count; i++)
        if (str_equal_nocase(name, allowed[i]))
            return true;
    return str_equal_nocase(name, address) || is_loopback(name);
}

bool http_access_is_origin(const char *origin, const char *host, bool is_tls)
{
    static const char PLAIN[] = "http://", SECURE[] = "https://";
    if (!origin)
        return true;
    if (!host)
        return false;
    if (str_starts(origin, SECURE))
        return str_equal_nocase(origin + strlen(SECURE), host);
    return !is_tls && str_starts(origin, PLAIN) && str_equal_nocase(origin + strlen(PLAIN), host);
}
