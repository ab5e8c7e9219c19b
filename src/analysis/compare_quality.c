#include "analysis/compare_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/quality.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/record.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

enum { DRAWS = 400, TRIES = 999, ITEMS_MANY = 2000, DRAWS_FEW = 100, TRIES_FEW = 199 };

/* ---- figures of the summaries ---- */

/* False if a run of the side has no such metric. */
static bool side_figure(const struct compare_side *side, const char *name, double *value,
                        double *plus_minus, size_t *count)
{
    double sum = 0, squares = 0;
    *count = 0;
    for (size_t r = 0; r < side->count; r++) {
        const struct summary_quality *found = summary_quality_find(&side->runs[r].summary, name);
        if (!found)
            return false;
        sum += found->value;
        squares += square(found->plus_minus);
        *count += found->count > 0 ? (size_t)found->count : 0;
    }
    *value = sum / (double)side->count;
    *plus_minus = sqrt(squares / (double)side->count);
    return true;
}

/* ---- the answers of a run ---- */

/* Of one grader: answers of several are not drawn. */
struct answers {
    const struct run_table *table;
    const struct grader_driver *driver; /* NULL until the first answer */
    bool is_mixed;
    struct grading *items; /* their strings are owned */
    double *scores;
    size_t *sides;      /* 0 or 1 */
    size_t side, first; /* of the run being read */
    size_t count, capacity, score_capacity, side_capacity;
};

static void answers_release(struct answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        free((char *)answers->items[i].problem);
        free((char *)answers->items[i].expected);
        free((char *)answers->items[i].answer);
    }
    free(answers->items);
    free(answers->scores);
    free(answers->sides);
}

static enum err take_answer(void *context, const struct jv *tree)
{
    struct answers *answers = context;
    struct record record;
    struct evaluation evaluation;
    record_from_json(tree, answers->table->model, &record);
    if (!record.status || !str_equal(record.status, "completed"))
        return ERR_OK;
    record_evaluation(&record, &evaluation);
    const struct grader_driver *driver = grader_driver_find(evaluation.grader, NULL);
    if (!driver || (!driver->resample_open && !driver->is_mean_score))
        return ERR_OK;
    answers->is_mixed |= answers->driver && answers->driver != driver;
    answers->driver = driver;
    XGROW(answers->scores, answers->count, answers->score_capacity);
    XGROW(answers->sides, answers->count, answers->side_capacity);
    answers->scores[answers->count] = evaluation.score;
    answers->sides[answers->count] = answers->side;
    *XADD(answers->items, answers->count, answers->capacity) = (struct grading){
        .problem = xstrdup(text_or_empty(record.problem)),
        .expected = xstrdup(text_or_empty(record.expected)),
        .answer = xstrdup(text_or_empty(record.model_answer)),
        .index = record.index,
    };
    return ERR_OK;
}

static bool read_side(struct answers *answers, const struct compare_side *side, size_t number)
{
    bool is_read = true;
    answers->side = number;
    for (size_t r = 0; r < side->count && is_read; r++) {
        uint64_t damaged = 0;
        char *path = run_path_file(side->runs[r].directory, RUN_FILE_RECORDS);
        answers->table = &side->runs[r];
        is_read = !journal_records(path, take_answer, answers, &damaged, NULL) && !damaged;
        free(path);
    }
    return is_read && !answers->is_mixed;
}

/* ---- draws ---- */

/* What gives the metrics of a weighting of the answers: the grader, or their scores. */
struct metrics {
    struct grader grader;
    struct grader_resampling resampling;
    struct quality_terms *scores; /* NULL: the grader */
    char names[GRADER_QUALITIES_MAX][24];
    size_t count;
};

static void metrics_release(struct metrics *metrics)
{
    grader_resampling_close(&metrics->resampling);
    grader_close(&metrics->grader);
    if (metrics->scores)
        quality_terms_free(metrics->scores);
}

