/* The run directory of a profile: choosing its name, creating or resuming it, and locking it while in use. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "proxy/proxy.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_path.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"

/* A run may be resumed with another load: finds the only directory that differs in nothing else. */
static void find_to_resume(const char *parent, const char *base, char *to, size_t size)
{
    struct run_list list;
    const char *found = NULL;
    bool is_there = false;
    size_t length = strlen(base), count = 0;
    if (run_list_load(parent, &list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        const char *load = str_starts(name, base) && !list.entries[i].summary.repeat_group
                               ? name + length
                               : "other";
        is_there = is_there || str_equal(name, to);
        if (!*load || str_starts(load, "_c") || str_starts(load, "_rate")) {
            found = name;
            count++;
        }
    }
    if (count == 1 && !is_there)
        str_copy(to, size, found);
    run_list_release(&list);
}

/* Runs of a proxy have the time in their names: this start's, or that of the latest existing run. */
static void proxy_name(const struct profile *profile, const char *parent, char *to, size_t size)
{
    struct run_list list;
    const char *latest = "";
    run_path_name(RUN_KIND_PROXY, profile->host->label, profile->options->model,
                  seconds(clock_wall()), to, size);
    size_t length = strlen(to), stem = (size_t)(strrchr(to, '_') + 1 - to);
    if (profile->options->existing != EXISTING_RESUME || run_list_load(parent, &list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (strlen(name) == length && strncmp(name, to, stem) == 0 && strcmp(name, latest) > 0)
            latest = name;
    }
    if (*latest)
        str_copy(to, size, latest);
    run_list_release(&list);
}

/* profile_<hardware>_<model>_<dataset>, plus the load unless requests are sequential, so that different loads have
 * different directories. */
static void default_name(const struct profile *profile, const char *parent, char *to, size_t size)
{
    const struct profile_options *options = profile->options;
    char base[256];
    run_dir_name(profile->host->label, options->model, profile->setup.dataset_name, base,
                 sizeof base);
    if (options->agent) { /* a model may be measured with and without an agent */
        char of_profile[sizeof base];
        chars_copy(of_profile, base);
        chars_format(base, "agent%s", of_profile + strcspn(of_profile, "_"));
    }
    if (options->rate > 0)
        str_format(to, size, "%s_rate%g", base, options->rate);
    else if (options->concurrency > 1)
        str_format(to, size, "%s_c%u", base, options->concurrency);
    else
        str_copy(to, size, base);
    if (options->existing == EXISTING_RESUME && !options->of_series.number && !options->shards)
        find_to_resume(parent, base, to, size);
}

static enum err choose_name(const struct profile *profile, const char *parent, char *to,
                            size_t size, struct error *why)
{
    const char *name = profile->options->name;
    if (!name && profile->options->proxy) /* a proxy has a new directory for each start */
        proxy_name(profile, parent, to, size);
    else if (!name)
        default_name(profile, parent, to, size);
    else if (!name[0] || name[0] == '.' || strchr(name, '/') || !str_copy(to, size, name))
        return err_set(why, ERR_USAGE,
                       "--name %.80s: a name of a directory in --output-dir, without '/' and not "
                       "beginning with '.'",
                       name);
    const struct run_part part = {profile->options->shard, profile->options->shards};
    if (part.of && !run_part_suffix(&part, to, size))
        return err_set(why, ERR_USAGE, "the name of the run directory is too long: %s", to);
    if (profile->repeat.number && !run_repeat_name(&profile->repeat, to, size))
        return err_set(why, ERR_USAGE, "the name of the run directory is too long: %s", to);
    return ERR_OK;
}

static enum err name_directory(struct profile *profile, struct error *why)
{
    char name[256];
    const char *parent = profile->options->output_dir ? profile->options->output_dir : "runs";
    if (!parent[0]) /* otherwise the run would be in / */
        return err_set(why, ERR_USAGE, "--output-dir is empty");
    enum err err = choose_name(profile, parent, name, sizeof name, why);
    if (err)
        return err;
    profile->files.directory = xformat("%s/%s", parent, name);
    profile->files.journal_path = run_path_file(profile->files.directory, RUN_FILE_RECORDS);
    profile->files.spans_path = run_path_file(profile->files.directory, RUN_FILE_SPANS);
    profile->files.traces_path = run_path_file(profile->files.directory, RUN_FILE_TRACES);
    return ERR_OK;
}

/* A directory with other files is not touched, not even by a lock file. */
static enum err refuse_foreign(const struct profile *profile, enum run_dir_state *state,
                               struct error *why)
{
    *state = RUN_DIR_NEW;
    enum err err = run_dir_inspect(profile->files.directory, state, why);
    if (!err && *state == RUN_DIR_FOREIGN)
        err = err_set(why, ERR_USAGE,
                      "%s contains files that do not belong to a run: move them, or choose another "
                      "--output-dir",
                      profile->files.directory);
    return err;
}

/* Handles an existing run; sets *resume if it is to be continued. */
static enum err check_existing(const struct profile *profile, bool *resume, struct error *why)
{
    const struct profile_options *options = profile->options;
    enum run_dir_state state;
    *resume = false;
    enum err err = refuse_foreign(profile, &state, why);
    if (err || state == RUN_DIR_NEW || state == RUN_DIR_EMPTY)
        return err;
    if (options->existing == EXISTING_RESUME) {
        *resume = true;
        return run_dir_check_links(profile->files.directory, why);
    }
    if (options->existing == EXISTING_OVERWRITE ||
        (options->may_overwrite && options->may_overwrite(profile->files.directory)))
        return run_dir_clear(profile->files.directory, why);
    return err_set(why, ERR_USAGE,
                   "%s already holds a run: --resume continues it, --overwrite replaces it, and "
                   "--name NAME uses another name",
                   profile->files.directory);
}

static bool has_same_query_count(const struct profile_options *options, const struct summary *then)
{
    double max = integer_number(then->config_max_queries);
    return options->max_queries ? max == options->max_queries : !is_known(max);
}

/* A completed repeat is not run again; its summary is the result. */
static void find_done(struct profile *profile)
{
    struct profile_result *result = profile->result;
    struct summary *summary = &result->summary;
    struct run_repeat there = journal_facts(profile->files.journal_path).repeat;
    if (!profile->repeat.number || !there.group[0])
        return;
    chars_copy(profile->repeat.group, there.group);
    if (there.series[0]) {
        chars_copy(profile->repeat.series, there.series);
        profile->repeat.until_decided = there.until_decided;
    }
    if (summary_load(profile->files.directory, summary, NULL) == ERR_OK &&
        summary->interrupted == 0 && summary->failed == 0 && summary->queries > 0 &&
        has_same_query_count(profile->options, summary)) {
        result->was_done = result->has_summary = true;
        record_energy_get(&summary->energy, &result->energy);
        return;
    }
    summary_release(summary);
    summary_init(summary);
}

enum err profile_open_directory(struct profile *profile, struct error *why)
{
    bool resume = false;
    enum run_dir_state state;
    enum err err = name_directory(profile, why);
    if (!err)
        err = run_dir_make(profile->files.directory, why);
    if (!err)
        err = refuse_foreign(profile, &state, why);
    /* Locked before anything is read or deleted: another process may be writing there. */
    if (!err)
        err = run_dir_lock(profile->files.directory, &profile->files.lock_fd, why);
    if (!err)
        err = check_existing(profile, &resume, why);
    if (!err && !resume)
        err = run_dir_make(profile->files.directory, why);
    if (!err && profile->options->proxy && profile->options->proxy->keep_content)
        err = run_dir_make_private(profile->files.directory, why);
    if (!err && resume)
        err = resume_read(profile->files.journal_path, profile->options,
                          profile->setup.dataset_hash, &profile->files.resume, why);
    if (err)
        return err;
    if (resume)
        find_done(profile);
    profile->start = profile->files.resume.starts + 1;
    profile->files.samples_path = run_path_samples(profile->files.directory, profile->start);
    profile->result->directory = profile->files.directory;
    return ERR_OK;
}

/* Before this start writes anything: these lines belong to the previous start. */
enum err profile_close_unsettled(struct profile *profile, struct error *why)
{
    uint64_t unsettled;
    enum err err = resume_close_unsettled(&profile->files.resume, profile->files.journal_path,
                                          &unsettled, why);
    if (!err && unsettled) {
        char line[120];
        chars_format(line,
                     "the energy of %" PRIu64
                     " quer%s stays unknown: the run was killed before it was settled",
                     unsettled, unsettled == 1 ? "y" : "ies");
        profile_warn(profile, line);
    }
    return err;
}

void profile_close_directory(struct profile *profile)
{
    if (profile->files.lock_fd < 0)
        return;
    if (!profile->files.has_files)
        run_dir_remove_empty(profile->files.directory); /* nothing was written to it */
    close(profile->files.lock_fd);
}

void profile_release_paths(struct profile_files *files)
{
    free(files->directory);
    free(files->journal_path);
    free(files->spans_path);
    free(files->traces_path);
    free(files->samples_path);
}
