/* The numeric grader: the number that the answer states (stated_number.c) equals the expected one within a
 * tolerance. */
#include <math.h>

#include "graders/answer.h"
#include "graders/final.h"
#include "graders/number.h"
#include "graders/tokens.h"

struct numeric {
    enum final_rule final;
    struct tolerance tolerance;
};

static enum err numeric_configure(const struct grader_config *config, void *state,
                                  struct error *why)
{
    struct numeric *numeric = state;
    enum err err = final_read(config->params, &numeric->final, why);
    return err ? err : tolerance_read(config->params, &numeric->tolerance, why);
}

static bool find_number(const struct numeric *numeric, struct slice answer, struct number *out)
{
    struct final_answer final;
    if (!final_find(answer, numeric->final, &final))
        return false;
    if (final.marker != FINAL_NONE && stated_after_marker(final.line, out))
        return true;
    struct number other;
    if (final.marker != FINAL_NONE && number_first(final.line, &other))
        return false; /* "less than 45", "7 or 8" */
    return numeric->final != FINAL_MARKED &&
           stated_in_conclusion(final.marker ? answer : final.line, out);
}

/* The answer before another question that the model asks itself, if it has a marker or concludes with a number; given
 * values of the first question are no conclusion. */
static struct slice first_answer(struct slice text, enum final_rule rule)
{
    struct slice first = final_first_question(text, rule), before = text_before_question(text);
    struct tokens tokens = tokens_of(before);
    struct token token = {0};
    struct number ignored;
    if (rule != FINAL_AUTO || first.length < text.length || before.length == text.length)
        return first;
    while (token_next(&tokens, &token) && token.kind != TOKEN_WORD)
        ;
    if (token_in(&token, " given known data facts let let's "))
        return text;
    return stated_in_conclusion(before, &ignored) ? before : text;
}

static enum err numeric_grade(const void *state, const struct grading *what, struct grade *out,
                              struct error *why)
{
    (void)why;
    const struct numeric *numeric = state;
    struct number expected, value;
    struct slice wanted = final_expected(slice_of(what->expected));
    struct slice answer = first_answer(slice_of(what->answer), numeric->final);
    if (!stated_after_equals(wanted, &expected) && !number_first(wanted, &expected) &&
        !number_in_words(wanted, &expected)) {
        grade_null(out, "the expected answer has no number: %.80s", what->expected);
    } else if (!isfinite(expected.value)) {
        grade_null(out, "the expected number is too large to compare");
    } else if (!find_number(numeric, answer, &value)) {
        grade_false(out, "no number in the answer");
    } else {
        grade_extracted(out, value.where);
        if (number_equal(&numeric->tolerance, &expected, &value))
            grade_true(out);
        else
            grade_false(out, "%.10g, expected %.10g", value.value, expected.value);
    }
    return ERR_OK;
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
    .state_size = sizeof(struct numeric),
    .configure = numeric_configure,
    .grade = numeric_grade,
};
