/* The table of rules, and the grade that follows from the first under which there is a value. */
#include "graders/reading.h"

#include <ctype.h>

#include "core/text.h"
#include "graders/answer.h"
#include "graders/prose.h"
#include "graders/question.h"
#include "graders/tokens.h"

/* ---- lines and bold ---- */

static void find_whole(struct slice text, struct places *out)
{
    places_add(out, text);
}

/* The last line, and its last sentence: "Airway first! C." */
static void find_last_line(struct slice text, struct places *out)
{
    enum { WORDS_MAX = 2 };
    struct slice line = last_line(text), rest = line, sentence = line;
    while (sentence_next(&rest, &sentence))
        ;
    places_add(out, line);
    if (sentence.start > line.start && slice_is_space(sentence.start[-1]) &&
        is_balanced(sentence) && count_words(sentence) <= WORDS_MAX)
        places_add(out, sentence);
}

static void find_first_line(struct slice text, struct places *out)
{
    struct slice line = {text.start, 0};
    line_next(&text, &line);
    places_add(out, line);
}

/* The only text in bold that has a value, unless the text goes on to a conclusion; or the only one. */
static void find_bold(struct slice text, struct places *out)
{
    struct slice rest = text, sentence, bold, any = {0}, valued = {0}, after = {0};
    unsigned count = 0, values = 0;
    while (values < 2 && sentence_next(&rest, &sentence)) {
        struct slice part = sentence;
        for (; values < 2 && bold_next(&part, &bold); count++) {
            any = bold;
            if (!has_value(bold))
                continue;
            valued = bold;
            after = slice_between(part.start, slice_end(text));
            values++;
        }
        if (part.start > sentence.start && !is_definite(slice_between(sentence.start, part.start)))
            return;
    }
    if (values == 1 && !concludes(after))
        places_add(out, valued);
    else if (values == 0 && count == 1)
        places_add(out, any);
}

/* ---- the last sentence ---- */

/* What follows the last "=" or "is" of the last sentence, outside parentheses; not if several are assigned, "x = 2,
 * y = 3". */
static void find_result(struct slice text, struct places *out)
{
    static const char LINKS[] = " = is are was equals gives yields get leaves : → ";
    struct slice sentence = without_restatement(main_clause(conclusion(last_sentence(text))));
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    const char *value = NULL;
    bool separated = false, equation = false, about = false, valued = false, step = false;
    for (int depth = 0; token_next(&tokens, &token); before = token) {
        depth += token_in(&token, " ( [ { ") - token_in(&token, " ) ] } ");
        bool ratio = token_is(&token, ":") && /* or a time */
                     (before.kind != TOKEN_WORD || before.text.length < 2 ||
                      isdigit((unsigned char)*before.text.start));
        bool list = token_is(&token, ":") && valued; /* "52 cards: 13 in each" */
        valued = valued || has_value(token.text);
        if (depth != 0 || ratio || list)
            continue;
        if (token_is(&token, "=") && separated)
            return;
        separated = separated || (equation && token_in(&token, " , ; and or "));
        equation = equation || token_is(&token, "=");
        about = about || token_is(&token, "≈");
        step = step || token_is(&token, ":"); /* "Subtract the exponents: x^2" */
        if (token_in(&token, LINKS) || (!value && token_is(&token, "≈")) ||
            (token_is(&token, "to") && token_is(&before, "equal")))
            value = tokens.at;
    }
    bool stated =
        (equation || about || step) && is_definite(sentence) && !is_hypothetical(sentence);
    if (value && (stated || is_readable(sentence)))
        places_add(out, slice_between(value, slice_end(sentence)));
}

