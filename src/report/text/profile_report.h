/* What `ipw profile` says of a run when it is through: made of its summary.json, so that people and
 * scripts are told the same. */
#ifndef IPW_REPORT_PROFILE_REPORT_H
#define IPW_REPORT_PROFILE_REPORT_H

#include <stdbool.h>

#include "core/err.h"

struct profile_result;
struct text;

enum err profile_text(const struct profile_result *result, bool colour, struct text *out,
                      struct error *why) MUST_USE;

#endif
