/* Grades, references, and the search for the final answer.  Every search is one pass with bounded look
 * back, so that a long or hostile completion costs no more than linear time. */
#include "graders/answer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"
#include "graders/fold.h"
#include "graders/number.h"
#include "port/json_read.h"

/* ---- grades ---- */

static void set_verdict(struct grade *grade, enum grade_verdict verdict, const char *reason,
                        va_list args) PRINTF_LIKE(3, 0);

static void set_verdict(struct grade *grade, enum grade_verdict verdict, const char *reason,
                        va_list args)
{
    char full[2 * sizeof grade->reason];
    vsnprintf(full, sizeof full, reason, args);
    grade->verdict = verdict;
    char_one_line(grade->reason, sizeof grade->reason, slice_of(full));
}

void grade_true(struct grade *grade)
{
    grade->verdict = VERDICT_TRUE;
    grade->reason[0] = '\0';
}

void grade_false(struct grade *grade, const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    set_verdict(grade, VERDICT_FALSE, reason, args);
    va_end(args);
}

void grade_null(struct grade *grade, const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    set_verdict(grade, VERDICT_NULL, reason, args);
    va_end(args);
}

void grade_extracted(struct grade *grade, struct slice what)
{
    char_one_line(grade->extracted, sizeof grade->extracted, what);
}

enum err grade_no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "grading: %s", err_text(ERR_NO_MEMORY));
}

/* ---- references ---- */

enum err references_read(const struct params *params, char path[REFERENCES_PATH], struct error *why)
{
    const char *given = params_get(params, "references");
    if (!str_copy(path, REFERENCES_PATH, given ? given : "references"))
        return err_set(why, ERR_USAGE, "references=%.40s...: too long", given);
    return ERR_OK;
}

void references_open(struct references *references, const struct grading *what, const char *path)
{
    *references = (struct references){.items = {what->expected}, .count = 1};
    const char *metadata = what->metadata;
    if (!metadata || jv_available(NULL) ||
        jv_parse(metadata, strlen(metadata), &references->metadata, NULL))
        return;
    const struct jv *list = jv_path(references->metadata, path);
    if (!jv_is_array(list))
        return;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        const char *text = jv_text(item);
        if (text && text[0] && references->count < REFERENCES_MAX)
            references->items[references->count++] = text;
    }
}

void references_release(struct references *references)
{
    jv_free(references->metadata);
    *references = (struct references){0};
}

/* ---- reasoning ---- */

static const struct tag {
    const char *open, *close;
} TAGS[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"[think]", "[/think]"},
};

enum { TAG_COUNT = sizeof TAGS / sizeof *TAGS };

static bool starts_nocase(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++)
        if (tolower((unsigned char)*text) != *prefix)
            return false;
    return true;
}

/* The length of the tag at `at`; 0 when there is none. */
static size_t tag_at(const char *at, bool *closes)
{
    if (*at != '<' && *at != '[')
        return 0;
    for (size_t i = 0; i < TAG_COUNT; i++)
        for (int close = 0; close < 2; close++) {
            const char *tag = close ? TAGS[i].close : TAGS[i].open;
            if (starts_nocase(at, tag)) {
                *closes = close;
                return strlen(tag);
            }
        }
    return 0;
}

void answer_without_reasoning(struct text *out, const char *completion)
{
    bool inside = false;
    const char *pending = completion; /* start of the text not yet copied */
    for (const char *c = completion; *c;) {
        bool closes = false;
        size_t length = tag_at(c, &closes);
        if (!length) {
            c++;
            continue;
        }
        if (closes && !inside)
            text_clear(out); /* the reasoning began in the prompt */
        else if (!closes && !inside)
            text_add_bytes(out, pending, (size_t)(c - pending));
        inside = !closes;
        c += length;
        pending = c;
    }
    if (!inside)
        text_add(out, pending);
}

/* ---- the final answer ---- */

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
    for (size_t i = 0; i + 1 < line.length; i++)
        if (strchr(".!?", line.start[i]) && line.start[i] && slice_is_space(line.start[i + 1]))
            return (struct slice){line.start, i};
    return line;
}

/* ---- \boxed{...} ---- */

