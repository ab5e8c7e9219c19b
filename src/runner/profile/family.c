/* Several models on the same questions: a run of each, its figures in a row, and the result of all, with the models that
 * are Pareto-optimal. */
#include "runner/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/hardware.h"
#include "core/json.h"
#include "core/result.h"
#include "core/xalloc.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "stats/pareto.h"
#include "workloads/workload.h"

static void clear_figures(struct profile_member *member)
{
    member->accuracy = member->accuracy_low = member->accuracy_high = UNKNOWN;
    member->joules_per_query = member->joules_per_query_plus_minus = UNKNOWN;
    member->joules_per_output_token = member->output_tokens_per_s = UNKNOWN;
    member->ipj = member->ipj_plus_minus = member->ipw = member->ipw_plus_minus = UNKNOWN;
    member->joules_per_unit = member->joules_per_unit_plus_minus = member->units_per_s = UNKNOWN;
    member->predicted = (struct predicted){UNKNOWN, UNKNOWN, UNKNOWN};
    member->energy = energy_unknown("no query was sent");
    summary_conditions_init(&member->conditions);
}

static void take_figures(struct profile_member *member, const struct summary *summary)
{
    member->conditions = summary->conditions;
    const struct summary_quality *quality = summary_quality_first(summary);
    if (quality)
        member->quality = *quality;
    member->accuracy = summary->accuracy;
    member->accuracy_low = summary->accuracy_interval.low;
    member->accuracy_high = summary->accuracy_interval.high;
    member->joules_per_query = summary->joules_per_query;
    member->joules_per_output_token = summary->joules_per_output_token;
    member->output_tokens_per_s = summary->output_tokens_per_s;
    member->ipj = summary->ipj;
    member->ipj_plus_minus = summary->ipj_plus_minus;
    member->ipw = summary->ipw;
    member->ipw_plus_minus = summary->ipw_plus_minus;
    /* The queries' joules are part of the machine's and have the same relative uncertainty. */
    double relative = member->energy.plus_minus / member->energy.joules;
    member->joules_per_query_plus_minus = member->joules_per_query * relative;
}

/* What a workload processes, else queries. */
static void take_units(struct profile_member *member, const struct summary *summary)
{
    double relative = member->energy.plus_minus / member->energy.joules;
    if (is_known(summary->images)) {
        member->unit = "image";
        member->joules_per_unit = summary->joules_per_image;
        member->units_per_s = ratio(summary->images, summary->seconds);
    } else if (is_known(summary->audio_s)) {
        member->unit = "second of audio";
        member->joules_per_unit = summary->joules_per_audio_s;
        member->units_per_s = ratio(summary->audio_s, summary->seconds);
    } else {
        member->unit = "query";
        member->joules_per_unit = summary->joules_per_query;
        member->units_per_s = ratio((double)summary->completed, summary->seconds);
    }
    member->joules_per_unit_plus_minus = member->joules_per_unit * relative;
}

/* The same work as that of a mean query.  Predictions of speech are left out: its decoder runs a number of times that
 * the files do not say. */
static void predict(const struct profile_entry *entry, const struct hardware *device,
                    const struct summary *summary, struct profile_member *member)
{
    struct error ignored;
    bool is_image = is_known(summary->images);
    struct predicted_work work = {
        .model = entry->file,
        .image = entry->image,
        .prompt_tokens = UNKNOWN,
        .output_tokens = UNKNOWN,
        .passes = is_image ? ratio(summary->denoise_steps, summary->images) : UNKNOWN,
    };
    if (!device || !entry->file || is_known(summary->audio_s))
        return;
    if (!is_image) {
        work.prompt_tokens = ratio(summary->input_tokens, (double)summary->completed);
        work.output_tokens = ratio(summary->output_tokens, (double)summary->completed);
    }
    if (prediction_make(&work, device, &member->predicted, &ignored))
        member->predicted = (struct predicted){UNKNOWN, UNKNOWN, UNKNOWN};
}

