/* Models by name: searches a few directories, and suggests names for one that is not found. */
#include "engine/shipped.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"

#ifndef IPW_MODELS_FOLDERS
#define IPW_MODELS_FOLDERS ""
#endif

static const char SUFFIX[] = ".gguf";
enum { SUFFIX_LENGTH = sizeof SUFFIX - 1 };

char *shipped_path(const char *relative)
{
    char program[PATH_MAX]; /* the kernel returns no longer one */
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return NULL;
    slash[1] = '\0';
    return path_join(program, relative);
}

/* The directories in search order, separated by colons. */
static void list_folders(struct text *out)
{
    const char *given = getenv("IPW_MODELS");
    if (given && *given) {
        text_add(out, given);
        return;
    }
    char *installed = shipped_path("../share/ipw/models");
    if (installed)
        text_addf(out, "%s:", installed);
    free(installed);
    text_add(out, IPW_MODELS_FOLDERS);
}

/* The next directory of the list, from *at on, to be freed; NULL at its end. */
static char *next_folder(const char **at)
{
    size_t length = strcspn(*at, ":");
    if (length == 0)
        return NULL;
    char *folder = xstrndup(*at, length);
    *at += length + ((*at)[length] == ':');
    return folder;
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
    *XADD(names->items, names->count, names->capacity) = xstrndup(file, length);
}

static void list_in(const char *folder, struct shipped_names *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        if (length <= SUFFIX_LENGTH || !str_equal(entry->d_name + length - SUFFIX_LENGTH, SUFFIX))
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
    char *folder;
    *out = (struct shipped_names){0};
    list_folders(&folders);
    for (const char *at = text_get(&folders); (folder = next_folder(&at)); free(folder))
        list_in(folder, out);
    text_release(&folders);
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare_strings);
}

void shipped_names_release(struct shipped_names *names)
{
    memory_free_strings(names->items, names->count);
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

/* NULL: in none of them. */
static char *find_in_folders(const char *name)
{
    struct text folders = {0};
    char *folder, *found = NULL;
    list_folders(&folders);
    for (const char *at = text_get(&folders); !found && (folder = next_folder(&at)); free(folder)) {
        char *path = xformat("%s/%s%s", folder, name, SUFFIX);
        if (access(path, F_OK) == 0)
            found = path;
        else
            free(path);
    }
    text_release(&folders);
    return found;
}

enum err shipped_find(const char *name, char **path, struct error *why)
{
    *path = NULL;
    if (access(name, F_OK) == 0)
        *path = xstrdup(name);
    else if (strchr(name, '/'))
        return err_set(why, ERR_NOT_FOUND, "no file %s: %s", name, strerror(errno));
    else if (*name)
        *path = find_in_folders(name);
    return *path ? ERR_OK : not_found(name, why);
}
