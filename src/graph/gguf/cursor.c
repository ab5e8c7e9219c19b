#include "graph/gguf/cursor.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "core/text.h"

enum {
    LONGEST_NAME = 65535, /* of a key, by the format's own rule */
    LONGEST_SHOWN = 80,
};

/* A name as a message can show it. */
static void show_name(struct gguf_text name, char *to, size_t size)
{
    size_t length = name.length < size - 1 ? name.length : size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)(name.bytes[i] ? name.bytes[i] : '?');
    to[length] = '\0';
    str_plain(to);
}

/* ", key 'NAME'" or ", key 3": which item it is about. */
static void show_item(const struct cursor *cursor, char *to, size_t size)
{
    char name[LONGEST_SHOWN];
    to[0] = '\0';
    if (cursor->kind && cursor->item.length) {
        show_name(cursor->item, name, sizeof name);
        str_format(to, size, ", %s '%s'", cursor->kind, name);
    } else if (cursor->kind) {
        str_format(to, size, ", %s %llu", cursor->kind, (unsigned long long)cursor->number);
    }
}

enum err cursor_fail(const struct cursor *cursor, enum err code, const char *format, ...)
{
    char item[LONGEST_SHOWN + 32], what[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    show_item(cursor, item, sizeof item);
    return err_set(cursor->why, code, "%s: byte %llu%s: %s", cursor->file,
                   (unsigned long long)cursor->at, item, what);
}

void cursor_item(struct cursor *cursor, const char *kind, uint64_t number)
{
    cursor->kind = kind;
    cursor->item = (struct gguf_text){0};
    cursor->number = number;
}

uint64_t cursor_little(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

enum err cursor_skip(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor_left(cursor))
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "%llu bytes are needed and the file ends after %llu; it is cut short or "
                           "damaged: fetch it again",
                           (unsigned long long)bytes, (unsigned long long)cursor_left(cursor));
    cursor->at += bytes;
    return ERR_OK;
}

static enum err take(struct cursor *cursor, unsigned count, uint64_t *out)
{
    const unsigned char *from = cursor->bytes + cursor->at;
    enum err err = cursor_skip(cursor, count);
    if (!err)
        *out = cursor_little(from, count);
    return err;
}

enum err cursor_u32(struct cursor *cursor, uint32_t *out)
{
    uint64_t value = 0;
    enum err err = take(cursor, 4, &value);
    *out = (uint32_t)value;
    return err;
}

enum err cursor_u64(struct cursor *cursor, uint64_t *out)
{
    *out = 0;
    return take(cursor, 8, out);
}

enum err cursor_text(struct cursor *cursor, struct gguf_text *out)
{
    uint64_t length;
    enum err err = cursor_u64(cursor, &length);
    if (err)
        return err;
    *out = (struct gguf_text){(const char *)cursor->bytes + cursor->at, (size_t)length};
    return cursor_skip(cursor, length);
}

enum err cursor_name(struct cursor *cursor, struct gguf_text *out)
{
    struct cursor before = *cursor;
    enum err err = cursor_text(cursor, out);
    if (err)
        return err;
    if (out->length == 0)
        return cursor_fail(&before, ERR_BAD_VALUE, "has no name: the file is damaged");
    if (out->length > LONGEST_NAME)
        return cursor_fail(&before, ERR_BAD_VALUE, "its name has %llu bytes: the file is damaged",
                           (unsigned long long)out->length);
    cursor->item = *out;
    return ERR_OK;
}
