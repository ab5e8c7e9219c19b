#include "support/unit.h"

#include "support/grading.h"

static void numbers_are_equal_in_any_form(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"\\frac{355}{113}", "$\\boxed{\\pi}$", F},
        {"9", "The number is at least $9$.", U},
        {"9", "So $\\boxed{9}$.\n\nProblem: Solve $2x = 10$.\n\n$x = \\boxed{5}$", T},
        {"5", "So $\\boxed{9}$.\n\nProblem: Solve $2x = 10$.\n\n$x = \\boxed{5}$", F},
        {"\\frac{1}{2}", "0.5", T},
        {"\\frac{1}{2}", "1/2", T},
        {"\\frac12", "\\dfrac{1}{2}", T},
        {"\\frac{1}{2}", "\\tfrac{2}{4}", T},
        {"\\frac{1}{2}", "\\frac{1}{3}", F},
        {"\\frac{1}{3}", "0.333", F},
        {"-\\frac{1}{2}", "\\frac{-1}{2}", T},
        {"1\\frac{1}{2}", "\\frac{3}{2}", T},
        {"1 1/2", "1.5", T},
        {"2\\sqrt{3}", "\\sqrt{12}", T},
        {"2\\sqrt{3}", "2 \\sqrt 3", T},
        {"2\\sqrt{3}", "sqrt(12)", T},
        {"2\\sqrt{3}",
         "2\xE2\x88\x9A"
         "3",
         T},
        {"\\sqrt[3]{27}", "3", T},
        {"\\sqrt[3]{-8}", "-2", T},
        {"\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}", T},
        {"\\frac{\\pi}{2}", "\xCF\x80/2", T},
        {"\\frac{\\pi}{2}", "0.5\\pi", T},
        {"3 \\cdot 2^{10}", "3072", T},
        {"3 \\times 10^3", "3000", T},
        {"2^{-3}", "\\frac{1}{8}", T},
        {"5!", "120", T},
        {"\\binom{5}{2}", "10", T},
        {"\\log_2 8", "3", T},
        {"\\ln e^2", "2", T},
        {"\\sin 30^\\circ", "\\frac{1}{2}", T},
        {"\\sin^2 x + \\cos^2 x", "1", T},
        {"\\arcsin 1", "\\frac{\\pi}{2}", T},
        {"\\tan^{-1} 1", "\\pi/4", T},
        {"|-3|", "3", T},
        {"\\left|-3\\right|", "3", T},
        {"\\lfloor 2.7 \\rfloor", "2", T},
        {"10,000", "10000", T},
        {"10,\\!000", "10000", T},
        {"10{,}000", "10,000", T},
        {"\\$5.50", "5.5", T},
        {"50\\%", "50", T},
        {"50\\%", "0.5", T},
        {"90^\\circ", "90", T},
        {"90^{\\circ}", "90\xC2\xB0", T},
        {"-3",
         "\xE2\x88\x92"
         "3",
         T},
        {"1000000", "1000001", F},
        {"\\infty", "\xE2\x88\x9E", T},
        {"2^{100}", "4^{50}", T},
        {"7", "8", F},
    };
    GRADE_CASES("math", "", CASES);
}

static void expressions_are_equal_at_every_point(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"x^2+2x+1", "(x+1)^2", T},
        {"x^2+2x+1", "(x+1)^2+1", F},
        {"2x+3y", "3y + 2x", T},
        {"xy", "yx", T},
        {"xy^2", "x \\cdot y \\cdot y", T},
        {"\\frac{x}{2}", "0.5x", T},
        {"\\frac{x+1}{x-1}", "1 + \\frac{2}{x-1}", T},
        {"e^{2x}", "(e^x)^2", T},
        {"\\sqrt{x^2}", "x", F},
        {"\\sqrt{x^2}", "|x|", T},
        {"x_1 + x_2", "x_{2} + x_{1}", T},
        {"x_1 + x_2", "x_1 + x_3", F},
        {"3+4i", "4i+3", T},
        {"a^2-b^2", "(a-b)(a+b)", T},
        {"\\theta", "\\alpha", F},
        {"y = 2x + 1", "y = 1 + 2x", T},
        {"y = 2x + 1", "2x - y + 1 = 0", T},
        {"y = 2x + 1", "2x - y + 2 = 0", F},
        {"x = 5", "5", T},
        {"5", "x = 5", T},
        {"5", "$x=5$", T},
        {"f(x) = x^2", "x^2", T},
        {"x > 3", "3 < x", T},
        {"x \\ge 3", "x > 3", F},
        {"2 \\le x < 5", "5 > x \\geq 2", T},
        {"-x^2", "(-x)^2", F},
    };
    GRADE_CASES("math", "", CASES);
}

