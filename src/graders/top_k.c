/* Classification: top_1 and top_5, whether the expected label is the most probable one, or among the five most probable.
 * The answer is a JSON array of {"label", "score"}, the most probable first. */
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "graders/answer.h"
#include "graders/quality.h"

enum { TOP_FEW = 5 };

/* The class of an item: "index" for an expected answer that is a number. */
static bool is_class(const struct jv *item, struct slice expected)
{
    char index[32] = "";
    int64_t number;
    if (jv_integer(jv_get(item, "index"), &number))
        chars_format(index, "%lld", (long long)number);
    return slice_equal(slice_trim(slice_of(jv_get_text(item, "label"))), expected) ||
           (index[0] && slice_is(expected, index));
}

/* The rank of the expected label, from 1; 0: it is not listed.  ERR_BAD_VALUE with the reason for a damaged list. */
static enum err rank_of(const struct jv *list, struct slice expected, size_t *rank,
                        struct error *why)
{
    double last = INFINITY;
    size_t place = 0;
    *rank = 0;
    if (!jv_is_array(list))
        return err_set(why, ERR_BAD_VALUE, "the answer is not a JSON array of labels");
    JV_EACH (item, jv_first(list)) {
        double score = jv_get_number(item, "score");
        place++;
        if (!jv_get_text(item, "label"))
            return err_set(why, ERR_BAD_VALUE, "element %zu of the answer has no \"label\"", place);
        if (!is_known(score))
            return err_set(why, ERR_BAD_VALUE,
                           "element %zu of the answer: \"score\" is not a number", place);
        if (score > last)
            return err_set(why, ERR_BAD_VALUE,
                           "element %zu of the answer has a higher score than "
                           "the one before it",
                           place);
        last = score;
        if (!*rank && is_class(item, expected))
            *rank = place;
    }
    return place ? ERR_OK : err_set(why, ERR_BAD_VALUE, "the answer has no label");
}

/* An empty answer names no label, and is wrong. */
static enum err rank_answer(const struct grading *what, char first[120], size_t *rank,
                            struct error *why)
{
    struct jv *list = NULL;
    *rank = 0;
    first[0] = '\0';
    if (!what->answer[0])
        return ERR_OK;
    enum err err = answer_json(what->answer, "the answer", &list, why);
    if (!err)
        err = rank_of(list, slice_trim(slice_of(what->expected)), rank, why);
    if (!err)
        str_copy(first, 120, jv_get_text(jv_first(list), "label"));
    jv_free(list);
    return err;
}

static void grade_rank(const struct grading *what, size_t most, struct grade *out)
{
    struct error why = {0};
    char first[sizeof out->extracted];
    size_t rank;
    if (rank_answer(what, first, &rank, &why)) {
        grade_null(out, "%s", why.text);
        return;
    }
    grade_extracted(out, slice_of(first));
    if (rank && rank <= most)
        grade_true(out);
    else if (rank)
        grade_false(out, "the expected label is number %zu", rank);
    else
        grade_false(out, "the expected label is not listed");
}

static enum err top_1_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    (void)state, (void)why;
    grade_rank(what, 1, out);
    return ERR_OK;
}

static enum err top_5_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    (void)state, (void)why;
    grade_rank(what, TOP_FEW, out);
    return ERR_OK;
}

/* Shares of the answers that can be read. */
static void put_shares(const struct grading *items, size_t count, struct grader_quality *top_1,
                       struct grader_quality *top_5)
{
    static const char NONE[] = "no answer lists labels";
    struct quality_sums one = {0}, few = {0};
    char first[120];
    for (size_t i = 0; i < count; i++) {
        size_t rank;
        if (rank_answer(&items[i], first, &rank, NULL))
            continue;
        quality_add(&one, items[i].index, rank == 1, 1);
        quality_add(&few, items[i].index, rank && rank <= TOP_FEW, 1);
    }
    quality_ratio(top_1, "top_1", &one, true, NONE);
    quality_ratio(top_5, "top_5", &few, true, NONE);
}

static enum err top_1_corpus(const void *state, const struct grading *items, size_t count,
                             struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                             struct error *why)
{
    (void)state, (void)why;
    put_shares(items, count, &out[0], &out[1]);
    *out_count = 2;
    return ERR_OK;
}

static enum err top_5_corpus(const void *state, const struct grading *items, size_t count,
                             struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                             struct error *why)
{
    (void)state, (void)why;
    put_shares(items, count, &out[1], &out[0]);
    *out_count = 2;
    return ERR_OK;
}

/* first: the metric whose grader it is. */
static void *read_ranks(const struct grading *items, size_t count, size_t first)
{
    struct quality_terms *terms = quality_terms_new(count, 2);
    char label[120];
    for (size_t i = 0; i < count; i++) {
        size_t rank;
        if (rank_answer(&items[i], label, &rank, NULL))
            continue;
        quality_terms_set(terms, i, first, rank == 1, 1);
        quality_terms_set(terms, i, 1 - first, rank && rank <= TOP_FEW, 1);
    }
    return terms;
}

static void *top_1_resample_open(const void *state, const struct grading *items, size_t count)
{
    (void)state;
    return read_ranks(items, count, 0);
}

static void *top_5_resample_open(const void *state, const struct grading *items, size_t count)
{
    (void)state;
    return read_ranks(items, count, 1);
}

const struct grader_driver grader_top_1 = {
    .name = "top_1",
    .summary = "classification: the first label is the expected one; gives top_1 and top_5",
    .grade = top_1_grade,
    .corpus = top_1_corpus,
    .resample_open = top_1_resample_open,
    .resample = quality_terms_resample,
    .resample_close = quality_terms_free,
};

const struct grader_driver grader_top_5 = {
    .name = "top_5",
    .summary = "classification: the expected label is among the first five",
    .grade = top_5_grade,
    .corpus = top_5_corpus,
    .resample_open = top_5_resample_open,
    .resample = quality_terms_resample,
    .resample_close = quality_terms_free,
};
