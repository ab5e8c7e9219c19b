/* Database addresses, and their forms for messages and for storage. */
#define _GNU_SOURCE
#include <string.h>

#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "db/db.h"

enum db_kind db_address_kind(const char *address)
{
    static const struct {
        const char *scheme;
        enum db_kind kind;
    } SCHEMES[] = {{"postgres://", DB_IS_POSTGRES},
                   {"postgresql://", DB_IS_POSTGRES},
                   {"sqlite://", DB_IS_SQLITE}};
    for (size_t i = 0; i < COUNT_OF(SCHEMES); i++)
        if (str_starts(address, SCHEMES[i].scheme))
            return SCHEMES[i].kind;
    return DB_IS_NONE;
}

/* ---- parts of a PostgreSQL address ----
 *
 * libpq takes the user name and password up to the first @, if it precedes the first /, then hosts with ports, a name
 * and options.  A password with an unescaped @ or / is therefore taken for a host, a port or a name, which libpq looks
 * up and quotes in its messages.  Such an address is refused; what is shown and kept of it has nothing before its last
 * @. */
struct parts {
    const char *host;    /* after the scheme; user name and password if there is an @ */
    const char *at;      /* after the user name and password; NULL: none */
    const char *options; /* the ?; NULL: none */
    bool is_valid;
};

static bool is_encoded(const char *at)
{
    static const char DIGITS[] = "0123456789abcdefABCDEF";
    while ((at = strchr(at, '%'))) {
        if (strspn(at + 1, DIGITS) < 2 || (at[1] == '0' && at[2] == '0'))
            return false;
        at += 3;
    }
    return true;
}

/* HOST[:PORT],... up to the name. */
static bool are_hosts(const char *at)
{
    for (;; at++) {
        if (*at == '[' && !(at = memchr(at, ']', strcspn(at, "/?"))))
            return false;
        at += strcspn(at, ":/?,");
        if (*at == ':')
            at += 1 + strspn(at + 1, "0123456789");
        if (*at != ',')
            return !*at || *at == '/' || *at == '?';
    }
}

static bool are_options(const char *at)
{
    while (at && *at) {
        size_t length = strcspn(at, "&");
        const char *equals = memchr(at, '=', length);
        if (!equals || memchr(equals + 1, '=', (size_t)(at + length - equals - 1)))
            return false;
        at += length + (at[length] == '&');
    }
    return true;
}

static struct parts find_parts(const char *address)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    size_t first = strcspn(host, "@/");
    struct parts parts = {.host = host, .at = host[first] == '@' ? host + first : NULL};
    const char *rest = parts.at ? parts.at + 1 : host;
    size_t length = strcspn(rest, "?");
    parts.options = rest[length] ? rest + length : NULL;
    parts.is_valid = !memchr(rest, '@', length) && is_encoded(host) && are_hosts(rest) &&
                     are_options(parts.options ? parts.options + 1 : NULL);
    if (!parts.is_valid) {
        parts.at = strrchr(host, '@');
        parts.options = strchr(parts.at ? parts.at : host, '?');
        if (!parts.options && strstr(host, "password="))
            parts.options = strchr(host, '?');
    }
    return parts;
}

enum err db_address_check(const char *address, struct error *why)
{
    enum db_kind kind = db_address_kind(address);
    if (kind == DB_IS_NONE)
        return err_set(why, ERR_USAGE,
                       "invalid database address '%.100s': use postgres://[USER@]HOST[:PORT]/NAME "
                       "or sqlite:///PATH",
                       strchr(address, '@') || strstr(address, "password")
                           ? SECRET_MARK
                           : plain_text(address).text);
    if (kind == DB_IS_POSTGRES && !find_parts(address).is_valid)
        return err_set(why, ERR_USAGE,
                       "invalid database address: use postgres://[USER@]HOST[:PORT]/NAME, with / "
                       "as %%2F, @ as %%40 and %% as %%25 in the user name and the password");
    return ERR_OK;
}

char *db_address_display(const char *address)
{
    struct parts parts = find_parts(address);
    int scheme = (int)(parts.host - address);
    const char *rest = parts.at ? parts.at + 1 : parts.host;
    bool is_clear = parts.is_valid || (parts.at && (!parts.options || parts.options > parts.at));
    if (db_address_kind(address) == DB_IS_SQLITE)
        return xstrdup(address);
    if (!is_clear)
        return xformat("%.*s" SECRET_MARK, scheme, address);
    return xformat("%.*s%.*s", scheme, address, (int)strcspn(rest, "?"), rest);
}

/* Adds both the encoded and the decoded form: a server may echo either. */
static void add_secret(const char *from, size_t length)
{
    char secret[256];
    if (!chars_format(secret, "%.*s", (int)length, from))
        return;
    secret_add(secret);
    str_percent_decode(secret);
    secret_add(secret);
}

bool db_address_add_secret(const char *address)
{
    struct parts parts = find_parts(address);
    const char *colon = parts.at ? memchr(parts.host, ':', (size_t)(parts.at - parts.host)) : NULL;
    if (colon)
        add_secret(colon + 1, (size_t)(parts.at - colon - 1));
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
char *db_address_without_password(const char *address)
{
    struct parts parts = find_parts(address);
    const char *options = parts.options;
    const char *colon = parts.at ? memchr(parts.host, ':', (size_t)(parts.at - parts.host)) : NULL;
    struct text kept = {0};
    if (db_address_kind(address) == DB_IS_SQLITE)
        colon = options = NULL;
    if (colon)
        text_add_bytes(&kept, address, (size_t)(colon - address));
    const char *rest = colon ? parts.at : address;
    if (options && options < rest) /* an invalid address, whose last @ is in an option */
        rest = options;
    text_add_bytes(&kept, rest, options ? (size_t)(options - rest) : strlen(rest));
    if (options)
        copy_options(options + 1, &kept);
    char *taken = NULL;
    str_take(&taken, &kept);
    return taken;
}
