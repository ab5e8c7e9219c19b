/* Sums over the finished records of a run: counts, accuracy, distributions.  Fed with records, so that
 * a resumed run is summed like any other.  sums_release gives the memory back. */
#ifndef IPW_RUNNER_PROFILE_SUMS_H
#define IPW_RUNNER_PROFILE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "metrics/intelligence.h"
#include "rundir/record.h"
#include "stats/online.h"

struct json;
struct jv;

/* The distributions: STATISTIC_ENERGY ... of rundir/record.def. */
enum { SUM_COUNT = RECORD_STATISTICS };

enum { STARTS_MOST = 64 };

/* Of the queries that have both an energy and a count. */
struct paid {
    double joules, tokens;
};

struct sums {
    uint64_t queries, completed, failed;
    uint64_t measured;             /* completed queries whose energy is known */
    double joules;                 /* of those, failed attempts included */
    double idle_joules;            /* their idle share; UNKNOWN when some have none */
    double failed_joules;          /* of queries that failed and of attempts that were repeated */
    double judge_joules;           /* UNKNOWN without a judge */
    double gpu_joules, cpu_joules; /* UNKNOWN without any */
    double output_tokens, input_tokens; /* of completed queries that have a count; else UNKNOWN */
    struct paid per_output, per_input, prefill, decode;
    double prefill_joules, decode_joules;      /* of those whose phases are known; else UNKNOWN */
    double cost;                               /* UNKNOWN without prices */
    double from[STARTS_MOST], to[STARTS_MOST]; /* wall clock of each start's queries, s */
    struct sketch rows[SUM_COUNT];
    struct intelligence_tally tally;
    bool repeats; /* set it where questions are asked several times: their answers are kept then */
    struct question *asked;
    size_t asked_count, asked_capacity;
    struct jv *metadata; /* one example of each key in the items' metadata; owned */
};

enum err sums_init(struct sums *sums) MUST_USE;
enum err sums_add(struct sums *sums, const char *model, const struct jv *record) MUST_USE;
void sums_release(struct sums *sums);

/* After the last record: what repeats make of the figures' uncertainty. */
void sums_close(struct sums *sums);

double sums_seconds(const struct sums *sums); /* from the first query to the last, all starts */

/* "statistics": {key: {avg, median, min, max, std, p95, count}}. */
void sums_to_json(struct json *json, const char *key, const struct sums *sums);

#endif
