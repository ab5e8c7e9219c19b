/* The bleu grader: sentence BLEU as sacrebleu's sentence_bleu gives it (13a tokens, n-grams up to
 * four, exponential smoothing, effective order), as a share of 1 instead of 100. */
#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "graders/bleu/tokenize.h"
#include "graders/grader.h"
#include "graders/words/references.h"
#include "graders/words/scored.h"
#include "graders/words/tokens.h"

enum { ORDER = 4 };

struct sentence {
    struct text text;
    struct tokens tokens;
};

static enum err sentence_fill(struct sentence *sentence, const char *from, size_t length)
{
    *sentence = (struct sentence){0};
    tokenize_13a(&sentence->text, (struct slice){from, length});
    if (sentence->text.failed)
        return ERR_NO_MEMORY;
    return tokens_split(&sentence->tokens,
                        (struct slice){text_get(&sentence->text), sentence->text.length});
}

static void sentence_release(struct sentence *sentence)
{
    text_release(&sentence->text);
    tokens_release(&sentence->tokens);
}

/* ---- n-grams, sorted so that equal ones stand together ---- */

struct gram {
    uint32_t ids[ORDER]; /* those beyond n are 0 */
};

struct grams {
    struct gram *items;
    size_t count;
};

static int by_ids(const void *a, const void *b)
{
    const struct gram *x = a, *y = b;
    for (size_t i = 0; i < ORDER; i++)
        if (x->ids[i] != y->ids[i])
            return x->ids[i] < y->ids[i] ? -1 : 1;
    return 0;
}

static enum err grams_make(struct grams *grams, const struct tokens *tokens, size_t n)
{
    grams->count = tokens->count >= n ? tokens->count - n + 1 : 0;
    grams->items = calloc(grams->count ? grams->count : 1, sizeof *grams->items);
    if (!grams->items)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < grams->count; i++)
        memcpy(grams->items[i].ids, tokens->ids + i, n * sizeof *tokens->ids);
    qsort(grams->items, grams->count, sizeof *grams->items, by_ids);
    return ERR_OK;
}

/* How many equal ones begin at `at`. */
static size_t run_length(const struct grams *grams, size_t at)
{
    size_t end = at + 1;
    while (end < grams->count && by_ids(&grams->items[at], &grams->items[end]) == 0)
        end++;
    return end - at;
}

/* For each run of the answer's n-grams, at its first place in best[]: how often the reference has
 * it, where that is more than before. */
static void count_matches(const struct grams *answer, const struct grams *reference, size_t *best)
{
    size_t i = 0, j = 0;
    while (i < answer->count && j < reference->count) {
        int order = by_ids(&answer->items[i], &reference->items[j]);
        size_t ours = order <= 0 ? run_length(answer, i) : 0;
        size_t theirs = order >= 0 ? run_length(reference, j) : 0;
        size_t matches = ours < theirs ? ours : theirs;
        best[i] = matches > best[i] ? matches : best[i];
        i += ours;
        j += theirs;
    }
}

/* ---- the score ---- */

struct counts {
    size_t correct[ORDER], total[ORDER];
    size_t length, reference_length; /* the reference nearest in length, the shorter of two */
};

static enum err count_order(const struct sentence *answer, const struct sentence *references,
                            size_t reference_count, size_t n, struct counts *counts)
{
    struct grams ours = {0};
    enum err err = grams_make(&ours, &answer->tokens, n);
    size_t *best = err ? NULL : calloc(ours.count ? ours.count : 1, sizeof *best);
    if (!best)
        err = ERR_NO_MEMORY;
    for (size_t r = 0; r < reference_count && !err; r++) {
        struct grams theirs = {0};
        err = grams_make(&theirs, &references[r].tokens, n);
        if (!err)
            count_matches(&ours, &theirs, best);
        free(theirs.items);
    }
    for (size_t i = 0; i < ours.count && !err; i++)
        counts->correct[n - 1] += best[i];
    counts->total[n - 1] = ours.count;
    free(best);
    free(ours.items);
    return err;
}

static double bleu_of(const struct counts *counts)
{
    double smooth = 1, logs = 0;
    size_t order = 0, any = 0;
    for (size_t n = 0; n < ORDER; n++)
        any += counts->correct[n];
    if (!any)
        return 0;
    for (; order < ORDER && counts->total[order]; order++) {
        double total = (double)counts->total[order], correct = (double)counts->correct[order];
        if (counts->correct[order] == 0)
            smooth *= 2;
        logs += log(counts->correct[order] ? correct / total : 1 / (smooth * total));
    }
    double brevity = counts->length < counts->reference_length
                         ? exp(1 - (double)counts->reference_length / (double)counts->length)
                         : 1;
    return brevity * exp(logs / (double)order);
}

static size_t nearest_length(size_t length, const struct sentence *references, size_t count)
{
    size_t nearest = references[0].tokens.count;
    for (size_t r = 1; r < count; r++) {
        size_t other = references[r].tokens.count;
        size_t gap = other > length ? other - length : length - other;
        size_t least = nearest > length ? nearest - length : length - nearest;
        if (gap < least || (gap == least && other < nearest))
            nearest = other;
    }
    return nearest;
}

/* sentences[0] is the answer, the others are the references. */
static enum err score_sentences(struct sentence *sentences, size_t count, double *score)
{
    struct tokens *all[REFERENCES_MAX + 1];
    for (size_t i = 0; i < count; i++)
        all[i] = &sentences[i].tokens;
    struct counts counts = {
        .length = sentences[0].tokens.count,
        .reference_length = nearest_length(sentences[0].tokens.count, sentences + 1, count - 1),
    };
    enum err err = tokens_number(all, count);
    for (size_t n = 1; n <= ORDER && !err; n++)
        err = count_order(&sentences[0], sentences + 1, count - 1, n, &counts);
    if (!err)
        *score = bleu_of(&counts);
    return err;
}

static enum err bleu_score(struct slice reply, const struct references *references, double *score,
                           struct error *why)
{
    (void)why;
    struct sentence sentences[REFERENCES_MAX + 1] = {0};
    enum err err = sentence_fill(&sentences[0], reply.start, reply.length);
    size_t count = 1;
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct slice text = slice_trim(slice_of(references->items[r]));
        err = sentence_fill(&sentences[count++], text.start, text.length);
    }
    if (!err)
        err = score_sentences(sentences, count, score);
    for (size_t i = 0; i < count; i++)
        sentence_release(&sentences[i]);
    return err;
}

static enum err bleu_open(const struct grader_config *config, struct grader *out, struct error *why)
{
    return scored_open(config, 0.5, out, why);
}

static enum err bleu_grade(struct grader *grader, const struct grading *what, struct grade *out,
                           struct error *why)
{
    return scored_grade(grader, what, bleu_score, out, why);
}

static const struct param_spec PARAMS[] = {
    SCORED_PARAMS("0.5"),
    {NULL, NULL, NULL},
};

const struct grader_driver grader_bleu = {
    .name = "bleu",
    .summary = "sentence BLEU, as sacrebleu's sentence_bleu",
    .params = PARAMS,
    .open = bleu_open,
    .grade = bleu_grade,
    .close = scored_close,
};
