#include "runner/profile/whole.h"

#include "core/clock.h"

void profile_warn(const struct profile *profile, const char *line)
{
    if (profile->run.context.options->warn)
        profile->run.context.options->warn(line);
}

void profile_phase(struct profile *profile, const char *phase, int64_t total)
{
    struct profile_run *run = &profile->run;
    profile->keeping.run = run;
    profile->keeping.phase = phase;
    profile->keeping.total = total;
    profile->keeping.began = profile->keeping.settled_at = clock_now();
    profile->keeping.watts = profile->keeping.joules_per_token = UNKNOWN;
    profile->keeping.tokens_before = (double)atomic_load(&run->output_tokens);
    show_progress(&profile->keeping);
}
