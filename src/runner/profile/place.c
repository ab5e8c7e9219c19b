#include "runner/profile/place.h"

#include <unistd.h>

#include "core/text.h"
#include "runner/profile.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"

static enum err name_directory(struct place *place, const struct profile_options *options,
                               const char *hardware, const char *dataset_name, struct error *why)
{
    char name[256];
    const char *parent = options->output_dir ? options->output_dir : "runs";
    if (!parent[0]) /* else the run would stand in / */
        return err_set(why, ERR_USAGE, "--output-dir wants a directory, not ''");
    run_dir_name(hardware, options->model, dataset_name, name, sizeof name);
    if (!str_format(place->directory, sizeof place->directory, "%s/%s", parent, name))
        return err_set(why, ERR_USAGE, "the path of the run's directory is too long: %s/%s", parent,
                       name);
    str_format(place->journal, sizeof place->journal, "%s/records.jsonl", place->directory);
    str_format(place->spans, sizeof place->spans, "%s/spans.jsonl", place->directory);
    return ERR_OK;
}

static enum err refuse(const struct place *place, struct error *why)
{
    return err_set(why, ERR_USAGE,
                   "%s holds a run already: --resume continues it, --overwrite replaces it",
                   place->directory);
}

/* What is not ours is left as it is, without even a lock in it. */
static enum err refuse_foreign(const struct place *place, struct error *why)
{
    enum run_dir_state state = RUN_DIR_NEW;
    enum err err = run_dir_look(place->directory, &state, why);
    if (!err && state == RUN_DIR_FOREIGN)
        err = err_set(why, ERR_USAGE,
                      "%s holds files that are no run's: move them, or choose another --output-dir",
                      place->directory);
    return err;
}

/* What to do with what stands there; *resume is set when it is to be continued. */
static enum err decide(const struct place *place, const struct profile_options *options,
                       bool *resume, struct error *why)
{
    enum run_dir_state state = RUN_DIR_NEW;
    *resume = false;
    enum err err = refuse_foreign(place, why);
    if (!err)
        err = run_dir_look(place->directory, &state, why);
    if (err || state == RUN_DIR_NEW || state == RUN_DIR_EMPTY)
        return err;
    if (options->existing == EXISTING_RESUME) {
        *resume = true;
        return ERR_OK;
    }
    if (options->existing == EXISTING_OVERWRITE ||
        (options->may_overwrite && options->may_overwrite(place->directory)))
        return run_dir_clear(place->directory, why);
    return refuse(place, why);
}

enum err place_take(struct place *place, const struct profile_options *options,
                    const char *hardware, const char *dataset_name, struct error *why)
{
    bool resume = false;
    *place = (struct place){.resume = resume_nothing(), .lock = -1};
    enum err err = name_directory(place, options, hardware, dataset_name, why);
    if (!err)
        err = run_dir_make(place->directory, why);
    if (!err)
        err = refuse_foreign(place, why);
    /* Held before anything is looked at or deleted: another process may be writing there. */
    if (!err)
        err = run_dir_lock(place->directory, &place->lock, why);
    if (!err)
        err = decide(place, options, &resume, why);
    if (!err && !resume)
        err = run_dir_make(place->directory, why);
    if (!err && resume)
        err = resume_read(place->journal, options, &place->resume, why);
    if (err) {
        place_release(place);
        return err;
    }
    unsigned start = place->resume.starts + 1;
    if (start == 1)
        str_format(place->samples, sizeof place->samples, "%s/samples.csv", place->directory);
    else
        str_format(place->samples, sizeof place->samples, "%s/samples-%u.csv", place->directory,
                   start);
    return ERR_OK;
}

void place_give_up(struct place *place)
{
    if (place->lock >= 0)
        run_dir_drop(place->directory);
}

void place_release(struct place *place)
{
    resume_release(&place->resume);
    if (place->lock >= 0)
        close(place->lock);
    place->lock = -1;
}
