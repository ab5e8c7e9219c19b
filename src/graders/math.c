/* The math grader: equivalent expressions, in LaTeX or plain notation.  formula.h decides whether two are equivalent;
 * this file finds the parts of an answer that may be the expression.  Each ends where a statement ends, so that an
 * intermediate result is not taken for the answer. */
#include <ctype.h>

#include "graders/answer.h"
#include "graders/final.h"
#include "graders/fold.h"
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
} DELIMITERS[] = {
    {"$$", "$$"},
    {"$", "$"},
    {"\\(", "\\)"},
    {"\\[", "\\]"},
    {"\\begin{align*}", "\\end{align*}"},
    {"\\begin{align}", "\\end{align}"},
    {"\\begin{equation*}", "\\end{equation*}"},
    {"\\begin{equation}", "\\end{equation}"},
};

enum { DELIMITER_COUNT = sizeof DELIMITERS / sizeof *DELIMITERS };

/* Whether the two dollar signs are those of prices: "$15, which is 25% of $60". */
static bool is_money(const struct delimiter *with, const char *start, const char *close,
                     const char *end)
{
    return slice_is(slice_of(with->open), "$") && isdigit((unsigned char)*start) &&
           (slice_is_space(close[-1]) || (close + 1 < end && isdigit((unsigned char)close[1])));
}

/* End of the formula that `with` opened; NULL if it is not closed. */
static const char *formula_close(const struct delimiter *with, const char *start, const char *end)
{
    for (const char *c = start; c < end; c++)
        if (*c == '\\' && c + 1 < end && c[1] == '$')
            c++;
        else if (slice_starts(slice_between(c, end), with->close))
            return c;
    return NULL;
}

/* The end of the formula that begins at `at`, its contents in *out; NULL if there is none.  An unclosed delimiter is
 * not searched for again. */
static const char *formula_at(const char *at, const char *end, bool unclosed[DELIMITER_COUNT],
                              struct slice *out)
{
    for (size_t i = 0; i < DELIMITER_COUNT; i++) {
        const struct delimiter *with = &DELIMITERS[i];
        if (unclosed[i] || !slice_starts(slice_between(at, end), with->open))
            continue;
        const char *start = at + strlen(with->open), *close = formula_close(with, start, end);
        if (close && is_money(with, start, close, end))
            continue;
        if (close) {
            *out = slice_trim(slice_between(start, close));
            return close + strlen(with->close);
        }
        unclosed[i] = true;
    }
    return NULL;
}

/* Whether the text between two formulas only joins them: "and", "or", a comma. */
static bool joins(struct slice between)
{
    struct tokens tokens = tokens_of(between);
    struct token token;
    while (token_next(&tokens, &token))
        if (!token_in(&token, " and or , ; y und et oder ou "))
            return false;
    return true;
}

/* Whether the formula after `between` restricts the one before: "$1/x$ for $x \\ne 0$". */
static bool is_condition(struct slice between, struct slice formula)
{
    static const char *const SIGNS[] = {"\\ne", "\\in", "\\ge", "\\le", "<",
                                        ">",    "≠",    "∈",    "≥",    "≤"};
    struct tokens tokens = tokens_of(between);
    struct token token;
    while (token_next(&tokens, &token))
        if (!token_in(&token, " , for where with provided if when and all any that ( "))
            return false;
    for (size_t at = 0; at < formula.length; at++)
        for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
            if (slice_starts((struct slice){formula.start + at, formula.length - at}, SIGNS[i]))
                return true;
    return false;
}

