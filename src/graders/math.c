/* The math grader: equivalent expressions, in LaTeX or plain notation.  formula.h decides whether two are
 * equivalent; here are the parts of an answer that may be the expression.  Each of them ends where a
 * statement ends, so that an intermediate result is not taken for the answer. */
#include <ctype.h>

#include "graders/answer.h"
#include "graders/final.h"
#include "graders/formula.h"
#include "graders/tokens.h"

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

/* ---- formulas in a text ---- */

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

/* Does the text between two formulas only join them: "and", "or", a comma? */
static bool joins(struct slice between)
{
    struct tokens tokens = tokens_of(between);
    struct token token;
    while (token_next(&tokens, &token))
        if (!token_in(&token, " and or , ; y und et oder ou "))
            return false;
    return true;
}

static struct token last_word(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, word = {0};
    while (token_next(&tokens, &token))
        word = token.kind == TOKEN_WORD ? token : word;
    return word;
}

/* The last formula of a text, together with those before it that are joined to it: "$x=1$ and $x=2$".
 * Returns the number of formulas, those that are joined counted as one. */
static unsigned last_formula(struct slice text, struct slice *last)
{
    const char *end = slice_end(text), *closed = NULL;
    bool unclosed[DELIMITER_COUNT] = {false};
    unsigned count = 0;
    bool given = false; /* "since $n^2 = 64$, $n = 8$" */
    for (const char *c = text.start; c < end;) {
        struct slice inside = {0};
        bool money = *c == '\\' && c + 1 < end && c[1] == '$';
        const char *after = money ? c + 2 : formula_at(c, end, unclosed, &inside);
        if (inside.length) {
            struct slice between = slice_between(closed ? closed : text.start, c);
            bool joined =
                closed && joins(between) && !(given && slice_is(slice_trim(between), ","));
            struct token lead = last_word(between);
            given = !joined && token_in(&lead, " since when if because as given where for with ");
            *last = joined ? slice_between(last->start, slice_end(inside)) : inside;
            count += !joined;
            closed = after;
        }
        c = after ? after : c + 1;
    }
    return count;
}

/* ---- candidates ---- */

enum { CANDIDATES_MAX = 16, SUFFIXES_MAX = 6 };

struct candidates {
    struct slice at[CANDIDATES_MAX]; /* the likeliest first */
    unsigned count;
};

/* Does the text end with the full stop of "The answer is **204**."? */
static bool ends_marked(struct slice text)
{
    return text.length > 1 && strchr(".!", text.start[text.length - 1]) &&
           strchr("*`\"", text.start[text.length - 2]);
}

/* Adds a text without the Markdown, quotes and article around it. */
static void add(struct candidates *to, struct slice text)
{
    text = slice_trim(text);
    size_t article = slice_starts(text, "a ")     ? 2
                     : slice_starts(text, "an ")  ? 3
                     : slice_starts(text, "the ") ? 4
                                                  : 0;
    text = (struct slice){text.start + article, text.length - article};
    while (text.length && strchr("*`\"> ", text.start[0]))
        text = (struct slice){text.start + 1, text.length - 1};
    while (text.length && (strchr("*`\" ", text.start[text.length - 1]) || ends_marked(text)))
        text.length--;
    if (text.length && to->count < CANDIDATES_MAX)
        to->at[to->count++] = text;
}

/* The expression at the end of a sentence, "the point (3, -1)": all after the last word.  After "and" it is
 * only a part. */
static void add_tail(struct candidates *to, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    const char *start = NULL;
    while (token_next(&tokens, &token))
        if (token.kind == TOKEN_WORD && token.text.length > 1 &&
            !isdigit((unsigned char)token.text.start[0]))
            start = token_in(&token, " and or except than least most almost nearly ") ||
                            token_is_negation(&token) || *tokens.at != ' '
                        ? NULL
                        : tokens.at;
    if (start)
        add(to, slice_between(start, slice_end(sentence)));
}

/* What follows the last verbs of a sentence: "the length is 2", "which simplifies to 3", "x = 4"; not the last of
 * "x = 4 or x = 5". */
static void add_suffixes(struct candidates *to, struct slice sentence)
{
    const char *starts[SUFFIXES_MAX];
    size_t count = 0;
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    bool listed = false;
    for (; token_next(&tokens, &token); before = token) {
        listed = listed || (count && token_in(&token, " or and "));
        if (token_in(&token, " is are equals equal to gives get yields obtain be was becomes by "
                             "exactly : = ") &&
            !(before.text.length && token_is_negation(&before)) &&
            !(listed && token_is(&token, "=")))
            starts[count++ % SUFFIXES_MAX] = tokens.at;
    }
    for (size_t i = 0; i < SUFFIXES_MAX && i < count; i++)
        add(to, slice_between(starts[(count - 1 - i) % SUFFIXES_MAX], slice_end(sentence)));
    add_tail(to, sentence);
}

/* Is the formula the result?  Not if a number follows, "$\sqrt{16}$, which is 4", or a denial, "$x=2$ is not", or
 * after "except". */
