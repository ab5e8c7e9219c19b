/* The search for the final answer.  Every search is one pass with bounded lookahead, so that it takes linear time even
 * for a hostile completion. */
#include "graders/final.h"

#include <ctype.h>

#include "core/params.h"
#include "core/text.h"
#include "graders/number.h"
#include "graders/tokens.h"

/* Maximum distance from "answer" to its value. */
enum { STATEMENT_TOKENS = 24 };

/* ---- the parameter ---- */

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why)
{
    static const char *const NAMES[] = {"auto", "marked", "line", "whole"};
    const char *given = params_get(params, "final");
    *rule = FINAL_AUTO;
    for (size_t i = 0; given && i < sizeof NAMES / sizeof *NAMES; i++)
        if (str_equal_nocase(given, NAMES[i])) {
            *rule = (enum final_rule)i;
            return ERR_OK;
        }
    if (given)
        return err_set(why, ERR_USAGE, "final=%s: expected auto, marked, line or whole", given);
    return ERR_OK;
}

/* ---- lines ---- */

static const char *line_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

static bool is_blank(struct slice line)
{
    return slice_trim(line).length == 0;
}

struct slice final_last_line(struct slice text)
{
    text = slice_trim(text);
    size_t at = text.length;
    while (at && text.start[at - 1] != '\n')
        at--;
    return slice_trim((struct slice){text.start + at, text.length - at});
}

struct slice final_sentence(struct slice line)
{
    struct slice rest = line, sentence;
    return sentence_next(&rest, &sentence) ? sentence : line;
}

/* ---- \boxed{...} ---- */

static bool is_escaped(struct slice text, size_t at)
{
    return at && text.start[at - 1] == '\\';
}

/* Whether the brace at `at` belongs to "\boxed{" or "\fbox {". */
static bool opens_box(struct slice text, size_t at)
{
    while (at && text.start[at - 1] == ' ')
        at--;
    struct slice before = {text.start, at};
    return (at >= 6 && slice_is((struct slice){slice_end(before) - 6, 6}, "\\boxed")) ||
           (at >= 5 && slice_is((struct slice){slice_end(before) - 5, 5}, "\\fbox"));
}

/* Position of the matching closing brace; the end of the text if there is none. */
static size_t closing_brace(struct slice text, size_t open)
{
    size_t at = open;
    for (unsigned long depth = 0; at < text.length; at++) {
        if (is_escaped(text, at))
            continue;
        depth += text.start[at] == '{';
        depth -= text.start[at] == '}';
        if (depth == 0)
            break;
    }
    return at;
}

/* Whether the text between two boxes only joins them: "and", "or", a comma, "\\quad \\text{and}". */
static bool joins_boxes(struct slice between)
{
    struct tokens tokens = tokens_of(between);
    struct token token;
    bool joins = false;
    while (token_next(&tokens, &token)) {
        joins = joins || token_in(&token, " and or , ");
        if (!token_in(&token, " and or , ; . $ { } ( ) [ ] \\ \\quad \\qquad \\text \\textbf "))
            return false;
    }
    return joins;
}

/* The brace of the box joined to the one at `open`: "\\boxed{1} or \\boxed{2}"; `open` if there is none. */
static size_t joined_box(struct slice text, size_t open)
{
    enum { REACH = 200 };
    size_t command = open;
    while (command && text.start[command] != '\\')
        command--;
    for (size_t back = 1; back <= command && back < REACH; back++) {
        size_t at = command - back;
        if (text.start[at] == '{' && !is_escaped(text, at) && opens_box(text, at)) {
            size_t close = closing_brace((struct slice){text.start, command}, at);
            bool joined = close < command &&
                          joins_boxes(slice_between(text.start + close + 1, text.start + command));
            return joined ? at : open;
        }
    }
    return open;
}

/* Finds the closed box that begins last: searching from the end, the first whose brace is closed.  Joined boxes are
 * one. */
static bool find_boxed(struct slice text, struct slice *out)
{
    unsigned long closed = 0; /* braces that are closed but not yet opened */
    for (size_t at = text.length; at-- > 0;) {
        if (is_escaped(text, at))
            continue;
        if (text.start[at] == '}') {
            closed++;
        } else if (text.start[at] == '{' && closed) {
            if (opens_box(text, at)) {
                size_t first = at, before = joined_box(text, at), end = closing_brace(text, at);
                for (; before < first; before = joined_box(text, first))
                    first = before;
                *out = slice_between(text.start + first + 1, text.start + end + (first < at));
                return true;
            }
            closed--;
        }
    }
    return false;
}

