/* The f1 grader: how many words answer and expected text share, as SQuAD counts it: small letters,
 * no ASCII punctuation, no articles; the best of several references. */
#include <stdlib.h>

#include "core/text.h"
#include "graders/grader.h"
#include "graders/words/references.h"
#include "graders/words/scored.h"
#include "graders/words/tokens.h"
#include "graders/words/utf8.h"

/* The words of a text, and the memory they stand in. */
struct bag {
    struct text text;
    struct tokens tokens;
};

static bool is_article(struct slice word)
{
    return slice_equal(word, slice_of("a")) || slice_equal(word, slice_of("an")) ||
           slice_equal(word, slice_of("the"));
}

static enum err bag_fill(struct bag *bag, struct slice from)
{
    *bag = (struct bag){0};
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t c = utf8_read((struct slice){from.start + at, from.length - at}, &step);
        if (c < 0x80 && utf8_is_punctuation(c))
            continue;
        char bytes[UTF8_BYTES_MAX];
        text_add_bytes(&bag->text, bytes, utf8_encode(utf8_lower(c), bytes));
    }
    if (bag->text.failed)
        return ERR_NO_MEMORY;
    enum err err =
        tokens_split(&bag->tokens, (struct slice){text_get(&bag->text), bag->text.length});
    size_t kept = 0;
    for (size_t i = 0; i < bag->tokens.count; i++)
        if (!is_article(bag->tokens.words[i]))
            bag->tokens.words[kept++] = bag->tokens.words[i];
    bag->tokens.count = kept;
    return err;
}

static void bag_release(struct bag *bag)
{
    text_release(&bag->text);
    tokens_release(&bag->tokens);
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Words in both, each as often as in the one that has it less often. */
static size_t shared(struct tokens *a, struct tokens *b)
{
    size_t i = 0, j = 0, same = 0;
    qsort(a->ids, a->count, sizeof *a->ids, by_id);
    qsort(b->ids, b->count, sizeof *b->ids, by_id);
    while (i < a->count && j < b->count) {
        uint32_t x = a->ids[i], y = b->ids[j];
        same += x == y;
        i += x <= y;
        j += y <= x;
    }
    return same;
}

static enum err score_one(struct bag *answer, const char *reference, double *score)
{
    struct bag wanted;
    enum err err = bag_fill(&wanted, slice_of(reference));
    struct tokens *both[] = {&answer->tokens, &wanted.tokens};
    if (!err)
        err = tokens_number(both, 2);
    if (!err) {
        size_t total = answer->tokens.count + wanted.tokens.count;
        bool nothing = answer->tokens.count == 0 || wanted.tokens.count == 0;
        /* 2PR / (P + R), written with counts; two texts without a word are the same. */
        *score = nothing ? (total == 0 ? 1 : 0)
                         : 2.0 * (double)shared(&answer->tokens, &wanted.tokens) / (double)total;
    }
    bag_release(&wanted);
    return err;
}

static enum err f1_score(struct slice reply, const struct references *references, double *best,
                         struct error *why)
{
    struct bag answer;
    (void)why;
    enum err err = bag_fill(&answer, reply);
    for (unsigned r = 0; r < references->count && !err; r++) {
        double score = 0;
        err = score_one(&answer, references->items[r], &score);
        *best = score > *best ? score : *best;
    }
    bag_release(&answer);
    return err;
}

static enum err f1_open(const struct grader_config *config, struct grader *out, struct error *why)
{
    return scored_open(config, 0.5, out, why);
}

static enum err f1_grade(struct grader *grader, const struct grading *what, struct grade *out,
                         struct error *why)
{
    return scored_grade(grader, what, f1_score, out, why);
}

static const struct param_spec PARAMS[] = {
    SCORED_PARAMS("0.5"),
    {NULL, NULL, NULL},
};

const struct grader_driver grader_f1 = {
    .name = "f1",
    .summary = "shared words, as SQuAD's F1",
    .params = PARAMS,
    .open = f1_open,
    .grade = f1_grade,
    .close = scored_close,
};
