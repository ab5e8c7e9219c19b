/* The math grader: expressions that mean the same, in LaTeX or plain notation. */
#include <stdlib.h>

#include "graders/grader.h"
#include "graders/maths/equal.h"
#include "graders/words/final.h"
#include "graders/words/reply.h"

struct math {
    enum final_rule final;
    struct tolerance tolerance;
};

static enum err math_open(const struct grader_config *config, struct grader *out, struct error *why)
{
    struct math *math = calloc(1, sizeof *math);
    if (!math)
        return out_of_memory(why);
    enum err err = final_read(config->params, &math->final, why);
    if (!err)
        err = tolerance_read(config->params, &math->tolerance, why);
    if (err) {
        free(math);
        return err;
    }
    out->state = math;
    return ERR_OK;
}

/* ---- which text is the answer ---- */

static const struct delimiter {
    const char *open, *close;
} DELIMITERS[] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}};

enum { DELIMITER_COUNT = sizeof DELIMITERS / sizeof *DELIMITERS };

/* Where the formula that `with` opens is closed; NULL when it is not. */
static const char *formula_close(const struct delimiter *with, const char *start, const char *end)
{
    for (const char *c = start; c < end; c++)
        if (*c == '\\' && c + 1 < end && c[1] == '$')
            c++;
        else if (slice_starts(slice_between(c, end), with->close))
            return c;
    return NULL;
}

/* The formula that begins at `at`: where it ends, its inside in *out.  NULL when none does.  A kind
 * that was not closed once will not be closed later, and is not looked for again. */
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

/* The texts that may be the answer, the likeliest first.  After a mark: the line, its first sentence
 * and its formula if it has just one.  Without one: the last line, what follows its last equals
 * sign, and the last formula of all. */
static unsigned candidates(const struct math *math, struct slice reply,
                           struct slice to[CANDIDATES_MAX])
{
    struct final final;
    struct slice formula;
    unsigned count = 0;
    if (!final_find(reply, math->final, &final))
        return 0;
    bool marked = final.kind != FINAL_NONE;
    to[count++] = marked || math->final != FINAL_AUTO ? final.line : final_last_line(reply);
    if (final.kind == FINAL_BOXED)
        return count;
    struct slice line = to[0];
    unsigned formulas = count_formulas(marked ? line : reply, &formula);
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
    grade_say(out, VERDICT_FALSE, "not equal to the expected expression");
    for (unsigned i = 0; i < count; i++) {
        bool equal;
        enum err err = maths_equal(&math->tolerance, expected, texts[i], &equal);
        if (err && err != ERR_BAD_VALUE) /* which is: too long to be what was asked for */
            return out_of_memory(why);
        if (!err && equal) {
            grade_extracted(out, texts[i]);
            grade_say(out, VERDICT_TRUE, "%s", "");
            return ERR_OK;
        }
    }
    return ERR_OK;
}

static enum err compare(const struct math *math, const struct grading *what, struct slice reply,
                        struct grade *out, struct error *why)
{
    struct slice texts[CANDIDATES_MAX];
    struct slice expected = final_expected(slice_of(what->expected));
    bool ignored;
    if (maths_equal(&math->tolerance, expected, expected, &ignored) == ERR_BAD_VALUE) {
        grade_say(out, VERDICT_NULL, "the expected expression is too long to compare");
        return ERR_OK;
    }
    unsigned count = candidates(math, reply, texts);
    if (count)
        return compare_all(math, expected, texts, count, out, why);
    grade_say(out, VERDICT_FALSE, "no marked answer");
    return ERR_OK;
}

static enum err math_grade(struct grader *grader, const struct grading *what, struct grade *out,
                           struct error *why)
{
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty)
        err = compare(grader->state, what, reply_slice(&reply), out, why);
    reply_release(&reply);
    return err;
}

static void math_close(struct grader *grader)
{
    free(grader->state);
}

static const struct param_spec PARAMS[] = {
    FINAL_PARAM,
    TOLERANCE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_math = {
    .name = "math",
    .summary = "expressions that mean the same, in LaTeX or plain notation",
    .params = PARAMS,
    .open = math_open,
    .grade = math_grade,
    .close = math_close,
};
