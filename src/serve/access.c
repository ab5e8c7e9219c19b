/* Sessions of browsers, and how often a client may ask.
 *
 * A session is a random number that a browser has got for the token; it is kept in memory only, so that the end of the
 * server ends all of them.  Requests are limited by a bucket per address that fills at a steady rate; wrong tokens by
 * one bucket for all, so that nobody can try many. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/hash.h"
#include "core/secret.h"
#include "serve/parts.h"

#define SESSION_LIFE (12 * 3600 * NS_PER_S)
enum { SESSIONS = 256, BUCKETS = 1024 };

struct session_row {
    char id[SESSION_ID_MAX];
    nanos until;
};

struct bucket {
    uint64_t who;
    double left; /* requests */
    nanos at;
};

struct access {
    struct session_row sessions[SESSIONS];
    struct bucket buckets[BUCKETS], wrong;
};

struct access *access_new(void)
{
    return calloc(1, sizeof(struct access));
}

void access_free(struct access *access)
{
    free(access);
}

/* ---- rates ---- */

static bool take_from(struct bucket *bucket, double rate, double most, nanos now)
{
    double left = bucket->at ? bucket->left + rate * seconds(now - bucket->at) : most;
    bucket->left = left < most ? left : most;
    bucket->at = now;
    if (bucket->left < 1)
        return false;
    bucket->left--;
    return true;
}

/* Of two that share a place the later one takes it: an address loses its bucket, and gets a full one. */
bool access_may_ask(struct access *access, const char *peer, nanos now)
{
    uint64_t who = hash_mix(hash_string(HASH_START, peer));
    struct bucket *bucket = &access->buckets[who % BUCKETS];
    if (bucket->who != who)
        *bucket = (struct bucket){.who = who};
    return take_from(bucket, ACCESS_RATE, ACCESS_BURST, now);
}

bool access_may_try(struct access *access, nanos now)
{
    return take_from(&access->wrong, ACCESS_TRIES / 60.0, ACCESS_TRIES, now);
}

/* ---- sessions ---- */

bool access_begin(struct access *access, nanos now, char id[static SESSION_ID_MAX])
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
    str_copy(oldest->id, sizeof oldest->id, id);
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
