#include "graph/gguf/names.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *left, const void *right)
{
    const struct gguf_text *a = *(const struct gguf_text *const *)left;
    const struct gguf_text *b = *(const struct gguf_text *const *)right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

enum err names_sort(struct cursor *cursor, const char *kind, const struct gguf_text **names,
                    size_t count)
{
    cursor_item(cursor, kind, 0);
    if (count)
        qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++) {
        cursor->item = *names[i];
        if (by_text(&names[i - 1], &names[i]) == 0)
            return cursor_fail(cursor, ERR_BAD_VALUE, "is there twice: the file is damaged");
    }
    return ERR_OK;
}

const struct gguf_text *names_find(const struct gguf_text **names, size_t count, const char *name)
{
    struct gguf_text wanted = {name, strlen(name)};
    const struct gguf_text *key = &wanted;
    const struct gguf_text **found =
        count ? bsearch(&key, names, count, sizeof *names, by_text) : NULL;
    return found ? *found : NULL;
}
