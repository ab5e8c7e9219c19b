/* The f1 grader: words shared by answer and reference, as SQuAD counts them: lower case, no ASCII
 * punctuation, no articles; the best of several references. */
#include <stdlib.h>

#include "core/utf8.h"
#include "graders/fold.h"
#include "graders/word_score.h"

static bool is_article(struct slice word)
{
    return slice_is(word, "a") || slice_is(word, "an") || slice_is(word, "the");
}

static enum err read_words(struct words *words, struct slice from)
{
    *words = (struct words){0};
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t c = char_at((struct slice){from.start + at, from.length - at}, &step);
        if (c < 0x80 && char_is_punctuation(c))
            continue;
        char bytes[UTF8_BYTES_MAX];
        text_add_bytes(&words->text, bytes, utf8_encode(char_lower(c), bytes));
        if (c == CHAR_DOTTED_I)
            text_add(&words->text, CHAR_LOWER_MARK);
    }
    enum err err = words_split(words);
    size_t kept = 0;
    for (size_t i = 0; i < words->count; i++)
        if (!is_article(words->items[i]))
            words->items[kept++] = words->items[i];
    words->count = kept;
    return err;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Words in both, each as often as in the text that has it less often. */
static size_t count_shared(struct words *a, struct words *b)
{
    size_t i = 0, j = 0, shared = 0;
    qsort(a->ids, a->count, sizeof *a->ids, by_id);
    qsort(b->ids, b->count, sizeof *b->ids, by_id);
    while (i < a->count && j < b->count) {
        uint32_t x = a->ids[i], y = b->ids[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

static enum err score_one(struct words *answer, const char *reference, double *score)
{
    struct words wanted;
    enum err err = read_words(&wanted, slice_of(reference));
    struct words *both[] = {answer, &wanted};
    if (!err)
        err = words_number(both, 2);
    if (!err) {
        size_t total = answer->count + wanted.count;
        bool nothing = answer->count == 0 || wanted.count == 0;
        /* 2PR / (P + R), written with counts; two texts without words are equal. */
        *score = nothing ? (total == 0 ? 1 : 0)
                         : 2.0 * (double)count_shared(answer, &wanted) / (double)total;
    }
    words_release(&wanted);
    return err;
}

static enum err f1_score(struct slice answer, const struct references *references, double *best,
                         struct error *why)
{
    struct words words;
    (void)why;
    enum err err = read_words(&words, answer);
    for (unsigned r = 0; r < references->count && !err; r++) {
        double score = 0;
        err = score_one(&words, references->items[r], &score);
        *best = score > *best ? score : *best;
    }
    words_release(&words);
    return err;
}

static enum err f1_grade(const void *state, const struct grading *what, struct grade *out,
                         struct error *why)
{
    return score_grade(state, what, f1_score, out, why);
}

static const struct param_spec PARAMS[] = {
    SCORE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_f1 = {
    .name = "f1",
    .summary = "word overlap, SQuAD's F1",
    .params = PARAMS,
    .has_score = true,
    .state_size = sizeof(struct score_options),
    .configure = score_configure,
    .grade = f1_grade,
};
