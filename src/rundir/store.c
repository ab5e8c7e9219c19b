/* The stores of this build, filling them, and two that write nothing: the journal, and the null store. */
#include "rundir/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

/* ---- jsonl: the journal is written during the run; this checks that it exists and is on disk before it is relied upon
 * ---- */

static enum err jsonl_open(const struct store_run *run, struct store *out, struct error *why)
{
    char *path = run_path_file(run->directory, RUN_FILE_RECORDS);
    if (access(path, R_OK)) {
        int problem = errno;
        free(path);
        return err_errno(why, problem, "no journal in %s", run->directory);
    }
    out->state = path;
    return ERR_OK;
}

static enum err jsonl_finish(struct store *store, const struct summary *summary, struct error *why)
{
    (void)summary;
    int fd = open(store->state, O_RDONLY | O_CLOEXEC);
    enum err err = ERR_OK;
    if (fd < 0 || fsync(fd))
        err = err_errno(why, errno, "cannot sync the journal");
    if (fd >= 0)
        close(fd);
    return err;
}

const struct store_driver store_jsonl = {
    .name = "jsonl",
    .summary = "records.jsonl, the journal that every run writes",
    .open = jsonl_open,
    .finish = jsonl_finish,
};

/* ---- null: discards everything; the smallest store, for measuring the overhead of the others ---- */

static enum err null_open(const struct store_run *run, struct store *out, struct error *why)
{
    (void)run, (void)out, (void)why;
    return ERR_OK;
}

const struct store_driver store_null = {
    .name = "null",
    .summary = "stores nothing; for tests and for measuring overhead",
    .open = null_open,
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

enum err store_put(struct store *store, const struct jv *record, struct error *why)
{
    return store->driver->put ? store->driver->put(store, record, why) : ERR_OK;
}

enum err store_finish(struct store *store, const struct summary *summary, struct error *why)
{
    return store->driver->finish ? store->driver->finish(store, summary, why) : ERR_OK;
}

void store_close(struct store *store)
{
    if (store->driver && store->driver->close)
        store->driver->close(store);
    else
        free(store->state);
    *store = (struct store){0};
}

/* ---- filling the stores ---- */

enum { STORES_MAX = 8 };

struct fill_state {
    struct store stores[STORES_MAX];
    size_t count;
    struct jv *constants; /* merged into every record */
    struct error why;
};

static enum err open_all(const struct store_run *run, struct fill_state *fill)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && STORE_DRIVERS[i] && fill->count < STORES_MAX; i++) {
        err = store_open(STORE_DRIVERS[i], run, &fill->stores[fill->count], &fill->why);
        if (err == ERR_UNSUPPORTED) {
            log_warn("%s is not written: %s", STORE_DRIVERS[i]->name, fill->why.text);
            err = ERR_OK;
        } else if (!err) {
            fill->count++;
        }
    }
    return err;
}

static enum err put_all(void *context, const struct jv *record)
{
    struct fill_state *fill = context;
    enum err err = ERR_OK;
    jv_merge((struct jv *)record, fill->constants);
    for (size_t i = 0; !err && i < fill->count; i++)
        err = store_put(&fill->stores[i], record, &fill->why);
    return err;
}

enum err stores_fill(const struct store_run *run, struct journal_index *records,
                     const struct summary *summary, struct error *why)
{
    struct fill_state fill = {.constants = summary_constants(summary, run->model)};
    uint64_t damaged;
    enum err err = open_all(run, &fill);
    if (!err)
        err = journal_index_read(records, put_all, &fill, &damaged, &fill.why);
    for (size_t i = 0; !err && i < fill.count; i++)
        err = store_finish(&fill.stores[i], summary, &fill.why);
    if (err)
        err_set(why, err, "%s", fill.why.text[0] ? fill.why.text : err_text(err));
    for (size_t i = 0; i < fill.count; i++)
        store_close(&fill.stores[i]);
    jv_free(fill.constants);
    return err;
}
