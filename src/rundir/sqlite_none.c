/* A build without SQLite: the catalogue is listed, and says what is missing. */
#include <stddef.h>

#include "rundir/store.h"

static enum err missing(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without SQLite: install libsqlite3-dev and build again");
}

static enum err missing_open(const struct store_run *run, struct store *out, struct error *why)
{
    (void)run, (void)out;
    return missing(why);
}

const struct store_driver store_sqlite = {
    .name = "sqlite",
    .summary = "catalog.db beside the run directories: one row a run",
    .available = missing,
    .open = missing_open,
};
