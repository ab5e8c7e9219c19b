/* Numbers to be put in order; no two are the same. */
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "datasets/tasks/task.h"

enum { MOST = 7 };

static int ascending(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

static void add_numbers(struct text *out, const long long *values, unsigned count, bool backwards)
{
    for (unsigned i = 0; i < count; i++)
        text_addf(out, "%s%lld", i ? ", " : "", values[backwards ? count - 1 - i : i]);
}

static bool contains(const long long *values, unsigned count, long long value)
{
    for (unsigned i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

static void make(struct random *random, unsigned level, struct task_item *out)
{
    static const struct {
        unsigned count;
        long long most;
        unsigned directions; /* 1: upwards; 2: either */
    } LEVELS[TASK_LEVELS] = {{3, 20, 1}, {4, 99, 1}, {5, 99, 2}, {5, 999, 2}, {MOST, 999, 2}};
    long long values[MOST];
    unsigned count = LEVELS[level - 1].count;
    for (unsigned i = 0; i < count;) {
        values[i] = random_between(random, 0, LEVELS[level - 1].most);
        i += !contains(values, i, values[i]);
    }
    bool down = random_below(random, LEVELS[level - 1].directions) == 1;
    out->grader = "list";
    text_addf(&out->problem, "Sort from %s: ", down ? "large to small" : "small to large");
    add_numbers(&out->problem, values, count, false);
    qsort(values, count, sizeof *values, ascending);
    add_numbers(&out->answer, values, count, down);
}

const struct task task_sorting = {.name = "sorting", .make = make};
