#include "clients/wire/words.h"

#include <string.h>

#include "port/json_read.h"

/* Bytes of the UTF-8 character that begins so; 0 for a byte that begins none. */
static size_t character_length(unsigned char first)
{
    return first < 0x80    ? 1
           : first < 0xC2  ? 0
           : first < 0xE0  ? 2
           : first < 0xF0  ? 3
           : first <= 0xF4 ? 4
                           : 0;
}

void words_shown(char *to, size_t size, const char *bytes, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t n = character_length(c);
        if (n > length - i)
            n = 0;
        for (size_t k = 1; k < n; k++)
            if (((unsigned char)bytes[i + k] & 0xC0) != 0x80)
                n = 0;
        if (used + (n ? n : 1) >= size)
            break;
        if (n == 0 || c < 0x20 || c == 0x7F) {
            to[used++] = ' ';
            i++;
            continue;
        }
        memcpy(to + used, bytes + i, n);
        used += n;
        i += n;
    }
    to[used] = '\0';
}

const char *words_of_error(const struct jv *object)
{
    static const char *const PATHS[] = {"error.message", "error.detail", "error", "message",
                                        "detail.0.msg",  "detail",       NULL};
    for (const char *const *path = PATHS; *path; path++) {
        const char *text = jv_text(jv_path(object, *path));
        if (text && *text)
            return text;
    }
    return jv_is_null(jv_get(object, "error")) ? NULL : "an error that it does not name";
}
