/* Workers: threads that send queries one after another, grade the answers and journal them. workers_start allocates
 * workers that workers_join ends and frees. */
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
struct profile_shared;
struct share;
struct text;
struct workers;

/* A request of a run: announced to attribution before it is sent and submitted when it has ended; a span and a record
 * in the journals; its energy is settled later, in the main thread, through request_take_share. */

/* Begins a request in two steps, for a caller that numbers its requests itself and must not allocate when one
 * begins. */
enum err request_begin_as(struct profile_shared *shared, uint64_t id, nanos at, struct error *why)
    MUST_USE;
struct pending *pending_new(uint64_t id, const char *key, unsigned attempt); /* NULL: no memory */

/* The request has ended and is not recorded: it is in no journal, and its energy is unattributed. */
void request_drop(struct profile_shared *shared, uint64_t id, const struct completion *reply);

/* The same for inference at an endpoint that is not recorded; and for a request that turned out not to be inference: it
 * counts as never begun. */
void request_end_unknown(struct profile_shared *shared, uint64_t id, nanos from, nanos to);
void request_withdraw(struct profile_shared *shared, uint64_t id);

/* The request has ended; pending->last is set.  *line is overwritten.  Takes ownership of pending. */
enum err request_end(struct profile *profile, struct pending *pending,
                     const struct completion *reply, struct text *line, struct error *why) MUST_USE;

/* Journals the record of a query and counts it; if it is too long for the journal, it fails, without its texts. *line
 * is overwritten. */
enum err request_record(struct profile *profile, struct answer *answer, struct text *line,
                        struct error *why) MUST_USE;

/* For settle_begin: journals the energy of a request.  context is the profile. */
void request_take_share(void *context, const struct share *share);

/* Maximum number of ended queries waiting to be settled; then workers wait, so that a client that answers instantly
 * cannot exhaust memory.  No service is that fast: it takes more than this many answers between two settlings. */
enum { WORKERS_PENDING_MAX = 4096 };

/* Opens a client for each worker and starts them.  On failure none is left running. */
enum err workers_start(struct profile *profile, unsigned count, struct workers **out,
                       struct error *why) MUST_USE;
void workers_join(struct workers *workers);

/* Sends `wanted` queries from the start of the dataset, sequentially, and discards the answers.  The run's own supply
 * is not used; profile->done counts them.  *answered is the number of answers. */
enum err warm_up_queries(struct profile *profile, unsigned wanted, unsigned *answered,
                         struct error *why) MUST_USE;

/* ---- grading: grading.c ---- */

/* The graders of one worker, each opened on first use; for one thread. graders_release frees what graders_init and
 * graders_grade opened. */
struct open_grader {
    char name[48];
    struct grader grader;
    bool opened;
    struct error why; /* why it could not be opened */
};

enum { GRADERS_MAX = 8 };

struct graders {
    const struct profile_options *options;
    char usual[48];               /* name of the dataset's grader */
    const struct params *grading; /* the dataset's parameters for it */
    const struct judge *judge;    /* NULL: none */
    struct open_grader items[GRADERS_MAX];
    size_t count;
};

void graders_init(struct graders *graders, const struct profile_options *options,
                  const struct dataset *dataset);

/* Reports configuration errors before the first query: an unknown grader, parameter, or judge client. */
enum err graders_check(const struct profile_options *options, const struct dataset *dataset,
                       struct error *why) MUST_USE;

void graders_release(struct graders *graders);

/* The user's, else the item's, else the dataset's, else one chosen by the expected answer; NULL: not graded. */
const char *graders_choose(const struct graders *graders, const struct item *item);

/* Whether it needs a judge: it is then applied after all queries. */
bool graders_is_judge(const char *name);

/* Never fail: an answer that cannot be graded has a null grade, with the reason. */
void grade_answer(struct grader *grader, const struct item *item, const char *answer,
                  struct grade *out);
/* The driver's metrics of all answers (grader_corpus); ERR_USAGE: it cannot be opened. */
enum err graders_corpus(struct graders *graders, const char *name, struct grading *items,
                        size_t count, struct grader_quality out[GRADER_QUALITIES_MAX],
                        size_t *out_count, struct error *why) MUST_USE;
void graders_grade(struct graders *graders, const char *name, const struct item *item,
                   const char *answer, struct grade *out);

#endif
