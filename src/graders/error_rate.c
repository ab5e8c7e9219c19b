/* Speech recognition: wer and cer, the edits that turn the expected words or characters into those of the answer, over
 * the number of expected ones. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/quality.h"
#include "graders/words.h"

/* ---- the edit distance ----
 *
 * Myers' bit-parallel algorithm: a column of the matrix of distances is kept as the differences between its rows, +1, 0
 * or -1, in two bits each, and 64 rows are advanced by one element of b with a few operations on words. */

enum { BITS = 64 };

/* The places of each element of the pattern, sorted by element. */
struct place {
    uint32_t element;
    size_t at;
};

/* A block of 64 rows: those in which the distance increases by 1 from the row above, and those in which it decreases. */
struct block {
    uint64_t up, down;
};

struct column {
    struct place *places;
    size_t count; /* rows: elements of the pattern */
    struct block *blocks;
    uint64_t *equal; /* rows whose element is the current one of b; zero between elements */
    size_t block_count;
};

static int by_element(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->element != b->element)
        return a->element < b->element ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void column_init(struct column *column, const uint32_t *pattern, size_t count)
{
    *column = (struct column){.count = count, .block_count = (count + BITS - 1) / BITS};
    column->places = xreallocarray(NULL, count, sizeof *column->places);
    column->blocks = xreallocarray(NULL, column->block_count, sizeof *column->blocks);
    column->equal = xcalloc(column->block_count, sizeof *column->equal);
    for (size_t i = 0; i < count; i++)
        column->places[i] = (struct place){pattern[i], i};
    qsort(column->places, count, sizeof *column->places, by_element);
    for (size_t i = 0; i < column->block_count; i++)
        column->blocks[i] = (struct block){.up = UINT64_MAX}; /* row i has distance i */
}

static void column_release(struct column *column)
{
    free(column->places);
    free(column->blocks);
    free(column->equal);
}

/* The first place of an element; the end if it does not occur. */
static size_t first_place(const struct column *column, uint32_t element)
{
    size_t low = 0, high = column->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (column->places[middle].element < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Advances a block.  `carry` is how the row above the block changed, and returned how its last row did: the row of bit
 * `last`. */
static int advance_block(struct block *block, uint64_t equal, int carry, unsigned last)
{
    uint64_t vertical = equal | block->down;
    uint64_t above = carry < 0 ? equal | 1 : equal;
    uint64_t horizontal = (((above & block->up) + block->up) ^ block->up) | above;
    uint64_t up = block->down | ~(horizontal | block->up);
    uint64_t down = block->up & horizontal;
    int change = (int)(up >> last & 1) - (int)(down >> last & 1);
    up = up << 1 | (carry > 0);
    down = down << 1 | (carry < 0);
    block->up = down | ~(vertical | up);
    block->down = up & vertical;
    return change;
}

/* How the distance in the last row changes with the next element of b. */
static int advance(struct column *column, uint32_t element)
{
    int carry = 1; /* row 0: the number of elements of b */
    size_t from = first_place(column, element), end = from;
    for (; end < column->count && column->places[end].element == element; end++)
        column->equal[column->places[end].at / BITS] |= UINT64_C(1)
                                                        << column->places[end].at % BITS;
    for (size_t i = 0; i < column->block_count; i++) {
        bool is_last = i + 1 == column->block_count;
        unsigned last = is_last ? (unsigned)((column->count - 1) % BITS) : BITS - 1;
        carry = advance_block(&column->blocks[i], column->equal[i], carry, last);
    }
    for (size_t i = from; i < end; i++)
        column->equal[column->places[i].at / BITS] = 0;
    return carry;
}

/* The fewest insertions, deletions and substitutions that turn one sequence into the other.  Time is a count x b count /
 * 64, memory a count. */
static size_t edit_distance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    struct column column;
    while (a_count && b_count && a[0] == b[0])
        a++, b++, a_count--, b_count--;
    while (a_count && b_count && a[a_count - 1] == b[b_count - 1])
        a_count--, b_count--;
    if (!a_count || !b_count)
        return a_count + b_count;
    column_init(&column, a, a_count);
    size_t distance = a_count;
    for (size_t i = 0; i < b_count; i++)
        distance += (size_t)advance(&column, b[i]);
    column_release(&column);
    return distance;
}

/* ---- texts ---- */

struct error_rate {
    bool is_basic; /* lower case without punctuation */
};

static const struct param_spec PARAMS[] = {
    {"normalize", "HOW", "none, or basic: lower case, without punctuation (none)"},
    {NULL, NULL, NULL},
};

static enum err error_rate_configure(const struct grader_config *config, void *state,
                                     struct error *why)
{
    static const char *const HOW[] = {"none", "basic", NULL};
    struct params_reader read = {config->params, why, ERR_OK};
    ((struct error_rate *)state)->is_basic = params_word(&read, "normalize", HOW, 0) == 1;
    return read.err;
}

/* Either way, white space is one space between words. */
static void normalize(const struct error_rate *options, const char *from, struct text *out)
{
    static const struct fold BASIC = {.strip = FOLD_PUNCTUATION};
    if (options->is_basic)
        fold_add(out, &BASIC, slice_of(from));
    else
        text_add(out, from);
}

/* ---- the two units ---- */

struct edits {
    size_t edits, length; /* length: of what was expected */
};

static struct edits word_edits(struct words *expected, struct words *answer)
{
    struct words *both[] = {expected, answer};
    words_number(both, 2);
    return (struct edits){edit_distance(expected->ids, expected->count, answer->ids, answer->count),
                          expected->count};
}

/* The code points of words, with a space between two. */
static size_t characters_of(const struct words *words, uint32_t **out)
{
    uint32_t *all = xreallocarray(NULL, words->text.length + 1, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < words->count; i++) {
        struct slice rest = words->items[i];
        if (i)
            all[count++] = ' ';
        for (size_t step; rest.length; rest.start += step, rest.length -= step)
            all[count++] = char_at(rest, &step);
    }
    *out = all;
    return count;
}

static struct edits character_edits(struct words *expected, struct words *answer)
{
    uint32_t *wanted, *found;
    size_t wanted_count = characters_of(expected, &wanted);
    size_t found_count = characters_of(answer, &found);
    size_t edits = edit_distance(wanted, wanted_count, found, found_count);
    free(wanted);
    free(found);
    return (struct edits){edits, wanted_count};
}

typedef struct edits edit_counter(struct words *expected, struct words *answer);

static struct edits edits_of(const struct error_rate *options, const struct grading *what,
                             edit_counter *counter)
{
    struct words expected = {0}, answer = {0};
    normalize(options, what->expected, &expected.text);
    normalize(options, what->answer, &answer.text);
    words_split(&expected);
    words_split(&answer);
    struct edits edits = counter(&expected, &answer);
    words_release(&expected);
    words_release(&answer);
    return edits;
}

/* ---- grading ---- */

static const char NO_WORDS[] = "the expected text has no words";

static void grade_edits(const void *state, const struct grading *what, edit_counter *counter,
                        const char *unit, struct grade *out)
{
    struct edits edits = edits_of(state, what, counter);
    grade_extracted(out, slice_of(what->answer));
    if (!edits.length) {
        grade_null(out, "%s", NO_WORDS);
        return;
    }
    out->score = fmax(0, 1 - (double)edits.edits / (double)edits.length);
    if (edits.edits)
        grade_false(out, "%zu edits for %zu expected %s", edits.edits, edits.length, unit);
    else
        grade_true(out);
}

static enum err wer_grade(const void *state, const struct grading *what, struct grade *out,
                          struct error *why)
{
    (void)why;
    grade_edits(state, what, word_edits, "words", out);
    return ERR_OK;
}

static enum err cer_grade(const void *state, const struct grading *what, struct grade *out,
                          struct error *why)
{
    (void)why;
    grade_edits(state, what, character_edits, "characters", out);
    return ERR_OK;
}

static void put_rate(const void *state, const struct grading *items, size_t count,
                     edit_counter *counter, const char *name, struct grader_quality *out)
{
    struct quality_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        struct edits edits = edits_of(state, &items[i], counter);
        if (edits.length)
            quality_add(&sums, items[i].index, (double)edits.edits, (double)edits.length);
    }
    quality_ratio(out, name, &sums, false, NO_WORDS);
    out->lower_is_better = true;
}

