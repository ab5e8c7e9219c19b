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
        {"C", "The answer is vitamin C.", U},
        {"D", "Driver D ran the red light.", U},
        {"B", "She received a grade of B.", U},
        {"E", "E. coli is the usual cause.", U},
        {"C", "Best: A\nSecond best: C", U},
        {"B", "D. Note that B would be the answer at night.", F},
        {"C", "Option C says that prices rise.", U},
        {"D", "D is true only if x = 0.", U},
        {"C", "I don't think the answer is C.", U},
        {"I", "Option I is correct.", T},
        {"C", "Answer: C) False, True", T},
        {"A", "A dog is an animal.", U},
        {"A", "The answer is a dog.", U},
        {"A", "The answer is A dog.", U},
        {"A", "a large city", U},
        {"I", "I think so.", U},
        {"I", "The answer is I think Paris.", U},
        {"B", "Vitamin B12 helps.", U},
        {"B", "The answer is B-cells.", U},
        {"C", "The answer is C++.", U},
        {"B", "The answer is Berlin.", U},
        {"D", "I don't know", U},
        {"B", "The answer is not B.", U},
        {"A", "Statement A is correct in part; the answer is C.", F},
    };
    GRADE_CASES("choice", "", CASES);
    assert_string_equal(grade_one("choice", "", "A", "A dog is an animal.").reason,
                        "no answer found in the text");
}

static void the_last_definite_statement_wins(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "The answer is A. Wait, no: the answer is C.", U},
        {"C", "Let us see.\nA. too small\nB. too large\nC. fits\n\nThe answer is C.", T},
        {"C", "\\boxed{A} ... on reflection \\boxed{C}", U},
        {"C", "A is wrong. B is wrong. The answer is C. D is wrong.", U},
        {"C", "<think>The answer is A.</think>The answer is C.", T},
        {"C", "At first the answer is A.\nC", U},
        {"C", "Answer: C\nA is wrong because it is a dog.", T},
        {"A", "The answer is A. Wait, no: the answer is C.", U},
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
        {"E", "E) None of these. A, B, C and D assume a closed system.", U},
        {"D", "D. All three\n\nA, B and C are each a cause.", T},
        {"C", "TL;DR: C. A and B are both out.", U},
        {"B", "Short version: A. Long version: B and C mix up cause and effect.", U},
        {"B", "A) zinc\nB) tin\nC) lead\n\nBronze is copper with tin.", U},
        {"B", "A) zinc\nB) tin\nC) lead\n\nIt is not tin.", U},
        {"B", "A) zinc\nB) tin\nC) lead\n\nIt is tin or lead.", U},
        {"C", "A) zinc\nB) tin\nC) lead", U},
        {"C", "A. 12\n\nWhich is heavy?\nA. zinc\nB. tin\nC. lead\n\nC. lead", U},
        {"E", "The next best step would be option E, a scan. Please consult a doctor.", U},
        {"A", "If it is dry, the answer is A. If it is wet, it is C.", U},
        {"C", "If it is dry, the answer is A. If it is wet, it is C.", U},
        {"C", "If it is dry, it is A. But it rained. The answer is C.", T},
    };
    GRADE_CASES("choice", "", CASES);
}

static void several_letters_are_unread(void **state)
{
    (void)state;
    static const char *const ANSWERS[] = {
        "The answer is A or B.", "The answer is (A) and (B).",   "Answer: A, B",
        "A. small\nB. large",    "Either (A) or (B).",           "It is option A, maybe option B",
        "\\boxed{A, B}",         "The answer is A and option B",
    };
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        struct grade grade = grade_one("choice", "", "A", ANSWERS[i]);
        if (grade.verdict != VERDICT_UNREAD)
            print_error("%s: %s\n", ANSWERS[i], grade.reason);
        assert_int_equal(grade.verdict, VERDICT_UNREAD);
    }
    assert_string_equal(grade_one("choice", "", "A", "Answer: A, B").reason,
                        "several values (marker)");
    struct grade other = grade_one("choice", "", "A", "Answer: B");
    assert_int_equal(other.verdict, VERDICT_FALSE);
    assert_string_equal(other.reason, "B, expected A (marker)");
    assert_string_equal(other.extracted, "B");
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
        {"C", "- C", U},
        {"B", "The remaining choice, B, is correct", U},
        {"B", "A) Incorrect, too small\nB) Correct\nC) Incorrect", U},
        {"A", "A) Incorrect, too small\nB) Correct\nC) Incorrect", U},
        {"D", "Mars has two moons. That matches D.", T}, /* the only letter of the last sentence */
        {"B",
         "\xE7\xAD\x94\xE6\xA1\x88\xE6\x98\xAF"
         "B\xE3\x80\x82",
         U},
    };
    GRADE_CASES("choice", "", CASES);
}

