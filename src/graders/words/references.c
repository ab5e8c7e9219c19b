#include "graders/words/references.h"

#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "graders/grader.h"
#include "port/json_read.h"

enum err references_read(const struct params *params, char *path, size_t size, struct error *why)
{
    const char *given = params_get(params, "references");
    if (!str_copy(path, size, given ? given : "references"))
        return err_set(why, ERR_USAGE, "references=%.40s...: too long", given);
    return ERR_OK;
}

void references_open(struct references *references, const struct grading *what, const char *path)
{
    *references = (struct references){.items = {what->expected}, .count = 1};
    const char *metadata = what->metadata;
    if (!metadata || jv_available(NULL) ||
        jv_parse(metadata, strlen(metadata), &references->metadata, NULL))
        return;
    const struct jv *list = jv_path(references->metadata, path);
    if (!jv_is_array(list))
        return;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        const char *text = jv_text(item);
        if (text && text[0] && references->count < REFERENCES_MAX)
            references->items[references->count++] = text;
    }
}

void references_release(struct references *references)
{
    jv_free(references->metadata);
    *references = (struct references){0};
}