/* Whether an equation for the variable follows from the preceding one: "3x = 21 and x = 7", not "x = 3 and x = 7". */
static bool follows_from(struct slice before, struct slice name)
{
    bool found = false;
    const char *end = slice_end(before);
    if (name.length != 1 || !isalpha((unsigned char)name.start[0]))
        return false;
    for (const char *c = before.start; c < end; c++) {
        const char *previous = c, *next = c + 1;
        if (*c != *name.start || (c > before.start && isalpha((unsigned char)c[-1])) ||
            (next < end && isalpha((unsigned char)*next)))
            continue;
        while (previous > before.start && previous[-1] == ' ')
            previous--;
        while (next < end && *next == ' ')
            next++;
        bool alone = previous == before.start || !strchr("0123456789+-*/^)({", previous[-1]);
        if (alone && next < end && *next == '=')
            return false;
        found = true;
    }
    return found;
}

/* The x of "x = 7"; empty for any other formula. */
static struct slice solved_for(struct slice formula)
{
    struct tokens tokens = tokens_of(formula);
    struct token name, sign;
    return token_next(&tokens, &name) && token_next(&tokens, &sign) && token_is(&sign, "=")
               ? name.text
               : (struct slice){formula.start, 0};
}

static struct token last_word(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, word = {0};
    while (token_next(&tokens, &token))
        word = token.kind == TOKEN_WORD ? token : word;
    return word;
}

/* The last formula of a text, together with preceding ones joined to it: "$x=1$ and $x=2$".  Returns the number of
 * formulas, counting joined ones as one. */
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
            bool listed = closed && joins(between) && !follows_from(*last, solved_for(inside)) &&
                          !(given && slice_is(slice_trim(between), ","));
            bool joined = closed && (listed || is_condition(between, inside));
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
    struct slice at[CANDIDATES_MAX]; /* most likely first */
    unsigned count;
};

/* Whether the text ends with the full stop of "The answer is **204**." */
static bool ends_marked(struct slice text)
{
    return text.length > 1 && strchr(".!", text.start[text.length - 1]) &&
           strchr("*`\"", text.start[text.length - 2]);
}

