/* Numbers in English words: "forty-two", "two and a half", "three quarters", "minus seven". */
#include <math.h>

#include "graders/number.h"
#include "graders/tokens.h"

static const char UNITS[] = " zero one two three four five six seven eight nine ten eleven twelve "
                            "thirteen fourteen fifteen sixteen seventeen eighteen nineteen ";
static const char TENS[] = " twenty thirty forty fifty sixty seventy eighty ninety ";
static const char SCALES[] = " hundred dozen thousand million billion trillion ";
static const double SCALE_VALUES[] = {1e2, 12, 1e3, 1e6, 1e9, 1e12};
static const char PARTS[] =
    " half halves third thirds quarter quarters fourth fourths fifth fifths eighth "
    "eighths tenth tenths sixth sixths seventh sevenths ninth ninths twelfth twelfths ";
static const double PART_VALUES[] = {2, 3, 4, 4, 5, 8, 10, 6, 7, 9, 12};

/* The denominator named by the word; 0 if it is none. */
static double part_of(const struct token *token)
{
    int index = token_index(token, PARTS);
    return index < 0 ? 0 : PART_VALUES[index / 2];
}

/* "Twenty-sixth" is an ordinal, "five sixths" and "one sixth" are fractions. */
static bool is_ordinal(const struct token *token, double count)
{
    return count != 1 && token_in(token, " sixth seventh ninth twelfth ");
}

/* State: "two hundred and fifty" is 250 in `group`; thousands and above are in `total`. */
struct words {
    double total, group;
    bool any;
};

/* Adds one word.  False if it does not continue the number: "one two". */
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
        (!token_is(&token, "-") || token_next(&look, &token)) && (part = part_of(&token)) > 0 &&
        !is_ordinal(&token, *value)) { /* "three quarters" */
        *value /= part;
        *tokens = look;
    }
    look = *tokens;
    if (words.any && token_next(&look, &token) && token_is(&token, "and") &&
        token_next(&look, &token)) { /* "two and a half", "one and three quarters" */
        int count = token_is(&token, "a") ? 1 : token_index(&token, UNITS);
        if (count > 0 && token_next(&look, &token) && (part = part_of(&token)) > 0) {
            *value += count / part;
            *tokens = look;
        }
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

/* The last number in words: "forty-two", "minus seven", "three quarters". */
bool number_in_words(struct slice text, struct number *out)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0}, second = {0};
    bool found = false;
    for (; token_next(&tokens, &token); second = before, before = token) {
        double value = 1;
        bool single = token_is(&token, "single") && token_is(&before, "a"); /* "a single orange" */
        if (token.kind != TOKEN_WORD || !(single || take_words(&tokens, &token, &value)) ||
            is_pronoun(&before, &token, tokens))
            continue;
        bool negative = before.text.length && token_in(&before, " minus negative ");
        if (token_is_negation(negative || single ? &second : &before))
            continue;
        *out = (struct number){.value = negative ? -value : value};
        out->plain = out->value;
        out->where = slice_between(negative ? before.text.start : token.text.start, tokens.at);
        found = true;
    }
    return found;
}
