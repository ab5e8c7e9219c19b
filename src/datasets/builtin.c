/* Generated tasks with checkable answers, from a seed.
 *
 * Prompts are short and use few words, so that a small model can learn them; levels go from 1 to 5, each
 * harder than the one before.  The items of a seed never change: a new task goes to the end of TASKS.
 *
 * `train` and `test` share no problem, whatever the seeds: the text of a problem decides to which of the
 * two it belongs.  Items cycle through the tasks and then the levels, so that the first few hundred
 * contain equally many of each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/jv.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"

/* ---- tasks ---- */

enum { TASK_LEVELS = 5, TASK_COUNT_MAX = 8 };

struct task_item {
    struct text problem, answer; /* cleared before make */
    const char *grader;
};

struct task {
    const char *name;
    void (*make)(struct random *random, unsigned level, struct task_item *out);
};

/* Sums, differences and products of integers; no result is negative. */

static void ask_result(struct task_item *out, long long answer)
{
    text_add(&out->problem, "?");
    text_addf(&out->answer, "%lld", answer);
}

static void make_arithmetic(struct random *random, unsigned level, struct task_item *out)
{
    out->grader = "numeric";
    long long a, b, c;
    text_add(&out->problem, "What is ");
    switch (level) {
    case 1:
        a = random_between(random, 0, 20), b = random_between(random, 0, 20);
        text_addf(&out->problem, "%lld + %lld", a, b);
        ask_result(out, a + b);
        break;
    case 2:
        a = random_between(random, 10, 99), b = random_between(random, 1, 99);
        if (random_below(random, 2)) {
            text_addf(&out->problem, "%lld + %lld", a, b);
            ask_result(out, a + b);
        } else {
            text_addf(&out->problem, "%lld - %lld", a > b ? a : b, a > b ? b : a);
            ask_result(out, a > b ? a - b : b - a);
        }
        break;
    case 3:
        a = random_between(random, 2, 12), b = random_between(random, 2, 40);
        text_addf(&out->problem, "%lld * %lld", a, b);
        ask_result(out, a * b);
        break;
    case 4:
        a = random_between(random, 10, 99), b = random_between(random, 10, 99);
        c = random_between(random, 1, a + b);
        text_addf(&out->problem, "%lld + %lld - %lld", a, b, c);
        ask_result(out, a + b - c);
        break;
    default:
        a = random_between(random, 2, 30), b = random_between(random, 2, 30);
        c = random_between(random, 2, 12);
        text_addf(&out->problem, "(%lld + %lld) * %lld", a, b, c);
        ask_result(out, (a + b) * c);
        break;
    }
}

/* The larger or smaller of some numbers; from level 4 on with lettered choices. */

enum { COMPARED_MAX = 4 };

/* Distinct numbers. */
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
    for (unsigned i = 0; i < COMPARED_MAX; i++)
        text_addf(&out->problem, "\n%c. %lld", 'A' + (int)i, values[i]);
    text_add(&out->problem, "\nAnswer with the letter.");
    text_addf(&out->answer, "%c", 'A' + (int)extreme(values, COMPARED_MAX, largest));
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

static void make_comparison(struct random *random, unsigned level, struct task_item *out)
{
    static const struct {
        long long low, high;
        unsigned count;
        void (*ask)(struct task_item *out, const long long *values, bool largest);
    } LEVELS[TASK_LEVELS - 1] = {{0, 99, 2, ask_two},
                                 {100, 999, 2, ask_two},
                                 {10, 999, 3, ask_three},
                                 {100, 999, COMPARED_MAX, ask_choice}};
    long long values[COMPARED_MAX];
    bool largest = level == 1 || random_below(random, 2) == 0;
    out->grader = "numeric";
    if (level == TASK_LEVELS) {
        ask_terms(random, out, largest);
        return;
    }
    draw_distinct(random, LEVELS[level - 1].low, LEVELS[level - 1].high, values,
                  LEVELS[level - 1].count);
    LEVELS[level - 1].ask(out, values, largest);
}

/* The next number of a sequence: equal steps up, larger steps, steps down, factors, growing steps. */

/* Shows `shown` numbers; the next one is the answer.  Each number is the one before times the factor plus
 * the step, which then grows. */