static void collections_are_compared_by_element(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"(1, 2)", "\\left( 1, 2 \\right)", T},
        {"(1, 2)", "(2, 1)", F},
        {"(1, 2)", "[1, 2]", F},
        {"[0, 1)", "[0,1)", T},
        {"[0, 1)", "[0,1]", F},
        {"(3, \\frac{\\pi}{2})", "(3, \\pi/2)", T},
        {"\\{1, 2\\}", "\\{2, 1\\}", T},
        {"\\{1, 2\\}", "1, 2", T},
        {"1, 2", "2 and 1", T},
        {"1, -2", "x = -2 \\text{ or } x = 1", T},
        {"1, 2", "1, 3", F},
        {"1, 2", "1, 2, 2", F},
        {"1, 1, 2", "1, 2, 2", F},
        {"(-\\infty, 2) \\cup (3, \\infty)", "(3, \\infty) \\cup (-\\infty, 2)", T},
        {"(-\\infty, 2) \\cup (3, \\infty)", "(-\\infty, 2] \\cup (3, \\infty)", F},
        {"x \\in [0, 1]", "[0, 1]", T},
        {"3 \\pm \\sqrt{2}", "3 - \\sqrt{2}, 3 + \\sqrt{2}", T},
        {"\\pm 2", "2, -2", T},
        {"\\pm 2", "2", F},
        {"\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
         "\\begin{bmatrix}1&\\frac{4}{2}\\\\3&4\\end{bmatrix}", T},
        {"\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
         "\\begin{pmatrix} 1 & 2 & 3 & 4 \\end{pmatrix}", F},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 3 \\end{pmatrix}", F},
        {"(1,234)", "(1, 234)", T}, /* in brackets a comma separates */
    };
    GRADE_CASES("math", "", CASES);
}

static void words_and_units_are_understood(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"\\text{Evelyn}", "Evelyn", T},
        {"\\text{Evelyn}", "Evelin", U},
        {"\\text{even}", "neve", U},
        {"\\text{(C)}", "C", T},
        {"10\\text{ cm}", "10", T},
        {"10", "10 \\text{ cm}^2", T},
        {"10", "10 cm^2", T},
        {"10\\text{ feet}", "10 ft", T},
        {"10\\text{ cm}", "10 km", F},
        {"10", "10 square units", T},
        {"10 cm", "x = 10 km", F},
        {"0.5", "x = 50\\%", T},
        {"11 \\mbox{ inches}", "11", T},
        {"\\text{no solution}", "no solution", T},
        {"2516_8", "2516_8", T},
        {"2516_8", "2516_7", F},
    };
    GRADE_CASES("math", "", CASES);
}

static void the_final_answer_is_found(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"\\frac{3}{4}", "So we get $x=2$. The answer is $\\boxed{\\frac{3}{4}}$.", T},
        {"\\frac{3}{4}", "The answer is $\\frac{3}{4}$.", T},
        {"\\frac{3}{4}", "The final answer is 3/4.", T},
        {"\\frac{3}{4}", "Hence\n\\[ x = \\frac{3}{4} \\]", T},
        {"\\frac{3}{4}", "First $x = 1$, therefore $y = \\frac34$ holds.", T},
        {"7", "Therefore 3 + 4 = 7.", T},
        {"7", "Answer: 7. This is because 3 + 4 is.", T},
        {"7", "\\boxed{\\boxed{7}}", T},
        {"7", "\\boxed{7", F}, /* truncated: it might have been 70 */
        {"\\boxed{7}", "7", T},
        {"(1,2)", "$(1,2)$", T},
        {"1,2", "The solutions are $1$ and $2$. \\boxed{1, 2}", T},
        {"7", "<think>\\boxed{8}</think>\\boxed{7}", T},
        {"\\frac{3}{4}", "I cannot say.", U},
    };
    GRADE_CASES("math", "", CASES);
}

