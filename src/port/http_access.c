#define _GNU_SOURCE
#include "port/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hash.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
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
    if (is_good)
        return ERR_OK;
    return err_set(why, ERR_USAGE,
                   "cannot listen on '%.80s', which is not an address of this machine (%s); "
                   "expected PORT, ADDRESS or ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080",
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
    chars_format(host, "%.*s", (int)strlen(url->host) - 2 * is_v6, url->host + is_v6);
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
    chars_format(text, strchr(address, ':') ? "http://[%s]" : "http://%s", address);
    err = url_read(text, &url, why);
    if (err)
        return err;
    if (!token && !is_open && !url_is_local(&url))
        return err_set(why, ERR_USAGE, "%.80s can be reached from other machines: %s", address,
                       advice);
    return ERR_OK;
}

/* ---- hosts and origins ---- */

/* Removes port and brackets of "[::1]:80" and "name:80"; false for anything else, such as "user@name". */
static bool host_name(const char *host, char *to, size_t size)
{
    static const char NAME[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    static const char V6[] = "0123456789abcdefABCDEF:.";
    bool is_v6 = host[0] == '[';
    const char *begin = host + is_v6;
    const char *end = begin + strspn(begin, is_v6 ? V6 : NAME);
    if (end == begin || (size_t)(end - begin) >= size || (is_v6 && *end != ']'))
        return false;
    const char *rest = end + is_v6;
    if (*rest && (*rest != ':' || !rest[1] || rest[1 + strspn(rest + 1, "0123456789")] ||
                  strlen(rest) > strlen(":65535")))
        return false;
    str_format(to, size, "%.*s", (int)(end - begin), begin);
    return true;
}

static bool is_loopback(const char *name)
{
    struct url url;
    char text[300];
    if (str_equal_nocase(name, "localhost"))
        return true;
    chars_format(text, strchr(name, ':') ? "http://[%s]" : "http://%s", name);
    return !url_read(text, &url, NULL) && url_is_loopback(&url);
}

/* "10.0.0.7" or "fe80::1", and not 0x7f.1 or a name. */
static bool is_numeric(const char *name)
{
    struct in6_addr bytes;
    return inet_pton(strchr(name, ':') ? AF_INET6 : AF_INET, name, &bytes) == 1;
}

static bool is_any_address(const char *address)
{
    struct in6_addr bytes;
    bool is_v6 = strchr(address, ':');
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, address, &bytes) == 1 &&
           !memcmp(&bytes, &in6addr_any, is_v6 ? 16 : 4);
}

static bool is_allowed(const struct http_access_options *options, const char *name)
{
    for (size_t i = 0; i < options->allowed_count; i++)
        if (str_equal_nocase(name, options->allowed[i]))
            return true;
    return false;
}

/* ---- the rules of a server ---- */

enum { ADDRESSES = 1024, PROBES = 8 };
#define WRONG_PERIOD (60 * NS_PER_S)

struct http_access {
    struct http_access_options options;
    /* Addresses with wrong tokens, by their hash; the tokens are hashes too. */
    struct wrong {
        uint64_t address;
        nanos since;
        unsigned count, distinct;
        uint64_t tokens[HTTP_WRONG_TOKENS];
    } wrong[ADDRESSES];
};

struct http_access *http_access_new(const struct http_access_options *options)
{
    struct http_access *access = XNEW(access);
    access->options = *options;
    return access;
}

void http_access_free(struct http_access *access)
{
    free(access);
}

enum err http_access_check_host(const struct http_access *access, const char *host,
                                struct error *why)
{
    const struct http_access_options *options = &access->options;
    char name[256];
    if (!host || !host_name(host, name, sizeof name))
        return err_set(why, ERR_DENIED, "the Host header is not a host name");
    if (is_allowed(options, name) || str_equal_nocase(name, options->address) ||
        is_loopback(name) || (is_numeric(name) && is_any_address(options->address)))
        return ERR_OK;
    return err_set(why, ERR_DENIED,
                   "the Host header names another host: allow it with --allow-host %.100s", name);
}

enum err http_access_check_origin(const struct http_access *access, const char *origin,
                                  const char *host, struct error *why)
{
    static const char PLAIN[] = "http://", SECURE[] = "https://";
    const char *site = NULL;
    if (!origin || (strstr(origin, "://") && is_allowed(&access->options, origin)))
        return ERR_OK;
    if (str_starts(origin, SECURE))
        site = origin + strlen(SECURE);
    else if (!access->options.is_tls && str_starts(origin, PLAIN))
        site = origin + strlen(PLAIN);
    if (site && host && str_equal_nocase(site, host))
        return ERR_OK;
    return err_set(why, ERR_DENIED,
                   "the Origin header names another site: allow it with --allow-host %.100s",
                   str_is_plain(origin) ? origin : "ORIGIN");
}

