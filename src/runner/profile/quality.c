/* Metrics of all answers together, from the records of a run that are graded: those of the graders that have some (mAP,
 * word error rate, FID ...), and the mean score of those whose metric is that.  Nothing is measured any more: an
 * encoder of images may take its time. */
#include "runner/profile/phases.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/quality.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "rundir/record.h"
#include "rundir/run_path.h"
#include "runner/profile/profile.h"
#include "runner/profile/worker.h"

/* The answers of one grader.  Of one with metrics of its own the texts are kept, of another the scores. */
struct graded {
    const struct grader_driver *driver;
    struct grading *items; /* their strings are owned */
    double *scores;        /* as items, which then have no texts */
    size_t count, capacity, score_capacity;
};

struct collection {
    struct profile *profile;
    struct graded graders[GRADERS_MAX];
    size_t count;
};

static struct graded *graded_by(struct collection *all, const char *grader)
{
    const struct grader_driver *driver = grader_driver_find(grader, NULL);
    if (!driver || (!driver->corpus && !driver->is_mean_score))
        return NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->graders[i].driver == driver)
            return &all->graders[i];
    if (all->count == GRADERS_MAX)
        return NULL;
    struct graded *graded = &all->graders[all->count++];
    *graded = (struct graded){.driver = driver};
    return graded;
}

/* A generated file has its path. */
static char *answer_of(const struct profile *profile, const struct record *record)
{
    const char *answer = text_or_empty(record->model_answer);
    char *path = run_path_output(profile->files.directory, answer);
    return path ? path : xstrdup(answer);
}

static void add_answer(const struct profile *profile, const struct record *record, double score,
                       struct graded *graded)
{
    struct grading *item;
    bool wants_text = graded->driver->corpus != NULL;
    if (!wants_text && !is_known(score))
        return;
    XGROW(graded->scores, graded->count, graded->score_capacity);
    graded->scores[graded->count] = score;
    item = XADD(graded->items, graded->count, graded->capacity);
    *item = (struct grading){.index = record->index};
    if (!wants_text)
        return;
    item->problem = xstrdup(text_or_empty(record->problem));
    item->expected = xstrdup(text_or_empty(record->expected));
    item->answer = answer_of(profile, record);
}

static enum err collect(void *context, const struct jv *tree)
{
    struct collection *all = context;
    struct record record;
    struct evaluation evaluation;
    record_from_json(tree, all->profile->options->model, &record);
    if (!record.status || !str_equal(record.status, "completed"))
        return ERR_OK;
    record_evaluation(&record, &evaluation);
    struct graded *graded = evaluation.grader[0] ? graded_by(all, evaluation.grader) : NULL;
    if (graded)
        add_answer(all->profile, &record, evaluation.score, graded);
    return ERR_OK;
}

static void collection_release(struct collection *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct graded *graded = &all->graders[i];
        for (size_t k = 0; k < graded->count; k++) {
            free((char *)graded->items[k].problem);
            free((char *)graded->items[k].expected);
            free((char *)graded->items[k].answer);
        }
        free(graded->items);
        free(graded->scores);
    }
}

/* ---- metrics ---- */

static void add_quality(const struct grader_quality *quality, struct summary *out)
{
    if (out->quality_count == SUMMARY_QUALITIES_MAX)
        return;
    struct summary_quality *to = &out->qualities[out->quality_count++];
    *to = (struct summary_quality){
        .value = is_known(quality->value) ? quality->value : UNKNOWN,
        .plus_minus = quality->plus_minus,
        .count = (int64_t)quality->count,
        .better = quality->lower_is_better ? BETTER_LOWER : BETTER_HIGHER,
    };
    chars_copy(to->name, quality->name);
    chars_copy(to->reason, quality->reason);
    if (!is_known(quality->value) && !to->reason[0])
        chars_copy(to->reason, "not a finite number");
}

/* A score and its question. */
struct scored {
    int64_t question;
    double score;
};

static int by_question(const void *left, const void *right)
{
    const struct scored *a = left, *b = right;
    return (a->question > b->question) - (a->question < b->question);
}

static void mean_score(const struct graded *graded, struct grader_quality *out)
{
    struct quality_sums sums = {0};
    struct scored *scored = xreallocarray(NULL, graded->count, sizeof *scored);
    for (size_t i = 0; i < graded->count; i++)
        scored[i] = (struct scored){graded->items[i].index, graded->scores[i]};
    qsort(scored, graded->count, sizeof *scored, by_question);
    for (size_t i = 0; i < graded->count; i++)
        quality_add(&sums, scored[i].question, scored[i].score, 1);
    quality_ratio(out, graded->driver->name, &sums, false, "no answer has a score");
    free(scored);
}

/* An encoder of all images may take minutes: meanwhile a signal ends the program, and --resume makes the summary.  After
 * a signal it is not started. */
static enum err compute(const struct profile *profile, struct graders *graders,
                        struct graded *graded, struct grader_quality *found, size_t *count,
                        struct error *why)
{
    const struct grader_driver *driver = graded->driver;
    if (!driver->is_of_all)
        return graders_corpus(graders, driver->name, graded->items, graded->count, found, count,
                              why);
    if (profile->result->signal)
        return err_set(why, ERR_INTERRUPTED, "interrupted: --resume computes it");
    proc_end_by_signals();
    enum err err =
        graders_corpus(graders, driver->name, graded->items, graded->count, found, count, why);
    proc_defer_signals();
    return err;
}

static void find_qualities(const struct profile *profile, struct graders *graders,
                           struct graded *graded, struct summary *out)
{
    struct grader_quality found[GRADER_QUALITIES_MAX];
    struct error why = {0};
    size_t count = 1;
    enum err err = ERR_OK;
    if (graded->driver->corpus)
        err = compute(profile, graders, graded, found, &count, &why);
    else
        mean_score(graded, &found[0]);
    if (err) {
        quality_unknown(&found[0], graded->driver->name, "%s",
                        why.text[0] ? why.text : err_text(err));
        count = 1;
    }
    for (size_t i = 0; i < count; i++)
        add_quality(&found[i], out);
}

enum err profile_find_qualities(struct profile *profile, struct journal_index *index,
                                struct summary *out, struct error *why)
{
    struct collection all = {.profile = profile};
    struct graders graders;
    uint64_t damaged; /* was reported when the records were summed */
    enum err err = journal_index_read(index, collect, &all, &damaged, why);
    graders_init(&graders, profile->options, &profile->shared.supply.dataset);
    for (size_t i = 0; i < all.count && !err; i++)
        find_qualities(profile, &graders, &all.graders[i], out);
    graders_release(&graders);
    collection_release(&all);
    return err;
}
