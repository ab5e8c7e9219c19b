/* A Hugging Face dataset on disk, as in a run directory: all columns of the records, nested; and inside it one of an
 * agent's traces. */

#include "port/json_read.h"
#include "report/export/export.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/summary.h"
#include "rundir/traces.h"

struct hf {
    struct store store;
    struct jv *constants; /* merged into every record */
};

static enum err make_directory(const char *path, struct error *why)
{
    enum run_dir_state state;
    enum err err = run_dir_inspect(path, &state, why);
    if (!err && state != RUN_DIR_NEW && state != RUN_DIR_EMPTY)
        err = err_set(why, ERR_BAD_VALUE, "%s is not empty: name a new directory", path);
    return err ? err : run_dir_make(path, why);
}

static enum err hf_begin(struct export *export, struct error *why)
{
    const struct export_run *run = export->run;
    struct store_run where = {run->output, run->model, run->metadata};
    struct hf *hf = export->state;
    enum err err = make_directory(run->output, why);
    if (err)
        return err;
    hf->constants = summary_constants(run->summary, run->model);
    return store_open(&store_arrow, &where, &hf->store, why);
}

static enum err hf_record(struct export *export, const struct export_record *record,
                          struct error *why)
{
    struct hf *hf = export->state;
    jv_merge(record->tree, hf->constants);
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
    .begin = hf_begin,
    .record = hf_record,
    .end = hf_end,
    .release = hf_release,
};
