/* The numeric grader: the number that the answer gives equals the expected one within a tolerance. */
#include <ctype.h>
#include <math.h>

#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/number.h"
#include "graders/prose.h"
#include "graders/question.h"
#include "graders/reading.h"
#include "graders/tokens.h"
#include "graders/unit.h"

/* ---- the number at a place ---- */

static const struct tolerance SAME = {.relative = 1e-9};

struct slice number_unit(struct slice text, const struct number *number)
{
    return slice_trim(slice_between(slice_end(number->where), slice_end(text)));
}

/* The last token before a position, without Markdown and currency; looks back over a short way only. */
static struct token token_before(struct slice text, const char *place)
{
    enum { BACK = 40 };
    const char *from = place - text.start > BACK ? place - BACK : text.start;
    struct tokens tokens = {from, place};
    struct token token, last = {0};
    while (token_next(&tokens, &token))
        if (!token_in(&token, " * $ _ ` \\( \\ about approximately exactly roughly only just the a "
                              "an his her their its all "))
            last = token;
    return last;
}

/* Whether the number is part of something else: "23rd", "7:15", "2x", "3^2", "5 + ", "4-6". */
static bool is_part(struct slice text, const struct number *number)
{
    struct tokens after = tokens_of(number_unit(text, number));
    struct token next = {0}, second = {0};
    if (!token_next(&after, &next))
        return false;
    bool attached = slice_end(number->where) == next.text.start;
    struct slice rest = slice_between(slice_end(number->where), slice_end(text));
    if (slice_starts(rest, "^\\circ") || slice_starts(rest, "^{\\circ}"))
        return false;
    if (slice_is(slice_trim(rest), ":1")) /* a ratio to one */
        return false;
    bool digit = token_next(&after, &second) && isdigit((unsigned char)*second.text.start);
    if (attached && next.kind == TOKEN_WORD)
        return token_in(&next, " st nd rd th x y z n i π √ a b c ");
    if (token_in(&next, " squared cubed √ "))
        return true;
    return (token_in(&next, " + - – − * × ÷ · / ^ : = over ") && (digit || attached) &&
            !(token_is(&next, "*") && !digit)) ||
           (attached && token_in(&next, " ( [ "));
}

/* Words before a number that make it a circumstance or a label: "in 3 hours", "step 2". */
static bool is_aside(const struct token *before)
{
    return token_in(before,
                    " in for per after within until since every each by from than with over step "
                    "part problem question case version equation figure table chapter section "
                    "exercise day week month year room page level grade line # first last next "
                    "minimum maximum times half third quarter square ");
}

/* Words before a number that make it a bound. */
static bool is_bound(const struct token *before)
{
    return token_in(before, " under over than least most ");
}

/* Whether it belongs to a calculation. */
static bool is_operand(const struct token *before)
{
    return token_in(before, " + - – − * × ÷ / < > ≤ ≥ sqrt √ ( ");
}

/* Whether the text is only words, as a label or a unit: no digits, and few of them. */
static bool is_words(struct slice text, unsigned most)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    unsigned words = 0;
    while (token_next(&tokens, &token)) {
        if (token.kind == TOKEN_LINE || isdigit((unsigned char)*token.text.start) ||
            token_in(&token, " + - = < > ^ ? ; : or and of to not than was were x y n "))
            return false;
        words += token.kind == TOKEN_WORD;
    }
    return words <= most;
}

/* "in 1953" */
static bool is_year(const struct number *number)
{
    return number->where.length == 4 && number->value >= 1000 && number->value < 2100;
}

/* The only number of a sentence that is not an aside; the same number twice is one. */
static enum number_count only_number(struct slice sentence, struct number *out)
{
    struct numbers numbers = {.text = sentence};
    struct number next;
    unsigned count = 0, all = 0;
    for (; number_next(&numbers, &next); all++) {
        struct token before = token_before(sentence, next.where.start);
        if (is_operand(&before) || is_bound(&before) || is_part(sentence, &next))
            return NUMBER_SEVERAL;
        if (is_aside(&before) && !(token_is(&before, "in") && is_year(&next)))
            continue;
        if (count && !number_equal(&SAME, out, &next))
            return NUMBER_SEVERAL;
        *out = count ? *out : next;
        count++;
    }
    if (count)
        return NUMBER_ONE;
    bool several;
    if (all || !numbers_in_words(sentence, out, &several))
        return NUMBER_NONE;
    return several ? NUMBER_SEVERAL : NUMBER_ONE;
}

