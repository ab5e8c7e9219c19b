/* The shards of a run as one run.  rundir merges their files, and each start of a shard becomes one of the run; figures
 * are summed as for a resumed run, and other fields must be equal in all shards. */
#include "runner/profile/profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "rundir/run_dir.h"
#include "rundir/run_writer.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"

struct merge {
    struct profile profile; /* first member: describe casts to it */
    struct profile_options options;
    struct profile_result result;
    struct summary *parts;
    size_t count;
    struct text uuids; /* of all GPUs */
};

/* A condition found in any shard applies to the run; what its answers show is found again, in all of them. */
static void add_findings(const struct merge *merge, struct summary_conditions *out)
{
    struct findings all = {0};
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary_conditions *from = &merge->parts[i].conditions;
        for (size_t j = 0; j < from->finding_count; j++) {
            size_t k = 0;
            while (k < all.count && !str_equal(all.items[k].code, from->findings[j].code))
                k++;
            bool is_of_answers = finding_is(&from->findings[j], FINDING_UNREAD_ANSWERS);
            if (k == all.count && !is_of_answers)
                findings_add(&all, &from->findings[j]);
        }
    }
    summary_conditions_find(out, &all);
    findings_release(&all);
}

static void add_uuids(struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++) {
        const char *mine = merge->parts[i].gpu_uuids;
        if (mine && !strstr(text_get(&merge->uuids), mine))
            text_addf(&merge->uuids, "%s%s", merge->uuids.length ? "," : "", mine);
    }
}

/* Utilization relative to the peak of the shards' hardware over their time. */
static double utilization(const struct merge *merge)
{
    double done = 0, possible = 0;
    for (size_t i = 0; i < merge->count; i++) {
        done += merge->parts[i].flops;
        possible += merge->parts[i].flops / merge->parts[i].mfu;
    }
    return ratio(done, possible);
}

/* Adds figures that are not in the journal. */
static void add_known_figures(const struct merge *merge, struct summary *out)
{
    out->flops_per_token = merge->parts[0].flops_per_token;
    out->flops = UNKNOWN;
    out->mfu = utilization(merge);
    out->currency = merge->parts[0].currency;
    out->tariff = merge->parts[0].tariff;
    out->own_reads = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary *part = &merge->parts[i];
        add_known(&out->flops, part->flops);
        add_known(&out->device_seconds, summary_device_seconds(part));
        add_known(&out->own_cpu_s, part->own_cpu_s);
        if (!(part->own_rss_mb <= out->own_rss_mb))
            out->own_rss_mb = part->own_rss_mb;
        out->own_reads += part->own_reads;
    }
}

static void describe_parts(struct profile *profile, struct summary *out)
{
    struct merge *merge = (struct merge *)profile;
    const struct summary *first = &merge->parts[0];
    summary_common(merge->parts, merge->count, out);
    out->hardware_label = out->hardware_label ? out->hardware_label : "mixed";
    summary_conditions_init(&out->conditions);
    add_findings(merge, &out->conditions);
    add_uuids(merge);
    out->gpu_uuids = str_or_null(text_get(&merge->uuids));
    out->generated_at = seconds(clock_wall());
    out->output_dir = out->directory = profile->files.directory;
    out->version = IPW_VERSION;
    out->total_queries = out->queries;
    out->started_at = profile->files.resume.started_at;
    out->starts = profile->files.resume.starts;
    out->interrupted = 0;
    out->rows_left_out = first->rows_left_out; /* every shard reads all rows */
    out->first_row_left_out = first->first_row_left_out;
    out->answer_format = first->answer_format;
    add_known_figures(merge, out);
}

static enum err load_parts(struct merge *merge, const char *const *directories, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < merge->count; i++) {
        err = summary_load(directories[i], &merge->parts[i], why);
        if (err == ERR_NOT_FOUND || (!err && merge->parts[i].interrupted != 0))
            err =
                err_set(why, ERR_USAGE, "%s has not ended: --resume continues it", directories[i]);
    }
    return err;
}

static enum err make_merged(struct merge *merge, const char *const *directories,
                            const char *output_dir, const char *name, bool overwrite,
                            struct error *why)
{
    struct profile *profile = &merge->profile;
    char stem[256];
    const char *last = str_last_part(directories[0]);
    enum run_dir_state state;
    chars_format(stem, "%.*s", (int)run_part_stem(last), last);
    profile->files.directory =
        xformat("%s/%s", output_dir ? output_dir : "runs", name ? name : stem);
    profile->files.journal_path = run_path_file(profile->files.directory, RUN_FILE_RECORDS);
    enum err err = run_dir_inspect(profile->files.directory, &state, why);
    if (!err && state == RUN_DIR_HAS_RUN && overwrite)
        err = run_dir_clear(profile->files.directory, why);
    else if (!err && state != RUN_DIR_NEW && state != RUN_DIR_EMPTY)
        err = err_set(
            why, ERR_USAGE,
            "%s already holds %s: --overwrite replaces a run, and --name NAME uses another name",
            profile->files.directory, state == RUN_DIR_HAS_RUN ? "a run" : "other files");
    if (!err)
        err = run_dir_make(profile->files.directory, why);
    return err ? err : run_dir_lock(profile->files.directory, &profile->files.lock_fd, why);
}

