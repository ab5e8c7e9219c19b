#include "engine/shipped.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/text.h"
#include "engine/llama/find.h"

#ifndef IPW_MODELS_FOLDER
#define IPW_MODELS_FOLDER ""
#endif

static const char SUFFIX[] = ".gguf";
enum { SUFFIX_LENGTH = sizeof SUFFIX - 1, PATH_ROOM = 512 };

static bool find_folder(char *to, size_t size)
{
    const char *told = getenv("IPW_MODELS");
    if (told && *told)
        return str_copy(to, size, told);
    if (beside_program("../share/ipw/models", to, size) && access(to, F_OK) == 0)
        return true;
    return str_copy(to, size, IPW_MODELS_FOLDER) && to[0];
}

static enum err add(struct shipped_names *names, const char *file, size_t length)
{
    char **items = grow(names->items, &names->capacity, names->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    names->items = items;
    items[names->count] = strndup(file, length);
    return items[names->count] ? (names->count++, ERR_OK) : ERR_NO_MEMORY;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum err shipped_list(struct shipped_names *out, struct error *why)
{
    char folder[PATH_ROOM];
    DIR *dir = find_folder(folder, sizeof folder) ? opendir(folder) : NULL;
    enum err err = ERR_OK;
    *out = (struct shipped_names){0};
    while (dir && !err) {
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        size_t length = strlen(entry->d_name);
        if (length > SUFFIX_LENGTH && strcmp(entry->d_name + length - SUFFIX_LENGTH, SUFFIX) == 0)
            err = add(out, entry->d_name, length - SUFFIX_LENGTH);
    }
    if (dir)
        closedir(dir);
    if (err) {
        shipped_names_release(out);
        return err_set(why, err, "out of memory for the list of models");
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare);
    return ERR_OK;
}

void shipped_names_release(struct shipped_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct shipped_names){0};
}

static enum err not_found(const char *name, struct error *why)
{
    struct shipped_names names;
    enum err err = shipped_list(&names, why);
    if (err)
        return err;
    const char *near = nearest_name(name, (const char *const *)names.items, names.count);
    struct text list = {0};
    for (size_t i = 0; i < names.count && !near; i++)
        text_addf(&list, "%s%s", i ? ", " : "", names.items[i]);
    if (near)
        err = err_set(why, ERR_NOT_FOUND,
                      "no file %s and no model of that name: did you mean '%s'?", name, near);
    else if (list.length)
        err = err_set(why, ERR_NOT_FOUND, "no file %s and no model of that name; there are: %s",
                      name, text_get(&list));
    else
        err = err_set(why, ERR_NOT_FOUND, "no file %s: give the path of a GGUF file", name);
    text_release(&list);
    shipped_names_release(&names);
    return err;
}

enum err shipped_find(const char *name, char *path, size_t size, struct error *why)
{
    if (access(name, F_OK) == 0 || strchr(name, '/')) {
        if (access(name, F_OK))
            return err_set(why, ERR_NOT_FOUND, "no file %s: %s", name, strerror(errno));
        return str_copy(path, size, name)
                   ? ERR_OK
                   : err_set(why, ERR_BAD_VALUE, "the path of the model is too long");
    }
    char folder[PATH_ROOM];
    if (*name && find_folder(folder, sizeof folder) &&
        str_format(path, size, "%s/%s%s", folder, name, SUFFIX) && access(path, F_OK) == 0)
        return ERR_OK;
    return not_found(name, why);
}
