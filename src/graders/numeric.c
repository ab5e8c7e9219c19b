/* The numeric grader: the number in the answer equals the expected one within a tolerance.  Most of it is a reading of
 * sentences that state a result, in digits or words: which of their numbers is it?  Linear in the text. */
#include "graders/number.h"

#include <ctype.h>
#include <math.h>

#include "graders/answer.h"
#include "graders/final.h"
#include "graders/tokens.h"

/* ---- numbers in words ---- */

static const char UNITS[] = " zero one two three four five six seven eight nine ten eleven twelve "
                            "thirteen fourteen fifteen sixteen seventeen eighteen nineteen ";
static const char TENS[] = " twenty thirty forty fifty sixty seventy eighty ninety ";
static const char SCALES[] = " hundred dozen thousand million billion trillion ";
static const double SCALE_VALUES[] = {1e2, 12, 1e3, 1e6, 1e9, 1e12};
static const char PARTS[] =
    " half halves third thirds quarter quarters fourth fourths fifth fifths eighth "
    "eighths tenth tenths ";
static const double PART_VALUES[] = {2, 3, 4, 4, 5, 8, 10};

/* The denominator that the word names; 0 when it does not. */
static double part_of(const struct token *token)
{
    int index = token_index(token, PARTS);
    return index < 0 ? 0 : PART_VALUES[index / 2];
}

/* What was read so far: "two hundred and fifty" is 250 in `group`, thousands and more are in `total`. */
struct words {
    double total, group;
    bool any;
};

/* Adds one word.  False when it does not continue the number: "one two". */
static bool add_word(struct words *words, const struct token *token)
{
    int unit = token_index(token, UNITS), ten = token_index(token, TENS),
        scale = token_index(token, SCALES);
    int last = (int)fmod(words->group, 100);
    if (unit >= 0 || ten >= 0) {
        bool fits = last == 0 || (unit > 0 && unit < 10 && last >= 20 && last % 10 == 0);
        if (words->any && (!fits || unit == 0))
            return false;
        words->group += unit >= 0 ? unit : 10 * (ten + 2);
    } else if (scale >= 0 && scale < 2) {
        if (words->group >= 100)
            return false;
        words->group = (words->any ? words->group : 1) * SCALE_VALUES[scale];
    } else if (scale >= 0) {
        words->total += (words->any ? words->group : 1) * SCALE_VALUES[scale];
        words->group = 0;
    }
    bool taken = unit >= 0 || ten >= 0 || scale >= 0;
    words->any = words->any || taken;
    return taken;
}

/* The number that begins with `first`; *tokens is then after it. */
static bool take_words(struct tokens *tokens, const struct token *first, double *value)
{
    struct words words = {0};
    struct token token = *first;
    struct tokens at = *tokens;
    double part = part_of(first);
    if (part > 0) { /* "half"; "a quarter of" */
        *value = 1 / part;
        return part == 2 || part == 4;
    }
    for (bool more = true; more && add_word(&words, &token);) {
        *tokens = at;
        do
            more = token_next(&at, &token);
        while (more && (token_is(&token, "-") || token_is(&token, "and")));
    }
    *value = words.total + words.group;
    struct tokens look = *tokens;
    if (words.any && token_next(&look, &token) &&
        (!token_is(&token, "-") || token_next(&look, &token)) &&
        (part = part_of(&token)) > 0) { /* "three quarters" */
        *value /= part;
        *tokens = look;
    }
    look = *tokens;
    if (words.any && token_next(&look, &token) && token_is(&token, "and") &&
        token_next(&look, &token) && token_is(&token, "a") && token_next(&look, &token) &&
        (part = part_of(&token)) > 0) {
        *value += 1 / part; /* "two and a half" */
        *tokens = look;
    }
    return words.any;
}

/* "One" in "one of them" and "the right one" is not a number. */
static bool is_pronoun(const struct token *before, const struct token *token, struct tokens after)
{
    static const char BEFORE[] =
        " the this that each every any another no which first last right correct other ";
    struct token next;
    return token_is(token, "one") && slice_end(token->text) == after.at &&
           ((before->kind == TOKEN_WORD && before->text.length && token_in(before, BEFORE)) ||
            (token_next(&after, &next) &&
             token_in(&next, " of another who that can by could might ")));
}

