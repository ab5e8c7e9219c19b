/* Shards into one run: rundir joins their files, each start of a shard becoming one of the run; the figures are then
 * summed as those of a resumed run are, and what is no figure is what the shards agree on. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/file.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_parts.h"
#include "rundir/run_path.h"
#include "runner/profile/profile.h"
#include "runner/profile/state.h"

struct merge {
    struct profile profile; /* first: describe gets it */
    struct profile_options options;
    struct profile_result result;
    struct summary *parts;
    size_t count;
    struct text uuids; /* of all GPUs */
};

enum err profile_shards_left(const char *folder, unsigned of, size_t *parts, size_t *count,
                             struct error *why)
{
    struct run_list list;
    bool *ended = calloc(of + 1, sizeof *ended);
    enum err err = ended ? run_list_load(folder, &list, why) : err_no_memory(why);
    if (err) {
        free(ended);
        return err;
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct run_list_entry *run = &list.entries[i];
        char path[FILE_PATH_MAX];
        if (!run->has_summary || run->summary.interrupted != 0 ||
            !str_format(path, sizeof path, "%s/%s", folder, run->name))
            continue;
        struct run_part part = run_part_of(path);
        if (part.of == of)
            ended[part.number] = true;
    }
    *count = 0;
    for (unsigned number = 1; number <= of; number++)
        if (!ended[number]) {
            if (parts)
                parts[*count] = number;
            ++*count;
        }
    run_list_release(&list);
    free(ended);
    return ERR_OK;
}

/* ---- what is no figure ---- */

static bool agree(const struct merge *merge, const struct json_field *field)
{
    const char *first = text_or_empty(json_field_text(field, &merge->parts[0]));
    for (size_t i = 1; i < merge->count; i++)
        if (strcmp(first, text_or_empty(json_field_text(field, &merge->parts[i]))) != 0)
            return false;
    return true;
}

/* A finding of any shard is one of the run. */
static void add_findings(const struct merge *merge, struct summary_conditions *out)
{
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary_conditions *from = &merge->parts[i].conditions;
        for (size_t j = 0; j < from->finding_count; j++) {
            size_t k = 0;
            while (k < out->finding_count &&
                   strcmp(out->findings[k].code, from->findings[j].code) != 0)
                k++;
            if (k == out->finding_count && k < SUMMARY_FINDINGS_MAX)
                out->findings[out->finding_count++] = from->findings[j];
        }
    }
}

static void add_uuids(struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++) {
        const char *mine = merge->parts[i].gpu_uuids;
        if (mine && !strstr(text_get(&merge->uuids), mine))
            text_addf(&merge->uuids, "%s%s", merge->uuids.length ? "," : "", mine);
    }
}

/* Of the peak that the shards' hardware had in their time, what was used. */
static double utilization(const struct merge *merge)
{
    double done = 0, possible = 0;
    for (size_t i = 0; i < merge->count; i++) {
        done += merge->parts[i].flops;
        possible += merge->parts[i].flops / merge->parts[i].mfu;
    }
    return ratio(done, possible);
}

/* What the journal does not have. */
static void add_known_figures(const struct merge *merge, struct summary *out)
{
    out->flops_per_token = merge->parts[0].flops_per_token;
    out->mfu = utilization(merge);
    out->currency = merge->parts[0].currency;
    out->own_reads = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary *part = &merge->parts[i];
        add_known(&out->flops, part->flops);
        add_known(&out->electricity_cost, part->electricity_cost);
        add_known(&out->own_cpu_s, part->own_cpu_s);
        if (!(part->own_rss_mb <= out->own_rss_mb))
            out->own_rss_mb = part->own_rss_mb;
        out->own_reads += part->own_reads;
    }
}

static enum err describe_parts(struct profile *profile, struct summary *out)
{
    struct merge *merge = (struct merge *)profile;
    const struct summary *first = &merge->parts[0];
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->role == SUMMARY_IS_FIELD && !str_starts(field->at.path, "ipw.") &&
            (field->at.type != FIELD_TEXT || agree(merge, &field->at)))
            json_field_copy(&field->at, first, out);
    out->hardware_label = out->hardware_label ? out->hardware_label : "mixed";
    summary_conditions_init(&out->conditions);
    add_findings(merge, &out->conditions);
    add_uuids(merge);
    out->gpu_uuids = str_or_null(text_get(&merge->uuids));
    out->generated_at = seconds(clock_wall());
    out->output_dir = out->directory = profile->directory;
    out->version = IPW_VERSION;
    out->total_queries = out->queries;
    out->started_at = profile->resume.started_at;
    out->starts = profile->resume.starts;
    out->interrupted = 0;
    out->rows_left_out = first->rows_left_out; /* every shard reads all rows */
    out->first_row_left_out = first->first_row_left_out;
    add_known_figures(merge, out);
    return merge->uuids.failed ? ERR_NO_MEMORY : ERR_OK;
}

