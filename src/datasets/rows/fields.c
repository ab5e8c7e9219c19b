#include "datasets/rows/fields.h"

#include <string.h>

#include "core/text.h"
#include "port/json_read.h"

enum { NAME_SIZE = 160 };

const char *field_name_next(const char *names, char *name, size_t size)
{
    size_t length = strcspn(names, "|");
    size_t kept = length < size ? length : size - 1;
    memcpy(name, names, kept);
    name[kept] = '\0';
    return names[length] ? names + length + 1 : NULL;
}

static const struct jv *find_one(const struct jv *row, const char *name)
{
    const struct jv *value = jv_get(row, name); /* a key may hold dots itself */
    return value ? value : jv_path(row, name);
}

const struct jv *field_find(const struct jv *row, const char *names)
{
    char name[NAME_SIZE];
    const struct jv *first = NULL;
    while (names) {
        names = field_name_next(names, name, sizeof name);
        const struct jv *value = name[0] ? find_one(row, name) : NULL;
        if (!field_is_empty(value))
            return value;
        if (!first)
            first = value;
    }
    return first;
}

bool field_is_empty(const struct jv *value)
{
    const char *string = jv_text(value);
    if (string)
        return string[0] == '\0';
    if (jv_is_array(value) || jv_is_object(value))
        return !jv_first(value);
    return jv_is_null(value);
}

void field_add_text(const struct jv *value, struct text *out)
{
    const char *string = jv_text(value);
    if (string) {
        text_add(out, string);
    } else if (jv_is_array(value)) {
        for (const struct jv *element = jv_first(value); element; element = jv_next(element)) {
            if (element != jv_first(value))
                text_add(out, "\n");
            const char *text = jv_text(element);
            if (text)
                text_add(out, text);
            else if (jv_print(element, out) != ERR_OK)
                out->failed = true;
        }
    } else if (!jv_is_null(value) && jv_print(value, out) != ERR_OK) {
        out->failed = true;
    }
}

void field_list(const struct jv *row, struct text *out)
{
    for (const struct jv *child = jv_first(row); child; child = jv_next(child))
        text_addf(out, "%s%s", child == jv_first(row) ? "" : ", ", jv_key(child));
}