static void other_notations_are_equal(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"4210_5", "4210_{5}", T},
        {"4210_5", "4210_6", F},
        {"4210_5", "4201_5", F},
        {"(-1, 3]", "-1 < x \\le 3", T},
        {"(-1, 3]", "-1 < x < 3", F},
        {"x \\ge 0", "[0, \\infty)", T},
        {"(-\\infty, -2) \\cup (2, \\infty)", "x < -2 or x > 2", T},
        {"x \\in (0, 1)", "0 < x < 1", T},
        {"(1, 2)", "(x,y)=(1,2)", T},
        {"(1, 2)", "x = 1, y = 2", T},
        {"(1, 2)", "x = 2, y = 1", U},
        {"\\{1\\pm\\sqrt{5}, -2\\}", "\\{1\\pm\\sqrt5,-2\\}", T},
        {"\\{1\\pm\\sqrt{5}, -2\\}", "-2, 1+\\sqrt5, 1-\\sqrt5", T},
        {"\\frac{1}{3}", "0.\\overline{3}", T},
        {"\\frac{1}{6}", "0.1\\overline{6}", T},
        {"\\frac{1}{3}", "0.333...", T},
        {"-1", "i^2", T},
        {"2i", "(1+i)^2", T},
        {"4i", "\\sqrt{-16}", T},
        {"3+4i", "3-4i", F},
        {"\\frac{7}{2}", "7/2 or 3.5", T},
        {"\\frac{3}{4}", "\\frac{6}{8} = \\frac{3}{4}", T},
        {"\\frac{5}{12}", "\\frac{5}{12} \\approx 0.4167", T},
    };
    GRADE_CASES("math", "", CASES);
}

static void answers_in_prose_are_read(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"\\text{Evelyn}", "**Evelyn**", T},
        {"\\text{Evelyn}", "The fastest runner is **Evelyn**.", T},
        {"\\text{odd}", "neither odd nor even", U},
        {"\\frac{3}{4}", "Therefore, the probability is 3/4.", T},
        {"5", "There are 5 such integers.", T},
        {"5", "five", T},
        {"1, 2", "The solutions are $x=1$ and $x=2$.", T},
        {"2", "The solutions are $x=1$ and $x=2$.", U},
        {"2", "The solutions are 1 and 2.", U},
        {"42", "The answer is 42 because $6 \\cdot 7 = 42$.", U},
        {"\\frac{14}{3}", "It is $\\frac{14}{3}$.\n\nVerification: $\\frac{14}{3} \\cdot 3 = 14$",
         T},
        {"14", "It is $\\frac{14}{3}$.\n\nVerification: $\\frac{14}{3} \\cdot 3 = 14$", U},
        {"15", "$\\sqrt{36+81}$ is the distance, which gives 15.", T},
        {"\\sqrt{117}", "$\\sqrt{36+81}$ is the distance, which gives 15.", U},
    };
    GRADE_CASES("math", "", CASES);
}

