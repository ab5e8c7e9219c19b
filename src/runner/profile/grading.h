/* The graders of one worker, each opened when it is first needed; used by one thread.
 * graders_release frees what graders_init and graders_grade opened. */
#ifndef IPW_RUNNER_PROFILE_GRADING_H
#define IPW_RUNNER_PROFILE_GRADING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "graders/grader.h"

struct dataset;
struct item;
struct profile_options;

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
