/* The list of graders, and common code: opening with validated parameters, memory of the state, and the cases without a
 * driver (no expected answer, an empty answer). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/registry.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/grader.h"
#include "graders/letters.h"
#include "graders/number.h"

#define GRADER(name) extern const struct grader_driver grader_##name;
#include "graders/graders.def"
#undef GRADER

const struct grader_driver *const GRADER_DRIVERS[] = {
#define GRADER(name) &grader_##name,
#include "graders/graders.def"
#undef GRADER
    NULL,
};

const struct grader_driver *grader_driver_find(const char *name, struct error *why)
{
    const char *wanted = str_equal(name, "none") ? "null" : name; /* alias */
    return registry_find("grader", GRADER_DRIVERS, wanted, ERR_USAGE, why);
}

/* A capital letter from A to J: "B", "(B)". */
static bool is_letter(struct slice text)
{
    enum { OPTIONS = 10, LENGTH_MAX = 3 };
    bool bracketed = text.length > 1 && text.start[0] == '(';
    return text.length <= LENGTH_MAX && expected_letter(text, OPTIONS) &&
           isupper((unsigned char)text.start[bracketed]);
}

/* Numbers between commas. */
static bool is_number_list(struct slice text)
{
    struct number number;
    size_t count = 0;
    for (const char *end = slice_end(text); text.start <= end; count++) {
        const char *comma = memchr(text.start, ',', (size_t)(end - text.start));
        const char *stop = comma ? comma : end;
        if (!number_whole(slice_between(text.start, stop), &number))
            return false;
        text.start = stop + 1;
    }
    return count > 1;
}

const char *grader_default(const char *expected)
{
    enum { WORDS_MAX = 8 };
    struct slice text = slice_trim(slice_of(expected));
    struct number number;
    size_t spaces = 0;
    for (size_t i = 0; i < text.length; i++)
        spaces += slice_is_space(text.start[i]);
    bool solution = strstr(expected, "#### ") != NULL; /* as in GSM8K */
    if (is_letter(text))
        return "choice";
    if (solution || number_whole(text, &number)) /* and no date, range, version or list */
        return "numeric";
    if (is_number_list(text))
        return "list";
    if (memchr(text.start, '\\', text.length) || memchr(text.start, '^', text.length))
        return "math";
    return text.length && spaces < WORDS_MAX ? "contains" : NULL;
}

enum err grader_open(const struct grader_driver *driver, const struct grader_config *config,
                     struct grader *out, struct error *why)
{
    *out = (struct grader){0};
    enum err err = driver->available ? driver->available(why) : ERR_OK;
    if (err)
        return err;
    char owner[64];
    chars_format(owner, "grader %s", driver->name);
    if ((err = params_check(config->params, driver->params, owner, why)))
        return err;
    if (driver->needs_judge && !config->judge)
        return err_set(why, ERR_USAGE, "grader %s needs a judge model", driver->name);
    void *state = xcalloc(1, driver->state_size);
    if (driver->configure && (err = driver->configure(config, state, why))) {
        free(state);
        return err;
    }
    *out = (struct grader){.driver = driver, .state = state};
    return ERR_OK;
}

void grader_close(struct grader *grader)
{
    if (grader->driver && grader->driver->release)
        grader->driver->release(grader->state);
    free(grader->state);
    *grader = (struct grader){0};
}

/* Whatever a grader reads in it, an answer that is the expected text is right. */
static bool is_same(const char *expected, const char *answer)
{
    return slice_equal(slice_trim(slice_of(expected)), slice_trim(slice_of(answer)));
}

static bool is_unknown(const struct grader_driver *driver, const char *expected)
{
    return !driver->ignores_expected && slice_trim(slice_of(expected)).length == 0;
}

