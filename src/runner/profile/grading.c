/* Grading: answers are graded when they arrive by their worker's graders; those that need a judge, after all queries
 * (judging.c). */
#include "runner/profile/worker.h"

#include <string.h>

#include "clients/client.h"
#include "core/text.h"
#include "core/units.h"
#include "datasets/dataset.h"
#include "runner/profile/profile.h"

void graders_init(struct graders *graders, const struct profile_options *options,
                  const struct dataset *dataset)
{
    *graders = (struct graders){.options = options, .grading = &dataset->grading};
    chars_copy(graders->usual, dataset->grader);
}

void graders_release(struct graders *graders)
{
    for (size_t i = 0; i < graders->count; i++)
        if (graders->items[i].opened)
            grader_close(&graders->items[i].grader);
    graders->count = 0;
}

const char *graders_choose(const struct graders *graders, const struct item *item)
{
    if (graders->options->grader)
        return graders->options->grader;
    if (item->grader && item->grader[0])
        return item->grader;
    return graders->usual[0] ? graders->usual : grader_default(item->answer);
}

bool graders_is_judge(const char *name)
{
    const struct grader_driver *driver = grader_driver_find(name, NULL);
    return driver && driver->needs_judge;
}

/* The dataset's parameters apply to the dataset's grader; the user's apply to the grader that they named, or to all if
 * they named none. */
static enum err open_one(struct graders *graders, struct open_grader *slot)
{
    struct params params = {0};
    if (str_equal(slot->name, graders->usual))
        params_copy(&params, graders->grading);
    params_copy(&params, &graders->options->grader_params);
    const struct grader_driver *driver = grader_driver_find(slot->name, &slot->why);
    struct grader_config config = {.params = &params, .judge = graders->judge};
    enum err err = driver ? grader_open(driver, &config, &slot->grader, &slot->why) : ERR_NOT_FOUND;
    params_release(&params);
    return err;
}

enum err graders_check(const struct profile_options *options, const struct dataset *dataset,
                       struct error *why)
{
    static const struct judge NO_JUDGE = {0}; /* not used while opening */
    struct graders graders;
    struct open_grader slot = {0};
    const char *name = options->grader ? options->grader : dataset->grader;
    if (!name[0] && options->grader_params.count)
        return err_set(
            why, ERR_USAGE,
            "--grader-param requires --grader: the questions of %s name their own graders",
            dataset->name);
    bool asks_judge = options->judge_unread || (name[0] && graders_is_judge(name));
    if (asks_judge && options->judge_model && !client_driver_find(options->judge_client, why))
        return ERR_USAGE;
    if (!name[0])
        return ERR_OK;
    graders_init(&graders, options, dataset);
    graders.judge = graders_is_judge(name) ? &NO_JUDGE : NULL;
    chars_copy(slot.name, name);
    enum err err = open_one(&graders, &slot);
    if (err) {
        *why = slot.why;
        return ERR_USAGE;
    }
    grader_close(&slot.grader);
    return ERR_OK;
}

static struct open_grader *find(struct graders *graders, const char *name)
{
    for (size_t i = 0; i < graders->count; i++)
        if (str_equal(graders->items[i].name, name))
            return &graders->items[i];
    if (graders->count == GRADERS_MAX)
        return NULL;
    struct open_grader *slot = &graders->items[graders->count++];
    *slot = (struct open_grader){0};
    chars_copy(slot->name, name);
    slot->opened = open_one(graders, slot) == ERR_OK;
    return slot;
}

void grade_answer(struct grader *grader, const struct item *item, const char *answer,
                  struct grade *out)
{
    struct error why = {0};
    struct grading what = {.problem = item->problem,
                           .expected = item->answer,
                           .answer = answer,
                           .metadata = item->metadata};
    *out = (struct grade){.score = UNKNOWN};
    enum err err = grader_grade(grader, &what, out, &why);
    if (err) {
        *out = (struct grade){.score = UNKNOWN};
        chars_copy(out->reason, why.text[0] ? why.text : err_text(err));
    }
}

void graders_grade(struct graders *graders, const char *name, const struct item *item,
                   const char *answer, struct grade *out)
{
    struct open_grader *slot = find(graders, name);
    if (slot && slot->opened) {
        grade_answer(&slot->grader, item, answer, out);
        return;
    }
    *out = (struct grade){.score = UNKNOWN};
    chars_copy(out->reason, slot ? slot->why.text : "too many graders");
}

enum err graders_corpus(struct graders *graders, const char *name, struct grading *items,
                        size_t count, struct grader_quality out[GRADER_QUALITIES_MAX],
                        size_t *out_count, struct error *why)
{
    struct open_grader *slot = find(graders, name);
    *out_count = 0;
    if (!slot || !slot->opened)
        return err_set(why, ERR_USAGE, "%s", slot ? slot->why.text : "too many graders");
    return grader_corpus(&slot->grader, items, count, out, out_count, why);
}
