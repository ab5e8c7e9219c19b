/* f1, bleu and rouge_* on cases whose scores can be computed by hand;
 * tests/cli/test_graders_oracle.py compares with the packages that define them. */
#include "support/unit.h"

#include "port/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/grading.h"

static void f1_counts_shared_words(void **state)
{
    (void)state;
    static const struct {
        const char *expected, *answer;
        double score;
    } CASES[] = {
        {"the cat", "a cat", 1},
        {"the cat sat", "cat", 2.0 / 3},
        {"The Cat, sat!", "cat sat", 1},
        {"cat cat", "cat", 2.0 / 3},
        {"cat", "cat cat cat", 0.5},
        {"cat", "dog", 0},
        {"the", "a", 1}, /* neither has a word */
        {"the", "cat", 0},
        {"\xC3\x89t\xC3\xA9", "\xC3\xA9t\xC3\xA9", 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct grade grade = grade_one("f1", "", CASES[i].expected, CASES[i].answer);
        assert_near(grade.score, CASES[i].score, 1e-12);
        assert_int_equal(grade.verdict, CASES[i].score >= 0.5 ? VERDICT_TRUE : VERDICT_FALSE);
    }
    assert_int_equal(grade_one("f1", "threshold=0.7", "the cat sat", "cat").verdict, VERDICT_FALSE);
    assert_contains(grade_one("f1", "threshold=0.7", "the cat sat", "cat").reason,
                    "0.6667 is below the threshold 0.7");
    assert_near(grade_one("f1", "", "x", "").score, 0, 0);
}

static void bleu_is_one_for_equal_and_zero_for_disjoint_texts(void **state)
{
    (void)state;
    static const char SAME[] = "The cat sat on the mat.";
    assert_near(grade_one("bleu", "", SAME, SAME).score, 1, 1e-12);
    assert_near(grade_one("bleu", "", SAME, "A dog").score, 0, 0);
    /* One word: order 1, and a brevity penalty of exp(1 - 7/1). */
    assert_near(grade_one("bleu", "", SAME, "cat").score, exp(1 - 7.0), 1e-12);
    /* Two of two unigrams, one bigram that does not match: sqrt(1 * 1/(2*1)), penalty exp(1 - 7/2). */
    assert_near(grade_one("bleu", "", SAME, "cat mat").score, sqrt(0.5) * exp(1 - 3.5), 1e-12);
    static const char METADATA[] = "{\"references\": [\"a b c d\"]}";
    struct jv *metadata;
    assert_int_equal(jv_parse(METADATA, strlen(METADATA), &metadata, NULL), ERR_OK);
    struct grading two = {
        .problem = "", .expected = "a b c d e f", .answer = "a b c d", .metadata = metadata};
    assert_near(grade_with("bleu", "", &two, NULL).score, 1, 1e-12);
    jv_free(metadata);
}

static void rouge_n_counts_shared_unigrams_and_bigrams(void **state)
{
    (void)state;
    static const struct {
        const char *expected, *answer;
        double one, two;
    } CASES[] = {
        {"police killed the gunman", "police kill the gunman", 3.0 / 4, 1.0 / 3},
        {"police killed the gunman", "the gunman kill police", 3.0 / 4, 1.0 / 3},
        {"a b a b", "a b", 2.0 / 3, 1.0 / 2}, /* "a b" counts once, as in the answer */
        {"a b c d", "d c b a", 1, 0},
        {"Cat-sat", "cat SAT", 1, 1},
        {"cat", "cat", 1, 0}, /* no bigram in either */
        {"a b", "b a b", 4.0 / 5, 2.0 / 3},
        {"cat", "\xD0\xBA\xD0\xBE\xD1\x82", 0, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_near(grade_one("rouge_1", "", CASES[i].expected, CASES[i].answer).score,
                    CASES[i].one, 1e-12);
        assert_near(grade_one("rouge_2", "", CASES[i].expected, CASES[i].answer).score,
                    CASES[i].two, 1e-12);
    }
}

static void rouge_l_uses_the_longest_common_subsequence(void **state)
{
    (void)state;
    static const struct {
        const char *expected, *answer;
        double score;
    } CASES[] = {
        {"police killed the gunman", "police kill the gunman", 0.75},
        {"police killed the gunman", "the gunman kill police", 0.5},
        {"a b c d", "d c b a", 0.25},
        {"a b c", "a x b y c", 0.75},
        {"Cat-sat", "cat SAT", 1},
        {"cat", "\xD0\xBA\xD0\xBE\xD1\x82", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_near(grade_one("rouge_l", "", CASES[i].expected, CASES[i].answer).score,
                    CASES[i].score, 1e-12);
}

static void rouge_l_rejects_texts_that_are_too_long(void **state)
{
    (void)state;
    enum { WORDS = 30000 };
    char *text = malloc((size_t)2 * WORDS + 1);
    assert_non_null(text);
    for (size_t i = 0; i < WORDS; i++)
        memcpy(text + (2 * i), i % 3 ? "a " : "b ", 2);
    text[(size_t)2 * WORDS] = '\0';
    struct grade grade = grade_one("rouge_l", "", text, text);
    assert_int_equal(grade.verdict, VERDICT_NULL);
    assert_contains(grade.reason, "too long for ROUGE-L: 30000 words");
    assert_true(isnan(grade.score));
    assert_near(grade_one("rouge_l", "", "a", text).score, 2.0 / (WORDS + 1), 1e-12);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f1_counts_shared_words),
        cmocka_unit_test(bleu_is_one_for_equal_and_zero_for_disjoint_texts),
        cmocka_unit_test(rouge_n_counts_shared_unigrams_and_bigrams),
        cmocka_unit_test(rouge_l_uses_the_longest_common_subsequence),
        cmocka_unit_test(rouge_l_rejects_texts_that_are_too_long),
    };
    return RUN_TESTS(tests);
}
