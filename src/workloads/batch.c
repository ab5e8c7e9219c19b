/* The first query that waits collects the others and runs them; their threads sleep until then. */
#include "workloads/batch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "workloads/workload.h"

const struct param_spec WORKLOAD_BATCH_PARAMS[] = {
    {WORKLOAD_BATCH, "COUNT", "queries in flight that run together (1)"},
    {WORKLOAD_BATCH_DELAY, "MS", "how long the first of a batch waits for the others (50)"},
    {NULL, NULL, NULL},
};

/* A query of a thread that waits; in the order in which they came. */
struct entry {
    struct workload_query *query;
    struct entry *next;
    bool is_done;
    enum err err;
    struct error why;
    nanos began, ended;
};

struct batcher {
    struct batcher *next; /* in the list of all */
    char *key;
    size_t members;
    size_t size;
    nanos delay;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry *first, **last;
    size_t waiting;
    bool is_led; /* a thread collects or runs a batch */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct batcher *batchers; /* guarded by list_lock */

/* ---- members ---- */

static struct batcher *make_batcher(const char *key, size_t size, nanos delay)
{
    struct batcher *made = XNEW(made);
    made->key = xstrdup(key);
    made->size = size;
    made->delay = delay;
    made->last = &made->first;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    return made;
}

struct batcher *batcher_join(const char *key, size_t size, nanos delay)
{
    pthread_mutex_lock(&list_lock);
    struct batcher *found = batchers;
    while (found && !(str_equal(found->key, key) && found->size == size && found->delay == delay))
        found = found->next;
    if (!found) {
        found = make_batcher(key, size, delay);
        found->next = batchers;
        batchers = found;
    }
    found->members++;
    pthread_mutex_unlock(&list_lock);
    return found;
}

void batcher_leave(struct batcher *batcher)
{
    if (!batcher)
        return;
    pthread_mutex_lock(&list_lock);
    bool is_last = --batcher->members == 0;
    for (struct batcher **at = &batchers; is_last && *at; at = &(*at)->next)
        if (*at == batcher) {
            *at = batcher->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&batcher->changed);
    pthread_mutex_destroy(&batcher->lock);
    free(batcher->key);
    free(batcher);
}

/* ---- batches ---- */

/* Until the batch is full or late. */
static void collect(struct batcher *batcher, nanos until)
{
    for (nanos left; batcher->waiting < batcher->size && (left = until - clock_now()) > 0;)
        thread_wait(&batcher->changed, &batcher->lock, left);
}

static size_t take(struct batcher *batcher, struct entry **out)
{
    size_t count = 0;
    for (; batcher->first && count < batcher->size; count++) {
        out[count] = batcher->first;
        batcher->first = batcher->first->next;
    }
    if (!batcher->first)
        batcher->last = &batcher->first;
    batcher->waiting -= count;
    return count;
}

static void run_alone(struct workload *workload, struct entry *entry)
{
    entry->began = clock_now();
    entry->err = workload->driver->run(workload, entry->query, &entry->why);
    entry->ended = clock_now();
}

static void run_entries(struct workload *workload, struct entry **entries, size_t count)
{
    struct workload_query **queries = xcalloc(count, sizeof *queries);
    struct error why = {0};
    for (size_t i = 0; i < count; i++)
        queries[i] = entries[i]->query;
    nanos began = clock_now();
    enum err err = workload->driver->run_batch(workload, queries, count, &why);
    nanos ended = clock_now();
    free(queries);
    for (size_t i = 0; i < count; i++) {
        entries[i]->began = began;
        entries[i]->ended = ended;
        entries[i]->err = err;
        entries[i]->why = why;
        if (err && err != ERR_INTERRUPTED && count > 1)
            run_alone(workload, entries[i]);
    }
}

/* Leads one batch; called with the lock held. */
static void lead(struct batcher *batcher, struct workload *workload)
{
    struct entry **entries = xcalloc(batcher->size, sizeof *entries);
    batcher->is_led = true;
    collect(batcher, clock_now() + batcher->delay);
    size_t count = take(batcher, entries);
    pthread_mutex_unlock(&batcher->lock);
    run_entries(workload, entries, count);
    pthread_mutex_lock(&batcher->lock);
    for (size_t i = 0; i < count; i++)
        entries[i]->is_done = true;
    batcher->is_led = false;
    thread_wake(&batcher->changed);
    free(entries);
}

enum err batcher_run(struct batcher *batcher, struct workload *workload,
                     struct workload_query *query, nanos *began, nanos *ended, struct error *why)
{
    struct entry entry = {.query = query};
    pthread_mutex_lock(&batcher->lock);
    *batcher->last = &entry;
    batcher->last = &entry.next;
    batcher->waiting++;
    thread_wake(&batcher->changed);
    while (!entry.is_done) {
        if (!batcher->is_led)
            lead(batcher, workload);
        else
            pthread_cond_wait(&batcher->changed, &batcher->lock);
    }
    pthread_mutex_unlock(&batcher->lock);
    *began = entry.began;
    *ended = entry.ended;
    *why = entry.why;
    return entry.err;
}
