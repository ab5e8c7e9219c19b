/* What the graders by score (bleu; f1 and rouge_* in word_score.c) share: words as numbers, and a score with a threshold over
 * several references.  A struct words owns its text and arrays: zero-initialize, words_release. */
#ifndef IPW_GRADERS_WORD_SCORE_H
#define IPW_GRADERS_WORD_SCORE_H

#include <stdint.h>

#include "core/slice.h"
#include "core/text.h"
#include "graders/answer.h"

/* ---- words ---- */

struct words {
    struct text text;    /* filled by the grader before words_split */
    struct slice *items; /* into the text */
    uint32_t *ids;       /* after words_number */
    size_t count, capacity;
};

/* Splits the text at white space (Unicode's).  ERR_NO_MEMORY also when the text had failed. */
enum err words_split(struct words *words) MUST_USE;

/* Numbers the words of several texts so that equal words have equal ids; n log n. */
enum err words_number(struct words *const *texts, size_t count) MUST_USE;

void words_release(struct words *words);

/* ---- scores ---- */

/* The state of such a grader. */
struct score_options {
    double threshold;
    char references[REFERENCES_PATH];
};

/* Scores an answer that is not empty: ERR_BAD_VALUE, with the reason, when that is not possible and the
 * grade is null. */
typedef enum err score_function(struct slice answer, const struct references *references,
                                double *score, struct error *why);

enum err score_configure(const struct grader_config *config, void *state, struct error *why)
    MUST_USE;
enum err score_grade(const struct score_options *options, const struct grading *what,
                     score_function *score_of, struct grade *out, struct error *why) MUST_USE;
extern const struct param_spec SCORE_PARAMS[];

/* The driver, whose score_function is NAME_score. */
#define SCORE_DRIVER(NAME, SUMMARY)                                                                \
    static enum err NAME##_grade(const void *state, const struct grading *what, struct grade *out, \
                                 struct error *why)                                                \
    {                                                                                              \
        return score_grade(state, what, NAME##_score, out, why);                                   \
    }                                                                                              \
    const struct grader_driver grader_##NAME = {                                                   \
        .name = #NAME,                                                                             \
        .summary = (SUMMARY),                                                                      \
        .params = SCORE_PARAMS,                                                                    \
        .has_score = true,                                                                         \
        .state_size = sizeof(struct score_options),                                                \
        .configure = score_configure,                                                              \
        .grade = NAME##_grade,                                                                     \
    }

#endif
