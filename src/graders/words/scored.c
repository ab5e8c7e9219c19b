#include "graders/words/scored.h"

#include <stdlib.h>

#include "graders/words/references.h"
#include "graders/words/reply.h"

struct scored {
    double threshold;
    char path[64]; /* of more references in the metadata */
};

enum err scored_open(const struct grader_config *config, double threshold, struct grader *out,
                     struct error *why)
{
    struct scored *scored = calloc(1, sizeof *scored);
    if (!scored)
        return out_of_memory(why);
    enum err err = references_read(config->params, scored->path, sizeof scored->path, why);
    if (!err)
        err = threshold_read(config->params, threshold, &scored->threshold, why);
    if (err) {
        free(scored);
        return err;
    }
    out->state = scored;
    return ERR_OK;
}

enum err scored_grade(struct grader *grader, const struct grading *what, scored_by *by,
                      struct grade *out, struct error *why)
{
    const struct scored *scored = grader->state;
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (empty) {
        out->score = 0;
        reply_release(&reply);
        return ERR_OK;
    }
    struct references references;
    struct error reason = {0};
    double score = 0;
    references_open(&references, what, scored->path);
    err = by(reply_slice(&reply), &references, &score, &reason);
    references_release(&references);
    if (!err) {
        grade_extracted(out, reply_slice(&reply));
        grade_by_score(out, score, scored->threshold);
    }
    reply_release(&reply);
    if (err == ERR_BAD_VALUE) {
        grade_say(out, VERDICT_NULL, "%s", reason.text);
        return ERR_OK;
    }
    return err ? out_of_memory(why) : ERR_OK;
}

void scored_close(struct grader *grader)
{
    free(grader->state);
}
