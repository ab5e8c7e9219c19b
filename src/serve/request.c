/* Requests and responses: decoding of path and parameters, authorization, errors.
 *
 * Path and parameters must be UTF-8 without control characters.  Path segments are decoded after they were separated,
 * so that an encoded slash is part of an id and cannot lead to another folder. */
#define _GNU_SOURCE
#include "serve/api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/result.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "report/print/print.h"

/* In place; false for an invalid escape or a NUL. */
static bool decode(char *string, bool plus)
{
    char *to = string;
    for (const char *at = string; *at; at++) {
        int high = -1, low = -1;
        if (*at != '%') {
            *to++ = (char)(plus && *at == '+' ? ' ' : *at);
            continue;
        }
        if ((high = hex_digit(at[1])) < 0 || (low = hex_digit(at[2])) < 0 || (!high && !low))
            return false;
        *to++ = (char)(high << 4 | low);
        at += 2;
    }
    *to = '\0';
    return true;
}

static enum err read_params(char *query, struct request *out, struct error *why)
{
    for (char *next; query && *query; query = next) {
        if ((next = strchr(query, '&')))
            *next++ = '\0';
        if (!*query)
            continue;
        if (out->param_count == PARAMS_MAX)
            return err_set(why, ERR_USAGE, "more than %d parameters", PARAMS_MAX);
        char *value = strchr(query, '=');
        if (value)
            *value++ = '\0';
        if (!decode(query, true) || (value && !decode(value, true)) || !str_is_plain(query) ||
            (value && !str_is_plain(value)))
            return err_set(why, ERR_USAGE, "malformed parameter");
        out->params[out->param_count].name = query;
        out->params[out->param_count++].value = text_or_empty(value);
    }
    return ERR_OK;
}

enum err request_read(const char *target, struct request *out, struct error *why)
{
    *out = (struct request){0};
    if (target[0] != '/')
        return err_set(why, ERR_USAGE, "malformed path");
    text_add(&out->bytes, target);
    char *query = strchr(out->bytes.bytes, '?');
    if (query)
        *query++ = '\0';
    out->path = out->bytes.bytes;
    return read_params(query, out, why);
}

void request_release(struct request *request)
{
    text_release(&request->bytes);
    text_release(&request->body);
}

/* Segments that match {...} are decoded in place: a path can be matched only once. */
bool request_matches(struct request *request, const char *pattern)
{
    char *at = request->bytes.bytes;
    char *begin[PATH_ID_MAX];
    size_t length[PATH_ID_MAX], count = 0;
    while (*pattern && *at) {
        if (*pattern != '{') {
            if (*pattern++ != *at++)
                return false;
            continue;
        }
        if (count == PATH_ID_MAX)
            return false;
        begin[count] = at;
        length[count] = strcspn(at, "/");
        if (!length[count])
            return false;
        at += length[count++];
        pattern = strchr(pattern, '}') + 1;
    }
    if (*pattern || *at)
        return false;
    for (size_t i = 0; i < count; i++) {
        begin[i][length[i]] = '\0';
        if (!decode(begin[i], false) || !str_is_plain(begin[i]))
            begin[i][0] = '\0'; /* an invalid segment matches no run */
        request->ids[i] = begin[i];
    }
    return true;
}

void request_encode(struct text *to, const char *string)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    for (; *string; string++)
        if (strchr(PLAIN, *string))
            text_add_bytes(to, string, 1);
        else
            text_addf(to, "%%%02X", (unsigned char)*string);
}

const char *request_param(const struct request *request, const char *name)
{
    const struct request_param *found =
        str_find(name, request->params, request->param_count, sizeof *found);
    return found ? str_or_null(found->value) : NULL;
}

static bool is_accepted(const char *name, const char *names, bool *may_repeat)
{
    size_t length = strlen(name);
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        *may_repeat = word && at[word - 1] == '*';
        if (word - *may_repeat == length && !memcmp(at, name, length))
            return true;
        at += word;
    }
    return false;
}

enum err request_check(const struct request *request, const char *names, struct error *why)
{
    bool may_repeat;
    for (size_t i = 0; i < request->param_count; i++) {
        const char *name = request->params[i].name;
        if (!is_accepted(name, names, &may_repeat))
            return err_set(why, ERR_USAGE, "unknown parameter '%.60s'", name);
        if (!may_repeat && str_find(name, request->params, i, sizeof *request->params))
            return err_set(why, ERR_USAGE, "parameter '%.60s' given more than once", name);
    }
    return ERR_OK;
}

enum err request_count(const struct request *request, const char *name, unsigned min, unsigned max,
                       unsigned *inout, struct error *why)
{
    uint64_t value = *inout;
    const char *given = request_param(request, name);
    if (given && (parse_u64(given, &value) || value < min || value > max))
        return err_set(why, ERR_USAGE, "%s: a whole number from %u to %u", name, min, max);
    *inout = (unsigned)value;
    return ERR_OK;
}

