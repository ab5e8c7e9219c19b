/* The rouge_l grader: the longest common subsequence of words, as the rouge-score package computes
 * rougeL's F-measure without a stemmer.  Words are runs of a-z and 0-9 in lower
 * case, so texts in other scripts have none and score 0. */
#include <stdlib.h>

#include "graders/fold.h"
#include "graders/word_score.h"

/* Time grows with the product of the lengths: about a second at this many cells. */
static const double CELLS_MAX = 4e8;

static enum err read_words(struct words *words, struct slice from)
{
    *words = (struct words){0};
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t upper = char_at((struct slice){from.start + at, from.length - at}, &step);
        uint32_t c = char_lower(upper);
        bool counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        char bytes[] = {(char)(counts ? c : ' '), ' '};
        text_add_bytes(&words->text, bytes, upper == CHAR_DOTTED_I ? 2 : 1);
    }
    return words_split(words);
}

/* Of the dynamic-programming table one row is enough for the length. */
static enum err common_length(const struct words *a, const struct words *b, size_t *out)
{
    uint32_t *row = calloc(b->count + 1, sizeof *row);
    if (!row)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        uint32_t diagonal = 0; /* the cell above and to the left */
        for (size_t j = 0; j < b->count; j++) {
            uint32_t above = row[j + 1];
            if (a->ids[i] == b->ids[j])
                row[j + 1] = diagonal + 1;
            else if (row[j] > above)
                row[j + 1] = row[j];
            diagonal = above;
        }
    }
    *out = row[b->count];
    free(row);
    return ERR_OK;
}

static enum err f_measure(struct words *answer, struct words *wanted, double *score,
                          struct error *why)
{
    *score = 0;
    if (answer->count == 0 || wanted->count == 0)
        return ERR_OK;
    if ((double)answer->count * (double)wanted->count > CELLS_MAX)
        return err_set(why, ERR_BAD_VALUE,
                       "too long for ROUGE-L: %zu words against %zu (at most %.0g pairs)",
                       answer->count, wanted->count, CELLS_MAX);
    struct words *both[] = {answer, wanted};
    size_t common = 0;
    enum err err = words_number(both, 2);
    if (!err)
        err = common_length(answer, wanted, &common);
    *score = 2.0 * (double)common / (double)(answer->count + wanted->count);
    return err;
}

static enum err rouge_score(struct slice answer, const struct references *references, double *best,
                            struct error *why)
{
    struct words words;
    enum err err = read_words(&words, answer);
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct words wanted;
        double score = 0;
        err = read_words(&wanted, slice_of(references->items[r]));
        if (!err)
            err = f_measure(&words, &wanted, &score, why);
        *best = score > *best ? score : *best;
        words_release(&wanted);
    }
    words_release(&words);
    return err;
}

static enum err rouge_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    return score_grade(state, what, rouge_score, out, why);
}

static const struct param_spec PARAMS[] = {
    SCORE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_rouge_l = {
    .name = "rouge_l",
    .summary = "longest common subsequence of words, ROUGE-L's F-measure",
    .params = PARAMS,
    .has_score = true,
    .state_size = sizeof(struct score_options),
    .configure = score_configure,
    .grade = rouge_grade,
};