/* The text after the last "=" that has a number, "5 * 4 = 20 apples", unless a calculation follows it, "20 = 5 * 4". */
static struct slice after_equals(struct slice text)
{
    struct number number;
    for (size_t i = text.length; i > 0; i--)
        if (text.start[i - 1] == '=' ||
            (i > 2 && slice_starts((struct slice){text.start + i - 3, 3}, "≈"))) {
            struct slice rest = slice_trim((struct slice){text.start + i, text.length - i});
            return number_first(rest, &number) && !is_part(rest, &number) ? rest : text;
        }
    return text;
}

static bool is_given(struct slice question, const struct number *number)
{
    struct numbers numbers = {.text = question};
    struct number given;
    while (number_next(&numbers, &given))
        if (number_equal(&SAME, &given, number))
            return true;
    return false;
}

/* Whether another number follows as an alternative or the end of a range: "7 or 8", "7 to 8", "7, 8"; "0.65 or 65 %" is
 * one number. */
static bool has_other_number(struct slice text, const struct number *number)
{
    struct tokens tokens = tokens_of(number_unit(text, number));
    struct token token = {0};
    unsigned words = 0;
    while (token_next(&tokens, &token) && words < 3 &&
           !token_in(&token, " ( . ; because since as ")) {
        if (token_in(&token, " or and to - – , / & ")) {
            struct token next = {0};
            struct tokens look = tokens;
            while (token_next(&look, &next) && next.kind == TOKEN_MARK)
                ;
            bool digits = isdigit((unsigned char)(next.text.length ? *next.text.start : 'x'));
            struct number other;
            bool same = digits && token_is(&token, "or") &&
                        number_first(slice_between(next.text.start, tokens.end), &other) &&
                        number_equal(&SAME, number, &other);
            return digits && !same;
        }
        words += token.kind == TOKEN_WORD;
    }
    return false;
}

/* Depth of parentheses at a position. */
static int depth_at(struct slice text, const char *position)
{
    int depth = 0;
    for (const char *c = text.start; c < position; c++)
        depth += (*c == '(') - (*c == ')');
    return depth;
}

static enum number_count number_not_given(struct slice clause,
                                          const struct asked_question *question, struct number *out)
{
    enum number_count count = NUMBER_NONE;
    struct number next;
    struct numbers numbers = {.text = clause};
    while (number_next(&numbers, &next)) {
        struct token before = token_before(clause, next.where.start);
        if (is_bound(&before))
            return NUMBER_NONE;
        bool calculated = is_operand(&before) || is_part(clause, &next);
        if (calculated || depth_at(clause, next.where.start) > 0 || is_given(question->stem, &next))
            continue;
        if (is_aside(&before) && !asks_with(question, &before) &&
            !(token_is(&before, "in") && is_year(&next)))
            return NUMBER_NONE;
        bool other = count == NUMBER_ONE && !number_equal(&SAME, out, &next);
        *out = next;
        if (other || has_other_number(clause, &next))
            return NUMBER_SEVERAL;
        count = NUMBER_ONE;
    }
    return count;
}

/* The text up to a remark in parentheses, "255 (0xFF)"; all of it without a number before that. */
static struct slice before_parentheses(struct slice text)
{
    struct number number;
    for (size_t i = 1; i < text.length; i++)
        if (text.start[i] == '(' && text.start[i - 1] == ' ') {
            struct slice before = {text.start, i};
            return number_first(before, &number) ? before : text;
        }
    return text;
}

static enum number_count in_sentence(struct slice sentence, struct number *out)
{
    sentence = before_parentheses(sentence);
    if (only_number(sentence, out) != NUMBER_ONE)
        return NUMBER_NONE; /* not known which */
    struct slice unit = number_unit(sentence, out);
    if (memchr(unit.start, ':', unit.length)) /* "3 cases: ..." */
        return NUMBER_NONE;
    bool derived = has_token(sentence, " half twice double triple root times "); /* "half of 42" */
    return derived ? NUMBER_NONE : NUMBER_ONE;
}

