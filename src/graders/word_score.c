/* Graders with a score over words: f1, rouge_1, rouge_2 and rouge_l, which compare the answer with the nearest
 * reference, and bleu, which compares it with all of them. */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/words.h"

/* ---- scores ---- */

/* The state of a score grader. */
struct score_options {
    double threshold;
    char references[REFERENCES_PATH];
};

/* Scores a nonempty answer: ERR_BAD_VALUE, with the reason, if that is not possible and the grade is null. */
typedef enum err score_function(struct slice answer, const struct references *references,
                                double *score, struct error *why);

static const struct param_spec SCORE_PARAMS[] = {
    {"threshold", "SHARE", "lowest score that is correct, 0 to 1 (0.5)"},
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

static enum err score_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct score_options *options = state;
    struct params_reader read = {config->params, why,
                                 references_read(config->params, options->references, why)};
    options->threshold = params_number(&read, "threshold", 0.5, 0, 1);
    return read.err;
}

static void score_grade(const struct score_options *options, const struct grading *what,
                        score_function *score_of, struct grade *out)
{
    struct slice answer = slice_of(what->answer);
    struct references references;
    struct error reason = {0};
    double score = 0;
    references_find(&references, what, options->references);
    if (score_of(answer, &references, &score, &reason)) {
        grade_null(out, "%s", reason.text);
        return;
    }
    grade_extracted(out, answer);
    out->score = score;
    if (score >= options->threshold)
        grade_true(out);
    else
        grade_false(out, "score %.4g is below the threshold %.4g", score, options->threshold);
}

/* The driver, whose score_function is ID_score. */
#define SCORE_DRIVER(ID, NAME, SUMMARY)                                                            \
    static enum err ID##_grade(const void *state, const struct grading *what, struct grade *out,   \
                               struct error *why)                                                  \
    {                                                                                              \
        (void)why;                                                                                 \
        score_grade(state, what, ID##_score, out);                                                 \
        return ERR_OK;                                                                             \
    }                                                                                              \
    const struct grader_driver grader_##ID = {                                                     \
        .name = (NAME),                                                                            \
        .summary = (SUMMARY),                                                                      \
        .params = SCORE_PARAMS,                                                                    \
        .has_score = true,                                                                         \
        .state_size = sizeof(struct score_options),                                                \
        .configure = score_configure,                                                              \
        .grade = ID##_grade,                                                                       \
    }

typedef void word_reader(struct words *words, struct slice from);
typedef enum err pair_score(struct words *answer, struct words *wanted, double *score,
                            struct error *why);

/* The best score over the references. */
static enum err best_score(struct slice answer, const struct references *references,
                           word_reader *read, pair_score *score_of, double *best, struct error *why)
{
    struct words words = {0};
    enum err err = ERR_OK;
    read(&words, answer);
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct words wanted = {0};
        double score = 0;
        read(&wanted, slice_of(references->items[r]));
        err = score_of(&words, &wanted, &score, why);
        *best = score > *best ? score : *best;
        words_release(&wanted);
    }
    words_release(&words);
    return err;
}

/* ---- n-grams that two texts share ---- */

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t gram_count(const struct words *words, size_t n)
{
    return words->count < n ? 0 : words->count - n + 1;
}

/* Sorted; two ids fill a key, so that n is 1 or 2. */
static void write_keys(const struct words *words, size_t n, uint64_t *keys)
{
    size_t count = gram_count(words, n);
    for (size_t i = 0; i < count; i++)
        keys[i] = n == 1 ? words->ids[i] : (uint64_t)words->ids[i] << 32 | words->ids[i + 1];
    qsort(keys, count, sizeof *keys, by_key);
}

