/* The math grader: equivalent expressions, in LaTeX or plain notation.  formula.h decides whether two are equivalent;
 * this file reads the expression at a place of the answer. */
#include <ctype.h>
#include <math.h>

#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/formula.h"
#include "graders/number.h"
#include "graders/prose.h"
#include "graders/question.h"
#include "graders/reading.h"
#include "graders/tokens.h"
#include "graders/unit.h"

struct math {
    enum final_rule final;
    struct tolerance tolerance;
};

struct math_reader {
    const struct tolerance *tolerance;
    struct slice expected, words; /* words: those of \\text{words} */
    struct slice answer;
    bool is_number; /* with perhaps a unit */
    bool is_words;  /* "no solution" */
    struct number number;
    struct asked_question question;
};

static enum err math_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct math *math = state;
    enum err err = final_read(config->params, &math->final, why);
    return err ? err : tolerance_read(config->params, &math->tolerance, why);
}

/* ---- expressions at a place ---- */

/* A word of prose, not a name in an expression or a product of variables: at least three letters, Greek aside. */
static bool is_prose(const struct token *token)
{
    static const char NAMES[] = " sin cos tan cot sec csc ln log lg exp sqrt pi arcsin arccos "
                                "arctan max min gcd lcm mod inf infinity oo or and ";
    static const char SHORT[] = " is at by of in to so we it as be on no an if do up ";
    unsigned letters = 0;
    if (token->kind != TOKEN_WORD || token_in(token, NAMES))
        return false;
    for (size_t i = 0; i < token->text.length; i++) {
        unsigned char c = (unsigned char)token->text.start[i];
        bool greek = c == 0xCE || c == 0xCF;
        letters += isalpha(c)                           ? 1
                   : c >= 0xE0 && c != 0xE2 && c < 0xF0 ? 3
                                                        : c >= 0xC3 && c < 0xE0 && !greek;
        if (letters == 0 && isdigit(c))
            return false;
    }
    bool function = false; /* "sin²θ", "log₂" */
    static const char *const FUNCTIONS[] = {"sin", "cos", "tan", "log", "sec", "csc", "cot"};
    for (size_t i = 0; i < COUNT_OF(FUNCTIONS); i++)
        function = function || (slice_starts(token->text, FUNCTIONS[i]) &&
                                (unsigned char)token->text.start[3] >= 0x80);
    return (letters >= 3 && !function) || token_in(token, SHORT);
}

static bool contains(struct slice text, const char *part)
{
    return text_occurs(text, slice_of(part), false);
}

/* Whether the text has a word of prose, but for those of \\text{} and \\begin{}; *first is that word. */
static bool has_prose(struct slice text, struct slice *first)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0}, second = {0};
    for (; token_next(&tokens, &token); second = before, before = token) {
        bool command = token_is(&before, "{") && second.text.length && *second.text.start == '\\';
        *first = token.text;
        if (is_prose(&token) && !command)
            return true;
    }
    return false;
}

/* Whether the text is a few words, as a unit is; "nine integers" is a value. */
static bool is_unit(struct slice text)
{
    enum { WORDS_MAX = 3 };
    struct tokens tokens = tokens_of(text);
    struct token token;
    struct number number;
    unsigned words = 0;
    if (number_in_words(text, &number))
        return false;
    while (token_next(&tokens, &token)) {
        bool word = token.kind == TOKEN_WORD && !isdigit((unsigned char)*token.text.start);
        if (token_in(&token, " is are was equals the a an has ") ||
            (!word && !token_in(&token, " . / ^ ² ³ ) ")))
            return false;
        words += word;
    }
    return words <= WORDS_MAX && is_definite(text);
}

/* Whether the text is an expression and nothing else but perhaps a unit: formulas that are joined, or text without
 * prose. */
