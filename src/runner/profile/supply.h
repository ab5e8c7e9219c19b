/* The supply of queries: the items of the dataset, repeated as often as asked for, without those that an
 * earlier start has done, each with the time it is due.  Any thread may take from it.
 * supply_open fills a supply that supply_close frees, supply_next a query that query_release frees. */
#ifndef IPW_RUNNER_PROFILE_SUPPLY_H
#define IPW_RUNNER_PROFILE_SUPPLY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/random.h"
#include "core/units.h"
#include "datasets/dataset.h"
#include "rundir/run_path.h"

struct client_windows;
struct text;

struct query {
    struct item item;
    uint64_t index;  /* in the dataset, from 0 */
    unsigned repeat; /* from 0 */
    char key[QUERY_KEY_MAX];
    nanos due; /* when it should be sent; 0: at once */
};
void query_release(struct query *query);

/* A set of queries, such as those that earlier starts have done: a bit for each.  Set `repeats` first. */
struct query_set {
    unsigned repeats; /* how often each item is asked */
    unsigned char *bits;
    size_t bytes;
    uint64_t count;
};
enum err query_set_add(struct query_set *set, uint64_t index, unsigned repeat) MUST_USE;
bool query_set_has(const struct query_set *set, uint64_t index, unsigned repeat);
/* Walks the set: *at is 0 at first; false at the end. */
bool query_set_next(const struct query_set *set, uint64_t *at, uint64_t *index, unsigned *repeat);
/* Empties it; `repeats` stays. */
void query_set_release(struct query_set *set);

struct supply {
    const char *name;
    struct dataset_config config;
    struct dataset dataset;
    const struct client_windows *windows; /* as of its options */
    pthread_mutex_t lock;
    const struct query_set *done;
    uint64_t max_items;     /* per repeat; UINT64_MAX for all */
    unsigned shard, shards; /* only every shards-th of them, from the shard-th (1) on; 0: all */
    unsigned repeats;
    double rate;
    struct random random; /* of the arrivals */
    uint64_t index;
    unsigned repeat;
    nanos due;
    bool ended;
    uint64_t bad_rows;
    struct error first_bad;
    int64_t total; /* queries that this start will make; -1 unknown */
};

struct supply_options {
    const char *dataset;
    const struct params *params;
    const struct client_windows *windows; /* the items, instead of the dataset's; NULL: none */
    const struct query_set *done;
    uint64_t max_items;
    unsigned shard, shards;
    unsigned repeats;
    double rate;
    uint64_t seed;
};

enum err supply_open(struct supply *supply, const struct supply_options *options, struct error *why)
    MUST_USE;
void supply_close(struct supply *supply);

/* The next query in *out, or *end set.  Rows that cannot be used are counted and skipped. */
enum err supply_next(struct supply *supply, struct query *out, bool *end, struct error *why)
    MUST_USE;

/* The prompt: the item's problem, or the template around it.  {problem}, {subject}, {id} and {KEY} of the item's metadata
 * are replaced; ERR_USAGE, with what there is, for another name.  Braces around what is no name stay.  In the template
 * \n and \t are a line break and a tab, \{, \} and \\ the characters.  NULL: the problem as it is. */
enum err prompt_render(const char *template_text, const struct item *item, struct text *out,
                       struct error *why) MUST_USE;

#endif
