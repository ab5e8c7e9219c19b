/* The number that an answer states as its result, in digits or words: for the graders of numbers, formulas and
 * choices.  Linear time.
 *
 * In this order: a marked answer (final.h), its result after "=" or its first number; a number in bold in the last
 * paragraph; one that the answer begins with; that of the last sentence that states one.  The last clause of a sentence
 * ("so", "but", after a reason) decides: the result of an equation, or a later number that a verb leads to; the number
 * that was just computed, there or before that clause; the last result; the last circumstance ("in 5 days").  Never
 *   parts        "9 + 6", "7:15", "23rd", "sqrt(12)", "half of 12", "f(3)", "step 2"
 *   bounds       "at least 7", "more than 7", "almost 7", "7 or more"
 *   denials      "not 7", "7 is wrong"
 * nor any number of a sentence that only mentions it: a question, a doubt, the view of others, a given value. */
#include "graders/number.h"

#include <ctype.h>

#include "graders/answer.h"
#include "graders/final.h"
#include "graders/tokens.h"

/* ---- one sentence ---- */

/* Words whose number is a name. */
static const char LABELS[] =
    " step part problem question case page chapter figure table section exercise equation item "
    "room version january february march april may june july august september october "
    "november december ";

static const struct tolerance SAME = {.relative = 1e-9};

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
                   !token_in(&next, " + - * / × ÷ · minus plus times "); /* 17 = 8 + 9 */
        }
    return false;
}

/* How far the words before a position are read. */
static const char *near_start(struct slice sentence, const char *place)
{
    enum { REACH = 48 };
    return place - sentence.start > REACH ? place - REACH : sentence.start;
}

/* "16 (4 * 4)", but not "3 * (4)" nor "is (4 + 6)/2" */
static bool is_remark(struct slice sentence, size_t i)
{
    struct tokens tokens = {near_start(sentence, sentence.start + i), sentence.start + i};
    struct token token = {0};
    while (token_next(&tokens, &token))
        ;
    return slice_is_space(sentence.start[i - 1]) &&
           !token_in(&token, " + - – − * × ÷ / · = is are was equals ");
}

/* "100 miles ≈ 160 km", but not "1/3 ≈ 0.33" nor "1/3 cup ≈ 0.33 cups" */
static bool is_conversion(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, unit = {0};
    while (token_next(&tokens, &token) && !token_is(&token, "≈"))
        before = token;
    while (token_next(&tokens, &unit) &&
           (unit.kind != TOKEN_WORD || isdigit((unsigned char)unit.text.start[0])))
        ;
    return before.kind == TOKEN_WORD && before.text.length && unit.kind == TOKEN_WORD &&
           unit.text.length && !isdigit((unsigned char)before.text.start[0]) &&
           tolower((unsigned char)before.text.start[0]) !=
               tolower((unsigned char)unit.text.start[0]);
}

/* The number in digits at `open`, "ten dollars ($10)". */
static bool encloses_number(struct slice text, size_t open)
{
    const char *close = memchr(text.start + open, ')', text.length - open);
    struct number ignored;
    return close && number_whole(slice_between(text.start + open + 1, close), &ignored);
}

/* The text up to a reason or a remark in parentheses, if a number precedes it: "16 (4 * 4)".  Another interpretation is
 * a remark, too: "18 a day, which would be 126 a week". */
static struct slice without_remark(struct slice sentence)
{
    struct slice kept = is_conversion(sentence) ? sentence : sentence_without_reason(sentence);
    struct number first, ignored;
    bool digits = number_first(kept, &first); /* "ninety, or 90" has its digits later */
    for (size_t i = 1; i < kept.length; i++) {
        struct slice rest = {kept.start + i, kept.length - i};
        bool after = digits && first.where.start < rest.start;
        bool words = !after && rest.start[0] == '(' && encloses_number(kept, i);
        if ((rest.start[0] == '(' && is_remark(kept, i) && !words) ||
            (after && (slice_starts(rest, ", or ") || slice_starts(rest, ", which would be "))))
            kept.length = i;
    }
    return number_first(kept, &ignored) || number_in_words(kept, &ignored) ? kept : sentence;
}

