/* The kinds of task of the builtin dataset.  Each makes one question with a checkable answer out of
 * random numbers.  Prompts are short and of few words, so that a small model can learn them; levels
 * go from 1 to 5, each harder than the one before.  The caller owns every text. */
#ifndef IPW_DATASETS_TASKS_TASK_H
#define IPW_DATASETS_TASKS_TASK_H

#include "core/text.h"

struct random;

enum { TASK_LEVELS = 5, TASK_COUNT_MAX = 8 };

struct task_item {
    struct text problem, answer; /* cleared before make */
    const char *grader;          /* how to compare */
};

struct task {
    const char *name;
    void (*make)(struct random *random, unsigned level, struct task_item *out);
};

/* Ends with a NULL. */
extern const struct task *const BUILTIN_TASKS[];

#endif
