/* A set that only grows, so that readers need no lock: a skip list in byte order, behind bitmaps of the first bytes of
 * its members.  The bitmaps dismiss nearly every position of a text, whatever the number of secrets; the list then
 * finds the longest secret that begins there in logarithmic time. */
#include "core/secret.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/text.h"

enum {
    MARK_LENGTH = sizeof SECRET_MARK - 1,
    PREFIX = SECRET_SHORTEST, /* bytes of a secret that select its bits */
    COARSE_BITS = 15,         /* fits a first-level cache */
    FINE_BITS = 22,           /* sparse for 100,000 secrets */
    WORD_BITS = 64,
    LEVELS_MAX = 12, /* one in four secrets is on the next level */
};

struct secret;
typedef struct secret *_Atomic secret_link;

struct secret {
    const char *bytes;
    size_t length;
    atomic_bool
        is_json; /* hidden in JSON too: occurs unescaped in a JSON string and is not foreign */
    atomic_bool is_foreign;
    secret_link shorter; /* the longest other one that this one begins with; NULL: none */
    secret_link next[];  /* by level */
};

/* Where secrets are hidden. */
enum hidden_in { IN_TEXT, IN_JSON, IN_VALUE };

static secret_link first[LEVELS_MAX];
static _Atomic uint64_t coarse[(1 << COARSE_BITS) / WORD_BITS];
static _Atomic uint64_t fine[(1 << FINE_BITS) / WORD_BITS];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static size_t foreign_bytes;      /* guarded by `adding` */
static atomic_bool is_incomplete; /* a key is missing in the set */

/* ---- the set ---- */

static uint64_t prefix_hash(const char *bytes)
{
    uint32_t low;
    uint16_t high;
    _Static_assert(sizeof low + sizeof high == PREFIX, "reads the prefix");
    memcpy(&low, bytes, sizeof low);
    memcpy(&high, bytes + sizeof low, sizeof high);
    return ((uint64_t)high << 32 | low) * UINT64_C(0x9E3779B97F4A7C15);
}

static bool has_bit(const _Atomic uint64_t *bitmap, uint64_t bit)
{
    uint64_t word = atomic_load_explicit(&bitmap[bit / WORD_BITS], memory_order_relaxed);
    return word >> (bit % WORD_BITS) & 1;
}

static void set_bit(_Atomic uint64_t *bitmap, uint64_t bit)
{
    atomic_fetch_or(&bitmap[bit / WORD_BITS], UINT64_C(1) << (bit % WORD_BITS));
}

/* False: no secret begins with these PREFIX bytes. */
static bool may_begin(const char *bytes)
{
    uint64_t hash = prefix_hash(bytes);
    return has_bit(coarse, hash >> (WORD_BITS - COARSE_BITS)) &&
           has_bit(fine, hash >> (WORD_BITS - FINE_BITS));
}

/* In byte order, a prefix before what it begins. */
static int compare(const struct secret *secret, const char *bytes, size_t length)
{
    size_t common = secret->length < length ? secret->length : length;
    int order = memcmp(secret->bytes, bytes, common);
    return order ? order : secret->length > length;
}

/* The last secret that is not after these bytes; NULL: none.  before, if given, gets the links that lead past them. */
static struct secret *last_not_after(const char *bytes, size_t length,
                                     secret_link *before[LEVELS_MAX])
{
    secret_link *links = first;
    struct secret *last = NULL, *next;
    for (size_t level = LEVELS_MAX; level-- > 0;) {
        while ((next = links[level]) && compare(next, bytes, length) <= 0) {
            last = next;
            links = next->next;
        }
        if (before)
            before[level] = &links[level];
    }
    return last;
}

static bool is_equal(const struct secret *secret, const char *bytes, size_t length)
{
    return secret && secret->length == length && memcmp(secret->bytes, bytes, length) == 0;
}

static size_t common_length(const struct secret *secret, const char *bytes, size_t length)
{
    size_t common = 0;
    while (common < secret->length && common < length && secret->bytes[common] == bytes[common])
        common++;
    return common;
}

/* The longest secret that these bytes begin with.  All such secrets are prefixes of the last one that is not after the
 * bytes, or it itself. */
static struct secret *longest_prefix(struct secret *last, const char *bytes, size_t length)
{
    size_t common = last ? common_length(last, bytes, length) : 0;
    while (last && last->length > common)
        last = last->shorter;
    return last;
}

