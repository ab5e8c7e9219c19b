/* Writing grades, reading references, and removing reasoning. */
#include "graders/answer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"
#include "graders/fold.h"
#include "port/json_read.h"

/* ---- grades ---- */

static PRINTF_LIKE(3, 0) void set_verdict(struct grade *grade, enum grade_verdict verdict,
                                          const char *reason, va_list args)
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

void grade_unread(struct grade *grade, const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    set_verdict(grade, VERDICT_UNREAD, reason, args);
    va_end(args);
}

void grade_extracted(struct grade *grade, struct slice what)
{
    char_one_line(grade->extracted, sizeof grade->extracted, what);
}

/* ---- references ---- */

enum err references_read(const struct params *params, char path[REFERENCES_PATH], struct error *why)
{
    const char *given = params_get(params, "references");
    if (!str_copy(path, REFERENCES_PATH, given ? given : "references"))
        return err_set(why, ERR_USAGE, "references=%.40s...: too long", given);
    return ERR_OK;
}

void references_find(struct references *references, const struct grading *what, const char *path)
{
    *references = (struct references){.items = {what->expected}, .count = 1};
    const struct jv *list = jv_path(what->metadata, path);
    if (!jv_is_array(list))
        return;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        const char *text = jv_text(item);
        if (text && text[0] && references->count < REFERENCES_MAX)
            references->items[references->count++] = text;
    }
}

/* ---- reasoning ---- */

static bool starts_nocase(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++)
        if (tolower((unsigned char)*text) != *prefix)
            return false;
    return true;
}

/* Length of the tag at `at`, "<think>" or "[/THINK]"; 0 if there is none. */
static size_t tag_at(const char *at, bool *closes)
{
    static const char *const NAMES[] = {"<think>", "<thinking>", "<reasoning>", "[think]"};
    *closes = *at && at[1] == '/';
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (*at == NAMES[i][0] && starts_nocase(at + 1 + *closes, NAMES[i] + 1))
            return strlen(NAMES[i]) + *closes;
    return 0;
}

void answer_without_reasoning(struct text *out, const char *completion)
{
    bool inside = false;
    const char *pending = completion; /* start of the text not yet copied */
    for (const char *c = completion; *c;) {
        bool closes = false;
        if (starts_nocase(c, "<|im_") || starts_nocase(c, "<|e")) {
            if (!inside) /* a token of the chat template: the answer ends here */
                text_add_bytes(out, pending, (size_t)(c - pending));
            return;
        }
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

/* ---- JSON ---- */

enum err answer_json(const char *text, const char *which, struct jv **out, struct error *why)
{
    struct error damage = {0};
    *out = NULL;
    if (jv_parse(text, strlen(text), out, &damage) == ERR_OK)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE, "%s is not JSON: %s", which, damage.text);
}

/* ---- notation ---- */

/* Whether two backslashes before a letter are one that was escaped for JSON: all of them in the text are, or it has no
 * environment whose lines they could end. */
static bool is_escaped_latex(const char *text)
{
    bool single = false;
    for (const char *c = text; *c; c++) {
        const char *from = c;
        while (*c == '\\')
            c++;
        single = single || (c - from == 1 && isalpha((unsigned char)*c));
        if (!*c)
            break;
    }
    return !single || !strstr(text, "\\begin");
}

/* The ASCII character for one that is only another form of it. */
static uint32_t ascii_form(uint32_t c)
{
    if (c >= 0xFF01 && c <= 0xFF5E) /* full-width */
        return c - 0xFF01 + '!';
    if (c >= 0x660 && c <= 0x669)
        return c - 0x660 + '0';
    if (c >= 0x6F0 && c <= 0x6F9)
        return c - 0x6F0 + '0';
    return c == 0x66B ? '.' : c == 0x66C ? ',' : c;
}

void answer_plain(struct text *out, const char *answer)
{
    bool escaped = is_escaped_latex(answer);
    size_t length = strlen(answer);
    for (size_t at = 0, step; at < length; at += step) {
        uint32_t c = char_at((struct slice){answer + at, length - at}, &step),
                 plain = ascii_form(c);
        bool doubled = escaped && c == '\\' && answer[at + 1] == '\\' &&
                       isalpha((unsigned char)answer[at + 2]);
        step = doubled ? 2 : step;
        char bytes[UTF8_BYTES_MAX];
        if (plain != c)
            text_add_bytes(out, bytes, utf8_encode(plain, bytes));
        else
            text_add_bytes(out, answer + at, doubled ? 1 : step);
    }
}