/* Nested boxes; beyond this depth the outermost are forgotten. */
enum { BOXES_MAX = 32 };

struct boxes {
    struct {
        const char *start;
        unsigned long depth;
    } open[BOXES_MAX];
    size_t count;
    unsigned long depth; /* of braces */
};

/* The length of "\boxed{" at `at`, 0 for anything else. */
static size_t box_at(const char *at, const char *end)
{
    static const char *const NAMES[] = {"\\boxed", "\\fbox"};
    struct slice rest = slice_between(at, end);
    for (size_t i = 0; i < 2; i++) {
        if (!slice_starts(rest, NAMES[i]))
            continue;
        size_t length = strlen(NAMES[i]);
        while (length < rest.length && rest.start[length] == ' ')
            length++;
        return length < rest.length && rest.start[length] == '{' ? length + 1 : 0;
    }
    return 0;
}

static void box_push(struct boxes *boxes, const char *start)
{
    if (boxes->count == BOXES_MAX) {
        memmove(boxes->open, boxes->open + 1, sizeof boxes->open - sizeof boxes->open[0]);
        boxes->count--;
    }
    boxes->depth++;
    boxes->open[boxes->count].start = start;
    boxes->open[boxes->count++].depth = boxes->depth;
}

/* At a closing brace: true when it closes a box, whose content is then in *box. */
static bool box_close(struct boxes *boxes, const char *at, struct slice *box)
{
    bool closes = boxes->count && boxes->open[boxes->count - 1].depth == boxes->depth;
    if (closes)
        *box = slice_between(boxes->open[--boxes->count].start, at);
    if (boxes->depth)
        boxes->depth--;
    return closes;
}

