/* What `ipw govern` reports (core/result.h): the whole time, and each interval for its log.  The caller owns the arguments
 * and releases the results. */
#ifndef IPW_RUNNER_GOVERN_RESULT_H
#define IPW_RUNNER_GOVERN_RESULT_H

struct govern_options;
struct govern_result;
struct govern_step;
struct result;

void govern_result_fill(struct result *result, const struct govern_options *options,
                        const struct govern_result *from);
void govern_result_step(struct result *result, const struct govern_step *step);

#endif
