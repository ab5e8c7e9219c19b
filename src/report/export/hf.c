/* A Hugging Face dataset on disk, as in a run directory: all columns of the records, nested; and inside it one of an
 * agent's traces. */
#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"
#include "report/export/export.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/summary.h"
#include "rundir/traces.h"

struct hf {
    struct store store;
    struct jv *constants; /* values from the summary that are the same for all records; or NULL */
};

static const struct store_driver *arrow_store(void)
{
    for (size_t i = 0; STORE_DRIVERS[i]; i++)
        if (strcmp(STORE_DRIVERS[i]->name, "arrow") == 0)
            return STORE_DRIVERS[i];
    return NULL;
}

static enum err hf_available(struct error *why)
{
    const struct store_driver *driver = arrow_store();
    if (!driver)
        return err_set(why, ERR_UNSUPPORTED, "built without the Arrow store");
    return driver->available ? driver->available(why) : ERR_OK;
}

static enum err make_directory(const char *path, struct error *why)
{
    enum run_dir_state state;
    enum err err = run_dir_inspect(path, &state, why);
    if (!err && state != RUN_DIR_NEW && state != RUN_DIR_EMPTY)
        err = err_set(why, ERR_BAD_VALUE, "%s is not empty: name a new directory", path);
    return err ? err : run_dir_make(path, why);
}

/* The journal's records omit values that are the same for all; a store has them in each. */
static enum err make_constants(const struct export_run *run, struct jv **out, struct error *why)
{
    static const char *const KEYS[] = {"gpu_info", "system_info"};
    struct jv *info = NULL, *metrics = NULL;
    enum err err = jv_object_new(&info);
    for (size_t i = 0; !err && i < sizeof KEYS / sizeof *KEYS; i++) {
        const struct jv *recorded = jv_get(run->summary ? run->summary->tree : NULL, KEYS[i]);
        if (!jv_is_null(recorded))
            err = jv_put(info, KEYS[i], recorded);
    }
    if (!err && !(err = jv_object_new(&metrics)))
        err = jv_put(metrics, run->model, info);
    if (!err && !(err = jv_object_new(out)))
        err = jv_put(*out, "model_metrics", metrics);
    jv_free(info);
    jv_free(metrics);
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}

static enum err hf_begin(struct export *export, struct error *why)
{
    const struct export_run *run = export->run;
    struct store_run where = {run->output, run->model, run->metadata};
    struct hf *hf = export->state;
    enum err err = make_directory(run->output, why);
    if (!err)
        err = make_constants(run, &hf->constants, why);
    return err ? err : store_open(arrow_store(), &where, &hf->store, why);
}

static enum err hf_record(struct export *export, const struct export_record *record,
                          struct error *why)
{
    struct hf *hf = export->state;
    enum err err = jv_merge(record->tree, hf->constants);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    return store_put(&hf->store, record->tree, why);
}

static enum err hf_end(struct export *export, struct error *why)
{
    struct hf *hf = export->state;
    const struct export_run *run = export->run;
    enum err err = store_finish(&hf->store, run->summary, why);
    return err || !run->traces ? err : traces_save_dataset(run->output, run->traces, why);
}

static void hf_release(struct export *export)
{
    struct hf *hf = export->state;
    store_close(&hf->store);
    jv_free(hf->constants);
}

const struct export_driver export_hf = {
    .name = "hf",
    .summary = "a Hugging Face dataset in its own directory: datasets.load_from_disk",
    .makes_files = true,
    .makes_directory = true,
    .wants_metadata = true,
    .state_size = sizeof(struct hf),
    .available = hf_available,
    .begin = hf_begin,
    .record = hf_record,
    .end = hf_end,
    .release = hf_release,
};
