/* A fixed table of strings that is only appended to, so that readers need no lock. */
#include "core/secret.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/json.h"
#include "core/text.h"

enum { SECRETS_MAX = 256, MARK_LENGTH = sizeof SECRET_MARK - 1 };

struct secret {
    char *bytes;
    size_t length;
    bool is_json; /* hidden in JSON too: occurs unescaped in a JSON string and is not foreign */
    bool is_foreign;
};

/* Where secrets are hidden. */
enum hidden_in { IN_TEXT, IN_JSON, IN_VALUE };

static struct secret secrets[SECRETS_MAX];
static atomic_size_t secret_count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* ---- adding ---- */

/* Placeholders that users enter where a key is required but not checked. */
static bool is_placeholder(const char *value)
{
    static const char *const NAMES[] = {"ollama",     "lm-studio", "lmstudio",
                                        "not-needed", "no-key",    "sk-no-key-required"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcasecmp(value, NAMES[i]) == 0)
            return true;
    return false;
}

static void add_form(const char *bytes, size_t length, bool is_json, bool is_foreign)
{
    size_t count = atomic_load(&secret_count);
    for (size_t i = 0; i < count; i++)
        if (secrets[i].length == length && memcmp(secrets[i].bytes, bytes, length) == 0)
            return;
    char *copy = count < SECRETS_MAX ? malloc(length + 1) : NULL;
    if (!copy)
        return;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    secrets[count] = (struct secret){copy, length, is_json, is_foreign};
    atomic_store(&secret_count, count + 1);
}

/* Adds the value as it is and as it is escaped in JSON. */
static void add_forms(const char *bytes, size_t length)
{
    struct json json;
    struct text quoted = {0};
    json_init(&json, &quoted, false);
    json_string_bytes(&json, NULL, bytes, length);
    bool is_same = quoted.length == length + 2 && memcmp(quoted.bytes + 1, bytes, length) == 0;
    pthread_mutex_lock(&adding);
    if (!is_same && quoted.length > 2)
        add_form(quoted.bytes + 1, quoted.length - 2, true, false);
    add_form(bytes, length, is_same, false);
    pthread_mutex_unlock(&adding);
    text_release(&quoted);
}

void secret_add(const char *value)
{
    size_t skipped = strspn(value, " \t\r\n"), length = strlen(value + skipped);
    while (length > 0 && strchr(" \t\r\n", value[skipped + length - 1]))
        length--; /* a key read from a file often ends with a newline */
    if (length >= SECRET_SHORTEST && !is_placeholder(value + skipped))
        add_forms(value + skipped, length);
}

static bool looks_random(const char *value)
{
    enum { ROW = 12 };
    while (*value) {
        size_t row = 0, digits = 0;
        for (; isalnum((unsigned char)value[row]); row++)
            digits += isdigit((unsigned char)value[row]) != 0;
        if (row >= ROW && digits && digits < row)
            return true;
        value += row + (value[row] != '\0');
    }
    return false;
}

void secret_add_foreign(const char *value)
{
    if (!looks_random(value))
        return;
    pthread_mutex_lock(&adding);
    add_form(value, strlen(value), false, true);
    pthread_mutex_unlock(&adding);
}

void secret_add_header(const char *value)
{
    static const char *const SCHEMES[] = {"bearer ", "basic ", "token ", "apikey ", "key "};
    secret_add(value);
    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++)
        if (strncasecmp(value, SCHEMES[i], strlen(SCHEMES[i])) == 0)
            secret_add(value + strlen(SCHEMES[i]));
}

static void add_base64(struct text *out, const char *string)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = (const unsigned char *)string;
    for (size_t left = strlen(string); left > 0; s += 3, left = left > 3 ? left - 3 : 0) {
        unsigned long bits =
            (unsigned long)s[0] << 16 | (left > 1 ? s[1] << 8 : 0) | (left > 2 ? s[2] : 0);
        char group[5] = {DIGITS[bits >> 18], DIGITS[bits >> 12 & 63],
                         (char)(left > 1 ? DIGITS[bits >> 6 & 63] : '='),
                         (char)(left > 2 ? DIGITS[bits & 63] : '='), '\0'};
        text_add(out, group);
    }
}

