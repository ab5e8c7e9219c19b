/* The judge's turn: when the queries are through, the answers that only a model can grade are put to
 * one, several at a time, and what that costs is accounted apart.
 * judging_start gives a judging that judging_join ends. */
#ifndef IPW_RUNNER_PROFILE_JUDGING_H
#define IPW_RUNNER_PROFILE_JUDGING_H

#include <stdint.h>

#include "core/err.h"

struct judging;
struct profile_run;
struct share;

/* Answers in the journal that wait for a judge: graded by one that needs it, and not graded yet. */
enum err judging_count(struct profile_run *run, const char *journal, uint64_t *out,
                       struct error *why) MUST_USE;

/* Checks the judge first: its service must answer.  run->done and failed count from 0 again. */
enum err judging_start(struct profile_run *run, const char *journal, struct judging **out,
                       struct error *why) MUST_USE;
void judging_join(struct judging *judging);

/* For sharing_advance: the energy of one judgement is known. */
void judging_take_share(void *context, const struct share *share);

#endif
