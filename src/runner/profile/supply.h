/* The supply of queries: the items of the dataset, repeated as requested, without those that an earlier start
 * completed, each with its scheduled time.  Thread-safe. supply_open fills a supply that supply_close frees,
 * supply_next a query that query_release frees. */
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
    uint64_t index;  /* index in the dataset, from 0 */
    unsigned repeat; /* from 0 */
    char key[QUERY_KEY_MAX];
    nanos due; /* when it should be sent; 0: at once */
};
void query_release(struct query *query);

/* A set of queries, such as those completed by earlier starts: one bit each.  Set `repeats` first. */
struct query_set {
    unsigned repeats; /* how often each item is asked */
    unsigned char *bits;
    size_t bytes;
    uint64_t count;
};
void query_set_add(struct query_set *set, uint64_t index, unsigned repeat);
bool query_set_has(const struct query_set *set, uint64_t index, unsigned repeat);
/* Iterates over the set: *at is 0 at first; false at the end. */
bool query_set_next(const struct query_set *set, uint64_t *at, uint64_t *index, unsigned *repeat);
/* Empties the set; keeps `repeats`. */
void query_set_release(struct query_set *set);

struct supply {
    const char *name;
    struct dataset_config config;
    struct dataset dataset;
    const struct client_windows *windows; /* from the options */
    pthread_mutex_t lock;
    const struct query_set *done;
    uint64_t max_items;     /* per repeat; UINT64_MAX for all */
    unsigned shard, shards; /* only every shards-th, starting at the shard-th (from 1); 0: all */
    unsigned repeats;
    double rate;
    struct random random; /* for the arrivals */
    uint64_t index;
    unsigned repeat;
    nanos due;
    bool ended;
    uint64_t bad_rows;
    struct error first_bad;
    int64_t total; /* queries of this start; -1: unknown */
};

struct supply_options {
    const char *dataset;
    const struct params *params;
    const struct client_windows *windows; /* replace the dataset's items; NULL: none */
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

/* Gets the next query, or sets *end.  Invalid rows are counted and skipped. */
enum err supply_next(struct supply *supply, struct query *out, bool *end, struct error *why)
    MUST_USE;

/* How prompts are made of items. */
struct prompt_form {
    const char *template_text; /* NULL: the problem itself */
    const char *answer_format; /* follows each problem; NULL: nothing does */
};

/* Renders the prompt: the item's problem, or the template around it.  {problem}, {subject}, {id} and {KEY} of the
 * item's metadata are replaced; ERR_USAGE for an unknown name, listing the known ones.  Other braces stay.  In the
 * template \n and \t are a line break and a tab, \{, \} and \\ the literal characters. */
enum err prompt_render(const struct prompt_form *form, const struct item *item, struct text *out,
                       struct error *why) MUST_USE;

#endif
