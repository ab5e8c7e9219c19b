/* The exact grader: the answer is the expected text, but for case, white space and marks at the
 * ends (or what else it is told not to mind). */
#include <stdlib.h>

#include "core/text.h"
#include "graders/grader.h"
#include "graders/words/final.h"
#include "graders/words/fold.h"
#include "graders/words/references.h"
#include "graders/words/reply.h"

struct exact {
    enum final_rule final;
    struct fold fold;
    char path[64]; /* of more references in the metadata */
};

static enum err exact_open(const struct grader_config *config, struct grader *out,
                           struct error *why)
{
    struct exact *exact = calloc(1, sizeof *exact);
    if (!exact)
        return out_of_memory(why);
    exact->fold.strip = FOLD_EDGES;
    enum err err = references_read(config->params, exact->path, sizeof exact->path, why);
    if (!err)
        err = final_read(config->params, &exact->final, why);
    if (!err)
        err = fold_read(config->params, &exact->fold, why);
    if (err) {
        free(exact);
        return err;
    }
    out->state = exact;
    return ERR_OK;
}

/* The texts that may be the answer: the whole reply, the marked line and its first sentence. */
static unsigned candidates(const struct exact *exact, struct slice reply, struct slice to[3])
{
    struct final final;
    if (!final_find(reply, exact->final, &final))
        return 0;
    to[0] = final.line;
    if (final.kind == FINAL_NONE)
        return 1;
    to[1] = final_sentence(final.line);
    to[2] = reply; /* the expected text may itself contain a mark */
    return exact->final == FINAL_AUTO ? 3 : 2;
}

static enum err compare(const struct exact *exact, const struct references *references,
                        struct slice reply, struct grade *out, struct error *why)
{
    struct slice texts[3];
    unsigned count = candidates(exact, reply, texts);
    enum err err = ERR_OK;
    if (!count) {
        grade_say(out, VERDICT_FALSE, "no marked answer");
        return ERR_OK;
    }
    grade_extracted(out, texts[0]);
    grade_say(out, VERDICT_FALSE, "differs from the expected answer");
    for (unsigned i = 0; i < count && !err; i++)
        for (unsigned r = 0; r < references->count && !err; r++) {
            bool equal = false;
            struct slice expected = final_expected(slice_of(references->items[r]));
            err = fold_equal(&exact->fold, expected, texts[i], &equal, why);
            if (equal && !err) {
                grade_extracted(out, texts[i]);
                grade_say(out, VERDICT_TRUE, "%s", "");
                return ERR_OK;
            }
        }
    return err;
}

static enum err exact_grade(struct grader *grader, const struct grading *what, struct grade *out,
                            struct error *why)
{
    const struct exact *exact = grader->state;
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty) {
        struct references references;
        references_open(&references, what, exact->path);
        err = compare(exact, &references, reply_slice(&reply), out, why);
        references_release(&references);
    }
    reply_release(&reply);
    return err;
}

static void exact_close(struct grader *grader)
{
    free(grader->state);
}

static const struct param_spec PARAMS[] = {
    {"case", "RULE", "ignore or keep (ignore)"},
    {"strip", "WHAT", "none, edges, punctuation or all, which is white space too (edges)"},
    FINAL_PARAM,
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_exact = {
    .name = "exact",
    .summary = "the same text, but for case, white space and marks at the ends",
    .params = PARAMS,
    .open = exact_open,
    .grade = exact_grade,
    .close = exact_close,
};