/* The role of a number in its sentence, the most likely answer last. */
enum role {
    ROLE_NONE,         /* "step 2", "not 7", "at least 7", "7:15", a part of "9 + 6" */
    ROLE_CIRCUMSTANCE, /* "in 5 days", "for the 16 glasses", "3 more than" */
    ROLE_RESULT,       /* anything else */
};

/* The tokens next to a number. */
struct neighbors {
    struct token words[3]; /* before it, the nearest first; articles and Markdown do not count */
    struct token next, second, mark; /* after it; the mark directly before it */
    bool than;                       /* "than" since the last comma or verb */
    bool required;                   /* "must" or "need" since the last comma */
    bool who;                        /* "who" since the last comma */
};

static struct neighbors neighbors_of(struct slice sentence, struct slice number)
{
    static const char SKIPPED[] = " * a an the all his her their its our my your those these every "
                                  "about very $ ( away off back ";
    static const char NEEDS[] = " must need needs needed require requires required requiring ";
    struct tokens before = {near_start(sentence, number.start), number.start},
                  after = {slice_end(number), slice_end(sentence)};
    struct token token;
    struct neighbors found = {0};
    while (token_next(&before, &token)) {
        found.mark = token;
        if (token_in(&token, SKIPPED))
            continue;
        found.words[2] = found.words[1];
        found.words[1] = found.words[0];
        found.words[0] = token;
        found.who =
            (found.who || token_in(&token, " who whose ")) && !token_in(&token, " , ; = : ");
        found.required =
            (found.required || token_in(&token, NEEDS)) && !token_in(&token, " , ; : ");
        found.than = (found.than || token_is(&token, "than")) &&
                     !token_in(&token, " , ; = : which is are gives makes equals leaves ");
    }
    if (token_next(&after, &found.next) && token_next(&after, &found.second))
        return found;
    return found;
}

static bool begins_with_digit(const struct token *token)
{
    return token->text.length && isdigit((unsigned char)token->text.start[0]);
}

/* Part of an expression, a time, an ordinal: "9 + 6", "7:15", "sqrt(12)", "23rd", "20% of", "half of 12". */
static bool is_fragment(const struct neighbors *near, struct slice number)
{
    static const char OPERATORS[] = " + - – − * × ÷ · minus plus times ";
    const struct token *last = &near->words[0], *next = &near->next;
    bool attached = next->text.length && !next->spaced;
    bool operand = (token_in(last, OPERATORS) && begins_with_digit(&near->words[1])) ||
                   (token_in(next, OPERATORS) &&
                    (begins_with_digit(&near->second) || (attached && token_is(next, "+"))));
    bool clock = (token_is(next, ":") && begins_with_digit(&near->second) && attached) ||
                 (token_is(last, ":") && !last->spaced && begins_with_digit(&near->words[1]) &&
                  slice_end(last->text) == number.start);
    bool ordinal = attached && ((token_in(next, " st nd rd th ") && /* "he came 3rd" */
                                 near->second.kind == TOKEN_WORD && near->second.text.length) ||
                                token_in(next, " x y n i π √ \\pi \\sqrt "));
    bool share = token_is(next, "of") && slice_end(number)[-1] == '%' &&
                 (begins_with_digit(&near->second) || token_is(&near->second, "$"));
    bool label = token_is(&near->mark, "#") && slice_end(near->mark.text) == number.start;
    bool function =
        slice_starts(last->text, "log") ||
        token_in(last, " sqrt √ \\sqrt log ln sin cos tan exp root twice double triple ") ||
        token_in(next, " squared cubed ") ||
        (token_is(last, "of") &&
         token_in(&near->words[1], " half third quarter root square cube out twice multiple "));
    bool argument = token_is(&near->mark, "(") && !near->mark.spaced && /* f(17) */
                    slice_end(near->mark.text) == number.start && last->kind == TOKEN_WORD &&
                    last->text.length && slice_end(last->text) == near->mark.text.start;
    return operand || clock || ordinal || share || label || function || argument;
}

