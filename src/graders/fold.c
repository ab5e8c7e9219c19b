/* Unicode classes by range tables for the scripts of answers, and folding based on them.  The C library's classes
 * depend on the locale, which grades must not. */
#define _GNU_SOURCE /* memmem */
#include "graders/fold.h"

#include "core/params.h"
#include "core/text.h"

/* ---- characters ---- */

uint32_t char_lower(uint32_t c)
{
    static const struct {
        uint32_t first, last, distance;
    } SHIFTS[] = {
        {0xC0, 0xD6, 32},     {0xD8, 0xDE, 32},   {0x391, 0x3A1, 32}, {0x3A3, 0x3AB, 32},
        {0x386, 0x386, 38},   {0x388, 0x38A, 37}, {0x38C, 0x38C, 64}, {0x38E, 0x38F, 63},
        {0x400, 0x40F, 80},   {0x410, 0x42F, 32}, {0x4C0, 0x4C0, 15}, {0x531, 0x556, 48},
        {0xFF21, 0xFF3A, 32},
    };
    /* Blocks of alternating upper-case and lower-case letters; `parity` is that of the upper-case ones. */
    static const struct {
        uint32_t first, last, parity;
    } BLOCKS[] = {
        {0x100, 0x12F, 0}, {0x132, 0x137, 0},   {0x139, 0x148, 1},   {0x14A, 0x177, 0},
        {0x179, 0x17E, 1}, {0x1A0, 0x1A5, 0},   {0x1AF, 0x1B0, 1},   {0x1CD, 0x1DC, 1},
        {0x1DE, 0x1EF, 0}, {0x200, 0x21F, 0},   {0x222, 0x233, 0},   {0x370, 0x373, 0},
        {0x3D8, 0x3EF, 0}, {0x460, 0x481, 0},   {0x48A, 0x4BF, 0},   {0x4C1, 0x4CE, 1},
        {0x4D0, 0x52F, 0}, {0x1E00, 0x1E95, 0}, {0x1EA0, 0x1EFF, 0},
    };
    /* dotted I, Y with diaeresis, sharp s, kelvin, angstrom */
    static const uint32_t LONE[][2] = {
        {0x130, 'i'}, {0x178, 0xFF}, {0x1E9E, 0xDF}, {0x212A, 'k'}, {0x212B, 0xE5}};
    if (c < 0x80) /* fast path for most text */
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    for (size_t i = 0; i < COUNT_OF(LONE); i++)
        if (c == LONE[i][0])
            return LONE[i][1];
    for (size_t i = 0; i < COUNT_OF(SHIFTS); i++)
        if (c >= SHIFTS[i].first && c <= SHIFTS[i].last)
            return c + SHIFTS[i].distance;
    for (size_t i = 0; i < COUNT_OF(BLOCKS); i++)
        if (c >= BLOCKS[i].first && c <= BLOCKS[i].last)
            return c + (c % 2 == BLOCKS[i].parity);
    return c;
}

bool char_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return c == 0xA1 || c == 0xA7 || c == 0xAB || c == 0xB6 || c == 0xB7 || c == 0xBB ||
           c == 0xBF || c == 0x2212 || (c >= 0x2010 && c <= 0x2027) ||
           (c >= 0x2030 && c <= 0x205E) || (c >= 0x3001 && c <= 0x3003) ||
           (c >= 0x3008 && c <= 0x3011) || (c >= 0xFF01 && c <= 0xFF0F) ||
           (c >= 0xFF1A && c <= 0xFF20) || (c >= 0xFF3B && c <= 0xFF40) ||
           (c >= 0xFF5B && c <= 0xFF65);
}

bool char_is_word(uint32_t c)
{
    return c > ' ' && c != 0x7F && !char_is_space(c) && !char_is_punctuation(c);
}

bool char_is_cjk(uint32_t c)
{
    return (c >= 0x2E80 && c <= 0x2FFF) || (c >= 0x3040 && c <= 0x9FFF) ||
           (c >= 0xAC00 && c <= 0xD7FF) || (c >= 0xF900 && c <= 0xFAFF);
}

size_t char_superscript(struct slice text, double *value)
{
    size_t at = 0, digits = 0;
    double sign = 1;
    *value = 0;
    for (size_t length; at < text.length; at += length) {
        uint32_t c = char_at((struct slice){text.start + at, text.length - at}, &length);
        bool high = c == 0x2070 || (c >= 0x2074 && c <= 0x2079);
        bool minus = c == 0x207B && at == 0;
        if (!high && !minus && c != 0xB2 && c != 0xB3 && c != 0xB9)
            break;
        sign = minus ? -1 : sign;
        digits += !minus;
        *value = minus ? 0 : *value * 10 + (high ? c - 0x2070 : c == 0xB9 ? 1 : c - 0xB0);
    }
    *value *= sign;
    return digits ? at : 0;
}

const char *char_subscript(uint32_t c)
{
    static const char DIGITS[][2] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const char LETTERS[][2] = {"a", "e", "o", "x", "", "h", "k", "l", "m", "n"};
    if (c >= 0x2080 && c <= 0x2089)
        return DIGITS[c - 0x2080];
    if (c >= 0x2090 && c <= 0x2099 && c != 0x2094)
        return LETTERS[c - 0x2090];
    return c == 0x1D62 ? "i" : c == 0x2C7C ? "j" : NULL;
}

