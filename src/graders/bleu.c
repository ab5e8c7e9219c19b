/* The bleu grader: sentence BLEU as sacrebleu's sentence_bleu computes it (13a tokens, n-grams up to
 * four, exponential smoothing, effective order), on a scale of 1 instead of 100. */
#include <math.h>
#include <stdlib.h>

#include "graders/word_score.h"

enum { ORDER = 4 };

/* ---- tokens ---- */

/* The tokenizer of mteval-v13a, sacrebleu's "13a".  Each step rewrites the whole line before the next one
 * begins; a single pass would see other neighbors. */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

static void replace(struct text *out, const struct text *in, const char *what, const char *with)
{
    struct slice rest = {text_get(in), in->length};
    const char *pending = rest.start; /* start of the text not yet copied */
    while (rest.length) {
        size_t step = 1;
        if (slice_starts(rest, what)) {
            text_add_bytes(out, pending, (size_t)(rest.start - pending));
            text_add(out, with);
            step = strlen(what);
            pending = rest.start + step;
        }
        rest.start += step;
        rest.length -= step;
    }
    text_add_bytes(out, pending, (size_t)(rest.start - pending));
}

/* ASCII punctuation that is always a token: all but ' , - . */
static bool is_mark(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static void split_marks(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        char spaced[] = {' ', *c, ' '};
        if (is_mark(*c))
            text_add_bytes(out, spaced, 3);
        else
            text_add_bytes(out, c, 1);
    }
}

/* A full stop or comma after anything but a digit. */
static void split_stops_after(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        text_add_bytes(out, c, 1);
        if (!is_digit(*c) && is_stop(c[1])) {
            char spaced[] = {' ', *++c, ' '};
            text_add_bytes(out, spaced, 3);
        }
    }
}

/* A full stop or comma before anything but a digit. */
static void split_stops_before(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        if (is_stop(*c) && c[1] && !is_digit(c[1])) {
            char spaced[] = {' ', *c, ' ', c[1]};
            text_add_bytes(out, spaced, 4);
            c++;
        } else {
            text_add_bytes(out, c, 1);
        }
    }
}

static void split_dashes(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        text_add_bytes(out, c, 1);
        if (is_digit(*c) && c[1] == '-') {
            text_add(out, " - ");
            c++;
        }
    }
}

/* Makes *spare, into which a step has written, the line. */
static void swap_lines(struct text *line, struct text *spare)
{
    struct text written = *spare;
    *spare = *line;
    *line = written;
    if (spare->failed)
        line->failed = true;
    text_clear(spare);
}

/* Appends the tokens, separated by white space. */
static void tokenize_13a(struct text *out, struct slice from)
{
    static const char *const PAIRS[][2] = {
        {"<skipped>", ""}, {"-\n", ""},   {"\n", " "},   {"&quot;", "\""},
        {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"},
    };
    static void (*const STEPS[])(struct text *, const struct text *) = {
        split_marks, split_stops_after, split_stops_before, split_dashes};
    struct text line = {0}, spare = {0};
    text_add_bytes(&line, from.start, from.length);
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        replace(&spare, &line, PAIRS[i][0], PAIRS[i][1]);
        swap_lines(&line, &spare);
    }
    text_add(&spare, " ");
    text_add(&spare, text_get(&line));
    text_add(&spare, " ");
    swap_lines(&line, &spare);
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        STEPS[i](&spare, &line);
        swap_lines(&line, &spare);
    }
    text_add(out, text_get(&line));
    if (line.failed || spare.failed)
        out->failed = true;
    text_release(&line);
    text_release(&spare);
}

static enum err read_sentence(struct words *words, struct slice from)
{
    *words = (struct words){0};
    tokenize_13a(&words->text, from);
    return words_split(words);
}

/* ---- n-grams, sorted so that equal ones are adjacent ---- */

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

static enum err grams_make(struct grams *grams, const struct words *words, size_t n)
{
    grams->count = words->count >= n ? words->count - n + 1 : 0;
    grams->items = calloc(grams->count ? grams->count : 1, sizeof *grams->items);
    if (!grams->items)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < grams->count; i++)
        memcpy(grams->items[i].ids, words->ids + i, n * sizeof *words->ids);
    qsort(grams->items, grams->count, sizeof *grams->items, by_ids);
    return ERR_OK;
}

/* How many equal n-grams begin at `at`. */
static size_t run_length(const struct grams *grams, size_t at)
{
    size_t end = at + 1;
    while (end < grams->count && by_ids(&grams->items[at], &grams->items[end]) == 0)
        end++;
    return end - at;
}

/* For each run of equal n-grams of the answer, at its first index in best[]: how often the reference has
 * it, if that is more than before. */
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
    size_t length, reference_length; /* of the reference nearest in length; of two, the shorter */
};

static enum err count_order(const struct words *answer, const struct words *references,
                            size_t reference_count, size_t n, struct counts *counts)
{
    struct grams ours = {0};
    enum err err = grams_make(&ours, answer, n);
    size_t *best = err ? NULL : calloc(ours.count ? ours.count : 1, sizeof *best);
    if (!best)
        err = ERR_NO_MEMORY;
    for (size_t r = 0; r < reference_count && !err; r++) {
        struct grams theirs = {0};
        err = grams_make(&theirs, &references[r], n);
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

static size_t nearest_length(size_t length, const struct words *references, size_t count)
{
    size_t nearest = references[0].count;
    for (size_t r = 1; r < count; r++) {
        size_t other = references[r].count;
        size_t gap = other > length ? other - length : length - other;
        size_t least = nearest > length ? nearest - length : length - nearest;
        if (gap < least || (gap == least && other < nearest))
            nearest = other;
    }
    return nearest;
}

/* sentences[0] is the answer, the others are the references. */
static enum err score_sentences(struct words *sentences, size_t count, double *score)
{
    struct words *all[REFERENCES_MAX + 1];
    for (size_t i = 0; i < count; i++)
        all[i] = &sentences[i];
    struct counts counts = {
        .length = sentences[0].count,
        .reference_length = nearest_length(sentences[0].count, sentences + 1, count - 1),
    };
    enum err err = words_number(all, count);
    for (size_t n = 1; n <= ORDER && !err; n++)
        err = count_order(&sentences[0], sentences + 1, count - 1, n, &counts);
    if (!err)
        *score = bleu_of(&counts);
    return err;
}

static enum err bleu_score(struct slice answer, const struct references *references, double *score,
                           struct error *why)
{
    (void)why;
    struct words sentences[REFERENCES_MAX + 1] = {0};
    enum err err = read_sentence(&sentences[0], answer);
    size_t count = 1;
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct slice text = slice_trim(slice_of(references->items[r]));
        err = read_sentence(&sentences[count++], text);
    }
    if (!err)
        err = score_sentences(sentences, count, score);
    for (size_t i = 0; i < count; i++)
        words_release(&sentences[i]);
    return err;
}

static enum err bleu_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    return score_grade(state, what, bleu_score, out, why);
}

SCORE_DRIVER(bleu, "sentence BLEU, as sacrebleu's sentence_bleu");