static enum err wer_corpus(const void *state, const struct grading *items, size_t count,
                           struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                           struct error *why)
{
    (void)why;
    put_rate(state, items, count, word_edits, "wer", &out[0]);
    put_rate(state, items, count, character_edits, "cer", &out[1]);
    *out_count = 2;
    return ERR_OK;
}

static enum err cer_corpus(const void *state, const struct grading *items, size_t count,
                           struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                           struct error *why)
{
    (void)why;
    put_rate(state, items, count, character_edits, "cer", &out[0]);
    put_rate(state, items, count, word_edits, "wer", &out[1]);
    *out_count = 2;
    return ERR_OK;
}

static void *read_edits(const void *state, const struct grading *items, size_t count,
                        edit_counter *const counters[2])
{
    struct quality_terms *terms = quality_terms_new(count, 2);
    for (size_t i = 0; i < count; i++)
        for (size_t m = 0; m < 2; m++) {
            struct edits edits = edits_of(state, &items[i], counters[m]);
            quality_terms_set(terms, i, m, (double)edits.edits, (double)edits.length);
            if (!edits.length)
                quality_terms_set(terms, i, m, 0, 0);
        }
    return terms;
}

static void *wer_resample_open(const void *state, const struct grading *items, size_t count)
{
    return read_edits(state, items, count, (edit_counter *const[]){word_edits, character_edits});
}

static void *cer_resample_open(const void *state, const struct grading *items, size_t count)
{
    return read_edits(state, items, count, (edit_counter *const[]){character_edits, word_edits});
}

#define ERROR_RATE(ID, SUMMARY)                                                                    \
    const struct grader_driver grader_##ID = {                                                     \
        .name = #ID,                                                                               \
        .summary = (SUMMARY),                                                                      \
        .params = PARAMS,                                                                          \
        .has_score = true,                                                                         \
        .state_size = sizeof(struct error_rate),                                                   \
        .configure = error_rate_configure,                                                         \
        .grade = ID##_grade,                                                                       \
        .corpus = ID##_corpus,                                                                     \
        .resample_open = ID##_resample_open,                                                       \
        .resample = quality_terms_resample,                                                        \
        .resample_close = quality_terms_free,                                                      \
    }

ERROR_RATE(wer, "speech: word error rate, with the character error rate");
ERROR_RATE(cer, "speech: character error rate, with the word error rate");
