/* The journal as a store.  It was written while the run went on, so there is nothing to make: this
 * driver only sees to it that it is there and on the disk, before anyone relies on it alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "rundir/store.h"

struct jsonl_store {
    int fd;
};

static enum err jsonl_open(const struct store_run *run, struct store *out, struct error *why)
{
    char path[1024];
    if (!str_format(path, sizeof path, "%s/records.jsonl", run->directory))
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
