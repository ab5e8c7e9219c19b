/* exact, contains, regex and list. */
#include "support/unit.h"

#include "port/json_read.h"

#include "support/grading.h"

static void exact_normalizes_as_its_parameters_say(void **state)
{
    (void)state;
    static const struct grade_case PLAIN[] = {
        {"Paris", "Paris", T},
        {"Paris", "paris", T},
        {"Paris", "  Paris.\n", T},
        {"Paris", "**Paris**", T},
        {"Paris", "\"Paris\"", T},
        {"Paris", "\xE2\x80\x9CParis\xE2\x80\x9D", T},
        {"New York", "new   york", T},
        {"New York", "new\xC2\xA0york", T},
        {"it's", "it\xE2\x80\x99s", T},
        {"\xC3\x89t\xC3\xA9", "\xC3\xA9T\xC3\x89", T},
        {"\xD0\x9C\xD0\xBE\xD1\x81\xD0\xBA\xD0\xB2\xD0\xB0",
         "\xD0\xBC\xD0\x9E\xD1\x81\xD0\xBA\xD0\xB2\xD0\xB0", T},
        {"Paris", "The answer is Paris.", T},
        {"Paris", "The answer is Paris. It is large.", T},
        {"Paris", "Final answer: **Paris**", T},
        {"Paris", "{\"answer\": \"Paris\", \"sure\": true}", T},
        {"Paris", "<answer>Paris</answer>", T},
        {"Paris", "I think \\boxed{Paris}", T},
        {"The answer is 42", "The answer is 42", T}, /* the mark itself may be expected */
        {"Paris", "<think>London?</think>\n\nParis", T},
        {"So it is \\boxed{Paris}", "Paris", T},
        {"Paris", "London", F},
        {"Paris", "Paris, France", F},
        {"Paris", "It is Paris", F},
        {"...", "...", T},
        {"...", "!", F},
        {"well-known", "wellknown", F},
    };
    GRADE_CASES("exact", "", PLAIN);
    static const struct grade_case CASE[] = {{"Paris", "paris", F}, {"Paris", "Paris", T}};
    GRADE_CASES("exact", "case=keep", CASE);
    static const struct grade_case NONE[] = {{"Paris", "Paris.", F}, {"Paris", " paris ", T}};
    GRADE_CASES("exact", "strip=none", NONE);
    static const struct grade_case MARKS[] = {{"U.S.A", "USA", T}, {"a b", "ab", F}};
    GRADE_CASES("exact", "strip=punctuation", MARKS);
    static const struct grade_case ALL[] = {{"sea gull", "Seagull!", T},
                                            {"well-known", "Well known", T}};
    GRADE_CASES("exact", "strip=all", ALL);
    static const struct grade_case WHOLE[] = {{"Paris", "Answer: Paris", F}};
    GRADE_CASES("exact", "final=whole", WHOLE);
}

static void references_in_metadata_are_accepted(void **state)
{
    (void)state;
    static const char *const GRADERS[] = {"exact", "contains", "f1", "bleu", "rouge_1", "rouge_l"};
    static const char METADATA[] =
        "{\"references\": [\"US\", 7, \"USA\"], \"a\": {\"text\": [\"USA\"]}}";
    struct jv *metadata;
    assert_int_equal(jv_parse(METADATA, strlen(METADATA), &metadata, NULL), ERR_OK);
    struct grading what = {
        .problem = "",
        .expected = "the United States of America",
        .answer = "USA",
        .metadata = metadata,
    };
    for (size_t i = 0; i < sizeof GRADERS / sizeof *GRADERS; i++) {
        assert_int_equal(grade_with(GRADERS[i], "", &what, NULL).verdict, VERDICT_TRUE);
        assert_int_equal(grade_with(GRADERS[i], "references=a.text", &what, NULL).verdict,
                         VERDICT_TRUE);
        assert_int_equal(grade_with(GRADERS[i], "references=b", &what, NULL).verdict,
                         VERDICT_FALSE);
    }
    jv_free(metadata);
    what.metadata = NULL;
    assert_int_equal(grade_with("exact", "", &what, NULL).verdict, VERDICT_FALSE);
}