void char_one_line(char *to, size_t size, struct slice from)
{
    size_t used = 0;
    bool gap = false;
    for (size_t at = 0, step; at < from.length; at += step) {
        struct slice rest = {from.start + at, from.length - at};
        uint32_t c = char_at(rest, &step);
        if (c <= ' ' || c == 0x7F || char_is_space(c)) {
            gap = used > 0;
            continue;
        }
        char bytes[UTF8_BYTES_MAX];
        size_t length = utf8_encode(c >= UTF8_INVALID ? UTF8_REPLACEMENT : c, bytes);
        if (used + gap + length >= size)
            break;
        if (gap)
            to[used++] = ' ';
        gap = false;
        memcpy(to + used, bytes, length);
        used += length;
    }
    to[used] = '\0';
}

/* ---- folding ---- */

/* Typographic quotes, dashes and minus signs become ASCII. */
static uint32_t char_ascii(uint32_t c)
{
    if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212 || c == 0xFF0D)
        return '-';
    if (c == 0x2018 || c == 0x2019 || c == 0x201A || c == 0x201B || c == 0x2032)
        return '\'';
    if (c == 0x201C || c == 0x201D || c == 0x201E || c == 0x201F || c == 0x2033 || c == 0xAB ||
        c == 0xBB)
        return '"';
    return c;
}

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
    for (size_t i = 0; strip && i < COUNT_OF(STRIPS); i++)
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
               char_ascii(c) == '"' || char_ascii(c) == '\'';
    return c && strchr(".,;:!?\"'*_`", (int)c);
}

/* The last character of a nonempty slice. */
static uint32_t last_character(struct slice text, size_t *length)
{
    size_t back = 1;
    while (back < text.length && back < UTF8_BYTES_MAX &&
           utf8_is_continuation(text.start[text.length - back]))
        back++;
    uint32_t c = char_at((struct slice){slice_end(text) - back, back}, length);
    if (*length == back)
        return c;
    *length = 1; /* invalid: the last byte alone */
    return UTF8_INVALID + (unsigned char)text.start[text.length - 1];
}

struct slice fold_edges(struct slice from)
{
    size_t length;
    while (from.length) {
        uint32_t c = char_at(from, &length);
        if (!char_is_space(c) && !is_edge_mark(c))
            break;
        from.start += length;
        from.length -= length;
    }
    while (from.length) {
        uint32_t c = last_character(from, &length);
        if (!char_is_space(c) && !is_edge_mark(c))
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
        uint32_t c = char_at((struct slice){from.start + at, from.length - at}, &step);
        if (char_is_space(c)) {
            gap = begun && fold->strip != FOLD_ALL;
            continue;
        }
        if (fold->strip >= FOLD_PUNCTUATION && char_is_punctuation(c))
            continue;
        bool marked = !fold->keep_case && c == CHAR_DOTTED_I;
        c = char_ascii(fold->keep_case ? c : char_lower(c));
        char bytes[UTF8_BYTES_MAX];
        size_t length = utf8_encode(c, bytes);
        if (gap)
            text_add_bytes(out, " ", 1);
        text_add_bytes(out, bytes, length);
        if (marked)
            text_add(out, CHAR_LOWER_MARK);
        gap = false;
        begun = true;
    }
}

bool fold_equal(const struct fold *fold, struct slice a, struct slice b)
{
    struct text first = {0}, second = {0};
    fold_add(&first, fold, a);
    if (first.length == 0) {
        struct fold unfolded = {.keep_case = fold->keep_case, .strip = FOLD_NOTHING};
        fold_add(&first, &unfolded, a);
        fold_add(&second, &unfolded, b);
    } else {
        fold_add(&second, fold, b);
    }
    bool equal = str_equal(text_get(&first), text_get(&second));
    text_release(&first);
    text_release(&second);
    return equal;
}

/* ---- searching ---- */

/* Whether `at` is a word boundary: an end of the text, or next to a character that is not part of a word. */
static bool is_break(struct slice text, size_t at)
{
    if (at == 0 || at == text.length)
        return true;
    size_t back = at - 1, length;
    while (back > 0 && at - back < UTF8_BYTES_MAX && utf8_is_continuation(text.start[back]))
        back--;
    uint32_t before = char_at((struct slice){text.start + back, at - back}, &length);
    uint32_t after = char_at((struct slice){text.start + at, text.length - at}, &length);
    return !char_is_word(before) || !char_is_word(after);
}

bool text_occurs(struct slice text, struct slice needle, bool whole_words)
{
    const char *at = text.start, *end = slice_end(text);
    while ((at = memmem(at, (size_t)(end - at), needle.start, needle.length))) {
        size_t from = (size_t)(at++ - text.start);
        if (!whole_words || (is_break(text, from) && is_break(text, from + needle.length)))
            return true;
    }
    return false;
}

bool fold_occurs(const struct fold *fold, struct slice text, struct slice wanted)
{
    struct text within = {0}, needle = {0};
    fold_add(&within, fold, text);
    fold_add(&needle, fold, wanted);
    bool found =
        needle.length && text_occurs((struct slice){text_get(&within), within.length},
                                     (struct slice){text_get(&needle), needle.length}, true);
    text_release(&within);
    text_release(&needle);
    return found;
}
