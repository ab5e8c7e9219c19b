/* HTTP headers: which are valid, and which are forwarded; and the API keys in them.
 *
 * A client authenticates itself to the proxy by x-ipw-token, or by the proxy's token in place of an API key; that token
 * is never forwarded.  Its own API key is, unless the options replace the header; a client without one uses ours.  Keys
 * are recorded as labels only. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/hash.h"
#include "core/params.h"
#include "core/secret.h"
#include "proxy/observer.h"

/* ---- validation ---- */

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

/* ---- API keys ---- */

static const char *const KEY_NAMES[KEY_HEADERS] = {"Authorization", "x-api-key", "api-key"};

void keys_take(void *context, const char *name, const char *value)
{
    struct client_keys *keys = context;
    if (!keys->token && str_equal_nocase(name, "x-ipw-token"))
        keys->token = value;
    if (str_equal_nocase(name, "anthropic-version"))
        keys->is_anthropic = true;
    for (size_t i = 0; i < KEY_HEADERS; i++)
        if (!keys->values[i] && str_equal_nocase(name, KEY_NAMES[i]))
            keys->values[i] = value;
}

/* The API key in a header of KEY_NAMES; NULL: another kind of authorization. */
static const char *find_api_key(size_t header, const char *value)
{
    if (header != 0)
        return value;
    return value && strncasecmp(value, "Bearer ", 7) == 0 ? value + 7 : NULL;
}

static bool is_token(const char *token, size_t header, const char *value)
{
    return token && secret_matches(find_api_key(header, value), token);
}

uint64_t keys_hash(const struct client_keys *keys)
{
    uint64_t hash = keys->token ? hash_string(HASH_START, keys->token) : 0;
    for (size_t i = 0; i < KEY_HEADERS; i++)
        if (keys->values[i])
            hash = hash_string(hash ? hash : HASH_START + i, keys->values[i]);
    return hash;
}

bool keys_are_authorized(const struct client_keys *keys, const char *token)
{
    bool may = !token || secret_matches(keys->token, token);
    for (size_t i = 0; i < KEY_HEADERS; i++)
        may |= is_token(token, i, keys->values[i]);
    return may;
}

/* The first header with authorization for the upstream server; KEY_HEADERS if there is none. */
static size_t find_key_header(const struct client_keys *keys, const char *token)
{
    size_t i = 0;
    while (i < KEY_HEADERS &&
           (!keys->values[i] || !*keys->values[i] || is_token(token, i, keys->values[i])))
        i++;
    return i;
}

/* All of them: a server may echo any. */
static void register_secrets(const struct client_keys *keys)
{
    for (size_t i = 0; i < KEY_HEADERS; i++) {
        const char *value = keys->values[i];
        const char *blank = value && i == 0 ? strchr(value, ' ') : NULL; /* after the scheme */
        if (value)
            secret_add_foreign(blank ? blank + 1 : value);
    }
}

/* Never the key itself: 32 bits of a hash distinguish keys, and cannot be reversed. */
void keys_label(const struct client_keys *keys, const struct proxy_options *options, char *to,
                size_t size)
{
    register_secrets(keys);
    size_t header = find_key_header(keys, options->access.token);
    const char *key = header < KEY_HEADERS ? find_api_key(header, keys->values[header]) : NULL;
    if (!key || !*key)
        return;
    uint64_t hash = hash_mix(hash_string(HASH_START, key));
    char label[16];
    chars_format(label, "key-%08" PRIx32, (uint32_t)(hash >> 32));
    const char *name = options->key_names ? params_get(options->key_names, label) : NULL;
    str_copy(to, size, name ? name : label);
}

/* ---- forwarding ---- */

void header_list_connection(struct text *list, const char *name, const char *value)
{
    if (!str_equal_nocase(name, "Connection"))
        return;
    text_add(list, value);
    text_add(list, ",");
}

void header_lines_connection(const struct text *lines, struct text *list)
{
    static const char NAME[] = "Connection:";
    for (size_t at = 0; at < lines->length; at += strlen(lines->bytes + at) + 1)
        if (strncasecmp(lines->bytes + at, NAME, strlen(NAME)) == 0)
            header_list_connection(list, "Connection", lines->bytes + at + strlen(NAME));
}

bool header_is_hop_by_hop(const char *name, const char *connection)
{
    static const char *const NAMES[] = {
        "Connection",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Content-Length",
    };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (str_equal_nocase(name, NAMES[i]))
            return true;
    return str_list_has(connection, name);
}

static bool is_replaced(const struct params *ours, const char *name)
{
    for (size_t i = 0; ours && i < ours->count; i++)
        if (str_equal_nocase(ours->items[i].key, name))
            return true;
    return false;
}

bool header_is_forwarded(const struct proxy_options *options, const char *name, const char *value,
                         const char *connection)
{
    for (size_t i = 0; i < KEY_HEADERS; i++)
        if (str_equal_nocase(name, KEY_NAMES[i]) && is_token(options->access.token, i, value))
            return false;
    return !header_is_hop_by_hop(name, connection) && !str_equal_nocase(name, "Host") &&
           !str_equal_nocase(name, "Expect") && strncasecmp(name, "x-ipw-", 6) != 0 &&
           !is_replaced(options->upstream_headers, name);
}

void header_add(struct text *lines, const char *name, const char *value)
{
    text_add(lines, name);
    text_add_bytes(lines, ": ", 2);
    text_add_bytes(lines, value, strlen(value) + 1);
}

void header_add_ours(struct text *lines, const struct proxy_options *options,
                     const struct client_keys *keys)
{
    const struct params *ours = options->upstream_headers;
    char line[1024];
    for (size_t i = 0; ours && i < ours->count; i++)
        header_add(lines, ours->items[i].key, ours->items[i].value);
    if (!options->upstream_key || find_key_header(keys, options->access.token) < KEY_HEADERS)
        return;
    bool is_bearer = !keys->is_anthropic || is_token(options->access.token, 0, keys->values[0]);
    if (chars_format(line, "%s%s", is_bearer ? "Bearer " : "", options->upstream_key))
        header_add(lines, KEY_NAMES[is_bearer ? 0 : 1], line);
}
