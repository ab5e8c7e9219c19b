/* Models by name: searches a few directories, and suggests names for one that is not found. */
#include "engine/shipped.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"

#ifndef IPW_MODELS_FOLDERS
#define IPW_MODELS_FOLDERS ""
#endif

/* What a kind of model is stored as. */
struct storage {
    const char *suffix;
    const char *description;       /* of a file, for messages */
    const char *const *subfolders; /* of each folder; ends with NULL */
    bool has_directories;          /* a model may be a directory, without the suffix */
};

static const char *const GGUF_SUBFOLDERS[] = {"", NULL};
static const char *const ONNX_SUBFOLDERS[] = {"vision", "speech", "text", "diffusion", NULL};
static const struct storage GGUF = {".gguf", "a GGUF file", GGUF_SUBFOLDERS, false};
static const struct storage ONNX = {".onnx", "an ONNX file or a directory of them", ONNX_SUBFOLDERS,
                                    true};

/* A path relative to the directory of this program; NULL when that is unknown. */
static char *shipped_path(const char *relative)
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
static void list_roots(struct text *out)
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
static char *next_root(const char **at)
{
    size_t length = strcspn(*at, ":");
    if (length == 0)
        return NULL;
    char *folder = xstrndup(*at, length);
    *at += length + ((*at)[length] == ':');
    return folder;
}

/* The folders that may have models of a kind, in search order. */
static void list_folders(const struct storage *storage, struct shipped_names *out)
{
    struct text roots = {0};
    char *root;
    *out = (struct shipped_names){0};
    list_roots(&roots);
    for (const char *at = text_get(&roots); (root = next_root(&at)); free(root))
        for (const char *const *subfolder = storage->subfolders; *subfolder; subfolder++)
            *XADD(out->items, out->count, out->capacity) =
                **subfolder ? path_join(root, *subfolder) : xstrdup(root);
    text_release(&roots);
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

static bool is_directory(const char *folder, const char *name)
{
    struct stat status;
    char *path = path_join(folder, name);
    bool is = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    free(path);
    return is;
}

/* The length of the model's name in that of an entry of a folder; 0: no model. */
static size_t name_length(const struct storage *storage, const char *folder, const char *entry)
{
    size_t length = strlen(entry), suffix = strlen(storage->suffix);
    if (length > suffix && str_ends(entry, storage->suffix))
        return length - suffix;
    bool may_be = storage->has_directories && entry[0] != '.';
    return may_be && is_directory(folder, entry) ? length : 0;
}

static void list_in(const struct storage *storage, const char *folder, struct shipped_names *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t length = name_length(storage, folder, entry->d_name);
        if (length > 0 && !has_file(out, entry->d_name, length))
            add(out, entry->d_name, length);
    }
    if (dir)
        closedir(dir);
}

static void list_models(const struct storage *storage, struct shipped_names *out)
{
    struct shipped_names folders;
    *out = (struct shipped_names){0};
    list_folders(storage, &folders);
    for (size_t i = 0; i < folders.count; i++)
        list_in(storage, folders.items[i], out);
    shipped_names_release(&folders);
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare_strings);
}

void shipped_list(struct shipped_names *out)
{
    list_models(&GGUF, out);
}

void shipped_list_onnx(struct shipped_names *out)
{
    list_models(&ONNX, out);
}

void shipped_names_release(struct shipped_names *names)
{
    memory_free_strings(names->items, names->count);
    *names = (struct shipped_names){0};
}

static enum err not_found(const struct storage *storage, const char *name, struct error *why)
{
    struct shipped_names names;
    enum err err;
    list_models(storage, &names);
    if (names.count)
        err = registry_unknown("model", name, (const char *const *)names.items, names.count,
                               ERR_NOT_FOUND, why);
    else
        err = err_set(why, ERR_NOT_FOUND, "no file %s: expected the path of %s", name,
                      storage->description);
    shipped_names_release(&names);
    return err;
}

/* NULL: no such model in the folder. */
static char *find_in(const struct storage *storage, const char *folder, const char *name)
{
    char *path = xformat("%s/%s%s", folder, name, storage->suffix);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return storage->has_directories && is_directory(folder, name) ? path_join(folder, name) : NULL;
}

/* NULL: in none of them. */
static char *find_in_folders(const struct storage *storage, const char *name)
{
    struct shipped_names folders;
    char *found = NULL;
    list_folders(storage, &folders);
    for (size_t i = 0; i < folders.count && !found; i++)
        found = find_in(storage, folders.items[i], name);
    shipped_names_release(&folders);
    return found;
}

static enum err find(const struct storage *storage, const char *name, char **path,
                     struct error *why)
{
    *path = NULL;
    if (access(name, F_OK) == 0)
        *path = xstrdup(name);
    else if (strchr(name, '/'))
        return err_set(why, ERR_NOT_FOUND, "no file %s: %s", name, strerror(errno));
    else if (*name)
        *path = find_in_folders(storage, name);
    return *path ? ERR_OK : not_found(storage, name, why);
}

enum err shipped_find(const char *name, char **path, struct error *why)
{
    return find(&GGUF, name, path, why);
}

enum err shipped_find_onnx(const char *name, char **path, struct error *why)
{
    return find(&ONNX, name, path, why);
}

char *shipped_data(const char *relative)
{
    struct text roots = {0};
    char *root, *found = NULL;
    list_roots(&roots);
    for (const char *at = text_get(&roots); !found && (root = next_root(&at)); free(root)) {
        found = path_join(root, relative);
        if (access(found, F_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    text_release(&roots);
    return found;
}

/* ---- libraries ---- */

static bool is_library(const char *file, const char *name)
{
    return str_starts(file, name) && file[strlen(name)] == '.' && strstr(file, ".so");
}

static char *library_in(const char *folder, const char *name)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return NULL;
    char best[sizeof((struct dirent *)0)->d_name] = "";
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *file = entry->d_name;
        if (is_library(file, name) && (!best[0] || strlen(file) < strlen(best) ||
                                       (strlen(file) == strlen(best) && strcmp(file, best) < 0)))
            chars_copy(best, file);
    }
    closedir(dir);
    return best[0] ? path_join(folder, best) : NULL;
}

char *shipped_library_at(const char *path, const char *name)
{
    struct stat found;
    if (stat(path, &found))
        return NULL;
    return S_ISDIR(found.st_mode) ? library_in(path, name) : xstrdup(path);
}

char *shipped_library(const char *installed, const char *built, const char *name)
{
    char *folder = shipped_path(installed);
    char *file = folder ? library_in(folder, name) : NULL;
    free(folder);
    return file || !built[0] ? file : library_in(built, name);
}
