#include "core/plain.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"

static bool is_plain(uint32_t code)
{
    bool is_control = code < ' ' || (code >= 0x7f && code < 0xa0);
    bool is_line_end = code == 0x2028 || code == 0x2029;
    bool is_direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                        (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return !is_control && !is_line_end && !is_direction;
}

/* Bytes of the plain character that the `left` bytes begin with; 0: it is none. */
static size_t plain_length(const char *at, size_t left)
{
    size_t length;
    uint32_t code = utf8_decode(at, left, &length);
    return code < UTF8_INVALID && is_plain(code) ? length : 0;
}

bool str_is_plain(const char *string)
{
    size_t left = strlen(string);
    while (left) {
        size_t length = plain_length(string, left);
        if (length == 0)
            return false;
        string += length;
        left -= length;
    }
    return true;
}

/* Is what is left the beginning of a longer character, and nothing else? */
static bool is_cut(const char *at, size_t left)
{
    unsigned char first = (unsigned char)*at;
    size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    for (size_t i = 1; i < left; i++)
        if (((unsigned char)at[i] & 0xc0) != 0x80)
            return false;
    return first < 0xf5 && left < whole;
}

char *str_plain(char *string)
{
    size_t left = strlen(string);
    char *to = string, *const start = string;
    while (left && !is_cut(string, left)) {
        size_t kept = plain_length(string, left), taken = kept ? kept : utf8_length(string, left);
        taken = taken ? taken : 1;
        if (kept)
            memmove(to, string, kept);
        else
            *to = '?';
        to += kept ? kept : 1;
        string += taken;
        left -= taken;
    }
    *to = '\0';
    return start;
}

struct plain_text plain_text(const char *string)
{
    struct plain_text plain = {.text = ""};
    str_copy(plain.text, sizeof plain.text, string);
    str_plain(plain.text);
    return plain;
}
