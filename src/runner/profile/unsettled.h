/* What the last start in a journal left open: queries that ended without their energy, attempts,
 * judgements.  unsettled_read fills a struct that unsettled_release gives back. */
#ifndef IPW_RUNNER_PROFILE_UNSETTLED_H
#define IPW_RUNNER_PROFILE_UNSETTLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "runner/profile/supply.h"

struct jv;

/* An attempt whose energy is there. */
struct settled_attempt {
    uint64_t index;
    unsigned repeat, attempt;
    bool cut_off; /* by a kill, and restored */
};

struct unsettled {
    unsigned repeats;
    unsigned start;       /* its number; 0: there is none */
    double started_at;    /* in s since 1970: the zero of its times */
    struct jv *measuring; /* NULL when the journal does not tell */
    bool ended, judging;
    double judge_from_s;
    double requests_joules;            /* of all energies of its requests; UNKNOWN for none */
    struct done_set queries, energies; /* of this start */
    struct done_set grades, judges;    /* likewise */
    struct done_set judged_before;     /* by earlier starts */
    struct settled_attempt *attempts;
    size_t attempt_count, attempt_capacity;
};

/* repeats: how often each item is asked. */
enum err unsettled_read(const char *journal, unsigned repeats, struct unsettled *out,
                        struct error *why) MUST_USE;
void unsettled_release(struct unsettled *unsettled);

bool unsettled_has_query(const struct unsettled *unsettled, const char *key);
bool unsettled_has_energy(const struct unsettled *unsettled, const char *key);
bool unsettled_has_judge(const struct unsettled *unsettled, const char *key);
bool unsettled_has_attempt(const struct unsettled *unsettled, const char *key, unsigned attempt,
                           bool cut_off);

/* Walks the keys of what lacks an energy: of the queries, and of the judge's grades.  Zero the walk
 * first; false at the end. */
struct unsettled_walk {
    uint64_t place;
};
bool unsettled_next_query(const struct unsettled *unsettled, struct unsettled_walk *walk, char *key,
                          size_t size);
bool unsettled_next_grade(const struct unsettled *unsettled, struct unsettled_walk *walk, char *key,
                          size_t size);

#endif
