#include "graders/words/fold.h"

#include "core/params.h"
#include "core/text.h"
#include "graders/words/utf8.h"

enum err fold_read(const struct params *params, struct fold *fold, struct error *why)
{
    static const char *const STRIPS[] = {"none", "edges", "punctuation", "all"};
    const char *letter_case = params_get(params, "case");
    const char *strip = params_get(params, "strip");
    if (letter_case) {
        fold->keep_case = str_equal_nocase(letter_case, "keep");
        if (!fold->keep_case && !str_equal_nocase(letter_case, "ignore"))
            return err_set(why, ERR_USAGE, "case=%s: expected ignore or keep", letter_case);
    }
    for (size_t i = 0; strip && i < sizeof STRIPS / sizeof *STRIPS; i++)
        if (str_equal_nocase(strip, STRIPS[i])) {
            fold->strip = (enum fold_strip)i;
            return ERR_OK;
        }
    if (strip)
        return err_set(why, ERR_USAGE, "strip=%s: expected none, edges, punctuation or all", strip);
    return ERR_OK;
}

static bool is_edge_mark(uint32_t c)
{
    if (c >= 0x80)
        return c == 0x3002 || c == 0xFF0C || c == 0xFF01 || c == 0xFF1F || c == 0x2026 ||
               utf8_plain(c) == '"' || utf8_plain(c) == '\'';
    return c && strchr(".,;:!?\"'*_`", (int)c);
}

/* The last character of a slice that is not empty. */
static uint32_t last_character(struct slice text, size_t *length)
{
    size_t back = 1;
    while (back < text.length && back < UTF8_BYTES_MAX &&
           ((unsigned char)text.start[text.length - back] & 0xC0) == 0x80)
        back++;
    uint32_t c = utf8_read((struct slice){slice_end(text) - back, back}, length);
    if (*length == back)
        return c;
    *length = 1; /* broken: its last byte alone */
    return UTF8_INVALID + (unsigned char)text.start[text.length - 1];
}

struct slice fold_edges(struct slice from)
{
    size_t length;
    while (from.length) {
        uint32_t c = utf8_read(from, &length);
        if (!utf8_is_space(c) && !is_edge_mark(c))
            break;
        from.start += length;
        from.length -= length;
    }
    while (from.length) {
        uint32_t c = last_character(from, &length);
        if (!utf8_is_space(c) && !is_edge_mark(c))
            break;
        from.length -= length;
    }
    return from;
}

void fold_add(struct text *out, const struct fold *fold, struct slice from)
{
    if (fold->strip == FOLD_EDGES)
        from = fold_edges(from);
    bool gap = false, begun = false;
    for (size_t at = 0, step; at < from.length; at += step) {
        uint32_t c = utf8_read((struct slice){from.start + at, from.length - at}, &step);
        if (utf8_is_space(c)) {
            gap = begun && fold->strip != FOLD_ALL;
            continue;
        }
        if (fold->strip >= FOLD_PUNCTUATION && utf8_is_punctuation(c))
            continue;
        c = utf8_plain(fold->keep_case ? c : utf8_lower(c));
        char bytes[UTF8_BYTES_MAX];
        size_t length = utf8_encode(c, bytes);
        if (gap)
            text_add_bytes(out, " ", 1);
        text_add_bytes(out, bytes, length);
        gap = false;
        begun = true;
    }
}

enum err fold_equal(const struct fold *fold, struct slice a, struct slice b, bool *equal,
                    struct error *why)
{
    struct text first = {0}, second = {0};
    fold_add(&first, fold, a);
    if (first.length == 0) {
        struct fold as_it_stands = {.keep_case = fold->keep_case, .strip = FOLD_NOTHING};
        fold_add(&first, &as_it_stands, a);
        fold_add(&second, &as_it_stands, b);
    } else {
        fold_add(&second, fold, b);
    }
    bool failed = first.failed || second.failed;
    *equal = strcmp(text_get(&first), text_get(&second)) == 0;
    text_release(&first);
    text_release(&second);
    return failed ? err_set(why, ERR_NO_MEMORY, "grading: out of memory") : ERR_OK;
}