bool number_in_words(struct slice text, struct number *out)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    bool found = false;
    for (; token_next(&tokens, &token); before = token) {
        double value;
        if (token.kind != TOKEN_WORD || !take_words(&tokens, &token, &value) ||
            is_pronoun(&before, &token, tokens))
            continue;
        bool negative = before.text.length && token_in(&before, " minus negative ");
        *out = (struct number){.value = negative ? -value : value};
        out->plain = out->value;
        out->where = slice_between(negative ? before.text.start : token.text.start, tokens.at);
        found = true;
    }
    return found;
}

/* ---- one sentence ---- */

/* Words whose number is a name. */
static const char LABELS[] = " step part problem question case page chapter figure table section "
                             "exercise equation item ";

enum stated { STATED_NONE, STATED_ONE, STATED_SEVERAL };

bool stated_after_equals(struct slice line, struct number *out)
{
    for (size_t i = line.length; i > 0; i--)
        if (line.start[i - 1] == '=') {
            struct slice rest = {line.start + i, line.length - i};
            struct tokens tokens;
            struct token next;
            if (!number_first(rest, out))
                return false;
            tokens = tokens_of(slice_between(slice_end(out->where), slice_end(line)));
            return !token_next(&tokens, &next) ||
                   !token_in(&next, " + - * / × ÷ · "); /* 17 = 8 + 9 */
        }
    return false;
}

/* How far the words before a place are read. */
static const char *near_start(struct slice sentence, const char *place)
{
    enum { REACH = 48 };
    return place - sentence.start > REACH ? place - REACH : sentence.start;
}

/* Does an elaboration follow the number before the colon at `i`: "they have 36: she has 12"? */
static bool is_elaborated(struct slice sentence, size_t i)
{
    const char *start = sentence.start + i, *from = near_start(sentence, start);
    if (sentence.start[i] != ':' || !isdigit((unsigned char)start[-1]) ||
        memchr(from, '=', (size_t)(slice_end(sentence) - from)))
        return false;
    while (start > from && !slice_is_space(start[-1]))
        start--;
    struct tokens tokens = {from, start};
    struct token token = {0};
    while (token_next(&tokens, &token))
        ;
    return token.text.length && !token_in(&token, LABELS);
}

/* "16 (4 * 4)", but not "3 * (4)" */
static bool is_remark(struct slice sentence, size_t i)
{
    struct tokens tokens = {near_start(sentence, sentence.start + i), sentence.start + i};
    struct token token = {0};
    while (token_next(&tokens, &token))
        ;
    return slice_is_space(sentence.start[i - 1]) && !token_in(&token, " + - – − * × ÷ / · = ");
}

/* Up to the reason or a remark in parentheses, if a number comes before that: "16 (4 * 4)". */
static struct slice without_remark(struct slice sentence)
{
    struct slice kept = sentence_without_reason(sentence);
    struct number ignored;
    for (size_t i = 1; i < kept.length; i++)
        if ((kept.start[i] == '(' && is_remark(kept, i)) ||
            (is_elaborated(kept, i)) || /* "36: she has 12" */
            slice_starts((struct slice){kept.start + i, kept.length - i}, ", or "))
            kept.length = i;
    return number_first(kept, &ignored) || number_in_words(kept, &ignored) ? kept : sentence;
}

/* What a number is in its sentence, the likeliest answer last. */
enum role {
    ROLE_NONE,         /* "step 2", "not 7", a part of "9 + 6" */
    ROLE_CIRCUMSTANCE, /* "in 5 days", "for the 16 glasses", "half of 12", "3 more than" */
    ROLE_RESULT,       /* anything else */
};

/* The character next to the number, past blanks, is an operator with a number on its other side: "9 + 6". */
static bool is_operand(struct slice sentence, struct slice number)
{
    static const char OPERATORS[] = " + - – − * × ÷ · ";
    struct tokens before = {near_start(sentence, number.start), number.start},
                  after = {slice_end(number), slice_end(sentence)};
    struct token token, last = {0}, second = {0};
    while (token_next(&before, &token)) {
        second = last;
        last = token;
    }
    bool follows = last.kind == TOKEN_MARK && last.text.length && token_in(&last, OPERATORS) &&
                   second.text.length && isdigit((unsigned char)slice_end(second.text)[-1]);
    bool leads = token_next(&after, &token) && token.kind == TOKEN_MARK &&
                 token_in(&token, OPERATORS) && token_next(&after, &last) &&
                 isdigit((unsigned char)last.text.start[0]);
    return follows || leads;
}