/* The text after a label, "Total cost: " or "x = ". */
static struct slice without_label(struct slice text)
{
    enum { LABEL_WORDS = 6 };
    for (size_t i = 0; i < text.length; i++)
        if (text.start[i] == ':' || text.start[i] == '=') {
            struct slice label = {text.start, i};
            bool variable = slice_trim(label).length == 1 && isalpha((unsigned char)*label.start);
            bool short_label = variable || (is_words(label, LABEL_WORDS) && is_definite(label));
            return short_label
                       ? strip_marks((struct slice){text.start + i + 1, text.length - i - 1})
                       : text;
        }
    return text;
}

/* "About 343 m/s" */
static struct slice without_approximation(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token word;
    bool found = token_next(&tokens, &word) &&
                 token_in(&word, " about approximately exactly roughly only just ≈ ~ ");
    return found ? slice_trim(slice_between(tokens.at, slice_end(text))) : text;
}

/* A number with perhaps a label before it and a unit after it. */
static enum number_count alone(struct slice text, struct number *out)
{
    enum { UNIT_WORDS = 4 };
    text = without_approximation(strip_marks(without_label(strip_marks(text))));
    bool digits = number_first(text, out);
    if (!digits && !number_in_words(text, out))
        return NUMBER_NONE;
    bool first = out->where.start == text.start;
    bool only = is_words(number_unit(text, out), UNIT_WORDS) && !is_part(text, out);
    return first && only && is_definite(text) ? NUMBER_ONE : NUMBER_NONE;
}

/* The number after a marker, or the result of a sentence, which it must end. */
static enum number_count leading(struct slice span, bool ends, struct number *out)
{
    struct slice sentence = span, rest = span;
    sentence_next(&rest, &sentence);
    if (slice_starts(slice_trim(rest), "=")) /* "6! = 720" */
        sentence = span;
    struct slice text = strip_marks(after_equals(before_parentheses(sentence)));
    if (alone(span, out) == NUMBER_ONE || alone(sentence, out) == NUMBER_ONE)
        return NUMBER_ONE;
    if (!number_first(text, out))
        return !ends && is_definite(text) && number_in_words(text, out) ? NUMBER_ONE : NUMBER_NONE;
    struct slice before = slice_between(text.start, out->where.start);
    struct number other;
    before = without_approximation(before);
    struct token fraction;
    struct tokens unit = tokens_of(number_unit(text, out));
    bool more = token_next(&unit, &fraction), calculated = more && token_is(&fraction, "=");
    if (more && token_is(&fraction, "over"))
        return NUMBER_NONE; /* "22 over 7" */
    if (calculated && !ends && is_words(before, 1))
        return NUMBER_ONE; /* "17 = 8 + 9" */
    if (!is_definite(before) || is_part(text, out))
        return NUMBER_NONE;
    if (has_other_number(text, out))
        return NUMBER_SEVERAL;
    struct slice rest_of_it = number_unit(text, out);
    if (ends && (number_first(rest_of_it, &other) || number_in_words(rest_of_it, &other)))
        return NUMBER_NONE;
    if (is_words(before, !ends))
        return NUMBER_ONE;
    struct token last = token_before(text, out->where.start);
    return !ends && only_number(text, out) == NUMBER_ONE && !is_aside(&last) && !is_bound(&last) &&
                   !is_operand(&last)
               ? NUMBER_ONE
               : NUMBER_NONE;
}

/* The beginning of a sentence, up to an explanation: "$38: $8 for the pens and ...", "56 cm² (...)". */
static struct slice head_of(struct slice sentence)
{
    for (size_t i = 1; i + 1 < sentence.length; i++)
        if ((sentence.start[i] == ':' || (sentence.start[i] == '(' && i > 1)) &&
            (slice_is_space(sentence.start[i + 1]) || slice_is_space(sentence.start[i - 1])))
            return (struct slice){sentence.start, i};
    return sentence;
}