/* "at least 7", "more than 7", "> 7", "almost 7": not the number itself, unless it is what is needed, "must score at
 * least 7". */
static bool is_bound(const struct neighbors *near)
{
    const struct token *last = &near->words[0], *before = &near->words[1];
    static const char SIGNS[] = " < > ≤ ≥ \\le \\leq \\ge \\geq \\lt \\gt ";
    if (near->than || near->who || token_is_cjk_bound(last) ||
        (near->next.text.length && token_in(&near->next, SIGNS)) ||
        token_in(last, " almost nearly exceeds exceeding beyond below above "))
        return true;
    if (token_in(last, SIGNS)) /* not that of a quotation */
        return !token_in(last, " > < ") || (before->text.length && !token_in(before, SIGNS));
    if (token_is(&near->next, "or") && token_in(&near->second, " more fewer less "))
        return true;
    if (token_in(last, " least most minimum maximum ") && token_is(before, "at"))
        return !near->required && !token_in(&near->words[2], " takes take buy be ");
    if ((token_is(last, "to") && token_is(before, "close")) ||
        (token_is(last, "as") && token_in(before, " many much long old ")))
        return true;
    if (token_is(last, "to") && token_is(before, "up"))
        return !token_in(&near->words[2], " round rounds rounded rounding adds add sum comes ");
    return token_in(last, " over under ") &&
           (!before->text.length || token_in(before, " just well slightly little bit is are was "));
}

/* "not 7", "7 is wrong", "7 is too large" */
static bool is_denied(const struct neighbors *near)
{
    return token_is_negation(&near->words[0]) || token_is_negation(&near->words[1]) ||
           (token_in(&near->next, " is was ") &&
            (token_in(&near->second, " wrong incorrect too false ") ||
             token_is_negation(&near->second)));
}

/* Whether what follows makes it a circumstance: "4 fewer than", "3 times as old", "11-year-old". */
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

static bool is_circumstance(const struct neighbors *near)
{
    static const char LEADS[] =
        " in for per over after at each within during by on from than since until across "
        "among day week month year class grade room number if when twice double with who whose ";
    static const char TOTALS[] =
        " total sum amount average mean cost price profit result area volume length value "
        "distance speed maximum minimum difference product remainder increase decrease drop rise "
        "gain "
        "loss change gap score ";
    const struct token *last = &near->words[0], *before = &near->words[1];
    bool of_number = token_is(last, "of") && !token_in(before, TOTALS); /* "out of 12" */
    bool after_verb =
        last->text.length > 4 &&
        slice_is((struct slice){slice_end(last->text) - 3, 3}, "ing"); /* "after selling 3" */
    bool adjective = token_in(last, " other original remaining next initial previous ");
    bool purpose = token_is(before, "to") && last->kind == TOKEN_WORD && /* "to fill 4 bags" */
                   !token_in(last, " get obtain find give make yield reach be ") &&
                   !token_in(&near->words[2], " needs need has have had able going wants get up ");
    if (token_in(before, " results result resulting resulted arrive arrives arriving bring brings "
                         "ends finishes ") ||
        (token_in(before, " left up ") && !token_in(last, " for at ")))
        return false; /* "results in 17", "is left with 4" */
    return of_number || purpose || token_in(last, LEADS) ||
           ((after_verb || adjective) && token_in(before, LEADS)) ||
           (token_in(last, " selling buying using making ") && before->kind == TOKEN_WORD);
}