static void results_are_found_among_derivations(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"2\\sqrt{3}", "h^2 = 16 - 4 = 12, and h = 2*sqrt(3) ≈ 3.46.", U},
        {"2\\sqrt{3}", "h = √12 ≈ 3.46, so the area is 4√3 ≈ 6.93.", U},
        {"\\begin{pmatrix}3&1\\\\2&4\\end{pmatrix}",
         "The sum is "
         "$\\begin{pmatrix}1+2&0+1\\\\2+0&1+3\\end{pmatrix}=\\begin{pmatrix}3&1\\\\2&4\\end{"
         "pmatrix}$.",
         T},
        {"\\begin{pmatrix}3&1\\\\2&4\\end{pmatrix}", "$\\begin{pmatrix}3&1&2&4\\end{pmatrix}$", F},
        {"\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}", "$2\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}$",
         T},
        {"\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}", "[[2, 4], [6, 8]]", T},
        {"\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}", "[[2, 6], [4, 8]]", F},
        {"\\frac{\\pi}{6}", "Since sin(π/6) = 1/2 and π/6 lies in [−π/2, π/2], arcsin(1/2) = π/6.",
         U},
        {"\\frac{1}{2}", "Since sin(π/6) = 1/2, arcsin(1/2) = π/6.", U},
        {"25\\%", "The discount is $20, and 20/80 = 0.25, so it's a 25% discount.", T},
        {"25\\%", "It's at least a 25% discount.", U},
        {"11011_2", "11011", T},
        {"11011_2", "27 in binary is 11011₂.", T},
        {"11011_2", "11011 in base 3", U},
        {"27", "11011_2", F},
        {"204", "The total is 9/3 h + 24 min = 3 h 24 min, i.e. 204 minutes.", T},
        {"24", "The total is 9/3 h + 24 min = 3 h 24 min, i.e. 204 minutes.", F},
        {"\\frac{n(n+1)}{2}", "S = ½ n (n + 1)", T},
        {"n", "½ n", F},
        {"\\frac{x+2}{x-3}", "(x+2)/(x-3), x ≠ 2", T},
        {"2", "(x+2)/(x-3), x ≠ 2", F},
        {"x > 3", "x > 3, x ≠ 5", F},
        {"\\frac{x+2}{x-3}", "It is $\\frac{x+2}{x-3}$ for $x \\ne 2, 3$.", T},
        {"2n+1", "2n+1 for every integer n", T},
        {"\\log_2 3", "x = log₂(3)", T},
        {"12", "log₂ 12", F},
        {"a_{10}", "a₁₀", T},
        {"1,200", "That's **1200** pens in total.", T},
        {"1,200", "We had **1200** pens and gave away 200, so there are 1000 left.", U},
        {"7", "There are not **7** ways to do this.", U},
        {"60", "每个角都是60度。", U},
        {"60", "至少是60度。", U},
        {"\\frac{22}{7}", "The improper fraction is 22 over 7, i.e. \\frac{22}{7}.", T},
        {"\\frac{22}{7}", "It is 23 over 7.", U},
        {"\\frac{11}{30}", "The sum is 11/30, already in lowest terms as gcd(11, 30) = 1.", U},
        {"1", "The sum is 11/30, already in lowest terms as gcd(11, 30) = 1.", U},
        {"3", "x(x−1)(x+1) = 0, so x ∈ {−1, 0, 1}: three real solutions.", U},
        {"0", "x(x−1)(x+1) = 0, so x ∈ {−1, 0, 1}: three real solutions.", U},
        {"7", "so $3x = 21$ and $x = 7$.", U},
        {"7", "$x = 3$ and $x = 7$.", U},
        {"4", "x ≡ 4 (mod 5)", T},
        {"17", "17 mod 5 = 2", F},
        {"(-\\infty,3)\\cup(3,\\infty)", "\\mathbb{R} \\setminus \\{3\\}", T},
        {"(3,\\infty)", "$\\{x \\mid x > 3\\}$", T},
        {"(2,-3)", "The center is (2, -3) and the radius is 5.", U},
        {"\\{(0,0),(1,1)\\}", "The curves intersect at (0,0) and (1,1).", T},
        {"\\frac{(2n)!}{n!n!}", "\\binom{2n}{n}", T},
        {"\\frac{(2n)!}{n!n!}", "\\binom{2n}{n-1}", F},
        {"15", "The tip is $15, which is 25% of $60.", U},
        {"12", "\\begin{align*}\n2x &= 24 \\\\\nx &= 12\n\\end{align*}", U},
        {"12", "I cannot determine whether it is 12.", U},
        {"2", "The discriminant is 2, so there are no real roots.", U},
        {"7", "Either **7** or 8.", U},
        {"\\sqrt{2}", "The exact length is √2, about 1.414.", T},
        {"\\sqrt{2}", "the square root of 2", U},
        {"2", "It is the square root of 2.", U},
        {"\\frac{\\pi}{3}", "θ = π/3 (60°)", T},
        {"60", "θ = π/3 (60°)", F},
        {"6 \\text{ hours}", "It takes them 6 hours working together.", T},
        {"6 \\text{ hours}", "It takes them 6 minutes working together.", U},
        {"\\frac{5}{6}", "five sixths", T},
        {"\\frac{1}{1-x}", "1/(1 − x) for |x| < 1", T},
        {"(x+1)e^x", "eˣ(x + 1)", T},
        {"1050", "He has \\$1{,}050 in the account.", T},
    };
    GRADE_CASES("math", "", CASES);
}

static void the_box_is_read_as_it_stands(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"20", "so $\\boxed{20!}$", F},
        {"20", "It is 20!", T},
        {"\\frac{4}{7}", "The ratio is $\\boxed{4:7}$.", T},
        {"\\frac{4}{7}", "The ratio is $\\boxed{7:4}$.", F},
        {"-3, 5", "So $x = \\boxed{5}$ or $x = \\boxed{-3}$.", T},
        {"\\frac{3x+1}{2}", "$\\boxed{f^{-1}(x)=\\frac{3x+1}{2}}$", T},
    };
    GRADE_CASES("math", "", CASES);
}

