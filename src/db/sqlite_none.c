/* Build without SQLite: its addresses are recognized, and opening one reports what is missing. */
#include "db/driver.h"

static enum err missing(struct db *db, const char *address, bool create, struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without SQLite: install libsqlite3-dev and build again");
}

const struct db_driver db_sqlite = {.name = "SQLite", .open = missing};
