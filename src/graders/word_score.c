/* Words as numbers, by sorting all words of the compared texts once; the way from a score to a grade; and the
 * graders that compare the words of the answer with those of the nearest reference: f1, rouge_1, rouge_2 and rouge_l. */
#include "graders/word_score.h"

#include <stdlib.h>

#include "core/grow.h"
#include "core/utf8.h"
#include "graders/fold.h"

/* ---- words ---- */

enum err words_split(struct words *words)
{
    struct slice text = {text_get(&words->text), words->text.length}, word = {text.start, 0};
    if (words->text.failed)
        return ERR_NO_MEMORY;
    for (size_t at = 0, step = 0; at <= text.length; at += step) {
        struct slice rest = {text.start + at, text.length - at};
        bool ends = !rest.length || char_is_space(char_at(rest, &step));
        step = rest.length ? step : 1;
        if (!ends) {
            word.length += step;
            continue;
        }
        struct slice *items = grow(words->items, &words->capacity, words->count, sizeof *items);
        if (!items)
            return ERR_NO_MEMORY;
        words->items = items;
        items[words->count] = word;
        words->count += word.length > 0;
        word = (struct slice){rest.start + step, 0};
    }
    return ERR_OK;
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

const struct param_spec SCORE_PARAMS[] = {
    {"threshold", "SHARE", "lowest score that is correct, 0 to 1 (0.5)"},
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

enum err score_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct score_options *options = state;
    enum err err = references_read(config->params, options->references, why);
    if (!err)
        err = params_number(config->params, "threshold", 0.5, &options->threshold, why);
    if (!err && (options->threshold < 0 || options->threshold > 1))
        return err_set(why, ERR_USAGE, "threshold=%g: expected a number from 0 to 1",
                       options->threshold);
    return err;
}

enum err score_grade(const struct score_options *options, const struct grading *what,
                     score_function *score_of, struct grade *out, struct error *why)
{
    struct slice answer = slice_of(what->answer);
    struct references references;
    struct error reason = {0};
    double score = 0;
    references_find(&references, what, options->references);
    enum err err = score_of(answer, &references, &score, &reason);
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

typedef enum err word_reader(struct words *words, struct slice from);
typedef enum err pair_score(struct words *answer, struct words *wanted, double *score,
                            struct error *why);

/* The best score over the references. */
static enum err best_score(struct slice answer, const struct references *references,
                           word_reader *read, pair_score *score_of, double *best, struct error *why)
{
    struct words words = {0};
    enum err err = read(&words, answer);
    for (unsigned r = 0; r < references->count && !err; r++) {
        struct words wanted = {0};
        double score = 0;
        err = read(&wanted, slice_of(references->items[r]));
        if (!err)
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

/* n-grams in both, each as often as in the text that has it less often. */
static enum err count_shared(struct words *a, struct words *b, size_t n, size_t *shared)
{
    struct words *both[] = {a, b};
    size_t in_a = gram_count(a, n), in_b = gram_count(b, n);
    uint64_t *keys = malloc((in_a + in_b + 1) * sizeof *keys);
    enum err err = keys ? words_number(both, 2) : ERR_NO_MEMORY;
    *shared = 0;
    if (!err) {
        write_keys(a, n, keys);
        write_keys(b, n, keys + in_a);
    }
    for (size_t i = 0, j = 0; !err && i < in_a && j < in_b;) {
        uint64_t x = keys[i], y = keys[in_a + j];
        *shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    free(keys);
    return err;
}

/* ---- f1: shared words as SQuAD counts them: lower case, no ASCII punctuation, no articles ---- */

static bool is_article(struct slice word)
{
    return slice_is(word, "a") || slice_is(word, "an") || slice_is(word, "the");
}

static enum err read_f1(struct words *words, struct slice from)
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
    enum err err = words_split(words);
    size_t kept = 0;
    for (size_t i = 0; i < words->count; i++)
        if (!is_article(words->items[i]))
            words->items[kept++] = words->items[i];
    words->count = kept;
    return err;
}

static enum err f1_of(struct words *answer, struct words *wanted, double *score, struct error *why)
{
    size_t total = answer->count + wanted->count, shared;
    (void)why;
    enum err err = count_shared(answer, wanted, 1, &shared);
    /* 2PR / (P + R), written with counts; two texts without words are equal. */
    *score = total ? 2.0 * (double)shared / (double)total : 1;
    return err;
}

static enum err f1_score(struct slice answer, const struct references *references, double *best,
                         struct error *why)
{
    return best_score(answer, references, read_f1, f1_of, best, why);
}

SCORE_DRIVER(f1, "word overlap, SQuAD's F1");

/* ---- rouge_1, rouge_2: shared words and pairs of neighboring words ---- */

/* These and rouge_l as the rouge-score package computes F-measures without a stemmer.  Words are runs of a-z and 0-9 in
 * lower case, so texts in other scripts have none and score 0. */

static enum err read_rouge(struct words *words, struct slice from)
{
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t upper = char_at((struct slice){from.start + at, from.length - at}, &step);
        uint32_t c = char_lower(upper);
        bool counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        char bytes[] = {(char)(counts ? c : ' '), ' '};
        text_add_bytes(&words->text, bytes, upper == CHAR_DOTTED_I ? 2 : 1);
    }
    return words_split(words);
}

static enum err rouge_n_of(struct words *answer, struct words *wanted, size_t n, double *score)
{
    size_t total = gram_count(answer, n) + gram_count(wanted, n), shared;
    enum err err = count_shared(answer, wanted, n, &shared);
    *score = total ? 2.0 * (double)shared / (double)total : 0;
    return err;
}

static enum err rouge_1_of(struct words *answer, struct words *wanted, double *score,
                           struct error *why)
{
    (void)why;
    return rouge_n_of(answer, wanted, 1, score);
}

static enum err rouge_2_of(struct words *answer, struct words *wanted, double *score,
                           struct error *why)
{
    (void)why;
    return rouge_n_of(answer, wanted, 2, score);
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

SCORE_DRIVER(rouge_1, "shared words, ROUGE-1's F-measure");
SCORE_DRIVER(rouge_2, "shared pairs of words, ROUGE-2's F-measure");

/* ---- rouge_l: the longest common subsequence of words ---- */

/* Time grows with the product of the lengths: about a second at this many cells. */
static const double CELLS_MAX = 4e8;

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

static enum err rouge_l_of(struct words *answer, struct words *wanted, double *score,
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

static enum err rouge_l_score(struct slice answer, const struct references *references,
                              double *best, struct error *why)
{
    return best_score(answer, references, read_rouge, rouge_l_of, best, why);
}

SCORE_DRIVER(rouge_l, "longest common subsequence of words, ROUGE-L's F-measure");
