#include "runner/profile/account.h"

#include <math.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "runner/profile/energy_read.h"
#include "runner/profile/finish.h"
#include "runner/profile/whole.h"
#include "sampler/session.h"

/* ---- this start ---- */

enum err account_open(struct profile *profile, nanos from, struct error *why)
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
    json_object(&json, "measuring");
    json_number(&json, "from_s", seconds(from - run->context.zero));
    json_number(&json, "decode_weight", run->context.options->decode_weight);
    json_object_end(&json);
    json_object_end(&json);
    enum err err = line.failed || settings.failed ? err_set(why, ERR_NO_MEMORY, "out of memory")
                                                  : journal_append(&run->journal, &line, why);
    text_release(&line);
    text_release(&settings);
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

enum err account_close(struct profile *profile, nanos from, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct text line = {0};
    enum err err = ERR_OK;
    if (atomic_load(&run->asked) > 0) {
        err = start_sums_take(run->session->sampler, run->sharing, from,
                              profile->has_idle ? &profile->idle : NULL, &profile->sums,
                              &profile->ledger, why);
        profile->has_ledger = !err;
    }
    if (err)
        return err;
    start_sums_line(&profile->sums, run->context.start, seconds(clock_wall()), &line);
    err = journal_append(&run->journal, &line, why);
    text_release(&line);
    return err;
}

/* ---- all starts ---- */

static void energy_of_all_starts(const struct profile *profile, struct energy *out)
{
    const struct resume *resume = &profile->place.resume;
    unsigned killed = resume->starts - resume->ended, unmeasured = resume->unmeasured;
    *out = profile->sums.energy;
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
    struct busy_energy busy = profile->sums.busy;
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
    return resume->ended == resume->starts ? resume->busy_s + profile->sums.busy_s : UNKNOWN;
}

/* Of what is known of them. */
static double of_all_starts(double this_start, double earlier)
{
    joules_add_known(&this_start, earlier);
    return this_start;
}

void account_totals(const struct profile *profile, struct finish_facts *out)
{
    const struct resume *resume = &profile->place.resume;
    double accounted = of_all_starts(profile->sums.accounted_joules, resume->accounted_joules);
    out->busy = busy_of_all_starts(profile);
    out->busy_s = busy_s_of_all_starts(profile);
    out->requests_joules = of_all_starts(profile->run.requests_joules, resume->requests_joules);
    out->idle_joules = of_all_starts(profile->sums.idle_joules, resume->idle_joules);
    out->unattributed_joules =
        of_all_starts(profile->sums.unattributed_joules, resume->unattributed_joules);
    energy_of_all_starts(profile, &out->energy);
    out->conservation_error = fabs(accounted - out->energy.joules) / out->energy.joules;
}