static enum err summarize_parts(struct merge *merge, struct error *why)
{
    struct profile *profile = &merge->profile;
    int64_t repeats = merge->parts[0].config_repeat;
    merge->options.model = merge->parts[0].model;
    merge->options.repeat = repeats > 0 && repeats < 100000 ? (unsigned)repeats : 1;
    enum err err = resume_read_any(profile->files.journal_path, merge->options.repeat,
                                   &profile->files.resume, why);
    profile->start = profile->files.resume.starts + 1;
    return err ? err : profile_summarize_as(profile, describe_parts, why);
}

enum err profile_merge(const char *const *directories, size_t count, const char *output_dir,
                       const char *name, bool overwrite, char **directory, struct error *why)
{
    struct merge *merge = XNEW(merge);
    struct summary *parts = xcalloc(count + 1, sizeof *parts);
    merge->parts = parts;
    merge->count = count;
    merge->profile = (struct profile){.options = &merge->options,
                                      .result = &merge->result,
                                      .files.lock_fd = -1,
                                      .files.resume = resume_nothing(),
                                      .settling.spent = run_energy_unknown("no query was sent")};
    for (size_t i = 0; i < count; i++)
        summary_init(&parts[i]);
    summary_init(&merge->result.summary);
    enum err err = load_parts(merge, directories, why);
    if (!err)
        err = make_merged(merge, directories, output_dir, name, overwrite, why);
    bool made = !err;
    if (!err)
        err = run_parts_merge(directories, count, merge->profile.files.directory, why);
    if (!err)
        err = summarize_parts(merge, why);
    if (err && made) {
        struct error ignored;
        (void)!run_dir_clear(merge->profile.files.directory, &ignored);
        run_dir_remove_empty(merge->profile.files.directory); /* if it contains only the lock */
    }
    *directory = merge->profile.files.directory;
    merge->profile.files.directory = NULL;
    profile_release_paths(&merge->profile.files);
    if (merge->profile.files.lock_fd >= 0)
        close(merge->profile.files.lock_fd);
    resume_release(&merge->profile.files.resume);
    summary_release(&merge->result.summary);
    for (size_t i = 0; i < count; i++)
        summary_release(&parts[i]);
    text_release(&merge->uuids);
    free(parts);
    free(merge);
    return err;
}

bool profile_parse_shard(struct profile_options *options, const char *text)
{
    struct run_part part;
    bool taken = run_part_parse(text, &part);
    options->shard = part.number;
    options->shards = part.of;
    return taken;
}

char *profile_shards_folder(const struct profile_options *options)
{
    char name[256];
    run_dir_name("shards", options->model, options->dataset, name, sizeof name);
    return xformat("%s/%s%s", options->output_dir ? options->output_dir : "runs",
                   options->name ? options->name : name, options->name ? "_shards" : "");
}

bool profile_shard_is_complete(const char *folder, const char *name, unsigned shard, unsigned of)
{
    char *path = run_part_path(folder, name, &(struct run_part){shard, of});
    bool is_complete = summary_is_complete(path);
    free(path);
    return is_complete;
}

size_t profile_shards_left(const char *folder, const char *name, unsigned of, size_t *parts)
{
    size_t left = 0;
    for (unsigned shard = 1; shard <= of; shard++) {
        if (profile_shard_is_complete(folder, name, shard, of))
            continue;
        if (parts)
            parts[left] = shard;
        left++;
    }
    return left;
}

enum err profile_merge_shards(const struct profile_options *options, const char *folder,
                              const char *name, unsigned of, bool overwrite, char **directory,
                              struct error *why)
{
    struct summary summary;
    char whole[256];
    char **runs = xcalloc(of, sizeof *runs);
    for (unsigned i = 0; i < of; i++)
        runs[i] = run_part_path(folder, name, &(struct run_part){i + 1, of});
    *directory = NULL;
    enum err err = summary_load(runs[0], &summary, why);
    if (!err) {
        run_dir_name(text_or_empty(summary.hardware_label), options->model,
                     text_or_empty(summary.dataset_name), whole, sizeof whole);
        summary_release(&summary);
        err = profile_merge((const char *const *)runs, of, options->output_dir,
                            options->name ? options->name : whole, overwrite, directory, why);
    }
    for (unsigned i = 0; i < of; i++)
        free(runs[i]);
    free((void *)runs);
    return err;
}