void secret_add_login(const char *user, const char *password)
{
    struct text pair = {0}, encoded = {0};
    text_addf(&pair, "%s:%s", user, password);
    add_base64(&encoded, text_get(&pair));
    secret_add(password);
    secret_add(text_get(&encoded));
    text_release(&pair);
    text_release(&encoded);
}

/* ---- detecting secrets ---- */

static bool ends_nocase(const char *string, size_t length, const char *end)
{
    size_t tail = strlen(end);
    return length >= tail && strncasecmp(string + length - tail, end, tail) == 0;
}

static bool names_secret(const char *name, size_t length)
{
    static const char *const ENDS[] = {"key",      "token",  "secret",
                                       "password", "passwd", "authorization"};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (ends_nocase(name, length, ENDS[i]))
            return true;
    return false;
}

/* Stricter for command-line words: sort has a --key, and tokenizers an --eos-token. */
static bool word_names_secret(const char *name, size_t length)
{
    static const char *const KINDS[] = {"api", "secret", "access", "auth", "private", "x-"};
    static const char *const TOKENS[] = {"eos-token", "eos_token", "bos-token",  "bos_token",
                                         "pad-token", "pad_token", "stop-token", "stop_token",
                                         "per-token", "per_token"};
    char copy[128];
    if (!names_secret(name, length) || !str_format(copy, sizeof copy, "%.*s", (int)length, name))
        return false;
    for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++)
        if (ends_nocase(name, length, TOKENS[i]))
            return false;
    bool is_key = ends_nocase(name, length, "key");
    for (size_t i = 0; is_key && i < sizeof KINDS / sizeof *KINDS; i++)
        if (str_contains_nocase(copy, KINDS[i]))
            return true;
    return !is_key;
}

void secret_add_environment(char *const *environment)
{
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        /* A path names the file that holds the secret; it is not the secret. */
        if (equals && equals[1] != '/' &&
            names_secret(*environment, (size_t)(equals - *environment)))
            secret_add(equals + 1);
    }
}

static void add_url_login(const char *word)
{
    char login[512], *password;
    const char *scheme = strstr(word, "://");
    const char *host = scheme ? scheme + 3 : NULL;
    const char *at = host ? memchr(host, '@', strcspn(host, "/?#")) : NULL;
    if (!at || !str_format(login, sizeof login, "%.*s", (int)(at - host), host) ||
        !(password = strchr(login, ':')))
        return;
    *password++ = '\0';
    secret_add_login(login, password);
}

void secret_add_words(char *const *words)
{
    for (; *words; words++) {
        const char *word = *words;
        size_t name = strcspn(word, "=: ");
        const char *value = word + name + (word[name] ? 1 : 0);
        add_url_login(word);
        if (!word_names_secret(word, name) || (word[name] == ':' && word[name + 1] == '/'))
            continue;
        if (*value)
            secret_add_header(value + strspn(value, " "));
        else if (word[0] == '-' && words[1] && words[1][0] != '-' && words[1][0] != '/')
            secret_add_header(words[1]);
    }
}

/* ---- hiding ---- */

static bool is_hidden_in(const struct secret *secret, enum hidden_in where)
{
    return where == IN_TEXT || (where == IN_JSON ? secret->is_json : !secret->is_foreign);
}

static size_t find_at(const char *bytes, size_t length, enum hidden_in where)
{
    size_t count = atomic_load(&secret_count), longest = 0;
    for (size_t i = 0; i < count; i++)
        if (secrets[i].length <= length && secrets[i].length > longest &&
            is_hidden_in(&secrets[i], where) &&
            memcmp(secrets[i].bytes, bytes, secrets[i].length) == 0)
            longest = secrets[i].length;
    return longest;
}

size_t secret_at(const char *bytes, size_t length)
{
    return find_at(bytes, length, IN_TEXT);
}

static bool contains(const char *bytes, size_t length, const struct secret *secret)
{
    const char *end = bytes + length;
    for (; (bytes = memchr(bytes, secret->bytes[0], (size_t)(end - bytes))); bytes++)
        if ((size_t)(end - bytes) >= secret->length &&
            memcmp(bytes, secret->bytes, secret->length) == 0)
            return true;
    return false;
}

