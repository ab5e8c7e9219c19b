/* What a question says about its answer: restatements, given values, an option that begins the answer. */
#include "support/unit.h"

#include "support/grading.h"

static void a_clause_that_repeats_the_question_names_the_option(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "Venus is the hottest planet, even though Mercury is closer to the Sun.", T},
        {"A", "Venus is the hottest planet, even though Mercury is closer to the Sun.", U},
        {"A", "Many would say Mercury. The hottest planet is Venus.", U},
        {"B", "Venus is not the hottest planet.", U},
        {"B", "Venus is the hottest planet, is it not?", U},
    };
    GRADE_QUESTION(
        "choice", "Which is the hottest planet?\nA) Mercury\nB) Venus\nC) Mars\nD) Jupiter", CASES);
    static const struct grade_case STEM[] = {
        {"B", "White blood cells carry oxygen.", U},
    };
    GRADE_QUESTION("choice",
                   "What do red blood cells do?\nA) Fight infection\nB) Carry heat\n"
                   "C) Carry oxygen",
                   STEM);
}

static void an_option_that_begins_the_answer_is_read(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "It was Michelangelo, who painted it until 1512. Raphael worked nearby.", T},
        {"A", "It was Michelangelo, who painted it until 1512. Raphael worked nearby.", U},
        {"A", "Raphael painted rooms nearby. So it was Michelangelo.", U},
        {"C", "Michelangelo, Raphael or Titian.", U},
        {"C", "Not Michelangelo, who was a sculptor.", U},
    };
    GRADE_QUESTION("choice", "Who painted it?\nA. Raphael\nB. Titian\nC. Michelangelo", CASES);
}

static void numbers_of_the_question_are_given(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"13", "18 − 5 = 13 students play soccer but not tennis.", T},
        {"12", "18 − 5 = 13 students play soccer but not tennis.", U},
        {"13", "At least 13 students play soccer but not tennis.", U},
        {"13", "13 students play soccer but not tennis, so 12 play neither.", U},
    };
    GRADE_QUESTION("numeric",
                   "Of 30 students, 18 play soccer and 5 of these also play tennis. How many play "
                   "soccer but not tennis?",
                   CASES);
    static const struct grade_case YEAR[] = {
        {"365", "A common year has 365 days; a leap year has 366.", T},
        {"366", "A common year has 365 days; a leap year has 366.", U},
    };
    GRADE_QUESTION("numeric", "How many days does a common year have?", YEAR);
}

static void a_letter_is_chosen_in_other_words(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"D", "Only D fulfils all three conditions.", T},
        {"F", "F is the only option with the right units.", T},
        {"B", "The graph shifts left, as described in choice B.", T},
        {"E", "The pH is 3, which corresponds to E.", T},
        {"B", "As in option B, the sign is lost.", U},
        {"B", "B is the only option that is wrong.", U},
    };
    GRADE_CASES("choice", "", CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clause_that_repeats_the_question_names_the_option),
        cmocka_unit_test(an_option_that_begins_the_answer_is_read),
        cmocka_unit_test(numbers_of_the_question_are_given),
        cmocka_unit_test(a_letter_is_chosen_in_other_words),
    };
    return RUN_TESTS(tests);
}