/* An element of a set, "{−1, 0, 1}"; not \\frac{1}{2}. */
static bool is_element(struct slice sentence, struct slice number)
{
    enum { REACH = 48 };
    const char *from = near_start(sentence, number.start), *open = number.start,
               *close = slice_end(number), *end = slice_end(sentence);
    end = end - close > REACH ? close + REACH : end;
    while (open > from && *open != '{' && *open != '}')
        open--;
    while (close < end && *close != '{' && *close != '}')
        close++;
    bool command = open > from && (strchr("}]", open[-1]) || isalpha((unsigned char)open[-1]));
    return *open == '{' && close < end && *close == '}' && !command &&
           memchr(open, ',', (size_t)(close - open));
}

static enum role role_of(struct slice sentence, struct slice number)
{
    struct neighbors near = neighbors_of(sentence, number);
    const struct token *last = &near.words[0];
    bool label = last->text.length && token_in(last, LABELS);
    if (label || is_fragment(&near, number) || is_bound(&near) || is_denied(&near) ||
        is_element(sentence, number))
        return ROLE_NONE;
    return is_circumstance(&near) || is_compared(sentence, number) ? ROLE_CIRCUMSTANCE
                                                                   : ROLE_RESULT;
}

/* Whether the tokens between two numbers join them as alternatives: "or", "or x =". */
static bool are_joined(struct tokens tokens)
{
    struct token token;
    unsigned words = 0;
    bool joined = false, apart = false;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, " or and "))
            joined = true;
        else if (token.kind == TOKEN_WORD)
            apart = apart || (joined ? token.text.length > 1 : ++words > 2);
        else
            apart = apart || !token_in(&token, " $ * = \\boxed { } ");
    }
    return joined && !apart;
}

/* Whether the number is one of several alternatives: "7 or 8", "between 10 and 12", "x = 2 or x = 3". */
static bool is_alternative(struct slice sentence, const struct number *number)
{
    enum { REACH = 60 };
    struct numbers numbers = {.text = sentence};
    struct number other;
    while (number_next(&numbers, &other)) {
        bool before = other.where.start < number->where.start;
        struct tokens tokens = {slice_end(before ? other.where : number->where),
                                before ? number->where.start : other.where.start};
        if (other.where.start == number->where.start || tokens.at > tokens.end ||
            tokens.end - tokens.at > REACH || number_equal(&SAME, &other, number) ||
            !are_joined(tokens))
            continue;
        struct neighbors near = neighbors_of(sentence, before ? number->where : other.where);
        if (!token_in(&near.next, " are is were was remain ")) /* and 2 are left */
            return true;
    }
    return false;
}

static const char VERBS[] =
    " is are was has have had gets get got now only be equals makes leaves leaving gives giving "
    "remain remains totals = : ";

/* A number in words that a verb leads to, after those in digits: "gave away 5 and now has seven left". */
static bool in_words_after(struct slice sentence, const char *after, bool verb, struct number *out)
{
    struct number number;
    if (!number_in_words(sentence, &number) || number.where.start < after)
        return false;
    struct neighbors near = neighbors_of(sentence, number.where);
    bool total = token_is(&near.words[0], "of") && token_is(&near.words[1], "total");
    if (verb && !total && !token_in(&near.words[0], VERBS))
        return false;
    *out = number;
    return verb || role_of(sentence, number.where) != ROLE_NONE;
}

/* The number that follows "i.e." or ", that is"; NULL for any other token, and if it is part of an expression. */
static const char *after_restating(const struct token *token, const struct token *before,
                                   struct tokens after)
{
    struct token next = {0};
    struct number number;
    if (token_is(token, "i") && slice_starts(slice_between(after.at, after.end), ".e."))
        after.at += 3;
    else if (!token_is(token, "that") || !token_is(before, ",") || !token_next(&after, &next) ||
             !token_is(&next, "is"))
        return NULL;
    while (after.at < after.end && strchr(" ,", *after.at))
        after.at++;
    struct slice rest = slice_between(after.at, after.end);
    return number_first(rest, &number) && number.where.start == rest.start &&
                   role_of(rest, number.where) == ROLE_RESULT
               ? rest.start
               : NULL;
}

