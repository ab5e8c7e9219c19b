/* The rouge_l grader: the longest common subsequence of words, as the rouge-score package computes
 * rougeL's F-measure without a stemmer.  Words are runs of a-z and 0-9 after folding to small
 * letters, so texts in other scripts have none and score 0. */
#include <stdlib.h>

#include "core/text.h"
#include "graders/grader.h"
#include "graders/words/references.h"
#include "graders/words/scored.h"
#include "graders/words/tokens.h"
#include "graders/words/utf8.h"

/* Time grows with the product of the lengths: about a second at this many cells. */
static const double CELLS_MAX = 4e8;

struct sequence {
    struct text text;
    struct tokens tokens;
};

static enum err sequence_fill(struct sequence *sequence, struct slice from)
{
    *sequence = (struct sequence){0};
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t c = utf8_read((struct slice){from.start + at, from.length - at}, &step);
        c = utf8_lower(c);
        char byte = ' ';
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            byte = (char)c;
        text_add_bytes(&sequence->text, &byte, 1);
    }
    if (sequence->text.failed)
        return ERR_NO_MEMORY;
    return tokens_split(&sequence->tokens,
                        (struct slice){text_get(&sequence->text), sequence->text.length});
}

static void sequence_release(struct sequence *sequence)
{
    text_release(&sequence->text);
    tokens_release(&sequence->tokens);
}

/* One row of the table is enough for the length. */
static enum err common_length(const struct tokens *a, const struct tokens *b, size_t *out)
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

static enum err measure(struct tokens *answer, struct tokens *wanted, double *score,
                        struct error *why)
{
    *score = 0;
    if (answer->count == 0 || wanted->count == 0)
        return ERR_OK;
    if ((double)answer->count * (double)wanted->count > CELLS_MAX)
        return err_set(why, ERR_BAD_VALUE,
                       "too long for ROUGE-L: %zu words against %zu (at most %.0g pairs)",
                       answer->count, wanted->count, CELLS_MAX);
    struct tokens *both[] = {answer, wanted};
    size_t common = 0;
    enum err err = tokens_number(both, 2);
    if (!err)
        err = common_length(answer, wanted, &common);
    *score = 2.0 * (double)common / (double)(answer->count + wanted->count);
    return err;
}

static enum err rouge_score(struct slice reply, const struct references *references, double *best,
                            struct error *why)
{
    struct sequence answer;
    enum err err = sequence_fill(&answer, reply);
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct sequence wanted;
        double score = 0;
        err = sequence_fill(&wanted, slice_of(references->items[r]));
        if (!err)
            err = measure(&answer.tokens, &wanted.tokens, &score, why);
        *best = score > *best ? score : *best;
        sequence_release(&wanted);
    }
    sequence_release(&answer);
    return err;
}

static enum err rouge_open(const struct grader_config *config, struct grader *out,
                           struct error *why)
{
    return scored_open(config, 0.5, out, why);
}

static enum err rouge_grade(struct grader *grader, const struct grading *what, struct grade *out,
                            struct error *why)
{
    return scored_grade(grader, what, rouge_score, out, why);
}

static const struct param_spec PARAMS[] = {
    SCORED_PARAMS("0.5"),
    {NULL, NULL, NULL},
};

const struct grader_driver grader_rouge_l = {
    .name = "rouge_l",
    .summary = "longest common subsequence of words: ROUGE-L's F-measure",
    .params = PARAMS,
    .open = rouge_open,
    .grade = rouge_grade,
    .close = scored_close,
};