/* ---- #### ---- */

static bool find_hashes(struct slice text, struct slice *out)
{
    const char *end = slice_end(text);
    bool found = false;
    for (const char *line = text.start; line < end;) {
        const char *stop = line_end(line, end);
        struct slice trimmed = slice_trim(slice_between(line, stop));
        if (slice_starts(trimmed, "####")) {
            struct slice value = slice_trim((struct slice){trimmed.start + 4, trimmed.length - 4});
            if (value.length && value.start[value.length - 1] == '.')
                value.length--;
            struct number number;
            if (number_whole(value, &number)) {
                *out = value;
                found = true;
            }
        }
        line = stop + 1;
    }
    return found;
}

/* ---- statements ---- */

static const char *skip(const char *at, const char *end, const char *set)
{
    while (at < end && *at && strchr(set, *at))
        at++;
    return at;
}

/* The value of "not X but Y"; NULL if the sentence has no such construction. */
static const char *after_but(struct tokens tokens)
{
    struct token token, before = {0};
    for (int i = 0; i < STATEMENT_TOKENS && token_next(&tokens, &token); i++, before = token) {
        if (token.kind == TOKEN_LINE || token_ends_sentence(&token, &before))
            return NULL;
        if (token_in(&token, " but rather sino sondern mais "))
            return tokens.at;
    }
    return NULL;
}

/* The value after a link; NULL if it is negated. */
static const char *after_link(struct tokens tokens)
{
    struct tokens look = tokens;
    struct token token;
    while (token_next(&look, &token) && token.kind != TOKEN_LINE) {
        if (token_is_negation(&token))
            return after_but(look);
        if (token.kind == TOKEN_WORD &&
            !token_in(&token, " definitely certainly clearly probably therefore "))
            break;
    }
    return tokens.at;
}

/* Whether the token links "answer" with the value.  A dash or arrow does if it is surrounded by spaces. */
static bool links(const struct token *token, const struct tokens *after)
{
    if (!token_is_link(token) && !token_is(token, "\xE2\x86\x92"))
        return false;
    bool apart = token->spaced && (after->at == after->end || strchr(" >*", *after->at));
    return apart || !token_in(token, " - \xE2\x80\x93 \xE2\x80\x94 ");
}

static bool begins_value(const struct token *token)
{
    return token->spaced && (isdigit((unsigned char)token->text.start[0]) ||
                             token_in(token, " $ ( \\ \\boxed \\frac "));
}

/* Start of the value of a statement, whose "answer" precedes `tokens`; NULL if it is not one.  At most three words
 * precede the link, or any that follow a preposition: "the answer to the question is". */
static const char *statement_value(struct tokens tokens, const struct token *noun, bool starts_line)
{
    struct token token, before = *noun;
    bool long_way = false;
    int words = 0;
    for (int i = 0; i < STATEMENT_TOKENS && (words <= 3 || long_way) && token_next(&tokens, &token);
         i++, before = token) {
        if (token.kind == TOKEN_LINE)
            return starts_line && words == 0 ? tokens.at : NULL; /* a heading */
        if (token_is(noun, "ans") && i == 0 && token_is(&token, "."))
            return tokens.at;
        if (token_ends_sentence(&token, &before))
            return NULL;
        if (token_is_negation(&token))
            return after_but(tokens);
        if (links(&token, &tokens))
            return after_link(tokens);
        if (starts_line && words == 0 && !long_way && begins_value(&token))
            return token.text.start; /* "Answer 16" */
        long_way = long_way || (words == 0 && token_in(&token, " to for of in "));
        words += token.kind == TOKEN_WORD &&
                 !token_in(&token, " would should must will could has to have ");
    }
    return NULL;
}

/* Lines that only open a formula or a code block. */
static bool only_opens(struct slice line)
{
    line = slice_trim(line);
    return slice_starts(line, "```") || slice_equal(line, slice_of("$$")) ||
           slice_equal(line, slice_of("\\["));
}

