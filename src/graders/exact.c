/* The exact grader: the answer equals the expected text except for case, white space and punctuation at the ends, or as
 * configured by its parameters. */
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/markers.h"
#include "graders/tokens.h"

struct exact {
    enum final_rule final;
    struct fold fold;
    char references[REFERENCES_PATH];
};

static enum err exact_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct exact *exact = state;
    exact->fold.strip = FOLD_EDGES;
    enum err err = references_read(config->params, exact->references, why);
    if (!err)
        err = final_read(config->params, &exact->final, why);
    return err ? err : fold_read(config->params, &exact->fold, why);
}

/* Candidate answers: the marked line, its first sentence, and the whole text. */
static unsigned candidates(const struct exact *exact, struct slice answer, struct slice to[3])
{
    struct marked marked;
    if (!marked_find(answer, exact->final, &marked))
        return 0;
    to[0] = marked.line;
    if (!marked.found)
        return 1;
    struct slice rest = marked.line;
    to[1] = marked.line;
    sentence_next(&rest, &to[1]);
    to[2] = answer; /* the expected text may itself contain a marker */
    return exact->final == FINAL_AUTO ? 3 : 2;
}

static void compare(const struct exact *exact, const struct references *references,
                    struct slice answer, struct grade *out)
{
    struct slice texts[3];
    unsigned count = candidates(exact, answer, texts);
    if (!count) {
        grade_unread(out, "no marked answer");
        return;
    }
    grade_extracted(out, texts[0]);
    grade_false(out, "differs from the expected answer");
    for (unsigned i = 0; i < count; i++)
        for (unsigned r = 0; r < references->count; r++) {
            struct slice expected = expected_value(slice_of(references->items[r]));
            if (fold_equal(&exact->fold, expected, texts[i])) {
                grade_extracted(out, texts[i]);
                grade_true(out);
                return;
            }
        }
}

static enum err exact_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    const struct exact *exact = state;
    struct references references;
    (void)why;
    references_find(&references, what, exact->references);
    compare(exact, &references, slice_of(what->answer), out);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"case", "RULE", "ignore or keep (ignore)"},
    {"strip", "WHAT", "none, edges, punctuation or all (punctuation and white space) (edges)"},
    FINAL_PARAM,
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_exact = {
    .name = "exact",
    .summary = "equal text, ignoring case, white space and punctuation at the ends",
    .params = PARAMS,
    .expects_answer = true,
    .state_size = sizeof(struct exact),
    .configure = exact_configure,
    .grade = exact_grade,
};