/* "so", "therefore", "así"; not "and so on" */
static bool is_concluding(const struct token *token, struct tokens after)
{
    struct token next;
    if (!token_in(token, " so therefore thus hence but however así donc daher "))
        return false;
    return !token_is(token, "so") || !token_next(&after, &next) || !token_in(&next, " on far ");
}

/* Whether a reason or condition begins here, before its conclusion: "since x > 0, x = 4", "= 9, and since ...". */
static bool opens_reason(const struct token *token, const struct token *before)
{
    if (token_in(token, " if when "))
        return before->kind == TOKEN_LINE;
    return token_in(token, " since because as given ") &&
           (before->kind != TOKEN_WORD ? !token_is(before, ",") : token_is(before, "and"));
}

/* The clause after the last "so" or similar, "but", or a reason that comes first, if it has a number: "2^3 = 8, so the
 * root of 8 is 2", "since x > 0, x = 4". */
static struct slice conclusion_of(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {.kind = TOKEN_LINE};
    struct number number;
    const char *latest = number_last(sentence, &number) ? number.where.start : sentence.start;
    if (number_in_words(sentence, &number) && number.where.start > latest)
        latest = number.where.start;
    struct slice last = sentence;
    for (bool reason = false; token_next(&tokens, &token) && tokens.at <= latest; before = token) {
        if (opens_reason(&token, &before))
            reason = true;
        if (is_concluding(&token, tokens) || (reason && token_is(&token, ","))) {
            last = slice_between(tokens.at, tokens.end);
            reason = false;
        }
        const char *restated = after_restating(&token, &before, tokens);
        if (restated && restated <= latest)
            last = slice_between(restated, tokens.end);
    }
    return last;
}

static bool is_article_next(struct tokens after)
{
    struct token next;
    return token_next(&after, &next) && token_in(&next, " a an "); /* "can't be a fraction" */
}

/* Whether the sentence only mentions a number: a question, a doubt, the view of others, a given value. */
static bool is_noncommittal(struct slice sentence)
{
    static const char DOUBTS[] = " doubt mistaken mistake misconception wondering wrong depends ";
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, first = {0};
    for (bool others = false, asks = false; token_next(&tokens, &token); before = token) {
        first = first.text.length ? first : token;
        asks = asks || token_in(&token, " know tell say ask asks ");
        others = others || token_in(&token, " people students others some ");
        if (token_in(&token, DOUBTS) || (others && token_in(&token, " say says answer think ")) ||
            (token_is(&token, "be") && token_in(&before, " could might may can't cannot ") &&
             !is_article_next(tokens)) ||
            (token_is_negation(&before) && token_in(&token, " think believe ")) ||
            (token_in(&token, " believed thought ") && token_is(&before, "i")) ||
            (token_in(&before, " problem question ") &&
             token_in(&token, " says mentions states asks ")) ||
            (token_is(&before, "how") && asks) ||
            (token_in(&before, " we given ") && token_in(&token, " know that ")))
            return true;
    }
    return token_is(&token, "?") &&
           token_in(&first,
                    " is are was could would should can does do did why what which how given ");
}

/* A later number of the sentence to which a verb leads: "2 × 3 = 6, and half of that is 3". */
static bool restated_after(struct slice sentence, const char *after, struct number *out)
{
    static const char GIVING[] = " gives give giving leaves leaving makes making gets ";
    struct numbers numbers = {.text = sentence};
    struct number number;
    bool found = false;
    while (number_next(&numbers, &number)) {
        if (number.where.start <= after)
            continue;
        struct neighbors near = neighbors_of(sentence, number.where);
        bool total = token_is(&near.words[0], "of") && token_is(&near.words[1], "total");
        if (role_of(sentence, number.where) != ROLE_RESULT ||
            !(total || token_in(&near.words[0], VERBS) ||
              token_in(&near.words[0], " cost costs ") || token_in(&near.words[1], GIVING) ||
              token_in(&near.words[2], GIVING)))
            continue;
        *out = number;
        found = true;
    }
    return found;
}

