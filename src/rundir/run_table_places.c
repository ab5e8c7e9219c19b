#include "rundir/run_table_places.h"

#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"

static bool add_name(struct place *place, const char *name)
{
    if (place->count == PLACE_NAMES_MOST)
        return false;
    place->names[place->count++] = name;
    return true;
}

enum err places_init(struct places *places, const char *paths)
{
    *places = (struct places){.text = strdup(paths)};
    if (!places->text)
        return ERR_NO_MEMORY;
    char *rest = NULL;
    for (char *path = strtok_r(places->text, "|", &rest); path; path = strtok_r(NULL, "|", &rest)) {
        if (places->count == PLACES_MOST)
            return ERR_BAD_VALUE; /* run_columns.def, not a user, is wrong */
        struct place *place = &places->items[places->count++];
        place->from_top = path[0] == '/';
        char *colon = strchr(path, ':');
        if (colon) {
            *colon = '\0';
            place->inside = colon + 1;
        }
        char *more = NULL;
        for (char *name = strtok_r(path + place->from_top, ".", &more); name;
             name = strtok_r(NULL, ".", &more))
            if (!add_name(place, name))
                return ERR_BAD_VALUE;
    }
    return ERR_OK;
}

void places_release(struct places *places)
{
    free(places->text);
    *places = (struct places){0};
}

const struct jv *place_find(const struct place *place, const struct jv *record,
                            const struct jv *metrics)
{
    const struct jv *value = place->from_top ? record : metrics;
    for (size_t i = 0; value && i < place->count; i++)
        value = jv_get(value, place->names[i]);
    return value;
}