static enum err run_member(struct session *session, const struct host_report *host,
                           const struct profile_entry *entry, const struct hardware *device,
                           struct profile_member *member, int *signal, struct error *why)
{
    struct profile_options options = *entry->profile;
    struct profile_result result;
    options.model = member->model;
    enum err err = profile_run(session, host, &options, &result, why);
    member->directory = xstrdup(result.directory);
    *signal = result.signal;
    if (err == ERR_INTERRUPTED)
        return err; /* threads still use the options */
    if (result.has_summary) {
        member->queries = result.summary.queries;
        member->completed = result.summary.completed;
        member->failed = result.summary.failed;
    }
    if (!err) {
        member->energy = result.energy;
        take_figures(member, &result.summary);
        take_units(member, &result.summary);
        predict(entry, device, &result.summary, member);
    }
    profile_result_release(&result);
    return err;
}

static bool same_dataset(const struct profile_entry *a, const struct profile_entry *b)
{
    return str_equal(a->profile->dataset, b->profile->dataset);
}

/* More is better. */
static double merit_of(const struct profile_member *member)
{
    const struct summary_quality *quality = &member->quality;
    if (is_known(member->accuracy) || !quality->name[0])
        return member->accuracy;
    return quality->better == BETTER_LOWER ? -quality->value : quality->value;
}

/* Among the models that answered the questions of one dataset, of which `first` is the first. */
static void mark_frontier_of(const struct profile_entry *entries, size_t first,
                             struct profile_family *family)
{
    size_t count = 0;
    double *figures = xcalloc(2 * (family->count + 1), sizeof *figures);
    double *joules = figures, *accuracies = figures + family->count;
    bool *on = xcalloc(family->count + 1, sizeof *on);
    struct profile_member **members = xcalloc(family->count + 1, sizeof *members);
    for (size_t i = first; i < family->count; i++) {
        if (!same_dataset(&entries[i], &entries[first]))
            continue;
        members[count] = &family->members[i];
        joules[count] = members[count]->joules_per_query;
        accuracies[count] = merit_of(members[count]);
        count++;
    }
    pareto_mark(joules, accuracies, count, on);
    for (size_t i = 0; i < count; i++)
        members[i]->on_frontier = on[i];
    free(members);
    free(figures);
    free(on);
}

static void mark_frontier(const struct profile_entry *entries, struct profile_family *family)
{
    for (size_t i = 0; i < family->count; i++) {
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !same_dataset(&entries[k], &entries[i]);
        if (is_first)
            mark_frontier_of(entries, i, family);
    }
}

enum err profile_family_run(struct session *session, const struct host_report *host,
                            const struct profile_family_options *options,
                            struct profile_family *out, struct error *why)
{
    struct error first = {0}, ignored;
    struct hardware device;
    size_t profiled = 0;
    *out = (struct profile_family){.members = xcalloc(options->count + 1, sizeof *out->members)};
    bool has_device = prediction_device(&device, &ignored) == ERR_OK;
    if (has_device)
        chars_copy(out->device, device.name);
    while (out->count < options->count && !out->signal) {
        struct profile_member *member = &out->members[out->count];
        struct error failed = {0};
        const struct profile_entry *entry = &options->entries[out->count];
        const struct workload_driver *workload = entry->profile->workload;
        member->model = entry->model;
        member->workload = workload ? workload->name : NULL;
        clear_figures(member);
        if (options->begins)
            options->begins(member->model, out->count, options->count);
        out->count++;
        enum err err = run_member(session, host, entry, has_device ? &device : NULL, member,
                                  &out->signal, &failed);
        if (err == ERR_INTERRUPTED)
            return err_set(why, err, "%s", failed.text);
        profiled += !err;
        if (err)
            chars_format(member->why, "%s", failed.text[0] ? failed.text : err_text(err));
        if (err && !first.code)
            err_set(&first, err, "%s: %s", member->model, member->why);
    }
    if (has_device)
        hardware_release(&device);
    mark_frontier(options->entries, out);
    if (profiled == 0 && first.code) {
        *why = first;
        return first.code;
    }
    return ERR_OK;
}