static void contains_matches_whole_words(void **state)
{
    (void)state;
    static const struct grade_case WORDS[] = {
        {"Paris", "It is Paris, of course.", T},
        {"paris", "PARIS", T},
        {"New York", "in new\n york city", T},
        {"art", "a party", F},
        {"art", "party art", T},
        {"art", "art.", T},
        {"\xC3\xA9t\xC3\xA9", "un \xC3\x89t\xC3\xA9 chaud", T},
        {"t", "\xC3\xA9t\xC3\xA9", F}, /* non-ASCII letters are letters */
        {"U.S.", "the U.S. of A.", T},
        {"Paris", "London", F},
        {"Paris", "<think>Paris</think>London", F},
        {"aab", "aaab aab", T},
    };
    GRADE_CASES("contains", "", WORDS);
    static const struct grade_case PARTS[] = {{"art", "a party", T}, {"aab", "aaab", T}};
    GRADE_CASES("contains", "words=no", PARTS);
    static const struct grade_case CASE[] = {{"Paris", "paris", F}};
    GRADE_CASES("contains", "case=keep", CASE);
}

static void regex_matches_as_posix_does(void **state)
{
    (void)state;
    static const struct grade_case EXPECTED[] = {
        {"^[0-9]+$", "123", T},  {"^[0-9]+$", " 123\n", T},
        {"^[0-9]+$", "12a", F},  {"colou?r", "the color", T},
        {"(a|b)+c", "xabac", T}, {"(", "x", N}, /* an invalid pattern gives no verdict */
        {"(a)\\1", "aa", N},
    };
    GRADE_CASES("regex", "", EXPECTED);
    static const struct grade_case FIXED[] = {{"x", "it is PARIS", T}, {"x", "London", F}};
    GRADE_CASES("regex", "pattern=paris,flags=i", FIXED);
    static const struct grade_case WHOLE[] = {{"a|bc", "bc", T}, {"a|bc", "abc", F}};
    GRADE_CASES("regex", "flags=w", WHOLE);
    static const struct grade_case LINES[] = {{"^b$", "a\nb\nc", T}};
    GRADE_CASES("regex", "flags=m", LINES);
    assert_string_equal(grade_one("regex", "", "[0-9]+", "room 101").extracted, "101");
    struct error why;
    assert_int_equal(grade_open_error("regex", "pattern=(", &why), ERR_USAGE);
    assert_contains(why.text, "invalid pattern");
    assert_int_equal(grade_open_error("regex", "pattern=(a)\\1", &why), ERR_USAGE);
    assert_int_equal(grade_open_error("regex", "flags=x", &why), ERR_USAGE);
    static const char *const LARGE[] = {
        "pattern=a++++++++++++++++++++++++++++++++++++++++", "pattern=((a{200}){200}){200}",
        "pattern=(((((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+"};
    for (size_t i = 0; i < COUNT_OF(LARGE); i++) {
        assert_int_equal(grade_open_error("regex", LARGE[i], &why), ERR_USAGE);
        assert_non_null(strstr(why.text, "memory"));
    }
    assert_int_equal(
        grade_one("regex", "", "^([0-9]{1,3}[.]){3}[[:digit:]]{1,3}$", "10.0.0.1").verdict,
        VERDICT_TRUE);
}

static void lists_are_compared_item_by_item(void **state)
{
    (void)state;
    static const struct grade_case KEPT[] = {
        {"red, green, blue", "Red, Green, Blue", T},
        {"red, green, blue", "red; green; blue", T},
        {"red, green, blue", "red\ngreen\nblue", T},
        {"red, green, blue", "red, green, and blue", T},
        {"red, green, blue", "red, green and blue.", T},
        {"red, green, blue", "- red\n- green\n- blue", T},
        {"red, green, blue", "1. red\n2. green\n3. blue", T},
        {"red, green, blue", "Answer: red, green, blue", T},
        {"red, green, blue", "The colours are many.\n\nAnswer:\n- red\n- green\n- blue\n\nBye.", T},
        {"red, green, blue", "[red, green, blue]", T},
        {"red, green, blue", "\\boxed{red, green, blue}", T},
        {"red, green, blue", "green, red, blue", F},
        {"red, green, blue", "red, green", F},
        {"red, green, blue", "red, green, blue, black", F},
        {"1, 2.50, 3", "1.0; 2.5; 3", T},
        {"1, 2, 3", "1, 2, 4", F},
        {"$1; 50%", "1, 50", T},
        {"1234", "1,234", T}, /* one number: its commas are not separators */
        {"1234", "Answer: $1,234.00", T},
        {"17", "seventeen", F},
        {"Claude Shannon", "claude shannon.", T},
        {"sea gull", "Sea-Gull", T},
        {",", "x", N},
    };
    GRADE_CASES("list", "", KEPT);
    static const struct grade_case ANY[] = {
        {"red, green, blue", "green, blue, red", T},
        {"red, red, blue", "red, blue, blue", F},
        {"1, 2", "2.0, 1", T},
    };
    GRADE_CASES("list", "order=any", ANY);
    assert_string_equal(grade_one("list", "", "a, b", "a, c").reason, "item 2 differs, expected b");
    assert_string_equal(grade_one("list", "", "a, b", "a").reason, "1 items, expected 2");
    struct error why;
    assert_int_equal(grade_open_error("list", "order=some", &why), ERR_USAGE);
}

