/* Build without SQLite: the export is listed as unavailable. */
#include "report/export/export.h"

static enum err missing(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without SQLite: install libsqlite3-dev and build again");
}

const struct export_driver export_sqlite = {
    .name = "sqlite",
    .summary = "an SQLite database with the tables runs and queries; appends to an existing one",
    .makes_files = true,
    .available = missing,
};