/* n-grams in both, with the smaller count. */
static size_t count_shared(struct words *a, struct words *b, size_t n)
{
    struct words *both[] = {a, b};
    size_t in_a = gram_count(a, n), in_b = gram_count(b, n), shared = 0;
    uint64_t *keys = xreallocarray(NULL, in_a + in_b, sizeof *keys);
    words_number(both, 2);
    write_keys(a, n, keys);
    write_keys(b, n, keys + in_a);
    for (size_t i = 0, j = 0; i < in_a && j < in_b;) {
        uint64_t x = keys[i], y = keys[in_a + j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    free(keys);
    return shared;
}

/* ---- f1: shared words as SQuAD counts them: lower case, no ASCII punctuation, no articles ---- */

static bool is_article(struct slice word)
{
    return slice_is(word, "a") || slice_is(word, "an") || slice_is(word, "the");
}

static void read_f1(struct words *words, struct slice from)
{
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t c = char_at((struct slice){from.start + at, from.length - at}, &step);
        if (c < 0x80 && char_is_punctuation(c))
            continue;
        char bytes[UTF8_BYTES_MAX];
        text_add_bytes(&words->text, bytes, utf8_encode(char_lower(c), bytes));
        if (c == CHAR_DOTTED_I)
            text_add(&words->text, CHAR_LOWER_MARK);
    }
    words_split(words);
    size_t kept = 0;
    for (size_t i = 0; i < words->count; i++)
        if (!is_article(words->items[i]))
            words->items[kept++] = words->items[i];
    words->count = kept;
}

static enum err f1_of(struct words *answer, struct words *wanted, double *score, struct error *why)
{
    size_t total = answer->count + wanted->count, shared = count_shared(answer, wanted, 1);
    (void)why;
    /* 2PR / (P + R), written with counts; two texts without words are equal. */
    *score = total ? 2.0 * (double)shared / (double)total : 1;
    return ERR_OK;
}

static enum err f1_score(struct slice answer, const struct references *references, double *best,
                         struct error *why)
{
    return best_score(answer, references, read_f1, f1_of, best, why);
}

SCORE_DRIVER(f1, "f1", "word overlap, SQuAD's F1");

/* ---- rouge_1, rouge_2: shared words and pairs of neighboring words ---- */

/* These and rouge_l as the rouge-score package computes F-measures without a stemmer.  Words are runs of a-z and 0-9 in
 * lower case, so texts in other scripts have none and score 0. */

static void read_rouge(struct words *words, struct slice from)
{
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t upper = char_at((struct slice){from.start + at, from.length - at}, &step);
        uint32_t c = char_lower(upper);
        bool counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        char bytes[] = {(char)(counts ? c : ' '), ' '};
        text_add_bytes(&words->text, bytes, upper == CHAR_DOTTED_I ? 2 : 1);
    }
    words_split(words);
}

static double rouge_n_of(struct words *answer, struct words *wanted, size_t n)
{
    size_t total = gram_count(answer, n) + gram_count(wanted, n);
    return total ? 2.0 * (double)count_shared(answer, wanted, n) / (double)total : 0;
}

static enum err rouge_1_of(struct words *answer, struct words *wanted, double *score,
                           struct error *why)
{
    (void)why;
    *score = rouge_n_of(answer, wanted, 1);
    return ERR_OK;
}

static enum err rouge_2_of(struct words *answer, struct words *wanted, double *score,
                           struct error *why)
{
    (void)why;
    *score = rouge_n_of(answer, wanted, 2);
    return ERR_OK;
}

static enum err rouge_1_score(struct slice answer, const struct references *references,
                              double *best, struct error *why)
{
    return best_score(answer, references, read_rouge, rouge_1_of, best, why);
}

static enum err rouge_2_score(struct slice answer, const struct references *references,
                              double *best, struct error *why)
{
    return best_score(answer, references, read_rouge, rouge_2_of, best, why);
}

SCORE_DRIVER(rouge_1, "rouge_1", "shared words, ROUGE-1's F-measure");
SCORE_DRIVER(rouge_2, "rouge_2", "shared pairs of words, ROUGE-2's F-measure");

/* ---- rouge_l: the longest common subsequence of words ---- */

/* The time is proportional to the product of the lengths: about a second for this many cells. */
static const double CELLS_MAX = 4e8;

/* One row of the dynamic-programming table is enough for the length. */
static size_t common_length(const struct words *a, const struct words *b)
{
    uint32_t *row = xcalloc(b->count + 1, sizeof *row);
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
    size_t length = row[b->count];
    free(row);
    return length;
}

static enum err rouge_lcs_of(struct words *answer, struct words *wanted, double *score,
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
    words_number(both, 2);
    *score = 2.0 * (double)common_length(answer, wanted) / (double)(answer->count + wanted->count);
    return ERR_OK;
}

static enum err rouge_lcs_score(struct slice answer, const struct references *references,
                                double *best, struct error *why)
{
    return best_score(answer, references, read_rouge, rouge_lcs_of, best, why);
}

SCORE_DRIVER(rouge_lcs, "rouge_l", "longest common subsequence of words, ROUGE-L's F-measure");

/* ---- BLEU ---- */

/* As sacrebleu's sentence_bleu computes it (13a tokens, n-grams up to four, exponential smoothing, effective order), on a
 * scale of 1 instead of 100. */
enum { ORDER = 4 };