enum err grader_grade(struct grader *grader, const struct grading *what, struct grade *out,
                      struct error *why)
{
    const struct grader_driver *driver = grader->driver;
    *out = (struct grade){.verdict = VERDICT_NULL, .score = UNKNOWN};
    if (is_unknown(driver, what->expected)) {
        grade_null(out, "the expected answer is unknown");
        return ERR_OK;
    }
    if (driver->is_of_all) {
        grade_null(out, "%s is a metric of all answers together", driver->name);
        return ERR_OK;
    }
    struct text answer = {0};
    answer_without_reasoning(&answer, what->answer);
    struct grading stripped = *what;
    stripped.answer = answer.bytes ? str_trim(answer.bytes) : "";
    enum err err = ERR_OK;
    if (*stripped.answer || driver->grades_empty) {
        err = driver->grade(grader->state, &stripped, out, why);
        bool rejected = out->verdict == VERDICT_FALSE || out->verdict == VERDICT_UNREAD;
        if (rejected && driver->expects_answer && is_same(what->expected, stripped.answer)) {
            grade_extracted(out, slice_of(stripped.answer));
            grade_true(out);
        }
    } else {
        bool reasoned = slice_trim(slice_of(what->answer)).length > 0;
        grade_false(out, reasoned ? "empty answer: only reasoning" : "empty answer");
        if (driver->has_score)
            out->score = 0;
    }
    text_release(&answer);
    return err;
}

static int by_index(const void *left, const void *right)
{
    const struct grading *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

/* Items that count, with their answers as graders see them, which are owned. */
struct prepared {
    struct grading *items;
    char **answers;
    size_t *kept;
    size_t count;
};

static void prepare(const struct grader_driver *driver, const struct grading *items, size_t count,
                    struct prepared *out)
{
    *out = (struct prepared){.items = xcalloc(count + 1, sizeof *out->items),
                             .answers = xcalloc(count + 1, sizeof *out->answers),
                             .kept = xcalloc(count + 1, sizeof *out->kept)};
    for (size_t i = 0; i < count; i++) {
        struct text answer = {0};
        if (is_unknown(driver, items[i].expected))
            continue;
        answer_without_reasoning(&answer, items[i].answer);
        str_take(&out->answers[out->count], &answer);
        out->kept[out->count] = i;
        out->items[out->count] = items[i];
        out->items[out->count].answer = str_trim(out->answers[out->count]);
        out->count++;
    }
}

/* All but `kept`. */
static void prepared_release(struct prepared *prepared)
{
    for (size_t i = 0; i < prepared->count; i++)
        free(prepared->answers[i]);
    free(prepared->answers);
    free(prepared->items);
}

enum err grader_corpus(const struct grader *grader, struct grading *items, size_t count,
                       struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                       struct error *why)
{
    const struct grader_driver *driver = grader->driver;
    struct prepared prepared;
    *out_count = 0;
    if (!driver->corpus)
        return ERR_OK;
    qsort(items, count, sizeof *items, by_index);
    prepare(driver, items, count, &prepared);
    enum err err =
        driver->corpus(grader->state, prepared.items, prepared.count, out, out_count, why);
    free(prepared.kept);
    prepared_release(&prepared);
    return err;
}

enum err grader_resampling_open(const struct grader *grader, const struct grading *items,
                                size_t count, struct grader_resampling *out, struct error *why)
{
    const struct grader_driver *driver = grader->driver;
    struct prepared prepared;
    *out = (struct grader_resampling){.driver = driver};
    if (!driver->resample_open)
        return err_set(why, ERR_UNSUPPORTED, "grader %s has no draws of answers", driver->name);
    prepare(driver, items, count, &prepared);
    out->opened = driver->resample_open(grader->state, prepared.items, prepared.count);
    out->kept = prepared.kept;
    out->count = prepared.count;
    out->weights = xcalloc(prepared.count + 1, sizeof *out->weights);
    prepared_release(&prepared);
    return ERR_OK;
}

void grader_resample(struct grader_resampling *resampling, const unsigned *weights,
                     double values[GRADER_QUALITIES_MAX])
{
    for (size_t i = 0; i < GRADER_QUALITIES_MAX; i++)
        values[i] = UNKNOWN;
    for (size_t i = 0; i < resampling->count; i++)
        resampling->weights[i] = weights[resampling->kept[i]];
    resampling->driver->resample(resampling->opened, resampling->weights, values);
}

void grader_resampling_close(struct grader_resampling *resampling)
{
    if (resampling->opened)
        resampling->driver->resample_close(resampling->opened);
    free(resampling->kept);
    free(resampling->weights);
    *resampling = (struct grader_resampling){0};
}