static void ask_next(struct task_item *out, long long number, long long step, long long growth,
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

static void make_sequence(struct random *random, unsigned level, struct task_item *out)
{
    long long start, step;
    switch (level) {
    case 1:
        start = random_between(random, 0, 40), step = random_between(random, 1, 9);
        ask_next(out, start, step, 0, 1, 4);
        break;
    case 2:
        start = random_between(random, 0, 99), step = random_between(random, 3, 25);
        ask_next(out, start, step, 0, 1, 4);
        break;
    case 3:
        start = random_between(random, 60, 150), step = random_between(random, 2, 12);
        ask_next(out, start, -step, 0, 1, 4);
        break;
    case 4:
        start = random_between(random, 1, 60);
        ask_next(out, start, 0, 0, random_between(random, 2, 6), 3);
        break;
    default:
        start = random_between(random, 0, 30), step = random_between(random, 1, 12);
        ask_next(out, start, step, random_between(random, 1, 6), 1, 5);
        break;
    }
}

/* Sorting distinct numbers. */

enum { SORTED_MAX = 7 };

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

static void make_sorting(struct random *random, unsigned level, struct task_item *out)
{
    static const struct {
        unsigned count;
        long long max;
        unsigned directions; /* 1: upwards; 2: either */
    } LEVELS[TASK_LEVELS] = {{3, 20, 1}, {4, 99, 1}, {5, 99, 2}, {5, 999, 2}, {SORTED_MAX, 999, 2}};
    long long values[SORTED_MAX];
    unsigned count = LEVELS[level - 1].count;
    draw_distinct(random, 0, LEVELS[level - 1].max, values, count);
    bool down = random_below(random, LEVELS[level - 1].directions) == 1;
    out->grader = "list";
    text_addf(&out->problem, "Sort from %s: ", down ? "large to small" : "small to large");
    add_numbers(&out->problem, values, count, false);
    qsort(values, count, sizeof *values, ascending);
    add_numbers(&out->answer, values, count, down);
}

/* Reading comprehension: who owns which thing, its color, and the owner after things change hands. */

static const char *const NAMES[] = {"Ann", "Ben", "Eva", "Jim", "Kim", "Leo", "Mia", "Tom"};
static const char *const THINGS[] = {"ball", "book", "box", "cup", "hat", "key", "map", "pen"};
static const char *const COLORS[] = {"red", "blue", "green", "black", "white", "brown"};

enum { NAME_COUNT = 8, THING_COUNT = 8, COLOR_COUNT = 6, FACTS_MAX = 4 };

struct fact {
    size_t name, thing, color;
};

/* Different people with different things; colors may repeat. */
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
        facts[i] = (struct fact){names[i], things[i], random_below(random, COLOR_COUNT)};
}

static void add_facts(struct text *out, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s has a %s %s. ", NAMES[facts[i].name], COLORS[facts[i].color],
                  THINGS[facts[i].thing]);
}

