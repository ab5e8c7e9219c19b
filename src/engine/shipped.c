/* Models by name: searches a few directories, and suggests names for one that is not found. */
#include "engine/shipped.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"

#ifndef IPW_MODELS_FOLDERS
#define IPW_MODELS_FOLDERS ""
#endif

static const char SUFFIX[] = ".gguf";
enum { SUFFIX_LENGTH = sizeof SUFFIX - 1, PATH_SIZE = 512 };

bool shipped_path(const char *relative, char *to, size_t size)
{
    char program[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    slash[1] = '\0';
    return str_format(to, size, "%s%s", program, relative);
}

/* The directories in search order, separated by colons. */
static void list_folders(struct text *out)
{
    char installed[PATH_SIZE];
    const char *given = getenv("IPW_MODELS");
    if (given && *given) {
        text_add(out, given);
        return;
    }
    if (shipped_path("../share/ipw/models", installed, sizeof installed))
        text_addf(out, "%s:", installed);
    text_add(out, IPW_MODELS_FOLDERS);
}

/* The next directory of the list, from *at on; false at its end. */
static bool next_folder(const char **at, char *to, size_t size)
{
    size_t length = strcspn(*at, ":");
    if (length == 0)
        return false;
    str_format(to, size, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == ':');
    return true;
}

static bool has_file(const struct shipped_names *names, const char *file, size_t length)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->items[i]) == length && memcmp(names->items[i], file, length) == 0)
            return true;
    return false;
}

static void add(struct shipped_names *names, const char *file, size_t length)
{
    names->items = xgrow(names->items, &names->capacity, names->count, sizeof *names->items);
    names->items[names->count++] = xstrndup(file, length);
}

static void list_in(const char *folder, struct shipped_names *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        if (length <= SUFFIX_LENGTH || strcmp(entry->d_name + length - SUFFIX_LENGTH, SUFFIX) != 0)
            continue;
        length -= SUFFIX_LENGTH;
        if (!has_file(out, entry->d_name, length))
            add(out, entry->d_name, length);
    }
    if (dir)
        closedir(dir);
}

void shipped_list(struct shipped_names *out)
{
    struct text folders = {0};
    char folder[PATH_SIZE];
    *out = (struct shipped_names){0};
    list_folders(&folders);
    for (const char *at = text_get(&folders); next_folder(&at, folder, sizeof folder);)
        list_in(folder, out);
    text_release(&folders);
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare_strings);
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
    enum err err;
    shipped_list(&names);
    if (names.count)
        err = registry_unknown("model", name, (const char *const *)names.items, names.count,
                               ERR_NOT_FOUND, why);
    else
        err = err_set(why, ERR_NOT_FOUND, "no file %s: expected the path of a GGUF file", name);
    shipped_names_release(&names);
    return err;
}

static bool find_in_folders(const char *name, char *path, size_t size)
{
    struct text folders = {0};
    char folder[PATH_SIZE];
    bool found = false;
    list_folders(&folders);
    for (const char *at = text_get(&folders); !found && next_folder(&at, folder, sizeof folder);)
        found = str_format(path, size, "%s/%s%s", folder, name, SUFFIX) && access(path, F_OK) == 0;
    text_release(&folders);
    return found;
}

enum err shipped_find(const char *name, char *path, size_t size, struct error *why)
{
    if (access(name, F_OK) == 0 || strchr(name, '/')) {
        if (access(name, F_OK))
            return err_set(why, ERR_NOT_FOUND, "no file %s: %s", name, strerror(errno));
        return str_copy(path, size, name)
                   ? ERR_OK
                   : err_set(why, ERR_BAD_VALUE, "the model path is too long");
    }
    return *name && find_in_folders(name, path, size) ? ERR_OK : not_found(name, why);
}
