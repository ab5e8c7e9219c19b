/* Speech recognition: wer and cer, the edits that turn the expected words or characters into those of the answer, over
 * the number of expected ones. */
#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/quality.h"
#include "graders/words.h"
#include "stats/edit_distance.h"

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