/* The number of the first clause, with few other words: "You'd pay $27: ...", "56! You can ...". */
static enum number_count at_head(struct slice text, struct number *out)
{
    enum { WORDS_MAX = 4 };
    struct slice rest = text, sentence, clause;
    if (!sentence_next(&rest, &sentence) || !clause_next(&sentence, &clause) ||
        !is_definite(clause) || concludes(text) ||
        memchr(slice_end(clause), '=', (size_t)(slice_end(text) - slice_end(clause))))
        return NUMBER_NONE;
    if (only_number(clause, out) != NUMBER_ONE)
        return NUMBER_NONE;
    return count_words(clause) <= WORDS_MAX + 1 ? NUMBER_ONE : NUMBER_NONE;
}

enum number_count number_at(struct slice span, enum place_kind kind, struct number *out)
{
    if (kind == PLACE_SENTENCE)
        return in_sentence(span, out);
    if (kind == PLACE_HEAD)
        return at_head(span, out);
    if (kind == PLACE_BEGINNING) {
        struct slice rest = span, sentence = span;
        bool item = sentence_next(&rest, &sentence) && rest.length && sentence.length <= 3;
        return item ? NUMBER_NONE
                    : alone(head_of(main_clause(sentence)), out); /* "1. Add 8 and 9." */
    }
    return kind == PLACE_ALONE || kind == PLACE_CONFIRMED
               ? alone(span, out)
               : leading(span, kind == PLACE_RESULT, out);
}

enum number_count number_read(struct slice span, enum place_kind kind,
                              const struct asked_question *question, struct number *out)
{
    enum number_count count = kind == PLACE_CLAUSE ? NUMBER_NONE : number_at(span, kind, out);
    if (kind == PLACE_HEAD)
        return question->stem.length && count == NUMBER_ONE && !is_given(question->stem, out)
                   ? NUMBER_ONE
                   : NUMBER_NONE;
    bool within = kind == PLACE_CLAUSE || kind == PLACE_SENTENCE;
    bool given = count == NUMBER_ONE && is_given(question->stem, out);
    if (!within || !question->stem.length || (count != NUMBER_NONE && !given))
        return count;
    struct number other;
    if (number_not_given(span, question, &other) != NUMBER_ONE)
        return given ? NUMBER_ONE : NUMBER_NONE;
    *out = other;
    return NUMBER_ONE;
}

/* ---- the grader ---- */

struct numeric {
    enum final_rule final;
    struct tolerance tolerance;
};

struct numeric_reader {
    const struct tolerance *tolerance;
    struct number expected;
    struct slice unit, answer;
    struct asked_question question;
};

static enum err numeric_configure(const struct grader_config *config, void *state,
                                  struct error *why)
{
    struct numeric *numeric = state;
    enum err err = final_read(config->params, &numeric->final, why);
    return err ? err : tolerance_read(config->params, &numeric->tolerance, why);
}

/* "1.500" may be 1500, as it is written in German, but not among English words. */
static bool equals_in_thousands(const struct numeric_reader *numeric, const struct number *number)
{
    struct slice text = number->where;
    const char *point = memchr(text.start, '.', text.length);
    struct number thousands = {.value = 1000 * number->value, .plain = 1000 * number->plain};
    bool three = point && point > text.start && slice_end(text) - point == 4 && point[-1] != '0' &&
                 language_of(numeric->answer) != ENGLISH;
    for (int i = 1; i <= 3 && three; i++)
        three = isdigit((unsigned char)point[i]);
    return three && number_equal(numeric->tolerance, &numeric->expected, &thousands);
}

/* The exact side of "1/3 ≈ 0.333". */
static bool equals_exactly(const struct numeric_reader *numeric, struct slice span,
                           const struct number *number)
{
    struct slice before = slice_between(span.start, number->where.start), rest = before;
    struct number exact;
    bool about = before.length > 4 && text_occurs(before, slice_of("≈"), false);
    return about && number_last(rest, &exact) &&
           memchr(exact.where.start, '/', exact.where.length) &&
           number_equal(numeric->tolerance, &numeric->expected, &exact);
}

/* The first side of two forms of a value: "2400 Pa = 2.4 kPa". */
static bool equals_first_side(const struct numeric_reader *numeric, struct slice span)
{
    const char *sign = memchr(span.start, '=', span.length);
    struct slice side = slice_between(span.start, sign ? sign : span.start);
    struct number number;
    return alone(side, &number) == NUMBER_ONE && slice_trim(number_unit(side, &number)).length &&
           number_equal(numeric->tolerance, &numeric->expected, &number) &&
           !units_differ(numeric->unit, number_unit(side, &number));
}