static bool is_result(struct slice text, struct slice formula)
{
    struct token lead = last_word(slice_between(text.start, formula.start));
    if (token_in(&lead, " except excluding than least most almost nearly ") ||
        token_is_negation(&lead))
        return false;
    struct slice rest = slice_between(slice_end(formula), slice_end(text));
    struct tokens tokens = tokens_of(rest);
    struct token token;
    struct number number;
    for (int words = 0; words < 2 && token_next(&tokens, &token); words += token.kind == TOKEN_WORD)
        if (token_is_negation(&token))
            return false;
    return !number_first(rest, &number);
}

static void add_sentence(struct candidates *to, struct slice sentence, bool marked)
{
    struct slice formula, bold;
    bool unclosed[DELIMITER_COUNT] = {false};
    unsigned formulas = last_formula(sentence, &formula);
    add(to, sentence);
    bool one = marked ? formulas == 1 : formulas && is_result(sentence, formula);
    struct token lead =
        last_word(slice_between(sentence.start, formulas ? formula.start : sentence.start));
    bool of = !marked && formulas > 1 && token_is(&lead, "of") && /* "$8$ is the root of $64$" */
              formula_at(sentence.start, slice_end(sentence), unclosed, &formula);
    if (one || of)
        add(to, formula);
    else if (!marked || !formulas)
        add_suffixes(to, sentence);
    while (formulas == 0 && bold_next(&sentence, &bold))
        if (sentence.length < 3) /* "The fastest is **Evelyn**." */
            add(to, bold);
}

/* What ends a sentence in bold is what it states, as if boxed: "sqrt(117) ≈ 10.82, so **10.82**". */
static bool ends_in_bold(struct slice sentence, struct slice *bold)
{
    struct slice rest = sentence, last = {0}, formula;
    struct number number;
    while (bold_next(&rest, bold))
        last = rest.length < 3 ? *bold : last;
    *bold = last;
    return last.length && (number_first(last, &number) || last_formula(last, &formula));
}

/* The main clause of a sentence if it may have the answer, else all of it. */
static void add_clause(struct candidates *to, struct slice sentence, bool marked)
{
    struct slice clause = sentence_without_reason(sentence), ignored;
    struct number number;
    bool full = number_first(clause, &number) || last_formula(clause, &ignored);
    add(to, sentence);
    add_sentence(to, full ? clause : sentence, marked);
}

/* The texts that may be the answer: after a marker its line and first sentence; without one the last line,
 * the last sentence, and the last formula of all. */
static void find_candidates(const struct math *math, struct slice answer,
                            const struct final_answer *final, struct candidates *to)
{
    struct slice formula, rest, sentence;
    if (final->marker == FINAL_BOXED) {
        add(to, final->line);
        return;
    }
    if (final->marker != FINAL_NONE || math->final != FINAL_AUTO) {
        add(to, final->line);
        add_clause(to, final_sentence(final->line), true);
        return;
    }
    struct slice text = text_without_asides(answer), last = final_last_line(text);
    struct tokens tokens = tokens_of(text);
    struct token first;
    if (token_next(&tokens, &first) && token_in(&first, " yes no true false "))
        add(to, first.text); /* "Yes, it converges." */
    if (text_is_cut(text))
        return;
    struct slice line = last, bold;
    for (rest = last; sentence_next(&rest, &sentence);)
        last = sentence;
    if (ends_in_bold(last, &bold)) {
        add_clause(to, bold, true);
        return;
    }
    add(to, line);
    add_clause(to, last, false);
    if (!last_formula(last, &formula) && last_formula(text, &formula) && is_result(text, formula))
        add(to, formula);
}

/* ---- words ---- */

enum { WORDS_MAX = 6 };

/* The words of an expected answer that has nothing else: "\\text{does not exist}"; 0 when there is more. */
static size_t expected_words(struct slice expected, struct token words[WORDS_MAX])
{
    struct tokens tokens = tokens_of(expected);
    struct token token;
    size_t count = 0;
    while (token_next(&tokens, &token)) {
        bool word = token.kind == TOKEN_WORD && isalpha((unsigned char)token.text.start[0]);
        if (word && token.text.length > 1 && count < WORDS_MAX)
            words[count++] = token;
        else if (!token_in(&token, " \\text \\textbf \\mathrm { } "))
            return 0;
    }
    return count;
}

/* Does the sentence end with the expected words, as what it says: "it falls on a Wednesday"? */
static bool ends_with_words(struct slice expected, struct slice sentence)
{
    struct token wanted[WORDS_MAX], last[WORDS_MAX + 2] = {0}, token;
    size_t count = expected_words(expected, wanted);
    struct tokens tokens = tokens_of(sentence);
    while (token_next(&tokens, &token)) {
        if (token.kind != TOKEN_WORD)
            continue;
        memmove(last, last + 1, sizeof last - sizeof *last);
        last[WORDS_MAX + 1] = token;
    }
    for (size_t i = 0; i < count; i++)
        if (!token_same(&wanted[i], &last[WORDS_MAX + 2 - count + i]))
            return false;
    const struct token *before = &last[WORDS_MAX + 1 - count];
    return count && !token_is_negation(before - 1) &&
           (token_in(before, " is are was be a an the on has have ") ||
            token_in(&wanted[0], " does is has no not none "));
}

