/* summary.json and the object that scripts get: a run in figures. */
#ifndef IPW_RUNNER_PROFILE_SUMMARY_H
#define IPW_RUNNER_PROFILE_SUMMARY_H

struct finish_facts;
struct profile_context;
struct sums;
struct text;

/* The contract for scripts (`ipw profile --json`), one object. */
void summary_report(const struct profile_context *context, const struct finish_facts *facts,
                    const struct sums *sums, struct text *out);

/* summary.json: the keys of the Python IPW, and ours under "ipw". */
void summary_write(const struct profile_context *context, const struct finish_facts *facts,
                   const struct sums *sums, struct text *out);

/* What every record says of the machine, to be merged into each: gpu_info and system_info. */
void summary_constants(const struct profile_context *context, struct text *out);

#endif