/* ---- its tokens ---- */

/* The tokenizer of mteval-v13a, sacrebleu's "13a".  Each step rewrites the whole line before the next one
 * begins; a single pass would see other neighbors. */

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
        if (!isdigit((unsigned char)*c) && is_stop(c[1])) {
            char spaced[] = {' ', *++c, ' '};
            text_add_bytes(out, spaced, 3);
        }
    }
}

/* A full stop or comma before anything but a digit. */
static void split_stops_before(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        if (is_stop(*c) && c[1] && !isdigit((unsigned char)c[1])) {
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
        if (isdigit((unsigned char)*c) && c[1] == '-') {
            text_add(out, " - ");
            c++;
        }
    }
}

/* Makes *spare, the output of a step, the line. */
static void swap_lines(struct text *line, struct text *spare)
{
    struct text written = *spare;
    *spare = *line;
    *line = written;
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
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        replace(&spare, &line, PAIRS[i][0], PAIRS[i][1]);
        swap_lines(&line, &spare);
    }
    text_add(&spare, " ");
    text_add(&spare, text_get(&line));
    text_add(&spare, " ");
    swap_lines(&line, &spare);
    for (size_t i = 0; i < COUNT_OF(STEPS); i++) {
        STEPS[i](&spare, &line);
        swap_lines(&line, &spare);
    }
    text_add(out, text_get(&line));
    text_release(&line);
    text_release(&spare);
}

static void read_sentence(struct words *words, struct slice from)
{
    *words = (struct words){0};
    tokenize_13a(&words->text, from);
    words_split(words);
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

static struct grams grams_make(const struct words *words, size_t n)
{
    struct grams grams = {.count = gram_count(words, n)};
    grams.items = xcalloc(grams.count, sizeof *grams.items);
    for (size_t i = 0; i < grams.count; i++)
        memcpy(grams.items[i].ids, words->ids + i, n * sizeof *words->ids);
    qsort(grams.items, grams.count, sizeof *grams.items, by_ids);
    return grams;
}

/* Number of equal n-grams that begin at `at`. */
static size_t run_length(const struct grams *grams, size_t at)
{
    size_t end = at + 1;
    while (end < grams->count && by_ids(&grams->items[at], &grams->items[end]) == 0)
        end++;
    return end - at;
}

/* For each run of equal n-grams of the answer, at its first index in best[]: its count in the reference, if that is
 * larger than before. */
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
    size_t length, reference_length; /* reference nearest in length; of two, the shorter */
};

static void count_order(const struct words *answer, const struct words *references,
                        size_t reference_count, size_t n, struct counts *counts)
{
    struct grams ours = grams_make(answer, n);
    size_t *best = xcalloc(ours.count, sizeof *best);
    for (size_t r = 0; r < reference_count; r++) {
        struct grams theirs = grams_make(&references[r], n);
        count_matches(&ours, &theirs, best);
        free(theirs.items);
    }
    for (size_t i = 0; i < ours.count; i++)
        counts->correct[n - 1] += best[i];
    counts->total[n - 1] = ours.count;
    free(best);
    free(ours.items);
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
        size_t min = nearest > length ? nearest - length : length - nearest;
        if (gap < min || (gap == min && other < nearest))
            nearest = other;
    }
    return nearest;
}

/* sentences[0] is the answer, the others are the references. */
static double score_sentences(struct words *sentences, size_t count)
{
    struct words *all[REFERENCES_MAX + 1];
    for (size_t i = 0; i < count; i++)
        all[i] = &sentences[i];
    struct counts counts = {
        .length = sentences[0].count,
        .reference_length = nearest_length(sentences[0].count, sentences + 1, count - 1),
    };
    words_number(all, count);
    for (size_t n = 1; n <= ORDER; n++)
        count_order(&sentences[0], sentences + 1, count - 1, n, &counts);
    return bleu_of(&counts);
}

static enum err bleu_score(struct slice answer, const struct references *references, double *score,
                           struct error *why)
{
    (void)why;
    struct words sentences[REFERENCES_MAX + 1] = {0};
    size_t count = 1;
    read_sentence(&sentences[0], answer);
    for (unsigned r = 0; r < references->count; r++)
        read_sentence(&sentences[count++], slice_trim(slice_of(references->items[r])));
    *score = score_sentences(sentences, count);
    for (size_t i = 0; i < count; i++)
        words_release(&sentences[i]);
    return ERR_OK;
}

SCORE_DRIVER(bleu, "bleu", "sentence BLEU, as sacrebleu's sentence_bleu");
