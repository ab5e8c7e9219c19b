/* Our own tasks with answers that can be checked: made, not stored, from a seed.
 *
 * `train` and `test` share no problem, whatever the seeds: a problem's own text decides, once and for
 * all, to which of the two it belongs.  Items go round the tasks and then the levels, so that the
 * first few hundred hold as much of each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/item.h"
#include "datasets/tasks/task.h"

enum {
    DEFAULT_COUNT = 600,
    TEST_SHARE = 5,  /* one problem in so many is for testing */
    DRAWS_MAX = 400, /* until a problem of the wanted split comes; four in five are not, at worst */
    DRAWS_FRESH = 100, /* as long, one that was given before is refused */
    SEEN_SIZE = 32768, /* a power of two; beyond three quarters of it problems may come again */
};

struct builtin {
    uint64_t seed, count, given;
    bool test;
    const struct task *tasks[TASK_COUNT_MAX];
    size_t task_count;
    unsigned levels[TASK_LEVELS];
    size_t level_count;
    uint64_t *seen; /* hashes of the problems given, open addressing; 0 is free */
    size_t seen_count;
    struct task_item work;
};

/* ---- parameters ---- */

#define SEPARATORS " ,|+"

/* The next word of a list; NULL when there is none. */
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

static enum err add_task(struct builtin *builtin, const char *word, struct error *why)
{
    const char *names[TASK_COUNT_MAX];
    size_t count = 0;
    for (const struct task *const *task = BUILTIN_TASKS; *task; task++) {
        names[count++] = (*task)->name;
        if (strcmp((*task)->name, word) == 0 && builtin->task_count < TASK_COUNT_MAX) {
            builtin->tasks[builtin->task_count++] = *task;
            return ERR_OK;
        }
    }
    const char *near = nearest_name(word, names, count);
    return err_set(why, ERR_USAGE, "tasks=%s: no such task; %s%s%s", word,
                   near ? "did you mean '"
                        : "there are arithmetic, comparison, sequences, sorting, ",
                   near ? near : "reading", near ? "'?" : "");
}

static enum err read_tasks(struct builtin *builtin, const char *list, struct error *why)
{
    char word[32];
    enum err err = ERR_OK;
    while (list && !err && (list = next_word(list, word, sizeof word)))
        err = add_task(builtin, word, why);
    if (err || builtin->task_count)
        return err;
    for (const struct task *const *task = BUILTIN_TASKS; *task; task++)
        builtin->tasks[builtin->task_count++] = *task;
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
            return err_set(why, ERR_USAGE,
                           "level=%s: expected levels from 1 to 5: 2, or 1-3, or 1|5", word);
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
    const char *split = params_get(params, "split");
    builtin->test = !split || strcmp(split, "test") == 0;
    if (!builtin->test && strcmp(split, "train") != 0)
        return err_set(why, ERR_USAGE, "split=%s: expected train or test", split);
    enum err err = params_count(params, "seed", 0, &builtin->seed, why);
    if (!err)
        err = params_count(params, "count", DEFAULT_COUNT, &builtin->count, why);
    if (!err && (builtin->count == 0 || builtin->count > INT64_MAX))
        err = err_set(why, ERR_USAGE, "count=%" PRIu64 ": expected 1 or more", builtin->count);
    if (!err)
        err = read_tasks(builtin, params_get(params, "tasks"), why);
    if (!err)
        err = read_levels(builtin, params_get(params, "level"), why);
    return err;
}

/* ---- making items ---- */

/* Remembers a problem; true when it was there already.  A full memory remembers no more. */
static bool seen_before(struct builtin *builtin, uint64_t hash)
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

/* Draws until a problem belongs to the split, and while there is hope of it is a new one. */
static enum err draw(struct builtin *builtin, const struct task *task, unsigned level,
                     struct error *why)
{
    struct task_item *work = &builtin->work;
    struct random random = random_from(builtin->seed, builtin->given);
    for (int i = 0; i < DRAWS_MAX; i++) {
        text_clear(&work->problem);
        text_clear(&work->answer);
        task->make(&random, level, work);
        if (work->problem.failed || work->answer.failed)
            return err_set(why, ERR_NO_MEMORY, "out of memory");
        uint64_t hash = hash_mix(hash_string(HASH_START, text_get(&work->problem)));
        bool is_test = hash % TEST_SHARE == 0;
        if (is_test == builtin->test && (!seen_before(builtin, hash) || i >= DRAWS_FRESH))
            return ERR_OK;
    }
    return err_set(why, ERR_IO, "no problem of %s, level %u, belongs to the split", task->name,
                   level);
}

static enum err describe(const struct builtin *builtin, const struct task *task, unsigned level,
                         struct item *out)
{
    struct text metadata = {0};
    struct json json;
    char id[64];
    const char *split = builtin->test ? "test" : "train";
    str_format(id, sizeof id, "%s-%s-%u-%" PRIu64, split, task->name, level, builtin->given);
    json_init(&json, &metadata, false);
    json_object(&json, NULL);
    json_string(&json, "task", task->name);
    json_integer(&json, "level", level);
    json_string(&json, "split", split);
    json_object_end(&json);
    enum err err = item_take(&out->metadata, &metadata);
    if (!err)
        err = item_set(&out->id, id);
    if (!err)
        err = item_set(&out->subject, task->name);
    text_release(&metadata);
    return err;
}

static enum err builtin_next(struct dataset *dataset, struct item *out, bool *end,
                             struct error *why)
{
    struct builtin *builtin = dataset->state;
    *end = builtin->given == builtin->count;
    if (*end)
        return ERR_OK;
    const struct task *task = builtin->tasks[builtin->given % builtin->task_count];
    unsigned level = builtin->levels[builtin->given / builtin->task_count % builtin->level_count];
    enum err err = draw(builtin, task, level, why);
    if (err)
        return err;
    err = describe(builtin, task, level, out);
    builtin->given++;
    if (!err)
        err = item_set(&out->problem, text_get(&builtin->work.problem));
    if (!err)
        err = item_set(&out->answer, text_get(&builtin->work.answer));
    if (!err)
        err = item_set(&out->grader, builtin->work.grader);
    return err ? err_set(why, err, "out of memory") : ERR_OK;
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
    struct builtin *builtin = calloc(1, sizeof *builtin);
    if (!builtin)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    out->state = builtin;
    builtin->seen = calloc(SEEN_SIZE, sizeof *builtin->seen);
    enum err err = builtin->seen ? read_params(builtin, config->params, why)
                                 : err_set(why, ERR_NO_MEMORY, "out of memory");
    if (err) {
        builtin_close(out);
        return err;
    }
    out->count = (int64_t)builtin->count;
    str_copy(out->grader, sizeof out->grader, "exact"); /* each item names its own */
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"count", "ITEMS", "how many (600)"},
    {"seed", "NUMBER", "another seed, other problems (0)"},
    {"split", "NAME", "test, or train, which share no problem (test)"},
    {"tasks", "LIST", "some of arithmetic|comparison|sequences|sorting|reading (all)"},
    {"level", "LIST", "levels 1 (easiest) to 5: 2, 1-3 or 1|5 (all)"},
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_builtin = {
    .name = "builtin",
    .summary = "our own tasks with checkable answers: sums, order, sequences, sorting, reading",
    .params = PARAMS,
    .open = builtin_open,
    .next = builtin_next,
    .close = builtin_close,
};
