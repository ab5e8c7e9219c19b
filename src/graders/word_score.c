/* Words as numbers, by sorting all words of the compared texts once; and the way from a score to a grade. */
#include "graders/word_score.h"

#include <stdlib.h>

#include "core/grow.h"
#include "graders/fold.h"

/* ---- words ---- */

static enum err add_word(struct words *words, struct slice word)
{
    struct slice *items = grow(words->items, &words->capacity, words->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    words->items = items;
    items[words->count++] = word;
    return ERR_OK;
}

enum err words_split(struct words *words)
{
    struct slice text = {text_get(&words->text), words->text.length};
    enum err err = words->text.failed ? ERR_NO_MEMORY : ERR_OK;
    size_t start = 0;
    for (size_t at = 0, step; at < text.length && !err; at += step) {
        uint32_t c = char_at((struct slice){text.start + at, text.length - at}, &step);
        if (!char_is_space(c))
            continue;
        if (at > start)
            err = add_word(words, (struct slice){text.start + start, at - start});
        start = at + step;
    }
    if (!err && text.length > start)
        err = add_word(words, (struct slice){text.start + start, text.length - start});
    return err;
}

/* A word and where its number goes. */
struct occurrence {
    struct slice word;
    uint32_t *id;
};

static int by_word(const void *a, const void *b)
{
    const struct slice x = ((const struct occurrence *)a)->word;
    const struct slice y = ((const struct occurrence *)b)->word;
    int order = memcmp(x.start, y.start, x.length < y.length ? x.length : y.length);
    return order ? order : (x.length > y.length) - (x.length < y.length);
}

enum err words_number(struct words *const *texts, size_t count)
{
    size_t total = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        total += texts[i]->count;
    struct occurrence *all = malloc((total ? total : 1) * sizeof *all);
    if (!all)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        struct words *words = texts[i];
        free(words->ids);
        words->ids = malloc((words->count ? words->count : 1) * sizeof *words->ids);
        if (!words->ids) {
            free(all);
            return ERR_NO_MEMORY;
        }
        for (size_t k = 0; k < words->count; k++)
            all[used++] = (struct occurrence){words->items[k], &words->ids[k]};
    }
    qsort(all, used, sizeof *all, by_word);
    uint32_t id = 0;
    for (size_t i = 0; i < used; i++) {
        if (i && !slice_equal(all[i].word, all[i - 1].word))
            id++;
        *all[i].id = id;
    }
    free(all);
    return ERR_OK;
}

void words_release(struct words *words)
{
    text_release(&words->text);
    free(words->items);
    free(words->ids);
    *words = (struct words){0};
}

/* ---- scores ---- */

enum err score_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct score_options *options = state;
    double *threshold = &options->threshold;
    enum err err = references_read(config->params, options->references, why);
    if (!err)
        err = params_number(config->params, "threshold", 0.5, threshold, why);
    if (!err && (*threshold < 0 || *threshold > 1))
        return err_set(why, ERR_USAGE, "threshold=%g: expected a number from 0 to 1", *threshold);
    return err;
}

enum err score_grade(const struct score_options *options, const struct grading *what,
                     score_function *score_of, struct grade *out, struct error *why)
{
    struct slice answer = slice_of(what->answer);
    struct references references;
    struct error reason = {0};
    double score = 0;
    references_open(&references, what, options->references);
    enum err err = score_of(answer, &references, &score, &reason);
    references_release(&references);
    if (err == ERR_BAD_VALUE) {
        grade_null(out, "%s", reason.text);
        return ERR_OK;
    }
    if (err)
        return grade_no_memory(why);
    grade_extracted(out, answer);
    out->score = score;
    if (score >= options->threshold)
        grade_true(out);
    else
        grade_false(out, "score %.4g is below the threshold %.4g", score, options->threshold);
    return ERR_OK;
}