void profile_family_release(struct profile_family *family)
{
    for (size_t i = 0; i < family->count; i++)
        free(family->members[i].directory);
    free(family->members);
    free(family->conclusion);
}

/* ---- the result ---- */

/* A figure, and its ± under a key of its own. */
struct figure {
    const char *key, *error_key; /* NULL: without a ± */
    size_t value, error;
    const char *unit;
};

#define FIGURE(member, unit)                                                                       \
    {#member, #member "_plus_minus", offsetof(struct profile_member, member),                      \
     offsetof(struct profile_member, member##_plus_minus), unit}
#define BARE_FIGURE(member, unit) {#member, NULL, offsetof(struct profile_member, member), 0, unit}

static const struct figure FIGURES[] = {
    FIGURE(joules_per_query, "J"),
    FIGURE(joules_per_unit, "J"),
    BARE_FIGURE(units_per_s, "1/s"),
    BARE_FIGURE(joules_per_output_token, "J"),
    BARE_FIGURE(output_tokens_per_s, "1/s"),
    FIGURE(ipj, "1/J"),
    FIGURE(ipw, "1/W"),
};

static void put_figure(struct result *out, const struct figure *figure,
                       const struct profile_member *member)
{
    const char *at = (const char *)member;
    double value = *(const double *)(at + figure->value);
    if (figure->error_key)
        result_measured(out, figure->key, value, figure->error_key,
                        *(const double *)(at + figure->error), figure->unit);
    else
        result_number(out, figure->key, value, figure->unit);
}

static void put_member(struct result *out, const struct profile_member *member)
{
    const double interval[] = {member->accuracy_low, member->accuracy_high};
    struct json json;
    result_writer(out, &json);
    result_group(out, NULL);
    result_text(out, "model", member->model);
    result_text(out, "workload", member->workload);
    result_text(out, "unit", member->unit);
    result_text(out, "output_dir", member->directory[0] ? member->directory : NULL);
    result_text(out, "error", member->why[0] ? member->why : NULL);
    summary_conditions_to_json(&json, "conditions", &member->conditions);
    result_integer(out, "queries", member->queries);
    result_integer(out, "completed", member->completed);
    result_number(out, "accuracy", member->accuracy, "%");
    result_between(out, "accuracy", interval[0], interval[1]);
    result_numbers(out, "accuracy_interval_95", interval, 2, "%");
    for (size_t i = 0; i < COUNT_OF(FIGURES); i++)
        put_figure(out, &FIGURES[i], member);
    if (member->quality.name[0]) {
        result_group(out, "quality");
        result_text(out, "name", member->quality.name);
        result_measured(out, "value", member->quality.value, "plus_minus",
                        member->quality.plus_minus, "");
        result_end(out);
    }
    result_group(out, "predicted");
    result_measured(out, "joules_per_unit", member->predicted.joules, "joules_per_unit_plus_minus",
                    member->predicted.plus_minus, "J");
    result_number(out, "seconds_per_unit", member->predicted.seconds, "s");
    result_end(out);
    energy_to_json(&json, "energy", &member->energy);
    result_flag(out, "on_frontier", member->on_frontier);
    result_end(out);
}

void profile_family_fill(const struct profile_family *family, struct result *out)
{
    result_begin(out, "demo");
    result_text(out, "conclusion", family->conclusion);
    result_text(out, "predicted_on", family->device[0] ? family->device : NULL);
    result_list(out, "models");
    for (size_t i = 0; i < family->count; i++)
        put_member(out, &family->members[i]);
    result_end(out);
    result_flag(out, "interrupted", family->signal != 0);
    result_end(out);
    result_table(out, "models", NULL);
}
