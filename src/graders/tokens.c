/* A tokenizer for prose with Markdown and LaTeX in it. */
#include "graders/tokens.h"

#include <ctype.h>

#include "graders/fold.h"

/* ---- tokens ---- */

/* Arrows, check marks, emoji and mathematical signs are marks. */
static bool is_word_character(uint32_t c)
{
    if (c < 0x80)
        return isalnum((int)c) != 0;
    bool symbol = (c >= 0x2190 && c <= 0x2BFF) || (c >= 0x1F000 && c <= 0x1FAFF) || c == 0xD7 ||
                  c == 0xF7 || c == 0xB0 || c == 0xB1 || c == 0xFE0F;
    return char_is_word(c) && !symbol;
}

static size_t word_length(struct slice text)
{
    size_t length, at = 0;
    bool cjk = char_is_cjk(char_at(text, &length));
    while (at < text.length) {
        struct slice rest = {text.start + at, text.length - at};
        uint32_t c = char_at(rest, &length);
        bool inside = is_word_character(c) && char_is_cjk(c) == cjk;
        if (!inside && at && (c == '\'' || c == 0x2019) && length < rest.length)
            inside = isalpha((unsigned char)rest.start[length]) != 0;
        if (!inside)
            break;
        at += length;
    }
    return at;
}

static size_t mark_length(struct slice text, size_t character)
{
    size_t length = 1;
    if (text.start[0] != '\\')
        return character;
    while (length < text.length && isalpha((unsigned char)text.start[length]))
        length++;
    return length;
}

bool token_next(struct tokens *tokens, struct token *out)
{
    bool spaced = false;
    size_t length = 0;
    uint32_t c = 0;
    for (; tokens->at < tokens->end; tokens->at += length, spaced = true) {
        c = char_at(slice_between(tokens->at, tokens->end), &length);
        if (c == '\n' || !char_is_space(c))
            break;
    }
    if (tokens->at >= tokens->end)
        return false;
    struct slice rest = slice_between(tokens->at, tokens->end);
    enum token_kind kind = c == '\n' ? TOKEN_LINE : is_word_character(c) ? TOKEN_WORD : TOKEN_MARK;
    if (kind != TOKEN_LINE)
        length = kind == TOKEN_WORD ? word_length(rest) : mark_length(rest, length);
    *out = (struct token){kind, spaced, {rest.start, length}};
    tokens->at += length;
    return true;
}

static bool token_equals(const struct token *token, struct slice wanted)
{
    struct slice text = token->text;
    while (text.length && wanted.length) {
        size_t length, wanted_length;
        uint32_t c = char_at(text, &length);
        if ((c == 0x2019 ? '\'' : char_lower(c)) != char_lower(char_at(wanted, &wanted_length)))
            return false;
        text = (struct slice){text.start + length, text.length - length};
        wanted = (struct slice){wanted.start + wanted_length, wanted.length - wanted_length};
    }
    return text.length == wanted.length;
}

bool token_is(const struct token *token, const char *wanted)
{
    return token_equals(token, slice_of(wanted));
}

/* The token between two spaces, as in the word lists, with ASCII letters in lower case; false if it is too long. */
static bool token_needle(const struct token *token, char needle[64])
{
    static const char APOSTROPHE[] = "\xE2\x80\x99";
    size_t length = 0;
    if (token->text.length > 60)
        return false;
    needle[length++] = ' ';
    for (size_t i = 0; i < token->text.length; i++) {
        struct slice rest = {token->text.start + i, token->text.length - i};
        bool typographic = slice_starts(rest, APOSTROPHE);
        unsigned char c = typographic ? '\'' : (unsigned char)rest.start[0];
        i += typographic ? sizeof APOSTROPHE - 2 : 0;
        if (c == '\0')
            return false;
        needle[length++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    needle[length++] = ' ';
    needle[length] = '\0';
    return true;
}

int token_index(const struct token *token, const char *words)
{
    char needle[64];
    if (!token->text.length || token->kind == TOKEN_LINE || !token_needle(token, needle))
        return -1;
    const char *found = strstr(words, needle);
    int index = 0;
    for (const char *c = words; found && c < found; c++)
        index += *c == ' ';
    return found ? index : -1;
}

bool has_token(struct slice text, const char *words)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_in(&token, words))
            return true;
    return false;
}

bool token_is_cjk(const struct token *token)
{
    size_t length;
    return token->kind == TOKEN_WORD && token->text.length &&
           char_is_cjk(char_at(token->text, &length));
}

unsigned count_words(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    unsigned words = 0;
    while (token_next(&tokens, &token))
        words += token.kind == TOKEN_WORD;
    return words;
}

/* ---- sentences ---- */

/* A mark that ends a sentence; not the point in "e.g.". */
static bool ends_sentence(const struct token *token, const struct token *before)
{
    if (token->kind != TOKEN_MARK || !token_in(token, " . ! ? 。 ！ ？ "))
        return false;
    bool attached = before && before->kind == TOKEN_WORD && !token->spaced;
    if (attached && token_is(token, "!") && before->text.length == 1) /* k! */
        return false;
    return !(attached && token_is(token, ".") &&
             token_in(before, " ans e g i eq no vs approx ca "));
}

bool sentence_next(struct slice *rest, struct slice *sentence)
{
    while (rest->length) {
        struct tokens tokens = tokens_of(*rest);
        struct token token, before = {0};
        /* A word directly after the mark continues the sentence, "3.14"; punctuation does not, "4.**" */
        const char *stop = slice_end(*rest);
        for (bool ends = false; token_next(&tokens, &token); before = token) {
            ends = token.kind != TOKEN_WORD && (ends || ends_sentence(&token, &before));
            bool apart =
                tokens.at >= tokens.end || slice_is_space(*tokens.at) || token.text.length > 1;
            if (token.kind == TOKEN_LINE || (ends && apart)) {
                stop = tokens.at;
                break;
            }
        }
        *sentence = slice_trim(slice_between(rest->start, stop));
        *rest = slice_between(stop, slice_end(*rest));
        if (sentence->length)
            return true;
    }
    return false;
}

bool bold_next(struct slice *rest, struct slice *bold)
{
    const char *open = NULL, *end = slice_end(*rest);
    for (const char *c = rest->start; c + 1 < end; c++) {
        if (c[0] != '*' || c[1] != '*')
            continue;
        if (open) {
            *bold = slice_trim(slice_between(open, c));
            *rest = slice_between(c + 2, end);
            return true;
        }
        open = ++c + 1;
    }
    return false;
}
