/* Sums, differences and products of whole numbers; no result is negative. */
#include "core/random.h"
#include "datasets/tasks/task.h"

static void ask(struct task_item *out, long long answer)
{
    text_add(&out->problem, "?");
    text_addf(&out->answer, "%lld", answer);
}

static void make(struct random *random, unsigned level, struct task_item *out)
{
    out->grader = "numeric";
    long long a, b, c;
    text_add(&out->problem, "What is ");
    switch (level) {
    case 1:
        a = random_between(random, 0, 20), b = random_between(random, 0, 20);
        text_addf(&out->problem, "%lld + %lld", a, b);
        ask(out, a + b);
        break;
    case 2:
        a = random_between(random, 10, 99), b = random_between(random, 1, 99);
        if (random_below(random, 2)) {
            text_addf(&out->problem, "%lld + %lld", a, b);
            ask(out, a + b);
        } else {
            text_addf(&out->problem, "%lld - %lld", a > b ? a : b, a > b ? b : a);
            ask(out, a > b ? a - b : b - a);
        }
        break;
    case 3:
        a = random_between(random, 2, 12), b = random_between(random, 2, 40);
        text_addf(&out->problem, "%lld * %lld", a, b);
        ask(out, a * b);
        break;
    case 4:
        a = random_between(random, 10, 99), b = random_between(random, 10, 99);
        c = random_between(random, 1, a + b);
        text_addf(&out->problem, "%lld + %lld - %lld", a, b, c);
        ask(out, a + b - c);
        break;
    default:
        a = random_between(random, 2, 30), b = random_between(random, 2, 30);
        c = random_between(random, 2, 12);
        text_addf(&out->problem, "(%lld + %lld) * %lld", a, b, c);
        ask(out, (a + b) * c);
        break;
    }
}

const struct task task_arithmetic = {.name = "arithmetic", .make = make};
