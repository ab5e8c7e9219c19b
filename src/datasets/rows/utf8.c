#include "datasets/rows/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"

static void repair_bytes(struct text *text)
{
    if (!memchr(text->bytes, '\0', text->length) &&
        utf8_valid_prefix(text->bytes, text->length) == text->length)
        return; /* nearly always: no copy is made */
    struct text valid = {0};
    for (size_t i = 0; i < text->length; i++)
        if (!text->bytes[i])
            text->bytes[i] = '\xFF'; /* a NUL is valid UTF-8, but no C string can contain it */
    text_add_repaired(&valid, text->bytes, text->length);
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
