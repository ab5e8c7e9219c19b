#define _GNU_SOURCE
#include "port/sqlite.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/dl.h"

/* Its limit of 512 on an absolute path without links, less "-journal". */
enum { PATH_BYTES_MAX = 504 };

struct sqlite_library sqlite;

enum err sqlite_load(struct error *why)
{
    static const char *const NAMES[] = {"libsqlite3.so.0", NULL};
    static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(name) {"sqlite3_" #name, &sqlite.name, true},
        SQLITE_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    static struct dl_library library = {.names = NAMES,
                                        .symbols = SYMBOLS,
                                        .count = COUNT_OF(SYMBOLS),
                                        .absent =
                                            "SQLite is not installed: apt install libsqlite3-0",
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

enum err sqlite_check_path(const char *path, struct error *why)
{
    const char *name = str_last_part(path);
    char *folder = name == path ? xstrdup(".") : xstrndup(path, (size_t)(name - path));
    char *real = realpath(folder, NULL);
    size_t length = real ? strlen(real) + 1 + strlen(name) : strlen(path);
    free(real);
    free(folder);
    if (length <= PATH_BYTES_MAX)
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "SQLite opens no path of more than %d bytes: %s",
                   PATH_BYTES_MAX, path);
}