static bool is_expression(struct slice text)
{
    struct slice rest = text, formula, prose;
    const char *end = text.start;
    bool formulas = false;
    while (formula_next(&rest, &formula)) {
        if (has_prose(slice_between(end, formula.start), &prose))
            return false;
        end = rest.start;
        formulas = true;
    }
    if (contains(text, "i.e.") || contains(text, "→") || contains(text, "0b") ||
        contains(text, "0x"))
        return false;
    struct slice plain = formulas ? slice_between(end, slice_end(text)) : text;
    if (!has_prose(plain, &prose))
        return text.length > 0;
    struct number number;
    return (formulas || number_first(slice_between(text.start, prose.start), &number) ||
            memchr(text.start, '\\', text.length)) &&
           is_unit(slice_between(prose.start, slice_end(text)));
}

static enum value_reading compare(const struct math_reader *math, struct slice text)
{
    bool equal;
    text = slice_trim(text);
    if (!text.length)
        return READING_NONE;
    if (formula_equal(math->tolerance, math->expected, text, &equal))
        return READING_UNCLEAR; /* too long or too large to compare */
    return equal ? READING_EXPECTED : READING_OTHER;
}

/* A ratio "4:7" as the fraction that is expected. */
static bool is_ratio(const struct math_reader *math, struct slice text)
{
    const char *colon = memchr(text.start, ':', text.length);
    struct number first, second;
    if (!colon || !math->is_number ||
        !number_whole(slice_trim(slice_between(text.start, colon)), &first) ||
        !number_whole(slice_trim(slice_between(colon + 1, slice_end(text))), &second))
        return false;
    double value = first.value / second.value;
    struct number ratio = {.value = value, .plain = value};
    return number_equal(math->tolerance, &math->number, &ratio);
}

/* Whether the left side of an equation only names what the right side is: "x", "f(4)", "3 * 4", "∫ 2x dx". */
static bool is_name(struct slice left)
{
    static const char *const OPERATIONS[] = {"∫", "\\int", "d/d", "\\frac{d",
                                             "∑", "\\sum", "lim", "\\lim"};
    for (size_t i = 0; i < COUNT_OF(OPERATIONS); i++)
        if (slice_starts(left, OPERATIONS[i]))
            return true;
    if (contains(left, "^{-1}(")) /* of an inverse function */
        return true;
    struct tokens tokens = tokens_of(left);
    struct token token;
    unsigned names = 0, operators = 0;
    while (token_next(&tokens, &token)) {
        names += isalpha((unsigned char)*token.text.start);
        operators += token_in(&token, " + - − * / ^ · × \\cdot \\times \\frac \\sqrt ");
        operators += isdigit((unsigned char)*token.text.start) && token.text.length > 1 &&
                     isalpha((unsigned char)slice_end(token.text)[-1]); /* 2A */
    }
    return !names || !operators;
}

static bool is_same(const struct tolerance *tolerance, struct slice a, struct slice b)
{
    bool equal;
    return !formula_equal(tolerance, a, b, &equal) && equal;
}

/* What stands after the last "=", "x = 3 * 4 = 12", if the first side names it or is the same; empty if there are
 * several equations. */
static struct slice right_side(const struct tolerance *tolerance, struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    const char *first = NULL, *last = NULL;
    for (int depth = 0; token_next(&tokens, &token); before = token) {
        depth += token_in(&token, " ( [ ") - token_in(&token, " ) ] ");
        if (depth <= 0 && token_in(&token, " , ; and or "))
            return (struct slice){text.start, 0};
        if (!token_is(&token, "=") || token_in(&before, " < > ! "))
            continue;
        first = first ? first : token.text.start;
        last = tokens.at;
    }
    if (!last)
        return (struct slice){text.start, 0};
    struct slice right = strip_marks(slice_between(last, slice_end(text))),
                 left = slice_between(text.start, first),
                 all_left = slice_between(text.start, last - 1);
    bool holds =
        is_name(left) || is_same(tolerance, left, right) || is_same(tolerance, all_left, right);
    return holds ? right : (struct slice){text.start, 0};
}

