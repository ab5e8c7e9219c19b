/* The strings of an item. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "datasets/dataset.h"

void item_release(struct item *item)
{
    free(item->id);
    free(item->problem);
    free(item->answer);
    free(item->subject);
    free(item->metadata);
    free(item->grader);
    *item = (struct item){0};
}

enum err item_set(char **field, const char *value)
{
    char *copy = strdup(value ? value : "");
    if (!copy)
        return ERR_NO_MEMORY;
    free(*field);
    *field = copy;
    return ERR_OK;
}

enum err item_take(char **field, struct text *value)
{
    if (value->failed)
        return ERR_NO_MEMORY;
    if (!value->bytes)
        return item_set(field, "");
    free(*field);
    *field = value->bytes;
    *value = (struct text){0};
    return ERR_OK;
}

enum err item_complete(struct item *item)
{
    const struct {
        char **field;
        const char *otherwise;
    } FIELDS[] = {
        {&item->id, ""},         {&item->problem, ""},
        {&item->answer, ""},     {&item->subject, "general"},
        {&item->metadata, "{}"}, {&item->grader, ""},
    };
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (!*FIELDS[i].field && item_set(FIELDS[i].field, FIELDS[i].otherwise) != ERR_OK)
            return ERR_NO_MEMORY;
    return ERR_OK;
}