/* Adds a text without the surrounding Markdown, quotes and article. */
static void add(struct candidates *to, struct slice text)
{
    text = slice_trim(text);
    if (text.length && text.start[0] == ',') /* "that is, 5" */
        text = slice_trim((struct slice){text.start + 1, text.length - 1});
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

/* A word of prose, not a name in an expression: "4π", "log₂", "½". */
static bool is_prose(const struct token *token)
{
    size_t length;
    uint32_t first = char_at(token->text, &length), last = first;
    for (size_t at = 0; at < token->text.length; at += length)
        last = char_at((struct slice){token->text.start + at, token->text.length - at}, &length);
    bool letters = first < 0x80 ? isalpha((int)first) : first >= 0xC0 && first < 0x2000;
    return token->kind == TOKEN_WORD && token->text.length > length && !char_subscript(last) &&
           (token_is_cjk(token) ||
            (letters && !token_in(token, " sin cos tan cot sec csc ln log lg exp sqrt pi arcsin "
                                         "arccos arctan max min gcd lcm root ")));
}

/* The expression at the end of a sentence, "the point (3, -1)": all after the last word.  That after "and" is only a
 * part of it. */
static void add_tail(struct candidates *to, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    const char *start = NULL;
    for (; token_next(&tokens, &token); before = token) {
        bool joint = token_in(&token, " and or ") ||
                     (token_is(&token, "of") && token_in(&before, " root half third square "));
        if (!is_prose(&token) || (token_in(&token, " and or ") && start &&
                                  slice_trim(slice_between(start, token.text.start)).length))
            continue;
        bool apart = tokens.at < tokens.end && (strchr(" ,", *tokens.at) || token_is_cjk(&token));
        start = joint || !apart || token_is_negation(&token) || token_is_cjk_bound(&token) ||
                        token_in(&token, " except than least most almost nearly ")
                    ? NULL
                    : tokens.at;
    }
    if (start)
        add(to, slice_between(start, slice_end(sentence)));
}

static bool begins_restatement(const struct token *token)
{
    return token_is(token, "i") && slice_starts((struct slice){token->text.start, 4}, "i.e.");
}

/* Adds the text after the last verbs of a sentence: "the length is 2", "which simplifies to 3", "x = 4"; not the last
 * of "x = 4 or x = 5". */
static void add_suffixes(struct candidates *to, struct slice sentence)
{
    const char *starts[SUFFIXES_MAX], *joint = NULL;
    size_t count = 0;
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, second = {0};
    for (bool equation = false; token_next(&tokens, &token); second = before, before = token) {
        bool equals = token_is(&token, "=");
        if (equation && token_in(&token, " or and "))
            joint = token.text.start;
        equation = equation || equals;
        bool step = joint && second.text.start == joint &&
                    follows_from(slice_between(sentence.start, joint), before.text);
        if (token_in(&token, " is are equals equal to gives get yields obtain be was becomes by "
                             "exactly : = ") &&
            !(before.text.length && token_is_negation(&before)) && !(joint && equals && !step))
            starts[count++ % SUFFIXES_MAX] = tokens.at;
        if (tokens.end - token.text.start > 4 && begins_restatement(&token))
            starts[count++ % SUFFIXES_MAX] = token.text.start + 4;
    }
    for (size_t i = 0; i < SUFFIXES_MAX && i < count; i++)
        add(to, slice_between(starts[(count - 1 - i) % SUFFIXES_MAX], slice_end(sentence)));
    add_tail(to, sentence);
}

/* The point or interval of a sentence that has one: "The center is (2, 3) and the radius is 5."  f(2, 3) is not one. */
static void add_tuple(struct candidates *to, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, word = {0};
    const char *open = NULL;
    struct slice tuple = {0};
    for (bool comma = false; token_next(&tokens, &token); before = token) {
        if (token_is_negation(&token) || (token.kind == TOKEN_WORD && token_is(&token, "or")))
            return;
        bool attached = before.kind == TOKEN_WORD && before.text.length && !token.spaced;
        if (token_in(&token, " ( [ ")) {
            open = attached ? NULL : token.text.start;
            comma = false;
        }
        comma = comma || token_is(&token, ",");
        if (!open || !token_in(&token, " ) ] "))
            continue;
        if (comma && tuple.length)
            return;
        if (comma)
            tuple = slice_between(open, tokens.at);
        open = NULL;
    }
    word = last_word(slice_between(sentence.start, tuple.length ? tuple.start : sentence.start));
    if (tuple.length && !token_in(&word, " in from through with and inside outside on "))
        add(to, tuple);
}

/* Whether the formula is the result: not if a number follows, "$\sqrt{16}$, which is 4", or a negation, "$x=2$ is not",
 * or after "except". */
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
    add_tuple(to, sentence);
    while (formulas == 0 && bold_next(&sentence, &bold))
        if (sentence.length < 3) /* "The fastest is **Evelyn**." */
            add(to, bold);
}

/* A sentence that ends in bold states the bold part, as if boxed: "sqrt(117) ≈ 10.82, so **10.82**". */
static bool ends_in_bold(struct slice sentence, struct slice *bold)
{
    struct slice rest = sentence, last = {0}, formula;
    struct number number;
    while (bold_next(&rest, bold))
        last = rest.length < 3 ? *bold : last;
    *bold = last;
    return last.length && (number_first(last, &number) || last_formula(last, &formula));
}

/* Whether the text has a number or formula, or part of one: "√2", "2x". */
static bool has_value(struct slice text)
{
    static const char *const SIGNS[] = {"√", "π", "∞", "$", "\\"};
    for (size_t at = 0; at < text.length; at++) {
        if (isdigit((unsigned char)text.start[at]))
            return true;
        for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
            if (slice_starts((struct slice){text.start + at, text.length - at}, SIGNS[i]))
                return true;
    }
    return false;
}

