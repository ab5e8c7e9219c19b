/* Numbers in English words: "forty-two", "one thousand two hundred and fifty", "three quarters", "minus
 * seven", "half", "a dozen". */
#include "graders/number.h"

#include "graders/tokens.h"

static const struct name {
    const char *word;
    double value;
} NAMES[] =
    {
        {"zero", 0},     {"one", 1},      {"two", 2},        {"three", 3},     {"four", 4},
        {"five", 5},     {"six", 6},      {"seven", 7},      {"eight", 8},     {"nine", 9},
        {"ten", 10},     {"eleven", 11},  {"twelve", 12},    {"thirteen", 13}, {"fourteen", 14},
        {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19},
        {"twenty", 20},  {"thirty", 30},  {"forty", 40},     {"fifty", 50},    {"sixty", 60},
        {"seventy", 70}, {"eighty", 80},  {"ninety", 90},
},
  SCALES[] =
      {
          {"hundred", 1e2}, {"thousand", 1e3},  {"million", 1e6},
          {"billion", 1e9}, {"trillion", 1e12}, {"dozen", 12},
},
  PARTS[] = {
      {"half", 2},     {"halves", 2},  {"third", 3},   {"thirds", 3},  {"quarter", 4},
      {"quarters", 4}, {"fourth", 4},  {"fourths", 4}, {"fifth", 5},   {"fifths", 5},
      {"eighth", 8},   {"eighths", 8}, {"tenth", 10},  {"tenths", 10},
};

#define FIND(table, token) find(table, sizeof(table) / sizeof *(table), token)

static const struct name *find(const struct name *table, size_t count, const struct token *token)
{
    for (size_t i = 0; token->kind == TOKEN_WORD && i < count; i++)
        if (token_is(token, table[i].word))
            return &table[i];
    return NULL;
}

/* What was read so far: "two hundred and fifty" is 250 in `group`, thousands and more are in `total`. */
struct words {
    double total, group;
    bool any;
};

/* Adds one word.  False when it does not continue the number: "one two". */
static bool add_word(struct words *words, const struct token *token)
{
    const struct name *name = FIND(NAMES, token), *scale = name ? NULL : FIND(SCALES, token);
    double last = words->group - 100 * (double)(long)(words->group / 100);
    if (name) {
        bool fits = name->value < 10
                        ? last == 0 || (last >= 20 && last == 10 * (double)(long)(last / 10))
                        : last == 0;
        if (words->any && (!fits || name->value == 0))
            return false;
        words->group += name->value;
    } else if (scale && scale->value <= 100) {
        if (words->group >= 100)
            return false;
        words->group = (words->any ? words->group : 1) * scale->value;
    } else if (scale) {
        words->total += (words->any ? words->group : 1) * scale->value;
        words->group = 0;
    } else {
        return false;
    }
    words->any = true;
    return true;
}

/* The number that begins with `first`; *tokens is then after it. */
static bool take_words(struct tokens *tokens, const struct token *first, double *value)
{
    struct words words = {0};
    struct token token = *first;
    struct tokens at = *tokens;
    const struct name *part = FIND(PARTS, first);
    if (part) { /* "half"; "a quarter of" */
        *value = 1 / part->value;
        return part->value == 2 || part->value == 4;
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
        (part = FIND(PARTS, &token))) { /* "three quarters" */
        *value /= part->value;
        *tokens = look;
    }
    return words.any;
}

/* "One" in "one of them" and "the right one" is not a number. */
static bool is_pronoun(const struct token *before, const struct token *token, struct tokens after)
{
    static const char *const BEFORE[] = {"the",  "this",    "that",    "each",  "every",
                                         "any",  "another", "no",      "which", "first",
                                         "last", "right",   "correct", "other", NULL};
    static const char *const AFTER[] = {"of", "another", "who",   "that", "can",
                                        "by", "could",   "might", NULL};
    struct token next;
    return token_is(token, "one") && slice_end(token->text) == after.at &&
           ((before->kind == TOKEN_WORD && before->text.length && token_in(before, BEFORE)) ||
            (token_next(&after, &next) && token_in(&next, AFTER)));
}

bool number_in_words(struct slice text, struct number *out)
{
    static const char *const MINUS[] = {"minus", "negative", NULL};
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    bool found = false;
    for (; token_next(&tokens, &token); before = token) {
        double value;
        if (token.kind != TOKEN_WORD || !take_words(&tokens, &token, &value) ||
            is_pronoun(&before, &token, tokens))
            continue;
        bool negative = before.text.length && token_in(&before, MINUS);
        *out = (struct number){.value = negative ? -value : value};
        out->plain = out->value;
        out->where = slice_between(negative ? before.text.start : token.text.start, tokens.at);
        found = true;
    }
    return found;
}
