#include "estimate/points.h"

#include <stdlib.h>

#include "core/text.h"
#include "stats/pareto.h"

static enum err make_works(const struct points_question *question, struct points *out,
                           struct error *why)
{
    size_t count = question->batches ? question->batch_count : 1;
    out->works = calloc(count, sizeof *out->works);
    if (!out->works)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (; out->work_count < count; out->work_count++) {
        struct workload_question work = question->work;
        if (question->batches)
            work.setting.batch = question->batches[out->work_count];
        enum err err = workload_make(&work, &out->works[out->work_count], why);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* What one device lacks is said of it; the others go on. */
static enum err make_point(const struct points_question *question, const struct workload *work,
                           const struct points_candidate *candidate, struct point *out,
                           struct error *why)
{
    struct error lacks = {0};
    *out = (struct point){.batch = work->question.setting.batch, .device = candidate->device};
    enum err err = outcome_make(work, &question->hardware[candidate->device], &candidate->choice,
                                false, &out->outcome, &lacks);
    if (err == ERR_NO_MEMORY)
        return err_set(why, err, "%s", lacks.text);
    if (err) {
        out->outcome.choice = candidate->choice;
        str_copy(out->missing, sizeof out->missing, lacks.text);
    }
    return ERR_OK;
}

static enum err make_items(const struct points_question *question, struct points *out,
                           struct error *why)
{
    size_t room = out->work_count * question->candidate_count;
    out->items = calloc(room ? room : 1, sizeof *out->items);
    if (!out->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t w = 0; w < out->work_count; w++)
        for (size_t c = 0; c < question->candidate_count; c++) {
            struct point *point = &out->items[out->count];
            enum err err =
                make_point(question, &out->works[w], &question->candidates[c], point, why);
            if (err)
                return err;
            out->count++;
            out->able += !point->missing[0];
        }
    return ERR_OK;
}

static bool is_choice(const struct point *point)
{
    return !point->missing[0] && outcome_fits(&point->outcome);
}

static enum err mark_frontier(struct points *points, struct error *why)
{
    double *cost = calloc(points->count ? points->count : 1, sizeof *cost);
    double *worth = calloc(points->count ? points->count : 1, sizeof *worth);
    bool *on = calloc(points->count ? points->count : 1, sizeof *on);
    enum err err = cost && worth && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < points->count; i++) {
        const struct point *point = &points->items[i];
        cost[i] = is_choice(point) ? outcome_joules_each(&point->outcome) : UNKNOWN;
        worth[i] = is_choice(point) ? -point->outcome.all.latency_s : UNKNOWN;
    }
    if (!err)
        err = pareto_mark(cost, worth, points->count, on);
    for (size_t i = 0; !err && i < points->count; i++)
        points->items[i].on_frontier = on[i];
    free(cost);
    free(worth);
    free(on);
    return err ? err_set(why, err, "out of memory") : ERR_OK;
}

enum err points_make(const struct points_question *question, struct points *out, struct error *why)
{
    *out = (struct points){0};
    enum err err = make_works(question, out, why);
    if (!err)
        err = make_items(question, out, why);
    if (!err)
        err = mark_frontier(out, why);
    if (err)
        points_release(out);
    return err;
}

void points_release(struct points *points)
{
    for (size_t i = 0; i < points->work_count; i++)
        workload_release(&points->works[i]);
    free(points->works);
    free(points->items);
    *points = (struct points){0};
}

/* ---- order ---- */

static int rank(const struct point *point)
{
    return point->missing[0] ? 2 : !outcome_fits(&point->outcome);
}

static int by_joules(const void *left, const void *right)
{
    const struct point *a = left, *b = right;
    if (rank(a) != rank(b))
        return rank(a) - rank(b);
    if (rank(a) < 2) {
        double x = outcome_joules_each(&a->outcome), y = outcome_joules_each(&b->outcome);
        if (x != y)
            return x < y ? -1 : 1;
    }
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->batch > b->batch) - (a->batch < b->batch);
}

void points_sort(struct points *points)
{
    qsort(points->items, points->count, sizeof *points->items, by_joules);
}
