/* Answers of models and of a judge: every grader gives a verdict, and a score from 0 to 1.  The input is the expected
 * answer, a NUL and the model's answer. */
#include "fuzz/fuzz.h"

#include "core/units.h"
#include "graders/grader.h"

static const char *answer;

static enum err ask(void *context, const char *prompt, struct text *reply, struct error *why)
{
    (void)context, (void)prompt, (void)why;
    text_add(reply, answer);
    return ERR_OK;
}

static void run(const char *bytes, size_t length)
{
    static const struct judge JUDGE = {.ask = ask};
    static unsigned count;
    while (!count || GRADER_DRIVERS[count])
        count++;
    const struct grader_driver *driver = GRADER_DRIVERS[fuzz_choose(&bytes, &length, count)];
    const char *end = length ? memchr(bytes, 0, length) : NULL;
    size_t first = end ? (size_t)(end - bytes) : length, rest = end ? length - first - 1 : 0;
    struct text expected = {0};
    struct grader grader;
    struct grade grade = {0};
    struct error why = {0};
    text_add_repaired(&expected, bytes, first);
    answer = fuzz_string(end ? end + 1 : "", rest);
    if (!grader_open(driver, &(struct grader_config){.judge = &JUDGE}, &grader, &why)) {
        struct grading what = {.problem = "p", .expected = text_get(&expected), .answer = answer};
        struct grader_quality qualities[GRADER_QUALITIES_MAX];
        size_t quality_count;
        enum err err = grader_grade(&grader, &what, &grade, &why);
        fuzz_check_error(err, &why);
        fuzz_check_error(grader_corpus(&grader, &what, 1, qualities, &quality_count, &why), &why);
        fuzz_check(err || !is_known(grade.score) || (grade.score >= 0 && grade.score <= 1));
        grader_close(&grader);
    }
    (void)grader_default(text_get(&expected));
    text_release(&expected);
}

static void seeds(void)
{
    static const char *const PAIRS[][2] = {
        {"B", "The answer is (B)."},
        {"3/4", "Therefore $\\boxed{\\frac{3}{4}}$."},
        {"1,234.5", "#### 1234.50"},
        {"\\sqrt{2}+x^{2}", "\\[ x^2 + \\sqrt 2 \\]"},
        {"[1, 2]", "Final answer: {2, 1}"},
        {"50\\%", "0.5 or \\text{half}"},
        {"the cat sat", "A cat sat on the mat."},
        {"cat", "[{\"label\": \"cat\", \"score\": 0.9}]"},
        {"[{\"label\": \"cat\", \"box\": [1, 2, 3, 4], \"crowd\": true}]",
         "[{\"label\": \"cat\", \"box\": [1, 2, 3, 4], \"score\": 0.5}]"},
        {"x", "{\"verdict\": \"CORRECT\", \"score\": 0.5}\nGRADE: A"},
    };
    for (int i = 0; GRADER_DRIVERS[i]; i++)
        for (size_t k = 0; k < sizeof PAIRS / sizeof *PAIRS; k++) {
            struct text both = {0};
            text_add_bytes(&both, PAIRS[k][0], strlen(PAIRS[k][0]) + 1);
            text_add(&both, PAIRS[k][1]);
            fuzz_seed_bytes(i, both.bytes, both.length);
            text_release(&both);
        }
}

static const char *const WORDS[] = {"\\boxed{", "\\frac{",   "\\sqrt{", "\\left(", "\\text{",
                                    "####",     "answer is", "\\pi",    "^{",      "\\infty",
                                    "1e308",    "\\pm",      "(A)",     "CORRECT", NULL};

const struct fuzz_target fuzz_graders = {.run = run, .seeds = seeds, .words = WORDS};
