#include "core/xalloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/memory.h"
#include "core/text.h"

/* A program that set no ending, a test, ends here. */
static void *never_null(void *block)
{
    if (!block)
        abort();
    return block;
}

void end_without_memory(void)
{
    memory_need(NULL);
    abort();
}

void *xmalloc(size_t size)
{
    return never_null(memory_resize(NULL, size));
}

void *xcalloc(size_t count, size_t size)
{
    return never_null(memory_zeroed(count, size));
}

void *xrealloc(void *block, size_t size)
{
    return never_null(memory_resize(block, size));
}

void *xreallocarray(void *block, size_t count, size_t size)
{
    return xrealloc(block, size && count > PTRDIFF_MAX / size ? PTRDIFF_MAX : count * size);
}

void *xmemdup(const void *bytes, size_t length)
{
    void *copy = xmalloc(length);
    return length ? memcpy(copy, bytes, length) : copy;
}

char *xstrdup(const char *string)
{
    return xmemdup(string, strlen(string) + 1);
}

char *xstrndup(const char *bytes, size_t length)
{
    char *copy = xmalloc(length < PTRDIFF_MAX ? length + 1 : length);
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

char *xformat(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *formatted = xvformat(format, arguments);
    va_end(arguments);
    return formatted;
}

char *xvformat(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    char *formatted = xcalloc(size, 1);
    vsnprintf(formatted, size, format, arguments);
    return formatted;
}

char *path_join(const char *directory, const char *name)
{
    size_t length = name[0] == '/' ? 0 : strlen(directory);
    if (!length)
        return xstrdup(name);
    const char *between = directory[length - 1] == '/' ? "" : "/";
    return xformat("%s%s%s", directory, between, name);
}

void str_set(char **field, const char *value)
{
    char *copy = xstrdup(value ? value : "");
    free(*field);
    *field = copy;
}

void str_take(char **field, struct text *value)
{
    char *taken = value->bytes ? value->bytes : xstrdup("");
    free(*field);
    *field = taken;
    *value = (struct text){0};
}

void *xneed(void *allocated)
{
    return never_null(memory_need(allocated));
}

void *xgrow(void *items, size_t *capacity, size_t count, size_t item_size)
{
    return never_null(grow(items, capacity, count, item_size));
}
