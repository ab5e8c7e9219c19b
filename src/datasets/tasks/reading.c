/* A few sentences and a question about them: who has what, of which colour, also after things have
 * changed hands. */
#include <stddef.h>

#include "core/random.h"
#include "datasets/tasks/task.h"

static const char *const NAMES[] = {"Ann", "Ben", "Eva", "Jim", "Kim", "Leo", "Mia", "Tom"};
static const char *const THINGS[] = {"ball", "book", "box", "cup", "hat", "key", "map", "pen"};
static const char *const COLOURS[] = {"red", "blue", "green", "black", "white", "brown"};

enum { NAME_COUNT = 8, THING_COUNT = 8, COLOUR_COUNT = 6, FACTS_MAX = 4 };

struct fact {
    size_t name, thing, colour;
};

/* Different people with different things; two colours may be the same. */
static void draw_facts(struct random *random, struct fact *facts, size_t count)
{
    size_t names[NAME_COUNT], things[THING_COUNT];
    for (size_t i = 0; i < NAME_COUNT; i++)
        names[i] = i;
    for (size_t i = 0; i < THING_COUNT; i++)
        things[i] = i;
    random_shuffle(random, names, NAME_COUNT, sizeof *names);
    random_shuffle(random, things, THING_COUNT, sizeof *things);
    for (size_t i = 0; i < count; i++)
        facts[i] = (struct fact){names[i], things[i], random_below(random, COLOUR_COUNT)};
}

static void tell_facts(struct text *out, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s has a %s %s. ", NAMES[facts[i].name], COLOURS[facts[i].colour],
                  THINGS[facts[i].thing]);
}

/* The holder of one thing gives it to another person, who then has two. */
static void give(struct random *random, struct text *out, struct fact *facts, size_t count,
                 size_t which)
{
    size_t to;
    do
        to = facts[random_below(random, count)].name;
    while (to == facts[which].name);
    text_addf(out, "%s gives the %s to %s. ", NAMES[facts[which].name], THINGS[facts[which].thing],
              NAMES[to]);
    facts[which].name = to;
}

static void ask_plain(struct random *random, struct task_item *out, const struct fact *fact)
{
    switch (random_below(random, 3)) {
    case 0:
        text_addf(&out->problem, "What colour is the %s?", THINGS[fact->thing]);
        text_add(&out->answer, COLOURS[fact->colour]);
        break;
    case 1:
        text_addf(&out->problem, "Who has the %s?", THINGS[fact->thing]);
        text_add(&out->answer, NAMES[fact->name]);
        break;
    default:
        text_addf(&out->problem, "What does %s have?", NAMES[fact->name]);
        text_add(&out->answer, THINGS[fact->thing]);
        break;
    }
}

static void make(struct random *random, unsigned level, struct task_item *out)
{
    static const struct {
        size_t facts, gifts;
    } LEVELS[TASK_LEVELS] = {{1, 0}, {2, 0}, {3, 0}, {3, 1}, {FACTS_MAX, 2}};
    struct fact facts[FACTS_MAX];
    size_t count = LEVELS[level - 1].facts;
    draw_facts(random, facts, count);
    tell_facts(&out->problem, facts, count);
    size_t asked = (size_t)random_below(random, count);
    for (size_t i = 0; i < LEVELS[level - 1].gifts; i++)
        give(random, &out->problem, facts, count, i ? (size_t)random_below(random, count) : asked);
    out->grader = "exact";
    if (LEVELS[level - 1].gifts == 0) {
        ask_plain(random, out, &facts[asked]);
    } else {
        text_addf(&out->problem, "Who has the %s now?", THINGS[facts[asked].thing]);
        text_add(&out->answer, NAMES[facts[asked].name]);
    }
    text_add(&out->problem, " Answer with one word.");
}

const struct task task_reading = {.name = "reading", .make = make};
