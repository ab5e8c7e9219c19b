#include "core/utf8.h"

/* Bytes that a lead byte announces; 0 for a byte that cannot begin a character. */
static size_t announced(unsigned char lead)
{
    return lead < 0x80                   ? 1
           : lead >= 0xC2 && lead < 0xE0 ? 2
           : lead >= 0xE0 && lead < 0xF0 ? 3
           : lead >= 0xF0 && lead < 0xF5 ? 4
                                         : 0;
}

size_t utf8_length(const char *bytes, size_t left)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t length = left ? announced(s[0]) : 0;
    if (length < 2 || length > left)
        return length > left ? 0 : length;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] >= 0xA0;
    bool beyond = s[0] == 0xF4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

size_t utf8_valid_prefix(const char *bytes, size_t length)
{
    size_t at = 0, step;
    while (at < length && (step = utf8_length(bytes + at, length - at)) > 0)
        at += step;
    return at;
}

uint32_t utf8_decode(const char *bytes, size_t left, size_t *length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t count = utf8_length(bytes, left);
    *length = count ? count : 1;
    if (count == 0)
        return UTF8_INVALID + s[0];
    uint32_t code = count == 1 ? s[0] : s[0] & (0x7Fu >> count);
    for (size_t i = 1; i < count; i++)
        code = code << 6 | (s[i] & 0x3Fu);
    return code;
}

size_t utf8_encode(uint32_t code, char to[UTF8_BYTES_MAX])
{
    static const unsigned char LEADS[] = {0, 0, 0xC0, 0xE0, 0xF0};
    if (code < 0x80 || code >= UTF8_INVALID) {
        to[0] = (char)(code < 0x80 ? code : code - UTF8_INVALID);
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(LEADS[length] | code);
    return length;
}

size_t utf8_width(const char *string)
{
    size_t width = 0;
    for (; *string; string++)
        width += !utf8_is_continuation(*string); /* continuation bytes take no column */
    return width;
}