/* The value without the closing part of a quote or a tag: {"answer": "X"}, <answer>X</answer> */
static struct slice without_closing(struct slice line)
{
    bool quoted = line.length && line.start[-1] == '"';
    for (size_t i = 0; i + 1 < line.length; i++)
        if ((quoted && line.start[i] == '"') || (line.start[i] == '<' && line.start[i + 1] == '/'))
            return slice_trim((struct slice){line.start, i});
    return slice_trim(line);
}

/* The value after a marker: skips blanks, Markdown and lines that only open a block. */
static struct slice value_line(const char *at, const char *end, bool *new_line)
{
    *new_line = false;
    for (;;) {
        at = skip(at, end, *new_line ? " \t\r\n" : " \t\r*_:>\"`");
        const char *stop = line_end(at, end);
        struct slice line = slice_between(at, stop);
        if (stop == end || (!is_blank(line) && !only_opens(line)))
            return without_closing(line);
        at = stop + 1;
        *new_line = true;
    }
}

/* The text from the line to the next blank line. */
static struct slice value_block(struct slice line, const char *end)
{
    const char *stop = slice_end(line);
    while (stop < end) {
        const char *next = line_end(stop + 1, end);
        if (is_blank(slice_between(stop + 1, next)))
            break;
        stop = next;
    }
    return slice_trim(slice_between(line.start, stop));
}

static bool find_statement(struct slice text, struct final_answer *out)
{
    const char *end = slice_end(text), *found = NULL;
    struct tokens tokens = tokens_of(text);
    struct token token, before = {.kind = TOKEN_LINE};
    for (bool starts_line = true; token_next(&tokens, &token); before = token) {
        if (token_is_answer(&token) && !token_in(&before, " / wrong incorrect ")) {
            const char *value = statement_value(tokens, &token, starts_line);
            if (!value && token_is_cjk(&token))
                value = tokens.at; /* the CJK run contains the link */
            if (value && skip(value, end, " \t\r\n*_:>\"'`") < end)
                found = value;
        }
        starts_line = token.kind == TOKEN_LINE ||
                      (starts_line && (token.kind == TOKEN_MARK ||
                                       token_in(&token, " final correct the my our exact ")));
    }
    if (!found)
        return false;
    bool new_line;
    out->marker = FINAL_STATEMENT;
    out->line = value_line(found, end, &new_line);
    out->block = new_line ? value_block(out->line, end) : out->line;
    return out->line.length > 0;
}

/* ---- the last marker ---- */

static void take_if_later(struct final_answer *best, enum final_marker marker, bool found,
                          struct slice value)
{
    value = slice_trim(value);
    if (found && value.length && (best->marker == FINAL_NONE || value.start >= best->line.start))
        *best = (struct final_answer){.marker = marker, .line = value, .block = value};
}

bool final_find(struct slice text, enum final_rule rule, struct final_answer *out)
{
    text = slice_trim(text);
    *out = (struct final_answer){.marker = FINAL_NONE, .line = text, .block = text};
    if (rule == FINAL_LINE)
        out->line = out->block = final_last_line(text);
    if (rule == FINAL_LINE || rule == FINAL_WHOLE)
        return true;
    struct slice value = {0};
    struct final_answer best = {0};
    struct slice body = text_without_asides(text);
    if (!find_statement(body, &best) &&
        (body.length == text.length || !find_statement(text, &best)))
        best = (struct final_answer){0};
    bool found = find_hashes(text, &value);
    take_if_later(&best, FINAL_HASHES, found, value);
    found = find_boxed(text, &value);
    take_if_later(&best, FINAL_BOXED, found, value);
    if (best.marker != FINAL_NONE)
        *out = best;
    return best.marker != FINAL_NONE || rule == FINAL_AUTO;
}

struct slice final_first_question(struct slice text, enum final_rule rule)
{
    struct slice first = text_before_question(text);
    struct final_answer final;
    if (rule == FINAL_LINE || rule == FINAL_WHOLE)
        return text;
    return final_find(first, FINAL_MARKED, &final) ? first : text;
}

struct slice final_expected(struct slice expected)
{
    struct slice value;
    expected = slice_trim(expected);
    if (find_boxed(expected, &value) || find_hashes(expected, &value))
        return slice_trim(value);
    return expected;
}