static void a_remark_comes_to_no_result(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"\\frac{4}{11}",
         "$\\frac{36}{99} = \\frac{4}{11}$, which reduced gives $\\frac{1}{3}$. So it's 1/3.", U},
        {"-12", "$p(0)=-12$ with leading coefficient 2; divided by it, the term is $-6$.", U},
        {"9", "$x\\in\\{-4,\\ldots,4\\}$, nine integers.", U},
    };
    GRADE_CASES("math", "", CASES);
}

static void malformed_formulas_are_handled(void **state)
{
    (void)state;
    static const char *const ODD[] = {
        "\\frac",
        "\\frac{1}",
        "\\frac{}{}",
        "\\sqrt",
        "\\sqrt[",
        "((((",
        "))))",
        "{",
        "}",
        "^",
        "_",
        "x_",
        "x_{",
        "x^",
        "|",
        "||",
        "|x",
        "+",
        "-",
        "\\",
        "\\\\",
        "&",
        "\\begin{pmatrix}",
        "\\begin",
        "\\end{pmatrix}",
        "\\text{",
        "\\text",
        "1/0",
        "0/0",
        "\\log_",
        "\\sin",
        "\\sin^",
        "\\binom{5}",
        "=",
        "x=",
        "=5",
        ",",
        ",,",
        "(,)",
        "()",
        "[]",
        "\\{\\}",
        "\\pm",
        "!",
        "%",
        "$",
        "$$",
        "\\(",
        "\\left.",
        "1e5",
        "\xC2",
        "\xFF\xFE",
        "\xE2\x88",
        "1.2.3",
        "..",
        "\\cup",
        "x<",
        "<",
        "\\circ",
        "\\frac{1}{2",
        "1\\frac",
        "1 1/",
        "1_2",
        "log_2",
        "-",
        "--",
        "5 5",
    };
    for (size_t i = 0; i < sizeof ODD / sizeof *ODD; i++)
        for (size_t k = 0; k < sizeof ODD / sizeof *ODD; k += 7) {
            struct grade grade = grade_one("math", "final=whole", ODD[i], ODD[k]);
            assert_true(grade.verdict != VERDICT_TRUE || i == k || grade.extracted[0]);
            assert_int_equal(grade_one("math", "", "7", ODD[i]).verdict, VERDICT_FALSE);
        }
}

static void values_are_not_equal_by_accident(void **state)
{
    (void)state;
    static const struct grade_case CASES[] = {
        {"a + b", "\\boxed{a + b}", T}, /* its a is no article */
        {"b", "\\boxed{a + b}", F},
        {"2^{2000}", "\\boxed{2^{2000}}", T},
        {"2^{2000}", "\\boxed{3^{2000}}", U}, /* too large to compare */
        {"2^{100}", "\\boxed{2^{100}-1}", U},
        {"45 \\text{ mph}", "\\boxed{45 \\text{ km/h}}", F},
        {"2, 3", "\\boxed{2} and \\boxed{3}", T},
        {"3", "so \\boxed{2} and then \\boxed{3}", U},
        {"\\frac{1}{2}", "\\\\boxed{\\\\frac{1}{2}}", T}, /* escaped for JSON */
        {"\\frac{dy}{dx} = -\\frac{x}{y}", "dy/dx = −x/y", T},
        {"6x^5", "d/dx x⁶ = 6x⁵", T},
        {"x(x-4)(x+4)", "x³ − 16x = x(x² − 16) = x(x + 4)(x − 4)", T},
        {"5", "3x − y = 5", U},
        {"\\sqrt{13}", "The modulus is √(2² + 3²) = √13, roughly 3.61.", T},
    };
    GRADE_CASES("math", "", CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_not_equal_by_accident),
        cmocka_unit_test(numbers_are_equal_in_any_form),
        cmocka_unit_test(expressions_are_equal_at_every_point),
        cmocka_unit_test(collections_are_compared_by_element),
        cmocka_unit_test(words_and_units_are_understood),
        cmocka_unit_test(the_final_answer_is_found),
        cmocka_unit_test(other_notations_are_equal),
        cmocka_unit_test(answers_in_prose_are_read),
        cmocka_unit_test(results_are_found_among_derivations),
        cmocka_unit_test(malformed_formulas_are_handled),
        cmocka_unit_test(the_box_is_read_as_it_stands),
        cmocka_unit_test(a_remark_comes_to_no_result),
    };
    return RUN_TESTS(tests);
}
