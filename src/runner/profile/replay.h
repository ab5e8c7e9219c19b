/* Attribution done again: the requests of one start, as spans.jsonl has them, over a sampler of history.
 * replay_run fills a replay that replay_release gives back. */
#ifndef IPW_RUNNER_PROFILE_REPLAY_H
#define IPW_RUNNER_PROFILE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"
#include "runner/profile/record.h"

struct baseline;
struct sampler;
struct share;
struct sharing;

/* A request of then. */
struct replayed {
    char key[40];
    unsigned attempt;
    struct judgement *judgement; /* of a judge's whose sending is known, else NULL; owned */
    bool last;    /* the attempt that the query's record is about; else one that failed before */
    bool cut_off; /* it was under way when the start was killed */
    nanos from;
    struct replayed *before, *next; /* the replay's */
};

struct replay_options {
    const char *spans; /* the file */
    unsigned start;    /* whose */
    bool judge;        /* the judge's requests, or the queries' */
    nanos zero;        /* what second 0 of the start is in the sampler; not 0 */
    nanos from;        /* the account begins */
    nanos measured;    /* the sampler's last reading: the start lived at least until then */
    const struct baseline *idle; /* NULL without */
    double decode_weight;
    /* Gets each request once, in the order of their ends; ERR_OK to go on. */
    enum err (*take)(void *context, const struct replayed *request, const struct share *share);
    bool (*go_on)(void *context); /* asked now and then; false breaks off: ERR_INTERRUPTED */
    void *context;
};

struct replay {
    const struct replay_options *options;
    struct sampler *sampler;
    struct sharing *sharing;
    struct replayed *all;      /* that were not handed over yet; owned */
    struct replayed **flights; /* those of them that are under way */
    size_t flight_count, flight_capacity;
    uint64_t requests; /* that were sent, those cut off included */
    nanos latest;      /* of all that is known of the start */
    nanos advanced;
    enum err err; /* of take */
    struct error *why;
};

enum err replay_run(struct replay *replay, struct sampler *sampler,
                    const struct replay_options *options, struct error *why) MUST_USE;
void replay_release(struct replay *replay);

#endif
