#include "runner/profile/account.h"

#include <math.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/energy_json.h"
#include "core/json.h"
#include "core/text.h"
#include "runner/profile/energy_read.h"
#include "runner/profile/finish.h"
#include "runner/profile/whole.h"
#include "sampler/session.h"

/* ---- this start ---- */

enum err account_open(struct profile *profile, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct text line = {0}, settings = {0};
    struct json json;
    resume_settings(run->context.options, &settings);
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "run");
    json_integer(&json, "format", 1);
    json_string(&json, "ipw", IPW_VERSION);
    json_integer(&json, "start", run->context.start);
    json_number(&json, "started_at", seconds(run->context.zero_wall));
    json_string(&json, "hardware_label", run->context.host->label);
    json_raw(&json, "settings", text_get(&settings));
    json_object_end(&json);
    enum err err = line.failed || settings.failed ? err_set(why, ERR_NO_MEMORY, "out of memory")
                                                  : journal_append(&run->journal, &line, why);
    text_release(&line);
    text_release(&settings);
    return err;
}

static enum err write_end_line(struct profile *profile, const struct energy *energy,
                               struct error *why)
{
    struct profile_run *run = &profile->run;
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "end");
    json_integer(&json, "start", run->context.start);
    json_number(&json, "ended_at", seconds(clock_wall()));
    energy_to_json(&json, "energy", energy);
    json_number(&json, "accounted_joules", profile->accounted_joules);
    json_number(&json, "idle_joules", profile->idle_joules);
    json_number(&json, "unattributed_joules", profile->unattributed_joules);
    json_number(&json, "busy_joules", profile->busy.joules);
    json_number(&json, "busy_s", profile->busy.seconds);
    json_object_end(&json);
    enum err err = journal_append(&run->journal, &line, why);
    text_release(&line);
    return err;
}

enum err account_share(struct profile *profile, nanos from, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct sharing_options options = {
        .from = from,
        .idle = profile->has_idle ? &profile->idle : NULL,
        .decode_weight = run->context.options->decode_weight,
    };
    sharing_free(run->sharing);
    run->sharing = sharing_new(run->session->sampler, &options);
    return run->sharing ? ERR_OK : err_set(why, ERR_NO_MEMORY, "out of memory");
}

/* An unknown sum becomes its first known part. */
static void add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}

/* What the machine spent while the queries ran, by the ledger; and what attribution made of it. */
static enum err add_up(struct profile *profile, nanos from, struct error *why)
{
    enum { DEVICES_MOST = 64 };
    struct sharing_device_sum sums[DEVICES_MOST];
    struct profile_run *run = &profile->run;
    profile->busy =
        (struct busy_energy){.joules = UNKNOWN, .seconds = sharing_busy_s(run->sharing)};
    if (atomic_load(&run->asked) == 0)
        return ERR_OK; /* nothing was asked: what the machine did meanwhile is no query's */
    enum err err = ledger_take(run->session->sampler, from, sharing_settled(run->sharing),
                               profile->has_idle ? &profile->idle : NULL, &profile->ledger);
    if (err)
        return err_set(why, err, "cannot add up the energy: %s", err_text(err));
    profile->has_ledger = true;
    size_t count = sharing_sums(run->sharing, sums, DEVICES_MOST);
    double relative = profile->ledger.total.plus_minus / profile->ledger.total.joules;
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted)
            continue;
        add_known(&profile->busy.joules, sums[i].requests_joules);
        add_known(&profile->accounted_joules, sums[i].settled_joules);
        add_known(&profile->idle_joules, sums[i].idle_joules);
        add_known(&profile->unattributed_joules, sums[i].unattributed_joules);
    }
    profile->busy.plus_minus = relative * profile->busy.joules;
    return ERR_OK;
}

enum err account_close(struct profile *profile, nanos from, struct error *why)
{
    const struct energy nothing = energy_unknown("no query was asked");
    enum err err = add_up(profile, from, why);
    if (err)
        return err;
    return write_end_line(profile, profile->has_ledger ? &profile->ledger.total : &nothing, why);
}

/* ---- all starts ---- */

static void energy_of_all_starts(const struct profile *profile, struct energy *out)
{
    const struct resume *resume = &profile->place.resume;
    unsigned killed = resume->starts - resume->ended, unmeasured = resume->unmeasured;
    *out = profile->has_ledger ? profile->ledger.total : energy_unknown("no query was asked");
    unmeasured += profile->has_ledger && out->method == METHOD_NONE;
    energy_add(out, &resume->energy);
    if (killed)
        str_format(
            out->note, sizeof out->note,
            "%u earlier start%s did not come to an end: only what its queries spent is in it",
            killed, killed == 1 ? "" : "s");
    else if (unmeasured && out->method != METHOD_NONE)
        str_format(out->note, sizeof out->note,
                   "%u of the starts measured nothing: what %s spent is not in it", unmeasured,
                   unmeasured == 1 ? "it" : "they");
}

static struct busy_energy busy_of_all_starts(const struct profile *profile)
{
    struct busy_energy busy = profile->busy;
    const struct resume *resume = &profile->place.resume;
    if (!is_known(busy.joules) || !profile->has_ledger)
        return resume->busy;
    busy.plus_minus += resume->busy.plus_minus; /* the same sensors: wrong alike */
    busy.joules += resume->busy.joules;
    busy.seconds += resume->busy.seconds;
    return busy;
}

/* How long queries were under way; UNKNOWN when a start was killed and cannot tell. */
static double busy_s_of_all_starts(const struct profile *profile)
{
    const struct resume *resume = &profile->place.resume;
    return resume->ended == resume->starts ? resume->busy_s + profile->busy.seconds : UNKNOWN;
}

/* Of what is known of them. */
static double of_all_starts(double this_start, double earlier)
{
    add_known(&this_start, earlier);
    return this_start;
}

void account_totals(const struct profile *profile, struct finish_facts *out)
{
    const struct resume *resume = &profile->place.resume;
    double accounted = of_all_starts(profile->accounted_joules, resume->accounted_joules);
    out->busy = busy_of_all_starts(profile);
    out->busy_s = busy_s_of_all_starts(profile);
    out->requests_joules = of_all_starts(profile->run.requests_joules, resume->requests_joules);
    out->idle_joules = of_all_starts(profile->idle_joules, resume->idle_joules);
    out->unattributed_joules =
        of_all_starts(profile->unattributed_joules, resume->unattributed_joules);
    energy_of_all_starts(profile, &out->energy);
    out->conservation_error = fabs(accounted - out->energy.joules) / out->energy.joules;
}
