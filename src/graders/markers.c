/* Every search is one pass with bounded lookahead, so that it takes linear time even for a hostile completion. */
#include "graders/markers.h"

#include <ctype.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "graders/number.h"
#include "graders/prose.h"
#include "graders/tokens.h"

/* ---- the parameter ---- */

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why)
{
    static const char *const NAMES[] = {"auto", "marked", "line", "whole"};
    const char *given = params_get(params, "final");
    *rule = FINAL_AUTO;
    for (size_t i = 0; given && i < COUNT_OF(NAMES); i++)
        if (str_equal_nocase(given, NAMES[i])) {
            *rule = (enum final_rule)i;
            return ERR_OK;
        }
    if (given)
        return err_set(why, ERR_USAGE, "final=%s: expected auto, marked, line or whole", given);
    return ERR_OK;
}

static struct slice skip(struct slice text, size_t count)
{
    return (struct slice){text.start + count, text.length - count};
}

/* ---- \boxed{X} ---- */

static bool is_escaped(struct slice text, size_t at)
{
    return at && text.start[at - 1] == '\\';
}

/* Position of the brace that closes the one at `open`; the end of the text if there is none in reach. */
static size_t closing_brace(struct slice text, size_t open)
{
    unsigned long depth = 0;
    for (size_t at = open; at < text.length && at - open < FORMULA_REACH; at++) {
        if (is_escaped(text, at))
            continue;
        depth += text.start[at] == '{';
        depth -= text.start[at] == '}';
        if (depth == 0)
            return at;
    }
    return text.length;
}

/* The brace of the next \boxed{ or \fbox{ at or after `at`; the end of the text if there is none. */
static size_t next_box(struct slice text, size_t at)
{
    for (; at < text.length; at++) {
        struct slice rest = skip(text, at);
        size_t length = slice_starts(rest, "\\boxed") ? 6 : slice_starts(rest, "\\fbox") ? 5 : 0;
        for (; length && length < rest.length && rest.start[length] == ' '; length++)
            continue;
        if (length && length < rest.length && rest.start[length] == '{')
            return at + length;
    }
    return at;
}

/* Whether the text between two boxes joins them to a list: "and", "or", a comma; perhaps with "x =" before the next. */
static bool joins_boxes(struct slice between)
{
    struct tokens tokens = tokens_of(between);
    struct token token;
    bool joins = false;
    while (token_next(&tokens, &token)) {
        joins = joins || token_in(&token, " and or , ");
        bool name = token.text.length == 1 && isalpha((unsigned char)*token.text.start);
        if ((!name && !token_in(&token, " and or , ; = $ { } ( ) [ ] \\ \\quad \\qquad \\text ")) ||
            token.kind == TOKEN_LINE)
            return false;
    }
    return joins;
}

void places_add(struct places *places, struct slice span)
{
    if (slice_trim(span).length && places->count < PLACES_MAX)
        places->at[places->count++] = slice_trim(span);
}

/* The boxes of the last line that has one.  Boxes that are joined are one list. */
static void find_boxed(struct slice text, struct places *out)
{
    size_t end = 0;
    unsigned failures = 0;
    for (size_t at = next_box(text, 0); at < text.length && failures < FORMULA_FAILURES;
         at = next_box(text, end)) {
        size_t close = closing_brace(text, at);
        if (close == text.length) { /* cut, or a brace too many */
            end = at + 1;
            failures++;
            continue;
        }
        struct slice between = slice_between(text.start + end, text.start + at);
        bool same_line = !memchr(between.start, '\n', between.length);
        const char *command = text.start + at;
        while (*command != '\\')
            command--;
        struct slice *last = out->count ? &out->at[out->count - 1] : NULL;
        if (!same_line)
            out->count = 0;
        if (same_line && last && joins_boxes(slice_between(text.start + end, command)))
            *last = slice_between(last->start, text.start + close + 1);
        else
            places_add(out, slice_between(text.start + at + 1, text.start + close));
        end = close + 1;
    }
}

/* ---- #### X ---- */

static void find_hashes(struct slice text, struct places *out)
{
    struct slice line;
    while (line_next(&text, &line)) {
        if (!slice_starts(line, "####"))
            continue;
        struct slice value = strip_marks(skip(line, 4));
        struct number number;
        bool short_value = value.length == 1 || number_whole(value, &number);
        if (short_value) { /* and no heading */
            out->count = 0;
            places_add(out, value);
        }
    }
}

/* ---- Answer: X, the answer is X ---- */

/* The value after a marker: the rest of its line, or the next line that is not blank.  Without the closing part of a
 * quote or a tag: {"answer": "X"}, <answer>X</answer>. */
static struct slice value_after(const char *at, const char *end)
{
    struct slice rest = slice_between(at, end), line = {at, 0};
    while (rest.length && strchr("*_:>\"` \t", rest.start[0]))
        rest = skip(rest, 1);
    bool quoted = rest.start > at && rest.start[-1] == '"';
    while (line_next(&rest, &line) && line_only_opens(line))
        ;
    if (line.length > PLACE_LONGEST)
        line.length = PLACE_LONGEST + 1; /* not read, and not searched */
    for (size_t i = 0; i + 1 < line.length; i++)
        if ((quoted && line.start[i] == '"') || (line.start[i] == '<' && line.start[i + 1] == '/'))
            line.length = i;
    return slice_trim(line);
}

enum statement { STATEMENT_NONE, STATEMENT_MARKER, STATEMENT_VERB };