static void denied_or_doubted_options_are_not_chosen(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "not C", U},
        {"C", "The answer can't be C.", U},
        {"A", "A or C", U},
        {"C", "A or C", U},
        {"B", "It could be B but the answer is D", U},
        {"D", "It could be B but the answer is D", U},
        {"D", "Eliminating B, C and D, we are left with A.", U},
        {"A", "Eliminating B, C and D, we are left with A.", U},
        {"B", "Let's consider option B first. It says that the speed depends on",
         U}, /* truncated */
        {"C", "Scurvy is caused by a lack of vitamin C.", U},
    };
    GRADE_CASES("choice", "", CASES);
}

static void committed_answers_are_distinguished_from_hedged_ones(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        /* the text of an option is not a verdict on it */
        {"B", "So I'd choose B) False rather than A) True.", U},
        {"A", "So I'd choose B) False rather than A) True.", U},
        {"A", "I would go with B (False) instead of A (True).", U},
        {"C", "I choose C) Cannot be determined.", U},
        {"A", "(A) No, because the gift was never delivered.", U},
        /* several */
        {"D", "All of the options A, B, C, and D are correct.", U},
        {"C", "Each of the options A, B, and C is right.", U},
        {"A", "The answer is A as well as C.", U},
        {"A", "\\boxed{A \\text{ and } C}", U},
        {"B", "A\nB", U},
        {"D", "Since A, B, and C are correct, D is the answer.", U},
        /* discussed, not chosen */
        {"B", "\"A: Jupiter\" is the largest planet. \"B: Saturn\" is the second largest.", U},
        {"C", "A) Paris is in France. B) London is in England. C) Rome is in Italy.", U},
        {"C", "The treaty: 1783 (A). Yorktown: 1781 (B). Constitution: 1787 (C).", U},
        {"A", "Helicase, (B), unwinds the double helix. Ligase, (A), seals nicks.", U},
        {"C", "A) foo is small.\nB) bar is large.\nC) baz is odd.\n\nSo:\n**C) baz**", U},
        /* refusal */
        {"D", "The entropy rises (D)... or not. I'm unable to settle on one option.", U},
        {"D", "The entropy rises (D). I remain unsure.", U},
        {"B", "I'm not 100% sure, but B.", U},
        /* compared with another, or conditional */
        {"B", "I'm leaning toward B, but C is just as likely.", U},
        {"C", "B seems right, but so does C.", U},
        {"B", "I think it's B. But it could also be C.", U},
        {"A", "The answer is A if viruses count, otherwise B.", U},
        {"C", "So the answer is C or D. As exigency was absent, it's C.", U},
        /* singled out */
        {"B", "It keeps operating at a loss → B.", T},
        {"B", "Next step = abdominal ultrasound (B).", U},
        {"A", "\"If it were true, it would be rare\" - this is A. B is a misreading.", U},
        {"D", "All of these are correct except (D).", U},
        {"D", "All except D.", U},
        {"C", "B is true, but C is the main idea.", U},
        {"B", "Rather than A, B is correct.", U},
        {"B", "It's unlikely to be B.", U},
    };
    GRADE_CASES("choice", "", CASES);
}

static void letters_beyond_the_number_of_options_are_ignored(void **state)
{
    (void)state;
    static const struct grade_case FOUR[] = {
        {"D", "D", T},     {"D", "E", U},    {"E", "E", N}, /* there is no E */
        {"Paris", "A", N}, {"A, B", "A", N},
    };
    GRADE_CASES("choice", "options=4", FOUR);
    assert_int_equal(grade_one("choice", "options=26", "Z", "Answer: Z").verdict, VERDICT_TRUE);
    struct error why;
    assert_int_equal(grade_open_error("choice", "options=27", &why), ERR_USAGE);
    assert_int_equal(grade_open_error("choice", "options=1", &why), ERR_USAGE);
}

static void negation_in_the_text_of_an_option_is_ignored(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"B", "B. False\n\nNo bat is blind.", T},
        {"B", "The correct answer is: **B. False**", T},
        {"C", "> C. Not enough information\n\nThe text does not say.", U},
        {"A", "B. False", F},
        {"B", "B. False is wrong.", U},
    };
    GRADE_QUESTION("choice", "Bats are blind.\nA. True\nB. False\nC. Not enough information",
                   CASES);
    static const struct grade_case ALONE[] = {
        {"B", "B. False", T},
        {"D", "D) None of these", T},
        {"A", "A. False\nB. True", U},
    };
    GRADE_CASES("choice", "", ALONE);
}