static struct secret *new_secret(const char *bytes, size_t length, size_t *levels)
{
    static uint64_t state;
    state = hash_mix(state + (uintptr_t)&state); /* so that clients cannot choose keys by level */
    *levels = 1;
    for (uint64_t random = state; *levels < LEVELS_MAX && !(random & 3); random >>= 2)
        ++*levels;
    struct secret *secret =
        memory_resize(NULL, sizeof *secret + *levels * sizeof *secret->next + length + 1);
    if (!secret)
        return NULL;
    char *copy = (char *)(secret->next + *levels);
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    secret->bytes = copy;
    secret->length = length;
    return secret;
}

/* Those that begin with the new one follow it. */
static void link_longer(struct secret *added)
{
    for (struct secret *at = added->next[0]; at && at->length > added->length; at = at->next[0]) {
        struct secret *shorter = at->shorter;
        if (memcmp(at->bytes, added->bytes, added->length) != 0)
            return;
        if (!shorter || shorter->length < added->length)
            at->shorter = added;
    }
}

/* ---- adding ---- */

/* Placeholders that users enter where a key is required but not checked. */
static bool is_placeholder(const char *value)
{
    static const char *const NAMES[] = {"ollama",     "lm-studio", "lmstudio",
                                        "not-needed", "no-key",    "sk-no-key-required"};
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (strcasecmp(value, NAMES[i]) == 0)
            return true;
    return false;
}

/* Called with the lock. */
static void add_form(const char *bytes, size_t length, bool is_json, bool is_foreign)
{
    secret_link *before[LEVELS_MAX];
    size_t levels;
    struct secret *last = last_not_after(bytes, length, before);
    if (is_equal(last, bytes, length)) {
        last->is_json = last->is_json || is_json;
        last->is_foreign = last->is_foreign && is_foreign;
        return;
    }
    size_t size = is_foreign ? sizeof *last + length : 0;
    bool fits = foreign_bytes + size <= SECRET_FOREIGN_MAX;
    struct secret *secret = fits ? new_secret(bytes, length, &levels) : NULL;
    if (!secret) {
        is_incomplete = true;
        return;
    }
    foreign_bytes += size;
    atomic_init(&secret->is_json, is_json);
    atomic_init(&secret->is_foreign, is_foreign);
    atomic_init(&secret->shorter, longest_prefix(last, bytes, length));
    for (size_t level = 0; level < levels; level++)
        atomic_init(&secret->next[level], *before[level]);
    for (size_t level = 0; level < levels; level++)
        *before[level] = secret;
    link_longer(secret);
    uint64_t hash = prefix_hash(bytes);
    set_bit(fine, hash >> (WORD_BITS - FINE_BITS));
    set_bit(coarse, hash >> (WORD_BITS - COARSE_BITS));
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
    size_t length = strlen(value);
    if (!looks_random(value) || is_equal(last_not_after(value, length, NULL), value, length))
        return;
    pthread_mutex_lock(&adding);
    add_form(value, length, false, true);
    pthread_mutex_unlock(&adding);
}

void secret_add_header(const char *value)
{
    static const char *const SCHEMES[] = {"bearer ", "basic ", "token ", "apikey ", "key "};
    secret_add(value);
    for (size_t i = 0; i < COUNT_OF(SCHEMES); i++)
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
    for (size_t i = 0; i < COUNT_OF(ENDS); i++)
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
    if (!names_secret(name, length) || !chars_format(copy, "%.*s", (int)length, name))
        return false;
    for (size_t i = 0; i < COUNT_OF(TOKENS); i++)
        if (ends_nocase(name, length, TOKENS[i]))
            return false;
    bool is_key = ends_nocase(name, length, "key");
    for (size_t i = 0; is_key && i < COUNT_OF(KINDS); i++)
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
    if (!at || !chars_format(login, "%.*s", (int)(at - host), host) ||
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
    if (length < PREFIX || !may_begin(bytes))
        return 0;
    const struct secret *found = longest_prefix(last_not_after(bytes, length, NULL), bytes, length);
    while (found && !is_hidden_in(found, where))
        found = found->shorter;
    return found ? found->length : 0;
}

size_t secret_at(const char *bytes, size_t length)
{
    return find_at(bytes, length, IN_TEXT);
}

/* Whether any secret occurs; optimized for the usual case that none does. */
static bool has_secret(const char *bytes, size_t length)
{
    if (!first[0] || length < PREFIX)
        return false;
    for (const char *at = bytes, *last = bytes + length - PREFIX; at <= last; at++)
        if (may_begin(at) && find_at(at, (size_t)(bytes + length - at), IN_TEXT))
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
    if (text->length && is_incomplete) {
        text_clear(text);
        text_add(text, SECRET_MARK);
    } else if (text->length && has_secret(text->bytes, text->length))
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
    if (is_incomplete) {
        str_copy(to, size, length ? SECRET_MARK : "");
        return;
    }
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