/* The last formula of the last sentence, with those joined to it: "$x=1$ and $x=2$"; not "the root of $64$". */
static void find_formula(struct slice text, struct places *out)
{
    struct slice sentence = main_clause(conclusion(last_sentence(text)));
    struct slice rest = sentence, formula, last = {0};
    bool aside = false;
    for (const char *end = sentence.start; formula_next(&rest, &formula); end = rest.start) {
        struct slice between = slice_between(end, formula.start);
        struct tokens tokens = tokens_of(between);
        struct token token = {0}, word = {0};
        bool joined = last.length != 0;
        while (token_next(&tokens, &token)) {
            joined = joined && token_in(&token, " and or , $ \\( \\[ ( [ \\ ");
            word = token.kind == TOKEN_WORD ? token : word;
        }
        last = joined ? slice_between(last.start, slice_end(formula)) : formula;
        aside = !joined && token_in(&word, " of by from for with in at than ");
    }
    if (last.length && !aside && is_definite(sentence) && !is_hypothetical(sentence) &&
        slice_end(sentence) - slice_end(last) < 8)
        places_add(out, last);
}

/* The result of the last equation before the last sentence: "14 × 1.2 = 16.8.  So the amount is 16.8." */
static void find_confirmed(struct slice text, struct places *out)
{
    struct slice last = last_sentence(text), result;
    const char *equals = last.start;
    while (equals > text.start && *equals != '=')
        equals--;
    if (equals == text.start || !is_definite(last) || is_hypothetical(last) ||
        memchr(last.start, '=', last.length)) /* a further step */
        return;
    struct slice rest = slice_between(equals + 1, last.start);
    if (sentence_next(&rest, &result))
        places_add(out, without_restatement(result));
}

/* Another form of the value at the end of the last sentence: "It takes 300 seconds, which is 5 minutes." */
static void find_remark(struct slice text, struct places *out)
{
    struct slice last = last_sentence(text), before = without_restatement(last);
    struct slice remark = slice_between(slice_end(before), slice_end(last));
    struct tokens tokens = tokens_of(remark);
    struct token token = {0};
    while (token_next(&tokens, &token) && token_in(&token, " , which "))
        ;
    if (token_in(&token, " is are equals ") && is_definite(last) && !is_hypothetical(last))
        places_add(out, strip_marks(slice_between(tokens.at, slice_end(remark))));
}

/* Not if another sentence concluded before it: "So 15 is the next prime.  17 comes after it." */
static void find_last_sentence(struct slice text, struct places *out)
{
    struct slice last = last_sentence(text), sentence = main_clause(conclusion(last));
    bool concluded = concludes(slice_between(text.start, last.start)) && !concludes(last);
    if (!concluded && is_readable(sentence))
        places_add(out, sentence);
}

/* The whole text, if all of it is readable: its only value. */
static void find_only(struct slice text, struct places *out)
{
    struct slice rest = text, sentence;
    while (sentence_next(&rest, &sentence))
        if (!is_definite(sentence) || has_alternative(sentence) ||
            main_clause(sentence).length < sentence.length)
            return;
    if (language_of(text) != UNCERTAIN)
        places_add(out, text);
}

/* ---- the rules ---- */

enum strength { MARKED, STATED, INFERRED };

static const struct rule {
    const char *name;                                    /* in reasons */
    void (*find)(struct slice text, struct places *out); /* NULL: find_restatement */
    enum place_kind kind;
    enum strength strength;
} RULES[] = {
    {"marker", find_marker, PLACE_LEADING, MARKED},
    {"statement", find_answer_is, PLACE_LEADING, STATED},
    {"last line", find_last_line, PLACE_ALONE, STATED},
    {"first words", find_first_line, PLACE_HEAD, INFERRED},
    {"bold", find_bold, PLACE_ALONE, INFERRED},
    {"restatement", NULL, PLACE_CLAUSE, INFERRED},
    {"confirmed result", find_confirmed, PLACE_CONFIRMED, INFERRED},
    {"remark", find_remark, PLACE_CONFIRMED, INFERRED},
    {"formula", find_formula, PLACE_ALONE, INFERRED},
    {"result", find_result, PLACE_RESULT, INFERRED},
    {"last sentence", find_last_sentence, PLACE_SENTENCE, INFERRED},
    {"beginning", find_first_line, PLACE_BEGINNING, INFERRED},
    {"only value", find_only, PLACE_SENTENCE, INFERRED},
};