static bool is_joined(struct slice sentence, struct slice number)
{
    struct neighbors near = neighbors_of(sentence, number);
    return token_is(&near.words[0], "and");
}

/* "1729 = 9³ + 10³" */
static bool is_left_side(struct slice sentence, struct number *out)
{
    struct number number;
    if (!number_first(sentence, &number) || number.where.start > sentence.start + 1)
        return false;
    struct neighbors near = neighbors_of(sentence, number.where);
    if (token_is(&near.next, "="))
        *out = number;
    return token_is(&near.next, "=");
}

/* The number that was computed; 7 for -7 in "7 degrees below zero". */
static bool is_computed(struct slice sentence, const struct number *computed,
                        const struct number *number)
{
    struct tokens after = {slice_end(number->where), slice_end(sentence)};
    struct token token;
    if (number_equal(&SAME, computed, number))
        return true;
    for (int i = 0; i < 3 && token_next(&after, &token); i++)
        if (token_is(&token, "below"))
            return computed->value == -number->value;
    return false;
}

/* Whether the text only lists parts: "10 in the bottom row, 9 in the next"; not "8 pens each, 24 in total". */
static bool lists_parts(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    struct numbers parts = {.text = text};
    struct number part;
    while (token_next(&tokens, &token))
        if (token_in(&token, " = each per every total altogether all together "))
            return false;
    size_t count = 0;
    while (count < 2 && number_next(&parts, &part))
        count++;
    return count == 2;
}

/* The first colon or dash between words; NULL if there is none. */
static const char *find_colon(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_is(&token, ":") || (token.spaced && token_in(&token, " – — ")))
            return token.text.start;
    return NULL;
}

/* The text up to the colon of "has 55 cans: 10 in the bottom row, 9 ...": the parts of a number that a verb led to or
 * that came first. */
static struct slice without_breakdown(struct slice sentence)
{
    const char *colon = find_colon(sentence);
    struct number number;
    if (!colon || !lists_parts(slice_between(colon, slice_end(sentence))))
        return sentence;
    struct slice kept = slice_between(sentence.start, colon);
    if (!number_last(kept, &number) || colon - slice_end(number.where) > 24 ||
        role_of(kept, number.where) != ROLE_RESULT)
        return sentence;
    struct neighbors near = neighbors_of(kept, number.where);
    bool first = number.where.start == sentence.start && near.next.kind == TOKEN_WORD &&
                 near.next.text.length;
    return first || token_in(&near.words[0], " is are was has have had makes totals ") ? kept
                                                                                       : sentence;
}

/* The number that a sentence states: the result of its equation, the number that was just computed, or the
 * last one that is not a circumstance. */
