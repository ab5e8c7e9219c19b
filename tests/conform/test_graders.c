/* Every grader in the registry against the contract of graders/grader.h: an unknown reference is
 * null, an empty answer is false, and answers of any length or invalid bytes are safe. */
#include "support/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/text.h"
#include "graders/grader.h"
#include "port/json_read.h"

static enum err judge_true(void *context, const char *prompt, struct text *reply, struct error *why)
{
    (void)context;
    (void)why;
    text_add(reply, strstr(prompt, "from 0 to 10") ? "7" : "TRUE");
    return ERR_OK;
}

static const struct judge JUDGE = {judge_true, NULL};

/* Parameters without which a grader does not open: files of features. */
static void required_params(const struct grader_driver *driver, struct params *out)
{
    static const struct {
        const char *grader, *params;
    } REQUIRED[] = {
        {"fid", "features=FILE, reference=FILE"},
        {"clip_score", "features=FILE, text_features=FILE"},
        {"lpips", "features=FILE, reference_features=FILE"},
    };
    for (size_t i = 0; i < sizeof REQUIRED / sizeof *REQUIRED; i++)
        if (strcmp(REQUIRED[i].grader, driver->name) == 0)
            assert_int_equal(params_add(out, REQUIRED[i].params), ERR_OK);
    for (size_t i = 0; i < out->count; i++)
        assert_int_equal(params_set(out, out->items[i].key, IPW_FIXTURES "/graders/features.csv"),
                         ERR_OK);
}

static struct grader open_grader(const struct grader_driver *driver)
{
    struct params params = {0};
    struct grader_config config = {.params = &params, .judge = &JUDGE};
    required_params(driver, &params);
    struct grader grader;
    struct error why = {0};
    enum err err = grader_open(driver, &config, &grader, &why);
    CHECK(err == ERR_OK, driver->name);
    CHECK(grader.driver == driver, driver->name);
    params_release(&params);
    return grader;
}

/* Valid UTF-8 on one line: these fields go into JSON and onto the terminal. */
static void check_words(const char *words, size_t size, const char *subject)
{
    CHECK(memchr(words, '\0', size), subject);
    for (const unsigned char *c = (const unsigned char *)words; *c;) {
        size_t more = *c < 0x80 ? 0 : *c >= 0xF0 ? 3 : *c >= 0xE0 ? 2 : *c >= 0xC2 ? 1 : 9;
        CHECK(more < 9 && *c >= ' ' && *c != 0x7F, subject);
        for (c++; more; more--, c++)
            CHECK((*c & 0xC0) == 0x80, subject);
    }
}

static struct grade grade_answer(struct grader *grader, const char *expected, const char *answer)
{
    struct grading what = {.problem = "p", .expected = expected, .answer = answer};
    struct error why = {0};
    struct grade grade;
    memset(&grade, 0x5A, sizeof grade);
    CHECK(grader_grade(grader, &what, &grade, &why) == ERR_OK, grader->driver->name);
    check_words(grade.label, sizeof grade.label, grader->driver->name);
    check_words(grade.extracted, sizeof grade.extracted, grader->driver->name);
    check_words(grade.reason, sizeof grade.reason, grader->driver->name);
    CHECK(grade.verdict == VERDICT_TRUE || grade.reason[0], grader->driver->name);
    CHECK(grade.verdict <= VERDICT_UNREAD, grader->driver->name);
    CHECK(isnan(grade.score) || (grade.score >= 0 && grade.score <= 1.0000001),
          grader->driver->name);
    CHECK(grade.attempts == 0 || grader->driver->needs_judge, grader->driver->name);
    return grade;
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    assert_non_null(GRADER_DRIVERS[0]);
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        check_driver_name((*d)->name);
        CHECK((*d)->summary && (*d)->summary[0], (*d)->name);
        CHECK((*d)->grade, (*d)->name);
        CHECK(grader_driver_find((*d)->name, NULL) == *d, (*d)->name);
        for (const struct param_spec *p = (*d)->params; p && p->name; p++)
            CHECK(p->name[0] && p->value[0] && p->help[0], (*d)->name);
    }
}