static void statements_about_an_option_do_not_choose_it(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "C is false.", U},
        {"C", "C is not true.", U},
        {"A", "A is true.", U},
        {"C", "A is true, since they nurse their young; C is the false one.", U},
        {"C", "Whales do not lay eggs.", U},
    };
    GRADE_QUESTION("choice",
                   "Which is NOT true of whales?\nA. They are mammals.\nB. They breathe air.\n"
                   "C. They lay eggs.",
                   CASES);
    static const struct grade_case PLAIN[] = {{"C", "C is false.", U}, {"A", "A is true.", U}};
    GRADE_QUESTION("choice", "Which is true of whales?\nA. They are mammals.\nC. They lay eggs.",
                   PLAIN);
}

static void options_are_found_by_their_text(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "Kant", T},
        {"C", "It was not Hume, nor Mill. It was Kant.", U},
        {"C", "Many think it was Mill, but it was actually Kant.", U},
        {"C", "The imperative is Kant's. Mill was a utilitarian, and Aristotle wrote on virtue.",
         U},
        {"C", "The third option is correct.", U},
        {"C", "Kant or Mill.", U},
        {"C", "It could be Kant.", U},
        {"C", "I cannot tell whether it was Kant or Mill.", U},
        {"C", "We can rule out Kant.", U},
        {"B", "Many think it was Mill, but it was actually Kant.", U},
        {"B", "I cannot tell which of (B) and (C) is right.", U},
    };
    GRADE_QUESTION("choice",
                   "Whose is the categorical imperative?\nA. David Hume\nB. John Stuart Mill\n"
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
    GRADE_QUESTION("choice", "What is P?\nA. 5/36\nB. 1/6\nC. √2/2\nD. 1/9", CASES);
    static const struct grade_case TIMES[] = {{"B", "2 hours and 35 minutes", U},
                                              {"A", "2 hours and 35 minutes", U}};
    GRADE_QUESTION("choice", "How long?\nA. 2 h 25 min\nB. 2 h 35 min\nC. 3 h 35 min", TIMES);
    static const struct grade_case SIGNED[] = {{"B", "-7", T}, {"A", "-7", F}};
    GRADE_QUESTION("choice", "3 - 10?\nA. 7\nB. -7", SIGNED);
}

static void remarks_after_a_marked_letter_do_not_change_it(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "**Answer: (C) Cairo**, not (A).", T},
        {"C", "Answer: C. Cairo — Athens and Bern are larger, but neither is a port.", T},
        {"B", "**Answer: B** (don't mix up the option letter and the allele B!)", T},
        {"B", "Answer: B (the second; Delhi, option D, is the largest.)", T},
        {"B", "Answer: The correct option is B.", T},
        {"B", "answer: b) bern", T},
        {"D", "Bern ist kleiner, aber\n\n**Antwort: D) Delhi**", T},
        {"D", "Delhi (D) es grande.\n\nRespuesta: A) Athens", F},
        {"B", "Answer: B) Bern or (A)", U},
        {"B", "Answer: B (or A)", U},
        {"A", "A (by law) / B (by custom)", U},
        {"B", "Answer: B, but maybe A.", U},
    };
    GRADE_QUESTION("choice", "Which city?\na) Athens\nb) Bern\nc) Cairo\nd) Delhi", CASES);
}

static void a_conclusion_decides_against_the_first_words(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"C", "Alaska (C) is large but a territory; so Texas (A).", U},
        {"B", "So it is Denali (California is what you get with the wrong map, B).", U},
        {"C", "Da es so groß ist, also Antwort A und nicht C.", U},
    };
    GRADE_QUESTION("choice", "Which is the largest?\nA) Texas\nB) California\nC) Alaska\nD) Denali",
                   CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_letters_are_found),
        cmocka_unit_test(words_are_not_mistaken_for_letters),
        cmocka_unit_test(the_last_definite_statement_wins),
        cmocka_unit_test(a_second_question_after_the_answer_is_ignored),
        cmocka_unit_test(leading_and_final_options_are_found),
        cmocka_unit_test(several_letters_are_unread),
        cmocka_unit_test(paraphrased_answers_are_found),
        cmocka_unit_test(denied_or_doubted_options_are_not_chosen),
        cmocka_unit_test(committed_answers_are_distinguished_from_hedged_ones),
        cmocka_unit_test(letters_beyond_the_number_of_options_are_ignored),
        cmocka_unit_test(negation_in_the_text_of_an_option_is_ignored),
        cmocka_unit_test(statements_about_an_option_do_not_choose_it),
        cmocka_unit_test(options_are_found_by_their_text),
        cmocka_unit_test(options_are_found_by_their_value),
        cmocka_unit_test(remarks_after_a_marked_letter_do_not_change_it),
        cmocka_unit_test(a_conclusion_decides_against_the_first_words),
    };
    return RUN_TESTS(tests);
}
