/* Lines of a full-screen view, clipped and colored, and bars of block characters. */
#include "live/live.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

enum { PIECE_MAX = 2048 }; /* a curve of 500 columns, four bytes each */

static const char *const STYLES[] = {
    [STYLE_PLAIN] = "",         [STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",
    [STYLE_GRAPH] = "\033[36m", [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[1;31m",
    [STYLE_MARK] = "\033[7m",
};

bool screen_line(struct screen *screen)
{
    if (screen->lines >= screen->rows) {
        screen->used = screen->columns;
        return false;
    }
    if (screen->lines++ > 0)
        text_add(screen->out, "\n");
    screen->used = 0;
    return true;
}

unsigned screen_left(const struct screen *screen)
{
    return screen->columns - screen->used;
}

static const char *in_ascii(const char *character, size_t length)
{
    static const char *const PAIRS[][2] = {
        {"±", "+-"}, {"µ", "u"}, {"°", " "}, {"–", "-"}, {"·", "-"},
        {"…", "~"},  {"↑", "^"}, {"↓", "v"}, {"╵", "'"},
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++)
        if (strlen(PAIRS[i][0]) == length && !memcmp(PAIRS[i][0], character, length))
            return PAIRS[i][1];
    return "?";
}

/* Names come from drivers and firmware: control characters are escaped. */
static void clean(const struct screen *screen, const char *from, char *to, size_t size)
{
    size_t used = 0;
    for (size_t taken; *from; from += taken) {
        char shown[PLAIN_MAX];
        size_t length = plain_character(from, strnlen(from, UTF8_BYTES_MAX), shown, &taken);
        const char *cell = shown;
        if ((unsigned char)shown[0] >= 0x80 && !screen->utf8) {
            cell = in_ascii(shown, length);
            length = strlen(cell);
        }
        if (used + length >= size)
            break;
        memcpy(to + used, cell, length);
        used += length;
    }
    to[used] = '\0';
}

static void put(struct screen *screen, enum style style, const char *piece, unsigned width)
{
    bool styled = screen->color && style != STYLE_PLAIN;
    text_add(screen->out, styled ? STYLES[style] : "");
    text_add(screen->out, piece);
    text_add(screen->out, styled ? "\033[0m" : "");
    screen->used += width;
}

bool screen_add(struct screen *screen, enum style style, const char *format, ...)
{
    char raw[PIECE_MAX], piece[PIECE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    clean(screen, raw, piece, sizeof piece);
    size_t width = utf8_width(piece);
    if (width > screen_left(screen))
        return false;
    put(screen, style, piece, (unsigned)width);
    return true;
}

void screen_cut(struct screen *screen, enum style style, unsigned max, const char *text)
{
    char piece[PIECE_MAX];
    if (max > screen_left(screen))
        max = screen_left(screen);
    clean(screen, text, piece, sizeof piece);
    size_t width = utf8_width(piece);
    if (width > max) {
        char *at = piece;
        for (unsigned kept = 0; kept + 1 < max; kept++)
            at += utf8_length(at, strnlen(at, UTF8_BYTES_MAX));
        str_copy(at, sizeof piece - (size_t)(at - piece), max == 0 ? "" : screen->utf8 ? "…" : "~");
        width = max;
    }
    put(screen, style, piece, (unsigned)width);
}

void screen_to(struct screen *screen, unsigned column)
{
    if (column > screen->columns)
        column = screen->columns;
    for (; screen->used < column; screen->used++)
        text_add(screen->out, " ");
}

bool screen_right(struct screen *screen, enum style style, const char *text)
{
    char piece[PIECE_MAX];
    clean(screen, text, piece, sizeof piece);
    size_t width = utf8_width(piece);
    if (width == 0 || width + 2 > screen_left(screen))
        return false;
    screen_to(screen, screen->columns - (unsigned)width);
    put(screen, style, piece, (unsigned)width);
    return true;
}

/* ---- bars ---- */

static const char *const BLOCKS[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ASCII[] = {" ", "_", ".", "-", "~", "=", "+", "*", "#"};
enum { LEVELS = 8 };

double spark_top(const float *values, size_t count)
{
    static const double STEPS[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};
    double max = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]) && values[i] > max)
            max = values[i];
    if (max <= 0)
        return 1;
    double decade = pow(10, floor(log10(max)));
    for (size_t i = 0; i < COUNT_OF(STEPS); i++)
        if (STEPS[i] * decade >= max * (1 - 1e-6)) /* tolerance for float rounding */
            return STEPS[i] * decade;
    return 10 * decade;
}

static int level_in(double value, double top, unsigned row, unsigned rows)
{
    if (!is_known(value))
        return 0;
    long level = lround(value / top * LEVELS * rows);
    if (level < 1)
        level = 1;
    level -= (long)LEVELS * (rows - 1 - row);
    return level < 0 ? 0 : level > LEVELS ? LEVELS : (int)level;
}

void spark_row(const float *values, size_t count, double top, unsigned row, unsigned rows,
               bool utf8, char *to)
{
    const char *const *cells = utf8 ? BLOCKS : ASCII;
    for (size_t i = 0; i < count; i++) {
        const char *cell = cells[level_in(values[i], top, row, rows)];
        size_t length = strlen(cell);
        memcpy(to, cell, length);
        to += length;
    }
    *to = '\0';
}

void spark_meter(double share, size_t width, bool utf8, char *to)
{
    size_t filled = is_known(share) && share > 0 ? (size_t)lround(share * (double)width) : 0;
    for (size_t i = 0; i < width; i++) {
        const char *cell = i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : ".");
        size_t length = strlen(cell);
        memcpy(to, cell, length);
        to += length;
    }
    *to = '\0';
}