/* What follows makes it a circumstance: "4 fewer than", "3 times as old", "11-year-old". */
static bool is_compared(struct slice sentence, struct slice number)
{
    struct tokens tokens = tokens_of(slice_between(slice_end(number), slice_end(sentence)));
    struct token token;
    bool compound = false;
    for (int i = 0; i < 5 && token_next(&tokens, &token); i++) {
        if (token_in(&token, " than as ") || (compound && token.kind == TOKEN_WORD))
            return true;
        compound = i == 0 && token_is(&token, "-") && !token.spaced;
        if (!compound && (token.kind != TOKEN_WORD || isdigit((unsigned char)token.text.start[0])))
            return false;
    }
    return false;
}

/* The words before a number, the nearest first; articles and Markdown do not count. */
struct lead {
    struct token words[3];
    bool than; /* "than" or "as" since the last comma */
};

static struct lead lead_of(struct slice sentence, struct slice number)
{
    struct tokens tokens = {near_start(sentence, number.start), number.start};
    struct token token;
    struct lead lead = {0};
    while (token_next(&tokens, &token)) {
        if (token_in(&token, " * the all his her their those these every about $ ( "))
            continue;
        lead.words[2] = lead.words[1];
        lead.words[1] = lead.words[0];
        lead.words[0] = token;
        lead.than =
            (lead.than || token_in(&token, " than who whose ")) && !token_in(&token, " , ; = : ");
    }
    return lead;
}

static bool is_circumstance(const struct lead *lead)
{
    static const char LEADS[] =
        " in for per over after at each within during by on from than since until across "
        "among day week month year class grade room number if when twice double with who whose ";
    static const char TOTALS[] =
        " total sum amount average mean cost price profit result area volume length value "
        "distance speed maximum minimum difference product remainder ";
    const struct token *last = &lead->words[0], *before = &lead->words[1];
    bool of_number = token_is(last, "of") && !token_in(before, TOTALS); /* "out of 12" */
    bool after_verb =
        last->text.length > 4 &&
        slice_is((struct slice){slice_end(last->text) - 3, 3}, "ing"); /* "after selling 3" */
    bool adjective = token_in(last, " other original remaining next initial previous ");
    bool purpose = token_is(before, "to") && last->kind == TOKEN_WORD && /* "to fill 4 bags" */
                   !token_in(last, " get obtain find give make yield reach be ") &&
                   !token_in(&lead->words[2], " needs need has have had able going wants get up ");
    if (token_in(
            before,
            " results result resulting resulted arrive arrives arriving bring brings left up "))
        return false; /* "results in 17" */
    return of_number || purpose || token_in(last, LEADS) ||
           ((after_verb || adjective) && token_in(before, LEADS));
}

static enum role role_of(struct slice sentence, struct slice number)
{
    struct lead lead = lead_of(sentence, number);
    const struct token *last = &lead.words[0];
    bool label = last->kind == TOKEN_WORD && token_in(last, LABELS);
    bool denied = token_is_negation(last) || token_is_negation(&lead.words[1]) || lead.than;
    if (label || denied || is_operand(sentence, number))
        return ROLE_NONE;
    return is_circumstance(&lead) || is_compared(sentence, number) ? ROLE_CIRCUMSTANCE
                                                                   : ROLE_RESULT;
}

