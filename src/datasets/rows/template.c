#include "datasets/rows/template.h"

#include <string.h>

#include "core/text.h"

/* The byte that an escape stands for; what is no escape of ours stays as it is. */
static size_t add_escape(const char *at, struct text *out)
{
    static const char CODES[] = "nt\\{}", BYTES[] = "\n\t\\{}";
    const char *code = at[1] ? strchr(CODES, at[1]) : NULL;
    if (code)
        text_add_bytes(out, &BYTES[code - CODES], 1);
    else
        text_add_bytes(out, at, 1);
    return code ? 2 : 1;
}

enum err template_expand(const char *template, const struct template_fields *fields,
                         struct text *out, struct error *why)
{
    for (const char *at = template; *at;) {
        size_t plain = strcspn(at, "\\{");
        text_add_bytes(out, at, plain);
        at += plain;
        if (*at == '\\') {
            at += add_escape(at, out);
        } else if (*at == '{') {
            char name[160];
            size_t length = strcspn(at + 1, "}");
            if (!at[1 + length] || length >= sizeof name)
                return err_set(why, ERR_USAGE, "template: a '{' without its '}' at \"%.20s\"", at);
            memcpy(name, at + 1, length);
            name[length] = '\0';
            enum err err = fields->add(fields->context, name, out, why);
            if (err)
                return err;
            at += length + 2;
        }
    }
    return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
