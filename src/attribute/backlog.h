/* The requests that sharing has not come to yet: those in flight, and those that have ended and wait
 * for their time to be settled.  Private to sharing.  Owns the sharers it was given until they are
 * popped.  begin, end, forget and the two that tell of room may be called by any thread, the rest by
 * one. */
#ifndef IPW_ATTRIBUTE_BACKLOG_H
#define IPW_ATTRIBUTE_BACKLOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/slice.h"
#include "core/err.h"
#include "core/units.h"

/* A list of sharers; whoever holds it says whether it owns them. */
struct sharers {
    struct sharer **items;
    size_t count, capacity;
};

/* Room for `more` after those there are. */
enum err sharers_reserve(struct sharers *list, size_t more) MUST_USE;
/* Into room that was reserved. */
void sharers_add(struct sharers *list, struct sharer *sharer);
/* Frees the sharers too. */
void sharers_release(struct sharers *list);

struct flight {
    uint64_t id;
    nanos from;
};

struct backlog {
    pthread_mutex_t lock; /* guards flights and ended */
    struct flight *flights;
    size_t flight_count, flight_capacity;
    pthread_cond_t collected;
    struct sharers ended;   /* since the last collect */
    struct sharers waiting; /* a heap: the one that began first on top */
};

void backlog_init(struct backlog *backlog);
void backlog_release(struct backlog *backlog);

enum err backlog_begin(struct backlog *backlog, uint64_t id, nanos from) MUST_USE;
/* Takes the sharer when it succeeds; ERR_NOT_FOUND when none of that id is in flight. */
enum err backlog_end(struct backlog *backlog, struct sharer *sharer) MUST_USE;
void backlog_forget(struct backlog *backlog, uint64_t id);

/* How many have ended since the last collect. */
size_t backlog_ended(struct backlog *backlog);
/* Waits, at most about `patience`, until they are fewer than `most`; false when they are not. */
bool backlog_has_room(struct backlog *backlog, size_t most, nanos patience);

/* Makes those that have ended ready to be popped, and tells when the first of those in flight began;
 * INT64_MAX when none is. */
enum err backlog_collect(struct backlog *backlog, nanos *earliest) MUST_USE;

/* The next one that has to be known up to `limit`, the one that began first; NULL when there is no
 * more. */
struct sharer *backlog_pop(struct backlog *backlog, nanos limit);

/* Which of two began, or ended, first; never equal for two different ids. */
int backlog_by_start(const struct sharer *a, const struct sharer *b);
int backlog_by_end(const struct sharer *a, const struct sharer *b);

#endif
