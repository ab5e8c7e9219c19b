/* Which of some numbers is larger or smaller; from level 4 on with lettered choices. */
#include <stdbool.h>

#include "core/random.h"
#include "datasets/tasks/task.h"

enum { MOST = 4 };

/* Numbers of which no two are the same. */
static void draw_distinct(struct random *random, long long low, long long high, long long *to,
                          unsigned count)
{
    for (unsigned i = 0; i < count;) {
        to[i] = random_between(random, low, high);
        bool is_new = true;
        for (unsigned j = 0; j < i; j++)
            is_new = is_new && to[j] != to[i];
        i += is_new;
    }
}

static unsigned extreme(const long long *values, unsigned count, bool largest)
{
    unsigned best = 0;
    for (unsigned i = 1; i < count; i++)
        if (largest ? values[i] > values[best] : values[i] < values[best])
            best = i;
    return best;
}

static void ask_two(struct task_item *out, const long long *values, bool largest)
{
    text_addf(&out->problem, "Which is %s, %lld or %lld? Answer with the number.",
              largest ? "larger" : "smaller", values[0], values[1]);
    text_addf(&out->answer, "%lld", values[extreme(values, 2, largest)]);
}

static void ask_three(struct task_item *out, const long long *values, bool largest)
{
    text_addf(&out->problem, "Which is the %s, %lld, %lld or %lld? Answer with the number.",
              largest ? "largest" : "smallest", values[0], values[1], values[2]);
    text_addf(&out->answer, "%lld", values[extreme(values, 3, largest)]);
}

static void ask_choice(struct task_item *out, const long long *values, bool largest)
{
    out->grader = "choice";
    text_addf(&out->problem, "Which is the %s?", largest ? "largest" : "smallest");
    for (unsigned i = 0; i < MOST; i++)
        text_addf(&out->problem, "\n%c. %lld", 'A' + (int)i, values[i]);
    text_add(&out->problem, "\nAnswer with the letter.");
    text_addf(&out->answer, "%c", 'A' + (int)extreme(values, MOST, largest));
}

/* A sum against a product, never equal. */
static void ask_terms(struct random *random, struct task_item *out, bool largest)
{
    long long a, b, c, d;
    do {
        a = random_between(random, 10, 60), b = random_between(random, 10, 60);
        c = random_between(random, 2, 12), d = random_between(random, 2, 12);
    } while (a + b == c * d);
    bool sum_first = random_below(random, 2) == 0;
    out->grader = "choice";
    text_addf(&out->problem, "Which is %s?\n", largest ? "larger" : "smaller");
    if (sum_first)
        text_addf(&out->problem, "A. %lld + %lld\nB. %lld * %lld", a, b, c, d);
    else
        text_addf(&out->problem, "A. %lld * %lld\nB. %lld + %lld", c, d, a, b);
    text_add(&out->problem, "\nAnswer with the letter.");
    bool sum_is_right = (a + b > c * d) == largest;
    text_add(&out->answer, sum_is_right == sum_first ? "A" : "B");
}

static void make(struct random *random, unsigned level, struct task_item *out)
{
    long long values[MOST];
    bool largest = level == 1 || random_below(random, 2) == 0;
    out->grader = "numeric";
    switch (level) {
    case 1:
        draw_distinct(random, 0, 99, values, 2);
        ask_two(out, values, largest);
        break;
    case 2:
        draw_distinct(random, 100, 999, values, 2);
        ask_two(out, values, largest);
        break;
    case 3:
        draw_distinct(random, 10, 999, values, 3);
        ask_three(out, values, largest);
        break;
    case 4:
        draw_distinct(random, 100, 999, values, MOST);
        ask_choice(out, values, largest);
        break;
    default:
        ask_terms(random, out, largest);
        break;
    }
}

const struct task task_comparison = {.name = "comparison", .make = make};