/* ---- grading ---- */

/* Is the number no part of a list or of an expression: "(1, 2)", "17 + c", "12k"? */
static bool stands_apart(struct slice text, struct slice number)
{
    const char *after = slice_end(number), *before = number.start, *end = slice_end(text);
    bool inside = *number.start == '$' && memchr(after, '$', (size_t)(end - after));
    for (const char *c = text.start; c < number.start; c++)
        inside ^= *c == '$'; /* a formula is compared as a whole */
    if (inside || (after < end && !strchr(" \t\n.,;:!?*)%", *after)))
        return false;
    while (before > text.start && strchr(" $", before[-1]))
        before--;
    while (after < end && strchr(" $", *after))
        after++;
    bool listed = before - text.start > 3 && (slice_is((struct slice){before - 3, 3}, "and") ||
                                              slice_is((struct slice){before - 2, 2}, "or"));
    return !listed && !(before > text.start && strchr("([{,+-*/^|<>", before[-1])) &&
           !(after < end && strchr("+-*/^=<>([{|", *after) && after[-1] != '*');
}

/* The number that a sentence without formulas states, "there are 5 such integers", when a number is
 * expected. */
static bool same_number(const struct math *math, struct slice expected, struct slice answer,
                        const struct final_answer *final, struct number *value)
{
    struct number wanted;
    struct slice text = final->marker ? final->line : text_without_asides(answer);
    if (final->marker == FINAL_BOXED || !number_whole(expected, &wanted) ||
        memchr(text.start, '\\', text.length))
        return false;
    if (final->marker ? !stated_after_marker(text, value) : !stated_in_conclusion(text, value))
        return false;
    return stands_apart(text, value->where) && number_equal(&math->tolerance, &wanted, value);
}

static enum err compare_all(const struct math *math, struct slice expected,
                            const struct candidates *candidates, bool *equal, struct grade *out,
                            struct error *why)
{
    *equal = false;
    for (unsigned i = 0; i < candidates->count && !*equal; i++) {
        enum err err = formula_equal(&math->tolerance, expected, candidates->at[i], equal);
        if (err && err != ERR_BAD_VALUE) /* too long to be the answer */
            return grade_no_memory(why);
        if (*equal)
            grade_extracted(out, candidates->at[i]);
    }
    return ERR_OK;
}

static enum err math_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    const struct math *math = state;
    struct slice expected = final_expected(slice_of(what->expected)),
                 answer = final_first_question(slice_of(what->answer), math->final);
    struct final_answer final;
    struct candidates candidates = {.count = 0};
    struct number number;
    bool equal;
    if (formula_equal(&math->tolerance, expected, expected, &equal) == ERR_BAD_VALUE) {
        grade_null(out, "the expected expression is too long to compare");
        return ERR_OK;
    }
    if (!final_find(answer, math->final, &final)) {
        grade_false(out, "no marked answer");
        return ERR_OK;
    }
    find_candidates(math, answer, &final, &candidates);
    grade_extracted(out, candidates.count ? candidates.at[0] : answer);
    enum err err = compare_all(math, expected, &candidates, &equal, out, why);
    if (!err && !equal && same_number(math, expected, answer, &final, &number)) {
        grade_extracted(out, number.where);
        equal = true;
    }
    if (!err && !equal && final.marker != FINAL_BOXED)
        equal = ends_with_words(expected, final.marker ? final_sentence(final.line)
                                                       : text_last_sentence(answer));
    if (equal)
        grade_true(out);
    else
        grade_false(out, "not equal to the expected expression");
    return err;
}

/* ---- the value that an answer states ---- */

/* Remembers the one that was found, -1 at first; -2 is several. */
static void found_one(int *which, size_t i)
{
    *which = *which == -1 ? (int)i : -2;
}

enum err formula_stated(const struct slice *expressions, size_t count, struct slice answer,
                        const struct final_answer *marked, int *which)
{
    enum { LONGEST = 200 };
    static const struct tolerance TOLERANCE = {.relative = 1e-6};
    struct slice stated = marked->marker == FINAL_NONE ? answer : marked->line;
    struct number number, value, other;
    bool numbers = marked->marker == FINAL_NONE ? stated_in_conclusion(answer, &number)
                                                : stated_after_marker(stated, &number);
    int exact = -1, close = -1;
    for (size_t i = 0; i < count; i++) {
        bool equal = false;
        enum err err = ERR_OK;
        if (stated.length <= LONGEST && expressions[i].length)
            err = formula_equal(&TOLERANCE, expressions[i], stated, &equal);
        if (err == ERR_NO_MEMORY)
            return err;
        if (equal)
            found_one(&exact, i);
        struct numbers rest = {.text = expressions[i]};
        numbers = numbers && number_next(&rest, &value) && !number_next(&rest, &other);
        if (numbers && number_equal(&TOLERANCE, &value, &number))
            found_one(&close, i);
    }
    *which = exact >= 0 ? exact : numbers && close >= 0 ? close : -1;
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
