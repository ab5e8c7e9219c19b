/* The graders of one worker, each opened when it is first needed.
 * graders_init gives a set that graders_release takes back; one thread uses it. */
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
    struct error why; /* when it was not */
};

enum { GRADERS_MAX = 8 };

struct graders {
    const struct profile_options *options;
    char usual[48];               /* the dataset's grader */
    const struct params *grading; /* the dataset's parameters for it */
    const struct judge *judge;    /* NULL while there is none */
    struct open_grader items[GRADERS_MAX];
    size_t count;
};

void graders_init(struct graders *graders, const struct profile_options *options,
                  const struct dataset *dataset);
/* Refuses what cannot work before a question is asked: a grader that there is not, a parameter that it
 * does not have, a judge's client that there is not. */
enum err graders_check(const struct profile_options *options, const struct dataset *dataset,
                       struct error *why) MUST_USE;

void graders_release(struct graders *graders);

/* The user's, else the item's, else the dataset's; NULL when the item is not to be graded. */
const char *graders_choose(const struct graders *graders, const struct item *item);

/* Does that one need a judge?  Then it waits until the queries are through. */
bool graders_is_judge(const char *name);

/* Never fails: what cannot be graded is null, with the reason. */
void graders_grade(struct graders *graders, const char *name, const struct item *item,
                   const char *answer, struct grade *out);

#endif
