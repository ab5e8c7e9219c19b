/* An item: its strings, and its fields by name. */
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"

void item_release(struct item *item)
{
    free(item->id);
    free(item->problem);
    free(item->answer);
    free(item->subject);
    jv_free(item->metadata);
    free(item->grader);
    *item = (struct item){0};
}

void item_complete(struct item *item)
{
    const struct {
        char **field;
        const char *otherwise;
    } FIELDS[] = {
        {&item->id, ""},     {&item->problem, ""}, {&item->answer, ""}, {&item->subject, "general"},
        {&item->grader, ""},
    };
    if (!item->metadata)
        item->metadata = jv_new_object();
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++)
        if (!*FIELDS[i].field)
            str_set(FIELDS[i].field, FIELDS[i].otherwise);
}

/* ---- fields ---- */

static bool metadata_field(const struct item *item, const char *path, struct text *out)
{
    const struct jv *value = jv_path(item->metadata, path);
    bool found = !jv_is_null(value);
    if (jv_text(value))
        text_add(out, jv_text(value));
    else if (found)
        jv_print(value, out);
    return found;
}

bool item_field(const struct item *item, const char *name, struct text *out)
{
    const char *const own[][2] = {
        {"problem", item->problem}, {"subject", item->subject}, {"id", item->id}};
    const char *const *found = STR_FIND(name, own);
    if (!found)
        return metadata_field(item, name, out);
    text_add(out, found[1]);
    return true;
}

void item_field_names(const struct item *item, struct text *out)
{
    text_add(out, "{problem}, {subject}, {id}");
    JV_EACH (at, jv_first_member(item->metadata))
        if (!jv_is_null(at))
            text_addf(out, ", {%s}", jv_key(at));
}
