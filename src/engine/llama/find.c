#include "engine/llama/find.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"

/* Where set-up leaves it; the build says it for the source tree it was built from. */
#ifndef IPW_LLAMA_FOLDER
#define IPW_LLAMA_FOLDER ""
#endif
/* From an installed program, PREFIX/bin/ipw. */
#define BESIDE_PROGRAM "../lib/ipw/llama"

enum { PATH_ROOM = 512 };

static bool is_library(const char *name)
{
    return str_starts(name, "libllama.") && strstr(name, ".so");
}

/* The libllama of a folder: the plain name is the shortest, and comes before those with a version. */
static bool find_in(const char *folder, char *to, size_t size)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return false;
    char best[256] = "";
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (is_library(name) && (!best[0] || strlen(name) < strlen(best) ||
                                 (strlen(name) == strlen(best) && strcmp(name, best) < 0)))
            str_copy(best, sizeof best, name);
    }
    closedir(dir);
    return best[0] && str_format(to, size, "%s/%s", folder, best);
}

bool llama_find_at(const char *path, char *to, size_t size)
{
    struct stat found;
    if (stat(path, &found))
        return false;
    return S_ISDIR(found.st_mode) ? find_in(path, to, size) : str_copy(to, size, path);
}

bool beside_program(const char *path, char *to, size_t size)
{
    char program[PATH_ROOM];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    slash[1] = '\0';
    return str_format(to, size, "%s%s", program, path);
}

bool llama_find_brought(char *to, size_t size)
{
    char folder[PATH_ROOM];
    if (beside_program(BESIDE_PROGRAM, folder, sizeof folder) && find_in(folder, to, size))
        return true;
    return IPW_LLAMA_FOLDER[0] && find_in(IPW_LLAMA_FOLDER, to, size);
}