/* What follows the noun "answer": a colon, or "is".  *value is then after it. */
static enum statement statement_after(struct tokens tokens, bool starts_line, bool single,
                                      const char **value)
{
    enum { WORDS_MAX = 8 };
    struct token token;
    for (unsigned words = 0; words <= WORDS_MAX && token_next(&tokens, &token);) {
        *value = tokens.at;
        if (token.kind == TOKEN_LINE)
            return starts_line && words == 0 ? STATEMENT_MARKER : STATEMENT_NONE; /* a heading */
        if (is_doubt(&token) || token_in(&token, " . ! ? ; "))
            return STATEMENT_NONE;
        if (token_in(&token, " : ： = → "))
            return words <= 3 ? STATEMENT_MARKER : STATEMENT_NONE;
        if (words == 0 && (token_is(&token, ">") || (token_in(&token, " - – — ") && token.spaced)))
            return STATEMENT_MARKER;
        if (token_in(&token, " is are was be equals "))
            return STATEMENT_VERB;
        bool bare = token_in(&token, " $ ( \\boxed ") ||
                    isdigit((unsigned char)*token.text.start) ||
                    (token.text.length == 1 && isupper((unsigned char)*token.text.start));
        if (starts_line && words == 0 && bare && token.spaced && single) { /* "Answer 16" */
            *value = token.text.start;
            return STATEMENT_MARKER;
        }
        words += token.kind == TOKEN_WORD;
    }
    return STATEMENT_NONE;
}

/* The last statement of one kind. */
static void find_statement(struct slice text, enum statement kind, struct places *out)
{
    static const char LEADS[] = " the final correct my our best right short exact ";
    struct tokens tokens = tokens_of(text);
    struct token token;
    bool starts_line = true, doubtful = false;
    while (token_next(&tokens, &token)) {
        const char *value = tokens.at;
        bool noun = token_in(&token, " answer answers ") ||
                    (kind == STATEMENT_VERB && token_in(&token, " option choice "));
        bool contracted = kind == STATEMENT_VERB && token_is(&token, "answer's");
        enum statement found =
            contracted && !doubtful ? STATEMENT_VERB
            : noun && !doubtful
                ? statement_after(tokens, starts_line, token_is(&token, "answer"), &value)
                : STATEMENT_NONE;
        struct slice here = found == kind ? value_after(value, slice_end(text)) : (struct slice){0};
        if (here.length) { /* not the end of <answer>X</answer> */
            const struct slice *last = out->count ? &out->at[out->count - 1] : NULL;
            bool next_line = last && slice_end(*last) < token.text.start &&
                             !slice_trim(slice_between(slice_end(*last), token.text.start)).length;
            out->count = next_line ? out->count : 0; /* "Answer: A\nAnswer: B" */
            places_add(out, here);
        }
        bool ends =
            token.kind == TOKEN_LINE || token_in(&token, " . ! ? ; so therefore thus hence ");
        doubtful = !ends && (doubtful || is_doubt(&token));
        starts_line = token.kind == TOKEN_LINE ||
                      (starts_line && (token.kind == TOKEN_MARK || token_in(&token, LEADS)));
    }
}

static void find_answer_marker(struct slice text, struct places *out)
{
    find_statement(text, STATEMENT_MARKER, out);
}

void find_answer_is(struct slice text, struct places *out)
{
    find_statement(text, STATEMENT_VERB, out);
}

void find_marker(struct slice text, struct places *out)
{
    void (*const FINDERS[])(struct slice, struct places *) = {find_answer_marker, find_hashes,
                                                              find_boxed};
    for (size_t i = 0; i < COUNT_OF(FINDERS); i++) {
        struct places found = {.count = 0};
        FINDERS[i](text, &found);
        if (found.count && (!out->count || found.at[0].start >= out->at[0].start))
            *out = found;
    }
}

bool has_marked_line(struct slice text)
{
    struct places places = {.count = 0};
    find_marker(text, &places);
    if (!places.count)
        return false;
    const char *at = places.at[0].start;
    while (at > text.start && strchr(" \t*_:>\"`", at[-1]))
        at--;
    return at > text.start && at[-1] != '\n';
}

/* ---- the marked answer ---- */

/* The text from the line to the next blank line. */
static struct slice value_block(struct slice line, const char *end)
{
    const char *stop = slice_end(line);
    while (stop < end) {
        const char *next = memchr(stop + 1, '\n', (size_t)(end - stop - 1));
        next = next ? next : end;
        if (slice_trim(slice_between(stop + 1, next)).length == 0)
            break;
        stop = next;
    }
    return slice_trim(slice_between(line.start, stop));
}

bool marked_find(struct slice text, enum final_rule rule, struct marked *out)
{
    struct places places = {.count = 0};
    text = slice_trim(text);
    *out = (struct marked){.line = text, .block = text};
    if (rule == FINAL_LINE)
        out->line = out->block = last_line(text);
    if (rule == FINAL_LINE || rule == FINAL_WHOLE)
        return true;
    find_marker(text, &places);
    if (!places.count)
        find_answer_is(text, &places);
    if (!places.count)
        return rule == FINAL_AUTO;
    struct slice line = places.at[places.count - 1];
    bool new_line = line.start > text.start && line.start[-1] == '\n';
    out->found = true;
    out->line = line;
    out->block = new_line ? value_block(line, slice_end(text)) : line;
    return true;
}

struct slice expected_value(struct slice expected)
{
    struct places places = {.count = 0};
    expected = slice_trim(expected);
    find_boxed(expected, &places);
    if (!places.count)
        find_hashes(expected, &places);
    return places.count ? places.at[places.count - 1] : expected;
}