/* ---- responses ---- */

void response_object(struct api_response *answer, struct json *json)
{
    answer->type = "application/json";
    json_init(json, &answer->body, false);
    json_object(json, NULL);
}

void response_result(struct api_response *answer, struct result *result)
{
    struct json json;
    answer->type = "application/json";
    json_init(&json, &answer->body, false);
    result_to_json(result, NULL, &json);
    result_release(result);
}

void response_set_status(struct api_response *answer, int status, const char *code,
                         const char *message)
{
    struct json json;
    text_clear(&answer->body);
    response_object(answer, &json);
    json_object(&json, "error");
    json_string(&json, "code", code);
    json_string(&json, "message", message);
    json_object_end(&json);
    json_object_end(&json);
    answer->status = status;
    answer->policy = NULL;
    answer->file[0] = '\0';
}

/* Invalid data of a run is not a server error: 409. */
void response_set_error(struct api_response *answer, enum err err, const char *message)
{
    static const struct {
        enum err err;
        int status;
        const char *code;
    } KINDS[] = {
        {ERR_USAGE, 400, "bad_request"},
        {ERR_NOT_FOUND, 404, "not_found"},
        {ERR_NO_DATA, 409, "no_data"},
        {ERR_BAD_VALUE, 409, "bad_data"},
        {ERR_UNSUPPORTED, 501, "unsupported"},
        {ERR_DENIED, 403, "denied"},
        {ERR_BUSY, 503, "busy"},
        {ERR_LOST, 503, "unavailable"},
    };
    for (size_t i = 0; i < COUNT_OF(KINDS); i++)
        if (KINDS[i].err == err) {
            response_set_status(answer, KINDS[i].status, KINDS[i].code, message);
            return;
        }
    response_set_status(answer, 500, "failed", message);
}

/* ---- access ---- */

/* Browser sessions and rate limits.
 *
 * A session is a random number that a browser gets in exchange for the token; it is kept in memory only, so sessions
 * end with the server.  Requests are limited by a token bucket per address. */

#define SESSION_LIFE (12 * 3600 * NS_PER_S)
enum { SESSIONS = 256, BUCKETS = 1024 };

struct session_row {
    char id[SESSION_ID_MAX];
    nanos until;
};

struct bucket {
    uint64_t address;
    double left; /* requests */
    nanos at;
};

struct access {
    struct session_row sessions[SESSIONS];
    struct bucket buckets[BUCKETS];
};

struct access *access_new(void)
{
    return xcalloc(1, sizeof(struct access));
}

void access_free(struct access *access)
{
    free(access);
}

/* ---- rates ---- */

static bool take_from(struct bucket *bucket, double rate, double max, nanos now)
{
    double left = bucket->at ? bucket->left + rate * seconds(now - bucket->at) : max;
    bucket->left = left < max ? left : max;
    bucket->at = now;
    if (bucket->left < 1)
        return false;
    bucket->left--;
    return true;
}

/* On a hash collision the newer address takes the bucket over, with a full one. */
bool access_check_rate(struct access *access, const char *peer, nanos now)
{
    uint64_t address = hash_mix(hash_string(HASH_START, peer));
    struct bucket *bucket = &access->buckets[address % BUCKETS];
    if (bucket->address != address)
        *bucket = (struct bucket){.address = address};
    return take_from(bucket, ACCESS_RATE, ACCESS_BURST, now);
}

/* ---- sessions ---- */

bool access_new_session(struct access *access, nanos now, char id[static SESSION_ID_MAX])
{
    unsigned char bytes[(SESSION_ID_MAX - 1) / 2];
    struct session_row *oldest = &access->sessions[0];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        str_format(id + 2 * i, 3, "%02x", bytes[i]);
    for (size_t i = 1; i < SESSIONS; i++)
        if (access->sessions[i].until < oldest->until)
            oldest = &access->sessions[i];
    chars_copy(oldest->id, id);
    oldest->until = now + SESSION_LIFE;
    return true;
}

/* "a=1; ipw_session=ID; b=2" */
static bool session_id(const char *cookies, char id[static SESSION_ID_MAX])
{
    static const char NAME[] = SESSION_COOKIE "=";
    for (const char *at = cookies; at && *at; at += strcspn(at, ";"), at += *at == ';') {
        at += strspn(at, " ");
        if (!str_starts(at, NAME))
            continue;
        at += strlen(NAME);
        return strcspn(at, ";") == SESSION_ID_MAX - 1 &&
               str_format(id, SESSION_ID_MAX, "%.*s", SESSION_ID_MAX - 1, at);
    }
    return false;
}

bool access_has_session(const struct access *access, const char *cookies, nanos now)
{
    char id[SESSION_ID_MAX];
    bool found = false;
    if (!session_id(cookies, id))
        return false;
    for (size_t i = 0; i < SESSIONS; i++)
        found |= access->sessions[i].until > now && secret_matches(id, access->sessions[i].id);
    return found;
}
