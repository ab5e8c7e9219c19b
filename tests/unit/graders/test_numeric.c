#include "support/unit.h"

#include "support/grading.h"

static void numbers_are_read_in_common_notations(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"42", "42", T},
        {"42", "42.", T},
        {"42", "The total is 42 apples.", T},
        {"42", "43", F},
        {"-7",
         "\xE2\x88\x92"
         "7",
         T},
        {"-7", "-7", T},
        {"-7", "7", F},
        {"1234567", "1,234,567", T},
        {"1234567", "1{,}234{,}567", T},
        {"1234567.5", "$1,234,567.50", T},
        {"1000",
         "1\xE2\x80\xAF"
         "000",
         T},
        {"3", "1,2,3", U},       /* commas without groups of three separate */
        {"1.2345", "1,2345", T}, /* a decimal comma */
        {"0.5", ".5", T},
        {"0.75", "3/4", T},
        {"3/4", "0.75", T},
        {"1.5", "1 1/2", T},
        {"1.5", "1\\frac{1}{2}", T},
        {"0.25", "\\dfrac14", T},
        {"-0.5", "-\\frac{1}{2}", T},
        {"6.02e23", "6.02 x 10^23", T},
        {"6.02e23", "6.02 \\times 10^{23}", T},
        {"6.02e23",
         "6.02\xC3\x97"
         "10^23",
         T},
        {"1e-5", "0.00001", T},
        {"1e-5", "1 \\times 10^{-5}", T},
        {"1024", "2^10", T},
        {"18", "It costs $18", T},
        {"18",
         "It costs \xE2\x82\xAC"
         "18",
         T},
        {"-18", "-$18", T},
        {"-18", "$-18", T},
        {"25", "The area is 25 cm^2", T},
        {"25", "The area is 25 m\xC2\xB2", T},
        {"18", "18 H2O molecules", T},
        {"5", "x_1 = 5", T},
        {"-20", "10-20", U},     /* a dash between numbers is not a sign */
        {"2024", "3/4/2024", U}, /* a date is not a fraction */
        {"3", "3rd", U},
        {"500", "Rs.500", U},
        {"1e400", "5", N},
        {"a lot", "5", N},
        {"5", "many", U},
        {"5", "gpt4 and H2O", U},
        {"5", "1e400", F},
    };
    GRADE_CASES("numeric", "", CASES);
}

static void percent_and_million_are_optional(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"50", "50%", T},      {"0.5", "50%", T},
        {"50%", "0.5", T},     {"50%", "50 percent", T},
        {"50%", "5%", F},      {"5 million", "5,000,000", T},
        {"5", "5 million", F}, {"5 million", "5 billion", F},
        {"50\\%", "50", T},    {"1.5", "1.5 million", T},
    };
    GRADE_CASES("numeric", "", CASES);
}

static void the_final_answer_is_found(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"18", "She has 16 - 3 - 4 = 9 eggs and makes 9 * 2 = $18 a day.\n#### 18", T},
        {"Natalia sold 48/2 = 24 clips.\n#### 72", "The answer is 72.", T},
        {"72", "#### Step 3: add\nThe answer is 72", T}, /* a heading is not an answer */
        {"72", "#### 72\n\nQuestion: How many legs have 3 cats?\n#### 12", T},
        {"12", "#### 72\n\nQuestion: How many legs have 3 cats?\n#### 12", F},
        {"12", "Question 1: How many cats?\nAnswer: 3\nQuestion 2: Legs?\nAnswer: 12", T},
        {"72", "The answer is 72, not 71.", T},
        {"72", "The answer is 71 because 72 is too many.", F},
        {"72", "Answer: 8 * 9 = 72", T},
        {"72", "**Answer:** 72 clips in 2 months", T},
        {"72", "**Final Answer**: 72", T},
        {"72", "## Answer\n\n72\n", T},
        {"72", "The final answer is \\(\\boxed{72}\\). It took 3 steps.", T},
        {"72", "\\boxed{71} no wait, \\boxed{72} by rule 5", U},
        {"72", "\\boxed{72} ... but the answer is 71", U}, /* the last marker wins */
        {"72", "The answer to problem 3 is 72", T},
        {"72", "the answer is not 71; it is 72", U},
        {"72", "First 10, then 20, at last 72", U},
        {"5", "\\boxed{5 \\text{ km}^2}", T},
        {"12", "so x = 12 meters in 3 hours? Answer: x = 12 meters", T},
        {"7", "The answer is\n\n$$\n7\n$$", T},
        {"7", "<think>maybe the answer is 8</think>7", T},
        {"7", "maybe the answer is 8</think>7", T},
        {"8", "7 <think>the answer is 8", F},
        {"7", "Answer:", U},
    };
    GRADE_CASES("numeric", "", CASES);
    static const struct grade_case MARKED[] = {{"7", "It is 7.", U}, {"7", "Answer: 7", T}};
    GRADE_CASES("numeric", "final=marked", MARKED);
    static const struct grade_case LINE[] = {{"7", "Answer: 8\nor 7", T}};
    GRADE_CASES("numeric", "final=line", LINE);
}