/* Whether any secret occurs; optimized for the usual case that none does. */
static bool has_secret(const char *bytes, size_t length)
{
    size_t count = atomic_load(&secret_count);
    for (size_t i = 0; i < count; i++)
        if (contains(bytes, length, &secrets[i]))
            return true;
    return false;
}

/* Replaces secrets and returns the new length.  In JSON an escape sequence is one character: the n of "\
 * " begins no secret. */
static size_t hide(char *bytes, size_t length, enum hidden_in where)
{
    size_t to = 0;
    for (size_t from = 0; from < length;) {
        size_t found = find_at(bytes + from, length - from, where);
        if (found) {
            memcpy(bytes + to, SECRET_MARK, MARK_LENGTH);
            to += MARK_LENGTH;
            from += found;
            continue;
        }
        if (where == IN_JSON && bytes[from] == '\\' && from + 1 < length)
            bytes[to++] = bytes[from++];
        bytes[to++] = bytes[from++];
    }
    bytes[to] = '\0';
    return to;
}

void secret_hide(char *string)
{
    size_t length = strlen(string);
    if (has_secret(string, length))
        hide(string, length, IN_TEXT);
}

void secret_hide_value(char *string)
{
    size_t length = strlen(string);
    if (has_secret(string, length))
        hide(string, length, IN_VALUE);
}

void secret_hide_text(struct text *text)
{
    if (text->length && has_secret(text->bytes, text->length))
        text->length = hide(text->bytes, text->length, IN_TEXT);
}

bool secret_in_json(const struct text *json)
{
    return json->length && has_secret(json->bytes, json->length);
}

/* The end of the string that begins after the quote at `at`: the index of its closing quote. */
static size_t string_end(const struct text *json, size_t at)
{
    const char *after = json_skip_string(json->bytes + at, json->bytes + json->length);
    return after ? (size_t)(after - json->bytes) - 1 : json->length - 1;
}

static bool is_key(const struct text *json, size_t end)
{
    size_t next = end + 1;
    while (next < json->length && strchr(" \t\r\n", json->bytes[next]))
        next++;
    return next < json->length && json->bytes[next] == ':';
}

void secret_hide_json(struct text *json)
{
    if (!secret_in_json(json))
        return;
    struct text out = {0};
    size_t copied = 0;
    for (size_t at = 0; at < json->length; at++) {
        if (json->bytes[at] != '"')
            continue;
        size_t end = string_end(json, at);
        if (!is_key(json, end)) {
            text_add_bytes(&out, json->bytes + copied, at + 1 - copied);
            struct text value = {0};
            text_add_bytes(&value, json->bytes + at + 1, end - at - 1);
            if (value.length)
                value.length = hide(value.bytes, value.length, IN_JSON);
            text_add_bytes(&out, text_get(&value), value.length);
            out.failed = out.failed || value.failed;
            text_release(&value);
            copied = end;
        }
        at = end;
    }
    text_add_bytes(&out, json->bytes + copied, json->length - copied);
    text_release(json);
    *json = out;
}

void secret_one_line(char *to, size_t size, const char *bytes, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        char shown[PLAIN_MAX];
        size_t secret = secret_at(bytes + i, length - i); /* checked before truncation */
        if (secret) {
            if (used + strlen(SECRET_MARK) >= size)
                break;
            memcpy(to + used, SECRET_MARK, strlen(SECRET_MARK));
            used += strlen(SECRET_MARK);
            i += secret;
            continue;
        }
        size_t taken, n = plain_character(bytes + i, length - i, shown, &taken);
        bool is_plain = n == taken && !memcmp(shown, bytes + i, n);
        if (used + (is_plain ? n : 1) >= size)
            break;
        if (is_plain)
            memcpy(to + used, bytes + i, n);
        else
            to[used] = ' ';
        used += is_plain ? n : 1;
        i += taken;
    }
    to[used] = '\0';
}

bool secret_matches(const char *given, const char *token)
{
    size_t length = strlen(token), differs = given ? strlen(given) ^ length : 1;
    for (size_t i = 0; given && i < length && given[i]; i++)
        differs |= (size_t)(unsigned char)(given[i] ^ token[i]);
    return differs == 0;
}