static enum stated in_sentence(struct slice sentence, const struct number *computed,
                               struct number *out)
{
    struct number before;
    struct slice whole = conclusion_of(sentence);
    bool equation = whole.start > sentence.start &&
                    stated_after_equals(slice_between(sentence.start, whole.start), &before);
    computed = equation ? &before : computed;
    sentence = without_breakdown(without_remark(whole));
    if (is_noncommittal(sentence))
        return STATED_NONE;
    if (stated_after_equals(sentence, out)) {
        restated_after(sentence, slice_end(out->where), out);
        return is_alternative(sentence, out) ? STATED_SEVERAL : STATED_ONE;
    }
    struct numbers numbers = {.text = sentence};
    struct number number;
    enum role best = ROLE_NONE, previous = ROLE_NONE;
    const char *after = sentence.start;
    while (number_next(&numbers, &number)) {
        after = number.where.start;
        enum role role = role_of(whole, number.where);
        if (role == ROLE_RESULT && previous == ROLE_CIRCUMSTANCE && is_joined(whole, number.where))
            role = ROLE_CIRCUMSTANCE; /* "for 3 shirts and 1 hat" */
        previous = role;
        if (role > ROLE_NONE && computed && is_computed(whole, computed, &number)) {
            *out = *computed;
            restated_after(sentence, slice_end(number.where), out);
            return STATED_ONE;
        }
        if (role > ROLE_NONE && role >= best) {
            *out = number;
            best = role;
        }
    }
    if (best == ROLE_NONE && is_left_side(sentence, out))
        return STATED_ONE;
    if (in_words_after(sentence, best == ROLE_RESULT ? after : sentence.start, best != ROLE_NONE,
                       out))
        return STATED_ONE;
    if (best < ROLE_RESULT && equation) { /* "= 3.50, which is what she owes for the 2 books" */
        *out = before;
        return STATED_ONE;
    }
    if (best == ROLE_NONE)
        return STATED_NONE;
    return is_alternative(sentence, out) ? STATED_SEVERAL : STATED_ONE;
}

/* ---- the whole answer ---- */

/* Whether the sentence continues to another number: "had **12** and ate 5, so 7 are left". */
static bool concludes_later(struct slice text, struct slice number)
{
    struct slice sentence = text, rest = text;
    struct number other;
    while (sentence_next(&rest, &sentence) && slice_end(sentence) < number.start)
        ;
    struct slice conclusion = conclusion_of(sentence);
    return conclusion.start > number.start && number_first(conclusion, &other) &&
           role_of(conclusion, other.where) == ROLE_RESULT;
}

/* The last number in bold: "**$10**", "**Total: 36**"; not "**Step 2**". */
static bool in_bold(struct slice text, struct number *out)
{
    struct slice bold, whole = text;
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
        struct neighbors near = neighbors_of(whole, number.where);
        if (is_denied(&near))
            continue;
        *out = number;
        found = true;
    }
    return found && !concludes_later(whole, out->where);
}

static struct slice last_paragraph(struct slice text)
{
    text = slice_trim(text);
    for (size_t i = text.length; i > 1; i--)
        if (text.start[i - 1] == '\n' && text.start[i - 2] == '\n')
            return (struct slice){text.start + i, text.length - i};
    return text;
}

/* The text after a number, up to its explanation: " ml" of "500 ml, which is half of a liter". */
static struct slice unit_after(const struct number *number, struct slice sentence)
{
    struct slice unit = slice_between(slice_end(number->where), slice_end(sentence));
    for (size_t i = 0; i < unit.length; i++)
        if (slice_starts((struct slice){unit.start + i, unit.length - i}, ", which is "))
            unit.length = i;
    return unit;
}

/* The text without sentences in parentheses at the end: "Mia is 11.  (Her brother is 15.  They add up to 26.)" */
static struct slice without_parenthesis(struct slice text)
{
    struct number ignored;
    if (!text.length || slice_end(text)[-1] != ')')
        return text;
    for (size_t i = text.length; i > 2; i--)
        if (text.start[i - 1] == '(') {
            struct slice kept = slice_trim((struct slice){text.start, i - 1});
            bool apart = kept.length && strchr(".!\n", slice_end(kept)[-1]);
            return apart && number_first(kept, &ignored) ? kept : text;
        }
    return text;
}

/* Whether it numbers a list item or a question: "1. Add them up", "3. Yes", not "27. Luis had 15 stamps, ...".  An
 * explanation of a number contains others in its only line. */
static bool is_numbering(const struct number *number, struct slice mark, struct slice rest)
{
    struct number other;
    return number->value < 2 || !slice_is(slice_trim(mark), ".") ||
           memchr(rest.start, '\n', rest.length) || !number_first(rest, &other);
}

