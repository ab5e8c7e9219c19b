#include "support/unit.h"

#include "support/grading.h"

static void answer_letters_are_found(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "B", T},
        {"B", "b", T},
        {"B", "(B)", T},
        {"B", "(b)", T},
        {"B", "B.", T},
        {"B", "B)", T},
        {"B", "**B**", T},
        {"B", "**B.** Paris", T},
        {"B", "B. Paris", T},
        {"B", "B: Paris", T},
        {"B", "B, because it is large", T},
        {"B", "\\boxed{B}", T},
        {"B", "\\boxed{\\text{B}}", T},
        {"B", "\\boxed{\\textbf{(B)}}", T},
        {"B", "$\\boxed{B}$", T},
        {"B", "The answer is B", T},
        {"B", "The answer is B.", T},
        {"B", "The answer is (B).", T},
        {"B", "The answer is **B**.", T},
        {"B", "The answer is: B", T},
        {"B", "The answer is option B.", T},
        {"B", "**Answer:** B", T},
        {"B", "**Answer: B**", T},
        {"B", "Answer:\n\nB", T},
        {"B", "Final Answer: (B) Paris", T},
        {"B", "The correct option is B because A is too small.", T},
        {"B", "The correct choice would be B", T},
        {"B", "Option B is correct.", T},
        {"B", "(B) is the best answer.", T},
        {"B", "So B is correct.", T},
        {"B", "I think it is option B.", T},
        {"B", "I would say (B).", T},
        {"B", "Paris it is.\n\nB", T},
        {"J", "The answer is J", T},
        {"A", "A", T},
        {"A", "The answer is A.", T},
        {"A", "The answer is A because it is large.", T},
        {"A", "A) Paris", T},
        {"A", "Answer: A\n\nIt is a city.", T},
        {"(C)", "C", T},
        {"c", "C", T},
        {"C. Paris", "C", T},
        {"B", "C", F},
        {"B", "The answer is C.", F},
    };
    GRADE_CASES("choice", "", CASES);
}

static void words_are_not_mistaken_for_letters(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "The answer is vitamin C.", F},
        {"D", "Driver D ran the red light.", F},
        {"B", "She received a grade of B.", F},
        {"E", "E. coli is the usual cause.", F},
        {"C", "Best: A\nSecond best: C", F},
        {"B", "D. Note that B would be the answer at night.", F},
        {"C", "Option C says that prices rise.", F},
        {"D", "D is true only if x = 0.", F},
        {"C", "I don't think the answer is C.", F},
        {"I", "Option I is correct.", T},
        {"C", "Answer: C) False, True", T},
        {"A", "A dog is an animal.", F},
        {"A", "The answer is a dog.", F},
        {"A", "The answer is A dog.", F},
        {"A", "a large city", F},
        {"I", "I think so.", F},
        {"I", "The answer is I think Paris.", F},
        {"B", "Vitamin B12 helps.", F},
        {"B", "The answer is B-cells.", F},
        {"C", "The answer is C++.", F},
        {"B", "The answer is Berlin.", F},
        {"D", "I don't know", F},
        {"B", "The answer is not B.", F},
        {"A", "Statement A is correct in part; the answer is C.", F},
    };
    GRADE_CASES("choice", "", CASES);
    assert_string_equal(grade_one("choice", "", "A", "A dog is an animal.").reason,
                        "no letter from A to J in the answer");
}

static void the_last_definite_statement_wins(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "The answer is A. Wait, no: the answer is C.", T},
        {"C", "Let us see.\nA. too small\nB. too large\nC. fits\n\nThe answer is C.", T},
        {"C", "\\boxed{A} ... on reflection \\boxed{C}", T},
        {"C", "A is wrong. B is wrong. The answer is C. D is wrong.", T},
        {"C", "<think>The answer is A.</think>The answer is C.", T},
        {"C", "At first the answer is A.\nC", T},
        {"C", "Answer: C\nA is wrong because it is a dog.", T},
        {"A", "The answer is A. Wait, no: the answer is C.", F},
    };
    GRADE_CASES("choice", "", CASES);
}

