/* `ipw estimate --model-compat`: the legacy model's figures.  Adds its report to *out, which the caller
 * owns. */
#ifndef IPW_CLI_ESTIMATE_LEGACY_H
#define IPW_CLI_ESTIMATE_LEGACY_H

#include <stdbool.h>

#include "core/err.h"

struct estimate_options;
struct text;

enum err estimate_legacy(const struct estimate_options *options, bool json, struct text *out,
                         struct error *why) MUST_USE;

#endif