/* The label of an option and what follows it, "\\textbf{(D)} 12". */
static bool has_labeled(const struct math_reader *math, struct slice text)
{
    const char *close = slice_starts(text, "\\text") ? memchr(text.start, '}', text.length) : NULL;
    return close && close[-1] == ')' &&
           (compare(math, slice_between(text.start, close + 1)) == READING_EXPECTED ||
            compare(math, slice_between(close + 1, slice_end(text))) == READING_EXPECTED);
}

/* Whether the text is an equation that does not give the value of its left side, "3x - y = 5". */
static bool is_relation(const struct math_reader *math, struct slice text)
{
    const char *sign = memchr(text.start, '=', text.length);
    return sign && !memchr(math->expected.start, '=', math->expected.length) &&
           !has_token(text, " , ; and or < > ≤ ≥ ") && !is_name(slice_between(text.start, sign));
}

/* An expression, or the right side of an equation. */
static enum value_reading compare_forms(const struct math_reader *math, struct slice text)
{
    bool expression = is_expression(text) || contains(text, "\\boxed");
    if (!expression && !math->is_words)
        return READING_NONE;
    if (compare(math, right_side(math->tolerance, text)) == READING_EXPECTED ||
        is_ratio(math, text))
        return READING_EXPECTED;
    if (is_relation(math, text))
        return READING_UNCLEAR;
    enum value_reading reading = compare(math, text);
    if (reading != READING_OTHER)
        return reading;
    if (has_labeled(math, text))
        return READING_EXPECTED;
    bool several =
        has_token(text, " and or ; ") && !memchr(math->expected.start, ',', math->expected.length);
    const char *equals_sign = memchr(text.start, '=', text.length);
    several = several || (equals_sign && memchr(equals_sign + 1, '=',
                                                (size_t)(slice_end(text) - equals_sign - 1)));
    if (several)
        return READING_UNCLEAR;
    return expression ? reading : READING_NONE;
}

/* The formula of a text that has just one; empty otherwise. */
static struct slice only_formula(struct slice text)
{
    struct slice rest = text, first = {text.start, 0}, other;
    if (formula_next(&rest, &first) && formula_next(&rest, &other))
        first.length = 0;
    return first;
}

/* Whether the text has a digit or a number in words. */
static bool has_number(struct slice text)
{
    struct number ignored;
    for (size_t i = 0; i < text.length; i++)
        if (isdigit((unsigned char)text.start[i]))
            return true;
    return number_in_words(text, &ignored);
}

/* The text without a remark: "x + 1, which ...", "2 because ...", "2/3 (66.7%)". */
static struct slice without_remark(struct slice text)
{
    static const char REMARKS[] = " because since where when which for with ≈ ";
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    for (; token_next(&tokens, &token); before = token) {
        bool aside =
            token_is(&token, "(") && token.spaced && slice_end(text)[-1] == ')' &&
            (token_in(&before, " } ° $ ! ") || isdigit((unsigned char)slice_end(before.text)[-1]));
        struct slice rest = slice_between(tokens.at, slice_end(text)), prose;
        bool remark = token_in(&token, REMARKS) && is_definite(rest) && !has_token(rest, " = ; ") &&
                      !concludes(rest) && !(token_is(&token, "≈") && has_prose(rest, &prose));
        if (token.text.start > text.start && (aside || remark))
            return strip_marks(slice_between(
                text.start, token_in(&before, " , ( ") ? before.text.start : token.text.start));
    }
    return text;
}

/* The text without a last remark on its value: "√13, roughly 3.61", "36π (about 113.1)". */
static struct slice without_rounding(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    for (; token_next(&tokens, &token); before = token)
        if (token_in(&token, " ≈ about roughly approximately which or ") &&
            token_in(&before, " ( , ") && before.text.start > text.start)
            return strip_marks(slice_between(text.start, before.text.start));
    return text;
}