/* An answer that comes first, "230 miles.  Each train ...", when no conclusion or computation follows. */
static bool leading(struct slice text, struct number *out)
{
    struct slice sentence, rest = text;
    if (!sentence_next(&rest, &sentence))
        return false;
    sentence = without_breakdown(sentence);
    if (!(number_first(sentence, out) || number_in_words(sentence, out)) ||
        out->where.start - sentence.start > 2 || role_of(sentence, out->where) == ROLE_NONE ||
        is_noncommittal(sentence))
        return false;
    struct slice unit = unit_after(out, sentence);
    struct tokens tokens = tokens_of(unit);
    struct token token;
    struct number other;
    unsigned words = 0;
    while (words <= 3 && token_next(&tokens, &token))
        words += token.kind == TOKEN_WORD;
    bool alone = words == 0 && rest.length && rest.start[0] != '\n';
    bool numbering = alone && isdigit((unsigned char)*out->where.start) &&
                     !memchr(unit.start, '!', unit.length) && is_numbering(out, unit, rest);
    if (words > 3 || numbering || number_first(unit, &other))
        return false;
    tokens = tokens_of(rest);
    while (token_next(&tokens, &token))
        if (token_in(&token, " so therefore thus hence total finally = ") ||
            (!alone && token_is(&token, "then")))
            return false;
    return true;
}

/* Whether the text is truncated in its last sentence, which has no number, after complete ones on the same line. */
static bool is_truncated(struct slice text, struct slice last)
{
    struct number ignored;
    const char *before = last.start;
    while (before > text.start && before[-1] == ' ')
        before--;
    return last.length > 10 && isalpha((unsigned char)slice_end(last)[-1]) && before > text.start &&
           before[-1] == '.' && before < last.start && !number_first(last, &ignored) &&
           !number_in_words(last, &ignored);
}

/* Without a marker, the number is in bold in the last paragraph, or in the statement of the last sentence with one. */
bool stated_in_conclusion(struct slice answer, struct number *out)
{
    struct slice text = without_parenthesis(text_without_asides(answer)), rest = text,
                 sentence = text;
    if (text_is_truncated(answer) || text_declines(final_sentence(text)))
        return false;
    if (in_bold(last_paragraph(text), out) || leading(text, out))
        return true;
    enum stated stated = STATED_NONE;
    bool computed_any = false, declined = false;
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
        declined = text_declines(sentence);
    }
    return stated == STATED_ONE && !declined && !is_truncated(text, sentence);
}

/* Whether the marker introduces an argument, whose result comes last: "Answer: he bought 36 and ate 6, so 30". */
static bool is_argument(struct slice sentence)
{
    struct slice conclusion = conclusion_of(sentence);
    struct numbers numbers = {.text = slice_between(sentence.start, conclusion.start)};
    struct tokens tokens = tokens_of(numbers.text);
    struct token token;
    struct number number;
    unsigned words = 0;
    while (token_next(&tokens, &token) && !begins_with_digit(&token))
        words += token.kind == TOKEN_WORD;
    return words > 1 && number_next(&numbers, &number) && number_next(&numbers, &number);
}

/* A marker is followed by the number. */
bool stated_after_marker(struct slice line, struct number *out)
{
    struct slice sentence = line, rest = line;
    sentence_next(&rest, &sentence);
    if (is_argument(sentence))
        return in_sentence(sentence, NULL, out) == STATED_ONE;
    sentence = without_remark(sentence);
    if (stated_after_equals(sentence, out))
        return true;
    if (!number_first(sentence, out) && !number_first(line, out))
        return number_in_words(sentence, out);
    if (out->where.start >= slice_end(sentence))
        return true;
    struct neighbors near = neighbors_of(sentence, out->where);
    return !is_alternative(sentence, out) && !is_bound(&near) && !is_fragment(&near, out->where);
}
