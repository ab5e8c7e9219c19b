#include <stddef.h>

#include "rundir/store.h"

#define STORE(name) extern const struct store_driver store_##name;
#include "rundir/stores.def"
#undef STORE

const struct store_driver *const STORE_DRIVERS[] = {
#define STORE(name) &store_##name,
#include "rundir/stores.def"
#undef STORE
    NULL,
};

enum err store_open(const struct store_driver *driver, const struct store_run *run,
                    struct store *out, struct error *why)
{
    *out = (struct store){0};
    enum err err = driver->available ? driver->available(why) : ERR_OK;
    if (!err)
        err = driver->open(run, out, why);
    out->driver = err ? NULL : driver;
    return err;
}

void store_close(struct store *store)
{
    if (store->driver)
        store->driver->close(store);
    *store = (struct store){0};
}
