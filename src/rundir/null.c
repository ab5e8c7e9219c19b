/* The null store: takes everything and keeps nothing.  For the cost of what comes before a store, and
 * the smallest example of one. */
#include "rundir/store.h"

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
