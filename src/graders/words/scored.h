/* What the graders by score (bleu, f1, rouge_l) have in common: a threshold, several references, and
 * the way from a reply to a grade.  The state is one allocation, owned by the grader. */
#ifndef IPW_GRADERS_WORDS_SCORED_H
#define IPW_GRADERS_WORDS_SCORED_H

#include "core/slice.h"
#include "graders/grader.h"

struct references;

#define SCORED_PARAMS(threshold)                                                                   \
    {"threshold", "SHARE", "least score that is right, 0 to 1 (" threshold ")"}, REFERENCES_PARAM

/* Scores a reply that is not empty: ERR_BAD_VALUE, with the reason, when that cannot be done and the
 * grade is null. */
typedef enum err scored_by(struct slice reply, const struct references *references, double *score,
                           struct error *why);

enum err scored_open(const struct grader_config *config, double threshold, struct grader *out,
                     struct error *why) MUST_USE;
enum err scored_grade(struct grader *grader, const struct grading *what, scored_by *by,
                      struct grade *out, struct error *why) MUST_USE;
void scored_close(struct grader *grader);

#endif
