#include "report/html/page.h"

#include <stdbool.h>
#include <string.h>

#include "core/text.h"
#include "report/html/assets.h"

static void add_escaped(struct text *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            text_add(out, "&amp;");
            break;
        case '<':
            text_add(out, "&lt;");
            break;
        case '>':
            text_add(out, "&gt;");
            break;
        case '"':
            text_add(out, "&quot;");
            break;
        default:
            text_add_bytes(out, text, 1);
        }
    }
}

/* JSON inside a script element: nothing in it may end the element or begin a comment, and no line
 * separator may break a line.  All of these stand in strings, where JSON has another way to write them. */
static void add_data(struct text *out, const struct text *data)
{
    const char *at = text_get(data), *end = at + data->length;
    while (at < end) {
        size_t plain = strcspn(at, "<>&\xE2");
        text_add_bytes(out, at, plain);
        at += plain;
        if (at >= end)
            break;
        if (strncmp(at, "\xE2\x80\xA8", 3) == 0 || strncmp(at, "\xE2\x80\xA9", 3) == 0) {
            text_add(out, at[2] == '\xA8' ? "\\u2028" : "\\u2029");
            at += 3;
        } else if (*at == '\xE2') {
            text_add_bytes(out, at++, 1);
        } else {
            text_addf(out, "\\u%04x", (unsigned)*at++);
        }
    }
}

static bool is(const char *mark, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(mark, name, length) == 0;
}

/* What stands for a mark of the template: {{title}}, {{data}}, or a file. */
static void add_part(struct text *out, const char *mark, size_t length, const char *title,
                     const struct text *data)
{
    struct asset asset = asset_find(mark, length);
    if (asset.bytes)
        text_add_bytes(out, asset.bytes, asset.length);
    else if (is(mark, length, "title"))
        add_escaped(out, title);
    else if (is(mark, length, "data"))
        add_data(out, data);
}

enum err page_make(const char *title, const struct text *data, struct text *out, struct error *why)
{
    const char *at = asset_template().bytes, *mark;
    while ((mark = strstr(at, "{{"))) {
        const char *end = strstr(mark, "}}");
        if (!end)
            break;
        text_add_bytes(out, at, (size_t)(mark - at));
        add_part(out, mark + 2, (size_t)(end - mark - 2), title, data);
        at = end + 2;
    }
    text_add(out, at);
    return out->failed || data->failed ? err_set(why, ERR_NO_MEMORY, "out of memory for the page")
                                       : ERR_OK;
}