enum err http_access_check_site(const struct http_access *access, struct http_exchange *exchange,
                                struct error *why)
{
    const char *host = http_exchange_header(exchange, "Host");
    enum err err = host ? http_access_check_host(access, host, why) : ERR_OK;
    return err ? err
               : http_access_check_origin(access, http_exchange_header(exchange, "Origin"), host,
                                          why);
}

/* An IPv6 client may have 2^64 addresses: it is known by its network. */
static uint64_t address_hash(const char *peer)
{
    struct in6_addr bytes;
    if (inet_pton(AF_INET6, peer, &bytes) == 1 && !IN6_IS_ADDR_V4MAPPED(&bytes))
        return hash_mix(hash_bytes(HASH_START, &bytes, 8)) | 1;
    return hash_mix(hash_string(HASH_START, peer)) | 1;
}

/* The row of an address, or else the one of its places that began first. */
static struct wrong *find_row(struct http_access *access, uint64_t address)
{
    struct wrong *first = NULL;
    for (size_t i = 0; i < PROBES; i++) {
        struct wrong *row = &access->wrong[(address + i) % ADDRESSES];
        if (row->address == address)
            return row;
        if (!first || row->since < first->since)
            first = row;
    }
    return first;
}

/* A wrong token that is repeated, by a program with an old one, is no guess.  False: there were too many. */
static bool count_wrong(struct wrong *row, uint64_t address, uint64_t token, nanos now)
{
    size_t i = 0;
    if (row->address != address || now - row->since >= WRONG_PERIOD)
        *row = (struct wrong){.address = address, .since = now};
    while (i < row->distinct && row->tokens[i] != token)
        i++;
    if (i == row->distinct && i < HTTP_WRONG_TOKENS)
        row->tokens[row->distinct++] = token;
    return ++row->count <= HTTP_WRONG_TOKENS;
}

enum http_admission http_access_judge(struct http_access *access, const char *peer, bool is_trusted,
                                      uint64_t given, bool is_right, nanos now)
{
    if (!access->options.token)
        return HTTP_ADMITTED;
    if (!given)
        return HTTP_REFUSED;
    uint64_t address = address_hash(peer);
    struct wrong *row = find_row(access, address);
    bool is_limited = row->address == address && row->distinct >= HTTP_WRONG_TOKENS &&
                      now - row->since < WRONG_PERIOD;
    if (is_limited && !is_trusted)
        return HTTP_LIMITED;
    if (is_right)
        return HTTP_ADMITTED;
    return count_wrong(row, address, given, now) ? HTTP_REFUSED : HTTP_LIMITED;
}

uint64_t http_access_token(const char *given)
{
    return given ? hash_string(HASH_START, given) | 1 : 0;
}

enum http_admission http_access_admit_token(struct http_access *access,
                                            struct http_exchange *exchange, uint64_t given,
                                            bool is_right)
{
    char peer[HTTP_PEER_MAX] = "";
    if (access->options.token) /* else it does not matter, and takes time */
        http_exchange_peer(exchange, peer);
    enum http_admission admission = http_access_judge(
        access, peer, http_exchange_is_trusted(exchange), given, is_right, clock_now());
    if (admission == HTTP_ADMITTED)
        http_exchange_trust(exchange);
    return admission;
}

enum http_admission http_access_admit(struct http_access *access, struct http_exchange *exchange)
{
    const char *bearer = http_exchange_header(exchange, "Authorization");
    const char *own = http_exchange_header(exchange, "x-ipw-token");
    const char *token = access->options.token;
    const char *given =
        bearer && str_starts(bearer, "Bearer ") ? bearer + strlen("Bearer ") : bearer;
    bool is_right = !token || secret_matches(given, token) || secret_matches(own, token);
    return http_access_admit_token(
        access, exchange, http_access_token(given) ^ (http_access_token(own) << 1), is_right);
}

int http_access_refuse(struct http_exchange *exchange, enum http_admission admission,
                       const char **message)
{
    bool is_limited = admission == HTTP_LIMITED;
    http_exchange_add_header(exchange, is_limited ? "Retry-After" : "WWW-Authenticate",
                             is_limited ? "60" : "Bearer");
    *message = is_limited ? "too many wrong tokens from this address: try again in a minute"
                          : "missing or invalid token: send Authorization: Bearer TOKEN";
    return is_limited ? 429 : 401;
}
