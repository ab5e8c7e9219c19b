/* Sums over the records of a run: counts, accuracy, energies, distributions.  Computed from records, so that a resumed
 * run is summed like any other.  sums_release frees what sums_init and sums_add allocated. */
#ifndef IPW_RUNNER_PROFILE_SUMS_H
#define IPW_RUNNER_PROFILE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/energy_per.h"
#include "core/err.h"
#include "metrics/intelligence.h"
#include "port/json_read.h"
#include "rundir/record.h"
#include "rundir/summary.h"
#include "stats/descriptive.h"

/* Wall clock of the queries of one start, in s; UNKNOWN if it has none. */
struct start_time {
    double from, to;
};

/* Texts shared by several records, and their counts. */
struct reason {
    char text[200];
    uint64_t count;
};
enum { SUMS_REASONS_MAX = 16 };

/* Sums over windows of x and y, for the ratio x / y and its standard error over windows. */
struct window_sums {
    double x, y, xx, xy, yy;
    uint64_t count;
};

struct sums {
    uint64_t queries, completed, failed, canceled;
    uint64_t measured;                  /* completed queries whose energy is known */
    double joules;                      /* of these queries */
    double idle_joules;                 /* idle share of these; UNKNOWN if some have none */
    double failed_joules;               /* of failed queries, and of retried attempts */
    double canceled_joules;             /* of canceled requests */
    double earlier_joules;              /* all of these, for queries of earlier starts */
    double judge_joules;                /* UNKNOWN without a judge */
    double gpu_joules, cpu_joules;      /* UNKNOWN if not measured */
    double output_tokens, input_tokens; /* of completed queries with a count; else UNKNOWN */
    struct energy_per per_output, per_input, prefill, decode;
    double prefill_joules, decode_joules; /* of queries with known phases; else UNKNOWN */
    double cost;                          /* UNKNOWN without prices */
    struct start_time *starts;            /* by start number, from 1 */
    size_t start_count, start_capacity;
    uint64_t cut;                          /* completed queries truncated at the token limit */
    double images, audio_s, denoise_steps; /* of a workload; UNKNOWN without any */
    struct energy_per per_image, per_audio_s, per_step;
    struct energy_per seconds_per_audio_s; /* latency */
    double chunk_count;                    /* of completed queries; UNKNOWN without any */
    struct energy_per chunks;              /* instead of tokens, which a server may not count */
    struct reason failures[SUMS_REASONS_MAX], token_notes[SUMS_REASONS_MAX];
    struct reason ungraded[SUMS_REASONS_MAX]; /* why completed queries have no grade */
    struct reason unread[SUMS_REASONS_MAX];   /* why the grader could not read answers */
    struct window_sums per_token, per_byte;   /* -ln p of scored windows */
    struct online scores;                     /* of graders with a score: BLEU, ROUGE ... */
    struct sketch rows[RECORD_STATISTICS];
    struct intelligence_tally tally;
    int64_t start; /* number of the current start; set it if there are earlier ones */
    bool repeats;  /* set it if questions are repeated: their answers are then kept */
    struct question *asked;
    size_t asked_count, asked_capacity;
    struct jv *metadata; /* one example of each key of the items' metadata; owned */
    struct jv_index metadata_keys;
};

void sums_init(struct sums *sums);
void sums_add(struct sums *sums, const struct record *record);
void sums_release(struct sums *sums);

/* Call after the last record: corrects the uncertainties for repeats. */
void sums_close(struct sums *sums);

/* Copies the most frequent text, with its count if there are others; false if there is none. */
bool sums_reason(const struct reason *reasons, char *to, size_t size);

/* x / y and its standard error: UNKNOWN for fewer than two windows. */
double sums_ratio(const struct window_sums *sums, double *error);

double sums_seconds(const struct sums *sums); /* first query to last, summed over starts */
struct summary_statistic sums_statistic(const struct sums *sums, enum record_statistic which);

#endif