/* The text without the same number in another unit at the end: "π/3 (60°)", "5/6 (0.83)". */
static struct slice without_conversion(struct slice clause)
{
    struct number number;
    size_t end = clause.length;
    if (end && clause.start[end - 1] == '(') /* "2/3 (≈ 0.67)", cut */
        return slice_trim((struct slice){clause.start, end - 1});
    while (end && strchr(".!", clause.start[end - 1]))
        end--;
    for (size_t i = end; i > 2 && clause.start[end - 1] == ')'; i--)
        if (clause.start[i - 1] == '(') {
            struct slice inside = {clause.start + i, end - 1 - i};
            if (inside.length > 2 && slice_is((struct slice){slice_end(inside) - 2, 2}, "°"))
                inside.length -= 2;
            bool apart = clause.start[i - 2] == ' ' && number_whole(inside, &number);
            return apart ? slice_trim((struct slice){clause.start, i - 2}) : clause;
        }
    return clause;
}

/* The text without remarks about the result, ", already in lowest terms", ", using 8^2 = 64", or a remaining "i.e.". */
static struct slice without_remark(struct slice clause)
{
    struct tokens tokens = tokens_of(clause), look;
    struct token token, next, second;
    while (token_next(&tokens, &token)) {
        look = tokens;
        if (!token_in(&token, " , ; ") || !token_next(&look, &next) || !token_next(&look, &second))
            continue;
        struct slice kept = slice_between(clause.start, token.text.start);
        bool remark = token_in(&next, " already fully using reduced ") ||
                      (token_is(&next, "in") && token_in(&second, " lowest simplest reduced ")) ||
                      (token_is(&next, "i") && slice_end(clause) - next.text.start == 4) ||
                      (token_is(&next, "which") &&
                       (token_is_negation(&second) || token_in(&second, " can does ")));
        if (token_is(&next, "which") && token_is(&second, "is") && token_next(&look, &second))
            remark = token_in(&second, " already in fully ");
        if (remark)
            return has_value(kept) ? kept : clause;
    }
    return clause;
}

/* The conclusion of a reason that comes first: "x = 4" of "Since x > 0 and x^2 = 16, x = 4". */
static struct slice after_reason(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    int depth = 0;
    bool said = false;
    if (!token_next(&tokens, &token) ||
        !token_in(&token, " since because as given when if replacing using taking "))
        return sentence;
    while (token_next(&tokens, &token)) {
        depth += token_in(&token, " ( [ { ");
        depth -= token_in(&token, " ) ] } ");
        said = said || token_in(&token, " = < > ≠ ≤ ≥ is are lies and ");
        struct slice rest = slice_between(tokens.at, tokens.end);
        if (said && depth == 0 && token_is(&token, ",") && rest.length && rest.start[0] == ' ')
            return has_value(rest) ? slice_trim(rest) : sentence;
    }
    return sentence;
}

/* The main clause of a sentence if it may contain the answer, else the whole sentence. */
static void add_clause(struct candidates *to, struct slice sentence, bool marked)
{
    struct slice clause = without_conversion(without_remark(sentence_without_reason(sentence)));
    add(to, sentence);
    add_sentence(to, after_reason(has_value(clause) ? clause : sentence), marked);
}

/* "The discriminant is -3, so there are no real roots." */
static bool concludes_none(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    bool concluding = false, none = false;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, " so therefore thus hence "))
            concluding = true;
        else if (concluding && (has_value(token.text) || token_is(&token, "but")))
            return false;
        none = none || (concluding && token_in(&token, " no none "));
    }
    return none;
}

/* Candidate answers: after a marker its line and first sentence; without one the last line, the last sentence, and the
 * last formula of all. */
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
    struct slice line = last, bold;
    for (rest = last; sentence_next(&rest, &sentence);)
        last = sentence;
    struct number number;
    bool value = number_first(last, &number);
    if (text_is_truncated(text) || concludes_none(last) ||
        (value && text_declines(slice_between(last.start, number.where.start))))
        return;
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