enum { RULE_COUNT = COUNT_OF(RULES) };

/* The reading of a place; after a marker also that of a statement, "Answer: The correct option is B." */
static enum value_reading read_place(const struct value_reader *reader, struct slice place,
                                     enum place_kind kind, struct slice *value)
{
    struct places stated = {.count = 0};
    if (place.length > PLACE_LONGEST)
        return READING_NONE;
    enum value_reading reading = reader->read(reader->context, place, kind, value);
    if (reading != READING_NONE || kind != PLACE_LEADING)
        return reading;
    find_answer_is(place, &stated);
    return stated.count == 1 ? reader->read(reader->context, stated.at[0], kind, value) : reading;
}

/* The common reading of the places that a rule finds. */
static enum value_reading read_rule(const struct value_reader *reader, const struct rule *rule,
                                    struct slice text, struct slice *value)
{
    struct places places = {.count = 0};
    enum value_reading common = READING_NONE;
    if (rule->find)
        rule->find(text, &places);
    else if (reader->question)
        find_restatement(reader->question, text, &places);
    for (unsigned i = 0; i < places.count; i++) {
        struct slice read = {0};
        enum value_reading one = read_place(reader, places.at[i], rule->kind, &read);
        if (one == READING_NONE)
            continue;
        common = common == READING_NONE || common == one ? one : READING_UNCLEAR;
        *value = read;
    }
    return common;
}

/* Length of an expected answer in a reason. */
static int shown(struct slice expected)
{
    enum { LENGTH = 60 };
    return expected.length < LENGTH ? (int)expected.length : LENGTH;
}

static void grade_by(const struct value_reader *reader, const struct rule *rule,
                     enum value_reading reading, struct slice text, struct slice value,
                     struct grade *out)
{
    grade_extracted(out, value);
    if (reading == READING_EXPECTED)
        grade_true(out);
    else if (reading == READING_UNCLEAR)
        grade_unread(out, "several values (%s)", rule->name);
    else if (rule->strength == INFERRED && reader->mentions(reader->context, text))
        grade_unread(out, "the %s has another value than the expected one, which is also mentioned",
                     rule->name);
    else
        grade_false(out, "%s, expected %.*s (%s)", out->extracted, shown(reader->expected),
                    reader->expected.start, rule->name);
}

/* "No, ...", "no wait"; not "No bat is blind." */
static bool is_no(const struct token *token, struct tokens after)
{
    struct token next = {0};
    return token_is(token, "no") &&
           (!token_next(&after, &next) || next.kind != TOKEN_WORD || token_is(&next, "wait"));
}

/* Whether what follows a marker or statement takes it back: a sentence that begins with "Wait", or a statement with
 * another value.  Which of the two holds is not known. */
static bool is_revised(const struct value_reader *reader, struct slice text, struct slice stated,
                       enum value_reading reading, bool stated_by_marker)
{
    struct slice after = slice_between(slice_end(stated), slice_end(text)), rest = after, value;
    struct tokens tokens = tokens_of(after);
    struct token token, before = {.kind = TOKEN_LINE};
    for (; token_next(&tokens, &token); before = token) {
        struct slice sentence = {tokens.at, 0}, more = slice_between(tokens.at, slice_end(after));
        bool contrast =
            token_in(&token, " but however ") &&
            (!stated_by_marker || (sentence_next(&more, &sentence) && has_value(sentence)));
        if (before.kind != TOKEN_WORD && !token_is(&before, "(") &&
            (contrast ||
             token_in(&token, " wait actually correction sorry edit hmm oops scratch revised ") ||
             is_no(&token, tokens)))
            return true;
    }
    if (!strip_marks(after).length)
        return false;
    unsigned last = stated_by_marker ? 1 : 2;
    for (unsigned i = 1; i <= last; i++) { /* another statement, another last line */
        enum value_reading later = read_rule(reader, &RULES[i], rest, &value);
        if (later != READING_NONE && later != reading)
            return true;
    }
    return false;
}