/* Of the closed boxes, the one that begins last. */
static bool find_boxed(struct slice text, struct slice *out)
{
    struct boxes boxes = {0};
    const char *end = slice_end(text);
    bool found = false;
    for (const char *c = text.start; c < end; c++) {
        size_t opening = *c == '\\' ? box_at(c, end) : 0;
        struct slice box;
        if (opening) {
            box_push(&boxes, c + opening);
            c += opening - 1;
        } else if (*c == '\\' && c + 1 < end && (c[1] == '{' || c[1] == '}')) {
            c++; /* a literal brace, which does not group */
        } else if (*c == '{') {
            boxes.depth++;
        } else if (*c == '}' && box_close(&boxes, c, &box) && (!found || box.start > out->start)) {
            *out = box;
            found = true;
        }
    }
    return found;
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

static bool is_letter(const char *at, const char *end)
{
    return at < end && (isalpha((unsigned char)*at) || (unsigned char)*at >= 0x80);
}

/* The lower-case `word` at `at` in any case, and no letter after it. */
static bool word_at(const char *at, const char *end, const char *word)
{
    for (; *word; word++, at++)
        if (at == end || tolower((unsigned char)*at) != *word)
            return false;
    return !is_letter(at, end);
}

static const char *skip(const char *at, const char *end, const char *set)
{
    while (at < end && *at && strchr(set, *at))
        at++;
    return at;
}

/* The end of "to the question is" in "answer to the question is"; NULL without an "is" in the
 * sentence. */
static const char *after_preposition(const char *at, const char *end)
{
    static const char *const WORDS[] = {"to", "for", "of"};
    enum { LIMIT = 120 };
    bool any = false;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        any = any || word_at(at, end, WORDS[i]);
    const char *limit = end - at > LIMIT ? at + LIMIT : end;
    for (; any && at < limit && !strchr(".!?\n", *at); at++)
        if (*at == ' ' && word_at(at + 1, end, "is"))
            return at + 3;
    return NULL;
}

/* The end of "is", "would be" and the like; NULL when there is none or "not" follows. */
static const char *after_verb(const char *at, const char *end)
{
    static const char *const VERBS[] = {"is",      "was",     "would be",  "should be",
                                        "must be", "will be", "has to be", "equals"};
    const char *after = after_preposition(at, end);
    for (size_t i = 0; !after && i < sizeof VERBS / sizeof *VERBS; i++)
        if (word_at(at, end, VERBS[i]))
            after = at + strlen(VERBS[i]);
    if (!after)
        return NULL;
    const char *next = skip(after, end, " \t*_");
    return word_at(next, end, "not") || word_at(next, end, "neither") ? NULL : after;
}

/* Is the line a heading, or only this word with Markdown around it?  The look back is limited, so that a
 * long line with many such words stays linear. */
static bool is_heading(struct slice text, const char *word, const char *after, const char *end)
{
    enum { LIMIT = 40 };
    const char *start = word;
    while (start > text.start && start[-1] != '\n' && word - start < LIMIT)
        start--;
    if (start > text.start && start[-1] != '\n')
        return false;
    const char *first = skip(start, end, " \t#*_>");
    bool begins = first == word ||
                  (word_at(first, end, "final") && skip(first + strlen("final"), end, " ") == word);
    const char *stop = skip(after, end, " \t*_\r");
    return begins && stop < end && *stop == '\n';
}

/* Where the value of a statement begins whose "answer" ends at `after`; NULL when it is not one. */
static const char *statement_value(struct slice text, const char *word, const char *after,
                                   const char *end)
{
    if (is_heading(text, word, after, end))
        return after;
    const char *at = skip(after, end, " \t*_");
    if (at < end && (*at == ':' || *at == '='))
        return at + 1;
    if (slice_starts(slice_between(at, end), "\xEF\xBC\x9A")) /* the full-width colon */
        return at + 3;
    return at > after ? after_verb(at, end) : NULL;
}

/* Lines that only open a formula or a block of code. */
static bool only_opens(struct slice line)
{
    line = slice_trim(line);
    return slice_starts(line, "```") || slice_equal(line, slice_of("$$")) ||
           slice_equal(line, slice_of("\\["));
}

/* The value after a marker: skips blanks, Markdown and lines that only open a block. */
static struct slice value_line(const char *at, const char *end, bool *new_line)
{
    *new_line = false;
    for (;;) {
        at = skip(at, end, *new_line ? " \t\r\n" : " \t\r*_:>");
        const char *stop = line_end(at, end);
        struct slice line = slice_between(at, stop);
        if (stop == end || (!is_blank(line) && !only_opens(line)))
            return slice_trim(line);
        at = stop + 1;
        *new_line = true;
    }
}

static struct slice value_block(struct slice line, const char *end)
{
    const char *stop = slice_end(line);
    for (const char *at = stop; at < end;) {
        const char *next = line_end(at, end);
        if (next == end)
            return slice_trim(slice_between(line.start, end));
        const char *after = line_end(next + 1, end);
        if (is_blank(slice_between(next + 1, after)))
            return slice_trim(slice_between(line.start, next));
        at = next + 1;
    }
    return line;
}

static bool find_statement(struct slice text, struct final_answer *out)
{
    static const char WORD[] = "answer";
    const char *end = slice_end(text), *found = NULL;
    for (const char *c = text.start; c < end; c++) {
        if ((*c | 32) != 'a' || !word_at(c, end, WORD) || (c > text.start && is_letter(c - 1, end)))
            continue;
        const char *value = statement_value(text, c, c + strlen(WORD), end);
        if (value && skip(value, end, " \t\r\n*_:>") < end)
            found = value;
    }
    if (!found)
        return false;
    bool new_line;
    out->marker = FINAL_STATEMENT;
    out->line = value_line(found, end, &new_line);
    out->block = new_line ? value_block(out->line, end) : out->line;
    return out->line.length > 0;
}

/* ---- all of them ---- */

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
    if (!find_statement(text, &best))
        best = (struct final_answer){0};
    bool found = find_hashes(text, &value);
    take_if_later(&best, FINAL_HASHES, found, value);
    found = find_boxed(text, &value);
    take_if_later(&best, FINAL_BOXED, found, value);
    if (best.marker != FINAL_NONE)
        *out = best;
    return best.marker != FINAL_NONE || rule == FINAL_AUTO;
}

struct slice final_expected(struct slice expected)
{
    struct slice value;
    expected = slice_trim(expected);
    if (find_boxed(expected, &value) || find_hashes(expected, &value))
        return slice_trim(value);
    return expected;
}