/* The words of an expected answer that consists only of words: "\\text{does not exist}"; 0 if there is more. */
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

/* Whether the sentence ends with the expected words as its statement: "it falls on a Wednesday". */
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

/* Whether the position is inside a formula, which is compared as a whole. */
static bool is_in_formula(struct slice text, const char *place)
{
    bool unclosed[DELIMITER_COUNT] = {false};
    struct slice ignored;
    for (const char *c = text.start; c <= place;) {
        const char *after = formula_at(c, slice_end(text), unclosed, &ignored);
        if (after && after > place)
            return true;
        c = after ? after : c + 1;
    }
    return false;
}

static const char *skip_marks(const char *at, const char *end)
{
    while (end - at > 1 && at[0] == '*' && at[1] == '*')
        at += 2;
    return at;
}

/* Whether the character may follow a number that is not part of an expression.  Chinese has no spaces. */
static bool may_follow(struct slice rest)
{
    size_t length;
    uint32_t c = rest.length ? char_at(rest, &length) : ' ';
    return c < 0x80 ? strchr(" \t\n.,;:!?*)%", (int)c) != NULL
                    : char_is_cjk(c) || c == 0xB0 || (c >= 0x3000 && char_is_punctuation(c));
}

/* Whether the text ends with an operator or relation that applies to the number after it. */
static bool ends_with_operator(struct slice text)
{
    size_t back = 1, length;
    if (!text.length)
        return false;
    while (back < text.length && utf8_is_continuation(text.start[text.length - back]))
        back++;
    uint32_t c = char_at((struct slice){slice_end(text) - back, back}, &length);
    if (c < 0x80)
        return strchr("([{,+-*/^|<>", (int)c) != NULL;
    return c == 0xD7 || c == 0xF7 || (c >= 0x2200 && c <= 0x22FF && c != 0x2248); /* not ≈ */
}

/* Whether the number is not part of a list or an expression: "(1, 2)", "17 + c", "12k". */
static bool stands_apart(struct slice text, struct slice number)
{
    const char *end = slice_end(text), *after = skip_marks(slice_end(number), end),
               *before = number.start;
    if (is_in_formula(text, number.start) || !may_follow(slice_between(after, end)))
        return false;
    while (before - text.start > 1 && before[-1] == '*' && before[-2] == '*')
        before -= 2;
    while (before > text.start && strchr(" $", before[-1]))
        before--;
    while (after < end && strchr(" $", *after))
        after++;
    bool listed = before - text.start > 3 && (slice_is((struct slice){before - 3, 3}, "and") ||
                                              slice_is((struct slice){before - 2, 2}, "or"));
    struct slice rest = slice_between(after, end);
    if (slice_starts(rest, "or ") && rest.length > 3) { /* "7 or 8" */
        const char *other = skip_marks(rest.start + 3, end);
        listed = listed || (other < end && (isdigit((unsigned char)*other) || *other == '$'));
    }
    return !listed && !ends_with_operator(slice_between(text.start, before)) &&
           !(after < end && strchr("+-*/^=<>([{|", *after));
}

/* Whether there is LaTeX other than that of numbers, \\$ and \\%. */
static bool has_commands(struct slice text)
{
    for (size_t i = 0; i + 1 < text.length; i++)
        if (text.start[i] == '\\' && !strchr("$%,!", text.start[i + 1]))
            return true;
    return false;
}

/* A number alone, or with a unit as its only word: "6 \\text{ hours}".  The unit of the former is empty. */
static bool number_with_unit(struct slice text, struct number *out, struct token *unit)
{
    *unit = (struct token){0};
    if (number_whole(text, out))
        return true;
    if (!number_first(text, out) || out->where.start != text.start)
        return false;
    struct tokens tokens = tokens_of(slice_between(slice_end(out->where), slice_end(text)));
    struct token token;
    while (token_next(&tokens, &token)) {
        bool word = token.kind == TOKEN_WORD && token.text.length > 2;
        if (word ? unit->text.length > 0 : !token_in(&token, " \\text \\mathrm \\ { } "))
            return false;
        *unit = word ? token : *unit;
    }
    return unit->text.length > 0;
}