/* Whether the last sentence only adds something to an answer before it: it is no conclusion nor calculation, and has no
 * word of the question. */
static bool is_afterthought(const struct value_reader *reader, struct slice text)
{
    struct slice last = last_sentence(text), before = slice_between(text.start, last.start);
    return reader->question && has_value(before) && !concludes(last) &&
           !memchr(last.start, '=', last.length) && is_off_topic(reader->question, last);
}

/* Whether a rule decides by such a value: a restatement and a confirmed result only by the expected one. */
static bool decides(const struct value_reader *reader, const struct rule *rule,
                    enum value_reading reading, struct slice text)
{
    bool last =
        rule->find == find_last_sentence || rule->find == find_result || rule->find == find_formula;
    if (last && reader->states && is_afterthought(reader, text))
        return false;
    if (rule->kind == PLACE_CONFIRMED)
        return reading == READING_EXPECTED && reader->states &&
               reader->states(reader->context, last_sentence(text));
    return rule->kind != PLACE_CLAUSE || reading == READING_EXPECTED;
}

/* `weakest`: of the rules to apply. */
static void grade_text(const struct value_reader *reader, struct slice text, enum final_rule final,
                       enum strength weakest, struct grade *out)
{
    struct slice body = without_afterword(text);
    bool refuses = has_refusal(body) || is_cut(text);
    grade_unread(out, "no answer found in the text");
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        const struct rule *rule = &RULES[i];
        struct slice value = {0};
        if ((final == FINAL_MARKED && rule->strength != MARKED) || rule->strength > weakest ||
            (refuses && rule->strength == INFERRED))
            break;
        struct slice where = rule->strength == MARKED ? text : body;
        enum value_reading reading = read_rule(reader, rule, where, &value);
        if (reading == READING_NONE && rule->strength == MARKED && has_marked_line(text)) {
            grade_unread(out, "the value after the marker cannot be read");
            return;
        }
        if (rule->kind == PLACE_CLAUSE && reading == READING_OTHER) {
            grade_unread(out, "the %s has another value than the expected one", rule->name);
            return;
        }
        if (reading == READING_NONE || !decides(reader, rule, reading, body))
            continue;
        if ((rule->strength <= STATED || rule->kind == PLACE_BEGINNING ||
             rule->kind == PLACE_HEAD) &&
            is_revised(reader, where, value, reading, rule->strength == MARKED))
            grade_unread(out, "what follows the %s takes it back", rule->name);
        else
            grade_by(reader, rule, reading, text, value, out);
        return;
    }
}

void reading_grade(const struct value_reader *reader, struct slice answer, enum final_rule final,
                   struct grade *out)
{
    static const struct rule LINE = {"last line", find_last_line, PLACE_LEADING, MARKED},
                             WHOLE = {"whole text", find_whole, PLACE_LEADING, MARKED};
    if (final == FINAL_LINE || final == FINAL_WHOLE) {
        const struct rule *rule = final == FINAL_LINE ? &LINE : &WHOLE;
        struct slice value = {0};
        enum value_reading reading = read_rule(reader, rule, answer, &value);
        if (reading == READING_NONE)
            grade_unread(out, "no answer found in the %s", rule->name);
        else
            grade_by(reader, rule, reading, answer, value, out);
        return;
    }
    bool by_paragraph;
    struct slice text = before_next_question(answer, &by_paragraph);
    grade_text(reader, text, final, by_paragraph ? STATED : INFERRED, out);
}
