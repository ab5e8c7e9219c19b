/* The next number of a row: equal steps up, larger steps, steps down, factors, growing steps. */
#include "core/random.h"
#include "datasets/tasks/task.h"

/* Shows `shown` numbers; the next one is the answer.  After each the step grows, then the number is
 * multiplied, then the step is added. */
static void ask(struct task_item *out, long long number, long long step, long long growth,
                long long factor, unsigned shown)
{
    out->grader = "numeric";
    text_add(&out->problem, "What comes next: ");
    for (unsigned i = 0; i < shown; i++) {
        text_addf(&out->problem, "%s%lld", i ? ", " : "", number);
        number = number * factor + step;
        step += growth;
    }
    text_add(&out->problem, "?");
    text_addf(&out->answer, "%lld", number);
}

static void make(struct random *random, unsigned level, struct task_item *out)
{
    long long start, step;
    switch (level) {
    case 1:
        start = random_between(random, 0, 40), step = random_between(random, 1, 9);
        ask(out, start, step, 0, 1, 4);
        break;
    case 2:
        start = random_between(random, 0, 99), step = random_between(random, 3, 25);
        ask(out, start, step, 0, 1, 4);
        break;
    case 3:
        start = random_between(random, 60, 150), step = random_between(random, 2, 12);
        ask(out, start, -step, 0, 1, 4);
        break;
    case 4:
        start = random_between(random, 1, 60);
        ask(out, start, 0, 0, random_between(random, 2, 6), 3);
        break;
    default:
        start = random_between(random, 0, 30), step = random_between(random, 1, 12);
        ask(out, start, step, random_between(random, 1, 6), 1, 5);
        break;
    }
}

const struct task task_sequences = {.name = "sequences", .make = make};