/* What follows an arrow or "i.e.": "x → 4", "100 - 1, i.e. 99". */
static struct slice after_arrow(struct slice text)
{
    struct slice prose;
    if (has_prose(text, &prose) && !contains(text, "i.e."))
        return text;
    static const char *const ARROWS[] = {"→", "⟹", "⇒", "=>", "\\implies", "\\Rightarrow", "i.e."};
    for (size_t at = text.length; at-- > 0;)
        for (size_t i = 0; i < COUNT_OF(ARROWS); i++) {
            struct slice rest = {text.start + at, text.length - at};
            if (slice_starts(rest, ARROWS[i]))
                return strip_marks(slice_between(rest.start + strlen(ARROWS[i]), slice_end(text)));
        }
    return text;
}

static struct slice first_word(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token.kind == TOKEN_WORD)
            return token.text;
    return (struct slice){text.start, 0};
}

/* Whether there is LaTeX other than that of numbers, \$ and \%. */
static bool has_commands(struct slice text)
{
    for (size_t i = 0; i + 1 < text.length; i++)
        if (text.start[i] == '\\' && !strchr("$%,!", text.start[i + 1]))
            return true;
    return false;
}

/* Whether the text is all of a box, where "20!" is a factorial. */
static bool is_boxed(const struct math_reader *math, struct slice text)
{
    return text.start > math->answer.start && text.start[-1] == '{' && *slice_end(text) == '}';
}

/* The number of the place, if one is expected and the place is prose. */
static enum value_reading read_number(const struct math_reader *math, struct slice span,
                                      enum place_kind kind, struct slice *value)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    struct number number;
    struct slice rest = span, formula;
    bool factorial = is_boxed(math, span) && contains(span, "!");
    if (!math->is_number || formula_next(&rest, &formula) || has_commands(span) || factorial)
        return READING_NONE;
    enum number_count count = number_read(span, kind, &math->question, &number);
    if (count == NUMBER_NONE)
        return READING_NONE;
    *value = number.where;
    if (count == NUMBER_SEVERAL)
        return READING_UNCLEAR;
    struct slice unit = number_unit(math->expected, &math->number),
                 other = number_unit(span, &number);
    if (!number_equal(math->tolerance, &math->number, &number) || units_differ(unit, other))
        return READING_OTHER;
    struct slice wanted = first_word(unit), found = first_word(other);
    bool apples = !wanted.length || !found.length || fold_equal(&FOLD, wanted, found);
    return apples ? READING_EXPECTED : READING_UNCLEAR; /* "12 pears" for 12 apples */
}

/* The expression at the end of a sentence: all after its last word. */
static struct slice tail(const struct math_reader *math, struct slice sentence)
{
    struct slice rest = strip_marks(sentence), prose, last = {0};
    while (has_prose(rest, &prose) && !is_unit(slice_between(prose.start, slice_end(rest)))) {
        rest = slice_between(slice_end(prose), slice_end(rest));
        last = prose;
    }
    struct token word = {.kind = TOKEN_WORD, .text = last};
    bool aside = last.length && (token_in(&word, " of by from than except about over ") ||
                                 (math->is_number && token_in(&word, " at for ")));
    bool closes =
        rest.length && slice_end(rest)[-1] == ')' && !memchr(rest.start, '(', rest.length);
    return aside || closes ? (struct slice){rest.start, 0} : strip_marks(rest);
}

