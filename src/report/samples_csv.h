/* The raw samples of a session as CSV, so that what was measured can be re-attributed later. */
#ifndef IPW_REPORT_SAMPLES_CSV_H
#define IPW_REPORT_SAMPLES_CSV_H

#include "core/err.h"
#include "core/units.h"

struct sampler;

/* Writes rows t_s,sensor,device,channel,scope,quantity,unit,value,sum with t_s counted from `zero`.
 * `put` receives the bytes in pieces and returns ERR_OK to go on. */
enum err samples_to_csv(struct sampler *sampler, nanos zero,
                        enum err (*put)(const char *bytes, void *context), void *context) MUST_USE;

#endif