static void metrics_of(struct metrics *metrics, const unsigned *weights,
                       double values[GRADER_QUALITIES_MAX])
{
    if (metrics->scores)
        quality_terms_resample(metrics->scores, weights, values);
    else
        grader_resample(&metrics->resampling, weights, values);
}

static void open_scores(const struct answers *answers, struct metrics *out)
{
    out->scores = quality_terms_new(answers->count, 1);
    for (size_t i = 0; i < answers->count; i++)
        if (is_known(answers->scores[i]))
            quality_terms_set(out->scores, i, 0, answers->scores[i], 1);
    chars_copy(out->names[0], answers->driver->name);
    out->count = 1;
}

/* The names of its metrics come from grading nothing. */
static bool open_grader(const struct answers *answers, struct metrics *out)
{
    const struct grader_config config = {0};
    struct grader_quality named[GRADER_QUALITIES_MAX];
    struct grading none = {0};
    struct error why = {0};
    if (grader_open(answers->driver, &config, &out->grader, &why) ||
        grader_corpus(&out->grader, &none, 0, named, &out->count, &why) ||
        grader_resampling_open(&out->grader, answers->items, answers->count, &out->resampling,
                               &why))
        return false;
    for (size_t i = 0; i < out->count; i++)
        chars_copy(out->names[i], named[i].name);
    return true;
}

static bool metrics_open(const struct answers *answers, struct metrics *out)
{
    *out = (struct metrics){0};
    if (!answers->driver)
        return false;
    if (!answers->driver->is_mean_score)
        return open_grader(answers, out);
    open_scores(answers, out);
    return true;
}

/* Answers to one question, by both sides. */
struct pairing {
    size_t *of_item; /* the question of an item; `count` and above: not drawn */
    size_t count;
    size_t single, changed; /* questions of one side only; with other texts on the other side */
};

struct place {
    int64_t index;
    size_t item;
};

static int by_index(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

/* Whether these are answers of both sides to the same question; else counts why not. */
static bool is_pair(const struct answers *answers, const struct place *places, size_t count,
                    struct pairing *pairing)
{
    const struct grading *first = &answers->items[places[0].item];
    bool has[2] = {false, false};
    for (size_t i = 0; i < count; i++) {
        const struct grading *item = &answers->items[places[i].item];
        has[answers->sides[places[i].item]] = true;
        if (!str_equal(item->expected, first->expected) ||
            !str_equal(item->problem, first->problem)) {
            pairing->changed++;
            return false;
        }
    }
    pairing->single += !has[0] || !has[1];
    return has[0] && has[1];
}

static void pair_questions(const struct answers *answers, struct pairing *out)
{
    struct place *places = xcalloc(answers->count + 1, sizeof *places);
    *out = (struct pairing){.of_item = xcalloc(answers->count + 1, sizeof *out->of_item)};
    for (size_t i = 0; i < answers->count; i++)
        places[i] = (struct place){answers->items[i].index, i};
    qsort(places, answers->count, sizeof *places, by_index);
    for (size_t from = 0, end; from < answers->count; from = end) {
        for (end = from; end < answers->count && places[end].index == places[from].index;)
            end++;
        bool pairs = is_pair(answers, &places[from], end - from, out);
        for (size_t i = from; i < end; i++)
            out->of_item[places[i].item] = pairs ? out->count : SIZE_MAX;
        out->count += pairs;
    }
    free(places);
}

/* Weights of both sides: a question counts drawn[q] times, and those that are swapped, for the other side. */
static void differences(struct metrics *metrics, const struct answers *answers,
                        const struct pairing *pairing, const unsigned *drawn, const bool *swapped,
                        unsigned *weights, double out[GRADER_QUALITIES_MAX])
{
    double values[2][GRADER_QUALITIES_MAX];
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < answers->count; i++) {
            size_t q = pairing->of_item[i];
            bool is_its = q < pairing->count && (answers->sides[i] ^ swapped[q]) == side;
            weights[i] = is_its ? drawn[q] : 0;
        }
        metrics_of(metrics, weights, values[side]);
    }
    for (size_t m = 0; m < metrics->count; m++)
        out[m] = values[1][m] - values[0][m];
}