/* Is the number one of several that are offered: "7 or 8", "between 10 and 12", "x = 2 or x = 3"? */
static bool is_alternative(struct slice sentence, const struct number *number)
{
    static const struct tolerance SAME = {.relative = 1e-9};
    enum { REACH = 60 };
    struct numbers numbers = {.text = sentence};
    struct number other;
    while (number_next(&numbers, &other)) {
        bool before = other.where.start < number->where.start;
        struct tokens tokens = {slice_end(before ? other.where : number->where),
                                before ? number->where.start : other.where.start};
        struct token token;
        unsigned words = 0;
        bool joined = false, apart = false;
        if (other.where.start == number->where.start || tokens.at > tokens.end ||
            tokens.end - tokens.at > REACH || number_equal(&SAME, &other, number))
            continue;
        while (token_next(&tokens, &token)) {
            if (token_in(&token, " or and "))
                joined = true;
            else if (token.kind == TOKEN_WORD)
                apart = apart || (joined ? token.text.length > 1 : ++words > 2);
            else
                apart = apart || !token_in(&token, " $ * = \\boxed { } ");
        }
        if (joined && !apart)
            return true;
    }
    return false;
}

/* A number in words that a verb leads to, after those in digits: "gave away 5 and now has seven left". */
static bool in_words_after(struct slice sentence, const char *after, struct number *out)
{
    struct number number;
    if (!number_in_words(sentence, &number) || number.where.start < after)
        return false;
    struct lead lead = lead_of(sentence, number.where);
    bool total = token_is(&lead.words[0], "of") && token_is(&lead.words[1], "total");
    if (!total &&
        !token_in(&lead.words[0],
                  " is are was has have had gets get got now only be equals makes leaves = : "))
        return false;
    *out = number;
    return true;
}

/* What follows the last "so" or the like, if it has a number: "2^3 = 8, so the root of 8 is 2". */
static struct slice conclusion_of(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    struct number ignored;
    struct slice last = sentence;
    while (token_next(&tokens, &token))
        if (token_in(&token, " so therefore thus hence "))
            last = slice_between(tokens.at, tokens.end);
    return number_first(last, &ignored) || number_in_words(last, &ignored) ? last : sentence;
}

/* The number that a sentence states: the result of its equation, the number that was just computed, or the
 * last one that is not a circumstance. */
static enum stated in_sentence(struct slice sentence, const struct number *computed,
                               struct number *out)
{
    static const struct tolerance SAME = {.relative = 1e-9};
    sentence = conclusion_of(sentence);
    struct slice whole = sentence;
    sentence = without_remark(sentence);
    if (stated_after_equals(sentence, out))
        return is_alternative(sentence, out) ? STATED_SEVERAL : STATED_ONE;
    struct numbers numbers = {.text = sentence};
    struct number number;
    enum role best = ROLE_NONE;
    const char *after = sentence.start;
    while (number_next(&numbers, &number)) {
        after = number.where.start;
        enum role role = role_of(whole, number.where);
        if (role > ROLE_NONE && computed && number_equal(&SAME, computed, &number)) {
            *out = number;
            return STATED_ONE;
        }
        if (role > ROLE_NONE && role >= best) {
            *out = number;
            best = role;
        }
    }
    if (in_words_after(sentence, after, out))
        return STATED_ONE;
    if (best == ROLE_NONE)
        return after == sentence.start && number_in_words(sentence, out) ? STATED_ONE : STATED_NONE;
    return is_alternative(sentence, out) ? STATED_SEVERAL : STATED_ONE;
}

/* ---- the whole answer ---- */

/* The last number in bold: "**$10**", "**Total: 36**"; not "**Step 2**". */
static bool in_bold(struct slice text, struct number *out)
{
    struct slice bold;
    bool found = false;
    while (bold_next(&text, &bold)) {
        struct number number;
        if (!stated_after_equals(bold, &number)) {
            if (!number_first(bold, &number))
                continue;
            size_t before = (size_t)(number.where.start - bold.start);
            if (before >= 3 && !memchr(bold.start, ':', before))
                continue;
        }
        *out = number;
        found = true;
    }
    return found;
}

static struct slice last_paragraph(struct slice text)
{
    text = slice_trim(text);
    for (size_t i = text.length; i > 1; i--)
        if (text.start[i - 1] == '\n' && text.start[i - 2] == '\n')
            return (struct slice){text.start + i, text.length - i};
    return text;
}