static void a_second_question_after_the_answer_is_ignored(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "Answer: B\n\nQuestion: Which is red?\nA. sky\nB. sea\nC. rose\nAnswer: C", T},
        {"C", "Answer: B\n\nQuestion: Which is red?\nA. sky\nB. sea\nC. rose\nAnswer: C", F},
        {"D", "D\n\n**Q2:** Who sang?\nA. Ann\nB. Bob\nThe answer is A.", T},
        {"C", "I repeat it.\n\nQuestion: Which is red?\nA. sky\nC. rose\nAnswer: C", T},
    };
    GRADE_CASES("choice", "", CASES);
}

static void leading_and_final_options_are_found(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"E", "E) None of these. A, B, C and D assume a closed system.", T},
        {"D", "D. All three\n\nA, B and C are each a cause.", T},
        {"C", "TL;DR: C. A and B are both out.", T},
        {"B", "Short version: A. Long version: B and C mix up cause and effect.", F},
        {"B", "A) zinc\nB) tin\nC) lead\n\nBronze is copper with tin.", T},
        {"B", "A) zinc\nB) tin\nC) lead\n\nIt is not tin.", F},
        {"B", "A) zinc\nB) tin\nC) lead\n\nIt is tin or lead.", F},
        {"C", "A) zinc\nB) tin\nC) lead", F},
        {"C", "A. 12\n\nWhich is heavy?\nA. zinc\nB. tin\nC. lead\n\nC. lead", F},
        {"E", "The next best step would be option E, a scan. Please consult a doctor.", T},
        {"A", "If it is dry, the answer is A. If it is wet, it is C.", F},
        {"C", "If it is dry, the answer is A. If it is wet, it is C.", F},
        {"C", "If it is dry, it is A. But it rained. The answer is C.", T},
    };
    GRADE_CASES("choice", "", CASES);
}

static void several_letters_are_ambiguous(void **state)
{
    (void)state;
    static const char *const ANSWERS[] = {
        "The answer is A or B.", "The answer is (A) and (B).",   "Answer: A, B",
        "A. small\nB. large",    "Either (A) or (B).",           "It is option A, maybe option B",
        "\\boxed{A, B}",         "The answer is A and option B",
    };
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        struct grade grade = grade_one("choice", "", "A", ANSWERS[i]);
        if (grade.verdict != VERDICT_FALSE || strcmp(grade.reason, "ambiguous: both A and B"))
            print_error("%s: %s\n", ANSWERS[i], grade.reason);
        assert_int_equal(grade.verdict, VERDICT_FALSE);
        assert_string_equal(grade.reason, "ambiguous: both A and B");
        assert_string_equal(grade.extracted, "A/B");
    }
}

static void paraphrased_answers_are_found(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "I believe it's C.", T},
        {"C", "I'd go with C", T},
        {"B", "So B.", T},
        {"C", "ans: C", T},
        {"B", "Answer \xE2\x80\x93 B", T},
        {"C", "- C", T},
        {"B", "The remaining choice, B, is correct", T},
        {"B", "A) Incorrect, too small\nB) Correct\nC) Incorrect", T},
        {"A", "A) Incorrect, too small\nB) Correct\nC) Incorrect", F},
        {"D", "Mars has two moons. That matches D.", T}, /* the only letter of the last sentence */
        {"B",
         "\xE7\xAD\x94\xE6\xA1\x88\xE6\x98\xAF"
         "B\xE3\x80\x82",
         T},
    };
    GRADE_CASES("choice", "", CASES);
}

static void denied_or_doubted_options_are_not_chosen(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "not C", F},
        {"C", "The answer can't be C.", F},
        {"A", "A or C", F},
        {"C", "A or C", F},
        {"B", "It could be B but the answer is D", F},
        {"D", "It could be B but the answer is D", T},
        {"D", "Eliminating B, C and D, we are left with A.", F},
        {"A", "Eliminating B, C and D, we are left with A.", T},
        {"B", "Let's consider option B first. It says that the speed depends on",
         F}, /* truncated */
        {"C", "Scurvy is caused by a lack of vitamin C.", F},
    };
    GRADE_CASES("choice", "", CASES);
}

