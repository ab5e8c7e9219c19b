#include "runner/profile/state.h"

#include "core/clock.h"

void profile_fail(struct profile *profile, enum err err, const struct error *why)
{
    pthread_mutex_lock(&profile->lock);
    if (!profile->err) {
        profile->err = err;
        if (why && why->text[0])
            profile->why = *why;
        else
            err_set(&profile->why, err, "%s", err_text(err));
    }
    pthread_mutex_unlock(&profile->lock);
    atomic_store(&profile->stop, true);
}

void profile_warn(const struct profile *profile, const char *line)
{
    if (profile->options->warn)
        profile->options->warn(line);
}

void profile_begin_phase(struct profile *profile, const char *phase, int64_t total)
{
    profile->phase = phase;
    profile->phase_total = total;
    profile->phase_began = profile->settled_at = clock_now();
    profile->phase_tokens = (double)atomic_load(&profile->output_tokens);
    profile->watts = profile->joules_per_token = UNKNOWN;
    profile_show_progress(profile);
}

void profile_show_progress(const struct profile *profile)
{
    if (!profile->options->progress)
        return;
    double elapsed_s = seconds(clock_now() - profile->phase_began);
    double tokens = (double)atomic_load(&profile->output_tokens) - profile->phase_tokens;
    struct profile_progress progress = {
        .phase = profile->phase,
        .done = atomic_load(&profile->done),
        .failed = atomic_load(&profile->failed),
        .total = profile->phase_total,
        .elapsed_s = elapsed_s,
        .watts = profile->watts,
        .joules_per_token = profile->joules_per_token,
        .output_tokens_per_s = tokens > 0 && elapsed_s > 0 ? tokens / elapsed_s : UNKNOWN,
        .stopping = profile->signals > 0,
    };
    profile->options->progress(&progress);
}