static void numbers_in_words_and_other_notations_are_read(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"1234567", "1 234 567", T},
        {"1234.56", "1.234,56", T},
        {"3.5", "3,5", T},
        {"-7", "minus 7", T},
        {"-7", "minus seven", T},
        {"42", "forty-two", T},
        {"1250", "one thousand two hundred and fifty", T},
        {"0.75", "three quarters", T},
        {"2.5", "two and a half", T},
        {"45", "45 miles. That is the one.", T},
        {"5000", "5k", T},
        {"15", "15km", T},
        {"3.5", "3\xC2\xBD", T},
        {"6e23", "6 \xC3\x97 10\xC2\xB2\xC2\xB3", T},
    };
    GRADE_CASES("numeric", "", CASES);
}

static void a_conclusion_is_distinguished_from_its_context(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"35", "At least 35.", U},
        {"15", "7:15", U},
        {"12", "sqrt(12)", U},
        {"42", "42 is too large.", U},
        {"42", "I don't think it's 42.", U},
        {"42", "6 x 7 = 42 seats, and twice that is 84 seats.", U},
        {"84", "6 x 7 = 42 seats, and twice that is 84 seats.", T},
        {"4", "The roots are 4 and -3; since a length is positive, x = 4.", U},
        {"36", "She had 36 marbles.\n\nVerification: 36/4 = 9", T},
        {"9", "She had 36 marbles.\n\nVerification: 36/4 = 9", U},
        {"36", "So x = 36. Check: 36/4 = 9", T},
        {"64", "8 * 5 + 8 * 3 = 64. He pays $64 for the 16 glasses.", T},
        {"16", "8 * 5 + 8 * 3 = 64. He pays $64 for the 16 glasses.", U},
        {"10", "Weng earned **$10**. Her rate is $12 and 50 minutes are 5/6 of an hour.", T},
        {"57", "So 57 acres are left.\n\nWould you like to see it in 2 steps?", U},
        {"42", "The answer is not 43 but 42.", U},
        {"17", "Answer: 17 = 8 + 9", T},
        {"150", "100 + 50 = 150, then minus 30 is", U}, /* truncated */
    };
    GRADE_CASES("numeric", "", CASES);
}

static void a_decimal_is_not_an_exact_value(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"1/7", "0.142857", F}, {"0.142857", "1/7", F}, {"1/7", "0.142857143", T},
        {"1/8", "0.125", T},    {"2/3", "0.6667", F},
    };
    GRADE_CASES("numeric", "", CASES);
    GRADE_CASES("math", "", CASES);
    static const struct grade_case WIDE[] = {{"1/7", "0.142857", T}};
    GRADE_CASES("numeric", "rel=1e-5", WIDE);
}

static void two_forms_of_a_value_are_one(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"2400", "Answer: 2400 Pa = 2.4 kPa", T},
        {"0.65", "Answer: 0.65 or 65%", T},
        {"0.65", "Answer: 0.65 or 0.7", U},
        {"81", "Answer: 3^4 = 64", F},
    };
    GRADE_CASES("numeric", "", CASES);
}

/* The clause that repeats the question has the answer, not the remark after it. */
static void a_restatement_with_another_value_is_unread(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"180", "The sum of the angles in a triangle is 360 degrees. A line has 180 degrees.", U},
        {"180", "The sum of the angles in a triangle is 180 degrees. A circle has 360 degrees.", T},
    };
    GRADE_QUESTION("numeric", "What is the sum of the angles in a triangle?", CASES);
}

static void tolerances_are_applied(void **state)
{
    (void)state;
    static const struct grade_case PLAIN[] = {
        {"3.1415926", "3.1415927", T},
        {"3.14", "3.15", F},
        {"1000000", "1000001", F}, /* integers must be equal */
        {"1000000.5", "1000000.6", T},
        {"0", "0.0", T},
        {"0", "1e-9", F},
    };
    GRADE_CASES("numeric", "", PLAIN);
    static const struct grade_case WIDE[] = {
        {"100", "101", T},
        {"100", "99", T},
        {"100", "102", F},
        {"-100", "-101", T},
    };
    GRADE_CASES("numeric", "rel=0.01", WIDE);
    static const struct grade_case NEAR[] = {{"0", "0.4", T}, {"0", "0.6", F}, {"10", "10.5", T}};
    GRADE_CASES("numeric", "abs=0.5", NEAR);
}

static void the_compared_values_are_reported(void **state)
{
    (void)state;
    struct grade grade = grade_one("numeric", "", "72", "The answer is $1,071.50 in all");
    assert_string_equal(grade.extracted, "$1,071.50");
    assert_string_equal(grade.reason, "$1,071.50, expected 72 (statement)");
    assert_string_equal(grade_one("numeric", "", "72", "none").reason,
                        "no answer found in the text");
    struct error why;
    assert_int_equal(grade_open_error("numeric", "rel=-1", &why), ERR_USAGE);
    assert_int_equal(grade_open_error("numeric", "final=first", &why), ERR_USAGE);
    assert_contains(why.text, "expected auto");
    assert_int_equal(grade_open_error("numeric", "toler=1", &why), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_in_common_notations),
        cmocka_unit_test(percent_and_million_are_optional),
        cmocka_unit_test(the_final_answer_is_found),
        cmocka_unit_test(numbers_in_words_and_other_notations_are_read),
        cmocka_unit_test(a_conclusion_is_distinguished_from_its_context),
        cmocka_unit_test(a_decimal_is_not_an_exact_value),
        cmocka_unit_test(tolerances_are_applied),
        cmocka_unit_test(two_forms_of_a_value_are_one),
        cmocka_unit_test(a_restatement_with_another_value_is_unread),
        cmocka_unit_test(the_compared_values_are_reported),
    };
    return RUN_TESTS(tests);
}
