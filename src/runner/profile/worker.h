/* Workers: threads that each send one query after another, grade the answer and journal it.
 * workers_start gives workers that workers_join ends and frees. */
#ifndef IPW_RUNNER_PROFILE_WORKER_H
#define IPW_RUNNER_PROFILE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"
#include "graders/grader.h"

struct answer;
struct completion;
struct dataset;
struct item;
struct pending;
struct profile;
struct profile_options;
struct share;
struct text;
struct workers;

/* A request of a run: known to attribution before it is sent and handed over when it has ended; a span and a record in
 * the journals; its energy comes back later, in the main thread, through request_take_share. */

/* A request is about to be sent, in two steps: for a caller that numbers its requests itself and has no memory to spare
 * when one begins. */
enum err request_begin_as(struct profile *profile, uint64_t id, nanos at, struct error *why)
    MUST_USE;
struct pending *pending_new(uint64_t id, const char *key, unsigned attempt); /* may be NULL */

/* It has ended, and is not recorded: no journal has it, and its energy is unattributed. */
void request_drop(struct profile *profile, uint64_t id, const struct completion *reply);

/* It has ended; pending->last is set.  *line is overwritten.  Takes ownership of pending. */
enum err request_end(struct profile *profile, struct pending *pending,
                     const struct completion *reply, struct text *line, struct error *why) MUST_USE;

/* Journals the record of a query and counts it; one whose texts are too long for the journal fails, without them.
 * *line is overwritten. */
enum err request_record(struct profile *profile, struct answer *answer, struct text *line,
                        struct error *why) MUST_USE;

/* For settle_begin: journals the energy of a request.  context is the profile. */
void request_take_share(void *context, const struct share *share);

/* So many queries may end while those before them are settled; then workers wait, so that a client that
 * answers at once cannot fill the memory with unsettled queries.  No service is so fast: it takes more
 * than this many answers between two settlings. */
enum { WORKERS_PENDING_MAX = 4096 };

/* Opens a client for each and starts them.  On failure none is left running. */
enum err workers_start(struct profile *profile, unsigned count, struct workers **out,
                       struct error *why) MUST_USE;
void workers_join(struct workers *workers);

/* Sends `wanted` queries from the front of the dataset, one after another, and discards the answers.
 * Nothing is taken from the run's own supply; profile->done counts them.  *answered is how many were
 * answered. */
enum err warm_up_queries(struct profile *profile, unsigned wanted, unsigned *answered,
                         struct error *why) MUST_USE;

/* ---- grading: grading.c ---- */

/* The graders of one worker, each opened when it is first needed; used by one thread.
 * graders_release frees what graders_init and graders_grade opened. */
struct open_grader {
    char name[48];
    struct grader grader;
    bool opened;
    struct error why; /* why it was not opened */
};

enum { GRADERS_MAX = 8 };

struct graders {
    const struct profile_options *options;
    char usual[48];               /* the dataset's grader */
    const struct params *grading; /* the dataset's parameters for it */
    const struct judge *judge;    /* NULL without one */
    struct open_grader items[GRADERS_MAX];
    size_t count;
};

void graders_init(struct graders *graders, const struct profile_options *options,
                  const struct dataset *dataset);

/* Reports mistakes before the first query: an unknown grader, an unknown parameter of it, an unknown client of
 * the judge. */
enum err graders_check(const struct profile_options *options, const struct dataset *dataset,
                       struct error *why) MUST_USE;

void graders_release(struct graders *graders);

/* The user's, else the item's, else the dataset's, else that for its answer; NULL when it is not graded. */
const char *graders_choose(const struct graders *graders, const struct item *item);

/* Does it need a judge?  Then it is applied when all queries have ended. */
bool graders_is_judge(const char *name);

/* Never fails: what cannot be graded is null, with the reason. */
void graders_grade(struct graders *graders, const char *name, const struct item *item,
                   const char *answer, struct grade *out);

#endif
