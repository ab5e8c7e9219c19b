/* The numeric grader: the number in the answer against the expected one, within a tolerance. */
#include <math.h>
#include <stdlib.h>

#include "graders/grader.h"
#include "graders/words/final.h"
#include "graders/words/number.h"
#include "graders/words/reply.h"

struct numeric {
    enum final_rule final;
    struct tolerance tolerance;
};

static enum err numeric_open(const struct grader_config *config, struct grader *out,
                             struct error *why)
{
    struct numeric *numeric = calloc(1, sizeof *numeric);
    if (!numeric)
        return out_of_memory(why);
    enum err err = final_read(config->params, &numeric->final, why);
    if (!err)
        err = tolerance_read(config->params, &numeric->tolerance, why);
    if (err) {
        free(numeric);
        return err;
    }
    out->state = numeric;
    return ERR_OK;
}

/* Of "x = 3 * 4 = 12 apples" what follows the last equals sign, where a number does. */
static bool after_equals(struct slice line, struct number *out)
{
    for (size_t i = line.length; i > 0; i--)
        if (line.start[i - 1] == '=') {
            struct slice rest = {line.start + i, line.length - i};
            return number_first(rest, out);
        }
    return false;
}

/* After a mark the first number counts, in a text without one the last. */
static bool find_number(const struct numeric *numeric, struct slice reply, struct number *out)
{
    struct final final;
    if (!final_find(reply, numeric->final, &final))
        return false;
    if (final.kind != FINAL_NONE &&
        (after_equals(final.line, out) || number_first(final.line, out)))
        return true;
    return numeric->final != FINAL_MARKED && number_last(final.kind ? reply : final.line, out);
}

static void compare(const struct numeric *numeric, const struct grading *what, struct slice reply,
                    struct grade *out)
{
    struct number expected, value;
    struct slice wanted = final_expected(slice_of(what->expected));
    if (!after_equals(wanted, &expected) && !number_first(wanted, &expected)) {
        grade_say(out, VERDICT_NULL, "the expected answer has no number: %.80s", what->expected);
    } else if (!isfinite(expected.value)) {
        grade_say(out, VERDICT_NULL, "the expected number is too large to compare");
    } else if (!find_number(numeric, reply, &value)) {
        grade_say(out, VERDICT_FALSE, "no number in the answer");
    } else {
        grade_extracted(out, value.where);
        if (number_equal(&numeric->tolerance, &expected, &value))
            grade_say(out, VERDICT_TRUE, "%s", "");
        else
            grade_say(out, VERDICT_FALSE, "%.10g, expected %.10g", value.value, expected.value);
    }
}

static enum err numeric_grade(struct grader *grader, const struct grading *what, struct grade *out,
                              struct error *why)
{
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty)
        compare(grader->state, what, reply_slice(&reply), out);
    reply_release(&reply);
    return ERR_OK;
}

static void numeric_close(struct grader *grader)
{
    free(grader->state);
}

static const struct param_spec PARAMS[] = {
    FINAL_PARAM,
    TOLERANCE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_numeric = {
    .name = "numeric",
    .summary = "the number in the answer, within a tolerance",
    .params = PARAMS,
    .open = numeric_open,
    .grade = numeric_grade,
    .close = numeric_close,
};
