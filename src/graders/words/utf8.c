#include "graders/words/utf8.h"

#include "core/utf8.h"

uint32_t utf8_read(struct slice text, size_t *length)
{
    return utf8_decode(text.start, text.length, length);
}

/* Blocks in which capitals and small letters alternate, the capital even (or odd). */
static bool alternates(uint32_t c, uint32_t *parity)
{
    static const struct {
        uint32_t first, last, parity;
    } BLOCKS[] = {
        {0x100, 0x12F, 0},   {0x132, 0x137, 0}, {0x139, 0x148, 1}, {0x14A, 0x177, 0},
        {0x179, 0x17E, 1},   {0x1CD, 0x1DC, 1}, {0x1DE, 0x1EF, 0}, {0x200, 0x21F, 0},
        {0x222, 0x233, 0},   {0x370, 0x373, 0}, {0x3D8, 0x3EF, 0}, {0x460, 0x481, 0},
        {0x48A, 0x4BF, 0},   {0x4C1, 0x4CE, 1}, {0x4D0, 0x52F, 0}, {0x1E00, 0x1E95, 0},
        {0x1EA0, 0x1EFF, 0},
    };
    for (size_t i = 0; i < sizeof BLOCKS / sizeof *BLOCKS; i++)
        if (c >= BLOCKS[i].first && c <= BLOCKS[i].last) {
            *parity = BLOCKS[i].parity;
            return true;
        }
    return false;
}

uint32_t utf8_lower(uint32_t c)
{
    static const struct {
        uint32_t first, last, distance;
    } SHIFTS[] = {
        {'A', 'Z', 32},     {0xC0, 0xD6, 32},     {0xD8, 0xDE, 32},   {0x391, 0x3A1, 32},
        {0x3A3, 0x3AB, 32}, {0x386, 0x386, 38},   {0x388, 0x38A, 37}, {0x38C, 0x38C, 64},
        {0x38E, 0x38F, 63}, {0x400, 0x40F, 80},   {0x410, 0x42F, 32}, {0x4C0, 0x4C0, 15},
        {0x531, 0x556, 48}, {0xFF21, 0xFF3A, 32},
    };
    for (size_t i = 0; i < sizeof SHIFTS / sizeof *SHIFTS; i++)
        if (c >= SHIFTS[i].first && c <= SHIFTS[i].last)
            return c + SHIFTS[i].distance;
    switch (c) {
    case 0x178: /* Y with diaeresis, whose small letter is in Latin-1 */
        return 0xFF;
    case 0x1E9E: /* capital sharp s */
        return 0xDF;
    case 0x212A: /* the sign of the kelvin */
        return 'k';
    case 0x212B: /* the sign of the ångström */
        return 0xE5;
    default:
        break;
    }
    uint32_t parity;
    if (c >= 0x100 && alternates(c, &parity) && c % 2 == parity)
        return c + 1;
    return c;
}

bool utf8_is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
           c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool utf8_is_punctuation(uint32_t c)
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

bool utf8_is_word(uint32_t c)
{
    return c > ' ' && c != 0x7F && !utf8_is_space(c) && !utf8_is_punctuation(c);
}

uint32_t utf8_plain(uint32_t c)
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

void utf8_show(char *to, size_t size, struct slice from)
{
    size_t used = 0;
    bool gap = false;
    for (size_t at = 0, step; at < from.length; at += step) {
        struct slice rest = {from.start + at, from.length - at};
        uint32_t c = utf8_read(rest, &step);
        if (c <= ' ' || c == 0x7F || utf8_is_space(c)) {
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