/* What the draws of each metric give. */
struct drawn {
    double difference[GRADER_QUALITIES_MAX], error[GRADER_QUALITIES_MAX];
    double p_value[GRADER_QUALITIES_MAX];
};

struct scratch {
    unsigned *drawn, *weights;
    bool *swapped;
};

static void draw_errors(struct metrics *metrics, const struct answers *answers,
                        const struct pairing *pairing, struct scratch *scratch,
                        struct random *random, struct drawn *out)
{
    struct online spread[GRADER_QUALITIES_MAX] = {0};
    unsigned draws = answers->count > ITEMS_MANY ? DRAWS_FEW : DRAWS;
    double values[GRADER_QUALITIES_MAX];
    for (unsigned draw = 0; draw < draws; draw++) {
        memset(scratch->drawn, 0, pairing->count * sizeof *scratch->drawn);
        for (size_t q = 0; q < pairing->count; q++)
            scratch->drawn[random_index(random, pairing->count)]++;
        differences(metrics, answers, pairing, scratch->drawn, scratch->swapped, scratch->weights,
                    values);
        for (size_t m = 0; m < metrics->count; m++)
            online_add(&spread[m], values[m]);
    }
    for (size_t m = 0; m < metrics->count; m++)
        out->error[m] = online_stddev(&spread[m]);
}

static void permute(struct metrics *metrics, const struct answers *answers,
                    const struct pairing *pairing, struct scratch *scratch, struct random *random,
                    struct drawn *out)
{
    unsigned tries = answers->count > ITEMS_MANY ? TRIES_FEW : TRIES;
    unsigned reached[GRADER_QUALITIES_MAX] = {0};
    double values[GRADER_QUALITIES_MAX];
    for (size_t q = 0; q < pairing->count; q++)
        scratch->drawn[q] = 1;
    for (unsigned i = 0; i < tries; i++) {
        for (size_t q = 0; q < pairing->count; q++)
            scratch->swapped[q] = random_unit(random) < 0.5;
        differences(metrics, answers, pairing, scratch->drawn, scratch->swapped, scratch->weights,
                    values);
        for (size_t m = 0; m < metrics->count; m++)
            reached[m] += !(fabs(values[m]) < fabs(out->difference[m]) * (1 - 1e-12));
    }
    for (size_t m = 0; m < metrics->count; m++)
        out->p_value[m] = (1.0 + reached[m]) / (1.0 + tries);
}

static void draw(struct metrics *metrics, const struct answers *answers,
                 const struct pairing *pairing, uint64_t seed, struct drawn *out)
{
    struct random random = random_seeded(seed);
    struct scratch scratch = {xcalloc(pairing->count + 1, sizeof(unsigned)),
                              xcalloc(answers->count + 1, sizeof(unsigned)),
                              xcalloc(pairing->count + 1, sizeof(bool))};
    for (size_t q = 0; q < pairing->count; q++)
        scratch.drawn[q] = 1;
    differences(metrics, answers, pairing, scratch.drawn, scratch.swapped, scratch.weights,
                out->difference);
    draw_errors(metrics, answers, pairing, &scratch, &random, out);
    permute(metrics, answers, pairing, &scratch, &random, out);
    free(scratch.drawn);
    free(scratch.weights);
    free(scratch.swapped);
}

/* ---- one metric ---- */

static void set_difference(double difference, double half, struct compared_quality *out)
{
    double a = fabs(out->a);
    out->difference = (struct contrast_figure){difference, difference - half, difference + half};
    out->relative = (struct contrast_figure){ratio(difference, a), ratio(difference - half, a),
                                             ratio(difference + half, a)};
}