static void committed_answers_are_distinguished_from_hedged_ones(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        /* the text of an option is not a verdict on it */
        {"B", "So I'd choose B) False rather than A) True.", T},
        {"A", "So I'd choose B) False rather than A) True.", F},
        {"A", "I would go with B (False) instead of A (True).", F},
        {"C", "I choose C) Cannot be determined.", T},
        {"A", "(A) No, because the gift was never delivered.", T},
        /* several */
        {"D", "All of the options A, B, C, and D are correct.", F},
        {"C", "Each of the options A, B, and C is right.", F},
        {"A", "The answer is A as well as C.", F},
        {"A", "\\boxed{A \\text{ and } C}", F},
        {"B", "A\nB", F},
        {"D", "Since A, B, and C are correct, D is the answer.", T},
        /* discussed, not chosen */
        {"B", "\"A: Jupiter\" is the largest planet. \"B: Saturn\" is the second largest.", F},
        {"C", "A) Paris is in France. B) London is in England. C) Rome is in Italy.", F},
        {"C", "The treaty: 1783 (A). Yorktown: 1781 (B). Constitution: 1787 (C).", F},
        {"A", "Helicase, (B), unwinds the double helix. Ligase, (A), seals nicks.", F},
        {"C", "A) foo is small.\nB) bar is large.\nC) baz is odd.\n\nSo:\n**C) baz**", T},
        /* refusal */
        {"D", "The entropy rises (D)... or not. I'm unable to settle on one option.", F},
        {"D", "The entropy rises (D). I remain unsure.", F},
        {"B", "I'm not 100% sure, but B.", T},
        /* compared with another, or conditional */
        {"B", "I'm leaning toward B, but C is just as likely.", F},
        {"C", "B seems right, but so does C.", F},
        {"B", "I think it's B. But it could also be C.", F},
        {"A", "The answer is A if viruses count, otherwise B.", F},
        {"C", "So the answer is C or D. As exigency was absent, it's C.", T},
        /* singled out */
        {"B", "It keeps operating at a loss → B.", T},
        {"B", "Next step = abdominal ultrasound (B).", T},
        {"A", "\"If it were true, it would be rare\" - this is A. B is a misreading.", T},
        {"D", "All of these are correct except (D).", T},
        {"D", "All except D.", F},
        {"C", "B is true, but C is the main idea.", T},
        {"B", "Rather than A, B is correct.", T},
        {"B", "It's unlikely to be B.", F},
    };
    GRADE_CASES("choice", "", CASES);
}

static void letters_beyond_the_number_of_options_are_ignored(void **state)
{
    (void)state;
    static const struct grade_case FOUR[] = {
        {"D", "D", T},     {"D", "E", F},    {"E", "E", N}, /* there is no E */
        {"Paris", "A", N}, {"A, B", "A", N},
    };
    GRADE_CASES("choice", "options=4", FOUR);
    assert_int_equal(grade_one("choice", "options=26", "Z", "Answer: Z").verdict, VERDICT_TRUE);
    struct error why;
    assert_int_equal(grade_open_error("choice", "options=27", &why), ERR_USAGE);
    assert_int_equal(grade_open_error("choice", "options=1", &why), ERR_USAGE);
}

/* Grades against a question that lists its options. */
static void check_with_options(const char *problem, const struct grade_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct grading what = {
            .problem = problem, .expected = cases[i].expected, .answer = cases[i].answer};
        struct grade grade = grade_with("choice", "", &what, NULL);
        if (grade.verdict != cases[i].verdict)
            print_error("%s: \"%s\"\n", cases[i].expected, cases[i].answer);
        assert_int_equal(grade.verdict, cases[i].verdict);
    }
}

#define CHECK_WITH_OPTIONS(problem, cases)                                                         \
    check_with_options((problem), (cases), sizeof(cases) / sizeof *(cases))