static void names_are_found_or_suggested(void **state)
{
    (void)state;
    struct error why = {0};
    assert_null(grader_driver_find("numerc", &why));
    assert_contains(why.text, "did you mean 'numeric'");
    assert_null(grader_driver_find("zzzzzzzz", &why));
    assert_ptr_equal(grader_driver_find("none", &why), grader_driver_find("null", &why));
}

static void parameters_and_judges_are_checked(void **state)
{
    (void)state;
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct params params = {0};
        struct error why = {0};
        struct grader grader;
        assert_int_equal(params_add(&params, "no_such_parameter=1"), ERR_OK);
        struct grader_config config = {.params = &params, .judge = &JUDGE};
        CHECK(grader_open(*d, &config, &grader, &why) == ERR_USAGE, (*d)->name);
        CHECK(strstr(why.text, "no_such_parameter"), (*d)->name);
        CHECK(!grader.driver, (*d)->name);
        grader_close(&grader); /* closing a grader that did not open is harmless */
        params_release(&params);
        config = (struct grader_config){0};
        enum err err = grader_open(*d, &config, &grader, &why);
        CHECK((err == ERR_OK) == (!(*d)->needs_judge && !(*d)->is_of_all), (*d)->name);
        CHECK(err == ERR_OK || err == ERR_USAGE, (*d)->name);
        grader_close(&grader);
    }
}

static bool gives_verdicts(const struct grader_driver *driver)
{
    return strcmp(driver->name, "null") != 0 && !driver->is_of_all;
}

static void the_expected_answer_is_correct(void **state)
{
    (void)state;
    /* Each grader understands one of these; bigrams need two words. */
    static const struct {
        const char *expected, *answer;
    } EITHER[] = {
        {"7", "7"},
        {"B", "B"},
        {"a blue whale", "a blue whale"},
        {"whale", "[{\"label\": \"whale\", \"score\": 0.9}]"},
        {"[{\"label\": \"whale\", \"box\": [1, 2, 3, 4]}]",
         "[{\"label\": \"whale\", \"score\": 0.9, \"box\": [1, 2, 3, 4]}]"},
    };
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct grader grader = open_grader(*d);
        bool right = false;
        for (size_t i = 0; i < sizeof EITHER / sizeof *EITHER; i++)
            right = right || grade_answer(&grader, EITHER[i].expected, EITHER[i].answer).verdict ==
                                 VERDICT_TRUE;
        CHECK(right == gives_verdicts(*d), (*d)->name);
        grader_close(&grader);
    }
}

static void unknown_reference_is_null_and_empty_answer_is_false(void **state)
{
    (void)state;
    static const char *const NOTHING[] = {
        "", " ", "\n\t ", "<think>7</think>", "<think>7", "<think></think> \n"};
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct grader grader = open_grader(*d);
        bool grades = gives_verdicts(*d);
        static const char *const UNKNOWN_ANSWERS[][2] = {{"", "7"}, {" \n", "7"}, {"", ""}};
        for (size_t i = 0; i < 3 && !(*d)->ignores_expected; i++)
            CHECK(grade_answer(&grader, UNKNOWN_ANSWERS[i][0], UNKNOWN_ANSWERS[i][1]).verdict ==
                      VERDICT_NULL,
                  (*d)->name);
        for (size_t i = 0; i < sizeof NOTHING / sizeof *NOTHING; i++) {
            struct grade grade = grade_answer(&grader, "7", NOTHING[i]);
            CHECK(grade.verdict == (grades ? VERDICT_FALSE : VERDICT_NULL), (*d)->name);
            CHECK(!grades || str_starts(grade.reason, "empty answer"), (*d)->name);
            CHECK(grade.attempts == 0, (*d)->name);
        }
        grader_close(&grader);
    }
}

