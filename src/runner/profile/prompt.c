#include "runner/profile/prompt.h"

#include <string.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "port/json_read.h"

/* A value of the item's metadata, added as text; false when it has none of that name. */
static bool add_metadata(const struct item *item, const char *name, struct text *out)
{
    struct jv *metadata;
    bool found = false;
    if (jv_parse(item->metadata, strlen(item->metadata), &metadata, NULL) != ERR_OK)
        return false;
    const struct jv *value = jv_path(metadata, name);
    if (!jv_is_null(value)) {
        found = true;
        if (jv_text(value))
            text_add(out, jv_text(value));
        else
            found = jv_print(value, out) == ERR_OK;
    }
    jv_free(metadata);
    return found;
}

static bool add_field(const struct item *item, const char *name, struct text *out)
{
    if (strcmp(name, "problem") == 0)
        text_add(out, item->problem);
    else if (strcmp(name, "subject") == 0)
        text_add(out, item->subject);
    else if (strcmp(name, "id") == 0)
        text_add(out, item->id);
    else
        return add_metadata(item, name, out);
    return true;
}

/* The length of a field "{name}" at its brace, rendered; 0 when it is none. */
static size_t render_field(const char *at, const struct item *item, struct text *out)
{
    char name[64];
    size_t length = strcspn(at + 1, "{}\n");
    if (at[1 + length] != '}' || length == 0 || length >= sizeof name)
        return 0;
    memcpy(name, at + 1, length);
    name[length] = '\0';
    return add_field(item, name, out) ? length + 2 : 0;
}

void prompt_render(const char *template_text, const struct item *item, struct text *out)
{
    text_clear(out);
    if (!template_text) {
        text_add(out, item->problem);
        return;
    }
    for (const char *c = template_text; *c;) {
        size_t used = *c == '{' ? render_field(c, item, out) : 0;
        if (used == 0 && *c == '\\' && (c[1] == 'n' || c[1] == 't')) {
            text_add(out, c[1] == 'n' ? "\n" : "\t");
            used = 2;
        } else if (used == 0) {
            text_add_bytes(out, c, 1);
            used = 1;
        }
        c += used;
    }
}
