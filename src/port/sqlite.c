#include "port/sqlite.h"

#include "port/dl.h"

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
                                        .count = sizeof SYMBOLS / sizeof *SYMBOLS,
                                        .absent =
                                            "SQLite is not installed: apt install libsqlite3-0",
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}