static void invalid_text_is_handled(void **state)
{
    (void)state;
    static const char *const ODD[] = {
        "\xFF\xFE",
        "\xC3",
        "caf\xE9",
        "\xF0\x9F\x98",
        "\xED\xA0\x80",
        "\xC0\xAF",
        "\x01\x02\x7F",
        "7\xFF",
        "\xE2\x88\x92",
        "B\xC2",
        "\\boxed{\xFF}",
        "answer: \xE2\x80",
        "\\",
        "\\boxed",
        "\\boxed{",
        "}{",
        "####",
        "#### ",
        "answer",
        "answer is",
        "answer:",
        "%",
        "$",
        "-",
        ".",
        "*",
        "**",
        "<think",
        "</think>",
        "{\"a\":1}",
        "\xF4\x8F\xBF\xBF",
        "\xEF\xBB\xBF 7",
        "%s%n%d",
    };
    enum { COUNT = sizeof ODD / sizeof *ODD };
    const size_t step = getenv("IPW_SLOW")
                            ? 5
                            : 1; /* under valgrind each is graded against a fifth of the others */
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct grader grader = open_grader(*d);
        for (size_t i = 0; i < COUNT; i++)
            for (size_t k = i % step; k < COUNT; k += step)
                grade_answer(&grader, ODD[i], ODD[k]);
        grader_close(&grader);
    }
}

static void any_metadata_is_handled(void **state)
{
    (void)state;
    static const char *const METADATA[] = {
        NULL,
        "null",
        "[]",
        "{}",
        "{\"references\": 5}",
        "{\"references\": []}",
        "{\"references\": [null, {}, \"\", \"7\"]}",
    };
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct grader grader = open_grader(*d);
        for (size_t i = 0; i < sizeof METADATA / sizeof *METADATA; i++) {
            struct jv *metadata = NULL;
            if (METADATA[i])
                CHECK(!jv_parse(METADATA[i], strlen(METADATA[i]), &metadata, NULL), METADATA[i]);
            struct grading what = {
                .problem = "p", .expected = "x", .answer = "y", .metadata = metadata};
            struct grade grade;
            struct error why = {0};
            CHECK(grader_grade(&grader, &what, &grade, &why) == ERR_OK, (*d)->name);
            jv_free(metadata);
        }
        grader_close(&grader);
    }
}

/* Metrics of all answers: each is known or has a reason, whatever the answers are. */
static void metrics_of_any_answers_are_handled(void **state)
{
    (void)state;
    static const char *const ANSWERS[] = {"", "7", "[]", "[{}]", "\xFF", "a blue whale"};
    enum { COUNT = sizeof ANSWERS / sizeof *ANSWERS };
    for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
        struct grader grader = open_grader(*d);
        for (size_t used = 0; used <= COUNT; used++) {
            struct grading items[COUNT];
            struct grader_quality qualities[GRADER_QUALITIES_MAX];
            struct error why = {0};
            size_t count = 99;
            for (size_t i = 0; i < used; i++)
                items[i] = (struct grading){.problem = "p",
                                            .expected = ANSWERS[COUNT - 1 - i],
                                            .answer = ANSWERS[i],
                                            .index = (int64_t)(used - i)};
            enum err err = grader_corpus(&grader, items, used, qualities, &count, &why);
            CHECK(err == ERR_OK, (*d)->name);
            CHECK((*d)->corpus ? count >= 1 && count <= GRADER_QUALITIES_MAX : count == 0,
                  (*d)->name);
            for (size_t i = 0; i < count && !err; i++) {
                check_words(qualities[i].name, sizeof qualities[i].name, (*d)->name);
                check_words(qualities[i].reason, sizeof qualities[i].reason, (*d)->name);
                CHECK(isfinite(qualities[i].value) || qualities[i].reason[0], (*d)->name);
                CHECK(qualities[i].count <= used, (*d)->name);
            }
        }
        grader_close(&grader);
    }
}

