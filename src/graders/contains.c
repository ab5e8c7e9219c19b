/* The contains grader: the expected text occurs in the answer, as whole words. */
#include "core/text.h"
#include "graders/answer.h"
#include "graders/fold.h"

struct contains {
    struct fold fold;
    bool whole_words;
    char references[REFERENCES_PATH];
};

static enum err contains_configure(const struct grader_config *config, void *state,
                                   struct error *why)
{
    struct contains *contains = state;
    struct params_reader read = {config->params, why,
                                 references_read(config->params, contains->references, why)};
    contains->whole_words = params_bool(&read, "words", true);
    return read.err ? read.err : fold_read(config->params, &contains->fold, why);
}

static void compare(const struct contains *contains, const struct references *references,
                    struct slice answer, struct grade *out)
{
    struct text text = {0}, needle = {0};
    fold_add(&text, &contains->fold, answer);
    grade_false(out, "the expected text is not in the answer");
    for (unsigned r = 0; r < references->count && out->verdict != VERDICT_TRUE; r++) {
        struct slice wanted = slice_trim(slice_of(references->items[r]));
        text_clear(&needle);
        fold_add(&needle, &contains->fold, wanted);
        if (needle.length == 0)
            continue; /* consists only of stripped characters: it would match anything */
        if (text_occurs((struct slice){text_get(&text), text.length},
                        (struct slice){text_get(&needle), needle.length}, contains->whole_words)) {
            grade_extracted(out, wanted);
            grade_true(out);
        }
    }
    text_release(&text);
    text_release(&needle);
}

static enum err contains_grade(const void *state, const struct grading *what, struct grade *out,
                               struct error *why)
{
    const struct contains *contains = state;
    struct references references;
    references_find(&references, what, contains->references);
    (void)why;
    compare(contains, &references, slice_of(what->answer), out);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"case", "RULE", "ignore or keep (ignore)"},
    {"strip", "WHAT", "none, edges, punctuation or all (punctuation and white space) (none)"},
    {"words", "yes|no", "only as whole words (yes)"},
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_contains = {
    .name = "contains",
    .summary = "the answer contains the expected text, as whole words",
    .params = PARAMS,
    .expects_answer = true,
    .state_size = sizeof(struct contains),
    .configure = contains_configure,
    .grade = contains_grade,
};