/* The owner of a thing gives it to another person, who then has two. */
static void add_gift(struct random *random, struct text *out, struct fact *facts, size_t count,
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
        text_add(&out->answer, COLORS[fact->color]);
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

static void make_reading(struct random *random, unsigned level, struct task_item *out)
{
    static const struct {
        size_t facts, gifts;
    } LEVELS[TASK_LEVELS] = {{1, 0}, {2, 0}, {3, 0}, {3, 1}, {FACTS_MAX, 2}};
    struct fact facts[FACTS_MAX];
    size_t count = LEVELS[level - 1].facts;
    draw_facts(random, facts, count);
    add_facts(&out->problem, facts, count);
    size_t asked = (size_t)random_below(random, count);
    for (size_t i = 0; i < LEVELS[level - 1].gifts; i++)
        add_gift(random, &out->problem, facts, count,
                 i ? (size_t)random_below(random, count) : asked);
    out->grader = "exact";
    if (LEVELS[level - 1].gifts == 0) {
        ask_plain(random, out, &facts[asked]);
    } else {
        text_addf(&out->problem, "Who has the %s now?", THINGS[facts[asked].thing]);
        text_add(&out->answer, NAMES[facts[asked].name]);
    }
    text_add(&out->problem, " Answer with one word.");
}

#define TASK(name, make)                                                                           \
    &(const struct task)                                                                           \
    {                                                                                              \
        name, make                                                                                 \
    }
static const struct task *const TASKS[] = {
    TASK("arithmetic", make_arithmetic), TASK("comparison", make_comparison),
    TASK("sequences", make_sequence),    TASK("sorting", make_sorting),
    TASK("reading", make_reading),       NULL,
};

enum { TASK_COUNT = COUNT_OF(TASKS) - 1 };

/* ---- the dataset ---- */

enum {
    DEFAULT_COUNT = 600,
    TEST_SHARE = 5,  /* one problem in this many belongs to the test split */
    DRAWS_MAX = 400, /* maximum draws until a problem belongs to the split; four in five may not */
    DRAWS_FRESH = 100, /* during this many draws, repeated problems are rejected */
    SEEN_SIZE = 32768, /* a power of two; when three quarters full, problems may repeat */
};

struct builtin {
    uint64_t seed, count, yielded;
    bool test;
    const struct task *tasks[TASK_COUNT_MAX];
    size_t task_count;
    unsigned levels[TASK_LEVELS];
    size_t level_count;
    uint64_t *seen; /* hashes of the problems so far, open addressing; 0 is free */
    size_t seen_count;
    struct task_item work;
};

/* ---- parameters ---- */

#define SEPARATORS " ,|+"

/* The next word of a list; returns the remaining list, or NULL at its end. */
static const char *next_word(const char *list, char *word, size_t size)
{
    list += strspn(list, SEPARATORS);
    size_t length = strcspn(list, SEPARATORS);
    if (length == 0)
        return NULL;
    size_t kept = length < size ? length : size - 1;
    memcpy(word, list, kept);
    word[kept] = '\0';
    return list + length;
}

static enum err read_tasks(struct builtin *builtin, const char *list, struct error *why)
{
    char word[32];
    while (list && (list = next_word(list, word, sizeof word))) {
        const struct task *task = registry_find("task", TASKS, word, ERR_USAGE, why);
        if (!task)
            return ERR_USAGE;
        if (builtin->task_count == TASK_COUNT_MAX)
            return err_set(why, ERR_USAGE, "tasks: more than %d", TASK_COUNT_MAX);
        builtin->tasks[builtin->task_count++] = task;
    }
    if (builtin->task_count == 0)
        for (size_t i = 0; i < TASK_COUNT; i++)
            builtin->tasks[builtin->task_count++] = TASKS[i];
    return ERR_OK;
}

static enum err read_levels(struct builtin *builtin, const char *list, struct error *why)
{
    char word[32];
    while (list && (list = next_word(list, word, sizeof word))) {
        bool is_range = word[1] == '-' && word[2] && !word[3];
        unsigned low = (unsigned)(word[0] - '0'), high = (unsigned)(word[is_range ? 2 : 0] - '0');
        if ((!is_range && word[1]) || low < 1 || high > TASK_LEVELS || low > high ||
            builtin->level_count + high - low >= TASK_LEVELS)
            return err_set(why, ERR_USAGE, "level=%s: expected levels from 1 to 5: 2, 1-3 or 1|5",
                           word);
        for (unsigned level = low; level <= high; level++)
            builtin->levels[builtin->level_count++] = level;
    }
    if (builtin->level_count)
        return ERR_OK;
    for (unsigned level = 1; level <= TASK_LEVELS; level++)
        builtin->levels[builtin->level_count++] = level;
    return ERR_OK;
}

static enum err read_params(struct builtin *builtin, const struct params *params, struct error *why)
{
    static const char *const SPLITS[] = {"test", "train", NULL};
    struct params_reader read = {params, why, ERR_OK};
    builtin->test = params_word(&read, "split", SPLITS, 0) == 0;
    builtin->seed = params_count(&read, "seed", 0, 0, UINT64_MAX);
    builtin->count = params_count(&read, "count", DEFAULT_COUNT, 1, INT64_MAX);
    enum err err = read.err ? read.err : read_tasks(builtin, params_get(params, "tasks"), why);
    if (!err)
        err = read_levels(builtin, params_get(params, "level"), why);
    return err;
}

/* ---- items ---- */

/* Records a problem; returns true if it was already recorded.  A full table records no more. */
static bool was_seen(struct builtin *builtin, uint64_t hash)
{
    hash += hash == 0;
    size_t at = (size_t)hash % SEEN_SIZE;
    for (; builtin->seen[at]; at = (at + 1) % SEEN_SIZE)
        if (builtin->seen[at] == hash)
            return true;
    if (builtin->seen_count < SEEN_SIZE / 4 * 3) {
        builtin->seen[at] = hash;
        builtin->seen_count++;
    }
    return false;
}

/* Draws until a problem belongs to the split and, for a number of draws, is new. */
static enum err draw(struct builtin *builtin, const struct task *task, unsigned level,
                     struct error *why)
{
    struct task_item *work = &builtin->work;
    struct random random = random_from(builtin->seed, builtin->yielded);
    for (int i = 0; i < DRAWS_MAX; i++) {
        text_clear(&work->problem);
        text_clear(&work->answer);
        task->make(&random, level, work);
        uint64_t hash = hash_mix(hash_string(HASH_START, text_get(&work->problem)));
        bool is_test = hash % TEST_SHARE == 0;
        if (is_test == builtin->test && (!was_seen(builtin, hash) || i >= DRAWS_FRESH))
            return ERR_OK;
    }
    return err_set(why, ERR_IO, "no problem of task %s, level %u, belongs to the split", task->name,
                   level);
}

static void describe(const struct builtin *builtin, const struct task *task, unsigned level,
                     struct item *out)
{
    const char *split = builtin->test ? "test" : "train";
    const struct jv_member MEMBERS[] = {
        {"task", jv_new_text(task->name)},
        {"level", jv_new_integer(level)},
        {"split", jv_new_text(split)},
    };
    char id[64];
    chars_format(id, "%s-%s-%u-%" PRIu64, split, task->name, level, builtin->yielded);
    out->metadata = jv_new_members(MEMBERS, COUNT_OF(MEMBERS));
    str_set(&out->id, id);
    str_set(&out->subject, task->name);
}

static enum err builtin_next(struct dataset *dataset, struct item *out, bool *end,
                             struct error *why)
{
    struct builtin *builtin = dataset->state;
    *end = builtin->yielded == builtin->count;
    if (*end)
        return ERR_OK;
    const struct task *task = builtin->tasks[builtin->yielded % builtin->task_count];
    unsigned level = builtin->levels[builtin->yielded / builtin->task_count % builtin->level_count];
    enum err err = draw(builtin, task, level, why);
    if (err)
        return err;
    describe(builtin, task, level, out);
    builtin->yielded++;
    str_set(&out->problem, text_get(&builtin->work.problem));
    str_set(&out->answer, text_get(&builtin->work.answer));
    str_set(&out->grader, builtin->work.grader);
    return ERR_OK;
}

static void builtin_close(struct dataset *dataset)
{
    struct builtin *builtin = dataset->state;
    text_release(&builtin->work.problem);
    text_release(&builtin->work.answer);
    free(builtin->seen);
    free(builtin);
}

static enum err builtin_open(const struct dataset_config *config, struct dataset *out,
                             struct error *why)
{
    struct builtin *builtin = XNEW(builtin);
    out->state = builtin;
    builtin->seen = xcalloc(SEEN_SIZE, sizeof *builtin->seen);
    enum err err = read_params(builtin, config->params, why);
    if (err) {
        builtin_close(out);
        return err;
    }
    out->count = (int64_t)builtin->count;
    chars_copy(out->grader, "exact"); /* every item names its own */
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"count", "ITEMS", "number of items (600)"},
    {"seed", "NUMBER", "random seed (0)"},
    {"split", "NAME", "test or train, which share no problem (test)"},
    {"tasks", "LIST", "some of arithmetic|comparison|sequences|sorting|reading (all)"},
    {"level", "LIST", "levels 1 (easiest) to 5: 2, 1-3 or 1|5 (all)"},
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_builtin = {
    .name = "builtin",
    .summary = "generated tasks with checkable answers: arithmetic, comparison, sequences, "
               "sorting, reading",
    .params = PARAMS,
    .open = builtin_open,
    .next = builtin_next,
    .close = builtin_close,
};
