/* Sums over the records of a run: counts, accuracy, energies, distributions.  Fed with records, so that a resumed
 * run is summed like any other.  sums_release frees what sums_init and sums_add allocated. */
#ifndef IPW_RUNNER_PROFILE_SUMS_H
#define IPW_RUNNER_PROFILE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "metrics/intelligence.h"
#include "port/json_read.h"
#include "rundir/record.h"
#include "rundir/summary.h"
#include "stats/descriptive.h"

/* Wall clock of the queries of one start, s; UNKNOWN without any. */
struct start_time {
    double from, to;
};

/* Texts that several records share, and how often. */
struct reason {
    char text[200];
    uint64_t count;
};
enum { SUMS_REASONS_MAX = 16 };

/* Over the queries that have both an energy and a token count. */
struct energy_per_token {
    double joules, tokens;
};

/* Sums over windows of x and y, for x / y and how sure it is over other windows of such a text. */
struct window_sums {
    double x, y, xx, xy, yy;
    uint64_t count;
};

struct sums {
    uint64_t queries, completed, failed;
    uint64_t measured;                  /* completed queries whose energy is known */
    double joules;                      /* of those */
    double idle_joules;                 /* their idle share; UNKNOWN when some have none */
    double failed_joules;               /* of failed queries, and of attempts that were retried */
    double earlier_joules;              /* both, of queries of earlier starts */
    double judge_joules;                /* UNKNOWN without a judge */
    double gpu_joules, cpu_joules;      /* UNKNOWN without any */
    double output_tokens, input_tokens; /* of completed queries that have a count; else UNKNOWN */
    struct energy_per_token per_output, per_input, prefill, decode;
    double prefill_joules, decode_joules; /* of queries whose phases are known; else UNKNOWN */
    double cost;                          /* UNKNOWN without prices */
    struct start_time *starts;            /* by the number of the start, from 1 */
    size_t start_count, start_capacity;
    uint64_t cut;                   /* completed queries that reached the token limit */
    double chunk_count;             /* of completed queries; UNKNOWN without any */
    struct energy_per_token chunks; /* in place of tokens, which a server may not count */
    struct reason failures[SUMS_REASONS_MAX], token_notes[SUMS_REASONS_MAX];
    struct reason ungraded[SUMS_REASONS_MAX]; /* why completed queries have no grade */
    struct window_sums per_token, per_byte;   /* -ln p of windows that were scored */
    struct online scores;                     /* of graders that give one: BLEU, ROUGE ... */
    struct sketch rows[RECORD_STATISTICS];
    struct intelligence_tally tally;
    int64_t start; /* the current one; set it where there are earlier ones */
    bool repeats;  /* set it where questions are asked several times: their answers are kept then */
    struct question *asked;
    size_t asked_count, asked_capacity;
    struct jv *metadata; /* one example of each key in the items' metadata; owned */
    struct jv_index metadata_keys;
};

enum err sums_init(struct sums *sums) MUST_USE;
enum err sums_add(struct sums *sums, const struct record *record) MUST_USE;
void sums_release(struct sums *sums);

/* After the last record: how repeats change the uncertainties. */
void sums_close(struct sums *sums);

/* Copies the most frequent one, with how often where there are others; false where there is none. */
bool sums_reason(const struct reason *reasons, char *to, size_t size);

/* x / y, and its standard error: UNKNOWN under two windows. */
double sums_ratio(const struct window_sums *sums, double *error);

double sums_seconds(const struct sums *sums); /* from the first query to the last, all starts */
struct summary_statistic sums_statistic(const struct sums *sums, enum record_statistic which);

#endif
