/* A hand-written reading of sentences that state a result: which of their numbers is it?  Linear in the text. */
#include "graders/number.h"

#include "graders/final.h"
#include "graders/tokens.h"

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
    bool after_verb = last.text.length > 4 &&
                      slice_is((struct slice){slice_end(last.text) - 3, 3}, "ing") &&
                      token_in(&before, LEADS); /* "after selling 3" */
    bool purpose =
        token_is(&before, "to") && last.kind == TOKEN_WORD &&
        !token_in(&third, " needs need has have had able going wants get "); /* "to fill 4 bags" */
    return of_number || after_verb || purpose || token_in(&last, LEADS) ? ROLE_CIRCUMSTANCE
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
        if (!number_first(bold, &number))
            continue;
        size_t before = (size_t)(number.where.start - bold.start);
        if (before >= 3 && !stated_after_equals(bold, &number) && !memchr(bold.start, ':', before))
            continue;
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
    struct slice sentence = without_remark(final_sentence(line));
    return stated_after_equals(sentence, out) || number_first(sentence, out) ||
           number_first(line, out) || number_in_words(sentence, out);
}