/* An answer that comes first, "230 miles.  Each train ...", when no conclusion or computation follows. */
static bool leading(struct slice text, struct number *out)
{
    struct slice sentence, rest = text;
    if (!sentence_next(&rest, &sentence) || !number_first(sentence, out) ||
        out->where.start - sentence.start > 2)
        return false;
    struct slice unit = slice_between(slice_end(out->where), slice_end(sentence));
    struct tokens tokens = tokens_of(unit);
    struct token token;
    struct number other;
    unsigned words = 0;
    while (words <= 3 && token_next(&tokens, &token))
        words += token.kind == TOKEN_WORD;
    bool numbering =
        words == 0 && rest.length && rest.start[0] != '\n' && !memchr(unit.start, '!', unit.length);
    if (words > 3 || numbering || number_first(unit, &other))
        return false;
    tokens = tokens_of(rest);
    while (token_next(&tokens, &token))
        if (token_in(&token, " so therefore thus hence total finally then = "))
            return false;
    return true;
}

/* Without a marker: a number in bold in the last paragraph, or what the last sentence with a number states. */
bool stated_in_conclusion(struct slice answer, struct number *out)
{
    struct slice text = text_without_asides(answer), rest = text, sentence;
    if (text_is_cut(answer) || text_declines(final_sentence(text)) ||
        text_declines(text_last_sentence(text)))
        return false;
    if (in_bold(last_paragraph(text), out) || leading(text, out))
        return true;
    enum stated stated = STATED_NONE;
    bool computed_any = false;
    struct number number, computed;
    while (sentence_next(&rest, &sentence)) {
        enum stated here = in_sentence(sentence, computed_any ? &computed : NULL, &number);
        if (here != STATED_NONE) {
            *out = number;
            stated = here;
        }
        if (stated_after_equals(sentence, &number)) {
            computed = number;
            computed_any = true;
        }
    }
    return stated == STATED_ONE;
}

/* A marker is followed by the number. */
bool stated_after_marker(struct slice line, struct number *out)
{
    struct slice sentence = line, rest = line;
    sentence_next(&rest, &sentence);
    sentence = without_remark(sentence);
    if (stated_after_equals(sentence, out))
        return true;
    if (!number_first(sentence, out) && !number_first(line, out))
        return number_in_words(sentence, out);
    return out->where.start >= slice_end(sentence) ||
           !(is_alternative(sentence, out) || lead_of(sentence, out->where).than);
}

/* ---- the grader ---- */

struct numeric {
    enum final_rule final;
    struct tolerance tolerance;
};

static enum err numeric_configure(const struct grader_config *config, void *state,
                                  struct error *why)
{
    struct numeric *numeric = state;
    enum err err = final_read(config->params, &numeric->final, why);
    return err ? err : tolerance_read(config->params, &numeric->tolerance, why);
}

static bool find_number(const struct numeric *numeric, struct slice answer, struct number *out)
{
    struct final_answer final;
    if (!final_find(answer, numeric->final, &final))
        return false;
    if (final.marker != FINAL_NONE && stated_after_marker(final.line, out))
        return true;
    struct number other;
    if (final.marker != FINAL_NONE && number_first(final.line, &other))
        return false; /* "less than 45", "7 or 8" */
    return numeric->final != FINAL_MARKED &&
           stated_in_conclusion(final.marker ? answer : final.line, out);
}

static enum err numeric_grade(const void *state, const struct grading *what, struct grade *out,
                              struct error *why)
{
    (void)why;
    const struct numeric *numeric = state;
    struct number expected, value;
    struct slice wanted = final_expected(slice_of(what->expected));
    if (!stated_after_equals(wanted, &expected) && !number_first(wanted, &expected) &&
        !number_in_words(wanted, &expected)) {
        grade_null(out, "the expected answer has no number: %.80s", what->expected);
    } else if (!isfinite(expected.value)) {
        grade_null(out, "the expected number is too large to compare");
    } else if (!find_number(numeric, slice_of(what->answer), &value)) {
        grade_false(out, "no number in the answer");
    } else {
        grade_extracted(out, value.where);
        if (number_equal(&numeric->tolerance, &expected, &value))
            grade_true(out);
        else
            grade_false(out, "%.10g, expected %.10g", value.value, expected.value);
    }
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
    .state_size = sizeof(struct numeric),
    .configure = numeric_configure,
    .grade = numeric_grade,
};
