/* Build without SQLite: the store is listed as unavailable; runs are listed from their directories. */
#include <stddef.h>

#include "rundir/run_index.h"
#include "rundir/store.h"

static enum err missing(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without SQLite: install libsqlite3-dev and build again");
}

enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
{
    return missing(why);
}

enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
{
    return missing(why);
}

enum err run_index_open(const char *parent, struct run_index **out, struct error *why)
{
    *out = NULL;
    return missing(why);
}

void run_index_close(struct run_index *index)
{
}

bool run_index_find(struct run_index *index, const char *name, double written_at,
                    struct summary *out)
{
    return false;
}

const struct store_driver store_sqlite = {
    .name = "sqlite",
    .summary = "the run index: catalog.db next to the run directories, one row per run",
    .available = missing,
};