/* The expression that begins the place, in one of its readings. */
static enum value_reading read_leading(const struct math_reader *math, struct slice span,
                                       enum place_kind kind, struct slice *value)
{
    struct slice line = is_boxed(math, span) ? span : strip_marks(span), rest = line,
                 sentence = line;
    sentence_next(&rest, &sentence);
    sentence = is_boxed(math, span) ? sentence : strip_marks(sentence);
    struct slice end = tail(math, sentence), formula = only_formula(sentence);
    if (kind == PLACE_RESULT && !end.length)
        formula.length = 0; /* "the root of $64$" */
    const struct slice forms[] = {span,
                                  line,
                                  sentence,
                                  formula,
                                  without_remark(sentence),
                                  without_rounding(sentence),
                                  after_arrow(sentence),
                                  kind == PLACE_RESULT ? end : formula};
    enum value_reading best = READING_NONE;
    if (kind == PLACE_LEADING && !is_relation(math, span) &&
        compare(math, span) == READING_EXPECTED)
        return READING_EXPECTED;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        enum value_reading reading = forms[i].length ? compare_forms(math, forms[i]) : READING_NONE;
        if (reading == READING_NONE || (best != READING_NONE && reading == READING_OTHER))
            continue;
        best = reading;
        *value = forms[i];
        if (reading == READING_EXPECTED)
            return reading;
    }
    enum value_reading number = read_number(math, span, kind, value);
    bool undecided = kind == PLACE_RESULT && !math->is_number; /* a later rule may read all of it */
    return number != READING_NONE ? number : undecided ? READING_NONE : best;
}

static bool ends_with(struct slice sentence, struct slice words)
{
    struct slice text = strip_marks(sentence);
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    return text.length >= words.length &&
           fold_equal(&FOLD, words, (struct slice){slice_end(text) - words.length, words.length}) &&
           (text.length == words.length || text.start[text.length - words.length - 1] == ' ');
}

/* "Yes, it converges." */
static bool begins_with(struct slice text, struct slice words)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    return text.length > words.length && text.start[words.length] == ',' &&
           fold_equal(&FOLD, words, (struct slice){text.start, words.length});
}

static enum value_reading read_sentence(const struct math_reader *math, struct slice sentence,
                                        struct slice *value)
{
    struct slice formula = only_formula(sentence), rest = sentence;
    if (math->is_words && ends_with(sentence, math->words)) {
        *value = math->words;
        return READING_EXPECTED;
    }
    struct slice last = tail(math, sentence);
    bool ends = formula.length && slice_end(sentence) - slice_end(formula) < 8;
    *value = formula;
    if (ends)
        return last.length ? compare_forms(math, formula) : READING_NONE; /* "of $64$" */
    if (formula_next(&rest, &formula))
        return READING_NONE;
    enum value_reading number = read_number(math, sentence, PLACE_SENTENCE, value);
    if (number != READING_NONE)
        return number;
    *value = last;
    if (language_of(sentence) == FOREIGN && has_value(slice_between(sentence.start, last.start)))
        return READING_NONE;
    return compare_forms(math, last) == READING_EXPECTED ? READING_EXPECTED : READING_NONE;
}

static enum value_reading read_alone(const struct math_reader *math, struct slice span,
                                     struct slice *value)
{
    struct slice text = strip_marks(span);
    if (math->is_words && begins_with(text, math->words))
        return READING_EXPECTED;
    const struct slice forms[] = {span, text, without_remark(text), after_arrow(text),
                                  is_expression(text) ? only_formula(text) : text};
    enum value_reading best = READING_NONE;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        enum value_reading reading = compare_forms(math, forms[i]);
        const char *end = slice_end(forms[i]);
        bool cut = end < slice_end(text) && has_number(slice_between(end, slice_end(text)));
        if (reading == READING_EXPECTED)
            return reading;
        if (best == READING_NONE && !cut) /* else the value may be in the remark */
            best = reading;
    }
    enum value_reading number = read_number(math, span, PLACE_ALONE, value);
    return number != READING_NONE ? number : best;
}

static enum value_reading math_read(const void *context, struct slice span, enum place_kind kind,
                                    struct slice *value)
{
    const struct math_reader *math = context;
    *value = span;
    if (kind == PLACE_HEAD || kind == PLACE_CLAUSE)
        return read_number(math, span, kind, value) == READING_EXPECTED ? READING_EXPECTED
                                                                        : READING_NONE;
    if (kind == PLACE_SENTENCE)
        return read_sentence(math, span, value);
    if (kind == PLACE_ALONE || kind == PLACE_CONFIRMED || kind == PLACE_BEGINNING)
        return read_alone(math, span, value);
    return read_leading(math, span, kind, value);
}

