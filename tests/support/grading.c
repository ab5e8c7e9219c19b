#include "support/unit.h"

#include "support/grading.h"

static enum err open_with(const char *name, const char *words, const struct judge *judge,
                          struct grader *grader, struct error *why)
{
    struct params params = {0};
    const struct grader_driver *driver = grader_driver_find(name, why);
    assert_non_null(driver);
    assert_int_equal(params_add(&params, words ? words : ""), ERR_OK);
    struct grader_config config = {.params = &params, .judge = judge};
    enum err err = grader_open(driver, &config, grader, why);
    params_release(&params);
    return err;
}

struct grade grade_with(const char *grader, const char *params, const struct grading *what,
                        const struct judge *judge)
{
    struct error why = {0};
    struct grader opened;
    struct grade grade;
    enum err err = open_with(grader, params, judge, &opened, &why);
    if (err)
        print_error("%s: %s\n", grader, why.text);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(grader_grade(&opened, what, &grade, &why), ERR_OK);
    grader_close(&opened);
    return grade;
}

struct grade grade_one(const char *grader, const char *params, const char *expected,
                       const char *answer)
{
    struct grading what = {.problem = "What is it?", .expected = expected, .answer = answer};
    return grade_with(grader, params, &what, NULL);
}

enum err grade_open_error(const char *grader, const char *params, struct error *why)
{
    struct grader opened;
    *why = (struct error){0};
    enum err err = open_with(grader, params, NULL, &opened, why);
    if (!err)
        grader_close(&opened);
    return err;
}

void grade_cases(const char *grader, const char *params, const char *problem,
                 const struct grade_case *cases, size_t count)
{
    static const char *const VERDICTS[] = {"null", "false", "true", "unread"};
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct grading what = {
            .problem = problem, .expected = cases[i].expected, .answer = cases[i].answer};
        struct grade grade = grade_with(grader, params, &what, NULL);
        if (grade.verdict == cases[i].verdict)
            continue;
        wrong++;
        print_error("%s: expected \"%s\", answer \"%s\": %s (extracted \"%s\"; %s), not %s\n",
                    grader, cases[i].expected, cases[i].answer, VERDICTS[grade.verdict],
                    grade.extracted, grade.reason, VERDICTS[cases[i].verdict]);
    }
    assert_int_equal(wrong, 0);
}