static void negation_in_the_text_of_an_option_is_ignored(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "B. False\n\nNo bat is blind.", T},
        {"B", "The correct answer is: **B. False**", T},
        {"C", "> C. Not enough information\n\nThe text does not say.", T},
        {"A", "B. False", F},
        {"B", "B. False is wrong.", F},
    };
    CHECK_WITH_OPTIONS("Bats are blind.\nA. True\nB. False\nC. Not enough information", CASES);
    static const struct grade_case ALONE[] = {
        {"B", "B. False", T},
        {"D", "D) None of these", T},
        {"A", "A. False\nB. True", F},
    };
    GRADE_CASES("choice", "", ALONE);
}

static void questions_for_the_false_option_are_recognized(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "C is false.", T},
        {"C", "C is not true.", T},
        {"A", "A is true.", F},
        {"C", "A is true, since they nurse their young; C is the false one.", T},
        {"C", "Whales do not lay eggs.", T},
    };
    CHECK_WITH_OPTIONS("Which is NOT true of whales?\nA. They are mammals.\nB. They breathe air.\n"
                       "C. They lay eggs.",
                       CASES);
    static const struct grade_case PLAIN[] = {{"C", "C is false.", F}, {"A", "A is true.", T}};
    CHECK_WITH_OPTIONS("Which is true of whales?\nA. They are mammals.\nC. They lay eggs.", PLAIN);
}

static void options_are_found_by_their_text(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "Kant", T},
        {"C", "It was not Hume, nor Mill. It was Kant.", T},
        {"C", "Many think it was Mill, but it was actually Kant.", T},
        {"C", "The imperative is Kant's. Mill was a utilitarian, and Aristotle wrote on virtue.",
         T},
        {"C", "The third option is correct.", T},
        {"C", "Kant or Mill.", F},
        {"C", "It could be Kant.", F},
        {"C", "I cannot tell whether it was Kant or Mill.", F},
        {"C", "We can rule out Kant.", F},
        {"B", "Many think it was Mill, but it was actually Kant.", F},
        {"B", "I cannot tell which of (B) and (C) is right.", F},
    };
    CHECK_WITH_OPTIONS("Whose is the categorical imperative?\nA. David Hume\nB. John Stuart Mill\n"
                       "C. Immanuel Kant\nD. Aristotle",
                       CASES);
}

static void options_are_found_by_their_value(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "So P = 6/36 = 1/6. \\[\\boxed{\\frac{1}{6}}\\]", T},
        {"A", "So P = 6/36 = 1/6. \\[\\boxed{\\frac{1}{6}}\\]", F},
        {"C", "$\\frac{\\sqrt{2}}{2}$", T},
    };
    CHECK_WITH_OPTIONS("What is P?\nA. 5/36\nB. 1/6\nC. √2/2\nD. 1/9", CASES);
    static const struct grade_case TIMES[] = {{"B", "2 hours and 35 minutes", T},
                                              {"A", "2 hours and 35 minutes", F}};
    CHECK_WITH_OPTIONS("How long?\nA. 2 h 25 min\nB. 2 h 35 min\nC. 3 h 35 min", TIMES);
    static const struct grade_case SIGNED[] = {{"B", "-7", T}, {"A", "-7", F}};
    CHECK_WITH_OPTIONS("3 - 10?\nA. 7\nB. -7", SIGNED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_letters_are_found),
        cmocka_unit_test(words_are_not_mistaken_for_letters),
        cmocka_unit_test(the_last_definite_statement_wins),
        cmocka_unit_test(a_second_question_after_the_answer_is_ignored),
        cmocka_unit_test(leading_and_final_options_are_found),
        cmocka_unit_test(several_letters_are_ambiguous),
        cmocka_unit_test(paraphrased_answers_are_found),
        cmocka_unit_test(denied_or_doubted_options_are_not_chosen),
        cmocka_unit_test(committed_answers_are_distinguished_from_hedged_ones),
        cmocka_unit_test(letters_beyond_the_number_of_options_are_ignored),
        cmocka_unit_test(negation_in_the_text_of_an_option_is_ignored),
        cmocka_unit_test(questions_for_the_false_option_are_recognized),
        cmocka_unit_test(options_are_found_by_their_text),
        cmocka_unit_test(options_are_found_by_their_value),
    };
    return RUN_TESTS(tests);
}
