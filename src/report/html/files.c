#define _DEFAULT_SOURCE
#include "report/html/files.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/text.h"

/* ---- from one folder to another ---- */

/* The folder that a file is in, in full, with a slash at its end; "" when there is none. */
static void folder_of(const char *path, char to[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    str_format(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
               slash ? path : ".");
    char *real = realpath(folder, NULL);
    str_format(to, PATH_MAX, "%s%s", real ? real : "", real && strcmp(real, "/") != 0 ? "/" : "");
    free(real);
}

/* "../../a/b/", from folder to folder; both in full. */
static void way(const char *from, const char *to, struct text *out)
{
    size_t same = 0;
    for (size_t i = 0; from[i] && from[i] == to[i]; i++)
        if (from[i] == '/')
            same = i + 1;
    for (const char *at = from + same; (at = strchr(at, '/')); at++)
        text_add(out, "../");
    text_add(out, to + same);
}

/* A name may hold anything; a link holds letters, digits and little else. */
static void add_escaped(struct text *out, const char *path)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (const char *at = path; *at; at++)
        if (strchr(PLAIN, *at))
            text_add_bytes(out, at, 1);
        else
            text_addf(out, "%%%02X", (unsigned char)*at);
}

/* ---- the files ---- */

/* What tells of the run; what is hidden, or a page like this one, does not. */
static bool is_shown(const char *name)
{
    const char *dot = strrchr(name, '.');
    static const char *const ENDS[] = {".jsonl", ".json", ".csv", ".arrow"};
    for (size_t i = 0; name[0] != '.' && dot && i < sizeof ENDS / sizeof *ENDS; i++)
        if (strcmp(dot, ENDS[i]) == 0)
            return true;
    return false;
}

static int is_file(const struct dirent *entry)
{
    return is_shown(entry->d_name);
}

static void put_file(struct json *json, const char *way_there, const char *directory,
                     const char *name)
{
    char path[PATH_MAX];
    struct text href = {0};
    struct stat status;
    str_format(path, sizeof path, "%s/%s", directory, name);
    if (stat(path, &status) || !S_ISREG(status.st_mode))
        return;
    /* "./": a name with a colon is no scheme. */
    text_add(&href, "./");
    add_escaped(&href, way_there);
    add_escaped(&href, name);
    json_object(json, NULL);
    json_string(json, "name", name);
    json_string(json, "href", text_get(&href));
    json_integer(json, "bytes", status.st_size);
    json_object_end(json);
    text_release(&href);
}

void files_put(struct json *json, const char *directory, const char *page)
{
    char from[PATH_MAX], to[PATH_MAX], inside[PATH_MAX];
    struct text path = {0};
    struct dirent **entries = NULL;
    str_format(inside, sizeof inside, "%s/.", directory);
    folder_of(page, from);
    folder_of(inside, to);
    way(from, to, &path);
    int count = scandir(directory, &entries, is_file, alphasort);
    json_array(json, "files");
    for (int i = 0; i < count; i++) {
        put_file(json, text_get(&path), directory, entries[i]->d_name);
        free(entries[i]);
    }
    json_array_end(json);
    free((void *)entries);
    text_release(&path);
}