/* Whether the unit, if there is one, follows the number: "6 hours". */
static bool has_unit(struct slice text, struct slice number, const struct token *unit)
{
    struct tokens tokens = tokens_of(slice_between(slice_end(number), slice_end(text)));
    struct token token;
    if (!unit->text.length)
        return true;
    while (token_next(&tokens, &token))
        if (!token_is(&token, "*"))
            return token_same(&token, unit);
    return false;
}

/* The number stated by a sentence without formulas, "there are 5 such integers", if a number is expected. */
static bool same_number(const struct math *math, struct slice expected, struct slice answer,
                        const struct final_answer *final, struct number *value)
{
    struct number wanted;
    struct token unit;
    struct slice text = final->marker ? final->line : text_without_asides(answer);
    if (!final->marker && concludes_none(text_last_sentence(text)))
        return false;
    if (!final->marker)
        text = slice_between(text.start, slice_end(without_remark(text_last_sentence(text))));
    if (final->marker == FINAL_BOXED || !number_with_unit(expected, &wanted, &unit) ||
        has_commands(text))
        return false;
    if (final->marker ? !stated_after_marker(text, value) : !stated_in_conclusion(text, value))
        return false;
    return stands_apart(text, value->where) && has_unit(text, value->where, &unit) &&
           number_equal(&math->tolerance, &wanted, value);
}

/* Whether a candidate is equal to the expected expression; one that is too long to compare is not the answer. */
static bool compare_all(const struct math *math, struct slice expected,
                        const struct candidates *candidates, struct grade *out)
{
    for (unsigned i = 0; i < candidates->count; i++) {
        bool equal;
        if (!formula_equal(&math->tolerance, expected, candidates->at[i], &equal) && equal) {
            grade_extracted(out, candidates->at[i]);
            return true;
        }
    }
    return false;
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
    (void)why;
    if (formula_equal(&math->tolerance, expected, expected, &equal)) {
        grade_null(out, "the expected expression is too long to compare");
        return ERR_OK;
    }
    if (!final_find(answer, math->final, &final)) {
        grade_false(out, "no marked answer");
        return ERR_OK;
    }
    find_candidates(math, answer, &final, &candidates);
    grade_extracted(out, candidates.count ? candidates.at[0] : answer);
    equal = compare_all(math, expected, &candidates, out);
    if (!equal && same_number(math, expected, answer, &final, &number)) {
        grade_extracted(out, number.where);
        equal = true;
    }
    if (!equal && final.marker != FINAL_BOXED)
        equal = ends_with_words(expected, final.marker ? final_sentence(final.line)
                                                       : text_last_sentence(answer));
    if (equal)
        grade_true(out);
    else
        grade_false(out, "not equal to the expected expression");
    return ERR_OK;
}

/* ---- the value that an answer states ---- */

/* Stores the index found, -1 at first; -2: several. */
static void found_one(int *which, size_t i)
{
    *which = *which == -1 ? (int)i : -2;
}

int formula_stated(const struct slice *expressions, size_t count, struct slice answer,
                   const struct final_answer *marked)
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
        if (stated.length <= LONGEST && expressions[i].length &&
            !formula_equal(&TOLERANCE, expressions[i], stated, &equal) && equal)
            found_one(&exact, i);
        struct numbers rest = {.text = expressions[i]};
        numbers = numbers && number_next(&rest, &value) && !number_next(&rest, &other);
        if (numbers && number_equal(&TOLERANCE, &value, &number))
            found_one(&close, i);
    }
    return exact >= 0 ? exact : numbers && close >= 0 ? close : -1;
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
