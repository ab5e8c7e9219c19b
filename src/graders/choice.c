/* The choice grader: the letter of a multiple-choice answer. */
#include <stdlib.h>

#include "graders/choice/letters.h"
#include "graders/grader.h"
#include "graders/words/reply.h"

struct choice {
    unsigned options;
};

static enum err choice_open(const struct grader_config *config, struct grader *out,
                            struct error *why)
{
    uint64_t options;
    enum err err = params_count(config->params, "options", 10, &options, why);
    if (!err && (options < 2 || options > 26))
        err =
            err_set(why, ERR_USAGE, "options=%llu: expected 2 to 26", (unsigned long long)options);
    if (err)
        return err;
    struct choice *choice = calloc(1, sizeof *choice);
    if (!choice)
        return out_of_memory(why);
    choice->options = (unsigned)options;
    out->state = choice;
    return ERR_OK;
}

static void compare(unsigned options, const char *expected, struct slice reply, struct grade *out)
{
    char wanted = letters_expected(slice_of(expected), options);
    if (!wanted) {
        grade_say(out, VERDICT_NULL, "the expected answer is no letter from A to %c: %.80s",
                  'A' + (int)options - 1, expected);
        return;
    }
    struct letters found = letters_find(reply, options);
    if (!found.first) {
        grade_say(out, VERDICT_FALSE, "no letter from A to %c in the answer",
                  'A' + (int)options - 1);
        return;
    }
    if (found.second) {
        char both[] = {found.first, '/', found.second, '\0'};
        grade_extracted(out, slice_of(both));
        grade_say(out, VERDICT_FALSE, "ambiguous: both %c and %c", found.first, found.second);
        return;
    }
    grade_extracted(out, (struct slice){&found.first, 1});
    if (found.first == wanted)
        grade_say(out, VERDICT_TRUE, "%s", "");
    else
        grade_say(out, VERDICT_FALSE, "%c, expected %c", found.first, wanted);
}

static enum err choice_grade(struct grader *grader, const struct grading *what, struct grade *out,
                             struct error *why)
{
    const struct choice *choice = grader->state;
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty)
        compare(choice->options, what->expected, reply_slice(&reply), out);
    reply_release(&reply);
    return ERR_OK;
}

static void choice_close(struct grader *grader)
{
    free(grader->state);
}

static const struct param_spec PARAMS[] = {
    {"options", "COUNT", "how many letters there are, 2 to 26 (10: A to J)"},
    {NULL, NULL, NULL},
};

const struct grader_driver grader_choice = {
    .name = "choice",
    .summary = "the letter of a multiple-choice answer",
    .params = PARAMS,
    .open = choice_open,
    .grade = choice_grade,
    .close = choice_close,
};
