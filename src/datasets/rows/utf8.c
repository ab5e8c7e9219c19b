#include "datasets/rows/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/text.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* Length of the valid sequence that begins here, or 0. */
static size_t sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] ? 1 : 0;
    size_t length = s[0] >= 0xC2 && s[0] < 0xE0   ? 2
                    : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                    : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                  : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    /* The second byte tells an overlong form, a surrogate, and what lies beyond U+10FFFF. */
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))
        return 0;
    return length;
}

/* How many bytes from here are valid. */
static size_t valid_run(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t step = sequence((const unsigned char *)bytes + at, length - at);
        if (step == 0)
            break;
        at += step;
    }
    return at;
}

static void repair_bytes(struct text *text)
{
    if (valid_run(text_get(text), text->length) == text->length)
        return; /* nearly always: no copy is made */
    struct text valid = {0};
    for (size_t at = 0; at < text->length;) {
        size_t good = valid_run(text->bytes + at, text->length - at);
        text_add_bytes(&valid, text->bytes + at, good);
        at += good;
        if (at < text->length) {
            text_add(&valid, REPLACEMENT);
            at++;
        }
    }
    text_release(text);
    *text = valid;
}

/* The code unit of an escape \uXXXX at s, or -1. */
static int escaped_unit(const char *s)
{
    int unit = 0;
    if (s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        if (!isxdigit((unsigned char)s[i]))
            return -1;
        int digit =
            isdigit((unsigned char)s[i]) ? s[i] - '0' : tolower((unsigned char)s[i]) - 'a' + 10;
        unit = unit * 16 + digit;
    }
    return unit;
}

static bool is_high(int unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(int unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* \uXXXX becomes \ufffd, in its place. */
static void put_replacement(char *escape)
{
    static const char DIGITS[] = "fffd";
    for (int i = 0; i < 4; i++)
        escape[2 + i] = DIGITS[i];
}

void utf8_repair_json(struct text *json)
{
    if (json->failed || !json->bytes)
        return;
    repair_bytes(json);
    if (json->failed || !json->bytes)
        return;
    for (char *s = strchr(json->bytes, '\\'); s; s = strchr(s, '\\')) {
        int unit = escaped_unit(s);
        if (unit < 0) {
            s += s[1] ? 2 : 1; /* another escape: its second byte may be a backslash */
        } else if (is_high(unit) && is_low(escaped_unit(s + 6))) {
            s += 12;
        } else {
            if (unit == 0 || is_high(unit) || is_low(unit))
                put_replacement(s);
            s += 6;
        }
    }
}
