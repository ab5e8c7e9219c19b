/* Numbers in words ("forty-two", "three quarters"), and a reading of sentences that state a result: which of
 * their numbers is it?  Linear in the text. */
#include "graders/number.h"

#include <math.h>

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

/* Up to the reason or a remark in parentheses, if a number comes before that: "16 (4 * 4)". */
static struct slice without_remark(struct slice sentence)
{
    struct slice kept = sentence_without_reason(sentence);
    struct number ignored;
    for (size_t i = 1; i < kept.length; i++)
        if ((kept.start[i] == '(' && slice_is_space(kept.start[i - 1])) ||
            slice_starts((struct slice){kept.start + i, kept.length - i}, ", or "))
            kept.length = i;
    return number_first(kept, &ignored) || number_in_words(kept, &ignored) ? kept : sentence;
}

/* What a number is in its sentence. */
enum role {
    ROLE_LABEL,        /* "step 2" */
    ROLE_CIRCUMSTANCE, /* "in 5 days", "for the 16 glasses", "on day 3", "of 12" */
    ROLE_RESULT,       /* anything else */
};

/* "4 fewer than before" */
static bool is_compared(struct slice sentence, const struct number *number)
{
    struct tokens tokens = tokens_of(slice_between(slice_end(number->where), slice_end(sentence)));
    struct token token;
    if (!token_next(&tokens, &token) || !token_in(&token, " fewer more less "))
        return false;
    for (int i = 0; i < 3 && token_next(&tokens, &token); i++)
        if (token_is(&token, "than"))
            return true;
    return false;
}

static enum role role_of(struct slice sentence, const struct number *number)
{
    static const char LEADS[] =
        " in for per over after at each within during by on from than since until across "
        "among day week month year class grade room number if when ";
    enum { REACH = 48 };
    const char *from = number->where.start;
    from = from - sentence.start > REACH ? from - REACH : sentence.start;
    struct tokens tokens = {from, number->where.start};
    struct token token, last = {0}, before = {0}, third = {0};
    while (token_next(&tokens, &token)) {
        if (token.kind == TOKEN_MARK && token_is(&token, "*"))
            continue;
        if (token.kind == TOKEN_MARK ||
            !token_in(&token, " the all his her their those these every about $ ( ")) {
            third = before;
            before = last;
            last = token;
        }
    }
    if (last.kind == TOKEN_WORD &&
        token_in(&last, " step part problem question case page chapter figure "))
        return ROLE_LABEL;
    bool of_number =
        token_is(&last, "of") && before.text.start &&
        (token_is(&before, "out") || (before.text.start[0] >= '0' && before.text.start[0] <= '9'));
    bool after_verb = last.text.length > 4 && slice_is((struct slice){slice_end(last.text) - 3, 3},
                                                       "ing"); /* "after selling 3" */
    bool adjective = token_in(&last, " other original remaining next initial previous ");
    bool purpose =
        token_is(&before, "to") && last.kind == TOKEN_WORD &&
        !token_in(&third, " needs need has have had able going wants get "); /* "to fill 4 bags" */
    bool led = token_in(&last, LEADS) || ((after_verb || adjective) && token_in(&before, LEADS));
    return of_number || purpose || led || is_compared(sentence, number) ? ROLE_CIRCUMSTANCE
                                                                        : ROLE_RESULT;
}

/* The number that a sentence states: the result of its equation, the number that was just computed, or the
 * last one that is not a circumstance. */
static bool in_sentence(struct slice sentence, const struct number *computed, struct number *out)
{
    static const struct tolerance SAME = {.relative = 1e-9};
    sentence = without_remark(sentence);
    if (stated_after_equals(sentence, out))
        return true;
    struct numbers numbers = {.text = sentence};
    struct number number;
    enum role best = ROLE_LABEL;
    while (number_next(&numbers, &number)) {
        if (computed && number_equal(&SAME, computed, &number)) {
            *out = number;
            return true;
        }
        enum role role = role_of(sentence, &number);
        if (role > ROLE_LABEL && role >= best) {
            *out = number;
            best = role;
        }
    }
    return best > ROLE_LABEL || number_in_words(sentence, out);
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
    bool numbering = words == 0 && rest.length && rest.start[0] != '\n';
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
    if (text_is_cut(answer))
        return false;
    if (in_bold(last_paragraph(text), out) || leading(text, out))
        return true;
    bool found = false, computed_any = false;
    struct number number, computed;
    while (sentence_next(&rest, &sentence)) {
        if (in_sentence(sentence, computed_any ? &computed : NULL, &number)) {
            *out = number;
            found = true;
        }
        if (stated_after_equals(sentence, &number)) {
            computed = number;
            computed_any = true;
        }
    }
    return found || number_last(answer, out);
}

/* A marker is followed by the number. */
bool stated_after_marker(struct slice line, struct number *out)
{
    struct slice sentence = line, rest = line;
    sentence_next(&rest, &sentence);
    sentence = without_remark(sentence);
    return stated_after_equals(sentence, out) || number_first(sentence, out) ||
           number_first(line, out) || number_in_words(sentence, out);
}