/* ---- the directory ---- */

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

static enum err make_directory(struct merge *merge, const char *const *directories,
                               const char *output_dir, const char *name, bool overwrite,
                               struct error *why)
{
    struct profile *profile = &merge->profile;
    char stem[256];
    const char *last = str_last_part(directories[0]);
    enum run_dir_state state;
    str_format(stem, sizeof stem, "%.*s", (int)run_part_stem(last), last);
    if (!str_format(profile->directory, sizeof profile->directory, "%s/%s",
                    output_dir ? output_dir : "runs", name ? name : stem) ||
        !run_path_file(profile->directory, RUN_FILE_RECORDS, profile->journal_path,
                       sizeof profile->journal_path))
        return err_set(why, ERR_USAGE, "the path of the run directory is too long");
    enum err err = run_dir_look(profile->directory, &state, why);
    if (!err && state == RUN_DIR_HAS_RUN && overwrite)
        err = run_dir_clear(profile->directory, why);
    else if (!err && state != RUN_DIR_NEW && state != RUN_DIR_EMPTY)
        err = err_set(why, ERR_USAGE,
                      "%s already holds %s: --overwrite replaces a run, and --name NAME puts this "
                      "one beside it",
                      profile->directory, state == RUN_DIR_HAS_RUN ? "a run" : "other files");
    if (!err)
        err = run_dir_make(profile->directory, why);
    return err ? err : run_dir_lock(profile->directory, &profile->lock_fd, why);
}

static enum err summarize(struct merge *merge, struct error *why)
{
    struct profile *profile = &merge->profile;
    int64_t repeats = merge->parts[0].config_repeat;
    merge->options.model = merge->parts[0].model;
    merge->options.repeat = repeats > 0 && repeats < 100000 ? (unsigned)repeats : 1;
    enum err err =
        resume_read_any(profile->journal_path, merge->options.repeat, &profile->resume, why);
    profile->start = profile->resume.starts + 1;
    return err ? err : profile_summarize_as(profile, describe_parts, why);
}

enum err profile_merge(const char *const *directories, size_t count, const char *output_dir,
                       const char *name, bool overwrite, char directory[static 512],
                       struct error *why)
{
    struct merge *merge = calloc(1, sizeof *merge);
    struct summary *parts = calloc(count + 1, sizeof *parts);
    if (!merge || !parts) {
        free(merge);
        free(parts);
        return err_no_memory(why);
    }
    merge->parts = parts;
    merge->count = count;
    merge->profile = (struct profile){.options = &merge->options,
                                      .result = &merge->result,
                                      .lock_fd = -1,
                                      .facts = efficiency_inputs_unknown(),
                                      .resume = resume_nothing(),
                                      .spent = run_energy_unknown("no query was sent")};
    for (size_t i = 0; i < count; i++)
        summary_init(&parts[i]);
    summary_init(&merge->result.summary);
    enum err err = load_parts(merge, directories, why);
    if (!err)
        err = make_directory(merge, directories, output_dir, name, overwrite, why);
    bool made = !err;
    if (!err)
        err = run_parts_merge(directories, count, merge->profile.directory, why);
    if (!err)
        err = summarize(merge, why);
    if (err && made) {
        struct error ignored;
        (void)!run_dir_clear(merge->profile.directory, &ignored);
        run_dir_drop(merge->profile.directory); /* where nothing but the lock was in it */
    }
    str_copy(directory, 512, merge->profile.directory);
    if (merge->profile.lock_fd >= 0)
        close(merge->profile.lock_fd);
    resume_release(&merge->profile.resume);
    summary_release(&merge->result.summary);
    for (size_t i = 0; i < count; i++)
        summary_release(&parts[i]);
    text_release(&merge->uuids);
    free(parts);
    free(merge);
    return err;
}
