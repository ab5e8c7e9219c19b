/* The math grader: equivalent expressions, in LaTeX or plain notation.  formula.h decides whether two are
 * equivalent; here are the parts of an answer that may be the expression. */
#include "graders/answer.h"
#include "graders/final.h"
#include "graders/formula.h"

struct math {
    enum final_rule final;
    struct tolerance tolerance;
};

static enum err math_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct math *math = state;
    enum err err = final_read(config->params, &math->final, why);
    return err ? err : tolerance_read(config->params, &math->tolerance, why);
}

/* ---- candidates ---- */

static const struct delimiter {
    const char *open, *close;
} DELIMITERS[] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}};

enum { DELIMITER_COUNT = sizeof DELIMITERS / sizeof *DELIMITERS };

/* Where the formula that `with` opened is closed; NULL when it is not. */
static const char *formula_close(const struct delimiter *with, const char *start, const char *end)
{
    for (const char *c = start; c < end; c++)
        if (*c == '\\' && c + 1 < end && c[1] == '$')
            c++;
        else if (slice_starts(slice_between(c, end), with->close))
            return c;
    return NULL;
}

/* The end of the formula that begins at `at`, its inside in *out; NULL when there is none.  A delimiter
 * that was not closed once will not be closed later, and is not searched for again. */
static const char *formula_at(const char *at, const char *end, bool unclosed[DELIMITER_COUNT],
                              struct slice *out)
{
    for (size_t i = 0; i < DELIMITER_COUNT; i++) {
        const struct delimiter *with = &DELIMITERS[i];
        if (unclosed[i] || !slice_starts(slice_between(at, end), with->open))
            continue;
        const char *start = at + strlen(with->open), *close = formula_close(with, start, end);
        if (close) {
            *out = slice_trim(slice_between(start, close));
            return close + strlen(with->close);
        }
        unclosed[i] = true;
    }
    return NULL;
}

/* How many formulas a text has, and the last of them. */
static unsigned count_formulas(struct slice text, struct slice *last)
{
    const char *end = slice_end(text);
    bool unclosed[DELIMITER_COUNT] = {false};
    unsigned count = 0;
    for (const char *c = text.start; c < end;) {
        struct slice inside = {0};
        bool money = *c == '\\' && c + 1 < end && c[1] == '$';
        const char *after = money ? c + 2 : formula_at(c, end, unclosed, &inside);
        if (inside.length) {
            *last = inside;
            count++;
        }
        c = after ? after : c + 1;
    }
    return count;
}

static struct slice after_equals(struct slice line)
{
    for (size_t i = line.length; i > 0; i--)
        if (line.start[i - 1] == '=')
            return slice_trim((struct slice){line.start + i, line.length - i});
    return line;
}

enum { CANDIDATES_MAX = 4 };

/* The texts that may be the answer, the likeliest first.  After a marker: the line, its first sentence
 * and its formula if it has exactly one.  Without one: the last line, what follows its last equals
 * sign, and the last formula of all. */
static unsigned candidates(const struct math *math, struct slice answer,
                           struct slice to[CANDIDATES_MAX])
{
    struct final_answer final;
    struct slice formula;
    unsigned count = 0;
    if (!final_find(answer, math->final, &final))
        return 0;
    bool marked = final.marker != FINAL_NONE;
    to[count++] = marked || math->final != FINAL_AUTO ? final.line : final_last_line(answer);
    if (final.marker == FINAL_BOXED)
        return count;
    struct slice line = to[0];
    unsigned formulas = count_formulas(marked ? line : answer, &formula);
    if (formulas == 1 || (formulas && !marked))
        to[count++] = formula;
    if (final_sentence(line).length < line.length)
        to[count++] = final_sentence(line);
    if (!marked && !formulas && after_equals(line).length < line.length)
        to[count++] = after_equals(line);
    return count;
}

/* ---- grading ---- */

static enum err compare_all(const struct math *math, struct slice expected,
                            const struct slice *texts, unsigned count, struct grade *out,
                            struct error *why)
{
    grade_extracted(out, texts[0]);
    grade_false(out, "not equal to the expected expression");
    for (unsigned i = 0; i < count; i++) {
        bool equal;
        enum err err = formula_equal(&math->tolerance, expected, texts[i], &equal);
        if (err && err != ERR_BAD_VALUE) /* too long to be the answer */
            return grade_no_memory(why);
        if (!err && equal) {
            grade_extracted(out, texts[i]);
            grade_true(out);
            return ERR_OK;
        }
    }
    return ERR_OK;
}

static enum err math_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    const struct math *math = state;
    struct slice texts[CANDIDATES_MAX];
    struct slice expected = final_expected(slice_of(what->expected));
    bool ignored;
    if (formula_equal(&math->tolerance, expected, expected, &ignored) == ERR_BAD_VALUE) {
        grade_null(out, "the expected expression is too long to compare");
        return ERR_OK;
    }
    unsigned count = candidates(math, slice_of(what->answer), texts);
    if (count)
        return compare_all(math, expected, texts, count, out, why);
    grade_false(out, "no marked answer");
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    FINAL_PARAM,
    TOLERANCE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_math = {
    .name = "math",
    .summary = "equivalent mathematical expressions, LaTeX or plain notation",
    .params = PARAMS,
    .state_size = sizeof(struct math),
    .configure = math_configure,
    .grade = math_grade,
};
