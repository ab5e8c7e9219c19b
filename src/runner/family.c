#include "runner/family.h"

#include <stdlib.h>

#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile.h"
#include "stats/pareto.h"

static void forget_figures(struct family_member *member)
{
    member->accuracy = member->accuracy_low = member->accuracy_high = UNKNOWN;
    member->joules_per_query = member->joules_per_query_plus_minus = UNKNOWN;
    member->joules_per_output_token = member->output_tokens_per_s = UNKNOWN;
    member->ipj = member->ipj_plus_minus = member->ipw = member->ipw_plus_minus = UNKNOWN;
    member->energy = energy_unknown("no query was asked");
}

/* Of what scripts are told of a run, so that this table and they never differ. */
static void take_figures(struct family_member *member, const struct jv *report)
{
    const struct {
        const char *path;
        double *to;
    } FIGURES[] = {
        {"accuracy", &member->accuracy},
        {"accuracy_interval_95.0", &member->accuracy_low},
        {"accuracy_interval_95.1", &member->accuracy_high},
        {"joules_per_query", &member->joules_per_query},
        {"joules_per_output_token", &member->joules_per_output_token},
        {"output_tokens_per_s", &member->output_tokens_per_s},
        {"ipj", &member->ipj},
        {"ipj_plus_minus", &member->ipj_plus_minus},
        {"ipw", &member->ipw},
        {"ipw_plus_minus", &member->ipw_plus_minus},
    };
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        *FIGURES[i].to = jv_number(jv_path(report, FIGURES[i].path));
    /* The queries' joules are part of the machine's, and as sure as those. */
    double relative = member->energy.plus_minus / member->energy.joules;
    member->joules_per_query_plus_minus = member->joules_per_query * relative;
}

static enum err profile_member(struct session *session, const struct host_report *host,
                               const struct profile_options *profile, struct family_member *member,
                               int *signal, struct error *why)
{
    struct profile_options options = *profile;
    struct profile_result result;
    struct jv *report = NULL;
    options.model = member->model;
    enum err err = profile_run(session, host, &options, &result, why);
    str_format(member->directory, sizeof member->directory, "%s", result.directory);
    member->queries = result.queries;
    member->completed = result.completed;
    *signal = result.signal;
    if (err == ERR_INTERRUPTED)
        return err; /* threads still use the result */
    if (!err)
        err = jv_parse(text_get(&result.report), result.report.length, &report, why);
    if (!err) {
        member->energy = result.energy;
        take_figures(member, report);
    }
    jv_free(report);
    profile_result_release(&result);
    return err;
}

static enum err mark_frontier(struct family *family)
{
    size_t count = family->count;
    double *figures = malloc(2 * (count + 1) * sizeof *figures);
    bool *on = malloc((count + 1) * sizeof *on);
    enum err err = figures && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; i < count && !err; i++) {
        figures[i] = family->members[i].joules_per_query;
        figures[count + i] = family->members[i].accuracy;
    }
    if (!err)
        err = pareto_mark(figures, figures + count, count, on);
    for (size_t i = 0; i < count && !err; i++)
        family->members[i].on_frontier = on[i];
    free(figures);
    free(on);
    return err;
}

enum err family_run(struct session *session, const struct host_report *host,
                    const struct family_options *options, struct family *out, struct error *why)
{
    struct error first = {0};
    size_t profiled = 0;
    *out = (struct family){.members = calloc(options->count + 1, sizeof *out->members)};
    if (!out->members)
        return err_set(why, ERR_NO_MEMORY, "out of memory for the table of models");
    while (out->count < options->count && !out->signal) {
        struct family_member *member = &out->members[out->count];
        struct error failed = {0};
        member->model = options->models[out->count];
        forget_figures(member);
        if (options->begins)
            options->begins(member->model, out->count, options->count);
        out->count++;
        enum err err =
            profile_member(session, host, options->profile, member, &out->signal, &failed);
        if (err == ERR_INTERRUPTED)
            return err_set(why, err, "%s", failed.text);
        profiled += !err;
        if (err)
            str_format(member->why, sizeof member->why, "%s",
                       failed.text[0] ? failed.text : err_text(err));
        if (err && !first.code)
            err_set(&first, err, "%s: %s", member->model, member->why);
    }
    if (mark_frontier(out) != ERR_OK)
        return err_set(why, ERR_NO_MEMORY, "out of memory for the table of models");
    if (profiled == 0 && first.code) {
        *why = first;
        return first.code;
    }
    return ERR_OK;
}

void family_release(struct family *family)
{
    free(family->members);
}
