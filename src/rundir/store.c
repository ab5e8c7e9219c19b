/* The stores of this build, and the two that make nothing: the journal, and the null store. */
#include "rundir/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "port/file.h"
#include "rundir/run_path.h"

/* ---- jsonl: the journal was written while the run went on; this sees to it that it is there and on the disk
 * before anyone relies on it alone ---- */

struct jsonl_store {
    int fd;
};

static enum err jsonl_open(const struct store_run *run, struct store *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    if (!run_path_file(run->directory, RUN_FILE_RECORDS, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "too long a path: %.200s", run->directory);
    struct jsonl_store *jsonl = calloc(1, sizeof *jsonl);
    if (!jsonl)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    jsonl->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (jsonl->fd < 0) {
        free(jsonl);
        return err_set(why, err_from_errno(errno), "no journal in %s: %s", run->directory,
                       strerror(errno));
    }
    out->state = jsonl;
    return ERR_OK;
}

static enum err jsonl_put(struct store *store, const struct jv *record, struct error *why)
{
    (void)store, (void)record, (void)why;
    return ERR_OK;
}

static enum err jsonl_finish(struct store *store, const struct summary *summary, struct error *why)
{
    (void)summary;
    const struct jsonl_store *jsonl = store->state;
    if (fsync(jsonl->fd))
        return err_set(why, err_from_errno(errno), "cannot sync the journal: %s", strerror(errno));
    return ERR_OK;
}

static void jsonl_close(struct store *store)
{
    struct jsonl_store *jsonl = store->state;
    close(jsonl->fd);
    free(jsonl);
}

const struct store_driver store_jsonl = {
    .name = "jsonl",
    .summary = "records.jsonl, the journal that every run writes",
    .open = jsonl_open,
    .put = jsonl_put,
    .finish = jsonl_finish,
    .close = jsonl_close,
};

/* ---- null: takes everything and keeps nothing; the smallest store, and the cost of what comes before one ---- */

static enum err null_open(const struct store_run *run, struct store *out, struct error *why)
{
    (void)run, (void)out, (void)why;
    return ERR_OK;
}

static enum err null_put(struct store *store, const struct jv *record, struct error *why)
{
    (void)store, (void)record, (void)why;
    return ERR_OK;
}

static enum err null_finish(struct store *store, const struct summary *summary, struct error *why)
{
    (void)store, (void)summary, (void)why;
    return ERR_OK;
}

static void null_close(struct store *store)
{
    (void)store;
}

const struct store_driver store_null = {
    .name = "null",
    .summary = "keeps nothing; for tests and for the cost of the rest",
    .open = null_open,
    .put = null_put,
    .finish = null_finish,
    .close = null_close,
};

/* ---- the registry ---- */

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