static enum value_reading numeric_read(const void *context, struct slice span, enum place_kind kind,
                                       struct slice *value)
{
    const struct numeric_reader *numeric = context;
    struct number number;
    enum number_count count = number_read(span, kind, &numeric->question, &number);
    if (count == NUMBER_NONE)
        return READING_NONE;
    *value = number.where;
    if (count == NUMBER_SEVERAL)
        return READING_UNCLEAR;
    bool equal = number_equal(numeric->tolerance, &numeric->expected, &number) ||
                 equals_in_thousands(numeric, &number) || equals_exactly(numeric, span, &number);
    if (kind == PLACE_HEAD && !equal) /* it is not known whether it is the answer */
        return READING_NONE;
    if (!equal && kind == PLACE_LEADING && equals_first_side(numeric, span))
        return READING_EXPECTED;
    if (!units_differ(numeric->unit, number_unit(span, &number)))
        return equal ? READING_EXPECTED : READING_OTHER;
    return equal ? READING_OTHER : READING_NONE; /* 300 minutes may be 5 hours */
}

static bool numeric_mentions(const void *context, struct slice text)
{
    const struct numeric_reader *numeric = context;
    struct numbers numbers = {.text = text};
    struct number number;
    while (number_next(&numbers, &number))
        if (number_equal(numeric->tolerance, &numeric->expected, &number))
            return true;
    return number_in_words(text, &number) &&
           number_equal(numeric->tolerance, &numeric->expected, &number);
}

/* "12 more girls than boys" */
static bool is_difference(struct slice text, const struct number *number)
{
    struct tokens tokens = tokens_of(number_unit(text, number));
    struct token next;
    return token_next(&tokens, &next) && token_in(&next, " more fewer less times ");
}

/* Not as part of a calculation or of a list: "the numbers are 17, 18 and 19". */
bool number_stated(struct slice sentence, const struct tolerance *tolerance,
                   const struct number *expected)
{
    struct numbers numbers = {.text = sentence};
    struct number number;
    while (number_next(&numbers, &number)) {
        struct token before = token_before(sentence, number.where.start);
        bool stands = !is_operand(&before) && !is_part(sentence, &number) &&
                      !has_other_number(sentence, &number) && !is_difference(sentence, &number);
        if (stands && number_equal(tolerance, expected, &number))
            return true;
    }
    return number_in_words(sentence, &number) && number_equal(tolerance, expected, &number);
}

static bool numeric_states(const void *context, struct slice sentence)
{
    const struct numeric_reader *numeric = context;
    return number_stated(sentence, numeric->tolerance, &numeric->expected);
}

static enum err numeric_grade(const void *state, const struct grading *what, struct grade *out,
                              struct error *why)
{
    const struct numeric *numeric = state;
    struct numeric_reader reader = {.tolerance = &numeric->tolerance};
    struct text expected = {0}, answer = {0};
    (void)why;
    answer_plain(&expected, what->expected);
    answer_plain(&answer, what->answer);
    struct slice wanted = after_equals(expected_value(slice_of(text_get(&expected))));
    bool known =
        number_first(wanted, &reader.expected) || number_in_words(wanted, &reader.expected);
    if (!known) {
        grade_null(out, "the expected answer has no number: %.80s", what->expected);
    } else if (!isfinite(reader.expected.value)) {
        grade_null(out, "the expected number is too large to compare");
    } else {
        struct value_reader with = {
            &reader,      reader.expected.where, what->problem ? &reader.question : NULL,
            numeric_read, numeric_mentions,      numeric_states};
        if (what->problem) {
            question_read(&reader.question, slice_of(what->problem));
            if (answer.bytes)
                mask_asked_words(&reader.question, answer.bytes);
        }
        reader.unit = number_unit(wanted, &reader.expected);
        reader.answer = slice_of(text_get(&answer));
        reading_grade(&with, slice_of(text_get(&answer)), numeric->final, out);
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

const struct grader_driver grader_numeric = {
    .name = "numeric",
    .summary = "the number in the answer, within a tolerance",
    .params = PARAMS,
    .expects_answer = true,
    .state_size = sizeof(struct numeric),
    .configure = numeric_configure,
    .grade = numeric_grade,
};