/* ---- size ---- */

static char *repeated(const char *piece, size_t bytes)
{
    size_t length = strlen(piece), count = bytes / length;
    char *text = malloc(count * length + 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * length, piece, length);
    text[count * length] = '\0';
    return text;
}

/* Pieces that make a naive search restart at every position. Taking longer than `max` means
 * quadratic time. It is CPU time, since a busy machine takes longer by the wall clock. */
static void grading_time_is_not_quadratic_in_the_answer(void **state)
{
    (void)state;
    static const char *const PIECES[] = {
        "a",          "7",
        "(",          "{",
        "\\boxed{",   "\\(",
        "$",          "$$",
        "\\text{",    "answer ",
        "answer: ",   "the answer is ",
        "answer to ", "A. ",
        "(A",         "**",
        "*",          " ",
        "\n",         "1,",
        "1/",         "1 ",
        "-",          "\\frac",
        "<think>",    "</think>",
        "word ",      "a, ",
        "a and ",     "#### 1\n",
        "\xFF",       "\xC3\xA9",
        "1e",         "&amp;",
        ".,",         "option ",
        "^{",         "B is correct ",
        "\\begin{",   "x^",
        "so B, ",     "one-",
        "note. ",     "\xE7\xAD\x94\xE6\xA1\x88",
    };
    /* Sanitizers and valgrind need no more than the item and formula limits; under valgrind each
     * grader gets every third piece, with a rotating offset. */
    size_t bytes = getenv("IPW_SLOW") ? 2500 : test_is_instrumented() ? 7000 : 25000;
    const size_t step = getenv("IPW_SLOW") ? 3 : 1;
    const double max = test_is_instrumented() ? 5 : 0.3; /* seconds */
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        char *text = repeated(PIECES[i], bytes);
        for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
            if ((i + (size_t)(d - GRADER_DRIVERS)) % step)
                continue;
            struct grader grader = open_grader(*d);
            clock_t before = clock();
            grade_answer(&grader, strcmp((*d)->name, "choice") == 0 ? "B" : "7", text);
            double took = (double)(clock() - before) / CLOCKS_PER_SEC;
            if (took > max)
                print_error("%s: %.1f s of processor time for \"%s\"\n", (*d)->name, took,
                            PIECES[i]);
            CHECK(took <= max, (*d)->name);
            grader_close(&grader);
        }
        free(text);
    }
}

static void long_expected_answers_are_handled(void **state)
{
    (void)state;
    static const char *const PIECES[] = {"word ", "a", "(", "1, ", "a and ", "x+"};
    size_t bytes = getenv("IPW_SLOW") ? 2500 : test_is_instrumented() ? 7000 : 50000;
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        char *text = repeated(PIECES[i], bytes);
        for (const struct grader_driver *const *d = GRADER_DRIVERS; *d; d++) {
            if (strcmp((*d)->name, "regex") == 0)
                continue; /* the user is responsible for a pattern of that size */
            struct grader grader = open_grader(*d);
            grade_answer(&grader, text, text);
            grade_answer(&grader, text, "7");
            grader_close(&grader);
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_well_formed),
        cmocka_unit_test(names_are_found_or_suggested),
        cmocka_unit_test(parameters_and_judges_are_checked),
        cmocka_unit_test(the_expected_answer_is_correct),
        cmocka_unit_test(unknown_reference_is_null_and_empty_answer_is_false),
        cmocka_unit_test(invalid_text_is_handled),
        cmocka_unit_test(any_metadata_is_handled),
        cmocka_unit_test(metrics_of_any_answers_are_handled),
        cmocka_unit_test(grading_time_is_not_quadratic_in_the_answer),
        cmocka_unit_test(long_expected_answers_are_handled),
    };
    return RUN_TESTS(tests);
}