static void wrong_parameters_are_rejected(void **state)
{
    (void)state;
    static const char *const WRONG[][2] = {
        {"exact", "case=upper"},  {"exact", "strip=some"}, {"contains", "words=perhaps"},
        {"f1", "threshold=2"},    {"bleu", "threshold=x"}, {"rouge_l", "threshold=-1"},
        {"exact", "final=maybe"}, {"null", "anything=1"},  {"rouge_2", "n=3"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct error why;
        assert_int_equal(grade_open_error(WRONG[i][0], WRONG[i][1], &why), ERR_USAGE);
        assert_true(why.text[0]);
    }
}

static void a_required_marker_that_is_missing_leaves_the_answer_unread(void **state)
{
    (void)state;
    static const char *const GRADERS[] = {"exact", "list", "choice", "numeric", "math"};
    for (size_t i = 0; i < sizeof GRADERS / sizeof *GRADERS; i++) {
        const char *expected = i == 2 ? "B" : "7", *answer = i == 2 ? "It is B." : "It is 7.";
        assert_int_equal(grade_one(GRADERS[i], "final=marked", expected, answer).verdict,
                         VERDICT_UNREAD);
    }
}

static void an_identical_answer_is_never_false(void **state)
{
    (void)state;
    static const char *const ANSWERS[] = {
        "2024-01-15", "15/01/2024", "1990-2000", "3-5",    "1.10.2", "555-0199",   "17.5, Paris",
        "1, 2, 3",    "12:30",      "B",         "(C)",    "42",     "-7.5",       "$5",
        "50 %",       "x^2 + 1",    "\\frac12",  "[0, 1)", "no",     "at least 7", "7 or 8",
        "The Hague",  "not B",      "10^6",      "5 km/h", "1e400",  "A or B",
    };
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        const char *grader = grader_default(ANSWERS[i]);
        assert_non_null(grader);
        struct grade grade = grade_one(grader, "", ANSWERS[i], ANSWERS[i]);
        if (grade.verdict != VERDICT_TRUE && grade.verdict != VERDICT_NULL)
            print_error("%s of \"%s\": %s\n", grader, ANSWERS[i], grade.reason);
        assert_true(grade.verdict == VERDICT_TRUE || grade.verdict == VERDICT_NULL);
    }
    assert_string_equal(grader_default("2024-01-15"), "contains");
    assert_string_equal(grader_default("1, 2, 3"), "list");
    assert_int_equal(grade_one("list", "", "17.5", "17.5, Paris").verdict, VERDICT_UNREAD);
    assert_int_equal(grade_one("numeric", "", "1234", "Answer: １２３４").verdict, VERDICT_TRUE);
    assert_int_equal(grade_one("numeric", "", "1234", "Answer: ١٢٣٤").verdict, VERDICT_TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_required_marker_that_is_missing_leaves_the_answer_unread),
        cmocka_unit_test(an_identical_answer_is_never_false),
        cmocka_unit_test(exact_normalizes_as_its_parameters_say),
        cmocka_unit_test(references_in_metadata_are_accepted),
        cmocka_unit_test(contains_matches_whole_words),
        cmocka_unit_test(regex_matches_as_posix_does),
        cmocka_unit_test(lists_are_compared_item_by_item),
        cmocka_unit_test(wrong_parameters_are_rejected),
    };
    return RUN_TESTS(tests);
}