/* Only a number is found in any form; another expression may always stand there in one that is not recognized. */
static bool math_mentions(const void *context, struct slice text)
{
    const struct math_reader *math = context;
    struct numbers numbers = {.text = text};
    struct number number;
    while (math->is_number && number_next(&numbers, &number))
        if (number_equal(math->tolerance, &math->number, &number))
            return true;
    bool words = math->is_number && number_in_words(text, &number);
    return words || !math->is_number;
}

/* A number in any role; another expression as a formula or at the end. */
static bool math_states(const void *context, struct slice sentence)
{
    const struct math_reader *math = context;
    struct slice rest = sentence, formula;
    if (math->is_number)
        return number_stated(sentence, math->tolerance, &math->number);
    while (formula_next(&rest, &formula))
        if (compare_forms(math, formula) == READING_EXPECTED)
            return true;
    return compare_forms(math, tail(math, without_restatement(sentence))) == READING_EXPECTED;
}

/* ---- the grader ---- */

static bool is_only_words(struct slice expected)
{
    struct tokens tokens = tokens_of(expected);
    struct token token;
    bool words = false;
    while (token_next(&tokens, &token)) {
        if (token.kind != TOKEN_WORD || isdigit((unsigned char)*token.text.start))
            return false;
        words = words || token.text.length > 1;
    }
    return words;
}

/* The words of \text{words}. */
static struct slice without_text_command(struct slice expected)
{
    struct slice text = slice_trim(expected);
    bool command = slice_starts(text, "\\text{") && text.start[text.length - 1] == '}';
    return command ? slice_trim((struct slice){text.start + 6, text.length - 7}) : expected;
}

/* No unit, or one in words: "\\text{ cm}"; 12\\pi and 4! are no numbers with a unit. */
static bool is_plain_unit(struct slice unit)
{
    struct tokens tokens = tokens_of(unit);
    struct token token;
    while (token_next(&tokens, &token))
        if (!token_in(&token, " \\text \\mathrm \\ { } . % \\% $ ^ \\circ ° / 2 3 ") &&
            (token.kind != TOKEN_WORD || token.text.length < 2))
            return false;
    return true;
}

static enum err math_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    const struct math *math = state;
    struct text expected = {0}, answer = {0};
    bool equal;
    (void)why;
    answer_plain(&expected, what->expected);
    answer_plain(&answer, what->answer);
    struct slice wanted = expected_value(slice_of(text_get(&expected)));
    struct math_reader reader = {
        .tolerance = &math->tolerance, .expected = wanted, .words = without_text_command(wanted)};
    reader.is_words = is_only_words(reader.words);
    reader.is_number = number_at(wanted, PLACE_ALONE, &reader.number) == NUMBER_ONE &&
                       isfinite(reader.number.value) &&
                       is_plain_unit(number_unit(wanted, &reader.number));
    if (formula_equal(&math->tolerance, wanted, wanted, &equal)) {
        grade_null(out, "the expected expression is too long to compare");
    } else {
        struct value_reader with = {
            &reader,   wanted,        what->problem ? &reader.question : NULL,
            math_read, math_mentions, math_states};
        if (what->problem) {
            question_read(&reader.question, slice_of(what->problem));
            if (answer.bytes)
                mask_asked_words(&reader.question, answer.bytes);
        }

        reader.answer = slice_of(text_get(&answer));
        reading_grade(&with, reader.answer, math->final, out);
    }
    text_release(&expected);
    text_release(&answer);
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
    .expects_answer = true,
    .state_size = sizeof(struct math),
    .configure = math_configure,
    .grade = math_grade,
};
