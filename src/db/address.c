/* Database addresses, and their forms for messages and for storage. */
#define _GNU_SOURCE
#include <string.h>

#include "core/secret.h"
#include "core/text.h"
#include "db/db.h"

enum db_kind db_address_kind(const char *address)
{
    static const struct {
        const char *scheme;
        enum db_kind kind;
    } SCHEMES[] = {{"postgres://", DB_IS_POSTGRES},
                   {"postgresql://", DB_IS_POSTGRES},
                   {"sqlite://", DB_IS_SQLITE}};
    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++)
        if (str_starts(address, SCHEMES[i].scheme))
            return SCHEMES[i].kind;
    return DB_IS_NONE;
}

/* A password may contain an unescaped @ or /: everything before the last @ is hidden. */
void db_address_display(const char *address, char *to, size_t size)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@'), *rest = at ? at + 1 : host;
    if (db_address_kind(address) == DB_IS_SQLITE) {
        str_copy(to, size, address);
        return;
    }
    str_format(to, size, "%.*s%.*s", scheme ? (int)(host - address) : 0, address,
               (int)strcspn(rest, "?"), rest);
}

/* Adds both the encoded and the decoded form: a server may echo either. */
static void add_secret(const char *from, size_t length)
{
    char secret[256];
    if (!str_format(secret, sizeof secret, "%.*s", (int)length, from))
        return;
    secret_add(secret);
    str_percent_decode(secret);
    secret_add(secret);
}

bool db_address_add_secret(const char *address)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@');
    const char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (colon)
        add_secret(colon + 1, (size_t)(at - colon - 1));
    bool found = colon != NULL;
    for (const char *option = address; (option = strstr(option, "password=")); option++) {
        add_secret(option + 9, strcspn(option + 9, "&"));
        found = true;
    }
    return found;
}

/* Copies the options except passwords. */
static void copy_options(const char *options, struct text *to)
{
    for (char before = '?'; *options;) {
        size_t length = strcspn(options, "&"), key = strcspn(options, "=&");
        if (!memmem(options, key, "password", 8)) {
            text_add_bytes(to, &before, 1);
            text_add_bytes(to, options, length);
            before = '&';
        }
        options += length + (options[length] == '&');
    }
}

/* Removes only the password: the next attempt takes it from the environment or from ~/.pgpass. */
void db_address_without_password(const char *address, char *to, size_t size)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@');
    const char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    const char *options = strchr(at ? at : host, '?');
    struct text kept = {0};
    if (db_address_kind(address) == DB_IS_SQLITE)
        at = colon = options = NULL;
    if (colon)
        text_add_bytes(&kept, address, (size_t)(colon - address));
    const char *rest = colon ? at : address;
    text_add_bytes(&kept, rest, options ? (size_t)(options - rest) : strlen(rest));
    if (options)
        copy_options(options + 1, &kept);
    str_copy(to, size, kept.failed ? "" : text_get(&kept));
    text_release(&kept);
}