/* From the uncertainties, as if the sides had other items: too large for the same ones, whose errors are alike. */
static void approximate(struct compared_quality *out)
{
    enum { MANY = 1000000 };
    double difference = out->b - out->a, error = hypot(out->a_plus_minus, out->b_plus_minus);
    set_difference(difference, student_quantile(0.05, MANY) * error, out);
    if (error > 0) {
        out->p_value = student_two_sided(difference / error, MANY);
        out->test = "normal approximation";
    }
}

static void take_draws(const struct drawn *drawn, size_t metric, size_t pairs,
                       struct compared_quality *out)
{
    set_difference(drawn->difference[metric],
                   student_quantile(0.05, (double)pairs - 1) * drawn->error[metric], out);
    out->p_value = drawn->p_value[metric];
    out->pairs = pairs;
    out->test = "paired permutation test";
}

/* Whether the answers of each run give the figures of its summary again: its grader may have had other parameters. */
static bool is_reproduced(struct metrics *metrics, const struct answers *answers,
                          const struct compare_side *side, size_t number, size_t metric)
{
    double values[GRADER_QUALITIES_MAX];
    unsigned *weights = xcalloc(answers->count + 1, sizeof *weights);
    const struct summary_quality *found =
        summary_quality_find(&side->runs[0].summary, metrics->names[metric]);
    for (size_t i = 0; i < answers->count; i++)
        weights[i] = answers->sides[i] == number;
    metrics_of(metrics, weights, values);
    free(weights);
    return side->count == 1 && found &&
           fabs(values[metric] - found->value) <= 1e-9 * fmax(1, fabs(found->value));
}

static void compare_drawn(const struct compare_side *a, const struct compare_side *b, uint64_t seed,
                          const struct answers *answers, struct compared_quality *out, size_t count)
{
    struct metrics metrics;
    struct pairing pairing;
    struct drawn drawn;
    bool is_open = metrics_open(answers, &metrics);
    pair_questions(answers, &pairing);
    /* The same questions, but for some that one side did not answer. */
    bool draws = is_open && pairing.count > 1 && !pairing.changed && pairing.single < pairing.count;
    if (draws)
        draw(&metrics, answers, &pairing, seed, &drawn);
    for (size_t m = 0; draws && m < metrics.count; m++)
        for (size_t i = 0; i < count; i++)
            if (str_equal(out[i].name, metrics.names[m]) && is_known(drawn.difference[m]) &&
                is_known(out[i].b - out[i].a) && is_reproduced(&metrics, answers, a, 0, m) &&
                is_reproduced(&metrics, answers, b, 1, m))
                take_draws(&drawn, m, pairing.count, &out[i]);
    free(pairing.of_item);
    metrics_release(&metrics);
}

size_t compare_qualities(const struct compare_side *a, const struct compare_side *b, uint64_t seed,
                         struct compared_quality *out)
{
    const struct summary *first = &a->runs[0].summary;
    struct answers answers = {0};
    size_t count = 0;
    for (size_t i = 0; i < first->quality_count; i++) {
        struct compared_quality *to = &out[count];
        *to = (struct compared_quality){
            .better = first->qualities[i].better, .p_value = UNKNOWN, .p_holm = UNKNOWN};
        chars_copy(to->name, first->qualities[i].name);
        bool has_both = side_figure(a, to->name, &to->a, &to->a_plus_minus, &to->a_count) &&
                        side_figure(b, to->name, &to->b, &to->b_plus_minus, &to->b_count);
        if (!has_both)
            continue;
        approximate(to);
        count++;
    }
    bool has_answers = count && a->count == 1 && b->count == 1 && read_side(&answers, a, 0) &&
                       read_side(&answers, b, 1);
    if (has_answers)
        compare_drawn(a, b, seed, &answers, out, count);
    answers_release(&answers);
    return count;
}
