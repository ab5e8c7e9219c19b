/* The tree of an Arrow file's fields, which needs no library: builds without nanoarrow have it too. */
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "port/arrow.h"

struct arrow_field *arrow_field_add(struct arrow_field *parent, const char *name,
                                    enum arrow_type type)
{
    struct arrow_field *field = XNEW(field);
    field->name = xstrdup(name);
    field->type = type;
    if (parent && parent->last)
        parent->last->next = field;
    else if (parent)
        parent->first = field;
    if (parent)
        parent->last = field;
    return field;
}

void arrow_field_free(struct arrow_field *root)
{
    if (!root)
        return;
    for (struct arrow_field *child = root->first, *next; child; child = next) {
        next = child->next;
        arrow_field_free(child);
    }
    free(root->name);
    free(root);
}

void arrow_field_drop_empty(struct arrow_field *root)
{
    struct arrow_field **link = &root->first;
    root->last = NULL;
    while (*link) {
        struct arrow_field *child = *link;
        arrow_field_drop_empty(child);
        if (child->type == ARROW_STRUCT && !child->first) {
            *link = child->next;
            arrow_field_free(child);
            continue;
        }
        root->last = child;
        link = &child->next;
    }
}
