/* Grading one answer in a test: open, grade, close, with every step checked. */
#ifndef TESTS_SUPPORT_GRADING_H
#define TESTS_SUPPORT_GRADING_H

#include <stddef.h>

#include "graders/grader.h"

/* Fails the test unless the grader opens and grades. */
struct grade grade_with(const char *grader, const char *params, const struct grading *what,
                        const struct judge *judge);
struct grade grade_one(const char *grader, const char *params, const char *expected,
                       const char *answer);

/* The error of opening it like this; ERR_OK when it opens. */
enum err grade_open_error(const char *grader, const char *params, struct error *why);

/* Short, for tables. */
#define T VERDICT_TRUE
#define F VERDICT_FALSE
#define N VERDICT_NULL
#define U VERDICT_UNREAD

struct grade_case {
    const char *expected, *answer;
    enum grade_verdict verdict;
};

/* Checks every case, and prints those that fail.  `problem`: the question; NULL for none. */
void grade_cases(const char *grader, const char *params, const char *problem,
                 const struct grade_case *cases, size_t count);

#define GRADE_CASES(grader, params, cases)                                                         \
    grade_cases((grader), (params), NULL, (cases), sizeof(cases) / sizeof *(cases))

#define GRADE_QUESTION(grader, problem, cases)                                                     \
    grade_cases((grader), "", (problem), (cases), sizeof(cases) / sizeof *(cases))

#endif
