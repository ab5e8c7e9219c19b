/* HTTP headers as lines "Name: value", each followed by a NUL, and the redaction of secrets in them. */
#define _GNU_SOURCE
#include "proxy/observer.h"

#include <string.h>
#include <strings.h>

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',')) {
        at += strspn(at, ", \t");
        if (strncasecmp(at, name, length) == 0 && (!at[length] || strchr(", \t", at[length])))
            return true;
    }
    return false;
}

bool header_is_hop_by_hop(const char *name, const char *connection)
{
    static const char *const NAMES[] = {"Connection",
                                        "Keep-Alive",
                                        "Proxy-Authenticate",
                                        "Proxy-Authorization",
                                        "Proxy-Connection",
                                        "TE",
                                        "Trailer",
                                        "Transfer-Encoding",
                                        "Upgrade",
                                        "Content-Length"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (str_equal_nocase(name, NAMES[i]))
            return true;
    return is_listed(connection, name);
}

/* Strict validation: servers parse malformed headers differently, which allows request smuggling. */
bool header_is_name(const char *name)
{
    static const char OTHERS[] = "!#$%&'*+-.^_`|~";
    for (const char *at = name; *at; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!is_letter && !(*at >= '0' && *at <= '9') && !strchr(OTHERS, *at))
            return false;
    }
    return *name;
}

bool header_is_value(const char *value)
{
    for (const unsigned char *at = (const unsigned char *)value; *at; at++)
        if ((*at < 0x20 && *at != '\t') || *at == 0x7F)
            return false;
    return true;
}

bool header_is_target(const char *target)
{
    for (const unsigned char *at = (const unsigned char *)target; *at; at++)
        if (*at <= 0x20 || *at == 0x7F)
            return false;
    return *target == '/';
}

void header_add(struct text *lines, const char *name, const char *value)
{
    text_add(lines, name);
    text_add_bytes(lines, ": ", 2);
    text_add_bytes(lines, value, strlen(value) + 1);
}
